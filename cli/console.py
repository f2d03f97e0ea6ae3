"""What goes to stderr: diagnostics in the asked form, remarks, the summary line, progress on a terminal."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TextIO

from ..ir.diagnostics import Diagnostic, Span, TileggError, to_sarif
from .streams import put, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..testing.progress import Bar


class Console:
    """The messages of one command; text diagnostics appear at once, JSON and SARIF as one document at the end.

    ``json_stdout`` is set by verbs that print JSON to stdout: a failure is then a JSON object there, too.
    """

    def __init__(self, args: Namespace) -> None:
        self.form: str = args.diagnostics
        self.quiet: bool = args.quiet
        self.color = _wants_color(args.color, sys.stderr)
        self.json_stdout = False
        self.sources: dict[str, str] = {}
        self.read_files: dict[str, bytes] = {}
        self._held: list[Diagnostic] = []
        self._bar: Bar | None = None

    @property
    def start(self) -> Span | None:
        """The start of the first input read, for problems that have no better place."""
        return next((Span(name, 1, 1, 1, 1) for name in self.sources), None)

    def report(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Show diagnostics; remarks are left out when quiet."""
        for d in diagnostics:
            if d.severity == "remark" and self.quiet:
                continue
            if self.form == "text":
                self._clear_progress()
                source = self.sources.get(d.span.file) if d.span else None
                say(d.render(source, self.color))
            else:
                self._held.append(d)

    def fail(self, problem: TileggError) -> int:
        """Show the diagnostics of a failure and return the exit code 1."""
        self.report(problem.diagnostics)
        if self.json_stdout:
            # That stdout cannot be written may be the very failure.
            with suppress(TileggError):
                print_json({"schema": 1, "diagnostics": [d.to_json() for d in problem.diagnostics]})
        return 1

    def finish(self) -> None:
        """Write what was held back."""
        self._clear_progress()
        if self.form == "json":
            held = {"schema": 1, "diagnostics": [d.to_json() for d in self._held]}
            say(json.dumps(held, indent=2))
        elif self.form == "sarif":
            from .. import __version__

            say(json.dumps(to_sarif(self._held, __version__), indent=2))
        self._held = []

    def note(self, text: str) -> None:
        """Show a line for people, such as the summary; stderr stays a pure document in the other forms."""
        if not self.quiet and self.form == "text":
            self.always(text)

    def always(self, text: str) -> None:
        """Show text that was asked for, whatever the form."""
        self._clear_progress()
        say(text)

    def progress(self, what: str) -> Callable[[int, int], None] | None:
        """Return a function that shows ``done`` of ``total`` in place, or ``None`` off a terminal."""
        if self.quiet or self.form != "text" or not sys.stderr.isatty():
            return None

        from ..testing.progress import Bar

        self._bar = Bar(what)
        return self._bar

    def _clear_progress(self) -> None:
        if self._bar is not None:
            self._bar.clear()


def _wants_color(choice: str, stream: TextIO) -> bool:
    if choice != "auto":
        return choice == "always"
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def print_json(value: Any) -> None:
    """Print a JSON document to stdout."""
    put(json_text(value))


def json_text(value: Any) -> str:
    """Return a JSON document; numbers that JSON cannot write become words."""
    return json.dumps(_plain(value), indent=2, allow_nan=False) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
