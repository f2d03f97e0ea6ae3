"""Integer and mask rules are proved with Z3, and wrong ones are refuted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tilegg.rewrite.mutants_rules import rule_mutants
from tilegg.rules import library
from tilegg.rules.check import RuleCheck
from tilegg.rules.check_proofs import prove, to_prove
from tilegg.rules.check_summary import Verified, by_kind, exceptions, kinds_table
from tilegg.rules.rule import RULES, Rule, Term, Var

pytest.importorskip("z3")
_ = library
NEEDED = [name for name, r in RULES.items() if to_prove(r)]
#: Facts about floats, which integers have anyway.
_FLOATS = ("ordered", "one_zero", "nonzero", "literal", "is_integer")


#: Rules about masks of floats.
FLOATS_ONLY = ("lrelu.sel.", "relu.sels.")


@pytest.mark.parametrize("name", NEEDED)
def test_integer_or_mask_rule_is_proved(name: str) -> None:
    found = prove(RULES[name])
    assert found.ok or found.floats, found.reason
    assert bool(found.dtypes) != found.floats


def test_few_rules_about_masks_are_for_floats_only() -> None:
    floats = {name for name in NEEDED if prove(RULES[name]).floats}
    assert floats == {n for n in NEEDED if n.startswith(FLOATS_ONLY)}


def test_every_rule_about_integers_and_masks_needs_a_proof() -> None:
    words = ("select.", "sel.", "sels.", "clamp.", "mask-not.", "cmp.", "cmps.", "integer.", "index.", "sign.")
    assert {name for name in RULES if name.startswith(words)} <= set(NEEDED)


def test_comparisons_are_proved_for_every_width() -> None:
    assert set(prove(RULES["cmp.integer.lt"]).dtypes) >= {"INT8", "UINT16", "INT32", "UINT64"}
    assert prove(RULES["index.add"]).dtypes == ("INT32",)


WRONG = [m for m in rule_mutants() if m.kind == "rule" and m.rule in NEEDED and "on the right" in m.name
         and not m.rule.startswith(FLOATS_ONLY)]  # fmt: skip


@pytest.mark.parametrize("name", [m.name for m in WRONG[::7]])
def test_a_wrong_right_side_is_refuted(name: str) -> None:
    (mutant,) = [m for m in WRONG if m.name == name]
    assert not prove(mutant.patches[0][2]).ok


@pytest.mark.parametrize("name", [n for n in NEEDED if n.startswith(("index.", "integer."))])
def test_the_conditions_of_an_integer_rule_are_needed(name: str) -> None:
    rule = RULES[name]
    for i, c in enumerate(rule.when):
        if c.relation not in (*_FLOATS, "typed", "mixed"):  # of what is positive, a shift is less
            assert not prove(replace(rule, when=(*rule.when[:i], *rule.when[i + 1 :]))).ok, c


def test_what_asks_for_the_sign_is_not_the_same_on_the_bits() -> None:
    right = RULES["lacking.add.UINT32"]
    assert prove(right).dtypes == ("UINT32",)
    assert isinstance(right.rhs, Term) and isinstance(right.rhs.children[0], Term)
    inner = replace(right.rhs.children[0], op="tile.maximum")
    wrong = replace(right, lhs=replace(right.lhs, op="tile.maximum"), rhs=replace(right.rhs, children=(inner,)))
    assert "differ" in prove(wrong).reason


def test_swapped_branches_and_other_comparisons_are_refuted() -> None:
    right = RULES["cmp.integer.lt"]
    assert not prove(replace(right, rhs=RULES["cmp.integer.gt"].rhs)).ok
    swap = RULES["select.scalar-tile.complement"]
    assert isinstance(swap.rhs, Term)
    mask, *rest = swap.rhs.children
    assert isinstance(mask, Term)
    assert not prove(replace(swap, rhs=replace(swap.rhs, children=(mask.children[0], *rest)))).ok


def test_a_product_with_any_number_is_no_change_of_sign() -> None:
    rule = RULES["sign.by-xor"]
    y, k = Var("y", "value"), Var("k", "value")
    assert isinstance(rule.lhs, Term)
    found = prove(replace(rule, lhs=replace(rule.lhs, children=(y, k))))
    assert not found.ok and "other than 1 and -1" in found.reason


def _verified(name: str, rule: Rule, *, proved: bool = True) -> Verified:
    check = RuleCheck(name, 10, 1000, 4, 0, ())
    return Verified(rule, check, prove(rule) if proved else None)


def test_the_summary_counts_by_kind_and_lists_what_is_not_proved() -> None:
    good = _verified("integer.muls.power", RULES["integer.muls.power"])
    wrong = replace(RULES["integer.divs.power"], when=RULES["integer.divs.power"].when[1:])
    bad = _verified("integer.divs.power", wrong)
    missing = _verified("cmps.integer.le", RULES["cmps.integer.le"], proved=False)
    rows = {r["kind"]: r for r in by_kind([good, bad, missing])}
    assert rows["integer"]["rules"] == 2 and rows["integer"]["proved"] == 1 and rows["cmps"]["proved"] == 0
    lost = dict(exceptions([good, bad, missing]))
    assert set(lost) == {"integer.divs.power", "cmps.integer.le"} and "Z3 is not installed" in lost["cmps.integer.le"]
    text = kinds_table([good, bad, missing])
    assert "not proved: integer.divs.power: the sides differ" in text
    assert good.how.startswith("sampled, 4 of 10 instances exhaustive; proved for INT8, INT16, INT32")
