"""Which values integer operations can give where nothing is negative: what makes shifts and masks of divisions."""

from __future__ import annotations

from .. import valueset as vs


def _within(lo: int | float, hi: int | float, call: vs.Call) -> vs.ValueSet:
    """Return the integers of an interval, or everything the dtype holds where the interval leaves it."""
    whole = vs.of_dtype(call.dtype)
    if not call.dtype.is_int or lo < whole.lo or hi > whole.hi:
        return whole
    return vs.interval(lo, hi, 0)


def quotient(a: vs.ValueSet, b: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    """a / b, rounded either way."""
    if call.dtype.is_int and a.lo >= 0 and b.lo > 0:
        return _within(0, a.hi, call)
    return vs.of_dtype(call.dtype)


def remainder(a: vs.ValueSet, b: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    """The remainder with the sign of the dividend."""
    if call.dtype.is_int and a.lo >= 0 and b.lo > 0:
        return _within(0, min(a.hi, b.hi - 1), call)
    return vs.of_dtype(call.dtype)


def modulus(a: vs.ValueSet, b: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    """The remainder with the sign of the divisor."""
    return _within(0, b.hi - 1, call) if call.dtype.is_int and b.lo > 0 else vs.of_dtype(call.dtype)


def common_bits(a: vs.ValueSet, b: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    """a & b."""
    limits = [x.hi for x in (a, b) if x.lo >= 0]
    return _within(0, min(limits), call) if call.dtype.is_int and limits else vs.of_dtype(call.dtype)


def shifted_right(a: vs.ValueSet, b: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    """a >> b."""
    return _within(0, a.hi, call) if call.dtype.is_int and a.lo >= 0 else vs.of_dtype(call.dtype)


def wrapped(a: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    """The low bits: the same integers where the dtype holds them all."""
    whole = vs.of_dtype(call.dtype)
    return a if whole.lo <= a.lo and a.hi <= whole.hi else whole
