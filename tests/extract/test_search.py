"""The branch and bound against brute force, from a start that is not the best; independent parts; giving up."""

from __future__ import annotations

import itertools
import random

import pytest
from tilegg import lower, parse
from tilegg.extract.choices import Choice, Problem, Selection, cost_of
from tilegg.extract.dag import greedy, problem, solve
from tilegg.extract.lowered import Lowered
from tilegg.extract.onviews import OnViews
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


_LONG = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        t = pl.load(x, [0, 0], [8, 8])
        tmp = pl.tile.create([8, 8], pl.FP32)
        u = t
{body}        return pl.store(u, [0, 0], out)
"""


def _lowered(steps: list[str], contract: str) -> Lowered:
    body = "".join(f"        u = {step}\n" for step in steps)
    return lower(parse(_LONG.format(body=body), "k.py"), "a2a3", contract=contract, memo=None)


@pytest.mark.parametrize("contract", ["exact", "contracted"])
def test_a_long_chain_of_fusions_is_proved_although_some_products_are_shared(contract: str) -> None:
    # 0.10 and 0.1, 0.20 and 0.2 are one product each: the chain is one island, with more ways than are listed.
    steps = [f"pl.add(pl.mul(u, {i + 1}.25), pl.mul(t, 0.{i + 1}))" for i in range(60)]
    assert _lowered(steps, contract).optimum == "proved"


def test_tiles_and_their_views_as_lines_are_proved() -> None:
    # Every tile can be made as it is or as a line, each a view of the other.
    rows = "pl.div(u, pl.tile.row_expand(tmp, pl.add(pl.row_sum(u, tmp), 1e-6)))"
    columns = "pl.div(u, pl.tile.col_expand(tmp, pl.add(pl.tile.col_sum(u), 1e-6)))"
    found = _lowered([rows, columns] * 5, "exact")
    assert found.optimum == "proved"
    assert found.totals.cycles < 0.8 * found.plain.cycles


def test_classes_needed_anyway_keep_no_parts_together() -> None:
    # A chain of 30 classes, each with two choices that differ in what else they need.
    nodes: list[list[tuple[int, tuple[int, ...]] | None]] = []
    for i in range(30):
        below = (3 * i + 3,) if i < 29 else ()
        nodes += [[(5, (*below, 3 * i + 1)), (2, (*below, 3 * i + 2))], [(1, ())], [(7, ())]]
    p = problem(nodes, (0,))
    worst = cost_of({c: options[-1] for c, options in p.classes.items()}, p.roots)
    assert worst is not None
    (cost, _), bound = search(p, worst, steps=200)
    assert cost == bound == 30 * 6


def viewed_problem(seed: int) -> Problem:
    """A few steps, each made in either or both of two forms that are views of each other, with shared helpers."""
    rng = random.Random(seed)
    steps = rng.randint(2, 4)
    square, line = [2 * i for i in range(steps)], [2 * i + 1 for i in range(steps)]
    helper, leaf = 2 * steps, 2 * steps + 1
    nodes: list[list[tuple[int, tuple[int, ...]] | None]] = []
    for i in range(steps):
        forms = [square, line] if rng.random() < 0.7 else [square]
        for form in (square, line):
            made: list[tuple[int, tuple[int, ...]] | None] = []
            for _ in range(rng.randint(1, 2) if form in forms else 0):
                needs = [form[k] for k in range(i + 1, steps) if rng.random() < 0.6]
                needs += [k for k in (helper, leaf) if rng.random() < 0.4]
                made.append((256 * rng.randint(1, 9), tuple(needs)))
            nodes.append([*made, (1, ((line if form is square else square)[i],))])
    nodes += [[(256 * rng.randint(1, 9), ()), (256 * rng.randint(1, 9), (leaf,))], [(1, ())]]
    return problem(nodes, (rng.choice([0, 1]),))


def test_views_left_out_bound_all_choices_and_lead_to_the_best() -> None:
    with_views = 0
    for seed in range(200):
        p = viewed_problem(seed)
        least = min(cost for cost, _ in selections(p))
        views = OnViews(p)
        with_views += bool(views.views)
        relaxed = solve(views.problem())
        assert relaxed.proved and relaxed.cost <= least
        made = views.selection(relaxed)
        assert made is not None and made[0] >= least
        found = solve(p)
        assert found.proved and found.cost // 256 == least // 256
        assert found.cost - least < 16
    assert with_views > 150
