"""Solved regions by structure, so that a pattern that occurs a thousand times is solved once.

The key holds everything the solution depends on: operations, types, attributes, operand structure, roots,
what is known about the values casts read, and how the run was asked for. Names and spans are not in it.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Any

from ..ir.op import OPS
from ..ir.program import Const, Op, Value
from ..ir.types import Type
from ..rewrite.amax import scaled_bound
from ..rewrite.graph import Graph
from ..rewrite.knowledge import Knowledge
from ..rewrite.region import Region
from ..rewrite.saturate import VALUED, adds_zero
from ..rules.terms import child_params
from .dag import Problem, Solution
from .lowered import Totals
from .rebuild import Recipe


@dataclass(frozen=True)
class Solved:
    """A solved region: e-graph, choice, how to rebuild it, and the totals of its plain lowering."""

    graph: Graph
    problem: Problem
    solution: Solution
    recipe: Recipe
    plain: Totals
    fallback: bool = False


class Memo:
    """A bounded table of solved regions, least recently used dropped first; threads may share it."""

    def __init__(self, limit: int = 4096) -> None:
        self.limit = limit
        self._solved: OrderedDict[Any, tuple[Solved, list[Type]]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Any) -> Solved | None:
        """Return the solution stored under a key."""
        with self._lock:
            entry = self._solved.get(key)
            if entry is None:
                return None
            self._solved.move_to_end(key)
        return entry[0]

    def put(self, key: Any, solved: Solved, types: list[Type]) -> None:
        """Store a solution; ``types`` are kept alive, since the key names them by identity."""
        with self._lock:
            self._solved[key] = (solved, types)
            if len(self._solved) > self.limit:
                self._solved.popitem(last=False)

    def __len__(self) -> int:
        return len(self._solved)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._solved.clear()


def region_key(region: Region, knowledge: Knowledge, asked: tuple[Any, ...]) -> tuple[Any, list[Type]]:
    """Return a region's key and the types it names by identity."""
    number: dict[str, int] = {}
    types: list[Type] = []
    parts: list[Any] = [asked, knowledge.narrowest]
    casts = False
    for i, leaf in enumerate(region.leaves):
        number[leaf.name] = i
        types.append(leaf.type)
        parts.append(id(leaf.type))
    next_number = len(region.leaves)
    roots = region.roots
    for op in region.ops:
        result = op.results[0]
        types.append(result.type)
        casts = casts or op.name in VALUED or adds_zero(op)
        parts.append(
            (op.name, id(result.type), result.name in roots, *_attrs(op), *_operands(op, number))
        )  # fmt: skip
        number[result.name] = next_number
        next_number += 1
    if region.dying:
        parts.append(tuple(leaf.name in region.dying for leaf in region.leaves))
    if region.handed:
        parts.append(tuple((number[name], number.get(arg, -1)) for name, arg in region.handed))
    if casts:
        parts.append(tuple(knowledge.of(leaf) for leaf in region.leaves if hasattr(leaf.type, "dtype")))
        parts.append(tuple(scaled_bound(op, knowledge.ops) for op in region.ops if "_expand_" in op.name))
        if knowledge.ops.changed:
            parts.append(tuple(op.results[0].name in knowledge.ops.changed for op in region.ops))
    return tuple(parts), types


def _attrs(op: Op) -> tuple[Any, ...]:
    return tuple(op.attrs.items()) if op.attrs else ()


def _operands(op: Op, number: dict[str, int]) -> list[Any]:
    children = child_params(OPS[op.name])
    out: list[Any] = []
    for i, o in enumerate(op.operands):
        if isinstance(o, Value):
            # Scratch tiles are no part of the meaning: they are taken over from the operation itself.
            out.append(number[o.name] if i in children else "scratch")
        elif isinstance(o, Const):
            out.append((o.dtype.name, repr(o.value)))
        elif isinstance(o, tuple):
            out.append(tuple(c.value for c in o if isinstance(c, Const)))
        else:
            out.append(None)
    return out


#: The memo of this process; ``lower(..., memo=None)`` goes without.
SHARED = Memo()
