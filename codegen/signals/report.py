"""What a signal check says: findings with witnesses, and the certificate of a clean program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.diagnostics import Diagnostic, Span, TileggError
from ...ir.program import Op
from .classes import CLASSES


@dataclass(frozen=True)
class Setting:
    """Of what a run is made: function, number of ranks, values of dynamic sizes, number of the input sample.

    ``calls``: how often every rank calls the function, without anything in between. ``descending``: the blocks of a
    rank run from the last to the first.
    """

    function: str
    ranks: int
    dims: tuple[tuple[str, int], ...] = ()
    sample: int = 0
    calls: int = 1
    descending: bool = False


#: The ``k``-th event of a rank, counted from 0.
Step = tuple[int, int]


@dataclass(frozen=True)
class Expect:
    """What must be seen when a witness is replayed.

    ``kind``: ``"stuck"``: the ranks in ``ranks`` never finish; ``"order"``: step ``first`` happens before ``second``,
    or ``second`` never; ``"reached"``: step ``first`` happens; ``"left"``: ``cell`` is not zero at the end;
    ``"fault"``: a statement fails; ``"hidden"``: step ``second`` happens while what ``first`` wrote is not visible.
    """

    kind: str
    ranks: tuple[int, ...] = ()
    first: Step | None = None
    second: Step | None = None
    cell: tuple[str, int, int] | None = None


@dataclass(frozen=True)
class Witness:
    """A run that shows a fault: the setting, the first choices (fair turns follow), the memory model."""

    setting: Setting
    schedule: str
    expect: Expect
    memory: str = "released"

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        s = self.setting
        return {
            "function": s.function, "ranks": s.ranks, "dims": dict(s.dims), "sample": s.sample, "calls": s.calls,
            "memory": self.memory, "schedule": self.schedule, "shows": self.expect.kind,
            **({"blocks": "descending"} if s.descending else {}),
        }  # fmt: skip


@dataclass(frozen=True)
class SignalFinding:
    """One fault: its class, the ranks, cells and statements it concerns (the first statement is to blame).

    ``notes`` name the other statements and the path that is missing. ``spans`` overrides the statements' places where
    control flow is to blame. ``certain``: of an ``unchecked`` one, that the statement fails whatever the inputs, on
    every number of ranks that was looked at.
    """

    word: str
    message: str
    setting: Setting
    ranks: tuple[int, ...] = ()
    cells: tuple[str, ...] = ()
    statements: tuple[Op, ...] = ()
    reason: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    witness: Witness | None = None
    certain: bool = False

    @property
    def wrong(self) -> bool:
        """True for a fault of the program; else it could not be checked, and nothing is known to be wrong."""
        return self.word != "unchecked" or self.certain

    @property
    def code(self) -> str:
        """The diagnostic code."""
        return CLASSES[self.word].code

    def places(self) -> tuple[Span, ...]:
        """Return the source places, the one to blame first, each once."""
        found = (*self.spans, *(s.span for s in self.statements if s.span is not None))
        return tuple(dict.fromkeys(found))

    def diagnostic(self) -> Diagnostic:
        """Return the finding as a diagnostic at its first place, a warning where nothing is known to be wrong."""
        places = self.places()
        notes = list(self.notes)
        notes += [f"also {p}" for p in places[1:4]]
        if self.witness is not None:
            w = self.witness
            schedule = w.schedule if len(w.schedule) <= 300 else w.schedule[:300] + " ..."
            twice = f", {w.setting.calls} calls" if w.setting.calls > 1 else ""
            twice += ", blocks in descending order" if w.setting.descending else ""
            notes.append(f"witness on {w.setting.ranks} ranks{twice}: {schedule or 'any schedule'}")
        return Diagnostic(
            self.code, self.message, places[0] if places else None, self.reason, self.hint, notes=tuple(notes),
            severity="error" if self.wrong else "warning",
        )

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "code": self.code, "class": self.word, "severity": "error", "message": self.message, "reason": self.reason,
            "hint": self.hint, "ranks": list(self.ranks), "cells": list(self.cells),
            "spans": [s._asdict() for s in self.places()], "notes": list(self.notes),
            "witness": None if self.witness is None else self.witness.to_json(),
        }  # fmt: skip


@dataclass(frozen=True)
class Checked:
    """What was checked of one setting: how many events, waits, cells and pairs, and how the answer was reached."""

    setting: Setting
    events: int
    waits: int
    cells: int
    accesses: int
    method: str

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object."""
        s = self.setting
        return {
            "function": s.function, "ranks": s.ranks, "dims": dict(s.dims), "sample": s.sample, "calls": s.calls,
            "events": self.events, "waits": self.waits, "cells": self.cells, "accesses": self.accesses,
            "method": self.method,
        }  # fmt: skip


@dataclass(frozen=True)
class SignalReport:
    """The findings of a program and what was checked; ``limits`` say what the answer does not cover.

    ``assumptions``: what must hold when the program starts.
    """

    findings: tuple[SignalFinding, ...]
    checked: tuple[Checked, ...] = ()
    limits: tuple[str, ...] = field(default=())
    assumptions: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when nothing was found."""
        return not self.findings

    @property
    def proved(self) -> bool:
        """True when every setting lies in the class that one run decides, and nothing limits the answer."""
        return self.ok and not self.limits and all(c.method == "decided" for c in self.checked)

    def certificate(self) -> dict[str, Any] | None:
        """Return what a clean program has been shown to satisfy, ``None`` when there are findings."""
        if not self.ok:
            return None
        return {
            "ranks": sorted({c.setting.ranks for c in self.checked}),
            "verdict": "decided" if self.proved else "checked up to the stated limits",
            "settings": [c.to_json() for c in self.checked],
            "limits": list(self.limits),
            "assumptions": list(self.assumptions),
        }

    def diagnostics(self) -> list[Diagnostic]:
        """Return the findings as diagnostics."""
        return [f.diagnostic() for f in self.findings]

    def require(self) -> SignalReport:
        """Return the report itself; raises a :class:`TileggError` with the findings when there are some."""
        if self.findings:
            raise TileggError(*self.diagnostics())
        return self


def by_word(findings: Sequence[SignalFinding], word: str) -> Iterator[SignalFinding]:
    """Yield the findings of one class."""
    return (f for f in findings if f.word == word)
