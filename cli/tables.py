"""Plain text tables."""

from __future__ import annotations

from collections.abc import Sequence


def table(head: Sequence[str], rows: Sequence[Sequence[object]], limit: int = 60) -> str:
    """Return aligned columns under a heading; cells longer than ``limit`` are cut, but not in the last column."""
    last = len(head) - 1
    cells = [list(head)]
    for row in rows:
        words = [_word(cell) for cell in row]
        cells.append([w if i == last or len(w) <= limit else w[: limit - 1] + "…" for i, w in enumerate(words)])
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    lines = ["  ".join(f"{w:<{n}}" for w, n in zip(row, widths)).rstrip() for row in cells]
    return "\n".join(lines) + "\n"


def _word(cell: object) -> str:
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, float):
        return f"{cell:g}"
    return "" if cell is None else str(cell)
