"""Literals beside scalars and elements: they adapt to the dtype, unless that would change their value."""

from __future__ import annotations

from ..dtypes import DType
from ..op import Call
from ..program import Const


def require_literal(call: Call, i: int, dtype: DType, patterns: bool = False) -> None:
    """Check that operand ``i``, if it is a literal, can be used as a ``dtype``; TG011.

    Integers take whole numbers of their range, with ``patterns`` also those of the other sign with as many bits. Floats
    take every number and round it.
    """
    o = call.operands[i]
    if not isinstance(o, Const) or not dtype.is_int:
        return
    if isinstance(o.value, float) and not o.value.is_integer():
        hint = "write an integer, or cast the other operand to FP32 first"
        call.fail("TG011", f"{o.value} is no value of {dtype.name}", hint=hint)
    least, most = int(dtype.min_value), int(dtype.max_value)
    if patterns:
        least, most = -(1 << (dtype.bits - 1)), (1 << dtype.bits) - 1
    if not least <= o.value <= most:
        hint = "write a number in this range, or cast the other operand to a wider dtype"
        reason = f"it holds {int(dtype.min_value)} to {int(dtype.max_value)}"
        call.fail("TG011", f"{o.value} does not fit {dtype.name}", reason=reason, hint=hint)
