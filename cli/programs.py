"""Reading programs for the verbs, with their remarks shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..ir.diagnostics import Diagnostic, Span, TileggError
from ..ir.program import Program
from .console import Console
from .files import read_text


def load(path: str, console: Console) -> Program:
    """Return the program of a file or of stdin (``-``), checked; its remarks go to stderr."""
    program, remarks = read(path, console)
    console.report(remarks)
    return program


def read(path: str, console: Console) -> tuple[Program, list[Diagnostic]]:
    """Return the program of a file or of stdin with its remarks; every diagnostic has a place in it."""
    from ..ir.text import parse_with_remarks

    text, name = read_text(path, console)
    try:
        return parse_with_remarks(text, name)
    except TileggError as problem:
        start = Span(name, 1, 1, 1, 1)
        placed = [replace(d, span=d.span or start) for d in problem.diagnostics]
        raise TileggError(*placed) from None


class Clock:
    """Seconds per pass, in order of first use."""

    def __init__(self) -> None:
        self.start = time.perf_counter()
        self.spent: dict[str, float] = {}

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """Return what ``work`` returns."""
        begun = time.perf_counter()
        try:
            return work()
        finally:
            self.spent[name] = self.spent.get(name, 0.0) + time.perf_counter() - begun

    def table(self) -> str:
        """Return the table of ``--time-passes``: milliseconds and share of the whole."""
        whole = time.perf_counter() - self.start
        rows = [*self.spent.items(), ("other", whole - sum(self.spent.values())), ("total", whole)]
        lines = [f"  {name:<12} {spent * 1000:9.2f} ms {spent / whole:6.1%}" for name, spent in rows]
        return "\n".join(["time per pass:", *lines])
