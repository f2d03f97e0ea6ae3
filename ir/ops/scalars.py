"""Scalar arithmetic, as written between values in the text: ``i * 64 + j``, ``pl.min(a, b)``.

A meaning takes Python numbers, or arrays of one element per thread (:mod:`tilegg.ir.lanes`).
"""

from __future__ import annotations

import operator
from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..classification import Classification
from ..dtypes import BOOL
from ..lanes import (
    choose,
    floor_div,
    floor_mod,
    is_lanes,
    is_whole,
    larger,
    shift_left,
    shift_right,
    smaller,
    trunc_div,
    trunc_rem,
    truth,
)
from ..op import Call, Scalar, op
from ..types import ScalarType, Type, scalar
from ._result import common_dtype
from ._scalar_facts import common_bits, modulus, quotient, remainder, shifted_right
from ._scalar_result import INTEGERS, NUMBERS, binary, bitwise, comparison, dtype_at, require_listed, unary

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


def plain(group: str, types: tuple[str, ...], differences: str = "", **intrinsics: str) -> Classification:
    """Return the record of an operation with a plain meaning, which runs anywhere."""
    return Classification(group, "anywhere", "keep scalar", types, intrinsics=intrinsics, differences=differences)


@op("scalar.add", result=binary, family=FAMILY, scalar=plain("A", NUMBERS, float="fadd", any="add"))
def add(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs + rhs."""
    return lhs + rhs


add.facts(vs.add)


@op("scalar.sub", result=binary, family=FAMILY, scalar=plain("A", NUMBERS, float="fsub", any="sub"))
def sub(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs - rhs."""
    return lhs - rhs


sub.facts(vs.sub)


@op("scalar.mul", result=binary, family=FAMILY, scalar=plain("A", NUMBERS, float="fmul", any="mul"))
def mul(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs * rhs."""
    return lhs * rhs


mul.facts(vs.mul)


_BY_ZERO = "a zero divisor gives 0, the least integer over -1 wraps; LLVM leaves both undefined, so they are guarded"


@op(
    "scalar.div", result=binary, family=FAMILY,
    scalar=plain("A", NUMBERS, _BY_ZERO, float="fdiv", uint="udiv", any="sdiv"),
)  # fmt: skip
def div(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs / rhs; integers truncate toward zero and give 0 for a zero divisor."""
    if is_whole(lhs) and is_whole(rhs):
        return trunc_div(lhs, rhs)
    with np.errstate(all="ignore"):
        quotient = np.true_divide(lhs, rhs)
    return quotient if is_lanes(lhs, rhs) else float(quotient)


div.facts(quotient)



@op("scalar.floordiv", result=binary, family=FAMILY,
    scalar=plain("A", NUMBERS, _BY_ZERO, uint="udiv", any="sdiv and a correction"))  # fmt: skip
def floordiv(lhs: Scalar, rhs: Scalar) -> Any:
    """Floor division; 0 for a zero divisor."""
    return floor_div(lhs, rhs)


floordiv.facts(quotient)


@op("scalar.mod", result=binary, family=FAMILY,
    scalar=plain("A", NUMBERS, _BY_ZERO, uint="urem", any="srem and a correction"))  # fmt: skip
def mod(lhs: Scalar, rhs: Scalar) -> Any:
    """Remainder with the sign of the divisor; 0 for a zero divisor."""
    return floor_mod(lhs, rhs)


mod.facts(modulus)


@op("scalar.rem", result=binary, family=FAMILY, scalar=plain("A", INTEGERS, _BY_ZERO, uint="urem", any="srem"))
def rem(lhs: Scalar, rhs: Scalar) -> Any:
    """Remainder with the sign of the dividend, as ``div`` truncates; 0 for a zero divisor."""
    return trunc_rem(lhs, rhs)


rem.facts(remainder)


_ZEROS = "of zeros of both signs LLVM may give either; here the larger is +0, the smaller -0"
_EXTREMUM = "selected by a comparison"


@op("scalar.min", result=binary, unified="min", family=FAMILY, target_defined="the sign of min(+0, -0)",
    scalar=plain("B", NUMBERS, _ZEROS, float="llvm.minnum", int="llvm.smin", uint="llvm.umin",
                 index=_EXTREMUM))  # fmt: skip
def scalar_min(lhs: Scalar, rhs: Scalar) -> Any:
    """The smaller; of a NaN and a number the number."""
    return smaller(lhs, rhs)


scalar_min.facts(vs.scalar_choice(vs.minimum))


@op("scalar.max", result=binary, unified="max", family=FAMILY, target_defined="the sign of max(+0, -0)",
    scalar=plain("B", NUMBERS, _ZEROS, float="llvm.maxnum", int="llvm.smax", uint="llvm.umax",
                 index=_EXTREMUM))  # fmt: skip
def scalar_max(lhs: Scalar, rhs: Scalar) -> Any:
    """The larger; of a NaN and a number the number."""
    return larger(lhs, rhs)


scalar_max.facts(vs.scalar_choice(vs.maximum))

_ORDERED = {"eq": "oeq", "ne": "une", "lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge"}


def _declare_compare(name: str, symbol: str) -> None:
    compare = getattr(operator, name)

    def meaning(lhs: Scalar, rhs: Scalar) -> Any:
        return truth(compare(lhs, rhs))

    meaning.__doc__ = f"lhs {symbol} rhs, as BOOL."
    unsigned = f"icmp {name}" if name in ("eq", "ne") else f"icmp u{name}"
    signed = unsigned if name in ("eq", "ne") else f"icmp s{name}"
    record = plain("A", (*NUMBERS, "BOOL"), float=f"fcmp {_ORDERED[name]}", uint=unsigned, bool=unsigned, any=signed)
    op(f"scalar.{name}", result=comparison, family=FAMILY, scalar=record)(meaning)


for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    _declare_compare(_name, INFIX[f"scalar.{_name}"])

_LOGIC = ("BOOL", *NUMBERS)


def _bool(call: Call) -> Type:
    for i in range(len(call.operands)):
        if isinstance(call.type(i), ScalarType):
            require_listed(call, call.type(i).dtype)
    return scalar(BOOL)


@op("scalar.and_", result=_bool, family=FAMILY, scalar=plain("A", _LOGIC, any="and"))
def and_(lhs: Scalar, rhs: Scalar) -> Any:
    """Both hold."""
    return np.logical_and(lhs, rhs) if is_lanes(lhs, rhs) else bool(lhs) and bool(rhs)


@op("scalar.or_", result=_bool, family=FAMILY, scalar=plain("A", _LOGIC, any="or"))
def or_(lhs: Scalar, rhs: Scalar) -> Any:
    """At least one holds."""
    return np.logical_or(lhs, rhs) if is_lanes(lhs, rhs) else bool(lhs) or bool(rhs)


@op("scalar.not_", result=_bool, family=FAMILY, scalar=plain("A", _LOGIC, any="xor 1"))
def not_(value: Scalar) -> Any:
    """The condition does not hold."""
    return np.logical_not(value) if is_lanes(value) else not value


_BITS = (*INTEGERS, "BOOL")


@op("scalar.bit_and", result=bitwise, family=FAMILY, scalar=plain("A", _BITS, any="and"))
def bit_and(lhs: Scalar, rhs: Scalar) -> Any:
    """Bitwise and."""
    return lhs & rhs


bit_and.facts(common_bits)


@op("scalar.bit_or", result=bitwise, family=FAMILY, scalar=plain("A", _BITS, any="or"))
def bit_or(lhs: Scalar, rhs: Scalar) -> Any:
    """Bitwise or."""
    return lhs | rhs


@op("scalar.bit_xor", result=bitwise, family=FAMILY, scalar=plain("A", _BITS, any="xor"))
def bit_xor(lhs: Scalar, rhs: Scalar) -> Any:
    """Bitwise exclusive or."""
    return lhs ^ rhs


@op("scalar.bit_not", result=unary, family=FAMILY, scalar=plain("A", INTEGERS, any="xor -1"))
def bit_not(value: Scalar) -> Any:
    """Every bit inverted."""
    return ~value


_AMOUNT = "amounts of the width and more give 0 (-1 for a negative value shifted right); LLVM leaves them undefined"


@op("scalar.shl", result=binary, family=FAMILY, scalar=plain("A", INTEGERS, _AMOUNT, any="shl"))
def shl(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs << rhs; amounts of 64 and more, and negative ones, give 0."""
    return shift_left(lhs, rhs)


@op("scalar.shr", result=binary, family=FAMILY, scalar=plain("A", INTEGERS, _AMOUNT, uint="lshr", any="ashr"))
def shr(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs >> rhs, arithmetic."""
    return shift_right(lhs, rhs)


shr.facts(shifted_right)


def _neg_type(call: Call) -> Type:
    return unary(call) if isinstance(call.type(0), ScalarType) else call.type(0)


@op("scalar.neg", result=_neg_type, family=FAMILY, scalar=plain("A", NUMBERS, float="fneg", any="sub 0"))
def neg(value: Scalar) -> Any:
    """-value."""
    return -value


neg.facts(vs.neg)


def _select_type(call: Call) -> Type:
    if dtype_at(call, 0) is not BOOL:
        call.fail("TG007", f"the condition is {dtype_at(call, 0).name}", hint="compare it with 0 first")
    return scalar(require_listed(call, common_dtype(call, 1, 2)))


@op("scalar.select", result=_select_type, family=FAMILY, scalar=plain("A", (*NUMBERS, "BOOL"), any="select"))
def select(condition: Scalar, on_true: Scalar, on_false: Scalar) -> Any:
    """``on_true`` where the condition holds, else ``on_false``."""
    return choose(condition, on_true, on_false)
