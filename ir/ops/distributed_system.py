"""Ranks, windows, signals and memory markers: the control side of distributed programs.

The meanings are those of a run of one rank; :mod:`tilegg.ir.ranks` runs several.
"""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from ..diagnostics import error
from ..dtypes import INT32, INT64
from ..op import AnyValue, Call, Dims, DTypeAttr, Notify, Placement, Scalar, Tensor, WaitFor, Window, Word, op
from ..placement import SHARED
from ..program import Value
from ..types import CONTEXT, POINTER, ScalarType, TensorType, Type, scalar, shape_text
from ._literals import require_literal
from ._result import dims_of
from ._windows import index_at, require_element, require_inside
from .distributed_rules import constant, only_peer, require_integer, require_positive, require_rank

SIGNALS = "signals"
WINDOWS = "ranks and windows"
INT32_MAX = 2**31 - 1


# -- windows -------------------------------------------------------------------------------------------------


def _alloc(call: Call) -> Type:
    size, dtype = call.operands[0], call.attr("dtype")
    if isinstance(size, tuple):
        if dtype is None:
            call.fail("TG005", "a buffer given by its shape needs a dtype", hint="dtype=pl.FP32")
        require_positive(call, dims_of(size), "the buffer")
    else:
        require_integer(call, 0, "size")
        require_positive(call, dims_of((size,)), "the buffer")
    return POINTER


