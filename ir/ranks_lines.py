"""Functions of rank programs as lines of steps with jumps between them, run by one generator.

A statement that touches a window or a signal becomes a :class:`Request`, which the generator yields and whose result
it is sent. Statements without communication run as the steps of the ordinary interpreter. Loops and branches around
communication become jumps, so that resuming a rank costs the same however deep it stands in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .diagnostics import TileggError, error
from .interp_eval import MEANING_ERRORS
from .interp_flow import _SPMD, _keep, _located, _statement, compile_block
from .interp_frame import Code, Fetch, Frame, Jumped, Returned, Step, Yielded, assign, fetch, fetch_one, fetch_own
from .interp_io import bind_dims
from .program import (
    Block,
    Carried,
    Const,
    For,
    Function,
    If,
    Jump,
    Op,
    Return,
    Scope,
    Statement,
    Value,
    While,
    Yield,
    walk,
)
from .ranks_flow import Plan, Rank, RankMachine, Request, communicates
from .types import scalar

_MAX_DEPTH = 64
#: The line a function goes on with when it has ended.
_END = -1
#: A line: a step, which may return the line to go on with, or a request, or a call.
_Line = tuple[Step | None, Plan | None, Callable[[Any, Frame], Rank] | None]
_Store = Callable[[Frame, tuple[Any, ...]], None]


class _Label:
    """A line whose number is known once the lines before it have been made."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = _END


@dataclass(frozen=True)
class _Around:
    """Where the signals of a statement lead.

    ``store`` takes the values of a yield, which goes on at ``after``. ``carry``, ``again`` and ``out`` are those of the
    innermost loop around. ``inner`` and ``outer`` hold the place of the block numbers that the way to ``after`` and out
    of the loop restores.
    """

    store: _Store | None = None
    after: _Label | None = None
    carry: _Store | None = None
    again: _Label | None = None
    out: _Label | None = None
    inner: int | None = None
    outer: int | None = None


@dataclass(frozen=True)
class _Ends:
    """The labels of a counted loop, the place of its variable, and that of the block numbers around it, if any."""

    again: _Label
    out: _Label
    var: int
    saved: int | None


class RankCode(Code):
    """A compiled function of a rank program."""

    def __init__(self, function: Function, suspends: frozenset[str]) -> None:
        super().__init__(function, compile_block)
        self.suspends = suspends
        self._lines: list[_Line] | None = None

    def requests(self, s: Op) -> bool:
        """Return whether an operation is a request of its own."""
        return communicates(s)

    def enters(self, s: Op) -> bool:
        """Return whether an operation is a call that is followed into its function."""
        return s.name == "call" and s.attrs.get("callee") in self.suspends

    def start(self, machine: RankMachine, values: list[Any], names: Mapping[str, int]) -> Rank:
        """Return the function as a generator of requests, whose return value is the tuple of results."""
        if self._lines is None:
            self._returned = self.constant(())
            self._lines = _Lines(self, self._returned).whole()
        lines, frame = self._lines, self.frame(values, names)
        outer = machine.deferred, machine.block, machine.blocks
        machine.deferred = []
        at = 0
        while at >= 0:
            step, plan, call = lines[at]
            if step is not None:
                to = step(machine, frame)
                at = at + 1 if to is None else to
                continue
            if plan is not None:
                plan.keep(frame, (yield Request(plan, machine, frame)))
            elif call is not None:
                yield from call(machine, frame)
            at += 1
        # The task is complete only when the conditions it has deferred hold.
        yield from machine.deferred
        machine.deferred, machine.block, machine.blocks = outer
        results: tuple[Any, ...] = frame[self._returned]
        return results


