"""Selections of whole kernels: what facts make of them, what must stay, and that targets compute what was written."""

from __future__ import annotations

import pytest
import tilegg
from tilegg.extract.lowered import Lowered
from tilegg.testing import assert_lowering_correct

ARCHES = ["a2a3", "a5"]


def kernel(*steps: str, dtype: str = "FP32") -> str:
    """A kernel of steps on tiles ``t`` and ``u`` whose last one is ``r``."""
    body = "\n".join(f"    {s}" for s in steps)
    of = f"pl.Tensor[[32, 64], pl.{dtype}]"
    return f"""
import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(x: {of}, y: {of}, out: pl.Out[{of}]):
    t = pl.tile.load(x, [0, 0], [32, 64])
    u = pl.tile.load(y, [0, 0], [32, 64])
{body}
    return pl.tile.store(r, [0, 0], out)
"""


def lowered(text: str, arch: str) -> Lowered:
    assert_lowering_correct(text, arch, contract="exact", inputs=6)
    return tilegg.lower(tilegg.parse(text), arch, contract="exact", memo=None)


def work(arch: str, *steps: str, dtype: str = "FP32") -> list[str]:
    """Return the instructions between loads and stores."""
    found = lowered(kernel(*steps, dtype=dtype), arch)
    names = [i.op.name.removeprefix("tile.") for f in found.functions for i in f.instructions if i.count]
    return [n for n in names if n not in ("load", "store")]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("how", "name"), [("gt", "maximum"), ("ge", "maximum"), ("lt", "minimum"), ("le", "minimum")])
def test_promises_make_extremes_of_comparisons(how: str, name: str, arch: str) -> None:
    steps = ("at = pl.tile.assume(t, 1.0, 5.0)", "bu = pl.tile.assume(u, 2.0, 9.0)",
             f'm = pl.tile.cmp(at, bu, cmp_type="{how}")', "r = pl.tile.select(m, at, bu)")  # fmt: skip
    assert work(arch, *steps) == [name]
    bounded = ("at = pl.tile.maximums(pl.tile.assume(t, -5.0, 5.0), 1.0)", *steps[1:])
    assert work(arch, *bounded) == ["maximums", name]


@pytest.mark.parametrize("arch", ARCHES)
def test_zeros_of_both_signs_keep_the_comparison(arch: str) -> None:
    steps = ("at = pl.tile.assume(t, -1.0, 5.0)", "bu = pl.tile.assume(u, 0.0, 9.0)",
             "m = pl.tile.cmp(at, bu, cmp_type=4)", "r = pl.tile.select(m, at, bu)")  # fmt: skip
    assert work(arch, *steps) == ["cmp", "sel"]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("sum_of", ["add", "sub"])
def test_sums_that_cannot_be_negative_zero_are_rectified(sum_of: str, arch: str) -> None:
    steps = ("at = pl.tile.assume(t, {}, 5.0)", "bu = pl.tile.assume(u, -3.0, 4.0)",
             f"r = pl.tile.maximums(pl.tile.{sum_of}(at, bu), 0.0)")  # fmt: skip
    assert work(arch, steps[0].format(1.0), *steps[1:]) == [sum_of, "relu"]
    assert work(arch, steps[0].format(-1.0), *steps[1:]) == [sum_of, "maximums"]


def clamp(first: str, second: str, lo: float, hi: float, of: str = "pl.tile.assume(t, -100, 100)") -> list[str]:
    """Steps of a clamp whose comparisons both read the number; ``first`` and ``second`` name the bounds in order."""
    bounds = {"lower": ("lt", "le", lo), "upper": ("gt", "ge", hi)}
    steps = [f"c = {of}"]
    for i, (side, given, name) in enumerate(((first, "c", "v"), (second, "v", "r"))):
        how, bound = bounds[side][i], bounds[side][2]
        steps += [f'm{i} = pl.tile.cmps(c, {bound}, cmp_type="{how}")',
                  f"{name} = pl.tile.select(m{i}, {bound}, {given})"]  # fmt: skip
    return steps


ORDERS = [("lower", "upper"), ("upper", "lower")]
#: Numbers that are never -0.
WHOLE = "pl.tile.cast(pl.tile.cast(pl.tile.assume(t, -100, 100), target_type=pl.INT32), target_type=pl.FP32)"


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("order", ORDERS)
def test_a_clamp_by_two_comparisons_of_one_number(order: tuple[str, str], arch: str) -> None:
    both = ["maximums", "minimums"] if order[0] == "lower" else ["minimums", "maximums"]
    assert work(arch, *clamp(*order, -1.0, 1.0)) == both
    assert work(arch, *clamp(*order, 2.0, 2.0)) == both
    of_integers = clamp(*order, -3, 5, "pl.tile.adds(t, 1)")
    assert work(arch, *of_integers, dtype="INT32") == ["adds", *both]


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bounds", [(0.0, 6.0), (-1.0, 0.0)])
def test_bounds_of_zero_need_numbers_that_are_no_negative_zero(
    bounds: tuple[float, float], order: tuple[str, str], arch: str
) -> None:
    found = work(arch, *clamp(*order, *bounds, WHOLE))
    assert "sels" not in found and found.count("maximums") + found.count("relu") == 1
    assert "sels" in work(arch, *clamp(*order, *bounds))


@pytest.mark.parametrize("arch", ARCHES)
def test_a_clamp_of_what_may_be_no_number_and_bounds_out_of_order_stay_selections(arch: str) -> None:
    assert work(arch, *clamp("lower", "upper", -1.0, 1.0, "pl.tile.muls(t, 2.0)")).count("cmps") == 2
    # Beyond both bounds, the second comparison decides: 3 lies above 1 and becomes 1, though the lower bound is 2.
    assert work(arch, *clamp("lower", "upper", 2.0, 1.0)) == ["maximums", "cmps", "sels"]


INVERTED = ["m = pl.tile.cmps(t, 0.5, cmp_type=4)", "n = pl.tile.mask_not(m)"]


@pytest.mark.parametrize("arch", ARCHES)
def test_an_inverted_mask_swaps_the_branches(arch: str) -> None:
    assert work(arch, *INVERTED, "r = pl.tile.select(n, 0.25, t)") == ["cmps", "sels"]
    assert work(arch, *INVERTED, "r = pl.tile.select(n, u, t)") == ["cmps", "sel"]
    assert work(arch, *INVERTED, "q = pl.tile.mask_not(n)", "r = pl.tile.select(q, t, 0.25)") == ["cmps", "sels"]
    # The scalar stands where the mask is not 0: making a tile of it costs more than inverting the mask.
    assert work(arch, *INVERTED, "r = pl.tile.select(n, t, 0.25)") == ["cmps", "mask_not", "sels"]


@pytest.mark.parametrize("arch", ARCHES)
def test_an_inverted_comparison_is_the_inverse_one_where_nothing_is_nan(arch: str) -> None:
    steps = ("c = pl.tile.assume(t, -9.0, 9.0)", "m = pl.tile.cmps(c, 0.5, cmp_type=4)", "n = pl.tile.mask_not(m)")
    assert work(arch, *steps, "r = pl.tile.select(n, t, 0.25)") == ["cmps", "sels"]
    assert work(arch, *steps, "r = pl.tile.select(n, 0.5, c)") == ["maximums"]
