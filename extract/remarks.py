"""Remarks about casts that are not bit for bit what was asked: how often they differ, and what exactness costs.

Measuring an error rate takes time, so these are made when somebody asks for them (``Lowered.remarks``).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.diagnostics import Diagnostic
from ..ir.types import TileType, with_dtype
from ..rules.cost import work_shape
from ..rules.paths import Road, roads
from ..rules.paths_rank import describe
from .chains import road_behind
from .lowered import Instruction, Lowered
from .price import Price, Pricer, pricer_for


def inexact_roads(lowered: Lowered) -> list[tuple[Instruction, Road]]:
    """Return the inexact chains of a lowered program with the instructions that end them, in program order."""
    if lowered.target is None or not lowered.totals.inexact:
        return []
    found: list[tuple[Instruction, Road]] = []
    for f in lowered.functions:
        for i in f.instructions:
            if i.inexact:
                result = f.regions[i.region]
                node = result.graph.classes[i.eclass][result.solution.picks[i.eclass]]
                road = road_behind(result, i.eclass, node, lowered.target)
                if road is not None:
                    found.append((i, road))
    return found


def inexact_remarks(lowered: Lowered) -> list[Diagnostic]:
    """Return TG024 for every chain that may round twice, TG025 for every request that the target ignores."""
    pricer = pricer_for(lowered.target, False)
    return [d for i, road in inexact_roads(lowered) for d in _remarks(i, road, pricer)]


def _remarks(i: Instruction, road: Road, pricer: Pricer) -> Iterator[Diagnostic]:
    t = i.op.result.type
    assert isinstance(t, TileType)
    asked = f"{road.src.name} to {road.dst.name}"
    hint = exact_hint(pricer, road, t)
    if road.remark:
        yield Diagnostic("TG025", f"{asked}: {road.remark}", i.span, f"{road}: {describe(road)}", hint, "remark")
    if not road.remark or road.rounds_twice:
        yield Diagnostic("TG024", f"{asked} may round twice: {road}", i.span, describe(road), hint, "remark")


def exact_hint(pricer: Pricer, road: Road, t: TileType) -> str:
    """Say what the cheapest exact chain of the same conversion costs more for a result type, if there is one."""
    exact = cheapest_exact(pricer, road, t)
    if exact is None:
        return "no exact chain exists; tile.assume can prove a narrower range"
    extra = chain_cycles(pricer, exact, t) - chain_cycles(pricer, road, t)
    return f"exact: {exact} costs {extra:+.0f} cycles (objective accuracy or contract exact)"


def cheapest_exact(pricer: Pricer, road: Road, t: TileType) -> Road | None:
    """Return the cheapest exact chain for a road's request."""
    assert pricer.target is not None
    request = road.request
    mode = road.hops[-1].mode
    saturation = road.hops[-1].saturation
    found = roads(pricer.target, request.src, request.dst, mode, saturation, road.values)
    exact = [r for r in found if r.exact]
    return min(exact, key=lambda r: (chain_cycles(pricer, r, t), r.instructions, str(r)), default=None)


def chain_cycles(pricer: Pricer, road: Road, t: TileType) -> float:
    """Return the cycles of a chain for the type of its result."""
    here, total = with_dtype(t, road.src), 0.0
    for hop in road.hops:
        there = with_dtype(t, hop.dst)
        if hop.composed is not None and pricer.target is not None:
            total += hop.composed.cycles(pricer.target, *work_shape([here, there]))
            here = there
            continue
        price = pricer.hop(here, there, hop.effective, hop.saturation)
        assert isinstance(price, Price)
        total, here = total + price.cycles, there
    return total
