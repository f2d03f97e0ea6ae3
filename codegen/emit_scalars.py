"""Scalar operations as ``arith``: index, integers without sign (signedness is in the operation), floats.

Only operations the assembler can lower are used (assembler v0.60): no ``math``, no ``arith.maximumf``.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from ..ir.dtypes import BOOL, FP32, INDEX, INT64, DType
from ..ir.literals import nearest
from ..ir.program import Const, Op, Operand, Value
from .emit_scopes import I64, Scopes, scalar_type
from .pto import arith

_I1 = IntegerType(1)
_CMPI = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
_UNSIGNED_SHIFT = 4
_CMPF = {"eq": 1, "gt": 2, "ge": 3, "lt": 4, "le": 5, "ne": 13, "unordered": 14}

#: Operation name -> classes for signed integers (and index), unsigned integers, floats.
_BINARY: dict[str, tuple[type[Operation] | None, type[Operation] | None, type[Operation] | None]] = {
    "scalar.add": (arith.AddiOp, arith.AddiOp, arith.SubfOp),
    "scalar.sub": (arith.SubiOp, arith.SubiOp, arith.SubfOp),
    "scalar.mul": (arith.MuliOp, arith.MuliOp, arith.MulfOp),
    "scalar.div": (arith.DivSIOp, arith.DivUIOp, arith.DivfOp),
    "scalar.floordiv": (arith.FloorDivSIOp, arith.DivUIOp, None),
    "scalar.min": (arith.MinSIOp, arith.MinUIOp, arith.MinnumfOp),
    "scalar.max": (arith.MaxSIOp, arith.MaxUIOp, arith.MaxnumfOp),
    **{f"llvm.{n}num": (None, None, c) for n, c in (("max", arith.MaxnumfOp), ("min", arith.MinnumfOp))},
    "llvm.smax": (arith.MaxSIOp, None, None),
    "llvm.smin": (arith.MinSIOp, None, None),
    "llvm.umax": (None, arith.MaxUIOp, None),
    "llvm.umin": (None, arith.MinUIOp, None),
    "scalar.bit_and": (arith.AndIOp, arith.AndIOp, None),
    "scalar.bit_or": (arith.OrIOp, arith.OrIOp, None),
    "scalar.bit_xor": (arith.XOrIOp, arith.XOrIOp, None),
    "scalar.shl": (arith.ShLIOp, arith.ShLIOp, None),
    "scalar.shr": (arith.ShRSIOp, arith.ShRUIOp, None),
}
#: Operations whose result is not negative when both operands are not.
_NATURAL = frozenset(
    f"scalar.{n}" for n in ("add", "mul", "div", "floordiv", "min", "max", "bit_and", "bit_or", "shr", "mod")
)


# -- operands --------------------------------------------------------------------------------------------


def constant(state: Scopes, value: int | float | bool, dtype: DType) -> SSAValue:
    """Return a literal in a dtype: rounded to nearest even for floats, low bits for integers."""
    type_ = state.register(dtype)
    if not dtype.is_float:
        number = int(value)
        bits = 64 if dtype.kind == "index" else dtype.bits
        number &= (1 << bits) - 1
        if bits > 1 and number >> (bits - 1):
            number -= 1 << bits
        return state.b.constants.get(number, type_)
    return state.b.constants.get(nearest(float(value), dtype), type_)


def scalar_operand(state: Scopes, o: Operand, dtype: DType) -> SSAValue:
    """Return a scalar operand as a value of a dtype, converted where it has another."""
    if isinstance(o, Const):
        return constant(state, o.value, dtype)
    if not isinstance(o, Value):
        state.fail(f"{getattr(o, 'text', o)!r} cannot be computed in assembly")
    value = state.scalars.get(o.name)
    if value is None:
        state.fail(f"the scalar {o.name!r} is not known here")
    return convert(state, value, o.type.dtype, dtype)  # type: ignore[union-attr]


def condition(state: Scopes, o: Operand) -> SSAValue:
    """Return a scalar operand as a truth value."""
    return scalar_operand(state, o, BOOL)


# -- conversions -----------------------------------------------------------------------------------------


def convert(state: Scopes, x: SSAValue, src: DType, dst: DType, mode: str = "rint", clamp: bool = False) -> SSAValue:
    """Convert a scalar; ``clamp`` limits it to the destination's range instead of keeping the low bits.

    ``mode`` is the rounding of floats to integers; the hardware converts the other way to nearest even.
    """
    if src is dst:
        return x
    for dtype in (src, dst):
        state.register(dtype)
    if dst is BOOL:
        return _compare(state, "ne", x, constant(state, 0, src), src)
    if src is BOOL:
        wide = state.arith(arith.ExtUIOp, x, type_=I64) if dst is INDEX else x
        if dst is INDEX:
            return state.as_index(wide)
        cls: type[Operation] = arith.UIToFPOp if dst.is_float else arith.ExtUIOp
        return state.arith(cls, x, type_=scalar_type(dst))
    if src.is_float:
        return _from_float(state, x, src, dst, mode)
    if dst.is_float:
        if src is INDEX:
            x, src = state.arith(arith.IndexCastOp, x, type_=I64), INT64
        return state.arith(arith.SIToFPOp if src.signed else arith.UIToFPOp, x, type_=scalar_type(dst))
    return _from_int(state, x, src, dst, clamp)


def _from_int(state: Scopes, x: SSAValue, src: DType, dst: DType, clamp: bool) -> SSAValue:
    if INDEX in (src, dst):
        if dst is INDEX and not src.signed:
            x = state.arith(arith.ExtUIOp, x, type_=I64) if src.bits < 64 else x
        made = state.arith(arith.IndexCastOp, x, type_=scalar_type(dst))
        if x in state.natural or not src.signed:
            state.natural.add(made)
        return made
    if clamp:
        x = _clamped(state, x, src, dst)
    if src.bits == dst.bits:
        return x
    if src.bits > dst.bits:
        return state.arith(arith.TruncIOp, x, type_=scalar_type(dst))
    return state.arith(arith.ExtSIOp if src.signed else arith.ExtUIOp, x, type_=scalar_type(dst))


def _clamped(state: Scopes, x: SSAValue, src: DType, dst: DType) -> SSAValue:
    low, high = int(dst.min_value), int(dst.max_value)
    if int(src.min_value) < low:
        x = state.arith(arith.MaxSIOp, x, constant(state, low, src))
    if int(src.max_value) > high:
        cls = arith.MinSIOp if src.signed else arith.MinUIOp
        x = state.arith(cls, x, constant(state, high, src))
    return x


def _from_float(state: Scopes, x: SSAValue, src: DType, dst: DType, mode: str) -> SSAValue:
    if dst.is_float:
        if src.bits < dst.bits:
            return state.arith(arith.ExtFOp, x, type_=scalar_type(dst))
        if src.bits == dst.bits:
            x = state.arith(arith.ExtFOp, x, type_=scalar_type(FP32))
        return state.arith(arith.TruncFOp, x, type_=scalar_type(dst))
    if src is not FP32:
        x = state.arith(arith.ExtFOp, x, type_=scalar_type(FP32))
    if dst is INDEX:
        return state.arith(arith.IndexCastOp, _float_to_int(state, x, INT64, mode), type_=scalar_type(INDEX))
    return _float_to_int(state, x, dst, mode)


def _float_to_int(state: Scopes, x: SSAValue, dst: DType, mode: str) -> SSAValue:
    """Round an FP32 scalar, then clamp; NaN becomes zero. The machine itself truncates."""
    whole = state.arith(arith.FPToSIOp, x, type_=I64)
    rounded = _rounded(state, x, whole, mode)
    low, high = int(dst.min_value), int(dst.max_value)
    if dst.bits < 64:
        limited = state.arith(arith.MinSIOp, state.arith(arith.MaxSIOp, rounded, constant(state, low, INT64)),
                       constant(state, high, INT64))  # fmt: skip
    else:
        limited = rounded
    top = min(high, (1 << 63) - 1)
    over = _compare(state, "ge", x, constant(state, float(2**63), FP32), FP32)
    under = _compare(state, "lt", x, constant(state, -float(2**63), FP32), FP32)
    nan = _compare(state, "unordered", x, x, FP32)
    for when, value in ((over, top), (under, max(low, -(1 << 63))), (nan, 0)):
        limited = _select(state, when, constant(state, value, INT64), limited)
    return limited if dst.bits == 64 else state.arith(arith.TruncIOp, limited, type_=scalar_type(dst))


def _rounded(state: Scopes, x: SSAValue, whole: SSAValue, mode: str) -> SSAValue:
    """Correct the truncated value of x by its exact fraction."""
    if mode in ("trunc", "none"):
        return whole
    fraction = state.arith(arith.SubfOp, x, state.arith(arith.SIToFPOp, whole, type_=x.type))
    up = state.arith(arith.AddiOp, whole, constant(state, 1, INT64))
    down = state.arith(arith.SubiOp, whole, constant(state, 1, INT64))

    def when(how: str, limit: float) -> SSAValue:
        return _compare(state, how, fraction, constant(state, limit, FP32), FP32)

    if mode == "floor":
        return _select(state, when("lt", 0.0), down, whole)
    if mode == "ceil":
        return _select(state, when("gt", 0.0), up, whole)
    if mode == "round":
        return _select(state, when("ge", 0.5), up, _select(state, when("le", -0.5), down, whole))
    if mode != "rint":
        state.fail(f"scalars cannot be rounded with mode {mode!r} in assembly")
    odd = _compare(state, "ne", state.arith(arith.AndIOp, whole, constant(state, 1, INT64)),
                   constant(state, 0, INT64), INT64)  # fmt: skip
    rise = state.arith(arith.OrIOp, when("gt", 0.5), state.arith(arith.AndIOp, when("eq", 0.5), odd))
    fall = state.arith(arith.OrIOp, when("lt", -0.5), state.arith(arith.AndIOp, when("eq", -0.5), odd))
    return _select(state, rise, up, _select(state, fall, down, whole))


def _select(state: Scopes, when: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
    return state.arith(arith.SelectOp, when, a, b, type_=a.type)


def _compare(state: Scopes, how: str, a: SSAValue, b: SSAValue, dtype: DType) -> SSAValue:
    if dtype.is_float:
        predicate = IntegerAttr(_CMPF[how], I64)
        return state.arith(arith.CmpfOp, a, b, type_=_I1, predicate=predicate)
    code = _CMPI[how]
    if code > 1 and not dtype.signed:
        code += _UNSIGNED_SHIFT
    return state.arith(arith.CmpiOp, a, b, type_=_I1, predicate=IntegerAttr(code, I64))


# -- operations ------------------------------------------------------------------------------------------


def _common(s: Op) -> DType:
    """Return the dtype two operands are compared in: a literal adapts, a size becomes the integer."""
    a, b = (o.type.dtype for o in s.operands[:2])  # type: ignore[union-attr]
    if isinstance(s.operands[0], Const) or (a is INDEX and not isinstance(s.operands[1], Const)):
        return b
    return a


def binary(state: Scopes, s: Op) -> SSAValue:
    dtype: DType = s.result.type.dtype  # type: ignore[union-attr]
    classes = _BINARY[s.name]
    cls = classes[2] if dtype.is_float else classes[0] if dtype.signed else classes[1]
    if cls is None or dtype is BOOL:
        state.fail(f"{s.name} on {dtype.name} scalars cannot be written as assembly")
    a, b = (scalar_operand(state, o, dtype) for o in s.operands[:2])
    if dtype.is_float and s.name == "scalar.add":
        # The assembler (v0.60) has no lowering for arith.addf; a - (-b) is the same number, zeros and NaN included.
        b = state.arith(arith.NegfOp, b)
    natural = state.is_natural(a) and state.is_natural(b)
    if cls is arith.FloorDivSIOp and natural:
        cls = arith.DivUIOp
    return _noted(state, s, state.arith(cls, a, b), natural)


def _noted(state: Scopes, s: Op, made: SSAValue, natural: bool) -> SSAValue:
    if natural and s.name in _NATURAL:
        state.natural.add(made)
    return made


def modulo(state: Scopes, s: Op) -> SSAValue:
    """Remainder with the sign of the divisor."""
    dtype: DType = s.result.type.dtype  # type: ignore[union-attr]
    if dtype.is_float:
        state.fail("the remainder of float scalars cannot be written as assembly")
    a, b = (scalar_operand(state, o, dtype) for o in s.operands[:2])
    if not dtype.signed or (state.is_natural(a) and state.is_natural(b)):
        return _noted(state, s, state.arith(arith.RemUIOp, a, b), True)
    rest = state.arith(arith.RemSIOp, a, b)
    return state.arith(arith.RemSIOp, state.arith(arith.AddiOp, rest, b), b)


def remainder(state: Scopes, s: Op) -> SSAValue:
    """Remainder with the sign of the dividend."""
    dtype: DType = s.result.type.dtype  # type: ignore[union-attr]
    a, b = (scalar_operand(state, o, dtype) for o in s.operands[:2])
    return state.arith(arith.RemSIOp if dtype.signed else arith.RemUIOp, a, b)


def invert(state: Scopes, s: Op) -> SSAValue:
    dtype: DType = s.result.type.dtype  # type: ignore[union-attr]
    return state.arith(arith.XOrIOp, scalar_operand(state, s.operands[0], dtype), constant(state, -1, dtype))


def choose(state: Scopes, s: Op) -> SSAValue:
    dtype: DType = s.result.type.dtype  # type: ignore[union-attr]
    when, a, b = s.operands
    return _select(state, condition(state, when), scalar_operand(state, a, dtype), scalar_operand(state, b, dtype))


def compare(state: Scopes, s: Op) -> SSAValue:
    dtype = _common(s)
    a, b = (scalar_operand(state, o, dtype) for o in s.operands[:2])
    return _compare(state, s.name.removeprefix("scalar."), a, b, dtype)


def logic(state: Scopes, s: Op) -> SSAValue:
    values = [condition(state, o) for o in s.operands]
    if s.name == "scalar.not_":
        return state.arith(arith.XOrIOp, values[0], constant(state, True, BOOL))
    return state.arith(arith.AndIOp if s.name == "scalar.and_" else arith.OrIOp, *values)


def negate(state: Scopes, s: Op) -> SSAValue:
    dtype: DType = s.result.type.dtype  # type: ignore[union-attr]
    x = scalar_operand(state, s.operands[0], dtype)
    return state.arith(arith.NegfOp, x) if dtype.is_float else state.arith(arith.SubiOp, constant(state, 0, dtype), x)


def cast(state: Scopes, s: Op) -> SSAValue:
    source = s.operands[0]
    dst: DType = s.result.type.dtype  # type: ignore[union-attr]
    if isinstance(source, Const):
        if dst.is_float or isinstance(source.value, int):
            return constant(state, source.value, dst)
        written = constant(state, source.value, source.dtype)
        return convert(state, written, source.dtype, dst, s.attrs.get("mode", "none"))
    assert isinstance(source, Value)
    src: DType = source.type.dtype  # type: ignore[union-attr]
    return convert(state, scalar_operand(state, source, src), src, dst, s.attrs.get("mode", "none"), clamp=True)


def wrap(state: Scopes, s: Op) -> SSAValue:
    src: DType = s.operands[0].type.dtype  # type: ignore[union-attr]
    return convert(state, scalar_operand(state, s.operands[0], src), src, s.result.type.dtype)  # type: ignore[union-attr]


HANDLERS: dict[str, Callable[[Scopes, Op], SSAValue]] = {
    **dict.fromkeys(_BINARY, binary),
    **{f"scalar.{how}": compare for how in _CMPI},
    **dict.fromkeys(("scalar.and_", "scalar.or_", "scalar.not_"), logic),
    "scalar.mod": modulo,
    "scalar.neg": negate,
    "scalar.cast": cast,
    "scalar.wrap": wrap,
    "scalar.rem": remainder,
    "scalar.bit_not": invert,
    "scalar.select": choose,
}


def emit_scalar(state: Scopes, s: Op) -> None:
    """Append a scalar operation and name its result."""
    handler = HANDLERS.get(s.name)
    if handler is None:
        state.fail(f"{s.name} on scalars cannot be written for this backend of the assembler")
    made = handler(state, s)
    state.scalars[s.result.name] = state.name(made, s.result.name)
