"""Bit codes and value sets: what the elements of a storage array are worth, and how two of them compare.

Every float format here is a subset of float64, and the coded ones (at most eight bits) of float32, so
decoding is exact.  Tables are made from :meth:`DType.code_value`, once, on first use.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import cast

from . import lazy_numpy as np
from .diagnostics import error
from .dtypes import BF16, BOOL, UINT64, DType

Array = np.Array
#: An exact number: what constants and facts are made of.
Number = int | float | Fraction


@cache
def float32_table(dtype: DType) -> Array:
    """The float32 value of each of the 256 bytes of a coded dtype; bits above a four-bit code are ignored."""
    mask = (1 << dtype.bits) - 1
    return np.array([dtype.code_value(code & mask) for code in range(256)], np.float32)


def widen(array: Array, dtype: DType) -> Array:
    """Return the exact float32 values of a storage array of a float dtype, flat or not."""
    if dtype.is_coded:
        return float32_table(dtype)[array]
    if dtype is BF16:
        return (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float32, copy=False)


def decode(array: Array, dtype: DType) -> Array:
    """Return the exact values of a storage array: float64 for floats, uint64 for UINT64, else int64.

    BOOL decodes to 0 and 1. Raises TG007 when the array is not of ``dtype.storage``.
    """
    values = checked(array, dtype)
    if dtype.is_float:
        with np.errstate(invalid="ignore"):  # moving a signalling NaN sets the flag
            return widen(values, dtype).astype(np.float64)
    return values.astype(np.uint64 if dtype is UINT64 else np.int64)


def checked(array: Array, dtype: DType) -> Array:
    """Return ``array`` as an ndarray; TG007 when its NumPy dtype is not the dtype's storage."""
    values = np.asarray(array)
    if values.dtype != dtype.storage:
        raise error(
            "TG007",
            f"an array of {values.dtype} is no {dtype.name} storage",
            reason=f"{dtype.name} elements are held in {dtype.storage} arrays",
        )
    return values


# -- codes as integers -------------------------------------------------------------------------------------


def bits_of(array: Array, dtype: DType) -> Array:
    """Return the bit codes of a storage array as unsigned integers; the low four bits of four-bit types."""
    values = checked(array, dtype)
    codes = values.view(np.dtype(f"u{values.dtype.itemsize}"))
    return codes & np.uint8(15) if dtype.bits == 4 else codes


def from_bits(codes: Array, dtype: DType) -> Array:
    """Return the storage array of integer bit codes: the low bits, sign-extended for INT4."""
    width = dtype.storage.itemsize
    raw = codes.astype(np.dtype(f"u{width}"))
    if dtype is BOOL:
        return cast(Array, raw != 0)
    if dtype.bits == 4:
        raw &= np.uint8(15)
        if dtype.signed and dtype.is_int:
            raw = (raw ^ np.uint8(8)) - np.uint8(8)
    return raw.view(dtype.storage)


def all_codes(dtype: DType) -> Array:
    """Return the bit codes of a dtype of at most 16 bits, ascending, NaNs included. TG007 for wider ones."""
    if not dtype.is_numeric or dtype.bits > 16:
        raise error("TG007", f"{dtype.name} has too many values to list")
    return np.arange(1 << dtype.bits, dtype=np.uint8 if dtype.bits <= 8 else np.uint16)


def all_values(dtype: DType) -> Array:
    """Return the storage array of every element of a dtype of at most 16 bits, in code order."""
    return from_bits(all_codes(dtype), dtype)


# -- order -------------------------------------------------------------------------------------------------


@cache
def _code_ranks(dtype: DType) -> Array:
    """For a tapered format: position of each magnitude code in the order of values."""
    finite = [code for code in range(dtype.magnitude_mask + 1) if not math.isnan(dtype.code_value(code))]
    finite.sort(key=dtype.code_value)
    ranks = np.zeros(dtype.magnitude_mask + 1, np.int64)
    ranks[finite] = np.arange(len(finite))
    return ranks


@cache
def ranked_codes(dtype: DType) -> Array:
    """The magnitude codes of a coded dtype by ascending value, from zero to the largest finite value."""
    codes = [c for c in range(dtype.magnitude_mask + 1) if math.isfinite(dtype.code_value(c))]
    return np.array(sorted(codes, key=dtype.code_value), np.uint8)


