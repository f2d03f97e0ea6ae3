"""The input's own lowering: every operation as written, every cast by its shortest chain.

An operation that the target refuses is expanded by the cheapest rule that fits it by its types alone, as a composite
is by its reference recipe: that is what a fixed lowering would emit.

It is what lowering is compared with, and what it falls back to, so it has the form of a saturated e-graph in
which every class has one node. The shortest chain is the first of :func:`tilegg.rules.paths.roads` that the
contract admits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.op import OPS
from ..ir.program import Const, Op, Value
from ..ir.types import TileType, Type, with_dtype
from ..ir.valueset import ValueSet
from ..rewrite.encode import argument_codes, handed_classes, literal_node, operation_node, shape_code
from ..rewrite.graph import ABSENT, LEAF, LITERAL, OPERATION, Graph, Node
from ..rewrite.region import Region
from ..rules.casts import road_words
from ..rules.paths import Hop, Road, roads
from ..rules.recipes.terms import SHAPE, X
from ..rules.rule import RULES, Pattern, Rule, Term, Var
from ..rules.terms import CODE_MODES, CODE_SATURATIONS, child_params, saturation_code
from ..rules.terms import LITERAL as TERM_LITERAL
from .expansions import bind, expansions
from .inplace import written_copies
from .lowered import Totals
from .price import Price, Pricer, Refusal


@dataclass(frozen=True)
class Plain:
    """A region's plain lowering and its totals, which say whether all of it is legal."""

    graph: Graph
    totals: Totals


def plain(region: Region, values: Mapping[int, ValueSet], pricer: Pricer, *, keys: bool = True) -> Plain:
    """Return a region's plain lowering; ``values`` are known value sets by operation or leaf number.

    Numbers count the leaves first, then the operations, in order. Without ``keys`` the nodes lack their
    argument codes, which only derivations look at.
    """
    return _Plain(region, values, pricer, keys).build()


#: Instructions, cycles, inexact steps, classes of literals, number of classes, whether all is legal.
_State = tuple[int, float, int, dict[Const | None, int], int, bool]


