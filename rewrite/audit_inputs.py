"""Inputs of audited programs: hostile elements from pools that are drawn once, since programs are many and small."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..ir.dtypes import DType
from ..ir.inputs import FREE, Domain, Drawer, Pools, restrict
from ..ir.tilearray import Arr

#: Elements of one pool, and turns after which :meth:`Pools.elements` repeats its kinds of elements.
_SIZE, _TURNS = 512, 21


class PooledDrawer(Drawer):
    """Draws inputs as :class:`Drawer` does, the elements of one array from pools about two dtypes of the program."""

    def elements(self, count: int, dtype: DType, domain: Domain, rng: np.random.Generator, turn: int) -> Arr:
        """Return ``count`` elements inside the domain."""
        others = self.others or (dtype,)
        pools = [_pool(dtype, others[int(rng.integers(len(others)))], turn % _TURNS) for _ in range(2)]
        first = rng.integers(0, count + 1)
        drawn = np.concatenate([rng.choice(pools[0], first), rng.choice(pools[1], count - first)])
        return restrict(rng.permutation(drawn), dtype, domain, rng)


@lru_cache(maxsize=16384)
def _pool(dtype: DType, other: DType, turn: int) -> Arr:
    rng = np.random.default_rng([turn, *dtype.name.encode(), *other.name.encode()])
    return Pools((other,)).elements(_SIZE, dtype, FREE, rng, turn)
