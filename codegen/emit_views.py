"""Operations that give a tile's storage another name: slices, reshapes, valid shapes, reinterpretations.

None of them is an instruction. A name stays correct as long as nothing writes the storage, which emission
takes care of: results get storage of their own, and only loops write a tile twice.
"""

from __future__ import annotations

from typing import cast

from ..ir.program import Op
from ..ir.types import BLOCK_BYTES, TileType
from . import emit_lines
from .emit_forms import Form
from .emit_scopes import Extent
from .emit_state import State, TileRef, buffer_type
from .pto.api import TileBufType


def rename(state: State, s: Op) -> None:
    """Operations whose result is their operand: ``tile.assume``."""
    state.tiles[s.result.name] = state.tile(s.operands[0])


def set_validshape(state: State, s: Op) -> None:
    """``tile.set_validshape``: the same storage with new extents."""
    if not isinstance(s.result.type, TileType):
        state.tensors[s.result.name] = state.tensors[s.operands[0].name]  # type: ignore[union-attr]
        return
    ref = state.tile(s.operands[0])
    rows, cols = (state.offset(o) for o in s.operands[1:3])
    valid: tuple[Extent, Extent] = (rows, cols)
    if ref.form.column:
        valid = (1, state.div_up(rows, 8) if ref.form.mask else rows)
    shown = state.physical(ref.form, valid)
    ref = state.anchored(ref)
    shape = cast(TileBufType, ref.value.type).shape
    value = state.subview(ref.value, (0, 0), shape, (shown[1], shown[0]) if ref.upright else shown)
    state.tiles[s.result.name] = state.derived(ref, ref.form, valid, value, ref.upright, ref.strided)


def reinterpret(state: State, s: Op) -> None:
    """``tile.reinterpret_view``: another dtype of the same width."""
    given = state.tile(s.operands[0])
    ref = state.compact(given)
    form = state.plan[s.result.name]
    value = state.retyped(state.rows(ref), form.dtype.pto)
    made = state.derived(ref, form.widened(ref.form.cols), ref.valid, value, what="shape")
    state.tiles[s.result.name] = made
    if made.root is not given.root:
        state.moved.add(made.root)


def reshape(state: State, s: Op) -> None:
    """``tile.reshape``: the same bytes where both shapes lie in memory without gaps, copies around it elsewhere."""
    given, form = state.tile(s.operands[0]), state.plan[s.result.name]
    ref = state.compact(given)
    valid = state.valid_of(cast(TileType, s.result.type), form)
    source, target = tight(ref.form), tight(form)
    if ref.form.line and not target.contiguous and valid == (target.rows, target.used):
        emit_lines.keep(state, s, ref)
        return
    if not (source.contiguous and target.contiguous):
        state.fail(
            f"the reshape from {s.operands[0].type} to {s.result.type} would move elements",  # type: ignore[union-attr]
            f"rows of {ref.form.dtype.name} are padded to whole {BLOCK_BYTES}-byte blocks",
            f"use column counts that are multiples of {form.unit}",
        )
    if not ref.form.contiguous:
        ref = state.copied(ref, source)
    have = ref.form.rows * ref.form.cols
    if not target.line and have > target.rows * target.cols:
        # A padded line, of which the elements at the front are wanted.
        ref = state.copied(ref, source)
        have = ref.form.rows * ref.form.cols
    if target.line:
        target = target.widened(have)
    if have != target.rows * target.cols:
        state.fail(f"the reshape to {s.result.type} would need padding the tile does not have")
    value = state.reshape(ref.value, buffer_type(target, valid))
    made = state.derived(ref, target, valid, value, what="shape")
    made = state.tiles[s.result.name] = made if target.cols == form.cols else state.copied(made, form)
    if made.root is not given.root:
        state.moved.add(made.root)


