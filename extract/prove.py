"""Proofs: sequences of rule applications that lead from one form of a value to another.

The saturated e-graph says that two forms are equal; which rules say so is found again by a search over its nodes.
A rule applies to a form when its pattern fits; where an operand has another form than the pattern asks for, the
operand is led there first, by a proof of its own. What is found is a sequence of rewrites of concrete terms.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

from ..rewrite.graph import LITERAL, Graph, Node
from ..rules.rule import RULES, Pattern, Rule, Term, Var
from ..rules.terms import LITERAL as TERM_LITERAL
from .derive import FURTHER, MOST_COMPARED, Bindings, Deriver, Step
from .forms import Form, Forms

#: What a rule of the second phase counts on the way to another rule's pattern.
_DETOUR = 40

_BY_LEFT: dict[str, list[Rule]] = {}
_BY_RIGHT: dict[str, list[Rule]] = {}
_COLLAPSING: list[Rule] = []
for _rule in RULES.values():
    _BY_LEFT.setdefault(_rule.lhs.op, []).append(_rule)
    if isinstance(_rule.rhs, Term):
        _BY_RIGHT.setdefault(_rule.rhs.op, []).append(_rule)
    else:
        _COLLAPSING.append(_rule)


@dataclass(frozen=True, eq=False)
class Rewrite:
    """One application of a rule to a form; ``backwards``: from the rule's right side to its left."""

    step: Step
    before: Form
    after: Form
    backwards: bool = False

    @property
    def rule(self) -> Rule:
        return self.step.rule


Proof = tuple[Rewrite, ...]


