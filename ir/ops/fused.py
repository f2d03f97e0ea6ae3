"""Fused arithmetic: multiply-add with one rounding, arithmetic with relu and conversion, powers, three-term sums.

Operations with an ``inout`` operand become instructions that overwrite that operand's storage. Some exist in the
instruction set alone, not in the assembler (the target files say which); they are declared so that it can be
asked what an assembler that had them would gain.
"""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..convert import convert, encode
from ..dtypes import FP16, FP32, INT8, INT16, INT32, DType
from ..op import Call, DTypeAttr, Env, Scalar, ScratchLike, Tile, op
from ..types import TileType, Type, shape_text, tile, with_dtype
from ._fused_math import fused_multiply_add, power, sum_to_odd, values
from ._math import maximum, scalar_like
from ._result import (
    float_only,
    require_arithmetic,
    require_literal_fits,
    require_same_dtype,
    require_same_shape,
    same_tile,
    tile_scalar,
)

FUSED = "fused arithmetic"
_NAN = "NaN and the sign of zero (taken as: NaN if either is NaN, +0 above -0)"
_WRAP = "integer overflow (taken as wrapping)"


def _axpy_type(call: Call) -> Type:
    acc: TileType = call.type(0)
    src: TileType = call.type(1)
    require_arithmetic(call)
    require_same_shape(call, 0, 1)
    if not acc.dtype.is_float:
        call.fail("TG007", f"needs floating-point tiles, got {acc.dtype.name}", hint="cast to FP32 first")
    if acc.dtype is not src.dtype and (acc.dtype, src.dtype) != (FP32, FP16):
        call.fail(
            "TG007",
            f"cannot add {src.dtype.name} products to a {acc.dtype.name} tile",
            reason="the dtypes are equal, or FP16 is widened into an FP32 accumulator",
            hint=f"cast the source first, e.g. target_type=pl.{acc.dtype.name}",
        )
    require_literal_fits(call, 2, src.dtype)
    return with_dtype(acc, acc.dtype)


@op("tile.axpy", result=_axpy_type, pto="taxpy", unified="axpy", family=FUSED, inout="acc")
def axpy(acc: Tile, src: Tile, scalar: Scalar, *, env: Env) -> Any:
    """acc + src * scalar, rounded once; the scalar has the source's dtype (pto-isa TAXPY)."""
    s = values(scalar_like(scalar, env.dtype(1)).reshape(1), env.dtype(1))[0]
    return fused_multiply_add(values(src, env.dtype(1)), s, values(acc, env.dtype(0)), env.dtype(0))


def _three(call: Call) -> Type:
    require_same_shape(call, 0, 2)
    require_same_dtype(call, 0, 2)
    return same_tile(call)


@op("tile.muladd_dst", result=float_only(_three), pto="tmuladddst", family=FUSED, inout="acc")
def muladd_dst(acc: Tile, lhs: Tile, rhs: Tile, *, env: Env) -> Any:
    """acc + lhs * rhs, rounded once."""
    a, b, c = (values(x, env.dtype(0)) for x in (lhs, rhs, acc))
    return fused_multiply_add(a, b, c, env.dtype(0))


@op("tile.fused_muladd", result=float_only(_three), pto="tfusedmuladd", family=FUSED, inout="acc")
def fused_muladd(acc: Tile, factor: Tile, addend: Tile, *, env: Env) -> Any:
    """acc * factor + addend, rounded once."""
    a, b, c = (values(x, env.dtype(0)) for x in (acc, factor, addend))
    return fused_multiply_add(a, b, c, env.dtype(0))


@op("tile.fused_muladd_relu", result=float_only(_three), pto="tfusedmuladdrelu", family=FUSED, inout="acc",
    target_defined=_NAN)  # fmt: skip
def fused_muladd_relu(acc: Tile, factor: Tile, addend: Tile, *, env: Env) -> Any:
    """max(acc * factor + addend, 0), the sum rounded once."""
    return _relu(fused_muladd.meaning(acc, factor, addend, env=env))


def _relu(x: Any) -> Any:
    return maximum(x, np.zeros_like(x))


