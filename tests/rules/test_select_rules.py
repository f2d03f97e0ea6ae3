"""Selection and mask rules on values; ``test_proofs`` has their proofs."""

from __future__ import annotations

import pytest
from tilegg.rules import library
from tilegg.rules.check import check_rule
from tilegg.rules.facts import OF_LITERALS, literal_holds
from tilegg.rules.rule import RULES, Term, Var
from tilegg.rules.select import INVERSE, cmp, complement, sel, sels

_ = library
KINDS = ("select.", "sel.", "sels.", "cmp.", "cmps.", "clamp.", "mask-not.")
MINE = [r for r in RULES.values() if r.name.startswith(KINDS)]


@pytest.mark.parametrize("name", [r.name for r in MINE])
def test_rule_holds_on_values(name: str) -> None:
    checked = check_rule(RULES[name], samples=6)
    assert checked.ok, checked.failures


def test_masks_are_equated_only_where_their_last_bytes_agree() -> None:
    """A complement also turns the bits past the last column, so no rule may equate one with a comparison."""
    for r in RULES.values():
        if r.lhs.op in ("tile.cmp", "tile.cmps"):
            assert isinstance(r.rhs, Term) and r.rhs.op in ("tile.cmp", "tile.cmps")


def test_inverse_comparisons_pair_up() -> None:
    assert all(INVERSE[INVERSE[how]] == how for how in INVERSE) and len(INVERSE) == 6
    m, a, b = (Var(n, "value") for n in "mab")
    assert sel(m, a, b) != sels(m, a, b) and complement(m).children == (m,)
    assert cmp(2, a, b).args[2] == 2


def test_facts_of_literals_do_not_depend_on_the_tiles_dtype() -> None:
    table = [
        (0.5, "literal ordered one_zero nonzero"), (0.0, "literal ordered one_zero"), (-0.0, "literal ordered"),
        (float("nan"), "literal"), (1e-30, "literal ordered one_zero"), (-1e-30, "literal ordered"),
        (-3, "literal ordered one_zero nonzero"),
    ]  # fmt: skip
    for value, words in table:
        assert [w for w in OF_LITERALS if literal_holds(w, value)] == words.split(), value
