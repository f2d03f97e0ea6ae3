"""Proofs by argument: why a chain of conversions equals the direct one, from a few numbers instead of all.

NaN, infinities and -0 are run one by one. For all other values both ways are monotone, so whatever lies beyond a
bound where the direct conversion has reached its last result is settled by running that bound and the end of the
value set, and so are numbers next to zero that share a result. Between the bounds one of these arguments can hold,
hop by hop:

- *Held.* A stop that holds every arriving value leaves no trace.
- *Rounded once.* A hop to an integer in the requested mode rounds as the direct conversion does; later stops hold
  the integers, or clamp them into a range that contains every result of the direct conversion.
- *Nested grids.* In a directed mode (trunc, floor, ceil) a stop may round in that mode itself if it holds every
  result of the direct conversion: with d the direct result and y the stop's, d <= y <= x or x <= y <= d, so y
  goes to d as well.
- *Odd.* Rounding to odd with at least two bits more than a later rounding, at every magnitude in question, cannot be
  told from no rounding there (Boldo and Melquiond 2008).

Counterexamples are looked for among a few telling numbers: halves, midpoints of each stop's significands, ends. Where
nothing is found either way ``paths_proof`` runs the values themselves.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from ..ir import exact, valueset
from ..ir.codes import representable
from ..ir.dtypes import INT64, DType
from ..ir.exact import Value
from ..ir.valueset import ValueSet
from .paths_chain import Chain, Conversion, Verdict, ordered, result_of

_DIRECTED = ("trunc", "floor", "ceil")


def argued(request: Conversion, chain: Chain, values: ValueSet) -> Verdict | None:
    """Decide by an argument or by a telling number; ``None`` where neither does.

    ``chain`` starts at the request's source and ends at its destination.
    """
    if None in (result_of((request,), 0), result_of(chain, 0)):
        return None
    if request.dst.is_int and not (request.saturate or chain[-1].saturate):
        return _wrapping(request, chain, values)
    if not request.monotone or not ordered(chain):
        return None
    for value in (*values.specials, *_ends(request, values)):
        if _differs(request, chain, value):
            return _refuted(value) if belongs(value, request.src, values) else None
    small = _small(request, values)
    settled = bool(small) and not any(_differs(request, chain, value) for value in small)
    inner = _between(request, values, settled)
    why = _argument(request, chain, inner) if inner.lo <= inner.hi else "the bounds settle every value"
    if why:
        return Verdict(True, why)
    for value in (*small, *telling(request, chain)):
        if belongs(value, request.src, values) and _differs(request, chain, value):
            return _refuted(value)
    return None


def _wrapping(request: Conversion, chain: Chain, values: ValueSet) -> Verdict | None:
    """Decide where both keep the low bits: those of equal integers are equal."""
    wide = (*chain[:-1], chain[-1]._replace(dst=INT64, saturate=True))
    finite = replace(values, nan=False, inf=False, negative_zero=False, sign=0)
    verdict = None
    if values.magnitude < 1 << 62:
        verdict = argued(request._replace(dst=INT64, saturate=True), wide, finite)
    same = verdict is not None and verdict.exact
    for value in (*values.specials, *(telling(request, chain) if not same else ())):
        if belongs(value, request.src, values) and _differs(request, chain, value):
            return _refuted(value)
    return Verdict(True, f"{verdict.proof}; both keep the low bits") if same and verdict is not None else None


def _refuted(value: Value) -> Verdict:
    return Verdict(False, "counterexample among telling numbers", value)


def _differs(request: Conversion, chain: Chain, value: Value) -> bool:
    mine, asked = result_of(chain, value), result_of((request,), value)
    assert mine is not None and asked is not None, "single numbers are converted or not by their dtypes"
    return not exact.same(mine, asked)


def belongs(value: Value, src: DType, values: ValueSet) -> bool:
    """Tell whether a number is a value of ``src`` and in the set."""
    if isinstance(value, float) and not math.isfinite(value):
        return True
    if value == 0 and math.copysign(1.0, value) < 0:
        return values.negative_zero
    inside = all(v.lo <= value <= v.hi and _on_grid(value, v) for v in (values, valueset.of_dtype(src)))
    return inside and (not src.taper or representable(value, src))


def _on_grid(value: Value, values: ValueSet) -> bool:
    top, bottom = abs(value).as_integer_ratio()
    lowest = (top & -top).bit_length() - bottom.bit_length()
    return top == 0 or (lowest >= values.grid and (top // (top & -top)).bit_length() <= values.sig)


# -- the bounds --------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _bounds(dst: DType) -> tuple[Value, Value]:
    """Numbers at and beyond which every number has the same result, in each mode."""
    if dst.is_float:
        top = math.ldexp(1.0, dst.max_exponent + 1)
        return -top, top
    return dst.min_value, dst.max_value


def _ends(request: Conversion, values: ValueSet) -> Iterator[Value]:
    """Yield the ends of the set that lie beyond a bound, each with its bound."""
    low, high = _bounds(request.dst)
    if values.lo < low:
        yield from (values.lo, low)
    if values.hi > high:
        yield from (values.hi, high)


def _small(request: Conversion, values: ValueSet) -> tuple[Value, ...]:
    """Return zero and, for either sign, the ends of an interval next to it, where the request gives one result.

    Empty where the set has no numbers that small or the request has several results there.
    """
    least, most = values.grid, _small_exponent(request.dst)
    if least >= most:
        return ()
    found = [sign * math.ldexp(1.0, max(e, -1074)) for sign in (1.0, -1.0) for e in (least, most)]
    results = [result_of((request,), value) for value in found]
    return (0, *found) if results[0] == results[1] and results[2] == results[3] else ()


def _small_exponent(dst: DType) -> int:
    """A quarter of the least step of a format, as an exponent."""
    return dst.quantum_exponent - 2


def _between(request: Conversion, values: ValueSet, small: bool) -> ValueSet:
    """Return the finite values between the bounds, but for -0; ``small`` ones are settled, too."""
    low, high = _bounds(request.dst)
    lo, hi = max(values.lo, low), min(values.hi, high)
    # A number of n significant bits is a multiple of its leading bit over 2**(n - 1).
    grid = _small_exponent(request.dst) - values.sig + 1 if small else values.grid
    return replace(values, lo=lo, hi=hi, grid=max(values.grid, grid), nan=False, inf=False, negative_zero=False, sign=0)


# -- the arguments -----------------------------------------------------------------------------------------


def _argument(request: Conversion, chain: Chain, values: ValueSet) -> str:
    """Say why a chain gives the direct result for every value between the bounds; empty where nothing says so."""
    results = valueset.cast_to(values, request.dst, request.mode, request.saturate)
    arriving, odd, words = values, list[DType](), list[str]()
    once = request.dst.is_int and values.grid >= 0
    for c in chain[:-1]:
        if valueset.representable(arriving, c.dst):
            said = f"{c.dst.name} holds every arriving value"
        elif once:
            said = _clamps(c, results)
        elif any(not _spares(d, c.dst, values) for d in odd):
            return ""
        elif said := _rounds_once(request, c, results):
            once = True
        elif said := _odd(c, values):
            odd.append(c.dst)
        else:
            said = _nested(request, c, values, results)
        if not said:
            return ""
        words.append(said)
        arriving = valueset.cast_to(arriving, c.dst, c.mode, c.saturate)
    last = chain[-1]
    as_asked = (last.mode, last.saturate) == (request.mode, request.saturate)
    if not once and (not as_asked or any(not _spares(d, last.dst, values) for d in odd)):
        return ""
    return "argued: " + "; ".join(dict.fromkeys(words or ["whole numbers are not rounded"]))


def _rounds_once(request: Conversion, hop: Conversion, results: ValueSet) -> str:
    same = request.dst.is_int and hop.dst.is_int and hop.mode == request.mode
    held = same and valueset.representable(results, hop.dst)
    return f"rounded once, by the hop to {hop.dst.name}" if held else ""


def _clamps(hop: Conversion, results: ValueSet) -> str:
    held = hop.dst.is_int and valueset.representable(results, hop.dst)
    return f"{hop.dst.name} clamps no result" if held else ""


def _nested(request: Conversion, hop: Conversion, values: ValueSet, results: ValueSet) -> str:
    """The argument of nested grids: needs results on the side of their sources that the mode says."""
    dst = request.dst
    sided = {"floor": values.lo >= dst.min_value, "ceil": values.hi <= dst.max_value}.get(hop.mode, True)
    holds = hop.mode == request.mode and hop.mode in _DIRECTED and sided and not results.inf and not results.nan
    if not holds or not valueset.representable(results, hop.dst):
        return ""
    return f"{hop.mode} to {hop.dst.name}, which holds every result"


def _odd(hop: Conversion, values: ValueSet) -> str:
    fits = hop.dst.is_float and not hop.dst.taper and values.magnitude <= hop.dst.max_value
    return f"{hop.dst.name} rounds to odd with two bits to spare" if fits and hop.mode == "odd" else ""


def _spares(odd: DType, dst: DType, values: ValueSet) -> bool:
    """Tell whether a format that was rounded to odd has at least two bits more than ``dst`` for every magnitude."""
    if dst.is_float:
        finer = odd.quantum_exponent <= dst.quantum_exponent - 2
        return not dst.taper and finer and odd.significand_bits >= dst.significand_bits + 2
    return odd.quantum_exponent <= -2 and values.magnitude <= math.ldexp(1.0, odd.significand_bits - 2)


# -- telling numbers ---------------------------------------------------------------------------------------


@lru_cache(maxsize=512)
def _neighbours(value: Value, src: DType) -> tuple[Value, ...]:
    """The number, and the values of ``src`` on both sides of it."""
    if not src.is_float:
        return (int(value) - 1, int(value), int(value) + 1)
    step = math.ldexp(1.0, max(math.frexp(value)[1] - src.significand_bits, src.quantum_exponent))
    return (value - step, value, value + step)


def telling(request: Conversion, chain: Chain) -> Iterator[Value]:
    """Yield numbers on which chains that round twice or in another mode differ, small ones first."""
    formats = [c.dst for c in chain if c.dst.is_float]
    found: list[Value] = [0.5, 1, 1.5, 2.5]
    found += [1 + math.ldexp(odd, -d.significand_bits) for d in formats for odd in (1, 3)]
    found += [(1 << d.significand_bits) + odd for d in formats for odd in (1, 3)]
    found += [math.ldexp(odd, d.quantum_exponent - 1) for d in formats for odd in (1, 3)]
    found += [c.dst.max_value for c in chain]
    near = itertools.chain.from_iterable(_neighbours(value, request.src) for value in found)
    for value in dict.fromkeys(map(float, near) if request.src.is_float else near):
        yield value
        yield -value
