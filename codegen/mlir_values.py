"""MLIR types, literals and intrinsics of scalars, built with xDSL."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnregisteredOp,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ..ir import lazy_numpy as np
from ..ir.convert import decode, encode
from ..ir.dtypes import BOOL, DTYPES, INDEX, DType
from ..ir.program import Function, Op
from ..ir.types import PtrType as PointerType
from ..ir.types import ScalarType, Type
from .pto.elements import ELEMENTS, PAIR_TYPES
from .pto.types import PtrSpec, PtrType

I1, I32, I64, INDEX_TYPE = IntegerType(1), IntegerType(32), IntegerType(64), IndexType()
_FLOATS: dict[str, Attribute] = {"FP16": Float16Type(), "BF16": BFloat16Type(), "FP32": Float32Type()}


def mlir_type(t: Type) -> Attribute | None:
    """Return the type of a scalar, a packed pair or a pointer in device memory; ``None`` for others."""
    if isinstance(t, PointerType):
        inner = mlir_type(ScalarType(t.dtype))
        return None if inner is None or t.space == "local" else PtrType(PtrSpec(inner, t.space))
    if not isinstance(t, ScalarType):
        return None
    return dtype_type(t.dtype)


#: Packed pairs with a type of their own, and the elements that only pairs have.
_OWN_PAIRS = {"HF8X2": "!pto.hif8x2", "FP4X2": "!pto.f4E2M1x2", "FP4E1M2X2": "!pto.f4E1M2x2"}
_PAIRED = {"FP8E4M3FNX2": "f8E4M3FN", "FP8E5M2X2": "f8E5M2"}


def dtype_type(dtype: DType) -> Attribute | None:
    """Return the signless type of a dtype."""
    if dtype.name in _OWN_PAIRS:
        return PAIR_TYPES[_OWN_PAIRS[dtype.name]]
    if dtype.name in _PAIRED:
        return VectorType(ELEMENTS[_PAIRED[dtype.name]], [2])
    if dtype.packed_of:
        inner = dtype_type(DTYPES[dtype.packed_of])
        return None if inner is None else VectorType(inner, [2])
    if dtype is INDEX:
        return INDEX_TYPE
    if dtype is BOOL:
        return I1
    return IntegerType(dtype.bits) if dtype.is_int and dtype.bits >= 8 else _FLOATS.get(dtype.name)


def constant(value: int | float | bool, dtype: DType) -> Operation:
    """Return ``arith.constant`` of a literal: floats rounded to nearest even, integers cut to their width."""
    from xdsl.dialects import arith

    t = dtype_type(dtype)
    if dtype.is_float:
        number = float(decode(encode(np.array([float(value)]), dtype, "rint", False), dtype)[0])
        return arith.ConstantOp(FloatAttr(number, t))  # type: ignore[call-overload]
    bits = 1 if dtype is BOOL else 64 if dtype is INDEX else dtype.bits
    low = int(value) & ((1 << bits) - 1)
    if bits > 1 and low >> (bits - 1):
        low -= 1 << bits
    return arith.ConstantOp(IntegerAttr(low if bits > 1 else -low, t))  # type: ignore[call-overload]


@cache
def _class(name: str) -> type[Operation]:
    return UnregisteredOp.with_name(name)


def named(
    name: str, operands: list[SSAValue], results: list[Attribute], properties: dict[str, Attribute] | None = None
) -> Operation:
    """Return an operation in MLIR's generic form."""
    props: dict[str, Any] = dict(properties or {})
    return _class(name).create(operands=operands, result_types=results, properties=props)


def saturating(name: str, result: IntegerType, operand: SSAValue) -> Operation:
    """Return a saturating conversion of an f32, called by its full name: MLIR 19 cannot translate its operation."""
    from .pto.intrinsics import CallIntrinsicOp

    full = StringAttr(f"{name}.i{result.width.data}.f32")
    return CallIntrinsicOp.create(operands=[operand], result_types=[result], properties={"intrin": full})


def intrinsic(name: str, result: Attribute, *operands: SSAValue) -> Operation:
    """Return an LLVM intrinsic (``llvm.maxnum``) as an operation of MLIR's LLVM dialect (``llvm.intr.maxnum``)."""
    props: dict[str, Attribute] = {}
    if name == "llvm.abs":
        props["is_int_min_poison"] = IntegerAttr(0, I1)
    return named(name.replace("llvm.", "llvm.intr.", 1), list(operands), [result], props)


def parameters(functions: Iterable[Function]) -> dict[str, tuple[DType | None, ...]]:
    """Return the dtypes of every function's scalar parameters (``None``: pointers)."""
    return {
        f.name: tuple(p.value.type.dtype if isinstance(p.value.type, ScalarType) else None for p in f.params)
        for f in functions
    }


def is_packed(s: Op) -> bool:
    """Return whether an access is to two contiguous elements."""
    value = s.result.type if s.results else getattr(s.operands[0], "type", None)
    return isinstance(value, ScalarType) and bool(value.dtype.packed_of)
