"""Round modes, and the kernels that round arrays to a dtype with exactly one rounding.

A kernel takes flat arrays. Sources come as *carriers* that hold their values exactly (float32, float64) or,
for integers wider than float64's significand, rounded to odd first: rounding to odd with at least two spare
bits and then in any mode gives what one direct rounding gives (Boldo and Melquiond 2008).  The coded formats
of at most eight bits are reached through BF16 in the same way and then by table.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Any, Final, cast

from . import lazy_numpy as np
from .codes import Array, float32_table, from_bits, ranked_codes
from .diagnostics import Span, error
from .dtypes import BF16, BOOL, DType

#: The round modes; a mode's position is its enum integer. rint: nearest, ties to even; round: nearest, ties
#: away from zero; odd: toward zero, then an inexact result gets an odd last bit; none: rint for float, trunc
#: for integer destinations.
ROUND_MODES: Final = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")


def parse_mode(mode: str | int, span: Span | None = None) -> str:
    """Return the round mode that a name (in any letter case) or an enum integer names; raises TG004."""
    if isinstance(mode, str):
        word = mode.strip().lower()
        if word in ROUND_MODES:
            return word
    elif hasattr(mode, "__index__") and not isinstance(mode, bool):
        number = operator.index(mode)
        if 0 <= number < len(ROUND_MODES):
            return ROUND_MODES[number]
    known = ", ".join(f"{name} ({number})" for number, name in enumerate(ROUND_MODES))
    raise error("TG004", f"unknown round mode {str(mode)[:40]!r}", span, hint=f"round modes: {known}")


def effective(mode: str, dst: DType) -> str:
    """Return the mode with ``none`` resolved for a destination."""
    return ("rint" if dst.is_float else "trunc") if mode == "none" else mode


# -- rounding to integral values ---------------------------------------------------------------------------


def round_integral(values: Array, mode: str) -> Array:
    """Return float32 or float64 values rounded to integral ones in a mode other than ``none``."""
    if mode == "round":
        # The largest value below a half: adding 0.5 itself would lift 0.49999997 to 1.
        half = np.nextafter(values.dtype.type(0.5), values.dtype.type(0))
        return cast(Array, np.trunc(values + np.copysign(half, values)))
    if mode == "odd":
        return _odd_integral(values)
    whole: Array = getattr(np, mode)(values)
    return whole


def _odd_integral(values: Array) -> Array:
    whole = np.trunc(values)
    half = whole * values.dtype.type(0.5)
    lift = (whole != values) & (np.trunc(half) == half)
    result: Array = whole + np.copysign(lift.astype(values.dtype), values)
    return result


# -- float carriers to FP16, BF16, FP32 --------------------------------------------------------------------


def to_binary(values: Array, dst: DType, mode: str, saturate: bool, finite: bool = False) -> Array:
    """Round float32 or float64 values to the codes of FP16, BF16 or FP32 (as uint16 or uint32).

    ``finite`` promises that there is neither infinity nor NaN. A float32 source needs FP16 as destination:
    the scale to the quantum of a wider exponent range overflows.
    """
    width = values.dtype.itemsize * 8
    mantissa, bias = (23, 127) if width == 32 else (52, 1023)
    word = np.dtype(f"u{width // 8}").type
    exponent_mask = word(((1 << (width - 1)) - 1) >> mantissa << mantissa)
    raw = values.view(word)
    magnitude = raw & word((1 << (width - 1)) - 1)
    special = not finite and bool(magnitude.max(initial=0) >= exponent_mask)
    if special:
        values = np.where(magnitude < exponent_mask, values, values.dtype.type(0))
    fraction = dst.significand_bits - 1
    least = word((dst.min_exponent + bias) << mantissa)
    exponent = np.maximum(magnitude & exponent_mask, least)
    scale = (word((2 * bias + fraction) << mantissa) - exponent).view(values.dtype)
    steps = np.abs(round_integral(values * scale, mode)).astype(word)
    # A significand of 2**fraction carries the exponent field's unit, hence codes simply add up.
    code = ((exponent - least) >> word(mantissa - fraction)) + steps
    code = _limit(code, raw >> word(width - 1), dst, mode, saturate)
    if special:
        _put_special(code, magnitude, exponent_mask, dst, saturate)
    code |= raw >> word(width - dst.bits) & word(dst.sign_bit)
    return code.astype(np.dtype(f"u{dst.bits // 8}"))


def _limit(code: Array, negative: Array, dst: DType, mode: str, saturate: bool) -> Array:
    """Clamp magnitude codes above the largest finite one to what overflow gives."""
    word = code.dtype.type
    top: Any = word(dst.max_code)
    infinity = word(dst.inf_code or 0)
    if mode == "floor" and not saturate:
        top = top + negative
    elif mode == "ceil" and not saturate:
        top = infinity - negative
    elif mode in ("rint", "round") and not saturate:
        top = infinity
    limited: Array = np.minimum(code, top)
    return limited


def _put_special(code: Array, magnitude: Array, exponent_mask: Any, dst: DType, saturate: bool) -> None:
    """Write the codes of infinities and NaNs in place; the source's sign is added by the caller."""
    code[magnitude == exponent_mask] = dst.max_code if saturate else dst.inf_code or 0
    code[magnitude > exponent_mask] = dst.nan_code or 0


