"""Recipes of sine and cosine: the page's steps, stated errors, special values, and their measured figures."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilegg.ir.dtypes import FP32
from tilegg.rules import library
from tilegg.rules.check import check_rule
from tilegg.rules.check_bound import bound_failures
from tilegg.rules.check_eval import Valued, evaluate
from tilegg.rules.recipes import sincos
from tilegg.rules.recipes.terms import SHAPE, X, number
from tilegg.rules.rule import RULES, Bound, Rule, rule

_ = library
RECIPES = [r for r in RULES.values() if r.bound is not None]
NAMES = [r.name for r in RECIPES]
TRUE = {"tile.sin": np.sin, "tile.cos": np.cos}
BENCH = Path(__file__).parents[2] / "benchmarks"


def compute(r: Rule, x: Any) -> Any:
    """A recipe's results by the declared meanings of its operations."""
    with np.errstate(all="ignore"):
        return evaluate(r.rhs, {SHAPE: 0}, {X: Valued.tile(np.asarray(x, np.float32), FP32)}).data.reshape(-1)


def test_failures_are_told_in_plain_numbers() -> None:
    with np.errstate(all="ignore"):
        lists = ([math.nan, 1.5], [math.nan, 0.5], [2.5, 0.25])
        x, want, got = (Valued.tile(np.array(v, np.float32), FP32) for v in lists)
    nan, far = bound_failures("r", Bound(((2.0, 0.01),)), x, want, got)
    assert nan == "r: NaN gives 2.5" and far == "r: x=1.5 gives 0.25 for 0.5, stated error 0.01"


def beyond() -> list[tuple[str, float, float, float, float]]:
    """The rows of the documented table: pattern of names, limits of |x|, error, largest result."""
    text = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text()
    part = text.partition("<!-- beyond -->")[2].partition("<!-- /beyond -->")[0].replace("\\|x\\|", "x")
    head, _, *rows = [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in part.strip().splitlines()]
    found = []
    for row in rows:
        low, high = (2.0 ** int(word.removeprefix("2^")) for word in row[0].split(" to "))
        base, _, power = row[-1].partition(" + 2^")
        top = float(base) + (2.0 ** int(power) if power else 0.0)
        found += [(name, low, high, float(cell), top) for name, cell in zip(head[1:-1], row[1:-1])]
    return found


@pytest.mark.parametrize(("pattern", "low", "high", "error", "top"), beyond())
def test_errors_beyond_the_range_are_those_in_the_docs(
    pattern: str, low: float, high: float, error: float, top: float
) -> None:
    rng = np.random.default_rng(7)
    plain = np.exp2(rng.uniform(math.log2(low), math.log2(high), 60_000))
    turns = np.rint(rng.uniform(low, high, 20_000) / (math.pi / 2)) * (math.pi / 2)
    x = np.concatenate([plain, turns]).clip(low, high).astype(np.float32)
    x = np.concatenate([x, -x])
    worst = 0.0
    for r in [r for r in RECIPES if fnmatch(r.name, pattern) and "turn" not in r.name]:
        got, want = compute(r, x).astype(np.float64), TRUE[r.lhs.op](x.astype(np.float64))
        assert np.abs(got).max() <= top, r.name
        worst = max(worst, float(np.abs(got - want).max()))
    assert error / 3 < worst <= error


def test_the_published_arguments() -> None:
    """What the docs say of 1e6 and 1e10, and what is right."""
    of = {r.name: compute(r, [1e4, 1e5, 1e6, 1e10, -0.0, 0.0, math.inf, math.nan]) for r in RECIPES}
    near = [of["sin.fused"][i] for i in range(3)]
    assert near == pytest.approx([-0.305614389, 0.035748798, -0.349993502], abs=1e-7)
    assert of["sin.reference"][2] == np.float32(-0.379087806) and of["sin.reference"][3] == math.inf
    assert of["sin.fused"][3] == pytest.approx(-1.9e20, rel=0.01)
    assert np.signbit(of["sin.fused"][4]) and not np.signbit(of["sin.reference"][4])
    assert all(abs(of[n][5] - 1) <= 2**-23 for n in of if n.startswith("cos"))
    assert np.isnan(of["sin.fused"][6]) and np.isinf(of["sin.reference"][6])
    assert all(np.isnan(v[7]) for v in of.values())


