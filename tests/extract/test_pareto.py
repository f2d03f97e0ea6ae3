"""The Pareto front of a program's lowerings."""

from __future__ import annotations

import itertools
import json

import pytest
from tilegg.extract import loss
from tilegg.extract.lower import lower
from tilegg.extract.lowered import Totals
from tilegg.extract.pareto import Point, front, pareto, render
from tilegg.extract.recheck import Check, Rechecker
from tilegg.extract.report_html import to_html
from tilegg.extract.report_plots import program_dots
from tilegg.extract.trajectory import Trajectory
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP16, FP32, INT8, INT32, INT64, UINT16
from tilegg.ir.program import Program
from tilegg.ir.text import parse

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


def fused() -> Program:
    """A product and a sum, which one instruction does with one rounding."""
    return kernel("pl.add(pl.mul(t, 3.3), u)")


def kernel(value: str) -> Program:
    return parse(f"""
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[16, 64], pl.FP32],
          out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 64])
        u = pl.load(y, [0, 0], [16, 64])
        return pl.store({value}, [0, 0], out)
""")


def test_a_program_with_roundings_left_out_is_not_called_exact() -> None:
    fast, exact = pareto(fused(), "a5")
    assert fast.cycles < exact.cycles and {c for _, c in fast.runs} == {"contracted"}
    assert not fast.loss.exact and fast.error is not None and 0.001 < fast.error < 0.5
    assert exact.loss.exact and exact.error == 0 and {c for _, c in exact.runs} == {"faithful", "exact"}
    assert [p.to_json()["exact"] for p in (fast, exact)] == [False, True]
    first, second = render([fast, exact]).splitlines()[1:]
    assert "exact" not in first and "%" in first and " exact " in second


def test_a_recipe_with_a_stated_bound_is_not_called_exact() -> None:
    for p in pareto(kernel("pl.add(pl.tile.sin(t), pl.tile.cos(u))"), "a5"):
        assert not p.loss.exact and p.error and "  exact  " not in render([p])


def test_what_cannot_be_run_has_no_known_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rechecker, "check", lambda *_: Check(failure="no"))
    fast, exact = pareto(fused(), "a5")
    assert fast.error is None and fast.to_json()["error"] is None and "not known" in render([fast])
    assert exact.loss.exact
    # It has no place in a plot, whose axis stands for exact ones.
    assert [d.cycles for d in program_dots([fast, exact], ())] == [exact.cycles]
    page = to_html(exact.lowered, "", points=[fast, exact])
    assert "not known" in page


def test_no_difference_seen_is_less_than_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rechecker, "check", lambda *_: Check(8, 100, 0))
    fast, exact = pareto(fused(), "a5")
    assert fast.error == 0 and not fast.loss.exact and "none seen" in render([fast])
    dear = Point(fast.lowered, ())
    assert front([exact, dear]) == [dear, exact]


def test_steps_that_are_not_found_leave_the_error_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "derivation", lambda *_, **__: Trajectory("a5", "", "", Totals(), missing=["r"]))
    assert loss.loss_of(lower(fused(), "a5", contract="contracted")) == loss.Loss(False, None)
    assert loss.loss_of(lower(fused(), "a5")) == loss.Loss(True, 0)


@pytest.mark.parametrize(("found", "words"), [(loss.Loss(False, 2e-7), "2e-07"), (loss.Loss(False, 0.25), "25.000%")])
def test_small_shares_keep_their_digits(found: loss.Loss, words: str) -> None:
    assert str(found) == words
