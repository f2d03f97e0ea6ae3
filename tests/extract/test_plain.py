"""The plain lowering: what the target refuses as written is expanded by a fixed rule, or the figures are not given."""

from __future__ import annotations

import itertools
import json

import pytest
import tilegg
from tilegg.cli.lower import summary
from tilegg.extract.expansions import expansions
from tilegg.extract.explain import explain
from tilegg.extract.notebook import lowered_html
from tilegg.extract.report_json import to_json
from tilegg.ir.op import OPS
from tilegg.ir.program import Program
from tilegg.rules.rule import Var, variables

from .test_lower import find_nothing

ORDERS = {"lt": 2, "le": 3, "gt": 4, "ge": 5}
#: How an order is told by equality: the extreme and the comparison of it with the first operand.
BY_EQUALITY = {"lt": ("max", 1), "gt": ("min", 1), "le": ("min", 0), "ge": ("max", 0)}


def test_operands_codes_and_types_tell_what_an_expansion_stands_for() -> None:
    for name in OPS:
        for rule in expansions(name):
            told = {a for a in (*rule.lhs.args, *rule.lhs.children) if isinstance(a, Var)}
            for condition in rule.when:
                assert condition.args[0] in told, rule.name
                told |= {a for a in condition.args[1:3] if condition.relation == "typed" and isinstance(a, Var)}
            assert told.issuperset(variables(rule.rhs)), rule.name


def kernel(*lines: str, dtype: str = "INT32", out: str = "") -> Program:
    """Loads ``t`` and ``u``, runs the lines, stores ``y``."""
    text = f"""
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[16, 64], pl.{dtype}], z: pl.Tensor[[16, 64], pl.{dtype}],
      out: pl.Out[pl.Tensor[[16, 64], pl.{out or dtype}]]):
    t = pl.tile.load(x, [0, 0], [16, 64])
    u = pl.tile.load(z, [0, 0], [16, 64])
"""
    text += "".join(f"    {line}\n" for line in lines)
    return tilegg.parse(f"{text}    return pl.tile.store(y, [0, 0], out)\n")


def ordered(word: str, form: str) -> Program:
    other = "u" if form == "cmp" else "7"
    return kernel(f"m = pl.tile.{form}(t, {other}, cmp_type={ORDERS[word]})", "y = pl.tile.sel(m, u, t)")


@pytest.mark.parametrize(("word", "form"), list(itertools.product(ORDERS, ("cmp", "cmps"))))
def test_an_order_of_integers_is_priced_by_its_expansion(word: str, form: str) -> None:
    extreme, how = BY_EQUALITY[word]
    made = f"e = pl.tile.{extreme}imum(t, u)" if form == "cmp" else f"e = pl.tile.{extreme}imums(t, 7)"
    by_hand = kernel(made, f"m = pl.tile.cmp(e, t, cmp_type={how})", "y = pl.tile.sel(m, u, t)")
    for objective in ("cycles", "instructions", "accuracy"):
        lowered = tilegg.lower(ordered(word, form), "a2a3", objective=objective)
        assert lowered.plain == tilegg.lower(by_hand, "a2a3").plain and lowered.plain.legal
        assert lowered.totals.rank(objective) <= lowered.plain.rank(objective)
    native = tilegg.lower(ordered(word, form), "a5").plain
    assert native.legal and native.instructions == lowered.plain.instructions - 1


@pytest.mark.parametrize("word", ORDERS)
def test_the_expansion_is_taken_where_the_search_finds_nothing(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilegg.extract.lower.saturate", find_nothing)
    program = ordered(word, "cmp")
    lowered = tilegg.lower(program, "a2a3", memo=None)
    assert any(r.fallback for f in lowered.functions for r in f.regions) and lowered.totals == lowered.plain
    assert tilegg.equivalent(program, lowered.program, samples=20).equal
    assert tilegg.emit(lowered, "a2a3")


def test_what_only_rewriting_makes_legal_has_no_plain_lowering() -> None:
    """A2/A3 have no conversion to UINT16; the round trip is none."""
    program = kernel("w = pl.tile.cast(t, target_type=pl.UINT16)", "y = pl.tile.cast(w, target_type=pl.UINT8)",
                     dtype="UINT8")  # fmt: skip
    lowered = tilegg.lower(program, "a2a3", contract="exact")
    assert not lowered.plain.legal and lowered.totals.legal
    for text in (summary(lowered), explain(lowered).render(), lowered_html(lowered)):
        assert "plain lowering not legal on the target" in text and "%" not in text.splitlines()[0]
    for data in (to_json(lowered), explain(lowered).to_json()):
        assert json.loads(json.dumps(data))["plain"] is None
    assert tilegg.equivalent(program, lowered.program, samples=8).equal
