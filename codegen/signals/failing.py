"""Statements that fail on every number of ranks that was looked at: they are errors, not something left unchecked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...ir.program import Program
from .fitting import Part
from .report import SignalFinding
from .structure import deciding

#: Accesses whose failures the program is to blame for, beside all communication: the interpreter knows all of them.
_ACCESSES = frozenset({"tensor.slice", "tensor.read", "tensor.write", "tile.load", "tile.store"})


def told(program: Program, parts: Sequence[Part]) -> list[Part]:
    """Return the parts of a function; where each has a statement that fails for certain, these are errors.

    For certain: neither inputs, which the check has made up, nor the contents of windows decide whether and with which
    operands the statement runs, and it fails alike with all sizes that were tried.
    """
    failed = [{i for i, x in enumerate(p.findings) if _fails(program, p, x)} for p in parts]
    if not all(failed):
        return list(parts)
    return [
        replace(p, findings=tuple(replace(x, certain=True) if i in these else x for i, x in enumerate(p.findings)))
        for p, these in zip(parts, failed)
    ]


def _fails(program: Program, part: Part, x: SignalFinding) -> bool:
    places = x.places()
    if x.word != "unchecked" or part.full or not part.alike or not places:
        return False
    found = deciding(program, places[0], next(iter(x.statements), None))
    return bool(found) and all((s.name.startswith("pld.") or s.name in _ACCESSES) and not marks for s, marks in found)
