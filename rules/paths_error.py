"""How often, and how far, a chain of conversions differs from one direct conversion.

Sources whose values can be listed (at most 16 bits, or wider ones narrowed by facts) are run whole. Wider ones:

- *Counted*: where both ways are monotone step functions (see ``paths_proof``) every place where either steps is
  found by halving; between two such places nothing changes, so every source value is counted without being run.
  Both the range of the arriving values and the part that the destination covers are counted, of floats all
  bit patterns alike, infinities and NaN once.
- *Sampled*, with a fixed seed: floats also by 200,000 values from a normal distribution with mean 0 and a third
  of the destination's largest value as standard deviation. Where counting is impossible (conversions that keep
  the low bits, more than 2**17 steps) uniform samples of 200,000 replace it, 1,000,000 if hardly any differ.

The distribution with the higher rate is reported and named. How far results are apart, and whether some are NaN or
infinite, covers every distribution, and boundary values that samples may miss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from math import floor, isfinite, isnan, log2
from typing import Any

from ..ir import lazy_numpy as np
from ..ir.codes import Array, from_ordinal, ordinal
from ..ir.convert import decode, encode, same_bits, ulp_distance
from ..ir.dtypes import DType
from ..ir.valueset import ValueSet
from .paths_chain import Chain, Conversion, ordered, run
from .paths_proof import order_keys, prepare
from .paths_values import Line, hostile, listing, members, nearest, specials

SAMPLES = 200_000
MORE_SAMPLES = 1_000_000
_FEW = 10
#: The distribution of all values that the destination covers.
IN_RANGE = "every value in the destination's range"
_SEED = 20260101


@dataclass(frozen=True)
class NotFinite:
    """Differing results of which not both are finite: no distance says how far NaN or infinity is from a number.

    ``rate``: their share of what was measured, 0 where only other source values have such results. ``value`` is the
    source value nearest to zero that has: the one conversion gives ``wanted``, the chain ``got``.
    """

    rate: float
    value: int | float
    wanted: float
    got: float

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object; NaN and infinities, which JSON cannot write, are given as text."""
        return {k: v if isfinite(v) else str(v) for k, v in asdict(self).items()}


@dataclass(frozen=True)
class Measured:
    """The share of source values whose results differ, and by how much they do.

    ``max_ulp``: the largest distance of two finite results, in codes of the destination. ``not_finite``: what is
    known of the other differing results, ``None`` where there are none.
    """

    rate: float
    max_ulp: int
    samples: int
    exhaustive: bool
    distribution: str
    not_finite: NotFinite | None = None

    @property
    def differing(self) -> int:
        """How many of the samples differ."""
        return round(self.rate * self.samples)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        lost = self.not_finite.to_json() if self.not_finite else None
        return {
            "rate": self.rate, "max_ulp": self.max_ulp, "samples": self.samples, "exhaustive": self.exhaustive,
            "distribution": self.distribution, "not_finite": lost,
        }  # fmt: skip

    def __str__(self) -> str:
        return in_words(self.to_json())


def in_words(measured: Mapping[str, Any]) -> str:
    """Return a measurement's JSON object as ``60 of 65,536 values differ, by up to 1 ulp``, large numbers as a rate."""
    rate, samples = measured["rate"], measured["samples"]
    what = kind_in_words(measured)
    if rate == 0:
        others = "" if measured["exhaustive"] else ", others do"
        return f"0 of {samples:,} {what} differ{others}{lost_in_words(measured, '')}"
    few = samples <= SAMPLES
    share = f"{round(rate * samples):,} of {samples:,} {what}" if few else f"{rate:.2g} of all {what}"
    lost = measured["not_finite"]
    part = "" if lost is None else f"{round(lost['rate'] * samples):,} of them" if few else f"{lost['rate']:.2g} of all"
    return f"{share} differ{apart_in_words(measured)}{lost_in_words(measured, part)}"


def kind_in_words(measured: Mapping[str, Any]) -> str:
    """Return what was measured: values, those of the destination's range, or samples."""
    if not measured["exhaustive"]:
        return "samples"
    return "values in the destination's range" if measured["distribution"] == IN_RANGE else "values"


def apart_in_words(measured: Mapping[str, Any]) -> str:
    """Return ``, by up to 1 ulp``: how far finite results are apart, empty where none of them differ."""
    lost = measured["not_finite"]
    if measured["max_ulp"]:
        return f", by up to {measured['max_ulp']} ulp"
    return "" if lost is not None and lost["rate"] == measured["rate"] else ", in the sign of zero"


def lost_in_words(measured: Mapping[str, Any], part: str) -> str:
    """Say which ``part`` of the values does not have two finite results, with an example; empty where all have."""
    lost = measured["not_finite"]
    if lost is None:
        return ""
    value, wanted, got = (x if isinstance(x, str) else repr(x) for x in (lost["value"], lost["wanted"], lost["got"]))
    who = "others" if not lost["rate"] else "all of them" if lost["rate"] == measured["rate"] else part
    return f"; not both results are finite for {who}: {value} gives {got}, not {wanted}"


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


def _worst(measured: Sequence[Measured]) -> Measured:
    """Return the one with the highest rate; what it says of distances holds for the values of all."""
    worst = max(measured, key=lambda m: (m.rate, m.max_ulp))
    found = [m.not_finite for m in measured if m.not_finite is not None]
    lost = min(found, key=lambda n: (isnan(n.value), abs(n.value)), default=None)
    if lost is not None:
        lost = replace(lost, rate=worst.not_finite.rate if worst.not_finite else 0.0)
    return replace(worst, max_ulp=max(m.max_ulp for m in measured), not_finite=lost)


