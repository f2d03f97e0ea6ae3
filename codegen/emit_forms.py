"""How tiles lie in local memory: the physical shape of every tile of a function, before any is written.

The assembler wants rows of a row-major tile to fill whole 32-byte blocks, equal physical shapes around
conversions and comparisons, and row-major tiles for elementwise work (assembler v0.60 verifier). So tiles that
work together form a group with one number of physical columns, wide enough for the narrowest dtype in it; the
language's shape stays the valid shape. A column ``[M, 1]`` is kept as one line of M elements: the same bytes
are a row-major ``[1, M]`` for elementwise work and a column-major ``[M, 1]`` for row reductions and expands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import cast

from ..ir.diagnostics import Span, error
from ..ir.dtypes import UINT8, DType
from ..ir.op import OPS, Kind
from ..ir.predicates import compares, keeps_bits, reads_bits
from ..ir.program import Block, For, Function, If, Op, Operand, Statement, Value, While, Yield, inner_blocks
from ..ir.types import BLOCK_BYTES, TileType, static

#: Layout a memory space implies: block layout, layout inside a block, bytes of a block.
_IMPLIED = {
    "Vec": ("row_major", "none_box", 512),
    "Mat": ("col_major", "row_major", 512),
    "Acc": ("col_major", "row_major", 1024),
    "Right": ("row_major", "col_major", 512),
}
_CONFIG = ("blayout", "slayout", "fractal")
PADS = {"null": 0, "zero": 1, "max": 2, "min": 3}


@dataclass(slots=True)
class Form:
    """A tile in local memory, as its row-major view.

    ``rows`` and ``used``: extent of the view in elements; ``cols``: physical columns, set by the plan;
    ``column``: an ``[M, 1]`` tile kept as one line; ``mask``: a packed predicate, eight elements a byte.
    ``config`` holds an explicit (blayout, slayout, fractal), for tiles that are not plain. ``halved``: rows of packed
    pairs may end in the middle of a block.
    """

    dtype: DType
    rows: int
    used: int
    column: bool = False
    mask: bool = False
    space: str = "vec"
    config: tuple[str, str, int] | None = None
    pad: int = 0
    cols: int = 0
    halved: bool = False

    def copy(self) -> Form:
        """Return a form of its own."""
        return Form(
            self.dtype, self.rows, self.used, self.column, self.mask, self.space, self.config, self.pad, self.cols,
            self.halved,
        )  # fmt: skip

    def unpadded(self) -> Form:
        """Return the form without a pad value, itself when it has none."""
        if not self.pad:
            return self
        made = self.copy()
        made.pad = 0
        return made

    def widened(self, cols: int) -> Form:
        """Return the form with other physical columns, itself when it has them."""
        if cols == self.cols:
            return self
        made = self.copy()
        made.cols = cols
        return made

    @property
    def unit(self) -> int:
        """Elements that fill the smallest row."""
        return BLOCK_BYTES * 8 // (max(self.dtype.bits, 8) if self.halved else self.dtype.bits)

    @property
    def line(self) -> bool:
        """True when the view is one row, so that its elements are contiguous whatever the padding."""
        return self.rows == 1

    @property
    def contiguous(self) -> bool:
        """True when the elements follow one another without gaps."""
        return self.rows == 1 or self.cols == self.used


#: Forms of tile types by the types' numbers, each with its type, which keeps the number its own.
_KNOWN: dict[int, tuple[TileType, Form]] = {}
_REMEMBERED = 20_000


def form_of(t: TileType, span: Span | None) -> Form:
    """Return the form of a tile type; raises TG023 for what the assembler cannot hold, TG017 for a planned tile."""
    known = _KNOWN.get(id(t))
    if known is None:
        if len(_KNOWN) >= _REMEMBERED:
            _KNOWN.clear()
        known = _KNOWN[id(t)] = (t, _form_of(t, span))
    return known[1].copy()


def _form_of(t: TileType, span: Span | None) -> Form:
    shape = static(t.shape)
    if shape is None or not shape:
        raise error("TG023", f"a {t} has a physical shape that is not known", span,
                    reason="local memory is allotted before the program runs",
                    hint="give a constant shape and a dynamic valid_shape")  # fmt: skip
    if not t.dtype.pto or t.dtype.kind == "index":
        raise error("TG023", f"the assembler has no {t.dtype.name} tiles", span)
    if t.memref is not None:
        raise error("TG017", f"a {t} already has an address", span,
                    hint="emit the program from before memory planning")  # fmt: skip
    rows, cols = prod(shape[:-1]), shape[-1]
    form = Form(t.dtype, rows, cols, space=(t.memory or "Vec").lower())
    _configure(form, t, span)
    if form.config is None and cols == 1:
        form.rows, form.used, form.column = 1, rows, True
    return form


def _configure(form: Form, t: TileType, span: Span | None) -> None:
    given = dict(t.layout)
    form.pad = PADS.get(given.pop("pad", "null"), 0)
    memory = t.memory or "Vec"
    implied = _IMPLIED.get(memory, _IMPLIED["Vec"])
    words = [given.pop(key, str(default)) for key, default in zip(_CONFIG, implied)]
    if given:
        names = ", ".join(sorted(given))
        raise error("TG023", f"a tile view with {names} cannot be written as assembly", span)
    config = (words[0], words[1], int(words[2]))
    if memory == "Vec" and config == implied:
        return
    # A column is stored column by column either way, and gets both views.
    if memory == "Vec" and t.shape[-1] == 1 and config[1:] == implied[1:]:
        return
    form.config = config


class Plan:
    """The form of every tile of a function, by name."""

    def __init__(self, function: Function) -> None:
        self.forms: dict[str, Form] = {}
        self._parent: dict[str, str] = {}
        for p in function.params:
            self._enter(p.value, function.span)
        self._block(function.body)
        self._settle()

    def __getitem__(self, name: str) -> Form:
        return self.forms[name]

    # -- groups ------------------------------------------------------------------------------------------

    def _find(self, name: str) -> str:
        parent = self._parent
        while parent[name] != name:
            parent[name] = name = parent[parent[name]]
        return name

    def _join(self, names: Iterable[str]) -> None:
        first: str | None = None
        for name in names:
            if name not in self.forms or self.forms[name].config is not None:
                continue
            root = self._find(name)
            if first is None:
                first = root
            elif root != first and self.forms[first].rows == self.forms[name].rows:
                self._parent[root] = first

    def _enter(self, value: Value, span: Span | None, form: Form | None = None) -> None:
        if isinstance(value.type, TileType):
            self.forms[value.name] = form or form_of(value.type, span)
            self._parent[value.name] = value.name

    def _settle(self) -> None:
        """Give every group its physical columns."""
        groups: dict[str, list[Form]] = {}
        for name, form in self.forms.items():
            groups.setdefault(self._find(name), []).append(form)
        for group in groups.values():
            used, unit = max([f.used for f in group]), max([f.unit for f in group])
            cols = -(-used // unit) * unit
            for form in group:
                form.cols = cols if form.config is None else form.used

    # -- statements --------------------------------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for s in block.statements:
            match s:
                case Op():
                    self._op(s)
                case For() | While():
                    self._loop(s)
                case If():
                    self._branch(s)
                case _:
                    for inner in inner_blocks(s):
                        self._block(inner)

    def _loop(self, s: For | While) -> None:
        for c in s.carried:
            self._enter(c.arg, s.span, self._copy(c.init))
        for inner in inner_blocks(s):
            self._block(inner)
        for i, c in enumerate(s.carried):
            names = [c.arg.name, *_names((c.init,)), *_names(_yielded(s.body, i))]
            if i < len(s.results):
                self._enter(s.results[i], s.span, self._copy(c.arg))
                names.append(s.results[i].name)
            self._join(names)

    def _branch(self, s: If) -> None:
        self._block(s.then)
        self._block(s.orelse)
        for i, r in enumerate(s.results):
            yielded = [*_yielded(s.then, i), *_yielded(s.orelse, i)]
            self._enter(r, s.span, self._copy(yielded[0]) if yielded else None)
            self._join([r.name, *_names(yielded)])

    def _copy(self, o: Operand) -> Form | None:
        known = self.forms.get(o.name) if isinstance(o, Value) else None
        return None if known is None else known.copy()

    def _op(self, s: Op) -> None:
        tiles = _tile_operands(s)
        self._check_masks(s, tiles)
        for r in s.results:
            self._enter(r, s.span, self._result_form(s, r, tiles))
        results = [r.name for r in s.results]
        if s.name in _OWN_SHAPE:
            return
        if s.name in _RESHAPES:
            lines = all(self.forms[n].line for n in (*tiles, *results) if n in self.forms)
            self._join([*tiles, *results] if lines else [])
            return
        if _takes_first(s.name):
            tiles = tiles[:1]
        self._join([*tiles, *results])

    def _masks(self, tiles: list[str]) -> list[bool]:
        return [known is not None and known.mask for known in map(self.forms.get, tiles)]

    def _result_form(self, s: Op, result: Value, tiles: list[str]) -> Form | None:
        """Return the form of a result that its type does not tell: masks, codes without gaps; ``None`` of others."""
        if s.name == "tile.tquant_mx_raw" and isinstance(result.type, TileType):
            # The assembler wants rows as long as the source's, which may have no gaps (v0.60 verifier).
            form = form_of(result.type, s.span)
            form.halved = True
            return form
        first = self.forms.get(tiles[0]) if tiles else None
        if first is None:
            return None
        if compares(s.name):
            return Form(UINT8, first.rows, first.used, first.column, True)
        return first.copy() if keeps_bits(s.name, self._masks(tiles)) else None

    def _check_masks(self, s: Op, tiles: list[str]) -> None:
        """Raise TG023 where a mask is read as bytes that do not lie as its type says."""
        masks = self._masks(tiles)
        if not any(masks):
            return
        if s.name == "tile.reshape" and _last(s.operands[0]) != _last(s.result):
            raise error("TG023", f"the rows of the mask {tiles[0]!r} cannot be divided otherwise", s.span,
                        reason="a comparison writes the bits of each row to a place of its own",
                        hint="read the bytes with pl.tile.reinterpret_view first")  # fmt: skip
        columns = [name for name, mask in zip(tiles, masks) if mask and self.forms[name].column]
        if columns and not reads_bits(s.name, masks):
            what = "stored" if s.name == "tile.store" else f"read by {s.name}"
            raise error("TG023", f"the mask {columns[0]!r} of a column cannot be {what}", s.span,
                        reason="its bits are packed along the column, and its type has a byte for each row",
                        hint="compare the column as a row: pl.tile.reshape(column, [1, M])")  # fmt: skip


#: Operations whose result may lie otherwise than their operands.
_OWN_SHAPE = frozenset(
    {"tile.slice", "tile.concat", "tile.create", "tile.load", "tile.full", "tile.ci", "tile.read", "tile.store"}
    | {f"tile.{axis}_{what}" for axis in ("row", "col") for what in ("sum", "max", "min", "prod", "argmax", "argmin")}
    | {"tile.extract", "tile.fillpad_expand", "tile.dequant", "tile.histogram"}
    | {f"tile.gather{what}" for what in ("", "b", "_mask", "_compare")}
    | {"tile.scatter_mask", "tile.sort32", "tile.mgather", "tile.mscatter", "tile.concat_idx", "tile.transpose_view"}
    | {f"tile.mrgsort{what}" for what in ("", "_format1", "_format2")}
)
_RESHAPES = frozenset({"tile.reshape", "tile.transpose"})
#: Operations whose result lies like their first operand, whatever the others.
_FIRST_ONLY = frozenset({"tile.assemble", "tile.scatter", "tile.quant"})


@cache
def _takes_first(name: str) -> bool:
    return ".row_expand" in name or ".col_expand" in name or name in _FIRST_ONLY


def _tile_operands(s: Op) -> list[str]:
    places = _tile_places(s.name)
    if places is None:
        return list(_names(s.operands))
    operands = s.operands
    count = len(operands)
    given = [operands[i] for i in places if i < count]
    return [o.name for o in given if isinstance(o, Value) and isinstance(o.type, TileType)]


@cache
def _tile_places(name: str) -> tuple[int, ...] | None:
    """Return which operands of an operation are tiles, scratch tiles aside; ``None`` when it is not declared."""
    decl = OPS.get(name)
    if decl is None:
        return None
    return tuple(i for i, p in enumerate(decl.operand_params) if p.kind in (Kind.TILE, Kind.ARRAY))


def _last(o: Operand) -> object:
    """Return the last dimension of a tile."""
    return cast(TileType, o.type).shape[-1]  # type: ignore[union-attr]


def _names(operands: Iterable[Operand]) -> Iterator[str]:
    for o in operands:
        if isinstance(o, Value):
            yield o.name


def _yielded(block: Block, i: int) -> list[Operand]:
    last: Statement | None = block.statements[-1] if block.statements else None
    return [last.operands[i]] if isinstance(last, Yield) and i < len(last.operands) else []
