"""The benchmark's kernels: never worse than the fixed lowering, equal to what was written, graphs that stay small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg import emit, lower, parse
from tilegg.extract.footprint import live_bytes
from tilegg.ir.program import Program
from tilegg.rewrite.audit import audit
from tilegg.rules.target import load_target

BENCH = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCH))
from baselines import cost, fixed, searched  # noqa: E402
from growth import growth, rule_files  # noqa: E402

KERNELS = {p.stem: p for p in sorted((BENCH / "corpus").glob("*.py"))}
CASES = [(k, a) for k in KERNELS for a in ("a2a3", "a5") if a == "a5" or not k.startswith("fp8")]


def _program(name: str) -> Program:
    return parse(KERNELS[name].read_text())


def test_there_are_enough_kernels() -> None:
    assert len(KERNELS) >= 30


@pytest.mark.parametrize(("name", "arch"), CASES, ids=lambda v: v)
def test_never_worse_and_emitted(name: str, arch: str) -> None:
    program = _program(name)
    base = fixed(program, arch)
    last = base.vector
    for contract in ("exact", "contracted"):
        lowered = lower(program, arch, contract=contract, memo=None)
        made = cost(lowered)
        assert made.vector <= last + 1e-3
        last = made.vector
        assert live_bytes(lowered.program) <= max(live_bytes(base.program), 192 * 1024)
        assert "func.func" in emit(lowered, arch)


@pytest.mark.parametrize("name", list(KERNELS)[::3])
def test_every_node_has_the_value_of_its_class(name: str) -> None:
    report = audit(_program(name), load_target("a5"), 1, "exact", runs=1)
    assert report.ok, [str(p) for p in report.problems[:3]]
    assert report.nodes > 0


def test_gains_on_kernels_with_known_savings() -> None:
    def ratio(name: str, arch: str, contract: str = "exact") -> float:
        program = _program(name)
        return cost(lower(program, arch, contract=contract, memo=None)).vector / fixed(program, arch).vector

    assert ratio("softmax_recip", "a5") <= 0.90  # exp of a difference in one instruction
    assert ratio("rope_halves", "a5") <= 0.80  # six conversions become three
    assert ratio("block_plan", "a2a3") <= 0.70  # truncated quotients become shifts
    assert ratio("quant_int8", "a5") <= 0.80  # a shorter chain where amax scaling bounds the values
    assert ratio("scaled_residual", "a5", "contracted") <= 0.75 < ratio("scaled_residual", "a5")
    assert ratio("rmsnorm_bf16", "a5") == pytest.approx(1.0)  # nothing in it may go


def test_searches_on_the_same_graphs_are_not_better() -> None:
    from tilegg.extract.price import pricer_for

    for name in ("rope_index", "quant_int8", "softmax_rows"):
        lowered = lower(_program(name), "a5", contract="exact", memo=None)
        greedy, drawn = searched(lowered, pricer_for(load_target("a5"), True))
        best = cost(lowered).vector
        assert best <= greedy + 1e-3 and best <= drawn + 1e-3


_WHOLE: dict[str, int] = {}


@pytest.mark.parametrize("file", rule_files())
def test_no_rule_file_more_than_triples_a_graph(file: str) -> None:
    ratio, name = growth({name: _program(name) for name in KERNELS}, "a5", file, _WHOLE)
    assert ratio <= 3.0, name


def test_a_file_that_enlarges_graphs_is_noticed() -> None:
    ratio, name = growth({"rope_index": _program("rope_index")}, "a5", "integers", {})
    assert name == "rope_index" and ratio > 1.2
