"""The command line: one file per group of verbs, everything heavy imported by the verb that needs it.

Exit codes: 0 done, 1 diagnostics or a difference found, 2 wrong usage, 130 interrupted, 141 output closed.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["main"]

INTERRUPTED = 130
PIPE_CLOSED = 141
#: Objects made before cycles are looked for among them: nearly all that a command makes lives until its end.
_GARBAGE = 200_000


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; nothing but the exit code leaves this function.

    Without arguments the command is the process's own, and the process ends with it.
    """
    if argv is not None:
        return _main(list(argv))
    gc.set_threshold(_GARBAGE)
    try:
        return _main(sys.argv[1:])
    finally:
        # What is left is about to go with the process: nobody need look for cycles in it.
        gc.freeze()


def _main(words: list[str]) -> int:
    from .streams import discard, open_streams, say

    open_streams()
    try:
        return _parsed(words)
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        discard(sys.stdout)
        return PIPE_CLOSED


def _parsed(words: list[str]) -> int:
    from .options import parser

    try:
        args = parser(words[0] if words else "").parse_args(words)
        # Options that make sense only together, where a verb has some.
        if "together" in args:
            args.together(args)
    except SystemExit as stop:
        return _flushed(stop.code if isinstance(stop.code, int) else 0)
    return _flushed(_run(args, words))


def _flushed(code: int) -> int:
    """Write what is still held back for stdout, and return the exit code."""
    from .streams import flush_stdout, say

    try:
        flush_stdout()
    except BrokenPipeError:
        raise
    except Exception as problem:
        say(str(problem))
        return code or 1
    return code


def _run(args: Namespace, words: list[str]) -> int:
    from ..ir.diagnostics import TileggError, error
    from .console import Console
    from .streams import flush_stdout

    console = Console(args)
    code: int
    try:
        code = args.run(args, console)
        flush_stdout()
    except TileggError as problem:
        code = console.fail(problem)
    except RecursionError:
        code = console.fail(error("TG012", "the program is nested too deeply", console.start))
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as problem:
        from .crash import report_crash

        code = report_crash(problem, words, console)
    console.finish()
    return code