def limit_of(r: Rule) -> float:
    bench = load_bench()
    return float(bench.domain(r))


def load_bench() -> Any:
    # The benchmark imports its neighbours.
    sys.path.insert(0, str(BENCH))
    spec = importlib.util.spec_from_file_location("bench_recipes", BENCH / "bench_recipes.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sample(limit: float, count: int = 20_000) -> Any:
    """Arguments of all magnitudes, and near multiples of pi/2, where errors are largest."""
    rng = np.random.default_rng(5)
    plain = rng.uniform(-limit, limit, count)
    small = np.exp(rng.uniform(math.log(1e-6), math.log(limit), count)) * rng.choice([-1, 1], count)
    k = rng.integers(-int(limit / (math.pi / 2)), int(limit / (math.pi / 2)) + 1, count)
    turns = k * (math.pi / 2) + rng.normal(0, 1e-3, count)
    found = np.concatenate([plain, small, turns]).astype(np.float32)
    return found[np.abs(found) <= limit]


# -- the page ------------------------------------------------------------------------------------------------------

F = np.float32


def _sign(k: Any) -> Any:
    half_k = k * F(0.5)
    floor_hk_f = np.floor(half_k).astype(np.int32).astype(F)
    sign_pre = floor_hk_f * F(4.0) + k * F(-2.0)
    return sign_pre + F(1.0)


def _horner(t: Any) -> Any:
    t2 = t * t
    p_r0 = t2 * F(2.604926501e-6)
    p_r1 = p_r0 + F(-1.980894471e-4)
    p_r2 = p_r1 * t2 + F(8.333049340e-3)
    p_r3 = p_r2 * t2 + F(-1.666665792e-1)
    p_one = p_r3 * t2 + F(1.0)
    return t * p_one


def page_sin(x: Any) -> Any:
    """The composite page's sine, step by step."""
    wide = (x * F(0.31830988732818603515625)).astype(np.float64)
    k = np.trunc(wide + np.copysign(0.5, wide)).astype(np.int32).astype(F)
    t0 = x - k * F(3.140625)
    t1 = t0 - k * F(0.0009670257568359375)
    t2 = t1 - k * F(6.2771141529083251953125e-7)
    t3 = t2 - k * F(1.21644916362129151821e-10)
    t4 = t3 - k * F(-1.0290623200529979163e-13)
    return _sign(k) * _horner(t4)


def page_cos(x: Any) -> Any:
    """The composite page's cosine, step by step: half pi enters between its parts."""
    k = np.rint(x * F(0.31830988732818603515625) + F(0.5)).astype(np.int32).astype(F)
    t = x - k * F(3.140625)
    t = t - k * F(0.0009670257568359375)
    t = t + F(1.57079637050628662109375)
    t = t - k * F(6.2771141529083251953125e-7)
    t = t - k * F(1.21644916362129151821e-10)
    t = t - k * F(-1.0290623200529979163e-13)
    t = t + F(-4.371139000189375e-8)
    return _sign(k) * _horner(t)


@pytest.mark.parametrize(("name", "page"), [("sin.reference", page_sin), ("cos.reference", page_cos)])
def test_reference_recipes_are_the_pages(name: str, page: Any) -> None:
    x = np.concatenate([sample(131072.0), [0.0, -0.0, 1.0, 1e4, 1e5, 0.5 * math.pi]]).astype(np.float32)
    assert compute(RULES[name], x).tobytes() == page(x).tobytes()


def test_reference_takes_31_and_34_operations() -> None:
    assert "≈ 31 operations" in RULES["sin.reference"].equation
    assert "≈ 34 operations" in RULES["cos.reference"].equation


# -- stated errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_errors_stay_within_the_stated_bound(name: str) -> None:
    r = RULES[name]
    assert r.bound is not None
    limit = limit_of(r)
    x = sample(limit)
    error = np.abs(compute(r, x) - TRUE[r.lhs.op](x.astype(np.float64)))
    for within, most in r.bound.errors:
        assert error[np.abs(x) <= within].max() <= most
    assert check_rule(r, samples=8).ok


@pytest.mark.parametrize("name", NAMES)
def test_measured_figures_are_complete_and_below_the_stated_bound(name: str) -> None:
    recorded = json.loads((BENCH / "results" / "recipes.json").read_text())["recipes"][name]
    r = RULES[name]
    assert r.bound is not None and recorded["stride"] == 1
    contract, documented = (recorded[part]["max_abs"] for part in ("contract", "documented"))
    assert contract <= r.bound.errors[0][1] and documented <= r.bound.errors[-1][1]
    reference = json.loads((BENCH / "results" / "recipes.json").read_text())["recipes"][f"{name[:3]}.reference"]
    assert contract <= reference["contract"]["max_abs"] and documented <= reference["documented"]["max_abs"]


@pytest.mark.parametrize("name", NAMES)
def test_the_benchmarks_steps_are_the_declared_meanings(name: str) -> None:
    r = RULES[name]
    x = sample(limit_of(r), 3000)
    with np.errstate(all="ignore"):
        got = load_bench().compiled(r)(x)
    assert got.tobytes() == compute(r, x).tobytes()


def test_fitted_coefficients_are_the_declared_ones() -> None:
    bench = load_bench()
    c, error = bench.fit(lambda t: np.cos(t) - 1, 5, 1.5725, np.ones_like)
    assert np.allclose(c, sincos.COS, rtol=2e-6) and error < 2.6e-10


# -- special values --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_special_values_are_as_stated(name: str) -> None:
    r = RULES[name]
    assert r.bound is not None
    special = r.bound.special
    nan, minus, plus, inf = compute(r, [math.nan, -0.0, 0.0, math.inf])
    assert math.isnan(nan)
    if r.lhs.op == "tile.sin":
        assert plus == 0 and not np.signbit(plus)
        assert minus == 0 and np.signbit(minus) == ("sin(-0) is -0" in special)
        assert ("sin(-0) is -0" in special) != ("sin(-0) is +0" in special)
    else:
        assert plus == minus and abs(plus - 1) <= 2**-23
    if "infinities give NaN" in special:
        assert math.isnan(inf)
    if "infinities give infinities" in special:
        assert math.isinf(inf)


@pytest.mark.parametrize("name", NAMES)
def test_results_exceed_one_only_where_stated(name: str) -> None:
    r = RULES[name]
    assert r.bound is not None
    limit = limit_of(r)
    k = np.arange(-int(limit / math.pi) - 1, int(limit / math.pi) + 2)
    offset = math.pi / 2 if r.lhs.op == "tile.sin" else 0.0
    tops = np.concatenate([(k * math.pi + offset + d) for d in (-3e-4, -1e-4, 0.0, 1e-4, 3e-4)]).astype(np.float32)
    x = np.concatenate([sample(limit), tops[np.abs(tops) <= limit]])
    top = float(np.abs(compute(r, x)).max())
    assert ("never exceeds 1" in r.bound.special) != ("can exceed 1 by 2**-23" in r.bound.special)
    assert top <= (1.0 if "never exceeds 1" in r.bound.special else 1 + 2**-23)


def test_large_arguments_lose_accuracy_little_by_little() -> None:
    x = np.array([1e4, 1e5, 1e6, 1.2e7], np.float32)
    true = np.sin(x.astype(np.float64))
    reference = np.abs(compute(RULES["sin.reference"], x) - true)
    fused = np.abs(compute(RULES["sin.fused"], x) - true)
    assert reference[0] < 2e-7 and reference[2] > 0.02
    assert fused[:3].max() < 2e-7 and fused[3] < 1e-5


# -- declaring -------------------------------------------------------------------------------------------------------


def test_a_bound_belongs_to_bounded_rules_only() -> None:
    lhs = RULES["sin.fused"].lhs
    with pytest.raises(ValueError, match="bound"):
        rule("no.bound", lhs=lhs, rhs=X, contract="bounded", reason="")
    with pytest.raises(ValueError, match="bound"):
        rule("a.bound", lhs=lhs, rhs=X, contract="exact", reason="", bound=Bound(((1.0, 1.0),)))
    assert not {"no.bound", "a.bound"} & set(RULES)


def test_constants_are_fp32_numbers() -> None:
    with pytest.raises(ValueError, match="no FP32 number"):
        number(0.1)
    assert number(0.5).args == number(0.5).args != number(-0.5).args
    assert math.pi > sincos.PI_HIGH and sincos.PI_LOW > 0
    assert abs(sincos.PI_HIGH + sincos.PI_LOW - math.pi) < 1e-14
