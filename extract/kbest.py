"""Other choices: the k best programs of a region, and what else could have computed an instruction's value.

Both force choices and solve the rest of the region again, so their costs count shared work once.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from ..ir.types import TileType
from ..rewrite.graph import ABSENT, LEAF, LITERAL, Graph, Node
from ..rules.paths import Road
from ..rules.rule import rule_names
from .chains import Chain, chain, conversion, emitted_values, is_cast, offered, requests, road_behind
from .dag import Choice, Problem, Solution, reachable, solve
from .lowered import FunctionReport, Instruction, Lowered, RegionResult, Totals
from .price import Price, Pricer, Refusal, pricer_for
from .remarks import chain_cycles
from .weights import chosen_totals

# -- forcing -----------------------------------------------------------------------------------------------


def restrict(
    p: Problem, fixed: Mapping[int, int], banned: Mapping[int, frozenset[int]] | None = None
) -> Problem | None:
    """Return the problem with some classes' nodes fixed or banned, ``None`` when no choice is left."""
    banned = banned or {}
    classes: dict[int, list[Choice]] = {}
    for c, options in p.classes.items():
        wanted, excluded = fixed.get(c), banned.get(c, frozenset())
        classes[c] = [
            o for o in options
            if (wanted is None or o.picks[0][1] == wanted) and o.picks[0][1] not in excluded
        ]  # fmt: skip
    done = _derivable(classes)
    if not done.issuperset(p.roots):
        return None
    kept = {c: [o for o in classes[c] if done.issuperset(o.children)] for c in classes if c in done}
    return Problem(reachable(kept, p.roots), p.roots)


def _derivable(classes: Mapping[int, list[Choice]]) -> set[int]:
    users: dict[int, list[int]] = {}
    for c, options in classes.items():
        for o in options:
            for k in o.children:
                users.setdefault(k, []).append(c)
    done: set[int] = set()
    work = [c for c, options in classes.items() if any(not o.children for o in options)]
    while work:
        c = work.pop()
        if c not in done and any(done.issuperset(o.children) for o in classes[c]):
            done.add(c)
            work += users.get(c, ())
    return done


@dataclass(frozen=True)
class _Space:
    """The solutions with some picks fixed and some banned."""

    fixed: Mapping[int, int]
    banned: Mapping[int, frozenset[int]]


def k_best(result: RegionResult, k: int) -> list[Solution]:
    """Return the ``k`` best solutions of a region, best first; fewer when there are no more.

    Each differs from the others in the node of some class in use. The space of solutions is split along the
    best one's picks (parents first), so none is missed as long as the parts are solved to a proved optimum.
    """
    p = result.problem
    heap: list[tuple[int, int, Solution, _Space]] = [(result.solution.cost, 0, result.solution, _Space({}, {}))]
    if k < 1 or not p.roots:
        return [result.solution][:k]
    found: list[Solution] = []
    number = 1
    while heap and len(found) < k:
        _, _, solution, space = heapq.heappop(heap)
        found.append(solution)
        for part in _parts(p, solution, space):
            small = restrict(p, part.fixed, part.banned)
            if small is not None:
                best = solve(small)
                heapq.heappush(heap, (best.cost, number, best, part))
                number += 1
    return found


def _parts(p: Problem, solution: Solution, space: _Space) -> list[_Space]:
    fixed = dict(space.fixed)
    parts = []
    for c in _parents_first(p, solution):
        if c in fixed:
            continue
        pick = solution.picks[c]
        banned = space.banned.get(c, frozenset()) | {pick}
        if len(p.classes[c]) > len(banned):
            parts.append(_Space(dict(fixed), {**space.banned, c: banned}))
        fixed[c] = pick
    return parts


def _parents_first(p: Problem, solution: Solution) -> list[int]:
    """Return the classes in use, each before the classes that its pick needs."""
    order: list[int] = []
    seen: set[int] = set()
    stack = [(r, False) for r in reversed(p.roots)]
    while stack:
        c, leaving = stack.pop()
        if leaving:
            order.append(c)
        elif c not in seen:
            seen.add(c)
            stack.append((c, True))
            choice = next(o for o in p.classes[c] if o.picks[0][1] == solution.picks[c])
            stack += [(x, False) for x in choice.children if x not in seen]
    return order[::-1]


# -- alternatives of one instruction -----------------------------------------------------------------------


