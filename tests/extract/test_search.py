"""The branch and bound against brute force, from a start that is not the best; independent parts; giving up."""

from __future__ import annotations

import itertools
import random

import pytest
from tilegg.extract.choices import Choice, Problem, Selection, cost_of
from tilegg.extract.dag import greedy, problem
from tilegg.extract.reduce import reduce
from tilegg.extract.search import search


def random_problem(seed: int, cyclic: bool) -> Problem:
    """A few classes with one to three choices, whose needs may lead back in a circle."""
    rng = random.Random(seed)
    count = rng.randint(4, 8)
    nodes: list[list[tuple[int, tuple[int, ...]] | None]] = []
    for c in range(count):
        below = [k for k in range(count) if k != c] if cyclic else list(range(c + 1, count))
        nodes.append(
            [
                (rng.randint(0, 9), tuple(rng.sample(below, min(len(below), rng.randint(0, 3)))))
                for _ in range(rng.randint(1, 3))
            ]
        )
    nodes[-1].append((9, ()))
    return problem(nodes, range(rng.randint(1, 3)))


def selections(p: Problem) -> list[tuple[int, Selection]]:
    """All acyclic choices with their costs."""
    names = list(p.classes)
    found = []
    for options in itertools.product(*(p.classes[c] for c in names)):
        priced = cost_of(dict(zip(names, options)), p.roots)
        if priced is not None:
            found.append(priced)
    return found


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("cyclic", [False, True])
def test_the_optimum_is_found_and_proved_from_the_worst_start(cyclic: bool, reduced: bool) -> None:
    solved = 0
    for seed in range(150):
        p = random_problem(seed, cyclic)
        if p.infeasible:
            continue
        p = reduce(p) if reduced else p
        every = selections(p)
        least, worst = min(cost for cost, _ in every), max(every, key=lambda found: found[0])
        (cost, used), bound = search(p, worst)
        assert cost == bound == least
        priced = cost_of(used, p.roots)
        assert priced is not None and priced[0] == cost
        solved += least < worst[0]
    assert solved > (25 if reduced else 50)


def test_a_start_that_is_the_best_stays() -> None:
    for seed in range(60):
        p = random_problem(seed, seed % 2 == 0)
        if p.infeasible:
            continue
        best = min(selections(p), key=lambda found: found[0])
        assert search(p, best) == (best, best[0])


def test_a_search_that_gives_up_still_has_a_bound() -> None:
    for seed in range(100):
        p = random_problem(seed, seed % 2 == 0)
        if p.infeasible:
            continue
        every = selections(p)
        least = min(cost for cost, _ in every)
        for steps in range(4):
            (cost, _), bound = search(p, max(every, key=lambda found: found[0]), steps)
            assert bound <= least <= cost


def test_costs_of_independent_parts_add_up() -> None:
    """Forty groups of four choices each: their product is out of reach, their sum is not."""
    classes: dict[int, list[Choice]] = {}
    roots = tuple(range(0, 200, 5))
    for r in roots:
        helper = r + 4
        classes[helper] = [Choice(12, (), ((helper, 0),))]
        classes |= {c: [Choice(10, (), ((c, 0),)), Choice(3, (helper,), ((c, 1),))] for c in range(r + 1, helper)}
        classes[r] = [Choice(1, (r + 1, r + 2, r + 3), ((r, 0),))]
    p = Problem(classes, roots)
    start = cost_of(greedy(p), p.roots)
    assert start is not None and start[0] == 40 * 31
    (cost, _), bound = search(p, start, 1_000)
    assert cost == bound == 40 * 22