def ordinal(array: Array, dtype: DType) -> Array:
    """Return int64 (uint64 for UINT64) positions on the number line: one step per representable value.

    Both zeros are 0; the value of a NaN's ordinal means nothing.
    """
    if not dtype.is_float:
        return decode(array, dtype)
    codes = bits_of(array, dtype).astype(np.int64)
    magnitude = codes & dtype.magnitude_mask
    if dtype.taper:
        magnitude = _code_ranks(dtype)[magnitude]
    return np.where(codes & dtype.sign_bit, -magnitude, magnitude) if dtype.has_sign else magnitude


def from_ordinal(positions: Array, dtype: DType) -> Array:
    """Return the storage array at the given positions, clamped to the range of finite values."""
    if not dtype.is_float:
        low, high = dtype.min_value, dtype.max_value
        return np.clip(positions, low, high).astype(dtype.storage)
    top = dtype.max_code if not dtype.taper else len(ranked_codes(dtype)) - 1
    magnitude = np.minimum(np.abs(positions), top)
    if dtype.taper:
        magnitude = ranked_codes(dtype)[magnitude].astype(np.int64)
    if not dtype.has_sign:
        return from_bits(np.clip(positions, 0, top), dtype)
    return from_bits(np.where(positions < 0, magnitude | dtype.sign_bit, magnitude), dtype)


def is_nan(array: Array, dtype: DType) -> Array:
    """Return a bool array: which elements are NaN."""
    if not dtype.has_nan:
        return np.zeros(np.shape(array), np.bool_)
    if dtype.is_coded:
        return np.isnan(float32_table(dtype))[array]
    codes = bits_of(array, dtype)
    word = codes.dtype.type
    return cast(Array, (codes & word(dtype.magnitude_mask)) > word(dtype.inf_code or 0))


def same_bits(a: Array, b: Array, dtype: DType) -> Array:
    """Return a bool array: which elements are equal bit for bit. Two NaNs are equal, -0 and +0 are not."""
    equal: Array = bits_of(a, dtype) == bits_of(b, dtype)
    if dtype.has_nan:
        equal |= is_nan(a, dtype) & is_nan(b, dtype)
    return equal


def ulp_distance(a: Array, b: Array, dtype: DType) -> Array:
    """Return a float64 array: how many representable values apart two arrays are (integers: their difference).

    0 for two NaNs and for zeros of either sign, infinity where just one is NaN. The largest finite value and
    infinity are one step apart. Distances above 2**53 are rounded.
    """
    first, second = ordinal(a, dtype), ordinal(b, dtype)
    # The difference of two 64-bit integers can need 65 bits: take it unsigned, larger minus smaller.
    low, high = np.minimum(first, second), np.maximum(first, second)
    steps = (high.astype(np.uint64) - low.astype(np.uint64)).astype(np.float64)
    if dtype.has_nan:
        nan_a, nan_b = is_nan(a, dtype), is_nan(b, dtype)
        steps = np.where(nan_a | nan_b, np.where(nan_a & nan_b, 0.0, np.inf), steps)
    return steps


# -- single values -----------------------------------------------------------------------------------------


def representable(value: Number, dtype: DType) -> bool:
    """Tell whether an exact number is a value of the dtype; the sign of a float zero counts."""
    if not dtype.is_numeric:
        return False
    if isinstance(value, float):
        if math.isnan(value):
            return dtype.has_nan
        if math.isinf(value):
            return dtype.has_inf
        if value == 0.0 and math.copysign(1.0, value) < 0 and not dtype.has_negative_zero:
            return False
    exact = Fraction(value)
    if not dtype.min_value <= exact <= dtype.max_value:
        return False
    if not dtype.is_float:
        return exact.denominator == 1
    return _on_grid(exact, dtype)


def _on_grid(exact: Fraction, dtype: DType) -> bool:
    """Tell whether a value within the range of a float dtype is one of its values."""
    if exact == 0:
        return dtype.has_zero
    if exact.denominator & (exact.denominator - 1):
        return False
    magnitude = abs(exact)
    exponent = floor_log2(magnitude)
    precision = dtype.precision_at(exponent)
    scale = precision - 1 - exponent
    scaled = magnitude * (1 << scale) if scale >= 0 else magnitude / (1 << -scale)
    return precision > 0 and scaled.denominator == 1


def floor_log2(magnitude: Fraction) -> int:
    """Return the exponent e with 2**e <= magnitude < 2**(e+1), for magnitude > 0."""
    estimate = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    power = Fraction(1 << estimate) if estimate >= 0 else Fraction(1, 1 << -estimate)
    return estimate if power <= magnitude else estimate - 1
