"""``scalars``, and the table of ``ops --scalar``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.op import OpDecl
    from ..ir.program import Program
    from .console import Console
    from .options import Verbs


def add(verbs: Verbs) -> None:
    """Add the verbs of this file."""
    p = verbs.add(
        "scalars",
        scalars,
        "lower the scalar operations of a program, or show them as LLVM IR or in four cast designs",
        "  tilegg scalars kernel.py\n  tilegg scalars kernel.py --compat keep\n  tilegg scalars kernel.py --emit llvm\n"
        "  tilegg scalars kernel.py --emit casts",
    )
    p.add_argument("file", metavar="FILE", help="the program, - for stdin")
    p.add_argument("--emit", choices=("text", "mlir", "llvm", "casts", "casts-json"), default="text",
                   help="text of the lowered program (default), MLIR or LLVM IR of it, or its casts in four designs"
                   )  # fmt: skip
    p.add_argument("--compat", choices=("canonical", "keep"), default="canonical",
                   help="rewrite the forms kept for hand-written code (default), or keep them")  # fmt: skip
    p.add_argument("-o", "--output", metavar="OUT", help="the file to write (default: stdout)")


def scalars(args: Namespace, console: Console) -> int:
    """Lower scalar operations; print text, LLVM IR or casts."""
    from ..ir.domains import domain_problems
    from .files import write
    from .programs import load

    console.json_stdout = args.emit == "casts-json" and args.output in (None, "-")
    program = load(args.file, console)
    found = domain_problems(program)
    if found:
        console.report(found)
        return 1
    write(args.output, _casts(program, args.emit) if args.emit.startswith("casts") else _lowered(program, args))
    return 0


def _lowered(program: Program, args: Namespace) -> str:
    from ..extract.scalars import lower_scalars
    from ..ir.text import print_program

    lowered = lower_scalars(program, compat=args.compat)
    if args.emit == "text":
        return print_program(lowered)
    if args.emit == "mlir":
        from ..codegen.mlir_scalars import emit_mlir

        return emit_mlir(lowered)
    from ..codegen.llvm import emit_llvm

    return "\n".join(emit_llvm(f) for f in lowered.functions)


def _casts(program: Program, form: str) -> str:
    """Show the casts of every function that has some."""
    from ..codegen.casts_compare import comparison, comparison_text, program_of
    from .console import json_text

    found = [comparison(p) for p in map(program_of, program.functions) if p.casts]
    if form == "casts-json":
        return json_text({"schema": 1, "functions": found})
    return "\n".join(map(comparison_text, found)) or "no scalar casts\n"


# -- the classification ------------------------------------------------------------------------------------


def classification(decls: Sequence[OpDecl]) -> tuple[dict[str, Any], Callable[[], str]]:
    """Return the table as JSON, and a function that makes its text."""
    rows = [classification_row(d) for d in sorted(decls, key=lambda d: (d.scalar.group if d.scalar else "", d.name))]
    return {"schema": 1, "ops": rows}, lambda: _text(rows)


def classification_row(decl: OpDecl) -> dict[str, Any]:
    """Return one operation's record."""
    record = decl.scalar
    assert record is not None
    return {
        "name": decl.name, "group": record.group, "domain": record.domain, "capability": record.capability,
        "section": record.section, "types": list(record.types), "packed": list(record.packed), "effect": decl.effect,
        "vpto": record.vpto, "intrinsics": dict(record.intrinsics), "conclusion": record.conclusion,
        "instead": record.instead, "open": record.open, "differences": record.differences,
        "target_defined": decl.target_defined, "doc": decl.doc,
    }  # fmt: skip


def _text(rows: Sequence[dict[str, Any]]) -> str:
    from ..ir.classification import GROUPS
    from .tables import table

    head = ("operation", "domain", "needs", "proves", "types", "packed", "effect", "assembler", "LLVM", "conclusion")
    parts = []
    for group, title in GROUPS.items():
        cells = [
            (r["name"], r["domain"], r["capability"], r["section"], types_text(r["types"]), " ".join(r["packed"]),
             r["effect"], r["vpto"], intrinsics_text(r), r["conclusion"])
            for r in rows if r["group"] == group
        ]  # fmt: skip
        if cells:
            parts.append(f"{group}. {title}\n{table(head, cells, limit=40)}")
    return "\n".join(parts) or "none of them is a scalar or SIMT operation\n"


def types_text(types: Sequence[str]) -> str:
    """Return dtypes with whole families under their common names."""
    from ..ir.ops._scalar_result import FLOATS, SIGNED, UNSIGNED

    words, left = [], list(types)
    for name, family in (("signed", SIGNED), ("unsigned", UNSIGNED), ("floats", FLOATS)):
        if set(family) <= set(left):
            words.append(name)
            left = [t for t in left if t not in family]
    return " ".join([*words, *left])


def intrinsics_text(row: dict[str, Any]) -> str:
    """Return what the operation becomes, by kind of operand."""
    found = row["intrinsics"]
    if set(found) == {"any"}:
        return str(found["any"])
    return ", ".join(f"{'else' if kind == 'any' else kind}: {text}" for kind, text in found.items())


