"""The windows of a run of several ranks: symmetric memory, undefined bytes, writes on their way.

A window is one slice of bytes per rank. The own slice is an ordinary array in the interpreter; the slice of a
peer is found from it by adding the distance between the slices, as the hardware does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .diagnostics import error
from .dtypes import DType
from .tilearray import Arr, poison

#: Bytes of a cache line, within which writers of different ranks disturb each other.
LINE = 64
_KEPT_VIEWS = 4096


class Cell(NamedTuple):
    """One signal cell: window, the rank whose slice it lies in, and its number in that slice."""

    window: str
    owner: int
    number: int

    def __str__(self) -> str:
        return f"{self.window}[{self.number}] of rank {self.owner}"


@dataclass(frozen=True)
class Region:
    """Some elements of one rank's slice of a window: a start and, per dimension, extents and strides in bytes."""

    window: str
    owner: int
    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @cached_property
    def stop(self) -> int:
        """The byte after the last one touched; ``start`` for an empty region."""
        if 0 in self.shape:
            return self.start
        return self.start + self.itemsize + sum((n - 1) * s for n, s in zip(self.shape, self.strides))

    @cached_property
    def nbytes(self) -> int:
        """The bytes the elements take."""
        return prod(self.shape) * self.itemsize

    @cached_property
    def _bytes(self) -> Arr:
        at = np.array(self.start, np.int64)
        for n, s in zip(self.shape, self.strides):
            at = at[..., None] + np.arange(n, dtype=np.int64) * s
        return np.unique(at.reshape(-1)[:, None] + np.arange(self.itemsize, dtype=np.int64))

    def overlaps(self, other: Region) -> bool:
        """Return whether the two share a byte."""
        if self.window != other.window or self.owner != other.owner:
            return False
        if self.stop <= other.start or other.stop <= self.start:
            return False
        if self.nbytes == self.stop - self.start and other.nbytes == other.stop - other.start:
            return True
        return bool(np.intersect1d(self._bytes, other._bytes, assume_unique=True).size)

    def lines(self) -> set[int]:
        """Return the numbers of the cache lines touched, counted from the slice's start."""
        if 0 in self.shape:
            return set()
        if self.nbytes == self.stop - self.start:
            return set(range(self.start // LINE, (self.stop - 1) // LINE + 1))
        return set((self._bytes // LINE).tolist())

    def __str__(self) -> str:
        return f"bytes {self.start}..{self.stop} of {self.window} on rank {self.owner}"


class Window:
    """A symmetric buffer: ``ranks`` slices of ``size`` bytes, each with a mask of the bytes that are defined."""

    def __init__(self, name: str, ranks: int, size: int, signal: bool = False) -> None:
        self.name, self.ranks, self.size, self.signal = name, ranks, size, signal
        self.pitch = max(LINE, -(-size // LINE) * LINE)
        room = np.zeros(ranks * self.pitch + LINE, np.uint8)
        lead = -room.ctypes.data % LINE
        self.data = room[lead : lead + ranks * self.pitch]
        self.base = self.data.ctypes.data
        self.known = np.zeros(ranks * self.pitch, np.bool_)
        #: Slices known to be defined everywhere, whose masks need not be looked at.
        self.complete = [False] * ranks

    def slice_of(self, rank: int, shape: Sequence[int], dtype: DType) -> Arr:
        """Return one rank's slice as an array."""
        start = rank * self.pitch
        count = int(np.prod(shape)) * dtype.storage.itemsize
        if count > self.size:
            raise error("TG032", f"a view of {count} bytes does not fit {self.name} of {self.size} bytes")
        out: Arr = self.data[start : start + count].view(dtype.storage).reshape(tuple(shape))
        return out

    def poison(self, rank: int, shape: Sequence[int], dtype: DType) -> None:
        """Fill one rank's slice with undefined contents."""
        self.slice_of(rank, shape, dtype)[...] = poison(tuple(shape), dtype)
        self.mark(rank, False)

    def mark(self, rank: int, known: bool) -> None:
        """Declare one rank's whole slice defined, or undefined."""
        self.known[rank * self.pitch : (rank + 1) * self.pitch] = known
        self.complete[rank] = known


class View:
    """An array of the interpreter that lies in a window, with its counterparts on all ranks."""

    __slots__ = ("array", "cells", "known", "offset", "peers", "rank", "window")

    def __init__(self, window: Window, array: Arr) -> None:
        address = array.__array_interface__["data"][0] - window.base
        self.window, self.array = window, array
        self.rank, self.offset = divmod(address, window.pitch)
        self.peers: list[Arr | None] = [None] * window.ranks
        self.known: list[Arr | None] = [None] * window.ranks
        self.peers[self.rank] = array
        self.cells: dict[tuple[int, tuple[int, ...]], Cell] = {}

    def peer(self, rank: int) -> Arr:
        """Return the same elements of another rank's slice."""
        found = self.peers[rank]
        if found is None:
            a, w = self.array, self.window
            start = rank * w.pitch + self.offset
            found = self.peers[rank] = np.ndarray(a.shape, a.dtype, w.data, start, a.strides)
        return found

    def mask(self, rank: int) -> Arr:
        """Return which bytes of these elements are defined on a rank: the array's shape and a last axis of bytes."""
        found = self.known[rank]
        if found is None:
            a, w = self.array, self.window
            start = rank * w.pitch + self.offset
            found = as_strided(w.known[start:], (*a.shape, a.itemsize), (*a.strides, 1))
            self.known[rank] = found
        return found

    def region(self, rank: int, part: Arr) -> Region:
        """Return where a sub-array of :meth:`peer` lies."""
        start = part.__array_interface__["data"][0] - self.window.base - rank * self.window.pitch
        return Region(self.window.name, rank, start, part.shape, part.strides, part.itemsize)

    def cell(self, rank: int, index: tuple[int, ...]) -> Cell:
        """Return the signal cell at an index of this view, on a rank."""
        key = (rank, index)
        found = self.cells.get(key)
        if found is None:
            at = self.offset + sum(i * s for i, s in zip(index, self.array.strides))
            found = self.cells[key] = Cell(self.window.name, rank, at // self.array.itemsize)
        return found


@dataclass(slots=True)
class Write:
    """A write to a window that has been issued but is not yet visible."""

    source: int
    number: int
    region: Region
    part: Arr
    mask: Arr
    data: Arr
    add: bool
    event: int = 0
    released: bool = False

    def apply(self) -> None:
        """Make the write visible."""
        with np.errstate(all="ignore"):
            self.part[...] = self.part + self.data if self.add else self.data
        self.mask[...] = True


class Memory:
    """All windows of a run, and the arrays that lie in them."""

    def __init__(self, ranks: int) -> None:
        self.ranks = ranks
        self.windows: dict[str, Window] = {}
        self._views: dict[int, View] = {}

    def add(self, name: str, size: int, signal: bool = False) -> Window:
        """Make a window; an existing name is an error of the caller."""
        window = self.windows[name] = Window(name, self.ranks, size, signal)
        return window

    def view(self, array: Any) -> View:
        """Return the view an array of the interpreter is; raises TG032 when it lies in no window."""
        found = self._views.get(id(array))
        if found is not None and found.array is array:
            return found
        if len(self._views) >= _KEPT_VIEWS:
            self._views.clear()
        window = self._find(array)
        if window is None:
            raise error("TG032", "the tensor lies in no window", hint="peers can address windows only")
        view = self._views[id(array)] = View(window, array)
        return view

    def holds(self, array: Any) -> bool:
        """Return whether an array lies in a window."""
        return id(array) in self._views or self._find(array) is not None

    def _find(self, array: Any) -> Window | None:
        if not isinstance(array, np.ndarray):
            return None
        address = array.__array_interface__["data"][0]
        for w in self.windows.values():
            if w.base <= address < w.base + w.data.size:
                return w
        return None


def flush_order(writes: Iterable[Write], wanted: Write) -> list[Write]:
    """Return the writes to apply so that ``wanted`` becomes visible: earlier overlapping ones come first."""
    earlier = [w for w in writes if w.number < wanted.number]
    needed = [wanted]
    for w in sorted(earlier, key=lambda w: -w.number):
        if any(w.region.overlaps(n.region) for n in needed):
            needed.append(w)
    return needed[::-1]
