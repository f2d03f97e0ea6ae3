"""Exact conversion of element arrays between any two dtypes, in every round mode, saturating or not.

One rounding from the exact source value.  What happens where formats differ:

- float to integer, saturating: clamp, NaN gives 0. Otherwise the low bits of the exact rounded integer; NaN
  and -inf give 0, +inf gives all ones.
- integer to integer, saturating: clamp. Otherwise the low bits of the (sign-extended) value.
- to float, saturating: overflow and infinities give the largest finite value of that sign. Otherwise IEEE 754
  overflow by mode (nearest: infinity; trunc, odd: largest finite; floor, ceil: by sign), where a format
  without infinity gives NaN in its place, and one without NaN too (FP4) clamps.
- NaN stays NaN; FP4 gives +0 for it. HF8 has no -0. FP8E8M0 has no sign and no zero: negative values give
  NaN, zero and whatever lies below 2**-127 give 2**-127.
- to BOOL: "not zero" (true of NaN); from BOOL: 0 or 1.

The default is saturating for integer destinations and not for float ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from . import lazy_numpy as np
from .codes import (
    Array,
    Number,
    all_codes,
    all_values,
    checked,
    decode,
    floor_log2,
    from_bits,
    is_nan,
    ordinal,
    representable,
    same_bits,
    ulp_distance,
    widen,
)
from .diagnostics import error
from .dtypes import BF16, BOOL, FP16, INT64, UINT64, DType
from .exact import rounded
from .rounding import (
    ROUND_MODES,
    coded_table,
    effective,
    float32_to_bf16,
    float32_to_coded,
    float_to_int,
    int_to_int,
    odd_float64,
    parse_mode,
    to_binary,
)

__all__ = [
    "ROUND_MODES", "all_codes", "all_values", "convert", "decode", "encode", "encode_exact", "is_nan",
    "ordinal", "parse_mode", "representable", "same_bits", "ulp_distance",
]  # fmt: skip

Kernel = Callable[[Array], Array]
#: Elements handled at a time: the temporaries of one block stay in the second-level cache.
_BLOCK = 1 << 14


def convert(
    array: Array, src: DType, dst: DType, mode: str | int = "round", saturate: bool | None = None
) -> Array:
    """Convert a storage array of ``src``, of any shape, to a new storage array of ``dst``.

    Raises TG007 when the array is not of ``src.storage``, TG004 for an unknown mode, TG032 for a dtype
    without numerics.
    """
    return _apply(_kernel(src, dst, mode, saturate), checked(array, src), dst)


def encode(
    values: object, dtype: DType, mode: str | int = "round", saturate: bool | None = None
) -> Array:
    """Round exact values to a storage array of ``dtype``.

    ``values``: an array or nested sequence of floats, integers or booleans; int64, uint64 and float64
    are taken exactly, as are Python integers of any size and Fractions. Raises as :func:`convert` does, and
    TG006 for what is no number.
    """
    array = np.asarray(values)
    kind = array.dtype.kind
    if kind == "O":
        return encode_exact(array, dtype, mode, saturate)
    if array.dtype == BF16.storage or (kind == "f" and array.dtype.itemsize <= 8):
        return _apply(_from_float64(dtype, mode, saturate), array.astype(np.float64), dtype)
    if kind == "b":
        return convert(array, BOOL, dtype, mode, saturate)
    if kind == "u":
        return convert(array.astype(np.uint64), UINT64, dtype, mode, saturate)
    if kind == "i":
        return convert(array.astype(np.int64), INT64, dtype, mode, saturate)
    raise error("TG006", f"an array of {array.dtype} holds no numbers")


def encode_exact(
    values: Array, dtype: DType, mode: str | int = "round", saturate: bool | None = None
) -> Array:
    """Round an object array of Python ints, floats and Fractions to ``dtype``, one by one."""
    flat = values.reshape(-1).tolist()
    for value in flat:
        if not isinstance(value, int | float | Fraction):
            raise error("TG006", f"{str(value)[:40]!r} is no number")
    if dtype.is_float:
        return encode(np.array([_odd_float(v) for v in flat]).reshape(values.shape), dtype, mode, saturate)
    word = effective(parse_mode(mode), dtype)
    clamp = saturate is None or saturate
    whole = np.array([_bits_of_int(v, dtype, word, clamp) for v in flat], np.uint64)
    return from_bits(whole, dtype).reshape(values.shape)


def _apply(kernel: Kernel, array: Array, dst: DType) -> Array:
    flat = np.ascontiguousarray(array).reshape(-1)
    # Moving a signalling NaN sets the invalid flag, which says nothing here.
    with np.errstate(all="ignore"):
        if flat.size <= _BLOCK:
            return kernel(flat).reshape(array.shape)
        result = np.empty(flat.size, dst.storage)
        for start in range(0, flat.size, _BLOCK):
            result[start : start + _BLOCK] = kernel(flat[start : start + _BLOCK])
    return result.reshape(array.shape)


# -- the kernel of a pair ----------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def _kernel(src: DType, dst: DType, mode: str | int, saturate: bool | None) -> Kernel:
    """Choose how to convert flat arrays; the arguments are checked here, once per combination."""
    word, clamp = _settle(dst, mode, saturate)
    src.storage, dst.storage  # noqa: B018 - raises for dtypes without numerics
    direct = _direct(src, dst, word, clamp)
    if src is dst or (not src.is_float and src.bits <= 16 and not dst.is_float):
        return direct
    if src.bits <= 16 and src is not BOOL:
        return _by_table(src, dst, word, clamp, direct)
    return direct


def _settle(dst: DType, mode: str | int, saturate: bool | None) -> tuple[str, bool]:
    return effective(parse_mode(mode), dst), not dst.is_float if saturate is None else bool(saturate)


def _direct(src: DType, dst: DType, mode: str, saturate: bool) -> Kernel:
    if src is dst and not (src.is_float and saturate):
        return lambda array: array.copy()
    if not src.is_float:
        return _from_int(src, dst, mode, saturate)
    if not dst.is_float:
        wide = np.float32 if dst.bits <= 16 else np.float64
        return lambda array: float_to_int(widen(array, src).astype(wide, copy=False), dst, mode, saturate)
    return lambda array: _float32_to_float(widen(array, src), dst, mode, saturate)


def _from_int(src: DType, dst: DType, mode: str, saturate: bool) -> Kernel:
    if not dst.is_float:
        return lambda array: int_to_int(array, src, dst, saturate)
    if src.bits <= 16:
        return lambda array: _float32_to_float(array.astype(np.float32), dst, mode, saturate)
    if src.bits == 64:
        return lambda array: _float64_to_float(odd_float64(array), dst, mode, saturate, finite=True)
    return lambda array: _float64_to_float(array.astype(np.float64), dst, mode, saturate, finite=True)


def _float32_to_float(values: Array, dst: DType, mode: str, saturate: bool) -> Array:
    if dst.is_coded:
        return float32_to_coded(values, dst, mode, saturate)
    if dst is BF16:
        return float32_to_bf16(values, mode, saturate).view(dst.storage)
    if dst is FP16:
        return to_binary(values, dst, mode, saturate).view(dst.storage)
    # FP32: nothing to round. np.clip lets NaN through.
    return np.clip(values, dst.min_value, dst.max_value) if saturate else values.copy()


def _float64_to_float(values: Array, dst: DType, mode: str, saturate: bool, finite: bool = False) -> Array:
    if dst.is_coded:
        return coded_table(dst, mode, saturate).take(to_binary(values, BF16, "odd", False, finite))
    return to_binary(values, dst, mode, saturate, finite).view(dst.storage)


@lru_cache(maxsize=256)
def _from_float64(dst: DType, mode: str | int, saturate: bool | None) -> Kernel:
    word, clamp = _settle(dst, mode, saturate)
    if dst.is_float:
        return lambda array: _float64_to_float(array, dst, word, clamp)
    return lambda array: float_to_int(array, dst, word, clamp)


def _by_table(src: DType, dst: DType, mode: str, saturate: bool, direct: Kernel) -> Kernel:
    """Look results up once a source of at most 16 bits has been used enough to pay for the table."""
    word = np.dtype(f"u{src.storage.itemsize}")
    spent = 0

    def kernel(array: Array) -> Array:
        nonlocal spent
        if spent < 1 << 16:
            spent += array.size + 256
            return direct(array)
        return _table(src, dst, mode, saturate).take(array.view(word))

    return kernel


@lru_cache(maxsize=128)
def _table(src: DType, dst: DType, mode: str, saturate: bool) -> Array:
    codes = np.arange(1 << (8 * src.storage.itemsize), dtype=np.dtype(f"u{src.storage.itemsize}"))
    return _direct(src, dst, mode, saturate)(codes.view(src.storage))


# -- exact scalars -----------------------------------------------------------------------------------------


def _odd_float(value: Number) -> float:
    """Round an exact number to odd in float64, which a later rounding to fewer bits cannot tell from it."""
    if isinstance(value, float):
        return value
    exact = Fraction(value)
    if exact == 0:
        return 0.0
    unit = max(floor_log2(abs(exact)) - 52, -1074)
    steps = abs(exact) * (1 << -unit) if unit < 0 else abs(exact) / (1 << unit)
    whole = steps.numerator // steps.denominator
    whole |= steps.denominator != 1
    magnitude = math.ldexp(whole, unit) if unit <= 971 else math.nextafter(math.inf, 0.0)
    return -magnitude if exact < 0 else magnitude


def _bits_of_int(value: Number, dtype: DType, mode: str, clamp: bool) -> int:
    """The bit code of one number rounded to an integer dtype."""
    if isinstance(value, float) and not math.isfinite(value):
        code = float_to_int(np.array([value]), dtype, mode, clamp)
        return int(code.astype(np.int64 if dtype.signed else np.uint64)[0]) % (1 << 64)
    if dtype is BOOL:
        return int(value != 0)
    whole = rounded(*Fraction(value).as_integer_ratio(), mode)
    if clamp:
        whole = min(max(whole, int(dtype.min_value)), int(dtype.max_value))
    return whole % (1 << 64)
