"""Rules that leave roundings out (contract "contracted"): the result is nearer to the real value, not the same.

They are applied only where the author admits it: a product and a sum in one rounding, a quotient instead of a
product with a rounded reciprocal.
"""

from __future__ import annotations

from .arithmetic import d, op, sh
from .computed import computed
from .facts import is_float, offers, rooted
from .rule import Pattern, Term, Var, integers, rests, rule, shapes, values
from .terms import plain_rest

(x, y, v, c, r, c1, c2) = values("x y v c r c1 c2")
(sv,) = shapes("sv")
#: The attributes of reciprocals and quotients (high precision), and the shape of a reshape.
(flags,) = integers("flags")
(rest,) = rests("rest")


def _recip(of: Pattern, how: Var | int = flags) -> Term:
    return Term("tile.recip", (d, sh, how), (of,))


#: A reciprocal for which no higher precision is asked; the expanded quotients have no such form.
_PLAIN = plain_rest("tile.recip")


_FUSED = "one rounding where a product and a sum have two"
_QUOTIENT = "the quotient is rounded once, the product with a rounded reciprocal twice"

for _name, _lhs in (("first", op("add", op("muls", x, c), y)), ("second", op("add", y, op("muls", x, c)))):
    rule(
        f"fuse.axpy.{_name}", lhs=_lhs, rhs=op("axpy", y, x, c), when=[is_float(d)],
        contract="contracted", reason=_FUSED,
    )  # fmt: skip
rule(
    "fuse.axpy.minus",
    lhs=op("sub", y, op("muls", x, c)),
    rhs=op("axpy", y, x, r),
    when=[is_float(d), computed("minus", c, dtype=d, gives=(r,))],
    contract="contracted",
    reason=_FUSED,
)
rule(
    "fuse.axpy.literal",
    lhs=op("adds", op("muls", x, c), c2),
    rhs=op("axpy", op("expands", x, c2), x, c),
    when=[is_float(d)],
    contract="contracted",
    reason=_FUSED,
)
for _name, _lhs in (("first", op("add", op("mul", x, y), v)), ("second", op("add", v, op("mul", x, y)))):
    rule(
        f"fuse.muladd.{_name}", lhs=_lhs, rhs=op("muladd_dst", v, x, y),
        when=[is_float(d), offers("tile.muladd_dst")], contract="contracted", reason=_FUSED,
    )  # fmt: skip
    rule(
        f"fuse.fused-muladd.{_name}", lhs=_lhs, rhs=op("fused_muladd", x, y, v),
        when=[is_float(d), offers("tile.fused_muladd")], contract="contracted", reason=_FUSED,
    )  # fmt: skip
for _name, _lhs in (("first", op("mul", _recip(y), x)), ("second", op("mul", x, _recip(y)))):
    rule(
        f"fuse.div.{_name}", lhs=_lhs, rhs=Term("tile.div", (d, sh, flags), (x, y)),
        contract="contracted", reason=_QUOTIENT,
    )  # fmt: skip
for _side in ("row", "col"):
    _vector = Term("tile.recip", (d, sv, _PLAIN), (v,))
    rule(
        f"fuse.{_side}-div",
        lhs=op(f"{_side}_expand_mul", x, _vector),
        rhs=op(f"{_side}_expand_div", x, v),
        contract="contracted",
        reason=_QUOTIENT,
    )
rule(
    "fuse.rsqrt",
    lhs=_recip(op("sqrt", y), _PLAIN),
    rhs=op("rsqrt", y),
    when=[rooted(d)],
    contract="contracted",
    reason="one rounding instead of two",
)
rule(
    "fuse.scaled-recip",
    lhs=op("muls", _recip(y), c),
    rhs=Term("tile.div", (d, sh, flags), (op("expands", y, c), y)),
    contract="contracted",
    reason=_QUOTIENT,
)
rule(
    "fuse.scaled-recip.plain",
    lhs=op("muls", _recip(y, _PLAIN), c),
    rhs=op("rdivs", y, c),
    contract="contracted",
    reason=_QUOTIENT,
)
rule(
    "fuse.muls.muls",
    lhs=op("muls", op("muls", x, c1), c2),
    rhs=op("muls", x, r),
    when=[is_float(d), computed("product", c1, c2, dtype=d, gives=(r,))],
    contract="contracted",
    reason="the product of the literals is exact, so that one rounding is left",
)
rule(
    "reshape.recip",
    lhs=Term("tile.reshape", (d, sh, rest), (Term("tile.recip", (d, sv, flags), (v,)),)),
    rhs=Term("tile.recip", (d, sh, flags), (Term("tile.reshape", (d, sh, rest), (v,)),)),
    contract="exact",
    reason="elementwise: the shape may change before or after",
)
