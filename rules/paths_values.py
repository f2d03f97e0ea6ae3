"""Source values for proofs and measurements: membership in a value set, listings, order, hostile values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..ir import lazy_numpy as np
from ..ir import valueset
from ..ir.codes import Array, from_ordinal
from ..ir.convert import all_values, convert, decode, encode, ordinal
from ..ir.dtypes import BF16, BOOL, FP4, FP8E4M3FN, FP8E5M2, FP16, INT8, INT16, UINT8, UINT16, DType
from ..ir.valueset import ValueSet

#: Dtypes whose values can be listed, the cheapest first.
_LISTABLE = (FP4, INT8, UINT8, FP8E4M3FN, FP8E5M2, INT16, UINT16, BF16, FP16)


def members(array: Array, src: DType, values: ValueSet) -> Array:
    """Return a bool array: which elements of a storage array of ``src`` belong to the set."""
    numbers = decode(array, src)
    if not src.is_float:
        inside = (numbers >= values.lo) & (numbers <= values.hi)
        if values.grid > 0:
            inside &= (numbers & ((1 << min(values.grid, 62)) - 1)) == 0
        return inside & (_significand_bits(numbers.astype(np.float64)) <= values.sig)
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(numbers)
        scaled = np.where(finite, numbers, 0.0) * 2.0 ** -max(values.grid, -1000)
        inside = finite & (numbers >= values.lo) & (numbers <= values.hi) & (np.trunc(scaled) == scaled)
    inside &= _significand_bits(np.where(finite, numbers, 0.0)) <= values.sig
    zero = numbers == 0
    inside = np.where(zero & np.signbit(numbers), values.negative_zero, inside)
    inside = np.where(np.isposinf(numbers), values.plus_inf, inside)
    inside = np.where(np.isneginf(numbers), values.minus_inf, inside)
    return np.where(np.isnan(numbers), values.nan, inside)


def _significand_bits(numbers: Array) -> Array:
    fraction = np.frexp(numbers)[0] * 2.0**53
    whole = np.abs(fraction).astype(np.int64)
    lowest = whole & -whole
    return np.where(whole == 0, 0, 54 - np.frexp(lowest.astype(np.float64))[1])


@lru_cache(maxsize=16)
def listing(src: DType, values: ValueSet) -> Array | None:
    """Return the storage array of every source value in the set, or None where there are too many."""
    if src.bits <= 16:
        every = all_values(src)
        return every[members(every, src, values)]
    for carrier in _LISTABLE:
        if valueset.representable(values, carrier):
            every = all_values(carrier)
            return convert(every[members(every, carrier, values)], carrier, src, "rint")
    return None


def specials(src: DType, values: ValueSet) -> Array:
    """Return the storage array of the set's NaN, infinities and -0."""
    if not src.is_float or not values.specials:
        return np.zeros(0, src.storage)
    return encode(np.array(values.specials), src, "rint")


@dataclass(frozen=True)
class Line:
    """Source values in ascending order: the value at position i is the i-th source value, or ``i * 2**grid``.

    Positions run from ``first`` to ``last``, both included; -0, infinities and NaN have none.
    """

    src: DType
    grid: int | None
    first: int
    last: int

    @staticmethod
    def of(src: DType, values: ValueSet) -> Line | None:
        """Return the line of a set, or of the least interval around it; None for types without order."""
        if src.name == "UINT64" or src is BOOL or (src.is_float and not src.has_sign):
            return None
        lo, hi = (max(min(x, src.max_value), src.min_value) for x in (values.lo, values.hi))
        on_grid = values.bits <= (src.significand_bits if src.is_float else 63)
        if on_grid and values.grid > (src.quantum_exponent if src.is_float else 0):
            first, last = _over_grid(lo, values.grid, True), _over_grid(hi, values.grid, False)
            if max(-first, last) < 1 << 52:
                return Line(src, values.grid, first, last)
        ends = np.array([lo, hi], object)
        low, high = encode(ends[:1], src, "ceil"), encode(ends[1:], src, "floor")
        return Line(src, None, int(ordinal(low, src)[0]), int(ordinal(high, src)[0]))

    def complete(self, values: ValueSet) -> bool:
        """Tell whether every value of the line belongs to the set the line was made for."""
        if self.grid is not None:
            return values.sig >= max(-self.first, self.last).bit_length()
        if self.src.is_float:
            return values.grid <= self.src.quantum_exponent and values.sig >= self.src.significand_bits
        return values.grid <= 0 and values.sig >= self.src.bits

    def at(self, positions: Array) -> Array:
        """Return the storage array of the values at int64 positions."""
        if self.grid is None:
            return from_ordinal(positions, self.src)
        if self.src.is_float:
            return encode(np.ldexp(positions.astype(np.float64), self.grid), self.src, "rint")
        return (positions << self.grid).astype(self.src.storage)

    def below(self, numbers: Array) -> Array:
        """Return the positions of the largest values not above the float64 ``numbers``, kept in the line."""
        if self.grid is not None:
            numbers = np.ldexp(numbers, -self.grid)
        elif self.src.is_float:
            found = ordinal(encode(numbers, self.src, "floor"), self.src)
            return np.clip(found, self.first, self.last)
        # 2**63 is a float64, the largest position need not be: clip before the conversion and after it.
        inside = np.clip(np.floor(numbers), -(2.0**63), 2.0**63 - 1024)
        return np.clip(inside.astype(np.int64), self.first, self.last)


def _over_grid(x: int | float, grid: int, up: bool) -> int:
    top, bottom = x.as_integer_ratio()
    top, bottom = (top << -grid, bottom) if grid < 0 else (top, bottom << grid)
    return -(-top // bottom) if up else top // bottom


def hostile(src: DType, values: ValueSet) -> Array:
    """Return a storage array of a set's specials, ends, neighbours of powers of two and random values."""
    line = Line.of(src, values)
    if line is None or line.first > line.last:
        return specials(src, values)
    powers = np.ldexp(1.0, np.arange(src.quantum_exponent if src.is_float else 0, 64))
    signed = line.below(np.concatenate([-powers, np.zeros(1), powers]))
    near = np.concatenate([np.maximum(signed, min(line.first, 2**62) + 2) - 2 + i for i in range(5)])
    generator = np.random.default_rng(20260101)
    chance = generator.integers(line.first, line.last, 4096, np.int64, endpoint=True)
    ends = np.array([line.first, line.last], np.int64)
    every = np.clip(np.concatenate([near, chance, ends]), line.first, line.last)
    array = np.concatenate([line.at(every), specials(src, values)])
    return array[members(array, src, values)]


def nearest(array: Array, src: DType) -> int | float:
    """Return the least striking of some source values: the one nearest to zero, positive if possible."""
    numbers = decode(array, src)
    known = numbers[numbers == numbers]
    if not known.size:
        return float("nan")
    # The largest uint64 has no int64 and the least int64 no magnitude: compare as floats, then exactly.
    near = np.abs(known.astype(np.float64))
    least: list[Any] = known[near == near.min()].tolist()
    return min(least[:64], key=lambda v: (abs(v), v < 0))  # type: ignore[no-any-return]
