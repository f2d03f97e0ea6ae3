"""Row and column reductions, and the expand forms that broadcast one value per row or column."""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..op import Call, Env, Scalar, ScratchLike, Tile, op
from ..types import Type
from ._math import divide, maximum, minimum, ordered_product, ordered_sum, scalar_like, through_double
from ._result import (
    broadcast_cols,
    broadcast_rows,
    expand_cols,
    expand_rows,
    float_only,
    like_first,
    reduce_cols,
    reduce_rows,
    require_literal_fits,
)

ROW = "row reductions"
COL = "column reductions"
EXPAND = "expands"
_ORDER = "the order of the additions (taken as index order)"
_NAN = "NaN and the sign of zero (taken as: NaN if any is NaN)"


@op("tile.row_sum", result=reduce_rows, pto="trowsum", unified="row_sum", family=ROW, target_defined=_ORDER)
def row_sum(tile: Tile, tmp_tile: ScratchLike = None, *, env: Env) -> Any:
    """Sum of each row: [M, N] -> [M, 1]."""
    return ordered_sum(tile, 1, env.dtype(0))


@op("tile.row_max", result=reduce_rows, pto="trowmax", unified="row_max", family=ROW, target_defined=_NAN)
def row_max(tile: Tile, tmp_tile: ScratchLike = None) -> Any:
    """Largest element of each row: [M, N] -> [M, 1]."""
    return _fold(maximum, tile, 1)


row_max.facts(vs.same)


@op("tile.row_min", result=reduce_rows, pto="trowmin", unified="row_min", family=ROW, target_defined=_NAN)
def row_min(tile: Tile, tmp_tile: ScratchLike = None) -> Any:
    """Smallest element of each row: [M, N] -> [M, 1]."""
    return _fold(minimum, tile, 1)


row_min.facts(vs.same)


@op(
    "tile.row_prod", result=reduce_rows, pto="trowprod", unified="row_prod", family=ROW, target_defined=_ORDER
)
def row_prod(tile: Tile, tmp_tile: ScratchLike = None, *, env: Env) -> Any:
    """Product of each row: [M, N] -> [M, 1]."""
    return ordered_product(tile, 1, env.dtype(0))


@op("tile.col_sum", result=reduce_cols, pto="tcolsum", unified="col_sum", family=COL, target_defined=_ORDER)
def col_sum(tile: Tile, tmp_tile: ScratchLike = None, *, env: Env) -> Any:
    """Sum of each column: [M, N] -> [1, N]; with a scratch the hardware adds as a binary tree."""
    return ordered_sum(tile, 0, env.dtype(0))


@op("tile.col_max", result=reduce_cols, pto="tcolmax", unified="col_max", family=COL, target_defined=_NAN)
def col_max(tile: Tile) -> Any:
    """Largest element of each column: [M, N] -> [1, N]."""
    return _fold(maximum, tile, 0)


col_max.facts(vs.same)


@op("tile.col_min", result=reduce_cols, pto="tcolmin", unified="col_min", family=COL, target_defined=_NAN)
def col_min(tile: Tile) -> Any:
    """Smallest element of each column: [M, N] -> [1, N]."""
    return _fold(minimum, tile, 0)


col_min.facts(vs.same)


@op(
    "tile.col_prod", result=reduce_cols, pto="tcolprod", unified="col_prod", family=COL, target_defined=_ORDER
)
def col_prod(tile: Tile, *, env: Env) -> Any:
    """Product of each column: [M, N] -> [1, N]."""
    return ordered_product(tile, 0, env.dtype(0))


def _fold(fn: Any, x: Any, axis: int) -> Any:
    # Halving keeps the number of NumPy calls logarithmic; max and min do not depend on the order.
    parts = np.moveaxis(x, axis, 0)
    while len(parts) > 1:
        half = len(parts) // 2
        joined = fn(parts[:half], parts[half : 2 * half])
        parts = np.concatenate([joined, parts[2 * half :]]) if len(parts) % 2 else joined
    return np.expand_dims(parts[0].copy(), axis)  # a single element is no view of its tile


@op("tile.row_expand", result=broadcast_rows, pto="trowexpand", unified="row_expand", family=EXPAND)
def row_expand(target: Tile, row_vec: Tile) -> Any:
    """Each row filled with its value of row_vec [M, 1]; target gives the shape only."""
    return np.broadcast_to(row_vec[:, :1], target.shape).copy()


