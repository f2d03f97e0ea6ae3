"""Operations that change nothing, and steps that one step does: what is left of them, and where they must stay."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tilegg
from tilegg.ir.program import Const, Op, walk
from tilegg.testing import assert_lowering_correct


def kernel(dtype: str, *steps: str) -> str:
    """A kernel of steps on a tile ``t`` whose last one is ``r``."""
    body = "\n".join(f"        {s}" for s in steps)
    return f"""
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[4, 64], pl.{dtype}], out: pl.Out[pl.Tensor[[4, 64], pl.{dtype}]]):
        t = pl.tile.load(x, [0, 0], [4, 64])
{body}
        o = pl.tile.store(r, [0, 0], out)
        return o
"""


def left(dtype: str, *steps: str) -> list[str]:
    """Return the operations of the lowered kernel between load and store, with their literals."""
    text = kernel(dtype, *steps)
    assert_lowering_correct(text, "a5", contract="exact", inputs=4)
    made = tilegg.lower(tilegg.parse(text), "a5", contract="exact", memo=None)
    ops = [s for s in walk(made.program.functions[0].body) if isinstance(s, Op)]
    return [
        " ".join([s.name.removeprefix("tile."), *(repr(o.value) for o in s.operands if isinstance(o, Const))])
        for s in ops if s.name not in ("tile.load", "tile.store")
    ]  # fmt: skip


def one(name: str, literal: str) -> str:
    return f"r = pl.tile.{name}(t, {literal})"


def two(name: str, first: str, second: str) -> tuple[str, str]:
    return f"a = pl.tile.{name}(t, {first})", f"r = pl.tile.{name}(a, {second})"


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
@pytest.mark.parametrize("step", [("muls", "1.0"), ("divs", "1.0"), ("adds", "-0.0"), ("subs", "0.0")])
def test_numbers_that_change_no_float(dtype: str, step: tuple[str, str]) -> None:
    assert left(dtype, one(*step)) == []


@pytest.mark.parametrize("step", [("muls", "1"), ("divs", "1"), ("adds", "0"), ("subs", "0"), ("ors", "0"),
                                  ("xors", "0"), ("shls", "0"), ("shrs", "0")])  # fmt: skip
def test_numbers_that_change_no_integer(step: tuple[str, str]) -> None:
    assert left("INT32", one(*step)) == []


def test_adding_zero_stays_where_it_makes_minus_zero_positive() -> None:
    assert left("FP32", one("adds", "0.0")) == ["adds 0.0"]
    assert left("FP32", one("subs", "-0.0")) in (["subs -0.0"], ["adds 0.0"])
    assert left("FP32", "a = pl.tile.abs(t)", "r = pl.tile.adds(a, 0.0)") == ["abs"]
    made = tilegg.lower(tilegg.parse(kernel("FP32", one("adds", "0.0"))), "a5", contract="exact")
    x = np.full((4, 64), -0.0, np.float32)
    assert not np.signbit(tilegg.run(made.program, {"x": x})["out"]).any()


def test_remembered_regions_tell_apart_whether_minus_zero_can_occur() -> None:
    program = """
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[4, 64], pl.FP32], out: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):
        t = pl.tile.load(x, [0, 0], [4, 64]){assume}
        for i, (acc,) in pl.range(0, 2, 1, init_values=(t,)):
            n = pl.tile.adds(acc, 0.0)
            (s,) = pl.yield_(n)
        o = pl.tile.store(s, [0, 0], out)
        return o
