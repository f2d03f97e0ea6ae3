"""Witnesses: the first choices of a run that shows a fault, and their replay in the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.diagnostics import TileggError
from ...ir.program import Program
from ...ir.ranks import Choice, RankResult, format_schedule, run_ranks
from ...ir.ranks_events import Event
from .arrange import arranged, blocked, reach, standing
from .cells import Graph
from .report import Expect, SignalFinding, Step, Witness
from .settings import inputs_for
from .unroll import Unrolled, schedule_of

_NO_STEP = ("deliver", "finish")


def witness_of(graph: Graph, wanted: Mapping[int, int], expect: Expect, without: int | None = None) -> Witness:
    """Return the witness that takes the first ``wanted[r]`` steps of each rank.

    Where these do not suffice because a cell has several producers, more steps are added, but not event ``without``;
    where no such steps are known, the whole run is taken.
    """
    u = graph.u
    loose = any(use.outside for use in graph.uses.values())
    choices = None if loose and expect.kind == "stuck" else _choices(graph, dict(wanted), without)
    if choices is None:
        choices = [c for _, cs in u.choices for c in cs]
    return Witness(u.setting, format_schedule(choices), expect)


def _choices(graph: Graph, wanted: dict[int, int], without: int | None) -> list[Choice] | None:
    u = graph.u
    order = [n for n, e in enumerate(u.events) if u.position[n] < wanted.get(e.rank, 0)]
    if blocked(u, order) is None:
        return schedule_of(u, wanted)
    for _ in range(64):
        order = arranged(u, wanted)
        stopped = standing(u, wanted, order)
        if not stopped:
            return _choices_of(u, order)
        more = _producer(graph, stopped[0], wanted, without)
        if more is None:
            return _longer(graph, wanted, without)
        for rank, count in graph.past((more,)).items():
            wanted[rank] = max(wanted.get(rank, 0), count)
    return None


def _longer(graph: Graph, wanted: Mapping[int, int], without: int | None) -> list[Choice] | None:
    """Return a run as far as it goes without an event, up to where the wanted steps are taken."""
    u = graph.u
    if without is None:
        return None
    left = {r: count for r, count in wanted.items() if count}
    out: list[int] = []
    for n in reach(graph, without)[0]:
        out.append(n)
        rank = u.events[n].rank
        if left.get(rank) == u.position[n] + 1:
            del left[rank]
            if not left:
                return _choices_of(u, out)
    return None


def _producer(graph: Graph, wait: int, wanted: Mapping[int, int], without: int | None) -> int | None:
    """Return a further credit for a wait that needs no event the witness must do without."""
    u = graph.u
    use = graph.uses.get(u.events[wait].cell) if u.events[wait].cell is not None else None  # type: ignore[arg-type]
    if use is None:
        return None
    for n in use.adds:
        fresh = u.position[n] >= wanted.get(u.events[n].rank, 0) and not graph.before(wait, n)
        if fresh and (without is None or (n != without and not graph.before(without, n))):
            return n
    return None


def _choices_of(u: Unrolled, order: Sequence[int]) -> list[Choice]:
    """Return the choices of steps in a given order, each with the deliveries that followed it in the run."""
    lanes: dict[int, list[tuple[Choice, ...]]] = {}
    for rank, choices in u.choices:
        lanes.setdefault(rank, []).append(choices)
    return [c for n in order for c in lanes[u.events[n].rank][u.position[n]]]


@dataclass(frozen=True)
class Replay:
    """A replayed witness: whether it shows the fault, and the run."""

    shows: bool
    result: RankResult | None


def replay(program: Program, finding: SignalFinding) -> Replay:
    """Run a finding's witness in the simulator and tell whether the fault is seen."""
    w = finding.witness
    if w is None:
        return Replay(False, None)
    f = program.function(w.setting.function)
    try:
        result = run_ranks(
            program, w.setting.ranks, inputs_for(f, w.setting), schedule=w.schedule, function=f.name,
            dims=dict(w.setting.dims), memory=w.memory, trace=True, undefined="allow", calls=w.setting.calls,
            descending=w.setting.descending,
        )  # fmt: skip
    except TileggError:
        return Replay(False, None)
    return Replay(_shows(w.expect, result), result)


def _shows(expect: Expect, result: RankResult) -> bool:
    match expect.kind:
        case "stuck":
            return any(f.kind == "deadlock" and set(expect.ranks) <= set(f.ranks) for f in result.findings)
        case "fault":
            return any(f.kind == "fault" for f in result.findings)
        case "left":
            return result.ok and _left(expect, result)
    steps = _steps(result)
    first, second = _event(steps, expect.first), _event(steps, expect.second)
    if first is None:
        return False
    if expect.kind == "reached":
        return True
    if second is None:
        return expect.kind == "order"
    if expect.kind == "order":
        return first.number < second.number
    seen = [e.number for e in result.trace if e.kind == "deliver" and e.value == first.number]
    return not seen or min(seen) > second.number


def _left(expect: Expect, result: RankResult) -> bool:
    if expect.cell is None:
        return False
    window, owner, number = expect.cell
    return bool(np.asarray(result.windows[window][owner]).reshape(-1)[number] != 0)


def _steps(result: RankResult) -> list[list[Event]]:
    out: list[list[Event]] = [[] for _ in range(result.ranks)]
    for e in result.trace:
        if e.kind not in _NO_STEP:
            out[e.rank].append(e)
    return out


def _event(steps: list[list[Event]], step: Step | None) -> Event | None:
    if step is None or step[1] >= len(steps[step[0]]):
        return None
    return steps[step[0]][step[1]]
