"""The argument parser: every verb with its options; building it imports nothing heavy."""

from __future__ import annotations

import argparse

from .. import __version__
from . import casts, catalog, check, explain, lower, runs, scalars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .console import Console

    Run = Callable[[argparse.Namespace, Console], int]

_EPILOG = """\
exit codes: 0 done, 1 diagnostics or a difference found, 2 wrong usage

examples:
  tilegg lower kernel.py --arch a5 -o kernel.pto
  tilegg casts fp32 int8 --arch a2a3 --mode rint
  tilegg verify kernel.py --arch a5
  tilegg check kernel.py --json
"""


class Verbs:
    """Adds verbs: each gets the shared options and a function ``run(args, console) -> exit code``."""

    def __init__(self, subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        self._subparsers = subparsers
        self._shared = _shared_options()

    def add(self, name: str, run: Run, summary: str, examples: str) -> argparse.ArgumentParser:
        """Return the parser of a new verb, to which the caller adds arguments."""
        made = self._subparsers.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"examples:\n{examples}",
            parents=[self._shared],
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        made.set_defaults(run=run, verb=name)
        return made


#: The files of verbs, in the order of the help, and their verbs.
_GROUPS = {
    lower: ("lower",),
    explain: ("explain",),
    casts: ("casts",),
    scalars: ("scalars",),
    runs: ("run", "equiv", "verify"),
    check: ("check", "fmt"),
    catalog: ("rules", "targets", "ops"),
}


def parser(verb: str = "") -> argparse.ArgumentParser:
    """Return the parser of the whole command line, or of what can follow a verb alone: each argument takes its time."""
    made = argparse.ArgumentParser(
        prog="tilegg",
        description="An e-graph optimizer for tile programs: tile program in, cheapest legal PTO assembly out.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--version", action="version", version=f"tilegg {__version__}")
    verbs = Verbs(made.add_subparsers(title="verbs", dest="verb", metavar="VERB", required=True))
    asked = [group for group, names in _GROUPS.items() if verb in names]
    for group in asked or _GROUPS:
        group.add(verbs)
    if not asked:
        _add_reproduce(verbs)
    return made


def _add_reproduce(verbs: Verbs) -> None:
    p = verbs.add(
        "reproduce",
        _reproduce,
        "run the command of a crash file again, with the trace shown",
        "  tilegg reproduce /tmp/tilegg-crash-0123456789ab.json",
    )
    p.add_argument("file", metavar="FILE", help="the file named by the message about the fault")


def _reproduce(args: argparse.Namespace, console: Console) -> int:
    from .crash import reproduce

    return reproduce(args, console)


def _shared_options() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(add_help=False)
    group = made.add_argument_group("messages")
    group.add_argument("-q", "--quiet", action="store_true", help="no remarks, summary and progress on stderr")
    group.add_argument(
        "--diagnostics",
        choices=("text", "json", "sarif"),
        default="text",
        help="form of the diagnostics on stderr (default: text, with the source line)",
    )
    group.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour of text diagnostics (auto: on a terminal, unless NO_COLOR is set)",
    )
    return made
