"""Rules about tiles without gaps: the same elements as one row, where narrow rows would waste most of every step.

The reshapes there and back are of their own (``laid`` and its like bind them): each is of tiles of one shape only.
Elementwise operations do not ask where a row ends. On one row of all elements every step of the vector unit is full,
and instructions that take one value per column take one per element.
"""

from __future__ import annotations

from .arithmetic import d, op, sh
from .casts import a, b, m, s
from .facts import laid
from .rule import Pattern, Term, Var, rests, rule, shapes, values
from .terms import plain_rest

(x, y, c) = values("x y c")
(line,) = shapes("line")
#: The shapes that a tile is reshaped to: one row, and its own again.
(there, back) = rests("there back")


def _as_row(of: Pattern, dtype: Var = d) -> Term:
    return Term("tile.reshape", (dtype, line, there), (of,))


def _on_row(name: str, *children: Pattern) -> Term:
    return Term(f"tile.{name}", (d, line), children)


def _again(row: Pattern, dtype: Var = d) -> Term:
    return Term("tile.reshape", (dtype, sh, back), (row,))


#: Quotients of no higher precision than usual, which those by rows and columns are.
_PLAIN = plain_rest("tile.div")


def _quotient(top: Pattern, bottom: Pattern) -> Term:
    return Term("tile.div", (d, line, _PLAIN), (top, bottom))


def _elementwise() -> None:
    reason = "elementwise: the elements may stand in one row, which fills every step of the vector unit"
    here = laid("laid", d, sh, there, line, back)
    for name in ("adds", "muls", "rdivs", "maximums", "minimums"):
        rule(
            f"line.{name}", lhs=op(name, x, c), rhs=_again(_on_row(name, _as_row(x), c)),
            when=[here], contract="exact", reason=reason,
        )  # fmt: skip
    rule(
        "line.neg", lhs=op("neg", x), rhs=_again(_on_row("neg", _as_row(x))),
        when=[here], contract="exact", reason=reason,
    )  # fmt: skip
    for name in ("add", "sub", "mul", "maximum", "minimum"):
        rule(
            f"line.{name}", lhs=op(name, x, y), rhs=_again(_on_row(name, _as_row(x), _as_row(y))),
            when=[here], contract="exact", reason=reason,
        )  # fmt: skip
    rule(
        "line.div", lhs=Term("tile.div", (d, sh, _PLAIN), (x, y)), rhs=_again(_quotient(_as_row(x), _as_row(y))),
        when=[here], contract="exact", reason=reason,
    )  # fmt: skip
    rule(
        "line.col_expand_div",
        lhs=op("col_expand_div", x, y),
        rhs=_again(_quotient(_as_row(x), _as_row(op("col_expand", x, y)))),
        when=[here],
        contract="exact",
        reason="elementwise once the row of divisors is repeated, which is cheaper than narrow quotients",
    )
    rule(
        "line.cast",
        lhs=Term("tile.cast", (b, sh, a, m, s, 0), (x,)),
        rhs=_again(Term("tile.cast", (b, line, a, m, s, 0), (_as_row(x, a),)), b),
        when=[laid("laid_cast", a, b, sh, there, line, back)],
        contract="exact",
        reason=reason,
        phase="lower",
    )


_elementwise()

rule(
    "line.expdif",
    lhs=op("exp", op("sub", x, y)),
    rhs=_again(_on_row("col_expand_expdif", _as_row(x), _as_row(y))),
    when=[laid("laid_exp", d, sh, there, line, back)],
    contract="exact",
    reason="the fused instruction takes one value per column, which in a single row is one per element",
)
rule(
    "line.there-and-back",
    lhs=_again(_as_row(x)),
    rhs=x,
    when=[laid("laid_row", sh, there, line, back)],
    contract="exact",
    reason="a tile as one row, in its own shape again",
)
rule(
    "line.back-and-there",
    lhs=_as_row(_again(x)),
    rhs=x,
    when=[laid("laid_row", sh, there, line, back)],
    contract="exact",
    reason="a row in the shape of a tile, as one row again",
)
