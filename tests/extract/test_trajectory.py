"""Trajectories: rule applications that lead from one program to another, priced and run again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tilegg.extract.between import between_values, trajectory
from tilegg.extract.explain import explain
from tilegg.extract.lower import lower
from tilegg.extract.recheck import Check, Rechecker
from tilegg.extract.trajectory import Trajectory, derivation
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP16, FP32, INT8, INT32
from tilegg.ir.program import Program
from tilegg.ir.text import parse, print_program

from .programs import QUANTISE, Maker, chain, quantise, random_program

CORPUS = Path(__file__).resolve().parents[2] / "benchmarks" / "corpus"
HEAD = """
import pypto.language as pl

@pl.function
def k(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]) -> pl.Tensor[[16, 64], pl.FP32]:
    t = pl.load(x, [0, 0], [16, 64])
"""


def kernel(*lines: str) -> Program:
    """A function that computes ``y`` from the tile ``t``."""
    body = [*lines, "r = pl.store(y, [0, 0], out)", "return r"]
    return parse(HEAD + "".join(f"    {line}\n" for line in body), "k.py")


def agrees(found: Trajectory) -> None:
    """It leads all the way and every step was run; exact ones changed nothing."""
    assert found.reached, found.render()
    assert all(s.check is not None and not s.check.failure for s in found.steps)
    assert all(s.check.equal for s in found.steps if s.contract == "exact")


DOCS = Path(__file__).resolve().parents[2] / "docs" / "testing"


def test_integers_that_differ_are_units_apart() -> None:
    slow, fast = (parse((DOCS / name).read_text(encoding="utf-8")) for name in ("tail.py", "shortcut.py"))
    checks = [s.check for s in trajectory(slow, fast, "a5", samples=8).steps]
    assert all(c is not None and (c.max_ulp >= 1) == (c.max_abs >= 1) == (c.differing > 0) for c in checks)
    assert any("40 elements differ, by up to 1 ulp" in str(c) for c in checks)


def test_a_check_says_how_far_apart() -> None:
    assert "differ, in the sign of zero only" in str(Check(1, 4, 2))
    m = Maker()
    m.store(m.load(INT32))
    (f,) = m.program().functions
    checker = Rechecker(m.program(), f, 1)
    far = {name: array ^ np.int32(1 << 20) for name, array in checker.before[0].items()}
    checker.before = [far]
    assert f"by up to {1 << 20:.3g}" in str(checker.check(f))


def test_the_derivation_of_the_quantisation_tail() -> None:
    lowered = lower(quantise(), "a2a3")
    found = derivation(lowered, samples=4)
    agrees(found)
    assert [s.name for s in found.steps] == [
        "cast.fuse.exact-first", "cast.fuse.integer-narrowing", "cast.road.exact.2", "line.cast",
    ]  # fmt: skip
    first, *_, last = found.steps
    assert first.before == "cast[FP16→INT8, trunc](cast[INT32→FP16, round](i))"
    assert first.after == "cast[INT32→INT8, trunc](i)"
    assert (first.result, first.span.line) == ("o", 19)
    assert [str(f) for f in first.facts] == ["i in [-127, 127] in multiples of 2^0, 7 bits, from tile.cast (line 17)"]
    assert found.start == lowered.plain and last.totals == lowered.totals


def test_a_conversion_goes_on_to_one_row_after_its_chain() -> None:
    text = QUANTISE.replace("pl.cast(q, target_type=pl.INT32", "pl.cast(t, target_type=pl.INT32")
    found = derivation(lower(parse(text, "k.py"), "a2a3"), samples=4)
    agrees(found)
    assert [s.name for s in found.steps if s.result == "o"] == [
        "cast.fuse.saturating-detour", "cast.fuse.saturating-integers", "cast.road.exact.2", "line.cast",
    ]  # fmt: skip


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_derivations_of_random_programs_end_at_what_was_chosen(arch: str) -> None:
    """Casts in every order: a few need more search than is allowed, and then it is said; no step is wrong."""
    whole = 0
    for seed in range(1, 9):
        try:
            lowered = lower(random_program(seed, arch, 8), arch)
        except TileggError:
            continue
        found = derivation(lowered, samples=2)
        assert not any(s.wrong or s.check.failure for s in found.steps)
        if found.missing:
            continue
        whole += 1
        agrees(found)
        if found.steps:
            assert found.end.cycles == pytest.approx(lowered.totals.cycles, abs=1e-3)
            assert found.end.instructions == lowered.totals.instructions
    assert whole >= 5


def test_from_a_program_to_its_own_lowering_as_text() -> None:
    program = quantise()
    lowered = lower(program, "a5")
    found = trajectory(program, parse(print_program(lowered.program)), "a5", samples=3)
    agrees(found)
    assert found.start == lowered.plain and found.end == lowered.totals
    assert not found.contracts


def test_recipes_and_chains_that_round_twice_say_their_error() -> None:
    m = Maker()
    m.store(m.op("tile.sin", (m.load(FP32),), FP32))
    m.store(m.cast(m.load(INT32), BF16, "rint"))
    lowered = lower(m.program(), "a2a3")
    found = trajectory(m.program(), parse(print_program(lowered.program)), "a2a3", samples=2)
    assert found.reached and found.contracts == ("bounded", "faithful")
    sine, cast = found.steps
    assert sine.error.startswith("error at most ") and "operations" in sine.after
    assert "of all values differ, by up to 1 ulp" in cast.error
    assert "; relies on bounded, faithful" in found.render()
    assert sine.check.promise.startswith("the promise holds: at most ") and not sine.wrong


def test_a_bound_that_does_not_hold_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    m = Maker()
    m.store(m.op("tile.sin", (m.load(FP32),), FP32))
    found = derivation(lower(m.program(), "a5"), samples=2)
    rule = found.steps[0].rule
    tight = replace(rule.bound, errors=tuple((limit, 1e-12) for limit, _ in rule.bound.errors))
    monkeypatch.setattr(type(rule), "bound", property(lambda self: tight if self.name == rule.name else None))
    step, *_ = derivation(lower(m.program(), "a5"), samples=2).steps
    assert step.check.broken and step.wrong and "BROKEN" in str(step.check)


def test_both_ways_where_neither_program_is_rewritten_into_the_other() -> None:
    a = kernel("y = pl.neg(pl.mul(t, 2.0))")
    b = kernel("y = pl.mul(pl.neg(t), 2.0)")
    found = trajectory(a, b, "a5", samples=2)
    agrees(found)
    assert [(s.name, s.backwards) for s in found.steps] == [("muls.neg", False), ("neg.muls", True)]
    assert "(backwards)" in found.render()


def test_common_operations_become_one() -> None:
    a = kernel("u = pl.exp(t)", "v = pl.exp(t)", "y = pl.add(u, v)")
    b = kernel("u = pl.exp(t)", "y = pl.add(u, u)")
    found = trajectory(a, b, "a5", samples=2)
    agrees(found)
    assert [s.name for s in found.steps] == ["shared"]
    assert found.end.instructions == found.start.instructions - 1


def test_a_program_may_be_rewritten_to_a_leaf_and_back() -> None:
    nothing, twice = kernel("y = t"), kernel("y = pl.neg(pl.neg(t))")
    for a, b, saved in ((twice, nothing, 2), (nothing, twice, -2)):
        found = trajectory(a, b, "a5", samples=2)
        agrees(found)
        assert found.start.instructions - found.end.instructions == saved


def test_loops_and_facts_inside_them() -> None:
    a = parse(LOOP.format(y="pl.cast(pl.cast(t, target_type=pl.FP32), target_type=pl.FP16)"), "a.py")
    b = parse(LOOP.format(y="t"), "b.py")
    found = trajectory(a, b, "a5", samples=2)
    agrees(found)
    assert [s.name for s in found.steps] == ["cast.fuse.exact-first", "cast.identity"]


LOOP = """
import pypto.language as pl

