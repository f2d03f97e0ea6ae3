"""Comparisons of converted numbers: where the conversion loses nothing, what was converted compares the same.

A conversion that holds every number exactly and leaves infinities alone keeps order, equality and NaN, so that one mask
serves tiles of several dtypes and the conversion may not be needed at all. Which dtypes have which comparison is the
target's matter.
"""

from __future__ import annotations

import math

from ..ir import lazy_numpy as np
from ..ir.dtypes import FP32, INDEX, DType
from ..ir.ops.select import COMPARISONS
from ..ir.program import Const
from .casts import a, b, cast, m, s
from .computed import Computed, computed, declare, held
from .facts import dtype_holds, fits, is_compared, keeps_infinity
from .rule import rule, values
from .select import cmp, cmps

(x, y, c, r) = values("x y c r")


def _as_in(c: Const, source: DType, dtype: DType) -> tuple[Const, ...] | None:
    """Return the literal that is for tiles of ``source`` the number that ``c`` is for tiles of ``dtype``."""
    if isinstance(c.value, bool) or not _holds(dtype, c.value) or not math.isfinite(c.value):
        return None
    if not dtype.is_float and isinstance(c.value, float):
        return None
    if source.is_float:
        value = c if isinstance(c.value, float) else Const(float(c.value), FP32)
        return (value,) if _holds(source, c.value) else None
    if c.value != int(c.value) or not _holds(source, int(c.value)):
        return None
    return (c if isinstance(c.value, int) else Const(int(c.value), INDEX),)


def _holds(dtype: DType, value: int | float) -> bool:
    if dtype_holds("is_integer", (dtype,)):
        return math.isfinite(value) and dtype.min_value <= value <= dtype.max_value
    return dtype_holds("has_arithmetic", (dtype,)) and (value == 0 or held(float(value), dtype))


def _bound_of_either(rng: np.random.Generator, dtype: DType) -> tuple[Const, ...]:
    """A small number, which most dtypes hold, as either kind of literal; a fraction; or the end of a float's range."""
    whole = int(rng.integers(0, 120)) * int(rng.choice([1, 1, -1]))
    kinds = [Const(whole, INDEX), Const(float(whole), FP32), Const(whole / 8, FP32), Const(-0.0, FP32)]
    if dtype.is_float and rng.random() < 0.3:
        # What an infinity becomes in a conversion that saturates.
        return (Const(math.copysign(float(dtype.max_value), whole), FP32),)
    return (kinds[int(rng.choice(4, p=[0.4, 0.3, 0.2, 0.1]))],)


declare(
    {
        "same_in": Computed(
            "a number for tiles of the second dtype, and it for tiles of the first one; both hold it", 1, 1, _as_in,
            _bound_of_either, codes=("dtype", "dtype"), everywhere=True,
        )
    }
)  # fmt: skip


def _rules() -> None:
    reason = "the conversion holds every number exactly and keeps order and NaN: the comparison may come before it"
    for how, word in enumerate(COMPARISONS):
        rule(
            f"cmps.cast.{word}", lhs=cmps(how, cast(x, a, b, m, s), c), rhs=cmps(how, x, r),
            when=[
                fits(x, b), keeps_infinity(b, s), computed("same_in", c, dtype=a, more=(b,), gives=(r,)),
            ],
            contract="exact", reason=reason,
        )  # fmt: skip
        rule(
            f"cmp.cast.{word}", lhs=cmp(how, cast(x, a, b, m, s), cast(y, a, b, m, s)), rhs=cmp(how, x, y),
            when=[is_compared(a), fits(x, b), fits(y, b), keeps_infinity(b, s)], contract="exact", reason=reason,
        )  # fmt: skip


_rules()
