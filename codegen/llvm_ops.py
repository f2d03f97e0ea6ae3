"""Scalar operations as LLVM instructions: arithmetic, comparisons, bits, guarded division and shifts."""

from __future__ import annotations

from collections.abc import Callable

from ..ir.dtypes import BOOL, INDEX, DType
from ..ir.op import OPS
from ..ir.program import Const, Op
from .llvm import Emitter, kind_of
from .llvm_values import literal, llvm_type


def operand_dtype(e: Emitter, s: Op) -> DType:
    """Return the dtype two operands are compared in: a literal adapts, a size becomes the integer."""
    a, b = e.type_of(s.operands[0]), e.type_of(s.operands[1])
    if isinstance(s.operands[0], Const) or (a is INDEX and not isinstance(s.operands[1], Const)):
        return b
    return a


def pair(e: Emitter, s: Op, dtype: DType) -> tuple[str, str, str]:
    """Return the type's text and both operands in it."""
    return llvm_type(dtype), e.operand(s.operands[0], dtype), e.operand(s.operands[1], dtype)


def instruction(e: Emitter, s: Op) -> str:
    """One instruction, named by the operation's record."""
    dtype = e.scalar(s.result.type)
    t, a, b = pair(e, s, dtype)
    return e.emit(f"{_named(s, dtype)} {t} {a}, {b}")


def _named(s: Op, dtype: DType) -> str:
    record = OPS[s.name].scalar
    assert record is not None
    return record.intrinsic(kind_of(dtype))


def compare(e: Emitter, s: Op) -> str:
    dtype = operand_dtype(e, s)
    t, a, b = pair(e, s, dtype)
    return e.emit(f"{_named(s, dtype)} {t} {a}, {b}")


def extremum(e: Emitter, s: Op) -> str:
    """The record's intrinsic; of sizes the one that a comparison picks."""
    dtype = e.scalar(s.result.type)
    t, a, b = pair(e, s, dtype)
    if dtype is not INDEX:
        return e.call(_named(s, dtype), dtype, a, b)
    better = e.emit(f"icmp {'sgt' if s.name.endswith('max') else 'slt'} {t} {a}, {b}")
    return e.select(better, t, a, b)


def truth(e: Emitter, s: Op, i: int) -> str:
    """Return an operand as a condition: what is not zero holds, NaN too."""
    o = s.operands[i]
    dtype = e.type_of(o)
    x = e.operand(o, dtype)
    if dtype is BOOL:
        return x
    how = "fcmp une" if dtype.is_float else "icmp ne"
    return e.emit(f"{how} {llvm_type(dtype)} {x}, {literal(0, dtype)}")


def both(e: Emitter, s: Op) -> str:
    return e.emit(f"{'and' if s.name == 'scalar.and_' else 'or'} i1 {truth(e, s, 0)}, {truth(e, s, 1)}")


def negated(e: Emitter, s: Op) -> str:
    return e.emit(f"xor i1 {truth(e, s, 0)}, true")


def invert(e: Emitter, s: Op) -> str:
    dtype = e.scalar(s.result.type)
    return e.emit(f"xor {llvm_type(dtype)} {e.operand(s.operands[0], dtype)}, -1")


def negate(e: Emitter, s: Op) -> str:
    dtype = e.scalar(s.result.type)
    t, x = llvm_type(dtype), e.operand(s.operands[0], dtype)
    return e.emit(f"fneg {t} {x}" if dtype.is_float else f"sub {t} 0, {x}")


def choose(e: Emitter, s: Op) -> str:
    dtype = e.scalar(s.result.type)
    when, a, b = e.operand(s.operands[0], BOOL), e.operand(s.operands[1], dtype), e.operand(s.operands[2], dtype)
    return e.select(when, llvm_type(dtype), a, b)


# -- division ---------------------------------------------------------------------------------------------------


def divide(e: Emitter, s: Op) -> str:
    """Quotient and remainder, rounded as the operation says; 0 for a zero divisor."""
    dtype = e.scalar(s.result.type)
    t, a, b = pair(e, s, dtype)
    what = s.name.removeprefix("scalar.")
    if dtype.is_float:
        if what != "div":
            e.fail("is not written for floats")
        return e.emit(f"fdiv {t} {a}, {b}")
    known = s.operands[1].value if isinstance(s.operands[1], Const) else None
    safe, zero, minus = _safe_divisor(e, t, b, dtype, known)
    sign = "s" if dtype.signed else "u"
    if what in ("div", "floordiv"):
        found = e.emit(f"{sign}div {t} {a}, {safe}")
        if minus:
            found = e.select(minus, t, e.emit(f"sub {t} 0, {a}"), found)
        if what == "floordiv" and dtype.signed:
            found = e.emit(f"add {t} {found}, {_correction(e, t, a, b, safe)}")
    else:
        found = e.emit(f"{sign}rem {t} {a}, {safe}")
        if what == "mod" and dtype.signed:
            found = e.select(_astray(e, t, found, b), t, e.emit(f"add {t} {found}, {b}"), found)
    return e.select(zero, t, "0", found) if zero else found


def _safe_divisor(e: Emitter, t: str, b: str, dtype: DType, known: object) -> tuple[str, str, str]:
    """Return a divisor that is never undefined, and the conditions of the cases it hides (empty: cannot be)."""
    if known is not None and known not in (0, -1):
        return b, "", ""
    zero = e.emit(f"icmp eq {t} {b}, 0")
    if not dtype.signed:
        return e.select(zero, t, "1", b), zero, ""
    minus = e.emit(f"icmp eq {t} {b}, -1")
    special = e.emit(f"or i1 {zero}, {minus}")
    return e.select(special, t, "1", b), zero, minus


def _astray(e: Emitter, t: str, rest: str, b: str) -> str:
    """Return whether a remainder is not zero and has the other sign than the divisor."""
    some = e.emit(f"icmp ne {t} {rest}, 0")
    unlike = e.emit(f"icmp slt {t} {e.emit(f'xor {t} {rest}, {b}')}, 0")
    return e.emit(f"and i1 {some}, {unlike}")


def _correction(e: Emitter, t: str, a: str, b: str, safe: str) -> str:
    rest = e.emit(f"srem {t} {a}, {safe}")
    return e.emit(f"sext i1 {_astray(e, t, rest, b)} to {t}")


# -- shifts -----------------------------------------------------------------------------------------------------


def shift(e: Emitter, s: Op) -> str:
    """Shifts whose amount may be anything: beyond the width everything is shifted out."""
    dtype = e.scalar(s.result.type)
    t, a, n = pair(e, s, dtype)
    how = _named(s, dtype)
    known = s.operands[1].value if isinstance(s.operands[1], Const) else None
    if isinstance(known, int) and 0 <= known < dtype.bits:
        return e.emit(f"{how} {t} {a}, {n}")
    inside = e.emit(f"icmp ult {t} {n}, {dtype.bits}")
    if how != "ashr":
        return e.select(inside, t, e.emit(f"{how} {t} {a}, {e.select(inside, t, n, '0')}"), "0")
    shifted = e.emit(f"ashr {t} {a}, {e.select(inside, t, n, str(dtype.bits - 1))}")
    return e.select(e.emit(f"icmp slt {t} {n}, 0"), t, "0", shifted)


HANDLERS: dict[str, Callable[[Emitter, Op], str]] = {
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
}
