"""Target-specific operations on scalars and packed pairs: explicit instructions with limits of their own.

Types: assembler v0.60 verifiers. All of them need the vector backend of A5 (capability ``hivm``); where they may run
does not follow from that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from ..classification import Classification, Conclusion
from ..dtypes import HF8, INT64, UINT64
from ..lanes import convert_lanes, high_product, is_lanes, larger, permute_bytes, smaller
from ..op import Call, DTypeAttr, Env, Scalar, Word, op
from ..types import Type, scalar
from ._fused_math import sum_to_odd
from ._scalar_result import dtype_at, require_listed, same, unary
from .scalar_math import in_double, magnitude, power

FAMILY = "target-specific scalar operations"
HIVM = "hivm"
_PAIRS = ("FP16X2", "BF16X2")


def _record(
    group: str, conclusion: Conclusion, types: tuple[str, ...], packed: tuple[str, ...], intrinsic: str,
    vpto: str, differences: str = "", instead: str = "", still: str = "",
) -> Classification:  # fmt: skip
    return Classification(
        group, "anywhere", conclusion, types, packed, HIVM, "", vpto, {"any": intrinsic}, differences, instead, still
    )


# -- maximum, minimum, mathematics: forms kept for hand-written code --------------------------------------------

_KEPT = "same meaning as the plain form; its packed types have no plain form"


def _pair(name: str, doc: str, fn: Callable[[Any, Any], Any], llvm: str, instead: str) -> None:
    def meaning(lhs: Scalar, rhs: Scalar) -> Any:
        return fn(lhs, rhs)

    meaning.__doc__ = doc
    types = ("FP16", "BF16", "FP32")
    record = _record("B", "compatible, then deprecated", types, _PAIRS, llvm, f"pto.{name}", _KEPT, instead)
    op(f"pto.{name}", result=same(2), family=FAMILY, pto=None, scalar=record)(meaning)


_pair("fmax", "The larger; of a NaN and a number the number.", larger, "llvm.maxnum", "scalar.max")
_pair("fmin", "The smaller; of a NaN and a number the number.", smaller, "llvm.minnum", "scalar.min")


def _math(name: str, doc: str, fn: Callable[[Any], Any], llvm: str, packed: tuple[str, ...], instead: str) -> None:
    def meaning(value: Scalar) -> Any:
        return fn(value)

    meaning.__doc__ = doc
    record = _record("C", "compatible, then deprecated", ("FP16", "FP32"), packed, llvm, f"pto.{name}", _KEPT, instead)
    op(f"pto.{name}", result=unary, family=FAMILY, scalar=record)(meaning)


_math("absf", "The magnitude.", magnitude, "llvm.fabs", _PAIRS, "scalar.abs")
_math("sqrt", "The square root.", lambda x: in_double(np.sqrt, x), "llvm.sqrt", ("FP16X2",), "scalar.sqrt")
_math("exp", "e to the power of value.", lambda x: in_double(np.exp, x), "llvm.exp", ("FP16X2",), "scalar.exp")
_math("log", "The natural logarithm.", lambda x: in_double(np.log, x), "llvm.log", ("FP16X2",), "scalar.log")


@op("pto.pow", result=same(2), family=FAMILY,
    scalar=_record("C", "compatible, then deprecated", ("FP16", "FP32"), ("FP16X2",), "llvm.pow", "pto.pow",
                   _KEPT, "scalar.pow"))  # fmt: skip
def pow_(lhs: Scalar, rhs: Scalar) -> Any:
    """lhs to the power of rhs."""
    return power(lhs, rhs)


def _angle(name: str, doc: str) -> None:
    def meaning(value: Scalar) -> Any:
        return in_double(getattr(np, name), value)

    meaning.__doc__ = doc
    note = "no plain form: tiles have tile.sin and tile.cos, with stated errors"
    record = _record("C", "keep target-specific", ("FP32",), (), f"llvm.hivm.{name}", f"pto.{name}", note)
    op(f"pto.{name}", result=unary, family=FAMILY, target_defined="the last bit", scalar=record)(meaning)


_angle("sin", "The sine of an angle in radians.")
_angle("cos", "The cosine of an angle in radians.")


# -- rounding and fused multiply-add ----------------------------------------------------------------------------

_ROUNDS = "scalars only, BF16 too; the assembler takes it anywhere; new code rounds with pl.cast or pto.convert"
_OPEN = "whether the ordinary core has the instruction, and the sign of a zero result and NaN as IEEE 754 says"


def _rounding(name: str, doc: str, fn: Callable[[Any], Any]) -> None:
    def meaning(value: Scalar) -> Any:
        return in_double(fn, value)

    meaning.__doc__ = doc
    record = _record("D", "keep target-specific", ("FP16", "BF16", "FP32"), (), f"llvm.hivm.{name}", f"pto.{name}",
                     _ROUNDS, "", _OPEN)  # fmt: skip
    op(f"pto.{name}", result=unary, family=FAMILY, scalar=record)(meaning)


def half_away(x: Any) -> Any:
    """Round to the nearest integer, ties away from zero, the sign of zeros kept."""
    whole = np.trunc(x)
    return np.copysign(whole + np.copysign(np.abs(x - whole) >= 0.5, x), x)


_rounding("ceil", "The least integer not below.", lambda x: np.ceil(x))
_rounding("floor", "The greatest integer not above.", lambda x: np.floor(x))
_rounding("rint", "The nearest integer, ties to even.", lambda x: np.rint(x))
_rounding("round", "The nearest integer, ties away from zero.", half_away)


@op("pto.fma", result=same(3), family=FAMILY,
    scalar=_record("D", "keep target-specific", ("FP16", "BF16", "FP32"), _PAIRS, "llvm.hivm.ffma.*.rrr", "pto.fma",
                   "one rounding; a product and a sum written apart round twice and are never fused", "",
                   "whether the ordinary core has the instruction"))  # fmt: skip
def fma(a: Scalar, b: Scalar, c: Scalar) -> Any:
    """a * b + c with one rounding."""
    with np.errstate(all="ignore"):
        total = sum_to_odd(np.asarray(np.multiply(a, b), np.float64), np.asarray(c, np.float64))
    return total if is_lanes(a, b, c) else float(total)


# -- conversion -------------------------------------------------------------------------------------------------

#: Letter of a rounding -> round mode. The hybrid rounding of HiFloat8 has no published definition.
ROUNDINGS = {"r": "rint", "a": "round", "f": "floor", "c": "ceil", "z": "trunc", "o": "odd", "h": "hybrid"}
_COMMON = "rafcz"


def _pairs() -> dict[tuple[str, str], str]:
    """Source and destination -> the roundings the instruction has."""
    found = {("FP32", "FP16"): "rafczo"}
    for a in ("FP16", "BF16", "FP32"):
        for b in ("FP16", "BF16", "FP32"):
            if a != b:
                found.setdefault((a, b), _COMMON)
        for i in ("INT32", "UINT32", *(("INT64", "UINT64") if a == "FP32" else ())):
            found[i, a] = found[a, i] = _COMMON
    for a, b in (("FP32X2", "FP16X2"), ("FP32X2", "BF16X2"), ("BF16X2", "FP4X2"), ("BF16X2", "FP4E1M2X2")):
        found[a, b] = found[b, a] = _COMMON
    found["FP32X2", "FP16X2"] = found["FP32", "FP16"]
    for eight in ("FP8E4M3FNX2", "FP8E5M2X2"):
        found["FP32X2", eight] = "r"
        found[eight, "FP32X2"] = found[eight, "FP16X2"] = _COMMON
    for wide in ("FP32X2", "FP16X2"):
        found[wide, "HF8X2"], found["HF8X2", wide] = "ah", _COMMON
    return found


#: Every conversion the instruction has: source and destination dtype -> letters of its roundings.
CONVERSIONS: dict[tuple[str, str], str] = _pairs()
_SOURCES = tuple(dict.fromkeys(a for a, _ in CONVERSIONS))


def _convert_type(call: Call) -> Type:
    src, dst = require_listed(call, dtype_at(call, 0)), call.attr("dtype")
    letters = CONVERSIONS.get((src.name, dst.name))
    if letters is None:
        goals = [b for a, b in CONVERSIONS if a == src.name]
        hint = f"{src.name} converts to {', '.join(goals)}; plain conversions are pl.cast"
        call.fail("TG007", f"there is no conversion from {src.name} to {dst.name}", hint=hint)
    rounding, saturation, sign = (call.attr(k) for k in ("rounding", "saturation", "signedness"))
    if rounding not in letters:
        wanted = ", ".join(f"{c} ({ROUNDINGS[c]})" for c in letters)
        call.fail("TG004", f"{src.name} to {dst.name} has no rounding {rounding!r}", hint=f"it has {wanted}")
    if saturation not in ("sat", "nosat"):
        call.fail("TG004", f"unknown saturation {saturation!r}", hint="sat or nosat")
    if dst.is_int and saturation != "sat":
        call.fail("TG004", "a conversion to integers saturates", hint='write saturation="sat"')
    whole = dst if dst.is_int else src if src.is_int else None
    due = "" if whole is None else "signed" if whole.signed else "unsigned"
    if sign != due:
        reason = "the word is due exactly where one side is an integer, and must be its own"
        call.fail("TG004", f"signedness is {sign!r} where {due!r} is due", reason=reason)
    return scalar(dst)


@op("pto.convert", result=_convert_type, family=FAMILY,
    scalar=Classification("E", "anywhere", "keep both", tuple(s for s in _SOURCES if not s.endswith("X2")),
                          tuple(s for s in _SOURCES if s.endswith("X2")), HIVM, "", "pto.convert",
                          {"any": "llvm.hivm conversions"},
                          "rounding, saturation and signedness are explicit; no integer to integer"))  # fmt: skip
def convert(
    value: Scalar, dtype: DTypeAttr, *, rounding: Word = "r", saturation: Word = "nosat", signedness: Word = "",
    env: Env,
) -> Any:  # fmt: skip
    """Convert with the rounding, saturation and signedness the words say.

    ``rounding``: r even, a away, f floor, c ceil, z zero, o odd, h hybrid; ``saturation``: sat or nosat;
    ``signedness``: signed or unsigned, exactly where one side is an integer.
    """
    if rounding == "h":
        raise ValueError(f"the hybrid rounding of {HF8.name} has no published definition")
    return convert_lanes(value, env.dtype(0), dtype, ROUNDINGS[rounding], saturation == "sat")


# -- integers ---------------------------------------------------------------------------------------------------

_WORDS = ("INT32", "UINT32")


@op("pto.mulhi", result=same(2), family=FAMILY,
    scalar=_record("K", "keep target-specific", (*_WORDS, "INT64", "UINT64"), (), "llvm.hivm.mulhi", "pto.mulhi"))
def mulhi(lhs: Scalar, rhs: Scalar, *, env: Env) -> Any:
    """The upper half of the double-width product."""
    dtype = env.result.dtype
    return high_product(lhs, rhs, dtype.bits, dtype.signed)


def _wide(call: Call) -> Type:
    return scalar(INT64 if same(2)(call).dtype.signed else UINT64)  # type: ignore[union-attr]


@op("pto.mul_i32toi64", result=_wide, family=FAMILY,
    scalar=_record("K", "keep target-specific", _WORDS, (), "llvm.hivm.mul.i32toi64", "pto.mul_i32toi64"))
def mul_i32toi64(lhs: Scalar, rhs: Scalar) -> Any:
    """The whole product of two words."""
    return lhs * rhs


@op("pto.prmt", result=same(3), family=FAMILY, target_defined="taken to be other targets' byte permutation",
    scalar=_record("K", "keep target-specific", _WORDS, (), "llvm.hivm.prmt", "pto.prmt"))
def prmt(low: Scalar, high: Scalar, selector: Scalar) -> Any:
    """Four bytes picked from ``high:low``, a nibble of the selector each; its bit 3 replicates the byte's sign."""
    return permute_bytes(low, high, selector)


