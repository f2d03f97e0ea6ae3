"""Operations whose operands may change places: where a region has both orders, they are one value.

There is no general commutativity: a term for every order would double the e-graph and make nothing cheaper. These rules
join two terms that are there and make none. They load for regions that have two operations of one kind.
"""

from __future__ import annotations

from ..ir.ops.select import COMPARISONS
from .arithmetic import d, op
from .facts import is_float
from .rule import Condition, Term, Var, rule, values
from .select import EQ, GE, GT, LE, LT, NE, cmp

(x, y) = values("x y")

#: Operations of two tiles that give the same for either order, bit for bit and whatever documents leave open.
COMMUTATIVE = (
    "add", "mul", "maximum", "minimum", "and_", "or_", "xor", "part_add", "part_mul", "part_max", "part_min",
)  # fmt: skip
#: The comparison that says the same of exchanged operands.
TURNED = {EQ: EQ, NE: NE, LT: GT, GT: LT, LE: GE, GE: LE}
_MIRRORED = Condition("mirrored", ())
#: The like on scalars, which tell apart the tiles that are made with them.
SCALARS = ("add", "mul")
_SCALAR = 0  # the shape code of scalars


def _both_orders() -> None:
    for name in COMMUTATIVE:
        rule(
            f"mirror.{name.rstrip('_')}", lhs=op(name, x, y), rhs=op(name, y, x), when=[_MIRRORED], meets=True,
            contract="exact", reason="the order of the operands does not matter, and both orders were written",
        )  # fmt: skip
    for how in (EQ, NE, LT, LE):
        rule(
            f"mirror.cmp-{COMPARISONS[how]}", lhs=cmp(how, x, y), rhs=cmp(TURNED[how], y, x), when=[_MIRRORED],
            meets=True, contract="exact", reason="one comparison, with its operands the other way round",
        )  # fmt: skip
    for name in SCALARS:
        rule(
            f"mirror.scalar-{name}", lhs=_scalar(name, x, y), rhs=_scalar(name, y, x), when=[_MIRRORED], meets=True,
            contract="exact", reason="the order of the operands does not matter, and both orders were written",
        )  # fmt: skip
    rule(
        "mirror.abs-sub", lhs=op("abs", op("sub", x, y)), rhs=op("abs", op("sub", y, x)),
        when=[_MIRRORED, is_float(d)], meets=True,
        contract="exact", reason="the two differences differ by their sign only, and both were written",
    )  # fmt: skip


def _scalar(name: str, *children: Var) -> Term:
    return Term(f"scalar.{name}", (d, _SCALAR), children)


_both_orders()
