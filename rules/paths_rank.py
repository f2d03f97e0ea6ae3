"""Ranking roads by cycles for a shape, instruction count or accuracy; Pareto front; the two contracts.

``faithful`` takes the best legal road, exact or not; ``exact`` takes exact roads only. Ties go to fewer
instructions, then to exact roads, then to the order of :func:`.paths.roads` ("same width into float first").
Under ``instructions`` that order decides before exactness does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir.diagnostics import Span, TileggError, error
from ..ir.dtypes import DType
from ..ir.valueset import ValueSet
from .cost import Instr, cycles
from .paths import MAX_HOPS, Road, page_rank, roads
from .paths_error import IN_RANGE
from .paths_legal import edges_from
from .target import Target, load_target, target_names

OBJECTIVES = ("cycles", "instructions", "accuracy")
CONTRACTS = ("faithful", "exact")
#: (rows, valid columns, physical columns) of a tile, in elements.
Shape = tuple[int, int, int]


@dataclass(frozen=True)
class RankedRoad:
    """A road with the price of each hop for one shape, in core cycles.

    ``pareto``: no other road is both cheaper and more accurate.
    """

    road: Road
    hop_cycles: tuple[float, ...]
    pareto: bool = False

    @property
    def cycles(self) -> float:
        """The price of all hops."""
        return sum(self.hop_cycles)

    @property
    def rate(self) -> float:
        """The share of differing results: 0 for exact roads, measured for others."""
        return 0.0 if self.road.exact else self.road.error.rate


def hop_cycles(target: Target, road: Road, shape: Sequence[int]) -> tuple[float, ...]:
    """Return the price of each hop in core cycles.

    ``shape``: (rows, valid columns) or (rows, valid columns, physical columns), in elements. Raises TG022
    when the target has no price for a hop.
    """
    rows, cols, *rest = shape
    found = []
    for hop in road.hops:
        if hop.composed is not None:
            found.append(hop.composed.cycles(target, rows, cols, rest[0] if rest else cols))
            continue
        # The price of a saturating cast is that of what happens, hence also of the default.
        attrs = () if hop.dst.is_float else (("saturation", "on" if hop.clamps else "off"),)
        instr = Instr("tcvt", (hop.src.name, hop.dst.name), rows, cols, rest[0] if rest else cols, attrs)
        found.append(cycles(target, instr))
    return tuple(found)


def best_roads(
    target: Target,
    src: DType,
    dst: DType,
    mode: str | int,
    saturation: str | None = None,
    values: ValueSet | None = None,
    *,
    shape: Sequence[int] = (64, 64),
    objective: str = "cycles",
    contract: str = "faithful",
    max_hops: int = MAX_HOPS,
    k: int = 8,
    span: Span | None = None,
) -> tuple[RankedRoad, ...]:
    """Return the roads a contract admits, best first for an objective; never empty.

    Raises TG020 when no chain is legal, TG021 under ``exact`` when no legal chain is exact (it names the best
    inexact one), TG040 for an unknown objective or contract.
    """
    _known("objective", objective, OBJECTIVES)
    _known("contract", contract, CONTRACTS)
    found = roads(target, src, dst, mode, saturation, values, max_hops=max_hops, k=k)
    if not found:
        raise no_road(target, src, dst, span)
    priced = [RankedRoad(road, hop_cycles(target, road, shape)) for road in found]
    ranked = sorted(priced, key=_KEYS[objective])
    if contract == "exact":
        exact = [r for r in ranked if r.road.exact]
        if not exact:
            raise no_exact_road(target, ranked[0].road, span)
        ranked = exact
    return tuple(ranked)


def pareto_front(ranked: Sequence[RankedRoad]) -> tuple[RankedRoad, ...]:
    """Return the same roads with ``pareto`` set on those that no other beats in cycles and error rate.

    Of roads equal in both, the first counts.
    """
    marked = []
    for i, one in enumerate(ranked):
        beaten = any(
            (other.cycles, other.rate) != (one.cycles, one.rate)
            and other.cycles <= one.cycles
            and other.rate <= one.rate
            and (other.road.exact or not one.road.exact)
            for other in ranked
        )
        repeated = any((o.cycles, o.rate, o.road.exact) == (one.cycles, one.rate, one.road.exact)
                       for o in ranked[:i])  # fmt: skip
        marked.append(replace(one, pareto=not (beaten or repeated)))
    return tuple(marked)


def _by_cycles(r: RankedRoad) -> tuple[Any, ...]:
    return (r.cycles, r.road.instructions, not r.road.exact)


def _by_instructions(r: RankedRoad) -> tuple[Any, ...]:
    return (r.road.instructions, page_rank(r.road)[:1], not r.road.exact, r.cycles)


def _by_accuracy(r: RankedRoad) -> tuple[Any, ...]:
    return (not r.road.exact, r.rate, r.cycles, r.road.instructions)


_KEYS: dict[str, Callable[[RankedRoad], tuple[Any, ...]]] = {
    "cycles": _by_cycles,
    "instructions": _by_instructions,
    "accuracy": _by_accuracy,
}


def _known(what: str, word: str, words: Sequence[str]) -> None:
    if word not in words:
        raise error("TG040", f"unknown {what} {word!r:.40}", hint=f"known: {', '.join(words)}")


# -- errors ------------------------------------------------------------------------------------------------


def no_road(target: Target, src: DType, dst: DType, span: Span | None = None) -> TileggError:
    """Return the TG020 error of a pair without a legal chain."""
    if src is dst:
        return clamps_infinities(target.name, dst, span)
    edges = edges_from(target)
    direct = ", ".join(edge.dst.name for edge in edges.get(src, ()))
    into = ", ".join(s.name for s, out in edges.items() if any(e.dst is dst for e in out))
    hint = "narrow the values first, by a clamp or an assume"
    if direct and into:
        reason = f"every chain loses values that {dst.name} can hold ({src.name} converts natively to {direct})"
    else:
        lacking = dst if direct else src
        reason = f"{target.name} has no native conversion {'to' if direct else 'from'} {lacking.name}"
        hint = _elsewhere(target, lacking, back=bool(direct))
    return error(
        "TG020",
        f"{src.name} cannot be converted to {dst.name} on {target.name}",
        span,
        reason=reason,
        hint=hint,
    )


def clamps_infinities(target: str, dtype: DType, span: Span | None) -> TileggError:
    """Return the TG020 error of a cast to the same dtype that is more than nothing, for it saturates."""
    return error(
        "TG020",
        f"no conversion from {dtype.name} to {dtype.name} on {target} saturates",
        span,
        reason=f"with saturation on, infinities would become the largest finite {dtype.name}; no instruction does that",
        hint="leave saturation off, which makes it no cast at all; promise that the values are finite "
        "(pl.tile.assume); or clamp them with pl.minimum and pl.maximum",
    )


def _elsewhere(target: Target, lacking: DType, back: bool) -> str:
    """Return what to do about a dtype that a target does not convert from, or to (``back``)."""
    edges = edges_from(target)
    known = sorted({e.dst.name for out in edges.values() for e in out} if back else {d.name for d in edges})
    others = [n for n in target_names() if n != target.name and _converts(load_target(n), lacking, back)]
    elsewhere = f"{' and '.join(others)} can: --arch {others[0]}; here, " if others else ""
    return f"{elsewhere}keep the values in a dtype that is converted: {', '.join(known)}"


def _converts(target: Target, dtype: DType, back: bool) -> bool:
    edges = edges_from(target)
    return any(e.dst is dtype for out in edges.values() for e in out) if back else bool(edges.get(dtype))


def no_exact_road(target: Target, best: Road, span: Span | None = None) -> TileggError:
    """Return the TG021 error of a pair that has inexact chains only; ``best`` is the best of them."""
    mode = best.hops[-1].mode
    witness = "" if best.witness is None else f"; for example {best.witness!r} comes out differently"
    return error(
        "TG021",
        f"{best.src.name} to {best.dst.name} in mode {mode} has no exact chain on {target.name}",
        span,
        reason=f"the best inexact one is {best}: {describe(best)}{witness}; {why_inexact([best])}",
        hint="allow it with the faithful contract, or narrow the values (a clamp or an assume)",
    )


def why_inexact(inexact: Sequence[Road]) -> str:
    """Say why chains, best first, differ from the one conversion asked for: requests are ignored, or two roundings."""
    once = [r for r in inexact if not r.rounds_twice]
    # What the first one ignores stands for all: the others say the same of other pairs.
    parts = [r.remark for r in [*once[:1], *inexact[:1]] if r.remark][:1]
    if len(once) < len(inexact):
        who = "other legal chains" if once else "every legal chain" if len(inexact) > 1 else "the chain"
        parts.append(f"{who} can round twice")
    return "; ".join(parts)


def describe(road: Road) -> str:
    """Return a road's accuracy in words: ``exact``, or how many values differ by how much."""
    if road.exact:
        return "exact"
    if road.proof.startswith("not proved"):
        return road.proof
    named = "" if road.error.distribution == IN_RANGE else f" ({road.error.distribution})"
    return f"{road.error}{named}"
