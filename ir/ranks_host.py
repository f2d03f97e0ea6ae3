"""Host programs: one orchestration that allocates windows and dispatches tasks to ranks.

The host function runs first and to its end; its calls with ``device=r`` and its collectives become the tasks that each
rank then runs in order. A host program that needs a task's result to go on cannot be run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .diagnostics import error
from .dtypes import DType
from .interp_frame import Frame
from .levels import HOST, level_of
from .op import OPS
from .program import Function, Op, Program
from .ranks_flow import Plan, Rank, RankMachine, Request
from .ranks_lines import RankCode, argument_dims
from .ranks_memory import Memory, Window
from .ranks_signals import signal_names
from .tilearray import Arr, poison_element
from .types import TensorType

_ALLOC, _VIEW = "pld.tensor.alloc_window_buffer", "pld.tensor.window"
_SIGNALS = ("signal", "recv_counts")


@dataclass(eq=False)
class HostWindow:
    """A window as the host sees it: a shape and dtype over a symmetric buffer."""

    buffer: Window
    shape: tuple[int, ...]
    dtype: DType

    def on(self, rank: int) -> Arr:
        """Return one rank's slice."""
        return self.buffer.slice_of(rank, self.shape, self.dtype)


@dataclass
class Task:
    """One piece of work of one rank: a function with its arguments, or a collective."""

    code: RankCode | None
    plan: Plan
    values: tuple[Any, ...]


@dataclass
class HostRun:
    """What the host function left: tasks per rank and the windows it made, in the order they were made."""

    tasks: list[list[Task]]
    windows: dict[str, HostWindow] = field(default_factory=dict)
    results: tuple[Any, ...] = ()


class HostCode(RankCode):
    """A compiled host function: its calls and everything that concerns windows are requests."""

    def requests(self, s: Op) -> bool:
        """Return whether the host driver executes the operation."""
        return s.name in (_ALLOC, _VIEW) or self._dispatches(s) or _is_collective(s)

    def _dispatches(self, s: Op) -> bool:
        return s.name == "call" and s.attrs.get("callee") not in self.suspends

    def enters(self, s: Op) -> bool:
        """Return whether the call is one of another host function."""
        return s.name == "call" and s.attrs.get("callee") in self.suspends


def _is_collective(s: Op) -> bool:
    return s.name in OPS and OPS[s.name].family == "collectives"


def run_host(
    program: Program, f: Function, kernels: Mapping[str, RankCode], values: list[Any], names: Mapping[str, int],
    memory: Memory, budget: int,
) -> HostRun:  # fmt: skip
    """Run the host function ``f`` and return the tasks it dispatches; raises what its statements raise."""
    hosts = frozenset(g.name for g in program.functions if level_of(g) == HOST)
    codes: dict[str, Any] = dict(kernels)
    codes |= {g.name: HostCode(g, hosts) for g in program.functions if g.name in hosts}
    driver = _Driver(program, codes, memory)
    machine = RankMachine(codes, budget, 0, memory.ranks)
    steps = codes[f.name].start(machine, values, names)
    value: Any = None
    with np.errstate(all="ignore"):
        try:
            while True:
                value = driver.execute(steps.send(value))
        except StopIteration as end:
            driver.out.results = end.value if isinstance(end.value, tuple) else ()
    driver.settle()
    return driver.out


