"""The k best solutions of a region, and the alternatives of an instruction."""

from __future__ import annotations

import itertools
import random

import pytest
from tilegg.extract.dag import Problem, problem, solve
from tilegg.extract.kbest import alternatives, k_best, restrict
from tilegg.extract.lower import lower
from tilegg.extract.lowered import Instruction, Lowered, RegionResult
from tilegg.ir.dtypes import BF16, FP4, FP16, FP32, INT32
from tilegg.rewrite.graph import Graph
from tilegg.rewrite.region import Region

from .programs import chain, quantise

Nodes = list[list[tuple[int, tuple[int, ...]] | None]]


def result_of(p: Problem) -> RegionResult:
    """Wrap a problem; ``k_best`` looks at nothing else."""
    return RegionResult(Graph([], [], [], [], []), p, solve(p), Region((), (), (), frozenset()))


def every_cost(nodes: Nodes, roots: list[int]) -> list[int]:
    """Return the costs of all distinct acyclic selections, by trying all of them."""
    found: dict[tuple[tuple[int, int], ...], int] = {}
    for picks in itertools.product(*(range(len(options)) for options in nodes)):
        used: dict[int, int] = {}
        state: dict[int, int] = {}

        def visit(
            c: int, picks: tuple[int, ...] = picks, used: dict[int, int] = used, state: dict[int, int] = state
        ) -> bool:
            if state.get(c) == 2:
                return True
            node = nodes[c][picks[c]]
            if state.get(c) == 1 or node is None:
                return False
            state[c] = 1
            if not all(visit(k) for k in node[1]):
                return False
            state[c] = 2
            used[c] = picks[c]
            return True

        if all(visit(r) for r in roots):
            found[tuple(sorted(used.items()))] = sum(nodes[c][i][0] for c, i in used.items())  # type: ignore[index]
    return sorted(found.values())


def random_nodes(seed: int) -> Nodes:
    """Return 7 classes with up to 3 nodes each, mostly needing later classes, sometimes earlier ones."""
    rnd = random.Random(seed)
    nodes: Nodes = []
    for c in range(7):
        options: list[tuple[int, tuple[int, ...]] | None] = []
        for _ in range(rnd.randint(1, 3)):
            pool = range(7) if rnd.random() < 0.15 else range(c + 1, 7)
            count = min(len(pool), rnd.randint(0, 2))
            options.append((rnd.randint(1, 30), tuple(rnd.sample(pool, count))))
        nodes.append(options)
    return nodes


@pytest.mark.parametrize("seed", range(40))
def test_k_best_is_what_trying_everything_finds(seed: int) -> None:
    nodes, roots = random_nodes(seed), [0, 1]
    wanted = every_cost(nodes, roots)
    if not wanted:
        return
    p = problem(nodes, roots)
    found = k_best(result_of(p), 8)
    assert [s.cost for s in found] == wanted[:8]
    assert len({tuple(sorted(s.picks.items())) for s in found}) == len(found)


def test_k_best_of_a_lowered_region_starts_with_the_choice() -> None:
    (region,) = lower(quantise(), "a2a3").functions[0].regions
    found = k_best(region, 5)
    assert found[0] is region.solution and len(found) == 5
    assert [s.cost for s in found] == sorted(s.cost for s in found)
    assert k_best(region, 0) == []


def test_restricting_to_a_cycle_leaves_nothing() -> None:
    p = problem([[(1, (1,)), (5, ())], [(1, (0,)), (5, ())]], [0, 1])
    assert restrict(p, {0: 0, 1: 0}) is None
    assert restrict(p, {0: 0}) is not None
    assert restrict(p, {}, {0: frozenset({0, 1})}) is None


def last_cast(lowered: Lowered) -> Instruction:
    """Return the last cast of the first function."""
    return [i for i in lowered.functions[0].instructions if i.op.name == "tile.cast"][-1]


def converted(lowered: Lowered) -> Instruction:
    """Return the instruction that ends the conversion of the quantisation tail, which runs on one row."""
    return next(i for i in lowered.functions[0].instructions if i.op.result.name == "o")


def test_alternatives_of_a_cast_are_chains_with_costs_and_errors() -> None:
    lowered = lower(quantise(), "a2a3")
    found = alternatives(lowered, lowered.functions[0], converted(lowered))
    by_text = {a.text: a for a in found}
    short = by_text["FP32 → FP16 → INT8"]
    assert not short.exact and 0.001 < short.rate < 0.1
    assert short.extra is not None and (short.extra.instructions, short.extra.inexact) == (0, 1)
    long = by_text["FP32 → INT16 → FP16 → INT8"]
    assert long.exact and long.rate == 0 and long.rule == "cast.road.exact.3"
    assert long.extra is not None and long.extra.instructions == 1 and long.extra.cycles > 0
    ranks = [a.extra.rank("cycles") for a in found if a.extra]
    assert ranks == sorted(ranks) and ranks[0] >= (0.0, 0, 0)


def test_what_the_target_has_not_is_refused_with_the_reason() -> None:
    lowered = lower(chain(FP32, FP4), "a5")
    refused = [a for a in alternatives(lowered, lowered.functions[0], last_cast(lowered)) if not a.legal]
    assert [(a.text, a.rule) for a in refused] == [("FP32 → FP4", "")]
    assert "no conversion from FP32 to FP4" in refused[0].refusal


def test_what_the_contract_keeps_out_is_listed_as_such() -> None:
    lowered = lower(quantise(), "a5", contract="exact")
    found = {a.text: a for a in alternatives(lowered, lowered.functions[0], last_cast(lowered), k=64)}
    short = found["FP32 → BF16 → FP16 → INT8"]
    assert not short.legal and "contract" in short.refusal and short.rate > 0


def test_costs_are_those_of_the_forced_program() -> None:
    """The accuracy objective must take the exact chain, at the price the alternative names."""
    cheap = lower(chain(INT32, FP16), "a2a3", objective="instructions")
    exact = lower(chain(INT32, FP16), "a2a3", objective="accuracy")
    found = {a.text: a for a in alternatives(cheap, cheap.functions[0], last_cast(cheap))}
    extra = found["INT32 → FP32 → FP16"].extra
    assert extra is not None
    changed = cheap.totals + extra
    assert changed.rank("cycles") == exact.totals.rank("cycles") < cheap.totals.rank("cycles")


def test_kept_statements_have_no_alternatives() -> None:
    lowered = lower(chain(BF16, FP32, BF16), "a5")
    for i in lowered.functions[0].instructions:
        assert alternatives(lowered, lowered.functions[0], i) == []


def test_k_limits_the_list() -> None:
    lowered = lower(chain(INT32, FP16, BF16), "a2a3")
    assert len(alternatives(lowered, lowered.functions[0], last_cast(lowered), k=1)) == 1
