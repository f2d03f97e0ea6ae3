"""Combining the ranks' elements: in ascending rank order, the same on every rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.collectives import COMBINE
from ...ir.program import Value
from .credits import Credits
from .steps import Num, Steps


def reduce_ranks(
    s: Steps, credits: Credits, window: Value, offsets: Sequence[Num], shape: Sequence[int], valid: Sequence[Num]
) -> Value:
    """Return the tile ``((x0 + x1) + x2) + ...`` of one region of all ranks' windows.

    The own part is loaded, the others are loaded remotely. ``valid`` is what is read of ``shape``.
    """
    operation = COMBINE[s.attr("op")]
    extent = None if list(valid) == list(shape) else list(valid)

    def part(peer: Any) -> Value:
        with s.choice("eq", credits.me, peer) as branch:
            with branch.then():
                branch.yield_(s.make("tile.load", "own", window, list(offsets), list(shape), extent))
            with branch.orelse():
                remote = s.make("pld.tile.remote_load", "remote", window, peer, list(offsets), list(shape), extent)
                branch.yield_(remote)
        return branch.results[0]

    first = part(0)
    with s.loop(1, credits.ranks, var="peer", carry={"acc": first}) as loop:
        loop.yield_(s.make(operation, "combined", loop.args[0], part(loop.var)))
    return loop.results[0]
