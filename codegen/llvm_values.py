"""LLVM types and literals of scalars."""

from __future__ import annotations

import struct

import numpy as np

from ..ir.codes import bits_of
from ..ir.convert import encode
from ..ir.dtypes import BF16, BOOL, FP16, FP32, INDEX, DType

_FLOATS = {FP16.name: "half", BF16.name: "bfloat", FP32.name: "float"}
_SUFFIX = {FP16.name: "f16", BF16.name: "bf16", FP32.name: "f32"}


def llvm_type(dtype: DType) -> str:
    """Return the LLVM type of a scalar; empty where there is none. Sizes are 64 bits wide."""
    if dtype.is_float:
        return _FLOATS.get(dtype.name, "")
    if dtype is BOOL:
        return "i1"
    return f"i{dtype.bits}" if dtype.is_int and dtype.bits >= 8 else ""


def suffix(dtype: DType) -> str:
    """Return the suffix of intrinsics overloaded on the type."""
    return _SUFFIX.get(dtype.name) or f"i{64 if dtype is INDEX else dtype.bits}"


def literal(value: int | float | bool, dtype: DType) -> str:
    """Return a literal: floats rounded to nearest even and written as bits, integers cut to their width."""
    if dtype is BOOL:
        return "true" if value else "false"
    if not dtype.is_float:
        low = int(value) & ((1 << dtype.bits) - 1)
        return str(low - (1 << dtype.bits) if low >> (dtype.bits - 1) else low)
    stored = encode(np.array([float(value)]), dtype, "rint", False)
    code = int(bits_of(stored, dtype)[0])
    if dtype is FP32:
        # LLVM writes float literals as the double of the same value.
        (double,) = struct.unpack("<Q", struct.pack("<d", struct.unpack("<f", struct.pack("<I", code))[0]))
        return f"0x{double:016X}"
    return f"0x{'H' if dtype is FP16 else 'R'}{code:04X}"
