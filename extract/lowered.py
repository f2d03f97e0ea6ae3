"""What lowering gives back: the chosen program, and for every instruction where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..ir.diagnostics import Diagnostic, Span
from ..ir.program import Op, Program
from ..rewrite.graph import Graph
from .dag import Problem, Solution


@dataclass(frozen=True)
class Instruction:
    """One operation of the lowered program: cycles by the target's cost model, rule that chose it.

    ``rule`` is 0 for what the program wrote; ``region`` and ``eclass`` lead to the alternatives.
    """

    op: Op
    cycles: float
    count: int
    rule: int
    span: Span | None
    region: int = -1
    eclass: int = -1
    inexact: bool = False


@dataclass(frozen=True)
class RegionResult:
    """A region's e-graph and the choice made in it, kept for explanations."""

    graph: Graph
    problem: Problem
    solution: Solution


@dataclass(frozen=True)
class Totals:
    """Instruction count and cycles of a program."""

    instructions: int
    cycles: float


@dataclass
class FunctionReport:
    """The instructions of one function, and its regions."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    regions: list[RegionResult] = field(default_factory=list)


@dataclass
class Lowered:
    """The result of :func:`tilegg.lower`. ``optimum`` is "proved" or the relative gap to a proved bound."""

    program: Program
    source: Program
    arch: str
    objective: str
    contract: str
    functions: list[FunctionReport]
    totals: Totals
    plain: Totals
    gap: float
    remarks: list[Diagnostic]
    timings: dict[str, float] = field(default_factory=dict)

    @property
    def optimum(self) -> Any:
        """Return "proved", or ``{"gap": g}`` with the relative distance to the proved bound."""
        return "proved" if self.gap <= 0 else {"gap": round(self.gap, 6)}
