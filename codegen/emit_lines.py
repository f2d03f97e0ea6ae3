"""Lines that the program divides into rows which fill no 32-byte blocks, such as the scales of quantised groups.

No tile has such rows without gaps. But a tensor has, and its whole rows are a line in memory too: so the line is kept
as it is, may get another dtype, and is stored as one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from ..ir.program import Op
from ..ir.types import BLOCK_BYTES, TileType
from .emit_memory import partition, tensor_of, written
from .emit_scopes import Extent
from .emit_state import State, TensorRef, TileRef


def keep(state: State, s: Op, ref: TileRef) -> None:
    """``tile.reshape`` of a line to rows with gaps: remembered until it is stored."""
    state.lines[s.result.name] = state.derived(ref, ref.form, ref.valid, state.rows(ref), what="shape")


def reinterpret(state: State, s: Op, ref: TileRef) -> None:
    """``tile.reinterpret_view`` of such rows; a dtype that the assembler does not retype keeps its bytes' dtype."""
    source, result = cast(TileType, s.operands[0].type), cast(TileType, s.result.type)  # type: ignore[union-attr]
    coded = source.dtype.is_coded or result.dtype.is_coded
    value = ref.value if coded else state.retyped(ref.value, result.dtype.pto)
    form = replace(ref.form, dtype=result.dtype)
    state.lines[s.result.name] = state.derived(ref, form, ref.valid, value, what="shape")


def store(state: State, s: Op, ref: TileRef) -> None:
    """``tile.store`` of such rows: whole rows of the tensor, as a line; raises TG023 for parts of its rows."""
    t = cast(TileType, s.operands[0].type)  # type: ignore[union-attr]
    tensor = tensor_of(state, s.operands[2])
    whole, at = tensor.whole, state.offsets(s.operands[1])
    if tensor.base is not None:
        at = tuple(map(state.add, tensor.offsets, at))
    sizes = tuple(map(state.extent, t.valid_shape if s.operands[3] is None else ()))
    width = cast(int, t.shape[-1])
    fits = len(whole.shape) == len(sizes) == 2 and whole.strides == (width, 1) and whole.layout in (None, "nd")
    if not fits or (at[1], sizes[1]) != (0, width):
        state.fail(
            f"the rows of a {t} cannot be stored into parts of the rows of {whole.name or 'the tensor'}",
            f"rows of {width} {t.dtype.name} elements do not fill {BLOCK_BYTES}-byte blocks, so they lie on one line",
            f"store them into a tensor [M, {width}] of their own, or let a row have a multiple of "
            f"{ref.form.unit} elements",
        )  # fmt: skip
    line = _line(state, whole)
    size = state.mul(sizes[0], width)
    window = partition(state, line, (0, state.mul(at[0], width)), (1, size), f"{tensor.name}_window")
    state.b.store(ref.value, window, s.attrs.get("atomic", "none") == "add")
    written(state, s, tensor)


def _line(state: State, whole: TensorRef) -> TensorRef:
    """Return a tensor of rank 2 whose rows follow one another as one row."""
    if whole.line is None:
        length: Extent = state.mul(*whole.shape)
        whole.line = TensorRef(
            whole.ptr, whole.dtype, (1, length), (length, 1), name=f"{whole.name}_line", here=whole.here
        )
    return whole.line
