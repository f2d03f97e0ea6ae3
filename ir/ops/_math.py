"""NumPy helpers for meanings: every result is the exact one rounded once into the tile's dtype."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from ..convert import decode, encode
from ..dtypes import FP16, FP32, DType
from ..literals import wrapped

Arr = np.Array


def through_double(fn: Callable[[Arr], Arr], x: Arr, dtype: DType) -> Arr:
    """Apply a real function in double precision and round once to ``dtype``.

    Double rounding is possible only where the true value lies within 2^-53 of a tie of ``dtype``.
    """
    with np.errstate(all="ignore"):
        rounded: Arr = encode(fn(decode(x, dtype)), dtype, "rint", False)
    return rounded


def scalar_like(value: Any, dtype: DType) -> Any:
    """Return the scalar rounded (nearest even) or wrapped into the tile's storage dtype."""
    if dtype is FP32 or dtype is FP16:
        # NumPy rounds a double to these once, to nearest even, much faster than the general conversion.
        with np.errstate(all="ignore"):
            return dtype.storage.type(value)
    if dtype.is_float:
        return encode(np.asarray(value, dtype=np.float64), dtype, "rint", False)[()]
    return np.asarray(wrapped(int(value), dtype), dtype=dtype.storage)[()]


def maximum(a: Any, b: Any) -> Arr:
    """NaN if either is NaN, else the larger; +0 is larger than -0."""
    return _pick(a, b, np.greater, prefer_negative=False)


def minimum(a: Any, b: Any) -> Arr:
    """NaN if either is NaN, else the smaller; -0 is smaller than +0."""
    return _pick(a, b, np.less, prefer_negative=True)


def _pick(a: Any, b: Any, better: Any, prefer_negative: bool) -> Arr:
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.kind in "iub":
        return np.asarray(np.where(better(a, b), a, b))
    first_zero = np.signbit(a) == prefer_negative
    take_a = better(a, b) | np.isnan(a) | ((a == b) & first_zero)
    return np.asarray(np.where(take_a, a, b))


def divide(a: Any, b: Any) -> Arr:
    """Float division; integer division truncates toward zero and gives 0 for a zero divisor."""
    a, b = np.broadcast_arrays(a, b)
    if a.dtype.kind not in "iu":
        with np.errstate(all="ignore"):
            return np.asarray(a / b)
    safe = np.where(b == 0, 1, b)
    quotient = a // safe
    # NumPy floors; add one where signs differ and the division is inexact.
    fix = (a % safe != 0) & ((a < 0) != (safe < 0))
    return np.where(b == 0, 0, quotient + fix).astype(a.dtype)


def floor_mod(a: Any, b: Any, dtype: DType) -> Arr:
    """Remainder with the divisor's sign; 0 (integers) or NaN (floats) for a zero divisor."""
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return encode(np.mod(decode(a, dtype), decode(b, dtype)), dtype, "rint", False)
    a, b = np.broadcast_arrays(a, b)
    safe = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, a % safe).astype(a.dtype)


def trunc_mod(a: Any, b: Any, dtype: DType) -> Arr:
    """Remainder with the dividend's sign; 0 (integers) or NaN (floats) for a zero divisor."""
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return encode(np.fmod(decode(a, dtype), decode(b, dtype)), dtype, "rint", False)
    a, b = np.broadcast_arrays(a, b)
    safe = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, np.fmod(a, safe)).astype(a.dtype)


def shift_left(a: Any, n: Any, dtype: DType) -> Arr:
    """``a << n``; an amount of at least the width gives 0 (amounts are taken as unsigned)."""
    a, n = np.broadcast_arrays(a, np.asarray(n).astype(np.int64))
    over = (n < 0) | (n >= dtype.bits)
    return np.where(over, 0, a << np.where(over, 0, n).astype(a.dtype)).astype(a.dtype)


def shift_right(a: Any, n: Any, dtype: DType) -> Arr:
    """``a >> n``, arithmetic for signed dtypes; an amount of at least the width gives 0 or the sign."""
    a, n = np.broadcast_arrays(a, np.asarray(n).astype(np.int64))
    amount = np.where((n < 0) | (n >= dtype.bits), dtype.bits - 1, n).astype(a.dtype)
    shifted = a >> amount
    if not dtype.signed:
        shifted = np.where((n < 0) | (n >= dtype.bits), 0, shifted)
    return np.asarray(shifted, dtype=a.dtype)


def compare(a: Any, b: Any, how: int) -> Arr:
    """Comparison by code (EQ 0, NE 1, LT 2, LE 3, GT 4, GE 5); with a NaN only NE holds."""
    with np.errstate(all="ignore"):
        return np.asarray(getattr(np, _COMPARE[how])(a, b))


_COMPARE = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def ordered_sum(x: Arr, axis: int, dtype: DType) -> Arr:
    """Sum in index order, rounding once per addition in the tile's dtype (integers wrap)."""
    return _fold(x, axis, lambda a, b: a + b)


def ordered_product(x: Arr, axis: int, dtype: DType) -> Arr:
    """Product in index order, rounding once per multiplication in the tile's dtype (integers wrap)."""
    return _fold(x, axis, lambda a, b: a * b)


def _fold(x: Arr, axis: int, fn: Callable[[Arr, Arr], Arr]) -> Arr:
    parts = np.moveaxis(x, axis, 0)
    total = parts[0].copy()  # a single element is no view of its tile
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            total = fn(total, part)
    return np.expand_dims(total, axis)
