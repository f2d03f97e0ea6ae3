"""How often, and how far, a chain of conversions differs from one direct conversion.

Sources whose values can be listed (at most 16 bits, or wider ones narrowed by facts) are measured
exhaustively. Wider ones are sampled with a fixed seed, 200,000 values each, and 2,000,000 where a chain is
known to be inexact but fewer than ten of the 200,000 differ:

- integers: uniform over the range of the arriving values, and over the part that the destination covers;
- floats: bit patterns uniform over the part of the arriving range that the destination covers (all of it for
  conversions that keep the low bits), and normal with mean 0 and a standard deviation of a third of the
  destination's largest value.

The distribution with the higher rate is reported and named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from ..ir.codes import Array, is_nan, ordinal
from ..ir.convert import encode, same_bits, ulp_distance
from ..ir.dtypes import DType
from ..ir.valueset import ValueSet
from .paths_proof import Chain, Conversion, run
from .paths_values import Line, listing, members

SAMPLES = 200_000
MORE_SAMPLES = 2_000_000
_FEW = 10
_SEED = 20260101


@dataclass(frozen=True)
class Measured:
    """The share of source values whose results differ, and the largest distance in codes of the destination.

    Where one of two results is NaN (an overflow in a format without infinity), it counts as the code after
    the largest finite one.
    """

    rate: float
    max_ulp: int
    samples: int
    exhaustive: bool
    distribution: str

    @property
    def differing(self) -> int:
        """How many of the samples differ."""
        return round(self.rate * self.samples)


@lru_cache(maxsize=4096)
def measure(request: Conversion, chain: Chain, values: ValueSet, proved: bool = False) -> Measured:
    """Compare a chain with its request on the values of a set; ``proved`` saves the larger sample."""
    listed = listing(request.src, values)
    if listed is not None:
        return _compare(request, chain, listed, True, "every value")
    found = _sampled(request, chain, values, SAMPLES)
    if found.differing < _FEW and not proved:
        found = _sampled(request, chain, values, MORE_SAMPLES)
    return found


def _sampled(request: Conversion, chain: Chain, values: ValueSet, count: int) -> Measured:
    measured = [
        _compare(request, chain, array, False, name) for name, array in samples(request, values, count)
    ]
    return max(measured, key=lambda m: (m.rate, m.max_ulp))


def _compare(
    request: Conversion, chain: Chain, array: Array, exhaustive: bool, distribution: str
) -> Measured:
    if array.size == 0 or not chain:
        return Measured(0.0, 0, int(array.size), exhaustive, distribution)
    result, wanted = run(chain, array), request.apply(array)
    differ = ~same_bits(result, wanted, request.dst)
    count = int(np.count_nonzero(differ))
    far = _distance(result[differ], wanted[differ], request.dst)
    return Measured(count / array.size, far, int(array.size), exhaustive, distribution)


def furthest(request: Conversion, chain: Chain, array: Array) -> int:
    """Return the largest distance between a chain and its request on a storage array, in codes."""
    return _distance(run(chain, array), request.apply(array), request.dst)


def _distance(a: Array, b: Array, dst: DType) -> int:
    """The largest distance in codes."""
    if a.size == 0:
        return 0
    steps = ulp_distance(a, b, dst)
    if dst.has_nan:
        lone = np.isinf(steps)
        number = np.where(is_nan(a, dst), b, a)
        beyond = int(ordinal(encode(np.array([dst.max_value]), dst, "rint"), dst)[0]) + 1
        steps = np.where(lone, beyond - np.abs(ordinal(number, dst)), steps)
    return int(steps.max())


@lru_cache(maxsize=4)
def samples(request: Conversion, values: ValueSet, count: int = SAMPLES) -> tuple[tuple[str, Array], ...]:
    """Return named storage arrays of up to ``count`` source values that belong to the set."""
    src, dst = request.src, request.dst
    line = Line.of(src, values)
    if line is None:
        return (("none", np.zeros(0, src.storage)),)
    generator = np.random.default_rng(_SEED)
    part = None
    if dst.is_float or request.saturate:
        inner = replace(values, lo=max(values.lo, dst.min_value), hi=min(values.hi, dst.max_value))
        part = Line.of(src, inner) if inner.lo <= inner.hi else None
    covered = part if part is not None and part.first <= part.last else line
    if not src.is_float:
        every = ("uniform over the range", _uniform(line, generator, values, count))
        inside = ("uniform over the destination's range", _uniform(covered, generator, values, count))
        return (every,) if covered == line else (every, inside)
    sigma = float(dst.max_value) / 3
    drawn = np.clip(generator.standard_normal(count) * sigma, float(values.lo), float(values.hi))
    normal = line.at(line.below(drawn)) if line.grid is not None else encode(drawn, src, "rint")
    return (
        ("bit patterns uniform over the range", _uniform(covered, generator, values, count)),
        (f"normal, sigma {sigma:g}", normal[members(normal, src, values)]),
    )


def _uniform(line: Line, generator: np.random.Generator, values: ValueSet, count: int) -> Array:
    array = line.at(generator.integers(line.first, line.last, count, np.int64, endpoint=True))
    return array[members(array, line.src, values)]
