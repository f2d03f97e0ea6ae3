"""The state of a run of several ranks, and the loop that lets a schedule drive it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .diagnostics import TileggError, error
from .interp_eval import MEANING_ERRORS
from .program import Op
from .ranks_cache import ScalarCache
from .ranks_events import Choice, Event, Finding
from .ranks_flow import Rank, Request
from .ranks_memory import Cell, Memory, Region, View, Write, flush_order
from .ranks_schedule import Schedule
from .tilearray import Arr

#: Performs a request and returns the value of the statement.
Perform = Callable[["World", int, Request], Any]
#: Called when a rank arrives at a request; may give it a condition.
Arrive = Callable[["World", int, Request], None]

#: How writes become visible: ``"released"``: a notify releases all earlier writes of its rank, as the emitter's fences
#: make it; ``"fenced"``: only the program's own cacheinvalid and fence markers do.
MEMORY_MODELS = ("released", "fenced")
_MAX_FINDINGS = 32
_FAILURES = (TileggError, *MEANING_ERRORS)
_WAITS = ("pld.system.wait", "pld.system.defer_wait")


class World:
    """Ranks, windows, writes on their way, and what has happened so far."""

    def __init__(
        self, memory: Memory, programs: Sequence[Rank], *, model: str, trace: bool, undefined: str = "report"
    ) -> None:
        if undefined not in ("report", "allow"):
            raise error("TG040", f"unknown treatment of undefined reads {undefined!r}", hint="known: report, allow")
        if model not in MEMORY_MODELS:
            raise error("TG040", f"unknown memory model {model!r}", hint=f"known: {', '.join(MEMORY_MODELS)}")
        n = memory.ranks
        self.memory, self.programs, self.fenced = memory, programs, model == "fenced"
        self.ranks = n
        self.strict = undefined == "report"
        self.requests: list[Request | None] = [None] * n
        self.results: list[tuple[Any, ...]] = [()] * n
        self.runnable = [False] * n
        #: Whether other ranks can go on than at the last choice.
        self._changed = True
        self.pending: list[dict[int, Write]] = [{} for _ in range(n)]
        self.issued = [0] * n
        self.caches = [ScalarCache() for _ in range(n)]
        self.moved: dict[tuple[int, int], int] = {}
        self.findings: list[Finding] = []
        self.log: list[Choice] = []
        self.trace: list[Event] | None = [] if trace else None
        #: Ranks that have arrived at a collective, by its key, and how often each rank has called it.
        self.arrived: dict[Any, list[Request | None]] = {}
        self.calls: dict[Any, int] = {}
        self.faulty = False

    # -- running -----------------------------------------------------------------------------------------

    def run(self, schedule: Schedule, perform: dict[str, Perform], arrive: dict[str, Arrive], other: Perform) -> None:
        """Run until every rank has finished, none can go on, or a statement fails."""
        self._perform, self._arrive, self._other = perform, arrive, other
        runnable, pending, n, log = self.runnable, self.pending, range(self.ranks), self.log
        ready: list[int] = []
        with np.errstate(all="ignore"):
            for rank in n:
                self._advance(rank, None)
            while not self.faulty:
                if self._changed:
                    ready, self._changed = [r for r in n if runnable[r]], False
                if not ready and not any(pending):
                    break
                choice = schedule.choose(ready, pending)
                log.append(choice)
                if isinstance(choice, int):
                    self._step(choice)
                else:
                    self.deliver(pending[choice[0]][choice[1]])
        if not self.faulty and any(r is not None for r in self.requests):
            self._deadlock()

    def _step(self, rank: int) -> None:
        request = self.requests[rank]
        assert request is not None
        try:
            value = self._perform.get(request.plan.name, self._other)(self, rank, request)
        except _FAILURES as problem:
            self._fault(rank, request.plan.statement, problem)
            return
        self._advance(rank, value)

    def _advance(self, rank: int, value: Any) -> None:
        """Let a rank run on to its next request."""
        try:
            request = self.programs[rank].send(value)
        except StopIteration as end:
            self.requests[rank] = None
            self._allow(rank, False)
            self.results[rank] = end.value if isinstance(end.value, tuple) else ()
            self.note(rank, "finish", None)
            return
        except _FAILURES as problem:
            self._fault(rank, None, problem)
            return
        self.requests[rank] = request
        arrive = self._arrive.get(request.plan.name)
        if arrive is not None:
            try:
                arrive(self, rank, request)
            except _FAILURES as problem:
                self._fault(rank, request.plan.statement, problem)
                return
        now = request.ready is None or request.ready()
        if now is not self.runnable[rank]:
            self._allow(rank, now)

    def _allow(self, rank: int, now: bool) -> None:
        self.runnable[rank], self._changed = now, True

    def touch(self, rank: int) -> None:
        """The memory of a rank has changed: see whether what it waits for holds now."""
        request = self.requests[rank]
        if request is not None and request.ready is not None:
            now = request.ready()
            if now is not self.runnable[rank]:
                self._allow(rank, now)

    # -- findings ----------------------------------------------------------------------------------------

    def report(
        self,
        kind: str,
        message: str,
        ranks: Sequence[int],
        statements: Sequence[Op],
        cells: Sequence[Cell] = (),
        code: str = "",
        notes: Sequence[str] = (),
    ) -> None:
        """Note a finding with the schedule that leads to it; the same one is noted once."""
        if len(self.findings) >= _MAX_FINDINGS:
            return
        for f in self.findings:
            if (f.kind, f.ranks) == (kind, tuple(ranks)) and list(map(id, f.statements)) == list(map(id, statements)):
                return
        schedule = tuple(self.log)
        self.findings.append(
            Finding(kind, message, tuple(ranks), tuple(statements), tuple(cells), schedule, code, tuple(notes))
        )

    def _fault(self, rank: int, statement: Op | None, problem: Exception) -> None:
        if not isinstance(problem, TileggError):
            what = statement.name if statement is not None else "a statement"
            problem = error("TG032", f"{what} cannot be evaluated on these operands", reason=str(problem)[:200])
        first = problem.diagnostics[0]
        notes = tuple(t for t in (first.reason, first.hint) if t)
        if statement is None and first.span is not None:
            statement = Op("", (), {}, (), first.span)
        where = (statement,) if statement is not None else ()
        self.report("fault", f"rank {rank}: {first.message}", (rank,), where, (), first.code, notes)
        self.faulty = True

    def _deadlock(self) -> None:
        stuck = [(r, q) for r, q in enumerate(self.requests) if q is not None]
        notes = [f"rank {r}: {self._why(q)}" for r, q in stuck]
        finished = [r for r, q in enumerate(self.requests) if q is None]
        if finished:
            notes.append(f"finished: rank {', '.join(map(str, finished))}")
        cells = [self.cell_of(q) for _, q in stuck if q.plan.name in _WAITS]
        who = ", ".join(f"rank {r}" for r, _ in stuck)
        message = f"no rank can go on: {who} {'wait' if len(stuck) > 1 else 'waits'} forever"
        self.report("deadlock", message, [r for r, _ in stuck], [q.plan.statement for _, q in stuck], cells, "", notes)

    def _why(self, q: Request) -> str:
        s = q.plan.statement
        if q.plan.name not in _WAITS:
            return f"is at {s.name}, which not every rank reaches"
        cell, found = self.cell_of(q), self.cell_value(q)
        sign = "==" if q.plan.attrs["cmp"] == "eq" else ">="
        return f"waits for {cell} {sign} {q.values[2]}, which holds {found}"

    # -- signal cells ------------------------------------------------------------------------------------

    def cell_of(self, request: Request) -> Cell:
        """Return the cell a wait looks at."""
        view = self.memory.view(request.values[0])
        return view.cell(view.rank, request.values[1])

    def cell_value(self, request: Request) -> int:
        """Return what the cell of a wait holds."""
        return int(request.values[0].item(request.values[1]))

    # -- memory ------------------------------------------------------------------------------------------

    def note(self, rank: int, kind: str, statement: Op | None, **fields: Any) -> None:
        """Add an event to the trace."""
        if self.trace is not None:
            self.trace.append(Event(len(self.trace), rank, kind, statement, **fields))

    def read(self, rank: int, request: Request, view: View, owner: int, index: Any) -> tuple[Arr, Region]:
        """Return the elements that ``rank`` reads from the slice of ``owner`` now, and where they lie.

        The rank's own earlier writes to them are made visible first. Undefined elements are reported.
        """
        part = view.peer(owner)[index]
        region = view.region(owner, part)
        if self.pending[rank]:
            self.settle(rank, region)
        if self.strict and not view.window.complete[owner] and not view.mask(owner)[index].all():
            where = f"{region.window} on rank {owner}"
            self.report(
                "undefined read", f"rank {rank} reads undefined elements of {where}", (rank,), (request.plan.statement,)
            )
        if owner != rank:
            self._count(rank, owner, region.nbytes)
        return part, region

    def write(
        self, rank: int, view: View, owner: int, index: Any, data: Arr, add: bool = False
    ) -> Region:
        """Issue a write of ``rank`` to the slice of ``owner``; it becomes visible later."""
        part = view.peer(owner)[index]
        region = view.region(owner, part)
        if part.shape != data.shape:
            data = data.reshape(part.shape)
        event = len(self.trace) if self.trace is not None else 0
        self.issued[rank] += 1
        write = Write(rank, self.issued[rank], region, part, view.mask(owner)[index], data.copy(), add, event)
        self.pending[rank][write.number] = write
        if owner != rank:
            self._count(rank, owner, region.nbytes)
        return region

    def write_element(self, rank: int, view: View, owner: int, index: tuple[int, ...], value: Any) -> Region:
        """Issue a scalar store under the fenced model: its whole cache line goes to memory later."""
        self.issued[rank] += 1
        write = self.caches[rank].write(view, owner, index, value, rank, self.issued[rank])
        write.event = len(self.trace) if self.trace is not None else 0
        self.pending[rank][write.number] = write
        return view.region(owner, view.peer(owner)[tuple(slice(i, i + 1) for i in index)])

    def _count(self, rank: int, owner: int, nbytes: int) -> None:
        self.moved[rank, owner] = self.moved.get((rank, owner), 0) + nbytes

    def deliver(self, wanted: Write) -> None:
        """Make a write visible, after the earlier ones of its rank that it overlaps."""
        writes = self.pending[wanted.source]
        for write in flush_order(writes.values(), wanted):
            del writes[write.number]
            write.apply()
            self.note(write.source, "deliver", None, writes=(write.region,), value=write.event)
            self.touch(write.region.owner)

    def settle(self, rank: int, region: Region) -> None:
        """Make the rank's own writes to a region visible, because it reads them back."""
        for write in list(self.pending[rank].values()):
            if write.number in self.pending[rank] and write.region.overlaps(region):
                self.deliver(write)

    def flush(self, rank: int, released: bool = False) -> None:
        """Make all writes of a rank visible (``released``: only those that were cleaned from its cache)."""
        writes = self.pending[rank]
        for number in list(writes):
            if number in writes and (not released or writes[number].released):
                self.deliver(writes[number])

    def array_region(self, array: Any) -> Region | None:
        """Return where an array of the interpreter lies, if that is in a window."""
        if not self.memory.holds(array):
            return None
        view = self.memory.view(array)
        return view.region(view.rank, array)
