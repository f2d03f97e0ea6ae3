"""Which numbers belong to a value set: the question every claim of the forward analysis is tested with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .valueset import ValueSet


def contains(values: ValueSet, numbers: NDArray[Any]) -> NDArray[Any]:
    """Return a bool array: which numbers the set admits.

    ``numbers``: as :func:`~tilegg.ir.codes.decode` gives them (float64, int64 or uint64, any shape). A
    negative zero needs both the flag and a zero inside the interval.
    """
    if numbers.dtype.kind != "f":
        exact: NDArray[Any] = numbers.astype(object).reshape(-1)
        admitted = [_admits_integer(values, int(v)) for v in exact]
        return np.array(admitted, np.bool_).reshape(numbers.shape)
    finite = np.isfinite(numbers)
    plain = np.where(finite, numbers, 0.0)
    inside: NDArray[Any] = (plain >= _float_below(values.lo)) & (plain <= _float_above(values.hi))
    mantissa, exponent = np.frexp(plain)
    whole = np.abs(mantissa * 2.0**53).astype(np.int64)
    trailing = np.array([(int(w) & -int(w)).bit_length() - 1 for w in whole.reshape(-1)], np.int64)
    trailing = trailing.reshape(whole.shape)
    zero = whole == 0
    inside &= zero | (exponent - 53 + trailing >= values.grid)
    inside &= zero | (53 - trailing <= values.sig)
    inside &= ~(zero & np.signbit(plain)) | values.negative_zero
    inside = np.where(np.isnan(numbers), values.nan, inside)
    inside = np.where(np.isposinf(numbers), values.plus_inf, inside)
    return np.where(np.isneginf(numbers), values.minus_inf, inside)


def _admits_integer(values: ValueSet, number: int) -> bool:
    if not values.lo <= number <= values.hi:
        return False
    if number == 0:
        return True
    trailing = (number & -number).bit_length() - 1
    return trailing >= values.grid and abs(number).bit_length() - trailing <= values.sig


def _float_below(bound: int | float) -> float:
    """The largest float64 not above an exact bound, so that the comparison of doubles is exact."""
    near = float(bound)
    return near if near <= bound else float(np.nextafter(near, -np.inf))


def _float_above(bound: int | float) -> float:
    near = float(bound)
    return near if near >= bound else float(np.nextafter(near, np.inf))
