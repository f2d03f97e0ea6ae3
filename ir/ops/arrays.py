"""Small arrays of scalars that a core keeps for itself, as kernels use them for counters."""

from __future__ import annotations

import re
from typing import Any

from ..dtypes import DTYPES, DType
from ..op import AnyValue, Call, DTypeAttr, Scalar, op
from ..types import OpaqueType, Type, scalar
from .distributed_rules import constant

FAMILY = "arrays"
_TEXT = re.compile(r"pl\.Array\[(\d+), pl\.(\w+)\]")


def _of(call: Call, i: int) -> tuple[int, DType]:
    """Return length and dtype of operand ``i``."""
    t = call.type(i)
    found = _TEXT.fullmatch(t.text) if isinstance(t, OpaqueType) else None
    if found is None or found.group(2) not in DTYPES:
        call.fail("TG006", f"array must be an array of scalars, got {t or 'a list'}", hint="pl.array.create(n, dtype)")
    return int(found.group(1)), DTYPES[found.group(2)]


def _create(call: Call) -> Type:
    size = constant(call.operands[0])
    if size is None or size < 1:
        call.fail("TG008", "the size of an array is a positive literal")
    return OpaqueType(f"pl.Array[{size}, pl.{call.attr('dtype').name}]")


@op("array.create", result=_create, family=FAMILY, effect="alloc")
def create(size: Scalar, dtype: DTypeAttr) -> Any:
    """An array of scalars (zeros in the interpreter)."""
    return (0.0 if dtype.is_float else 0,) * int(size)


def _element(call: Call) -> Type:
    return scalar(_of(call, 0)[1])


@op("array.get_element", result=_element, family=FAMILY)
def get_element(array: AnyValue, index: Scalar) -> Any:
    """One element of an array."""
    return array[_checked(array, index)]


def _same(call: Call) -> Type:
    _of(call, 0)
    return call.type(0)  # type: ignore[no-any-return]


@op("array.update_element", result=_same, family=FAMILY)
def update_element(array: AnyValue, index: Scalar, value: Scalar) -> Any:
    """The array with one element replaced."""
    at = _checked(array, index)
    return (*array[:at], value, *array[at + 1 :])


def _checked(array: tuple[Any, ...], index: Any) -> int:
    if not 0 <= int(index) < len(array):
        raise IndexError(f"index {int(index)} of {len(array)} elements")
    return int(index)
