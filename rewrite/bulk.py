"""Terms and fact rows in bulk: many of one shape enter the e-graph in one command.

A command of its own for each costs thirty microseconds and more. Those of a shape that comes often are written as
numbers to a file in memory, which egglog reads into one table in one go; a rule for each shape moves them on to the
tables that they belong to.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterable

WIDTH = 28  # numbers that a row can have
OFTEN = 8  # rows of a shape before it gets a rule
TABLE = "rows"
_PADDING = [["0"] * (WIDTH - count) for count in range(WIDTH + 1)]
_NUMBER = re.compile(r"(?<![\w])(-?\d+)")


def schema() -> list[str]:
    """Return the egglog declaration of the common table."""
    return [f"(relation {TABLE} ({' '.join(['i64'] * (WIDTH + 1))}))"]


def moving(number: int) -> str:
    """Return the name of the ruleset that moves the rows under a number."""
    return f"moving_{number}"


def shape_of(row: str) -> tuple[str, list[str]]:
    """Return a row's text with its numbers left out, and the numbers."""
    parts = _NUMBER.split(row)
    return "#".join(parts[::2]), parts[1::2]


def rule_of(shape: str, number: int) -> list[str]:
    """Return the rule, in a set of its own, that moves rows of a shape; they stand in the common table by number."""
    parts = shape.split("#")
    names = [f"n{i}" for i in range(WIDTH)]
    text = "".join(part + name for part, name in zip(parts, [*names[: len(parts) - 1], ""], strict=True))
    row = f"({TABLE} {number} {' '.join(names)})"
    named = f':ruleset {moving(number)} :name "{TABLE}.{number}"'
    return [f"(ruleset {moving(number)})", f"(rule ({row}) ({text}) {named})"]


def commands(path: str, ruleset: str) -> list[str]:
    """Return the commands that read rows from a file and move them to their tables by the rules of a set."""
    return [f'(input {TABLE} "{path}")', f"(run-schedule (run {ruleset}))"]


class Movers:
    """The rules that move rows, by shape of row; those of shapes that came often are ``wanted``."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self.wanted: list[str] = []

    def divide(self, rows: Iterable[str]) -> tuple[list[str], list[str], set[int]]:
        """Divide rows into those that no rule moves, as they are, and the others, as lines of the common table.

        Returns also the numbers under which the others stand.
        """
        alone, together, met = list[str](), list[str](), set[int]()
        for row in rows:
            shape, numbers = shape_of(row)
            number = self._numbers.get(shape)
            if number is not None:
                met.add(number)
                together.append("\t".join([str(number), *numbers, *_PADDING[len(numbers)]]))
                continue
            alone.append(row)
            self._seen[shape] = count = self._seen.get(shape, 0) + 1
            if count == OFTEN and len(numbers) <= WIDTH:
                self.wanted.append(shape)
        return alone, together, met

    def new_rules(self) -> list[str]:
        """Return the rules of the wanted shapes; from now on they are there."""
        out = [text for i, shape in enumerate(self.wanted) for text in rule_of(shape, len(self._numbers) + i)]
        self._numbers.update({shape: len(self._numbers) + i for i, shape in enumerate(self.wanted)})
        self.wanted.clear()
        return out


class MemoryFile:
    """A file in memory that another library can open by its path.

    A process that was forked gets one of its own: the two would write over each other's rows.
    """

    def __init__(self) -> None:
        self._open()

    @staticmethod
    def there() -> bool:
        """Tell whether this system has such files."""
        return hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd")

    def _open(self) -> None:
        # A number, not a file object, which would warn about itself when the process ends.
        self._process = os.getpid()
        self._file = os.memfd_create(TABLE)
        weakref.finalize(self, os.close, self._file)

    def write(self, lines: Iterable[str]) -> str:
        """Replace the contents by rows, cells separated by tabs; return the path to read them from."""
        if self._process != os.getpid():
            self._open()
        rest = memoryview("".join([f"{line}\n" for line in lines]).encode())
        os.ftruncate(self._file, 0)
        at = 0
        while at < len(rest):
            at += os.pwrite(self._file, rest[at:], at)
        return f"/proc/self/fd/{self._file}"
