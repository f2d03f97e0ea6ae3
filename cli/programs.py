"""Reading programs for the verbs, with their remarks shown."""

from __future__ import annotations

import time
from argparse import Namespace
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
    return parsed(*read_text(path, console))


def parsed(text: str, name: str) -> tuple[Program, list[Diagnostic]]:
    """Return the program of a text, the language's or assembly, with its remarks."""
    from ..ir.text import parse_with_remarks

    try:
        if is_assembly(name, text):
            from ..codegen.reading import read_module

            return read_module(assembly(text, name)), []
        return parse_with_remarks(text, name)
    except TileggError as problem:
        start = Span(name, 1, 1, 1, 1)
        placed = [replace(d, span=d.span or start) for d in problem.diagnostics]
        raise TileggError(*placed) from None


def sizes(args: Namespace, *programs: Program) -> dict[str, int]:
    """Return what ``--dim`` gives by name; raises TG030 for a name that no program has as a size."""
    from ..ir.sizes import require_sizes

    given: dict[str, int] = dict(args.dim)
    require_sizes(given, programs, "--dim")
    return given


_FIRST_WORDS = ("module", "builtin.module", "func.func")


def is_assembly(name: str, text: str) -> bool:
    """Tell whether a text is assembly, by the file's name, or by how the text of stdin begins."""
    if name.endswith((".pto", ".mlir")):
        return True
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith("//")), "")
    return name == "<stdin>" and first.startswith(_FIRST_WORDS)


def assembly(text: str, name: str) -> Any:
    """Return the verified module of an assembly text; raises TG027, TG023, TG055 and TG056."""
    from ..codegen.pto.api import parse_pto, verify_pto

    module = parse_pto(text, name)
    verify_pto(module)
    return module


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
