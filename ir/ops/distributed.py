"""Distributed data movement: tiles and tensors read from and written to the windows of peer ranks.

A window is one slice per rank of a symmetric buffer (``pld.DistributedTensor``). The meanings here are those of
a run of one rank, whose only peer is itself; :mod:`tilegg.ir.ranks` runs several.
"""

from __future__ import annotations

from typing import Any

from ..op import Atomic, Call, Dims, Flag, Int, Placement, Scalar, Tensor, Tile, Window, op
from ..placement import SHARED, VECTOR
from ..types import Dim, TensorType, TileType, Type, shape_text, tile
from ._windows import require_inside
from ._windows import window_at as slices
from .distributed_rules import (
    landing,
    only_peer,
    require_atomic,
    require_chunks,
    require_integer,
    require_positive,
    require_rank,
    require_same_elements,
    require_stage,
    transfer_shape,
)

FAMILY = "remote load, store, put and get"
_STAGED = Placement(VECTOR, reason="the transfer passes through a Vec staging tile")


# -- tiles ---------------------------------------------------------------------------------------------------


def _remote_load(call: Call) -> Type:
    source: TensorType = call.type(0)
    rank = len(source.shape)
    require_integer(call, 1, "peer")
    offsets = require_rank(call, call.operands[2], rank, "offsets")
    shape = require_rank(call, call.operands[3], rank, "shape")
    require_positive(call, shape, "shape")
    asked = shape
    if call.operands[4] is not None:
        asked = require_rank(call, call.operands[4], rank, "valid_shape")
        for size, extent in zip(shape, asked):
            if isinstance(size, int) and isinstance(extent, int) and not 0 <= extent <= size:
                call.fail("TG008", f"valid_shape {shape_text(asked)} exceeds the shape {shape_text(shape)}")
    require_inside(call, source.shape, offsets, asked, "the region read")
    if source.valid is None:
        return tile(shape, source.dtype, asked)
    return tile(shape, source.dtype, [_meet(*d) for d in zip(asked, source.valid, offsets)])


def _meet(asked: Dim, valid: Dim, offset: Dim) -> Dim:
    """Return how much of a request of ``asked`` elements from ``offset`` on is valid in the source."""
    if isinstance(asked, int) and isinstance(valid, int) and isinstance(offset, int):
        return max(0, min(asked, valid - offset))
    if asked == valid and offset == 0:
        return asked
    rest = str(valid) if offset == 0 else f"({valid}) - ({offset})"
    return f"min({asked}, {rest})"


@op(
    "pld.tile.remote_load", result=_remote_load, pto="tload", family=FAMILY, effect="read",
    placement=Placement(SHARED, reason="its tile is a result: a copy on the cube side is dead and removed"),
)  # fmt: skip
def remote_load(target: Window, peer: Scalar, offsets: Dims, shape: Dims, valid_shape: Dims = None) -> Any:
    """Copy a region of the peer's window slice into a tile; its valid part is what is valid in the source."""
    only_peer(peer)
    return target[slices(offsets, shape if valid_shape is None else valid_shape)].copy()


def _remote_store(call: Call) -> None:
    source, target = call.type(0), call.type(1)
    rank = len(target.shape)
    require_integer(call, 2, "peer")
    offsets = require_rank(call, call.operands[3], rank, "offsets")
    require_same_elements(call, 0, 1, "source and target")
    if rank < 2:
        call.fail("TG008", f"target must have rank 2 or more, got {shape_text(target.shape)}")
    shape = tuple(source.shape)
    if len(shape) < 2 or any(d != 1 for d in shape[:-2]):
        call.fail(
            "TG008",
            f"the source must have rank 2, or leading dimensions of 1, got {shape_text(shape)}",
            reason="leading dimensions fold into rows, which would run past the target's plane",
            hint="store plane by plane",
        )
    written = source.valid_shape if isinstance(source, TileType) else (source.valid or shape)
    region = (1,) * (rank - 2) + tuple(written[-2:])
    require_inside(call, target.shape, offsets, region, "the written region")
    require_atomic(call, target.dtype)


@op("pld.tile.remote_store", result=_remote_store, pto="tstore", family=FAMILY, effect="write")
def remote_store(src_tile: Tile, target: Window, peer: Scalar, offsets: Dims, *, atomic: Atomic = "none") -> Any:
    """Copy a tile's valid region into the peer's window slice, or add it there."""
    only_peer(peer)
    _write(target[landing(offsets, src_tile.shape)], src_tile, atomic)


