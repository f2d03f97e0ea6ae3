"""Executes emitted assembly on several ranks at once, under schedules and a memory that is as weak as it may be.

All windows lie in one flat memory, one slice per rank in a shuffled order; what a kernel knows of it is its own
pointers and the communication contexts, so that every peer address is what the assembly itself computes. A write to a
window stays with its rank until a cacheinvalid of its bytes and then a fence have published it, a read goes through a
cache whose lines stay as they were until they are invalidated, and a load reads as late as it can. So a marker or a
barrier that is missing shows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tilegg.codegen.pto.elements import element_bytes
from tilegg.testing.machine import Machine, Pointer, View, added

LINE = 64
_SCALAR = (
    "pto.comm.tnotify", "pto.comm.twait", "pto.load_scalar", "pto.store_scalar", "pto.addptr", "pto.castptr",
    "pto.make_tensor_view", "pto.partition_view", "pto.cmo.cacheinvalid", "pto.get_block_idx", "pto.alloc_tile",
)  # fmt: skip
#: Bytes of a context: 4 words, then one base for each rank.
_HEAD = 4


@dataclass(eq=False)
class Pending:
    """A write that is not visible yet."""

    at: np.ndarray
    data: np.ndarray
    add: bool
    element: Any
    cleaned: bool = False


class Stopped(Exception):
    """The run has ended without this core."""


class Mesh:
    """One run: ``ranks`` ranks of ``lanes`` cores each execute a kernel."""

    def __init__(
        self, text: str, ranks: int, *, lanes: int = 1, seed: int = 0, early: bool = False, outside: Any = None
    ) -> None:
        #: Stands for functions that the module only declares.
        self.outside = outside
        self.text, self.ranks, self.lanes, self.seed = text, ranks, lanes, seed
        #: Whether writes may also become visible before they are published.
        self.early = early
        self.random = np.random.default_rng(seed)
        self.slots = self.random.permutation(ranks)
        self.main = threading.Semaphore(0)
        self.over = False
        self.markers: dict[str, int] = {}

    def run(self, name: str, args: list[dict[str, Any]], windows: list[str]) -> None:
        """Call a kernel on every rank. ``args``: per rank, by parameter name; arrays of ``windows`` are put into the
        flat memory and filled with its contents afterwards. Raises AssertionError when no core can go on.
        """
        offsets, self.pitch = {}, 0
        for w in windows:
            offsets[w] = self.pitch
            self.pitch += -(-len(args[0][w]) // LINE) * LINE + LINE
        self.memory = self.random.integers(0, 256, self.ranks * self.pitch, dtype=np.uint8)
        for r in range(self.ranks):
            for w in windows:
                self._slice(r, offsets[w], args[r][w])[...] = args[r][w]
        cores = [Core(self, r, lane, self.text) for r in range(self.ranks) for lane in range(self.lanes)]
        for core in cores:
            given = dict(args[core.rank])
            for w in windows:
                given[w] = self._pointer(core, w, name, offsets[w])
                given[f"{w}_ctx"] = self._context(core.rank)
            core.start(name, given)
        try:
            self._drive(cores)
        finally:
            self.over = True
            for core in cores:
                core.turn.release()
        for core in cores:
            core.thread.join(10)
            core.publish(everything=True)
        for r in range(self.ranks):
            for w in windows:
                args[r][w][...] = self._slice(r, offsets[w], args[r][w])

    def _slice(self, rank: int, offset: int, like: np.ndarray) -> np.ndarray:
        start = int(self.slots[rank]) * self.pitch + offset
        return self.memory[start : start + len(like)]

    def _pointer(self, core: Core, window: str, name: str, offset: int) -> Pointer:
        element = core.argument(name, window).type.element
        start = int(self.slots[core.rank]) * self.pitch + offset
        return Pointer(self.memory, start // element_bytes(element), element)

    def _context(self, rank: int) -> np.ndarray:
        words = self.random.integers(-(2**62), 2**62, _HEAD + self.ranks)
        words[2] = rank | self.ranks << 32
        words[_HEAD:] = (1 << 40) + self.slots * self.pitch
        return words.view(np.uint8)

    def _drive(self, cores: list[Core]) -> None:
        """Let cores take turns until all have ended."""
        while live := [c for c in cores if c.thread.is_alive() and not c.ended]:
            ready = [c for c in live if c.until is None or c.until()]
            assert ready, f"no core can go on: {[(c.rank, c.lane) for c in live]} wait"
            core = ready[self.random.integers(len(ready))]
            core.turn.release()
            self.main.acquire()
            if core.problem is not None:
                raise core.problem
            if self.early:
                self._deliver(cores)

    def _deliver(self, cores: list[Core]) -> None:
        waiting = [c for c in cores if c.pending]
        if waiting and self.random.integers(3) == 0:
            core = waiting[self.random.integers(len(waiting))]
            core.apply(core.pending.pop(0))


@dataclass(eq=False)
class _Thread:
    """The thread of a core and whose turn it is."""

    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    until: Callable[[], bool] | None = None
    problem: BaseException | None = None
    ended: bool = False


class Core(Machine, _Thread):
    """One core of one rank."""

    def __init__(self, mesh: Mesh, rank: int, lane: int, text: str) -> None:
        Machine.__init__(self, text, mesh.seed + 97 * rank + lane)
        _Thread.__init__(self)
        self.mesh, self.rank, self.lane = mesh, rank, lane
        self.pending: list[Pending] = []
        #: Loads that have been started: they read when something waits for them.
        self.started: list[tuple[Any, list[Any]]] = []
        #: The memory as this core last saw it, and which lines of it are in the cache.
        self.seen = mesh.memory.copy()
        self.cached = np.zeros(len(mesh.memory) // LINE, np.bool_)

    def argument(self, name: str, hint: str) -> Any:
        """Return an argument of a function by its name."""
        return next(a for a in self.function(name).body.block.args if a.name_hint == hint)

    # -- turns -------------------------------------------------------------------------------------------

    def start(self, name: str, args: dict[str, Any]) -> None:
        """Begin, and wait for the first turn."""
        self.thread = threading.Thread(target=self._main, args=(name, args), daemon=True)
        self.thread.start()

    def _main(self, name: str, args: dict[str, Any]) -> None:
        self.turn.acquire()
        try:
            if not self.mesh.over:
                self.run(name, args)
                self.finish_loads()
        except Stopped:
            pass
        except BaseException as problem:  # the driver raises it
            self.problem = problem
        self.ended = True
        self.mesh.main.release()

    def rest(self, until: Callable[[], bool] | None = None) -> None:
        """Let others go on, until a condition holds."""
        self.until = until
        self.mesh.main.release()
        self.turn.acquire()
        if self.mesh.over:
            raise Stopped
        self.until = None

    # -- memory ------------------------------------------------------------------------------------------

    def _bytes(self, view: View) -> np.ndarray:
        """Return the addresses of a partition's bytes in the flat memory, as [..., element bytes]."""
        size = element_bytes(view.pointer.element)
        at = np.array(view.pointer.offset * size)
        for n, s in zip(view.shape, view.strides):
            at = at[..., None] + np.arange(n) * s * size
        at = at[..., None] + np.arange(size)
        assert not at.size or 0 <= at.min() <= at.max() < len(self.mesh.memory), "outside the windows"
        return at

    def fetch(self, view: View) -> np.ndarray:
        if view.pointer.data is not self.mesh.memory:
            return super().fetch(view)
        self.rest()
        at = self._bytes(view)
        self._settle(at)
        lines = np.unique(at // LINE)
        new = lines[~self.cached[lines]]
        self.seen.reshape(-1, LINE)[new] = self.mesh.memory.reshape(-1, LINE)[new]
        self.cached[new] = True
        return self.seen[at]

    def put(self, view: View, new: np.ndarray, add: bool) -> None:
        if view.pointer.data is not self.mesh.memory:
            super().put(view, new, add)
            return
        self.rest()
        self.pending.append(Pending(self._bytes(view), new.copy(), add, view.pointer.element))

    def apply(self, write: Pending) -> None:
        """Make a write visible, to the own cache as well."""
        memory, at = self.mesh.memory, write.at
        memory[at] = added(memory[at], write.data, write.element) if write.add else write.data
        self.seen[at] = memory[at]

    def publish(self, everything: bool = False) -> None:
        """Make the writes visible that have been cleaned from the cache."""
        done = [w for w in self.pending if everything or w.cleaned]
        self.pending = [w for w in self.pending if w not in done]
        for w in done:
            self.apply(w)

    def _settle(self, at: np.ndarray) -> None:
        """The own writes to bytes that are read back become visible, with those before them."""
        last = max((i for i, w in enumerate(self.pending) if np.intersect1d(w.at, at).size), default=-1)
        for w in self.pending[: last + 1]:
            self.apply(w)
        del self.pending[: last + 1]

    # -- loads -------------------------------------------------------------------------------------------

    def step(self, op: Any, env: dict[Any, Any]) -> None:
        """Execute an operation; only those of the scalar pipe do not wait for loads that are under way."""
        loads = op.name == "pto.tload"
        if op.name.startswith("pto.") and not loads and op.name not in _SCALAR:
            self.finish_loads()
        super().step(op, env)

    def pto_tload(self, op: Any, values: list[Any]) -> None:
        self.started.append((op, values))

    def finish_loads(self) -> None:
        """The loads under way read what is there now."""
        started, self.started = self.started, []
        for op, values in started:
            super().pto_tload(op, values)

    # -- operations --------------------------------------------------------------------------------------

    def pto_get_block_idx(self, op: Any, values: list[Any]) -> int:
        return self.lane

    def pto_get_block_num(self, op: Any, values: list[Any]) -> int:
        return self.mesh.lanes

    def outside(self, name: str, values: list[Any]) -> None:
        assert self.mesh.outside is not None, f"nobody defines {name}"
        self.mesh.outside(self, name, values)

    def pto_barrier(self, op: Any, values: list[Any]) -> None:
        self._count("barrier")

    def _count(self, what: str) -> None:
        self.mesh.markers[what] = self.mesh.markers.get(what, 0) + 1

    def pto_cmo_cacheinvalid(self, op: Any, values: list[Any]) -> None:
        self._count("region" if values else "all")
        if not values:
            self.cached[:] = False
            for w in self.pending:
                w.cleaned = True
            return
        if values[0].pointer.data is self.mesh.memory:
            at = self._bytes(values[0])
            self.cached[np.unique(at // LINE)] = False
            for w in self.pending:
                w.cleaned |= bool(np.isin(w.at, at).all())

    def pto_fence_barrier_all(self, op: Any, values: list[Any]) -> None:
        self._count("fence")
        self.publish()

    def _cell(self, view: View) -> np.ndarray:
        assert view.shape == (1,) * len(view.shape) and view.pointer.data is self.mesh.memory
        at = self._bytes(view).reshape(-1)
        self.cached[at[0] // LINE] = False
        return self.mesh.memory[at[0] : at[0] + 4].view(np.int32)

    def pto_comm_tnotify(self, op: Any, values: list[Any]) -> None:
        self.rest()
        cell = self._cell(values[0])
        with np.errstate(over="ignore"):
            cell[0] = np.int32(values[1]) + (cell[0] if op.properties["notifyOp"].data == "atomic_add" else 0)

    def pto_comm_twait(self, op: Any, values: list[Any]) -> None:
        cell = self._cell(values[0])
        how = op.properties["cmp"].data
        self.rest(lambda: bool(cell[0] >= values[1] if how == "ge" else cell[0] == values[1]))

    def pto_comm_tput(self, op: Any, values: list[Any]) -> None:
        self._transfer(values, "atomicType" in op.properties)

    def pto_comm_tget(self, op: Any, values: list[Any]) -> None:
        self._transfer(values, False)

    def _transfer(self, values: list[Any], add: bool) -> None:
        dst, src, *stages = values
        assert dst.shape == src.shape
        for stage in stages:
            rows, cols = stage.valid
            assert rows >= 1 and cols >= 1, "a staging tile without room"
            stage.window(rows, cols)[...] = self.random.integers(0, 256, stage.window(rows, cols).shape)
        self.put(dst, np.ascontiguousarray(self.fetch(src)), add)
