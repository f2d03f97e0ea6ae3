"""Rules about arithmetic with literals and signs: exact ones only, for every value including NaN, infinity and -0.

Left out because they are wrong for some value: x * 0 = 0, x - x = 0, x + 0 = x (for -0), -(a - b) = b - a.
"""

from __future__ import annotations

from ..ir.dtypes import FP32
from .computed import computed
from .facts import is_float
from .rule import Pattern, Term, dtypes, rests, rule, shapes, values
from .terms import DTYPE_CODES, LITERAL, literal_codes, plain_rest

(x, y, c, r, like) = values("x y c r like")
(d,) = dtypes("d")
(sh,) = shapes("sh")
(rest,) = rests("rest")
_FP32 = DTYPE_CODES["FP32"]


def op(name: str, *children: Pattern) -> Term:
    """An operation whose result has the common dtype and shape."""
    return Term(f"tile.{name}", (d, sh), children)


def flagged(name: str, *children: Pattern) -> Term:
    """An operation with attributes of which the rule keeps none but the default."""
    return Term(f"tile.{name}", (d, sh, rest), children)


def _scalar_forms() -> None:
    """A tile that holds one number need not be made where the instruction takes a scalar."""
    for source, spread in (
        ("full", Term("tile.full", (d, sh, rest), (c,))),
        ("expands", Term("tile.expands", (d, sh), (like, c))),
    ):
        for name in ("add", "mul", "sub", "maximum", "minimum"):
            reason = "every element of the second tile is the scalar, rounded to the dtype in the same way"
            rule(
                f"scalar.{name}.{source}", lhs=op(name, x, spread), rhs=op(f"{name}s", x, c),
                contract="exact", reason=reason,
            )  # fmt: skip
        for name in ("add", "mul", "maximum", "minimum"):
            rule(
                f"scalar.{name}.{source}-first", lhs=op(name, spread, x), rhs=op(f"{name}s", x, c),
                contract="exact", reason="the operation is commutative and every element of the tile is the scalar",
            )  # fmt: skip
        rule(
            f"scalar.div.{source}", lhs=Term("tile.div", (d, sh, plain_rest("tile.div")), (x, spread)),
            rhs=op("divs", x, c), when=[is_float(d)], contract="exact",
            reason="every element of the second tile is the scalar, rounded to the dtype in the same way",
        )  # fmt: skip
        rule(
            f"scalar.div.{source}-first", lhs=Term("tile.div", (d, sh, plain_rest("tile.div")), (spread, x)),
            rhs=op("rdivs", x, c), when=[is_float(d)], contract="exact",
            reason="the instruction takes the scalar as the dividend; the tile of one number need not be made",
        )  # fmt: skip
        rule(
            f"scalar.sub.{source}-first", lhs=op("sub", spread, x), rhs=op("adds", op("neg", x), c),
            when=[is_float(d)], contract="exact",
            reason="a difference is the sum with the negation, for zeros too; the tile of one number need not be made",
        )  # fmt: skip


_scalar_forms()

rule(
    "divs.power-of-two",
    lhs=op("divs", x, c),
    rhs=op("muls", x, r),
    when=[computed("inverse", c, dtype=d, gives=(r,))],
    contract="exact",
    reason="x / 2**k and x * 2**-k are one real number, rounded once",
)
rule(
    "subs.adds",
    lhs=op("subs", x, c),
    rhs=op("adds", x, r),
    when=[computed("minus", c, dtype=d, gives=(r,))],
    contract="exact",
    reason="subtracting a number is adding its negation, for zeros too",
)
rule(
    "neg.muls",
    lhs=op("muls", op("neg", x), c),
    rhs=op("muls", x, r),
    when=[computed("minus", c, dtype=d, gives=(r,))],
    contract="exact",
    reason="the sign moves into the literal; rounding to nearest is symmetric and integers wrap alike",
)
rule(
    "muls.neg",
    lhs=op("neg", op("muls", x, c)),
    rhs=op("muls", x, r),
    when=[computed("minus", c, dtype=d, gives=(r,))],
    contract="exact",
    reason="the sign moves into the literal; rounding to nearest is symmetric and integers wrap alike",
)
rule(
    "muls.minus-one",
    lhs=op("muls", x, Term(LITERAL, literal_codes(-1.0, FP32), ())),
    rhs=op("neg", x),
    when=[is_float(d)],
    contract="exact",
    reason="a product with -1 changes the sign and nothing else",
)
rule(
    "neg.neg",
    lhs=op("neg", op("neg", x)),
    rhs=x,
    contract="exact",
    reason="two sign changes cancel; integers wrap back",
)
rule(
    "add.neg",
    lhs=op("add", x, op("neg", y)),
    rhs=op("sub", x, y),
    contract="exact",
    reason="a difference is the sum with the negation, for zeros too",
)
rule(
    "neg.add",
    lhs=op("add", op("neg", y), x),
    rhs=op("sub", x, y),
    contract="exact",
    reason="a difference is the sum with the negation, for zeros too",
)
rule(
    "sub.neg",
    lhs=op("sub", x, op("neg", y)),
    rhs=op("add", x, y),
    contract="exact",
    reason="a difference is the sum with the negation, for zeros too",
)
rule(
    "abs.neg",
    lhs=op("abs", op("neg", x)),
    rhs=op("abs", x),
    when=[is_float(d)],
    contract="exact",
    reason="the magnitude does not depend on the sign",
)
