"""Rebuilding operations from a region's solution, each class once, where the first of its uses stood.

What does not depend on names is worked out once per solved region (:class:`Recipe`) and kept with the memo;
:class:`Builder` then only fills in the names and spans of the region at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from ..ir.op import Kind, OpDecl
from ..ir.program import Op, Operand, Statement, Value
from ..ir.types import TileType, Type
from ..rewrite.graph import LEAF, LITERAL, Graph, Node
from ..rewrite.region import Region
from ..rules.terms import child_params
from .dag import Solution
from .lowered import Instruction
from .price import Price, Pricer

#: How an operand of a step is found: a class, a literal list, or the written operation's own operand.
_CLASS, _GIVEN, _WRITTEN = range(3)


class Step(NamedTuple):
    """How one class is made. ``leaves`` is the bit mask of the leaves it needs, through all classes below.

    ``leaf`` is a leaf number, or -1; ``op`` is empty for leaves and literals, and for classes that are another
    name of their only child. ``written`` is the number of
    the operation that lends its span, ``named`` of the one that lends its name, extended by ``suffix``.
    ``stands_for`` is the class of the composite whose recipe ends in this one, or -1.
    """

    leaves: int
    leaf: int = -1
    literal: Operand = None
    op: str = ""
    operands: tuple[tuple[int, Any], ...] = ()
    children: tuple[int, ...] = ()
    attrs: tuple[tuple[str, Any], ...] = ()
    type: Type | None = None
    written: int = 0
    named: int = 0
    suffix: str = ""
    cycles: float = 0.0
    instructions: int = 0
    rule: int = 0
    inexact: bool = False
    stands_for: int = -1


@dataclass(frozen=True)
class Recipe:
    """The steps of a solution by class, and the operations that each class is the value of."""

    steps: dict[int, Step]
    op_class: list[int]
    members: dict[int, tuple[int, ...]]


def recipe(region: Region, graph: Graph, solution: Solution, pricer: Pricer) -> Recipe:
    """Return the recipe of a solved region."""
    return _Recipes(region, graph, solution, pricer).make()


class _Recipes:
    def __init__(self, region: Region, graph: Graph, solution: Solution, pricer: Pricer) -> None:
        self.region = region
        self.graph = graph
        self.pricer = pricer
        self.nodes: dict[int, Node] = {c: graph.classes[c][i] for c, i in solution.picks.items()}
        members: dict[int, list[int]] = {}
        for i, c in enumerate(graph.op_class):
            members.setdefault(c, []).append(i)
        self.members = {c: tuple(found) for c, found in members.items()}
        self.users: dict[int, list[int]] = {}
        for c, node in self.nodes.items():
            for k in node.children:
                self.users.setdefault(k, []).append(c)
        self.approx = {
            k: c for c, node in self.nodes.items() if is_approx(node) and c in self.members for k in node.children
        }
        priced = pricer.nodes(graph)
        self.prices = {c: priced[c][i] for c, i in solution.picks.items()}
        self.order = self._children_first()
        self.helped = self._helped()

    def make(self) -> Recipe:
        steps: dict[int, Step] = {}
        for c in self.order:
            steps[c] = self.step(c, self.nodes[c], steps)
        return Recipe(steps, self.graph.op_class, self.members)

    def _children_first(self) -> list[int]:
        nodes = self.nodes
        order: dict[int, None] = {}
        for root in nodes:
            stack = [root]
            while stack:
                c = stack[-1]
                if c in order:
                    stack.pop()
                    continue
                waiting = [k for k in nodes[c].children if k in nodes and k not in order]
                if waiting:
                    stack += waiting
                    continue
                order[c] = None
                stack.pop()
        return list(order)

    def _helped(self) -> dict[int, int]:
        """Return for every class the first operation that it computes or helps to compute."""
        none = len(self.region.ops)
        found: dict[int, int] = {}
        for c in reversed(self.order):
            if c in self.members:
                found[c] = self.members[c][0]
            else:
                found[c] = min([found[user] for user in self.users.get(c, ())], default=none)
        return {c: i if i < none else 0 for c, i in found.items()}

    def step(self, c: int, node: Node, steps: dict[int, Step]) -> Step:
        if node.kind == LEAF:
            return Step(1 << node.key[0], node.key[0])
        if node.kind == LITERAL:
            return Step(0, literal=node.value)
        if node.decl is None:
            return Step(0)
        if is_approx(node):
            (child,) = node.children
            return Step(steps[child].leaves, children=(child,))
        price = self.prices[c]
        assert isinstance(price, Price)
        children = tuple([k for k in node.children if k in steps])
        leaves = 0
        for k in children:
            leaves |= steps[k].leaves
        written = node.origin if node.origin >= 0 else self.helped[c]
        named, suffix = self.name(c, node)
        t = self.region.ops[node.origin].result.type if node.origin >= 0 else node.type
        return Step(
            leaves, -1, None, node.decl.name, self.operands(node, written), children,
            tuple(node.attrs.items()), t, written, named, suffix,
            price.cycles, price.instructions, node.rule if node.origin < 0 else 0, node.approx,
            self.stands_for(c),
        )  # fmt: skip

    def stands_for(self, c: int) -> int:
        """Return the written composite whose value a class gives by a recipe, or -1."""
        return -1 if c in self.members else self.approx.get(c, -1)

    def operands(self, node: Node, written: int) -> tuple[tuple[int, Any], ...]:
        decl = node.decl
        assert decl is not None
        positions, others = _positions(decl)
        found: list[tuple[int, Any]] = [(_CLASS, k) for k in node.children]
        if not others:
            return tuple(found)
        own = self.region.ops[written]
        # A written scratch tile fits operands as they were written: another dtype or shape needs its own.
        same = own.name == decl.name and all(
            getattr(own.operands[i], "type", None) == self.graph.types[k] for i, k in zip(positions, node.children)
        )
        for i, given in others:
            if given:
                found.insert(i, (_GIVEN, node.operands[i]))
            else:
                found.insert(i, (_WRITTEN, i) if same else (_GIVEN, None))
        return tuple(found)

    def name(self, c: int, node: Node) -> tuple[int, str]:
        """Return the operation whose name a class takes, and the suffix of a new name made from it."""
        composite = self.stands_for(c)
        c = c if composite < 0 else composite
        if c in self.members:
            roots = [i for i in self.members[c] if self.region.ops[i].result.name in self.region.roots]
            return (roots or self.members[c])[0], ""
        assert node.decl is not None
        what = node.decl.name.split(".")[1]
        dtype = f"_{node.type.dtype.short}" if what == "cast" and isinstance(node.type, TileType) else ""
        return self.helped[c], f"__{what}{dtype}_tmp"


def is_approx(node: Node) -> bool:
    """Return whether a node is another name for the recipe that computes a composite's value."""
    return node.decl is not None and node.decl.name == "tile.approx"


