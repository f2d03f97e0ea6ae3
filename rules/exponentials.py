"""Rules about exponentials: what the exponential does not tell apart need not be computed.

It gives 1 for zeros of either sign and for every number far below the last place of 1, so that a sign may be taken
before a sum, and a small number may be rounded twice.
"""

from __future__ import annotations

from .arithmetic import d, op
from .computed import computed
from .rule import rule, values

(x, y, v, c1, c2, r) = values("x y v c1 c2 r")
_SIGN = "the negation of a sum is the sum of the negations but for the sign of a zero, of which the exponential is 1"

for _name, _sum, _difference in (
    ("add", op("add", x, y), op("sub", op("neg", x), y)),
    ("add-second", op("add", x, y), op("sub", op("neg", y), x)),
    ("sub", op("sub", x, y), op("sub", y, x)),
    ("row_expand_add", op("row_expand_add", x, v), op("row_expand_sub", op("neg", x), v)),
    ("col_expand_add", op("col_expand_add", x, v), op("col_expand_sub", op("neg", x), v)),
):
    rule(f"exp.neg.{_name}", lhs=op("exp", op("neg", _sum)), rhs=op("exp", _difference), contract="exact", reason=_SIGN)

for _name, _table in (("muls", "shrunk"), ("divs", "parted")):
    rule(
        f"exp.{_name}.muls",
        lhs=op("exp", op("muls", op(_name, x, c1), c2)),
        rhs=op("exp", op("muls", x, r)),
        when=[computed(_table, c1, c2, dtype=d, gives=(r,))],
        contract="exact",
        reason="halving is exact but for numbers so small that the exponential gives 1 either way",
    )
