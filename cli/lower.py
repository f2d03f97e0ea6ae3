"""``lower``: the main job."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from .check import add_ranks
from .words import count, seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..extract.lowered import Lowered
    from ..ir.diagnostics import Diagnostic
    from ..ir.program import Program
    from .console import Console
    from .options import Verbs
    from .programs import Clock

OBJECTIVES = ("cycles", "instructions", "accuracy")
CONTRACTS = ("exact", "faithful", "contracted")
PASSES = ("parse", "saturate", "extract", "emit", "all")
#: The time limit of a region's exact search when none is given, in seconds.
_SECONDS = 1.0
_NODES = 200_000


def add(verbs: Verbs) -> None:
    """Add the verb of this file."""
    p = verbs.add(
        "lower",
        lower,
        "write the cheapest legal form of a program for a target",
        "  tilegg lower kernel.py --arch a5 -o kernel.pto\n"
        "  tilegg lower kernel.py --arch a2a3 --emit ir --contract exact\n"
        "  cat kernel.py | tilegg lower - --arch a5 --emit json --objective instructions",
    )
    add_lowering_options(p)
    p.add_argument("-o", "--output", metavar="OUT", help="the file to write (default: stdout)")
    add_ranks(p)
    p.add_argument(
        "--emit",
        choices=("pto", "ir", "json"),
        default="pto",
        help="PTO assembly, the Python-syntax text, or the choices as JSON (default: pto)",
    )
    p.add_argument("--report", metavar="FILE", help="also write an HTML report of every choice")
    p.add_argument("--print-after", metavar="PASS", action="append", default=[], choices=PASSES,
                   help=f"show the program after a pass on stderr: {', '.join(PASSES)}")  # fmt: skip
    p.add_argument("--time-passes", action="store_true", help="show the time of each pass on stderr")


def add_lowering_options(p: ArgumentParser) -> None:
    """Add the options that say how to lower."""
    p.add_argument("input", metavar="IN", help="the program's text file, or - for stdin")
    p.add_argument("--arch", metavar="TARGET", required=True, help="target name or file; see tilegg targets")
    p.add_argument("--objective", choices=OBJECTIVES, default="cycles", help="what to minimise (default: cycles)")
    p.add_argument(
        "--contract",
        choices=CONTRACTS,
        default="faithful",
        help="exact: bit for bit; faithful: a cast may take a legal chain that rounds twice or in another "
        "mode, reported (default); "
        "contracted: fewer roundings than written, too (multiply-adds, quotients)",
    )
    p.add_argument("--exact", action="store_true", help="prove the optimum with the integer solver")
    p.add_argument("--time-limit", metavar="S", type=seconds, default=_SECONDS,
                   help="seconds a region's proof may take (default: 1)")  # fmt: skip
    p.add_argument("--node-limit", metavar="N", type=count, default=_NODES,
                   help=f"e-graph nodes a region may take (default: {_NODES})")  # fmt: skip
    p.add_argument("--compat", choices=("canonical", "keep"), default="canonical",
                   help="rewrite the forms kept for hand-written SIMT code (default), or keep them")  # fmt: skip
    p.add_argument("--no-memo", action="store_true", help="solve every region anew, even repeated ones")


def lowered_of(
    program: Program, args: Namespace, console: Console, clock: Clock | None = None, remarks: bool = True
) -> Lowered:
    """Return the lowered program, with its remarks shown."""
    from ..extract.lower import lower as lower_program
    from ..extract.memo import SHARED

    result = lower_program(
        program,
        args.arch,
        objective=args.objective,
        contract=args.contract,
        exact=args.exact,
        time_limit=args.time_limit,
        node_limit=args.node_limit,
        after=_printer(args, console),
        memo=None if args.no_memo else SHARED,
        compat=args.compat,
    )
    if clock is not None:
        clock.spent.update(result.timings)
    # Remarks measure the errors of inexact casts, which takes time: not for nobody.
    if remarks:
        console.report(result.found if console.quiet else result.remarks)
    return result


def lower(args: Namespace, console: Console) -> int:
    """Lower one program and write it."""
    from .files import write_all
    from .programs import Clock, load

    console.json_stdout = args.emit == "json" and args.output in (None, "-")
    clock = Clock()
    if args.time_passes:
        clock.timed("import", lambda: _import(args.emit))
    program = clock.timed("parse", lambda: load(args.input, console))
    _show(args, console, "parse", program)
    result = lowered_of(program, args, console, clock)
    clock.timed("signals", lambda: console.report(_gate(result, args)))
    text = clock.timed("emit", lambda: _emitted(result, args.emit))
    _show(args, console, "emit", text)
    results: list[tuple[str | None, str | bytes]] = [(args.output, text)]
    if args.report is not None:
        results.insert(0, (args.report, clock.timed("report", lambda: report_of(result, console))))
    clock.timed("write", lambda: write_all(results))
    console.note(summary(result))
    if args.time_passes:
        console.always(clock.table())
    return 0


def _import(form: str) -> None:
    """Import what the passes need, so that their times are their own."""
    from importlib import import_module

    for name in ("ir.text", "extract.lower", *(["codegen.emit"] if form == "pto" else [])):
        import_module(f"..{name}", __package__)


def _emitted(result: Lowered, form: str) -> str:
    if form == "ir":
        from ..ir.text import print_program

        return print_program(result.program)
    if form == "json":
        from ..extract.report_json import to_json
        from .console import json_text

        return json_text(to_json(result))
    from ..codegen.emit import emit

    return emit(result, signals=False)


def _gate(result: Lowered, args: Namespace) -> list[Diagnostic]:
    """Return the warnings of the signal check; raises its findings, before anything is written."""
    from ..codegen.signals.gate import require_clean

    return require_clean(result.program, args.ranks, result.source)


def report_of(result: Lowered, console: Console) -> str:
    """Return the HTML report of a lowering."""
    from ..extract.report_html import to_html

    return to_html(result, next(iter(console.sources.values()), ""))


def summary(result: Lowered) -> str:
    """Return the line that says what was gained."""
    now, plain = result.totals, result.plain
    ratio = now.against(plain)
    gain = f" ({ratio:+.1%})" if ratio is not None else ""
    proved = "optimum proved" if result.optimum == "proved" else f"within {result.gap:.2%} of the optimum"
    return (
        f"{result.arch}: {_plural(now.instructions, 'instruction')}, {now.cycles:.0f} cycles; plain lowering "
        f"{plain}{gain}; {proved} for {result.objective}"
    )


def _plural(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


# -- what passes made --------------------------------------------------------------------------------------


def _printer(args: Namespace, console: Console) -> Any:
    """Return the function that shows what passes made, if any was asked for."""
    if not getattr(args, "print_after", None):
        return None
    return lambda name, thing: _show(args, console, name, thing)


def _show(args: Namespace, console: Console, name: str, thing: Any) -> None:
    if name in args.print_after or "all" in args.print_after:
        console.always(f"# ----- after {name} -----\n{_text(thing)}")


def _text(thing: Any) -> str:
    from ..ir.program import Program
    from ..rewrite.graph import Graph
    from .graphs import graph_text

    if isinstance(thing, Program):
        from ..ir.text import print_program

        return print_program(thing).rstrip()
    return graph_text(thing) if isinstance(thing, Graph) else str(thing).rstrip()
