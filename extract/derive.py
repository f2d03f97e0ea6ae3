"""Which rules lead from what the program wrote to what was chosen, found again in the saturated graph.

The e-graph keeps for each node only the first rule that made it. A derivation is therefore looked up: rules are
matched against the nodes of one class, and the shortest sequence of them that leads from one node to another
(or to another value of the same class) is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ..ir.op import OPS
from ..ir.program import Const, Op
from ..ir.types import TileType
from ..ir.valueset import ValueSet
from ..rewrite.encode import argument_codes, shape_code
from ..rewrite.graph import ABSENT, LITERAL, OPERATION, Graph, Node
from ..rules.casts import road_table, road_words
from ..rules.computed import COMPUTED, asked
from ..rules.facts import (
    FACTS,
    OF_LITERALS,
    dtype_holds,
    infinity_kept,
    literal_holds,
    value_finite,
    value_fits,
    value_index,
    value_one_zero,
    value_ordered,
    value_positive,
    value_within,
)
from ..rules.paths import roads
from ..rules.rule import RULES, Condition, Pattern, Rule, Term, Var
from ..rules.target import Target
from ..rules.terms import CODE_DTYPES, CODE_MODES, CODE_SATURATIONS, DTYPE_CODES, child_params, literal_codes
from ..rules.terms import LITERAL as TERM_LITERAL
from .chains import class_of
from .lowered import RegionResult

#: Comparisons of a node with a pattern that one region's searches may take (about a second).
MOST_COMPARED = 60_000
#: Longest derivation looked for, in rule applications.
MAX_STEPS = 5

#: What a match has found: codes and classes of variables by name, and the node that each inner pattern met.
Bindings = dict[Any, Any]

_LATE = frozenset(r.number for r in RULES.values() if r.phase != "normalise")
#: Rules of the second phase that go on from what its others make of conversions.
FURTHER = frozenset(
    r.number for r in RULES.values() if r.phase == "lower" and not r.name.startswith("cast.road.")
)
_BY_OP: dict[str, list[Rule]] = {}
for _rule in RULES.values():
    _BY_OP.setdefault(_rule.lhs.op, []).append(_rule)


class Tired(Exception):
    """The search has compared as much as it may."""


@dataclass(frozen=True)
class Step:
    """One application of a rule; ``facts`` are the value facts it needed, as (relation, class, dtype code)."""

    rule: Rule
    facts: tuple[tuple[str, int, int], ...] = ()


class Deriver:
    """Derivations in one region."""

    def __init__(self, result: RegionResult, target: Target | None, contract: str = "contracted") -> None:
        """``contract``: what the e-graph was made under; rules that it does not admit explain nothing."""
        self.result = result
        self._contracted = contract == "contracted"
        self.graph: Graph = result.graph
        self.target = target
        self._hidden: frozenset[int] = frozenset()
        #: Nodes that may still be compared with a pattern.
        self.left = MOST_COMPARED
        self._index = {
            (n.decl.name, n.key, n.children): (c, n)
            for c, nodes in enumerate(self.graph.classes)
            for n in nodes
            if n.kind == OPERATION and n.decl is not None
        }
        self._literals = {
            n.value if n.kind == LITERAL else None: c
            for c, nodes in enumerate(self.graph.classes)
            for n in nodes
            if n.kind in (LITERAL, ABSENT)
        }

    def written(self, i: int) -> Node | None:
        """Return the node that operation ``i`` of the region wrote."""
        op = self.result.region.ops[i]
        children = self._children(op)
        found = self._index.get((op.name, argument_codes(op), children)) if children is not None else None
        return found[1] if found else None

    def _children(self, op: Op) -> tuple[int, ...] | None:
        found: list[int] = []
        for p in child_params(OPS[op.name]):
            o = op.operands[p]
            c = self._literals.get(o) if o is None or isinstance(o, Const) else class_of(self.result, o)
            if c is None:
                return None
            found.append(c)
        return tuple(found)

    def path(self, c: int, start: Node, goal: Node) -> tuple[Step, ...] | None:
        """Return the shortest derivation between two nodes of class ``c``, ``None`` if none is found."""
        queue: deque[tuple[Node, tuple[Step, ...]]] = deque([(start, ())])
        seen = {id(start)}
        while queue:
            node, steps = queue.popleft()
            if node is goal:
                return steps
            if len(steps) == MAX_STEPS:
                continue
            for step, other in self._steps(c, node, goal):
                if other is None:
                    # The rule gives the class itself: whatever stands for the value is reached.
                    return (*steps, step)
                if id(other) not in seen:
                    seen.add(id(other))
                    queue.append((other, (*steps, step)))
        return None

    def _steps(self, c: int, node: Node, goal: Node) -> Iterator[tuple[Step, Node | None]]:
        for rule in _BY_OP.get(node.decl.name, ()) if node.decl is not None else ():
            if not self._admits(rule):
                continue
            # The first phase is over before the second one begins, so it never sees what that makes; and what
            # the second makes is final, unless one of its own rules made the goal of it.
            early = rule.phase == "normalise"
            self._hidden = _LATE if early else frozenset()
            others = self._others(c, node) if early or goal.rule in FURTHER else [goal]
            for bound in self._match_node(rule.lhs, node, {}):
                yield from self._results(rule, c, bound, others)

    def matches(
        self, rule: Rule, c: int, node: Node, goal: Node | None, backwards: bool = False
    ) -> Iterator[tuple[Step, Bindings]]:
        """Yield the applications of a rule that lead from a node of class ``c`` to ``goal``, or to any other of it.

        Bindings give classes and codes by variable name, and by pattern the node that it met on either side.
        ``backwards``: from the rule's right side to its left.
        """
        if not self._admits(rule):
            return
        self._hidden = frozenset()
        near, far = (rule.rhs, rule.lhs) if backwards else (rule.lhs, rule.rhs)
        starts = [{near.name: c}] if isinstance(near, Var) else self._match_node(near, node, {})
        for bound in starts:
            if isinstance(far, Var):
                ends = [bound] if bound[far.name] == c else []
            else:
                others = [n for n in self._others(c, node) if goal is None or n is goal]
                ends = [b for n in others for b in self._match_node(far, n, bound)]
            for full in ends:
                facts = self._holds(rule, full)
                if facts is not None:
                    yield Step(rule, facts), full

    def _admits(self, rule: Rule) -> bool:
        return self._contracted or rule.contract != "contracted"

    def _others(self, c: int, node: Node) -> list[Node]:
        return [n for n in self.graph.classes[c] if n is not node and n.kind == OPERATION and self._seen(n)]

    def _seen(self, n: Node) -> bool:
        return n.rule not in self._hidden or n.origin >= 0

    def _results(
        self, rule: Rule, c: int, bound: Bindings, others: list[Node]
    ) -> Iterator[tuple[Step, Node | None]]:
        if isinstance(rule.rhs, Var):
            facts = self._holds(rule, bound) if bound[rule.rhs.name] == c else None
            if facts is not None:
                yield Step(rule, facts), None
            return
        for other in others:
            for full in self._match_node(rule.rhs, other, bound):
                facts = self._holds(rule, full)
                if facts is not None:
                    yield Step(rule, facts), other
                    break

    # -- matching ------------------------------------------------------------------------------------------

    def _match_node(self, term: Term, node: Node, bound: Bindings) -> Iterator[Bindings]:
        if node.decl is None or node.decl.name != term.op or len(node.key) != len(term.args):
            return
        self.left -= 1
        if self.left < 0:
            raise Tired
        if any((a if type(a) is int else bound.get(a.name, k)) != k for a, k in zip(term.args, node.key)):  # type: ignore[union-attr]
            return
        here = {**bound, term: node}
        for arg, code in zip(term.args, node.key):
            if isinstance(arg, Var) and here.setdefault(arg.name, code) != code:
                return
        yield from self._match_children(term.children, node.children, here)

    def _match_children(
        self, patterns: tuple[Pattern, ...], classes: tuple[int, ...], bound: Bindings
    ) -> Iterator[Bindings]:
        if not patterns:
            yield bound
            return
        for found in self._match_class(patterns[0], classes[0], bound):
            yield from self._match_children(patterns[1:], classes[1:], found)

    def _match_class(self, p: Pattern, c: int, bound: Bindings) -> Iterator[Bindings]:
        if isinstance(p, Var):
            if bound.get(p.name, c) == c:
                yield {**bound, p.name: c}
            return
        if p.op == TERM_LITERAL:
            if any(n.kind == LITERAL and literal_codes(n.value.value, n.value.dtype) == p.args  # type: ignore[union-attr]
                   for n in self.graph.classes[c]):  # fmt: skip
                yield bound
            return
        met = bound.get(p)
        if met is not None:
            # The pattern stands in the rule twice: it is one value in one form.
            yield from [bound] if any(n is met for n in self.graph.classes[c]) else []
            return
        for node in self.graph.classes[c]:
            if self._seen(node):
                yield from self._match_node(p, node, bound)

    # -- what is missing -----------------------------------------------------------------------------------

    def fitting(self, rule: Rule, node: Node) -> Iterator[Bindings]:
        """Yield the ways in which a rule's left side fits a node, whatever its conditions say."""
        self._hidden = frozenset()
        yield from self._match_node(rule.lhs, node, {})

    def failing(self, rule: Rule, bound: Bindings) -> list[Condition]:
        """Return the conditions that do not hold for a fitting left side."""
        found: list[Condition] = []
        for condition in rule.when:
            if not self._condition(condition, bound, []):
                found.append(condition)
            bound = self._with_type(condition, bound) if condition.relation in ("typed", "windows") else bound
        return found

    # -- conditions ----------------------------------------------------------------------------------------

    def _holds(self, rule: Rule, bound: Bindings) -> tuple[tuple[str, int, int], ...] | None:
        """Return the value facts the rule's conditions use, ``None`` when a condition does not hold."""
        used: list[tuple[str, int, int]] = []
        for condition in rule.when:
            if not self._condition(condition, bound, used):
                return None
        return tuple(used)

    def _condition(self, condition: Condition, bound: Bindings, used: list[tuple[str, int, int]]) -> bool:
        if condition.relation in COMPUTED:
            return self._computed(condition, bound)
        if condition.relation in ("typed", "windows"):
            bound = self._with_type(condition, bound)
        codes = [self._code(a, bound) for a in condition.args]
        if any(code is None for code in codes):
            return False
        args = [code for code in codes if code is not None]
        match condition.relation:
            case "!=":
                return args[0] != args[1]
            case "fits" | "finite":
                return self._value_fact(condition.relation, args, used)
            case "within" | "ordered" | "one_zero" | "index" | "positive" | "literal" | "nonzero" | "typed" | "windows":
                return self._operand_fact(condition.relation, args)
            case "keeps_infinity":
                return infinity_kept(CODE_DTYPES[args[0]], args[1])
            case table if table.startswith("road"):
                return self._road(table, args)
            case relation if set(FACTS[relation][0]) == {"dtype"}:
                return dtype_holds(relation, tuple(CODE_DTYPES[code] for code in args))
            case _:
                # A row that a provider found when the graph was made; both sides are in one class only if it was there.
                return True

    def _operand_fact(self, relation: str, args: list[int]) -> bool:
        """Decide a fact about an operand that is not about casts."""
        c, *codes = args
        for node in self.graph.classes[c]:
            if node.kind == LITERAL and relation in OF_LITERALS:
                return literal_holds(relation, node.value.value)  # type: ignore[union-attr]
        t, values = self.graph.types[c], self.graph.values.get(c)
        if relation in ("typed", "windows"):
            return isinstance(t, TileType) and [DTYPE_CODES[t.dtype.name], shape_code(t)] == codes
        if values is None or relation in _NUMBERS:
            return False
        if relation == "within":
            return value_within(values, codes[0])
        return _FACTS[relation](values)

    def _computed(self, condition: Condition, bound: Bindings) -> bool:
        """Decide a row of a computed table: what it gives must be what the right side has."""
        if any(self._code(a, bound) is None for a in condition.args[: COMPUTED[condition.relation].inputs + 1]):
            return False
        row = asked(condition, lambda a: self._code(a, bound) or 0)
        inputs = [self._literal_of(self._code(a, bound)) for a in row.literals]
        if any(literal is None for literal in inputs):
            return False
        given = row.row(*inputs)  # type: ignore[arg-type]
        wanted = [self._literal_of(self._code(a, bound)) for a in row.gives]
        return given is not None and all(w is None or w == g for w, g in zip(wanted, given))

    def _literal_of(self, c: int | None) -> Const | None:
        """Return the literal that a class is."""
        nodes = self.graph.classes[c] if c is not None else []
        return next((n.value for n in nodes if n.kind == LITERAL and isinstance(n.value, Const)), None)

    def _value_fact(self, relation: str, args: list[int], used: list[tuple[str, int, int]]) -> bool:
        values = self.graph.values.get(args[0])
        if values is None:
            return False
        dtype = args[1] if relation == "fits" else -1
        holds = value_fits(values, CODE_DTYPES[dtype]) if relation == "fits" else value_finite(values)
        if holds:
            used.append((relation, args[0], dtype))
        return holds

    def _road(self, table: str, args: list[int]) -> bool:
        x, a, b, m, s, *words = args
        if self.target is None:
            return False
        if table.endswith("_faithful"):
            words = words[:-1]  # the number of the request
        found = roads(
            self.target, CODE_DTYPES[a], CODE_DTYPES[b], CODE_MODES[m], CODE_SATURATIONS[s], self.graph.values.get(x)
        )
        return any(
            road.hops and road_table(len(road.hops), road.exact) == table and road_words(road) == tuple(words)
            for road in found
        )

    def _with_type(self, condition: Condition, bound: Bindings) -> Bindings:
        """Return the bindings with the dtype and shape that a ``typed`` condition binds."""
        c = self._code(condition.args[0], bound)
        t = self.graph.types[c] if c is not None else None
        if not isinstance(t, TileType):
            return bound
        known = zip(condition.args[1:], (DTYPE_CODES[t.dtype.name], shape_code(t)))
        return {**{a.name: code for a, code in known if isinstance(a, Var)}, **bound}

    def _code(self, a: Var | Term | int, bound: Bindings) -> int | None:
        """Return an argument's code; a term stands for the class it is in."""
        if isinstance(a, int):
            return a
        if isinstance(a, Var):
            return bound.get(a.name)
        args = tuple(self._code(x, bound) for x in a.args)
        children = tuple(self._code(x, bound) for x in a.children)
        found = self._index.get((a.op, args, children))  # type: ignore[arg-type]
        return found[0] if found else None


#: Facts that only literals have.
_NUMBERS = ("literal", "nonzero")
_FACTS: dict[str, Callable[[ValueSet], bool]] = {
    "ordered": value_ordered, "one_zero": value_one_zero, "index": value_index, "positive": value_positive,
}  # fmt: skip
