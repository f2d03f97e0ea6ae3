"""SIMT functions and sections in a module of kernels, and what ordinary kernels share with them.

SIMT code is written by :mod:`.mlir_scalars` whole. In an ordinary kernel the same module writes single statements:
launches, sections, accesses through pointers, target-specific scalar operations. It works with the library's own
operations, and is imported by the modules that have any of these.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from ..ir.domains import is_entry
from ..ir.dtypes import DType
from ..ir.program import Function, Op, Scope
from ..ir.types import PtrType
from .emit_state import State
from .emit_threads import ACCESSES, MATHEMATICS
from .mlir_scalars import MlirFunction
from .pto.simt import number

Params = Mapping[str, tuple[DType | None, ...]]


def simt_function(f: Function, params: Params, most: int | None) -> Operation:
    """Return a SIMT function; ``most``: the most threads that launches of the module start, where that is known."""
    made = MlirFunction(f, params).build()
    if is_entry(f) and most is not None:
        made.attributes["pto.simt_max_threads"] = number(most, 32)
    return made


class Around(MlirFunction):
    """Writes statements of an ordinary kernel at the place its emitter has come to."""

    def __init__(self, f: Function, params: Params, state: State) -> None:
        super().__init__(f, params)
        self.block = state.b.block
        tensors = {name: t.ptr for name, t in state.tensors.items() if t.base is None}
        self.values = {**tensors, **state.scalars, **state.pointers}


def emit_op(state: State, s: Op, f: Function, params: Params) -> None:
    """Append an operation, and name its result."""
    if s.name in MATHEMATICS and not state.unit.vector:
        state.fail(f"{s.name} cannot be written for the C++ backend of the assembler", "it has no mathematics",
                   "compute it in a tile, or in SIMT code")  # fmt: skip
    if not state.unit.vector and s.name in ACCESSES:
        s = Op(ACCESSES[s.name], s.operands, {}, s.results, s.span)
    around = Around(f, params, state)
    around.at = s
    around.operation(s)
    for r in s.results:
        into = state.pointers if isinstance(r.type, PtrType) else state.scalars
        into[r.name] = state.name(around.values[r.name], r.name)


def emit_section(state: State, s: Scope, f: Function, params: Params) -> None:
    """Append a SIMT section with all that is in it."""
    Around(f, params, state).statement(s)