class _Lines:
    """Makes the lines of one function."""

    def __init__(self, code: RankCode, returned: int) -> None:
        self.code, self.returned = code, returned
        self.lines: list[_Line] = []

    def whole(self) -> list[_Line]:
        """Return the lines of the whole function."""
        cost = len(self.code.function.body.statements) + 1
        self._step(lambda machine, frame: _spend(machine, cost))
        self._block(self.code.function.body, _Around())
        self._step(lambda machine, frame: _END)
        return self.lines

    def _step(self, step: Step) -> None:
        self.lines.append((step, None, None))

    def _place(self, label: _Label) -> None:
        label.at = len(self.lines)

    def _next(self) -> _Label:
        """Return the label of the line after the one that is made next."""
        label = _Label()
        label.at = len(self.lines) + 1
        return label

    def _block(self, block: Block, around: _Around) -> None:
        statements = block.statements
        for i, s in enumerate(statements):
            if self._suspends(s):
                self._suspended(s, around)
            else:
                leaves = isinstance(s, Yield) and i + 1 < len(statements) and isinstance(statements[i + 1], Jump)
                self._quiet(s, around, leaves)

    def _suspends(self, s: Statement) -> bool:
        if isinstance(s, Op):
            return self.code.requests(s) or self.code.enters(s)
        if isinstance(s, For | While | If | Scope):
            return any(self._suspends(inner) for inner in walk(Block((s,))) if isinstance(inner, Op))
        return False

    def _suspended(self, s: Statement, around: _Around) -> None:
        match s:
            case Op() if self.code.requests(s):
                self.lines.append((None, Plan(self.code, s), None))
            case Op():
                self.lines.append((None, None, _call(self.code, s)))
            case For():
                self._for(s)
            case While():
                self._while(s, around)
            case If():
                self._if(s, around)
            case Scope():
                self._scope(s, around)
            case _:
                raise AssertionError(f"{type(s).__name__} does not suspend")

    # -- statements without communication ----------------------------------------------------------------

    def _quiet(self, s: Statement, around: _Around, leaves: bool) -> None:
        """``leaves``: the statement is a yield right before a jump, which carries its values."""
        match s:
            case Yield(operands=operands, span=span):
                values = fetch_own(self.code, operands, span)
                if leaves:
                    self._step(_goes(self._next(), None, around.carry, values))
                else:
                    self._step(_goes(around.after, around.inner, around.store, values))
            case Jump(kind=kind):
                self._step(_goes(around.out if kind == "break" else around.again, around.outer))
            case Return(operands=operands, span=span):
                results, place = fetch(self.code, operands, span), self.returned

                def give(machine: Any, frame: Frame) -> int:
                    frame[place] = results(frame)
                    return _END

                self._step(give)
            case _:
                step = _statement(self.code, s)
                self._step(step if isinstance(s, Op) else self._routed(step, around))

    def _routed(self, step: Step, around: _Around) -> Step:
        """Return the step of a loop, branch or scope without communication, its signals turned into jumps."""
        place = self.returned
        after = _goes(around.after, around.inner)
        jumps = {True: _goes(around.out, around.outer), False: _goes(around.again, around.outer)}

        def routed(machine: Any, frame: Frame) -> Any:
            signal = step(machine, frame)
            if signal is None:
                return None
            if isinstance(signal, Returned):
                frame[place] = signal.values
                return _END
            store = around.store if isinstance(signal, Yielded) else around.carry
            if store is not None and signal.values is not None:
                store(frame, signal.values)
            return (jumps[signal.leaves] if isinstance(signal, Jumped) else after)(machine, frame)

        return routed

    # -- control flow ------------------------------------------------------------------------------------

    def _for(self, s: For) -> None:
        code = self.code
        bounds, inits = fetch(code, s.bounds, s.span), fetch_own(code, tuple(c.init for c in s.carried), s.span)
        args, carries, span = assign(code, _args(s.carried)), bool(s.carried), s.span

        def numbers(frame: Frame) -> range:
            start, stop, stride = bounds(frame)
            if not stride:
                raise error("TG032", "the loop's step is zero", span)
            if carries:
                args(frame, inits(frame))
            return range(start, stop, stride)

        again, out = _Label(), _Label()
        saved = code.constant(None) if s.kind == "spmd" else None
        inside = _Around(args, again, args, again, out)
        self._repeat(numbers, s.body, inside, _Ends(again, out, code.slot(s.var.name), saved))
        self._loop_results(s)

    def _repeat(self, numbers: Callable[[Frame], range], body: Block, inside: _Around, ends: _Ends) -> None:
        """A body for each of the numbers; with a place to save them in, they are block numbers."""
        turns, first, cost = self.code.constant(None), _Label(), len(body.statements) + 1
        var, out, saved = ends.var, ends.out, ends.saved

        def begin(machine: Any, frame: Frame) -> int | None:
            wanted = numbers(frame)
            frame[turns] = iter(wanted)
            if saved is not None:
                if machine.descending:
                    frame[turns] = reversed(wanted)
                frame[saved] = machine.block, machine.blocks
                machine.blocks = wanted.stop
            return out.at if turn(machine, frame) is None else None

        def turn(machine: Any, frame: Frame) -> int | None:
            number = next(frame[turns], None)
            if number is None:
                return None
            machine.left -= cost
            if machine.left < 0:
                _spend(machine, 0)
            frame[var] = number
            if saved is not None:
                machine.block = number
            return first.at

        self._step(begin)
        self._place(first)
        self._block(body, inside)
        self._place(ends.again)
        self._step(turn)
        self._place(out)
        if saved is not None:
            self._step(partial(_restore, saved))

    def _loop_results(self, s: For | While) -> None:
        if s.results:
            results = assign(self.code, s.results)
            current = fetch(self.code, _args(s.carried), s.span)
            self._step(lambda machine, frame: results(frame, current(frame)))

    def _while(self, s: While, around: _Around) -> None:
        code = self.code
        inits, args = fetch_own(code, tuple(c.init for c in s.carried), s.span), assign(code, _args(s.carried))
        cond, cost = fetch_one(code, s.cond, s.span), len(s.head.statements) + len(s.body.statements) + 2
        if s.carried:
            self._step(lambda machine, frame: args(frame, inits(frame)))
        again, out = _Label(), _Label()
        self._place(again)
        self._block(s.head, around)

        def test(machine: Any, frame: Frame) -> int | None:
            _spend(machine, cost)
            return None if cond(frame) else out.at

        self._step(test)
        self._block(s.body, _Around(args, again, args, again, out))
        self._step(lambda machine, frame: again.at)
        self._place(out)
        self._loop_results(s)

    def _if(self, s: If, around: _Around) -> None:
        cond, store = fetch_one(self.code, s.cond, s.span), assign(self.code, s.results)
        orelse, after = _Label(), _Label()
        inside = replace(around, store=store, after=after, inner=None)
        cost = max(len(s.then.statements), len(s.orelse.statements)) + 1

        def test(machine: Any, frame: Frame) -> int | None:
            machine.left -= cost
            if machine.left < 0:
                _spend(machine, 0)
            return None if cond(frame) else orelse.at

        self._step(test)
        self._block(s.then, inside)
        if s.orelse.statements:
            self._step(lambda machine, frame: after.at)
        self._place(orelse)
        self._block(s.orelse, inside)
        self._place(after)

    def _scope(self, s: Scope, around: _Around) -> None:
        text = launched(s.header)
        if text is None:
            self._block(s.body, around)
            return
        number = Const(int(text)) if text.isdigit() else Value(text, scalar())
        count, header, span = fetch_one(self.code, number, s.span), s.header, s.span

        def numbers(frame: Frame) -> range:
            blocks = count(frame)
            if not isinstance(blocks, int):
                raise error("TG032", f"cannot evaluate {header[:60]!r}", span)
            return range(blocks)

        saved = self.code.constant(None)
        # A signal leaves the block loop: the numbers of the outermost one left are restored.
        inside = replace(
            around,
            inner=saved if around.inner is None else around.inner,
            outer=saved if around.outer is None else around.outer,
        )
        self._repeat(numbers, s.body, inside, _Ends(_Label(), _Label(), self.code.constant(None), saved))


