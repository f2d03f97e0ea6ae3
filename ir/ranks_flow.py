"""Rank programs as generators: control flow around the operations at which a rank can be suspended.

A statement that touches a window or a signal becomes a :class:`Request`, which the generator yields and whose result
it is sent. Everything else runs as the steps of the ordinary interpreter, so that loops without communication cost
nothing extra.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from functools import partial
from typing import Any

from .diagnostics import TileggError, error
from .interp_eval import MEANING_ERRORS
from .interp_flow import _SPMD, _keep, _located, _result_type, _steps, compile_block
from .interp_frame import (
    Code,
    Frame,
    FrameNames,
    Jumped,
    Machine,
    Returned,
    Step,
    Yielded,
    assign,
    fetch,
    fetch_one,
)
from .interp_io import bind_dims
from .op import OPS
from .program import Block, Const, For, Function, If, Op, Scope, Statement, Value, While, flat_operands, walk
from .types import TensorType, scalar

Rank = Generator["Request", Any, Any]
Resume = Callable[[Any, Frame], Rank]

#: Operations on windows that neither read nor write them.
_PASSIVE = frozenset({"pld.system.get_comm_ctx", "tensor.dim"})
#: Operations that suspend whatever their operands are.
_MARKERS = frozenset({"system.fence", "system.cacheinvalid"})
_MAX_DEPTH = 64


class RankMachine(Machine):
    """The state of one rank: which rank of how many, and the waits its running task has deferred."""

    __slots__ = ("deferred",)

    def __init__(self, functions: Mapping[str, Code], budget: int, rank: int, ranks: int) -> None:
        super().__init__(functions, budget)
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


class RankCode(Code):
    """A compiled function of a rank program."""

    def __init__(self, function: Function, suspends: frozenset[str]) -> None:
        super().__init__(function, compile_block)
        self.suspends = suspends
        self._resume: Resume | None = None

    def requests(self, s: Op) -> bool:
        """Return whether an operation is a request of its own."""
        return communicates(s)

    def enters(self, s: Op) -> bool:
        """Return whether an operation is a call that is followed into its function."""
        return s.name == "call" and s.attrs.get("callee") in self.suspends

    def start(self, machine: RankMachine, values: list[Any], names: Mapping[str, int]) -> Rank:
        """Return the function as a generator of requests, whose return value is the tuple of results."""
        if self._resume is None:
            self._resume = compile_rank_block(self, self.function.body)
        outer, machine.deferred = machine.deferred, []
        signal = yield from self._resume(machine, self.frame(values, names))
        # The task is complete only when the conditions it has deferred hold.
        yield from machine.deferred
        machine.deferred = outer
        return signal.values if isinstance(signal, Returned) else ()


def compile_rank_block(code: RankCode, block: Block) -> Resume:
    """Return the block as one generator, which returns the first signal of a statement."""
    steps: list[tuple[Step | None, Plan | None, Resume | None]] = []
    quiet: list[Statement] = []
    for s in block.statements:
        if not _suspends(code, s):
            quiet.append(s)
            continue
        steps += [(step, None, None) for step in _steps(code, tuple(quiet))]
        quiet = []
        steps.append(_suspended(code, s))
    steps += [(step, None, None) for step in _steps(code, tuple(quiet))]
    cost = len(steps) + 1

    def resume(machine: Any, frame: Frame) -> Rank:
        machine.left -= cost
        if machine.left < 0:
            message = f"rank {machine.rank} stopped after {machine.budget} steps"
            raise error("TG032", message, hint="the loop may be endless; else allow more steps")
        for step, plan, inner in steps:
            if step is not None:
                signal = step(machine, frame)
            elif plan is not None:
                value = yield Request(plan, machine, frame)
                plan.keep(frame, value)
                continue
            else:
                signal = yield from inner(machine, frame)  # type: ignore[misc]
            if signal is not None:
                return signal
        return None

    return resume


def _suspends(code: RankCode, s: Statement) -> bool:
    if isinstance(s, Op):
        return code.requests(s) or code.enters(s)
    if isinstance(s, For | While | If | Scope):
        return any(_suspends(code, inner) for inner in walk(Block((s,))) if inner is not s and isinstance(inner, Op))
    return False


def _suspended(code: RankCode, s: Statement) -> tuple[Step | None, Plan | None, Resume | None]:
    match s:
        case Op():
            return (None, Plan(code, s), None) if code.requests(s) else (None, None, _call(code, s))
        case For():
            return None, None, _for(code, s)
        case While():
            return None, None, _while(code, s)
        case If():
            return None, None, _if(code, s)
        case Scope():
            return None, None, _scope(code, s)
    raise AssertionError(f"{type(s).__name__} does not suspend")


def _call(code: RankCode, s: Op) -> Resume:
    operands, keep, span = fetch(code, s.operands, s.span), _keep(code, s), s.span
    name, many = str(s.attrs.get("callee")), len(s.results) > 1

    def resume(machine: Any, frame: Frame) -> Rank:
        callee = machine.functions[name]
        values = list(operands(frame))[: len(callee.params)]
        if machine.depth >= _MAX_DEPTH:
            raise error("TG032", f"calls nested deeper than {_MAX_DEPTH}", span)
        machine.depth += 1
        results = yield from callee.start(machine, values, argument_dims(callee.function, values, s))
        machine.depth -= 1
        keep(frame, results if many or len(results) != 1 else results[0])

    return resume


def argument_dims(f: Function, values: list[Any], s: Op) -> dict[str, int]:
    """Return the dimension names that the arguments of a call give values to; raises TG030 or TG032."""
    names: dict[str, int] = {}
    if len(values) < len(f.params):
        raise error("TG032", f"{f.name} takes {len(f.params)} arguments, got {len(values)}", s.span)
    try:
        for p, value in zip(f.params, values):
            bind_dims(p.value.type, value, names, p.value.name)
    except TileggError as problem:
        raise _located(problem, s.span) from None
    except MEANING_ERRORS as problem:
        raise error("TG032", f"the arguments do not fit {f.name}", s.span, reason=str(problem)) from problem
    return names


def _for(code: RankCode, s: For) -> Resume:
    bounds, inits = fetch(code, s.bounds, s.span), fetch(code, tuple(c.init for c in s.carried), s.span)
    var, body = code.slot(s.var.name), compile_rank_block(code, s.body)
    carried = tuple(c.arg for c in s.carried)
    args, results, current = assign(code, carried), assign(code, s.results), fetch(code, carried, s.span)
    spmd, span = s.kind == "spmd", s.span

    def resume(machine: Any, frame: Frame) -> Rank:
        start, stop, stride = bounds(frame)
        if not stride:
            raise error("TG032", "the loop's step is zero", span)
        args(frame, inits(frame))
        outer = machine.block, machine.blocks
        for i in range(start, stop, stride):
            frame[var] = i
            if spmd:
                machine.block, machine.blocks = i, stop
            signal = yield from body(machine, frame)
            if isinstance(signal, Returned):
                machine.block, machine.blocks = outer
                return signal
            if signal is not None and signal.values is not None:
                args(frame, signal.values)
            if isinstance(signal, Jumped) and signal.leaves:
                break
        machine.block, machine.blocks = outer
        results(frame, current(frame))
        return None

    return resume


def _while(code: RankCode, s: While) -> Resume:
    inits, carried = fetch(code, tuple(c.init for c in s.carried), s.span), tuple(c.arg for c in s.carried)
    head, body = compile_rank_block(code, s.head), compile_rank_block(code, s.body)
    cond = fetch_one(code, s.cond, s.span)
    args, results, current = assign(code, carried), assign(code, s.results), fetch(code, carried, s.span)

    def resume(machine: Any, frame: Frame) -> Rank:
        args(frame, inits(frame))
        while True:
            signal = yield from head(machine, frame)
            if signal is not None:
                return signal
            if not cond(frame):
                break
            signal = yield from body(machine, frame)
            if isinstance(signal, Returned):
                return signal
            if signal is not None and signal.values is not None:
                args(frame, signal.values)
            if isinstance(signal, Jumped) and signal.leaves:
                break
        results(frame, current(frame))
        return None

    return resume


def _if(code: RankCode, s: If) -> Resume:
    cond, results = fetch_one(code, s.cond, s.span), assign(code, s.results)
    then, orelse = compile_rank_block(code, s.then), compile_rank_block(code, s.orelse)

    def resume(machine: Any, frame: Frame) -> Rank:
        signal = yield from (then if cond(frame) else orelse)(machine, frame)
        if isinstance(signal, Yielded):
            results(frame, signal.values)
            return None
        return signal

    return resume


def _scope(code: RankCode, s: Scope) -> Resume:
    body = compile_rank_block(code, s.body)
    found = _SPMD.search(s.header)
    if found is None:
        return body
    text = found.group(1)
    count = fetch_one(code, Const(int(text)) if text.isdigit() else Value(text, scalar()), s.span)
    return partial(_each_block, body, count, s)


def _each_block(body: Resume, count: Callable[[Frame], Any], s: Scope, machine: Any, frame: Frame) -> Rank:
    blocks = count(frame)
    if not isinstance(blocks, int):
        raise error("TG032", f"cannot evaluate {s.header[:60]!r}", s.span)
    outer = machine.block, machine.blocks
    signal = None
    for i in range(blocks):
        machine.block, machine.blocks = i, blocks
        signal = yield from body(machine, frame)
        if signal is not None:
            break
    machine.block, machine.blocks = outer
    return signal
