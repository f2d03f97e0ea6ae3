"""Elementwise tile operations: tile-tile, tile-scalar and unary arithmetic.

Integer results wrap; floats are IEEE with one rounding to nearest even in the tile's dtype; max/min return
NaN if either operand is NaN. Where the hardware documents leave a result open, ``target_defined`` says so.
"""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..dtypes import INT8, UINT8
from ..op import Call, Env, Flag, Scalar, Scratch, ScratchLike, Tile, op
from ..types import Type
from ..valueset_integers import masked, remainder
from ._math import (
    divide,
    floor_mod,
    maximum,
    minimum,
    scalar_like,
    shift_left,
    shift_right,
    through_double,
    trunc_mod,
)
from ._result import BITS, float_only, int_only, like_first, same_tile, tile_scalar, unary

TT = "tile-tile arithmetic"
TS = "tile-scalar arithmetic"
UN = "unary"

_WRAP = "integer overflow (taken as wrapping)"
_NAN = "NaN and the sign of zero (taken as: NaN if either is NaN, +0 above -0)"


@op("tile.add", result=same_tile, pto="tadd", unified="add", family=TT, target_defined=_WRAP)
def add(lhs: Tile, rhs: Tile) -> Any:
    """lhs + rhs."""
    return lhs + rhs


add.facts(vs.add)


@op("tile.sub", result=same_tile, pto="tsub", unified="sub", family=TT, target_defined=_WRAP)
def sub(lhs: Tile, rhs: Tile) -> Any:
    """lhs - rhs."""
    return lhs - rhs


sub.facts(vs.sub)


@op("tile.mul", result=same_tile, pto="tmul", unified="mul", family=TT, target_defined=_WRAP)
def mul(lhs: Tile, rhs: Tile) -> Any:
    """lhs * rhs."""
    return lhs * rhs


mul.facts(vs.mul)


@op("tile.div", result=same_tile, pto="tdiv", unified="div", family=TT, target_defined="division by zero")
def div(lhs: Tile, rhs: Tile, high_precision: Flag = False) -> Any:
    """lhs / rhs (integers truncate toward zero)."""
    return divide(lhs, rhs)


@op("tile.maximum", result=same_tile, pto="tmax", unified="maximum", family=TT, target_defined=_NAN)
def tile_maximum(lhs: Tile, rhs: Tile) -> Any:
    """The larger of the two."""
    return maximum(lhs, rhs)


tile_maximum.facts(vs.maximum)


@op("tile.minimum", result=same_tile, pto="tmin", unified="minimum", family=TT, target_defined=_NAN)
def tile_minimum(lhs: Tile, rhs: Tile) -> Any:
    """The smaller of the two."""
    return minimum(lhs, rhs)


tile_minimum.facts(vs.minimum)


@op("tile.rem", result=same_tile, pto="trem", family=TT, target_defined="a zero divisor")
def rem(lhs: Tile, rhs: Tile, tmp: ScratchLike = None, *, env: Env) -> Any:
    """Remainder with the sign of the divisor."""
    return floor_mod(lhs, rhs, env.dtype(0))


@op("tile.fmod", result=same_tile, pto="tfmod", unified="fmod", family=TT, target_defined="a zero divisor")
def fmod(lhs: Tile, rhs: Tile, *, env: Env) -> Any:
    """Remainder with the sign of the dividend."""
    return trunc_mod(lhs, rhs, env.dtype(0))


def _prelu(call: Call) -> Type:
    tmp = call.type(2)
    if tmp is not None and tmp.dtype not in (INT8, UINT8):
        what = f"the scratch tile tmp has dtype {tmp.dtype.name}, it holds bits in bytes"
        call.fail("TG007", what, hint="create it with dtype=pl.UINT8, or leave it out")
    return same_tile(call)


@op("tile.prelu", result=float_only(_prelu), pto="tprelu", family=TT, target_defined=_NAN)
def prelu(tile: Tile, slope: Tile, tmp: Scratch = None) -> Any:
    """tile where it is positive, else tile * slope."""
    return np.where(tile > 0, tile, tile * slope)


