"""The operations at which a rank can be suspended, and what a rank asks for there."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from .interp_flow import _keep, _result_type
from .interp_frame import Code, Frame, FrameNames, Machine, fetch
from .op import OPS
from .program import Function, Op, Value, flat_operands, walk
from .types import TensorType

Rank = Generator["Request", Any, Any]

#: Operations on windows that neither read nor write them.
_PASSIVE = frozenset({"pld.system.get_comm_ctx", "tensor.dim"})
#: Operations that suspend whatever their operands are.
_MARKERS = frozenset({"system.fence", "system.cacheinvalid"})


class RankMachine(Machine):
    """The state of one rank: which rank of how many, and the waits its running task has deferred.

    ``descending``: the blocks of a launch run from the last to the first.
    """

    __slots__ = ("deferred", "descending")

    def __init__(
        self, functions: Mapping[str, Code], budget: int, rank: int, ranks: int, descending: bool = False
    ) -> None:
        super().__init__(functions, budget)
        self.descending = descending
        self.rank, self.ranks = rank, ranks
        self.deferred: list[Request] = []


class Plan:
    """A communicating statement, prepared once: its declaration, attributes with defaults, result type."""

    __slots__ = ("attrs", "extra", "keep", "name", "operands", "result", "slots", "statement", "types")

    def __init__(self, code: Code, s: Op) -> None:
        self.statement, self.name = s, s.name
        declared = OPS[s.name].attr_params if s.name in OPS else ()
        self.attrs = {p.name: s.attrs.get(p.name, p.default) for p in declared}
        self.operands = fetch(code, s.operands, s.span)
        self.types: tuple[Any, ...] = tuple(getattr(o, "type", None) for o in s.operands)
        self.result = _result_type(s)
        self.keep = _keep(code, s)
        self.slots = code.slots
        self.extra: Any = None


class Request:
    """One communicating statement that a rank is about to execute, with the values of its operands."""

    __slots__ = ("done", "frame", "machine", "plan", "ready", "values")

    def __init__(
        self, plan: Plan, machine: RankMachine, frame: Frame, values: tuple[Any, ...] | None = None
    ) -> None:
        self.plan, self.machine, self.frame = plan, machine, frame
        self.values: tuple[Any, ...] = plan.operands(frame) if values is None else values
        #: ``None``: can always be performed; else tells whether it can now.
        self.ready: Callable[[], bool] | None = None
        self.done = False

    @property
    def names(self) -> FrameNames:
        """The integers in scope, for dynamic extents."""
        return FrameNames(self.plan.slots, self.frame)


def suspending(functions: Iterable[Function]) -> frozenset[str]:
    """Return the functions that communicate, or call one that does."""
    calls: dict[str, set[str]] = {}
    found: set[str] = set()
    for f in functions:
        ops = [s for s in walk(f.body) if isinstance(s, Op)]
        calls[f.name] = {str(s.attrs.get("callee")) for s in ops if s.name == "call"}
        if any(communicates(s) for s in ops):
            found.add(f.name)
    while True:
        more = {name for name, callees in calls.items() if name not in found and callees & found}
        if not more:
            return frozenset(found)
        found |= more


def communicates(s: Op) -> bool:
    """Return whether an operation touches a window, a signal or the order of memory."""
    decl = OPS.get(s.name)
    if decl is None or s.name in _PASSIVE:
        return False
    if s.name in _MARKERS:
        return True
    return decl.effect in ("read", "write") and any(
        isinstance(o, Value) and isinstance(o.type, TensorType) and o.type.is_window for o in flat_operands(s.operands)
    )
