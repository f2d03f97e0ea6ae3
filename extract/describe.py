"""Rewrites in words: what stood before and after, which facts they needed, what they may change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..ir import valueset
from ..ir.diagnostics import Span
from ..ir.ops.select import COMPARISONS
from ..ir.program import Function, Op, walk
from ..ir.types import TileType
from ..rewrite.amax import scaled_bound
from ..rewrite.graph import LEAF, LITERAL, OPERATION, Node
from ..rewrite.knowledge import Knowledge
from ..rules.paths_rank import describe as describe_road
from ..rules.rule import Pattern, Var
from ..rules.target import Target
from ..rules.terms import CODE_DTYPES, CODE_MODES, CODE_SATURATIONS, saturation_code
from .chains import is_cast, road_behind
from .forms import Form, is_instruction, parts
from .lowered import RegionResult
from .prove import Rewrite

#: A side of a rule with more operations than that is counted, not written out.
_MOST_SHOWN = 6


@dataclass(frozen=True)
class FactUsed:
    """What is known about a value and was needed: its value set, and the operation that bounds it."""

    value: str
    known: str
    origin: str
    line: int | None

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"{self.value} in {self.known}, from {self.origin}{where}"


class Describer:
    """Words about the rewrites in one function."""

    def __init__(self, f: Function, target: Target | None) -> None:
        self.target = target
        self.knowledge = Knowledge(f)
        self._spans = {r.name: s.span for s in walk(f.body) if isinstance(s, Op) for r in s.results}

    def span(self, name: str) -> Span | None:
        """Return where a value of the program is defined."""
        return self._spans.get(name)

    def value(self, result: RegionResult, c: int) -> str:
        """Return the program's name for a class, "" where it has none: what is read goes before what is computed."""
        graph = result.graph
        if c in graph.leaf_class:
            return result.region.leaves[graph.leaf_class.index(c)].name
        return result.region.ops[graph.op_class.index(c)].result.name if c in graph.op_class else ""

    def written(self, result: RegionResult, node: Node) -> str:
        """Return the name of the value that the program computed by a node, "" where rules made it."""
        return result.region.ops[node.origin].result.name if node.origin >= 0 else ""

    def text(self, result: RegionResult, form: Form, p: Pattern) -> str:
        """Return a form as text, written out as far as a side of a rule speaks of it."""
        inner = [f for f in parts([form]) if is_instruction(f)]
        if not isinstance(p, Var) and _size(p) > _MOST_SHOWN and len(inner) > _MOST_SHOWN:
            return f"a recipe of {_size(p)} operations"
        return self._side(result, form, p)

    def _side(self, result: RegionResult, form: Form, p: Pattern) -> str:
        if isinstance(p, Var) or not p.children:
            return self.short(result, form)
        if form.node.decl is not None and form.node.decl.name == "tile.approx":
            return self._side(result, form.children[0], p.children[0])
        inner = [self._side(result, f, q) for f, q in zip(form.children, p.children)]
        return f"{operation_text(form.node)}({', '.join(inner)})"

    def short(self, result: RegionResult, form: Form, depth: int = 2) -> str:
        """Return a form by the program's name for its value, else written out two levels deep."""
        named = self.value(result, form.c)
        if named:
            return named
        node = form.node
        if node.kind == LITERAL:
            value = getattr(node.value, "value", None)
            return f"{value:.9g}" if isinstance(value, float) else str(value)
        if node.kind != OPERATION or node.decl is None:
            return str(getattr(node.value, "name", "-")) if node.kind == LEAF else "-"
        if node.decl.name == "tile.approx":
            return self.short(result, form.children[0], depth)
        if not depth:
            return f"{operation_text(node)}(…)"
        return f"{operation_text(node)}({', '.join(self.short(result, f, depth - 1) for f in form.children)})"

    def facts(self, result: RegionResult, r: Rewrite) -> tuple[FactUsed, ...]:
        """Return the value sets that the rule's conditions asked for."""
        wanted = [k for relation, k, _ in r.step.facts if relation in ("fits", "finite")]
        if r.rule.phase != "normalise" and not r.backwards and is_cast(r.before.node):
            wanted.append(r.before.children[0].c)
        found: list[FactUsed] = []
        for k in dict.fromkeys(wanted):
            values, t = result.graph.values.get(k), result.graph.types[k]
            if values is not None and isinstance(t, TileType) and values != valueset.of_dtype(t.dtype):
                found.append(self.fact(self.value(result, k) or "the operand", values))
        return tuple(found)

    def fact(self, name: str, values: valueset.ValueSet) -> FactUsed:
        """Return what bounds a value."""
        op = self.knowledge.ops.get(name)
        if op is None:
            return FactUsed(name, str(values), "its dtype", None)
        origin = "amax scaling" if scaled_bound(op, self.knowledge.ops) else op.name
        return FactUsed(name, str(values), origin, op.span.line if op.span else None)

    def error(self, result: RegionResult, r: Rewrite) -> str:
        """Return what a step may change: "" for an exact rule, else its stated bound or measured error."""
        if r.rule.contract == "exact":
            return ""
        if r.rule.bound is not None:
            return str(r.rule.bound)
        if r.rule.contract == "faithful" and self.target is not None:
            end = r.before if r.backwards else r.after
            road = road_behind(result, end.c, end.node, self.target)
            return describe_road(road) if road is not None else "a cast may differ"
        return "fewer roundings: nearer to the real value, not the same"


def _size(p: Pattern) -> int:
    """Return how many different operations a side of a rule has."""
    seen: set[Any] = set()
    stack = [p]
    while stack:
        q = stack.pop()
        if not isinstance(q, Var) and q not in seen and q.children:
            seen.add(q)
            stack += q.children
    return len(seen)


def operation_text(node: Node) -> str:
    """Return a node's operation with what matters of its attributes: ``cast[FP32→INT8, rint]``, ``cmp[lt]``."""
    decl = node.decl
    assert decl is not None
    if decl.name == "tile.cast":
        dst, _, src, mode, saturation, _ = node.key
        words = [f"{CODE_DTYPES[src].name}→{CODE_DTYPES[dst].name}", CODE_MODES[mode]]
        if saturation != saturation_code(None, CODE_DTYPES[dst]):
            words.append(f"saturation {CODE_SATURATIONS[saturation]}")
        return f"cast[{', '.join(words)}]"
    name = decl.name.split(".", 1)[-1]
    words = [f"{k}={v}" for k, v in node.attrs.items() if k != "cmp_type"]
    if "cmp_type" in decl.by_name:
        words.insert(0, COMPARISONS[int(node.attrs.get("cmp_type", 0))])
    return f"{name}[{', '.join(words)}]" if words else name
