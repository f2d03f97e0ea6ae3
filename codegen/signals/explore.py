"""Cells that one run does not decide: their schedules are searched, others' steps are taken at once.

The search runs over the signals alone. Steps on counters commute with everything (a wait that holds keeps holding), so
they are taken as soon as they are possible; only steps on undecided cells make the search branch. States are kept, so
that two orders with one outcome are followed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...ir.ranks_memory import Cell
from .cells import Graph
from .unroll import Unrolled

#: States a search may visit.
MAX_STATES = 20_000


@dataclass(frozen=True)
class Outcome:
    """How a search ended: states seen, whether all of them, and bad ends as the steps there and what is wrong."""

    states: int
    complete: bool
    hung: tuple[list[int], dict[int, int]] | None
    left: tuple[list[int], dict[Cell, int]] | None


@dataclass
class _State:
    at: list[int]
    cells: dict[Cell, int]
    #: The last event taken and the path before it.
    path: Any


def search(graph: Graph, limit: int = MAX_STATES) -> Outcome:
    """Search the schedules of a run's signal steps, depth first, up to ``limit`` states."""
    u = graph.u
    lanes = [[n for n in numbers if u.events[n].kind in ("notify", "wait", "collective")] for numbers in u.by_rank]
    loose = {cell for cell, use in graph.uses.items() if use.outside}
    checked = {cell for cell, use in graph.uses.items() if (use.waits or use.outside) and not use.deferred}
    seen: set[object] = set()
    stack = [_State([0] * u.setting.ranks, {}, None)]
    hung = left = None
    while stack and len(seen) < limit:
        state = stack.pop()
        _settle(u, lanes, loose, state)
        key = (tuple(state.at), tuple(sorted((c, v) for c, v in state.cells.items() if c in loose)))
        if key in seen:
            continue
        seen.add(key)
        branches = list(_branches(u, lanes, state))
        stack += [_step(u, lanes, state, r) for r in reversed(branches)]
        if branches:
            continue
        if any(at < len(lane) for at, lane in zip(state.at, lanes)):
            stuck = {r: lanes[r][at] for r, at in enumerate(state.at) if at < len(lanes[r])}
            hung = hung or (_unwound(state.path), stuck)
        else:
            over = {c: v for c, v in state.cells.items() if v and c in checked}
            left = left or ((_unwound(state.path), over) if over else None)
    return Outcome(len(seen), not stack, hung, left)


def _settle(u: Unrolled, lanes: list[list[int]], loose: set[Cell], state: _State) -> None:
    """Take every step that is possible and commutes with all others."""
    moved = True
    while moved:
        moved = False
        for r, lane in enumerate(lanes):
            while state.at[r] < len(lane):
                e = u.events[lane[state.at[r]]]
                if e.cell is None or e.cell in loose or not _possible(u, lane[state.at[r]], state):
                    break
                _take(u, lanes, state, r)
                moved = True
        moved = _meet(u, lanes, state) or moved


def _meet(u: Unrolled, lanes: list[list[int]], state: _State) -> bool:
    """Let all ranks pass a collective when all of them stand at one."""
    if any(at >= len(lane) or u.events[lane[at]].kind != "collective" for at, lane in zip(state.at, lanes)):
        return False
    for r in range(len(lanes)):
        state.at[r] += 1
    return True


def _possible(u: Unrolled, n: int, state: _State) -> bool:
    e = u.events[n]
    if e.kind != "wait" or e.cell is None:
        return e.kind != "collective"
    held = state.cells.get(e.cell, 0)
    return held == e.value if e.word == "eq" else held >= int(e.value or 0)


def _branches(u: Unrolled, lanes: list[list[int]], state: _State) -> Iterator[int]:
    for r, lane in enumerate(lanes):
        if state.at[r] < len(lane) and _possible(u, lane[state.at[r]], state):
            yield r


def _step(u: Unrolled, lanes: list[list[int]], state: _State, rank: int) -> _State:
    new = _State(state.at.copy(), dict(state.cells), state.path)
    _take(u, lanes, new, rank)
    return new


def _take(u: Unrolled, lanes: list[list[int]], state: _State, rank: int) -> None:
    n = lanes[rank][state.at[rank]]
    e = u.events[n]
    if e.kind == "notify" and e.cell is not None:
        value = int(e.value or 0)
        state.cells[e.cell] = value if e.word == "set" else state.cells.get(e.cell, 0) + value
    state.at[rank] += 1
    state.path = (n, state.path)


def _unwound(path: Any) -> list[int]:
    out = []
    while path is not None:
        n, path = path
        out.append(n)
    return out[::-1]


def choices_of(u: Unrolled, path: list[int]) -> list[int]:
    """Return the schedule that takes the signal steps of a path in its order, with the steps between them."""
    done = [0] * u.setting.ranks
    out: list[int] = []
    for n in path:
        rank = u.events[n].rank
        while done[rank] <= u.position[n]:
            out.append(rank)
            done[rank] += 1
    return out
