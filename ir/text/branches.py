"""Branches, in SSA form as dumps have them or with names assigned again.

A name that the branches assign differently and that is read afterwards becomes a result of the branch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..diagnostics import error
from ..dtypes import BOOL
from ..infer import join_types, merge_types, type_of
from ..program import (
    Const,
    If,
    Operand,
    Statement,
    Value,
    Yield,
)
from ..types import ScalarType, Type
from .state import Frame, Unset, Yielded, block
from .statements import Statements

LOOPS = ("range", "parallel", "unroll", "pipeline", "spmd", "split_aiv")


@dataclass
class Ended:
    """A branch that has been read: its statements, its yield, and what names stand for at its end."""

    statements: list[Statement]
    yielded: Yielded | None
    jumped: bool
    names: dict[str, Operand | Unset | None]


@dataclass
class Branches(Statements):
    """Reads branches."""

    def if_(self, s: ast.If) -> None:
        """Read ``if``/``else``; raises TG006, TG009 or TG014."""
        self.target = "cond"
        cond = self.condition(s.test)
        self.nest(s)
        assigned = self.flow.assigned([s])
        before = {n: self.names.get(n) for n in assigned}
        then = self._branch(s.body, before)
        orelse = self._branch(s.orelse, before)
        self.depth -= 1
        self._close_if(s, cond, then, orelse, before)

    def condition(self, node: ast.expr) -> Operand:
        """Return a scalar condition."""
        found = self.scalar(node)
        t = type_of(found)
        if isinstance(t, ScalarType) and t.dtype is not BOOL and not t.dtype.is_int:
            raise error("TG006", f"a condition is BOOL, got {t}", self.span(node), hint="compare it with something")
        return found

    def _branch(self, statements: list[ast.stmt], before: dict[str, Any]) -> Ended:
        frame = Frame("if", loop=False)
        body = self.inner(statements, frame)
        ended = Ended(body, frame.yielded, frame.jumped, {n: self.names.get(n) for n in before})
        self._restore(before)
        return ended

    def _restore(self, before: dict[str, Operand | Unset | None]) -> None:
        for name, old in before.items():
            if old is None:
                self.names.pop(name, None)
            else:
                self.names[name] = old

    def _close_if(self, s: ast.If, cond: Operand, then: Ended, orelse: Ended, before: dict[str, Any]) -> None:
        names, written = self._yield_names(s, then, orelse)
        merged = self._merged_names(s, then, orelse, before, names)
        if then.jumped and orelse.jumped and self.frames:
            self.frames[-1].jumped = True
        span = self.span(s)
        values: list[tuple[Operand, ...]] = []
        for end in (then, orelse):
            given = end.yielded.operands if end.yielded else ()
            values.append(() if end.jumped else (*given, *(end.names[n] for n in merged)))  # type: ignore[arg-type]
        results: list[Value] = []
        for i, name in enumerate((*names, *merged)):
            sides = [v[i] for v in values if v]
            t = type_of(sides[0])
            for side in sides[1:]:
                t = join_types(t, type_of(side), span, f"{name}, the result of the branches,")
            merged_type = merge_types(t, written[i] if i < len(written) else None, span)
            # Several results are written without annotations, so none may add to their types.
            results.append(self.define(name, merged_type if len(names) + len(merged) == 1 else t or merged_type))
            self._merge_roots(results[-1], sides)
        for end, operands in zip((then, orelse), values):
            if operands:
                end.statements.append(Yield(operands, self.span(end.yielded.node) if end.yielded else span))
        self.out.append(If(cond, block(then.statements), block(orelse.statements), tuple(results), span))

    def _merge_roots(self, result: Value, sides: Iterable[Operand]) -> None:
        found = [self.roots.get(o.name) for o in sides if isinstance(o, Value)]
        if found and found[0] is not None and all(r == found[0] for r in found):
            self.roots[result.name] = found[0]

    def _yield_names(self, s: ast.If, then: Ended, orelse: Ended) -> tuple[tuple[str, ...], list[Type | None]]:
        """Return the result names that explicit yields give; raises TG014 when the branches differ."""
        given = [e.yielded for e in (then, orelse) if e.yielded is not None]
        open_ends = [e for e in (then, orelse) if not e.jumped]
        if not given:
            return (), []
        if any(e.yielded is None for e in open_ends):
            raise error("TG014", "only one branch yields", self.span(s), hint="yield the same names in both branches")
        first = given[0]
        for other in given[1:]:
            if len(other.operands) != len(first.operands):
                message = f"the branches yield {len(first.operands)} and {len(other.operands)} values"
                raise error("TG014", message, self.span(other.node))
            if other.names and first.names and other.names != first.names:
                message = f"the branches yield to {', '.join(first.names)} and to {', '.join(other.names)}"
                raise error("TG014", message, self.span(other.node), hint="yield the same names in both branches")
        named = next((g for g in given if g.names), first)
        if len(named.names) != len(named.operands):
            raise error("TG014", "the yield gives no names to its values", self.span(first.node),
                        hint="write y = pl.yield_(v)")  # fmt: skip
        written = [next((t for g in given if i < len(g.types) and (t := g.types[i]) is not None), None)
                   for i in range(len(named.names))]  # fmt: skip
        return named.names, written

    def _merged_names(
        self, s: ast.If, then: Ended, orelse: Ended, before: dict[str, Any], yielded: tuple[str, ...]
    ) -> list[str]:
        """Return the names whose values differ between the branches and are read later; settle the others."""
        ends = [e for e in (then, orelse) if not e.jumped]
        out = []
        live: set[str] | None = None
        for name in before:
            if name in yielded or not ends:
                continue
            values = [e.names.get(name) for e in ends]
            if len(ends) == 2 and (values[0] is None) != (values[1] is None) and self.roots:
                values = [v or self._output_before(values[1 - i], before) for i, v in enumerate(values)]
                for end, v in zip(ends, values):
                    end.names[name] = v
            if values[0] is before[name] and all(v is values[0] for v in values):
                continue
            if live is None and (before[name] is not None or all(v is not None for v in values)):
                live = self.flow.live_after(s)
            if any(v is None or isinstance(v, Unset) for v in values):
                self.names[name] = Unset("it is assigned in only one branch above")
            elif all(v is values[0] for v in values) and (len(ends) == 2 or isinstance(values[0], Const)):
                self.names[name] = values[0]
            elif live is not None and name in live and not any(isinstance(v, tuple) for v in values):
                out.append(name)
            else:
                self.names[name] = Unset("it is assigned differently in the branches above")
        return out

    def _output_before(self, value: Operand | Unset, saved: dict[str, Any]) -> Value | None:
        """Return what the output parameter that ``value`` is a version of stood for before the statement."""
        root = self.roots.get(value.name) if isinstance(value, Value) else None
        found = saved.get(root, self.names.get(root)) if root is not None else None
        return found if isinstance(found, Value) and found.name in self.roots else None
