"""Pointers at run time: a memory of elements and an offset, one for a function or one per thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import lanes
from . import lazy_numpy as np
from .diagnostics import error
from .dtypes import DType
from .lanes import Arr


@dataclass(frozen=True, eq=False)
class Pointer:
    """Elements of ``dtype`` in ``memory`` (a storage array), from element ``offset``.

    ``memory`` has one axis, or two where every thread has a memory of its own (``[threads, elements]``); ``offset``
    is an int or one integer per thread.
    """

    memory: Arr
    dtype: DType
    offset: Any = 0

    def moved(self, elements: Any) -> Pointer:
        """Return the pointer some elements further."""
        return Pointer(self.memory, self.dtype, self.offset + elements)

    def read(self, index: Any, active: Arr | None = None) -> Any:
        """Return elements as carriers (a Python number for an int index); raises TG032 outside of the memory."""
        at = self.place(index, active)
        if not isinstance(at, np.ndarray):
            return lanes.number(self._row(at), self.dtype)
        picked = self.memory[np.arange(at.size), at] if self.memory.ndim == 2 else self.memory[at]
        return lanes.load(picked, self.dtype)

    def write(self, index: Any, values: Any, active: Arr | None = None) -> None:
        """Write elements; of threads that write one element the last one stays. Raises TG032 outside."""
        at = self.place(index, active)
        if not self.memory.flags.writeable:
            raise error("TG032", "the memory is read only", hint="mark the parameter pl.Out or pl.InOut")
        if not isinstance(at, np.ndarray):
            self._row(at)[...] = lanes.store(np.asarray([values]), self.dtype)[0]
            return
        on = np.ones(at.size, np.bool_) if active is None else active
        stored = lanes.store(np.broadcast_to(np.asarray(values), at.shape), self.dtype)
        if self.memory.ndim == 2:
            self.memory[np.arange(at.size)[on], at[on]] = stored[on]
        else:
            self.memory[at[on]] = stored[on]

    def _row(self, at: int) -> Arr:
        row: Arr = (self.memory[0] if self.memory.ndim == 2 else self.memory)[at : at + 1]
        return row

    def place(self, index: Any, active: Arr | None) -> Any:
        """Return checked element numbers; those of inactive threads become 0."""
        at = self.offset + index
        if active is None and not isinstance(at, np.ndarray):
            self._check(int(at), int(at))
            return int(at)
        at = np.broadcast_to(np.asarray(at, np.int64), (active.size,) if active is not None else np.shape(at))
        used = at if active is None else at[active]
        if used.size:
            self._check(int(used.min()), int(used.max()))
        return at.copy() if active is None else np.where(active, at, 0)

    def _check(self, low: int, high: int) -> None:
        size = self.memory.shape[-1]
        if low < 0 or high >= size:
            where = low if low < 0 else high
            raise error("TG032", f"element {where} is outside of the memory", reason=f"it has {size} elements")