@dataclass(frozen=True)
class Alternative:
    """Another way to compute an instruction's value: the change of the region's totals if it were taken.

    ``text``: a cast's whole chain, or the operation. ``rule``: the rule that offers it ("" for what the
    program wrote). ``refusal``: why it cannot be taken ("" when it can; ``extra`` is then set). ``road``: the
    chain with its measured error, for inexact casts.
    """

    text: str
    rule: str
    extra: Totals | None = None
    refusal: str = ""
    road: Road | None = None

    @property
    def legal(self) -> bool:
        return self.extra is not None

    @property
    def stops(self) -> str:
        """The text without round modes."""
        return without_modes(self.text)

    @property
    def exact(self) -> bool:
        return self.road is None or self.road.exact

    @property
    def rate(self) -> float:
        """The share of differing results: 0 for exact ones, measured on first use for others."""
        return 0.0 if self.road is None or self.road.exact else self.road.error.rate


def alternatives(
    lowered: Lowered, function: FunctionReport, instruction: Instruction, k: int = 8
) -> list[Alternative]:
    """Return up to ``k`` other ways to compute an instruction's value, best first, illegal ones last."""
    if instruction.region < 0:
        return []
    result = function.regions[instruction.region]
    pricer = pricer_for(lowered.target, lowered.contract == "exact", result.scalars)
    search = _Alternatives(lowered, result, pricer, instruction.eclass)
    found = search.find()
    if not instruction.count and search.here is None:
        # Forms of a scalar that cost alike, or belong to another kind of code, are of no interest.
        found = [a for a in found if a.extra is not None and a.extra.rank("cycles") != (0, 0, 0)]
    return found[:k]


class _Alternatives:
    def __init__(self, lowered: Lowered, result: RegionResult, pricer: Pricer, c: int) -> None:
        self.lowered = lowered
        self.result = result
        self.graph: Graph = result.graph
        self.pricer = pricer
        self.c = c
        self.base = chosen_totals(self.graph, result.solution, pricer)
        self.picked = result.solution.picks[c]
        self.emitted = emitted_values(result)
        self.here = self.chain(self.graph.classes[c][self.picked], result.solution.picks)

    def find(self) -> list[Alternative]:
        legal, illegal = [], []
        for i, node in enumerate(self.graph.classes[self.c]):
            if i == self.picked or self.c in node.children:
                continue
            price = self.pricer.node(self.graph, node)
            if isinstance(price, Refusal):
                illegal.append(self.refused(node, price))
            elif (found := self.forced(i, node)) is not None:
                legal.append(found)
        legal += self.left_out(legal)
        objective = self.lowered.objective
        legal.sort(key=lambda a: (a.extra.rank(objective) if a.extra else (), a.text))
        chosen = self.graph.classes[self.c][self.picked]
        stops = self.stops(chosen, self.result.solution.picks)
        shown: set[object] = {stops, (stops, 0.0, 0, 0)}
        unique: list[Alternative] = []
        for a in [*legal, *illegal, *self.not_admitted()]:
            # Chains that differ in irrelevant round modes only are one alternative, and what is legal in one
            # form is not shown as illegal in another.
            key = (a.stops, *a.extra.rank("cycles")) if a.extra else a.stops
            if key not in shown:
                shown |= {key, a.stops}
                unique.append(a)
        return unique

    def stops(self, node: Node, picks: dict[int, int]) -> str:
        return without_modes(self.text(node, picks))

    def forced(self, i: int, node: Node) -> Alternative | None:
        small = restrict(self.result.problem, {self.c: i})
        if small is None:
            return None
        solution = solve(small)
        totals = chosen_totals(self.graph, solution, self.pricer)
        extra = Totals(
            totals.instructions - self.base.instructions,
            totals.cycles - self.base.cycles,
            totals.inexact - self.base.inexact,
        )
        return Alternative(self.text(node, solution.picks), rule_name(node), extra, "", self.road(node))

    def refused(self, node: Node, price: Refusal) -> Alternative:
        road = self.road(node)
        text = str(road) if road else self.text(node, self.result.solution.picks)
        return Alternative(text, rule_name(node), None, price.reason, road)

    def left_out(self, known: list[Alternative]) -> list[Alternative]:
        """Return the chains that were not offered because others are as cheap, priced by themselves."""
        target, here = self.lowered.target, self.here
        if target is None or here is None:
            return []
        shown = {(a.stops, a.exact) for a in known} | {(without_modes(str(here)), not here.nodes[-1].approx)}
        found: dict[tuple[str, bool], Alternative] = {}
        for request in requests(self.result, self.c):
            for road in offered(self.result, request, target) if request.source == here.source else ():
                way = without_modes(str(road)), road.exact
                extra = self.beside(road, here)
                if way not in shown and extra is not None and (road.exact or self.lowered.contract != "exact"):
                    rule = f"cast.road.{'exact' if road.exact else 'faithful'}.{len(road.hops)}"
                    found.setdefault(way, Alternative(str(road), rule, extra, "", None if road.exact else road))
        return list(found.values())

    def beside(self, road: Road, here: Chain) -> Totals | None:
        """Return what a chain of native casts costs more than the one that was taken, nothing shared."""
        own = [self.pricer.node(self.graph, node) for node in here.nodes]
        shape = here.nodes[-1].type
        if not isinstance(shape, TileType) or any(hop.composed for hop in road.hops):
            return None
        prices = [price for price in own if isinstance(price, Price)]
        if len(prices) < len(own):
            return None
        cycles = chain_cycles(self.pricer, road, shape) - sum(p.cycles for p in prices)
        inexact = int(not road.exact) - sum(p.inexact for p in prices)
        return Totals(len(road.hops) - len(own), cycles, inexact)

    def not_admitted(self) -> list[Alternative]:
        """Return the chains that the contract keeps out of the e-graph."""
        target = self.lowered.target
        if self.lowered.contract != "exact" or target is None or self.here is None:
            return []
        return [
            Alternative(
                str(road), f"cast.road.faithful.{len(road.hops)}", None, "the contract exact admits no double rounding",
                road,
            )
            for request in requests(self.result, self.c) if request.source == self.here.source
            for road in offered(self.result, request, target) if not road.exact
        ]  # fmt: skip

    def road(self, node: Node) -> Road | None:
        if not is_cast(node) or self.lowered.target is None or not node.approx:
            return None
        return road_behind(self.result, self.c, node, self.lowered.target)

    def chain(self, node: Node, picks: dict[int, int]) -> Chain | None:
        last = conversion(self.graph, picks, self.c, node)
        return chain(self.graph, picks, self.c, last, self.emitted) if is_cast(last) else None

    def text(self, node: Node, picks: dict[int, int]) -> str:
        found = self.chain(node, picks)
        if found is None:
            return node_text(self.result, node)
        if self.here is not None and found.source == self.here.source:
            return str(found)
        return f"{found} of {class_name(self.result, found.source)}"


