"""Value sets of integer operations that keep low bits: masks and remainders."""

from __future__ import annotations

from . import valueset as vs
from .valueset import Call, ValueSet


def masked(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """Bitwise and: with an operand that is not negative the result lies between 0 and that operand."""
    tops = [x.hi for x in (a, b) if x.lo >= 0]
    return vs.interval(0, min(tops), 0) if tops else vs.of_dtype(call.dtype)


def remainder(a: ValueSet, b: ValueSet, *, call: Call) -> ValueSet:
    """Remainder with the sign of a positive divisor: at least 0 and below it (integers)."""
    if not call.dtype.is_int or b.lo < 1:
        return vs.of_dtype(call.dtype)
    top = b.hi - 1 if a.lo < 0 else min(a.hi, b.hi - 1)
    return vs.interval(0, top, 0)
