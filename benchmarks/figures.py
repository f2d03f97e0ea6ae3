"""The figures that stand in the README: each benchmark prints its own, `run_all.py` keeps them, the docs collect them.

A line `= what | measured | bound` in a benchmark's kept output is one row of the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def figure(what: str, measured: str, bound: str = "") -> None:
    """Print one figure with what it should be."""
    print(f"= {what} | {measured} | {bound}", flush=True)


def figures(folder: Path = RESULTS) -> Iterator[tuple[str, str, str, str]]:
    """Yield (benchmark, what, measured, bound) of every figure in the kept outputs, by file and in order."""
    for path in sorted(folder.glob("*.txt")):
        for line in path.read_text().splitlines():
            if line.startswith("= "):
                what, measured, bound = (part.strip() for part in line[2:].split("|"))
                yield path.stem, what, measured, bound