def tight(form: Form) -> Form:
    """Return the form with no more padding than the dtype itself needs."""
    return form.widened(-(-form.used // form.unit) * form.unit)


def slice_tile(state: State, s: Op) -> None:
    """``tile.slice``: a window of the storage, which must begin at a 32-byte block."""
    ref, form = state.tile(s.operands[0]), state.plan[s.result.name]
    t, source = cast(TileType, s.result.type), cast(TileType, s.operands[0].type)  # type: ignore[union-attr]
    if len(t.shape) > 2:
        state.fail("slices of tiles of rank 3 and more cannot be written as assembly")
    offsets = state.offsets(s.operands[2])
    row, col = offsets if len(offsets) == 2 else (0, *offsets)
    if ref.form.column:
        row, col = 0, row
    elif form.column and form.used > 1:
        state.fail(
            f"one column of a {source} is no tile", "its elements do not follow one another",
            "reduce or transpose the tile first",
        )  # fmt: skip
    check_start(state, ref.form, row, col)
    cols = _window_cols(state, ref.form, form, col)
    rows = form.rows
    valid = state.valid_of(t, form)
    window = form.widened(cols)
    packing = form.dtype.values_per_byte
    at = (row, state.div_exact(col, packing, "offset"))
    # Windows are cut from row-major storage.
    ref = state.anchored(ref) if not ref.upright else state.anchored(state.turned(ref))
    value = state.subview(ref.value, at, (rows, cols // packing), state.physical(window, valid))
    strided = ref.strided or cols != ref.form.cols
    made = state.derived(ref, window, valid, value, strided=strided)
    # Where the storage ends before the planned padding does, the window moves to a tile that has it.
    state.tiles[s.result.name] = made if cols == form.cols else state.copied(made, form)


def check_start(state: State, form: Form, row: Extent, col: Extent) -> None:
    """Raise TG023 for a window that does not begin at a block."""
    bits = form.dtype.bits
    if not isinstance(row, int) or row * form.cols * bits % (8 * BLOCK_BYTES):
        _check_rows(state, form, row)
    if isinstance(col, int) and col * bits % (8 * BLOCK_BYTES):
        state.fail(
            f"a slice at element {col} of {form.dtype.name} rows does not begin at a {BLOCK_BYTES}-byte block",
            "vector instructions address whole blocks",
            f"begin at a multiple of {8 * BLOCK_BYTES // bits} elements",
        )


def _check_rows(state: State, form: Form, row: Extent) -> None:
    """Raise TG023 where a row that a window begins at may not begin at a block."""
    if form.cols * form.dtype.bits % (8 * BLOCK_BYTES):
        state.fail(
            f"a slice at row {row if isinstance(row, int) else 'of a run-time number'} of {form.dtype.name} rows of "
            f"{form.cols} elements does not begin at a {BLOCK_BYTES}-byte block",
            "the rows that a block-scaled quantisation gives have no padding",
            f"quantise a multiple of {8 * BLOCK_BYTES // form.dtype.bits} columns",
        )


def _window_cols(state: State, source: Form, form: Form, col: Extent) -> int:
    """Return the physical columns of a window: as planned, cut where the source ends."""
    if not isinstance(col, int):
        return form.cols if form.cols <= source.cols else form.used
    if col + form.cols <= source.cols:
        return form.cols
    unit = min(form.unit, source.unit)
    least = -(-form.used // unit) * unit
    if col + least > source.cols:
        state.fail(
            f"the slice reaches beyond the tile: {form.used} elements of {form.dtype.name} from {col} on",
            f"a row of the tile ends after {source.cols} elements, and instructions address whole blocks",
            f"begin earlier, or slice at most {max(source.cols - col, 0) // form.unit * form.unit} elements",
        )
    return least


def as_line(state: State, ref: TileRef, form: Form) -> TileRef:
    """Return a line (``[M, 1]`` or ``[1, M]``) as the line of another form: the same storage."""
    return state.derived(ref, form.widened(ref.form.cols), ref.valid, ref.value, ref.upright, ref.strided)
