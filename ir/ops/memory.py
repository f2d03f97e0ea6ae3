"""Tensors and tiles: creation, load, store, slice, reshape, views and moves."""

from __future__ import annotations

import math
from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..diagnostics import error
from ..dtypes import INDEX, INT32, DType
from ..lanes import number
from ..op import (
    Atomic,
    Call,
    Dims,
    DTypeAttr,
    Env,
    Flag,
    Int,
    Memory,
    Pad,
    Scalar,
    ScratchLike,
    Tensor,
    Tile,
    Word,
    op,
)
from ..program import Const
from ..types import Dim, ScalarType, TensorType, TileType, Type, scalar, shape_text, static, tile
from ._math import scalar_like
from ._result import dim_of, dims_of, like_first, require_literal_fits
from ._windows import (
    aligned,
    aligned_shape,
    check_inside,
    check_valid,
    index_at,
    readable,
    require_element,
    require_inside,
    window_at,
)

CREATE = "creation"
MOVE = "load, store and move"
VIEW = "views"


def _create_tile(call: Call) -> Type:
    return tile(dims_of(call.operands[0]), call.attr("dtype"), None, call.attr("target_memory"))


@op("tile.create", result=_create_tile, family=CREATE, effect="alloc")
def create(shape: Dims, dtype: DTypeAttr, target_memory: Memory = "Vec", *, env: Env) -> Any:
    """A tile with unspecified contents (zeros in the interpreter's valid region)."""
    return np.zeros(tuple(int(d) for d in shape), dtype.storage)


def _full_tile(call: Call) -> Type:
    require_literal_fits(call, 1, call.attr("dtype"))
    return tile(dims_of(call.operands[0]), call.attr("dtype"))


@op("tile.full", result=_full_tile, pto="texpands", unified="full", family=CREATE)
def full(shape: Dims, dtype: DTypeAttr, value: Scalar) -> Any:
    """A tile filled with one value."""
    return np.full(tuple(int(d) for d in shape), scalar_like(value, dtype), dtype.storage)


