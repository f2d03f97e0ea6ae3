"""Allreduce on a ring: segments travel around and are combined on the way, then travel around once more.

``2 * (NR - 1)`` rounds, each with its own row of signal cells. In a round every rank pushes one segment to its right
neighbour, in chunks: it first reads its own values of the slot that the left neighbour is about to overwrite, meets
the others (ready), pushes, meets them again (pushed), and combines. ``2 * (NR - 1) / NR * SIZE`` elements leave every
rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...ir.collectives import COMBINE, RING_ALIGN
from ...ir.distributed_checks import ring_signal_problem
from ...ir.dtypes import FP16
from ...ir.program import Value
from ...ir.types import TensorType, shape_text
from .credits import Credits
from .geometry import CHUNK_BYTES, chunk_width, flat_view, is_partial, is_prefix, require_packed
from .steps import Num, Steps


def require_ring_signal(s: Steps, signal: Any) -> None:
    """Refuse a signal without a row for each round; TG008."""
    why = ring_signal_problem(signal.type)
    if not why and signal.type.shape[1] == 1:
        why = "a ring needs a row of cells for each round; a mesh signal cannot be shared"
    if why:
        s.fail(f"has a signal {shape_text(signal.type.shape)}", code="TG008", reason=why)


@dataclass
class _Ring:
    """What all rounds of a call share."""

    steps: Steps
    credits: Credits
    flat: Value
    size: Num
    width: int
    chunks: Num
    stage: Value
    right: Num

    def round(self, row: Num, send: Num, receive: Num, combine: str) -> None:
        """Push segment ``send`` to the right and take ``receive`` from the left, combining unless ``combine`` is ""."""
        s = self.steps
        out, out_end = self._border(send), self._border(s.add(send, 1))
        into, into_end = self._border(receive), self._border(s.add(receive, 1))
        with s.loop(self.chunks, var="chunk") as loop:
            skip = s.mul(loop.var, self.width, "skip")
            at, length = self._part(out, out_end, skip, "send")
            slot, expected = self._part(into, into_end, skip, "recv")
            generation = s.mul(loop.var, 2, "generation")
            own = self._own(slot, expected) if combine else None
            self.credits.barrier(s.add(generation, 1), row)
            with s.when("gt", length, 0):
                stage = s.make("tile.set_validshape", "put_stage", self.stage, 1, length)
                s.op("pld.tile.put", self.flat, self.right, self.flat, stage, None, [0, at], [0, at], [1, length])
            self.credits.barrier(s.add(generation, 2), row)
            if own is not None:
                with s.when("gt", expected, 0):
                    got = s.make("tile.load", "incoming", self.flat, [0, slot], [1, self.width], [1, expected])
                    result = s.make(combine, "combined", got, own)
                    s.make("tile.store", "stored", result, [0, slot], self.flat)

    def _own(self, slot: Num, length: Num) -> Value:
        """Read the own values of a slot before the left neighbour overwrites them; an empty slot has none."""
        s = self.steps
        with s.choice("gt", length, 0) as branch:
            with branch.then():
                branch.yield_(s.make("tile.load", "own", self.flat, [0, slot], [1, self.width], [1, length]))
            with branch.orelse():
                dtype = self.flat.type.dtype  # type: ignore[union-attr]
                branch.yield_(s.make("tile.create", "none", [1, self.width], dtype=dtype, target_memory="Vec"))
        return branch.results[0]

    def _border(self, segment: Num) -> Num:
        """Return where a segment begins: balanced; for FP16 at a multiple of 16 elements, or the end."""
        s, dtype = self.steps, self.flat.type.dtype  # type: ignore[union-attr]
        at = s.div(s.mul(segment, self.size), self.credits.ranks, "border")
        return s.min(self.size, s.round_up(at, RING_ALIGN), "border") if dtype is FP16 else at

    def _part(self, start: Num, end: Num, skip: Num, what: str) -> tuple[Num, Num]:
        """Return where a chunk of a segment begins and how many elements it has; past the segment's end none."""
        s = self.steps
        at = s.add(start, skip, f"{what}_at")
        return at, s.max(s.min(self.width, s.sub(end, at), f"{what}_left"), 0, f"{what}_cols")


def ring_allreduce(s: Steps, credits: Credits, window: Any, nbytes: int = CHUNK_BYTES) -> None:
    """Append a ring allreduce of a window, in chunks of at most ``nbytes``."""
    t: TensorType = window.type
    flat, size = _line(s, window)
    ranks = credits.signal.type.shape[1]  # type: ignore[union-attr]
    longest = s.ceil(size, credits.ranks, "longest")
    if t.dtype is FP16:
        longest = s.min(size, s.round_up(longest, RING_ALIGN), "longest")
    width = chunk_width(_longest(size, ranks, t), t.dtype, nbytes)
    chunks = s.ceil(longest, width, "chunk_count")
    stage = s.make("tile.create", "put_stage", [1, width], dtype=t.dtype, target_memory="Vec")
    me, n = credits.me, credits.ranks
    ring = _Ring(s, credits, flat, size, width, chunks, stage, s.mod(s.add(me, 1), n, "right"))
    rounds = s.sub(n, 1, "rounds")
    with s.loop(rounds, var="round") as loop:
        behind = s.sub(s.add(me, n), loop.var)
        send, receive = s.mod(behind, n, "send"), s.mod(s.sub(behind, 1), n, "receive")
        ring.round(loop.var, send, receive, COMBINE[s.attr("op")])
    with s.loop(rounds, var="round") as loop:
        behind = s.sub(s.add(me, n), loop.var)
        send, receive = s.mod(s.add(behind, 1), n, "send"), s.mod(behind, n, "receive")
        ring.round(s.add(rounds, loop.var, "row"), send, receive, "")
    spent = s.mul(chunks, 2, "credits")
    with s.loop(s.mul(rounds, 2, "rows"), var="row") as loop:
        credits.retire(spent, loop.var)


def _longest(size: Num, ranks: Any, t: TensorType) -> Num:
    """Return the longest segment as far as it is known: from the ranks of a static signal, else the whole."""
    if not isinstance(size, int) or not isinstance(ranks, int):
        return size
    longest = -(-size // ranks)
    return min(size, -(-longest // RING_ALIGN) * RING_ALIGN) if t.dtype is FP16 else longest


def _line(s: Steps, window: Value) -> tuple[Value, Num]:
    """Return a window as one row, and how many elements of it are reduced: all, or a contiguous prefix."""
    t = window.type
    assert isinstance(t, TensorType)
    require_packed(s, window)
    if not is_partial(t):
        return flat_view(s, window)
    assert t.valid is not None
    if not is_prefix(t.shape, t.valid):
        s.fail(
            f"the valid part {shape_text(t.valid)} of {shape_text(t.shape)} is not contiguous",
            hint="a ring reduces a row-major prefix; mode='mesh' takes a rectangle",
        )  # fmt: skip
    axes = range(len(t.shape))
    size = s.product([s.valid_extent(window, i) for i in axes], "valid_size")
    whole = s.product([s.extent(window, i) for i in axes])
    return s.make("tensor.view", "flat", window, shape=[1, whole], valid_shape=[1, size]), size
