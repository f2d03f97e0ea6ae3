"""Sine and cosine: x = k pi + t with an integer k and |t| <= pi/2, then a polynomial in t, then the sign (-1)**k.

The reference recipes are those of the composite page, constant by constant and in its order. The others differ in
three places. Rounding: adding 1.5 * 2**23 leaves the nearest integer in the low bits of an FP32 number, so k needs no
conversion, and its parity is the lowest bit. Reduction: with fused multiply-adds, x - k * PI_HIGH is exact (both are
multiples of 2**-23 and the difference is below 2), so that two terms of pi do better than five separate ones; both
are below pi, which keeps -0. Sign: the parity, shifted into the sign bit, is the sign itself.
"""

from __future__ import annotations

import math

from ...ir.dtypes import FP32, INT32
from ..facts import within
from ..rule import Bound, Pattern, Term, rule, values
from .terms import (
    X,
    add,
    add_whole,
    adds,
    axpy,
    bits,
    convert,
    from_bits,
    mul,
    muls,
    polynomial,
    recipe,
    rounded,
    shift_left,
    sub,
    xor,
)

# Constants of the composite page, FP32 literals there.
PI_INV = rounded(0.31830988732818603515625)
PI_V2 = rounded(3.140625)
PI_C1 = rounded(0.0009670257568359375)
PI_C2 = rounded(6.2771141529083251953125e-7)
PI_C3 = rounded(1.21644916362129151821e-10)
PI_C4 = rounded(-1.0290623200529979163e-13)
PI_HALF_HEAD = rounded(1.57079637050628662109375)
PI_HALF_TAIL = rounded(-4.371139000189375e-8)
R = tuple(map(rounded, (2.604926501e-6, -1.980894471e-4, 8.333049340e-3, -1.666665792e-1)))

#: pi = PI_HIGH + PI_LOW, both FP32 and positive.
PI_HIGH = rounded(3.141592502593994)
PI_LOW = rounded(math.pi - PI_HIGH)
#: Adding it rounds to the nearest integer, ties to even, for magnitudes below 2**22.
TO_INTEGER = 12582912.0
ONE_BITS = 0x3F800000
#: cos(t) - 1 in t**2: degree 5 on |t| <= 1.5725, degree 3 on |t| <= 0.7855; least maximum errors 2.5e-10 and 3.2e-8
#: (``benchmarks/bench_recipes.py --fit``).
COS = tuple(map(rounded, (-2.607397476e-7, 2.476171670e-5, -1.388840038e-3, 4.166664050e-2, -4.999999954e-1)))
COS_SMALL = tuple(map(rounded, (-1.359774833e-3, 4.165628923e-2, -4.999989470e-1)))
#: sin(t) / t - 1 in t**2: degree 3 on |t| <= 0.7855; least maximum error of the sine 1.8e-9.
SIN_SMALL = tuple(map(rounded, (-1.949554730e-4, 8.331977964e-3, -1.666665066e-1)))

#: |x| of the page's accuracy contract, and of its documented range.
CONTRACT = 2048 * math.pi
DOCUMENTED = 131072.0


# -- parts -----------------------------------------------------------------------------------------------------


def odd_polynomial(t: Pattern, coefficients: tuple[float, ...] = R) -> Pattern:
    """t * (1 + P(t**2)), as on the page."""
    return mul(t, adds(polynomial(mul(t, t), coefficients), 1.0))


def odd_sum(t: Pattern, coefficients: tuple[float, ...] = R) -> Pattern:
    """t + t * P(t**2): the rounding of the polynomial weighs less."""
    return add(t, mul(t, polynomial(mul(t, t), coefficients)))


def even_polynomial(t: Pattern, coefficients: tuple[float, ...] = COS) -> Pattern:
    """1 + P(t**2); never above 1, since P is not positive."""
    return adds(polynomial(mul(t, t), coefficients), 1.0)


def to_integer(y: Pattern) -> tuple[Pattern, Pattern]:
    """Return the nearest integer as FP32, and INT32 bits of which the lowest one is its parity."""
    biased = adds(y, TO_INTEGER)
    return adds(biased, -TO_INTEGER), bits(biased)


