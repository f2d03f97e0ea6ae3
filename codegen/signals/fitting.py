"""Numbers of ranks that nobody asked for and a program is not made for: they limit the answer, and are no faults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...ir.program import Function, Program
from .report import Checked, SignalFinding
from .settings import RANKS, cells_for


@dataclass(frozen=True)
class Part:
    """The check of one setting.

    ``idle``: how many ranks have nothing to do. ``full``: the budget ran out. ``filled`` and ``left``: windows that
    must be filled, and signals that must be zero, when the program starts. ``alike``: with all sizes that were tried in
    place of unknown ones the findings were the same.
    """

    ranks: int
    findings: tuple[SignalFinding, ...]
    summary: Checked | None
    idle: int = 0
    full: bool = False
    filled: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    alike: bool = True


def fitting(program: Program, f: Function, parts: Sequence[Part]) -> tuple[list[Part], list[str]]:
    """Return the parts that count, and what is said of the others.

    Ranks that the signals have no cells for are left out. So are numbers on which the program fails to run, or leaves
    ranks without work, where it does run on another number.
    """
    small = {p.ranks for p in parts if _too_many(program, f, p)}
    unlike = {p.ranks: _unlike(p) for p in reversed(parts) if p.ranks not in small and _unlike(p)}
    if all(p.ranks in small or p.ranks in unlike for p in parts):
        unlike = {}
    said = [f"its signals and peers do not fit {n} ranks" for n in _once(parts) if n in small]
    said += [f"it is not made for {n} ranks: {unlike[n]}" for n in _once(parts) if n in unlike]
    return [p for p in parts if p.ranks not in small and p.ranks not in unlike], said


def _once(parts: Iterable[Part]) -> list[int]:
    return list(dict.fromkeys(p.ranks for p in parts))


def _too_many(program: Program, f: Function, p: Part) -> bool:
    """Return whether a number of ranks is larger than the program's signals are made for."""
    faults = [x for x in p.findings if x.witness is not None and x.witness.expect.kind == "fault"]
    if any("there is no rank" in x.message for x in faults):
        return p.ranks > RANKS[0]
    cells = cells_for(program, f)
    return cells is not None and p.ranks > cells and bool(faults)


def _unlike(p: Part) -> str:
    """Return why the program is not meant for a number of ranks, or an empty string."""
    if p.idle:
        return f"{p.idle} of them have nothing to do"
    if p.findings and all("there is no rank" in x.message for x in p.findings):
        return p.findings[0].message
    if p.full or not p.findings or any(x.word != "unchecked" for x in p.findings):
        return ""
    return p.findings[0].message.removeprefix(f"on {p.ranks} ranks: ")
