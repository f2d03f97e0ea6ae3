"""Selection, mask and integer rules: checked on values, and proved for every width with Z3."""

from __future__ import annotations

from typing import Any

import pytest
from tilegg.rules import library
from tilegg.rules.check import check_rule
from tilegg.rules.facts import OF_LITERALS, literal_holds
from tilegg.rules.rule import RULES, Pattern, Rule, Term, Var
from tilegg.rules.select import INVERSE, cmp, complement, sel, sels

z3 = pytest.importorskip("z3")
_ = library
MINE = [r for r in RULES.values() if r.name.startswith(("select.", "sel.", "sels.", "cmp.", "cmps."))]
#: Rules whose meaning over integers is whole: no conversion to floats.
PROVED = [r for r in MINE if not r.name.endswith(".as-float")]


@pytest.mark.parametrize("name", [r.name for r in MINE])
def test_rule_holds_on_values(name: str) -> None:
    checked = check_rule(RULES[name], samples=6)
    assert checked.ok, checked.failures


# -- proofs ----------------------------------------------------------------------------------------------------------


class Proof:
    """Patterns as Z3 expressions of one lane: elements are bit vectors, mask bits are truth values."""

    def __init__(self, width: int, signed: bool) -> None:
        self.width, self.signed = width, signed
        self.known: dict[Var, Any] = {}

    def element(self, p: Pattern) -> Any:
        if isinstance(p, Var):
            return self.known.setdefault(p, z3.BitVec(p.name, self.width))
        name = p.op.removeprefix("tile.")
        if name in ("select", "sel", "sels"):
            return z3.If(self.bit(p.children[0]), self.element(p.children[1]), self.element(p.children[2]))
        if name == "expands":
            return self.element(p.children[1])
        a, b = map(self.element, p.children)
        less = a < b if self.signed else z3.ULT(a, b)
        return z3.If(less, b, a) if name.startswith("maximum") else z3.If(less, a, b)

    def bit(self, p: Pattern) -> Any:
        if isinstance(p, Var):
            return self.known.setdefault(p, z3.Bool(p.name))
        if p.op == "tile.mask_not":
            return z3.Not(self.bit(p.children[0]))
        a, b = map(self.element, p.children)
        less, more = (a < b, a > b) if self.signed else (z3.ULT(a, b), z3.UGT(a, b))
        return (a == b, a != b, less, z3.Not(more), more, z3.Not(less))[int(p.args[2])]  # type: ignore[arg-type]

    def holds(self, rule: Rule) -> bool:
        of = self.bit if rule.lhs.op in ("tile.cmp", "tile.cmps") else self.element
        solver = z3.Solver()
        solver.add(of(rule.lhs) != of(rule.rhs))
        return bool(solver.check() == z3.unsat)


@pytest.mark.parametrize("name", [r.name for r in PROVED])
@pytest.mark.parametrize("width", [8, 16, 32])
def test_rule_is_proved_for_integers(name: str, width: int) -> None:
    assert all(Proof(width, signed).holds(RULES[name]) for signed in (True, False))


def test_the_proof_refutes_wrong_rules() -> None:
    from dataclasses import replace

    right = RULES["cmp.integer.lt"]
    wrong = replace(right, rhs=RULES["cmp.integer.gt"].rhs)
    assert Proof(32, True).holds(right) and not Proof(32, True).holds(wrong)
    swap = RULES["select.scalar-tile.complement"]
    assert not Proof(16, True).holds(replace(swap, rhs=Term("tile.sels", swap.rhs.args, _plain(swap))))  # type: ignore[union-attr]


def _plain(rule: Rule) -> tuple[Pattern, ...]:
    assert isinstance(rule.rhs, Term)
    mask, *rest = rule.rhs.children
    assert isinstance(mask, Term)
    return (mask.children[0], *rest)


def test_masks_are_equated_only_where_their_last_bytes_agree() -> None:
    """A complement also turns the bits past the last column, so no rule may equate one with a comparison."""
    for r in RULES.values():
        if r.lhs.op in ("tile.cmp", "tile.cmps"):
            assert isinstance(r.rhs, Term) and r.rhs.op == "tile.cmp"


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