def signed(y: Pattern, parity: Pattern) -> Term:
    """Return y or -y by the lowest bit of ``parity``: times the number with bits (parity << 31) + bits of 1."""
    return mul(y, from_bits(add_whole(shift_left(parity, 31), ONE_BITS)))


def less_multiple(x: Pattern, k: Pattern) -> Pattern:
    """X - k * pi with two fused multiply-adds."""
    return axpy(axpy(x, k, -PI_HIGH), k, -PI_LOW)


def _minus(t: Pattern, k: Pattern, *parts: float) -> Pattern:
    for part in parts:
        t = sub(t, muls(k, part))
    return t


# -- the page's recipes ------------------------------------------------------------------------------------------


def page_sign(k: Pattern) -> Pattern:
    """floor(k / 2) * 4 - 2 k + 1."""
    half = convert(convert(muls(k, 0.5), FP32, INT32, "floor"), INT32, FP32, "none")
    return adds(add(muls(half, 4.0), muls(k, -2.0)), 1.0)


def page_sin(x: Pattern) -> Pattern:
    """The page's sine."""
    k = convert(convert(muls(x, PI_INV), FP32, INT32, "round"), INT32, FP32, "none")
    t = _minus(x, k, PI_V2, PI_C1, PI_C2, PI_C3, PI_C4)
    return mul(page_sign(k), odd_polynomial(t))


def page_cos(x: Pattern) -> Pattern:
    """The page's cosine."""
    k = convert(convert(adds(muls(x, PI_INV), 0.5), FP32, INT32, "rint"), INT32, FP32, "none")
    return mul(page_sign(k), odd_polynomial(_page_cos_reduced(x, k)))


def _page_cos_reduced(x: Pattern, k: Pattern) -> Pattern:
    t = adds(_minus(x, k, PI_V2, PI_C1), PI_HALF_HEAD)
    return adds(_minus(t, k, PI_C2, PI_C3, PI_C4), PI_HALF_TAIL)


# -- others ------------------------------------------------------------------------------------------------------


def fused_sin(x: Pattern) -> Pattern:
    """Sine by fused reduction."""
    k, parity = to_integer(muls(x, PI_INV))
    return signed(odd_polynomial(less_multiple(x, k)), parity)


def fused_sin_tight(x: Pattern) -> Pattern:
    """Sine by fused reduction, the polynomial as a sum."""
    k, parity = to_integer(muls(x, PI_INV))
    return signed(odd_sum(less_multiple(x, k)), parity)


def separate_sin(x: Pattern) -> Pattern:
    """Sine with the page's reduction, for targets without fused multiply-add."""
    k, parity = to_integer(muls(x, PI_INV))
    return signed(odd_polynomial(_minus(x, k, PI_V2, PI_C1, PI_C2, PI_C3, PI_C4)), parity)


def fused_cos(x: Pattern) -> Pattern:
    """Cosine as sine of t = x - (k - 1/2) pi."""
    k, parity = to_integer(adds(muls(x, PI_INV), 0.5))
    return signed(odd_polynomial(less_multiple(x, adds(k, -0.5))), parity)


def even_cos(x: Pattern) -> Pattern:
    """Cosine with the reduction of the sine, and a polynomial of its own."""
    k, parity = to_integer(muls(x, PI_INV))
    return signed(even_polynomial(less_multiple(x, k)), parity)


def separate_cos(x: Pattern) -> Pattern:
    """Cosine with the page's reduction, for targets without fused multiply-add."""
    k, parity = to_integer(adds(muls(x, PI_INV), 0.5))
    return signed(odd_polynomial(_page_cos_reduced(x, k)), parity)


# -- rules -------------------------------------------------------------------------------------------------------

_MINUS_ZERO = "sin(-0) is -0"
_NO_MINUS_ZERO = "sin(-0) is +0"
_LARGE = "beyond 2**17 accuracy is lost little by little up to 2**22"
_NAN = "infinities give NaN"
EIGHTH, QUARTER = 0, 1


def _bound(contract: float, documented: float, *special: str) -> Bound:
    return Bound(((CONTRACT, contract), (DOCUMENTED, documented)), "; ".join(special))


def _short(error: float, *special: str) -> Bound:
    """The bound of a recipe whose condition says how large the operand can be."""
    return Bound(((DOCUMENTED, error),), "; ".join(special))


