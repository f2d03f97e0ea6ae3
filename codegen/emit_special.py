"""Instructions of a form of their own: positions, accumulation, generators, partial and dequantising ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Attribute, SSAValue

from ..extract.inplace import overwritten_at
from ..ir.dtypes import INT32, UINT16, UINT32
from ..ir.op import OPS
from ..ir.program import Const, Op, Operand
from ..ir.types import TileType
from .emit_columns import by_rows, is_column, line_with, one_number
from .emit_forms import Form
from .emit_memory import signless
from .emit_scalars import constant, scalar_operand
from .emit_scopes import Extent
from .emit_state import State, TileRef
from .emit_tiles import column_reduction, fill_pad, operands_of, row_reduction
from .emit_views import check_start, slice_tile


def row_position(state: State, s: Op) -> None:
    """``tile.row_argmax`` and the like; the only column of a column is column 0."""
    ref = state.tile(s.operands[0])
    if ref.form.column and ref.form.used > 1:
        result = state.new(s.result)
        state.b.dps("texpands", [constant(state, 0, result.form.dtype)], [signless(state, result)])
        return
    row_reduction(state, s)


def accumulate(state: State, s: Op) -> None:
    """Operations that overwrite an operand with the result: ``tile.axpy``."""
    decl = OPS[s.name]
    assert decl.pto is not None
    at = overwritten_at(decl)
    result = over(state, s, at)
    operands = (*s.operands[:at], *s.operands[at + 1 :])
    params = (*decl.operand_params[:at], *decl.operand_params[at + 1 :])
    ins, _, _ = operands_of(state, replace(s, operands=operands), params, decl.pto)
    state.b.dps(decl.pto, ins, [state.rows(result)])


def over(state: State, s: Op, at: int) -> TileRef:
    """Return the tile a result overwrites: the operand's own storage where nothing else reads it, else a copy."""
    operand = s.operands[at]
    ref, place = state.tile(operand), state.places.pop(s.result.name, None)
    if place is None and state.is_last_use(operand, ref):
        made = ref
    elif place is not None and place.root is ref.root and not ref.alias:
        made = place
    else:
        made = place or state.allot(state.plan[s.result.name], ref.valid, False, s.result.name)
        state.copy(ref, made)
    state.tiles[s.result.name] = made
    return made


def fill_own(state: State, s: Op) -> None:
    """``tile.fillpad_inplace``: the assembler fills another tile, so that none must be read under its old name."""
    o, ref = s.operands[0], state.tile(s.operands[0])
    names = [name for name, other in state.read_again(ref, s) if other.part == ref.part]
    if names:
        state.fail(f"{names[0]!r} is read again behind the fill in the storage of {getattr(o, 'name', '')!r}",
                   "the assembler fills another tile", "read the result, or fill with pl.tile.fillpad")  # fmt: skip
    fill_pad(state, s)