@op("tile.adds", result=tile_scalar, pto="tadds", unified="add", family=TS, target_defined=_WRAP)
def adds(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """lhs + scalar."""
    return lhs + scalar_like(rhs, env.dtype(0))


adds.facts(vs.with_scalar(vs.add))


@op("tile.subs", result=tile_scalar, pto="tsubs", unified="sub", family=TS, target_defined=_WRAP)
def subs(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """lhs - scalar."""
    return lhs - scalar_like(rhs, env.dtype(0))


subs.facts(vs.with_scalar(vs.sub))


@op("tile.muls", result=tile_scalar, pto="tmuls", unified="mul", family=TS, target_defined=_WRAP)
def muls(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """lhs * scalar."""
    return lhs * scalar_like(rhs, env.dtype(0))


muls.facts(vs.with_scalar(vs.mul))


@op("tile.divs", result=tile_scalar, pto="tdivs", unified="div", family=TS, target_defined="division by zero")
def divs(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """lhs / scalar (integers truncate toward zero)."""
    return divide(lhs, scalar_like(rhs, env.dtype(0)))


@op("tile.rdivs", result=float_only(tile_scalar), pto="tdivs", family=TS, target_defined="division by zero")
def rdivs(rhs: Tile, lhs: Scalar, *, env: Env) -> Any:
    """scalar / rhs, the instruction with its operands the other way round."""
    return divide(np.full_like(rhs, scalar_like(lhs, env.dtype(0))), rhs)


@op("tile.maximums", result=tile_scalar, pto="tmaxs", unified="maximum", family=TS, target_defined=_NAN)
def maximums(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """The larger of element and scalar."""
    return maximum(lhs, scalar_like(rhs, env.dtype(0)))


maximums.facts(vs.with_scalar(vs.maximum))


@op("tile.minimums", result=tile_scalar, pto="tmins", unified="minimum", family=TS, target_defined=_NAN)
def minimums(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """The smaller of element and scalar."""
    return minimum(lhs, scalar_like(rhs, env.dtype(0)))


minimums.facts(vs.with_scalar(vs.minimum))


@op("tile.rems", result=tile_scalar, pto="trems", family=TS, target_defined="a zero divisor")
def rems(lhs: Tile, rhs: Scalar, tmp: ScratchLike = None, *, env: Env) -> Any:
    """Remainder by a scalar, with the sign of the divisor."""
    return floor_mod(lhs, np.full_like(lhs, scalar_like(rhs, env.dtype(0))), env.dtype(0))


rems.facts(vs.with_scalar(remainder))


@op(
    "tile.fmods",
    result=tile_scalar,
    pto="tfmods",
    unified="fmods",
    family=TS,
    target_defined="a zero divisor",
)
def fmods(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """Remainder by a scalar, with the sign of the dividend."""
    return trunc_mod(lhs, np.full_like(lhs, scalar_like(rhs, env.dtype(0))), env.dtype(0))


@op("tile.lrelu", result=float_only(tile_scalar), pto="tlrelu", family=TS, target_defined=_NAN)
def lrelu(tile: Tile, slope: Scalar, *, env: Env) -> Any:
    """tile where it is positive, else tile * slope."""
    return np.where(tile > 0, tile, tile * scalar_like(slope, env.dtype(0)))


@op("tile.neg", result=unary, pto="tneg", unified="neg", family=UN, target_defined=_WRAP)
def neg(tile: Tile) -> Any:
    """-tile (integers wrap at the minimum)."""
    return np.negative(tile)


neg.facts(vs.neg)


@op("tile.abs", result=unary, pto="tabs", unified="abs", family=UN, target_defined=_WRAP)
def tile_abs(tile: Tile) -> Any:
    """|tile| (integers wrap at the minimum)."""
    return np.abs(tile)


tile_abs.facts(vs.absolute)


@op("tile.relu", result=unary, pto="trelu", unified="relu", family=UN, target_defined=_NAN)
def relu(tile: Tile) -> Any:
    """max(tile, 0)."""
    return maximum(tile, np.zeros_like(tile))


relu.facts(vs.relu)


@op("tile.exp", result=float_only(unary), pto="texp", unified="exp", family=UN)
def exp(tile: Tile, *, env: Env) -> Any:
    """e to the tile."""
    return through_double(np.exp, tile, env.dtype(0))


exp.facts(vs.exp)


@op("tile.log", result=float_only(unary), pto="tlog", unified="log", family=UN,
    target_defined="arguments that are zero or negative")  # fmt: skip
def log(tile: Tile, high_precision: Flag = False, *, env: Env) -> Any:
    """Natural logarithm."""
    return through_double(np.log, tile, env.dtype(0))


@op("tile.sqrt", result=float_only(unary), pto="tsqrt", unified="sqrt", family=UN,
    target_defined="negative arguments")  # fmt: skip
def sqrt(tile: Tile, *, env: Env) -> Any:
    """Square root."""
    return through_double(np.sqrt, tile, env.dtype(0))


sqrt.facts(vs.sqrt)


@op("tile.rsqrt", result=float_only(unary), pto="trsqrt", unified="rsqrt", family=UN,
    target_defined="zero and negative arguments; the form without scratch is approximate on some targets")  # fmt: skip
def rsqrt(tile: Tile, tmp: ScratchLike = None, *, env: Env) -> Any:
    """1 / sqrt(tile)."""
    return through_double(lambda x: 1.0 / np.sqrt(x), tile, env.dtype(0))


@op("tile.recip", result=float_only(unary), pto="trecip", unified="recip", family=UN,
    target_defined="a zero argument")  # fmt: skip
def recip(tile: Tile, high_precision: Flag = False, *, env: Env) -> Any:
    """1 / tile."""
    return divide(np.ones_like(tile), tile)


@op("tile.and_", result=int_only(same_tile), pto="tand", unified="and_", family=BITS)
def and_(lhs: Tile, rhs: Tile) -> Any:
    """Bitwise and."""
    return lhs & rhs


and_.facts(masked)


@op("tile.or_", result=int_only(same_tile), pto="tor", unified="or_", family=BITS)
def or_(lhs: Tile, rhs: Tile) -> Any:
    """Bitwise or."""
    return lhs | rhs


@op("tile.xor", result=int_only(same_tile), pto="txor", unified="xor", family=BITS)
def xor(lhs: Tile, rhs: Tile, tmp: ScratchLike = None) -> Any:
    """Bitwise exclusive or."""
    return lhs ^ rhs


@op("tile.not_", result=int_only(like_first), pto="tnot", unified="not_", family=BITS)
def not_(tile: Tile) -> Any:
    """Bitwise complement."""
    return np.invert(tile)


_AMOUNT = "amounts that are negative or at least the width (taken as shifting everything out)"


@op("tile.shl", result=int_only(same_tile), pto="tshl", unified="shl", family=BITS, target_defined=_AMOUNT)
def shl(lhs: Tile, rhs: Tile, *, env: Env) -> Any:
    """lhs << rhs."""
    return shift_left(lhs, rhs, env.dtype(0))


@op("tile.shr", result=int_only(same_tile), pto="tshr", unified="shr", family=BITS, target_defined=_AMOUNT)
def shr(lhs: Tile, rhs: Tile, *, env: Env) -> Any:
    """lhs >> rhs (arithmetic for signed, logical for unsigned)."""
    return shift_right(lhs, rhs, env.dtype(0))


@op("tile.ands", result=int_only(tile_scalar), pto="tands", unified="ands", family=BITS)
def ands(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """Bitwise and with a scalar."""
    return lhs & scalar_like(rhs, env.dtype(0))


ands.facts(vs.with_scalar(masked))


@op("tile.ors", result=int_only(tile_scalar), pto="tors", unified="ors", family=BITS)
def ors(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """Bitwise or with a scalar."""
    return lhs | scalar_like(rhs, env.dtype(0))


@op("tile.xors", result=int_only(tile_scalar), pto="txors", unified="xors", family=BITS)
def xors(lhs: Tile, rhs: Scalar, tmp: ScratchLike = None, *, env: Env) -> Any:
    """Bitwise exclusive or with a scalar."""
    return lhs ^ scalar_like(rhs, env.dtype(0))


@op(
    "tile.shls",
    result=int_only(tile_scalar),
    pto="tshls",
    unified="shls",
    family=BITS,
    target_defined=_AMOUNT,
)
def shls(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """lhs << scalar."""
    return shift_left(lhs, rhs, env.dtype(0))


@op(
    "tile.shrs",
    result=int_only(tile_scalar),
    pto="tshrs",
    unified="shrs",
    family=BITS,
    target_defined=_AMOUNT,
)
def shrs(lhs: Tile, rhs: Scalar, *, env: Env) -> Any:
    """lhs >> scalar (arithmetic for signed, logical for unsigned)."""
    return shift_right(lhs, rhs, env.dtype(0))


shrs.facts(vs.shift_right)
