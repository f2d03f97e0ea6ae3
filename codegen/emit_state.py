"""State of one function under emission: where values are, extents, tiles and their views."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NoReturn

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..ir.diagnostics import Span, error
from ..ir.dtypes import DType
from ..ir.program import Const, Operand, Value
from ..ir.types import Dim, TileType
from ..rules.target import Target
from .emit_forms import Form, Plan
from .pto.api import DYNAMIC, FunctionBuilder, PtoBuilder, TileBufType, element, tile_type
from .pto.base import SEGMENTS, constant_of, segments
from .pto.elements import spell
from .pto.tiles import SubviewOp, index_array

INDEX = IndexType()
I64 = IntegerType(64)
Extent = int | SSAValue


@dataclass(slots=True, eq=False)
class TileRef:
    """A tile: its form, the valid extents of its row-major view, and one value that names its storage.

    ``upright``: ``value`` is the column-major view of a column. ``root`` is shared by everything that names
    the same storage; ``home`` is the scope the storage was allotted in.
    """

    form: Form
    valid: tuple[Extent, Extent]
    value: SSAValue
    upright: bool
    root: object
    home: object
    alias: bool = False


@dataclass(slots=True, eq=False)
class TensorRef:
    """A tensor in global memory: pointer, extents and strides in elements; a slice has a base and offsets."""

    ptr: SSAValue
    dtype: DType
    shape: tuple[Extent, ...]
    strides: tuple[Extent, ...]
    layout: str | None = None
    base: TensorRef | None = None
    offsets: tuple[Extent, ...] = ()
    view: SSAValue | None = None
    name: str = ""
    root: object = field(default_factory=object)

    @property
    def whole(self) -> TensorRef:
        """The tensor whose view is partitioned."""
        return self if self.base is None else self.base


class State:
    """Values, scopes and the current builder of one function."""

    def __init__(self, builder: FunctionBuilder, plan: Plan, target: Target) -> None:
        self.entry: PtoBuilder = builder.body
        self.b: PtoBuilder = builder.body
        self.plan = plan
        self.target = target
        self.span: Span | None = None
        self.scalars: dict[str, SSAValue] = {}
        self.tiles: dict[str, TileRef] = {}
        self.tensors: dict[str, TensorRef] = {}
        #: Results that are to be produced in a given tile instead of a new one.
        self.places: dict[str, TileRef] = {}
        #: Values known not to be negative.
        self.natural: set[SSAValue] = set()
        self._frames: list[dict[Any, Any]] = [{}]

    # -- diagnostics -------------------------------------------------------------------------------------

    def fail(self, message: str, reason: str = "", hint: str = "") -> NoReturn:
        """Raise TG023 at the current statement."""
        raise error("TG023", message, self.span, reason=reason, hint=hint)

    # -- scopes ------------------------------------------------------------------------------------------

    @property
    def frame(self) -> object:
        """The identity of the current block."""
        return self._frames[-1]

    @contextmanager
    def inside(self, builder: PtoBuilder) -> Iterator[None]:
        """Emit into a nested block."""
        outer, self.b = self.b, builder
        self._frames.append({})
        builder.location = outer.location
        try:
            yield
        finally:
            self._frames.pop()
            self.b = outer

    def cached(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made for the key in this block or one around it, else make it here."""
        for frame in reversed(self._frames):
            if key in frame:
                return frame[key]
        made = self._frames[-1][key] = make()
        return made

    def name(self, value: SSAValue, hint: str) -> SSAValue:
        """Give an SSA value a name where the assembly's syntax allows it."""
        if hint.isascii() and value.name_hint is None:
            value.name_hint = hint
        return value

    # -- index arithmetic --------------------------------------------------------------------------------

    def arith(
        self, cls: type[Operation], *operands: SSAValue, type_: Attribute | None = None, **props: Any
    ) -> SSAValue:
        """Append an operation of one result, of the first operand's type unless given."""
        op = cls.create(operands=operands, result_types=[type_ or operands[0].type], properties=props)
        return self.b.add(op).results[0]

    def index(self, value: Extent) -> SSAValue:
        return self.b.index(value)

    def add(self, a: Extent, b: Extent) -> Extent:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self._known(arith.AddiOp, a, b)

    def mul(self, a: Extent, b: Extent) -> Extent:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self._known(arith.MuliOp, a, b)

    def div_up(self, a: Extent, b: int) -> Extent:
        """Return a / b rounded up, of a value that is not negative."""
        if isinstance(a, int):
            return -(-a // b)
        return self.cached(("up", a, b), lambda: self._known(arith.DivUIOp, self.add(a, b - 1), b))  # type: ignore[no-any-return]

    def div_exact(self, a: Extent, b: int, what: str) -> Extent:
        """Return a / b; raises TG023 when a known value leaves a remainder."""
        if b == 1:
            return a
        if isinstance(a, int):
            if a % b:
                self.fail(f"{what} {a} does not fill whole bytes", "two values share a byte")
            return a // b
        return self._known(arith.DivUIOp, a, b)

    def _known(self, cls: type[Operation], a: Extent, b: Extent) -> SSAValue:
        x, y = self.index(a), self.index(b)
        made = self.arith(cls, x, y)
        if self.is_natural(x) and self.is_natural(y):
            self.natural.add(made)
        return made

    def is_natural(self, value: SSAValue) -> bool:
        """True when the value is known not to be negative."""
        known = constant_of(value)
        return known >= 0 if known is not None else value in self.natural

    def extent(self, dim: Dim) -> Extent:
        """Return a dimension of a type as a number or an index value."""
        if isinstance(dim, int):
            return dim
        made: Extent = self.cached(("dim", dim), lambda: self._dim(parse_dim(dim), dim))
        return made

    def _dim(self, node: ast.AST | None, text: str) -> Extent:
        match node:
            case ast.Constant(value=int() as value):
                return value
            case ast.Name(id=name):
                return self.as_index(self.scalar_named(name))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _DIM_OPS:
                a, b = self._dim(left, text), self._dim(right, text)
                if isinstance(a, int) and isinstance(b, int):
                    return int(_DIM_OPS[type(op)][0](a, b))
                return self._known(_DIM_OPS[type(op)][1], a, b)
            case ast.Call(args=[a, b]) if _called(node) in ("min", "max"):
                cls = arith.MinSIOp if _called(node) == "min" else arith.MaxSIOp
                return self._known(cls, self._dim(a, text), self._dim(b, text))
            case ast.Call(args=[a, *_]) if _called(node) == "cast":
                return self._dim(a, text)
            case _:
                self.fail(f"the dimension {text!r} cannot be computed in assembly")

    def scalar_named(self, name: str) -> SSAValue:
        found = self.scalars.get(name)
        if found is None:
            self.fail(f"the dimension {name!r} is not known here")
        return found

    def as_index(self, value: SSAValue) -> SSAValue:
        """Return an integer scalar as an index."""
        if isinstance(value.type, IndexType):
            return value
        made = self.cached(("index", value), lambda: self.arith(arith.IndexCastOp, value, type_=INDEX))
        if value in self.natural:
            self.natural.add(made)
        return made  # type: ignore[no-any-return]

    def offset(self, o: Operand) -> Extent:
        """Return a scalar operand as an extent: a number when it is literal."""
        if isinstance(o, Const):
            return int(o.value)
        if isinstance(o, Value):
            return self.as_index(self.scalar_named(o.name))
        self.fail(f"{getattr(o, 'text', o)!r} cannot be computed in assembly")

    def offsets(self, operands: Operand) -> tuple[Extent, ...]:
        assert isinstance(operands, tuple)
        return tuple(map(self.offset, operands))

    # -- tiles -------------------------------------------------------------------------------------------

    def tile(self, o: Operand) -> TileRef:
        """Return the tile of an operand."""
        found = self.tiles.get(o.name) if isinstance(o, Value) else None
        if found is None:
            self.fail(f"{getattr(o, 'name', 'the operand')!r} is no tile the emitter knows")
        return found

    def valid_of(self, t: TileType, form: Form) -> tuple[Extent, Extent]:
        """Return the valid extents of the row-major view of a tile of this type."""
        *leading, last = t.valid_shape
        rows: Extent = 1
        for dim in leading:
            rows = self.mul(rows, self.extent(dim))
        for dim, size in zip(t.valid_shape[1:-1], t.shape[1:-1]):
            if dim != size:
                self.fail(f"a {t} is not full in an inner dimension", "leading dimensions are folded into rows")
        return (1, rows) if form.column else (rows, self.extent(last))

    def new(self, value: Value, upright: bool = False, valid: tuple[Extent, Extent] | None = None) -> TileRef:
        """Return the tile a result is produced in, allotting it unless a place was chosen."""
        place = self.places.pop(value.name, None)
        if place is None:
            form = self.plan[value.name]
            if valid is None:
                assert isinstance(value.type, TileType)
                valid = self.valid_of(value.type, form)
            place = self.allot(form, valid, upright and form.column, value.name)
        self.tiles[value.name] = place
        return place

    def allot(self, form: Form, valid: tuple[Extent, Extent], upright: bool, hint: str | None) -> TileRef:
        type_ = buffer_type(form, valid, upright)
        extents = (valid[1], valid[0]) if upright else self.physical(form, valid)
        value = self.b.alloc(type_, extents)
        if hint is not None:
            self.name(value, hint)
        return TileRef(form, valid, value, upright, object(), self.frame)

    def physical(self, form: Form, valid: tuple[Extent, Extent]) -> tuple[Extent, Extent]:
        """Return valid extents in assembler elements, of which packed pairs hold two values."""
        packing = form.dtype.values_per_byte
        return valid if packing == 1 else (valid[0], self.div_up(valid[1], packing))

    def derived(self, ref: TileRef, form: Form, valid: tuple[Extent, Extent], value: SSAValue) -> TileRef:
        """Return another name for (part of) a tile's storage, given its row-major value."""
        return TileRef(form, valid, value, False, ref.root, ref.home, True)

    def rows(self, ref: TileRef) -> SSAValue:
        """Return the row-major view of a tile."""
        return self._turned(ref, False) if ref.upright else ref.value

    def upright(self, ref: TileRef) -> SSAValue:
        """Return the column-major view of a column."""
        return ref.value if ref.upright else self._turned(ref, True)

    def _turned(self, ref: TileRef, upright: bool) -> SSAValue:
        def make() -> SSAValue:
            length = ref.valid[1]
            full: tuple[Extent, Extent] = (1, length if isinstance(length, int) else ref.form.cols)
            made = self.reshape(ref.value, buffer_type(ref.form, full, upright))
            if not isinstance(length, int):
                shown = (length, 1) if upright else self.physical(ref.form, (1, length))
                made = self.subview(made, (0, 0), made.type.shape, shown)  # type: ignore[attr-defined]
            return made

        return self.cached((ref, upright), make)  # type: ignore[no-any-return]

    def reshape(self, value: SSAValue, type_: TileBufType) -> SSAValue:
        """Append ``pto.treshape`` unless the value has the type already."""
        if value.type == type_:
            return value
        return self.b.op("pto.treshape", [value], [type_]).results[0]

    def subview(
        self,
        value: SSAValue,
        offsets: tuple[Extent, Extent],
        sizes: tuple[int, int],
        valid: tuple[Extent, Extent],
    ) -> SSAValue:
        """Append ``pto.subview`` with its valid extents, in assembler elements."""
        assert isinstance(value.type, TileBufType)
        spec = value.type.data
        type_ = tile_type(
            spell(spec.element), *sizes, valid=(_static(valid[0]), _static(valid[1])), space=spec.space,
            blayout=spec.blayout, slayout=spec.slayout, fractal=spec.fractal, pad=spec.pad,
        )  # fmt: skip
        operands = [value, *map(self.index, offsets), *map(self.index, valid)]
        properties = {"sizes": index_array(sizes), SEGMENTS: segments(1, 2, 1, 1)}
        return self.b.add(SubviewOp.create(operands=operands, result_types=[type_], properties=properties)).results[0]


_DIM_OPS: dict[type[ast.operator], tuple[Callable[[int, int], int], type[Operation]]] = {
    ast.Add: (lambda a, b: a + b, arith.AddiOp),
    ast.Sub: (lambda a, b: a - b, arith.SubiOp),
    ast.Mult: (lambda a, b: a * b, arith.MuliOp),
    ast.FloorDiv: (lambda a, b: a // b if b else 0, arith.FloorDivSIOp),
    ast.Mod: (lambda a, b: a % b if b else 0, arith.RemSIOp),
}


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


@lru_cache(maxsize=4096)
def parse_dim(text: str) -> ast.AST | None:
    """Return the syntax tree of a dimension's expression, ``None`` when it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _static(extent: Extent) -> int:
    return extent if isinstance(extent, int) else DYNAMIC


_TYPES: dict[tuple[Any, ...], TileBufType] = {}


def buffer_type(form: Form, valid: tuple[Extent, Extent], upright: bool = False) -> TileBufType:
    """Return the assembler's type of a view; columns of packed pairs count bytes."""
    packing = form.dtype.values_per_byte
    rows, cols = form.rows, form.cols // packing
    vrows = valid[0] if isinstance(valid[0], int) else DYNAMIC
    vcols = -(-valid[1] // packing) if isinstance(valid[1], int) else DYNAMIC
    key = (form.dtype.name, rows, cols, vrows, vcols, upright, form.space, form.config, form.pad)
    known = _TYPES.get(key)
    if known is not None:
        return known
    try:
        if upright:
            made = tile_type(form.dtype.pto, cols, rows, valid=(vcols, vrows), blayout="col_major", space=form.space)
        else:
            blayout, slayout, fractal = form.config or ("row_major", "none_box", 512)
            made = tile_type(
                form.dtype.pto, rows, cols, valid=(vrows, vcols), space=form.space,
                blayout=blayout, slayout=slayout, fractal=fractal, pad=form.pad,
            )  # fmt: skip
    except (ValueError, VerifyException) as problem:
        raise error("TG023", f"a tile cannot be written as assembly: {problem}") from None
    return _TYPES.setdefault(key, made)


def scalar_type(dtype: DType) -> Attribute:
    """Return the register type of a dtype: index, a float, or an integer without sign."""
    if dtype.kind == "index":
        return INDEX
    if dtype.kind in ("int", "uint") and dtype.pto:
        return element(f"i{dtype.bits}")
    return element(dtype.pto)

