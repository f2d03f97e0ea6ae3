"""Orders in which the events of a run can happen, found on the signal cells alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.ranks_memory import Cell
from .cells import Graph
from .unroll import Unrolled


def holds(u: Unrolled, n: int, cells: dict[Cell, int]) -> bool:
    """Return whether an event can happen, and note what it does to its cell."""
    e = u.events[n]
    if e.cell is None:
        return True
    held = cells.get(e.cell, 0)
    if e.kind == "wait":
        return held == e.value if e.word == "eq" else held >= int(e.value or 0)
    if e.kind == "notify":
        cells[e.cell] = int(e.value or 0) if e.word == "set" else held + int(e.value or 0)
    return True


def blocked(u: Unrolled, order: Sequence[int]) -> int | None:
    cells: dict[Cell, int] = {}
    return next((n for n in order if not holds(u, n, cells)), None)


def arranged(u: Unrolled, wanted: Mapping[int, int]) -> list[int]:
    """Return the wanted steps in an order in which every wait holds, as far as there is one."""
    cells: dict[Cell, int] = {}
    at = dict.fromkeys(wanted, 0)
    out: list[int] = []
    moved = True
    while moved:
        moved = False
        for r, count in wanted.items():
            while at[r] < count and not _meets(u, r, at) and holds(u, u.by_rank[r][at[r]], cells):
                out.append(u.by_rank[r][at[r]])
                at[r] += 1
                moved = True
    return out


def _meets(u: Unrolled, rank: int, at: Mapping[int, int]) -> bool:
    """Return whether a rank stands at a collective that some rank has not reached."""
    n = u.by_rank[rank][at[rank]]
    if u.events[n].kind != "collective":
        return False
    start = n - rank
    group = range(start, start + u.setting.ranks)
    return any(at.get(u.events[m].rank, 0) < u.position[m] for m in group)


def standing(u: Unrolled, wanted: Mapping[int, int], order: Sequence[int]) -> list[int]:
    """Return the waits at which ranks stand before they have taken what is wanted of them."""
    done = dict.fromkeys(wanted, 0)
    for n in order:
        done[u.events[n].rank] += 1
    return [u.by_rank[r][done[r]] for r in sorted(wanted) if done[r] < wanted[r]]


def reach(graph: Graph, without: int) -> tuple[list[int], list[int]]:
    """Return the longest run in which an event never happens: its events in order, and how many of each rank.

    With counters that only grow for their waits, every run without the event is a part of this one.
    """
    found = graph.reached.get(without)
    if found is None:
        u = graph.u
        limits = {r: len(numbers) for r, numbers in enumerate(u.by_rank)}
        limits[u.events[without].rank] = u.position[without]
        order = arranged(u, limits)
        counts = [0] * u.setting.ranks
        for n in order:
            counts[u.events[n].rank] += 1
        found = graph.reached[without] = order, counts
    return found


def possible(graph: Graph, first: int, second: int) -> bool:
    """Return whether ``second`` can happen before ``first``.

    The clocks know it where every cell has one producer. With several, they may miss an order that holds whichever of
    the credits come first; there the longest run without ``first`` decides.
    """
    if graph.before(first, second):
        return False
    if not graph.shared:
        return True
    return reach(graph, first)[1][graph.u.events[second].rank] > graph.u.position[second]
