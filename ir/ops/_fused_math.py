"""Fused multiply-add: the exact sum of a product and a number, rounded once."""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from ..convert import decode, encode
from ..dtypes import DType

Arr = np.Array


def fused_multiply_add(a: Any, b: Any, c: Any, dtype: DType) -> Arr:
    """Return ``a * b + c`` with one rounding to nearest even, as elements of ``dtype``.

    ``a``, ``b`` and ``c`` are decoded values (float64) of dtypes with at most 24 significand bits, so that the
    product is exact in double precision. The sum is rounded to odd there, and double precision has more than
    twice 24 + 2 bits of ``dtype``'s significand, so that the second rounding sees every tie as it is.
    """
    with np.errstate(all="ignore"):
        rounded: Arr = encode(sum_to_odd(np.asarray(a * b), np.asarray(c)), dtype, "rint", False)
    return rounded


def sum_to_odd(p: Arr, c: Arr) -> Arr:
    """Return ``p + c`` in double precision, rounded to odd."""
    p, c = np.broadcast_arrays(p, c)
    total = p + c
    shadow = total - p
    # The error of the sum, exactly.
    error = (p - (total - shadow)) + (c - shadow)
    inexact = np.isfinite(total) & (error != 0)
    even = (total.view(np.int64) & 1) == 0
    away = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(inexact & even, away, total)


def values(x: Any, dtype: DType) -> Arr:
    """Return an array of elements as float64 values."""
    found: Arr = decode(np.asarray(x), dtype)
    return found


def power(base: Any, exponent: Any, dtype: DType) -> Arr:
    """Return ``base ** exponent``; integers wrap, and a negative integer exponent gives the truncated quotient."""
    if dtype.is_float:
        with np.errstate(all="ignore"):
            result: Arr = encode(np.power(values(base, dtype), values(exponent, dtype)), dtype, "rint", False)
        return result
    base, exponent = np.broadcast_arrays(base, exponent)
    wide = base.astype(np.int64)
    magnitude = np.where(exponent < 0, 0, exponent).astype(np.int64)
    total = np.ones_like(wide)
    with np.errstate(all="ignore"):
        # Square and multiply: wrapping in 64 bits wraps in every narrower width too.
        for bit in range(dtype.bits):
            total = np.where((magnitude >> bit) & 1, total * wide, total)
            wide = wide * wide
    base64 = base.astype(np.int64)
    one = np.where(base64 == 1, 1, np.where(base64 == -1, np.where(exponent % 2 == 0, 1, -1), 0))
    return np.where(exponent < 0, one, total).astype(base.dtype)
