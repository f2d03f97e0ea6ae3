"""Roads: chains of native casts that do what one conversion asks for.

A target converts some pairs of dtypes in one instruction. Every other pair needs a chain, and even a native
pair may have a cheaper or more exact one. :func:`roads` lists the legal chains of a request with a proof of
exactness or a counterexample each (how: see ``paths_proof``); :func:`best_roads` ranks them for a shape.

*Legal*: no value that the destination can hold is lost on the way. This is judged by the values that can
arrive, not by type names: ``INT8 → FP16 → FP32`` is legal, ``UINT32 → INT16 → FP32`` is not, and facts about
the values make more chains legal. A pair for which no chain passes through types that hold all of the
destination's values (:func:`listed`) is legal only by an exact chain.

*Modes*: every hop carries the requested round mode, the last one also the saturation. Where that is not exact
but another mode on an earlier hop makes it so, the changed chain is listed too: rounding to odd before any
mode, or truncation before ties away (what lies above a tie stays at or above it).

*Composed conversions*: where no chain of native casts is exact, conversions made of several instructions may be hops
(``composed.py``): rounding to odd on the way to BF16, say. Dtypes that no native cast starts from begin with one.

*Saturation*: an integer destination clamps unless asked not to; a float one overflows as IEEE 754 says unless
asked to clamp, on every target. Only for integer destinations is a target taken to ignore a request.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ..ir import lazy_numpy as np
from ..ir import valueset
from ..ir.codes import Array
from ..ir.convert import encode, parse_mode
from ..ir.diagnostics import error
from ..ir.dtypes import DType
from ..ir.rounding import effective
from ..ir.valueset import ValueSet
from .composed import Composed, composed_on
from .paths_chain import Conversion, Verdict, run
from .paths_error import Measured, covering, measure
from .paths_legal import ORDER, Edge, listed, simple_paths
from .paths_proof import decide, stays_inside
from .target import Target

MAX_HOPS = 4
#: Modes an earlier hop may take instead of the requested one.
_STICKY = ("odd", "trunc")


@dataclass(frozen=True)
class Hop:
    """One native cast: what the IR says and what the hardware does; or a ``composed`` conversion.

    ``saturation`` is None on hops that leave it to the default; ``effective`` and ``clamps`` are the round
    mode and the saturation that act.
    """

    src: DType
    dst: DType
    mode: str
    effective: str
    saturation: str | None
    clamps: bool
    composed: Composed | None = None

    @property
    def instructions(self) -> int:
        """The number of instructions."""
        return self.composed.instructions if self.composed else 1

    @property
    def conversion(self) -> Conversion:
        """What the hardware does, as a conversion."""
        return Conversion(self.src, self.dst, self.effective, self.clamps)


@dataclass(frozen=True)
class Road:
    """A legal chain for one request.

    ``exact``: bit for bit one direct conversion (NaN payloads aside) on all of ``values``; ``proof`` says how
    that was decided, ``witness`` is a source value that shows a difference, ``remark`` names the requests
    that the target ignores.
    """

    target: str
    request: Conversion
    values: ValueSet
    hops: tuple[Hop, ...]
    exact: bool
    proof: str
    witness: int | float | None = None
    remark: str = ""

    @property
    def src(self) -> DType:
        return self.request.src

    @property
    def dst(self) -> DType:
        return self.request.dst

    @property
    def instructions(self) -> int:
        """The number of instructions: one a hop, unless the hop is composed."""
        return sum(hop.instructions for hop in self.hops)

    @property
    def native(self) -> bool:
        """True when every hop is a single native cast."""
        return not any(hop.composed for hop in self.hops)

    @property
    def kind(self) -> str:
        """``exact``, ``double_rounding`` or ``request_ignored``: the class that reports show."""
        return "exact" if self.exact else "double_rounding" if self.rounds_twice else "request_ignored"

    @cached_property
    def rounds_twice(self) -> bool:
        """True when results differ even from one conversion in the round mode that the last hop really has."""
        if len(self.hops) < 2:
            return False
        last = self.chain[-1]
        acting = Conversion(self.src, self.dst, last.mode, last.saturate)
        return not decide(acting, self.chain, self.values).exact

    @property
    def stops(self) -> tuple[DType, ...]:
        """The dtypes along the way, both ends included."""
        return (self.src, *(hop.dst for hop in self.hops))

    @property
    def chain(self) -> tuple[Conversion, ...]:
        """The conversions that happen."""
        return tuple(hop.conversion for hop in self.hops)

    @cached_property
    def error(self) -> Measured:
        """How often and how far results differ from one direct conversion (measured on first use).

        The distance covers the witness, special values and boundaries too, which samples may miss.
        """
        found = measure(self.request, self.chain, self.values, self.exact)
        if self.exact:
            return found
        known = [self.witness] if self.witness is not None else []
        array = encode(np.array(known), self.src, "rint") if known else np.zeros(0, self.src.storage)
        return covering(found, self.request, self.chain, self.values, array)

    def apply(self, array: Array) -> Array:
        """Convert a storage array of the source dtype hop by hop."""
        return run(self.chain, array)

    def __str__(self) -> str:
        """``INT32 → FP32 (trunc) → BF16``: modes are shown where they are not the last hop's."""
        text = self.src.name
        for hop in self.hops:
            other = hop.mode != self.hops[-1].mode
            text += f" → {hop.dst.name}" + (f" ({hop.mode})" if other else "")
        return text


