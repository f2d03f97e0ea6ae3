"""Signs of factors and quotients move out, where they meet other signs, sums and differences: exact for every value.

What two signs leave is told by the rules of negations and of sums with one (``rules/arithmetic.py``): a product of two
negations has none left, a sum with a negated product is a difference. Left out because they are wrong for some value:
-(a - b) = b - a and -a - b = -(a + b) for floats (zeros), quotients of integers (the least one is its own negation).
"""

from __future__ import annotations

from .arithmetic import d, op, rest, sh
from .computed import computed
from .facts import is_float, is_integer
from .rule import Pattern, Term, rule, shapes, values

(x, y, v, c, r) = values("x y v c r")
(sv,) = shapes("sv")
_SIGN = "a sign of one operand is the result's; rounding to nearest is symmetric{}"


def _neg(of: Pattern) -> Term:
    return op("neg", of)


def _div(left: Pattern, right: Pattern) -> Term:
    return Term("tile.div", (d, sh, rest), (left, right))


def _factors() -> None:
    for name, made, when, more in (
        ("mul", lambda a, b: op("mul", a, b), [], " and integers wrap alike"),
        ("div", _div, [is_float(d)], ""),
    ):
        for place, left, right in (("first", _neg(x), y), ("second", x, _neg(y))):
            rule(
                f"neg.{name}.{place}", lhs=made(left, right), rhs=_neg(made(x, y)), when=when,
                contract="exact", reason=_SIGN.format(more),
            )  # fmt: skip


def _vectors() -> None:
    """The like with one operand that has a value per row or column."""
    negated = Term("tile.neg", (d, sv), (v,))
    for side in ("row", "col"):
        product, total, difference = (f"{side}_expand_{name}" for name in ("mul", "add", "sub"))
        for place, left, right in (("first", _neg(x), v), ("second", x, negated)):
            rule(
                f"neg.{side}-mul.{place}", lhs=op(product, left, right), rhs=_neg(op(product, x, v)),
                contract="exact", reason=_SIGN.format(" and integers wrap alike"),
            )  # fmt: skip
        for one, other in ((total, difference), (difference, total)):
            rule(
                f"{one.replace('_expand_', '-')}.neg", lhs=op(one, x, negated), rhs=op(other, x, v),
                contract="exact", reason="a difference is the sum with the negation, for zeros too",
            )  # fmt: skip


def _quotients() -> None:
    """By a number, and of a number: its sign takes the other one in. Integers have no quotient of a number."""
    minus = computed("minus", c, dtype=d, gives=(r,))
    for name, when in (("divs", [is_float(d), minus]), ("rdivs", [minus])):
        reason = "the sign moves into the literal; rounding to nearest is symmetric"
        rule(f"neg.{name}", lhs=op(name, _neg(x), c), rhs=op(name, x, r), when=when, contract="exact", reason=reason)
        rule(f"{name}.neg", lhs=_neg(op(name, x, c)), rhs=op(name, x, r), when=when, contract="exact", reason=reason)


_factors()
_vectors()
_quotients()

rule(
    "neg.sub",
    lhs=_neg(op("sub", x, y)),
    rhs=op("sub", y, x),
    when=[is_integer(d)],
    contract="exact",
    reason="integers have one zero and wrap: the difference the other way round",
)
