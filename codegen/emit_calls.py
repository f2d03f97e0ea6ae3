"""Calls between kernels, deferred waits, and kernels that run in several blocks.

A called kernel is a function without ``pto.entry``. It takes what a kernel takes: behind its own parameters the
communication context of every window passed, and the sizes its types name, bound by the tensors passed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import SymbolRefAttr
from xdsl.ir import SSAValue

from ..ir.diagnostics import Span, error
from ..ir.dtypes import INDEX, INT32, INT64
from ..ir.op import OPS
from ..ir.program import (
    Block,
    For,
    Function,
    Op,
    Operand,
    Program,
    Return,
    Scope,
    Statement,
    Value,
    flat_operands,
    walk,
)
from ..ir.types import ScalarType, TensorType
from ..rewrite.markers_flow import Facts
from .emit_comm import context_of
from .emit_memory import linear, tensor_of
from .emit_names import extra_sizes
from .emit_scalars import convert, scalar_operand
from .emit_scopes import INDEX as INDEX_TYPE
from .emit_scopes import Extent, scalar_type
from .emit_state import State, TensorRef
from .pto import func
from .pto.api import ModuleBuilder, ptr_type

#: What a deferred wait calls: the adapter that the runtime puts around the task.
DEFER = "pld_defer_wait"
_SPMD = re.compile(r"\.spmd\(")


@dataclass
class Unit:
    """What the kernels of a module share: the module, the functions by name, and which of them kernels call.

    ``vector``: the module is for the assembler's vector backend.
    """

    module: ModuleBuilder
    functions: Mapping[str, Function] = field(default_factory=dict)
    called: frozenset[str] = frozenset()
    vector: bool = False


def unit_of(module: ModuleBuilder, program: Program, kernels: Sequence[Function]) -> Unit:
    """Return the unit of a program's kernels; raises TG023 for one that the host and a kernel call."""
    inside = {f.name for f in kernels}
    called = frozenset(name for f in kernels for name, _ in _calls(f))
    for f in program.functions:
        for name, span in _calls(f) if f.name not in inside else ():
            if name in called:
                raise error("TG023", f"{name} is launched by {f.name} and called by a kernel", span,
                            reason="a launched kernel cannot be called", hint="make two functions of it")  # fmt: skip
    return Unit(module, {f.name: f for f in program.functions}, called)


def _calls(f: Function) -> Iterator[tuple[str, Span | None]]:
    for s in walk(f.body):
        if isinstance(s, Op) and s.name == "call":
            yield str(s.attrs.get("callee")), s.span


def call(state: State, s: Op) -> None:
    """``self.kernel(...)``: ``func.call`` with contexts and sizes behind the arguments."""
    name = str(s.attrs.get("callee"))
    callee = state.unit.functions.get(name)
    if callee is None or name not in state.unit.called:
        state.fail(f"{name!r} is no kernel of this program", "a kernel calls kernels only")
    values: list[SSAValue] = []
    names: dict[str, Extent] = {}
    contexts: list[SSAValue] = []
    sizes: list[SSAValue] = []
    for p, o in zip(callee.params, s.operands, strict=True):
        t = p.value.type
        if isinstance(t, ScalarType):
            values.append(scalar_operand(state, o, t.dtype))
        elif isinstance(t, TensorType):
            ref = tensor_of(state, o)
            values.append(_pointer(state, ref, p.value, o))
            names.update((d, n) for d, n in zip(t.shape, ref.shape) if isinstance(d, str))
            contexts += [context_of(state, ref)] if t.is_window else []
        else:
            state.fail(f"{name}: {t} cannot be passed to a kernel", "tiles do not leave the kernel that made them")
    for size in extra_sizes(callee):
        if size not in names and size not in state.scalars:
            state.fail(f"{name}: the size {size!r} is not known here", "no tensor that is passed has it")
        sizes.append(state.index(names[size]) if size in names else state.as_index(state.scalars[size]))
    _call(state, name, [*values, *contexts, *sizes])
    _results(state, s, callee)


def _pointer(state: State, ref: TensorRef, param: Value, o: Operand) -> SSAValue:
    """Return the pointer to a tensor that a callee takes for one that lies without gaps."""
    t, given = param.type, o.type  # type: ignore[union-attr]
    assert isinstance(t, TensorType) and isinstance(given, TensorType)
    same = (given.stride, given.layout or "ND") == (t.stride, t.layout or "ND")
    if ref.base is not None and not _dense(ref):
        state.fail(f"a slice of {ref.name!r} cannot be passed to a kernel", "its rows do not follow one another")
    if not same or given.dtype is not t.dtype or len(given.shape) != len(t.shape):
        state.fail(f"{param.name!r} takes {t}, not {given}", "a kernel addresses its parameters by their types")
    if ref.base is None or all(n == 0 for n in ref.offsets):
        return ref.ptr
    at = state.index(linear(state, ref, ref.offsets))
    return state.b.op("pto.addptr", [ref.ptr, at], [ref.ptr.type]).results[0]


