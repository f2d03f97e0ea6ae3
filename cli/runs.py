"""``run``, ``equiv`` and ``verify``: the reference interpreter, on given inputs and on hostile ones."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from .lower import add_lowering_options, lowered_of
from .words import count, dimension, natural, value_range

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Executor
    from contextlib import AbstractContextManager

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
        "  tilegg equiv a.py b.py --range x=-127:127 --json\n"
        "  tilegg equiv a.py b.py --exhaustive --jobs 4",
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
    p.add_argument("--within", metavar="HOW", default="exact",
                   help="how near results have to be: exact, or ulp:N, which the contract contracted needs "
                   "(default: exact)")  # fmt: skip


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
    p.add_argument("--exhaustive", action="store_true",
                   help="try every input there is; for few inputs, such as 16 bits per element")  # fmt: skip
    p.add_argument("--jobs", metavar="N", type=count, default=1, help="processes that share the runs (default: 1)")
    p.add_argument("--json", action="store_true", help="print JSON")
    _add_entry_options(p)


# -- run ---------------------------------------------------------------------------------------------------


def run(args: Namespace, console: Console) -> int:
    """Run a function on the arrays of an ``.npz`` file."""
    from ..ir.interp import run as run_program
    from .arrays import read_arrays, shown, write_arrays
    from .files import one_stdin, write
    from .programs import load, sizes

    one_stdin(args.input, args.inputs)
    program = load(args.input, console)
    inputs = read_arrays(args.inputs) if args.inputs is not None else {}
    outputs = run_program(program, inputs, function=args.function, dims=sizes(args, program))
    if args.output is None:
        write(None, shown(outputs))
    else:
        write_arrays(args.output, outputs)
    return 0


# -- equiv -------------------------------------------------------------------------------------------------


def equiv(args: Namespace, console: Console) -> int:
    """Compare two programs; exit code 1 when they differ."""
    from .files import one_stdin, write
    from .programs import load, sizes

    console.json_stdout = args.json
    one_stdin(args.a, args.b)
    a, b = load(args.a, console), load(args.b, console)
    dims = sizes(args, a, b)
    with _workers(args.jobs) as executor:
        from ..testing.fanout import compare_programs

        report = compare_programs(a, b, contract=args.contract, function=args.function,
                                  **_test_options(args, dims, console, executor))  # fmt: skip
    if args.json:
        from .console import json_text

        write(None, json_text(report.to_json()))
    else:
        write(None, report.render() + "\n")
    return 0 if report.equal else 1


def _test_options(
    args: Namespace, dims: dict[str, int], console: Console, executor: Executor | None
) -> dict[str, Any]:
    """Return what says how to test, as ``tilegg.testing`` takes it."""
    return {
        "inputs": args.samples, "seed": args.seed, "facts": dict(args.range), "dims": dims,
        "exhaustive": args.exhaustive, "executor": executor, "progress": console.progress("runs"),
    }  # fmt: skip


def _workers(jobs: int) -> AbstractContextManager[Executor | None]:
    """Return a pool of processes; none for one job."""
    from contextlib import nullcontext

    if jobs == 1:
        return nullcontext()
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Fresh processes: a fork copies the threads of libraries halfway.
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


# -- verify ------------------------------------------------------------------------------------------------


def verify(args: Namespace, console: Console) -> int:
    """Compare a program with its lowering, function by function; exit code 1 when they differ.

    What the lowering reports as inexact is put back as one conversion first, and composites where recipes compute
    them: apart from these the two must agree bit for bit.
    """
    from ..testing.lowering import check_lowering
    from .console import json_text
    from .files import write
    from .programs import load, sizes

    console.json_stdout = args.json
    program = load(args.input, console)
    dims = sizes(args, program)
    lowered = lowered_of(program, args, console)
    with _workers(args.jobs) as executor:
        options = _test_options(args, dims, console, executor)
        report = check_lowering(program, lowered=lowered, function=args.function, within=args.within, **options)
    if args.json:
        write(None, json_text(report.to_json()))
    else:
        lines = report.render(), report.advice("--within {}")
        write(None, "".join(f"{line}\n" for line in lines if line))
    return 0 if report.ok else 1
