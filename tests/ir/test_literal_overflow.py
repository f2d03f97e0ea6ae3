"""Float literals that a tile's dtype would turn into infinity, integers that would wrap, and promises of nothing."""

from __future__ import annotations

import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError


def parsed(line: str, dtype: str) -> tilegg.ir.program.Program:
    return tilegg.parse(
        f"@pl.function\ndef k(x: pl.Tensor[[16, 64], pl.{dtype}], out: pl.Out[pl.Tensor[[16, 64], pl.{dtype}]]):\n"
        f"    t = pl.tile.load(x, [0, 0], [16, 64])\n    m = pl.tile.load(x, [0, 0], [16, 64])\n"
        f"    y = {line}\n    return out\n", "k.py",
    )  # fmt: skip


LINES = [
    "pl.tile.muls(t, {})", "pl.tile.adds(t, {})", "pl.tile.maximums(t, {})", "pl.tile.cmps(t, {}, cmp_type=2)",
    "pl.tile.expands(t, {})", "pl.tile.axpy(t, m, {})", "pl.tile.addsc(t, {}, m)", "pl.tile.lrelu(t, {})",
    "pl.tile.sels(pl.tile.cmp(t, m, cmp_type=2), t, m, {})", "pl.tile.select(pl.tile.cmp(t, m, cmp_type=2), t, {})",
]  # fmt: skip
#: Dtype -> (the largest number that rounds into it, the least that does not).
ENDS = {"FP16": ("65519.0", "65520.0"), "BF16": ("3.39e38", "3.4e38")}


@pytest.mark.parametrize("line", LINES)
@pytest.mark.parametrize("dtype", ENDS)
def test_the_first_number_that_would_be_infinity_is_refused(dtype: str, line: str) -> None:
    fits, overflows = ENDS[dtype]
    for sign in ("", "-"):
        parsed(line.format(sign + fits), dtype)
        with pytest.raises(TileggError, match=f"does not fit {dtype}, where it would become infinity") as caught:
            parsed(line.format(sign + overflows), dtype)
        (found,) = caught.value.diagnostics
        assert found.code == "TG011" and found.span.line == 5 and "reaches" in found.reason and found.hint


@pytest.mark.parametrize(
    ("dtype", "fits", "overflows"),
    [("FP8E5M2", 57344, 61440), ("FP8E4M3FN", 448, 480), ("FP4", 6, 8), ("FP16", 65504, 70000), ("HF8", 32768, 60000)],
)
def test_full_tiles(dtype: str, fits: int, overflows: int) -> None:
    text = f"pl.tile.full([16, 64], dtype=pl.{dtype}, value={{}})"
    for form in ("{}", "{}.0"):
        parsed(text.format(form.format(fits)), dtype)
        with pytest.raises(TileggError) as caught:
            parsed(text.format(form.format(overflows)), dtype)
        assert caught.value.diagnostics[0].code == "TG011"


@pytest.mark.parametrize("line", ["pl.tile.expands(t, {})", "pl.tile.addsc(t, {}, m)",
                                  "pl.tile.sels(pl.tile.cmp(t, m, cmp_type=0), t, m, {})"])  # fmt: skip
def test_integers_that_would_wrap(line: str) -> None:
    parsed(line.format(32767), "INT16")
    with pytest.raises(TileggError, match="does not fit INT16"):
        parsed(line.format(32768), "INT16")


def test_the_builder_and_infinite_literals() -> None:
    b = tilegg.Builder("k")
    x = b.param("x", tilegg.ir.types.tensor([16, 64], tilegg.ir.dtypes.FP16))
    t = b.tile.load(x, [0, 0], [16, 64])
    b.tile.maximums(t, float("-inf"))
    with pytest.raises(TileggError, match="would become infinity"):
        b.tile.muls(t, 1e6)


@pytest.mark.parametrize(
    ("dtype", "lo", "hi"),
    [("INT32", 0.2, 0.8), ("INT32", -0.75, -0.25), ("INT8", 200, 300), ("UINT8", -5, -1),
     ("INT16", "math.inf", "math.inf"), ("INT8", 127.25, 127.75), ("FP32", 1.0, 0.0), ("INT32", 1, 0)],
)  # fmt: skip
def test_a_promise_that_no_element_keeps_is_refused(dtype: str, lo: object, hi: object) -> None:
    with pytest.raises(TileggError, match=f"no ({dtype}|number) is in") as caught:
        parsed(f"pl.tile.assume(t, {lo}, {hi})", dtype)
    (found,) = caught.value.diagnostics
    assert found.code == "TG030" and found.span.line == 5 and found.hint


@pytest.mark.parametrize(
    ("dtype", "lo", "hi"),
    [("INT32", 0.2, 1.0), ("INT32", -0.5, 0.5), ("INT8", -1000, 1000), ("INT8", 127, 300), ("FP32", 0.2, 0.8),
     ("INT32", "-math.inf", "math.inf"), ("UINT8", 3, 3)],
)  # fmt: skip
def test_a_promise_that_some_element_keeps_is_taken(dtype: str, lo: object, hi: object) -> None:
    assert not tilegg.verify(parsed(f"pl.tile.assume(t, {lo}, {hi})", dtype))
