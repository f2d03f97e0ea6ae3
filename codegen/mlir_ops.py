"""Scalar operations as ``arith``: what LLVM leaves undefined is guarded, as the language has a meaning for it."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from ..ir.dtypes import BF16, BOOL, FP16, FP32, INDEX, INT64, DType
from ..ir.op import OPS
from ..ir.program import Const, Op
from ..ir.rounding import effective, parse_mode
from .mlir_scalars import MlirFunction
from .mlir_values import dtype_type, saturating

#: LLVM instruction of a record -> operation of ``arith``.
_ARITH: dict[str, type[Operation]] = {
    "add": arith.AddiOp, "sub": arith.SubiOp, "mul": arith.MuliOp, "and": arith.AndIOp, "or": arith.OrIOp,
    "xor": arith.XOrIOp, "fadd": arith.AddfOp, "fsub": arith.SubfOp, "fmul": arith.MulfOp, "fdiv": arith.DivfOp,
    "shl": arith.ShLIOp, "ashr": arith.ShRSIOp, "lshr": arith.ShRUIOp,
}  # fmt: skip


def _named(s: Op, dtype: DType) -> str:
    record = OPS[s.name].scalar
    assert record is not None
    return record.intrinsic(dtype.kind)


def _pair(e: MlirFunction, s: Op, dtype: DType) -> tuple[SSAValue, SSAValue]:
    return e.read(s.operands[0], dtype), e.read(s.operands[1], dtype)


def instruction(e: MlirFunction, s: Op) -> SSAValue:
    dtype = e.dtype_of(s.result)
    return e.binary(_ARITH[_named(s, dtype)], *_pair(e, s, dtype))


def compare(e: MlirFunction, s: Op) -> SSAValue:
    a, b = e.dtype_of(s.operands[0]), e.dtype_of(s.operands[1])
    dtype = b if isinstance(s.operands[0], Const) or (a is INDEX and not isinstance(s.operands[1], Const)) else a
    kind, how = _named(s, dtype).split()
    x, y = _pair(e, s, dtype)
    return e.add(arith.CmpfOp(x, y, how)) if kind == "fcmp" else e.compare(how, x, y)


def extremum(e: MlirFunction, s: Op) -> SSAValue:
    dtype = e.dtype_of(s.result)
    a, b = _pair(e, s, dtype)
    if dtype is not INDEX:
        return e.call(_named(s, dtype), dtype, a, b)
    return e.select(e.compare("sgt" if s.name.endswith("max") else "slt", a, b), a, b)


def truth(e: MlirFunction, s: Op, i: int) -> SSAValue:
    dtype = e.dtype_of(s.operands[i])
    x = e.read(s.operands[i], dtype)
    if dtype is BOOL:
        return x
    zero = e.const(0, dtype)
    return e.add(arith.CmpfOp(x, zero, "une")) if dtype.is_float else e.compare("ne", x, zero)


def both(e: MlirFunction, s: Op) -> SSAValue:
    a, b = truth(e, s, 0), truth(e, s, 1)
    return e.binary(arith.AndIOp if s.name == "scalar.and_" else arith.OrIOp, a, b)


def negated(e: MlirFunction, s: Op) -> SSAValue:
    return e.binary(arith.XOrIOp, truth(e, s, 0), e.const(True, BOOL))


def invert(e: MlirFunction, s: Op) -> SSAValue:
    dtype = e.dtype_of(s.result)
    return e.binary(arith.XOrIOp, e.read(s.operands[0], dtype), e.const(-1, dtype))


def negate(e: MlirFunction, s: Op) -> SSAValue:
    dtype = e.dtype_of(s.result)
    x = e.read(s.operands[0], dtype)
    return e.add(arith.NegfOp(x)) if dtype.is_float else e.binary(arith.SubiOp, e.const(0, dtype), x)


def choose(e: MlirFunction, s: Op) -> SSAValue:
    dtype = e.dtype_of(s.result)
    return e.select(e.read(s.operands[0], BOOL), e.read(s.operands[1], dtype), e.read(s.operands[2], dtype))


# -- division and shifts ------------------------------------------------------------------------------------


def divide(e: MlirFunction, s: Op) -> SSAValue:
    """Quotient and remainder, rounded as the operation says; 0 for a zero divisor, and no overflow."""
    dtype = e.dtype_of(s.result)
    what = s.name.removeprefix("scalar.")
    a, b = _pair(e, s, dtype)
    if dtype.is_float:
        if what != "div":
            e.fail("is not written for floats")
        return e.binary(arith.DivfOp, a, b)
    known = s.operands[1].value if isinstance(s.operands[1], Const) else None
    if known not in (None, 0, -1):
        return _divided(e, what, dtype, a, b)
    zero = e.const(0, dtype)
    is_zero = e.compare("eq", b, zero)
    special = e.binary(arith.OrIOp, is_zero, e.compare("eq", b, e.const(-1, dtype))) if dtype.signed else is_zero
    safe = e.select(special, e.const(1, dtype), b)
    quotient = e.binary(arith.DivSIOp if dtype.signed else arith.DivUIOp, a, safe)
    if dtype.signed:
        # Over -1 the negated dividend, which wraps where the quotient would overflow.
        quotient = e.select(special, e.binary(arith.SubiOp, zero, a), quotient)
    return e.select(is_zero, zero, _rounded(e, what, dtype, a, b, quotient))


def _divided(e: MlirFunction, what: str, dtype: DType, a: SSAValue, b: SSAValue) -> SSAValue:
    """Quotient or remainder by a divisor that is neither 0 nor -1."""
    if what == "rem":
        return e.binary(arith.RemSIOp if dtype.signed else arith.RemUIOp, a, b)
    return _rounded(e, what, dtype, a, b, e.binary(arith.DivSIOp if dtype.signed else arith.DivUIOp, a, b))


def _rounded(
    e: MlirFunction, what: str, dtype: DType, a: SSAValue, b: SSAValue, quotient: SSAValue
) -> SSAValue:  # fmt: skip
    """Return what is asked for, by the truncated quotient."""
    if what == "div" or (what == "floordiv" and not dtype.signed):
        return quotient
    zero = e.const(0, dtype)
    rest = e.binary(arith.SubiOp, a, e.binary(arith.MuliOp, quotient, b))
    if what in ("floordiv", "mod") and dtype.signed:
        unlike = e.compare("slt", e.binary(arith.XOrIOp, rest, b), zero)
        astray = e.binary(arith.AndIOp, unlike, e.compare("ne", rest, zero))
        if what == "floordiv":
            return e.select(astray, e.binary(arith.SubiOp, quotient, e.const(1, dtype)), quotient)
        return e.select(astray, e.binary(arith.AddiOp, rest, b), rest)
    return rest


def shift(e: MlirFunction, s: Op) -> SSAValue:
    dtype = e.dtype_of(s.result)
    a, n = _pair(e, s, dtype)
    cls = _ARITH[_named(s, dtype)]
    known = s.operands[1].value if isinstance(s.operands[1], Const) else None
    if isinstance(known, int) and 0 <= known < dtype.bits:
        return e.binary(cls, a, n)
    zero = e.const(0, dtype)
    inside = e.compare("ult", n, e.const(dtype.bits, dtype))
    if cls is not arith.ShRSIOp:
        return e.select(inside, e.binary(cls, a, e.select(inside, n, zero)), zero)
    shifted = e.binary(cls, a, e.select(inside, n, e.const(dtype.bits - 1, dtype)))
    return e.select(e.compare("slt", n, zero), zero, shifted)


# -- casts --------------------------------------------------------------------------------------------------

_WHOLE = {"rint": "llvm.rint", "round": "llvm.round", "floor": "llvm.floor", "ceil": "llvm.ceil", "trunc": ""}


def cast(e: MlirFunction, s: Op) -> SSAValue:
    """``scalar.cast``; raises TG023 for a rounding the conversions of ``arith`` do not have."""
    src, dst = e.dtype_of(s.operands[0]), e.dtype_of(s.result)
    mode = effective(parse_mode(s.attrs.get("mode", "none")), dst)
    x = e.read(s.operands[0], src)
    if src is dst:
        return x
    if dst is BOOL:
        return truth(e, s, 0)
    if src.is_float:
        return _from_float(e, x, src, dst, mode)
    return _to_float(e, x, src, dst, mode) if dst.is_float else _between_integers(e, x, src, dst)


def _from_float(e: MlirFunction, x: SSAValue, src: DType, dst: DType, mode: str) -> SSAValue:
    if src is not FP32:
        x = e.unary(arith.ExtFOp, x, dtype_type(FP32))
    if dst is FP32:
        return x
    if dst.is_float:
        _nearest(e, mode)
        return e.unary(arith.TruncFOp, x, dtype_type(dst))
    if mode not in _WHOLE:
        e.fail(f"there is no rounding {mode!r}")
    if _WHOLE[mode]:
        x = e.call(_WHOLE[mode], FP32, x)
    name = f"llvm.fpto{'si' if dst.signed else 'ui'}.sat"
    made = e.add(saturating(name, IntegerType(64 if dst is INDEX else dst.bits), x))
    return e.unary(arith.IndexCastOp, made, dtype_type(INDEX)) if dst is INDEX else made


def _nearest(e: MlirFunction, mode: str) -> None:
    if mode != "rint":
        e.fail(f"the conversions round to nearest even, not {mode}")


def _to_float(e: MlirFunction, x: SSAValue, src: DType, dst: DType, mode: str) -> SSAValue:
    if src.bits > 24 or dst is not FP32:
        _nearest(e, mode)
    if dst is BF16 and src.bits > 24:
        e.fail("wide integers reach bfloat through float, with two roundings")
    if src is INDEX:
        x, src = e.unary(arith.IndexCastOp, x, dtype_type(INT64)), INT64
    if dst is FP16 and src.bits > 24:
        # Beyond +-2**17 half has infinities only; within, float holds the integer exactly.
        limit = 1 << 17
        x = e.call("llvm.smin" if src.signed else "llvm.umin", src, x, e.const(limit, src))
        x = e.call("llvm.smax", src, x, e.const(-limit, src)) if src.signed else x
    cls = arith.SIToFPOp if src.signed else arith.UIToFPOp
    wide = e.unary(cls, x, dtype_type(FP32))
    return wide if dst is FP32 else e.unary(arith.TruncFOp, wide, dtype_type(dst))


def _between_integers(e: MlirFunction, x: SSAValue, src: DType, dst: DType) -> SSAValue:
    if src is BOOL:
        if dst is INDEX:
            return e.index_cast(x, src, dst)
        return e.unary(arith.ExtUIOp, x, dtype_type(dst))
    if int(dst.max_value) < int(src.max_value):
        x = e.call("llvm.smin" if src.signed else "llvm.umin", src, x, e.const(int(dst.max_value), src))
    if int(dst.min_value) > int(src.min_value):
        x = e.call("llvm.smax", src, x, e.const(int(dst.min_value), src))
    return e.resized(x, src, dst)


def wrap(e: MlirFunction, s: Op) -> SSAValue:
    """``scalar.wrap``: the low bits."""
    src = e.dtype_of(s.operands[0])
    return e.resized(e.read(s.operands[0], src), src, e.dtype_of(s.result))


HANDLERS: dict[str, Callable[[MlirFunction, Op], SSAValue]] = {
    **{f"scalar.{n}": instruction for n in ("add", "sub", "mul", "bit_and", "bit_or", "bit_xor")},
    **{f"scalar.{n}": compare for n in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"scalar.{n}": divide for n in ("div", "floordiv", "mod", "rem")},
    "scalar.min": extremum,
    "scalar.max": extremum,
    "scalar.and_": both,
    "scalar.or_": both,
    "scalar.not_": negated,
    "scalar.bit_not": invert,
    "scalar.neg": negate,
    "scalar.shl": shift,
    "scalar.shr": shift,
    "scalar.select": choose,
    "scalar.cast": cast,
    "scalar.wrap": wrap,
}
