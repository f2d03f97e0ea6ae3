"""What a run of several ranks leaves behind: events, findings, results, and schedules as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from .diagnostics import Diagnostic, Span, TileggError, error
from .program import Op
from .ranks_memory import Cell, Region
from .tilearray import Arr

#: One step of a schedule: a rank goes on to its next event, or ``(rank, k)``: its ``k``-th write becomes visible.
Choice = int | tuple[int, int]

#: Codes of the kinds of findings.
FINDING_CODES = {"deadlock": "TG051", "undefined read": "TG052", "fault": "TG032"}


@dataclass(slots=True)
class Event:
    """One event of a run, in the order of ``number``.

    ``kind``: load, store, put, get, notify, wait, defer, fence, invalidate, collective, deliver or finish.
    ``reads`` and ``writes`` are the window regions touched. For notify and wait: ``cell``, ``value`` (added, set or
    expected), ``word`` (``"atomic_add"``, ``"set"``, ``"ge"``, ``"eq"``) and ``seen``, what the cell held after the
    notify or when the wait went on. A deliver event carries in ``value`` the number of the event that issued the write.
    """

    number: int
    rank: int
    kind: str
    statement: Op | None
    reads: tuple[Region, ...] = ()
    writes: tuple[Region, ...] = ()
    cell: Cell | None = None
    value: int | None = None
    word: str = ""
    seen: int | None = None

    @property
    def span(self) -> Span | None:
        """Where the statement stands."""
        return self.statement.span if self.statement is not None else None

    def __str__(self) -> str:
        what = f" {self.cell}" if self.cell is not None else ""
        if self.value is not None:
            what += f" {self.word} {self.value}".replace("  ", " ")
        what += "".join(f" reads {r}" for r in self.reads) + "".join(f" writes {w}" for w in self.writes)
        return f"{self.number}: rank {self.rank} {self.kind}{what}"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong in a run: ``kind`` is deadlock, undefined read or fault.

    ``schedule`` is the choices up to the finding: replaying them shows it again.
    """

    kind: str
    message: str
    ranks: tuple[int, ...]
    statements: tuple[Op, ...] = ()
    cells: tuple[Cell, ...] = ()
    schedule: tuple[Choice, ...] = ()
    code: str = ""
    notes: tuple[str, ...] = ()

    def diagnostic(self) -> Diagnostic:
        """Return the finding as a diagnostic at its first statement."""
        span = next((s.span for s in self.statements if s.span is not None), None)
        code = self.code or FINDING_CODES[self.kind]
        reason = f"schedule: {format_schedule(self.schedule)}"
        return Diagnostic(code, self.message, span, reason, notes=self.notes)


@dataclass(frozen=True)
class RankResult:
    """The end of a run.

    ``outputs``: per rank, as :func:`tilegg.ir.interp.run` gives them, windows aside. ``windows``: per window the final
    slice of each rank; ``known``: which of their elements are defined. ``signals``: the windows used as signals.
    ``moved``: bytes read from, or written to, the slice of another rank, by (acting rank, owner). ``schedule``: all
    choices made, to be replayed. ``steps``: how many.
    """

    ranks: int
    outputs: tuple[dict[str, Any], ...]
    windows: dict[str, tuple[Arr, ...]]
    known: dict[str, tuple[Arr, ...]]
    signals: dict[str, tuple[Arr, ...]]
    findings: tuple[Finding, ...]
    schedule: tuple[Choice, ...]
    trace: tuple[Event, ...] = ()
    moved: dict[tuple[int, int], int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True when all ranks finished and nothing was found."""
        return not self.findings

    @property
    def steps(self) -> int:
        """The number of choices made."""
        return len(self.schedule)

    def check(self) -> RankResult:
        """Return the result itself; raises a :class:`TileggError` with the findings when there are some."""
        if self.findings:
            raise TileggError(*(f.diagnostic() for f in self.findings))
        return self

    def clear_signals(self) -> bool:
        """Return whether every signal cell is zero again."""
        return not any(bool(a.any()) for slices in self.signals.values() for a in slices)


def format_schedule(schedule: Sequence[Choice]) -> str:
    """Return a schedule as text: ``0 1 1!3`` is a step of rank 0, one of rank 1, and the latter's third write."""
    return " ".join(str(c) if isinstance(c, int) else f"{c[0]}!{c[1]}" for c in schedule)


def parse_schedule(text: str) -> tuple[Choice, ...]:
    """Return the schedule a text stands for; raises TG040."""
    out: list[Choice] = []
    for word in text.split():
        rank, mark, number = word.partition("!")
        if not rank.isdigit() or (mark and not number.isdigit()):
            raise error("TG040", f"{word[:40]!r} is no step of a schedule", hint="write 0, or 1!3 for a delivery")
        out.append((int(rank), int(number)) if mark else int(rank))
    return tuple(out)
