"""Which programs treat every position alike: an output element depends on the input elements at its own place only.

Such a program can be tried on many inputs in one run, one per position. What counts is decided from the program's
text alone, so that a test of every input is a proof: operations of the families below act on each element by itself;
loads and stores must all take one window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ir import ops as _ops  # noqa: F401  (declares the operations)
from ..ir.diagnostics import Span
from ..ir.dimexpr import evaluate
from ..ir.op import OPS
from ..ir.program import Const, Function, Op, Operand, Return, Scope, Statement, Value
from ..ir.types import Dim, PtrType, ScalarType, TensorType, TileType

#: Families whose tile operations work element by element, apart from the exceptions.
FAMILIES = frozenset(
    {
        "tile-tile arithmetic", "tile-scalar arithmetic", "unary", "bitwise and shifts", "fused arithmetic", "casts",
        "composites", "compare and select",
    }
)  # fmt: skip
_EXCEPTIONS = frozenset({"tile.pair_reduce_sum", "tile.reinterpret_view"})
#: Operations of other families that keep every element in its place, or have one value everywhere.
_FURTHER = frozenset({"tile.move", "tile.assume", "tile.full", "tile.expands", "tile.create"})
#: A packed predicate has eight positions in a byte: only these read one.
_MAKES_MASK = frozenset({"tile.cmp", "tile.cmps", "tile.mask_not"})
_BITWISE = frozenset({"tile.and_", "tile.or_", "tile.xor", "tile.not_", "tile.mask_not"})
_READS_MASK = frozenset({"tile.sel", "tile.sels", "tile.select"})


def is_pointwise(name: str) -> bool:
    """Tell whether an operation computes each element of a tile from the elements at the same place."""
    decl = OPS.get(name)
    if decl is None or name in _EXCEPTIONS:
        return False
    return name in _FURTHER or (name.startswith("tile.") and decl.family in FAMILIES)


@dataclass(frozen=True)
class Window:
    """The positions a program works on: ``extent`` elements from ``offsets`` of arrays of one ``shape``."""

    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    extent: tuple[int, ...]

    @property
    def slices(self) -> tuple[slice, ...]:
        """The index of the window in an array."""
        return tuple(slice(o, o + n) for o, n in zip(self.offsets, self.extent))


@dataclass(frozen=True)
class Mixes:
    """Why a program is not pointwise, and where."""

    why: str
    span: Span | None = None


def window_of(f: Function, dims: Mapping[str, int]) -> Window | Mixes:
    """Return the one window of a pointwise function, or what in it is not pointwise."""
    return _Reader(f, dims).window()


class _Stop(Exception):
    def __init__(self, why: str, span: Span | None = None) -> None:
        super().__init__(why)
        self.found = Mixes(why, span)


class _Reader:
    def __init__(self, f: Function, dims: Mapping[str, int]) -> None:
        self.function, self.dims = f, dims
        self.masks: set[str] = set()
        self.found: dict[tuple[tuple[int, ...], tuple[int, ...]], Span | None] = {}
        self.shapes: set[tuple[int, ...]] = set()

    def window(self) -> Window | Mixes:
        try:
            for p in self.function.params:
                self._parameter(p.value)
            for s in self.function.body.statements:
                self._statement(s)
        except _Stop as stop:
            return stop.found
        if len(self.found) != 1 or len(self.shapes) > 1:
            at = list(self.found.values())[-1] if self.found else None
            return Mixes("its loads and stores do not all take one window of arrays of one shape", at)
        ((offsets, extent),) = self.found
        shape = next(iter(self.shapes), extent)
        return Window(shape, offsets, extent)

    def _parameter(self, v: Value) -> None:
        match v.type:
            case TensorType(shape=shape):
                self.shapes.add(self._static(shape, v.name))
            case TileType():
                self.shapes.add(self._static(v.type.valid_shape, v.name))
                self._use(v.type, (0,) * len(v.type.shape), None)
            case ScalarType():
                pass
            case PtrType():
                raise _Stop(f"parameter {v.name} is a pointer")

    def _static(self, shape: tuple[Dim, ...], what: str) -> tuple[int, ...]:
        sizes = [evaluate(d, self.dims) for d in shape]
        if any(n is None for n in sizes):
            raise _Stop(f"{what} has a size that is not known; give it in dims")
        return tuple(n for n in sizes if n is not None)

    def _use(self, t: TileType, offsets: tuple[int, ...], span: Span | None) -> None:
        self.found.setdefault((offsets, self._static(t.valid_shape, "a tile")), span)

    def _statement(self, s: Statement) -> None:
        match s:
            case Op():
                self._op(s)
            case Scope():
                for inner in s.body.statements:
                    self._statement(inner)
            case Return(operands=operands):
                for o in operands:
                    if isinstance(o, Value) and isinstance(o.type, TileType):
                        self._not_mask(o, None)
                        self._use(o.type, (0,) * len(o.type.shape), None)
            case _:
                raise _Stop("it has loops or branches", getattr(s, "span", None))

    def _op(self, s: Op) -> None:
        match s.name:
            case "tile.load":
                self._load(s)
            case "tile.store":
                self._store(s)
            case name if name.startswith("scalar.") and all(isinstance(r.type, ScalarType) for r in s.results):
                pass
            case name if is_pointwise(name):
                self._pointwise(s)
            case name:
                raise _Stop(f"{name} does not work element by element", s.span)

    def _load(self, s: Op) -> None:
        tile = s.result.type
        if not isinstance(tile, TileType) or not self._is_parameter(s.operands[0]) or s.attrs.get("clamp"):
            raise _Stop("this load is not of a whole parameter", s.span)
        self._use(tile, self._offsets(s.operands[1], s), s.span)

    def _store(self, s: Op) -> None:
        tile = s.operands[0]
        plain = len(s.operands) < 4 or s.operands[3] is None
        if not isinstance(tile, Value) or not self._is_parameter(s.operands[2]):
            raise _Stop("this store is not to a parameter", s.span)
        if not plain or s.attrs.get("atomic", "none") != "none":
            raise _Stop("this store adds, or writes a part of its tile", s.span)
        self._not_mask(tile, s.span)
        assert isinstance(tile.type, TileType)
        self._use(tile.type, self._offsets(s.operands[1], s), s.span)

    def _is_parameter(self, o: Operand) -> bool:
        return isinstance(o, Value) and any(p.value.name == o.name for p in self.function.params)

    def _offsets(self, o: Any, s: Op) -> tuple[int, ...]:
        if not isinstance(o, tuple) or not all(isinstance(d, Const) for d in o):
            raise _Stop("its offsets are no constants", s.span)
        return tuple(int(d.value) for d in o)

    def _pointwise(self, s: Op) -> None:
        tiles = [o for o in s.operands if isinstance(o, Value) and isinstance(o.type, TileType)]
        masks = [o for o in tiles if o.name in self.masks]
        if s.name in _READS_MASK:
            if not tiles or tiles[0].name not in self.masks:
                raise _Stop(f"the mask of {s.name} is not made here", s.span)
            tiles, masks = tiles[1:], masks[1:]
        elif s.name in _MAKES_MASK or (masks and s.name in _BITWISE):
            if s.name in _BITWISE and len(masks) != len(tiles):
                raise _Stop(f"{s.name} mixes a packed predicate and numbers", s.span)
            self.masks.add(s.result.name)
            return
        if masks:
            raise _Stop(f"{s.name} takes a packed predicate as numbers", s.span)
        # Rows or columns repeated by an operand of another shape would mix positions.
        shapes = {o.type.valid_shape for o in [*tiles, s.result] if isinstance(o.type, TileType)}
        if len(shapes) > 1:
            raise _Stop(f"{s.name} changes the shape", s.span)

    def _not_mask(self, v: Value, span: Span | None) -> None:
        if v.name in self.masks:
            raise _Stop("a packed predicate is a result", span)
