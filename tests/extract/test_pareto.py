"""The Pareto front of a program's lowerings."""

from __future__ import annotations

import itertools
import json

import pytest
from tilegg.extract.pareto import Point, front, pareto, render
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP16, FP32, INT8, INT32, INT64, UINT16
from tilegg.ir.program import Program

from .programs import Maker, chain, random_program


def mixed() -> Program:
    """A cast with a short inexact and a longer exact chain, and one with a single choice."""
    m = Maker()
    x = m.load(INT32)
    m.store(m.cast(x, FP16))
    m.store(m.cast(m.load(FP32), BF16))
    return m.program()


def test_short_inexact_and_cheap_exact_are_both_on_the_front() -> None:
    points = pareto(mixed(), "a2a3")
    assert len(points) == 2
    fast, short = points
    assert fast.cycles < short.cycles and fast.instructions > short.instructions
    assert (fast.inexact, fast.error) == (0, 0.0)
    assert short.inexact == 1 and 0.01 < short.error < 0.1
    assert ("instructions", "faithful") in short.runs and ("cycles", "exact") in fast.runs


@pytest.mark.parametrize("seed", range(6))
def test_no_point_beats_another(seed: int) -> None:
    try:
        points = pareto(random_program(seed, "a5"), "a5")
    except TileggError:
        return
    for p, q in itertools.permutations(points, 2):
        assert not all(a <= b for a, b in zip(p.axes, q.axes, strict=True))
    assert [p.axes for p in points] == sorted(p.axes for p in points)
    assert sum(len(p.runs) for p in points) <= 9


def test_front_drops_what_is_beaten_or_equal() -> None:
    class Fake(Point):
        def __init__(self, *axes: float) -> None:
            self._axes = axes

        @property
        def axes(self) -> tuple[float, int, float]:
            return self._axes  # type: ignore[return-value]

    kept = front([Fake(3, 3, 0), Fake(1, 5, 0.1), Fake(1, 5, 0.2), Fake(4, 3, 0), Fake(3, 3, 0), Fake(2, 4, 0.1)])
    assert [p.axes for p in kept] == [(1, 5, 0.1), (2, 4, 0.1), (3, 3, 0)]


def test_one_point_where_all_agree() -> None:
    (point,) = pareto(chain(BF16, FP32, BF16), "a5")
    assert len(point.runs) == 9
    assert "exact" in render([point])
    assert json.loads(json.dumps(point.to_json()))["error"] == 0


def test_contracts_without_a_lowering_are_left_out() -> None:
    points = pareto(chain(INT64, (BF16, "rint")), "a2a3")
    assert {c for p in points for _, c in p.runs} == {"faithful", "contracted"}
    with pytest.raises(TileggError) as caught:
        pareto(chain(UINT16, INT8), "a5")
    assert caught.value.diagnostics[0].code == "TG020"