@full.facts
def _(value: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return vs.scalar_like(value, call.dtype)


def _ci_tile(call: Call) -> Type:
    return tile(dims_of(call.operands[1]), call.attr("dtype"))


@op("tile.ci", result=_ci_tile, pto="tci", unified="ci", family=CREATE)
def ci(start: Scalar, shape: Dims, dtype: DTypeAttr = INT32, descending: Flag = False) -> Any:
    """Consecutive integers from ``start`` along the columns of a one-row tile."""
    rows, cols = (int(d) for d in shape)
    steps = np.arange(rows * cols, dtype=np.int64).reshape(rows, cols)
    return (int(start) + (-steps if descending else steps)).astype(dtype.storage)


@ci.facts
def _(start: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    if not call.dtype.is_int or start.grid < 0 or not start.finite:
        return vs.of_dtype(call.dtype)
    shape = static(call.result.shape)
    count = math.prod(shape) - 1 if shape else 2**31
    step = vs.interval(-count, 0, 0) if call.attr("descending") else vs.interval(0, count, 0)
    return vs.add(start, step, call=call)


def _load(call: Call) -> Type:
    source: TensorType = call.type(0)
    shape = dims_of(call.operands[2])
    if len(call.operands[1]) != len(source.shape) or len(shape) != len(source.shape):
        call.fail(
            "TG008",
            f"offsets and shapes must have the tensor's rank {len(source.shape)}",
            hint=f"the tensor is {shape_text(source.shape)}",
        )
    check_inside(call, source.shape, call.operands[1], shape)
    valid = dims_of(call.operands[3]) if call.operands[3] is not None else None
    if valid is not None:
        check_valid(call, shape, valid)
        if 0 in valid:
            call.fail("TG008", f"valid shape {shape_text(valid)} is empty", hint="a load needs at least one element")
        if not call.attr("clamp"):
            require_inside(call, source.shape, dims_of(call.operands[1]), valid, "the region read")
    return tile(shape, source.dtype, valid, call.attr("target_memory"))


@op("tile.load", result=_load, pto="tload", unified="load", family=MOVE, effect="read")
def load(
    tensor: Tensor,
    offsets: Dims,
    shapes: Dims,
    valid_shape: Dims = None,
    target_memory: Memory = "Vec",
    clamp: Flag = False,
) -> Any:
    """Copy a window of a tensor into a tile (its valid region)."""
    return tensor[window_at(offsets, shapes if valid_shape is None else valid_shape)].copy()


def _store(call: Call) -> Type:
    source, target = call.type(0), call.type(2)
    if source.dtype is not target.dtype:
        call.fail(
            "TG007",
            f"the tile has dtype {source.dtype.name}, the tensor {target.dtype.name}",
            hint=f"cast the tile first: target_type=pl.{target.dtype.name}",
        )
    if len(call.operands[1]) != len(target.shape):
        call.fail("TG008", f"offsets must have the tensor's rank {len(target.shape)}")
    require_inside(call, target.shape, dims_of(call.operands[1]), _stored(call, source, target), "the written region")
    return target  # type: ignore[no-any-return]


def _stored(call: Call, source: TileType, target: TensorType) -> tuple[Dim, ...]:
    """Return the sizes of the window a store writes, in the tensor's rank: those given, or what is valid."""
    rank = len(target.shape)
    valid = aligned_shape(source.valid_shape, rank)
    if valid is None:
        call.fail("TG008", f"a {source} does not fit into a tensor of rank {rank}", hint="store it plane by plane")
    if call.operands[3] is None:
        return valid
    shapes = dims_of(call.operands[3])
    if len(shapes) != rank:
        call.fail("TG008", f"shapes must have the tensor's rank {rank}, got {shape_text(shapes)}")
    check_inside(call, valid, (0,) * rank, shapes)
    return shapes


@op("tile.store", result=_store, pto="tstore", unified="store", family=MOVE, effect="write")
def store(
    tile: Tile, offsets: Dims, output_tensor: Tensor, shapes: Dims = None, *, atomic: Atomic = "none"
) -> Any:
    """Copy a tile's valid region into a tensor (or add it there) and return the tensor."""
    tile = aligned(tile, output_tensor.ndim)
    sizes = tile.shape if shapes is None else tuple(int(n) for n in shapes)
    region = output_tensor[window_at(offsets, sizes)]
    if region.shape != sizes:
        raise error("TG032", f"a {shape_text(sizes)} tile at {shape_text(offsets)} reaches past the tensor")
    part = tile[tuple(slice(0, n) for n in region.shape)]
    region[...] = region + part if atomic == "add" else part
    return output_tensor


def _move(call: Call) -> Type:
    t: TileType = call.type(0)
    layout = dict(t.layout)
    layout.update({k: v for k in ("blayout", "slayout") if (v := call.attr(k)) is not None})
    return tile(t.shape, t.dtype, t.valid, call.attr("target_memory"), tuple(sorted(layout.items())))


@op("tile.move", result=_move, pto="tmov", family=MOVE)
def move(tile: Tile, target_memory: Memory, blayout: Word = None, slayout: Word = None) -> Any:
    """Copy a tile to another memory space or layout."""
    return tile.copy()


move.facts(vs.same)


def _element(call: Call) -> Type:
    t: TileType | TensorType = call.type(0)
    require_element(call, readable(t), call.operands[1])
    return scalar(t.dtype)


def _written(call: Call) -> Type:
    t: TileType | TensorType = call.type(0)
    require_element(call, t.shape, call.operands[1])
    require_literal_fits(call, 2, t.dtype)
    return like_first(call)


@op("tile.read", result=_element, unified="read", family=MOVE)
def tile_read(tile: Tile, indices: Dims, *, env: Env) -> Any:
    """One element of a tile, as a scalar."""
    return number(tile[index_at(indices)], env.dtype(0))


@op("tile.write", result=_written, unified="write", family=MOVE, effect="write", raw=True)
def tile_write(tile: Tile, indices: Dims, value: Scalar, *, env: Env) -> Any:
    """Set one element of a tile in place; the tile is returned."""
    tile.data[index_at(indices)] = scalar_like(value, env.dtype(0))
    return tile


@op("tensor.read", result=_element, unified="read", family=MOVE, effect="read")
def tensor_read(tensor: Tensor, indices: Dims, *, env: Env) -> Any:
    """One element of a tensor, as a scalar."""
    return number(tensor[index_at(indices)], env.dtype(0))


@op("tensor.write", result=_written, unified="write", family=MOVE, effect="write")
def tensor_write(tensor: Tensor, indices: Dims, value: Scalar, *, env: Env) -> Any:
    """Set one element of a tensor; the tensor is returned."""
    tensor[index_at(indices)] = scalar_like(value, env.dtype(0))
    return tensor


def _tensor_create(call: Call) -> Type:
    return TensorType(dims_of(call.operands[0]), call.attr("dtype"))


@op("tensor.create", result=_tensor_create, family=CREATE, effect="alloc")
def tensor_create(
    shape: Dims, dtype: DTypeAttr, layout: Word = "ND", manual_dep: Flag = False, init_value: Scalar = None
) -> Any:
    """A tensor in global memory (zeros in the interpreter unless an initial value is given)."""
    fill = 0 if init_value is None else scalar_like(init_value, dtype)
    return np.full(tuple(int(d) for d in shape), fill, dtype.storage)


def _extent(call: Call) -> Type:
    shape, axis = call.type(0).shape, call.attr("axis")
    if not -len(shape) <= axis < len(shape):
        hint = f"axes are 0 to {len(shape) - 1}; negative ones count from the last"
        call.fail("TG008", f"there is no axis {axis} in {shape_text(shape)}", hint=hint)
    return scalar(INDEX)


@op("tensor.dim", result=_extent, family=VIEW, effect="read")
def tensor_dim(tensor: Tensor, axis: Int) -> Any:
    """The extent of one dimension."""
    return int(tensor.shape[axis])


def _tensor_slice(call: Call) -> Type:
    source: TensorType = call.type(0)
    shape = dims_of(call.operands[1])
    if len(shape) != len(source.shape) or len(call.operands[2]) != len(source.shape):
        call.fail("TG008", f"shape and offset must have the tensor's rank {len(source.shape)}")
    check_inside(call, source.shape, call.operands[2], shape)
    valid = dims_of(call.operands[3]) if call.operands[3] else None
    if valid is not None:
        check_valid(call, shape, valid)
        require_inside(call, source.shape, dims_of(call.operands[2]), valid, "the region in use")
    gone = _dropped(call, shape)
    if gone:
        shape = tuple(d for i, d in enumerate(shape) if i not in gone)
        valid = None if valid is None else tuple(d for i, d in enumerate(valid) if i not in gone)
    return TensorType(shape, source.dtype, valid=valid, kind=source.kind)


def _dropped(call: Call, shape: Any) -> frozenset[int]:
    """Return the axes a slice drops: literals, each of extent 1."""
    axes = dims_of(call.operands[4] or ())
    for axis in axes:
        if not isinstance(axis, int) or not 0 <= axis < len(shape) or shape[axis] != 1:
            hint = "axes of extent 1 can be dropped"
            call.fail("TG008", f"drop_dims {shape_text(axes)} of {shape_text(shape)}", hint=hint)
    return frozenset(a for a in axes if isinstance(a, int))


@op("tensor.slice", result=_tensor_slice, unified="slice", family=VIEW)
def tensor_slice(
    tensor: Tensor, shape: Dims, offset: Dims, valid_shape: Dims = None, drop_dims: Dims = None
) -> Any:
    """A window of a tensor that aliases it; ``drop_dims`` names axes of extent 1 that the result does not have."""
    part = tensor[window_at(offset, valid_shape or shape)]
    return np.squeeze(part, tuple(int(d) for d in drop_dims)) if drop_dims else part


def _tensor_reshape(call: Call) -> Type:
    source: TensorType = call.type(0)
    shape = dims_of(call.operands[1])
    _check_count(call, source.shape, shape)
    return TensorType(shape, source.dtype, kind=source.kind)


def _check_count(call: Call, old: Any, new: Any) -> None:
    a, b = static(old), static(new)
    if a is not None and b is not None and math.prod(a) != math.prod(b):
        call.fail("TG008", f"{shape_text(old)} and {shape_text(new)} differ in element count")


@op("tensor.reshape", result=_tensor_reshape, unified="reshape", family=VIEW)
def tensor_reshape(tensor: Tensor, shape: Dims) -> Any:
    """The same elements under another shape; aliases the tensor."""
    return tensor.reshape(tuple(int(d) for d in shape))


def _view(call: Call) -> Type:
    source: TensorType = call.type(0)
    shape = dims_of(call.operands[1]) if call.operands[1] is not None else source.shape
    valid = dims_of(call.operands[2]) if call.operands[2] is not None else source.valid
    _check_count(call, source.shape, shape)
    return TensorType(shape, source.dtype, source.stride, call.attr("layout"), valid, source.kind)


@op("tensor.view", result=_view, unified="view", family=VIEW)
def tensor_view(tensor: Tensor, shape: Dims = None, valid_shape: Dims = None, *, layout: Word = None) -> Any:
    """The same tensor under another shape, valid shape or layout; aliases the tensor."""
    return tensor if shape is None else tensor.reshape(tuple(int(d) for d in shape))


def _tile_slice(call: Call) -> Type:
    source: TileType = call.type(0)
    shape = dims_of(call.operands[1])
    if len(shape) != len(source.shape) or len(call.operands[2]) != len(source.shape):
        call.fail("TG008", f"shape and offset must have the tile's rank {len(source.shape)}")
    check_inside(call, source.shape, call.operands[2], shape)
    valid = dims_of(call.operands[3]) if call.operands[3] is not None else None
    if valid is not None:
        check_valid(call, shape, valid)
    return tile(shape, source.dtype, valid, source.memory)


@op("tile.slice", result=_tile_slice, pto="subview", unified="slice", family=VIEW, raw=True)
def tile_slice(tile: Tile, shape: Dims, offset: Dims, valid_shape: Dims = None) -> Any:
    """A window of a tile."""
    return tile.data[window_at(offset, shape)].copy()


tile_slice.facts(vs.same)


def _tile_reshape(call: Call) -> Type:
    source: TileType = call.type(0)
    shape = dims_of(call.operands[1])
    _check_count(call, source.shape, shape)
    if source.valid is not None:
        call.fail(
            "TG008",
            f"cannot reshape a tile with valid shape {shape_text(source.valid)} inside {shape_text(source.shape)}",
            hint="reshape before narrowing the valid shape",
        )
    return tile(shape, source.dtype, None, source.memory)


@op("tile.reshape", result=_tile_reshape, pto="treshape", unified="reshape", family=VIEW)
def tile_reshape(tile: Tile, shape: Dims) -> Any:
    """The same elements in row-major order under another shape; no instruction."""
    return np.ascontiguousarray(tile).reshape(tuple(int(d) for d in shape))


tile_reshape.facts(vs.same)


def _transpose(call: Call) -> Type:
    source: TileType = call.type(0)
    if len(source.shape) != 2:
        call.fail("TG008", f"needs a rank-2 tile, got {shape_text(source.shape)}")
    valid = None if source.valid is None else source.valid[::-1]
    return tile(source.shape[::-1], source.dtype, valid, source.memory)


@op("tile.transpose", result=_transpose, pto="ttrans", unified="transpose", family=MOVE)
def transpose(tile: Tile, axis1: Int, axis2: Int, tmp_tile: ScratchLike = None) -> Any:
    """Rows become columns."""
    return np.array(tile.T, order="C")


transpose.facts(vs.same)


def _set_validshape(call: Call) -> Type:
    t = call.type(0)
    for i in (1, 2):
        if isinstance(count := call.type(i), ScalarType) and count.dtype.is_float:
            what = f"{call.decl.operand_params[i].name} must be an integer, got {count}"
            call.fail("TG006", what, hint="it counts the leading elements in use")
    valid = (dim_of(call.operands[1]), dim_of(call.operands[2]))
    check_valid(call, t.shape, valid)
    if isinstance(t, TensorType):
        return TensorType(t.shape, t.dtype, t.stride, t.layout, valid, t.kind)
    return tile(t.shape, t.dtype, valid, t.memory, t.layout)


@op("tile.set_validshape", result=_set_validshape, unified="set_validshape", family=VIEW, raw=True)
def set_validshape(tile: Tile, valid_rows: Scalar, valid_cols: Scalar) -> Any:
    """The same tile with another valid shape; elements that become valid are what was stored there."""
    want, shape = (int(valid_rows), int(valid_cols)), tile.data.shape
    if any(not 0 <= n <= limit for n, limit in zip(want, shape)):
        raise error("TG032", f"valid shape {shape_text(want)} does not fit into {shape_text(shape)}")
    return tile.data.copy()


def _fillpad(call: Call) -> Type:
    t: TileType = call.type(0)
    return tile(t.shape, t.dtype, None, t.memory)


@op("tile.fillpad", result=_fillpad, pto="tfillpad", unified="fillpad", family=MOVE, raw=True)
def fillpad(tile: Tile, pad_value: Pad = "zero", *, env: Env) -> Any:
    """Fill everything outside the valid shape: zero, the largest or the smallest value (infinite if there is one)."""
    dtype = env.dtype(0)
    out = np.full(tile.data.shape, pad_element(pad_value, dtype), tile.data.dtype)
    region = tuple(slice(0, n) for n in tile.valid)
    out[region] = tile.data[region]
    return out


def pad_element(pad: str, dtype: DType) -> Any:
    """Return the element that a pad word stands for: zero, the largest or the smallest value.

    Infinities where the dtype has them, else its largest and smallest number (the rule of pto-isa's TFILLPAD).
    """
    if pad in ("zero", "null"):
        return scalar_like(0, dtype)
    if dtype.has_inf:
        return scalar_like(math.inf if pad == "max" else -math.inf, dtype)
    return scalar_like(dtype.max_value if pad == "max" else dtype.min_value, dtype)


def _concat(call: Call) -> Type:
    a, b = call.type(0), call.type(1)
    if a.dtype is not b.dtype or a.shape[0] != b.shape[0]:
        call.fail("TG008", f"cannot put {a} and {b} side by side")
    sizes = static((a.shape[1], b.shape[1]))
    if sizes is None or a.valid is not None or b.valid is not None:
        call.fail("TG008", "needs static, fully valid tiles")
    return tile((a.shape[0], sizes[0] + sizes[1]), a.dtype, None, a.memory)


@op("tile.concat", result=_concat, pto="tconcat", unified="concat", family=MOVE)
def concat(src0: Tile, src1: Tile) -> Any:
    """Two tiles side by side."""
    return np.concatenate([src0, src1], axis=1)


concat.facts(vs.union)


def _promised(call: Call) -> Type:
    lo, hi = (o.value if isinstance(o, Const) else None for o in call.operands[1:3])
    if lo is not None and hi is not None and not lo <= hi:
        call.fail("TG030", f"no number is in [{lo}, {hi}]", hint="the first bound is the lower one")
    dtype: DType = call.type(0).dtype
    if dtype.is_int and lo is not None and hi is not None:
        least, most = max(lo, dtype.min_value), min(hi, dtype.max_value)
        if least > most or math.ceil(least) > math.floor(most):
            hint = f"its elements are integers, {dtype.min_value} to {dtype.max_value}"
            call.fail("TG030", f"no {dtype.name} is in [{lo}, {hi}]", hint=hint)
    return like_first(call)


@op("tile.assume", result=_promised, unified="assume", family=VIEW, raw=True)
def assume(tile: Tile, lo: Scalar, hi: Scalar) -> Any:
    """The author's promise that every element is a number in [lo, hi]; no instruction, another name of the tile."""
    return tile


@assume.facts
def _(tile: vs.ValueSet, lo: vs.ValueSet, hi: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return vs.within(tile, lo, hi)


for _name in ("tile.get_block_idx", "tile.get_block_num", "tile.get_subblock_idx"):

    def _query() -> Any:
        """Index or number of the vector core that runs the program (0 and 1 in the interpreter)."""
        return 0

    def _query_facts(*, call: vs.Call) -> vs.ValueSet:
        return vs.interval(0, (1 << 31) - 1, 0)

    op(_name, result=lambda call: scalar(INDEX), unified=_name[5:], family="queries", effect="read")(_query).facts(
        _query_facts
    )
