"""What lowering gives back: the chosen program, and for every instruction where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from ..ir.diagnostics import Diagnostic, Span
from ..ir.program import Op, Program
from ..rewrite.graph import Graph
from ..rewrite.region import Region
from ..rules.target import Target
from .dag import Problem, Solution
from .pickling import rule_name, rule_number
from .price import Scalars


@dataclass(slots=True)
class Instruction:
    """One operation of the lowered program: cycles by the target's cost model, rule that chose it.

    ``count`` is 0 for operations that are no instruction (views, scalar arithmetic). ``rule`` is 0 for what
    the program wrote; ``region`` and ``eclass`` lead to the alternatives (-1: outside every region).
    """

    op: Op
    cycles: float
    count: int
    rule: int
    span: Span | None
    region: int = -1
    eclass: int = -1
    inexact: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        values = [getattr(self, f.name) for f in fields(self)]
        values[_RULE] = rule_name(self.rule)
        return _instruction, tuple(values)


_RULE = [f.name for f in fields(Instruction)].index("rule")


def _instruction(*values: Any) -> Instruction:
    made = Instruction(*values)
    made.rule = rule_number(made.rule)
    return made


@dataclass(frozen=True)
class RegionResult:
    """A region, its e-graph and the choice made in it, kept for explanations.

    ``fallback``: the graph is the region's plain lowering, since the search found nothing better. ``scalars``: how
    scalars are written in it.
    """

    graph: Graph
    problem: Problem
    solution: Solution
    region: Region
    fallback: bool = False
    scalars: Scalars = field(default_factory=Scalars)


@dataclass(frozen=True)
class Totals:
    """Instruction count, cycles, and number of casts that are not exact.

    ``legal`` is false of a plain lowering that the target does not take as a whole: the rest of it counts nothing.
    """

    instructions: int = 0
    cycles: float = 0.0
    inexact: int = 0
    legal: bool = True

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.instructions + other.instructions, self.cycles + other.cycles, self.inexact + other.inexact,
            self.legal and other.legal,
        )  # fmt: skip

    def rounded(self) -> Totals:
        """Return the totals with cycles to the millionth: sums of the same prices are then equal in any order."""
        return Totals(self.instructions, round(self.cycles, 6), self.inexact, self.legal)

    def against(self, plain: Totals) -> float | None:
        """Return the cycles gained over a plain lowering, -0.1 for a tenth; ``None`` where that cannot be told."""
        return self.cycles / plain.cycles - 1 if plain.legal and plain.cycles else None

    def __str__(self) -> str:
        return f"{self.instructions}, {self.cycles:.0f} cycles" if self.legal else "not legal on the target"

    def rank(self, objective: str) -> tuple[float, ...]:
        """Return what an objective compares, most important first (cycles to the millionth)."""
        cycles = round(self.cycles, 6)
        match objective:
            case "instructions":
                return (self.instructions, cycles, self.inexact)
            case "accuracy":
                return (self.inexact, cycles, self.instructions)
            case _:
                return (cycles, self.instructions, self.inexact)


@dataclass
class FunctionReport:
    """The instructions of one function in program order, and its regions."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    regions: list[RegionResult] = field(default_factory=list)


@dataclass
class Lowered:
    """The result of :func:`tilegg.lower`. ``optimum`` is "proved" or the relative gap to a proved bound.

    ``plain`` is the input's fixed lowering: every operation as written, or by a rule that asks for no fact where the
    target refuses it, every cast by the shortest chain that the contract admits. Loop bodies count once in all totals.
    ``expanded`` is the source with structured operations written out, which is what regions are cut from.
    """

    program: Program
    source: Program
    arch: str
    objective: str
    contract: str
    functions: list[FunctionReport]
    totals: Totals
    plain: Totals
    gap: float
    found: list[Diagnostic]
    timings: dict[str, float] = field(default_factory=dict)
    target: Target | None = None
    expanded: Program | None = None

    @property
    def optimum(self) -> Any:
        """Return "proved", or ``{"gap": g}`` with the relative distance to the proved bound."""
        return "proved" if self.gap <= 0 else {"gap": round(self.gap, 6)}

    def _repr_html_(self) -> str:
        from .notebook import lowered_html

        return lowered_html(self)

    @cached_property
    def remarks(self) -> list[Diagnostic]:
        """What lowering has to say, with measured error rates of inexact casts (measured on first use)."""
        from .remarks import inexact_remarks

        return [*self.found, *inexact_remarks(self)]
