"""The check of rules that leave roundings out: the right side is never farther from the real value than the left.

The left side is computed once more without any rounding, in extended precision; operands are numbers of at most
24 significant bits, so products are exact there and sums and quotients good to 2**-63.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..ir.codes import decode
from ..ir.convert import encode
from ..ir.lanes import number
from ..ir.ops._math import scalar_like
from ..ir.tilearray import Arr
from ..ir.types import ScalarType
from .check_eval import Valued
from .rule import Pattern, Rule, Var

_SLACK = 2.0**-50

_REAL: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "adds": np.add, "subs": np.subtract,
    "muls": np.multiply, "divs": np.divide, "neg": np.negative, "sqrt": np.sqrt, "recip": lambda x: 1 / x,
    "row_expand_mul": np.multiply, "col_expand_mul": np.multiply, "row_expand_div": np.divide,
    "col_expand_div": np.divide,
}  # fmt: skip


def real_value(p: Pattern, values: Mapping[Var, Valued], like: Valued) -> Any:
    """Return the value of a pattern over the real numbers."""
    if isinstance(p, Var):
        value = values[p]
        if isinstance(value.type, ScalarType):
            rounded = np.asarray([scalar_like(number(value.data[0], value.dtype), like.dtype)])
            return decode(rounded.astype(like.dtype.storage), like.dtype).astype(np.longdouble)
        return decode(value.data, value.dtype).astype(np.longdouble)
    children = [real_value(c, values, like) for c in p.children]
    return _REAL[p.op.removeprefix("tile.")](*children)


def contracted_failures(rule: Rule, values: Mapping[Var, Valued], left: Valued, right: Valued) -> list[str]:
    """Return where the right side is farther from the real value than the left side, as text."""
    if left.type != right.type:
        return [f"{rule.name}: {left.type} on the left, {right.type} on the right"]
    with np.errstate(all="ignore"):
        real = np.broadcast_to(real_value(rule.lhs, values, left), left.data.shape)
        had, got = (decode(v.data, v.dtype).astype(np.longdouble) for v in (left, right))
        worse = _distance(got, real) > _distance(had, real) + np.abs(np.where(np.isfinite(real), real, 0)) * _SLACK
        # Overflow is not farther away: infinity is the real value rounded once, as IEEE has it.
        rounded = decode(encode(real.astype(np.float64), left.dtype, "rint", False), left.dtype)
        worse &= ~(np.isinf(got) & (got == rounded))
    if not worse.any():
        return []
    at = tuple(int(i) for i in np.argwhere(worse)[0])
    return [f"{rule.name}: {float(real[at])!r} is {float(had[at])!r} on the left, {float(got[at])!r} on the right"]


def _distance(value: Arr, real: Arr) -> Any:
    same = (value == real) | (np.isnan(value) & np.isnan(real))
    far = np.abs(value - real)
    return np.where(same, 0, np.where(np.isnan(far), np.inf, far))
