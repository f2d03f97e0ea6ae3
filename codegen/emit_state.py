"""Storage of one function under emission: tiles, their views, and tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from xdsl.dialects.builtin import BFloat16Type, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..ir.diagnostics import error
from ..ir.dtypes import FP32, DType
from ..ir.program import Block, Op, Operand, Value
from ..ir.types import BLOCK_BYTES, TileType
from ..rules.target import Target
from .emit_forms import Form, Plan
from .emit_lives import Lives
from .emit_scopes import Extent, Scopes, scalar_type
from .pto.api import DYNAMIC, FunctionBuilder, TileBufType, element, tile_type, word
from .pto.base import SEGMENTS, segments
from .pto.elements import LOW_PRECISION, spell
from .pto.tiles import SubviewOp, index_array
from .pto.types import shared_tile


@dataclass(slots=True, eq=False)
class TileRef:
    """A tile: its form, the valid extents of its row-major view, and one value that names its storage.

    ``upright``: ``value`` is the column-major view of a column. ``root`` is shared by everything that names
    the same storage, ``home`` is the scope the storage was allotted in; ``alias`` marks another name for
    (part of) a tile's storage, ``part`` a window of it, ``strided`` one whose rows lie further apart than they are
    long.
    """

    form: Form
    valid: tuple[Extent, Extent]
    value: SSAValue
    upright: bool
    root: object
    home: object
    alias: bool = False
    strided: bool = False
    part: bool = False


@dataclass(slots=True, eq=False)
class TensorRef:
    """A tensor in global memory: pointer, extents and strides in elements; a slice has a base and offsets.

    ``ctx``: the communication context of a window. ``here``: the view is made where it is used, since the pointer
    belongs to that block: a window on a peer.
    """

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
    line: TensorRef | None = None
    ctx: SSAValue | None = None
    here: bool = False

    @property
    def whole(self) -> TensorRef:
        """The tensor whose view is partitioned."""
        return self if self.base is None else self.base


class Writes:
    """Writes to windows since the last marker of each: on whose slice, in which block."""

    def __init__(self) -> None:
        self._since: dict[object, list[tuple[Extent | None, object]]] = {}

    def note(self, root: object, peer: Extent | None, frame: object) -> None:
        """Note a write to a window; ``peer``: ``None`` for the own slice."""
        found = self._since.setdefault(root, [])
        if not any(p == peer and f is frame for p, f in found):
            found.append((peer, frame))

    def take(self, root: object, frames: Sequence[object]) -> tuple[list[Extent | None], bool]:
        """Return the slices written since the last marker, and whether a peer's block has ended; forget them."""
        found = self._since.pop(root, [])
        lost = any(p is not None and not any(f is frame for frame in frames) for p, f in found)
        return list(dict.fromkeys(p for p, _ in found)), lost

    def clear(self) -> None:
        """Forget all writes."""
        self._since.clear()