@op("pld.tensor.alloc_window_buffer", result=_alloc, family=WINDOWS, effect="alloc")
def alloc_window_buffer(size: AnyValue, *, dtype: DTypeAttr = None, name: Word = "") -> Any:
    """Reserve a window buffer on every rank, by bytes or by shape and dtype; host programs only."""
    count = int(np.prod([int(n) for n in size])) if isinstance(size, tuple) else int(size)
    return np.zeros(count * (1 if dtype is None else (dtype.bits + 7) // 8), np.uint8)


def _window(call: Call) -> Type:
    if call.type(0) != POINTER:
        call.fail("TG006", f"buf must be a window buffer, got {call.type(0)}", hint="pld.alloc_window_buffer(bytes)")
    shape = dims_of(call.operands[1])
    require_positive(call, shape, "the window")
    return TensorType(shape, call.attr("dtype"), kind="DistributedTensor")


@op("pld.tensor.window", result=_window, family=WINDOWS)
def window(buf: AnyValue, shape: Dims, *, dtype: DTypeAttr) -> Any:
    """View a window buffer as a distributed tensor; several views of one buffer share its bytes."""
    sizes = tuple(int(n) for n in shape)
    count = int(np.prod(sizes)) * dtype.storage.itemsize
    if count > buf.size:
        what = f"a window of {shape_text(sizes)} {dtype.name} needs {count} bytes"
        raise error("TG032", f"{what}, the buffer has {buf.size}")
    return buf[:count].view(dtype.storage).reshape(sizes)


@op("pld.system.world_size", result=lambda call: scalar(INT64), family=WINDOWS, effect="read")
def world_size() -> Any:
    """The number of ranks, in host programs."""
    return 1


@op("pld.system.get_comm_ctx", result=lambda call: CONTEXT, family=WINDOWS, effect="read")
def get_comm_ctx(dist_tensor: Window) -> Any:
    """The communication context a window belongs to."""
    return ()


def _of_context(call: Call) -> Type:
    if call.type(0) != CONTEXT:
        call.fail("TG006", f"ctx must be a communication context, got {call.type(0)}", hint="pld.get_comm_ctx(window)")
    return scalar(INT32)


@op("pld.system.rank", result=_of_context, family=WINDOWS, effect="read")
def rank(ctx: AnyValue) -> Any:
    """The own rank's number, from 0."""
    return 0


@op("pld.system.nranks", result=_of_context, family=WINDOWS, effect="read")
def nranks(ctx: AnyValue) -> Any:
    """The number of ranks of the context."""
    return 1


# -- signals -------------------------------------------------------------------------------------------------

_SCALAR_UNIT = "the instruction is scalar and may run on either core"


def _notify(call: Call) -> None:
    require_integer(call, 1, "peer")
    require_rank(call, call.operands[2], len(call.type(0).shape), "offsets")
    require_element(call, call.type(0).shape, call.operands[2])
    if not isinstance(call.type(3), ScalarType):
        call.fail("TG006", f"value must be a scalar, got {call.type(3) or 'a list'}")
    require_literal(call, 3, call.type(0).dtype)


@op(
    "pld.system.notify", result=_notify, pto="comm.tnotify", family=SIGNALS, effect="write",
    placement=Placement(SHARED, True, "a copy on the cube side could release data the vector side has not yet written"),
)  # fmt: skip
def notify(target: Window, peer: Scalar, offsets: Dims, value: Scalar, *, op: Notify) -> Any:
    """Add to, or set, one signal cell of a peer."""
    only_peer(peer)
    cell = index_at(offsets)
    target[cell] = np.array(target[cell] + value if op == "atomic_add" else value).astype(target.dtype)


def _wait(call: Call) -> None:
    require_rank(call, call.operands[1], len(call.type(0).shape), "offsets")
    require_element(call, call.type(0).shape, call.operands[1])
    if not isinstance(call.type(2), ScalarType):
        call.fail("TG006", f"expected must be a scalar, got {call.type(2) or 'a list'}")
    require_literal(call, 2, call.type(0).dtype)


@op(
    "pld.system.wait", result=_wait, pto="comm.twait", family=SIGNALS, effect="write",
    placement=Placement(SHARED, reason=f"{_SCALAR_UNIT}; a matmul on the cube side must wait for its data too"),
)  # fmt: skip
def wait(signal: Window, offsets: Dims, expected: Scalar, *, cmp: WaitFor) -> Any:
    """Block until one signal cell of the own rank is equal to, or at least, the expected value."""
    found = int(signal[index_at(offsets)])
    if not (found >= expected if cmp == "ge" else found == expected):
        raise error("TG032", f"the wait never ends: the cell holds {found}, {expected} is expected")


def _defer_wait(call: Call) -> None:
    t: TensorType = call.type(0)
    if t.dtype is not INT32:
        call.fail("TG007", f"signal must hold INT32 counters, got {t.dtype.name}")
    if not t.shape:
        call.fail("TG008", "signal has no dimensions")
    if t.layout not in (None, "ND", "DN"):
        call.fail("TG008", f"signal has layout {t.layout}", hint="counters are addressed as ND or DN")
    offsets = require_rank(call, call.operands[1], len(t.shape), "offsets")
    require_inside(call, t.shape, offsets, (1,) * len(offsets), "the cell")
    require_integer(call, 2, "expected")
    threshold = constant(call.operands[2])
    if threshold is not None and not 0 <= threshold <= INT32_MAX:
        call.fail(
            "TG008",
            f"the threshold {threshold} is outside 0..{INT32_MAX}",
            reason="counters are compared as unsigned numbers, so a negative value is a very large one",
        )
    if call.attr("cmp") != "ge":
        call.fail("TG050", "only WaitCmp.Ge can be deferred", reason="a counter may pass the value between two polls")
    source = call.operands[0]
    if not isinstance(source, Value):
        call.fail("TG006", "signal must be a parameter of the function")


@op("pld.system.defer_wait", result=_defer_wait, family=SIGNALS, effect="write")
def defer_wait(signal: Window, offsets: Dims, expected: Scalar, *, cmp: WaitFor) -> Any:
    """Let this task complete only when a local counter has reached the expected value; does not block."""
    index_at(offsets)


# -- memory markers ------------------------------------------------------------------------------------------


def _cacheinvalid(call: Call) -> None:
    given = [o is not None for o in call.operands]
    if any(given) and not all(given):
        call.fail("TG005", "tensor, shapes and offsets are given all three or not at all")
    if all(given):
        rank = len(call.type(0).shape)
        shape = require_rank(call, call.operands[1], rank, "shapes")
        offsets = require_rank(call, call.operands[2], rank, "offsets")
        require_inside(call, call.type(0).shape, offsets, shape, "the region")


@op("system.cacheinvalid", result=_cacheinvalid, pto="cmo.cacheinvalid", family=SIGNALS, effect="write")
def cacheinvalid(tensor: Tensor = None, shapes: Dims = None, offsets: Dims = None) -> Any:
    """Drop cached lines of a region, or of all global memory, so that the next read sees memory."""


@op("system.fence", result=lambda call: None, pto="fence.barrier_all", family=SIGNALS, effect="write")
def fence() -> Any:
    """Wait until all earlier writes of this core have reached global memory."""
