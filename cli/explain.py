"""``explain``: why each instruction was chosen, why others were not, and the steps from one program to another."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from .lower import add_lowering_options, lowered_of, report_of
from .words import natural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..extract.lowered import Lowered
    from ..extract.trajectory import Trajectory
    from ..ir.program import Program
    from .console import Console
    from .options import Verbs

#: Inputs on which the steps between two programs are run again.
_SAMPLES = 8


def add(verbs: Verbs) -> None:
    """Add the verb of this file."""
    p = verbs.add(
        "explain",
        explain,
        "tell for every instruction the rule that chose it and what else was possible",
        "  tilegg explain kernel.py --arch a5\n"
        "  tilegg explain kernel.py --arch a2a3 --why-not 'fp32>fp16>int8'\n"
        "  tilegg explain kernel.py --arch a5 --why-not axpy --report kernel.html\n"
        "  tilegg explain kernel.py --arch a5 --to faster.py\n"
        "  tilegg explain kernels.py --arch a5 --from slow --to fast\n"
        "  tilegg explain kernel.py --arch a5 --pareto --json",
    )
    add_lowering_options(p)
    p.add_argument("-o", "--output", metavar="OUT", help="the file to write (default: stdout)")
    p.add_argument(
        "--why-not",
        metavar="WHAT",
        help="answer only why this was not chosen: a chain of dtypes (fp32>fp16>int8), an operation, or a value's name",
    )
    p.add_argument("--alternatives", metavar="N", type=natural, default=4,
                   help="other choices shown per instruction (default: 4)")  # fmt: skip
    p.add_argument(
        "--to",
        metavar="WHAT",
        help="instead show the steps to another program (a file), or to a function or a value of this one",
    )
    p.add_argument("--from", metavar="NAME", dest="start", help="with --to: the function or value to start from")
    p.add_argument("--samples", metavar="N", type=natural, default=None,
                   help=f"inputs on which each step is run again (default: {_SAMPLES} with --to, else 0)")  # fmt: skip
    p.add_argument(
        "--pareto",
        action="store_true",
        help="instead list the lowerings, over all objectives and contracts, that no other beats",
    )
    p.add_argument("--report", metavar="FILE", help="also write an HTML report of every choice")
    p.add_argument("--json", action="store_true", help="print JSON")

    def together(args: Namespace) -> None:
        if args.start is not None and args.to is None:
            p.error(f"argument --from: {args.start} needs --to, the file, function or value to end at")

    p.set_defaults(together=together)


def explain(args: Namespace, console: Console) -> int:
    """Explain the choices of one lowering, or the steps between two programs."""
    from .files import one_stdin, write, write_all
    from .programs import load

    one_stdin(args.input, args.to)
    console.json_stdout = args.json and args.output in (None, "-")
    program = load(args.input, console)
    if args.to is not None:
        found = _between(program, args, console)
        write(args.output, _text(found, args))
        return 0 if found.reached else 1
    if args.pareto:
        write(args.output, _front(program, args))
        return 0
    result = lowered_of(program, args, console, remarks=False)
    results: list[tuple[str | None, str | bytes]] = [(args.output, _explained(result, args))]
    if args.report is not None:
        results.insert(0, (args.report, report_of(result, console)))
    write_all(results)
    return 0


def _front(program: Program, args: Namespace) -> str:
    from ..extract.pareto import pareto, render
    from .console import json_text

    options = {"exact": args.exact, "time_limit": args.time_limit, "node_limit": args.node_limit}
    points = pareto(program, args.arch, **options, **({"memo": None} if args.no_memo else {}))
    if args.json:
        return json_text({"schema": 1, "arch": args.arch, "points": [p.to_json() for p in points]})
    return render(points).rstrip() + "\n"


def _explained(result: Lowered, args: Namespace) -> str:
    from ..extract.explain import explain as explanation
    from .console import json_text

    samples = args.samples or 0
    found = explanation(result, why_not=args.why_not, alternatives=args.alternatives, samples=samples)
    if args.json:
        return json_text(found.to_json())
    return "\n".join(found.answer) + "\n" if args.why_not is not None else found.render()


# -- from one program to another ---------------------------------------------------------------------------


def _between(program: Program, args: Namespace, console: Console) -> Trajectory:
    """Return the steps to a file's program, or to a function or value of the same one."""
    from ..extract.between import between_values, trajectory
    from .programs import load

    options: dict[str, Any] = {
        "contract": args.contract, "node_limit": args.node_limit,
        "samples": _SAMPLES if args.samples is None else args.samples,
    }  # fmt: skip
    functions = {f.name for f in program.functions}
    if args.to in functions or not _is_file(args.to):
        if args.to in functions:
            return trajectory(program, program, args.arch, function=_start(args), other=args.to, **options)
        options["function"] = _home(program, _start(args), args.to)
        return between_values(program, _start(args), args.to, args.arch, **options)
    other = load(args.to, console)
    names = {f.name for f in other.functions}
    start = args.start or (args.to if args.to in names else None)
    return trajectory(program, other, args.arch, function=start, other=start if start in names else None, **options)


def _is_file(name: str) -> bool:
    return name == "-" or "/" in name or "\\" in name or "." in name


def _start(args: Namespace) -> str:
    from ..ir.diagnostics import error

    if args.start is not None:
        return str(args.start)
    raise error("TG003", f"--to {args.to} needs --from",
                hint="name the function or value to start from, or give a file to --to")  # fmt: skip


def _home(program: Program, start: str, to: str) -> str:
    """Return the function that computes both values."""
    from ..ir.diagnostics import error
    from ..ir.program import Op, walk

    every = {f.name for f in program.functions}
    for f in program.functions:
        names = {r.name for s in walk(f.body) if isinstance(s, Op) for r in s.results}
        if {start, to} <= names:
            return f.name
        every |= names
    lost = next((name for name in (to, start) if name not in every), "")
    if lost:
        raise error("TG003", f"nothing in the program is called {lost!r:.80}",
                    hint="name two functions or two values of one function, or give a file to --to")  # fmt: skip
    raise error("TG003", f"{start} and {to} are not two values of one function")


def _text(found: Trajectory, args: Namespace) -> str:
    from .console import json_text

    return json_text(found.to_json()) if args.json else found.render()
