"""The saturated e-graph of a region as plain data, for pricing, extraction, explanation and audit."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..ir.op import OpDecl
from ..ir.program import Attr, Const, Value
from ..ir.types import Type
from ..ir.valueset import ValueSet

LEAF, LITERAL, ABSENT, OPERATION = range(4)


# Nobody writes to a node. Not frozen: making one would take five times as long, and every graph makes many.
@dataclass(eq=False, slots=True)
class Node:
    """One e-node. ``rule`` is the number of the rule that created it, 0 for what the program wrote.

    ``origin`` is the index of the region's operation it stands for, -1 if none. ``approx`` marks the last
    hop of an inexact road. ``children`` are class numbers.
    """

    kind: int
    decl: OpDecl | None = None
    type: Type | None = None
    attrs: dict[str, Attr] = field(default_factory=dict)
    operands: tuple[object, ...] = ()
    children: tuple[int, ...] = ()
    rule: int = 0
    origin: int = -1
    approx: bool = False
    value: Value | Const | None = None
    key: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Graph:
    """Classes of equal values; class numbers follow program order, so they are stable.

    ``dying`` are the classes of leaves whose storage may be overwritten (see ``Region.dying``). ``handed``: of what a
    loop's body yields the class, with that of the carried tile it becomes, -1 where the region does not read that (see
    ``Region.handed``).
    """

    classes: list[list[Node]]
    types: list[Type]
    op_class: list[int]
    leaf_class: list[int]
    roots: list[int]
    values: dict[int, ValueSet] = field(default_factory=dict)
    stopped: str = "saturated"
    dying: frozenset[int] = frozenset()
    handed: dict[int, int] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of e-nodes."""
        return sum(map(len, self.classes))
