"""Local memory as a bound on lowering: where the input's own lowering fits, so does what is chosen instead.

The search for cheap instructions does not look at memory. A function whose chosen form needs more than the target
has is lowered again with its regions as written, and then every region that memory has room for is improved after
all, the most rewarding ones first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..ir.diagnostics import Diagnostic
from ..ir.program import Function
from ..rules.target import Target
from .footprint import fits, peak, room
from .lowered import FunctionReport, Totals

#: Regions that are improved one by one; a function of more in too little memory keeps the rest as written.
_TRIED = 24


@dataclass(frozen=True)
class Attempt:
    """One lowering of a function: the result, its report, what the plain lowering costs, remarks."""

    function: Function
    report: FunctionReport
    plain: Totals
    remarks: list[Diagnostic]


def fitted(attempt: Callable[[frozenset[int]], Attempt], target: Target | None) -> Attempt:
    """Return the cheapest of the tried lowerings that fits; where none does, the first one with a remark (TG028).

    ``attempt`` lowers the function with the regions of the given numbers as written.
    """
    best = attempt(frozenset())
    if target is None or fits(best.function, target):
        return best
    everything = frozenset(range(len(best.report.regions)))
    written = attempt(everything)
    if not fits(written.function, target):
        return replace(best, remarks=[*best.remarks, _remark(best, target)])
    kept = everything
    for number in _by_gain(best, written)[:_TRIED]:
        tried = attempt(kept - {number})
        if fits(tried.function, target):
            kept, written = kept - {number}, tried
    return written


def _by_gain(best: Attempt, written: Attempt) -> list[int]:
    """Return the regions that the search has improved, by what it gained there, the largest gain first."""
    found = [(b.solution.cost - w.solution.cost, number)
             for number, (b, w) in enumerate(zip(best.report.regions, written.report.regions))]  # fmt: skip
    return [number for gain, number in sorted(found) if gain < 0]


def _remark(best: Attempt, target: Target) -> Diagnostic:
    size, span = peak(best.function)
    text = (
        f"{size:,} bytes of tiles are alive here; with scratch tiles and the gaps between them they take "
        f"{room(best.function, target):,}, the local memory of {target.name} has {target.ub_usable_bytes:,}"
    )
    hint = "work on smaller tiles, in a loop, or move computations nearer to their use"
    return Diagnostic("TG028", text, span, hint=hint, severity="remark")