recipe(
    "sin.reference", "tile.sin", page_sin,
    bound=_bound(1.7e-7, 2e-6, _NO_MINUS_ZERO, "infinities give infinities", "the result can exceed 1 by 2**-23"),
    reason="reduction by five parts of pi, sign from k, polynomial of degree 9",
)  # fmt: skip
recipe(
    "cos.reference", "tile.cos", page_cos,
    bound=_bound(1.95e-7, 2e-6, "infinities give infinities", "the result can exceed 1 by 2**-23"),
    reason="reduction by five parts of pi and two of pi/2, sign from k, polynomial of degree 9",
)  # fmt: skip
recipe(
    "sin.fused", "tile.sin", fused_sin,
    bound=_bound(1.7e-7, 1.7e-7, _MINUS_ZERO, _NAN, "the result can exceed 1 by 2**-23", _LARGE),
    reason="k by adding 1.5 * 2**23, reduction by two fused multiply-adds, sign from the lowest bit of k",
)  # fmt: skip
recipe(
    "sin.fused-tight", "tile.sin", fused_sin_tight,
    bound=_bound(1.25e-7, 1.25e-7, _NO_MINUS_ZERO, _NAN, "the result never exceeds 1", _LARGE),
    reason="as sin.fused, with the polynomial as t + t P(t**2), which rounds less and stays within 1",
)  # fmt: skip
recipe(
    "sin.separate", "tile.sin", separate_sin,
    bound=_bound(1.7e-7, 2e-6, _NO_MINUS_ZERO, _NAN, "the result can exceed 1 by 2**-23"),
    reason="the page's reduction, k by adding 1.5 * 2**23, sign from the lowest bit of k",
)  # fmt: skip
recipe(
    "sin.quarter-turn", "tile.sin", odd_polynomial, when=[within(X, QUARTER)],
    bound=_short(1.8e-7, _MINUS_ZERO, "the result can exceed 1 by 2**-23"),
    reason="|x| <= pi/2 needs no reduction and no sign",
)  # fmt: skip
recipe(
    "sin.eighth-turn", "tile.sin", lambda x: odd_polynomial(x, SIN_SMALL), when=[within(X, EIGHTH)],
    bound=_short(1.0e-7, _MINUS_ZERO, "the result never exceeds 1"),
    reason="|x| <= pi/4 needs a polynomial of degree 7 only",
)  # fmt: skip
recipe(
    "cos.fused", "tile.cos", fused_cos,
    bound=_bound(1.8e-7, 1.8e-7, _NAN, "the result can exceed 1 by 2**-23", _LARGE),
    reason="the sine of x - (k - 1/2) pi, reduced by two fused multiply-adds",
)  # fmt: skip
recipe(
    "cos.even", "tile.cos", even_cos,
    bound=_bound(1.8e-7, 2e-7, _NAN, "the result never exceeds 1", _LARGE),
    reason="the reduction and the sign are those of the sine, so sin(x) and cos(x) share them",
)  # fmt: skip
recipe(
    "cos.separate", "tile.cos", separate_cos,
    bound=_bound(1.95e-7, 2e-6, _NAN, "the result can exceed 1 by 2**-23"),
    reason="the page's reduction, k by adding 1.5 * 2**23, sign from the lowest bit of k",
)  # fmt: skip
recipe(
    "cos.quarter-turn", "tile.cos", even_polynomial, when=[within(X, QUARTER)],
    bound=_short(1.8e-7, "the result never exceeds 1"),
    reason="|x| <= pi/2 needs no reduction and no sign",
)  # fmt: skip
recipe(
    "cos.eighth-turn", "tile.cos", lambda x: even_polynomial(x, COS_SMALL), when=[within(X, EIGHTH)],
    bound=_short(1.1e-7, "the result never exceeds 1"),
    reason="|x| <= pi/4 needs a polynomial of degree 6 only",
)  # fmt: skip

(_y, _k) = values("y k")
rule(
    "sign.by-xor",
    lhs=signed(_y, _k),
    rhs=from_bits(xor(bits(_y), shift_left(_k, 31))),
    contract="exact",
    reason="a product with 1 or -1 changes the sign bit at most",
)
