"""Max and min as hardware documents leave them open: the choice that the declared meanings do not take.

They say NaN if an operand is NaN, and of two zeros +0 is the larger; here a NaN loses against a number, and -0 is the
larger. A rule must hold both ways. Left out are ``addrelu`` and the expanded forms: an instruction that fuses two steps
need not decide as the two do, so rules about those need facts that exclude the cases.
"""

from __future__ import annotations

from typing import Any

from ..ir import lazy_numpy as np
from ..ir.dtypes import DType
from ..ir.tilearray import Arr

#: Operations with an open choice, and whether they look for the larger or the smaller one.
OTHER_CHOICES = {
    **{f"tile.{n}": "fmax" for n in ("maximum", "maximums", "relu", "row_max", "col_max")},
    **{f"tile.{n}": "fmin" for n in ("minimum", "minimums", "row_min", "col_min")},
}
#: Reductions, and along which axis.
_AXES = {"tile.row_max": 1, "tile.row_min": 1, "tile.col_max": 0, "tile.col_min": 0}


def other_choice(op: str, dtype: DType, data: Arr, *others: Any) -> Arr:
    """Return an operation's value on storage arrays of a dtype under the other choice."""
    larger = OTHER_CHOICES[op] == "fmax"
    if op in _AXES:
        return _folded(larger, dtype, data, _AXES[op])
    other = others[0] if others else np.zeros_like(data)
    return _choose(larger, dtype, data, np.asarray(other))


def _folded(larger: bool, dtype: DType, data: Arr, axis: int) -> Arr:
    """Choose along an axis, half with half: the order does not matter."""
    while data.shape[axis] > 1:
        half = data.shape[axis] // 2
        first, second, rest = np.split(data, [half, 2 * half], axis)
        data = np.concatenate([_choose(larger, dtype, first, second), rest], axis)
    return data


def _choose(larger: bool, dtype: DType, a: Arr, b: Arr) -> Arr:
    a, b = np.broadcast_arrays(a, b)
    with np.errstate(invalid="ignore"):
        picked: Arr = (np.fmax if larger else np.fmin)(a, b).astype(dtype.storage)
        if not dtype.is_float:
            return picked
        # Signalling NaNs too: what numpy makes of them depends on the processor.
        picked = np.where(a != a, b, np.where(b != b, a, picked))
        wanted = np.signbit(a) if larger else ~np.signbit(a)
        return np.where((a == 0) & (b == 0), np.where(wanted, a, b), picked)
