"""Reduce_scatter: every rank combines its own row of all windows and keeps the result there.

Ready barrier, combine, a second barrier, store, epilogue: two credits. Row ``r`` of rank ``r``'s window is read by
rank ``r`` alone, so rows longer than a chunk are combined and stored chunk by chunk between the two barriers.
"""

from __future__ import annotations

from typing import Any

from ...ir.program import Op
from .credits import mesh_credits
from .geometry import chunk_width, rows_view
from .reduce import reduce_ranks
from .steps import Steps


def reduce_scatter(s: Steps, op: Op) -> Any:
    """Append the five phases; the window is the result."""
    target, signal = op.operands
    credits = mesh_credits(s, signal)
    window, cols = rows_view(s, target)  # type: ignore[arg-type]
    width = chunk_width(cols, window.type.dtype)  # type: ignore[union-attr]
    me = credits.me
    credits.meet()
    if isinstance(cols, int) and cols <= width:
        acc = reduce_ranks(s, credits, window, [me, 0], [1, width], [1, cols])
        credits.meet()
        s.make("tile.store", "stored", acc, [me, 0], window)
    else:
        with s.loop(s.ceil(cols, width, "chunk_count"), var="chunk") as loop:
            offset = s.mul(loop.var, width, "offset")
            valid = s.min(width, s.sub(cols, offset), "valid_cols")
            acc = reduce_ranks(s, credits, window, [me, offset], [1, width], [1, valid])
            s.make("tile.store", "stored", acc, [me, offset], window)
        credits.meet()
    credits.retire(credits.spent)
    return target