@row_expand.facts
def _(target: vs.ValueSet, row_vec: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return row_vec


@op("tile.row_expand_add", result=expand_rows, pto="trowexpandadd", unified="row_expand_add", family=EXPAND)
def row_expand_add(tile: Tile, row_vec: Tile, tmp: ScratchLike = None) -> Any:
    """tile + row_vec [M, 1]."""
    return tile + row_vec


row_expand_add.facts(vs.add)


@op("tile.row_expand_sub", result=expand_rows, pto="trowexpandsub", unified="row_expand_sub", family=EXPAND)
def row_expand_sub(tile: Tile, row_vec: Tile) -> Any:
    """tile - row_vec [M, 1]."""
    return tile - row_vec


row_expand_sub.facts(vs.sub)


@op("tile.row_expand_mul", result=expand_rows, pto="trowexpandmul", unified="row_expand_mul", family=EXPAND)
def row_expand_mul(tile: Tile, row_vec: Tile) -> Any:
    """tile * row_vec [M, 1]."""
    return tile * row_vec


row_expand_mul.facts(vs.mul)


@op("tile.row_expand_div", result=expand_rows, pto="trowexpanddiv", unified="row_expand_div", family=EXPAND)
def row_expand_div(tile: Tile, row_vec: Tile) -> Any:
    """tile / row_vec [M, 1]."""
    return divide(tile, row_vec)


@op("tile.row_expand_max", result=expand_rows, pto="trowexpandmax", unified="row_expand_max", family=EXPAND)
def row_expand_max(tile: Tile, row_vec: Tile) -> Any:
    """max(tile, row_vec [M, 1])."""
    return maximum(tile, row_vec)


row_expand_max.facts(vs.maximum)


@op("tile.row_expand_min", result=expand_rows, pto="trowexpandmin", unified="row_expand_min", family=EXPAND)
def row_expand_min(tile: Tile, row_vec: Tile) -> Any:
    """min(tile, row_vec [M, 1])."""
    return minimum(tile, row_vec)


row_expand_min.facts(vs.minimum)


@op("tile.row_expand_expdif", result=float_only(expand_rows), pto="trowexpandexpdif",
    unified="row_expand_expdif", family=EXPAND)  # fmt: skip
def row_expand_expdif(tile: Tile, row_vec: Tile, *, env: Env) -> Any:
    """exp(tile - row_vec [M, 1]), the difference rounded before exp."""
    return through_double(np.exp, tile - row_vec, env.dtype(0))


@op("tile.col_expand", result=broadcast_cols, pto="tcolexpand", unified="col_expand", family=EXPAND)
def col_expand(target: Tile, col_vec: Tile) -> Any:
    """Each column filled with its value of col_vec [1, N]; target gives the shape only."""
    return np.broadcast_to(col_vec[:1, :], target.shape).copy()


@col_expand.facts
def _(target: vs.ValueSet, col_vec: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return col_vec


@op("tile.col_expand_add", result=expand_cols, pto="tcolexpandadd", unified="col_expand_add", family=EXPAND)
def col_expand_add(tile: Tile, col_vec: Tile) -> Any:
    """tile + col_vec [1, N]."""
    return tile + col_vec


col_expand_add.facts(vs.add)


@op("tile.col_expand_sub", result=expand_cols, pto="tcolexpandsub", unified="col_expand_sub", family=EXPAND)
def col_expand_sub(tile: Tile, col_vec: Tile) -> Any:
    """tile - col_vec [1, N]."""
    return tile - col_vec


col_expand_sub.facts(vs.sub)


@op("tile.col_expand_mul", result=expand_cols, pto="tcolexpandmul", unified="col_expand_mul", family=EXPAND)
def col_expand_mul(tile: Tile, col_vec: Tile) -> Any:
    """tile * col_vec [1, N]."""
    return tile * col_vec


col_expand_mul.facts(vs.mul)


@op("tile.col_expand_div", result=expand_cols, pto="tcolexpanddiv", unified="col_expand_div", family=EXPAND)
def col_expand_div(tile: Tile, col_vec: Tile) -> Any:
    """tile / col_vec [1, N]."""
    return divide(tile, col_vec)


@op("tile.col_expand_max", result=expand_cols, pto="tcolexpandmax", unified="col_expand_max", family=EXPAND)
def col_expand_max(tile: Tile, col_vec: Tile) -> Any:
    """max(tile, col_vec [1, N])."""
    return maximum(tile, col_vec)


col_expand_max.facts(vs.maximum)


@op("tile.col_expand_min", result=expand_cols, pto="tcolexpandmin", unified="col_expand_min", family=EXPAND)
def col_expand_min(tile: Tile, col_vec: Tile) -> Any:
    """min(tile, col_vec [1, N])."""
    return minimum(tile, col_vec)


col_expand_min.facts(vs.minimum)


@op("tile.col_expand_expdif", result=float_only(expand_cols), pto="tcolexpandexpdif",
    unified="col_expand_expdif", family=EXPAND)  # fmt: skip
def col_expand_expdif(tile: Tile, col_vec: Tile, *, env: Env) -> Any:
    """exp(tile - col_vec [1, N]), the difference rounded before exp."""
    return through_double(np.exp, tile - col_vec, env.dtype(0))


def _spread(call: Call) -> Type:
    require_literal_fits(call, 1, call.type(0).dtype)
    return like_first(call)


@op("tile.expands", result=_spread, pto="texpands", unified="expands", family=EXPAND)
def expands(target: Tile, scalar: Scalar, *, env: Env) -> Any:
    """Every element set to the scalar; target gives the shape only."""
    return np.full(target.shape, scalar_like(scalar, env.dtype(0)))


@expands.facts
def _(target: vs.ValueSet, scalar: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return vs.scalar_like(scalar, call.dtype)
