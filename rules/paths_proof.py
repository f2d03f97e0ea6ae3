"""Proofs that a chain of conversions equals one direct conversion, or a value on which it does not.

Every verdict covers every source value of a :class:`ValueSet`; nothing is inferred from samples. A conversion
that keeps the low bits equals the clamping one where no value leaves the destination's range, and is decided
as that (the ends of the value set are run both ways: rounding is monotone). The ways to decide, tried in this
order:

1. *Same conversion.* A single native conversion with the requested round mode and saturation.
2. *Value set.* Every stop before the last holds every arriving value exactly. The last conversion then gets
   the source values themselves, and a conversion depends on the value alone.
3. *Argument.* Hop by hop: stops that hold every value, one rounding to an integer, nested grids in a directed
   mode, rounding to odd; or one telling number that shows a difference (see ``paths_argue``). No array is made.
4. *Exhaustive.* Sources of at most 16 bits, and wider ones whose values all fit a dtype of at most 16 bits
   (``FP32`` that came from ``BF16``, say): every value is run through both.
5. *Steps.* Rounding in any one mode, clamping and IEEE overflow are monotone, so the chain and the direct
   conversion are both monotone step functions of the source values in ascending order (-0 below +0). Both
   are evaluated at a list of positions: where they differ, that is a counterexample. Between two neighbours
   with one common result nothing else can happen; an interval whose ends differ is halved until its ends are
   adjacent. The first list holds the places where the direct conversion is expected to step (midpoints of
   neighbouring destination values, or these values themselves), so hardly an interval is ever halved; a
   wrong expectation costs time, never correctness. NaN, infinities and -0 are run separately. A destination
   with more than 2**17 reachable values is not decided this way.
6. Otherwise counterexamples are sought among the step places, powers of two and random values. If none is
   found the chain counts as inexact, "not proved".
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ..ir import lazy_numpy as np
from ..ir import valueset
from ..ir.codes import Array, bits_of, from_ordinal
from ..ir.convert import decode, is_nan, ordinal, same_bits
from ..ir.dtypes import BOOL, INT64, DType
from ..ir.exact import converted
from ..ir.valueset import ValueSet
from .paths_argue import argued
from .paths_chain import Chain, Conversion, Verdict, ordered, result_of, run
from .paths_values import Line, hostile, listing, members, nearest, specials

_MOST_STEPS = 1 << 17
#: The key of an overflow that gives NaN: beyond every other one.
BEYOND = 1 << 40


def decide(request: Conversion, chain: Chain, values: ValueSet) -> Verdict:
    """Compare a chain with the one conversion it stands for, on every value of the set."""
    last = chain[-1]
    if not (request.saturate and last.saturate) and _never_leaves(request, chain, values):
        clamped = (*chain[:-1], last._replace(saturate=True))
        verdict = _decide(request._replace(saturate=True), clamped, values)
        return Verdict(verdict.exact, f"no value leaves the range; {verdict.proof}", verdict.witness)
    return _decide(request, chain, values)


def _decide(request: Conversion, chain: Chain, values: ValueSet) -> Verdict:
    last = chain[-1]
    same = (last.mode, last.saturate) == (request.mode, request.saturate)
    if same and len(chain) == 1:
        return Verdict(True, "one native conversion in the requested mode")
    if all(valueset.representable(values, c.dst) for c in chain[:-1]):
        if same:
            stops = " and ".join(c.dst.name for c in chain[:-1])
            verb = "hold" if len(chain) > 2 else "holds"
            return Verdict(True, f"value set: {stops} {verb} every arriving value")
        if valueset.representable(values, request.dst):
            return Verdict(True, "value set: nothing is rounded and nothing overflows")
    # Stops that hold every arriving value leave no trace: the chain is the one that goes past them.
    kept = next(i for i, c in enumerate(chain) if not valueset.representable(values, c.dst))
    return _compared(request, (chain[kept]._replace(src=request.src), *chain[kept + 1 :]), values)


@lru_cache(maxsize=1024)
def _compared(request: Conversion, chain: Chain, values: ValueSet) -> Verdict:
    verdict = argued(request, chain, values)
    if verdict is not None:
        return verdict
    if listing(request.src, values) is not None:
        return _exhaustive(request, chain, values)
    if Line.of(request.src, values) is None:
        return Verdict(False, "not proved: the source values cannot be put in order")
    if request.monotone and ordered(chain):
        return _by_steps(request, chain, values)
    return _search(request, chain, values)


# -- order of results --------------------------------------------------------------------------------------


def order_keys(results: Array, dst: DType, negative: Array) -> Array:
    """Return int64 keys in the order of values, -0 below +0; an overflow to NaN lies beyond all, by sign."""
    position = ordinal(results, dst)
    if not dst.is_float:
        return position
    keys = 2 * position
    if dst.has_negative_zero:
        keys -= bits_of(results, dst) == dst.sign_bit
    if dst.has_nan:
        keys = np.where(is_nan(results, dst), np.where(negative, -BEYOND, BEYOND), keys)
    return keys


def step_places(request: Conversion, line: Line) -> Array | None:
    """Return ascending positions around each place where the request may step; None if there are too many."""
    dst = request.dst
    ends = request.apply(line.at(np.array([line.first, line.last], np.int64)))
    low, high = (int(x) for x in ordinal(ends, dst).tolist())
    if high - low > _MOST_STEPS:
        return None
    reached = decode(from_ordinal(np.arange(low, high + 1, dtype=np.int64), dst), dst).astype(np.float64)
    if request.mode in ("rint", "round") and reached.size > 1:
        # One more value at either end: the midpoint to it is where overflow begins.
        outer = 2 * reached[[0, -1]] - reached[[1, -2]]
        reached = np.concatenate([outer[:1], reached, outer[1:]])
        reached = (reached[:-1] + reached[1:]) / 2
    found = np.unique(line.below(reached))
    ends = np.array([line.first, line.last], np.int64)
    near = [found - (found > line.first), found, found + (found < line.last)]
    return np.unique(np.clip(np.concatenate([*near, ends]), line.first, line.last))


class Prepared(NamedTuple):
    """Places on a line, the source values there and the keys of a request's results."""

    line: Line
    array: Array
    places: Array
    keys: Array


