"""Transfers between a tensor and a peer's window: the staging tiles of put and get, the tile of remote_store."""

from __future__ import annotations

from typing import Any

from ...ir.ops.distributed_rules import flattened
from ...ir.program import Op, Value
from ...ir.types import Dim, TensorType, shape_text, static
from .geometry import round_up, row_unit
from .steps import Steps


def put(s: Steps, op: Op) -> Any:
    """``pld.tensor.put`` as ``pld.tile.put`` through a staging tile, or a pair of them."""
    return _staged(s, op, "tput_stage", atomic=s.attr("atomic"))


def get(s: Steps, op: Op) -> Any:
    """``pld.tensor.get`` as ``pld.tile.get`` through a staging tile, or a pair of them."""
    return _staged(s, op, "tget_stage")


def _staged(s: Steps, op: Op, what: str, **attrs: Any) -> None:
    dst, peer, src, dst_offsets, src_offsets, shape = op.operands
    assert isinstance(dst, Value) and isinstance(dst.type, TensorType)
    moved: tuple[Dim, ...] = dst.type.shape
    if shape is not None:
        moved = tuple(_dim(d) for d in shape)  # type: ignore[union-attr]
    names = (f"{what}_ping", f"{what}_pong") if s.attr("pipeline") else (what,)
    stages = [_stage(s, moved, dst.type, name) for name in names]
    pair = stages[1] if len(stages) > 1 else None
    name = op.name.replace("tensor", "tile")
    s.op(name, dst, peer, src, stages[0], pair, dst_offsets, src_offsets, shape, **attrs)


def _dim(o: Any) -> Dim:
    return o.name if isinstance(o, Value) else int(o.value)


def _stage(s: Steps, moved: tuple[Dim, ...], t: TensorType, what: str) -> Value:
    """Make a staging tile: the whole transfer, or a chunk clamped to it; rows padded to 32 bytes, not valid there."""
    rows, cols = (
        _extent(chunk, size)
        for chunk, size in zip((s.attr("chunk_rows"), s.attr("chunk_cols")), flattened(moved))
    )
    width = round_up(cols, row_unit(t.dtype))
    target = s.context.target
    if target is not None and t.dtype.nbytes(rows * width) > target.figure("ub_bytes"):
        s.fail(
            f"a staging tile [{rows}, {width}] {t.dtype.name} does not fit the unified buffer",
            reason=f"{target.name} has {int(target.figure('ub_bytes'))} bytes",
            hint="give chunk_rows and chunk_cols",
        )  # fmt: skip
    made: Value = s.make("tile.create", what, [rows, width], dtype=t.dtype, target_memory="Vec")
    return made if width == cols else s.make("tile.set_validshape", what, made, rows, cols)


def _extent(chunk: int, size: Dim) -> int:
    return chunk if isinstance(size, str) else min(chunk or size, size)


def remote_store(s: Steps, op: Op) -> Any:
    """``pld.tensor.remote_store`` as its tile form: the tensor is loaded in one piece."""
    src, target, peer, offsets = op.operands
    assert isinstance(src, Value) and isinstance(src.type, TensorType)
    shape = static(src.type.shape)
    if shape is None:
        s.fail(
            f"the source {shape_text(src.type.shape)} has a dynamic size",
            reason="it passes through one tile, which is allocated statically", hint="use pld.tensor.put with chunks",
        )  # fmt: skip
    valid = None
    if src.type.valid is not None:
        valid = [s.valid_extent(src, i) for i in range(len(shape))]
    # Rows of tiles are whole 32-byte lines; what pads them is not valid and is not stored.
    width = round_up(shape[-1], row_unit(src.type.dtype))
    if width != shape[-1] and valid is None:
        valid = list(shape)
    tile = s.make("tile.load", "tile", src, [0] * len(shape), [*shape[:-1], width], valid)
    s.op("pld.tile.remote_store", tile, target, peer, offsets, atomic=s.attr("atomic"))
