"""Literal operands: Python numbers rounded into a dtype, with a diagnostic where they do not fit."""

from __future__ import annotations

import math
import struct
from functools import lru_cache
from typing import Any

from .diagnostics import Span, error
from .dtypes import BF16, BOOL, FP16, FP32, INDEX, DType
from .program import Const, Operand, Value, Verbatim, index


def literal(value: bool | int | float, dtype: DType | None, span: Span | None) -> Const:
    """Return the literal operand, rounded into its dtype; raises TG011 when it does not fit.

    Without a dtype an int is INDEX, a float FP32, a bool BOOL.
    """
    if dtype is None:
        cls = value.__class__
        if cls is int:
            if -(2**63) <= value < 2**63:
                return index(value)
            raise error(
                "TG011", f"the integer has {value.bit_length()} bits", span,  # type: ignore[union-attr]
                reason="a number without a dtype has 63 bits and a sign",
                hint="pl.const(NUMBER, pl.UINT64) has 64 bits",
            )  # fmt: skip
        if cls is float:
            return _fp32(value, span) if value == value else Const(value, FP32)
        return Const(value, BOOL)
    return _typed(value, dtype, span)


def _typed(value: bool | int | float, dtype: DType, span: Span | None) -> Const:
    if not dtype.is_numeric:
        raise error("TG011", f"{dtype.name} has no literals", span)
    if dtype.is_float:
        return Const(round_literal(float_of(value, span), dtype, span), dtype)
    if dtype is BOOL:
        return Const(bool(value), BOOL)
    if value != value or value in (float("inf"), float("-inf")) or value != int(value):
        raise error("TG011", f"{value} is no integer", span, hint=f"{dtype.name} holds integers")
    whole = int(value)
    if not dtype.min_value <= whole <= dtype.max_value:
        limits = f"{dtype.min_value} to {dtype.max_value}"
        raise error("TG011", f"{_short(whole)} does not fit {dtype.name}", span, reason=f"its range is {limits}")
    return index(whole) if dtype is INDEX else Const(whole, dtype)


def misfit(o: Operand, dtype: DType, patterns: bool = False) -> tuple[str, str, str] | None:
    """Return why a literal cannot be used as a ``dtype`` (message, reason, hint); ``None`` where it can, or is none.

    Integers take whole numbers of their range, with ``patterns`` also those of the other sign with as many bits. Floats
    take every number and round it.
    """
    if not isinstance(o, Const) or not dtype.is_int:
        return None
    if isinstance(o.value, float) and not o.value.is_integer():
        hint = "write an integer, or cast the other operand to FP32 first"
        return f"{o.value} is no value of {dtype.name}", "", hint
    least, most = int(dtype.min_value), int(dtype.max_value)
    reason = f"it holds {least} to {most}"
    if patterns:
        least, most = -(1 << (dtype.bits - 1)), (1 << dtype.bits) - 1
    if least <= o.value <= most:
        return None
    hint = "write a number in this range, or cast the other operand to a wider dtype"
    return f"{o.value} does not fit {dtype.name}", reason, hint


def float_of(value: int | float, span: Span | None) -> float:
    """Return a number as a float; raises TG011 when it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        raise error("TG011", "the integer is too large for a float", span) from None


def _short(value: int) -> str:
    return str(value) if value.bit_length() < 200 else f"an integer of {value.bit_length()} bits"


@lru_cache(maxsize=4096)
def _fp32_bits(text: str) -> Const | None:
    value = float(text)
    try:
        return Const(struct.unpack("<f", struct.pack("<f", value))[0], FP32)
    except OverflowError:
        return None


def _fp32(value: float, span: Span | None) -> Const:
    found = _fp32_bits(repr(value))
    if found is None or value in (float("inf"), float("-inf")):
        what = "the float" if found is not None else repr(value)
        raise error(
            "TG011", f"{what} does not fit FP32", span, reason="FP32 reaches 3.4028234663852886e+38",
            hint="infinity is written math.inf or -math.inf",
        )  # fmt: skip
    return found


def round_literal(value: float, dtype: DType, span: Span | None) -> float:
    """Return the value rounded to nearest even in a float dtype; raises TG011 on overflow."""
    if value != value or value in (float("inf"), float("-inf")):
        special = dtype.has_nan if value != value else dtype.has_inf
        if special:
            return value
        raise error("TG011", f"{dtype.name} has no {value}", span)
    rounded = _round(value, dtype)
    if abs(rounded) > dtype.max_value or (rounded < 0 and not dtype.has_sign):
        raise error("TG011", f"{value} does not fit {dtype.name}", span, reason=f"it reaches {dtype.max_value}")
    return rounded


def wrapped(value: int, dtype: DType) -> int:
    """Return the integer whose low bits, as many as the dtype has, are those of the value."""
    low = value & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.signed and low >> (dtype.bits - 1) else low


#: Dtypes of :func:`nearest`.
HALVES_AND_SINGLE = (FP32, BF16, FP16)


def nearest(value: float, dtype: DType) -> float:
    """Return the value rounded to nearest even in one of :data:`HALVES_AND_SINGLE`, as conversions round.

    Beyond the largest value it is infinite, and what becomes zero keeps its sign.
    """
    if not math.isfinite(value):
        return value
    rounded = _round(value, dtype)
    return math.copysign(rounded if abs(rounded) <= dtype.max_value else math.inf, value)


def _round(value: float, dtype: DType) -> float:
    if dtype not in (FP32, FP16):
        return _round_generic(value, dtype)
    code = "<f" if dtype is FP32 else "<e"
    try:
        rounded: float = struct.unpack(code, struct.pack(code, value))[0]
    except OverflowError:
        return math.inf
    return rounded


def _round_generic(value: float, dtype: DType) -> float:
    if value == 0.0:
        return value if dtype.has_zero else float(dtype.min_positive)
    exponent = math.frexp(value)[1] - 1
    digits = dtype.precision_at(exponent)
    if digits:
        quantum = exponent - digits + 1
    elif exponent < dtype.quantum_exponent:
        quantum = dtype.quantum_exponent
    else:
        return value
    return math.ldexp(float(round(math.ldexp(value, -quantum))), quantum)


def operand(value: Any) -> Operand:
    """Return a Python value as an operand: numbers become literals, lists become tuples.

    Raises TG006 for anything else, TG011 for a number that does not fit.
    """
    if value is None or isinstance(value, Value | Const | Verbatim):
        return value
    if isinstance(value, bool | int | float):
        special = isinstance(value, float) and (value != value or value in (float("inf"), float("-inf")))
        return Const(value, FP32) if special else literal(value, None, None)
    if isinstance(value, list | tuple):
        return tuple(operand(v) for v in value)
    raise error("TG006", f"a {type(value).__name__} is no operand")


def const(value: int | float | bool, dtype: DType) -> Const:
    """Return a typed literal, rounded into its dtype; raises TG011 when it does not fit."""
    return literal(value, dtype, None)
