"""SIMT launches and sections inside a run of ordinary functions."""

from __future__ import annotations

from typing import Any

from .diagnostics import error
from .dtypes import INDEX
from .interp_frame import Code, Frame, Machine, Step, fetch, fetch_one
from .lanes import carrier, settle
from .pointers import Pointer
from .program import Const, Op, Operand, Scope, Value, Verbatim, flat_operands, walk
from .simt import Run, grid_of, launch, section_grid
from .simt_threads import SimtState
from .types import ScalarType, scalar


def outside_simt(s: Op) -> Step:
    """Return the step of a SIMT operation in an ordinary function: a refusal."""

    def step(machine: Machine, frame: Frame) -> Any:
        raise error("TG055", f"{s.name} outside of a SIMT body", s.span)

    return step


def _state(machine: Machine) -> SimtState:
    if machine.simt is None:
        machine.simt = SimtState()
    return machine.simt


def simt_launch(code: Code, s: Op) -> Step:
    """Return the step of ``pto.simt_launch``."""
    operands = fetch(code, s.operands, s.span)
    callee = str(s.attrs.get("callee"))

    def step(machine: Machine, frame: Frame) -> None:
        grid, *arguments = operands(frame)
        functions = {name: c.function for name, c in machine.functions.items()}
        launch(functions, callee, grid, arguments, _state(machine), max(machine.left, 0))

    return step


def simt_section(code: Code, s: Scope) -> Step:
    """Return the step of a ``with pl.section_simt(x, y, z):`` block; what it computes stays inside."""
    sizes = [fetch_one(code, _size(text), s.span) for text in section_grid(s.header) or []]
    used = {v.name: v for v in _used(s) if v.name in code.slots}
    readers = {name: (fetch_one(code, v, s.span), v.type) for name, v in used.items()}

    def step(machine: Machine, frame: Frame) -> None:
        threads = grid_of(_whole([read(frame) for read in sizes], s))
        names: dict[str, Any] = {}
        for name, (read, t) in readers.items():
            found = read(frame)
            if isinstance(t, ScalarType) and isinstance(found, int | float):
                names[name] = settle(carrier(found, t.dtype), t.dtype)
            elif isinstance(found, Pointer):
                names[name] = found
        functions = {name: c.function for name, c in machine.functions.items()}
        Run(functions, threads, _state(machine), max(machine.left, 0)).section(s.body, names)

    return step


def _size(text: str) -> Operand:
    if text.isdigit():
        return Const(int(text), INDEX)
    return Value(text, scalar(INDEX)) if text.isidentifier() else Verbatim(text)


def _whole(sizes: list[Any], s: Scope) -> list[int]:
    if not sizes or not all(isinstance(n, int) for n in sizes):
        raise error("TG032", f"cannot evaluate {s.header[:60]!r}", s.span, hint="sizes are integers or their names")
    return sizes


def _used(s: Scope) -> list[Value]:
    found: list[Value] = []
    for inner in walk(s.body):
        operands: list[Any] = list(getattr(inner, "operands", ()))
        operands += [c.init for c in getattr(inner, "carried", ())]
        operands += [getattr(inner, "cond", None), *getattr(inner, "bounds", ())]
        found += [o for o in flat_operands(tuple(operands)) if isinstance(o, Value)]
    return found


