"""Scalar arithmetic, as written between values in the text: ``i * 64 + j``, ``pl.min(a, b)``."""

from __future__ import annotations

import operator
from typing import Any

from .. import valueset as vs
from ..dtypes import BOOL
from ..op import Call, Scalar, op
from ..types import Type, scalar
from ._result import scalar_binary, scalar_compare

FAMILY = "scalar"

#: Operator text of each infix scalar operation.
INFIX = {
    "scalar.add": "+", "scalar.sub": "-", "scalar.mul": "*", "scalar.div": "/", "scalar.floordiv": "//",
    "scalar.mod": "%", "scalar.eq": "==", "scalar.ne": "!=", "scalar.lt": "<", "scalar.le": "<=",
    "scalar.gt": ">", "scalar.ge": ">=", "scalar.and_": "and", "scalar.or_": "or", "scalar.bit_and": "&",
    "scalar.bit_or": "|", "scalar.bit_xor": "^", "scalar.shl": "<<", "scalar.shr": ">>",
}  # fmt: skip
#: Operator text of each prefix scalar operation.
PREFIX = {"scalar.neg": "-", "scalar.not_": "not "}


@op("scalar.add", result=scalar_binary, family=FAMILY)
def add(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs + rhs."""
    return lhs + rhs


add.facts(vs.add)


@op("scalar.sub", result=scalar_binary, family=FAMILY)
def sub(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs - rhs."""
    return lhs - rhs


sub.facts(vs.sub)


@op("scalar.mul", result=scalar_binary, family=FAMILY)
def mul(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs * rhs."""
    return lhs * rhs


mul.facts(vs.mul)


@op("scalar.div", result=scalar_binary, family=FAMILY)
def div(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs / rhs; integers truncate toward zero and give 0 for a zero divisor."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        if rhs == 0:
            return 0
        quotient = abs(lhs) // abs(rhs)
        return quotient if (lhs < 0) == (rhs < 0) else -quotient
    return _float_div(float(lhs), float(rhs))


def _float_div(a: float, b: float) -> float:
    import numpy as np

    with np.errstate(all="ignore"):
        return float(np.float64(a) / np.float64(b))


@op("scalar.floordiv", result=scalar_binary, family=FAMILY)
def floordiv(lhs: Scalar, rhs: Scalar) -> Any:
    """Floor division; 0 for a zero divisor."""
    return lhs // rhs if rhs else 0


@op("scalar.mod", result=scalar_binary, family=FAMILY)
def mod(lhs: Scalar, rhs: Scalar) -> Any:
    """Remainder with the sign of the divisor; 0 for a zero divisor."""
    return lhs % rhs if rhs else 0


@op("scalar.min", result=scalar_binary, unified="min", family=FAMILY)
def scalar_min(lhs: Scalar, rhs: Scalar) -> Any:
    """The smaller."""
    return min(lhs, rhs)


scalar_min.facts(vs.scalar_choice(vs.minimum))


@op("scalar.max", result=scalar_binary, unified="max", family=FAMILY)
def scalar_max(lhs: Scalar, rhs: Scalar) -> Any:
    """The larger."""
    return max(lhs, rhs)


scalar_max.facts(vs.scalar_choice(vs.maximum))


def _declare_compare(name: str, symbol: str) -> None:
    compare = getattr(operator, name)

    def meaning(lhs: Scalar, rhs: Scalar) -> Any:
        return bool(compare(lhs, rhs))

    meaning.__doc__ = f"lhs {symbol} rhs, as BOOL."
    op(f"scalar.{name}", result=scalar_compare, family=FAMILY)(meaning)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _declare_compare(_name, INFIX[f"scalar.{_name}"])


def _bool(call: Call) -> Type:
    return scalar(BOOL)


@op("scalar.and_", result=_bool, family=FAMILY)
def and_(lhs: Scalar, rhs: Scalar) -> Any:
    """Both hold."""
    return bool(lhs) and bool(rhs)


@op("scalar.or_", result=_bool, family=FAMILY)
def or_(lhs: Scalar, rhs: Scalar) -> Any:
    """At least one holds."""
    return bool(lhs) or bool(rhs)


@op("scalar.not_", result=_bool, family=FAMILY)
def not_(value: Scalar) -> Any:
    """The condition does not hold."""
    return not value


@op("scalar.bit_and", result=scalar_binary, family=FAMILY)
def bit_and(lhs: Scalar, rhs: Scalar) -> Any:
    """Bitwise and."""
    return lhs & rhs


@op("scalar.bit_or", result=scalar_binary, family=FAMILY)
def bit_or(lhs: Scalar, rhs: Scalar) -> Any:
    """Bitwise or."""
    return lhs | rhs


@op("scalar.bit_xor", result=scalar_binary, family=FAMILY)
def bit_xor(lhs: Scalar, rhs: Scalar) -> Any:
    """Bitwise exclusive or."""
    return lhs ^ rhs


@op("scalar.shl", result=scalar_binary, family=FAMILY)
def shl(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs << rhs; amounts of 64 and more, and negative ones, give 0."""
    return lhs << rhs if 0 <= rhs < 64 else 0


@op("scalar.shr", result=scalar_binary, family=FAMILY)
def shr(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs >> rhs, arithmetic."""
    return lhs >> min(rhs, 63) if rhs >= 0 else 0


@op("scalar.neg", result=lambda call: call.type(0), family=FAMILY)
def neg(value: Scalar) -> Any:
    """-value."""
    return -value


neg.facts(vs.neg)
