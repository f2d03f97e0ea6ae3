"""Rank programs unrolled into events: by one run of the simulator, or past its waits when that run does not end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.diagnostics import error
from ...ir.program import Op, Program
from ...ir.ranks import prepare
from ...ir.ranks_events import Choice, Event, Finding
from ...ir.ranks_flow import Request
from ...ir.ranks_memory import Cell
from ...ir.ranks_ops import ARRIVE, OTHER, PERFORM
from ...ir.ranks_schedule import Pending, Schedule
from ...ir.ranks_world import World
from .report import Setting
from .settings import inputs_for

#: Events one setting may have, over all ranks.
MAX_EVENTS = 400_000
#: Steps a rank takes before another one gets its turn.
_RUN = 1000
_NO_STEP = ("deliver", "finish")
_WAITS = ("pld.system.wait", "pld.system.defer_wait")


@dataclass(frozen=True)
class Stuck:
    """A rank that does not go on: its statement and, at a wait, the cell, the comparison and the value."""

    rank: int
    statement: Op
    cell: Cell | None = None
    word: str = ""
    value: int = 0


@dataclass
class Unrolled:
    """The events of a run in the order they happened, without deliveries.

    ``by_rank`` holds their numbers rank by rank; ``position`` each event's place in its rank. ``choices`` are the
    schedule: for each step the choices that belong to it. ``left`` is what the signal windows hold at the end.
    """

    setting: Setting
    events: list[Event]
    by_rank: list[list[int]]
    position: list[int]
    choices: list[tuple[int, tuple[Choice, ...]]]
    finished: bool
    stuck: list[Stuck] = field(default_factory=list)
    faults: list[Finding] = field(default_factory=list)
    left: dict[Cell, int] = field(default_factory=dict)
    #: Windows that some statement notifies or waits for.
    signals: frozenset[str] = frozenset()

    def step(self, number: int) -> tuple[int, int]:
        """Return an event as rank and position."""
        return self.events[number].rank, self.position[number]


class _Turns:
    """Runs a rank as far as it can go, then the next; writes are visible at once. Gives up after ``limit`` choices."""

    name = "turns"

    def __init__(self, limit: int) -> None:
        self.limit, self.left, self._last, self._run = limit, limit, 0, 0

    def choose(self, ready: Sequence[int], pending: Pending) -> Choice:
        """Return the last rank's oldest write, else that rank, else the first one; raises TG026 at the limit."""
        self.left -= 1
        if self.left < 0:
            raise error("TG026", f"the program has more than {self.limit} events", hint="check fewer ranks or sizes")
        writes = pending[self._last]
        if writes:
            return self._last, next(iter(writes))
        self._run += 1
        if self._last not in ready or self._run > _RUN:
            # A rank that polls a cell would never stop by itself.
            self._last, self._run = next((r for r in ready if r > self._last), ready[0]), 0
        return self._last


class _Budget:
    """A schedule that gives up after a number of choices."""

    def __init__(self, inner: Schedule, limit: int) -> None:
        self.inner, self.name, self.left, self.limit = inner, inner.name, limit, limit

    def choose(self, ready: Sequence[int], pending: Pending) -> Choice:
        """Return the choice of the inner schedule; raises TG026 when too many have been made."""
        self.left -= 1
        if self.left < 0:
            raise error("TG026", f"the program has more than {self.limit} events", hint="check fewer ranks or sizes")
        return self.inner.choose(ready, pending)


def unroll(
    program: Program, setting: Setting, *, schedule: Schedule | None = None, relaxed: bool = False,
    budget: int = MAX_EVENTS,
) -> Unrolled:  # fmt: skip
    """Return the events of a run under ``schedule`` (default: rank by rank).

    ``relaxed``: no wait blocks and no rank waits at a collective, so that all statements of all ranks are seen; the
    order between ranks then means nothing. Raises TG026 beyond the budget, and what preparing the run raises.
    """
    f = program.function(setting.function)
    world, _ = prepare(
        program, setting.ranks, inputs_for(f, setting), function=f.name, dims=dict(setting.dims), trace=True,
        undefined="allow", calls=setting.calls, descending=setting.descending,
    )  # fmt: skip
    limited = _Turns(2 * budget) if schedule is None else _Budget(schedule, 2 * budget)
    if relaxed:
        world.run(limited, {**PERFORM, **_PASSED}, _RELAXED_ARRIVE, OTHER)
    else:
        world.run(limited, PERFORM, ARRIVE, OTHER)
    return _collect(world, setting)


def _passed(world: World, rank: int, request: Request) -> Any:
    """A collective that nobody meets at: an event without accesses."""
    world.note(rank, "collective", request.plan.statement)
    return PERFORM[request.plan.name](world, rank, request)


_COLLECTIVES = tuple(name for name in ARRIVE if name not in _WAITS)
_PASSED = dict.fromkeys(_COLLECTIVES, _passed)
_RELAXED_ARRIVE: dict[str, Any] = {}


def _collect(world: World, setting: Setting) -> Unrolled:
    events = [e for e in world.trace or () if e.kind not in _NO_STEP]
    by_rank: list[list[int]] = [[] for _ in range(world.ranks)]
    position: list[int] = []
    for i, e in enumerate(events):
        position.append(len(by_rank[e.rank]))
        by_rank[e.rank].append(i)
    stuck = [_stuck(world, r, q) for r, q in enumerate(world.requests) if q is not None]
    faults = [f for f in world.findings if f.kind == "fault"]
    signals = frozenset(e.cell.window for e in events if e.cell is not None)
    signals |= {s.cell.window for s in stuck if s.cell is not None}
    return Unrolled(
        setting, events, by_rank, position, steps_of(world.log), not stuck and not faults,
        stuck if not faults else [], faults, _left(world, signals), signals,
    )  # fmt: skip


def _left(world: World, signals: frozenset[str]) -> dict[Cell, int]:
    out: dict[Cell, int] = {}
    for name in sorted(signals):
        window = world.memory.windows.get(name)
        if window is None:
            continue
        words = window.data.view("<i4").reshape(window.ranks, -1)
        for rank, number in zip(*words.nonzero()):
            out[Cell(name, int(rank), int(number))] = int(words[rank, number])
    return out


def _stuck(world: World, rank: int, q: Request) -> Stuck:
    if q.plan.name not in _WAITS:
        return Stuck(rank, q.plan.statement)
    word = str(q.plan.attrs.get("cmp", "ge"))
    return Stuck(rank, q.plan.statement, world.cell_of(q), word, int(q.values[2]))


def steps_of(log: Sequence[Choice]) -> list[tuple[int, tuple[Choice, ...]]]:
    """Return a schedule cut into steps: the rank of each, and its choices (the step, then the deliveries after it)."""
    out: list[tuple[int, tuple[Choice, ...]]] = []
    for c in log:
        if isinstance(c, int):
            out.append((c, (c,)))
        elif out:
            rank, choices = out[-1]
            out[-1] = rank, (*choices, c)
    return out


def schedule_of(u: Unrolled, wanted: Mapping[int, int]) -> list[Choice]:
    """Return the choices of the first ``wanted[r]`` steps of each rank ``r``, in the order of the run."""
    done = [0] * u.setting.ranks
    out: list[Choice] = []
    for rank, choices in u.choices:
        if done[rank] < wanted.get(rank, 0):
            out += choices
        done[rank] += 1
    return out
