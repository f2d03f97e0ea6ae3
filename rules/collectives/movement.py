"""The collectives that only move data: allgather, all_to_all, broadcast; and the barrier, which moves none.

Each call ends behind one barrier of generation 1. Two hazards lie outside that: a rank may push into a peer that still
reads what an earlier call brought, and a root may write its window anew while a slow rank still copies from it. Where
the function itself shows that such a use is possible, the call gets one more round, before the pushes or behind the
copies.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ir.program import Op, Value
from ...ir.types import TensorType
from .credits import Credits, mesh_credits
from .geometry import require_packed, rows_view, stage
from .steps import Num, Steps


def barrier(s: Steps, op: Op) -> Any:
    """Meet all ranks; the signal is the result."""
    (signal,) = op.operands
    credits = mesh_credits(s, signal)
    credits.meet()
    credits.retire(credits.spent)
    return signal


def broadcast(s: Steps, op: Op) -> Any:
    """Every rank reads the root's window into its own; on the root that is a copy onto itself."""
    window, signal = op.operands
    assert isinstance(window, Value) and isinstance(window.type, TensorType)
    require_packed(s, window)
    credits = mesh_credits(s, signal)
    credits.meet()
    sizes = [s.extent(window, i) for i in range(len(window.type.shape))]
    copy = stage(s, s.product(sizes[:-1], "rows"), sizes[-1], window.type.dtype, "get_stage")
    s.op("pld.tile.get", window, s.attr("root"), window, copy)
    if s.context.after:
        credits.meet()
    credits.retire(credits.spent)
    return window


def allgather(s: Steps, op: Op) -> Any:
    """Push the own row into row ``me`` of every rank's window, the own one included."""
    local, target, signal = op.operands
    return _push(s, local, target, signal, lambda peer: 0)


def all_to_all(s: Steps, op: Op) -> Any:
    """Push row ``d`` of the input into row ``me`` of rank ``d``'s window."""
    source, target, signal = op.operands
    return _push(s, source, target, signal, lambda peer: peer)


def _push(s: Steps, source: Any, target: Any, signal: Any, row_for: Callable[[Num], Num]) -> Any:
    credits: Credits = mesh_credits(s, signal)
    rows, cols = rows_view(s, target)
    given, _ = rows_view(s, source)
    copy = stage(s, 1, cols, target.type.dtype)
    if s.context.before:
        credits.meet()
    with s.loop(credits.ranks, var="peer") as loop:
        to, at = [credits.me, 0], [row_for(loop.var), 0]
        s.op("pld.tile.put", rows, loop.var, given, copy, None, to, at, [1, cols])
    credits.meet()
    credits.retire(credits.spent)
    return target
