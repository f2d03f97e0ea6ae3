"""Cast chains in a solved region: which conversion a chain stands for, and which road it follows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..ir.dtypes import DType
from ..ir.program import Operand, Value
from ..rewrite.graph import Graph, Node
from ..rewrite.offers import ROADS_PER_CAST, steps_of
from ..rules.casts import road_words
from ..rules.composed import COMPOSED
from ..rules.paths import Road, roads
from ..rules.rule import RULES
from ..rules.target import Target
from ..rules.terms import CODE_DTYPES, CODE_MODES, CODE_SATURATIONS, DTYPE_CODES
from .lowered import RegionResult


@dataclass(frozen=True)
class Request:
    """A conversion that a class is the value of: ``source`` is the class it reads."""

    source: int
    src: DType
    dst: DType
    mode: str
    saturation: str | None


def is_cast(node: Node) -> bool:
    """True of conversion nodes."""
    return node.decl is not None and node.decl.name == "tile.cast"


def class_of(result: RegionResult, o: Operand) -> int | None:
    """Return the class of a value of the region, ``None`` for anything else."""
    if not isinstance(o, Value):
        return None
    for names, classes in (
        ([v.name for v in result.region.leaves], result.graph.leaf_class),
        ([op.result.name for op in result.region.ops], result.graph.op_class),
    ):
        if o.name in names:
            return classes[names.index(o.name)]
    return None


def requests(result: RegionResult, c: int) -> Iterator[Request]:
    """Yield the conversions a class is the value of: the written ones, then those that rules made of them."""
    for i, op in enumerate(result.region.ops):
        if result.graph.op_class[i] == c and op.name == "tile.cast":
            source = class_of(result, op.operands[0])
            if source is not None:
                src: DType = op.operands[0].type.dtype  # type: ignore[union-attr]
                dst: DType = op.result.type.dtype  # type: ignore[union-attr]
                mode = op.attrs.get("mode", "round")
                yield Request(source, src, dst, mode, op.attrs.get("saturation_mode"))
    for node in result.graph.classes[c]:
        if is_cast(node) and not node.approx:
            dst, src = CODE_DTYPES[node.key[0]], CODE_DTYPES[node.key[2]]
            words = CODE_MODES[node.key[3]], CODE_SATURATIONS[node.key[4]]
            yield Request(node.children[0], src, dst, *words)


def road_behind(result: RegionResult, c: int, node: Node, target: Target) -> Road | None:
    """Return the road that ends in a cast node of class ``c``; inexact nodes have inexact roads only."""
    for request in requests(result, c):
        for road in offered(result, request, target):
            if road.hops and road.exact is not node.approx and _follows(result.graph, node, road, request.source):
                return road
    return None


def offered(result: RegionResult, request: Request, target: Target) -> tuple[Road, ...]:
    """Return the roads of a request, as lowering looked them up."""
    if request.src is request.dst:
        return ()
    values = result.graph.values.get(request.source)
    return roads(
        target, request.src, request.dst, request.mode, request.saturation, values, k=ROADS_PER_CAST
    )


def _follows(graph: Graph, node: Node, road: Road, source: int) -> bool:
    """Whether a road's hops can be traced back from its last node to the class it starts from."""
    wanted = _codes(road)
    here = [node]
    for codes in reversed(wanted[1:]):
        fitting = [n for n in here if _hop_codes(n)[: len(codes)] == codes]
        here = [m for n in fitting for m in graph.classes[n.children[0]] if is_cast(m) and not m.approx]
    return any(_hop_codes(n)[: len(wanted[0])] == wanted[0] and n.children[0] == source for n in here)


def _codes(road: Road) -> list[tuple[int, ...]]:
    """Return (source, destination, mode, saturation) of every hop as nodes have them.

    Modes are left out before the last hop where nothing is rounded: there other chains' words may stand.
    """
    between = len(road.hops) - 1
    words = road_words(road)[between:]
    stops = [DTYPE_CODES[d.name] for d in road.stops]
    whole = [(stops[i], stops[i + 1], *words[2 * i : 2 * i + 2]) for i in range(len(road.hops))]
    held = [len(step) == 1 for step in steps_of(road.values, road)[:between]]
    return [codes[:2] if free else codes for codes, free in zip(whole, [*held, False])]


def _hop_codes(node: Node) -> tuple[int, ...]:
    dst, _, src, mode, saturation, _ = node.key
    return (src, dst, mode, saturation)


@dataclass(frozen=True)
class Chain:
    """The casts that end in a node, first hop first, and the class that the first one reads."""

    source: int
    nodes: tuple[Node, ...]

    def __str__(self) -> str:
        """``FP32 → FP16 (odd) → INT8``: a round mode is shown where it is not the last hop's."""
        last = CODE_MODES[self.nodes[-1].key[3]]
        text = CODE_DTYPES[self.nodes[0].key[2]].name
        for n in self.nodes:
            mode = CODE_MODES[n.key[3]]
            text += f" → {CODE_DTYPES[n.key[0]].name}" + (f" ({mode})" if mode != last else "")
        return text


def chain(graph: Graph, picks: dict[int, int], c: int, node: Node, stops: frozenset[int] = frozenset()) -> Chain:
    """Return the casts that end in a node of class ``c``, by the picks below it.

    The chain begins at a class in ``stops``, or at the first value that is no cast.
    """
    nodes = [conversion(graph, picks, c, node)]
    seen = {c, *stops}
    while True:
        child = nodes[-1].children[0]
        below = conversion(graph, picks, child, graph.classes[child][picks[child]]) if child in picks else None
        if below is None or not is_cast(below) or child in seen:
            return Chain(child, tuple(reversed(nodes)))
        seen.add(child)
        nodes.append(below)


def conversion(graph: Graph, picks: dict[int, int], c: int, node: Node) -> Node:
    """Return the conversion that a class is where ``node`` is the last one of the instructions that make it up."""
    if node.rule == _ON_ROW:
        return next(_off_row(graph, picks, c, node.children[0]), node)
    made = _COMPOSED.get(node.rule)
    if made is None or node.decl is None or node.decl.name != made.pattern.op:
        return node
    ends = DTYPE_CODES[made.src.name], DTYPE_CODES[made.dst.name]
    whole = (n for n in graph.classes[c] if is_cast(n) and (n.key[2], n.key[0]) == ends and n.rule != node.rule)
    return next(whole, node)


def _off_row(graph: Graph, picks: dict[int, int], c: int, row: int) -> Iterator[Node]:
    """Yield the conversions of class ``c`` that the picked one of a row stands for."""
    if row not in picks:
        return
    done = graph.classes[row][picks[row]]
    if not is_cast(done):
        return
    read = [r.children for r in graph.classes[done.children[0]] if _is_reshape(r)]
    for n in graph.classes[c]:
        if is_cast(n) and n.children in read and (n.key[0], *n.key[2:]) == (done.key[0], *done.key[2:]):
            yield n


def _is_reshape(node: Node) -> bool:
    return node.decl is not None and node.decl.name == "tile.reshape"


#: The rule that converts a narrow tile as one row: the tile in its own shape again is what was converted.
_ON_ROW = RULES["line.cast"].number
_COMPOSED = {RULES[made.rule].number: made for made in COMPOSED}


def emitted_values(result: RegionResult) -> frozenset[int]:
    """Return the classes in use that are values of the program: chains are shown from one to the next."""
    return frozenset(result.solution.picks).intersection(result.graph.op_class)