@pl.function
def k(x: pl.Tensor[[32, 64], pl.FP16], out: pl.Out[pl.Tensor[[32, 64], pl.FP16]]) -> pl.Tensor[[32, 64], pl.FP16]:
    for i, (o,) in pl.range(0, 2, init_values=(out,)):
        t = pl.load(x, [i * 16, 0], [16, 64])
        y = {y}
        n = pl.store(y, [i * 16, 0], o)
        r = pl.yield_(n)
    return r
"""


def test_programs_that_are_not_equal_are_said_to_differ() -> None:
    found = trajectory(kernel("y = pl.mul(t, 2.0)"), kernel("y = pl.mul(t, 3.0)"), "a5", samples=2)
    assert not found.reached and not found.steps
    assert "are not equal in the e-graph" in found.missing[0]
    assert "the interpreter finds that they differ" in found.missing[1]


def test_equal_programs_that_no_rule_relates_are_not_called_different() -> None:
    a = kernel("y = pl.maximum(pl.maximum(t, pl.exp(t)), pl.neg(t))")
    b = kernel("y = pl.maximum(t, pl.maximum(pl.exp(t), pl.neg(t)))")
    found = trajectory(a, b, "a5", samples=2)
    assert not found.reached
    assert "finds no difference" in found.missing[1]


def test_a_step_may_exchange_operands_where_both_orders_stand() -> None:
    a = kernel("y = pl.maximum(t, pl.minimum(t, 1.0))")
    b = kernel("y = pl.maximum(pl.minimum(t, 1.0), t)")
    found = trajectory(a, b, "a5", samples=2)
    assert found.reached and [s.name for s in found.steps] == ["mirror.maximum"]


def test_a_looser_contract_may_be_needed() -> None:
    a, b = kernel("y = pl.add(pl.mul(t, 3.0), t)"), kernel("y = pl.tile.axpy(t, t, 3.0)")
    assert not trajectory(a, b, "a5", samples=2).reached
    found = trajectory(a, b, "a5", contract="contracted", samples=2)
    assert found.reached and found.contracts == ("contracted",)
    assert found.steps[-1].error


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("u = pl.load(x, [0, 0], [16, 64])", "r0 = pl.store(u, [0, 0], out)", "y = t"), "nothing in the first"),
        (("for i in pl.range(0, 2):", "    u = pl.neg(t)", "y = t"), "of the first function meets for"),
    ],
)
def test_what_stays_in_order_must_be_the_same(lines: tuple[str, ...], reason: str) -> None:
    with pytest.raises(TileggError) as caught:
        trajectory(kernel("y = t"), kernel(*lines), "a5")
    (problem,) = caught.value.diagnostics
    assert problem.code == "TG030" and reason in problem.reason


def test_values_of_one_program() -> None:
    program = kernel("slow = pl.cast(pl.cast(t, target_type=pl.FP16), target_type=pl.FP32)",
                     "once = pl.cast(t, target_type=pl.FP16)",
                     "fast = pl.cast(once, target_type=pl.FP32)", "y = pl.add(slow, fast)")  # fmt: skip
    assert between_values(program, "slow", "fast", "a5").reached
    wide = kernel("a = pl.neg(pl.neg(pl.exp(t)))", "b = pl.exp(t)", "y = pl.add(a, b)")
    found = between_values(wide, "a", "b", "a5")
    agrees(found)
    assert [s.name for s in found.steps] == ["neg.neg"]
    assert found.start.instructions == 3 and found.end.instructions == 1
    assert not between_values(wide, "a", "y", "a5").reached
    twice = kernel("y = pl.neg(pl.neg(t))")
    down, up = between_values(twice, "y", "t", "a5"), between_values(twice, "t", "y", "a5")
    agrees(down)
    agrees(up)
    assert (down.end.instructions, up.end.instructions) == (0, 2)
    with pytest.raises(TileggError) as caught:
        between_values(wide, "a", "nowhere", "a5")
    assert caught.value.diagnostics[0].code == "TG003"


def test_a_wrong_step_is_refuted() -> None:
    right, wrong = kernel("y = pl.mul(t, 2.0)"), kernel("y = pl.mul(t, 2.5)")
    check = Rechecker(right, right.functions[0], 4).check(wrong.functions[0])
    assert check.differing and check.max_ulp > 0 and not check.equal
    found = derivation(lower(quantise(), "a5"), samples=2)
    found.steps[0] = replace(found.steps[0], check=check)
    assert found.steps[0].wrong and not found.reached
    text = found.render()
    assert "1 refuted by the interpreter" in text and "REFUTED: " in text


def test_the_fallback_has_no_derivation_but_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    from .test_lower import find_nothing

    monkeypatch.setattr("tilegg.extract.lower.saturate", find_nothing)
    lowered = lower(chain(INT8, FP32), "a2a3", memo=None)
    assert explain(lowered).derivation.arch == "a2a3"


def test_json_and_html() -> None:
    found = trajectory(chain(FP32, FP16, FP32), chain(FP32, FP16, FP32), "a5", samples=1)
    assert found.reached and not found.steps
    found = derivation(lower(quantise(), "a5"), samples=1)
    read = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert list(read) == ["schema", "arch", "contract", "title", "reached", "missing", "start", "steps"]
    assert len(read["steps"]) == 3 and read["steps"][0]["check"]["runs"] == 1
    page = found._repr_html_()
    assert "cast.fuse.integer-narrowing" in page and "<script" not in page


@pytest.mark.parametrize(
    ("name", "contract"),
    [
        ("rope_index", "exact"), ("block_plan", "exact"), ("softmax_bf16_scores", "contracted"), ("sinkhorn", "exact"),
        ("act_quant_bf16", "contracted"), ("gelu_sigmoid", "contracted"),
    ],
)  # fmt: skip
def test_kernels_lead_to_their_own_lowering(name: str, contract: str) -> None:
    """The derivation and the trajectory to the lowered text both end at what was chosen."""
    program = parse((CORPUS / f"{name}.py").read_text(encoding="utf-8"), name)
    lowered = lower(program, "a5", contract=contract)
    made = derivation(lowered)
    other = trajectory(program, parse(print_program(lowered.program)), "a5", contract=contract, samples=1)
    for found in (made, other):
        assert found.reached, found.missing
        assert found.start.cycles == pytest.approx(lowered.plain.cycles, abs=1e-3)
        assert found.end.cycles == pytest.approx(lowered.totals.cycles, abs=1e-3)
        assert found.end.instructions == lowered.totals.instructions
    agrees(other)


def test_values_of_outer_blocks_and_reads_that_go() -> None:
    """A value that a loop reads is one with the other program's of that name; a load that only one has is no step."""
    head = LOOP.replace("    for i, (o,)", "    w = pl.load(x, [0, 0], [16, 64])\n    s = {s}\n    for i, (o,)")
    a = parse(head.format(s="pl.neg(pl.neg(w))", y="pl.add(t, s)"), "a.py")
    b = parse(head.format(s="pl.cast(pl.cast(w, target_type=pl.FP32), target_type=pl.FP16)", y="pl.add(t, s)"), "b.py")
    found = trajectory(a, b, "a5", samples=2)
    agrees(found)
    assert {s.name for s in found.steps} >= {"neg.neg", "cast.fuse.exact-first"}
    extra = LOOP.replace("        y =", "        z = pl.load(x, [0, 0], [16, 64])\n        y =")
    more = parse(extra.format(y="t"), "c.py")
    found = trajectory(more, parse(LOOP.format(y="t"), "d.py"), "a5", samples=2)
    agrees(found)
    assert [s.name for s in found.steps] == ["unread"] and found.end.instructions == found.start.instructions - 1
