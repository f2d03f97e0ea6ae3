"""The body of one kernel: parameters, statements in order, returns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xdsl.ir import Attribute

from ..ir.diagnostics import error
from ..ir.op import OPS
from ..ir.program import For, Function, If, Jump, Op, Raw, Return, Scope, Statement, Value, While, Yield, flat_operands
from ..ir.simt import section_grid
from ..ir.text.resolve import resolve
from ..ir.types import PtrType, ScalarType, TensorType, TileType
from ..rewrite.storage import changed
from ..rules.target import Target
from . import (
    emit_calls,
    emit_comm,
    emit_gather,
    emit_masks,
    emit_memory,
    emit_mx,
    emit_scalars,
    emit_special,
    emit_threads,
    emit_tiles,
    emit_views,
)
from .emit_calls import Unit
from .emit_drains import drains_of
from .emit_flow import Flow
from .emit_forms import Plan
from .emit_names import Names
from .emit_scopes import INDEX, scalar_type
from .emit_state import State
from .mlir_values import mlir_type, parameters
from .pto.api import FunctionBuilder, ptr_type

Handler = Callable[[State, Op], None]

HANDLERS: dict[str, Handler] = {
    "tile.load": emit_memory.load,
    "tile.store": emit_memory.store,
    "tile.read": emit_memory.tile_read,
    "tile.write": emit_memory.tile_write,
    "tensor.read": emit_memory.read,
    "tensor.write": emit_memory.write,
    "tensor.slice": emit_memory.slice_tensor,
    "tensor.reshape": emit_memory.reshape_tensor,
    "tensor.view": emit_memory.reshape_tensor,
    "tensor.dim": emit_memory.tensor_dim,
    **dict.fromkeys(("tile.get_block_idx", "tile.get_block_num", "tile.get_subblock_idx"), emit_memory.block_query),
    "tile.slice": emit_views.slice_tile,
    "tile.reshape": emit_views.reshape,
    "tile.reinterpret_view": emit_views.reinterpret,
    "tile.set_validshape": emit_views.set_validshape,
    "tile.assume": emit_views.rename,
    **dict.fromkeys(emit_scalars.HANDLERS, emit_scalars.emit_scalar),
    **emit_tiles.HANDLERS,
    **emit_special.HANDLERS,
    **emit_masks.HANDLERS,
    **emit_gather.HANDLERS,
    **emit_mx.HANDLERS,
    **emit_comm.HANDLERS,
    **emit_calls.HANDLERS,
}


def context_names(function: Function, extra: Iterable[str]) -> dict[str, str]:
    """Return the arguments that hold the communication contexts: one for each window parameter, by its name."""
    taken = {p.value.name for p in function.params}.union(extra)
    found: dict[str, str] = {}
    for p in function.params:
        if isinstance(p.value.type, TensorType) and p.value.type.is_window:
            name = f"{p.value.name}_ctx"
            while name in taken:
                name += "_"
            taken.add(name)
            found[p.value.name] = name
    return found


class Body:
    """Emits one function into a module."""

    def __init__(self, unit: Unit, function: Function, target: Target) -> None:
        self.function = function
        self.params = parameters(unit.functions.values())
        names = Names(function)
        for window, extent in names.unbound():
            what = f"the valid extent {extent!r} of {window.name!r} has no value at run time"
            hint = "pass it as a scalar parameter"
            raise error("TG023", what, function.span, reason="it stands in types only", hint=hint)
        self.extra = names.extra_sizes()
        self.contexts = context_names(function, self.extra)
        self.drains = drains_of(function)
        plan = Plan(function)
        self.builder = self._declare(unit)
        self.state = State(self.builder, plan, target, names.counts)
        self.state.unit = unit
        self.state.changed, self.state.body = changed(function), function.body
        self.state.loaded_as = emit_mx.loads_as(function.body)
        self.flow = Flow(self.state, self.statements)

    def _declare(self, unit: Unit) -> FunctionBuilder:
        args: list[tuple[str, Attribute]] = []
        for p in self.function.params:
            args.append((p.value.name, self._argument_type(p.value)))
        args += [(name, ptr_type("i64")) for name in self.contexts.values()]
        args += [(name, INDEX) for name in self.extra]
        entry = self.function.name not in unit.called
        return unit.module.function(self.function.name, args, entry=entry, span=self.function.span)

    def _argument_type(self, value: Value) -> Attribute:
        t = value.type
        if isinstance(t, TensorType | ScalarType):
            if not t.dtype.pto or (isinstance(t, TensorType) and t.dtype.kind == "index"):
                raise error("TG023", f"the assembler has no {t.dtype.name} (parameter {value.name!r})",
                            self.function.span)  # fmt: skip
            return ptr_type(t.dtype.pto) if isinstance(t, TensorType) else scalar_type(t.dtype)
        made = mlir_type(t) if isinstance(t, PtrType) else None
        if made is not None:
            return made
        tile = isinstance(t, TileType)
        raise error(
            "TG023", f"parameter {value.name!r} of type {t} cannot be passed to a kernel", self.function.span,
            reason="local memory does not outlive a kernel" if tile else "kernels take tensors, pointers and scalars",
            hint="pass a pl.Tensor, and load the tile from it (pl.load)" if tile else "pass a tensor or scalars",
        )  # fmt: skip

    def run(self) -> None:
        state = self.state
        state.span = self.function.span
        args = self.builder.args
        for name in self.extra:
            state.scalars[name] = args[name]
            state.natural.add(args[name])
        for p in self.function.params:
            if isinstance(p.value.type, ScalarType):
                state.scalars[p.value.name] = args[p.value.name]
            elif isinstance(p.value.type, PtrType):
                state.pointers[p.value.name] = args[p.value.name]
        for p in self.function.params:
            if isinstance(p.value.type, TensorType):
                ctx = self.contexts.get(p.value.name)
                emit_memory.parameter(state, p.value, args[p.value.name], None if ctx is None else args[ctx])
        emit_calls.check_tasks(state, self.function.body)
        self.statements(self.function.body.statements)
        state.b.at(self.function.span)
        self.builder.finish()

    def statements(self, statements: Sequence[Statement]) -> None:
        """Emit statements into the current block."""
        state = self.state
        for s in statements:
            state.span = s.span
            state.b.at(s.span)
            if id(s) in self.drains:
                state.b.barrier()
            match s:
                case Op():
                    self._op(s)
                case For(kind="spmd"):
                    self._blocks(s)
                case For():
                    self.flow.loop(s)
                case While():
                    self.flow.while_loop(s)
                case If():
                    self.flow.branch(s)
                case Scope() if section_grid(s.header) is not None:
                    from .emit_around import emit_section

                    emit_section(state, s, self.function, self.params)
                case Scope():
                    self.statements(s.body.statements)
                case Return():
                    self._returned(s)
                case Yield():
                    pass
                case Jump():
                    state.fail(f"{s.kind} cannot be written as assembly", "scf loops have no early exit",
                               "put the condition into a while loop, or around the rest of the body")  # fmt: skip
                case Raw():
                    state.fail("a statement kept verbatim cannot be written as assembly", s.text.strip()[:80])

    def _blocks(self, s: For) -> None:
        """``for i in pl.spmd(n)``: the body once, in every block of the launch."""
        if s.carried or [getattr(b, "value", None) for b in (s.bounds[0], s.bounds[2])] != [0, 1]:
            self.state.fail("blocks of pl.spmd are numbered from 0 and carry nothing")
        emit_calls.block_number(self.state, s.var)
        self.statements(s.body.statements)

    def _op(self, s: Op) -> None:
        state = self.state
        state.made.update(dict.fromkeys([r.name for r in s.results], state.frame))
        handler = HANDLERS.get(s.name)
        if handler is None and emit_threads.takes(s):
            from .emit_around import emit_op

            emit_op(state, s, self.function, self.params)
            return
        if handler is None:
            decl = OPS.get(s.name)
            if decl is None or decl.pto is None or not s.name.startswith("tile."):
                state.fail(f"{s.name} cannot be written as assembly", *_why(s, decl))
            handler = emit_tiles.elementwise
        handler(state, s)

    def _returned(self, s: Return) -> None:
        """A returned tensor is a parameter, or a view of one; nothing else can leave a kernel."""
        for o in flat_operands(s.operands):
            if not (isinstance(o, Value) and o.name in self.state.tensors):
                what = getattr(o, "name", None) or getattr(o, "value", o)
                self.state.fail(f"a kernel cannot return {what!r}", "results leave through output tensors",
                                "store it into an Out parameter and return that")  # fmt: skip


def _why(s: Op, decl: Any) -> tuple[str, str]:
    """Return why an operation has no assembly, and what to do."""
    if decl is None:
        hint = resolve(s.name).hint or "`tilegg ops` lists the operations there are"
        return "the operation is unknown", hint
    return "it has no instruction", "lower the program first, or keep it out of kernels"

