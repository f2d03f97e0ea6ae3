"""Rules about comparison and selection: the three forms of a selection, inverted masks, extremes, integer order.

A mask is a packed predicate: rules never treat it as numbers, and equate masks only where all their bits are equal,
those past the last column included. What hardware documents leave open (a NaN or zeros of both signs as operands of max
and min) is excluded by facts, so the rules hold whichever way a target decides it.
"""

from __future__ import annotations

from ..ir.dtypes import FP32, INDEX
from ..ir.ops.select import COMPARISONS
from .facts import fits, is_index, is_integer, literal, nonzero, one_zero, ordered, typed
from .rule import Pattern, Term, Var, dtypes, rests, rule, shapes, values
from .terms import DTYPE_CODES, LITERAL, MODE_CODES, literal_codes

(m, a, b, s, p, q, like) = values("m a b s p q like")
(d,) = dtypes("d")
(sh, ms, sa, sb) = shapes("sh ms sa sb")
(rest,) = rests("rest")
_UINT8, _FP32 = DTYPE_CODES["UINT8"], DTYPE_CODES["FP32"]
EQ, NE, LT, LE, GT, GE = range(len(COMPARISONS))
#: The comparison that holds exactly where another one does not, if no NaN occurs (EQ, NE: even then).
INVERSE = {EQ: NE, NE: EQ, LT: GE, GE: LT, GT: LE, LE: GT}


def select(mask: Pattern, on_true: Pattern, on_false: Pattern) -> Term:
    """The composite selection."""
    return Term("tile.select", (d, sh), (mask, on_true, on_false))


def sel(mask: Pattern, on_true: Pattern, on_false: Pattern) -> Term:
    """The selection between two tiles."""
    return Term("tile.sel", (d, sh), (mask, on_true, on_false))


def sels(mask: Pattern, on_true: Pattern, on_false: Pattern) -> Term:
    """The selection between a tile and a scalar where the mask is 0."""
    return Term("tile.sels", (d, sh), (mask, on_true, on_false))


def spread(of: Pattern, scalar: Pattern) -> Term:
    """A scalar over a tile like ``of``, its valid shape included."""
    return Term("tile.expands", (d, sh), (of, scalar))


def complement(mask: Pattern) -> Term:
    """The mask with all bits inverted."""
    return Term("tile.mask_not", (_UINT8, ms), (mask,))


def cmp(how: int, left: Pattern, right: Pattern) -> Term:
    """The mask of a comparison of two tiles."""
    return Term("tile.cmp", (_UINT8, ms, how), (left, right))


def cmps(how: int, left: Pattern, right: Pattern) -> Term:
    """The mask of a comparison with a scalar."""
    return Term("tile.cmps", (_UINT8, ms, how), (left, right))


def _arithmetic(name: str, x: Pattern, y: Pattern) -> Term:
    return Term(f"tile.{name}", (d, sh), (x, y))


# -- the three forms ---------------------------------------------------------------------------------------------

rule(
    "select.tiles",
    lhs=select(m, a, b),
    rhs=sel(m, a, b),
    when=[typed(a, d, sa), typed(b, d, sb)],
    contract="exact",
    reason="the instruction takes two tiles as they are",
)
rule(
    "select.tile-scalar",
    lhs=select(m, a, s),
    rhs=sels(m, a, s),
    when=[literal(s)],
    contract="exact",
    reason="the instruction with a scalar takes it where the mask is 0",
)
rule(
    "select.tile-scalar.spread",
    lhs=select(m, a, s),
    rhs=sel(m, a, spread(a, s)),
    when=[literal(s)],
    contract="exact",
    reason="the scalar is spread over a tile like the other branch",
)
rule(
    "select.scalar-tile.spread",
    lhs=select(m, s, b),
    rhs=sel(m, spread(b, s), b),
    when=[literal(s)],
    contract="exact",
    reason="the scalar is spread over a tile like the other branch",
)
rule(
    "select.scalar-tile.complement",
    lhs=select(m, s, b),
    rhs=sels(complement(m), b, s),
    when=[typed(m, _UINT8, ms), literal(s)],
    contract="exact",
    reason="the inverted mask swaps the branches; a mask is far smaller than the data",
)


rule(
    "mask-not.twice",
    lhs=complement(complement(m)),
    rhs=m,
    contract="exact",
    reason="every bit of the mask is inverted and inverted back, those past the last column too",
)
rule(
    "sel.complement",
    lhs=sel(complement(m), a, b),
    rhs=sel(m, b, a),
    contract="exact",
    reason="the mask itself swaps the branches and need not be inverted",
)


def _inverted() -> None:
    """A mask inverted after a comparison: the inverse comparison tells the same of every element."""
    for form in (cmp, cmps):
        for how, inverse in INVERSE.items():
            facts = [] if how in (EQ, NE) else [ordered(p), ordered(q)]
            rule(
                f"sels.inverse.{form.__name__}-{COMPARISONS[how]}",
                lhs=sels(complement(form(how, p, q)), b, s),
                rhs=sels(form(inverse, p, q), b, s),
                when=facts,
                contract="exact",
                reason="not equal is the inverse of equal, NaN or not" if not facts else
                "without NaN the comparison has an inverse, and no mask need be inverted",
            )  # fmt: skip


_inverted()

