"""``check`` and ``fmt``: is a program well formed, and how it reads in the writer's form."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.diagnostics import Diagnostic
    from ..ir.program import Program
    from .console import Console
    from .options import Verbs


def add(verbs: Verbs) -> None:
    """Add the verbs of this file."""
    p = verbs.add(
        "check",
        check,
        "read and verify a program",
        "  tilegg check kernel.py\n  tilegg check kernel.py --json\n  tilegg check kernel.py --sarif -o kernel.sarif",
    )
    p.add_argument("input", metavar="IN", help="the program's text file, or - for stdin")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the findings as JSON")
    form.add_argument("--sarif", action="store_true", help="print the findings as a SARIF log")
    p.add_argument("-o", "--output", metavar="OUT", help="the file to write the findings to (default: stdout)")

    p = verbs.add(
        "fmt",
        fmt,
        "rewrite a program's text in SSA form with every type written out",
        "  tilegg fmt kernel.py\n  tilegg fmt kernel.py -o kernel.py",
    )
    p.add_argument("input", metavar="IN", help="the program's text file, or - for stdin")
    p.add_argument("-o", "--output", metavar="OUT", help="the file to write (default: stdout)")


def check(args: Namespace, console: Console) -> int:
    """Report every finding; exit code 1 when there is an error among them."""
    from .files import write

    found, program = examine(args.input, console)
    problems = [d for d in found if d.severity != "remark"]
    ok = all(d.severity != "error" for d in problems)
    if args.json:
        from .console import json_text

        write(args.output, json_text(_findings(problems, found, program, ok)))
    elif args.sarif:
        from .. import __version__
        from ..ir.diagnostics import to_sarif
        from .console import json_text

        write(args.output, json_text(to_sarif(found, __version__)))
    else:
        console.report(found)
        if args.output is not None or ok:
            write(args.output, _verdict(args.input, problems, program, ok))
    return 0 if ok else 1


def examine(path: str, console: Console) -> tuple[list[Diagnostic], Program | None]:
    """Return everything the reader and the verifier say, and the program if it can be read."""
    from ..ir.diagnostics import TileggError
    from .programs import read

    try:
        program, remarks = read(path, console)
    except TileggError as problem:
        return list(problem.diagnostics), None
    return [*remarks, *_verified(program)], program


def _verified(program: Program) -> list[Diagnostic]:
    from ..ir.diagnostics import TileggError
    from ..ir.verify import verify

    try:
        return list(verify(program) or ())
    except TileggError as problem:
        return list(problem.diagnostics)


def _findings(
    problems: Sequence[Diagnostic], found: Sequence[Diagnostic], program: Program | None, ok: bool
) -> dict[str, Any]:
    return {
        "schema": 1,
        "ok": ok,
        "findings": [_finding(d) for d in problems],
        "remarks": [d.to_json() for d in found if d.severity == "remark"],
        "certificate": _certificate(program) if ok and program is not None else None,
    }


def _finding(d: Diagnostic) -> dict[str, Any]:
    from ..ir.diagnostics import CODES

    spans = [] if d.span is None else [d.span._asdict()]
    return {
        "code": d.code,
        "class": CODES[d.code],
        "severity": d.severity,
        "message": d.message,
        "reason": d.reason,
        "hint": d.hint,
        "ranks": [],
        "cells": [],
        "spans": spans,
        "witness": None,
    }


def _certificate(program: Program) -> dict[str, Any]:
    """What was checked, and of how much."""
    return {
        "checks": ["text", "structure", "types"],
        "functions": [f.name for f in program.functions],
        "statements": _size(program),
    }


def _size(program: Program) -> int:
    from ..ir.program import walk

    return sum(1 for f in program.functions for _ in walk(f.body))


def _verdict(path: str, problems: Sequence[Diagnostic], program: Program | None, ok: bool) -> str:
    if not ok or program is None:
        return f"{path}: {len(problems)} findings\n"
    functions = len(program.functions)
    warned = f", {len(problems)} warnings" if problems else ""
    return f"{path}: ok ({functions} function{'s' * (functions != 1)}, {_size(program)} statements{warned})\n"


def fmt(args: Namespace, console: Console) -> int:
    """Write a program's text anew."""
    from ..ir.text import print_program
    from .files import write
    from .programs import load

    write(args.output, print_program(load(args.input, console)))
    return 0
