"""The benchmark's kernels: never worse than the fixed lowering, equal to what was written, graphs that stay small."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg import emit, lower, parse
from tilegg.extract.footprint import live_bytes
from tilegg.ir.program import Program
from tilegg.rewrite import saturate as saturation
from tilegg.rewrite.audit import audit
from tilegg.rewrite.engine import Engine
from tilegg.rewrite.knowledge import Knowledge
from tilegg.rewrite.region import names_in_types, regions
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target

BENCH = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCH))
from baselines import cost, fixed, searched  # noqa: E402

KERNELS = {p.stem: p for p in sorted((BENCH / "corpus").glob("*.py"))}
CASES = [(k, a) for k in KERNELS for a in ("a2a3", "a5") if a == "a5" or not k.startswith("fp8")]
#: Rule files and what their rules' names begin with.
FILES = {
    "arithmetic": ("scalar.", "divs.", "subs.", "neg.", "muls.", "add.", "sub.", "abs."),
    "shapes": ("expand.", "window.", "concat.", "reshape."),
    "integers": ("index.", "integer."),
    "fusion": ("fuse.",),
    "select": ("select.", "sel.", "sels.", "cmp.", "cmps."),
}


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


def _nodes(program: Program, without: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> int:
    rules = [r for r in RULES.values() if not without or not r.name.startswith(without)]
    monkeypatch.setattr(saturation, "engine", lambda: _engine(without, rules))
    plan = saturation.Plan(load_target("a5"), True, contracted=True)
    total = 0
    for f in program.functions:
        knowledge = Knowledge(f)
        for region in regions(f.body, names_in_types(f)):
            total += saturation.saturate(region, knowledge, plan).size
    return total


_engines: dict[tuple[str, ...], Engine] = {}


def _engine(key: tuple[str, ...], rules: list[object]) -> Engine:
    if key not in _engines:
        _engines[key] = Engine(rules)  # type: ignore[arg-type]
    return _engines[key]


@pytest.mark.parametrize("file", list(FILES))
def test_no_rule_file_more_than_triples_a_graph(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = {}
    for name in KERNELS:
        program = _program(name)
        grown[name] = _nodes(program, (), monkeypatch) / _nodes(program, FILES[file], monkeypatch)
    assert max(grown.values()) <= 3.0, max(grown.items(), key=lambda kv: kv[1])
