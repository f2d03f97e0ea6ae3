"""Prices of e-nodes and operations on a target: cycles, instruction count, accuracy, or why it is illegal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import count
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

from ..ir.dtypes import INDEX, DType
from ..ir.op import OPS, OpDecl
from ..ir.program import Const, Op, Value
from ..ir.types import BLOCK_BYTES, ScalarType, TileType, Type, static
from ..ir.valueset import ValueSet
from ..rewrite.graph import OPERATION, Graph, Node
from ..rules.composed import composed_on
from ..rules.cost import Instr, cycles, work_shape
from ..rules.paths import roads
from ..rules.rule import RULES
from ..rules.target import Target
from ..rules.terms import child_params
from .inplace import copies
from .instructions import instruction, row_form

Objective = Literal["cycles", "instructions", "accuracy"]
OBJECTIVES: tuple[Objective, ...] = ("cycles", "instructions", "accuracy")

#: Communication and memory markers: ordered statements nobody chooses between, priced by the communication model.
_ORDERED = ("pld.", "system.")
#: Operations that only rename storage, or tell tilegg something: no instruction.
FREE = frozenset({"tile.reshape", "tile.reinterpret_view", "tile.slice", "tile.set_validshape", "tile.assume"})

#: What is done differently for a column ``[M, 1]``, which is one line of storage: reductions over its rows are row
#: reductions of the line where those take the dtype; a difference's exponential is two plain operations.
_OF_COLUMNS = frozenset(
    n for n in OPS if n == "tile.row_expand_expdif" or (n.startswith("tile.col_") and "expand" not in n)
)


class Price(NamedTuple):
    """What a node costs by itself.

    ``inexact`` is 1 for the last hop of a chain that is not exact; ``error`` is what a recipe states, in 1e-9;
    ``scalar`` is work of the scalar unit beyond one instruction, which decides where all else is equal.
    """

    cycles: float
    instructions: int
    inexact: int = 0
    error: int = 0
    scalar: int = 0

    @lru_cache(maxsize=1 << 14)  # noqa: B019 - of values, not of objects that live
    def weight(self, objective: Objective) -> int:
        """Return one integer that orders prices: the objective first, then the other two, then size."""
        time = round(self.cycles * 16)
        match objective:
            case "cycles":
                return ((time << 12) + self.instructions << 8) + 16 * self.inexact + 1 + self.scalar
            case "instructions":
                return ((self.instructions << 30) + time << 4) + 4 * self.inexact + 1 + self.scalar
            case "accuracy":
                return ((((self.inexact << 12) + self.error) << 28) + time << 8) + self.instructions + 1 + self.scalar


Level = Literal["arith", "llvm"]
Compat = Literal["canonical", "keep"]
COMPATS: tuple[Compat, ...] = ("canonical", "keep")


@dataclass(frozen=True, slots=True)
class Scalars:
    """How scalars are written, which decides what they may be.

    ``level``: ``"arith"`` in ordinary kernels, ``"llvm"`` in SIMT code and for LLVM itself. ``compat``: at the level of
    LLVM, rewrite the forms kept for hand-written code (``"canonical"``), or keep them (``"keep"``).
    """

    level: Level = "arith"
    compat: Compat = "canonical"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a node cannot be used on the target."""

    reason: str
    hint: str = ""


NOTHING = Price(0.0, 0)
#: Prices a pricer remembers before it starts anew.
MEMO_LIMIT = 1 << 16
#: Operations whose price depends on the rule that made the node.
_BY_RULE = frozenset({"tile.approx", "tile.reshape"})

Prices = list[list[Price | Refusal]]


#: Reads and writes of one element, and their instructions.
ELEMENTS = {"tile.read": "tgetval", "tile.write": "tsetval"}
_EXTREMA = frozenset({"max", "min", "maxnum", "minnum", "fmax", "fmin"})
#: Plain operations that are no instruction of LLVM, and what they become there.
_RAISED = frozenset(f"scalar.{n}" for n in ("max", "min", "abs", "sqrt", "exp", "log", "pow"))
_LLVM_ONLY = frozenset(
    f"llvm.{n}"
    for n in ("maxnum", "minnum", "smax", "smin", "umax", "umin", "fabs", "abs", "sqrt", "exp", "log", "pow")
)
#: Work of scalar operations in instructions, where it is more than 1; guards of divisions are counted.
_WORK = {
    "scalar.div": 9, "scalar.rem": 9, "scalar.mod": 10, "scalar.floordiv": 10, "llvm.exp": 20, "llvm.log": 20,
    "llvm.pow": 40, "llvm.sqrt": 8,
}  # fmt: skip
#: What forms count that are taken where there is no other.
_LAST = 500


