"""Checks that the distributed operations share: scalars, offsets, bounds, signals, atomic adds, transfers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..diagnostics import error
from ..dtypes import BF16, FP16, FP32, INT8, INT16, INT32, DType
from ..op import Call
from ..program import Const
from ..types import Dim, ScalarType, TensorType, shape_text, static
from ._result import dims_of
from ._windows import require_inside

#: Element types the stores of the hardware can add atomically; BF16 on some targets alone (``bf16_atomic_add``).
ATOMIC_ADD_DTYPES = (FP32, BF16, FP16, INT32, INT16, INT8)
#: Element types of the reducing collectives.
REDUCED_DTYPES = (FP16, FP32)


def require_integer(call: Call, i: int, what: str) -> None:
    """Check that operand ``i`` is an integer scalar."""
    t = call.type(i)
    if not isinstance(t, ScalarType) or not t.dtype.is_int:
        call.fail("TG006", f"{what} must be an integer scalar, got {t or 'a list'}")


def require_rank(call: Call, operands: Any, rank: int, what: str) -> tuple[Dim, ...]:
    """Check that a list operand has ``rank`` entries and return them as dimensions."""
    dims = dims_of(operands)
    if len(dims) != rank:
        call.fail(
            "TG008", f"{what} {shape_text(dims)} must have {rank} entries", reason=f"the tensor has rank {rank}"
        )
    return dims


def require_positive(call: Call, shape: Sequence[Dim], what: str) -> None:
    """Check that every static dimension is positive."""
    for axis, size in enumerate(shape):
        if isinstance(size, int) and size <= 0:
            call.fail("TG008", f"{what} has the size {size} along dimension {axis}", hint="sizes are positive")


def require_same_elements(call: Call, i: int, j: int, what: str) -> None:
    """Check that two operands have one element type."""
    a, b = call.type(i).dtype, call.type(j).dtype
    if a is not b:
        call.fail("TG007", f"{what} have dtypes {a.name} and {b.name}", hint="cast before the transfer")


def require_atomic(call: Call, dtype: DType) -> None:
    """Check that an atomic add, if that is asked for, has a dtype the hardware adds."""
    if call.attr("atomic") == "add" and dtype not in ATOMIC_ADD_DTYPES:
        known = ", ".join(d.name for d in ATOMIC_ADD_DTYPES)
        call.fail("TG007", f"there is no atomic add of {dtype.name}", hint=f"dtypes with one: {known}")


def require_signal(call: Call, i: int) -> TensorType:
    """Check that operand ``i`` is an INT32 signal window of rank 1 or 2 and return its type."""
    t: TensorType = call.type(i)
    name = call.decl.operand_params[i].name
    if t.dtype is not INT32:
        call.fail("TG007", f"{name} must hold INT32 cells, got {t.dtype.name}")
    if len(t.shape) not in (1, 2):
        call.fail("TG008", f"{name} must have rank 1 or 2, got {shape_text(t.shape)}")
    require_positive(call, t.shape, name)
    return t


# -- transfers -----------------------------------------------------------------------------------------------


def transfer_shape(call: Call, dst: int, src: int, region: tuple[int, int, int]) -> tuple[Dim, ...]:
    """Check a put or get and return the shape it moves.

    ``dst`` and ``src`` are the operand numbers of the tensors, ``region`` those of the destination offsets, the
    source offsets and the shape.
    """
    a, b = call.type(dst), call.type(src)
    require_same_elements(call, dst, src, "dst and src")
    rank = len(a.shape)
    if rank != len(b.shape) or rank == 0:
        call.fail("TG008", f"dst {shape_text(a.shape)} and src {shape_text(b.shape)} differ in rank")
    require_positive(call, a.shape, "dst")
    require_positive(call, b.shape, "src")
    given = [call.operands[i] for i in region]
    if all(g is None for g in given):
        if tuple(a.shape) != tuple(b.shape):
            call.fail(
                "TG008",
                f"a full transfer needs equal shapes, got dst {shape_text(a.shape)} and src {shape_text(b.shape)}",
                hint="give dst_offsets, src_offsets and shape to move a part",
            )
        return tuple(a.shape)
    if any(g is None for g in given):
        call.fail("TG005", "dst_offsets, src_offsets and shape are given all three or not at all")
    to = require_rank(call, given[0], rank, "dst_offsets")
    at = require_rank(call, given[1], rank, "src_offsets")
    shape = require_rank(call, given[2], rank, "shape")
    require_positive(call, shape, "shape")
    require_inside(call, a.shape, to, shape, "the written region of dst")
    require_inside(call, b.shape, at, shape, "the region of src")
    return shape


def require_chunks(call: Call, shape: Sequence[Dim]) -> None:
    """Check the chunk sizes of a put or get of ``shape``: dynamic extents need them, and a pipeline needs both."""
    rows, cols = call.attr("chunk_rows"), call.attr("chunk_cols")
    for name, chunk in (("chunk_rows", rows), ("chunk_cols", cols)):
        if chunk < 0:
            call.fail("TG008", f"{name} = {chunk} is negative", hint="0 means the whole extent")
    if isinstance(shape[-1], str) and not cols:
        call.fail("TG008", f"the dynamic innermost extent {shape[-1]} needs chunk_cols", reason=_STATIC_STAGE)
    if static(shape[:-1]) is None and not rows:
        call.fail("TG008", f"the dynamic extent {shape_text(shape[:-1])} needs chunk_rows", reason=_STATIC_STAGE)
    if call.attr("pipeline") and not (rows and cols):
        call.fail(
            "TG008",
            "pipeline needs chunk_rows and chunk_cols",
            reason="two staging tiles overlap transfers only when the transfer has several chunks",
        )


_STATIC_STAGE = "the staging tile is allocated statically"


def flattened(shape: Sequence[Dim]) -> tuple[Dim, Dim]:
    """Return the rows (product of the leading dimensions) and columns of a transfer."""
    lead = static(shape[:-1])
    if lead is None:
        return " * ".join(f"({d})" for d in shape[:-1]), shape[-1]
    rows = 1
    for n in lead:
        rows *= n
    return rows, shape[-1]


def require_stage(call: Call, i: int, dtype: DType, shape: Sequence[Dim]) -> None:
    """Check staging tile ``i``: 2-D, static, in Vec, of the transfer's dtype, no larger than the transfer."""
    t = call.type(i)
    name = call.decl.operand_params[i].name
    if t.dtype is not dtype:
        call.fail("TG007", f"{name} has dtype {t.dtype.name}, the transfer {dtype.name}")
    if t.memory != "Vec":
        call.fail("TG008", f"{name} must be in Vec memory, got {t.memory}")
    if len(t.shape) != 2 or static(t.shape) is None:
        call.fail("TG008", f"{name} must be a static tile of rank 2, got {shape_text(t.shape)}")
    for size, extent, axis in zip(t.valid_shape, flattened(shape), ("rows", "columns")):
        if isinstance(size, int) and isinstance(extent, int) and size > extent:
            call.fail(
                "TG008",
                f"{name} has {size} {axis}, the transfer {extent}",
                reason="a staging tile holds the transfer or a chunk of it",
            )


def only_peer(peer: Any) -> None:
    """In a run of one rank the only peer is rank 0; raises TG032 for another."""
    if int(peer) != 0:
        raise error(
            "TG032", f"there is no rank {int(peer)} in a run of one rank", hint="run several with run_ranks"
        )


def constant(operand: Any) -> int | None:
    """Return the value of an integer literal operand, ``None`` for anything else."""
    return int(operand.value) if isinstance(operand, Const) and isinstance(operand.value, int) else None


def landing(offsets: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """Return where a tile of (flattened) ``shape`` lands in a tensor: one plane, the two inner dimensions."""
    lead = [slice(int(o), int(o) + 1) for o in offsets[:-2]]
    return (*lead, *(slice(int(o), int(o) + int(n)) for o, n in zip(offsets[-2:], shape[-2:])))

