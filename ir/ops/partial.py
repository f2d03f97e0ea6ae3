"""Partial operations on two tiles of unlike valid shape: combined where both are valid, copied where one is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..op import Call, Tile, op
from ..types import Dim, TileType, TupleType, Type, shape_text, tile, with_dtype
from ._math import maximum, minimum
from ._result import agree, require_arithmetic, require_same_dtype

PARTIAL = "partial operations"
_WRAP = "integer overflow (taken as wrapping)"
_NAN = "NaN and the sign of zero (taken as: NaN if either is NaN, +0 above -0)"


def union_shape(call: Call, i: int, j: int) -> tuple[Dim, ...]:
    """Return the valid shape of two operands together: that of the one that covers the other.

    Raises TG008 when the shapes differ or neither covers the other (assembler v0.60 verifier).
    """
    a: TileType = call.type(i)
    b: TileType = call.type(j)
    if not agree(a.shape, b.shape):
        call.fail("TG008", f"operands have shapes {shape_text(a.shape)} and {shape_text(b.shape)}")
    if _covers(a, b):
        return a.valid_shape
    if _covers(b, a):
        return b.valid_shape
    call.fail(
        "TG008",
        f"neither of the valid shapes {shape_text(a.valid_shape)} and {shape_text(b.valid_shape)} covers the other",
        reason="elements that neither operand holds would be undefined",
        hint="one operand must be valid wherever the other is, and known to be: the same extent, or the whole tile",
    )


def _covers(a: TileType, b: TileType) -> bool:
    """Whether the first is surely valid wherever the second is: an extent of the run time is at most the whole."""
    return all(
        x in (y, whole) or (isinstance(x, int) and isinstance(y, int) and x >= y)
        for x, y, whole in zip(a.valid_shape, b.valid_shape, a.shape)
    )


def _part_type(call: Call) -> Type:
    require_arithmetic(call)
    require_same_dtype(call, 0, 1)
    t: TileType = call.type(0)
    return tile(t.shape, t.dtype, union_shape(call, 0, 1), t.memory, t.layout)


def _merged(fn: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Apply ``fn`` where both arrays have elements and copy the one that has them elsewhere."""
    shape = tuple(max(x, y) for x, y in zip(a.shape, b.shape))
    if shape not in (a.shape, b.shape):
        raise ValueError(f"neither of the valid shapes {a.shape} and {b.shape} covers the other")
    out = (a if a.shape == shape else b).copy()
    both = tuple(slice(min(x, y)) for x, y in zip(a.shape, b.shape))
    out[both] = fn(a[both], b[both])
    return out


def _either(transfer: Callable[..., vs.ValueSet]) -> Callable[..., vs.ValueSet]:
    def found(a: vs.ValueSet, b: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
        return vs.union(vs.union(a, b, call=call), transfer(a, b, call=call), call=call)

    return found


@op("tile.part_add", result=_part_type, pto="tpartadd", unified="part_add", family=PARTIAL, target_defined=_WRAP)
def part_add(src0: Tile, src1: Tile) -> Any:
    """src0 + src1 where both are valid, the valid one elsewhere."""
    return _merged(lambda a, b: a + b, src0, src1)


part_add.facts(_either(vs.add))


@op("tile.part_mul", result=_part_type, pto="tpartmul", unified="part_mul", family=PARTIAL, target_defined=_WRAP)
def part_mul(src0: Tile, src1: Tile) -> Any:
    """src0 * src1 where both are valid, the valid one elsewhere."""
    return _merged(lambda a, b: a * b, src0, src1)


part_mul.facts(_either(vs.mul))


@op("tile.part_max", result=_part_type, pto="tpartmax", unified="part_max", family=PARTIAL, target_defined=_NAN)
def part_max(src0: Tile, src1: Tile) -> Any:
    """The larger where both are valid, the valid one elsewhere."""
    return _merged(maximum, src0, src1)


part_max.facts(_either(vs.maximum))


@op("tile.part_min", result=_part_type, pto="tpartmin", unified="part_min", family=PARTIAL, target_defined=_NAN)
def part_min(src0: Tile, src1: Tile) -> Any:
    """The smaller where both are valid, the valid one elsewhere."""
    return _merged(minimum, src0, src1)


part_min.facts(_either(vs.minimum))


def _part_arg_type(call: Call) -> Type:
    values = _part_type(call)
    for value, index in ((0, 2), (1, 3)):
        t: TileType = call.type(index)
        if not t.dtype.is_int or t.dtype.bits != 32:
            call.fail("TG007", f"indices are INT32 or UINT32, got {t.dtype.name}")
        if t.valid_shape != call.type(value).valid_shape:
            call.fail("TG008", f"the indices of {call.decl.operand_params[value].name} have another valid shape")
    require_same_dtype(call, 2, 3)
    return TupleType((values, with_dtype(values, call.type(2).dtype)))  # type: ignore[arg-type]


def _part_arg(larger: bool, src0: Any, src1: Any, idx0: Any, idx1: Any) -> Any:
    both = tuple(slice(min(x, y)) for x, y in zip(src0.shape, src1.shape))
    a, b = src0[both], src1[both]
    first = np.asarray(a >= b if larger else a <= b)
    if a.dtype.kind not in "iub":
        first = first | np.isnan(a)

    def choose(x: Any, y: Any) -> Any:
        return np.where(first, x, y)

    return _merged(choose, src0, src1), _merged(choose, idx0, idx1)


_TIES = "ties and NaN (taken as: the first operand at ties, NaN where one is)"


@op("tile.part_argmax", result=_part_arg_type, pto="tpartargmax", family=PARTIAL, target_defined=_TIES)
def part_argmax(src0: Tile, src1: Tile, idx0: Tile, idx1: Tile) -> Any:
    """The larger of two values with its index, a pair; the valid one where only one is."""
    return _part_arg(True, src0, src1, idx0, idx1)


@op("tile.part_argmin", result=_part_arg_type, pto="tpartargmin", family=PARTIAL, target_defined=_TIES)
def part_argmin(src0: Tile, src1: Tile, idx0: Tile, idx1: Tile) -> Any:
    """The smaller of two values with its index, a pair; the valid one where only one is."""
    return _part_arg(False, src0, src1, idx0, idx1)
