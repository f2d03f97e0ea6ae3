"""SIMT bodies executed over all threads of a launch at once: one NumPy array per value, one element per thread.

Structured control flow runs under a mask of active threads: both sides of a branch for those that take them, a loop
until no thread is left in it. Threads run in step, statement by statement, which is one of the interleavings the
machine may choose; barriers check that every thread comes to them (TG059).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from . import lanes
from . import lazy_numpy as np
from .diagnostics import TileggError, error
from .dtypes import INDEX, UINT64
from .interp_eval import MEANING_ERRORS
from .lanes import Arr
from .op import OPS, OpDecl
from .pointers import Pointer
from .program import Block, Carried, Const, For, Function, If, Jump, Op, Operand, Return, Scope, Statement, Value, While
from .program import Yield as YieldStatement
from .simt_threads import MAX_THREADS, LaneEnv, SimtState, Threads, Triple
from .types import PtrType, ScalarType, TupleType, Type

SECTION = re.compile(r"^pl\.section_simt\((.*)\)$", re.S)
MAX_STEPS = 1_000_000
_MAX_DEPTH = 32


def grid_of(sizes: Sequence[Any]) -> Threads:
    """Return the threads of ``[x, y, z]``; raises TG032 when there are none or too many."""
    dims: Triple = (*(int(n) for n in sizes), 1, 1, 1)[:3]  # type: ignore[assignment]
    count = dims[0] * dims[1] * dims[2]
    if min(dims) < 1 or count > MAX_THREADS or len(sizes) > 3:
        hint = f"three positive sizes, {MAX_THREADS} threads at most"
        raise error("TG032", f"there cannot be {' x '.join(map(str, dims))} threads", hint=hint)
    return Threads(dims)


def launch(
    functions: Mapping[str, Function],
    callee: str,
    grid: Sequence[Any],
    arguments: Sequence[Any],
    state: SimtState | None = None,
    max_steps: int = MAX_STEPS,
) -> tuple[Any, ...]:
    """Run a SIMT function on a grid of threads; return its results, one array of a value per thread each.

    ``arguments``: :class:`Pointer` values, storage arrays (taken as memory), or numbers every thread gets. Memory is
    changed in place. Raises what the operations raise, TG030 for arguments that do not fit, TG032 for an unknown
    function or after ``max_steps`` statements.
    """
    f = functions.get(callee)
    if f is None:
        raise error("TG032", f"the program has no function {callee}")
    threads = grid_of(grid)
    run = Run(functions, threads, SimtState() if state is None else state, max_steps)
    with np.errstate(all="ignore"):
        return run.function(f, [argument(p.value.type, a, p.value.name) for p, a in zip(f.params, _due(f, arguments))])


def _due(f: Function, arguments: Sequence[Any]) -> Sequence[Any]:
    given = [a for a in arguments if a is not None]
    if len(given) != len(f.params):
        raise error("TG030", f"{f.name} takes {len(f.params)} arguments, got {len(given)}")
    return given


def argument(t: Type, given: Any, name: str) -> Any:
    """Return an argument as a pointer or a carrier; raises TG030."""
    if isinstance(t, PtrType):
        if isinstance(given, Pointer):
            return given
        if isinstance(given, np.ndarray) and given.dtype == t.dtype.storage:
            return Pointer(given.reshape(-1), t.dtype)
        raise error("TG030", f"{name} should be a {t}")
    if isinstance(t, ScalarType):
        return lanes.settle(lanes.carrier(given, t.dtype), t.dtype)
    raise error("TG030", f"{name}: a SIMT function takes pointers and scalars, not a {t}")


class _Done:
    """Threads that left a loop or returned, while others went on."""

    def __init__(self, count: int) -> None:
        self.broken = np.zeros(count, np.bool_)
        self.skipped = np.zeros(count, np.bool_)
        self.pending: list[tuple[Arr, tuple[Any, ...]]] = []


class Run:
    """One launch: the threads, what they share, and the statements left."""

    def __init__(self, functions: Mapping[str, Function], threads: Threads, state: SimtState, max_steps: int) -> None:
        self.functions, self.threads, self.state = functions, threads, state
        self.left = max_steps
        self.depth = 0

    def function(self, f: Function, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Run a function with every thread active."""
        return self._invoke(f, arguments, np.ones(self.threads.count, np.bool_))

    def _invoke(self, f: Function, arguments: Sequence[Any], active: Arr) -> tuple[Any, ...]:
        if self.depth >= _MAX_DEPTH:
            raise error("TG032", f"calls nested deeper than {_MAX_DEPTH}", f.span)
        self.depth += 1
        body = Body(self, {p.value.name: a for p, a in zip(f.params, arguments)})
        body.block(f.body, active)
        self.depth -= 1
        return body.returned

    def section(self, block: Block, names: Mapping[str, Any]) -> None:
        """Run a SIMT section with values of the function around it."""
        with np.errstate(all="ignore"):
            Body(self, dict(names)).block(block, np.ones(self.threads.count, np.bool_))


