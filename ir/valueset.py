"""Value sets: what a forward analysis knows about the elements of a value.

A :class:`ValueSet` is an interval, a grid (every finite value is a multiple of ``2**grid``), a number of
significand bits, and whether NaN, an infinity or a negative zero may occur. One predicate,
:func:`representable`, answers every question of the cast world: a hop is exact, a round mode is irrelevant,
a round trip is the identity, saturation cannot act.

Transfer functions (one beside each operation) take the value sets of the tile, tensor and scalar operands in
declaration order, and ``call`` with the result type and attributes. All bounds are conservative.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from .dtypes import DType
from .exact import rounded

Real = int | float
_WIDE = 1 << 12  # more significand bits than any dtype has


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A superset of the values an element can take; ``lo``/``hi`` bound the finite ones.

    ``sign`` tells which infinities can occur where ``inf`` is set: 1 the positive one only, -1 the negative
    one only, 0 both. -0 needs a zero in the interval: of a set without one, ``negative_zero`` is False however it was
    made.
    """

    lo: Real
    hi: Real
    grid: int
    sig: int = _WIDE
    nan: bool = False
    inf: bool = False
    negative_zero: bool = False
    sign: int = 0

    def __post_init__(self) -> None:
        # -0 is a zero: what narrowed the interval to numbers other than zero has excluded it too.
        if self.negative_zero and not self.has_zero:
            object.__setattr__(self, "negative_zero", False)

    @property
    def plus_inf(self) -> bool:
        """True when the positive infinity can occur."""
        return self.inf and self.sign >= 0

    @property
    def minus_inf(self) -> bool:
        """True when the negative infinity can occur."""
        return self.inf and self.sign <= 0

    @property
    def specials(self) -> list[float]:
        """NaN, the infinities and -0, those that can occur."""
        found = [math.nan] * self.nan + [math.inf] * self.plus_inf + [-math.inf] * self.minus_inf
        return found + [-0.0] * self.negative_zero

    @property
    def magnitude(self) -> Real:
        """The largest absolute finite value."""
        return max(abs(self.lo), abs(self.hi))

    @property
    def finite(self) -> bool:
        """True when neither NaN nor an infinity can occur."""
        return not (self.nan or self.inf)

    @property
    def has_zero(self) -> bool:
        """True when zero lies in the interval."""
        return self.lo <= 0 <= self.hi

    @property
    def bits(self) -> int:
        """Significand bits that suffice for every finite value."""
        top = self.magnitude
        if top == 0:
            return 0
        # A power of two on top needs one bit itself, and everything below it one bit less than its binade.
        whole = _exponent(top) - self.grid + (0 if _is_power_of_two(top) else 1)
        return max(1, min(self.sig, whole))

    def __str__(self) -> str:
        infinity = ("inf", "+inf", "-inf")[self.sign]
        extras = [n for n, on in (("NaN", self.nan), (infinity, self.inf), ("-0", self.negative_zero)) if on]
        tail = f" or {', '.join(extras)}" if extras else ""
        return f"[{self.lo:.9g}, {self.hi:.9g}] in multiples of 2^{self.grid}, {self.bits} bits{tail}"


@dataclass(frozen=True)
class Call:
    """What a transfer function may ask: the result type and the attributes with their defaults."""

    name: str
    result: Any
    attrs: Mapping[str, Any]
    defaults: Mapping[str, Any]

    @property
    def dtype(self) -> DType:
        """The result's element type."""
        dtype: DType = self.result.dtype
        return dtype

    def attr(self, name: str) -> Any:
        """Return an attribute, or its declared default."""
        return self.attrs[name] if name in self.attrs else self.defaults[name]


def _is_power_of_two(x: Real) -> bool:
    return x & (x - 1) == 0 if isinstance(x, int) else math.frexp(x)[0] == 0.5


def _exponent(x: Real) -> int:
    if isinstance(x, int):
        return abs(x).bit_length() - 1
    return math.frexp(x)[1] - 1


