"""Padding into a larger tile or in place, and rows of unlike length put side by side."""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from ..diagnostics import error
from ..dtypes import INT8, INT16, INT32, DType
from ..op import Call, Dims, Env, Pad, Tile, op
from ..types import TileType, Type, shape_text, static, tile
from ._result import dims_of, require_same_dtype
from .memory import pad_element

PAD = "padding"


def _expand_type(call: Call) -> Type:
    t: TileType = call.type(0)
    shape = dims_of(call.operands[1])
    if len(shape) != len(t.shape) or static(shape) is None:
        call.fail("TG008", f"needs a static shape of rank {len(t.shape)}, got {shape_text(shape)}")
    for axis, (new, old) in enumerate(zip(shape, t.shape)):
        if isinstance(new, int) and isinstance(old, int) and new < old:
            call.fail("TG008", f"dimension {axis} shrinks from {old} to {new}", hint="slice the tile instead")
    if call.attr("pad_value") == "null":
        call.fail("TG005", "pad_value must be zero, max or min")
    return tile(shape, t.dtype, None, t.memory)


@op("tile.fillpad_expand", result=_expand_type, pto="tfillpad", unified="fillpad_expand", family=PAD)
def fillpad_expand(tile: Tile, shape: Dims, pad_value: Pad = "zero", *, env: Env) -> Any:
    """The valid region in a larger tile that is filled with zero, the largest or the smallest value elsewhere."""
    dtype: DType = env.dtype(0)
    out = np.full(tuple(int(d) for d in shape), pad_element(pad_value, dtype), dtype.storage)
    out[tuple(slice(n) for n in tile.shape)] = tile
    return out


def _inplace_type(call: Call) -> Type:
    t: TileType = call.type(0)
    if call.attr("pad_value") == "null":
        call.fail("TG005", "pad_value must be zero, max or min")
    return tile(t.shape, t.dtype, None, t.memory)


@op("tile.fillpad_inplace", result=_inplace_type, pto="tfillpad", unified="fillpad_inplace", family=PAD,
    effect="write", raw=True)  # fmt: skip
def fillpad_inplace(tile: Tile, pad_value: Pad = "zero", *, env: Env) -> Any:
    """Fill what lies outside the valid shape, in the tile's own storage; the whole tile is returned as valid."""
    inside = np.zeros(tile.data.shape, np.bool_)
    inside[tuple(slice(n) for n in tile.valid)] = True
    tile.data[~inside] = pad_element(pad_value, env.dtype(0))
    return tile.data


def _concat_idx_type(call: Call) -> Type:
    require_same_dtype(call, 0, 1)
    require_same_dtype(call, 2, 3)
    a: TileType = call.type(0)
    b: TileType = call.type(1)
    widths = static((a.shape[-1], b.shape[-1]))
    if len(a.shape) != 2 or a.shape[0] != b.shape[0] or widths is None or a.valid or b.valid:
        call.fail("TG008", f"needs static, fully valid rank-2 tiles of equally many rows, got {a} and {b}")
    if call.type(2).dtype not in (INT8, INT16, INT32):
        call.fail("TG007", f"row lengths are INT8, INT16 or INT32, got {call.type(2).dtype.name}",
                  hint="cast the lengths: target_type=pl.INT32")  # fmt: skip
    for i in (2, 3):
        t: TileType = call.type(i)
        rows = t.valid_shape[0]
        if len(t.shape) != 2 or (isinstance(rows, int) and isinstance(a.shape[0], int) and rows != a.shape[0]):
            what = f"{call.decl.operand_params[i].name} is valid in {shape_text(t.valid_shape)}"
            call.fail("TG008", f"{what}, {a.shape[0]} rows are needed",
                      hint="give the bytes of each row in column 0, in as many rows")  # fmt: skip
    return tile((a.shape[0], sum(widths)), a.dtype, None, a.memory)


@op("tile.concat_idx", result=_concat_idx_type, pto="tconcatidx", unified="concat_idx", family=PAD,
    target_defined="elements after both parts of a row (taken as zero)")  # fmt: skip
def concat_idx(src0: Tile, src1: Tile, src0_idx: Tile, src1_idx: Tile, *, env: Env) -> Any:
    """Rows put side by side: of each source the first ``idx[r, 0]`` bytes of row r (pto-isa TCONCAT.md)."""
    size = env.dtype(0).bits // 8
    out = np.zeros((src0.shape[0], src0.shape[1] + src1.shape[1]), src0.dtype)
    for r in range(out.shape[0]):
        first, second = int(src0_idx[r, 0]) // size, int(src1_idx[r, 0]) // size
        if not (0 <= first <= src0.shape[1] and 0 <= second <= src1.shape[1]):
            raise error("TG032", f"row {r} takes {first} and {second} elements of shorter rows")
        out[r, :first] = src0[r, :first]
        out[r, first : first + second] = src1[r, :second]
    return out