def assemble(state: State, s: Op) -> None:
    """``tile.assemble``: the source is copied into a window of the target."""
    source, target = state.tile(s.operands[1]), state.tile(s.operands[0])
    t, old = cast(TileType, s.result.type), cast(TileType, s.operands[0].type)  # type: ignore[union-attr]
    if len(t.shape) > 2 or t.valid_shape != old.valid_shape:
        state.fail("a tile that grows by what is put into it cannot be written as assembly",
                   hint="give the target its final valid shape first")  # fmt: skip
    if target.form.column != source.form.column:
        state.fail(f"a {s.operands[1].type} cannot be put into a {old}", "one of them is stored as one line")  # type: ignore[union-attr]
    offsets = state.offsets(s.operands[2])
    row, col = offsets if len(offsets) == 2 else (0, *offsets)
    if target.form.column:
        row, col = 0, row
    check_start(state, target.form, row, col)
    whole = state.anchored(state.turned(over(state, s, 0)))
    state.tiles[s.result.name] = whole
    packing = source.form.dtype.values_per_byte
    at: tuple[Extent, Extent] = (row, state.div_exact(col, packing, "offset"))
    sizes = (source.form.rows, source.form.used // packing)
    view = state.subview(whole.value, at, sizes, state.physical(source.form, source.valid))
    strided = source.form.used != whole.form.cols
    form = replace(source.form, cols=source.form.used)
    state.copy(source, TileRef(form, source.valid, view, False, whole.root, None, True, strided))


def extract(state: State, s: Op) -> None:
    """``tile.extract`` within local memory: a slice."""
    if s.attrs.get("target_memory", "Vec") != "Vec":
        state.fail("tile.extract into matrix memory cannot be written as assembly", "only vector kernels are written")
    source, row, col, shape = s.operands
    slice_tile(state, replace(s, operands=(source, shape, (row, col), None)))


def pair(state: State, s: Op) -> None:
    """Operations of two results: values and indices."""
    decl = OPS[s.name]
    assert decl.pto is not None
    ins, _, _ = operands_of(state, s, decl.operand_params, decl.pto)
    state.b.dps(decl.pto, ins, [state.rows(state.new(r)) for r in s.results])


def triangle(state: State, s: Op) -> None:
    """``tile.tri``; a column is a line of the other side."""
    result, upper, diagonal = state.new(s.result), bool(s.attrs.get("upper")), s.operands[0]
    if is_column(result):
        # Row i of a lower one has ones from i = -diagonal on, as columns of the one row of an upper one.
        if not isinstance(diagonal, Const):
            state.fail("a column of a triangle that begins at a run-time diagonal cannot be written as assembly",
                       "the column is stored as one line", "make a row of the other side and transpose it")  # fmt: skip
        upper, diagonal = not upper, Const(min(-int(diagonal.value), INT32.max_value), diagonal.dtype)
    attrs: dict[str, Attribute] = {"upperOrLower": IntegerAttr(int(upper), i32)}
    state.b.dps("ttri", [scalar_operand(state, diagonal, INT32)], [state.rows(result)], attrs)


def randomise(state: State, s: Op) -> None:
    """``tile.random``."""
    ins = [scalar_operand(state, o, INT32) for o in s.operands[:6]]
    attrs: dict[str, Attribute] = {"rounds": IntegerAttr(s.attrs.get("rounds", 10), i32)}
    state.b.dps("trandom", ins, [state.rows(state.new(s.result))], attrs)


def histogram(state: State, s: Op) -> None:
    """``tile.histogram``."""
    source, index = (state.tile(o) for o in s.operands)
    byte: int = s.attrs["byte"]
    if source.form.dtype is UINT16:
        filters = _filter_column(state, source, index, s.operands[1])
    elif byte == UINT32.bytes - 1:
        filters = state.upright(index) if index.form.column else state.rows(index)
    else:
        filters = _filter_rows(state, source, index, UINT32.bytes - 1 - byte, s.operands[1])
    attrs: dict[str, Attribute] = {"byte": IntegerAttr(byte, i32)}
    state.b.dps("thistogram", [by_rows(state, source).value, filters], [state.rows(state.new(s.result))], attrs)


def _filter_column(state: State, source: TileRef, index: TileRef, given: Operand) -> SSAValue:
    """Return the filter bytes of 16-bit elements: a column as long as the source has rows."""
    rows = source.form.used if is_column(source) else source.form.rows
    valid = source.valid[1] if is_column(source) else source.valid[0]
    if rows % index.form.unit:
        state.fail(f"the filter bytes of a histogram of {rows} rows cannot be written as assembly",
                   "their column is padded to whole blocks, and pto.thistogram wants the source's rows",
                   f"use a number of rows that is a multiple of {index.form.unit}")  # fmt: skip
    if not index.form.column or index.form.used != rows or index.valid[1] != valid:
        state.fail(f"the filter bytes of a histogram of {rows} rows cannot be a {_type_text(given)} in assembly",
                   "pto.thistogram takes them as a column of the source's rows (assembler v0.60)",
                   f"give a [{rows}, 1] tile, and the rows that the source has valid")  # fmt: skip
    return state.upright(index)


def _filter_rows(state: State, source: TileRef, index: TileRef, count: int, given: Operand) -> SSAValue:
    """Return the filter bytes of 32-bit elements: rows as long as the source's, of which the first bytes count."""
    spread_source = by_rows(state, source)
    cols, valid = spread_source.form.cols, spread_source.valid[1]
    if not index.form.column and (index.form.rows, index.form.cols, index.valid) == (count, cols, (count, valid)):
        return state.rows(index)
    if not index.form.column or (index.form.used, index.valid[1]) != (count, count):
        state.fail(f"the filter bytes of a histogram of UINT32 cannot be a {_type_text(given)} in assembly",
                   "pto.thistogram takes one row for each byte above the counted one (assembler v0.60)",
                   f"give a [{count}, 1] tile")  # fmt: skip
    if cols % index.form.unit:
        state.fail(f"a histogram of rows of {source.form.used} UINT32 elements cannot be written as assembly",
                   "pto.thistogram wants filter bytes in rows of as many columns, which must fill whole blocks",
                   f"use a number of columns that is a multiple of {index.form.unit}")  # fmt: skip
    made = state.allot(Form(index.form.dtype, count, spread_source.form.used, cols=cols), (count, valid), False, None)
    state.b.dps("trowexpand", [state.upright(index)], [made.value])
    return made.value


def _type_text(o: Operand) -> str:
    return str(getattr(o, "type", ""))


def dequantise(state: State, s: Op) -> None:
    """``tile.dequant``: one scale and one offset per row, in columns.

    A column is converted with the offset zero and the scale one; its own are then applied in lines.
    """
    source, scale, offset = (state.tile(o) for o in s.operands)
    result = state.new(s.result)
    if is_column(source):
        # Not in the result, which may take the scale's place.
        numbers = state.allot(result.form.unpadded(), result.valid, False, None).value
        state.b.dps("tdequant", [state.rows(source), one_number(state, 1.0), one_number(state, 0.0)], [numbers])
        line_with(state, [("tsub", offset)], numbers, numbers)
        line_with(state, [("tmul", scale)], numbers, state.rows(result))
        return
    columns = [state.upright(v) if v.form.column else state.rows(v) for v in (scale, offset)]
    state.b.dps("tdequant", [state.rows(source), *columns], [state.rows(result)])


HANDLERS: dict[str, Callable[[State, Op], None]] = {
    "tile.row_argmax": row_position,
    "tile.row_argmin": row_position,
    "tile.col_argmax": column_reduction,
    "tile.col_argmin": column_reduction,
    "tile.axpy": accumulate,
    "tile.assemble": assemble,
    "tile.extract": extract,
    "tile.part_argmax": pair,
    "tile.part_argmin": pair,
    "tile.tri": triangle,
    "tile.random": randomise,
    "tile.histogram": histogram,
    "tile.dequant": dequantise,
    "tile.fillpad_expand": fill_pad,
    "tile.fillpad_inplace": fill_own,
}
