"""Positions of extreme elements in rows and columns, triangles of ones, random numbers, histograms."""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..dtypes import INT32, UINT8, UINT16, UINT32, DType
from ..op import Call, Dims, DTypeAttr, Env, Flag, Int, Scalar, ScratchLike, Tile, op
from ..types import TileType, Type, shape_text, static, tile, with_dtype
from ._math import scalar_like
from ._result import dims_of, reduce_cols, reduce_rows

ARG = "positions of extremes"
GENERATE = "generators"
_TIES = "ties and NaN (taken as: the first position; NaN counts as the extreme)"


def _row_arg(call: Call) -> Type:
    return with_dtype(reduce_rows(call), INT32)  # type: ignore[arg-type]


def _col_arg(call: Call) -> Type:
    return with_dtype(reduce_cols(call), INT32)  # type: ignore[arg-type]


def _position(find: Any, x: Any, axis: int) -> Any:
    # Coded storage has no order; the type rule refuses it.
    wide = x.astype(np.float64) if x.dtype.kind not in "iub" else x
    return np.expand_dims(find(wide, axis=axis), axis).astype(np.int32)


def _positions(tile: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return vs.interval(0, 2**31 - 1, 0)


@op("tile.row_argmax", result=_row_arg, pto="trowargmax", unified="row_argmax", family=ARG, target_defined=_TIES)
def row_argmax(tile: Tile, tmp_tile: ScratchLike = None) -> Any:
    """Column of the largest element of each row: [M, N] -> INT32 [M, 1]."""
    return _position(np.argmax, tile, 1)


row_argmax.facts(_positions)


@op("tile.row_argmin", result=_row_arg, pto="trowargmin", unified="row_argmin", family=ARG, target_defined=_TIES)
def row_argmin(tile: Tile, tmp_tile: ScratchLike = None) -> Any:
    """Column of the smallest element of each row: [M, N] -> INT32 [M, 1]."""
    return _position(np.argmin, tile, 1)


row_argmin.facts(_positions)


@op("tile.col_argmax", result=_col_arg, pto="tcolargmax", unified="col_argmax", family=ARG, target_defined=_TIES)
def col_argmax(tile: Tile, tmp_tile: ScratchLike = None) -> Any:
    """Row of the largest element of each column: [M, N] -> INT32 [1, N]."""
    return _position(np.argmax, tile, 0)


col_argmax.facts(_positions)


@op("tile.col_argmin", result=_col_arg, pto="tcolargmin", unified="col_argmin", family=ARG, target_defined=_TIES)
def col_argmin(tile: Tile, tmp_tile: ScratchLike = None) -> Any:
    """Row of the smallest element of each column: [M, N] -> INT32 [1, N]."""
    return _position(np.argmin, tile, 0)


col_argmin.facts(_positions)


# -- generators ------------------------------------------------------------------------------------------


def generated(call: Call, shape_at: int, valid_at: int) -> TileType:
    """Return the type of a generated tile: static rank-2 shape, optional valid shape within it."""
    shape = dims_of(call.operands[shape_at])
    valid = None if call.operands[valid_at] is None else dims_of(call.operands[valid_at])
    if len(shape) != 2 or static(shape) is None or any(isinstance(d, int) and d <= 0 for d in shape):
        call.fail("TG008", f"needs a static rank-2 shape, got {shape_text(shape)}")
    if valid is not None and (
        len(valid) != 2 or any(isinstance(v, int) and isinstance(d, int) and v > d for v, d in zip(valid, shape))
    ):
        call.fail("TG008", f"the valid shape {shape_text(valid)} does not fit into {shape_text(shape)}")
    return tile(shape, call.attr("dtype"), valid)


def _tri_type(call: Call) -> Type:
    dtype: DType = call.attr("dtype")
    if dtype.is_coded or not (dtype.is_float or dtype.is_int) or dtype.bits < 8:
        call.fail("TG007", f"cannot fill {dtype.name} tiles", hint="generate INT32 and cast")
    return generated(call, 1, 2)


@op("tile.tri", result=_tri_type, pto="ttri", unified="tri", family=GENERATE)
def tri(diagonal: Scalar, shape: Dims, valid_shape: Dims = None, dtype: DTypeAttr = INT32, upper: Flag = False) -> Any:
    """Ones on one side of a diagonal, zeros on the other: lower j <= i + diagonal, upper j >= i + diagonal."""
    rows, cols = (int(d) for d in (shape if valid_shape is None else valid_shape))
    i, j = np.ogrid[:rows, :cols]
    ones = j >= i + int(diagonal) if upper else j <= i + int(diagonal)
    return np.where(ones, scalar_like(1, dtype), scalar_like(0, dtype))


@tri.facts
def _(diagonal: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return vs.interval(0, 1, 0)


def _random_type(call: Call) -> Type:
    dtype: DType = call.attr("dtype")
    if dtype not in (INT32, UINT32):
        call.fail("TG007", f"random words are INT32 or UINT32, not {dtype.name}")
    if call.attr("rounds") not in (7, 10):
        call.fail("TG005", f"the cipher runs 7 or 10 rounds, not {call.attr('rounds')}")
    return generated(call, 6, 7)


_ROTATIONS = (16, 12, 8, 7)


@op("tile.random", result=_random_type, pto="trandom", unified="random", family=GENERATE,
    target_defined="the cipher (taken as quarter rounds on counter + element number)")  # fmt: skip
def random(
    key0: Scalar,
    key1: Scalar,
    counter0: Scalar,
    counter1: Scalar,
    counter2: Scalar,
    counter3: Scalar,
    shape: Dims,
    valid_shape: Dims = None,
    dtype: DTypeAttr = UINT32,
    rounds: Int = 10,
) -> Any:
    """Pseudo-random words from a 64-bit key and a 128-bit counter by quarter rounds; equal seeds, equal tiles."""
    rows, cols = (int(d) for d in (shape if valid_shape is None else valid_shape))
    mask = 0xFFFFFFFF
    start = sum((int(c) & mask) << (32 * k) for k, c in enumerate((counter0, counter1, counter2, counter3)))
    number = np.arange(rows * cols, dtype=np.uint64)
    low, high = (start + 0) & mask, start >> 32
    first = number + np.uint64(low)
    state = [
        (first & np.uint64(mask)).astype(np.uint32),
        ((first >> np.uint64(32)) + np.uint64(high & mask)).astype(np.uint32),
        np.full(number.size, (high >> 32) & mask, np.uint32) ^ np.uint32(int(key0) & mask),
        np.full(number.size, (high >> 64) & mask, np.uint32) ^ np.uint32(int(key1) & mask),
    ]
    with np.errstate(all="ignore"):
        for _ in range(rounds):
            state = _quarter_round(*state)
    return state[0].reshape(rows, cols).view(dtype.storage)


def _quarter_round(a: Any, b: Any, c: Any, d: Any) -> list[Any]:
    for turn0, turn1 in (_ROTATIONS[:2], _ROTATIONS[2:]):
        a = a + b
        d = _rotate(d ^ a, turn0)
        c = c + d
        b = _rotate(b ^ c, turn1)
    return [a, b, c, d]


def _rotate(x: Any, by: int) -> Any:
    return (x << np.uint32(by)) | (x >> np.uint32(32 - by))


# -- histogram -------------------------------------------------------------------------------------------


def _histogram_type(call: Call) -> Type:
    t: TileType = call.type(0)
    byte = call.attr("byte")
    if t.dtype not in (UINT16, UINT32) or len(t.shape) != 2:
        call.fail("TG007", f"needs a rank-2 UINT16 or UINT32 tile, got {t}")
    if not isinstance(byte, int) or not 0 <= byte < t.dtype.bits // 8:
        call.fail("TG005", f"a {t.dtype.name} element has no byte {byte}")
    if call.type(1).dtype is not UINT8:
        call.fail("TG007", f"the filter bytes are UINT8, got {call.type(1).dtype.name}")
    _check_filter(call, t, call.type(1), byte)
    return tile((t.shape[0], 256), UINT32, (t.valid_shape[0], 256), t.memory)


def _check_filter(call: Call, t: TileType, filters: TileType, byte: int) -> None:
    """Check that there is a filter byte for every row, or for every byte above the counted one."""
    above = t.dtype.bits // 8 - 1 - byte
    if not above:
        return
    want = t.valid_shape[0] if t.dtype is UINT16 else above
    rows = filters.valid_shape[0]
    if len(filters.shape) != 2 or (isinstance(rows, int) and isinstance(want, int) and rows < want):
        each = "row" if t.dtype is UINT16 else "byte above the counted one"
        call.fail(
            "TG008", f"idx is valid in {shape_text(filters.valid_shape)}, {want} rows are needed",
            hint=f"a column of filter bytes, one for each {each}",
        )  # fmt: skip


@op("tile.histogram", result=_histogram_type, pto="thistogram", unified="histogram", family=ARG)
def histogram(src: Tile, idx: Tile, *, byte: Int, env: Env) -> Any:
    """How often each value of one byte occurs in a row, among elements whose higher bytes equal ``idx``.

    [R, C] -> UINT32 [R, 256]; the filter of a UINT16 row is ``idx[r, 0]``, of a UINT32 row ``idx[k, 0]`` for the
    k-th byte from the top (pto-isa THISTOGRAM.md).
    """
    size = env.dtype(0).bits // 8
    out = np.zeros((src.shape[0], 256), np.uint32)
    for r, row in enumerate(src.astype(np.uint64)):
        keep = np.ones(row.shape, np.bool_)
        for k in range(size - 1, byte, -1):
            wanted = idx[r, 0] if size == 2 else idx[size - 1 - k, 0]
            keep &= ((row >> np.uint64(8 * k)) & np.uint64(255)) == wanted
        found = ((row >> np.uint64(8 * byte)) & np.uint64(255))[keep]
        out[r] = np.bincount(found.astype(np.int64), minlength=256)
    return out
