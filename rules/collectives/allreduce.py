"""Allreduce: on a mesh, on a ring, or on whichever the cost model finds faster."""

from __future__ import annotations

from typing import Any

from ...ir.diagnostics import Diagnostic
from ...ir.program import Op, Value
from ...ir.types import TensorType
from .choose import RANKS, Choice, LinkModel, choose, link_model, ring_from
from .credits import Credits, credits_of, mesh_credits
from .geometry import is_partial, is_prefix
from .mesh import mesh_allreduce
from .ring import require_ring_signal, ring_allreduce
from .steps import Steps


def allreduce(s: Steps, op: Op) -> Any:
    """Append the call in its mode; the window is the result."""
    window, signal = op.operands
    if signal is None:
        s.fail("has no signal", code="TG053", hint="pass an INT32 window [NR, 1]")
    if s.attr("core_num") != 1:
        s.fail(f"has core_num = {s.attr('core_num')}", hint="put it into pl.spmd(...) to use several cores")
    mode = s.attr("mode")
    if mode == "mesh":
        mesh_allreduce(s, mesh_credits(s, signal), window)
    elif mode == "ring":
        require_ring_signal(s, signal)
        ring_allreduce(s, credits_of(s, signal), window)
    else:
        _auto(s, window, signal)
    return window


def _auto(s: Steps, window: Any, signal: Any) -> None:
    """Decide now where ranks and size are known, else at run time by the number of ranks."""
    t: TensorType = window.type
    model = link_model(s.context.target)
    if len(signal.type.shape) < 2 or signal.type.shape[1] == 1:
        _say(s, "mesh: the signal [NR, 1] has no cells for the rounds of a ring")
        mesh_allreduce(s, mesh_credits(s, signal), window)
        return
    require_ring_signal(s, signal)
    credits = credits_of(s, signal)
    size = _known_size(t)
    if size is None or (is_partial(t) and not is_prefix(t.shape, t.valid or ())):
        _say(s, "mesh: " + ("the size is known at run time only" if size is None else "a valid part is no ring's"))
        mesh_allreduce(s, credits, window)
        return
    ranks = signal.type.shape[1]
    if isinstance(ranks, int):
        found = choose(model, size, t.dtype, ranks)
        _say(s, found.text())
        _append(s, found.mode, credits, window, found)
        return
    _by_ranks(s, credits, window, model, size)


def _by_ranks(s: Steps, credits: Credits, window: Value, model: LinkModel, size: int) -> None:
    """Branch on the number of ranks, where it matters."""
    t = window.type
    assert isinstance(t, TensorType)
    start = ring_from(model, size, t.dtype)
    if start in (RANKS.start, RANKS.stop):
        found = choose(model, size, t.dtype, RANKS.start)
        mode = "ring" if start == RANKS.start else "mesh"
        _say(s, f"{mode} for any number of ranks; {found.text()}")
        _append(s, mode, credits, window, found)
        return
    few, many = (choose(model, size, t.dtype, n) for n in (start - 1, start))
    _say(s, f"the ring from {start} ranks on: {few.text()}; {many.text()}")
    with s.choice("ge", credits.ranks, start) as branch:
        with branch.then():
            _append(s, "ring", credits, window, many)
        with branch.orelse():
            _append(s, "mesh", credits, window, few)


def _append(s: Steps, mode: str, credits: Credits, window: Value, found: Choice) -> None:
    # A branch has its own values; extents asked in one must not be used in the other.
    s.forget()
    (mesh_allreduce if mode == "mesh" else ring_allreduce)(s, credits, window, found.chunk_bytes)


def _known_size(t: TensorType) -> int | None:
    size = 1
    for n in t.shape if t.valid is None else t.valid:
        if not isinstance(n, int):
            return None
        size *= n
    return size


def _say(s: Steps, message: str) -> None:
    op = s.source
    s.remarks.append(Diagnostic("TG054", f"{op.name} mode='auto' takes {message}", op.span, severity="remark"))
