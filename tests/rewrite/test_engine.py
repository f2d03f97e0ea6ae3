"""The e-graph engine: compiled rules, reset, budgets, and rows read back."""

from __future__ import annotations

import pytest
from tilegg.extract.lower import lower
from tilegg.ir.dtypes import BF16, FP32
from tilegg.ir.op import OPS
from tilegg.rewrite import engine as engines
from tilegg.rewrite.egglog_text import compile_rule, is_term, schema
from tilegg.rewrite.engine import Budget, Engine, engine
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target
from tilegg.rules.terms import DTYPE_CODES, MODE_CODES

F, B, RINT = DTYPE_CODES["FP32"], DTYPE_CODES["BF16"], MODE_CODES["rint"]
ROUND_TRIP = [
    "(union (val 0) (Inp 0))",
    f"(union (val 1) (tile_cast {F} 1 {B} {RINT} 0 0 (val 0)))",
    f"(union (val 2) (tile_cast {B} 1 {F} {RINT} 0 0 (val 1)))",
]


def test_compiled_rules_carry_their_name_ruleset_and_provenance() -> None:
    text = compile_rule(RULES["cast.fuse.exact-first"])
    number = RULES["cast.fuse.exact-first"].number
    assert ':name "cast.fuse.exact-first"' in text and f":ruleset only_{number}" in text
    assert "(set (why_6_1 " in text and text.count(f" {number})") == 1
    assert "(fits x b)" in text and "(keeps_infinity b s1)" in text


def test_the_schema_has_the_operations_of_the_rules_and_no_effects() -> None:
    text = "\n".join(schema())
    assert "(constructor tile_cast " in text
    assert "tile_load" not in text and "tile_store" not in text
    assert not is_term(OPS["tile.load"]) and is_term(OPS["tile.add"])


def test_other_operations_are_declared_when_needed() -> None:
    eng = engine()
    for _ in range(2):
        eng.declare(["tile.rems", "tile.cast", "tile.rems"])
        eng.add(["(union (val 0) (Inp 0))", "(union (val 1) (tile_rems 3 1 (val 0) (val 0)))"])
        assert [row[:2] for row in eng.rows()["tile_rems"]] == [(3, 1)]
        eng.reset()
        assert "tile_rems" not in eng.rows()


def test_a_lossless_round_trip_becomes_the_value_itself() -> None:
    eng = engine()
    try:
        eng.add(ROUND_TRIP, [f"(fits (val 0) {F})", f"(fits (val 0) {B})"])
        assert eng.run("normalise", Budget()).stopped == "saturated"
        of = {row[0]: row[1] for row in eng.rows()["val"]}
        assert of[0] == of[2] != of[1]
    finally:
        eng.reset()


#: Through a dtype that holds less.
THROUGH = [
    "(union (val 0) (Inp 0))",
    f"(union (val 1) (tile_cast {B} 1 {F} {RINT} 0 0 (val 0)))",
    f"(union (val 2) (tile_cast {F} 1 {B} {RINT} 0 0 (val 1)))",
]


def _classes(text: list[str]) -> int:
    eng = engine()
    try:
        eng.add(text)
        eng.run("normalise", Budget())
        return len({row[1] for row in eng.rows()["val"]})
    finally:
        eng.reset()


def test_a_round_trip_through_a_wider_dtype_needs_no_fact_and_through_a_narrower_one_does() -> None:
    assert _classes(ROUND_TRIP) == 2
    assert _classes(THROUGH) == 3
    assert _classes([*THROUGH, f"(fits (val 0) {B})"]) == 2


def test_reset_forgets_terms_and_facts_but_keeps_the_template() -> None:
    eng = engine()
    eng.add(ROUND_TRIP, [f"(fits (val 0) {F})"])
    eng.reset()
    assert eng.size() == 0 and "val" not in eng.rows()
    assert eng.rows(frozenset({"narrows", "keeps_infinity"}))


def test_rows_in_bulk_are_the_rows_one_by_one() -> None:
    eng = engine()
    rows = [f"(fits (val {i % 2}) {code})" for i, code in enumerate((F, B, -7, 2**62, 3, 4, 5, 6, 7, 8))]
    found = []
    for _ in range(3):
        eng.add(ROUND_TRIP, rows)
        found.append(sorted(row[1] for row in eng.rows(frozenset({"fits"}))["fits"]))
        eng.reset()
        eng.declare([])
    assert found[0] == sorted((F, B, -7, 2**62, 3, 4, 5, 6, 7, 8)) and found[0] == found[1] == found[2]


def test_rows_that_no_rule_asks_for_are_left_out() -> None:
    made = Engine(r for r in RULES.values() if r.name.startswith("cast."))
    made.add(ROUND_TRIP, ["(one_zero (val 0))", f"(fits (val 0) {F})"])
    assert made.rows(frozenset({"fits", "one_zero"})).keys() == {"fits"}


def test_an_e_graph_made_anew_knows_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "RENEWED", 2)
    made = Engine(RULES.values())
    found = []
    for _ in range(5):
        made.declare(["tile.rems", "tile.cast"])
        made.add(ROUND_TRIP, [f"(fits (val 0) {F})", f"(fits (val 0) {B})"])
        made.run("normalise", Budget())
        found.append(len({row[1] for row in made.rows()["val"]}))
        made.reset()
    assert found == [2] * 5


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(nodes=1), "stopped at the node limit 1"),
        (Budget(rounds=0), "stopped at the round limit 0"),
        (Budget(), "stopped where one round made"),
    ],
)
def test_limits_stop_with_a_reason(budget: Budget, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilegg.rewrite.engine.FIRST_ROUNDS", 1)
    if reason.startswith("stopped where"):
        monkeypatch.setattr("tilegg.rewrite.engine.LARGE", 1)
    eng = engine()
    try:
        eng.add(ROUND_TRIP, [f"(fits (val 0) {F})", f"(fits (val 0) {B})"])
        assert eng.run("normalise", budget).stopped.startswith(reason)
    finally:
        eng.reset()


def test_equal_operands_are_not_joined_again_and_again() -> None:
    """Selections among conversions that are one value: every two ways to make it once gave a third."""
    program = random_program(41, Kind(target=load_target("a5"), size=20))
    found = lower(program, "a5", memo=None)
    graphs = [r.graph for f in found.functions for r in f.regions]
    assert {g.stopped for g in graphs} == {"saturated"} and max(g.size for g in graphs) < 1000


@pytest.mark.parametrize("dtype", [FP32, BF16])
def test_engines_are_shared_within_a_thread(dtype: object) -> None:
    assert engine() is engine()
