"""Windows that have all rows of their tile: what rules about rows and columns ask of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..ir.program import Const
from ..ir.types import TileType, static
from ..rules.terms import rest_of
from .encode import type_from


class Window(NamedTuple):
    """A window of all rows: the code of its slice, its first column and width, and rows and columns of the tile."""

    rest: int
    first: int
    width: int
    rows: int
    cols: int


def column_window(tile: TileType, shape: int, rest: int) -> Window | None:
    """Return a slice of a tile, given by codes, as columns; ``None`` where it lacks rows or is not literal."""
    window, whole = type_from(0, shape), static(tile.shape)
    _, operands = rest_of(rest)
    starts = [o.value for o in operands[2] if isinstance(o, Const)] if len(operands) > 2 and operands[2] else []
    if not isinstance(window, TileType) or window.valid is not None or whole is None or len(whole) != 2:
        return None
    size = static(window.shape)
    if size is None or len(size) != 2 or len(starts) != 2 or starts[0] != 0 or size[0] != whole[0]:
        return None
    return Window(rest, int(starts[1]), size[1], *whole)


def column_rows(windows: Mapping[str, Sequence[Window]]) -> list[str]:
    """Return the rows of ``tall``, ``beside`` and ``halves`` for the column windows of tiles, by the tiles' terms."""
    out: list[str] = []
    for name, mine in windows.items():
        out += [f"(tall {name} {w.rest})" for w in mine]
        for row, others in windows.items():
            out += [
                f"(beside {name} {w.rest} {row} {o.rest})"
                for w in mine
                for o in others
                if o.rows == 1 and w[1:3] == o[1:3] and w.cols == o.cols
            ]
        out += [
            f"(halves {name} {w.rest} {o.rest})"
            for w in mine
            for o in mine
            if w.first == 0 and o.first == w.width and w.width + o.width == w.cols
        ]
    return out
