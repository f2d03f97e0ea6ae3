"""``check`` and ``fmt``: is a program well formed, and how it reads in the writer's form."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any

from .words import count, dimension, rank_counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..codegen.signals import SignalReport
    from ..ir.diagnostics import Diagnostic
    from ..ir.program import Program
    from .console import Console
    from .options import Verbs


def add(verbs: Verbs) -> None:
    """Add the verbs of this file."""
    p = verbs.add(
        "check",
        check,
        "read and verify a program, and what its ranks signal to each other",
        "  tilegg check kernel.py\n"
        "  tilegg check kernel.py --json\n"
        "  tilegg check kernel.py --sarif -o kernel.sarif\n"
        "  tilegg check ring.py --ranks 2,4,8 --svg ring.svg",
    )
    p.add_argument("input", metavar="IN", help="the program's text file, or - for stdin")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the findings as JSON")
    form.add_argument("--sarif", action="store_true", help="print the findings as a SARIF log")
    p.add_argument("-o", "--output", metavar="OUT", help="the file to write the findings to (default: stdout)")
    add_ranks(p)
    p.add_argument("--dim", metavar="NAME=N", type=dimension, action="append", default=[],
                   help="the value of a dynamic size in the signal check; may be repeated")  # fmt: skip
    p.add_argument("--calls", metavar="N", type=count, default=1,
                   help="let every rank call the function so often, one call after the other (default: 1)")  # fmt: skip
    p.add_argument("--svg", metavar="FILE", help="also draw the event graph of the first finding, or of a clean run")
    p.add_argument("--html", metavar="FILE", help="also write a page with the findings and the drawing")

    p = verbs.add(
        "fmt",
        fmt,
        "rewrite a program's text in SSA form with every type written out",
        "  tilegg fmt kernel.py\n  tilegg fmt kernel.py -o kernel.py",
    )
    p.add_argument("input", metavar="IN", help="the program's text file, or - for stdin")
    p.add_argument("-o", "--output", metavar="OUT", help="the file to write (default: stdout)")


def add_ranks(p: ArgumentParser) -> None:
    """Add the option that says for how many ranks signals are checked."""
    p.add_argument("--ranks", metavar="N,N", type=rank_counts,
                   help="numbers of ranks to check (default: what static signals fix, else 2,3,4,8)")  # fmt: skip


def check(args: Namespace, console: Console) -> int:
    """Report every finding; exit code 1 when there is an error among them."""
    from .files import write
    from .programs import sizes

    found, program = examine(args.input, console)
    unread = [d for d in found if d.code == "TG029"]
    if program is None and unread and not (args.json or args.sarif):
        # The assembly is well formed; it only has more than the language has.
        write(args.output, f"{args.input}: ok (assembly)\n  not read as a program: {unread[0].message}\n")
        return 0
    signals = None
    dims = sizes(args, program) if program is not None else {}
    if program is not None and all(d.severity != "error" for d in found):
        signals = _signals(program, args, dims, console)
        found += _signal_problems(signals)
    problems = [d for d in found if d.severity != "remark"]
    ok = all(d.severity != "error" for d in problems)
    if args.json:
        from .console import json_text

        write(args.output, json_text(_findings(problems, found, program, ok, signals)))
    elif args.sarif:
        from .. import __version__
        from ..ir.diagnostics import to_sarif
        from .console import json_text

        write(args.output, json_text(to_sarif(found, __version__)))
    else:
        console.report(found)
        if args.output is not None or ok:
            write(args.output, _verdict(args.input, problems, program, ok) + _checked(signals, ok))
    return 0 if ok else 1


def _signals(program: Program, args: Namespace, dims: dict[str, int], console: Console) -> SignalReport | None:
    """Check what the ranks signal to each other, and draw it; ``None`` when they do not."""
    from ..ir.ranks_flow import suspending

    drawings = args.svg, args.html
    if not suspending(program.functions) and not any(drawings):
        return None
    from ..codegen.signals import check_signals, draw_html, draw_svg
    from .files import write

    report = check_signals(program, args.ranks, dims=dims, calls=args.calls)
    if args.svg is not None:
        write(args.svg, draw_svg(program, report))
    if args.html is not None:
        source = next(iter(console.sources.values()), "")
        write(args.html, draw_html(program, report, f"Signals of {args.input}", source))
    return report if suspending(program.functions) else None


def _signal_problems(report: SignalReport | None) -> list[Diagnostic]:
    return [] if report is None else report.diagnostics()


def _checked(report: SignalReport | None, ok: bool) -> str:
    certificate = report.certificate() if report is not None and ok else None
    if certificate is None or not certificate["settings"]:
        return ""
    events = sum(c["events"] for c in certificate["settings"])
    ranks = ", ".join(map(str, certificate["ranks"]))
    limits = "".join(f"  {limit}\n" for limit in (*certificate["limits"], *certificate["assumptions"]))
    calls = max(c["calls"] for c in certificate["settings"])
    often = f", {calls} calls" if calls > 1 else ""
    return f"  signals: {certificate['verdict']} for {ranks} ranks{often}, {events} events\n{limits}"


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
    problems: Sequence[Diagnostic], found: Sequence[Diagnostic], program: Program | None, ok: bool,
    signals: SignalReport | None,
) -> dict[str, Any]:  # fmt: skip
    of_signals = signals.findings if signals is not None else ()
    plain = problems[: len(problems) - len(of_signals)]
    shown = [{**_finding(d), **f.to_json(), "severity": d.severity} for d, f in zip(problems[len(plain) :], of_signals)]
    return {
        "schema": 1,
        "ok": ok,
        "findings": [*map(_finding, plain), *shown],
        "remarks": [d.to_json() for d in found if d.severity == "remark"],
        "certificate": _certificate(program, signals) if ok and program is not None else None,
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


def _certificate(program: Program, signals: SignalReport | None) -> dict[str, Any]:
    """What was checked, and of how much."""
    known = signals.certificate() if signals is not None else None
    return {
        "checks": ["text", "structure", "types", *(["signals"] if known is not None else [])],
        "functions": [f.name for f in program.functions],
        "statements": _size(program),
        "signals": known,
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
    from .files import read_text, write
    from .programs import assembly, is_assembly, parsed

    text, name = read_text(args.input, console)
    if is_assembly(name, text):
        from ..codegen.pto.api import print_pto

        write(args.output, print_pto(assembly(text, name), locations=False))
        return 0
    program, remarks = parsed(text, name)
    console.report(remarks)
    write(args.output, print_program(program))
    return 0
