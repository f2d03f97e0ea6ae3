"""The gate before assembly is written: a program with findings does not pass."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.diagnostics import Diagnostic, TileggError
from ...ir.distributed_checks import distributed_problems
from ...ir.program import Op, Program, walk
from ...rewrite.markers import places_markers

#: Findings about markers, which a program as written may have although its lowered form is complete.
_MARKERS = ("missing-marker", "doubled-marker")


def require_clean(
    program: Program, ranks: Sequence[int] | None = None, source: Program | None = None
) -> list[Diagnostic]:
    """Check a program before it is written: its distributed operations and, if it has such, its signals.

    ``source``: what it was lowered from; where that places markers itself, they are checked as written. Raises a
    :class:`TileggError` with the findings. Returns warnings for what could not be checked, since nothing is known to
    be wrong there. Costs next to nothing for programs that do not communicate.
    """
    plain = distributed_problems(program)
    if plain:
        raise TileggError(*plain)
    if not any(isinstance(s, Op) and s.name.startswith("pld.") for f in program.functions for s in walk(f.body)):
        return []
    from .check import check_signals

    report = check_signals(program, ranks)
    wrong = [f.diagnostic() for f in report.findings if f.wrong]
    if not wrong and source is not None and source is not program and places_markers(source):
        wrong = [f.diagnostic() for f in check_signals(source, ranks).findings if f.word in _MARKERS]
    if wrong:
        raise TileggError(*wrong)
    return report.diagnostics()
