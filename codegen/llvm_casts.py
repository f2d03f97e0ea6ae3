"""Scalar casts as LLVM instructions, with one rounding and clamped integers as the language has them."""

from __future__ import annotations

from ..ir.dtypes import BF16, BOOL, FP16, FP32, DType
from ..ir.program import Op
from ..ir.rounding import effective, parse_mode
from .llvm import Emitter
from .llvm_values import literal, llvm_type, suffix

#: Round mode -> intrinsic that rounds a float to a whole number first; truncation is in the conversion itself.
_WHOLE = {"rint": "llvm.rint", "round": "llvm.round", "floor": "llvm.floor", "ceil": "llvm.ceil", "trunc": ""}


def cast(e: Emitter, s: Op) -> str:
    """``scalar.cast``; raises TG023 for a rounding LLVM's conversions do not have."""
    src, dst = e.type_of(s.operands[0]), e.scalar(s.result.type)
    mode = effective(parse_mode(s.attrs.get("mode", "none")), dst)
    x = e.operand(s.operands[0], src)
    if src is dst:
        return x
    if dst is BOOL:
        return _to_bool(e, x, src)
    if src.is_float:
        return _float_to_float(e, x, src, dst, mode) if dst.is_float else _float_to_int(e, x, src, dst, mode)
    return _int_to_float(e, x, src, dst, mode) if dst.is_float else _int_to_int(e, x, src, dst)


def _to_bool(e: Emitter, x: str, src: DType) -> str:
    if not src.is_float:
        return e.emit(f"icmp ne {llvm_type(src)} {x}, 0")
    # Unordered: a NaN is not zero.
    return e.emit(f"fcmp une {llvm_type(src)} {x}, {literal(0.0, src)}")


def _float_to_float(e: Emitter, x: str, src: DType, dst: DType, mode: str) -> str:
    if src is not FP32:
        x = e.emit(f"fpext {llvm_type(src)} {x} to float")
    if dst is FP32:
        return x
    _nearest(e, mode)
    return e.emit(f"fptrunc float {x} to {llvm_type(dst)}")


def _nearest(e: Emitter, mode: str) -> None:
    if mode != "rint":
        e.fail(f"LLVM's conversions round to nearest even, not {mode}")


def _float_to_int(e: Emitter, x: str, src: DType, dst: DType, mode: str) -> str:
    if mode not in _WHOLE:
        e.fail(f"LLVM has no rounding {mode!r}")
    if src is not FP32:
        x = e.emit(f"fpext {llvm_type(src)} {x} to float")
    if _WHOLE[mode]:
        x = e.call(_WHOLE[mode], FP32, x)
    # The saturating conversions clamp, and give 0 for NaN.
    name = f"llvm.fpto{'si' if dst.signed else 'ui'}.sat.{suffix(dst)}.f32"
    t = llvm_type(dst)
    e.declared[f"declare {t} @{name}(float)"] = None
    return e.emit(f"call {t} @{name}(float {x})")


def _int_to_float(e: Emitter, x: str, src: DType, dst: DType, mode: str) -> str:
    if src.bits > 24 or dst is not FP32:
        _nearest(e, mode)
    how = "sitofp" if src.signed else "uitofp"
    if dst is BF16 and src.bits > 24:
        e.fail("LLVM converts wide integers to bfloat through float, with two roundings")
    if dst is FP16 and src.bits > 24:
        x = _limited(e, x, src)
    if dst is FP32:
        return e.emit(f"{how} {llvm_type(src)} {x} to float")
    wide = e.emit(f"{how} {llvm_type(src)} {x} to float")
    return e.emit(f"fptrunc float {wide} to {llvm_type(dst)}")


def _limited(e: Emitter, x: str, src: DType) -> str:
    """Clamp to +-2**17, which half turns into infinities anyway, so that float holds the integer exactly."""
    if not src.signed:
        return e.call("llvm.umin", src, x, str(1 << 17))
    return e.call("llvm.smax", src, e.call("llvm.smin", src, x, str(1 << 17)), str(-(1 << 17)))


def _int_to_int(e: Emitter, x: str, src: DType, dst: DType) -> str:
    if src is BOOL:
        return e.emit(f"zext i1 {x} to {llvm_type(dst)}")
    low, high = int(dst.min_value), int(dst.max_value)
    if high < int(src.max_value):
        x = e.call("llvm.smin" if src.signed else "llvm.umin", src, x, str(high))
    if low > int(src.min_value):
        x = e.call("llvm.smax", src, x, str(low))
    return e.resized(x, src, dst)


def wrap(e: Emitter, s: Op) -> str:
    """``scalar.wrap``: the low bits."""
    src = e.type_of(s.operands[0])
    return e.resized(e.operand(s.operands[0], src), src, e.scalar(s.result.type))