@lru_cache(maxsize=4)
def prepare(request: Conversion, values: ValueSet) -> Prepared | None:
    """The step places of a request and its results there; all chains for one request share them."""
    line = Line.of(request.src, values)
    places = step_places(request, line) if line is not None and line.first <= line.last else None
    if line is None or places is None:
        return None
    array = line.at(places)
    return Prepared(line, array, places, order_keys(request.apply(array), request.dst, places < 0))


# -- the methods -------------------------------------------------------------------------------------------


def _exhaustive(request: Conversion, chain: Chain, values: ValueSet) -> Verdict:
    array = listing(request.src, values)
    assert array is not None
    differ = ~same_bits(run(chain, array), _direct_on_listing(request, values), request.dst)
    if differ.any():
        return Verdict(False, f"exhaustive: {int(differ.sum())} of {array.size} values differ",
                       nearest(array[differ], request.src))  # fmt: skip
    return Verdict(True, f"exhaustive: all {array.size} values agree")


@lru_cache(maxsize=16)
def _direct_on_listing(request: Conversion, values: ValueSet) -> Array:
    array = listing(request.src, values)
    assert array is not None
    return request.apply(array)


def _by_steps(request: Conversion, chain: Chain, values: ValueSet) -> Verdict:
    extra = specials(request.src, values)
    differ = ~same_bits(run(chain, extra), request.apply(extra), request.dst)
    if differ.any():
        return Verdict(False, "counterexample among the special values", nearest(extra[differ], request.src))
    prepared = prepare(request, values)
    if prepared is None:
        return _search(request, chain, values)
    keys = order_keys(run(chain, prepared.array), request.dst, prepared.places < 0)
    differ = keys != prepared.keys
    if differ.any():
        return _refuted(prepared.array[differ], request, values, "counterexample at a step")
    steps = int(np.count_nonzero(np.diff(prepared.keys)))
    found = _halve(request, chain, prepared)
    if found is not None:
        return _refuted(found, request, values, "counterexample between steps")
    return Verdict(True, f"steps: both are monotone and agree on both sides of all {steps} steps")


def _halve(request: Conversion, chain: Chain, prepared: Prepared) -> Array | None:
    """Resolve the intervals whose ends have different results; return values that refute equality, if any."""
    line, places, keys = prepared.line, prepared.places, prepared.keys
    low, high, key_low, key_high = places[:-1], places[1:], keys[:-1], keys[1:]
    while True:
        open_ = (key_low != key_high) & (low + 1 < high)
        if not open_.any():
            return None
        low, high, key_low, key_high = (x[open_] for x in (low, high, key_low, key_high))
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        array = line.at(middle)
        key = order_keys(request.apply(array), request.dst, middle < 0)
        differ = key != order_keys(run(chain, array), request.dst, middle < 0)
        if differ.any():
            wrong: Array = array[differ]
            return wrong
        low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
        key_low, key_high = np.concatenate([key_low, key]), np.concatenate([key, key_high])


def _never_leaves(request: Conversion, chain: Chain, values: ValueSet) -> bool:
    """Tell whether no value leaves the range of an integer destination, so that saturation cannot act."""
    dst = request.dst
    if not dst.is_int or dst.bits == 64 or values.inf or not request.src.is_numeric or BOOL is request.src:
        return False
    if not ordered((*chain[:-1], chain[-1]._replace(saturate=True))):
        return False
    ends = (values.lo, values.hi)
    arriving = [result_of(chain[:-1], end) for end in ends]
    for last, some in ((request, ends), (chain[-1], arriving)):
        for value in some:
            whole = None if value is None else converted(value, last.src, INT64, last.mode, True)
            if whole is None or not dst.min_value <= whole <= dst.max_value:
                return False
    return True


def stays_inside(request: Conversion, values: ValueSet) -> bool:
    """Tell whether no value of the set leaves the range of an integer destination once it is rounded."""
    return _never_leaves(request, (request,), values)


def _search(request: Conversion, chain: Chain, values: ValueSet) -> Verdict:
    """Look for a counterexample where nothing is proved."""
    arrays = [hostile(request.src, values)]
    prepared = prepare(request._replace(saturate=not request.dst.is_float), values)
    if prepared is not None:
        arrays.append(prepared.array)
    array = np.concatenate(arrays)
    array = array[members(array, request.src, values)]
    differ = ~same_bits(run(chain, array), request.apply(array), request.dst)
    if differ.any():
        return Verdict(False, "counterexample", nearest(array[differ], request.src))
    return Verdict(False, "not proved: no counterexample found, no argument either")


def _refuted(array: Array, request: Conversion, values: ValueSet, proof: str) -> Verdict:
    """A refutation, unless the values belong to the interval but not to the set itself."""
    real = array[members(array, request.src, values)]
    if real.size:
        return Verdict(False, proof, nearest(real, request.src))
    return Verdict(False, "not proved: the interval around the value set has a counterexample")
