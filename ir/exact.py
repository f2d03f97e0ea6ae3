"""One number at a time: rounding and conversion in plain Python numbers, exact and without arrays.

What ``convert.py`` does for storage arrays, for a single value: an int, or a float (every float format here fits
in a Python float). A second statement of the same semantics, compared with the first by a test; proofs use it
where a few numbers settle a question and arrays would have to be loaded first.
"""

from __future__ import annotations

import math

from .dtypes import BOOL, DType

Value = int | float


def rounded(numerator: int, denominator: int, mode: str) -> int:
    """Round a ratio with a positive denominator to an integer in a mode other than ``none``."""
    below, rest = divmod(numerator, denominator)
    if rest == 0:
        return below
    match mode:
        case "floor":
            up = False
        case "ceil":
            up = True
        case "trunc":
            up = numerator < 0
        case "odd":
            up = below % 2 == 0
        case "rint":
            up = 2 * rest > denominator or (2 * rest == denominator and below % 2 == 1)
        case _:
            up = 2 * rest > denominator or (2 * rest == denominator and numerator > 0)
    return below + up


def converted(value: Value, src: DType, dst: DType, mode: str, saturate: bool) -> Value | None:
    """Convert one value of ``src`` as :func:`tilegg.ir.convert.convert` does; the mode is not ``none``.

    Returns a float for a float destination, else an int; ``None`` where single numbers are not converted: BOOL and
    opaque types, float destinations without sign or with a varying precision (HF8).
    """
    if BOOL in (src, dst) or not (src.is_numeric and dst.is_numeric):
        return None
    if dst.is_float:
        return _to_float(value, dst, mode, saturate) if dst.has_sign and not dst.taper else None
    return _to_int(value, dst, mode, saturate)


def _to_int(value: Value, dst: DType, mode: str, saturate: bool) -> int:
    low, high = int(dst.min_value), int(dst.max_value)
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            return 0
        if saturate:
            return high if value > 0 else low
        whole = -1 if value > 0 else 0
    else:
        whole = rounded(*value.as_integer_ratio(), mode)
    if saturate:
        return min(max(whole, low), high)
    bits = whole & ((1 << dst.bits) - 1)
    return bits - (1 << dst.bits) if bits > high else bits


def _to_float(value: Value, dst: DType, mode: str, saturate: bool) -> float:
    if isinstance(value, float) and not math.isfinite(value):
        return _special(value, dst, saturate)
    if value == 0:
        return math.copysign(0.0, value) if dst.has_negative_zero else 0.0
    # An integer beyond float64's significand keeps its bits here: frexp would round it.
    size = abs(value).bit_length() if isinstance(value, int) else math.frexp(value)[1]
    unit = max(size - dst.significand_bits, dst.quantum_exponent)
    top, bottom = value.as_integer_ratio()
    top, bottom = (top, bottom << unit) if unit > 0 else (top << -unit, bottom)
    steps = rounded(top, bottom, mode)
    if steps == 0:
        return -0.0 if value < 0 and dst.has_negative_zero else 0.0
    result = math.ldexp(steps, unit)
    return result if abs(result) <= dst.max_value else _overflow(result, dst, mode, saturate)


def _special(value: float, dst: DType, saturate: bool) -> float:
    if math.isnan(value):
        return math.nan if dst.has_nan else 0.0
    return _beyond(value, dst, saturate)


def _overflow(result: float, dst: DType, mode: str, saturate: bool) -> float:
    """The result for a number that rounds beyond the largest finite one, had the exponent no bound."""
    inward = {"trunc": True, "odd": True, "floor": result > 0, "ceil": result < 0}.get(mode, False)
    return math.copysign(dst.max_value, result) if inward else _beyond(result, dst, saturate)


def _beyond(value: float, dst: DType, saturate: bool) -> float:
    if saturate or not (dst.has_inf or dst.has_nan):
        return math.copysign(dst.max_value, value)
    return math.copysign(math.inf, value) if dst.has_inf else math.nan


def same(a: Value, b: Value) -> bool:
    """Tell whether two results are the same element: NaNs are, zeros of unlike sign are not."""
    if a != a or b != b:
        return a != a and b != b
    return a == b and math.copysign(1.0, a) == math.copysign(1.0, b)
