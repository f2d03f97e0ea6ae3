"""Rectifiers, constants and work on the narrower side: what becomes one instruction, and what must not."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg import emit, lower, parse
from tilegg.extract.lowered import Lowered
from tilegg.ir.equivalence import equivalent
from tilegg.ir.program import Const
from tilegg.rewrite.knowledge import Knowledge


def kernel(body: str, dtype: str = "FP32", out: str = "FP32") -> str:
    """Two input tiles a and b of 16 by 64; the body defines r."""
    lines = "\n".join(f"        {line}" for line in body.strip().split("\n"))
    shape = "[16, 64]"
    return f"""
import pypto.language as pl
@pl.program
class K:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[{shape}, pl.{dtype}], x2: pl.Tensor[{shape}, pl.{dtype}],
          y: pl.Out[pl.Tensor[{shape}, pl.{out}]]):
        a = pl.load(x, [0, 0], {shape})
        b = pl.load(x2, [0, 0], {shape})
{lines}
        return pl.store(r, [0, 0], y)
"""


def lowered(body: str, arch: str = "a5", dtype: str = "FP32", out: str = "FP32") -> Lowered:
    found = lower(parse(kernel(body, dtype, out)), arch, contract="exact", memo=None)
    assert equivalent(found.source, found.program, samples=6).equal
    return found


def work(found: Lowered) -> list[str]:
    """The instructions besides transfers."""
    names = [i.op.name.removeprefix("tile.") for f in found.functions for i in f.instructions if i.count]
    return [n for n in names if n not in ("load", "store")]


LEAKY = [
    "r = pl.maximum(a, pl.mul(a, 0.01))",
    "r = pl.maximum(pl.mul(a, 1.0), a)",
    "m = pl.tile.cmps(a, 0.0, cmp_type=4)\nr = pl.tile.sel(m, a, pl.mul(a, 0.1))",
    "m = pl.tile.cmps(a, 0.0, cmp_type=3)\nr = pl.tile.sel(m, pl.mul(a, 0.1), a)",
]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("body", LEAKY)
def test_leaky_rectifiers_are_one_instruction(body: str, arch: str) -> None:
    assert len(work(lowered(body, arch))) == 1


@pytest.mark.parametrize("slope", ["1.5", "-0.5", "0.0"])
def test_other_slopes_are_none(slope: str) -> None:
    assert "lrelu" not in work(lowered(f"r = pl.maximum(a, pl.mul(a, {slope}))"))


def test_a_slope_that_the_dtype_makes_zero_is_none() -> None:
    assert "lrelu" not in work(lowered("r = pl.maximum(a, pl.mul(a, 1e-9))", dtype="FP16", out="FP16"))


def test_a_maximum_with_zero_stays_where_nan_or_minus_zero_may_come() -> None:
    assert work(lowered("r = pl.maximum(a, 0.0)")) == ["maximums"]


def numbers(found: Lowered) -> list[object]:
    ops = [i.op for f in found.functions for i in f.instructions if i.count]
    return [o.value for op in ops for o in op.operands if isinstance(o, Const)]


def test_constants_are_folded_with_the_rounding_of_their_dtype() -> None:
    found = lowered("c = pl.tile.full([16, 64], dtype=pl.FP32, value=1.1)\nr = pl.add(a, pl.mul(c, 3.3))")
    assert work(found) == ["adds"]
    assert np.float32(1.1) * np.float32(3.3) in [np.float32(n) for n in numbers(found) if isinstance(n, float)]
    converted = "c = pl.tile.full([16, 64], dtype=pl.FP32, value=1.00390625)\n"
    body = converted + "r = pl.add(a, pl.cast(c, target_type=pl.BF16, mode='{}'))"
    for mode, value in (("rint", 1.0), ("ceil", 1.0078125), ("round", 1.0078125)):
        found = lowered(body.format(mode), dtype="BF16", out="BF16")
        assert work(found) == ["adds"] and value in numbers(found)


def test_integers_fold_as_they_wrap() -> None:
    c = "c = pl.tile.full([16, 64], dtype=pl.INT32, value=2147483647)\n"
    found = lowered(c + "r = pl.add(a, pl.add(c, 1))", dtype="INT32", out="INT32")
    assert work(found) == ["adds"] and -(2**31) in numbers(found)


@pytest.mark.parametrize("constant", ["0.0", "-0.0"])
def test_an_extreme_of_two_zeros_is_left_to_the_device(constant: str) -> None:
    c = f"c = pl.tile.full([16, 64], dtype=pl.FP32, value={constant})\n"
    other = "-0.0" if constant == "0.0" else "0.0"
    assert len(work(lowered(c + f"r = pl.add(a, pl.maximum(c, {other}))"))) > 1


def test_one_minus_a_tile_needs_no_tile_of_ones() -> None:
    body = "one = pl.tile.full([16, 64], dtype=pl.FP32, value=1.0)\nr = pl.sub(one, a)"
    assert work(lowered(body, "a2a3")) == ["neg", "adds"]


def test_a_quotient_by_a_constant_tile_takes_the_scalar() -> None:
    assert work(lowered("c = pl.tile.full([16, 64], dtype=pl.FP32, value=3.0)\nr = pl.div(a, c)")) == ["divs"]


def test_extremes_are_taken_before_the_conversion() -> None:
    widened = "r = pl.maximum(pl.cast(a, target_type=pl.FP32), pl.cast(b, target_type=pl.FP32))"
    assert work(lowered(widened, dtype="FP16")) == ["maximum", "cast"]
    # A number that the narrow dtype lacks keeps its place.
    assert work(lowered("r = pl.minimum(pl.cast(a, target_type=pl.FP32), 0.1)", "a2a3", dtype="FP16"))[0] == "cast"
    # A narrowing conversion is no such thing: the extreme would be chosen among other numbers.
    narrowed = "r = pl.add(pl.abs(pl.cast(a, target_type=pl.FP16)), pl.cast(b, target_type=pl.FP16))"
    assert "cast" in work(lowered(narrowed, out="FP16"))[:2]


QUANTISE = """
wide = pl.cast(a, target_type=pl.FP32)
tmp = pl.tile.create([16, 64], pl.FP32)
m = pl.maximum(pl.row_max(pl.abs(wide), tmp), 1e-4)
again = pl.cast({source}, target_type=pl.FP32)
scaled = pl.row_expand_mul(again, pl.mul(pl.recip(m), 127.0))
i = pl.cast(scaled, target_type=pl.INT32, mode="rint")
r = pl.cast(pl.cast(i, target_type=pl.FP16), target_type=pl.INT8, mode="trunc")
"""


@pytest.mark.parametrize("source, bounded", [("a", True), ("b", False)])
def test_a_tile_that_is_widened_twice_is_bounded_by_its_own_maximum(source: str, bounded: bool) -> None:
    # Of another tile's elements nothing is known.
    program = parse(kernel(QUANTISE.format(source=source), "BF16", "INT8"))
    knowledge = Knowledge(program.functions[0])
    (op,) = [o for o in knowledge.ops.values() if o.name == "tile.row_expand_mul"]
    assert (knowledge.of(op.result).hi < 128) is bounded


@pytest.mark.parametrize("source", ["a", "b"])
def test_clamping_casts_need_no_bound(source: str) -> None:
    # What leaves the range of INT8 on the way is clamped in the end: the widening casts stay, and two narrowing ones.
    found = work(lowered(QUANTISE.format(source=source), dtype="BF16", out="INT8"))
    assert found.count("cast") == (3 if source == "a" else 4)


WEIGHTED = """
m = pl.tile.cmps(a, 3, cmp_type=0)
one = pl.tile.full([16, 64], dtype=pl.{dtype}, value={one})
w = pl.select(m, one, {zero})
r = pl.add({b}, pl.mul(w, pl.sub({a}, {b})))
"""


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_a_selection_by_weights_of_integers_is_a_selection(arch: str) -> None:
    body = WEIGHTED.format(dtype="INT32", one=1, zero=0, a="a", b="b")
    assert work(lowered(body, arch, dtype="INT32", out="INT32")) == ["cmps", "sel"]
    clamped = "pl.cast(pl.maximum(pl.minimum({}, 255), -255), target_type=pl.FP32)"
    small = f"p = {clamped.format('a')}\nq = {clamped.format('b')}"
    body = WEIGHTED.format(dtype="FP32", one=1.0, zero=0.0, a="p", b="q")
    # Neither a conversion to integers nor anything else in the kernel is needed: the numbers are known to be small.
    found = lowered(small + body, arch, dtype="INT32", out="FP32")
    assert (work(found).count("mul"), work(found).count("sel")) == (0, 1)
    number = "\nr = pl.cast(r, target_type=pl.INT32)"
    assert work(lowered(small + body + number, arch, dtype="INT32", out="INT32")).count("mul") == 0


def test_of_other_floats_it_stays_arithmetic() -> None:
    body = WEIGHTED.format(dtype="FP32", one=1.0, zero=0.0, a="a", b="b")
    assert "mul" in work(lowered(body))


def test_the_largest_element_is_found_before_the_conversion() -> None:
    body = "t = pl.tile.create([16, 64], pl.FP32)\nw = pl.cast(a, target_type=pl.FP32)\nm = pl.row_max(w, t)\n"
    body += "r = pl.row_expand(pl.tile.full([16, 64], dtype=pl.FP32, value=0.0), m)"
    assert work(lowered(body, dtype="FP16"))[:2] == ["row_max", "cast"]


TAIL = """
i = pl.cast(a, target_type=pl.INT32, mode="rint")
h = pl.cast(i, target_type=pl.FP16, mode="round")
r = pl.cast(h, target_type=pl.INT8, mode="trunc"{saturation})
"""


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_the_quantisation_tail_is_two_casts_without_any_promise(arch: str) -> None:
    assert work(lowered(TAIL.format(saturation=""), arch, out="INT8")) == ["cast", "cast"]


def test_a_tail_that_wraps_keeps_its_casts() -> None:
    assert len(work(lowered(TAIL.format(saturation=', saturation_mode="off"'), "a5", out="INT8"))) > 2


def test_casts_that_rules_bring_together_cancel() -> None:
    body = "w = pl.tile.reshape(pl.cast(a, target_type=pl.FP32), [1, 1024])\n"
    body += "r = pl.tile.reshape(pl.cast(w, target_type=pl.BF16, mode='rint'), [16, 64])"
    assert work(lowered(body, dtype="BF16", out="BF16")) == []


def test_a_number_over_a_tile_is_one_instruction() -> None:
    for arch in ("a2a3", "a5"):
        found = lowered("c = pl.tile.full([16, 64], dtype=pl.FP32, value=127.0)\nr = pl.div(c, a)", arch)
        assert work(found) == ["rdivs"]
        (line,) = [text for text in emit(found, arch).splitlines() if "pto.tdivs" in text]
        assert ": f32, !pto.tile_buf" in line  # the scalar stands first
    integers = lowered("c = pl.tile.full([16, 64], dtype=pl.INT32, value=7)\nr = pl.sub(c, a)", "a5", "INT32", "INT32")
    assert "rdivs" not in work(integers)


def test_a_bound_that_both_dtypes_hold_is_applied_after_the_conversion() -> None:
    body = "r = pl.cast(pl.minimum(pl.maximum(a, {}), 15.0), target_type=pl.FP16, mode='trunc')"
    assert work(lowered(body.format(-15.0), "a5", "FP32", "FP16")) == ["cast", "maximums", "minimums"]
    # What is rounded to -0 would meet a bound of 0, for which the hardware may give either zero.
    assert work(lowered(body.format(0.0), "a5", "FP32", "FP16")) == ["maximums", "cast", "minimums"]
    # 15.01 is not a number of FP16.
    assert work(lowered(body.format(-15.01), "a5", "FP32", "FP16"))[0] == "maximums"