def _relu_set(total: vs.ValueSet, call: vs.Call) -> vs.ValueSet:
    return vs.relu(total, call=call)


@op("tile.addrelu", result=same_tile, pto="taddrelu", unified="addrelu", family=FUSED, target_defined=_NAN)
def addrelu(lhs: Tile, rhs: Tile, *, env: Env) -> Any:
    """max(lhs + rhs, 0)."""
    return _relu(_wrapped(lhs + rhs, env.dtype(0)))


def _wrapped(x: Any, dtype: DType) -> Any:
    """Return a sum in its dtype: four-bit integers wrap before what follows sees them."""
    if dtype.bits != 4 or not dtype.is_int:
        return x
    return (x << 4) >> 4 if dtype.signed else x & 15


@addrelu.facts
def _(lhs: vs.ValueSet, rhs: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return _relu_set(vs.add(lhs, rhs, call=call), call)


@op("tile.subrelu", result=float_only(same_tile), pto="tsubrelu", unified="subrelu", family=FUSED,
    target_defined=_NAN)  # fmt: skip
def subrelu(lhs: Tile, rhs: Tile) -> Any:
    """max(lhs - rhs, 0)."""
    return _relu(lhs - rhs)


@subrelu.facts
def _(lhs: vs.ValueSet, rhs: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return _relu_set(vs.sub(lhs, rhs, call=call), call)


#: Conversions that the instruction set fuses with relu (pto-isa TAddReluConv.md).
RELU_CONVERSIONS = ((FP32, FP16), (FP16, INT8), (INT16, INT8))


def _relu_conv_type(call: Call) -> Type:
    src: DType = call.type(0).dtype
    dst: DType = call.attr("target_type")
    if (src, dst) not in RELU_CONVERSIONS:
        pairs = ", ".join(f"{a.name} to {b.name}" for a, b in RELU_CONVERSIONS)
        call.fail("TG007", f"does not convert {src.name} to {dst.name}", reason=f"the pairs are {pairs}")
    return with_dtype(same_tile(call), dst)  # type: ignore[arg-type]


_CONV = f"{_NAN}; out-of-range values on some targets (taken as clamped)"


@op("tile.addrelu_conv", result=_relu_conv_type, pto="taddreluconv", family=FUSED, target_defined=_CONV)
def addrelu_conv(lhs: Tile, rhs: Tile, target_type: DTypeAttr, *, env: Env) -> Any:
    """max(lhs + rhs, 0) in the sources' dtype, converted to nearest even and clamped."""
    return convert(_relu(lhs + rhs), env.dtype(0), target_type, "rint", True)


@op("tile.subrelu_conv", result=_relu_conv_type, pto="tsubreluconv", family=FUSED, target_defined=_CONV)
def subrelu_conv(lhs: Tile, rhs: Tile, target_type: DTypeAttr, *, env: Env) -> Any:
    """max(lhs - rhs, 0) in the sources' dtype, converted to nearest even and clamped."""
    return convert(_relu(lhs - rhs), env.dtype(0), target_type, "rint", True)


def _dequant_relu_type(call: Call) -> Type:
    if call.type(0).dtype is not INT32:
        call.fail("TG007", f"needs INT32 tiles, got {call.type(0).dtype.name}")
    require_scalar(call, 2)
    return with_dtype(same_tile(call), FP16)  # type: ignore[arg-type]


def require_scalar(call: Call, i: int) -> None:
    """Check that operand ``i`` is a scalar."""
    t = call.type(i)
    if isinstance(t, TileType) or t is None:
        call.fail("TG006", f"{call.decl.operand_params[i].name} must be a scalar, got {t or 'a list'}")


@op("tile.add_deq_relu", result=_dequant_relu_type, pto="tadddeqrelu", family=FUSED,
    target_defined="the scale is applied in three steps (taken as one exact product)")  # fmt: skip
def add_deq_relu(lhs: Tile, rhs: Tile, scale: Scalar) -> Any:
    """max((lhs + rhs) * scale, 0) of INT32 sources as FP16, rounded to nearest even and clamped."""
    # Products of 31 and 24 bits: more than double precision holds, so they are rounded to odd before the last step.
    exact = _product_to_odd((lhs + rhs).astype(np.int64), float(scalar_like(scale, FP32)))
    return encode(np.where(exact > 0, exact, np.where(np.isnan(exact), exact, 0.0)), FP16, "rint", True)


def _product_to_odd(n: Any, scale: float) -> Any:
    """Return integers of 32 bits times an FP32 number in double precision, rounded to odd."""
    high, low = (n >> 16 << 16).astype(np.float64), (n & 0xFFFF).astype(np.float64)
    return sum_to_odd(high * scale, low * scale)


def _pairs_type(call: Call) -> Type:
    t: TileType = call.type(0)
    require_arithmetic(call)
    cols, valid = t.shape[-1], t.valid_shape[-1]
    if len(t.shape) != 2 or not isinstance(cols, int) or not isinstance(valid, int) or cols % 2 or valid % 2:
        call.fail("TG008", f"needs a rank-2 tile with an even number of columns, got {shape_text(t.valid_shape)}")
    return tile((t.shape[0], cols // 2), t.dtype, (t.valid_shape[0], valid // 2), t.memory)


@op("tile.pair_reduce_sum", result=float_only(_pairs_type), pto="tpairreducesum", family=FUSED)
def pair_reduce_sum(tile: Tile) -> Any:
    """Sums of neighbours: result[r, k] = tile[r, 2k] + tile[r, 2k + 1]."""
    return tile[:, 0::2] + tile[:, 1::2]


@op("tile.pow", result=same_tile, pto="tpow", unified="pow", family=FUSED,
    target_defined="negative bases and integer exponents below zero")  # fmt: skip
def tile_pow(lhs: Tile, rhs: Tile, tmp: ScratchLike = None, *, env: Env) -> Any:
    """lhs to the power rhs."""
    return power(lhs, rhs, env.dtype(0))


@op("tile.pows", result=tile_scalar, pto="tpows", unified="pow", family=FUSED,
    target_defined="negative bases and integer exponents below zero")  # fmt: skip
def pows(lhs: Tile, rhs: Scalar, tmp: ScratchLike = None, *, env: Env) -> Any:
    """lhs to the power of a scalar."""
    return power(lhs, np.full_like(lhs, scalar_like(rhs, env.dtype(0))), env.dtype(0))


# Three-term sums stand in the common interface, but no device implements them.


@op("tile.addc", result=_three, pto="taddc", family=FUSED, target_defined=_WRAP)
def addc(lhs: Tile, rhs: Tile, rhs2: Tile) -> Any:
    """lhs + rhs + rhs2, rounded after each addition."""
    return lhs + rhs + rhs2


@op("tile.subc", result=_three, pto="tsubc", family=FUSED, target_defined=_WRAP)
def subc(lhs: Tile, rhs: Tile, rhs2: Tile) -> Any:
    """lhs - rhs + rhs2, rounded after each operation."""
    return lhs - rhs + rhs2


def _with_scalar(call: Call) -> Type:
    require_scalar(call, 1)
    require_arithmetic(call)
    require_same_shape(call, 0, 2)
    require_same_dtype(call, 0, 2)
    require_literal_fits(call, 1, call.type(0).dtype)
    return with_dtype(call.type(0), call.type(0).dtype)


@op("tile.addsc", result=_with_scalar, pto="taddsc", family=FUSED, target_defined=_WRAP)
def addsc(lhs: Tile, rhs: Scalar, rhs2: Tile, *, env: Env) -> Any:
    """lhs + scalar + rhs2, rounded after each addition."""
    return lhs + scalar_like(rhs, env.dtype(0)) + rhs2


@op("tile.subsc", result=_with_scalar, pto="tsubsc", family=FUSED, target_defined=_WRAP)
def subsc(lhs: Tile, rhs: Scalar, rhs2: Tile, *, env: Env) -> Any:
    """lhs - scalar + rhs2, rounded after each operation."""
    return lhs - scalar_like(rhs, env.dtype(0)) + rhs2