def _padded(t: Any, target: Target) -> bool:
    """Tell whether a tile of several rows and columns has gaps between its rows."""
    shape = static(t.shape) if isinstance(t, TileType) else None
    return shape is not None and len(shape) == 2 and 1 not in shape and not target.fills_blocks(shape[1], t.dtype.bits)


class Pricer:
    """Prices on one target; ``target`` ``None`` makes everything legal and counts instructions only."""

    def __init__(self, target: Target | None, exact_only: bool = False, scalars: Scalars = Scalars()) -> None:
        self.target = target
        self.exact_only = exact_only
        self.scalars = scalars
        self._memo: dict[tuple[Any, ...], Price | Refusal] = {}
        self._by_codes: dict[tuple[Any, ...], Price | Refusal] = {}
        # Numbers are not given twice: another thread may still hold those from before the table was cleared.
        self._numbers: dict[Type | None, int] = {}
        self._count = count()
        self._of_graph: WeakKeyDictionary[Graph, Prices] = WeakKeyDictionary()

    def nodes(self, graph: Graph) -> Prices:
        """Return the prices of all e-nodes by class, worked out once per graph."""
        found = self._of_graph.get(graph)
        if found is None:
            if len(self._by_codes) + len(self._numbers) > MEMO_LIMIT:
                self._by_codes.clear()
                self._numbers.clear()
            found = self._of_graph[graph] = self._coded(graph)
        return found

    def _coded(self, graph: Graph) -> Prices:
        """Return all prices; a term's argument codes and the numbers of its operands' types say what it costs."""
        known, roads = self._by_codes, _road_rules()
        numbers = [self._number(t) for t in graph.types]
        found: Prices = []
        for c, nodes in enumerate(graph.classes):
            row: list[Price | Refusal] = []
            for node in nodes:
                decl = node.decl
                if decl is None:
                    row.append(NOTHING)
                elif not node.key or decl.name in _BY_RULE:
                    row.append(self.node(graph, node))
                else:
                    how: object = None
                    if decl.name == "tile.cast":
                        how = node.rule in roads, graph.values.get(node.children[0])
                    key = (decl.name, node.key, tuple([numbers[k] for k in node.children]), how)
                    price = known.get(key)
                    if price is None:
                        price = known[key] = self.node_of(graph.types, graph.values, node)
                    if (decl.inout or c in graph.handed) and isinstance(price, Price):
                        price = self.with_copies(price, node.type, copies(graph, node, self.target))
                    row.append(price)
            found.append(row)
        return found

    def _number(self, t: Type | None) -> int:
        known = self._numbers.get(t)
        return self._numbers.setdefault(t, next(self._count)) if known is None else known

    def node(self, graph: Graph, node: Node) -> Price | Refusal:
        """Return the price of an e-node, with the copy that an in-place instruction may need."""
        price = self.node_of(graph.types, graph.values, node)
        if node.kind != OPERATION or node.decl is None or isinstance(price, Refusal):
            return price
        if not node.decl.inout and not graph.handed:
            return price
        return self.with_copies(price, node.type, copies(graph, node, self.target))

    def with_copies(self, price: Price, t: Any, count: int = 1) -> Price:
        """Return the price of an instruction with copies of tiles of its result's type before or behind it."""
        if not count:
            return price
        if self.target is None:
            return Price(price.cycles + count, price.instructions + count, price.inexact)
        rows, cols, phys = work_shape([t])
        copy = cycles(self.target, Instr("tmov", (t.dtype.name, t.dtype.name), rows, cols, phys))
        return Price(price.cycles + count * copy, price.instructions + count, price.inexact)

    def node_of(
        self, class_types: Sequence[Type | None], values: Mapping[int, ValueSet], node: Node
    ) -> Price | Refusal:
        """Return the price of an e-node by the types (``None``: absent operand) and value sets of classes."""
        if node.kind != OPERATION:
            return NOTHING
        assert node.decl is not None
        types = [t for c in node.children if (t := class_types[c]) is not None]
        if node.decl.name == "tile.cast":
            return self._cast(node, types[0], values.get(node.children[0]))
        if node.decl.name == "tile.approx":
            return Price(0.0, 0, 0, _stated_errors().get(node.rule, 0))
        made = node.decl.name == "tile.reshape" and node.rule and node.origin < 0
        if made and self.target is not None and any(_padded(t, self.target) for t in (types[0], node.type)):
            # A written one is refused by the writer of assembly, with its place.
            return Refusal("rows are padded to whole blocks of 32 bytes, so that the reshape would move elements")
        return self.operation(node.decl, types, node.type, node.attrs)

    def operation(self, decl: OpDecl, types: list[Any], result: Any, attrs: dict[str, Any]) -> Price | Refusal:
        """Return the price of an operation other than a cast by its operand and result types."""
        if decl.composite:
            return _no_instruction(decl)
        if decl.name in ELEMENTS:
            return self._element(decl, types)
        if decl.scalar is not None:
            return self._scalar(decl, result)
        if decl.pto is None or decl.name in FREE or isinstance(result, ScalarType) or decl.name.startswith(_ORDERED):
            return NOTHING
        words = tuple(sorted([(k, repr(v)) for k, v in attrs.items()])) if attrs else ()
        key = (decl.name, tuple(types), result, words)
        found = self._memo.get(key)
        if found is None:
            found = _rank_refusal(decl, result) or self._operation(decl, types, result, attrs)
            self._remember(key, found)
        return found

    def _element(self, decl: OpDecl, types: list[Any]) -> Price | Refusal:
        """Return the price of reading or writing one element of a tile; writes stay as they are and cost nothing."""
        rows, cols, phys = work_shape(types[:1])
        instr = Instr(ELEMENTS[decl.name], (types[0].dtype.name,), rows, cols, phys)
        if self.target is not None and (refusal := self._refusal(instr)):
            return refusal
        if decl.effect == "write":
            return NOTHING
        return Price(1.0 if self.target is None else cycles(self.target, instr), 1)

    def _refusal(self, instr: Instr) -> Refusal | None:
        """Return why the target does not take an instruction."""
        assert self.target is not None
        dtype, words = instr.dtypes[0], dict(instr.attrs)
        legality = self.target.legal(instr.op, dtype, **words)
        return None if legality.ok else Refusal(legality.reason, self.target.way_out(instr.op, dtype, **words))

    def _scalar(self, decl: OpDecl, result: Any) -> Price | Refusal:
        """Return the price of a scalar or SIMT operation.

        Scalars run beside the vector unit: they count no cycles, and decide only where all else is equal.
        """
        record, target = decl.scalar, self.target
        assert record is not None
        if record.capability and target is not None and not target.has(record.capability):
            hint = f"write {record.instead}" if record.instead else ""
            return Refusal(f"{target.name} does not have {record.capability}", hint)
        extremum = decl.name.rpartition(".")[2] in _EXTREMA and getattr(result, "dtype", INDEX).is_float
        if extremum and target is not None and not target.has("float_scalar_extrema"):
            return Refusal(f"{target.name} has no maximum and minimum of float scalars")
        llvm = self.scalars.level == "llvm"
        if llvm and decl.name in _RAISED:
            return Refusal(f"{decl.name} has no instruction for {getattr(result, 'dtype', None)}")
        if record.instead:
            return Price(0.0, 0, 0, 0, 0 if llvm and self.scalars.compat == "keep" else _LAST)
        if not llvm and decl.name in _LLVM_ONLY:
            return Price(0.0, 0, 0, 0, _LAST)
        # Compilers of C++ find shifts for products by themselves: there they stay as they are.
        dearer = "scalar.mul" if llvm else "scalar.shl"
        return Price(0.0, 0, 0, 0, _WORK.get(decl.name, 1) + (decl.name == dearer))

    def _remember(self, key: tuple[Any, ...], price: Price | Refusal) -> Price | Refusal:
        if len(self._memo) >= MEMO_LIMIT:
            self._memo.clear()
        self._memo[key] = price
        return price

    def _operation(self, decl: OpDecl, types: list[Any], result: Any, attrs: dict[str, Any]) -> Price | Refusal:
        if self.target is None:
            return Price(1.0, 1)
        if decl.name in _OF_COLUMNS and types[0].shape[1:] == (1,) and types[0].shape[0] != 1:
            if decl.name == "tile.row_expand_expdif":
                return self._both(("tile.sub", types[:2]), ("tile.exp", types[:1]), result=result)
            rows, dtype = types[0].shape[0], types[0].dtype
            if row_form(decl.pto or "", dtype, self.target) is None:
                blocks = TileType((rows, BLOCK_BYTES * 8 // dtype.bits), dtype)
                return self._both(("tile.row_expand", [blocks, types[0]]), (decl.name, [blocks]), result=result)
        instr = instruction(decl, types, result, attrs)
        if not instr.dtypes:
            # What an unknown operation gives has no known type; it passes through unpriced.
            return NOTHING
        return self._refusal(instr) or Price(cycles(self.target, instr), 1)

    def _both(self, *parts: tuple[str, list[Any]], result: Any) -> Price | Refusal:
        """Return the price of an operation that is two instructions for columns: each row has one element."""
        prices = [self._operation(OPS[name], types, result, {}) for name, types in parts]
        refused = next((p for p in prices if isinstance(p, Refusal)), None)
        if refused is not None:
            return refused
        legal = [p for p in prices if isinstance(p, Price)]
        return Price(sum(p.cycles for p in legal), len(legal))

    def _cast(self, node: Node, source: Any, values: ValueSet | None) -> Price | Refusal:
        assert isinstance(node.type, TileType)
        mode = node.attrs.get("mode", "round")
        by_road = node.rule in _road_rules()
        word = node.attrs.get("saturation_mode")
        key = ("cast", source, node.type, mode, word, values, node.approx, by_road)
        found = self._memo.get(key)
        if found is None:
            found = self._remember(key, self._price_cast(node, source, mode, values))
        return found

    def _price_cast(self, node: Node, source: Any, mode: str, values: ValueSet | None) -> Price | Refusal:
        result = node.type
        assert isinstance(result, TileType)
        price = self.hop(source, result, mode, node.attrs.get("saturation_mode"))
        if isinstance(price, Refusal):
            return price
        if node.approx:
            return Price(price.cycles, price.instructions, 1) if not self.exact_only else Refusal("inexact road")
        if self.target is None or self._honours(node, source.dtype, mode, values):
            return price
        return Refusal(
            f"{self.target.name} converts {source.dtype.name} to {result.dtype.name} in a fixed way, not as asked",
            f"the request is mode {mode}, saturation {node.attrs.get('saturation_mode', 'by default')}",
        )

    def hop(self, source: Any, result: TileType, mode: str, saturation: str | None) -> Price | Refusal:
        """Return the price of one native conversion."""
        if self.target is None:
            return Price(1.0, 1)
        src, dst = source.dtype, result.dtype
        if (src.name, dst.name) not in self.target.casts:
            return Refusal(f"{self.target.name} has no conversion from {src.name} to {dst.name}")
        rows, cols, phys = work_shape([source, result])
        attrs = [("mode", mode)] + ([("saturation", saturation)] if saturation else [])
        return Price(cycles(self.target, Instr("tcvt", (src.name, dst.name), rows, cols, phys, tuple(attrs))), 1)

    def _honours(self, node: Node, src: DType, mode: str, values: ValueSet | None) -> bool:
        """Tell whether the hardware's one conversion does what the node says, on every value that arrives.

        The hops of roads do, but for those that are composed of other instructions.
        """
        assert self.target is not None and isinstance(node.type, TileType)
        if node.rule in _road_rules():
            composed = composed_on(self.target).get((src, node.type.dtype))
            return composed is None or composed.mode != mode
        saturation = node.attrs.get("saturation_mode")
        found = roads(self.target, src, node.type.dtype, mode, saturation, values, max_hops=1, k=1)
        return any(road.exact and road.native for road in found)

    def written(self, op: Op) -> Price | Refusal:
        """Return the price of an operation as written (casts: one native conversion)."""
        decl = OPS.get(op.name)
        if decl is None:
            return NOTHING
        types = [_type(o) for i in child_params(decl) if (o := op.operands[i]) is not None]
        result = op.results[0].type if op.results else None
        if op.name == "tile.cast":
            saturation = op.attrs.get("saturation_mode")
            return self.hop(types[0], result, op.attrs.get("mode", "round"), saturation)  # type: ignore[arg-type]
        price = self.operation(decl, types, result, op.attrs)
        # Nothing tells that the overwritten value is dead: the copy is counted.
        return self.with_copies(price, result) if decl.inout and isinstance(price, Price) else price


@lru_cache(maxsize=32)
def pricer_for(target: Target | None, exact_only: bool, scalars: Scalars = Scalars()) -> Pricer:
    """Return the shared pricer of a target, a contract and a way to write scalars, with its memo."""
    return Pricer(target, exact_only, scalars)


@cache
def _road_rules() -> frozenset[int]:
    """Return the numbers of the rules whose casts are hops of proved or reported roads."""
    return frozenset(r.number for r in RULES.values() if r.name.startswith("cast.road."))


@cache
def _stated_errors() -> dict[int, int]:
    """Return the largest error that each recipe states, by rule number, in units of 1e-9."""
    return {r.number: round(r.bound.errors[-1][1] * 1e9) for r in RULES.values() if r.bound is not None}


def _type(o: Any) -> Type | None:
    return o.type if isinstance(o, Value | Const) else None


#: Operations whose instruction takes rank 2 with constant columns only.
_PLANAR = frozenset({"tile.sels"})


def _rank_refusal(decl: OpDecl, result: Any) -> Refusal | None:
    if decl.name not in _PLANAR or (len(result.shape) == 2 and isinstance(result.shape[1], int)):
        return None
    return Refusal(f"{decl.name} takes tiles of rank 2 with constant columns, not {result}")


def _no_instruction(decl: OpDecl) -> Refusal:
    """Say what to write for a composite that nothing has taken the place of."""
    form = decl.name.replace("tensor.", "tile.", 1)
    if form != decl.name and form in OPS:
        return Refusal("no instruction works on a whole tensor", f"load tiles of it and use pl.{form} on them")
    return Refusal(f"{decl.name} is no instruction", "other operations take its place; none fits here")
