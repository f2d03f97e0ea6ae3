"""The gate before assembly is written: a program with findings does not pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.diagnostics import Diagnostic, TileggError
from ...ir.program import Op, Program, walk


def require_clean(program: Program, ranks: Sequence[int] | None = None) -> list[Diagnostic]:
    """Check the signals of a program that communicates, before it is written; returns warnings.

    Raises a :class:`TileggError` with the findings. What could not be checked is a warning, since nothing is known to
    be wrong. Costs next to nothing for programs that do not communicate.
    """
    if not any(isinstance(s, Op) and s.name.startswith("pld.") for f in program.functions for s in walk(f.body)):
        return []
    from .check import check_signals

    report = check_signals(program, ranks)
    wrong = [f.diagnostic() for f in report.findings if f.word != "unchecked"]
    if wrong:
        raise TileggError(*wrong)
    return [replace(f.diagnostic(), severity="warning") for f in report.findings]
