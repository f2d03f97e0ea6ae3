"""Small arrays of scalars that a core keeps for itself, as kernels use them for counters."""

from __future__ import annotations

from typing import Any

from ..dtypes import DType
from ..op import AnyValue, Call, DTypeAttr, Scalar, op
from ..types import OpaqueType, Type, array_of, scalar
from ._windows import require_element
from .distributed_rules import constant

FAMILY = "arrays"


def _of(call: Call, i: int) -> tuple[int, DType]:
    """Return length and dtype of operand ``i``."""
    t = call.type(i)
    found = array_of(t)
    if found is None:
        call.fail("TG006", f"array must be an array of scalars, got {t or 'a list'}", hint="pl.array.create(n, dtype)")
    return found


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
    return scalar(_at(call)[1])


def _at(call: Call) -> tuple[int, DType]:
    """Return length and dtype of the array; raises TG008 for a literal index outside it."""
    size, dtype = _of(call, 0)
    require_element(call, (size,), call.operands[1:2])
    return size, dtype


@op("array.get_element", result=_element, family=FAMILY)
def get_element(array: AnyValue, index: Scalar) -> Any:
    """One element of an array."""
    return array[_checked(array, index)]


def _same(call: Call) -> Type:
    _at(call)
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
