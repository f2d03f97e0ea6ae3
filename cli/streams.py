"""The streams of a process: UTF-8 whatever the locale says, and any of them may be closed, full or gone.

Messages that cannot be written change nothing. A result that cannot be written is TG013, with the system's reason; a
reader that went away early (``head``) is no failure to speak of.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TextIO

    from ..ir.diagnostics import TileggError

_HINT = "name a file with -o where the command has it, or see where its output goes"


def open_streams() -> None:
    """Make streams write UTF-8, and put a stream that goes nowhere in the place of a closed stderr.

    Nothing may stand in the place of a closed stdout: what is written there must be found missing.
    """
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the end
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None and str(stream.encoding).lower() not in ("utf-8", "utf8"):
            reconfigure(encoding="utf-8", errors="backslashreplace")


def say(text: str) -> None:
    """Write a line to stderr, if that takes it."""
    try:
        print(text, file=sys.stderr)
    except (OSError, ValueError):
        discard(sys.stderr)


def put(data: str | bytes) -> None:
    """Write to stdout; raises TG013 when it is closed or takes no more."""
    _with_stdout(lambda: _put(data))


def flush_stdout() -> None:
    """Write what is still held back for stdout; raises TG013 when that cannot be done."""
    if sys.stdout is not None:
        _with_stdout(sys.stdout.flush)


def _put(data: str | bytes) -> None:
    if sys.stdout is None:
        raise ValueError("it is closed")
    if isinstance(data, str):
        sys.stdout.write(data)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _with_stdout(action: Callable[[], object]) -> None:
    try:
        action()
    except (BrokenPipeError, UnicodeError):
        raise
    except (OSError, ValueError) as problem:
        discard(sys.stdout)
        raise _unwritable(problem) from None


def _unwritable(problem: OSError | ValueError) -> TileggError:
    from ..ir.diagnostics import error

    reason = getattr(problem, "strerror", None) or str(problem)
    return error("TG013", "cannot write to stdout", reason=reason[:200], hint=_HINT)


def discard(stream: TextIO | None) -> None:
    """Point a stream nowhere, so that what it still holds cannot fail again when the process ends."""
    from contextlib import suppress

    if stream is None:
        return
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
