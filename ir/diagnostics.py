"""Source spans and coded diagnostics, rendered as text with a caret, JSON or SARIF.

Every problem tilegg reports is a :class:`Diagnostic` with a stable code (``TG0xx``); an operation that
cannot go on raises :class:`TileggError`, which carries one or more of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Severity = Literal["error", "warning", "remark"]

#: Every code the project can report, with its general meaning (the docs table is made from this).
CODES: dict[str, str] = {
    "TG001": "the text is not valid Python syntax",
    "TG002": "a statement or expression outside the language",
    "TG003": "unknown name",
    "TG004": "unknown dtype, round mode, memory space or other enumerated word",
    "TG005": "wrong number of operands, or an unknown or repeated keyword",
    "TG006": "an operand has the wrong kind",
    "TG007": "dtypes do not fit the operation",
    "TG008": "shapes or valid shapes do not fit the operation",
    "TG009": "a value is used before it is defined, or defined twice",
    "TG010": "annotation and inferred type disagree",
    "TG011": "a constant cannot be represented in its dtype",
    "TG012": "the input is too large or nested too deeply",
    "TG013": "the file cannot be read or written",
    "TG014": "a loop or branch does not yield what it must",
    "TG015": "an assignment drops a write to an output parameter",
    "TG016": "a name in a shape is not defined and was taken as a dynamic dimension",
    "TG017": "the tile already has a planned address",
    "TG018": "unknown operation, kept verbatim",
    "TG019": "a tile does not fit the target's local memory",
    "TG020": "the cast has no legal chain on the target",
    "TG021": "the cast has no exact chain on the target",
    "TG022": "the operation is not legal on the target",
    "TG023": "the operation cannot be written as assembly",
    "TG024": "the cast may round twice",
    "TG025": "the target ignores the requested round mode",
    "TG026": "a search stopped at its budget",
    "TG027": "the assembly text is malformed",
    "TG028": "the tiles of a function do not fit the target's local memory",
    "TG029": "the assembly has no form in the language",
    "TG030": "inputs do not fit the program's parameters",
    "TG031": "two programs differ",
    "TG032": "the interpreter cannot evaluate the operation",
    "TG033": "a program has too many inputs to try them all",
    "TG050": "a form of a distributed operation that is not supported here",
    "TG051": "no rank can go on: a deadlock",
    "TG052": "undefined window contents are read",
    "TG053": "a distributed operation stands at a level where it cannot run",
    "TG054": "what the cost model of communication has chosen",
    "TG055": "a SIMT operation outside a SIMT body",
    "TG056": "an operation that cannot run in a SIMT body",
    "TG057": "a function is used both as SIMT code and as ordinary code",
    "TG058": "an address space or cache policy that does not fit the memory operation",
    "TG059": "SIMT threads disagree where all must take part",
    "TG060": "a wait that no notify can satisfy",
    "TG061": "signal credits do not return to zero",
    "TG062": "a wait accepts a credit of an earlier use",
    "TG063": "Set and AtomicAdd on one signal cell",
    "TG064": "an equality wait on a counter",
    "TG065": "a wrong signal cell, or a signal of the wrong shape or dtype",
    "TG066": "ranks disagree on a barrier",
    "TG067": "conflicting window accesses without an order",
    "TG068": "a notify is issued before the data it releases",
    "TG069": "data is used before the wait for it",
    "TG070": "several ranks, or several cores of one, write one cache line",
    "TG071": "a deferred wait is misused",
    "TG072": "a signal counter does not fit INT32",
    "TG073": "a cache or fence marker is missing",
    "TG074": "the signals could not be checked",
    "TG075": "a cache or fence marker has nothing to do",
    "TG040": "unknown target, objective, contract or option value",
    "TG090": "an internal fault of tilegg",
}


class Span(NamedTuple):
    """A place in a source text: 1-based lines, 1-based columns, end exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One finding: what (``message``), where (``span``), why (``reason``) and what to do (``hint``)."""

    code: str
    message: str
    span: Span | None = None
    reason: str = ""
    hint: str = ""
    severity: Severity = "error"
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"undeclared diagnostic code {self.code}")

    def render(self, source: str | None = None, color: bool = False) -> str:
        """Return the text form; with the ``source`` text the line is shown with a caret."""
        paint = _ANSI[self.severity] if color else ""
        reset = "\x1b[0m" if color else ""
        where = f"{self.span}: " if self.span else ""
        lines = [f"{where}{paint}{self.severity}[{self.code}]{reset}: {self.message}"]
        lines += _caret_lines(self.span, source)
        lines += [f"  why: {self.reason}"] if self.reason else []
        lines += [f"  hint: {self.hint}"] if self.hint else []
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return the stable JSON object of this diagnostic."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": self.span.file if self.span else None,
            "line": self.span.line if self.span else None,
            "column": self.span.column if self.span else None,
            "reason": self.reason,
            "hint": self.hint,
            "notes": list(self.notes),
        }


_ANSI = {"error": "\x1b[1;31m", "warning": "\x1b[1;33m", "remark": "\x1b[1;36m"}


def _caret_lines(span: Span | None, source: str | None) -> list[str]:
    if span is None or source is None:
        return []
    # Python ends a line at LF, CR or both and nowhere else; str.splitlines knows more separators.
    rows = re.split("\r\n|\r|\n", source)
    if not 1 <= span.line <= len(rows):
        return []
    text = rows[span.line - 1].expandtabs(1)
    start = min(span.column, len(text) + 1)
    stop = span.end_column if span.end_line == span.line else len(text) + 1
    # Long lines are cut around the caret, so that a 10 MB line cannot flood the terminal.
    shift = max(0, start - 100)
    shown = text[shift : shift + 200]
    width = max(1, min(stop - start, 200 - (start - shift - 1)))
    return [f"  {shown}", "  " + " " * (start - shift - 1) + "^" * width]


class TileggError(Exception):
    """An operation that could not go on; ``diagnostics`` says why."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics: tuple[Diagnostic, ...] = diagnostics
        super().__init__("\n".join(d.render() for d in diagnostics))

    def __reduce__(self) -> tuple[type[TileggError], tuple[Diagnostic, ...]]:
        # Errors cross processes; the default would hand the text to the constructor.
        return type(self), self.diagnostics


def error(
    code: str, message: str, span: Span | None = None, *, reason: str = "", hint: str = ""
) -> TileggError:
    """Return a :class:`TileggError` with one diagnostic, to be raised by the caller."""
    return TileggError(Diagnostic(code, message, span, reason, hint))


def to_sarif(diagnostics: Iterable[Diagnostic], version: str) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log object of the diagnostics."""
    found: Sequence[Diagnostic] = list(diagnostics)
    used = sorted({d.code for d in found})
    driver = {
        "name": "tilegg",
        "version": version,
        "rules": [{"id": code, "shortDescription": {"text": CODES[code]}} for code in used],
    }
    results = [_sarif_result(d) for d in found]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }


def _sarif_result(d: Diagnostic) -> dict[str, Any]:
    text = ". ".join(part for part in (d.message, d.reason, d.hint) if part)
    result: dict[str, Any] = {
        "ruleId": d.code,
        "level": {"error": "error", "warning": "warning", "remark": "note"}[d.severity],
        "message": {"text": text},
    }
    if d.span is not None:
        region = {
            "startLine": d.span.line,
            "startColumn": d.span.column,
            "endLine": d.span.end_line,
            "endColumn": d.span.end_column,
        }
        location = {"artifactLocation": {"uri": d.span.file}, "region": region}
        result["locations"] = [{"physicalLocation": location}]
    return result