"""
    for assume in ("", "\n        u = pl.tile.assume(t, 1.0, 2.0)"):
        text = program.replace("{assume}", assume).replace("(t,)", "(u,)" if assume else "(t,)")
        assert_lowering_correct(text, "a5", contract="exact", inputs=4)


@pytest.mark.parametrize("name", ["maximum", "minimum", "and_", "or_"])
def test_an_operation_on_one_value_twice(name: str) -> None:
    dtype = "INT32" if name.endswith("_") else "FP32"
    assert left(dtype, f"r = pl.tile.{name}(t, t)") == []


def test_both_branches_of_a_selection_are_one_value() -> None:
    assert left("FP32", "m = pl.tile.cmps(t, 0.0, cmp_type=4)", "r = pl.tile.sel(m, t, t)") == []


def test_what_repeats() -> None:
    assert left("FP32", "a = pl.tile.abs(t)", "r = pl.tile.abs(a)") == ["abs"]
    assert left("FP32", "a = pl.tile.relu(t)", "r = pl.tile.relu(a)") == ["relu"]
    assert left("FP32", "a = pl.tile.neg(t)", "b = pl.tile.neg(a)", "r = pl.tile.abs(b)") == ["abs"]


def test_rectifying_what_is_positive() -> None:
    steps = "a = pl.tile.maximums(q, 0.5)", "r = pl.tile.relu(a)"
    assert left("FP32", "q = pl.tile.assume(t, -5.0, 5.0)", *steps) == ["maximums 0.5"]
    # A NaN may come out of the maximum, and what rectifying makes of it is left open.
    assert left("FP32", "q = pl.tile.abs(t)", *steps) == ["abs", "maximums 0.5", "relu"]
    below = "a = pl.tile.maximums(q, -0.5)", "r = pl.tile.relu(a)"
    assert "relu" in left("FP32", "q = pl.tile.assume(t, -5.0, 5.0)", *below)


@pytest.mark.parametrize(
    ("dtype", "name", "first", "second", "want"),
    [
        ("FP32", "maximums", "1.0", "2.5", ["maximums 2.5"]),
        ("FP32", "minimums", "1.0", "2.5", ["minimums 1.0"]),
        ("FP16", "maximums", "0.1", "0.2", [f"maximums {float(np.float16(0.2))!r}"]),
        ("INT32", "maximums", "-3", "7", ["maximums 7"]),
        ("INT32", "adds", "2147483647", "5", ["adds -2147483644"]),
        ("INT16", "adds", "32767", "1", ["adds -32768"]),
        ("INT32", "adds", "3", "-3", []),
        ("INT32", "muls", "65537", "65537", ["muls 131073"]),
        ("INT32", "ands", "12", "10", ["ands 8"]),
        ("INT32", "ors", "12", "3", ["ors 15"]),
        ("INT32", "xors", "12", "12", []),
        ("INT32", "shls", "4", "9", ["shls 13"]),
        ("INT32", "shrs", "4", "9", ["shrs 13"]),
    ],
)
def test_chains_of_literals(dtype: str, name: str, first: str, second: str, want: list[str]) -> None:
    assert left(dtype, *two(name, first, second)) == want


def test_longer_chains_and_differences() -> None:
    steps = "a = pl.tile.adds(t, 7)", "b = pl.tile.subs(a, 5)", "r = pl.tile.adds(b, -2)"
    assert left("INT32", *steps) == []
    steps = "a = pl.tile.maximums(t, 1.0)", "b = pl.tile.maximums(a, 2.5)", "r = pl.tile.maximums(b, 0.5)"
    assert left("FP32", *steps) == ["maximums 2.5"]


@pytest.mark.parametrize(
    ("dtype", "name", "first", "second"),
    [
        ("FP32", "adds", "0.1", "0.2"),  # two roundings
        ("FP32", "muls", "0.1", "0.2"),
        ("FP32", "maximums", "0.0", "-0.0"),  # which zero is larger is left open
        ("INT32", "shls", "20", "20"),  # beyond the width nothing is promised
        ("INT32", "shrs", "14", "19"),
    ],
)
def test_chains_that_stay(dtype: str, name: str, first: str, second: str) -> None:
    assert len(left(dtype, *two(name, first, second))) == 2


def test_values_at_the_edges() -> None:
    made = tilegg.lower(tilegg.parse(kernel("FP32", *two("maximums", "1.0", "-2.0"))), "a5", contract="exact")
    x = np.zeros((4, 64), np.float32)
    x[0, :4] = [math.nan, -math.inf, math.inf, -0.0]
    found = tilegg.run(made.program, {"x": x})["out"][0, :4]
    assert np.isnan(found[0]) and found[1:].tolist() == [1.0, math.inf, 1.0]