class Prover:
    """Proofs among the forms of one region's values."""

    def __init__(self, forms: Forms, deriver: Deriver, *, both_ways: bool = True) -> None:
        """``both_ways``: rules are read from right to left, too."""
        #: Whether rules of the second phase may bring an operand to a pattern, which the first phase never saw.
        self.detours = False
        #: How deep proofs of operands nest.
        self.nested = 10
        self.forms = forms
        self.graph: Graph = forms.graph
        self.deriver = deriver
        self.both_ways = both_ways
        self._active: set[tuple[int, int]] = set()
        self._known: dict[tuple[int, int], tuple[Form, Proof]] = {}
        self._proofs: dict[tuple[int, int], Proof] = {}
        self._applications: dict[tuple[int, int, int, bool], list[tuple[Step, Bindings]]] = {}

    def loosen(self, both_ways: bool, detours: bool, nested: int) -> None:
        """Search anew, with as many comparisons again."""
        self.both_ways, self.detours, self.nested = both_ways, detours, nested
        self.deriver.left = MOST_COMPARED

    def proof(self, start: Form, goal: Form) -> Proof | None:
        """Return a short proof that two forms of one class are equal; ``None`` when the search finds none."""
        if start is goal:
            return ()
        if start.c != goal.c:
            return None
        key = (id(start), id(goal))
        if key not in self._proofs:
            found = self.reach(start, goal.node)
            proof = None if found is None else self._operands(*found, goal)
            if proof is None:
                return None
            self._proofs[key] = proof
        return self._proofs[key]

    def _operands(self, form: Form, proof: Proof, goal: Form) -> Proof | None:
        """Extend a proof by proofs of the operands of a form whose node is the goal's."""
        for mine, wanted in zip(form.children, goal.children):
            more = self.proof(mine, wanted)
            if more is None:
                return None
            proof = _joined(proof, more)
        return proof

    def reach(self, start: Form, node: Node) -> tuple[Form, Proof] | None:
        """Return a form with a node of the same class, and the proof; ``None`` when the search finds none."""
        if start.node is node:
            return start, ()
        key = (id(start), id(node))
        if key in self._known:
            return self._known[key]
        asked = (id(start.node), id(node))
        if asked in self._active or len(self._active) >= self.nested:
            return None
        self._active.add(asked)
        try:
            found = self._search(start, node)
        finally:
            self._active.discard(asked)
        if found is not None:
            self._known[key] = found
        return found

    def _search(self, start: Form, node: Node) -> tuple[Form, Proof] | None:
        heap: list[tuple[int, int, Form, Proof]] = [(0, 0, start, ())]
        seen: set[int] = set()
        number = 0
        while heap:
            _, _, form, proof = heapq.heappop(heap)
            if form.node is node:
                return form, proof
            if id(form.node) in seen:
                continue
            seen.add(id(form.node))
            for other, more in self._neighbours(form, node, seen):
                number += 1
                length = _length(proof) + _length(more[:-1], _DETOUR) + _length(more[-1:])
                heapq.heappush(heap, (length, number, other, _joined(proof, more)))
        return None

    def _neighbours(self, form: Form, goal: Node, seen: set[int]) -> Iterator[tuple[Form, Proof]]:
        """Yield the forms that one rule makes of a form, with the proofs."""
        name = form.node.decl.name if form.node.decl is not None else ""
        for rule in _BY_LEFT.get(name, ()):
            yield from self._applied(rule, form, goal, False, seen)
        if self.both_ways:
            for rule in (*_BY_RIGHT.get(name, ()), *_COLLAPSING):
                yield from self._applied(rule, form, goal, True, seen)

    def _applied(
        self, rule: Rule, form: Form, goal: Node, backwards: bool, seen: set[int]
    ) -> Iterator[tuple[Form, Proof]]:
        near, far = (rule.rhs, rule.lhs) if backwards else (rule.lhs, rule.rhs)
        # What the second phase makes is final, unless one of its own rules made the goal of it: such a rule is taken
        # to the goal only.
        last = rule.phase != "normalise" and not backwards
        if last and len(self._active) > 1 and not self.detours:
            return
        end_at = goal if last and goal.rule not in FURTHER else None
        for step, bound in self._matches(rule, form.c, form.node, end_at, backwards):
            end = bound[far] if isinstance(far, Term) else None
            if end is not None and id(end) in seen:
                continue
            made = self._rewritten(form, near, far, bound)
            if made is not None and id(made[1].node) not in seen:
                aligned, after, proof = made
                yield after, (*proof, Rewrite(step, aligned, after, backwards))

    def _matches(
        self, rule: Rule, c: int, node: Node, goal: Node | None, backwards: bool
    ) -> list[tuple[Step, Bindings]]:
        """Return the applications of a rule to a node, kept: searches come by the same node again and again."""
        key = (rule.number, id(node), id(goal), backwards)
        if key not in self._applications:
            self._applications[key] = list(self.deriver.matches(rule, c, node, goal, backwards))
        return self._applications[key]

    def _rewritten(self, form: Form, near: Pattern, far: Pattern, bound: Bindings) -> tuple[Form, Form, Proof] | None:
        """Return the form brought to one side of a rule, the other side's form, and the proof of the former."""
        met: dict[str, Form] = {}
        aligned = self._aligned(form, near, bound, met)
        if aligned is None:
            return None
        return aligned[0], self._built(far, form.c, bound, met, {}), aligned[1]

    def _aligned(self, form: Form, p: Pattern, bound: Bindings, met: dict[str, Form]) -> tuple[Form, Proof] | None:
        """Lead a form to one that a pattern fits; ``met`` are the forms of its variables."""
        if isinstance(p, Var):
            known = met.setdefault(p.name, form)
            proof = self.proof(form, known)
            return None if proof is None else (known, proof)
        node = _literal(self.graph, form.c) if p.op == TERM_LITERAL else bound[p]
        reached = self.reach(form, node)
        if reached is None:
            return None
        form, proof = reached
        children: list[Form] = []
        for child, inner in zip(form.children, p.children):
            found = self._aligned(child, inner, bound, met)
            if found is None:
                return None
            children.append(found[0])
            proof = _joined(proof, found[1])
        return self.forms.make(form.c, form.node, children or form.children), proof

    def _built(self, p: Pattern, c: int, bound: Bindings, met: dict[str, Form], made: dict[Term, Form]) -> Form:
        """Return the form of a rule's other side, a value of class ``c``."""
        if isinstance(p, Var):
            return met[p.name] if p.name in met else self.forms.smallest(c)
        if p not in made:
            node = _literal(self.graph, c) if p.op == TERM_LITERAL else bound[p]
            below = zip(p.children, node.children)
            made[p] = self.forms.make(c, node, [self._built(q, k, bound, met, made) for q, k in below])
        return made[p]


def _joined(first: Proof, more: Proof) -> Proof:
    """Return two proofs one after the other; what both say of shared operands is done once."""
    if not first or not more:
        return first or more
    known = set(map(id, first))
    return (*first, *(r for r in more if id(r) not in known))


def _length(proof: Proof, late: int = 8) -> int:
    """Return a proof's length; against the rule's direction counts a little more.

    ``late``: what rules of the second phase count. On the way to another rule's pattern they are a detour, since the
    first phase never saw what they make.
    """
    return sum((8 if r.rule.phase == "normalise" else late) + r.backwards for r in proof)


def _literal(graph: Graph, c: int) -> Node:
    return next(n for n in graph.classes[c] if n.kind == LITERAL)