@op("pld.tensor.remote_store", result=_remote_store, pto="tstore", family=FAMILY, effect="write")
def tensor_remote_store(src: Tensor, target: Window, peer: Scalar, offsets: Dims, *, atomic: Atomic = "none") -> Any:
    """Copy a tensor-level value into the peer's window slice, or add it there."""
    only_peer(peer)
    _write(target[landing(offsets, src.shape)], src, atomic)


def _write(region: Any, data: Any, atomic: str) -> None:
    part = data.reshape(region.shape)
    region[...] = region + part if atomic == "add" else part


# -- tensors -------------------------------------------------------------------------------------------------


def _tensor_put(call: Call) -> None:
    require_integer(call, 1, "peer")
    shape = transfer_shape(call, 0, 2, (3, 4, 5))
    require_chunks(call, shape)
    require_atomic(call, call.type(0).dtype)


@op("pld.tensor.put", result=_tensor_put, pto="comm.tput", family=FAMILY, effect="write", placement=_STAGED)
def put(
    dst: Window,
    peer: Scalar,
    src: Tensor,
    dst_offsets: Dims = None,
    src_offsets: Dims = None,
    shape: Dims = None,
    *,
    atomic: Atomic = "none",
    chunk_rows: Int = 0,
    chunk_cols: Int = 0,
    pipeline: Flag = False,
) -> Any:
    """Write a local tensor, or a part of it, into the peer's window slice, or add it there."""
    only_peer(peer)
    _transfer(dst, src, dst_offsets, src_offsets, shape, atomic)


def _tensor_get(call: Call) -> None:
    require_integer(call, 1, "peer")
    require_chunks(call, transfer_shape(call, 0, 2, (3, 4, 5)))


@op("pld.tensor.get", result=_tensor_get, pto="comm.tget", family=FAMILY, effect="write", placement=_STAGED)
def get(
    dst: Tensor,
    peer: Scalar,
    src: Window,
    dst_offsets: Dims = None,
    src_offsets: Dims = None,
    shape: Dims = None,
    *,
    chunk_rows: Int = 0,
    chunk_cols: Int = 0,
    pipeline: Flag = False,
) -> Any:
    """Read the peer's window slice, or a part of it, into a local tensor."""
    only_peer(peer)
    _transfer(dst, src, dst_offsets, src_offsets, shape, "none")


def transfer_regions(dst_offsets: Any, src_offsets: Any, shape: Any) -> tuple[Any, Any]:
    """Return the indices of the destination and source regions of a put or get (``...``: the whole)."""
    if shape is None:
        return ..., ...
    return slices(dst_offsets, shape), slices(src_offsets, shape)


def _transfer(dst: Any, src: Any, dst_offsets: Any, src_offsets: Any, shape: Any, atomic: str) -> None:
    to, at = transfer_regions(dst_offsets, src_offsets, shape)
    _write(dst[to], src[at], atomic)


# -- the same with staging tiles -----------------------------------------------------------------------------


def _staged(call: Call) -> None:
    require_integer(call, 1, "peer")
    shape = transfer_shape(call, 0, 2, (5, 6, 7))
    dtype = call.type(0).dtype
    require_stage(call, 3, dtype, shape)
    if call.operands[4] is not None:
        require_stage(call, 4, dtype, shape)
        if call.operands[3] == call.operands[4]:
            call.fail("TG008", "the two staging tiles are one tile", reason="one is filled while the other is sent")
        if call.type(3).shape != call.type(4).shape:
            call.fail("TG008", "the two staging tiles differ in shape")
    if "atomic" in call.decl.by_name:
        require_atomic(call, dtype)


@op("pld.tile.put", result=_staged, pto="comm.tput", family=FAMILY, effect="write", placement=_STAGED)
def tile_put(
    dst: Window,
    peer: Scalar,
    src: Tensor,
    stage: Tile,
    stage2: Tile = None,
    dst_offsets: Dims = None,
    src_offsets: Dims = None,
    shape: Dims = None,
    *,
    atomic: Atomic = "none",
) -> Any:
    """``pld.tensor.put`` through a given staging tile, or a pair of them for double buffering."""
    only_peer(peer)
    _transfer(dst, src, dst_offsets, src_offsets, shape, atomic)


@op("pld.tile.get", result=_staged, pto="comm.tget", family=FAMILY, effect="write", placement=_STAGED)
def tile_get(
    dst: Tensor,
    peer: Scalar,
    src: Window,
    stage: Tile,
    stage2: Tile = None,
    dst_offsets: Dims = None,
    src_offsets: Dims = None,
    shape: Dims = None,
) -> Any:
    """``pld.tensor.get`` through a given staging tile, or a pair of them for double buffering."""
    only_peer(peer)
    _transfer(dst, src, dst_offsets, src_offsets, shape, "none")