@lru_cache(maxsize=256)
def of_dtype(dtype: DType) -> ValueSet:
    """Return every value of the dtype."""
    if not dtype.is_numeric:
        return ValueSet(-math.inf, math.inf, -_WIDE, _WIDE, True, True, True)
    if not dtype.is_float:
        return ValueSet(int(dtype.min_value), int(dtype.max_value), 0)
    return ValueSet(
        dtype.min_value,
        dtype.max_value,
        dtype.quantum_exponent,
        dtype.significand_bits,
        dtype.has_nan,
        dtype.has_inf,
        dtype.has_negative_zero,
    )


def constant(value: Real, dtype: DType) -> ValueSet:
    """Return the set of one value, as an element or scalar of the dtype.

    Floats round to nearest even; integers drop the fraction and wrap.
    """
    if isinstance(value, bool):
        value = int(value)
    if dtype.is_int and math.isfinite(value):
        low = int(value) & ((1 << dtype.bits) - 1)
        value = low - (1 << dtype.bits) if dtype.signed and low >> (dtype.bits - 1) else low
    if isinstance(value, float) and not math.isfinite(value):
        everything = of_dtype(dtype)
        sign = int(value > 0) - int(value < 0)
        inf = math.isinf(value) and dtype.has_inf
        nan = dtype.has_nan and not inf
        if not nan and not inf:
            return everything
        return replace(everything, lo=0, hi=0, nan=nan, inf=inf, negative_zero=False, sign=sign)
    if dtype.name == "FP32" and abs(value) <= dtype.max_value:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return cast_to(_exactly(value), dtype, "rint")


def _exactly(value: Real) -> ValueSet:
    if value == 0:
        negative = isinstance(value, float) and math.copysign(1.0, value) < 0
        return ValueSet(0, 0, 0, 0, negative_zero=negative)
    top, bottom = value.as_integer_ratio()
    low = (top & -top).bit_length() - 1 - (bottom.bit_length() - 1)
    return ValueSet(value, value, low, _exponent(value) - low + 1)


def interval(lo: Real, hi: Real, grid: int) -> ValueSet:
    """Return the finite multiples of ``2**grid`` in [lo, hi]."""
    return ValueSet(lo, hi, grid)


def representable(values: ValueSet, dtype: DType) -> bool:
    """Return whether the dtype holds every value of the set exactly (zero signs and specials included)."""
    if (values.nan and not dtype.has_nan) or (values.inf and not dtype.has_inf):
        return False
    if not dtype.is_numeric or values.lo < dtype.min_value or values.hi > dtype.max_value:
        return values.lo == values.hi == 0 and dtype.is_numeric and dtype.has_zero and not values.negative_zero
    if values.negative_zero and not dtype.has_negative_zero:
        return False
    if not dtype.has_zero and values.has_zero:
        return False
    if not dtype.is_float:
        return values.grid >= 0
    if dtype.taper:
        return _tapered(values, dtype)
    return values.grid >= dtype.quantum_exponent and values.bits <= dtype.significand_bits


def _tapered(values: ValueSet, dtype: DType) -> bool:
    top = values.magnitude
    if top == 0:
        return True
    exponents = range(max(values.grid, dtype.quantum_exponent - 1), _exponent(top) + 1)
    return values.grid >= dtype.quantum_exponent and all(
        min(values.sig, e - values.grid + 1) <= dtype.precision_at(e) for e in exponents
    )


# -- rounding into a dtype -------------------------------------------------------------------------------


def cast_to(values: ValueSet, dtype: DType, mode: str, saturate: bool | None = None) -> ValueSet:
    """Return the set after one conversion to ``dtype`` (see ``ir/convert.py`` for the semantics)."""
    if not dtype.is_numeric:
        return of_dtype(dtype)
    clamps_infinity = dtype.is_float and bool(saturate) and values.inf
    if representable(values, dtype) and not clamps_infinity:
        return values
    if dtype.kind == "bool":
        # "not zero": a fraction, an infinity and NaN are true.
        return interval(0, 1, 0)
    if dtype.is_float:
        return _to_float(values, dtype, mode, bool(saturate))
    return _to_int(values, dtype, mode, saturate is not False)


