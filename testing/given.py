"""What can be handed to the assertions as a program: text, a file, a program, a lowering, a builder."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..ir.builder import Builder
from ..ir.diagnostics import TileggError, error
from ..ir.program import Function, Program
from ..ir.verify import verify

#: Everything :func:`as_program` takes. A function gets a builder, and may return a builder or a program instead.
Given = Program | Function | Builder | str | os.PathLike[str] | Callable[[Builder], Any]


def as_program(given: Any, name: str = "program") -> Program:
    """Return a verified program.

    ``given``: text in the Python syntax of the language (it has a line break); the path of a file; a program, a
    function or the result of :func:`tilegg.lower`; a builder, or a function that fills one and may return a builder or
    program instead. ``name`` stands for the file in diagnostics of text.

    Raises :class:`TileggError` with every problem found; TG013 for a file that cannot be read, TG030 for anything else.
    """
    found = _program(given, name)
    problems = [d for d in verify(found) if d.severity == "error"]
    if problems:
        raise TileggError(*problems)
    return found


def _program(given: Any, name: str) -> Program:
    match given:
        case Program():
            return given
        case Function():
            return Program("", (given,))
        case Builder():
            return given.program()
        case str() if "\n" in given:
            return _parsed(given, name)
        case str() | os.PathLike():
            return _parsed(_read(Path(given)), str(given))
    inner = getattr(given, "program", None)
    if isinstance(inner, Program):
        return inner
    if callable(given):
        return _built(given)
    hint = "give text, a path, a program or a builder"
    raise error("TG030", f"{name}: {type(given).__name__} is no program", hint=hint)


def _parsed(text: str, name: str) -> Program:
    from ..ir.text import parse

    return parse(text, name)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise error("TG013", f"{path}: {reason}", hint="a text program has at least one line break") from None


def _built(fill: Callable[[Builder], Any]) -> Program:
    name = getattr(fill, "__name__", "")
    builder = Builder(name if name.isidentifier() else "kernel")
    made = fill(builder)
    if isinstance(made, Program | Function | Builder):
        return _program(made, builder.name)
    return builder.program()