def without_modes(text: str) -> str:
    """Return a chain's text without its round modes."""
    return _MODE.sub("", text)


_MODE = re.compile(r" \((?:none|rint|round|floor|ceil|trunc|odd)\)")


def rule_name(node: Node) -> str:
    """Return the name of the rule that made a node, "" for what the program wrote."""
    return "" if node.origin >= 0 else rule_names().get(node.rule, "")


def node_text(result: RegionResult, node: Node) -> str:
    """Return a node as ``tile.add(a, b)``, or the name or number it stands for."""
    if node.kind == LEAF:
        return result.region.leaves[node.key[0]].name
    if node.kind == LITERAL:
        return str(getattr(node.value, "value", node.value))
    if node.kind == ABSENT or node.decl is None:
        return "-"
    if node.decl.name == "tile.approx":
        return f"recipe {rule_name(node)}"
    return f"{node.decl.name}({', '.join(class_name(result, c) for c in node.children)})"


def class_name(result: RegionResult, c: int) -> str:
    """Return the name of the first value of a class, or its simplest node for classes that rules made."""
    graph = result.graph
    if c in graph.leaf_class:
        return result.region.leaves[graph.leaf_class.index(c)].name
    if c in graph.op_class:
        return result.region.ops[graph.op_class.index(c)].result.name
    return node_text(result, _simplest(graph)[c])


#: By graph: the simplest node of each class.
_known: WeakKeyDictionary[Graph, dict[int, Node]] = WeakKeyDictionary()


def _simplest(graph: Graph) -> dict[int, Node]:
    """Return the node of each class that is shortest written out; named values have length 1.

    Some nodes are made of their own class, by way of others: those of the shortest texts never are.
    """
    found = _known.get(graph)
    if found is None:
        found = _known[graph] = {}
        named = {*graph.leaf_class, *graph.op_class}
        length = dict.fromkeys(named, 1)
        shorter = True
        while shorter:
            shorter = False
            for c, nodes in enumerate(graph.classes):
                for node in nodes if c not in named else ():
                    if all(k in length for k in node.children):
                        written = 1 + sum(length[k] for k in node.children)
                        if c not in length or written < length[c]:
                            length[c], found[c], shorter = written, node, True
    return found