def float32_to_bf16(values: Array, mode: str, saturate: bool) -> Array:
    """Round float32 values to BF16 codes: both have one exponent range, so a code is half the word."""
    raw = values.view(np.uint32)
    magnitude = raw & np.uint32(0x7FFFFFFF)
    if mode == "rint":
        lift: Any = ((magnitude >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    elif mode in ("floor", "ceil"):
        negative = raw >> np.uint32(31)
        lift = (negative if mode == "floor" else negative ^ np.uint32(1)) * np.uint32(0xFFFF)
    else:
        lift = np.uint32(0x8000 if mode == "round" else 0)
    code = (magnitude + lift) >> np.uint32(16)
    if mode == "odd":
        code |= (magnitude & np.uint32(0xFFFF)) != 0
    if magnitude.max(initial=0) > np.uint32(0x7F800000):
        code[magnitude > np.uint32(0x7F800000)] = BF16.nan_code or 0
        if saturate:
            code[(code >= np.uint32(0x7F80)) & (magnitude <= np.uint32(0x7F800000))] = BF16.max_code
    elif saturate:
        code = np.minimum(code, np.uint32(BF16.max_code))
    code |= raw >> np.uint32(16) & np.uint32(0x8000)
    return cast(Array, code.astype(np.uint16))


# -- to the coded formats ----------------------------------------------------------------------------------


def float32_to_coded(values: Array, dst: DType, mode: str, saturate: bool) -> Array:
    """Round float32 values to the uint8 codes of a format of at most six significand bits."""
    raw = values.view(np.uint32)
    odd = raw >> np.uint32(16)
    odd |= (raw & np.uint32(0xFFFF)) != 0
    return coded_table(dst, mode, saturate).take(odd)


@cache
def coded_table(dst: DType, mode: str, saturate: bool) -> Array:
    """The uint8 code of a coded format for each of the 65536 BF16 codes."""
    words = np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)
    return round_to_grid(words.view(np.float32).astype(np.float64), dst, mode, saturate)


def round_to_grid(values: Array, dst: DType, mode: str, saturate: bool) -> Array:
    """Round float64 values of at most eight significand bits to a coded format by search among its values."""
    codes = ranked_codes(dst)
    finite = float32_table(dst)[codes].astype(np.float64)
    beyond = finite[-1] + 2.0 ** (dst.max_exponent - dst.precision_at(dst.max_exponent) + 1)
    grid = np.append(finite, beyond)
    nan = np.isnan(values)
    magnitude = np.abs(np.where(nan, 0.0, values))
    below = np.searchsorted(finite, magnitude, side="right") - 1
    # FP8E8M0 has no zero: below its least value there is only that value.
    tiny, below = below < 0, np.maximum(below, 0)
    odd_code = (codes[below] & 1).astype(np.bool_)
    up = _away(magnitude - grid[below], grid[below + 1] - magnitude, odd_code, np.signbit(values), mode)
    rank = np.where(tiny, 0, below + up)
    if mode == "odd":
        rank = np.minimum(rank, len(codes) - 1)
    overflow = (rank >= len(codes)) | np.isinf(values)
    result = codes[np.minimum(rank, len(codes) - 1)].astype(np.int64)
    if not saturate and (dst.has_inf or dst.has_nan):
        result[overflow] = dst.inf_code or dst.nan_code or 0
    return _signed_codes(result, values, nan, dst)


def _away(rest: Array, gap: Array, odd_code: Array, negative: Array, mode: str) -> Array:
    """Tell which magnitudes, ``rest`` above one value and ``gap`` below the next, go to the next."""
    inexact: Array = rest > 0
    if mode == "rint":
        return cast(Array, (rest > gap) | ((rest == gap) & odd_code))
    if mode == "round":
        return cast(Array, rest >= gap)
    if mode == "odd":
        return inexact & ~odd_code
    if mode == "trunc":
        return np.zeros_like(inexact)
    return inexact & (negative if mode == "floor" else ~negative)


def _signed_codes(result: Array, values: Array, nan: Array, dst: DType) -> Array:
    negative = np.signbit(values)
    if not dst.has_sign:
        result[values < 0] = dst.nan_code or 0
    elif dst.has_negative_zero:
        result[negative] |= dst.sign_bit
    else:
        result[negative & (result != 0)] |= dst.sign_bit
    result[nan] = dst.nan_code or 0
    return result.astype(np.uint8)


# -- to integers -------------------------------------------------------------------------------------------


def float_to_int(values: Array, dst: DType, mode: str, saturate: bool) -> Array:
    """Round float32 or float64 values to an integer dtype's storage; float32 only for at most 16 bits."""
    if dst is BOOL:
        return cast(Array, values != 0)
    whole = round_integral(values, mode)
    if not saturate:
        return _wrap(whole, dst)
    if dst.bits == 64:
        return _clamp_64(whole, dst)
    whole = np.clip(whole, dst.min_value, dst.max_value)
    nan = whole != whole
    if nan.any():
        whole[nan] = 0
    return whole.astype(dst.storage)


def _clamp_64(whole: Array, dst: DType) -> Array:
    over = whole >= float(dst.max_value)  # 2**63 or 2**64: the first value that does not fit
    under = whole < float(dst.min_value)
    fits = ~(over | under | (whole != whole))
    result = np.where(fits, whole, 0.0).astype(dst.storage)
    result[over] = dst.max_value
    result[under] = dst.min_value
    return result


def _wrap(whole: Array, dst: DType) -> Array:
    """Keep the low bits of integral floats: NaN and -inf give 0, +inf gives all ones."""
    small = np.abs(whole) < 2.0**63
    if small.all():
        return wrap_int(whole.astype(np.int64), dst)
    exact = whole.astype(np.float64)
    finite = np.isfinite(exact)
    low = np.fmod(np.where(finite, np.abs(exact), 0.0), 2.0**64).astype(np.uint64)
    low = np.where(exact < 0, np.uint64(0) - low, low)
    low[exact == np.inf] = np.uint64(2**64 - 1)
    return wrap_int(low, dst)


def wrap_int(values: Array, dst: DType) -> Array:
    """Keep the low bits of integers."""
    return from_bits(values, dst) if dst.bits == 4 else values.astype(dst.storage)


def int_to_int(values: Array, src: DType, dst: DType, saturate: bool) -> Array:
    """Convert between integer dtypes (BOOL is 0 or 1; a BOOL destination is "not zero")."""
    if dst is BOOL:
        return cast(Array, values != 0)
    if not saturate:
        return wrap_int(values, dst)
    low, high = max(src.min_value, dst.min_value), min(src.max_value, dst.max_value)
    if (low, high) != (src.min_value, src.max_value):
        values = np.clip(values, low, high)
    return values.astype(dst.storage)


def odd_float64(values: Array) -> Array:
    """Return int64 or uint64 values as float64; from 2**53 on they are rounded to odd at 43 bits or more."""
    if values.dtype == np.int64:
        negative = values < 0
        magnitude = values.view(np.uint64)
        magnitude = np.where(negative, np.uint64(0) - magnitude, magnitude)
    else:
        negative, magnitude = None, values
    if magnitude.max(initial=0) < np.uint64(2**53):
        return values.astype(np.float64)
    sticky = (magnitude & np.uint64(0x7FF)) != 0
    odd = (magnitude & np.uint64(2**64 - 0x800)) | (sticky.astype(np.uint64) << np.uint64(11))
    result = np.where(magnitude < np.uint64(2**53), magnitude, odd).astype(np.float64)
    return result if negative is None else np.where(negative, -result, result)
