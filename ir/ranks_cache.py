"""The scalar cache of a rank under the ``"fenced"`` memory model: whole lines, stale until they are invalidated.

A scalar store and a ``Set`` notify go through the cache: what reaches memory later is the whole line as it was when the
element was changed, so that neighbouring elements that another rank has changed meanwhile are put back. A scalar read
sees the line as it was read first. Tile loads, stores, puts and gets do not pass through this cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .ranks_memory import LINE, Region, View, Write
from .tilearray import Arr

#: Window, owner of the slice, number of the line in it.
_Line = tuple[str, int, int]


class ScalarCache:
    """The cached lines of one rank."""

    def __init__(self) -> None:
        self._lines: dict[_Line, Arr] = {}

    def read(self, view: View, owner: int, index: tuple[int, ...]) -> Any:
        """Return a stored element as the cache has it, fetching its line first if need be."""
        at = _offset(view, index)
        line = self._line(view, owner, at)
        size = view.array.itemsize
        start = at % LINE
        return line[start : start + size].view(view.array.dtype)[0]

    def write(self, view: View, owner: int, index: tuple[int, ...], value: Any, source: int, number: int) -> Write:
        """Change an element in the cache and return the write of its line to memory."""
        at = _offset(view, index)
        line = self._line(view, owner, at)
        start = at % LINE
        line[start : start + view.array.itemsize] = np.array([value], view.array.dtype).view(np.uint8)
        first = at - start
        region = Region(view.window.name, owner, first, (LINE,), (1,), 1)
        base = owner * view.window.pitch + first
        part = view.window.data[base : base + LINE]
        mask = view.mask(owner)[tuple(slice(i, i + 1) for i in index)]
        return Write(source, number, region, part, mask, line.copy(), False)

    def drop(self, region: Region | None = None) -> None:
        """Forget the lines of a region, or all of them."""
        if region is None:
            self._lines.clear()
            return
        gone = region.lines()
        self._lines = {k: v for k, v in self._lines.items() if k[0] != region.window or k[2] not in gone}

    def _line(self, view: View, owner: int, at: int) -> Arr:
        key = (view.window.name, owner, at // LINE)
        found = self._lines.get(key)
        if found is None:
            start = owner * view.window.pitch + at // LINE * LINE
            found = self._lines[key] = view.window.data[start : start + LINE].copy()
        return found


def _offset(view: View, index: tuple[int, ...]) -> int:
    """Return the byte of an element, counted from the start of a slice; raises IndexError outside the view."""
    if any(not 0 <= i < n for i, n in zip(index, view.array.shape)):
        raise IndexError(f"element {list(index)} lies outside {list(view.array.shape)}")
    return int(view.offset + sum(i * s for i, s in zip(index, view.array.strides)))
