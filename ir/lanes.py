"""Values of many threads at once, and the arithmetic scalar meanings share with them.

A scalar is a Python number in an ordinary function; in a SIMT body it is an array with one element per thread, the
*carrier*: float64 for floats, int64 for integers (uint64 for UINT64), bool for BOOL; a packed pair has one more
axis of length 2. Meanings of ``scalar.*`` take either. Results are put into their dtype by :func:`settle`.
"""

from __future__ import annotations

import math
from typing import Any

from . import lazy_numpy as np
from .convert import convert, decode, encode
from .dtypes import BOOL, DTYPES, FP32, INDEX, INT64, UINT64, DType

Arr = np.Array


def is_lanes(*values: Any) -> bool:
    """Tell whether any of the operands holds one element per thread."""
    for v in values:  # noqa: SIM110 (a generator expression costs three times as much here)
        if isinstance(v, np.ndarray):
            return True
    return False


def is_whole(value: Any) -> bool:
    """Tell whether an operand holds integers (or truth values)."""
    return value.dtype.kind in "iub" if isinstance(value, np.ndarray) else isinstance(value, int)


def element(dtype: DType) -> DType:
    """Return the dtype of the elements: of a packed pair its element, else the dtype itself."""
    return DTYPES[dtype.packed_of] if dtype.packed_of else dtype


def carrier(values: Any, dtype: DType) -> Arr:
    """Return numbers as a carrier array of the dtype's kind; integers keep their low 64 bits."""
    array = np.asarray(values)
    own = element(dtype)
    if own is BOOL:
        return array.astype(np.bool_)
    if own.is_float:
        return array.astype(np.float64)
    return array.astype(np.uint64 if own is UINT64 else np.int64)


def settle(values: Any, dtype: DType) -> Arr:
    """Return the carrier array of exact results: integers wrap, floats round to nearest even."""
    own, array = element(dtype), np.asarray(values)
    if own is BOOL:
        return array.astype(np.bool_)
    if own.is_float:
        if own is FP32:
            return array.astype(np.float32).astype(np.float64)
        rounded: Arr = decode(encode(array.astype(np.float64), own, "rint", False), own)
        return rounded
    if own is UINT64:
        return array.astype(np.uint64)
    wide = array.astype(np.int64)
    if own in (INT64, INDEX):
        return wide
    mask, half = (1 << own.bits) - 1, (1 << (own.bits - 1)) if own.signed else 0
    return np.asarray(((wide + half) & mask) - half)


def load(storage: Arr, dtype: DType) -> Arr:
    """Return the carrier of a storage array."""
    return carrier(decode(storage, element(dtype)), dtype)


def number(stored: Arr, dtype: DType) -> Any:
    """Return the one element of a storage array, of any rank, as a Python number; BOOL gives a bool."""
    if element(dtype).is_coded:
        stored = load(stored, dtype)
    return stored.item()


def store(values: Any, dtype: DType) -> Arr:
    """Return the storage array of carriers that are values of the dtype."""
    own = element(dtype)
    array = carrier(values, dtype)
    if own is BOOL:
        return array
    return encode(array, own, "rint", False) if own.is_float else array.astype(own.storage)


def convert_lanes(values: Any, src: DType, dst: DType, mode: str, saturate: bool | None) -> Any:
    """Convert carriers (or one Python number) with one rounding; see :func:`~tilegg.ir.convert.convert`."""
    a, b = element(src), element(dst)
    if is_lanes(values):
        return load(convert(store(values, src), a, b, mode, saturate), dst)
    if values.__class__ is int and _holds_integer(a, values) and _holds_integer(b, values):
        return values
    one = np.asarray(values).astype(a.storage) if not a.is_coded else store(values, src)
    return decode(convert(one.reshape(1), a, b, mode, saturate), b)[0].item()


def _holds_integer(dtype: DType, value: int) -> bool:
    if not dtype.is_int or dtype.bits < 8:
        return False
    half = 1 << (dtype.bits - 1)
    return -half <= value < half if dtype.signed else 0 <= value < 2 * half


# -- integers ------------------------------------------------------------------------------------------------


def trunc_div(a: Any, b: Any) -> Any:
    """Integer quotient toward zero; 0 for a zero divisor."""
    if not is_lanes(a, b):
        if b == 0:
            return 0
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    zero, divisor = b == 0, np.where(b == 0, 1, b)
    quotient = np.floor_divide(a, divisor)
    rest = a - quotient * divisor
    up = (rest != 0) & ((a < 0) != (divisor < 0))
    return np.where(zero, 0, quotient + up.astype(np.asarray(quotient).dtype))


def trunc_rem(a: Any, b: Any) -> Any:
    """Remainder with the sign of the dividend; 0 for a zero divisor."""
    rest = a - trunc_div(a, b) * b
    return np.where(np.asarray(b) == 0, 0, rest) if is_lanes(a, b) else rest if b else 0


