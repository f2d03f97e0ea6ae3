"""Forms of values: one e-node chosen for every operand, so that a form is a term that can be built, shown and priced.

Forms are shared: equal forms of one :class:`Forms` are one object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ..ir.op import OPS
from ..ir.program import Op, Value
from ..rewrite.encode import argument_codes
from ..rewrite.graph import LEAF, LITERAL, OPERATION, Graph, Node
from ..rewrite.region import Region
from ..rules.terms import child_params


@dataclass(frozen=True, eq=False, slots=True)
class Form:
    """Node ``node`` of class ``c`` over the forms of its operands."""

    c: int
    node: Node
    children: tuple[Form, ...] = ()


class Forms:
    """The forms of one region's values."""

    def __init__(self, region: Region, graph: Graph) -> None:
        self.region = region
        self.graph = graph
        self._made: dict[tuple[int, tuple[int, ...]], Form] = {}
        self._smallest: dict[int, Form] | None = None
        self._node = {
            (n.decl.name, n.key, n.children): (c, n)
            for c, nodes in enumerate(graph.classes) for n in nodes if n.kind == OPERATION and n.decl is not None
        }  # fmt: skip
        self._plain: dict[object, tuple[int, Node]] = {}
        for c, nodes in enumerate(graph.classes):
            for n in nodes:
                if n.kind != OPERATION:
                    self._plain[_plain_key(n)] = (c, n)

    def make(self, c: int, node: Node, children: Iterable[Form] = ()) -> Form:
        """Return the form of a node over forms of its operands, in order."""
        below = tuple(children)
        key = (id(node), tuple(map(id, below)))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = Form(c, node, below)
        return found

    def written(self) -> dict[str, Form]:
        """Return the form of every leaf and operation as the region writes it; none for what the graph lacks."""
        made: dict[str, Form] = {}
        for i, leaf in enumerate(self.region.leaves):
            if ("leaf", i) in self._plain:
                made[leaf.name] = self.make(*self._plain["leaf", i])
        for op in self.region.ops:
            form = self._written(op, made)
            if form is not None:
                made[op.result.name] = form
        return made

    def _written(self, op: Op, made: Mapping[str, Form]) -> Form | None:
        children: list[Form] = []
        for p in child_params(OPS[op.name]):
            o = op.operands[p]
            plain = None if isinstance(o, Value) else self._plain.get(o)
            child = made.get(o.name) if isinstance(o, Value) else self.make(*plain) if plain else None
            if child is None:
                return None
            children.append(child)
        found = self._node.get((op.name, argument_codes(op), tuple(f.c for f in children)))
        return self.make(*found, children) if found else None

    def picked(self, picks: Mapping[int, int]) -> dict[int, Form]:
        """Return the form that a solution chooses for each of its classes."""
        made: dict[int, Form] = {}
        for root in picks:
            stack = [root]
            while stack:
                c = stack[-1]
                node = self.graph.classes[c][picks[c]]
                waiting = [k for k in node.children if k not in made]
                if c in made or not waiting:
                    made.setdefault(c, self.make(c, node, [made[k] for k in node.children]))
                    stack.pop()
                else:
                    stack += waiting
        return made

    def smallest(self, c: int) -> Form:
        """Return a form of a class with the fewest levels."""
        if self._smallest is None:
            self._smallest = {}
            changed = True
            while changed:
                changed = False
                for k, nodes in enumerate(self.graph.classes):
                    fit = (n for n in nodes if all(x in self._smallest for x in n.children))
                    if k not in self._smallest and (n := next(fit, None)) is not None:
                        self._smallest[k] = self.make(k, n, [self._smallest[x] for x in n.children])
                        changed = True
        return self._smallest[c]

    def replaced(self, form: Form, old: Form, new: Form, done: dict[int, Form] | None = None) -> Form:
        """Return a form with ``new`` wherever ``old`` stood."""
        done = {id(old): new} if done is None else done
        for f in _children_first(form, done):
            below = [done[id(k)] for k in f.children]
            same = all(a is b for a, b in zip(below, f.children))
            done[id(f)] = f if same else self.make(f.c, f.node, below)
        return done[id(form)]


def _plain_key(n: Node) -> object:
    """Return what a node without operands is found by: a leaf's number, a literal, ``None`` for an absent operand."""
    return ("leaf", n.key[0]) if n.kind == LEAF else n.value if n.kind == LITERAL else None


def _children_first(form: Form, done: Mapping[int, Form]) -> Iterator[Form]:
    """Yield the forms that are not done, each after its operands."""
    stack = [form]
    while stack:
        f = stack[-1]
        waiting = [k for k in f.children if id(k) not in done]
        if id(f) in done or not waiting:
            stack.pop()
            if id(f) not in done:
                yield f
        else:
            stack += reversed(waiting)


def parts(forms: Iterable[Form]) -> list[Form]:
    """Return every distinct form in some forms, operands first."""
    seen: dict[int, Form] = {}
    for form in forms:
        for f in _children_first(form, seen):
            seen[id(f)] = f
    return list(seen.values())


def is_instruction(form: Form) -> bool:
    """Return whether a form is an operation of its own: no leaf, literal, or other name of a recipe's value."""
    node = form.node
    return node.kind == OPERATION and node.decl is not None and node.decl.name != "tile.approx"
