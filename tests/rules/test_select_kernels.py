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
