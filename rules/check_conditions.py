"""Conditions on values, decided element by element and without value sets, which they are the check of."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..ir.convert import decode, encode
from ..ir.dtypes import DType
from ..ir.tilearray import Arr
from .check_eval import Assignment
from .facts import BOUNDS, FACTS, MAGNITUDE
from .rule import Condition, Var
from .terms import CODE_DTYPES


def codes_of(c: Condition, codes: Assignment) -> list[int]:
    """Return the further codes of a condition on a value."""
    return [codes[a] if isinstance(a, Var) else a for a in c.args[1:] if isinstance(a, Var | int)]


def value_condition(relation: str, array: Arr, dtype: DType, codes: Sequence[int]) -> Arr:
    """Return which elements of a storage array satisfy a value condition with these further arguments (codes)."""
    kinds = FACTS[relation][0][1:]
    extra = [CODE_DTYPES[code] if kind == "dtype" else code for kind, code in zip(kinds, codes)]
    return VALUE_CONDITIONS[relation](array, dtype, *extra)


def holds_exactly(array: Arr, src: DType, dst: DType) -> Arr:
    """Return which elements ``dst`` holds exactly: their value, the sign of a zero, infinity, NaN.

    Decided element by element, without value sets.
    """
    numbers = decode(array, src)
    if numbers.dtype.kind == "f":
        finite = np.isfinite(numbers)
        plain = np.where(finite, numbers, 0.0)
        back = decode(encode(plain, dst, "trunc", True), dst)
        same: Arr = (back.astype(object) == plain.astype(object)).astype(np.bool_)
        if back.dtype.kind == "f":
            same &= np.signbit(back) == np.signbit(plain)
        else:
            same &= ~((plain == 0) & np.signbit(plain))
        same = np.where(np.isinf(numbers), dst.has_inf, same)
        return np.where(np.isnan(numbers), dst.has_nan, same)
    back = decode(encode(numbers, dst, "trunc", True), dst)
    equal: Arr = (back.astype(object) == numbers.astype(object)).astype(np.bool_)
    return equal


def _never_infinite(array: Arr, src: DType) -> Arr:
    numbers = decode(array, src)
    return ~np.isinf(numbers) if numbers.dtype.kind == "f" else np.ones(numbers.shape, np.bool_)


def _never_nan(array: Arr, src: DType) -> Arr:
    numbers = decode(array, src)
    result: Arr = numbers == numbers
    return result


def _never_negative_zero(array: Arr, src: DType) -> Arr:
    numbers = decode(array, src)
    if numbers.dtype.kind != "f":
        return np.ones(numbers.shape, np.bool_)
    result: Arr = ~((numbers == 0) & np.signbit(numbers))
    return result


def _within(array: Arr, src: DType, code: int) -> Arr:
    numbers = decode(array, src)
    result: Arr = (np.abs(numbers.astype(np.float64)) <= BOUNDS[code]) | (numbers != numbers)
    return result


def _small_integers(array: Arr, src: DType) -> Arr:
    numbers = decode(array, src)
    wide = numbers.astype(np.float64)
    result: Arr = _never_negative_zero(array, src) & (np.abs(wide) <= MAGNITUDE) & (wide == np.floor(wide))
    return result


def _not_negative(array: Arr, src: DType) -> Arr:
    result: Arr = decode(array, src) >= 0
    return result


#: Conditions that only literals can satisfy (see ``facts.literal_holds``).
LITERAL_CONDITIONS = ("literal", "nonzero")

#: Value conditions, decided element by element: storage array, its dtype, further dtypes and integers.
VALUE_CONDITIONS: dict[str, Callable[..., Arr]] = {
    "fits": holds_exactly,
    "finite": _never_infinite,
    "within": _within,
    "ordered": _never_nan,
    "one_zero": _never_negative_zero,
    "index": _small_integers,
    "positive": _not_negative,
}