def launched(header: str) -> str | None:
    """Return how many blocks a scope runs, as its header writes it; ``None`` for a scope that is no launch."""
    found = _SPMD.search(header)
    return None if found is None else found.group(1)


def _args(carried: tuple[Carried, ...]) -> tuple[Value, ...]:
    return tuple(c.arg for c in carried)


def _spend(machine: Any, cost: int) -> None:
    """Take the cost of a block from what the rank may spend; raises TG032 when nothing is left."""
    machine.left -= cost
    if machine.left < 0:
        message = f"rank {machine.rank} stopped after {machine.budget} steps"
        raise error("TG032", message, hint="the loop may be endless; else allow more steps")


def _restore(saved: int, machine: Any, frame: Frame) -> None:
    machine.block, machine.blocks = frame[saved]


def _goes(label: _Label | None, saved: int | None, store: _Store | None = None, values: Fetch | None = None) -> Step:
    """Return a step that stores values, restores block numbers and goes to a line; without one the function ends."""

    def go(machine: Any, frame: Frame) -> int:
        if store is not None and values is not None:
            store(frame, values(frame))
        if saved is not None:
            _restore(saved, machine, frame)
        return _END if label is None else label.at

    return go


def _call(code: Code, s: Op) -> Callable[[Any, Frame], Rank]:
    operands, keep, span = fetch(code, s.operands, s.span), _keep(code, s), s.span
    name, many = str(s.attrs.get("callee")), len(s.results) > 1

    def call(machine: Any, frame: Frame) -> Rank:
        callee = machine.functions[name]
        values = list(operands(frame))[: len(callee.params)]
        if machine.depth >= _MAX_DEPTH:
            raise error("TG032", f"calls nested deeper than {_MAX_DEPTH}", span)
        machine.depth += 1
        results = yield from callee.start(machine, values, argument_dims(callee.function, values, s))
        machine.depth -= 1
        keep(frame, results if many or len(results) != 1 else results[0])

    return call


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
