"""Conversions made of several instructions: what they give, which pairs they help, how they are shown and emitted."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from tilegg.ir.convert import all_values, convert, same_bits
from tilegg.ir.dtypes import BF16, FP4, FP4E1M2, FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, INT32, INT64, DType
from tilegg.rules.check_eval import Valued, evaluate
from tilegg.rules.composed import COMPOSED, Composed, composed_on
from tilegg.rules.paths import Road, roads
from tilegg.rules.paths_rank import hop_cycles
from tilegg.rules.paths_show import explore, render_svg, render_text
from tilegg.rules.recipes.terms import SHAPE, X
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target
from tilegg.testing import assert_lowering_correct

A2A3, A5 = load_target("a2a3"), load_target("a5")


def kernel(src: DType, dst: DType, mode: str, rows: int = 4, cols: int = 64) -> str:
    return f"""
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[{rows}, {cols}], pl.{src.name}],
          out: pl.Out[pl.Tensor[[{rows}, {cols}], pl.{dst.name}]]):
        t = pl.tile.load(x, [0, 0], [{rows}, {cols}])
        r = pl.tile.cast(t, target_type=pl.{dst.name}, mode='{mode}')
        o = pl.tile.store(r, [0, 0], out)
        return o
"""


def hard_values(src: DType) -> np.ndarray:
    """All of a short dtype; of FP32 every high half with telling low halves; of INT32 what is near sums of powers."""
    if src.bits <= 16:
        return all_values(src)
    if src is FP32:
        low = np.array([0, 1, 2, 0x7FFF, 0x8000, 0x8001, 0xFFFF], np.uint32)
        return (np.arange(1 << 16, dtype=np.uint32)[:, None] << 16 | low).reshape(-1).view(np.float32)
    powers = np.array([0, *(1 << k for k in range(31))], np.int64)
    near = (powers[:, None, None] + powers[None, :, None] + np.arange(-130, 131)).reshape(-1)
    found = np.concatenate([near, -near, np.random.default_rng(8).integers(-(2**31), 2**31, 200_000)])
    return found[(found >= -(2**31)) & (found < 2**31)].astype(np.int32)


@pytest.mark.parametrize("made", COMPOSED, ids=lambda c: c.name)
def test_it_is_the_conversion_bit_for_bit(made: Composed) -> None:
    given = hard_values(made.src)
    found = evaluate(RULES[made.rule].rhs, {SHAPE: 0}, {X: Valued.tile(given, made.src)})
    want = convert(given, made.src, made.dst, made.mode or "rint", False)
    assert found.type.dtype is made.dst and same_bits(found.data, want, made.dst).all()


@pytest.mark.parametrize("made", COMPOSED, ids=lambda c: c.name)
@pytest.mark.parametrize("wrong", ["carry", "number"])
def test_the_comparison_notices_other_numbers(made: Composed, wrong: str) -> None:
    given = hard_values(made.src)
    want = convert(given, made.src, made.dst, made.mode or "rint", False)
    other = convert(given, made.src, made.dst, "trunc" if wrong == "carry" else "ceil", False)
    assert same_bits(other, want, made.dst).all() == (made.mode is None)


def exact(target: tilegg.Target, src: DType, dst: DType, mode: str) -> list[Road]:
    return [r for r in roads(target, src, dst, mode) if r.exact]


GAINS = [
    (A5, FP32, FP4, "rint", "FP32 → BF16 (odd) → FP4", 6),
    (A5, FP32, FP4E1M2, "rint", "FP32 → BF16 (odd) → FP4E1M2", 6),
    (A5, FP16, FP4, "rint", "FP16 → FP32 → BF16 (odd) → FP4", 7),
    (A5, INT32, BF16, "rint", "INT32 → FP32 (odd) → BF16", 7),
    (A2A3, INT32, BF16, "rint", "INT32 → FP32 (odd) → BF16", 7),
    (A5, FP32, BF16, "odd", "FP32 → BF16", 5),
    (A2A3, FP32, BF16, "odd", "FP32 → BF16", 7),
    (A5, FP8E8M0, FP32, "round", "FP8E8M0 → BF16 → FP32", 7),
]


@pytest.mark.parametrize(("target", "src", "dst", "mode", "text", "count"), GAINS)
def test_pairs_that_gain_an_exact_chain(
    target: tilegg.Target, src: DType, dst: DType, mode: str, text: str, count: int
) -> None:
    road = exact(target, src, dst, mode)[0]
    assert (str(road), road.instructions, road.native) == (text, count, False)
    given = hard_values(src)
    assert same_bits(road.apply(given), convert(given, src, dst, mode, False), dst).all()


def test_native_chains_stay_where_one_is_exact() -> None:
    for src, dst, mode in ((FP32, INT8, "rint"), (FP32, FP4, "round"), (FP32, FP16, "odd"), (INT32, FP32, "rint")):
        assert all(r.native for target in (A2A3, A5) for r in roads(target, src, dst, mode, k=20))


def test_what_no_composed_conversion_helps_stays_inexact() -> None:
    assert not exact(A5, FP32, FP8E4M3FN, "floor")  # the hardware rounds to nearest, whatever is asked
    assert not exact(A5, INT64, BF16, "rint")  # no integer arithmetic on 64 bits
    assert not roads(A2A3, FP8E8M0, FP32, "rint") and not roads(A2A3, FP32, FP4, "rint")


def test_prices_are_those_of_the_instructions() -> None:
    road = exact(A5, FP32, FP4, "rint")[0]
    first, last = hop_cycles(A5, road, (64, 64))
    made = tilegg.lower(tilegg.parse(kernel(FP32, FP4, "rint", 64, 64)), "a5", contract="exact")
    inner = [i.cycles for i in made.functions[0].instructions if i.op.name not in ("tile.load", "tile.store")]
    assert sum(inner) == pytest.approx(first + last, abs=0.01) and len(inner) == 8  # two views among them


def test_the_first_pattern_that_is_legal_counts() -> None:
    assert [c.name for c in composed_on(A2A3).values()] == ["odd-bf16.shifts", "odd-fp32"]
    assert [c.name for c in composed_on(A5).values()] == ["odd-bf16", "odd-fp32", "scale-bf16"]


@pytest.mark.parametrize(("target", "src", "dst", "mode", "text", "count"), GAINS)
def test_programs_are_lowered_to_it(
    target: tilegg.Target, src: DType, dst: DType, mode: str, text: str, count: int
) -> None:
    written = kernel(src, dst, mode)
    assert_lowering_correct(written, target.name, contract="exact", inputs=8)
    made = tilegg.lower(tilegg.parse(written), target.name, contract="exact")
    assert made.totals.instructions == count + 2 and made.totals.inexact == 0
    assert "pto.tcvt" in tilegg.emit(made, target.name)


@pytest.mark.parametrize(("src", "dst"), [(FP32, FP4), (INT32, BF16)])
def test_the_cheaper_chain_is_taken_where_it_is_admitted(src: DType, dst: DType) -> None:
    made = tilegg.lower(tilegg.parse(kernel(src, dst, "rint")), "a5")
    assert made.totals.inexact == 1 and made.remarks[0].code == "TG024"
    assert "(odd)" in (made.remarks[0].hint or "")
    explained = tilegg.explain(made).render()
    assert "(odd) → " in explained and "instructions" in explained
    accurate = tilegg.lower(tilegg.parse(kernel(src, dst, "rint")), "a5", objective="accuracy")
    assert accurate.totals.inexact == 0


def test_all_codes_of_scales_decode() -> None:
    codes = np.arange(256, dtype=np.uint8).reshape(4, 64)
    made = tilegg.lower(tilegg.parse(kernel(FP8E8M0, FP32, "rint")), "a5", contract="exact")
    found = tilegg.run(made.program, {"x": codes})["out"].reshape(-1)
    assert found[:255].tolist() == [2.0 ** (k - 127) for k in range(255)] and np.isnan(found[255])
    text = tilegg.emit(made, "a5")
    assert "outs(%t : !pto.tile_buf<vec, 4x64xui8>)" in text and "-> !pto.tile_buf<vec, 4x64xbf16>" in text


def test_the_listing_says_what_is_composed() -> None:
    found = explore(A5, FP32, FP4, "rint")
    hops = found["chains"][-1]["hops"]
    assert [(h["instructions"], h["composed"]) for h in hops] == [(5, "cast.composed.odd-bf16"), (1, None)]
    assert "FP32 → BF16 (odd) is made of 5 instructions (cast.composed.odd-bf16)\n" in render_text(found)
    assert "6 instructions" in render_svg(found)
    assert "is made of" not in render_text(explore(A5, FP32, INT8, "rint"))