def _to_int(values: ValueSet, dtype: DType, mode: str, clamp_on: bool) -> ValueSet:
    least, most = int(dtype.min_value), int(dtype.max_value)
    lo, hi = _integral(values.lo, mode, False), _integral(values.hi, mode, True)
    if not clamp_on and (values.inf or lo < least or hi > most):
        return of_dtype(dtype)
    if values.minus_inf:
        lo = least
    if values.plus_inf:
        hi = most
    lo, hi = (int(min(max(x, least), most)) for x in (lo, hi))
    if values.nan:
        lo, hi = min(lo, 0), max(hi, 0)
    # Clamping lands on the range's ends, which lie on the unit grid only.
    inside = values.lo >= least and values.hi <= most and not values.inf
    return ValueSet(lo, hi, max(values.grid, 0) if inside else 0)


def _integral(x: Real, mode: str, up: bool) -> Real:
    if isinstance(x, int) or math.isinf(x) or x.is_integer():
        return x if isinstance(x, int) or math.isinf(x) else int(x)
    if mode == "odd":
        return rounded(*x.as_integer_ratio(), "ceil" if up else "floor")
    return rounded(*x.as_integer_ratio(), "trunc" if mode == "none" else mode)


def _to_float(values: ValueSet, dtype: DType, mode: str, saturate: bool) -> ValueSet:
    lo, hi = _outward(values.lo, dtype, -1), _outward(values.hi, dtype, 1)
    over = lo < dtype.min_value or hi > dtype.max_value
    lo, hi = max(lo, dtype.min_value), min(hi, dtype.max_value)
    lo, hi = min(lo, hi), max(lo, hi)
    if not saturate and (over or values.inf) and not dtype.has_inf and dtype.has_nan:
        nan, inf = True, False
    else:
        nan, inf = values.nan, (over or values.inf) and dtype.has_inf and not saturate
    if (values.inf or over) and not inf:
        lo, hi = min(lo, dtype.min_value), max(hi, dtype.max_value)
    grid = max(values.grid, dtype.quantum_exponent)
    sig = min(values.sig, dtype.significand_bits)
    if over or values.inf:
        # The largest finite value may be a result, whatever the grid and the width of the source.
        grid = min(grid, math.frexp(dtype.max_value)[1] - dtype.significand_bits)
        sig = dtype.significand_bits
    if not dtype.has_zero and values.lo <= dtype.min_value:
        # Zero and what underflows give the least value, negative values NaN.
        nan, lo, hi, grid = True, dtype.min_value, max(hi, dtype.min_value), dtype.quantum_exponent
    if values.nan and not dtype.has_nan:
        nan, lo, hi = False, min(lo, 0), max(hi, 0)
    sinks = values.negative_zero or (values.lo < 0 and values.grid < dtype.quantum_exponent)
    sign = values.sign if inf and not over else 0
    return ValueSet(lo, hi, grid, sig, nan and dtype.has_nan, inf, sinks and dtype.has_negative_zero, sign)


def _outward(x: Real, dtype: DType, direction: int) -> Real:
    """A bound on where rounding can take ``x``: ``x`` itself if the dtype holds it, else one step outward."""
    if math.isinf(x) or representable(_exactly(x), dtype):
        return x
    step = max(abs(x) * 2.0 ** (1 - _least_precision(dtype)), 2.0**dtype.quantum_exponent)
    return x + direction * step


@lru_cache(maxsize=64)
def _least_precision(dtype: DType) -> int:
    """Significand bits that every value of moderate size has at least."""
    return min((p for e in range(-8, 8) if (p := dtype.precision_at(e))), default=1)


# -- transfer functions ----------------------------------------------------------------------------------


