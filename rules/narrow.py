"""Rules that do work on the narrower side of an exact conversion: half the data, and fewer conversions.

Sign, order and choice do not depend on the dtype that holds the numbers. Only from floating-point numbers: integers
wrap at other places in another dtype.
"""

from __future__ import annotations

from .casts import a, b, cast, m, s
from .computed import computed
from .facts import fits, has_arithmetic
from .rule import Pattern, Term, Var, rule, shapes, values

(x, y, c, mask) = values("x y c mask")
(sh, sx) = shapes("sh sx")
_WHY = "both dtypes hold the number, so that {} may be taken before the conversion"


def _op(name: str, dtype: Var, *children: Pattern) -> Term:
    return Term(f"tile.{name}", (dtype, sh), children)


def _elementwise() -> None:
    floats = [has_arithmetic(a)]
    for name in ("abs", "neg", "relu"):
        rule(
            f"narrow.{name}", lhs=_op(name, b, cast(x, a, b, m, s)), rhs=cast(_op(name, a, x), a, b, m, s),
            when=[*floats, *([has_arithmetic(b)] if name != "relu" else []), fits(x, b)],
            contract="exact", reason=_WHY.format("sign or magnitude"),
        )  # fmt: skip
    for name in ("maximum", "minimum"):
        rule(
            f"narrow.{name}", lhs=_op(name, b, cast(x, a, b, m, s), cast(y, a, b, m, s)),
            rhs=cast(_op(name, a, x, y), a, b, m, s),
            when=[*floats, fits(x, b), fits(y, b)], contract="exact", reason=_WHY.format("the extreme"), apart=True,
        )  # fmt: skip
        rule(
            f"narrow.{name}s", lhs=_op(f"{name}s", b, cast(x, a, b, m, s), c),
            rhs=cast(_op(f"{name}s", a, x, c), a, b, m, s),
            when=[fits(x, b), computed("exactly", c, dtype=a, more=(b,))],
            contract="exact", reason=_WHY.format("the extreme"),
        )  # fmt: skip
    rule(
        "narrow.sel", lhs=_op("sel", b, mask, cast(x, a, b, m, s), cast(y, a, b, m, s)),
        rhs=cast(_op("sel", a, mask, x, y), a, b, m, s),
        contract="exact", reason="conversion is elementwise: what is chosen may be converted afterwards",
        apart=True,
    )  # fmt: skip


def _reductions() -> None:
    for name in ("row_max", "row_min", "col_max", "col_min"):
        rule(
            f"narrow.{name}",
            lhs=_op(name, b, Term("tile.cast", (b, sx, a, m, s, 0), (x,))),
            rhs=cast(_op(name, a, x), a, b, m, s),
            when=[has_arithmetic(a), fits(x, b)],
            contract="exact",
            reason=_WHY.format("the extreme of a row or column"),
        )


def _after() -> None:
    """A clamp after the conversion: rounding keeps order, and a bound that both dtypes hold stays what it is."""
    for name in ("maximums", "minimums"):
        rule(
            f"narrow.{name}.after",
            lhs=cast(_op(name, a, x, c), a, b, m, s),
            rhs=_op(name, b, cast(x, a, b, m, s), c),
            when=[computed("bound", c, dtype=b, more=(a,))],
            contract="exact",
            reason="every round mode keeps order, and both dtypes hold the bound, which is no zero",
            phase="lower",
        )


_elementwise()
_reductions()
_after()
