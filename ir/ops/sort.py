"""Sorting: pairs of a value and its index, in descending order; blocks of 32, and merges of sorted runs.

A pair takes 8 bytes of a tile of the values' dtype: the value, filled up to 4 bytes, then a UINT32 index
(pto-isa TSort32.md, TMRGSORT.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from .. import lazy_numpy as np
from ..dtypes import FP16, FP32, DType
from ..op import Call, Flag, Scalar, Scratch, Tile, op
from ..program import Const
from ..types import TileType, Type, shape_text, tile
from ._result import agree, require_same_dtype

SORT = "sorting"
_NAN = "the place of NaN (taken as above every number); equal values (taken as: the smaller index first)"


def pair_width(dtype: DType) -> int:
    """Return how many elements of a tile one pair takes."""
    return 64 // dtype.bits


def _sort32_type(call: Call) -> Type:
    src: TileType = call.type(0)
    index: TileType = call.type(1)
    if src.dtype not in (FP16, FP32):
        call.fail("TG007", f"sorts FP16 and FP32 tiles, got {src.dtype.name}", hint="cast to FP32 first")
    if index.dtype.bits != 32 or not index.dtype.is_int:
        call.fail("TG007", f"indices are UINT32, got {index.dtype.name}")
    cols, valid = src.shape[-1], src.valid_shape[-1]
    if len(src.shape) != 2 or not isinstance(cols, int) or not isinstance(valid, int):
        call.fail("TG008", f"needs a rank-2 tile with static columns, got {shape_text(src.shape)}")
    _check_indices(call, src, index)
    wide = pair_width(src.dtype)
    return tile((src.shape[0], cols * wide), src.dtype, (src.valid_shape[0], valid * wide), src.memory)


def _check_indices(call: Call, src: TileType, index: TileType) -> None:
    """Check that there is an index for each element, or one row of them for all rows."""
    rows, cols = src.valid_shape
    if not any(agree(index.valid_shape, (n, cols)) for n in (rows, 1)):
        call.fail(
            "TG008",
            f"src is valid in {shape_text(src.valid_shape)}, idx in {shape_text(index.valid_shape)}",
            hint="give an index for each element, or one row of indices for all rows",
        )


def pack_pairs(values: Any, indices: Any) -> Any:
    """Return pairs in their memory form: values [..., N] and indices [..., N] as [..., N * width] values."""
    bits = values.dtype.itemsize * 8
    words = values.view(f"uint{bits}").astype(np.uint32)
    pairs = np.stack([words, indices.astype(np.uint32)], axis=-1)
    found = np.ascontiguousarray(pairs).reshape(*values.shape[:-1], -1).view(values.dtype)
    return found


def unpack_pairs(pairs: Any) -> tuple[Any, Any]:
    """Return values and UINT32 indices of pairs in their memory form."""
    words = np.ascontiguousarray(pairs).view(np.uint32)
    bits = pairs.dtype.itemsize * 8
    values = np.ascontiguousarray(words[..., 0::2].astype(f"uint{bits}")).view(pairs.dtype)
    return values, np.ascontiguousarray(words[..., 1::2])


def _descending(values: Any, indices: Any) -> Any:
    """Return the order of the last axis: largest value first, NaN above all, then the smaller index."""
    wide = values.astype(np.float64)
    keys = np.where(np.isnan(wide), np.inf, wide)
    return np.lexsort((indices, -keys, ~np.isnan(wide)))


@op("tile.sort32", result=_sort32_type, pto="tsort32", unified="sort32", family=SORT, target_defined=_NAN)
def sort32(src: Tile, idx: Tile, tmp: Scratch = None) -> Any:
    """Sorted pairs of every block of 32 columns: [R, C] -> [R, 2C] (FP32) or [R, 4C] (FP16)."""
    index = np.broadcast_to(idx.view(np.uint32), src.shape).copy()
    values = src.copy()
    for row, at in zip(values, index):
        for start in range(0, row.size, 32):
            block = slice(start, min(start + 32, row.size))
            order = _descending(row[block], at[block])
            row[block], at[block] = row[block][order], at[block][order]
    return pack_pairs(values, index)


def _run_type(call: Call) -> Type:
    src: TileType = call.type(0)
    _check_pairs(call, src)
    block, cols = call.operands[1], src.valid_shape[1]
    if isinstance(block, Const) and (not isinstance(block.value, int) or block.value <= 0 or block.value % 64):
        call.fail("TG005", f"block_len must be a positive multiple of 64, got {block.value}")
    if isinstance(block, Const) and isinstance(cols, int) and cols % (4 * block.value):
        what = f"{cols} columns are no multiple of four runs of {block.value}"
        call.fail("TG008", what, hint="four sorted runs stand side by side: 4 * block_len columns, or a multiple")
    return tile(src.shape, src.dtype, src.valid, src.memory)


def _check_pairs(call: Call, src: TileType) -> None:
    if src.dtype not in (FP16, FP32):
        call.fail("TG007", f"merges FP16 and FP32 pairs, got {src.dtype.name}")
    if len(src.shape) != 2:
        call.fail("TG008", f"needs a rank-2 tile, got {shape_text(src.shape)}")
    cols, width = src.valid_shape[1], pair_width(src.dtype)
    if isinstance(cols, int) and cols % width:
        what = f"{cols} columns of {src.dtype.name} are no whole pairs"
        call.fail("TG008", what, hint=f"a pair takes {width} elements: pl.tile.sort32 makes them")


def _merged(pairs: Any) -> Any:
    values, index = unpack_pairs(pairs)
    out = np.empty_like(pairs)
    for r in range(values.shape[0]):
        order = _descending(values[r], index[r])
        out[r] = pack_pairs(values[r][order], index[r][order])
    return out


@op("tile.mrgsort_format1", result=_run_type, pto="tmrgsort", family=SORT, target_defined=_NAN)
def mrgsort_format1(src: Tile, block_len: Scalar) -> Any:
    """Every four runs of ``block_len`` elements, each sorted, merged into one run."""
    step = 4 * int(block_len)
    if step <= 0 or src.shape[1] % step:
        raise ValueError(f"{src.shape[1]} columns are no multiple of four runs of {int(block_len)}")
    return np.concatenate([_merged(src[:, s : s + step]) for s in range(0, src.shape[1], step)], axis=1)


def _lists_type(call: Call) -> Type:
    src: TileType = call.type(0)
    _check_pairs(call, src)
    width: Any = 0
    for i in range(4):
        t: TileType | None = call.type(i)
        if t is None:
            continue
        _check_pairs(call, t)
        require_same_dtype(call, 0, i)
        if not isinstance(t.valid_shape[1], int) or t.valid_shape[0] != 1:
            call.fail("TG008", f"lists are one row of static length, got {shape_text(t.valid_shape)}")
        width += t.valid_shape[1]
    if call.type(2) is None and call.type(3) is not None:
        call.fail("TG005", "a fourth list needs a third")
    return tile((1, width), src.dtype, None, src.memory)


@op("tile.mrgsort_format2", result=_lists_type, pto="tmrgsort", family=SORT, target_defined=_NAN)
def mrgsort_format2(
    src0: Tile, src1: Tile, src2: Tile = None, src3: Tile = None, *, tmp: Scratch = None, exhausted: Flag = False
) -> Any:
    """Two to four sorted lists of pairs merged into one."""
    return _merged(np.concatenate([s for s in (src0, src1, src2, src3) if s is not None], axis=1))


def _mrgsort_type(call: Call) -> Type:
    if call.operands[5] is None:
        if call.operands[1] is None:
            call.fail("TG005", "needs block_len, or a second list", hint="merge runs: block_len=64")
        return _lists_type(call)
    if any(o is not None for o in call.operands[1:5]):
        call.fail("TG005", "takes one tile with block_len, or two to four lists, not both")
    return _run_type(replace(call, operands=(call.operands[0], call.operands[5])))


@op("tile.mrgsort", result=_mrgsort_type, pto="tmrgsort", unified="mrgsort", family=SORT, target_defined=_NAN)
def mrgsort(
    src0: Tile,
    src1: Tile = None,
    src2: Tile = None,
    src3: Tile = None,
    tmp: Scratch = None,
    exhausted: Flag = False,
    *,
    block_len: Scalar = None,
) -> Any:
    """Either form: runs of ``block_len`` elements inside one tile, or two to four lists."""
    if block_len is not None:
        return mrgsort_format1.meaning(src0, block_len)
    return mrgsort_format2.meaning(src0, src1, src2, src3)
