"""Whether a node keeps the promise of the rule that made it, where a class holds values that differ.

Under the contracted contract a class may hold a value with fewer roundings beside the written one. A node that a rule
made is found again as the rule's right side beside some match of its left side in the class, and both sides are
evaluated on the values of the rule's variables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ..ir.program import Const
from ..ir.tilearray import TileArray
from ..ir.types import ScalarType, TileType
from ..rules.check import code_condition
from ..rules.check_contracted import contracted_failures
from ..rules.check_eval import Valued
from ..rules.computed import COMPUTED, asked
from ..rules.facts import FACTS, GIVEN, OF_LITERALS, WINDOWS, literal_holds
from ..rules.rule import RULES, Condition, Pattern, Rule, Term, Var, rule_names
from ..rules.terms import LITERAL, literal_codes
from .audit_values import first_difference, same_value
from .graph import LITERAL as LITERAL_NODE
from .graph import Graph, Node

#: What a pattern matched: classes of value variables, codes of the others, the node of every term.
Match = dict[Var | Term, Any]
Compute = Callable[[Node, Sequence[Any]], Any]
#: Matches tried for one node.
_MOST = 64


def unjustified(graph: Graph, c: int, node: Node, known: Mapping[int, Any], compute: Compute) -> str:
    """Return why no rule accounts for a node of class ``c`` that differs from the class; "" when one does.

    ``known``: class values; ``compute`` evaluates a node on its children's values.
    """
    rule = RULES[rule_names()[node.rule]]
    tried = 0
    failures: list[str] = []
    for found in _matches(graph, rule.lhs, c, {}):
        for both in _at(graph, rule.rhs, c, node, found):
            tried += 1
            sides = [_evaluate(p, both, known, compute) for p in (rule.lhs, rule.rhs)]
            text = _failure(graph, rule, c, both, sides, known)
            if not text:
                return ""
            failures.append(text)
        if tried >= _MOST:
            break
    # A term inside a right side stands in a class of its own, which the rule's left side does not.
    if not failures and node.decl is not None and node.decl.name in _inner_operations(rule.rhs):
        return ""
    return failures[0] if failures else f"{rule.name} does not give it from anything in the class"


def _inner_operations(p: Pattern) -> set[str]:
    if isinstance(p, Var):
        return set()
    return set().union(*({c.op} | _inner_operations(c) for c in p.children if isinstance(c, Term)))


def merged_by(graph: Graph, facts: Collection[tuple[str, int, int]], names: Collection[str]) -> dict[str, int]:
    """Return how many classes hold both sides of a rule, for rules that leave no node with their number.

    Those are rules whose right side is an operand, and those of ``names`` where another rule made the same node.
    ``facts``: relation, class and code (-1: none) of every fact about values.
    """
    counts: dict[str, int] = {}
    places: dict[str, dict[int, None]] = {}
    for c, nodes in enumerate(graph.classes):
        for n in nodes:
            if n.decl is not None:
                places.setdefault(n.decl.name, {})[c] = None
    for rule in RULES.values():
        if rule.bound is not None or not (isinstance(rule.rhs, Var) or rule.name in names):
            continue
        for c in places.get(rule.lhs.op, ()):
            if any(
                all(_holds(graph, w, both, facts) for w in rule.when)
                for found in _matches(graph, rule.lhs, c, {})
                for both in _matches(graph, rule.rhs, c, found)
            ):
                counts[rule.name] = counts.get(rule.name, 0) + 1
    return counts


def _holds(graph: Graph, c: Condition, match: Match, facts: Collection[tuple[str, int, int]]) -> bool:
    """Decide a condition of a match; those that nothing is known of do not hold."""
    codes = {k: v for k, v in match.items() if isinstance(k, Var)}
    if c.relation in COMPUTED:
        return _computed(graph, c, match)
    if c.relation in GIVEN:
        return True
    if c.relation not in FACTS:
        return c.relation == "!=" and code_condition(c, codes)
    if "value" not in FACTS[c.relation][0]:
        return code_condition(c, codes)
    subject, *rest = c.args
    if c.relation in ("typed", *WINDOWS):
        return True
    place = _place(graph, subject, match)
    if any(literal_holds(c.relation, n.value) for n in _literals(graph, place) if c.relation in OF_LITERALS):
        return True
    code = next((match[a] if isinstance(a, Var) else a for a in rest), -1)
    return (c.relation, place, code) in facts


def _place(graph: Graph, subject: Any, match: Match) -> int:
    """Return the class of a variable or of a matched term."""
    found = match[subject]
    if isinstance(found, int):
        return found
    return next(c for c, nodes in enumerate(graph.classes) if any(n is found for n in nodes))


def _literals(graph: Graph, c: int) -> list[Const]:
    return [n.value for n in graph.classes[c] if n.kind == LITERAL_NODE and isinstance(n.value, Const)]


def _computed(graph: Graph, c: Condition, match: Match) -> bool:
    """Tell whether a computed table has a row for the literals of a match."""
    row = asked(c, lambda a: match[a] if isinstance(a, Var) else a)
    inputs = [_literals(graph, match[a]) for a in row.literals]
    wanted = [_literals(graph, match[a]) if a in match else None for a in row.gives]
    for drawn in product(*inputs):
        given = row.row(*drawn)
        if given is not None and all(w is None or g in w for g, w in zip(given, wanted)):
            return True
    return False


def _failure(graph: Graph, rule: Rule, c: int, match: Match, sides: list[Any], known: Mapping[int, Any]) -> str:
    left, right = sides
    t = graph.types[c]
    if rule.contract != "contracted":
        return "" if same_value(left, right, t) else f"{rule.name}: {first_difference(left, right, t)}"
    places = {v: k for v, k in match.items() if isinstance(v, Var) and v.kind == "value"}
    if any(isinstance(known[k], TileArray) != isinstance(graph.types[k], TileType) for k in places.values()):
        return f"{rule.name}: a tile and a scalar are one value"
    values = {v: _valued(known[k], graph.types[k]) for v, k in places.items()}
    return "; ".join(contracted_failures(rule, values, _valued(left, t), _valued(right, t)))


def _valued(value: Any, t: Any) -> Valued:
    if isinstance(t, TileType) and isinstance(value, TileArray):
        return Valued(np.ascontiguousarray(value.region), t)
    assert isinstance(t, ScalarType)
    return Valued(np.array([value]), t)


def _evaluate(p: Pattern, match: Match, known: Mapping[int, Any], compute: Compute) -> Any:
    """Return the value of a pattern by its matched nodes, from the class values of its variables."""
    if isinstance(p, Var):
        return known[match[p]]
    node: Node = match[p]
    return compute(node, [_evaluate(child, match, known, compute) for child in p.children])


# -- matching ------------------------------------------------------------------------------------------------------


def _matches(graph: Graph, p: Pattern, c: int, bound: Match) -> Iterator[Match]:
    if p in bound:
        if not isinstance(p, Var) or bound[p] == c:
            yield bound
        return
    if isinstance(p, Var):
        yield {**bound, p: c}
        return
    for node in graph.classes[c]:
        yield from _at(graph, p, c, node, bound)


def _at(graph: Graph, p: Pattern, c: int, node: Node, bound: Match) -> Iterator[Match]:
    """Yield the matches of a pattern whose outermost term is the given node of class ``c``."""
    if isinstance(p, Var):
        if bound.get(p, c) == c:
            yield {**bound, p: c}
        return
    if p.op == LITERAL:
        if node.kind == LITERAL_NODE and literal_codes(node.value.value, node.value.dtype) == p.args:  # type: ignore[union-attr]
            yield {**bound, p: node}
        return
    if node.decl is None or node.decl.name != p.op:
        return
    found: Match = {**bound, p: node}
    for a, code in zip(p.args, node.key, strict=True):
        if (found.setdefault(a, code) if isinstance(a, Var) else a) != code:
            return
    states = [found]
    for child, k in zip(p.children, node.children, strict=True):
        states = [m for state in states for m in _matches(graph, child, k, state)]
    yield from states
