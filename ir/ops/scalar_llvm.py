"""What scalar operations are lowered to: LLVM intrinsics, as operations of their own with the same exact meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from ..classification import Classification
from ..lanes import larger, smaller
from ..op import Scalar, op
from ._scalar_result import FLOATS, SIGNED, UNSIGNED, binary, unary
from .scalar_math import in_double, magnitude, power

FAMILY = "LLVM forms of scalar operations"


def _record(name: str, types: tuple[str, ...], differences: str = "") -> Classification:
    return Classification("", "anywhere", "", types, intrinsics={"any": name}, differences=differences)


def _binary(name: str, types: tuple[str, ...], doc: str, fn: Callable[[Any, Any], Any], open_: str = "") -> None:
    def meaning(lhs: Scalar, rhs: Scalar) -> Any:
        return fn(lhs, rhs)

    meaning.__doc__ = doc
    record = _record(f"llvm.{name}", types)
    op(f"llvm.{name}", result=binary, family=FAMILY, target_defined=open_, scalar=record)(meaning)


def _unary(name: str, types: tuple[str, ...], doc: str, fn: Callable[[Any], Any], open_: str = "") -> None:
    def meaning(value: Scalar) -> Any:
        return fn(value)

    meaning.__doc__ = doc
    record = _record(f"llvm.{name}", types)
    op(f"llvm.{name}", result=unary, family=FAMILY, target_defined=open_, scalar=record)(meaning)


_ZERO = "the sign where the operands are +0 and -0"
_INDEX_TOO = (*SIGNED, "INDEX")
_binary("maxnum", FLOATS, "The larger; of a NaN and a number the number.", larger, _ZERO)
_binary("minnum", FLOATS, "The smaller; of a NaN and a number the number.", smaller, _ZERO)
_binary("smax", SIGNED, "The larger of signed integers.", larger)
_binary("smin", SIGNED, "The smaller of signed integers.", smaller)
_binary("umax", UNSIGNED, "The larger of unsigned integers.", larger)
_binary("umin", UNSIGNED, "The smaller of unsigned integers.", smaller)
_unary("fabs", FLOATS, "The magnitude.", magnitude)
_unary("abs", _INDEX_TOO, "The magnitude; the least integer stays.", magnitude)
_unary("sqrt", FLOATS, "The square root, correctly rounded.", lambda x: in_double(np.sqrt, x))
_unary("exp", FLOATS, "e to the power of value.", lambda x: in_double(np.exp, x), "the last bit")
_unary("log", FLOATS, "The natural logarithm.", lambda x: in_double(np.log, x), "the last bit")
_binary("pow", FLOATS, "lhs to the power of rhs.", power, "the last bit")
