"""The self-clearing credit barrier that all collectives share.

Every rank owns one cell for each peer. A barrier of generation ``g`` adds one credit to the own cell on every peer and
waits until each peer's cell holds at least ``g``; generations start at 1 in every call. The epilogue takes the call's
``N`` credits out of each cell again, so that a signal is zero once every rank has finished its call. Credits of the
next call that a fast peer has already given stay. Waits ask for *at least*: a fast peer may be past the value before
a slow rank looks. Cells are only ever added to: a set could overwrite credits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.distributed_checks import mesh_signal_problem
from ...ir.program import Value
from ...ir.types import TensorType, shape_text
from .steps import Num, Steps

#: Where the cell of a rank lies in the signal.
Address = Callable[[Num], Sequence[Num]]


@dataclass
class Credits:
    """The credits of one call: barriers, and the epilogue that takes them back.

    ``me`` and ``ranks``: the own rank and the number of ranks, at run time.
    """

    steps: Steps
    signal: Value
    me: Num
    ranks: Num
    _spent: int = field(default=0)

    def announce(self, row: Num | None = None) -> None:
        """Give every peer one credit."""
        s = self.steps
        with s.loop(self.ranks, var="peer") as loop, s.when("ne", loop.var, self.me):
            s.op("pld.system.notify", self.signal, loop.var, self._cell(self.me, row), 1, op="atomic_add")

    def await_from(self, source: Num, generation: Num, row: Num | None = None) -> None:
        """Wait until one peer has given ``generation`` credits."""
        s = self.steps
        expected = s.cell(generation, "generation")
        s.op("pld.system.wait", self.signal, self._cell(source, row), expected, cmp="ge")

    def await_all(self, generation: Num, row: Num | None = None) -> None:
        """Wait until every peer has given ``generation`` credits."""
        s = self.steps
        expected = s.cell(generation, "generation")
        with s.loop(self.ranks, var="source") as loop, s.when("ne", loop.var, self.me):
            s.op("pld.system.wait", self.signal, self._cell(loop.var, row), expected, cmp="ge")

    def barrier(self, generation: Num, row: Num | None = None) -> None:
        """Meet all ranks, for the ``generation``-th time in this call."""
        self.announce(row)
        self.await_all(generation, row)

    def meet(self) -> None:
        """Meet all ranks outside any loop; the generations are counted here."""
        self._spent += 1
        self.barrier(self._spent)

    @property
    def spent(self) -> int:
        """How many times :meth:`meet` has been called."""
        return self._spent

    def retire(self, credits: Num, row: Num | None = None) -> None:
        """Take the call's credits back out of every peer's cell."""
        s = self.steps
        taken = s.cell(s.sub(0, credits, "credits"), "credits")
        with s.loop(self.ranks, var="source") as loop, s.when("ne", loop.var, self.me):
            s.op("pld.system.notify", self.signal, self.me, self._cell(loop.var, row), taken, op="atomic_add")

    def _cell(self, rank: Num, row: Num | None) -> list[Num]:
        t = self.signal.type
        assert isinstance(t, TensorType)
        # One column: a cell for each rank. Several: a row of cells for each round; a mesh uses the first.
        return [rank, 0] if t.shape[1] == 1 else [0 if row is None else row, rank]


def credits_of(s: Steps, signal: Any) -> Credits:
    """Begin a call's credits on its signal: ask for the ranks."""
    ctx = s.make("pld.system.get_comm_ctx", "ctx", signal)
    me = s.index(s.make("pld.system.rank", "rank", ctx), "me")
    ranks = s.index(s.make("pld.system.nranks", "nranks", ctx), "ranks")
    return Credits(s, signal, me, ranks)


def mesh_credits(s: Steps, signal: Any) -> Credits:
    """Begin the credits of a call that uses one cell for each rank; refuses another signal by TG008."""
    why = mesh_signal_problem(signal.type)
    if why:
        s.fail(f"has a signal {shape_text(signal.type.shape)}", code="TG008", reason=why)
    return credits_of(s, signal)
