"""How often, and how far, a chain of conversions differs from one direct conversion.

Sources whose values can be listed (at most 16 bits, or wider ones narrowed by facts) are run whole. Wider ones:

- *Counted*: where both ways are monotone step functions (see ``paths_proof``) every place where either steps is
  found by halving; between two such places nothing changes, so every source value is counted without being run.
  Both the range of the arriving values and the part that the destination covers are counted, of floats all
  bit patterns alike, infinities and NaN once.
- *Sampled*, with a fixed seed: floats also by 200,000 values from a normal distribution with mean 0 and a third
  of the destination's largest value as standard deviation. Where counting is impossible (conversions that keep
  the low bits, more than 2**17 steps) uniform samples of 200,000 replace it, 1,000,000 if hardly any differ.

The distribution with the higher rate is reported and named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ..ir import lazy_numpy as np
from ..ir.codes import Array, is_nan, ordinal
from ..ir.convert import encode, same_bits, ulp_distance
from ..ir.dtypes import DType
from ..ir.valueset import ValueSet
from .paths_chain import Chain, Conversion, ordered, run
from .paths_proof import order_keys, prepare
from .paths_values import Line, listing, members, specials

SAMPLES = 200_000
MORE_SAMPLES = 1_000_000
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

    def __str__(self) -> str:
        return in_words(self.rate, self.max_ulp, self.samples, self.exhaustive)


def in_words(rate: float, max_ulp: int, samples: int, exhaustive: bool) -> str:
    """Return a measurement as ``60 of 65,536 values differ, by up to 1 ulp``, large numbers as a rate."""
    what = "values" if exhaustive else "samples"
    if rate == 0:
        return f"0 of {samples:,} {what} differ" + ("" if exhaustive else ", others do")
    few = samples <= SAMPLES
    share = f"{round(rate * samples):,} of {samples:,} {what}" if few else f"{rate:.2g} of all {what}"
    return f"{share} differ, by up to {max_ulp} ulp"


@lru_cache(maxsize=4096)
def measure(request: Conversion, chain: Chain, values: ValueSet, proved: bool = False) -> Measured:
    """Compare a chain with its request on the values of a set; nothing is run for a chain ``proved`` exact."""
    if proved:
        return Measured(0.0, 0, _how_many(request.src, values), True, "proved for every value")
    listed = listing(request.src, values)
    if listed is not None:
        return _compare(request, chain, listed, True, "every value")
    counted = _counted(request, chain, values)
    if counted and not request.src.is_float:
        return _worst(counted)
    found = _sampled(request, chain, values, SAMPLES, normal=bool(counted))
    if not counted and _worst(found).differing < _FEW:
        found = _sampled(request, chain, values, MORE_SAMPLES, normal=False)
    return _worst([*counted, *found])


def _worst(measured: list[Measured]) -> Measured:
    return max(measured, key=lambda m: (m.rate, m.max_ulp))


def _how_many(src: DType, values: ValueSet) -> int:
    listed = listing(src, values)
    if listed is not None:
        return int(listed.size)
    line = Line.of(src, values)
    special = int(specials(src, values).size)
    return special + (max(0, line.last - line.first + 1) if line is not None else 0)


def _sampled(request: Conversion, chain: Chain, values: ValueSet, count: int, normal: bool) -> list[Measured]:
    named = samples(request, values, count)
    if normal:
        named = named[-1:]
    return [_compare(request, chain, array, False, name) for name, array in named]


# -- counting ----------------------------------------------------------------------------------------------


def _counted(request: Conversion, chain: Chain, values: ValueSet) -> list[Measured]:
    """Count over the whole range and over what the destination covers; empty where that is impossible."""
    if not (request.monotone and ordered(chain)):
        return []
    inner = covered(request, values)
    ranges = [("every value", values)]
    if inner is not None:
        ranges.append(("every value in the destination's range", inner))
    found = [_count(request, chain, part, name) for name, part in ranges]
    return [m for m in found if m is not None]


def covered(request: Conversion, values: ValueSet) -> ValueSet | None:
    """Return the finite part of a set that the destination covers; None where that is all or nothing of it."""
    dst = request.dst
    lo, hi = max(values.lo, dst.min_value), min(values.hi, dst.max_value)
    if lo > hi or (lo, hi) == (values.lo, values.hi):
        return None
    return replace(values, lo=lo, hi=hi, nan=False, inf=False, negative_zero=False)


def _count(request: Conversion, chain: Chain, values: ValueSet, name: str) -> Measured | None:
    prepared = prepare(request, values)
    if prepared is None or not prepared.line.complete(values):
        return None
    line, places = prepared.line, prepared.places
    wanted, got = prepared.keys, order_keys(run(chain, prepared.array), request.dst, places < 0)
    extra = specials(request.src, values)
    differing = int(wanted[-1] != got[-1]) + int(_differ(request, chain, extra).sum())
    apart = [_apart(wanted[-1:], got[-1:], request.dst)]
    low, high, want, have = places[:-1], places[1:], (wanted[:-1], wanted[1:]), (got[:-1], got[1:])
    while low.size:
        flat = ((want[0] == want[1]) & (have[0] == have[1])) | (low + 1 >= high)
        wrong = flat & (want[0] != have[0])
        # Python integers: the widths of all intervals together can exceed an int64.
        differing += sum((high[wrong].astype(object) - low[wrong].astype(object)).tolist())
        apart.append(_apart(want[0][wrong], have[0][wrong], request.dst))
        low, high, *keys = (x[~flat] for x in (low, high, *want, *have))
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        array = line.at(middle)
        at = [order_keys(f(array), request.dst, middle < 0) for f in (request.apply, lambda a: run(chain, a))]
        want = (np.concatenate([keys[0], at[0]]), np.concatenate([at[0], keys[1]]))
        have = (np.concatenate([keys[2], at[1]]), np.concatenate([at[1], keys[3]]))
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    total = line.last - line.first + 1 + extra.size
    return Measured(differing / total, max(apart), total, True, name)


def _apart(a: Array, b: Array, dst: DType) -> int:
    """The largest distance between results given by their keys, in codes."""
    if a.size == 0:
        return 0
    if not dst.is_float:
        return int(np.abs(a.astype(object) - b.astype(object)).max())
    beyond = 2 * (_last_ordinal(dst) + 1)
    return int(np.abs(np.clip(a, -beyond, beyond) - np.clip(b, -beyond, beyond)).max()) // 2


def _last_ordinal(dst: DType) -> int:
    return int(ordinal(encode(np.array([dst.max_value]), dst, "rint"), dst)[0])


# -- running -----------------------------------------------------------------------------------------------


def _compare(
    request: Conversion, chain: Chain, array: Array, exhaustive: bool, distribution: str
) -> Measured:
    if array.size == 0 or not chain:
        return Measured(0.0, 0, int(array.size), exhaustive, distribution)
    differ = _differ(request, chain, array)
    far = furthest(request, chain, array[differ])
    return Measured(int(differ.sum()) / array.size, far, int(array.size), exhaustive, distribution)


def _differ(request: Conversion, chain: Chain, array: Array) -> Array:
    return ~same_bits(run(chain, array), request.apply(array), request.dst)


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
        steps = np.where(lone, _last_ordinal(dst) + 1 - np.abs(ordinal(number, dst)), steps)
    return int(steps.max())


@lru_cache(maxsize=2)
def samples(request: Conversion, values: ValueSet, count: int = SAMPLES) -> tuple[tuple[str, Array], ...]:
    """Return named storage arrays of up to ``count`` source values of the set; for floats the last is normal."""
    src, dst = request.src, request.dst
    line = Line.of(src, values)
    if line is None:
        return (("none", np.zeros(0, src.storage)),)
    generator = np.random.default_rng(_SEED)
    uniform = [("uniform over the range", _uniform(line, generator, values, count))]
    inner = covered(request, values)
    part = Line.of(src, inner) if inner is not None else None
    if part is not None and part.first <= part.last:
        uniform.append(("uniform over the destination's range", _uniform(part, generator, values, count)))
    if not src.is_float:
        return tuple(uniform)
    sigma = float(dst.max_value) / 3
    drawn = np.clip(generator.standard_normal(count) * sigma, float(values.lo), float(values.hi))
    normal = line.at(line.below(drawn)) if line.grid is not None else encode(drawn, src, "rint")
    return (*uniform, (f"normal, sigma {sigma:g}", normal[members(normal, src, values)]))


def _uniform(line: Line, generator: np.random.Generator, values: ValueSet, count: int) -> Array:
    array = line.at(generator.integers(line.first, line.last, count, np.int64, endpoint=True))
    return array[members(array, line.src, values)]