def covering(found: Measured, request: Conversion, chain: Chain, values: ValueSet, known: Array) -> Measured:
    """Return a measurement whose distances cover some known source values, special values and boundaries, too.

    Where low bits are kept, samples bound nothing: the distance is then the largest that the destination has.
    """
    dst = request.dst
    if dst.is_int and not found.exhaustive and not (request.monotone and ordered(chain)):
        found = replace(found, max_ulp=int(dst.max_value) - int(dst.min_value))
    more = np.concatenate([known, hostile(request.src, values), _overflows(request, values)])
    return _worst([found, replace(_compare(request, chain, more, False, ""), rate=0.0)])


def _overflows(request: Conversion, values: ValueSet) -> Array:
    """Return source values of a set around those from which on a float destination gives no number.

    That is half a step beyond its largest number: a power of two, of which one of these is half a step.
    """
    src, dst = request.src, request.dst
    if not dst.is_float:
        return np.zeros(0, src.storage)
    top = float(dst.max_value)
    steps = 2.0 ** np.arange(floor(log2(top)), floor(log2(top)) - 26, -1)
    places = np.concatenate([[top], top + steps, top - steps])
    array = encode(np.concatenate([places, -places]), src, "rint", True)
    if src.is_float:
        at = ordinal(array, src)
        array = from_ordinal(np.concatenate([at - 1, at, at + 1]), src)
    return array[members(array, src, values)]


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
        ranges.append((IN_RANGE, inner))
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
    # What begins no interval: the special values and the last place.
    lone = np.concatenate([extra, line.at(places[-1:])])
    differ, gone = _differing(request, chain, lone)
    differing, lost = int(differ.sum()), int(gone.sum())
    apart, examples = [furthest(request, chain, lone)], [lone]
    low, high, want, have = places[:-1], places[1:], (wanted[:-1], wanted[1:]), (got[:-1], got[1:])
    while low.size:
        flat = ((want[0] == want[1]) & (have[0] == have[1])) | (low + 1 >= high)
        wrong = flat & (want[0] != have[0])
        gone = wrong & ~(_finite_keys(want[0], request.dst) & _finite_keys(have[0], request.dst))
        differing, lost = differing + _width(low[wrong], high[wrong]), lost + _width(low[gone], high[gone])
        examples += [line.at(low[gone]), line.at(high[gone] - 1)]
        wrong &= ~gone
        apart.append(_apart(want[0][wrong], have[0][wrong], request.dst))
        low, high, *keys = (x[~flat] for x in (low, high, *want, *have))
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        array = line.at(middle)
        at = [order_keys(f(array), request.dst, middle < 0) for f in (request.apply, lambda a: run(chain, a))]
        want = (np.concatenate([keys[0], at[0]]), np.concatenate([at[0], keys[1]]))
        have = (np.concatenate([keys[2], at[1]]), np.concatenate([at[1], keys[3]]))
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
    total = line.last - line.first + 1 + extra.size
    some = _not_finite(request, chain, np.concatenate(examples), lost / total)
    return Measured(differing / total, max(apart), total, True, name, some)


def _width(low: Array, high: Array) -> int:
    """How many positions some intervals hold; together they can exceed an int64."""
    return sum((high.astype(object) - low.astype(object)).tolist())


def _apart(a: Array, b: Array, dst: DType) -> int:
    """The largest distance between finite results given by their keys, in codes."""
    if a.size == 0:
        return 0
    if not dst.is_float:
        return int(np.abs(a.astype(object) - b.astype(object)).max())
    return int(np.abs(a - b).max()) // 2


def _finite_keys(keys: Array, dst: DType) -> Array:
    if not dst.is_float:
        return np.ones(keys.shape, bool)
    return np.abs(keys) <= 2 * int(ordinal(encode(np.array([dst.max_value]), dst, "rint"), dst)[0])


# -- running -----------------------------------------------------------------------------------------------


def _compare(
    request: Conversion, chain: Chain, array: Array, exhaustive: bool, distribution: str
) -> Measured:
    if array.size == 0 or not chain:
        return Measured(0.0, 0, int(array.size), exhaustive, distribution)
    differ, gone = _differing(request, chain, array)
    far = furthest(request, chain, array[differ])
    some = _not_finite(request, chain, array[gone], int(gone.sum()) / array.size)
    return Measured(int(differ.sum()) / array.size, far, int(array.size), exhaustive, distribution, some)


def _differing(request: Conversion, chain: Chain, array: Array) -> tuple[Array, Array]:
    """Return where results differ, and where they do without both being finite."""
    wanted, got = request.apply(array), run(chain, array)
    differ = ~same_bits(got, wanted, request.dst)
    return differ, differ & ~(_finite(wanted, request.dst) & _finite(got, request.dst))


def _finite(array: Array, dtype: DType) -> Array:
    return np.isfinite(decode(array, dtype)) if dtype.is_float else np.ones(array.shape, bool)


def _not_finite(request: Conversion, chain: Chain, array: Array, rate: float) -> NotFinite | None:
    """Describe the values of a storage array whose results differ without both being finite."""
    array = array[_differing(request, chain, array)[1]]
    if array.size == 0:
        return None
    value = nearest(array, request.src)
    one = encode(np.array([value]), request.src, "rint")
    wanted, got = (decode(x, request.dst)[0].item() for x in (request.apply(one), run(chain, one)))
    return NotFinite(rate, value, wanted, got)


def furthest(request: Conversion, chain: Chain, array: Array) -> int:
    """Return the largest distance of finite results of a chain and its request on a storage array, in codes."""
    got, wanted = run(chain, array), request.apply(array)
    both = _finite(got, request.dst) & _finite(wanted, request.dst)
    return int(ulp_distance(got[both], wanted[both], request.dst).max(initial=0))


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
