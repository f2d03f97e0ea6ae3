"""The command line: one file per group of verbs, everything heavy imported by the verb that needs it.

Exit codes: 0 done, 1 diagnostics or a difference found, 2 wrong usage, 130 interrupted, 141 output closed.
"""

from __future__ import annotations

import gc
import os
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
    from .options import parser

    _use_utf8()
    try:
        args = parser(words[0] if words else "").parse_args(words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    try:
        return _run(args, words)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _close_stdout()
        return PIPE_CLOSED


def _run(args: Namespace, words: list[str]) -> int:
    from ..ir.diagnostics import TileggError, error
    from .console import Console

    console = Console(args)
    code: int
    try:
        code = args.run(args, console)
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
    sys.stdout.flush()
    return code


def _use_utf8() -> None:
    """Write UTF-8 whatever the locale says: files and pipes hold the same bytes everywhere."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and str(stream.encoding).lower() not in ("utf-8", "utf8"):
            reconfigure(encoding="utf-8", errors="backslashreplace")


def _close_stdout() -> None:
    """Point stdout nowhere, so that flushing it at exit cannot fail again."""
    from contextlib import suppress

    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
