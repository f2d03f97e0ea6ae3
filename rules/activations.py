"""Rules about rectifiers: what is written as an extreme or a selection is one instruction.

A NaN, and zeros of both signs as operands of max and min, are left open by the hardware documents; facts exclude them
where the two sides could differ.
"""

from __future__ import annotations

from ..ir.dtypes import FP32
from .arithmetic import d, op
from .computed import computed
from .facts import is_float, offers, one_zero, ordered
from .rule import Term, rule, values
from .select import GE, GT, LE, LT, cmps, sel, sels
from .terms import LITERAL, literal_codes

(x, y, c) = values("x y c")
_ZERO = Term(LITERAL, literal_codes(0.0, FP32), ())
_SCALED = op("muls", x, c)
_STEEP = computed("slope", c, dtype=d)

for _order, _lhs in (("first", op("maximum", x, _SCALED)), ("second", op("maximum", _SCALED, x))):
    rule(
        f"lrelu.maximum.{_order}", lhs=_lhs, rhs=op("lrelu", x, c), when=[_STEEP], contract="exact",
        reason="a slope of at most 1 makes positive numbers no larger and negative ones no smaller",
    )  # fmt: skip
for _how, _branches in ((GT, (x, _SCALED)), (GE, (x, _SCALED)), (LT, (_SCALED, x)), (LE, (_SCALED, x))):
    rule(
        f"lrelu.sel.{('lt', 'le', 'gt', 'ge')[_how - LT]}",
        lhs=sel(cmps(_how, x, _ZERO), *_branches),
        rhs=op("lrelu", x, c),
        when=[_STEEP],
        contract="exact",
        reason="the scaled value where the number is not positive; scaling keeps zeros",
    )
for _how in (GT, GE):
    rule(
        f"relu.sels.{('gt', 'ge')[_how - GT]}",
        lhs=sels(cmps(_how, x, _ZERO), x, _ZERO),
        rhs=op("relu", x),
        when=[is_float(d), ordered(x), one_zero(x)],
        contract="exact",
        reason="without NaN and -0 the number where it is positive, else 0",
    )
rule(
    "relu.maximums",
    lhs=op("maximums", x, _ZERO),
    rhs=op("relu", x),
    when=[is_float(d), ordered(x), one_zero(x)],
    contract="exact",
    reason="the larger of a number and 0, without NaN and -0",
)
for _name in ("add", "sub"):
    _sum = op(_name, x, y)
    rule(
        f"relu.{_name}",
        lhs=op("relu", _sum),
        rhs=op(f"{_name}relu", x, y),
        when=[*([is_float(d)] if _name == "sub" else []), ordered(_sum), one_zero(_sum), offers(f"tile.{_name}relu")],
        contract="exact",
        reason="one instruction adds and rectifies; the sum is rounded in both",
    )
