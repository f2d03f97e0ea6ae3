"""Run-time values of tiles: a physical array of which a leading rectangle is valid, the rest garbage.

Hardware leaves the elements outside the valid shape undefined. The interpreter fills them with a fixed
pattern that is neither zero nor a usual value (NaN where the dtype has one), so that a program whose result
depends on them gives a visibly wrong answer, and the same one every time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from . import lazy_numpy as np
from .dtypes import DType

Arr = np.Array

_NAN_PATTERN = {"FP16": 0x7EAD, "BF16": 0x7FAD, "FP32": 0x7FEDDEAD}


class TileArray:
    """A tile's elements: ``data`` in the physical shape, of which ``valid`` leading elements per axis count.

    ``region`` is the view of the valid part. The arrays hold ``dtype.storage`` elements and are treated as
    immutable: whoever changes elements makes a new array, but for what writes into a tile.
    """

    __slots__ = ("data", "region", "valid")

    def __init__(self, data: Arr, valid: tuple[int, ...] | None = None) -> None:
        self.data = data
        shape = data.shape
        if valid is None or valid == shape:
            self.valid: tuple[int, ...] = shape
            self.region = data
        else:
            self.valid = valid
            self.region = data[tuple([slice(n) for n in valid])]

    def copy(self) -> TileArray:
        """Return a tile of the same elements that is changed on its own."""
        return TileArray(self.data.copy(), self.valid)

    def __repr__(self) -> str:
        return f"TileArray(shape={self.data.shape}, valid={self.valid}, dtype={self.data.dtype})"


@lru_cache(maxsize=64)
def poison_element(dtype: DType) -> Any:
    """Return the element (of ``dtype.storage``) that stands for undefined contents."""
    storage = dtype.storage
    if dtype.name in _NAN_PATTERN:
        code = np.array(_NAN_PATTERN[dtype.name], f"uint{dtype.bits}")
        return code.view(storage)[()]
    if dtype.is_coded:
        return storage.type(dtype.nan_code if dtype.nan_code is not None else 0xB)
    if dtype.kind == "bool":
        return storage.type(True)
    low = int("A5" * 8, 16) & ((1 << dtype.bits) - 1) if dtype.bits >= 8 else 0xA
    signed = low - (1 << dtype.bits) if dtype.signed and low >> (dtype.bits - 1) else low
    return storage.type(signed)


def poison(shape: tuple[int, ...], dtype: DType) -> Arr:
    """Return a new array of undefined contents."""
    return np.full(shape, poison_element(dtype), dtype.storage)


def padded(region: Arr, shape: tuple[int, ...], dtype: DType) -> TileArray:
    """Place valid elements in a tile of physical ``shape`` whose padding is undefined."""
    if region.shape == shape:
        return TileArray(region)
    data = _template(shape, dtype).copy()
    out = TileArray(data, region.shape)
    out.region[...] = region
    return out


@lru_cache(maxsize=256)
def _template(shape: tuple[int, ...], dtype: DType) -> Arr:
    return poison(shape, dtype)
