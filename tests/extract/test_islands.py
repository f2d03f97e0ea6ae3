"""Collapsing islands keeps the optimum; chains of composites are settled by it alone."""

from __future__ import annotations

import itertools
import random

import pytest
import tilegg
from tilegg.extract.choices import Choice, Problem
from tilegg.extract.dag import cost_of, problem, solve
from tilegg.extract.islands import islands


def best(p: Problem) -> int:
    """The least cost of any choice, by trying all."""
    names = list(p.classes)
    found = []
    for options in itertools.product(*(p.classes[c] for c in names)):
        priced = cost_of(dict(zip(names, options)), p.roots)
        if priced is not None:
            found.append(priced[0])
    return min(found)


def random_problem(seed: int) -> Problem:
    """Classes that mostly need later ones, some with two or three choices, sometimes with a cycle."""
    rng = random.Random(seed)
    count = rng.randint(5, 12)
    nodes: list[list[tuple[int, tuple[int, ...]] | None]] = []
    for c in range(count):
        later = list(range(c + 1, count))
        options: list[tuple[int, tuple[int, ...]] | None] = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            needs = rng.sample(later, min(len(later), rng.randint(0, 3)))
            if rng.random() < 0.1:
                needs.append(rng.randrange(count))
            options.append((rng.choice((1, 1, 7, 20, 21)), tuple(needs)))
        nodes.append(options)
    nodes[-1] = [(1, ())]
    return problem(nodes, (0, min(1, count - 1)))


@pytest.mark.parametrize("seed", range(300))
def test_the_optimum_is_kept(seed: int) -> None:
    p = random_problem(seed)
    if p.infeasible:
        return
    collapsed = islands(p)
    assert best(collapsed) == best(p)
    solution = solve(p)
    assert solution.bound <= best(p) <= solution.cost
    assert set(collapsed.classes) <= set(p.classes) and collapsed.roots == p.roots


def turning_problem(seed: int) -> Problem:
    """One root on top of classes most of which have several choices and need each other in circles."""
    rng = random.Random(seed)
    count = rng.randint(4, 8)
    nodes: list[list[tuple[int, tuple[int, ...]] | None]] = [
        [
            (rng.choice((1, 1, 7, 20, 21)), tuple(rng.sample(range(1, count), rng.randint(0, 2))))
            for _ in range(rng.choice((1, 2, 2, 3)))
        ]
        for _ in range(count)
    ]
    return problem(nodes, (0,))


def test_circles_are_no_ways() -> None:
    """Below a single root all is one island, so that collapsing finds the optimum or leaves all open."""
    settled = 0
    for seed in range(400):
        p = turning_problem(seed)
        if not p.infeasible:
            collapsed = islands(p)
            assert best(collapsed) == best(p) == solve(p).cost
            settled += bool(p.open) and not collapsed.open
    assert settled > 150


def test_an_island_with_too_many_ways_is_left_alone() -> None:
    """Seven helpers, each of which may need either of two classes besides: no way is better than another."""
    helpers = range(1, 8)
    classes = {0: [Choice(1, tuple(helpers), ((0, 0),)), Choice(900, (20,), ((0, 1),))]}
    classes[20] = [Choice(1, (), ((20, 0),))]
    for h in helpers:
        classes[h] = [Choice(5, (10 + h,), ((h, 0),)), Choice(4, (30 + h,), ((h, 1),))]
        for k in (10 + h, 30 + h):
            classes[k] = [Choice(2, (20,), ((k, 0),)), Choice(3, (), ((k, 1),))]
    # The roots make all that helpers need shared.
    p = Problem(classes, (0, *(k for k in classes if 10 < k < 20 or k > 30)))
    assert len(islands(p).classes[0]) == 2 and set(islands(p).classes) == set(classes)
    assert solve(p).proved


def test_picks_of_a_collapsed_class_begin_with_its_own() -> None:
    p = Problem(
        {
            0: [Choice(5, (1, 2), ((0, 0),)), Choice(50, (3,), ((0, 1),))],
            1: [Choice(3, (2,), ((1, 0),))], 2: [Choice(1, (), ((2, 0),))], 3: [Choice(1, (), ((3, 0),))],
        },
        (0,),
    )  # fmt: skip
    (choice,) = islands(p).classes[0]
    assert choice.cost == 9 and choice.picks[0] == (0, 0) and set(choice.picks) == {(0, 0), (1, 0), (2, 0)}


@pytest.mark.parametrize("arch", ["a5", "a2a3"])
def test_a_chain_of_composites_is_proved_optimal(arch: str) -> None:
    chain = "".join(f"    y{i} = pl.tile.{'sin' if i % 2 else 'cos'}(y{i - 1})\n" for i in range(1, 21))
    text = (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        "def k(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
        f"    y0 = pl.tile.load(x, [0, 0], [16, 64])\n{chain}    return pl.tile.store(y20, [0, 0], out)\n"
    )
    lowered = tilegg.lower(tilegg.parse(text), arch, memo=None)
    assert lowered.optimum == "proved"