rule(
    "sel.spread-false",
    lhs=sel(m, a, spread(like, s)),
    rhs=sels(m, a, s),
    contract="exact",
    reason="a tile that holds one scalar need not be made where the mask is 0",
)
rule(
    "sel.spread-true",
    lhs=sel(m, spread(like, s), b),
    rhs=sels(complement(m), b, s),
    when=[typed(m, _UINT8, ms)],
    contract="exact",
    reason="the inverted mask swaps the branches, and the scalar need not be spread",
)
_FULL = Term("tile.full", (d, sh, rest), (s,))
rule(
    "sel.full-false",
    lhs=sel(m, a, _FULL),
    rhs=sels(m, a, s),
    contract="exact",
    reason="a tile that holds one scalar need not be made where the mask is 0",
)
rule(
    "sel.full-true",
    lhs=sel(m, _FULL, b),
    rhs=sels(complement(m), b, s),
    when=[typed(m, _UINT8, ms)],
    contract="exact",
    reason="the inverted mask swaps the branches, and the tile of one scalar need not be made",
)


# -- larger and smaller ------------------------------------------------------------------------------------------


def _extremes() -> None:
    for how, name in ((GT, "maximum"), (GE, "maximum"), (LT, "minimum"), (LE, "minimum")):
        word = COMPARISONS[how]
        one_of = [ordered(a), ordered(b), one_zero(a), one_zero(b)]
        reason = "without NaN and -0 the selected operand is the larger or smaller one"
        for order, (x, y) in (("", (a, b)), (".swapped", (b, a))):
            other = name if not order else _OTHER[name]
            rule(
                f"sel.{other}.{word}{order}",
                lhs=sel(cmp(how, a, b), x, y), rhs=_arithmetic(other, a, b),
                when=one_of, contract="exact", reason=reason,
            )  # fmt: skip
        _scalar_extremes(how, name, word)


_OTHER = {"maximum": "minimum", "minimum": "maximum"}


def _scalar_extremes(how: int, name: str, word: str) -> None:
    """Compare with a scalar and select; the scalar is no zero, or there is no -0, so that no two zeros meet."""
    for tag, form, chosen in (("tile", sels, (a, s)), ("scalar", select, (s, a))):
        other = name if tag == "tile" else _OTHER[name]
        for zero, unlike in (("", [nonzero(s)]), (".zero", [one_zero(a), one_zero(s)])):
            rule(
                f"{form.__name__}.{other}s.{word}-{tag}{zero}",
                lhs=form(cmps(how, a, s), *chosen),
                rhs=_arithmetic(f"{other}s", a, s),
                when=[ordered(a), *unlike],
                contract="exact",
                reason="without NaN the selected operand is the larger or smaller one",
            )


_extremes()


# -- selections written as arithmetic ------------------------------------------------------------------------------


def _weighted() -> None:
    """base + w * (new - base), with 1 where a mask is set and 0 elsewhere for w.

    Of floats only for small integers: else the sum is rounded, and NaN or infinity in the branch that is not taken
    would show.
    """
    for kind, one, zero, facts, why in (
        ("integer", literal_codes(1, INDEX), literal_codes(0, INDEX), [is_integer(d)], "sums wrap back"),
        ("index", literal_codes(1.0, FP32), literal_codes(0.0, FP32), [is_index(a), is_index(b)],
         "sums of small integers are exact in FP32"),
    ):  # fmt: skip
        first, second = Term(LITERAL, one, ()), Term(LITERAL, zero, ())
        ones = {"full": Term("tile.full", (d, sh, rest), (first,)), "expands": spread(like, first)}
        for made, tile in ones.items():
            weight, change = sels(m, tile, second), _arithmetic("sub", a, b)
            for order, product in enumerate((_arithmetic("mul", weight, change), _arithmetic("mul", change, weight))):
                for side, total in enumerate((_arithmetic("add", b, product), _arithmetic("add", product, b))):
                    lhs, rhs = total, sel(m, a, b)
                    if kind == "index":
                        lhs, rhs = _of_dtype(lhs, _FP32), _of_dtype(rhs, _FP32)
                    rule(
                        f"sel.weighted.{kind}.{made}.{2 * order + side + 1}", lhs=lhs, rhs=rhs, when=facts,
                        contract="exact", reason=f"the second value plus the difference is the first one: {why}",
                    )  # fmt: skip


def _of_dtype(p: Term, dtype: int) -> Term:
    """Return a pattern of the common dtype as one of a particular dtype."""
    children = tuple(_of_dtype(c, dtype) if isinstance(c, Term) else c for c in p.children)
    return Term(p.op, tuple(dtype if a == d else a for a in p.args), children)


_weighted()


# -- the order of integers -----------------------------------------------------------------------------------------


def _integer_order() -> None:
    """Order by equality: some hardware compares integers for equality only."""
    for how, (extreme, equal) in {
        LT: ("maximum", NE), GT: ("minimum", NE), LE: ("minimum", EQ), GE: ("maximum", EQ),
    }.items():  # fmt: skip
        word = COMPARISONS[how]
        reason = f"a {'<' if how in (LT, LE) else '>'} b can be told from whether the {extreme} is a"
        integer = [typed(a, d, sh), is_integer(d)]
        rule(
            f"cmp.integer.{word}", lhs=cmp(how, a, b), rhs=cmp(equal, _arithmetic(extreme, a, b), a),
            when=integer, contract="exact", reason=reason,
        )  # fmt: skip
        rule(
            f"cmps.integer.{word}", lhs=cmps(how, a, s), rhs=cmp(equal, _arithmetic(f"{extreme}s", a, s), a),
            when=integer, contract="exact", reason=reason,
        )  # fmt: skip
        rule(
            f"cmp.integer.{word}.as-float", lhs=cmp(how, a, b), rhs=cmp(how, _as_float(a), _as_float(b)),
            when=[*integer, fits(a, _FP32), fits(b, _FP32)], contract="exact",
            reason="FP32 holds both exactly, and conversion keeps their order",
        )  # fmt: skip


def _as_float(x: Var) -> Term:
    return Term("tile.cast", (_FP32, sh, d, MODE_CODES["rint"], 0, 0), (x,))


_integer_order()