class Body:
    """The statements of one function or section, with its values by name."""

    def __init__(self, run: Run, values: dict[str, Any]) -> None:
        self.run, self.values = run, values
        self.loops: list[_Done] = []
        self.returned: tuple[Any, ...] = ()
        self.gone = np.zeros(run.threads.count, np.bool_)
        self.yielded: list[tuple[Any, ...]] = []

    # -- operands ----------------------------------------------------------------------------------------

    def read(self, o: Operand) -> Any:
        match o:
            case Value(name=name):
                if name not in self.values:
                    raise error("TG032", f"{name} has no value here", reason="tiles and tensors stay outside of SIMT")
                return self.values[name]
            case Const(value=value, dtype=dtype):
                return lanes.settle(lanes.carrier(value, dtype), dtype)
            case tuple():
                return tuple(self.read(i) for i in o)
            case None:
                return None
        raise error("TG032", f"cannot evaluate {getattr(o, 'text', o)!r}")

    def wide(self, o: Operand) -> Any:
        """Return an operand with one element per thread."""
        found = self.read(o)
        if isinstance(found, np.ndarray | np.generic):
            packed = found.ndim and isinstance(o, Value) and getattr(o.type, "dtype", INDEX).packed_of
            tail = found.shape[-1:] if packed else ()
            return np.broadcast_to(found, (self.run.threads.count, *tail))
        return found

    # -- statements --------------------------------------------------------------------------------------

    def block(self, block: Block, active: Arr) -> Arr:
        """Run statements for the active threads; return those that come to the end."""
        for s, following in zip(block.statements, (*block.statements[1:], None)):
            if isinstance(s, YieldStatement) and isinstance(following, Jump):
                # Carried values for the next round, before a jump out of this one.
                self.loops[-1].pending.append((active, tuple(self.wide(o) for o in s.operands)))
                continue
            active = self.statement(s, active)
            if not active.any():
                break
        return active

    def statement(self, s: Statement, active: Arr) -> Arr:
        self.run.left -= 1
        self.run.state.clock += 1
        if self.run.left < 0:
            raise error("TG032", "the SIMT body ran too many statements", s.span, hint="the loop may be endless")
        match s:
            case Op():
                self.op(s, active)
            case If():
                return self.branch(s, active)
            case For():
                return self.counted(s, active)
            case While():
                return self.repeated(s, active)
            case YieldStatement(operands=operands):
                self.yielded.append(tuple(self.wide(o) for o in operands))
            case Return(operands=operands):
                self._return(tuple(self.wide(o) for o in operands), active)
                return np.zeros_like(active)
            case Jump(kind=kind):
                done = self.loops[-1]
                if kind == "break":
                    done.broken |= active
                else:
                    done.skipped |= active
                return np.zeros_like(active)
            case Scope(body=body):
                return self.block(body, active)
            case _:
                raise error("TG032", "cannot evaluate the statement in a SIMT body", s.span)
        return active

    def _return(self, values: tuple[Any, ...], active: Arr) -> None:
        self.gone |= active
        if values:
            self.returned = values if not self.returned else _merge(active, values, self.returned)

    # -- operations --------------------------------------------------------------------------------------

    def op(self, s: Op, active: Arr) -> None:
        if s.name == "call":
            self.call(s, active)
            return
        decl = OPS.get(s.name)
        if decl is None or decl.scalar is None:
            raise error("TG056", f"{s.name} cannot run in a SIMT body", s.span)
        try:
            self.store(s, self.evaluate(decl, s, active))
        except TileggError as problem:
            first = problem.diagnostics[0]
            if first.span is not None or s.span is None:
                raise
            raise error(first.code, first.message, s.span, reason=first.reason, hint=first.hint) from None
        except MEANING_ERRORS as problem:
            raise error("TG032", f"{s.name} cannot be evaluated", s.span, reason=str(problem)[:200]) from problem

    def evaluate(self, decl: OpDecl, s: Op, active: Arr) -> Any:
        types = tuple(getattr(o, "type", None) for o in s.operands)
        operands = self.alike([self.wide(o) for o in s.operands], types)
        result = s.results[0].type if s.results else None
        fixed: dict[str, Any] = {p.name: s.attrs.get(p.name, p.default) for p in decl.attr_params}
        if decl.wants_env:
            fixed["env"] = LaneEnv(types, result, self.run.threads, active, self.run.state)
        named = dict(zip((p.name for p in decl.operand_params), operands))
        found = decl.meaning(**named, **fixed)
        if isinstance(result, ScalarType):
            return lanes.settle(found, result.dtype)
        return found

    def alike(self, operands: list[Any], types: tuple[Any, ...]) -> list[Any]:
        """Bring integers into one carrier, where one of them is unsigned and 64 bits wide."""
        if not any(isinstance(t, ScalarType) and t.dtype is UINT64 for t in types):
            return operands
        return [
            v.astype(np.uint64) if isinstance(v, np.ndarray) and v.dtype.kind == "i" else v for v in operands
        ]

    def store(self, s: Op, found: Any) -> None:
        if not s.results:
            return
        values = found if isinstance(s.results[0].type, TupleType) or len(s.results) > 1 else (found,)
        for r, v in zip(s.results, values):
            self.values[r.name] = v

    def call(self, s: Op, active: Arr) -> None:
        f = self.run.functions.get(str(s.attrs.get("callee")))
        if f is None:
            raise error("TG032", f"the program has no function {s.attrs.get('callee')}", s.span)
        results = self.run._invoke(f, [self.wide(o) for o in s.operands[: len(f.params)]], active)
        for r, v in zip(s.results, results):
            self.values[r.name] = v

    # -- control flow ------------------------------------------------------------------------------------

    def truth(self, o: Operand) -> Arr:
        found: Arr = np.broadcast_to(np.asarray(self.wide(o)), (self.run.threads.count,)).astype(np.bool_)
        return found

    def branch(self, s: If, active: Arr) -> Arr:
        holds = self.truth(s.cond)
        ends, results = [], []
        for block, mask in ((s.then, active & holds), (s.orelse, active & ~holds)):
            before = len(self.yielded)
            ends.append(self.block(block, mask) if mask.any() else mask)
            results.append(self.yielded.pop() if len(self.yielded) > before else ())
        for i, r in enumerate(s.results):
            a, b = (part[i] if part else None for part in results)
            self.values[r.name] = b if a is None else a if b is None else lanes.choose(holds, a, b)
        left: Arr = ends[0] | ends[1]
        return left

    def _loop(self, carried: tuple[Carried, ...], body: Block, active: Arr) -> Arr:
        """Run a loop's body once; update carried values of the threads that went through; return who goes on."""
        done = self.loops[-1]
        done.skipped[:] = False
        before = len(self.yielded)
        through = self.block(body, active)
        news = [(through, self.yielded.pop())] if len(self.yielded) > before else []
        for mask, values in [*done.pending, *news]:
            for c, new in zip(carried, values):
                self.values[c.arg.name] = lanes.choose(mask, new, self.values[c.arg.name])
        done.pending.clear()
        return (through | done.skipped) & ~done.broken

    def counted(self, s: For, active: Arr) -> Arr:
        start, stop, step = (np.asarray(self.wide(o), np.int64) for o in s.bounds)
        if not np.asarray(step)[active if np.ndim(step) else ...].all():
            raise error("TG032", "the loop's step is zero", s.span)
        self._enter(s.carried)
        done = _Done(self.run.threads.count)
        self.loops.append(done)
        i, running = np.broadcast_to(start, active.shape), active
        while True:
            inside = running & np.where(step > 0, i < stop, i > stop)
            if not inside.any():
                break
            self.run.left -= 1
            if self.run.left < 0:
                raise error("TG032", "the SIMT body ran too many statements", s.span)
            self.values[s.var.name] = i
            running = self._loop(s.carried, s.body, inside)
            i = i + step
        self.loops.pop()
        self._leave(s.carried, s.results)
        return active & ~self.gone

    def repeated(self, s: While, active: Arr) -> Arr:
        self._enter(s.carried)
        done = _Done(self.run.threads.count)
        self.loops.append(done)
        running = active
        while running.any():
            self.block(s.head, running)
            running = running & self.truth(s.cond)
            if running.any():
                running = self._loop(s.carried, s.body, running)
            self.run.left -= 1
            if self.run.left < 0:
                raise error("TG032", "the SIMT body ran too many statements", s.span, hint="the loop may be endless")
        self.loops.pop()
        self._leave(s.carried, s.results)
        return active & ~self.gone

    def _enter(self, carried: tuple[Carried, ...]) -> None:
        for c, init in zip(carried, [self.wide(c.init) for c in carried]):
            self.values[c.arg.name] = init

    def _leave(self, carried: tuple[Carried, ...], results: tuple[Value, ...]) -> None:
        for c, r in zip(carried, results):
            self.values[r.name] = self.values[c.arg.name]


def _merge(active: Arr, new: tuple[Any, ...], old: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(lanes.choose(active, a, b) for a, b in zip(new, old))


def section_grid(header: str) -> list[str] | None:
    """Return the size texts of a ``pl.section_simt(x, y, z)`` header, ``None`` for any other scope."""
    found = SECTION.match(header)
    return None if found is None else [part.strip() for part in found.group(1).split(",") if part.strip()]


