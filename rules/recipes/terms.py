"""Patterns of FP32 tile arithmetic, for recipes: one function per operation, all of one shape.

``recipe`` declares the rule that makes a pattern an alternative of a composite operation. Its result is wrapped in
``tile.approx``, which is no instruction: the recipe's own value is near the composite's and not equal to it, so it must
not merge with the same arithmetic written by hand.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from ...ir import ops as _ops  # noqa: F401  (registers the operations)
from ...ir.dtypes import FP32, INDEX, INT32, DType
from ..rule import Bound, Condition, Pattern, Rule, Term, rule, shapes, values
from ..terms import DTYPE_CODES, LITERAL, MODE_CODES, literal_codes, plain_rest, saturation_code

(X,) = values("x")
(SHAPE,) = shapes("sh")


def rounded(value: float) -> float:
    """Return a number rounded to FP32."""
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def number(value: float) -> Term:
    """An FP32 literal; it must be an FP32 number already."""
    if rounded(value) != value:
        raise ValueError(f"{value!r} is no FP32 number")
    return Term(LITERAL, literal_codes(float(value), FP32), ())


def whole(value: int) -> Term:
    """An integer literal."""
    return Term(LITERAL, literal_codes(value, INDEX), ())


def _tile(name: str, *children: Pattern, dtype: DType = FP32) -> Term:
    return Term(f"tile.{name}", (DTYPE_CODES[dtype.name], SHAPE), children)


def add(a: Pattern, b: Pattern) -> Term:
    """a + b."""
    return _tile("add", a, b)


def sub(a: Pattern, b: Pattern) -> Term:
    """a - b."""
    return _tile("sub", a, b)


def mul(a: Pattern, b: Pattern) -> Term:
    """a * b."""
    return _tile("mul", a, b)


def adds(a: Pattern, b: float) -> Term:
    """A + a constant."""
    return _tile("adds", a, number(b))


def muls(a: Pattern, b: float) -> Term:
    """A * a constant."""
    return _tile("muls", a, number(b))


def axpy(acc: Pattern, a: Pattern, b: float) -> Term:
    """Acc + a * a constant, rounded once."""
    return _tile("axpy", acc, a, number(b))


def shift_left(a: Pattern, n: int, dtype: DType = INT32) -> Term:
    """Integer bits shifted."""
    return _tile("shls", a, whole(n), dtype=dtype)


def shift_right(a: Pattern, n: int) -> Term:
    """INT32 shifted down, the sign kept."""
    return _tile("shrs", a, whole(n), dtype=INT32)


def add_whole(a: Pattern, n: int, dtype: DType = INT32) -> Term:
    """Integers plus a constant, wrapping."""
    return _tile("adds", a, whole(n), dtype=dtype)


def plus(a: Pattern, b: Pattern, dtype: DType = INT32) -> Term:
    """The sum of integers, wrapping."""
    return _tile("add", a, b, dtype=dtype)


def minus(a: Pattern, b: Pattern) -> Term:
    """The difference of INT32, wrapping."""
    return _tile("sub", a, b, dtype=INT32)


def times(a: Pattern, b: Pattern) -> Term:
    """The product of INT32, wrapping."""
    return _tile("mul", a, b, dtype=INT32)


def max_whole(a: Pattern, n: int, dtype: DType = INT32) -> Term:
    """The larger one of integers and a constant."""
    return _tile("maximums", a, whole(n), dtype=dtype)


def min_whole(a: Pattern, n: int) -> Term:
    """The smaller one of INT32 and a constant."""
    return _tile("minimums", a, whole(n), dtype=INT32)


def and_whole(a: Pattern, n: int) -> Term:
    """INT32 bits and a constant's."""
    return _tile("ands", a, whole(n), dtype=INT32)


def either(a: Pattern, b: Pattern) -> Term:
    """The bits set in either one of two INT32."""
    return _tile("or_", a, b, dtype=INT32)


def xor(a: Pattern, b: Pattern) -> Term:
    """Exclusive or of INT32 bits."""
    return _tile("xor", a, b, dtype=INT32)


def view(a: Pattern, dtype: DType) -> Term:
    """The same bits as another dtype of the same width; no instruction."""
    name = "tile.reinterpret_view"
    return Term(name, (DTYPE_CODES[dtype.name], SHAPE, plain_rest(name)), (a,))


def bits(a: Pattern) -> Term:
    """The bits of an FP32 tile as INT32; no instruction."""
    return view(a, INT32)


def from_bits(a: Pattern) -> Term:
    """INT32 bits as an FP32 tile; no instruction."""
    return view(a, FP32)


def convert(a: Pattern, src: DType, dst: DType, mode: str) -> Term:
    """A cast with the default saturation."""
    args = (DTYPE_CODES[dst.name], SHAPE, DTYPE_CODES[src.name], MODE_CODES[mode], saturation_code(None, dst), 0)
    return Term("tile.cast", args, (a,))


def polynomial(u: Pattern, coefficients: Sequence[float]) -> Pattern:
    """c0 * u**n + ... + c(n-1) * u by Horner's scheme; the constant term is zero."""
    total: Pattern = muls(u, coefficients[0])
    for c in coefficients[1:]:
        total = mul(adds(total, c), u)
    return total


def recipe(
    name: str, of: str, made: Callable[[Pattern], Pattern], *, bound: Bound, reason: str, when: Sequence[Condition] = ()
) -> Rule:
    """Declare a recipe of the FP32 operation ``of``: ``made`` returns its pattern for the operand's pattern."""
    result = _tile("approx", made(X))
    return rule(name, lhs=Term(of, result.args, (X,)), rhs=result, when=when, contract="bounded", reason=reason,
                bound=bound)  # fmt: skip
