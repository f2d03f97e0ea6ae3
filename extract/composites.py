"""Composite operations outside the e-graph: which recipes fit an operation by its types and literals alone."""

from __future__ import annotations

from functools import cache

from ..ir.types import TileType, Type
from ..rewrite.encode import shape_code
from ..rewrite.graph import LITERAL, Node
from ..rules.rule import RULES, Condition, Rule, Term, Var
from ..rules.terms import DTYPE_CODES

#: Facts that types and literals tell.
_PLAIN = frozenset({"typed", "literal"})


@cache
def plain_recipes(name: str) -> tuple[Rule, ...]:
    """Return a composite's rules that need no fact from the forward analysis, in order: the reference comes first."""
    return tuple(
        r for r in RULES.values()
        if r.lhs.op == name and not any(isinstance(c, Term) for c in r.lhs.children)
        and all(c.relation in _PLAIN for c in r.when)
    )  # fmt: skip


def bind(
    rule: Rule, args: tuple[int, ...], children: tuple[int, ...], classes: list[list[Node]], types: list[Type]
) -> dict[Var, int] | None:
    """Return what a recipe's variables stand for in an operation, ``None`` if its conditions do not hold.

    ``args``: the argument codes of the operation's term; ``children``: the classes of its operands.
    """
    bound: dict[Var, int] = {}
    for a, code in zip((*rule.lhs.args, *rule.lhs.children), (*args, *children)):
        if isinstance(a, Var):
            bound[a] = code
    return bound if all(_holds(c, bound, classes, types) for c in rule.when) else None


def _holds(c: Condition, bound: dict[Var, int], classes: list[list[Node]], types: list[Type]) -> bool:
    subject = c.args[0]
    assert isinstance(subject, Var)
    k = bound[subject]
    if c.relation == "literal":
        return classes[k][0].kind == LITERAL
    t = types[k]
    if not isinstance(t, TileType):
        return False
    for a, code in zip(c.args[1:], (DTYPE_CODES[t.dtype.name], shape_code(t))):
        if (bound.setdefault(a, code) if isinstance(a, Var) else a) != code:
            return False
    return True
