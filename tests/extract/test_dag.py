"""DAG extraction against brute force: small random problems with sharing, several roots and cycles."""

from __future__ import annotations

import itertools
import random

import pytest
from tilegg.extract import ilp
from tilegg.extract.dag import Problem, Solution, cost_of, greedy, improve, problem, reduce, solve
from tilegg.extract.ilp import solve_exact

Nodes = list[list[tuple[int, tuple[int, ...]] | None]]


def random_nodes(seed: int, cyclic: bool) -> tuple[Nodes, tuple[int, ...]]:
    """Return a few classes with one to three nodes each, and one or two roots."""
    rng = random.Random(seed)
    count = rng.randint(3, 7)
    nodes: Nodes = []
    for c in range(count):
        options: list[tuple[int, tuple[int, ...]] | None] = []
        for _ in range(rng.randint(1, 3)):
            below = range(count) if cyclic else range(c + 1, count)
            children = tuple(rng.sample(list(below), min(len(below), rng.randint(0, 3))))
            options.append(None if rng.random() < 0.08 else (rng.randint(1, 12), children))
        nodes.append(options)
    return nodes, tuple(range(rng.randint(1, 2)))


def cheapest(nodes: Nodes, roots: tuple[int, ...]) -> int | None:
    """Return the least DAG cost over every combination of nodes, ``None`` if none is acyclic and legal."""
    best: int | None = None
    for chosen in itertools.product(*nodes):
        cost = dag_cost(chosen, roots)
        if cost is not None and (best is None or cost < best):
            best = cost
    return best


def dag_cost(chosen: tuple[tuple[int, tuple[int, ...]] | None, ...], roots: tuple[int, ...]) -> int | None:
    total = 0
    done: set[int] = set()

    def visit(c: int, above: frozenset[int]) -> bool:
        nonlocal total
        if c in above:
            return False
        if c in done:
            return True
        node = chosen[c]
        if node is None or not all(visit(k, above | {c}) for k in node[1]):
            return False
        done.add(c)
        total += node[0]
        return True

    return total if all(visit(r, frozenset()) for r in roots) else None


def cost_of_picks(nodes: Nodes, found: Solution, roots: tuple[int, ...]) -> int | None:
    chosen = tuple(nodes[c][found.picks[c]] if c in found.picks else None for c in range(len(nodes)))
    return dag_cost(chosen, roots)


@pytest.mark.parametrize("cyclic", [False, True])
def test_exact_solver_finds_the_brute_force_optimum(cyclic: bool) -> None:
    solved = 0
    for seed in range(60):
        nodes, roots = random_nodes(seed, cyclic)
        best = cheapest(nodes, roots)
        p = problem(nodes, roots)
        assert bool(p.infeasible) == (best is None)
        if best is None:
            continue
        found = solve_exact(p, 10.0)
        assert found.cost == best and found.proved
        assert cost_of_picks(nodes, found, roots) == best
        solved += 1
    assert solved > 20


@pytest.mark.parametrize("limit", [0.0, 0.001])
@pytest.mark.parametrize("cyclic", [False, True])
def test_exact_solver_without_time_gives_a_complete_choice_and_a_bound(cyclic: bool, limit: float) -> None:
    for seed in range(60):
        nodes, roots = random_nodes(seed, cyclic)
        best = cheapest(nodes, roots)
        if best is not None:
            p = problem(nodes, roots)
            found = solve_exact(p, limit)
            assert cost_of_picks(nodes, found, roots) == found.cost
            assert found.bound <= best <= found.cost <= solve(p).cost


@pytest.mark.parametrize("optimal", [False, True])
def test_what_the_solver_leaves_out_is_no_choice_and_proves_nothing(
    monkeypatch: pytest.MonkeyPatch, optimal: bool
) -> None:
    nodes, roots = shared_helper()
    first, better = problem(nodes, roots), Solution({0: 1, 1: 1, 2: 0}, 18, 7)
    monkeypatch.setattr(ilp, "solve", lambda p: better)
    for left in ({}, {0: first.classes[0][1]}):
        monkeypatch.setattr(ilp._Model, "run", lambda self, limit, left=left: (optimal, 5, left))
        found = solve_exact(first, 1.0)
        assert cost_of_picks(nodes, found, roots) == found.cost == 18
        assert found.bound == 7 and not found.proved


@pytest.mark.parametrize("cyclic", [False, True])
def test_heuristic_is_between_optimum_and_greedy_and_its_bound_is_a_bound(cyclic: bool) -> None:
    proved = 0
    for seed in range(400):
        nodes, roots = random_nodes(seed, cyclic)
        p = problem(nodes, roots)
        if p.infeasible:
            continue
        best = cheapest(nodes, roots)
        assert best is not None
        found = solve(p)
        assert cost_of_picks(nodes, found, roots) == found.cost
        first = cost_of(greedy(p), p.roots)
        assert first is not None and best <= found.cost <= first[0]
        assert found.bound <= best
        if found.proved:
            assert found.cost == best
            proved += 1
    assert proved > 100


def test_reductions_keep_the_optimum() -> None:
    for seed in range(200):
        nodes, roots = random_nodes(seed, seed % 2 == 0)
        p = problem(nodes, roots)
        if not p.infeasible:
            small = reduce(p)
            assert _optimum(small) == cheapest(nodes, roots)


def _optimum(p: Problem) -> int:
    names = list(p.classes)
    costs = []
    for chosen in itertools.product(*(p.classes[c] for c in names)):
        found = cost_of(dict(zip(names, chosen)), p.roots)
        if found is not None:
            costs.append(found[0])
    return min(costs)


def shared_helper() -> tuple[Nodes, tuple[int, ...]]:
    """Two roots, each with a private version (10) or a cheap step (3) on a helper (12) that both could share."""
    nodes: Nodes = [
        [(10, ()), (3, (2,))],
        [(10, ()), (3, (2,))],
        [(12, ())],
    ]
    return nodes, (0, 1)


def test_a_shared_helper_is_opened_although_every_class_alone_prefers_its_own_version() -> None:
    nodes, roots = shared_helper()
    p = problem(nodes, roots)
    alone = cost_of(greedy(p), roots)
    assert alone is not None and alone[0] == 20
    assert improve(p, greedy(p))[1] == 18
    assert solve(p).cost == solve_exact(p, 10.0).cost == 18


def test_a_cycle_of_equal_casts_is_never_its_own_support() -> None:
    # 0 and 1 are each made from the other for nothing, or from 2 at a price.
    nodes: Nodes = [[(0, (1,)), (9, (2,))], [(0, (0,)), (5, (2,))], [(1, ())]]
    p = problem(nodes, (0, 1))
    for found in (solve(p), solve_exact(p, 10.0)):
        assert found.cost == 6 and cost_of_picks(nodes, found, (0, 1)) == 6


def test_an_underivable_root_is_reported_and_a_self_loop_is_dropped() -> None:
    nodes: Nodes = [[(1, (1,))], [(1, (0,))], [(2, (2,)), (3, ())]]
    assert problem(nodes, (0, 2)).infeasible == {0}
    assert solve(problem(nodes, (2,))).cost == 3


def test_the_choice_is_the_same_every_time() -> None:
    for seed in range(50):
        nodes, roots = random_nodes(seed, True)
        p = problem(nodes, roots)
        if not p.infeasible:
            assert solve(p) == solve(problem(nodes, roots))
            assert list(solve(p).picks) == list(solve(p).picks)
