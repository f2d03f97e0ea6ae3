"""One line on a terminal's stderr that says how far a long test is."""

from __future__ import annotations

import sys
import time
from typing import TextIO

_WIDTH = 24
_CLEAR = "\r\x1b[K"


class Bar:
    """Shows ``done`` of ``total`` in place: ``bar(done, total)``, as ``progress=`` takes it.

    Nothing is written where the stream is no terminal. The line is redrawn a hundred times in all, so that drawing
    costs no time, and goes away at the end; :meth:`clear` takes it away earlier.
    """

    def __init__(self, what: str, stream: TextIO | None = None) -> None:
        self.what = what
        self.stream = sys.stderr if stream is None else stream
        self.shown = False
        self._start = time.monotonic()
        self._drawn = -1
        self._live = self.stream.isatty()

    def __call__(self, done: int, total: int) -> None:
        if not self._live:
            return
        percent = 100 * done // max(total, 1)
        if done >= total:
            self.clear()
        elif percent != self._drawn:
            self._drawn = percent
            self.shown = True
            left = (time.monotonic() - self._start) * (total - done) / done if done else 0.0
            filled = _WIDTH * done // total
            bar = "#" * filled + "." * (_WIDTH - filled)
            text = f"{self.what} [{bar}] {done:,}/{total:,}, {left:.0f} s left"
            print(_CLEAR + text, end="", file=self.stream, flush=True)

    def clear(self) -> None:
        """Take the line away."""
        if self.shown:
            print(_CLEAR, end="", file=self.stream, flush=True)
            self.shown = False