def floor_div(a: Any, b: Any) -> Any:
    """Floor of the quotient; 0 for a zero divisor."""
    if not is_lanes(a, b):
        return a // b if b else 0
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))


def floor_mod(a: Any, b: Any) -> Any:
    """Remainder with the sign of the divisor; 0 for a zero divisor."""
    if not is_lanes(a, b):
        return a % b if b else 0
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))


def shift_left(a: Any, n: Any) -> Any:
    """a << n; amounts of 64 and more, and negative ones, give 0."""
    if not is_lanes(a, n):
        return a << n if 0 <= n < 64 else 0
    a, n = np.broadcast_arrays(a, n)
    inside = (n >= 0) & (n < 64)
    return np.where(inside, np.left_shift(a, np.where(inside, n, 0).astype(a.dtype)), 0)


def shift_right(a: Any, n: Any) -> Any:
    """a >> n, arithmetic (logical for unsigned values, which are not negative); negative amounts give 0."""
    if not is_lanes(a, n):
        return a >> min(n, 64) if n >= 0 else 0
    a, n = np.broadcast_arrays(a, n)
    shifted = np.right_shift(a, np.clip(n, 0, 63).astype(a.dtype))
    gone = (n < 0) | (n > 63) if a.dtype.kind == "u" else n < 0
    return np.where(gone, 0, shifted)


def high_product(a: Any, b: Any, bits: int, signed: bool) -> Any:
    """Return the upper ``bits`` bits of the double-width product."""
    if not is_lanes(a, b):
        return (int(a) * int(b)) >> bits
    if bits < 64:
        return (a * b) >> bits if signed else (a.astype(np.uint64) * b.astype(np.uint64)) >> np.uint64(bits)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    low, s = np.uint64(0xFFFFFFFF), np.uint64(32)
    x0, x1, y0, y1 = x & low, x >> s, y & low, y >> s
    middle = x1 * y0 + ((x0 * y0) >> s)
    side = x0 * y1 + (middle & low)
    high = x1 * y1 + (middle >> s) + (side >> s)
    if not signed:
        return high
    # Two's complement: each negative factor took 2**64 times the other one too much.
    return (high - np.where(a < 0, y, 0).astype(np.uint64) - np.where(b < 0, x, 0).astype(np.uint64)).astype(np.int64)


def permute_bytes(a: Any, b: Any, selector: Any) -> Any:
    """Return a word of four bytes of ``b:a``; a selector nibble's bit 3 replicates the byte's sign instead."""
    x, y, s = (np.asarray(v).astype(np.int64).astype(np.uint64) & np.uint64(0xFFFFFFFF) for v in (a, b, selector))
    pair = x | (y << np.uint64(32))
    out = np.zeros(np.broadcast(x, y, s).shape, np.uint64)
    for i in range(4):
        nibble = (s >> np.uint64(4 * i)) & np.uint64(15)
        byte = (pair >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        sign = np.where(byte >> np.uint64(7), np.uint64(255), np.uint64(0))
        out = out | (np.where(nibble >> np.uint64(3), sign, byte) << np.uint64(8 * i))
    return out.astype(np.int64) if is_lanes(a, b, selector) else int(out)


# -- comparison and choice -----------------------------------------------------------------------------------


def truth(value: Any) -> Any:
    """Return a comparison's result as a Python bool, or as lanes."""
    return value if isinstance(value, np.ndarray) else bool(value)


def choose(condition: Any, a: Any, b: Any) -> Any:
    """Return ``a`` where the condition holds, else ``b``."""
    if not is_lanes(condition, a, b):
        return a if condition else b
    condition = np.asarray(condition)
    if np.ndim(a) > condition.ndim:
        condition = condition[..., None]
    return np.where(condition, a, b)


def larger(a: Any, b: Any) -> Any:
    """The larger number: of a NaN and a number the number, of zeros +0 (a choice LLVM's maxnum leaves open)."""
    return _extremum(a, b, prefer_negative=False)


def smaller(a: Any, b: Any) -> Any:
    """The smaller number: of a NaN and a number the number, of zeros -0 (a choice LLVM's minnum leaves open)."""
    return _extremum(a, b, prefer_negative=True)


def _extremum(a: Any, b: Any, prefer_negative: bool) -> Any:
    if not is_lanes(a, b):
        return _one_extremum(a, b, prefer_negative)
    a, b = np.broadcast_arrays(a, b)
    better = a < b if prefer_negative else a > b
    if a.dtype.kind == "f":
        better = better | np.isnan(b) | ((a == b) & (np.signbit(a) == prefer_negative))
    return np.where(better, a, b)


def _one_extremum(a: Any, b: Any, prefer_negative: bool) -> Any:
    if a != a:
        return b
    if b != b:
        return a
    if a == b == 0 and isinstance(a, float):
        return a if (math.copysign(1.0, a) < 0) == prefer_negative else b
    return min(a, b) if prefer_negative else max(a, b)