def roads(
    target: Target,
    src: DType,
    dst: DType,
    mode: str | int,
    saturation: str | None = None,
    values: ValueSet | None = None,
    *,
    max_hops: int = MAX_HOPS,
    k: int = 8,
) -> tuple[Road, ...]:
    """Return up to ``k`` legal chains, shortest first; an exact one is among them wherever there is one.

    ``saturation``: "on", "off" or None for the destination's default. ``values``: what can arrive (default:
    every value of ``src``). Chains of one length are ordered by "same width into float first", exactness and
    the order of dtypes. No chain visits a dtype twice; equal dtypes need no hop. Empty where none is legal.
    Raises TG004 for unknown words.
    """
    word = _settled(saturation, dst)
    arriving = valueset.of_dtype(src) if values is None else values
    found = _roads(target, src, dst, parse_mode(mode), word, arriving, max_hops, k)
    shown = found[:k]
    if k > 0 and not any(r.exact for r in shown):
        shown = shown[: k - 1] + next(((r,) for r in found[k:] if r.exact), shown[k - 1 :])
    return shown


def _settled(saturation: str | None, dst: DType) -> str | None:
    if saturation not in (None, "on", "off"):
        raise error("TG004", f"unknown saturation {saturation!r:.40}", hint="on or off")
    return "on" if saturation is None and not dst.is_float else saturation


@lru_cache(maxsize=8192)
def _roads(
    target: Target,
    src: DType,
    dst: DType,
    mode: str,
    saturation: str | None,
    values: ValueSet,
    max_hops: int,
    k: int,
) -> tuple[Road, ...]:
    clamps = saturation == "on"
    request = Conversion(src, dst, effective(mode, dst), clamps)
    if src is dst:
        kept = not (src.is_float and clamps and values.inf)
        return (Road(target.name, request, values, (), True, "the dtype stays"),) if kept else ()
    on_page = listed(target, src, dst)
    found: list[Road] = []
    for _, paths in itertools.groupby(simple_paths(target, src, dst, values, max_hops), key=len):
        if len(found) >= k and any(r.exact for r in found):
            break
        for path in paths:
            found += _on_path(target, path, request, mode, saturation, values)
        if not on_page:
            found = [r for r in found if r.exact]
    if saturation == "off" and dst.is_int and stays_inside(request, values):
        # Nothing is there to clamp: a last conversion that would do so serves as well.
        clamping = _roads(target, src, dst, mode, "on", values, max_hops, k)
        found += [replace(r, request=request) for r in clamping]
    if not any(r.exact for r in found):
        paths = simple_paths(target, src, dst, values, max_hops)
        found += _with_composed(target, paths, request, mode, saturation, values)
    return tuple(sorted(found, key=_order))


def _order(road: Road) -> tuple[object, ...]:
    page = page_rank(road)
    changed = sum(hop.mode != road.hops[-1].mode for hop in road.hops)
    names = tuple(ORDER[d.name] for d in road.stops)
    return (road.instructions, page[:1], not road.exact, changed, page, names)


def page_rank(road: Road) -> tuple[int, ...]:
    """Return per hop 0 where it goes from an integer to the float of the same width, else 1.

    In ascending order these say "same width into float first, then change width".
    """
    return tuple(int(h.src.is_float or not h.dst.is_float or h.src.bits != h.dst.bits) for h in road.hops)


# -- one path ----------------------------------------------------------------------------------------------


def _on_path(
    target: Target,
    path: tuple[Edge, ...],
    request: Conversion,
    mode: str,
    saturation: str | None,
    values: ValueSet,
) -> Iterator[Road]:
    """Yield the road along a path and, if that is inexact, the first one made exact by other modes."""
    hops = tuple(_hop(edge, mode, None) for edge in path[:-1])
    hops += (_hop(path[-1], mode, saturation),)
    undefined = _undefined(path, values)
    if undefined:
        verdict = Verdict(False, f"not proved: {undefined}")
        yield replace(_road(target, request, hops, values, verdict), remark=f"on {target.name} {undefined}")
        return
    verdict = decide(request, tuple(h.conversion for h in hops), values)
    yield _road(target, request, hops, values, verdict)
    last = hops[-1]
    if verdict.exact or (last.effective, last.clamps) != (request.mode, request.saturate):
        return
    for changed in _variants(path, hops):
        verdict = decide(request, tuple(h.conversion for h in changed), values)
        if verdict.exact:
            yield _road(target, request, changed, values, verdict)
            return