class _Plain:
    def __init__(self, region: Region, values: Mapping[int, ValueSet], pricer: Pricer, keys: bool) -> None:
        self.region = region
        self.keys = keys
        self.pricer = pricer
        self.values = values
        self.classes: list[list[Node]] = []
        self.types: list[Type] = []
        self.sets: dict[int, ValueSet] = {}
        self.class_of: dict[str, int] = {}
        self.literals: dict[Const | None, int] = {}
        self.count, self.cycles, self.inexact = 0, 0.0, 0
        self.legal = True

    def build(self) -> Plain:
        for i, leaf in enumerate(self.region.leaves):
            self._name(leaf, i, self._class(Node(LEAF, type=leaf.type, value=leaf, key=(i,)), leaf.type))
        first = len(self.region.leaves)
        for i, op in enumerate(self.region.ops):
            c = self._cast(i, op) if op.name == "tile.cast" else self._operation(i, op)
            self._name(op.result, first + i, c)
        op_class = [self.class_of[op.result.name] for op in self.region.ops]
        roots = [c for c, op in zip(op_class, self.region.ops) if op.result.name in self.region.roots]
        leaves = list(range(first))
        graph = Graph(
            self.classes, self.types, op_class, leaves, list(dict.fromkeys(roots)), self.sets,
            "saturated", frozenset(i for i, v in enumerate(self.region.leaves) if v.name in self.region.dying),
            handed_classes(self.region, op_class, leaves),
        )  # fmt: skip
        return Plain(graph, Totals(self.count, self.cycles, self.inexact, self.legal))

    def _class(self, node: Node, t: Any) -> int:
        self.classes.append([node])
        self.types.append(t)
        return len(self.classes) - 1

    def _name(self, value: Value, number: int, c: int) -> None:
        self.class_of[value.name] = c
        if number in self.values:
            self.sets[c] = self.values[number]

    def _child(self, o: Any) -> int:
        if isinstance(o, Value):
            return self.class_of[o.name]
        known = self.literals.get(o)
        if known is None:
            node = Node(ABSENT) if o is None else Node(LITERAL, type=o.type, value=o)
            known = self.literals[o] = self._class(node, node.type)
        return known

    def _operation(self, i: int, op: Op) -> int:
        decl = OPS[op.name]
        children = tuple([self._child(op.operands[p]) for p in child_params(decl)])
        t = op.result.type
        node = Node(OPERATION, decl, t, op.attrs, op.operands, children, origin=i, key=self._key(op))
        price = self.pricer.node_of(self.types, self.sets, node)
        if isinstance(price, Refusal):
            made = self._expanded(op, children)
            if made is not None:
                return made
        elif decl.inout or self.region.handed:
            price = self.pricer.with_copies(price, t, written_copies(self.region, op, self.pricer.target))
        return self._counted(node, t, price)

    def _expanded(self, op: Op, children: tuple[int, ...]) -> int | None:
        """Return the class of an operation by a rule: the first legal one of a composite, else the cheapest."""
        found: tuple[tuple[float, int], Rule, dict[Var, int]] | None = None
        for rule in expansions(op.name):
            bound = bind(rule, argument_codes(op), children, self.classes, self.types)
            if bound is None:
                continue
            before = self._state()
            self.literals, self.legal = dict(self.literals), True
            made = self._made(rule.rhs, bound, rule.number, {})
            if self.legal and OPS[op.name].composite:
                self.legal = before[-1]
                return made
            cost = self.cycles - before[1], self.count - before[0]
            if self.legal and (found is None or cost < found[0]):
                found = cost, rule, bound
            self._back_to(before)
        return None if found is None else self._made(found[1].rhs, found[2], found[1].number, {})

    def _state(self) -> _State:
        """Return what the totals are, and how many classes there are."""
        return self.count, self.cycles, self.inexact, self.literals, len(self.classes), self.legal

    def _back_to(self, state: _State) -> None:
        """Forget the classes made since, and what they cost."""
        self.count, self.cycles, self.inexact, self.literals, size, self.legal = state
        del self.classes[size:], self.types[size:]

    def _made(self, p: Pattern, bound: dict[Var, int], rule: int, made: dict[Term, int]) -> int:
        if isinstance(p, Var):
            return bound[p]
        if p not in made:
            args = tuple(bound[a] if isinstance(a, Var) else a for a in p.args)
            if p.op == TERM_LITERAL:
                made[p] = self._child(literal_node(*args).value)
            else:
                children = tuple(self._made(c, bound, rule, made) for c in p.children)
                node = operation_node(OPS[p.op], args, children, rule)
                made[p] = self._priced(node, node.type)
        return made[p]

    def _key(self, op: Op) -> tuple[int, ...]:
        return argument_codes(op) if self.keys else ()

    def _priced(self, node: Node, t: Any) -> int:
        return self._counted(node, t, self.pricer.node_of(self.types, self.sets, node))

    def _counted(self, node: Node, t: Any, price: Price | Refusal) -> int:
        c = self._class(node, t)
        if isinstance(price, Refusal):
            self.legal = False
        else:
            self.count += price.instructions
            self.cycles += price.cycles
            self.inexact += price.inexact
        return c

    def _cast(self, i: int, op: Op) -> int:
        child = self._child(op.operands[0])
        source, result = self.types[child], op.result.type
        assert isinstance(source, TileType) and isinstance(result, TileType)
        if self.pricer.target is None:
            return self._operation(i, op)
        road = shortest(self.pricer, source, op, self.sets.get(child))
        if road is None:
            return self._refused(i, op, child)
        for n, hop in enumerate(road.hops):
            t = with_dtype(result, hop.dst)
            if hop.composed is None:
                child = self._hop(child, t, hop, road, n)
            else:
                bound = {X: child, SHAPE: shape_code(t)}
                child = self._made(hop.composed.pattern, bound, RULES[hop.composed.rule].number, {})
        return child

    def _refused(self, i: int, op: Op, child: int) -> int:
        self.legal = False
        node = Node(OPERATION, OPS[op.name], op.result.type, op.attrs, (), (child,), origin=i, key=self._key(op))
        return self._class(node, op.result.type)

    def _hop(self, child: int, t: TileType, hop: Hop, road: Road, n: int) -> int:
        last = n == len(road.hops) - 1
        kind = "exact" if road.exact else "faithful"
        attrs: dict[str, Any] = {"target_type": hop.dst}
        mode, saturation = road_words(road)[len(road.hops) - 1 + 2 * n :][:2]
        if CODE_MODES[mode] != OPS["tile.cast"].defaults["mode"]:
            attrs["mode"] = CODE_MODES[mode]
        if saturation != saturation_code(None, hop.dst):
            attrs["saturation_mode"] = CODE_SATURATIONS[saturation]
        made = Op("tile.cast", (Value("", with_dtype(t, hop.src)), None), attrs, (Value("", t),))
        codes = self._key(made)
        node = Node(
            OPERATION, OPS["tile.cast"], t, attrs, (), (child,),
            RULES[f"cast.road.{kind}.{len(road.hops)}"].number, -1, last and not road.exact,
            key=(*codes[:-1], int(last and not road.exact)) if codes else (),
        )  # fmt: skip
        return self._priced(node, t)


def shortest(pricer: Pricer, source: TileType, op: Op, values: ValueSet | None) -> Road | None:
    """Return the shortest chain of a cast that the contract admits, one of native casts if there is one.

    Facts count only where none is known without.
    """
    dst = op.result.type.dtype  # type: ignore[union-attr]
    mode, saturation = op.attrs.get("mode", "round"), op.attrs.get("saturation_mode")
    assert pricer.target is not None
    composed: Road | None = None
    for facts in (None, values) if values is not None else (None,):
        found = roads(pricer.target, source.dtype, dst, mode, saturation, facts)
        admitted = [r for r in found if r.exact or not pricer.exact_only]
        native = next((r for r in admitted if r.native), None)
        if native is not None:
            return native
        composed = composed or next(iter(admitted), None)
    return composed

