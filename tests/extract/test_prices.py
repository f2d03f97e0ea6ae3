"""Prices of a whole graph, remembered by argument codes, are those of its nodes one by one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilegg import lower, parse
from tilegg.extract.price import Price, Pricer, Scalars
from tilegg.extract.weights import weights
from tilegg.ir.diagnostics import TileggError
from tilegg.rewrite.graph import Graph
from tilegg.rewrite.random_programs import random_program
from tilegg.rules.target import load_target

BENCH = Path(__file__).parents[2] / "benchmarks"


def graphs(arch: str) -> list[Graph]:
    """The graphs of the benchmark's kernels and of random programs that a target can run."""
    programs = [parse(p.read_text(), p.name) for p in sorted((BENCH / "corpus").glob("*.py"))]
    found = []
    for program in [*programs, *map(random_program, range(20))]:
        try:
            lowered = lower(program, arch, contract="contracted", memo=None)
        except TileggError:
            continue
        found += [region.graph for report in lowered.functions for region in report.regions]
    return found


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_prices_of_a_graph_are_those_of_its_nodes(arch: str) -> None:
    every = graphs(arch)
    assert len(every) > 40
    scalars: tuple[Scalars, ...] = (Scalars(), Scalars("llvm", "keep"))
    for pricer in [Pricer(load_target(arch), exact, s) for exact in (False, True) for s in scalars]:
        for graph in every:
            alone = [[pricer.node(graph, node) for node in nodes] for nodes in graph.classes]
            assert pricer.nodes(graph) == alone
            assert pricer.nodes(graph) is pricer.nodes(graph)
            expected = [
                [p.weight("cycles") if isinstance(p, Price) else None for p in prices] for prices in alone
            ]
            assert [[w and w[0] for w in row] for row in weights(graph, pricer, "cycles")] == expected


def test_prices_start_anew_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    every = graphs("a5")[:12]
    pricer, fresh = (Pricer(load_target("a5")) for _ in range(2))
    monkeypatch.setattr("tilegg.extract.price.MEMO_LIMIT", 8)
    for graph in every:
        assert pricer.nodes(graph) == [[fresh.node(graph, node) for node in nodes] for nodes in graph.classes]
