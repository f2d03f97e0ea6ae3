"""PTO assembly of a program: one ``.pto`` module with a kernel for each in-core function.

The text needs no synchronisation and no addresses: the assembler plans memory and inserts both
(``ptoas --enable-insert-sync``). Parameters of a kernel, in this order: the function's own (a tensor is a pointer,
a scalar its register type), then for each window parameter a pointer to its communication context, then, as ``index``,
every size that appears in a type or an offset and is no parameter, in order of first appearance. A kernel returns
nothing: a returned tensor is the parameter it names.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import StringAttr

from ..ir.collection import no_collection
from ..ir.diagnostics import Diagnostic, error
from ..ir.levels import INCORE, level_of
from ..ir.program import Function, Op, Program, require_program, walk
from ..rewrite.markers import with_markers
from ..rules.target import Target, load_target
from . import emit_threads
from .emit_body import Body
from .emit_calls import Unit, unit_of
from .mlir_values import parameters
from .pto import api as pto
from .signals.gate import require_clean

#: Function kinds that start kernels instead of being one.
_HOST_KINDS = ("Orchestration", "Group", "Graph")
_CUBE_KINDS = ("AIC",)


def emit(
    program: Any,
    target: str | Target | None = None,
    *,
    check: bool = True,
    signals: bool = True,
    locations: bool = True,
    remarks: list[Diagnostic] | None = None,
) -> str:
    """Return the PTO assembly of a program, or of what :func:`tilegg.lower` returned.

    ``target``: a target or its name; a lowered program knows its own. ``check`` runs the dialect's verifier for
    that architecture, ``signals`` the check of what ranks signal to each other; ``locations`` writes
    ``loc("file":line:col)`` after each operation; ``remarks`` receives a remark for every function left out. Raises
    :class:`TileggError`: TG023 for what cannot be written (with its place and reason), TG017 for tiles that already
    have addresses, TG040 when there is no target, and the findings of the signal check.
    """
    require_program(getattr(program, "program", program), "emit")
    source = getattr(program, "source", program)
    marked = _marked(program)
    if signals:
        found = require_clean(getattr(marked, "program", marked), source=source)
        if remarks is not None:
            remarks += found
    with no_collection():
        module = build_module(marked, target, remarks)
        if check:
            pto.verify_pto(module)
        return pto.print_pto(module, locations=locations)


def _marked(program: Any) -> Any:
    """Return a program with the markers of memory consistency that it lacks; lowering has added them already."""
    return program if hasattr(program, "program") else with_markers(program)


def build_module(
    program: Any, target: str | Target | None = None, remarks: list[Diagnostic] | None = None
) -> Any:
    """Return the module :func:`emit` prints, an xDSL ``ModuleOp``, unverified."""
    source: Program = getattr(program, "program", program)
    if target is None and source is not program and program.arch != "none":
        target = program.target or program.arch
    if target is None:
        raise error("TG040", "assembly is written for a target", hint="name one: a2a3, a5")
    machine = load_target(target) if isinstance(target, str) else target
    module = pto.ModuleBuilder(machine.arch)
    simt = emit_threads.simt_functions(source)
    kernels = [f for f in source.functions if f.name in simt or not _skipped(f, remarks)]
    if not kernels:
        raise error("TG023", "the program has no in-core function", hint="kernels load tiles: pl.tile.load(...)")
    unit = unit_of(module, source, [f for f in kernels if f.name not in simt])
    most = emit_threads.most_threads(source)
    beyond = next((f for f in kernels if f.name in simt or emit_threads.needs_vector_backend(f)), None)
    unit.vector = beyond is not None
    if beyond is not None:
        if not machine.has(emit_threads.VECTOR):
            raise error("TG023", f"{beyond.name} needs the vector backend of the assembler", beyond.span,
                        reason=f"{machine.name} has none")  # fmt: skip
        # The kind is said for the whole: functions of plain arithmetic would leave the assembler no hint of it.
        module.op.attributes["pto.backend"] = StringAttr("vpto")
        module.op.attributes["pto.kernel_kind"] = pto.word("kernel_kind", "vector")
    for f in kernels:
        if f.name in simt:
            _named(f)
            from .emit_around import simt_function

            module.add(simt_function(f, parameters(source.functions), most.get(f.name)))
        else:
            _emit_function(unit, f, machine)
    return module.op


def _kind(function: Function) -> str:
    return function.attrs.get("type", "").rpartition(".")[2]


def _skipped(function: Function, remarks: list[Diagnostic] | None) -> bool:
    """Return whether a function is no kernel; leaves a remark if so."""
    kind = _kind(function)
    host = kind in _HOST_KINDS or "Orchestrator" in function.attrs.get("role", "") or level_of(function) != INCORE
    calls = any(isinstance(s, Op) and s.name == "call" for s in walk(function.body))
    if not host and (kind in ("InCore", "AIV", "AIC") or not calls):
        return False
    if remarks is not None:
        why = "it starts kernels and is compiled for the host"
        remarks.append(
            Diagnostic("TG023", f"{function.name} is left out of the assembly", function.span, why, severity="remark")
        )
    return True


def _named(function: Function) -> None:
    if not function.name.isascii():
        raise error("TG023", f"{function.name!r} is no symbol of the assembler", function.span)


def _emit_function(unit: Unit, function: Function, target: Target) -> None:
    if _kind(function) in _CUBE_KINDS:
        raise error("TG023", f"{function.name} is a matrix kernel", function.span,
                    reason="only vector kernels are written as assembly")  # fmt: skip
    _named(function)
    try:
        Body(unit, function, target).run()
    except RecursionError:
        raise error("TG012", f"{function.name} is nested too deeply", function.span) from None
