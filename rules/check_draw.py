"""Values drawn for what a rule asks: literals with rows in computed tables, small integers, vectors of rows."""

from __future__ import annotations

import numpy as np

from ..ir.convert import encode
from ..ir.program import Const
from ..ir.types import ScalarType
from .check_dims import in_rows, reduces, vectors
from .check_eval import Assignment, Unfit, Valued
from .computed import COMPUTED, asked
from .facts import LAID
from .rule import Condition, Rule, Term, Var


def aim(rule: Rule, codes: Assignment, values: dict[Var, Valued], rng: np.random.Generator) -> bool:
    """Replace drawn values by such as the rule's conditions ask for; tell whether any was. Raises ``Unfit``."""
    aimed = False
    sides = sides_of(rule)
    in_several = bool(sides) or reduces(rule.lhs) or any(c.relation in LAID[:3] for c in rule.when)
    for c in rule.when:
        if c.relation in COMPUTED:
            _literals(c, codes, values, rng)
            aimed = True
        elif c.relation in ("index", "positive"):
            aimed |= _integers(c, values, rng, in_several)
    if in_several:
        values.update(in_rows(values, sides, codes, rng))
    return aimed or in_several


def sides_of(rule: Rule) -> dict[Var, str]:
    """Return the variables of a rule that stand for one value per row or column."""
    return {**vectors(rule.lhs), **vectors(rule.rhs)}


def _literals(c: Condition, codes: Assignment, values: dict[Var, Valued], rng: np.random.Generator) -> None:
    """Draw the literals of a computed table's row and set what it gives."""
    wanted = asked(c, lambda a: codes[a] if isinstance(a, Var) else a)
    drawn = wanted.table.example(rng, wanted.kinds[0])
    found = wanted.row(*drawn)
    if found is None:
        raise Unfit
    for name, literal in zip((*wanted.literals, *wanted.gives), (*drawn, *found)):
        assert isinstance(name, Var)
        values[name] = _scalar(literal)


def _scalar(literal: Const) -> Valued:
    with np.errstate(all="ignore"):
        return Valued(np.array([literal.value]).astype(literal.dtype.storage), ScalarType(literal.dtype))


def _integers(c: Condition, values: dict[Var, Valued], rng: np.random.Generator, every: bool) -> bool:
    """Let most elements of a variable (``every`` one) be integers, of small and of limiting size."""
    subject = c.args[0]
    if isinstance(subject, Term) or isinstance(values[subject].type, ScalarType):  # type: ignore[index]
        return False
    assert isinstance(subject, Var)
    value = values[subject]
    flat = value.data.reshape(-1).copy()
    top = 2 ** int(rng.integers(2, 24))
    whole = encode(rng.integers(0 if rng.random() < 0.5 else -top, top, flat.size), value.dtype, "rint", True)
    count = flat.size if every else flat.size * 7 // 8
    flat[:count] = whole[:count]
    values[subject] = Valued.tile(rng.permutation(flat), value.dtype)
    return True
