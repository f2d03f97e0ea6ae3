"""``casts``: the legal chains of native casts between two dtypes, with prices and errors."""

from __future__ import annotations

from argparse import Namespace

from .words import count, shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .console import Console
    from .options import Verbs

OBJECTIVES = ("cycles", "instructions", "accuracy")


def add(verbs: Verbs) -> None:
    """Add the verb of this file."""
    p = verbs.add(
        "casts",
        casts,
        "list the legal cast chains between two dtypes on a target, best first",
        "  tilegg casts fp32 int8 --arch a2a3 --mode rint\n"
        "  tilegg casts int32 bf16 --arch a5 --objective accuracy --json\n"
        "  tilegg casts fp32 fp4 --arch a5 --svg -o casts.svg",
    )
    p.add_argument("src", metavar="SRC", help="dtype of the values, such as fp32")
    p.add_argument("dst", metavar="DST", help="dtype wanted, such as int8")
    p.add_argument("--arch", metavar="TARGET", required=True, help="target name or file; see tilegg targets")
    p.add_argument("--shape", metavar="RxC", type=shape, default=(64, 64),
                   help="tile shape that prices are for (default: 64x64)")  # fmt: skip
    p.add_argument("--mode", default="round", help="round mode: none rint round floor ceil trunc odd (default: round)")
    p.add_argument("--saturation", choices=("on", "off"), help="clamp or not (default: on for integer destinations)")
    p.add_argument("--objective", choices=OBJECTIVES, default="cycles", help="the order (default: cycles)")
    p.add_argument("-k", metavar="N", type=count, default=8, help="how many chains at most (default: 8)")
    p.add_argument("-o", "--output", metavar="OUT", help="the file to write (default: stdout)")
    form = p.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--svg", action="store_true", help="draw an SVG picture")


def casts(args: Namespace, console: Console) -> int:
    """List, print as JSON, or draw the chains of one pair."""
    from ..ir.dtypes import parse_dtype
    from ..rules.paths_show import explore, render_svg, render_text
    from ..rules.target import load_target
    from .console import json_text
    from .files import write

    console.json_stdout = args.json and args.output in (None, "-")
    src, dst = parse_dtype(args.src), parse_dtype(args.dst)
    found = explore(
        load_target(args.arch), src, dst, args.mode, args.saturation, args.shape, args.k, objective=args.objective
    )
    write(args.output, json_text(found) if args.json else render_svg(found) if args.svg else render_text(found))
    return 0