class State(Scopes):
    """Values, scopes and the current builder of one function."""

    def __init__(self, builder: FunctionBuilder, plan: Plan, target: Target, counts: Mapping[str, int]) -> None:
        super().__init__(builder, plan, target)
        #: How often each name is read.
        self.counts = counts
        self.tiles: dict[str, TileRef] = {}
        #: Tiles under a dtype that the assembler cannot give their storage; they can only be stored.
        self.relabelled: dict[str, TileRef] = {}
        #: Tiles that are loaded under another dtype, the one that their views have.
        self.loaded_as: dict[str, DType] = {}
        #: Lines that stand for rows with gaps between them; they can only be stored.
        self.lines: dict[str, TileRef] = {}
        self.tensors: dict[str, TensorRef] = {}
        #: Pointers of the language, for accesses element by element.
        self.pointers: dict[str, SSAValue] = {}
        #: Results that are to be produced in a given tile instead of a new one.
        self.places: dict[str, TileRef] = {}
        #: Storage with several names: other shapes of the same elements, windows and valid parts, and the copy that had
        #: to stand for another shape.
        self.aliased: set[object] = set()
        self.windowed: set[object] = set()
        self.reshaped: set[object] = set()
        self.moved: set[object] = set()
        #: Names of tiles that the program changes in place, and the roots of their storage.
        self.changed: frozenset[str] = frozenset()
        self.changing: set[object] = set()
        #: The function's body, and in which block each result was made.
        self.body = Block(())
        self.made: dict[str, object] = {}
        #: Communication contexts by the name of the value, and what was read of each.
        self.contexts: dict[str, SSAValue] = {}
        self.ranks: dict[SSAValue, Any] = {}
        self.writes = Writes()
        #: The module and its functions, for calls.
        self.unit: Any = None

    # -- tiles -------------------------------------------------------------------------------------------

    def tile(self, o: Operand) -> TileRef:
        """Return the tile of an operand."""
        found = self.tiles.get(o.name) if isinstance(o, Value) else None
        if found is None and isinstance(o, Value) and o.name in self.relabelled:
            self.fail(f"{o.name!r} is another dtype's bytes and can only be stored",
                      "the assembler does not retype low-precision tiles (v0.60)",
                      "store it into a tensor, and load it from there to work with it")  # fmt: skip
        if found is None and isinstance(o, Value) and o.name in self.lines:
            self.fail(f"the reshape of a line to {o.type} would move elements",
                      f"rows of {self.lines[o.name].form.dtype.name} are padded to whole {BLOCK_BYTES}-byte blocks",
                      f"use column counts that are multiples of {self.lines[o.name].form.unit}")  # fmt: skip
        if found is None:
            self.fail(f"{getattr(o, 'name', 'the operand')!r} is no tile the emitter knows")
        if o.name in self.changed:  # type: ignore[union-attr]
            self.changing.add(found.root)
        return found

    def valid_of(self, t: TileType, form: Form) -> tuple[Extent, Extent]:
        """Return the valid extents of the row-major view of a tile of this type."""
        *leading, last = t.valid_shape
        if not form.column and len(leading) == 1:
            return self.extent(leading[0]), self.extent(last)
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

    def derived(
        self, ref: TileRef, form: Form, valid: tuple[Extent, Extent], value: SSAValue,
        upright: bool = False, strided: bool = False,
        what: Literal["window", "shape", "form"] = "window",
    ) -> TileRef:  # fmt: skip
        """Return another name for (part of) a tile's storage.

        ``what``: a part, another shape of the same elements, or a form of the tile that the program does not name.
        """
        self.aliased.add(ref.root)
        if what != "form":
            (self.reshaped if what == "shape" else self.windowed).add(ref.root)
        part = ref.part or what == "window"
        return TileRef(form, valid, value, upright, ref.root, ref.home, True, strided, part)

    # -- views -------------------------------------------------------------------------------------------

    def rows(self, ref: TileRef) -> SSAValue:
        """Return the row-major view of a tile."""
        return self._turned(ref, False) if ref.upright else ref.value

    def turned(self, ref: TileRef) -> TileRef:
        """Return a column under its row-major name."""
        return self.derived(ref, ref.form, ref.valid, self.rows(ref), what="form") if ref.upright else ref

    def upright(self, ref: TileRef) -> SSAValue:
        """Return the column-major view of a column."""
        return ref.value if ref.upright else self._turned(ref, True)

    def _turned(self, ref: TileRef, upright: bool) -> SSAValue:
        given, ref = ref, self.compact(ref)

        def make() -> SSAValue:
            length = ref.valid[1]
            if isinstance(length, int):
                return self.reshape(ref.value, buffer_type(ref.form, ref.valid, upright))
            type_ = buffer_type(ref.form, (length, length), upright)
            value = self.reshape(ref.value, type_)
            shown = (length, 1) if upright else self.physical(ref.form, (1, length))
            self.b.op("pto.set_validshape", [value, *map(self.index, shown)])
            return value

        return self._kept((given, upright), given, make)  # type: ignore[no-any-return]

    def reshape(self, value: SSAValue, type_: TileBufType) -> SSAValue:
        """Append ``pto.treshape`` unless the value has the type already."""
        if value.type == type_:
            return value
        self._plain(value, "treshape")
        return self.b.op("pto.treshape", [value], [type_]).results[0]

    def _plain(self, value: SSAValue, mnemonic: str) -> None:
        dtype = spell(value.type.element)  # type: ignore[attr-defined]
        if dtype in LOW_PRECISION:
            self.fail(f"a {dtype} tile cannot get another shape or element type in assembly",
                      f"pto.{mnemonic} does not take the type (assembler v0.60)")  # fmt: skip

    def filled(self, ref: TileRef) -> TileRef:
        """Return a tile under a type in which all of it is valid."""
        full = (ref.form.rows, ref.form.cols)
        value = self.reshape(self.rows(ref), buffer_type(ref.form, full))
        return self.derived(ref, ref.form, full, value, what="form")

    def evened(self, ref: TileRef) -> TileRef:
        """Return a tile under a type with an even number of valid columns."""
        rows, cols = ref.valid
        valid = (rows, cols + cols % 2 if isinstance(cols, int) else cols)
        if buffer_type(ref.form, valid) == buffer_type(ref.form, ref.valid):
            return ref
        ref = self.compact(ref)
        value = self.reshape(self.rows(ref), buffer_type(ref.form, valid))
        return self.derived(ref, ref.form, valid, value, what="form")

    def retyped(self, value: SSAValue, dtype: str) -> SSAValue:
        """Return a tile under another element type of the same width (assembly spelling)."""
        assert isinstance(value.type, TileBufType)
        type_ = shared_tile(replace(value.type.data, element=element(dtype)))
        if type_ == value.type:
            return value
        self._plain(value, "bitcast")
        return self.b.op("pto.bitcast", [value], [type_]).results[0]

    def anchored(self, ref: TileRef) -> TileRef:
        """Return a tile that windows can be cut from: the assembler follows them to an allocation only."""
        if getattr(ref.value.owner, "name", "") in ("pto.alloc_tile", "pto.subview"):
            return ref
        return self._kept(("anchored", ref), ref, lambda: self.copied(ref))  # type: ignore[no-any-return]

    def subview(
        self, value: SSAValue, offsets: tuple[Extent, Extent], sizes: tuple[int, int], valid: tuple[Extent, Extent]
    ) -> SSAValue:
        """Append ``pto.subview`` with its valid extents, in assembler elements."""
        assert isinstance(value.type, TileBufType)
        spec = value.type.data
        shown = (_static(valid[0]), _static(valid[1]))
        type_ = shared_tile(replace(spec, rows=sizes[0], cols=sizes[1], valid_rows=shown[0], valid_cols=shown[1]))
        operands = [value, *map(self.index, offsets), *map(self.index, valid)]
        properties: dict[str, Attribute] = {"sizes": index_array(sizes), SEGMENTS: segments(1, 2, 1, 1)}
        return self.b.made(SubviewOp, operands, (type_,), properties).results[0]

    def own(self, o: Operand, s: Op) -> TileRef:
        """Return a tile that ``s`` may write: what the program takes to be another tile must not change with it.

        Other shapes of the tile change, windows of it do not, nor it with a window: where one is read again, a copy
        takes the written one's place.
        """
        ref = self.tile(o)
        assert isinstance(o, Value)
        if ref.root in self.moved:
            self.fail(f"{o.name!r} is written, but stands for a copy of the tile whose shape it changes",
                      hint="write the element before the tile is reshaped")  # fmt: skip
        behind = self.read_again(ref, s) if ref.root in self.windowed else []
        others = [name for name, other in behind if name != o.name and (other.part or ref.part)]
        if not others and not ref.strided:
            return ref
        here = ref.home is self.frame or self.made.get(o.name) is self.frame
        if not here or ref.root in self.reshaped:
            other = repr(others[0]) if others else "what it is cut from"
            self.fail(f"{o.name!r} is written while {other} shares its storage",
                      hint="copy one of them with pl.tile.move where it is made")  # fmt: skip
        ref = self.tiles[o.name] = self.copied(self.compact(ref))
        return ref

    def read_again(self, ref: TileRef, s: Op) -> list[tuple[str, TileRef]]:
        """Return the names of a tile's storage that are read behind ``s``."""
        alike = [(name, other) for name, other in self.tiles.items() if other.root is ref.root]
        return [(name, other) for name, other in alike if self.lives.again(name, s)]

    @cached_property
    def lives(self) -> Lives:
        """Which names are read again."""
        return Lives(self.body)

    def is_last_use(self, o: Operand, ref: TileRef) -> bool:
        """Return whether a tile may be overwritten by an operation that reads it: nothing else reads its storage."""
        single = isinstance(o, Value) and self.counts.get(o.name, 0) == 1
        return single and not ref.alias and ref.root not in self.aliased and ref.home is self.frame

    # -- copies ------------------------------------------------------------------------------------------

    def compact(self, ref: TileRef) -> TileRef:
        """Return a tile whose physical shape is that of its type: of a strided window, a copy."""
        return self._kept(("compact", ref), ref, lambda: self.copied(ref)) if ref.strided else ref

    def _kept(self, key: Any, ref: TileRef, make: Callable[[], Any]) -> Any:
        """Return what is made once per block, unless it may be a copy of storage that changes."""
        return make() if ref.root in self.changing else self.cached(key, make)

    def copied(self, ref: TileRef, form: Form | None = None) -> TileRef:
        """Return a copy, of another form with the same rows if one is given."""
        made = self.allot(form or ref.form, ref.valid, False, None)
        self.copy(ref, made)
        return made

    def copy(self, source: TileRef, target: TileRef) -> None:
        """Copy a tile's valid part, bit by bit (a NaN's payload aside)."""
        x, y = self.rows(source), self.rows(target)
        shapes = [(r.form.rows, r.form.cols, r.strided) for r in (source, target)]
        if self.target.arch == "a5" or (shapes[0] == shapes[1] and not source.strided):
            self.b.move(x, y)
            return
        # The a2/a3 verifier refuses moves between tiles of unlike physical shape; these it takes.
        dtype = source.form.dtype
        if source.form.line:
            self.b.dps("tcolexpand", [x], [y])
        elif isinstance(y.type.element, IntegerType):  # type: ignore[attr-defined]
            self.b.dps("tor", [x, x], [y])
        elif isinstance(y.type.element, BFloat16Type):  # type: ignore[attr-defined]
            wide = self.allot(replace(source.form, dtype=FP32), source.valid, False, None).value
            nearest = {"rmode": word("round_mode", "RINT")}
            self.b.dps("tcvt", [x], [wide], nearest)
            self.b.dps("tcvt", [wide], [y], nearest)
        else:
            one = self.b.constants.get(1.0, scalar_type(dtype))
            self.b.dps("tmuls", [x, one], [y])


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
