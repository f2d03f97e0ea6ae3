"""SIMT functions and sections in a module of kernels, and what ordinary kernels share with them.

SIMT code is written by :mod:`.mlir_scalars` whole. In an ordinary kernel the same module writes single statements:
launches, sections, accesses through pointers, target-specific scalar operations. A module that has any of these needs
the assembler's vector backend, which its attribute ``pto.backend`` names.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from ..ir.domains import SIMT, contexts, is_entry
from ..ir.dtypes import DType
from ..ir.op import OPS
from ..ir.program import Const, Function, Op, Program, Scope, walk
from ..ir.simt import section_grid
from ..ir.types import PtrType
from .emit_state import State
from .mlir_scalars import MlirFunction
from .mlir_simt import is_packed
from .pto.simt import number

#: The capability that only the vector backend of the assembler has.
VECTOR = "hivm"
Params = Mapping[str, tuple[DType | None, ...]]


def simt_functions(program: Program) -> frozenset[str]:
    """Return the functions that run as SIMT code."""
    return frozenset(name for name, where in contexts(program).items() if SIMT in where)


def needs_vector_backend(f: Function) -> bool:
    """Tell whether a function is or starts SIMT code, or has what the C++ backend cannot write.

    That is target-specific scalar operations, the unified buffer element by element, pairs, and the stack.
    """
    if is_entry(f):
        return True
    for s in walk(f.body):
        if isinstance(s, Scope) and section_grid(s.header) is not None:
            return True
        record = OPS[s.name].scalar if isinstance(s, Op) and s.name in OPS else None
        if record is not None and (record.capability == VECTOR or _beyond(s)):  # type: ignore[arg-type]
            return True
    return False


#: Plain accesses, and what the scalar unit's own are called.
_ACCESSES = {
    "scalar.load": "pto.load_scalar", "pto.load": "pto.load_scalar", "scalar.store": "pto.store_scalar",
    "pto.store": "pto.store_scalar",
}  # fmt: skip


def _beyond(s: Op) -> bool:
    if s.name in ("llvm.alloca", "llvm.load", "llvm.store"):
        return True
    if s.name not in _ACCESSES:
        return False
    spaces = {t.space for o in s.operands if isinstance(t := getattr(o, "type", None), PtrType)}
    return spaces != {"gm"} or is_packed(s)


def simt_function(f: Function, params: Params, most: int | None) -> Operation:
    """Return a SIMT function; ``most``: the most threads that launches of the module start, where that is known."""
    made = MlirFunction(f, params).build()
    if is_entry(f) and most is not None:
        made.attributes["pto.simt_max_threads"] = number(most, 32)
    return made


def most_threads(program: Program) -> dict[str, int | None]:
    """Return the most threads a launch starts each function on, ``None`` where a size is no literal."""
    found: dict[str, int | None] = {}
    for f in program.functions:
        for s in walk(f.body):
            if not isinstance(s, Op) or s.name != "pto.simt_launch":
                continue
            name, count = str(s.attrs["callee"]), 1
            sizes = s.operands[0] if isinstance(s.operands[0], tuple) else ()
            for size in sizes:
                count = count * int(size.value) if isinstance(size, Const) else 0
            known = found.get(name, 0)
            found[name] = max(known, count) if count and known is not None else None
    return found


def takes(s: Op) -> bool:
    """Return whether an operation of an ordinary kernel is written here."""
    decl = OPS.get(s.name)
    if decl is None or decl.scalar is None:
        return False
    return s.name.startswith(("pto.", "llvm.")) or s.name in ("scalar.load", "scalar.store") or s.name in _MATHEMATICS


#: Plain mathematics, which only the vector backend has.
_MATHEMATICS = frozenset(
    [f"scalar.{n}" for n in ("abs", "sqrt", "exp", "log", "pow")]
    + [f"llvm.{n}" for n in ("fabs", "abs", "sqrt", "exp", "log", "pow")]
)


class Around(MlirFunction):
    """Writes statements of an ordinary kernel at the place its emitter has come to."""

    def __init__(self, f: Function, params: Params, state: State) -> None:
        super().__init__(f, params)
        self.block = state.b.block
        tensors = {name: t.ptr for name, t in state.tensors.items() if t.base is None}
        self.values = {**tensors, **state.scalars, **state.pointers}


def emit_op(state: State, s: Op, f: Function, params: Params) -> None:
    """Append an operation, and name its result."""
    if s.name in _MATHEMATICS and not state.unit.vector:
        state.fail(f"{s.name} cannot be written for the C++ backend of the assembler", "it has no mathematics",
                   "compute it in a tile, or in SIMT code")  # fmt: skip
    if not state.unit.vector and s.name in _ACCESSES:
        s = Op(_ACCESSES[s.name], s.operands, {}, s.results, s.span)
    around = Around(f, params, state)
    around.at = s
    around.operation(s)
    for r in s.results:
        into = state.pointers if isinstance(r.type, PtrType) else state.scalars
        into[r.name] = state.name(around.values[r.name], r.name)


def emit_section(state: State, s: Scope, f: Function, params: Params) -> None:
    """Append a SIMT section with all that is in it."""
    Around(f, params, state).statement(s)