def _dense(ref: TensorRef) -> bool:
    step = 1
    for extent, stride in zip(reversed(ref.shape), reversed(ref.strides)):
        if extent == 1:
            continue
        if stride != step or not isinstance(extent, int):
            return False
        step *= extent
    return True


def _results(state: State, s: Op, callee: Function) -> None:
    """A called kernel returns tensors it was given."""
    last = callee.body.statements[-1] if callee.body.statements else None
    given = list(flat_operands(last.operands)) if isinstance(last, Return) else []
    facts = Facts(callee, every=True)
    places = {p.value.name: i for i, p in enumerate(callee.params)}
    for r, o in zip(s.results, given):
        roots = facts.roots(o) if isinstance(o, Value) else frozenset()
        if len(roots) != 1:
            state.fail(f"{callee.name} returns what is no parameter", "results leave a kernel through its tensors")
        state.tensors[r.name] = tensor_of(state, s.operands[places[next(iter(roots))]])


def _call(state: State, name: str, values: list[SSAValue]) -> None:
    state.b.add(func.CallOp.create(operands=values, properties={"callee": SymbolRefAttr(name)}))


def defer_wait(state: State, s: Op) -> None:
    """``pld.system.defer_wait``: a call of the task's adapter with the counter's tensor, its element and the threshold.

    The assembler has no operation for it: the adapter registers the condition with the runtime.
    """
    signal, offsets, expected = s.operands
    ref = tensor_of(state, signal)
    if DEFER in state.unit.functions:
        state.fail(f"a kernel may not be named {DEFER}", "that is the adapter of deferred waits")
    state.unit.module.declare(DEFER, [ptr_type("i32"), INDEX_TYPE, scalar_type(INT32)])
    at = state.index(linear(state, ref, state.offsets(offsets)))
    _call(state, DEFER, [ref.ptr, at, scalar_operand(state, expected, INT32)])


# -- blocks ------------------------------------------------------------------------------------------------


def is_spmd(s: Statement) -> bool:
    """Return whether a statement runs once in every block of a launch."""
    return s.kind == "spmd" if isinstance(s, For) else isinstance(s, Scope) and _SPMD.search(s.header) is not None


def check_tasks(state: State, body: Block) -> None:
    """Raise TG023 unless a kernel with spmd blocks, or with deferred waits, is just that.

    The whole kernel runs in every block, and the number of blocks is given where it is launched. A deferred wait holds
    up the completion of the whole kernel.
    """
    tasks = [s for s in walk(body) if _is_task(s)]
    if not tasks:
        return
    if len(tasks) > 1 or not any(s is tasks[0] for s in body):
        state.span = getattr(tasks[-1], "span", None)
        state.fail("a kernel is one spmd block, or one waiter", "its cores do not meet between two",
                   hint="make a kernel of each")  # fmt: skip
    for s in _outside(body):
        decl = OPS.get(s.name)
        if decl is None or decl.effect == "write":
            state.span = s.span
            state.fail(f"{s.name} stands outside the {_what(tasks[0])}", "that is a task of its own",
                       hint="put it into the block, for one core only: if pl.tile.get_block_idx() == 0")  # fmt: skip


def _is_task(s: Statement) -> bool:
    return is_spmd(s) or (isinstance(s, Scope) and any(_defers(x) for x in walk(s.body)))


def _defers(s: Statement) -> bool:
    return isinstance(s, Op) and s.name == "pld.system.defer_wait"


def _what(s: Statement) -> str:
    return "spmd block" if is_spmd(s) else "waiter"


def _outside(block: Block) -> Iterator[Op]:
    for s in block:
        if not _is_task(s):
            yield from (x for x in walk(Block((s,))) if isinstance(x, Op))


def block_number(state: State, var: Value) -> None:
    """The variable of ``for i in pl.spmd(n)`` is the block's number."""
    assert isinstance(var.type, ScalarType)
    value = state.b.op("pto.get_block_idx", (), [scalar_type(INT64)]).results[0]
    state.natural.add(value)
    made = convert(state, value, INT64, var.type.dtype)
    if var.type.dtype is INDEX:
        state.natural.add(made)
    state.scalars[var.name] = state.name(made, var.name)


HANDLERS = {"call": call, "pld.system.defer_wait": defer_wait}