class _Driver:
    """Executes the requests of a host function."""

    def __init__(self, program: Program, codes: Mapping[str, Any], memory: Memory) -> None:
        self.program, self.codes, self.memory = program, codes, memory
        self.out = HostRun([[] for _ in range(memory.ranks)])
        self.signals: set[str] = set()

    def execute(self, request: Request) -> Any:
        plan = request.plan
        if plan.name == _ALLOC:
            return self._alloc(request)
        if plan.name == _VIEW:
            return self._view(request)
        if plan.name == "call":
            return self._call(request)
        return self._collective(request)

    def _alloc(self, request: Request) -> Window:
        size, dtype = request.values[0], request.plan.attrs["dtype"]
        if isinstance(size, tuple):
            size = int(np.prod(size)) * dtype.storage.itemsize
        stem = request.plan.attrs["name"] or request.plan.statement.result.name
        name, n = stem, 1
        while name in self.memory.windows:
            name, n = f"{stem}_{n}", n + 1
        return self.memory.add(name, int(size))

    def _view(self, request: Request) -> HostWindow:
        buffer, shape = request.values
        window = HostWindow(buffer, tuple(int(n) for n in shape), request.plan.attrs["dtype"])
        window.on(0)
        self.out.windows.setdefault(buffer.name, window)
        return window

    def _call(self, request: Request) -> Any:
        s = request.plan.statement
        keywords = s.attrs.get("keywords", ())
        count = len(request.values) - len(keywords)
        placed = dict(zip(keywords, request.values[count:]))
        callee = self.codes[str(s.attrs.get("callee"))]
        device = placed.get("device", 0 if self.memory.ranks == 1 else None)
        if not isinstance(device, int) or not 0 <= device < self.memory.ranks:
            what = "is placed on no rank" if device is None else f"is placed on rank {device} of {self.memory.ranks}"
            raise error("TG032", f"the call of {callee.function.name} {what}", s.span, hint="add device=r")
        values = request.values[:count]
        for name in signal_names(self.program, callee.function):
            at = next(i for i, p in enumerate(callee.function.params) if p.value.name == name)
            if isinstance(values[at], HostWindow):
                self.signals.add(values[at].buffer.name)
        self.out.tasks[device].append(Task(callee, request.plan, values))
        return _results(callee.function, values, len(s.results))

    def _collective(self, request: Request) -> Any:
        params = OPS[request.plan.name].operand_params
        for p, value in zip(params, request.values):
            if p.name in _SIGNALS and isinstance(value, HostWindow):
                self.signals.add(value.buffer.name)
        for tasks in self.out.tasks:
            tasks.append(Task(None, request.plan, request.values))
        return request.values[0 if params[0].name in ("target", "signal") else 1]

    def settle(self) -> None:
        """Give the windows their first contents: zeros for signals, undefined bytes for the others."""
        for name, window in self.out.windows.items():
            buffer = window.buffer
            buffer.signal = name in self.signals
            if buffer.signal:
                for rank in range(self.memory.ranks):
                    buffer.mark(rank, True)
                continue
            count = buffer.data.size // window.dtype.storage.itemsize
            element = np.array(poison_element(window.dtype), window.dtype.storage)
            buffer.data[: count * element.itemsize].view(window.dtype.storage)[...] = element


def _results(f: Function, values: tuple[Any, ...], count: int) -> Any:
    """Return what a call gives the host: written parameters stand for the results of their types, in order."""
    left = [
        (p, v) for p, v in zip(f.params, values)
        if isinstance(p.value.type, TensorType) and (p.direction != "In" or p.value.type.is_window)
    ]  # fmt: skip
    found: list[Any] = []
    for t in f.results[:count]:
        at = next((i for i, (p, _) in enumerate(left) if p.value.type == t), None)
        found.append(None if at is None else left.pop(at)[1])
    return found[0] if len(found) == 1 and count == 1 else tuple(found)


def rank_program(tasks: list[Task], machine: RankMachine) -> Rank:
    """Return the tasks of one rank, one after the other, as a generator of requests."""
    for task in tasks:
        values = [v.on(machine.rank) if isinstance(v, HostWindow) else v for v in task.values]
        if task.code is None:
            yield Request(task.plan, machine, _no_frame(task.plan), tuple(values))
            continue
        names = argument_dims(task.code.function, values, task.plan.statement)
        yield from task.code.start(machine, values, names)
    return ()


def _no_frame(plan: Plan) -> Frame:
    return [None] * (max(plan.slots.values(), default=-1) + 1)

