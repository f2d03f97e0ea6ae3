"""Chunks, stages and flattened views: the geometry that the collectives share.

A chunk is at most 16 KiB; widths are multiples of 32 bytes, the alignment of tile rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.dtypes import DType
from ...ir.program import Value
from ...ir.types import TensorType, shape_text, static
from .steps import Num, Steps

CHUNK_BYTES = 16 * 1024
ROW_BYTES = 32


def row_unit(dtype: DType) -> int:
    """Return how many elements 32 bytes hold."""
    return ROW_BYTES * 8 // dtype.bits


def chunk_elements(dtype: DType, nbytes: int = CHUNK_BYTES) -> int:
    """Return how many elements a chunk holds."""
    return nbytes * 8 // dtype.bits


def round_up(n: int, unit: int) -> int:
    """Return the next multiple of ``unit``."""
    return -(-n // unit) * unit


def chunk_width(size: Num, dtype: DType, nbytes: int = CHUNK_BYTES) -> int:
    """Return the physical width of chunks: a whole chunk, or the least aligned width that covers a known size."""
    most = chunk_elements(dtype, nbytes)
    return min(most, round_up(size, row_unit(dtype))) if isinstance(size, int) else most


def require_packed(s: Steps, window: Value) -> None:
    """Refuse a window whose elements do not lie in row-major order without gaps."""
    t = window.type
    assert isinstance(t, TensorType)
    if t.layout not in (None, "ND", "DN"):
        s.fail(f"the window has layout {t.layout}", reason="its elements are addressed as one row")
    if t.layout == "DN" and is_partial(t):
        s.fail("the window has layout DN and is valid only in part", hint="use layout ND")
    shape = static(t.shape)
    compact = None if shape is None else _compact(shape)
    if t.stride is not None and tuple(t.stride) != compact:
        s.fail(
            f"the window has strides {shape_text(t.stride)}",
            reason="a strided window is no single run of elements", hint="use a compact row-major window",
        )  # fmt: skip


def _compact(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(reversed(strides))


def is_partial(t: TensorType) -> bool:
    """Return whether only a part of the tensor is valid."""
    return t.valid is not None and tuple(t.valid) != tuple(t.shape)


def flat_view(s: Steps, window: Value) -> tuple[Value, Num]:
    """Return a fully valid window as ``[1, size]``, and its size."""
    require_packed(s, window)
    t = window.type
    assert isinstance(t, TensorType)
    size = s.product([s.extent(window, i) for i in range(len(t.shape))])
    if len(t.shape) == 2 and t.shape[0] == 1:
        return window, size
    return s.make("tensor.view", "flat", window, shape=[1, size]), size


def rows_view(s: Steps, tensor: Value) -> tuple[Value, Num]:
    """Return a fully valid tensor ``[rows, ...]`` as ``[rows, cols]``, and how many columns that are."""
    require_packed(s, tensor)
    t = tensor.type
    assert isinstance(t, TensorType)
    if is_partial(t):
        s.fail(f"the tensor {shape_text(t.shape)} is valid only in {shape_text(t.valid or ())}")
    cols = s.product([s.extent(tensor, i) for i in range(1, len(t.shape))], "cols")
    if len(t.shape) == 2:
        return tensor, cols
    return s.make("tensor.view", "rows", tensor, shape=[s.extent(tensor, 0), cols]), cols


def is_prefix(shape: Sequence[Any], valid: Sequence[Any]) -> bool:
    """Return whether a valid box is one run of elements from the first on, in row-major order."""
    axis = 0
    while axis < len(shape) and valid[axis] == 1:
        axis += 1
    return all(v == n for v, n in zip(valid[axis + 1 :], shape[axis + 1 :]))


# -- stages ----------------------------------------------------------------------------------------------------


def stage(s: Steps, rows: Num, cols: Num, dtype: DType, what: str = "put_stage") -> Value:
    """Make the staging tile of transfers of ``[rows, cols]``: at most a chunk, whatever is moved.

    A known width below a chunk is rounded down to whole 32-byte rows, so that the stage never exceeds the transfer;
    an unknown one takes the width of a chunk. A transfer shorter than 32 bytes has no such width: its stage is one
    aligned row, narrowed to the elements moved.
    """
    most, unit = chunk_elements(dtype), row_unit(dtype)
    if not isinstance(cols, int) or cols >= most:
        width = most
    else:
        width = max(cols // unit, 1) * unit
    height = max(1, most // width)
    if isinstance(rows, int):
        height = min(height, rows)
    made: Value = s.make("tile.create", what, [height, width], dtype=dtype, target_memory="Vec")
    if isinstance(cols, int) and cols < width:
        made = s.make("tile.set_validshape", what, made, height, cols)
    return made
