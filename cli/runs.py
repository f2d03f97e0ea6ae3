"""``run``, ``equiv`` and ``verify``: the reference interpreter, on given inputs and on hostile ones."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from .lower import add_lowering_options, lowered_of
from .words import count, dimension, natural, value_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..extract.faithful import InexactCast
    from ..ir.equivalence import Report
    from ..ir.program import Program
    from .console import Console
    from .options import Verbs

_SAMPLES = 64


def add(verbs: Verbs) -> None:
    """Add the verbs of this file."""
    p = verbs.add(
        "run",
        run,
        "run a program in the exact reference interpreter",
        "  tilegg run kernel.py --inputs x.npz -o out.npz\n"
        "  tilegg run kernel.py --inputs x.npz --function quant --dim N=17",
    )
    p.add_argument("input", metavar="IN", help="the program's text file, or - for stdin")
    p.add_argument("--inputs", metavar="FILE", help=".npz file with one array per parameter name, or - for stdin")
    p.add_argument("-o", "--output", metavar="OUT",
                   help=".npz file for the outputs, or - for stdout (default: show them)")  # fmt: skip
    _add_entry_options(p)

    p = verbs.add(
        "equiv",
        equiv,
        "test two programs for equal outputs on hostile inputs",
        "  tilegg equiv before.py after.py\n"
        "  tilegg equiv a.py b.py --samples 1000 --seed 7 --contract ulp:2\n"
        "  tilegg equiv a.py b.py --range x=-127:127 --json",
    )
    p.add_argument("a", metavar="A", help="the reference program, or - for stdin")
    p.add_argument("b", metavar="B", help="the program to compare, or - for stdin")
    _add_test_options(p)
    p.add_argument("--contract", default="exact", help="exact (bit for bit) or ulp:N (default: exact)")

    p = verbs.add(
        "verify",
        verify,
        "test that the lowering of a program computes what the program says",
        "  tilegg verify kernel.py --arch a5\n"
        "  tilegg verify kernel.py --arch a2a3 --contract exact --samples 500 --json",
    )
    add_lowering_options(p)
    _add_test_options(p)


def _add_entry_options(p: ArgumentParser) -> None:
    p.add_argument("--function", metavar="NAME", help="the function, when the program has several entry points")
    p.add_argument("--dim", metavar="NAME=SIZE", type=dimension, action="append", default=[],
                   help="size of a dynamic dimension")  # fmt: skip


def _add_test_options(p: ArgumentParser) -> None:
    p.add_argument("--samples", metavar="N", type=count, default=_SAMPLES,
                   help=f"inputs to draw (default: {_SAMPLES})")  # fmt: skip
    p.add_argument("--seed", metavar="S", type=natural, default=0, help="seed of the inputs (default: 0)")
    p.add_argument("--range", metavar="NAME=LO:HI", type=value_range, action="append", default=[],
                   help="what a parameter's elements may be; or NAME=finite")  # fmt: skip
    p.add_argument("--json", action="store_true", help="print JSON")
    _add_entry_options(p)


# -- run ---------------------------------------------------------------------------------------------------


def run(args: Namespace, console: Console) -> int:
    """Run a function on the arrays of an ``.npz`` file."""
    from ..ir.interp import run as run_program
    from .arrays import read_arrays, shown, write_arrays
    from .files import one_stdin, write
    from .programs import load

    one_stdin(args.input, args.inputs)
    program = load(args.input, console)
    inputs = read_arrays(args.inputs) if args.inputs is not None else {}
    outputs = run_program(program, inputs, function=args.function, dims=dict(args.dim))
    if args.output is None:
        write(None, shown(outputs))
    else:
        write_arrays(args.output, outputs)
    return 0


# -- equiv -------------------------------------------------------------------------------------------------


def equiv(args: Namespace, console: Console) -> int:
    """Compare two programs; exit code 1 when they differ."""
    from .files import one_stdin, write
    from .programs import load

    console.json_stdout = args.json
    one_stdin(args.a, args.b)
    report = _tested(load(args.a, console), load(args.b, console), args.contract, args, console)
    if args.json:
        from .console import json_text

        write(None, json_text(report.to_json()))
    else:
        write(None, report.render() + "\n")
    return 0 if report.equal else 1


def _tested(a: Program, b: Program, contract: str, args: Namespace, console: Console) -> Report:
    from ..ir.equivalence import equivalent

    return equivalent(
        a,
        b,
        contract=contract,
        samples=args.samples,
        seed=args.seed,
        facts=dict(args.range),
        dims=dict(args.dim),
        function=args.function,
        progress=console.progress("inputs"),
    )


# -- verify ------------------------------------------------------------------------------------------------


def verify(args: Namespace, console: Console) -> int:
    """Compare a program with its lowering, function by function; exit code 1 when they differ.

    What the lowering reports as inexact is put back as one conversion first: apart from these casts the two
    must agree bit for bit.
    """
    from ..extract.faithful import exact_form, inexact_casts
    from .console import json_text
    from .files import write
    from .programs import load

    console.json_stdout = args.json
    program = load(args.input, console)
    result = lowered_of(program, args, console)
    casts = inexact_casts(result)
    ideal = exact_form(result)
    reports: dict[str, Report] = {}
    for name in _entries(program, args.function):
        args.function = name
        reports[name] = _tested(program, ideal, "exact", args, console)
    ok = all(r.equal for r in reports.values())
    if args.json:
        found = {
            "schema": 1,
            "ok": ok,
            "arch": result.arch,
            "contract": args.contract,
            "functions": [{"name": name, **r.to_json()} for name, r in reports.items()],
            "inexact": [cast.to_json() for cast in casts],
        }
        write(None, json_text(found))
    else:
        write(None, _verdict(reports, casts, result.arch))
    return 0 if ok else 1


def _entries(program: Program, name: str | None) -> list[str]:
    """Return the functions to test: the named one, or all that no other calls."""
    from ..ir.interp import entry
    from ..ir.program import Op, walk

    if name is not None:
        return [entry(program, name).name]
    ops = [s for f in program.functions for s in walk(f.body) if isinstance(s, Op)]
    called: set[Any] = {s.attrs.get("callee") for s in ops if s.name == "call"}
    return [f.name for f in program.functions if f.name not in called] or [f.name for f in program.functions]


def _verdict(reports: dict[str, Report], casts: tuple[InexactCast, ...], arch: str) -> str:
    lines = [f"{name} on {arch}: {report.render()}" for name, report in reports.items()]
    if casts:
        lines.append(f"apart from {len(casts)} cast{'s' * (len(casts) != 1)} that may round twice:")
        lines += [f"  {c.span or c.function}: {c.render()}" for c in casts]
    return "\n".join(lines) + "\n"