def _undefined(path: tuple[Edge, ...], values: ValueSet) -> str:
    """Say which hop meets values for which its result is undefined (empty: none)."""
    negative = values.lo < 0 or values.inf
    for edge in path:
        if edge.row.negatives_undefined and negative:
            return f"{edge.src.name} to {edge.dst.name} is undefined for negative values"
        negative = negative and edge.dst.signed
    return ""


def _hop(edge: Edge, mode: str, saturation: str | None) -> Hop:
    clamps = not edge.dst.is_float if saturation is None else saturation == "on"
    if not edge.dst.is_float and not edge.row.saturation_control:
        clamps = edge.row.saturation == "on"
    acts = effective(edge.row.effective_mode(mode), edge.dst)
    return Hop(edge.src, edge.dst, mode, acts, saturation, clamps, edge.composed)


def _variants(path: tuple[Edge, ...], hops: tuple[Hop, ...]) -> Iterator[tuple[Hop, ...]]:
    """Yield the chains with some earlier hop in a sticky mode, the fewest changes first."""
    choices = [
        [hop, *(_hop(edge, m, None) for m in _STICKY if m in edge.row.modes and m != hop.effective)]
        for edge, hop in zip(path[:-1], hops)
    ]
    every = [(*chosen, hops[-1]) for chosen in itertools.product(*choices)]
    yield from sorted(every[1:], key=lambda chain: sum(a is not b for a, b in zip(chain, hops)))


def _with_composed(
    target: Target,
    paths: Iterator[tuple[Edge, ...]],
    request: Conversion,
    mode: str,
    saturation: str | None,
    values: ValueSet,
) -> list[Road]:
    """Return the exact roads of the least length that have composed hops in the place of native ones."""
    made = composed_on(target)
    for _, group in itertools.groupby(paths, key=len):
        found: list[Road] = []
        for path in group:
            if any((e.src, e.dst) in made for e in path) and not _undefined(path, values):
                hops = (*(_hop(edge, mode, None) for edge in path[:-1]), _hop(path[-1], mode, saturation))
                found += itertools.islice(_composed_roads(target, hops, made, request, values), 1)
        if found:
            return found
    return []


def _composed_roads(
    target: Target,
    hops: tuple[Hop, ...],
    made: Mapping[tuple[DType, DType], Composed],
    request: Conversion,
    values: ValueSet,
) -> Iterator[Road]:
    """Yield the exact chains with some hop composed, the fewest first; the last one does what is asked."""
    choices = []
    for hop in hops:
        other = made.get((hop.src, hop.dst))
        mode = other.mode if other else None
        choices.append([hop, Hop(hop.src, hop.dst, mode, mode, None, False, other)] if mode else [hop])
    every = list(itertools.product(*choices))[1:]
    for chain in sorted(every, key=lambda chain: sum(a is not b for a, b in zip(chain, hops))):
        if (chain[-1].effective, chain[-1].clamps) == (request.mode, request.saturate):
            verdict = decide(request, tuple(h.conversion for h in chain), values)
            if len(chain) == 1 and chain[0].composed:
                verdict = Verdict(True, f"instructions that do it, by {chain[0].composed.rule}")
            if verdict.exact:
                yield _road(target, request, chain, values, verdict)


def _road(
    target: Target, request: Conversion, hops: tuple[Hop, ...], values: ValueSet, verdict: Verdict
) -> Road:
    road = Road(target.name, request, values, hops, verdict.exact, verdict.proof, verdict.witness)
    return road if road.exact else replace(road, remark=_remark(target, request, hops))


def _remark(target: Target, request: Conversion, hops: tuple[Hop, ...]) -> str:
    """Say which requests the target ignores on the way."""
    ignored = [
        f"{hop.src.name} to {hop.dst.name} is always {hop.effective}"
        for hop in hops
        if hop.effective != effective(hop.mode, hop.dst)
    ]
    parts = [f"{target.name} ignores mode {hops[-1].mode}: {', '.join(ignored)}"] if ignored else []
    if hops[-1].clamps != request.saturate:
        does = "clamps" if hops[-1].clamps else "does not clamp"
        parts.append(f"{target.name} {does} {hops[-1].src.name} to {hops[-1].dst.name} whatever is asked")
    return "; ".join(parts)
