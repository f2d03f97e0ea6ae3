"""The threads of one SIMT launch: their coordinates, lanes and warps, and what a meaning may ask about them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from . import lazy_numpy as np
from .lanes import Arr
from .op import Env

#: Lanes of a warp.
WARP = 32
#: Most threads of one launch that the interpreter runs at once.
MAX_THREADS = 1 << 16

Triple = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Threads:
    """The threads of a block: ``dims`` along x, y and z (x fastest); ``block`` of ``grid`` blocks."""

    dims: Triple
    block: Triple = (0, 0, 0)
    grid: Triple = (1, 1, 1)

    @cached_property
    def count(self) -> int:
        return self.dims[0] * self.dims[1] * self.dims[2]

    @cached_property
    def linear(self) -> Arr:
        return np.arange(self.count, dtype=np.int64)

    @cached_property
    def ids(self) -> tuple[Arr, Arr, Arr]:
        """Coordinates along x, y and z."""
        x, y, _ = self.dims
        return self.linear % x, self.linear // x % y, self.linear // (x * y)

    @cached_property
    def lane(self) -> Arr:
        return self.linear % WARP

    @cached_property
    def warp(self) -> Arr:
        return self.linear // WARP

    def rows(self, values: Arr, fill: Any = 0) -> Arr:
        """Return values as ``[warps, 32]``, the last warp filled up."""
        values = np.broadcast_to(values, (self.count, *np.shape(values)[1:]))
        missing = -self.count % WARP
        if missing:
            pad = np.full((missing, *values.shape[1:]), fill, values.dtype)
            values = np.concatenate([values, pad])
        return values.reshape(-1, WARP, *values.shape[1:])

    def flat(self, rows: Arr) -> Arr:
        """Undo :meth:`rows`."""
        return rows.reshape(-1, *rows.shape[2:])[: self.count]

    def per_warp(self, values: Arr) -> Arr:
        """Return one value per warp handed to each of its threads."""
        return values[self.warp]


@dataclass
class SimtState:
    """What outlives one launch: kept values by slot; and the statements run so far, which the clock counts."""

    kept: dict[int, Arr] = field(default_factory=dict)
    clock: int = 0


@dataclass(frozen=True)
class LaneEnv(Env):
    """What a SIMT meaning sees: the threads, which of them are active here, and the state that outlives them."""

    threads: Threads = field(default_factory=lambda: Threads((1, 1, 1)))
    active: Arr = field(default_factory=lambda: np.ones(1, np.bool_))
    state: SimtState = field(default_factory=SimtState)
