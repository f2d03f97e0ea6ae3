"""Fixed expansions outside the e-graph: which rules fit an operation by its types and literals alone.

Composites have no other form; other operations are expanded where the target refuses them as written.
"""

from __future__ import annotations

from functools import cache

from ..ir.op import OPS
from ..ir.types import TileType, Type
from ..rewrite.encode import shape_code
from ..rewrite.graph import LITERAL, Node
from ..rules.facts import dtype_holds
from ..rules.rule import RULES, Condition, Rule, Term, Var
from ..rules.terms import CODE_DTYPES, DTYPE_CODES

#: Facts that types and literals tell.
_OF_DTYPES = frozenset({"is_float", "is_integer", "is_signed", "is_unsigned"})
_PLAIN = frozenset({"typed", "literal", *_OF_DTYPES})


@cache
def expansions(name: str) -> tuple[Rule, ...]:
    """Return the rules of one operation that need no fact from the forward analysis, in order.

    Every one gives operations: exactly the value, or for a composite also one as near as its recipe states. The
    reference recipe comes first.
    """
    kept = ("exact", "bounded") if OPS[name].composite else ("exact",)
    return tuple(
        r for r in RULES.values()
        if r.lhs.op == name and r.contract in kept and isinstance(r.rhs, Term)
        and not any(isinstance(c, Term) for c in r.lhs.children) and all(c.relation in _PLAIN for c in r.when)
    )  # fmt: skip


def bind(
    rule: Rule, args: tuple[int, ...], children: tuple[int, ...], classes: list[list[Node]], types: list[Type]
) -> dict[Var, int] | None:
    """Return what a rule's variables stand for in an operation, ``None`` if it does not fit or a condition fails.

    ``args``: the argument codes of the operation's term; ``children``: the classes of its operands.
    """
    bound: dict[Var, int] = {}
    for a, code in zip((*rule.lhs.args, *rule.lhs.children), (*args, *children)):
        if (bound.setdefault(a, code) if isinstance(a, Var) else a) != code:
            return None
    known = all(_holds(c, bound, classes, types) for c in rule.when)
    return bound if known else None


def _holds(c: Condition, bound: dict[Var, int], classes: list[list[Node]], types: list[Type]) -> bool:
    subject = c.args[0]
    assert isinstance(subject, Var)
    k = bound[subject]
    if c.relation == "literal":
        return classes[k][0].kind == LITERAL
    if c.relation in _OF_DTYPES:
        return dtype_holds(c.relation, (CODE_DTYPES[k],))
    t = types[k]
    if not isinstance(t, TileType):
        return False
    for a, code in zip(c.args[1:], (DTYPE_CODES[t.dtype.name], shape_code(t))):
        if (bound.setdefault(a, code) if isinstance(a, Var) else a) != code:
            return False
    return True
