"""Rules about clamps of which the comparisons read the number itself, not what the other bound made of it.

What is above the upper bound gets that, whatever the lower one did to it, and the other way round: where the bounds are
in order, a second comparison of the number decides as one of the bounded number would. Only selections with the scalar
where the mask is 0 have rules here; others become such ones by inverse comparisons.
"""

from __future__ import annotations

from ..ir.ops.select import COMPARISONS
from .arithmetic import d, op
from .computed import computed
from .facts import nonzero, one_zero, ordered
from .rule import rule, values
from .select import GE, GT, LE, LT, cmps, sels

(x, lo, hi) = values("x lo hi")


def _second_bounds() -> None:
    in_order = computed("ascending", lo, hi, dtype=d)
    for side, hows, first, bound, outer in (
        ("upper", (LT, LE), op("maximums", x, lo), hi, "minimums"),
        ("lower", (GT, GE), op("minimums", x, hi), lo, "maximums"),
    ):
        for how in hows:
            # Zeros of both signs never meet: the bound is none, or there is no -0.
            for zero, unlike in (("", [nonzero(bound)]), (".zero", [one_zero(x), one_zero(lo), one_zero(hi)])):
                rule(
                    f"clamp.{side}.{COMPARISONS[how]}{zero}",
                    lhs=sels(cmps(how, x, bound), first, bound),
                    rhs=op(outer, first, bound),
                    when=[ordered(x), *unlike, in_order],
                    contract="exact",
                    reason="without NaN, and with the bounds in order, a number is beyond one bound "
                    "exactly where it is when the other bound was applied",
                )


_second_bounds()
