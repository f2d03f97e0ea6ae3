"""Statements compiled to steps over a frame; structured control flow run sequentially.

A step returns ``None`` to go on, or a signal for the enclosing statements: :class:`Yielded`,
:class:`Jumped` or :class:`Returned`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from .convert import decode
from .diagnostics import Span, TileggError, error
from .dtypes import INDEX, DType
from .interp_eval import MEANING_ERRORS, Evaluator, evaluator, scalar_evaluator
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
    fetch_own,
)
from .interp_io import bind_dims
from .interp_simt import outside_simt, simt_launch, simt_section
from .op import OPS
from .program import (
    Block,
    Carried,
    Const,
    For,
    If,
    Jump,
    Op,
    Raw,
    Return,
    Scope,
    Statement,
    Value,
    While,
    Yield,
)
from .simt import section_grid
from .tilearray import TileArray
from .types import ScalarType, TileType, TupleType, Type, scalar

_MAX_DEPTH = 64
_SPMD = re.compile(r"\.spmd\(\s*(?:core_num\s*=\s*)?(\w+)")
#: Undeclared operations without a meaning of their own in a sequential run: they reserve memory or order it.
_INERT = frozenset(
    {"tile.alloc", "tensor.alloc", "system.sync_set", "system.sync_wait", "system.syncall", "system.set_ffts",
     "system.cacheinvalid"}
)  # fmt: skip
_QUERIES = {"get_block_idx": "block", "get_block_num": "blocks", "get_subblock_idx": "subblock"}
_RANK_QUERIES = {"pld.system.rank": "rank", "pld.system.nranks": "ranks", "pld.system.world_size": "ranks"}


def compile_block(code: Code, block: Block) -> Step:
    """Return the block as one step, which passes on the first signal of a statement."""
    steps = _steps(code, block.statements)
    cost = len(steps) + 1

    def run(machine: Machine, frame: Frame) -> Any:
        machine.left -= cost
        if machine.left < 0:
            message = f"stopped after {machine.budget} steps"
            raise error("TG032", message, hint="the loop may be endless; else allow more steps")
        for step in steps:
            signal = step(machine, frame)
            if signal is not None:
                return signal
        return None

    return run


def _steps(code: Code, statements: tuple[Statement, ...]) -> list[Step]:
    steps: list[Step] = []
    for s in statements:
        last = statements[len(steps) - 1] if steps else None
        if isinstance(s, Jump) and isinstance(last, Yield):
            steps[-1:] = [_jump(code, s, last), _jump(code, s, None)]
        else:
            steps.append(_statement(code, s))
    return steps


def _jump(code: Code, s: Jump, yielded: Yield | None) -> Step:
    leaves = s.kind == "break"
    if yielded is None:
        signal = Jumped(leaves)
        return lambda machine, frame: signal
    values = fetch_own(code, yielded.operands, yielded.span)
    return lambda machine, frame: Jumped(leaves, values(frame))


def _statement(code: Code, s: Statement) -> Step:
    match s:
        case Op():
            return _op(code, s)
        case For():
            return _for(code, s)
        case While():
            return _while(code, s)
        case If():
            return _if(code, s)
        case Scope():
            return _scope(code, s)
        case Yield(operands=operands, span=span):
            values = fetch_own(code, operands, span)
            return lambda machine, frame: Yielded(values(frame))
        case Return(operands=operands, span=span):
            results = fetch(code, operands, span)
            return lambda machine, frame: Returned(results(frame))
        case Jump():
            return _jump(code, s, None)
        case Raw(text=text, span=span):
            return _refuse(f"cannot evaluate the statement {text[:60]!r}", span)


def _refuse(message: str, span: Span | None) -> Step:
    def step(machine: Machine, frame: Frame) -> Any:
        raise error("TG032", message, span)

    return step


def _located(problem: TileggError, span: Span | None) -> TileggError:
    """Give the first diagnostic the position of the statement, if it has none."""
    first = problem.diagnostics[0]
    if first.span is not None or span is None:
        return problem
    again = error(first.code, first.message, span, reason=first.reason, hint=first.hint)
    return TileggError(*again.diagnostics, *problem.diagnostics[1:])


def _op(code: Code, s: Op) -> Step:
    short = s.name.rsplit(".", 1)[-1]
    if short in _QUERIES and not s.operands:
        return _query(code, s, _QUERIES[short])
    if s.name in _RANK_QUERIES:
        return _query(code, s, _RANK_QUERIES[s.name])
    if s.name == "call":
        return _call(code, s, str(s.attrs.get("callee")))
    if s.name == "tuple.get":
        return _project(code, s)
    if s.name == "pto.simt_launch":
        return simt_launch(code, s)
    decl = OPS.get(s.name)
    if decl is not None and decl.scalar is not None and decl.scalar.domain == "simt":
        return outside_simt(s)
    if decl is None:
        if s.name.split(".", 1)[-1] in _INERT:
            keep = _keep(code, s)
            return lambda machine, frame: keep(frame, None)
        return _refuse(f"{s.name} has no known meaning", s.span)
    if len(s.operands) != len(decl.operand_params):
        return _refuse(f"{s.name} has {len(s.operands)} operands, {len(decl.operand_params)} are due", s.span)
    span, operands = s.span, fetch(code, s.operands, s.span)
    types = tuple(getattr(o, "type", None) for o in s.operands)
    result = _result_type(s)
    if isinstance(result, ScalarType) and not decl.raw and all(isinstance(t, ScalarType) for t in types):
        return _scalar_step(code, s, types, result)
    apply: Evaluator | None = None
    keep = _keep(code, s)
    dynamic = result is not None and _is_dynamic(result)
    slots = code.slots
    watched = types[0].dtype if s.name == "tile.assume" and types[0] is not None else None

    def step(machine: Machine, frame: Frame) -> None:
        nonlocal apply
        try:
            if apply is None:
                apply = evaluator(decl, types, s.attrs, result)
            if watched and machine.watch and not _holds(operands(frame), watched):
                machine.broken = True
            if dynamic:
                keep(frame, apply(operands(frame), FrameNames(slots, frame)))
            else:
                keep(frame, apply(operands(frame)))
            if machine.probe is not None:
                machine.probe(s, lambda v: frame[slots[v.name]])
        except TileggError as problem:
            raise _located(problem, span) from None

    return step


def _scalar_step(code: Code, s: Op, types: tuple[Any, ...], result: ScalarType) -> Step:
    """An operation of scalars that gives a scalar: the most frequent kind, and done in the fewest steps."""
    operands, place, span = fetch(code, s.operands, s.span), code.slot(s.results[0].name), s.span
    apply: Evaluator | None = None

    def step(machine: Machine, frame: Frame) -> None:
        nonlocal apply
        try:
            if apply is None:
                apply = scalar_evaluator(OPS[s.name], types, s.attrs, result)
            frame[place] = apply(*operands(frame))
        except TileggError as problem:
            raise _located(problem, span) from None

    return step


def _holds(operands: tuple[Any, ...], dtype: DType) -> bool:
    """Return whether every valid element is a number in the range an ``assume`` promises."""
    tile, low, high = operands
    values = decode(tile.region if isinstance(tile, TileArray) else tile, dtype)
    return bool(np.all((values >= low) & (values <= high)))


def _result_type(s: Op) -> Type | None:
    if not s.results:
        return None
    return s.results[0].type if len(s.results) == 1 else TupleType(tuple(v.type for v in s.results))


def _is_dynamic(t: Type) -> bool:
    if isinstance(t, TupleType):
        return any(_is_dynamic(item) for item in t.items)
    return isinstance(t, TileType) and not all(isinstance(d, int) for d in t.shape + t.valid_shape)


def _keep(code: Code, s: Op) -> Callable[[Frame, Any], None]:
    if not s.results:
        return lambda frame, value: None
    if len(s.results) == 1:
        return _store_at(code.slot(s.results[0].name))
    return assign(code, s.results)


def _store_at(place: int) -> Callable[[Frame, Any], None]:
    def store(frame: Frame, value: Any) -> None:
        frame[place] = value

    return store


def _query(code: Code, s: Op, what: str) -> Step:
    keep = _keep(code, s)
    return lambda machine, frame: keep(frame, getattr(machine, what))


def _project(code: Code, s: Op) -> Step:
    item, at, keep = fetch_one(code, s.operands[0], s.span), s.attrs.get("index"), _keep(code, s)
    span = s.span

    def step(machine: Machine, frame: Frame) -> None:
        values = item(frame)
        if not isinstance(values, tuple) or not isinstance(at, int) or not 0 <= at < len(values):
            raise error("TG032", f"the value has no item {at}", span)
        keep(frame, values[at])

    return step


def _call(code: Code, s: Op, name: str) -> Step:
    """A call of a function of the program; operands past its parameters are placement keywords."""
    operands, keep, span = fetch(code, s.operands, s.span), _keep(code, s), s.span
    many = len(s.results) > 1

    def step(machine: Machine, frame: Frame) -> None:
        callee = machine.functions.get(name)
        if callee is None:
            raise error("TG032", f"the program has no function {name}", span)
        values = list(operands(frame))[: len(callee.params)]
        if len(values) < len(callee.params):
            raise error("TG032", f"{name} takes {len(callee.params)} arguments, got {len(values)}", span)
        if machine.depth >= _MAX_DEPTH:
            raise error("TG032", f"calls nested deeper than {_MAX_DEPTH}", span)
        names: dict[str, int] = {}
        try:
            for p, value in zip(callee.function.params, values):
                bind_dims(p.value.type, value, names, p.value.name)
        except TileggError as problem:
            raise _located(problem, span) from None
        except MEANING_ERRORS as problem:
            raise error("TG032", f"the arguments do not fit {name}", span, reason=str(problem)) from problem
        machine.depth += 1
        results = callee.invoke(machine, values, names)
        machine.depth -= 1
        keep(frame, results if many or len(results) != 1 else results[0])

    return step


def _for(code: Code, s: For) -> Step:
    bounds, inits = fetch(code, s.bounds, s.span), fetch_own(code, tuple(c.init for c in s.carried), s.span)
    var, body = code.slot(s.var.name), compile_block(code, s.body)
    args, results = assign(code, _args(s.carried)), assign(code, s.results)
    current = fetch(code, _args(s.carried), s.span)
    spmd, span = s.kind == "spmd", s.span
    has_results = bool(s.results)

    def step(machine: Machine, frame: Frame) -> Any:
        start, stop, stride = bounds(frame)
        if not stride:
            raise error("TG032", "the loop's step is zero", span)
        args(frame, inits(frame))
        outer = machine.block, machine.blocks
        for i in range(start, stop, stride):
            frame[var] = i
            if spmd:
                machine.block, machine.blocks = i, stop
            signal = body(machine, frame)
            if signal is None:
                continue
            if isinstance(signal, Returned):
                machine.block, machine.blocks = outer
                return signal
            if signal.values is not None:
                args(frame, signal.values)
            if isinstance(signal, Jumped) and signal.leaves:
                break
        machine.block, machine.blocks = outer
        if has_results:
            results(frame, current(frame))
        return None

    return step


def _args(carried: tuple[Carried, ...]) -> tuple[Value, ...]:
    return tuple(c.arg for c in carried)


def _while(code: Code, s: While) -> Step:
    inits = fetch_own(code, tuple(c.init for c in s.carried), s.span)
    head, body = compile_block(code, s.head), compile_block(code, s.body)
    cond = fetch_one(code, s.cond, s.span)
    args, results = assign(code, _args(s.carried)), assign(code, s.results)
    current = fetch(code, _args(s.carried), s.span)
    has_results = bool(s.results)

    def step(machine: Machine, frame: Frame) -> Any:
        args(frame, inits(frame))
        while True:
            signal = head(machine, frame)
            if signal is not None:
                return signal
            if not cond(frame):
                break
            signal = body(machine, frame)
            if signal is None:
                continue
            if isinstance(signal, Returned):
                return signal
            if signal.values is not None:
                args(frame, signal.values)
            if isinstance(signal, Jumped) and signal.leaves:
                break
        if has_results:
            results(frame, current(frame))
        return None

    return step


def _if(code: Code, s: If) -> Step:
    cond, results = fetch_one(code, s.cond, s.span), assign(code, s.results)
    then, orelse = compile_block(code, s.then), compile_block(code, s.orelse)

    def step(machine: Machine, frame: Frame) -> Any:
        signal = (then if cond(frame) else orelse)(machine, frame)
        if isinstance(signal, Yielded):
            results(frame, signal.values)
            return None
        return signal

    return step


def _scope(code: Code, s: Scope) -> Step:
    if section_grid(s.header) is not None:
        return simt_section(code, s)
    body = compile_block(code, s.body)
    found = _SPMD.search(s.header)
    if found is None:
        return body
    text = found.group(1)
    number = Const(int(text), INDEX) if text.isdigit() else Value(text, scalar(INDEX))
    count, span = fetch_one(code, number, s.span), s.span

    def step(machine: Machine, frame: Frame) -> Any:
        blocks = count(frame)
        if not isinstance(blocks, int):
            raise error("TG032", f"cannot evaluate {s.header[:60]!r}", span)
        outer = machine.block, machine.blocks
        signal = None
        for i in range(blocks):
            machine.block, machine.blocks = i, blocks
            signal = body(machine, frame)
            if signal is not None:
                break
        machine.block, machine.blocks = outer
        return signal

    return step

