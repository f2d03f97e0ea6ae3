"""Which functions and statements of a module of kernels are SIMT code, or are written as such (:mod:`.emit_around`).

A module that has any of these needs the assembler's vector backend, which its attribute ``pto.backend`` names.
"""

from __future__ import annotations

from ..ir.domains import SIMT, contexts, is_entry
from ..ir.op import OPS
from ..ir.program import Const, Function, Op, Program, Scope, walk
from ..ir.simt import section_grid
from ..ir.types import PtrType
from .mlir_values import is_packed

#: The capability that only the vector backend of the assembler has.
VECTOR = "hivm"


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
ACCESSES = {
    "scalar.load": "pto.load_scalar", "pto.load": "pto.load_scalar", "scalar.store": "pto.store_scalar",
    "pto.store": "pto.store_scalar",
}  # fmt: skip


def _beyond(s: Op) -> bool:
    if s.name in ("llvm.alloca", "llvm.load", "llvm.store"):
        return True
    if s.name not in ACCESSES:
        return False
    spaces = {t.space for o in s.operands if isinstance(t := getattr(o, "type", None), PtrType)}
    return spaces != {"gm"} or is_packed(s)


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
    return s.name.startswith(("pto.", "llvm.")) or s.name in ("scalar.load", "scalar.store") or s.name in MATHEMATICS


#: Plain mathematics, which only the vector backend has.
MATHEMATICS = frozenset(
    [f"scalar.{n}" for n in ("abs", "sqrt", "exp", "log", "pow")]
    + [f"llvm.{n}" for n in ("fabs", "abs", "sqrt", "exp", "log", "pow")]
)