@lru_cache(maxsize=1024)
def _positions(decl: OpDecl) -> tuple[tuple[int, ...], tuple[tuple[int, bool], ...]]:
    """Return which operands are children of a term, and the others in order, with whether they are literal lists."""
    inside = child_params(decl)
    params = enumerate(decl.operand_params)
    return inside, tuple((i, p.kind is Kind.DIMS) for i, p in params if i not in inside)


class Builder:
    """Builds one region's operations into a block.

    ``late`` is the bit mask of the leaves that the block defines further down; the caller clears bits as it
    goes. ``leaf(value)`` returns what a leaf has become, ``taken`` are the names in use in the function.
    """

    def __init__(
        self,
        region: Region,
        made_from: Recipe,
        number: int,
        replaced: dict[str, Operand],
        leaf: Callable[[Value], Operand],
        taken: Callable[[], set[str]],
        instructions: list[Instruction],
    ) -> None:
        self.region = region
        self.recipe = made_from
        self.number = number
        self.replaced = replaced
        self.leaf = leaf
        self.taken = taken
        self.instructions = instructions
        self.made: dict[int, Operand] = {}
        self.late = 0

    def reach(self, i: int, out: list[Statement]) -> None:
        """Build operation ``i``'s class at its old place, if it is used and its leaves exist by now."""
        c = self.recipe.op_class[i]
        step = self.recipe.steps.get(c)
        if step is None or step.leaves & self.late or self.region.ops[i].results[0].name in self.replaced:
            return
        self._settle(c, out)

    def demand(self, i: int, out: list[Statement]) -> None:
        """Make sure the result of operation ``i`` exists before a statement that reads it."""
        if self.region.ops[i].result.name not in self.replaced:
            self._settle(self.recipe.op_class[i], out)

    def _settle(self, c: int, out: list[Statement]) -> None:
        value = self._make(c, out)
        for i in self.recipe.members.get(c, ()):
            self.replaced[self.region.ops[i].result.name] = value

    def _make(self, c: int, out: list[Statement]) -> Operand:
        steps, made = self.recipe.steps, self.made
        stack = [c]
        while stack:
            k = stack[-1]
            if k in made:
                stack.pop()
                continue
            step = steps[k]
            waiting = [x for x in step.children if x not in made]
            if waiting:
                stack += reversed(waiting)
                continue
            made[k] = self._operation(k, step, out) if step.op else self._given(step)
            stack.pop()
        return made[c]

    def _given(self, step: Step) -> Operand:
        if step.children:
            return self.made[step.children[0]]
        return self.leaf(self.region.leaves[step.leaf]) if step.leaf >= 0 else step.literal

    def _operation(self, c: int, step: Step, out: list[Statement]) -> Operand:
        written = self.region.ops[step.written]
        operands = tuple([self._operand(how, what, written) for how, what in step.operands])
        name = self.region.ops[step.named].results[0].name
        if step.suffix:
            name = self._fresh(name + step.suffix)
        result = Value(name, step.type)  # type: ignore[arg-type]
        op = Op(step.op, operands, dict(step.attrs), (result,), written.span)
        out.append(op)
        self.instructions.append(
            Instruction(
                op, step.cycles, step.instructions, step.rule, written.span, self.number,
                c if step.stands_for < 0 else step.stands_for, step.inexact,
            )
        )
        return result

    def _operand(self, how: int, what: Any, written: Op) -> Operand:
        if how == _CLASS:
            return self.made.get(what)
        if how == _GIVEN:
            return what  # type: ignore[no-any-return]
        scratch = written.operands[what]
        return self.leaf(scratch) if isinstance(scratch, Value) else scratch

    def _fresh(self, stem: str) -> str:
        taken = self.taken()
        version = 0
        while f"{stem}_v{version}" in taken:
            version += 1
        taken.add(f"{stem}_v{version}")
        return f"{stem}_v{version}"