def _settle(exact: ValueSet, dtype: DType) -> ValueSet:
    """Round (floats, nearest even) or wrap (integers) an exact result into the dtype."""
    if dtype.is_float:
        return cast_to(exact, dtype, "rint", False)
    if exact.lo < dtype.min_value or exact.hi > dtype.max_value:
        return of_dtype(dtype)
    return exact


def _sum(a: Real, b: Real, direction: int) -> Real:
    if math.isinf(a) or math.isinf(b):
        return direction * math.inf
    total = a + b
    exact = isinstance(total, int) or (total - a == b and total - b == a)
    return total if exact else math.nextafter(total, direction * math.inf)


def _product(a: Real, b: Real, direction: int) -> Real:
    if a == 0 or b == 0:
        return 0
    total = a * b
    whole = isinstance(total, int) or (float(a).is_integer() and float(b).is_integer() and abs(total) < 2**53)
    return total if whole else math.nextafter(total, direction * math.inf)


def add(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """a + b: -0 only where both are, since no sum of floats underflows and x - x is +0 to nearest even."""
    exact = ValueSet(
        _sum(a.lo, b.lo, -1),
        _sum(a.hi, b.hi, 1),
        min(a.grid, b.grid),
        nan=a.nan or b.nan or (a.inf and b.inf),
        inf=a.inf or b.inf,
        negative_zero=a.negative_zero and b.negative_zero,
    )
    return _settle(exact, call.dtype)


def sub(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """a - b: -0 only where a is -0 and b is +0."""
    return add(a, _negated(b, call.dtype.is_float), call=call)


def _negated(a: ValueSet, is_float: bool) -> ValueSet:
    return replace(a, lo=-a.hi, hi=-a.lo, negative_zero=is_float and a.has_zero, sign=-a.sign)


def neg(a: ValueSet, *, call: Call) -> ValueSet:
    """-a."""
    return _settle(_negated(a, call.dtype.is_float), call.dtype)


def mul(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """a * b."""
    pairs = [(x, y) for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    is_float = call.dtype.is_float
    # No product of numbers other than zero rounds to zero where it is a multiple of FP16's smallest number.
    negative = (
        a.negative_zero or b.negative_zero
        or (a.has_zero and b.lo < 0) or (b.has_zero and a.lo < 0)
        or (min(a.lo, b.lo) < 0 and a.grid + b.grid < -24)
    )  # fmt: skip
    exact = ValueSet(
        min(_product(x, y, -1) for x, y in pairs),
        max(_product(x, y, 1) for x, y in pairs),
        a.grid + b.grid,
        min(a.bits + b.bits, _WIDE),
        nan=a.nan or b.nan or (a.inf and b.has_zero) or (b.inf and a.has_zero),
        inf=a.inf or b.inf,
        negative_zero=is_float and negative,
    )
    return _settle(exact, call.dtype)


def maximum(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """The larger; NaN if either is NaN."""
    # Beside a negative infinity the other operand passes, however small.
    lows = [max(a.lo, b.lo), *([b.lo] if a.minus_inf else []), *([a.lo] if b.minus_inf else [])]
    minus = a.minus_inf and b.minus_inf
    return _join(a, b, min(lows), max(a.hi, b.hi), a.plus_inf or b.plus_inf, minus)


def minimum(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """The smaller; NaN if either is NaN."""
    highs = [min(a.hi, b.hi), *([b.hi] if a.plus_inf else []), *([a.hi] if b.plus_inf else [])]
    plus = a.plus_inf and b.plus_inf
    return _join(a, b, min(a.lo, b.lo), max(highs), plus, a.minus_inf or b.minus_inf)


def scalar_choice(transfer: Callable[..., ValueSet]) -> Callable[..., ValueSet]:
    """Return the transfer function of a scalar minimum or maximum, which may drop a NaN operand."""

    def chosen(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
        return (union if a.nan or b.nan else transfer)(a, b, call=call)

    return chosen


def _join(a: ValueSet, b: ValueSet, lo: Real, hi: Real, plus: bool, minus: bool) -> ValueSet:
    return ValueSet(
        lo,
        hi,
        min(a.grid, b.grid),
        max(a.bits, b.bits),
        a.nan or b.nan,
        plus or minus,
        a.negative_zero or b.negative_zero,
        int(plus) - int(minus),
    )


def union(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """Either operand's value."""
    plus, minus = a.plus_inf or b.plus_inf, a.minus_inf or b.minus_inf
    return _join(a, b, min(a.lo, b.lo), max(a.hi, b.hi), plus, minus)


def same(a: ValueSet, *, call: Call) -> ValueSet:
    """The operand's values."""
    return a


def absolute(a: ValueSet, *, call: Call) -> ValueSet:
    """|a|."""
    lo = 0 if a.has_zero else min(abs(a.lo), abs(a.hi))
    return _settle(replace(a, lo=lo, hi=a.magnitude, negative_zero=False, sign=1), call.dtype)


def relu(a: ValueSet, *, call: Call) -> ValueSet:
    """max(a, 0)."""
    lo = 0 if a.minus_inf else max(a.lo, 0)
    return replace(a, lo=lo, hi=max(a.hi, 0), inf=a.plus_inf, negative_zero=False, sign=int(a.plus_inf))


def exp(a: ValueSet, *, call: Call) -> ValueSet:
    """e to the a: never negative; at most 1 for arguments up to 0."""
    everything = of_dtype(call.dtype)
    top = 1 if a.hi <= 0 and not a.inf else everything.hi
    return replace(everything, lo=0, hi=top, nan=a.nan, inf=top != 1 and everything.inf, negative_zero=False)


def sqrt(a: ValueSet, *, call: Call) -> ValueSet:
    """Square root: no negative result but the root of negative zero."""
    everything = of_dtype(call.dtype)
    nan = a.nan or a.lo < 0 or a.inf
    return replace(everything, lo=0, nan=nan, inf=a.inf, negative_zero=a.negative_zero)


def shift_right(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """a >> b, whole amounts that are not negative."""
    if b.lo != b.hi or not b.finite or not 0 <= b.lo < call.dtype.bits:
        return of_dtype(call.dtype)
    return ValueSet(int(a.lo) >> int(b.lo), int(a.hi) >> int(b.lo), 0)


def cast(a: ValueSet, *, call: Call) -> ValueSet:
    """A cast by its own mode and saturation."""
    word = call.attr("saturation_mode")
    return cast_to(a, call.dtype, call.attr("mode"), None if word is None else word == "on")


def scalar_like(values: ValueSet, dtype: DType) -> ValueSet:
    """Return the set of scalar operands once they have become elements of a tile of ``dtype``.

    Floats round to nearest even; integers drop the fraction and keep the low bits.
    """
    if dtype.is_float:
        return cast_to(values, dtype, "rint", False)
    return values if representable(values, dtype) else of_dtype(dtype)


def with_scalar(transfer: Callable[..., ValueSet]) -> Callable[..., ValueSet]:
    """Return the transfer function of the tile-scalar form: the scalar first becomes an element."""

    def scalar_form(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
        return transfer(a, scalar_like(b, call.dtype), call=call)

    return scalar_form


def within(a: ValueSet, lo: ValueSet, hi: ValueSet) -> ValueSet:
    """Return the numbers of ``a`` between two bounds; an infinite bound bounds nothing and admits infinity."""
    low = -math.inf if lo.inf else lo.lo
    high = math.inf if hi.inf else hi.hi
    return replace(clamp(a, low, high), inf=a.inf and (lo.inf or hi.inf))


def clamp(a: ValueSet, lo: Real, hi: Real) -> ValueSet:
    """Return the numbers of ``a`` in [lo, hi]: no NaN, no infinity."""
    low, high = max(a.lo, lo), min(a.hi, hi)
    return replace(a, lo=low, hi=max(low, high), nan=False, inf=False, sign=0)
