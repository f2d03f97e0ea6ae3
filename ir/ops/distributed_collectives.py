"""The seven collectives on windows: all ranks call together, the window is the result.

The meanings are those of a run of one rank, where every collective keeps or copies its own data; what they do
among several ranks is defined in :mod:`tilegg.ir.collectives`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dtypes import INT32
from ..op import Call, Int, Reduce, Tensor, Window, Word, op
from ..types import Dim, TensorType, Type, shape_text
from ._result import agree
from .distributed_rules import (
    REDUCED_DTYPES,
    only_peer,
    require_positive,
    require_same_elements,
    require_signal,
)

FAMILY = "collectives"
MODES = ("mesh", "ring", "auto")
COLLECTIVES = ("allreduce", "barrier", "broadcast", "reduce_scatter", "allgather", "all_to_all", "all_to_all_v")


def _reduced(call: Call, i: int) -> TensorType:
    t: TensorType = call.type(i)
    if t.dtype not in REDUCED_DTYPES:
        known = " and ".join(d.name for d in REDUCED_DTYPES)
        call.fail("TG007", f"there is no reduction of {t.dtype.name} windows", hint=f"dtypes with one: {known}")
    require_positive(call, t.shape, "target")
    return t


def _ranks(call: Call, i: int) -> Dim:
    """Return the rank count a signal of one cell per rank stands for."""
    return require_signal(call, i).shape[0]


def _rows(call: Call, t: TensorType, ranks: Dim, what: str) -> None:
    """Check that a window is ``[NR, ...]`` with one row block for each rank."""
    if len(t.shape) < 2:
        call.fail("TG008", f"{what} must have a row for each rank, got {shape_text(t.shape)}")
    if isinstance(ranks, int) and isinstance(t.shape[0], int) and t.shape[0] != ranks:
        call.fail("TG008", f"{what} has {t.shape[0]} rows, the signal has cells for {ranks} ranks")


def _allreduce(call: Call) -> Type:
    t = _reduced(call, 0)
    mode, cores = call.attr("mode"), call.attr("core_num")
    if mode not in MODES:
        call.fail("TG004", f"unknown mode {mode!r}", hint=f"known: {', '.join(MODES)}")
    if cores < 1:
        call.fail("TG050", f"core_num = {cores}", hint="core_num is a positive compile-time integer")
    if mode == "ring" and cores != 1:
        call.fail("TG050", f"mode='ring' runs on one core, got core_num = {cores}", hint="use mode='mesh'")
    if call.operands[1] is None:
        if mode == "ring":
            call.fail("TG005", "mode='ring' needs an explicit signal", hint="its shape is [2 * (NR - 1), NR]")
        return t
    signal = require_signal(call, 1)
    if mode == "ring":
        _ring_signal(call, signal.shape)
    else:
        _mesh_signal(call, signal.shape, cores)
    return t


def _mesh_signal(call: Call, shape: Sequence[Dim], cores: int) -> None:
    if len(shape) == 1 and cores != 1:
        call.fail("TG008", f"core_num = {cores} needs a signal of rank 2, [world_size, {cores}] or wider")
    if len(shape) == 2 and isinstance(shape[1], int) and shape[1] < cores:
        call.fail("TG008", f"the signal has {shape[1]} lanes, core_num = {cores} needs as many")


def _ring_signal(call: Call, shape: Sequence[Dim]) -> None:
    if len(shape) != 2:
        call.fail("TG008", f"mode='ring' needs a signal [2 * (NR - 1), NR], got {shape_text(shape)}")
    rows, ranks = shape
    if isinstance(rows, int) and isinstance(ranks, int) and rows not in (2 * (ranks - 1), 2 * (ranks - 1) + 1):
        call.fail(
            "TG008",
            f"mode='ring' on {ranks} ranks needs a signal [{2 * (ranks - 1)}, {ranks}], got {shape_text(shape)}",
            reason="a ring uses one row of cells for each round (on the host one more, for the return barrier)",
            hint="a mesh signal [NR, 1] cannot be shared with a ring",
        )


@op("pld.tensor.allreduce", result=_allreduce, family=FAMILY, effect="write")
def allreduce(
    target: Window, signal: Window = None, *, op: Reduce = "sum", mode: Word = "mesh", core_num: Int = 1
) -> Any:
    """Replace every rank's window by the elementwise reduction of all ranks' windows."""
    return target


def _barrier(call: Call) -> Type:
    return require_signal(call, 0)


@op("pld.tensor.barrier", result=_barrier, family=FAMILY, effect="write")
def barrier(signal: Window) -> Any:
    """Wait until every rank has arrived and all their earlier writes are visible."""
    return signal


def _broadcast(call: Call) -> Type:
    ranks, root = _ranks(call, 1), call.attr("root")
    if root < 0 or (isinstance(ranks, int) and root >= ranks):
        call.fail("TG008", f"root = {root} is no rank", hint=f"ranks are 0 to {ranks} - 1")
    return call.type(0)  # type: ignore[no-any-return]


@op("pld.tensor.broadcast", result=_broadcast, family=FAMILY, effect="write")
def broadcast(target: Window, signal: Window, *, root: Int) -> Any:
    """Replace every rank's window by the root's."""
    only_peer(root)
    return target


def _reduce_scatter(call: Call) -> Type:
    t = _reduced(call, 0)
    _rows(call, t, _ranks(call, 1), "target")
    return t


@op("pld.tensor.reduce_scatter", result=_reduce_scatter, family=FAMILY, effect="write")
def reduce_scatter(target: Window, signal: Window, *, op: Reduce = "sum") -> Any:
    """Reduce row ``r`` over all ranks and leave the result in row ``r`` of rank ``r``; other rows stay."""
    return target


def _allgather(call: Call) -> Type:
    local, target = call.type(0), call.type(1)
    require_same_elements(call, 0, 1, "local_data and target")
    _rows(call, target, _ranks(call, 2), "target")
    if not agree((1, *target.shape[1:]), local.shape):
        want = shape_text((1, *target.shape[1:]))
        call.fail("TG008", f"local_data must be one row of the target, {want}, got {shape_text(local.shape)}")
    return target  # type: ignore[no-any-return]


@op("pld.tensor.allgather", result=_allgather, family=FAMILY, effect="write")
def allgather(local_data: Tensor, target: Window, signal: Window) -> Any:
    """Put rank ``r``'s row into row ``r`` of every rank's window."""
    target[0:1] = local_data
    return target


def _all_to_all(call: Call) -> Type:
    source, target = call.type(0), call.type(1)
    require_same_elements(call, 0, 1, "input and target")
    _rows(call, target, _ranks(call, 2), "target")
    if not agree(source.shape, target.shape):
        call.fail("TG008", f"input {shape_text(source.shape)} and target {shape_text(target.shape)} differ in shape")
    return target  # type: ignore[no-any-return]


@op("pld.tensor.all_to_all", result=_all_to_all, family=FAMILY, effect="write")
def all_to_all(input: Tensor, target: Window, signal: Window) -> Any:
    """Put row ``d`` of rank ``s``'s input into row ``s`` of rank ``d``'s window."""
    target[...] = input
    return target


def _all_to_all_v(call: Call) -> Type:
    _apart(call)
    source, target = call.type(0), call.type(1)
    require_same_elements(call, 0, 1, "input and target")
    for name, t in (("input", source), ("target", target)):
        _compact(call, name, t)
    if not agree(source.shape, target.shape):
        call.fail("TG008", f"input {shape_text(source.shape)} and target {shape_text(target.shape)} differ in shape")
    ranks = _counts(call, 2)
    for i, flat in ((3, True), (4, False)):
        cells = _counts(call, i, flat)
        if isinstance(ranks, int) and isinstance(cells, int) and cells != ranks:
            name = call.decl.operand_params[i].name
            call.fail("TG008", f"{name} has {cells} counts, the signal has cells for {ranks} ranks")
    if isinstance(ranks, int) and isinstance(target.shape[0], int) and target.shape[0] % ranks:
        call.fail("TG008", f"the {target.shape[0]} rows of the target do not divide among {ranks} ranks")
    if call.attr("core_num") != 1:
        call.fail(
            "TG050",
            f"core_num = {call.attr('core_num')}: this exchange runs on one core",
            hint="several cores belong to the managed CHIP path: call it from a chip orchestration function",
        )
    return target  # type: ignore[no-any-return]


def _apart(call: Call) -> None:
    """Check that no value plays two roles: each is read or written by other ranks while the others are."""
    names = [p.name for p in call.decl.operand_params]
    for i, first in enumerate(call.operands):
        for j in range(i):
            if first is not None and first == call.operands[j]:
                call.fail("TG050", f"{names[j]} and {names[i]} are the same window", hint="use separate buffers")


def _compact(call: Call, name: str, t: TensorType) -> None:
    if len(t.shape) != 2:
        call.fail("TG008", f"{name} must be [NR * MAX_RECV, SIZE], got {shape_text(t.shape)}")
    require_positive(call, t.shape, name)
    if t.layout not in (None, "ND"):
        call.fail("TG008", f"{name} has layout {t.layout}", reason="rows are addressed as flat elements")
    if t.stride is not None and tuple(t.stride) != (t.shape[1], 1):
        call.fail("TG008", f"{name} has strides {shape_text(t.stride)}", hint="it must be compact and row-major")
    if t.valid is not None and tuple(t.valid) != tuple(t.shape):
        call.fail("TG008", f"{name} is valid only in {shape_text(t.valid)}", hint="it must be fully valid")


def _counts(call: Call, i: int, flat: bool = False) -> Dim:
    """Return how many cells operand ``i`` has: ``[NR, 1]``, with ``flat`` also ``[NR]``."""
    t: TensorType = call.type(i)
    name = call.decl.operand_params[i].name
    if t.dtype is not INT32:
        call.fail("TG007", f"{name} must hold INT32 numbers, got {t.dtype.name}")
    column = len(t.shape) == 2 and (t.shape[1] == 1 or isinstance(t.shape[1], str))
    if not column and not (flat and len(t.shape) == 1):
        call.fail("TG008", f"{name} must be [NR, 1]{' or [NR]' if flat else ''}, got {shape_text(t.shape)}")
    return t.shape[0]


@op("pld.tensor.all_to_all_v", result=_all_to_all_v, family=FAMILY, effect="write")
def all_to_all_v(
    input: Tensor, target: Window, signal: Window, send_counts: Tensor, recv_counts: Window, *, core_num: Int = 1
) -> Any:
    """Exchange ``clamp(send_counts[d], 0, MAX_RECV)`` rows with every rank and publish the counts.

    Rank ``s``'s rows arrive at row ``s * MAX_RECV`` of the window; the rest of each block stays as it was, which
    may be undefined: mask by ``recv_counts`` before computing.
    """
    rows = max(0, min(int(send_counts.reshape(-1)[0]), target.shape[0]))
    target[:rows] = input[:rows]
    recv_counts[0, 0] = rows
    return target
