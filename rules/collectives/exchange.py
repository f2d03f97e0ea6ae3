"""All_to_all_v: every rank sends each other one as many rows as it says, at most ``MAX_RECV``.

A receiver clears its counts and tells every peer that it is ready; a sender waits for a destination only when it has
rows for it, publishes their number and pushes exactly them. A second barrier ends the exchange. Counts are cleared and
published by atomic adds: a scalar store writes whole cache lines, with neighbouring counts and signals in them.
"""

from __future__ import annotations

from typing import Any

from ...ir.program import Op, Value
from ...ir.types import TensorType
from .credits import mesh_credits
from .geometry import rows_view, stage
from .steps import Num, Steps


def all_to_all_v(s: Steps, op: Op) -> Any:
    """Append the exchange; the window is the result."""
    source, target, signal, send_counts, counts = op.operands
    assert isinstance(signal, Value) and isinstance(signal.type, TensorType)
    credits = mesh_credits(s, signal)
    window, cols = rows_view(s, target)  # type: ignore[arg-type]
    given, _ = rows_view(s, source)  # type: ignore[arg-type]
    known = signal.type.shape[0]
    room = s.div(s.extent(window, 0), known if isinstance(known, int) else credits.ranks, "max_recv")
    copy = stage(s, room, cols, window.type.dtype)  # type: ignore[union-attr]
    _clear(s, credits.me, credits.ranks, counts)
    credits.announce()
    with s.loop(credits.ranks, var="dest") as loop:
        dest = loop.var
        asked = s.make("tensor.read", "asked", send_counts, _count_at(send_counts, dest))
        sent = s.min(s.max(s.index(asked, "asked"), 0), room, "sent_rows")
        with s.when("gt", sent, 0):
            with s.when("ne", dest, credits.me):
                credits.await_from(dest, 1)
            published = s.cell(sent, "published")
            s.op("pld.system.notify", counts, dest, [credits.me, 0], published, op="atomic_add")
            to, at = s.mul(credits.me, room, "to_row"), s.mul(dest, room, "from_row")
            s.op("pld.tile.put", window, dest, given, copy, None, [to, 0], [at, 0], [sent, cols])
    credits.announce()
    credits.await_all(2)
    credits.retire(2)
    return target


def _count_at(counts: Any, rank: Num) -> list[Num]:
    return [rank] if len(counts.type.shape) == 1 else [rank, 0]


def _clear(s: Steps, me: Num, ranks: Num, counts: Any) -> None:
    """Take what an earlier exchange left out of the own counts."""
    with s.loop(ranks, var="source") as loop:
        cell = [loop.var, 0]
        old = s.make("tensor.read", "old_count", counts, cell)
        with s.when("ne", old, 0):
            s.op("pld.system.notify", counts, me, cell, s.make("scalar.neg", "cleared", old), op="atomic_add")
