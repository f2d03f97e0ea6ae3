"""What the audit compares: values of classes, bit for bit, and the numbers they hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.convert import decode, same_bits
from ..ir.tilearray import Arr, TileArray
from ..ir.types import ScalarType, TileType, Type
from ..rules.rule import rule_names


def numbers_of(value: Any, t: Type) -> Arr | None:
    """Return the numbers a tile's valid region or a scalar holds; ``None`` for other values."""
    if isinstance(value, TileArray) and isinstance(t, TileType):
        return decode(np.ascontiguousarray(value.region), t.dtype)
    if isinstance(t, ScalarType) and isinstance(value, int | float):
        if t.dtype.is_float:
            return np.array([value], np.float64)
        return np.array([int(value)], np.uint64 if value > 2**63 - 1 else np.int64)
    return None


def rule_name(number: int) -> str:
    """Return the name of a rule by its provenance number."""
    return rule_names()[number]


def same_value(a: Any, b: Any, t: Type) -> bool:
    """Return whether two values of one type are equal bit for bit, NaN payloads and padding aside."""
    if isinstance(a, TileArray) and isinstance(b, TileArray) and isinstance(t, TileType):
        if a.region.shape != b.region.shape or a.region.dtype != b.region.dtype:
            return False
        left, right = (np.ascontiguousarray(v.region) for v in (a, b))
        return bool(same_bits(left, right, t.dtype).all())
    if isinstance(a, float) and isinstance(b, float):
        return np.float64(a).tobytes() == np.float64(b).tobytes() or (a != a and b != b)
    return type(a) is type(b) and bool(a == b)


def first_difference(a: Any, b: Any, t: Type) -> str:
    """Return the first differing element of two unequal values as text."""
    if not (isinstance(a, TileArray) and isinstance(b, TileArray) and isinstance(t, TileType)):
        return f"{b!r} where {a!r} is due"
    left, right = (np.ascontiguousarray(v.region) for v in (a, b))
    if left.shape != right.shape or left.dtype != right.dtype:
        return f"{right.dtype}{right.shape} where {left.dtype}{left.shape} is due"
    differ = ~same_bits(left, right, t.dtype)
    want, got = (decode(v, t.dtype)[differ][:1].tolist()[0] for v in (left, right))
    return f"{got!r} where {want!r} is due ({int(differ.sum())} elements)"
