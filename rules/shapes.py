"""Rules about shapes: operands that repeat one value per row or column, conversions on the smaller side, windows.

An elementwise operation commutes with everything that only repeats, renames or selects elements.
"""

from __future__ import annotations

from .arithmetic import d, op, rest, sh
from .casts import cast
from .facts import beside, halves, is_float, one_zero, ordered, tall, typed, windows
from .rule import Pattern, Term, dtypes, modes, rests, rule, saturations, shapes, values
from .terms import plain_rest

(x, y, v, t, c) = values("x y v t c")
(a, b) = dtypes("a b")
(m,) = modes("m")
(s,) = saturations("s")
(sv, sx, s2) = shapes("sv sx s2")
(rest2,) = rests("rest2")


def _expanded() -> None:
    """An operand that repeats one value per row or column need not be made."""
    for side in ("row", "col"):
        spread = op(f"{side}_expand", t, v)
        for name in ("add", "sub", "mul"):
            rule(
                f"expand.{side}.{name}", lhs=op(name, x, spread), rhs=op(f"{side}_expand_{name}", x, v),
                contract="exact", reason=f"the instruction repeats the value of each {side} itself",
            )  # fmt: skip
        rule(
            f"expand.{side}.div", lhs=Term("tile.div", (d, sh, plain_rest("tile.div")), (x, spread)),
            rhs=op(f"{side}_expand_div", x, v), when=[is_float(d)],
            contract="exact", reason=f"the instruction repeats the value of each {side} itself",
        )  # fmt: skip
        for name, word in (("maximum", "max"), ("minimum", "min")):
            for order, (p, q) in (("", (x, spread)), ("-first", (spread, x))):
                rule(
                    f"expand.{side}.{word}{order}", lhs=op(name, p, q), rhs=op(f"{side}_expand_{word}", x, v),
                    when=[ordered(x), ordered(v), one_zero(x), one_zero(v)], contract="exact",
                    reason=f"the instruction repeats the value of each {side} itself",
                )  # fmt: skip
        for name in ("add", "mul"):
            rule(
                f"expand.{side}.{name}-first", lhs=op(name, spread, x), rhs=op(f"{side}_expand_{name}", x, v),
                contract="exact", reason=f"commutative, and the instruction repeats the value of each {side} itself",
            )  # fmt: skip
        rule(
            f"expand.{side}.expdif",
            lhs=op("exp", op(f"{side}_expand_sub", x, v)),
            rhs=op(f"{side}_expand_expdif", x, v),
            contract="exact",
            reason="the fused instruction rounds the difference before it takes the exponential, as two would",
        )
        rule(
            f"expand.{side}.cast",
            lhs=cast(Term(f"tile.{side}_expand", (a, sh), (t, v)), a, b, m, s),
            rhs=Term(f"tile.{side}_expand", (b, sh), (cast(t, a, b, m, s), _cast_of_vector())),
            when=[typed(v, a, sv), typed(t, a, sh)],
            contract="exact",
            reason="conversion is elementwise: a value may be converted before it is repeated",
        )


def _cast_of_vector() -> Term:
    return Term("tile.cast", (b, sv, a, m, s, 0), (v,))


_expanded()


def _outer() -> None:
    """A value per row with a value per column: the row of values is cheaper to repeat than the column."""
    for name in ("add", "mul"):
        rule(
            f"expand.outer.{name}",
            lhs=op(f"col_expand_{name}", op("row_expand", t, v), y),
            rhs=op(f"row_expand_{name}", op("col_expand", t, y), v),
            contract="exact",
            reason="commutative: either operand may be repeated first, a row by copies, a column by single reads",
        )


_outer()


def _windows() -> None:
    """An operation on several windows of one tile may run once on the whole tile."""
    reason = "elementwise: the window of the result is the result of the window"

    def window(dtype: object, of: Pattern) -> Term:
        return Term("tile.slice", (dtype, sh, rest), (of,))  # type: ignore[arg-type]

    rule(
        "window.cast",
        lhs=cast(window(a, x), a, b, m, s),
        rhs=window(b, Term("tile.cast", (b, sx, a, m, s, 0), (x,))),
        when=[windows(x, a, sx)],
        contract="exact",
        reason=reason,
    )
    for name in ("neg", "exp", "abs"):
        rule(
            f"window.{name}", lhs=op(name, window(d, x)), rhs=window(d, Term(f"tile.{name}", (d, sx), (x,))),
            when=[windows(x, d, sx)], contract="exact", reason=reason,
        )  # fmt: skip
    for name in ("muls", "adds"):
        rule(
            f"window.{name}", lhs=op(name, window(d, x), c), rhs=window(d, Term(f"tile.{name}", (d, sx), (x, c))),
            when=[windows(x, d, sx)], contract="exact", reason=reason,
        )  # fmt: skip
    for name in ("add", "sub", "mul"):
        rule(
            f"window.{name}",
            lhs=op(name, window(d, x), window(d, y)),
            rhs=window(d, Term(f"tile.{name}", (d, sx), (x, y))),
            when=[windows(x, d, sx), windows(y, d, sx)], contract="exact", reason=reason,
        )  # fmt: skip


_windows()


def _repeating_windows() -> None:
    """What repeats a value per row or column does so on the whole tile, where its windows have all rows."""
    reason = "elementwise but for a value per row or column, which the window shares with the whole tile"
    window = Term("tile.slice", (d, sh, rest), (x,))
    for name in ("add", "sub", "mul", "div"):
        rule(
            f"window.row_expand_{name}",
            lhs=op(f"row_expand_{name}", window, v),
            rhs=Term("tile.slice", (d, sh, rest), (Term(f"tile.row_expand_{name}", (d, sx), (x, v)),)),
            when=[windows(x, d, sx), tall(x, rest)], contract="exact", reason=reason,
        )  # fmt: skip
        rule(
            f"window.col_expand_{name}",
            lhs=op(f"col_expand_{name}", window, Term("tile.slice", (d, s2, rest2), (v,))),
            rhs=Term("tile.slice", (d, sh, rest), (Term(f"tile.col_expand_{name}", (d, sx), (x, v)),)),
            when=[windows(x, d, sx), beside(x, rest, v, rest2)], contract="exact", reason=reason,
        )  # fmt: skip


_repeating_windows()

rule(
    "window.concat",
    lhs=op("concat", Term("tile.slice", (d, sv, rest), (x,)), Term("tile.slice", (d, s2, rest2), (x,))),
    rhs=x,
    when=[windows(x, d, sh), halves(x, rest, rest2)],
    contract="exact",
    reason="both parts of a tile, side by side again",
)
rule(
    "concat.cast",
    lhs=Term("tile.concat", (b, sh), (Term("tile.cast", (b, sv, a, m, s, 0), (x,)),
                                      Term("tile.cast", (b, sx, a, m, s, 0), (y,)))),
    rhs=cast(Term("tile.concat", (a, sh), (x, y)), a, b, m, s),
    contract="exact",
    reason="conversion is elementwise: two tiles may be converted together once they stand side by side",
)  # fmt: skip
rule(
    "reshape.cast",
    lhs=Term("tile.reshape", (b, sh, rest), (Term("tile.cast", (b, s2, a, m, s, 0), (x,)),)),
    rhs=cast(Term("tile.reshape", (a, sh, rest), (x,)), a, b, m, s),
    contract="exact",
    reason="conversion is elementwise, so that casts on both sides of a reshape can meet",
)
