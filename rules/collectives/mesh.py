"""Allreduce on a mesh: every rank reads all the others' elements, chunk by chunk, and combines them itself.

A ready barrier, then for each chunk: combine, a barrier, store. The barrier keeps a fast rank from overwriting
what a slow one has yet to read. ``(NR - 1) * SIZE`` elements come to every rank.
"""

from __future__ import annotations

from typing import Any

from ...ir.dtypes import DType
from ...ir.program import Value
from ...ir.types import TensorType, shape_text, static
from .credits import Credits
from .geometry import (
    CHUNK_BYTES,
    chunk_elements,
    chunk_width,
    flat_view,
    is_partial,
    is_prefix,
    require_packed,
    round_up,
    row_unit,
)
from .reduce import reduce_ranks
from .steps import Num, Steps


def mesh_allreduce(s: Steps, credits: Credits, window: Any, nbytes: int = CHUNK_BYTES) -> None:
    """Append a mesh allreduce of a window, in chunks of at most ``nbytes``."""
    t = window.type
    require_packed(s, window)
    if is_partial(t):
        _rectangle(s, credits, window)
        return
    flat, size = flat_view(s, window)
    width = chunk_width(size, t.dtype, nbytes)
    if isinstance(size, int) and size <= width:
        _whole(s, credits, flat, [1, width], [1, size])
        return
    count = s.ceil(size, width, "chunk_count")
    credits.barrier(1)
    with s.loop(count, var="chunk") as loop:
        offset = s.mul(loop.var, width, "offset")
        valid = s.min(width, s.sub(size, offset), "valid_cols")
        acc = reduce_ranks(s, credits, flat, [0, offset], [1, width], [1, valid])
        credits.barrier(s.add(loop.var, 2, "generation"))
        s.make("tile.store", "stored", acc, [0, offset], flat)
    credits.retire(s.add(count, 1, "credits"))


def _whole(s: Steps, credits: Credits, window: Value, shape: list[int], valid: list[Num]) -> None:
    credits.meet()
    acc = reduce_ranks(s, credits, window, [0, 0], shape, valid)
    credits.meet()
    s.make("tile.store", "stored", acc, [0, 0], window)
    credits.retire(credits.spent)


def _rectangle(s: Steps, credits: Credits, window: Value) -> None:
    """A window that is valid in part: one rectangle ``[rows, cols]`` that leading dimensions fold into."""
    t = window.type
    assert isinstance(t, TensorType) and t.valid is not None
    last = len(t.shape) - 1
    if not is_prefix(t.shape[:last], t.valid[:last]):
        s.fail(
            f"the valid part {shape_text(t.valid)} of {shape_text(t.shape)} is no rectangle",
            reason="leading dimensions fold into rows only where the valid ones are the first of them",
        )  # fmt: skip
    rows = s.product([s.valid_extent(window, i) for i in range(last)], "valid_rows")
    cols = s.valid_extent(window, last)
    shape = _tile_shape(s, t, rows, cols)
    view = window
    if len(t.shape) != 2:
        lead = s.product([s.extent(window, i) for i in range(last)], "rows")
        view = s.make("tensor.view", "rows", window, shape=[lead, s.extent(window, last)], valid_shape=[rows, cols])
    _whole(s, credits, view, shape, [rows, cols])


def _tile_shape(s: Steps, t: TensorType, rows: Num, cols: Num) -> list[int]:
    """Return the tile of a rectangle: compact when the extents are known, else the window's own, in one chunk."""
    if isinstance(rows, int) and isinstance(cols, int):
        shape = [rows, round_up(cols, row_unit(t.dtype))]
    else:
        full = static(t.shape)
        if full is None:
            s.fail(f"the valid part of {shape_text(t.shape)} has no static bound", hint="use a static window")
        lead = 1
        for n in full[:-1]:
            lead *= n
        shape = [lead, round_up(full[-1], row_unit(t.dtype))]
    _fits(s, t.dtype, shape)
    return shape


def _fits(s: Steps, dtype: DType, shape: list[int]) -> None:
    if shape[0] * shape[1] > chunk_elements(dtype):
        s.fail(
            f"the valid rectangle takes {shape_text(shape)} elements",
            reason=f"a window that is valid in part goes through one chunk of {chunk_elements(dtype)}",
            hint="reduce a fully valid window, or mode='ring' where the valid part is contiguous",
        )  # fmt: skip
