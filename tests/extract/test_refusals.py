"""What a refused program is told: the reason that holds, and what to write instead."""

from __future__ import annotations

import pytest
from tilegg.extract.lower import lower
from tilegg.ir.diagnostics import Diagnostic, TileggError
from tilegg.ir.op import OPS
from tilegg.ir.text import parse

HEAD = """
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.{0}], out: pl.Out[pl.Tensor[[16, 64], pl.{0}]]):
        t = pl.load(x, [0, 0], [16, 64])
"""
SATURATED = 'pl.cast({}, target_type=pl.{}, mode="rint", saturation_mode="on")'


def text(value: str, dtype: str = "FP32", *lines: str) -> str:
    """A kernel that stores a value computed from the tile ``t``."""
    body = "".join(f"        {line}\n" for line in (*lines, f"c = {value}", "return pl.store(c, [0, 0], out)"))
    return HEAD.format(dtype) + body


def refused(source: str, arch: str | None) -> Diagnostic:
    """Return why a program is not lowered."""
    with pytest.raises(TileggError) as problem:
        lower(parse(source), arch)
    return problem.value.diagnostics[0]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
def test_a_saturating_cast_to_the_same_dtype_would_have_to_clamp_infinities(arch: str, dtype: str) -> None:
    found = refused(text(SATURATED.format("t", dtype), dtype), arch)
    assert found.code == "TG020"
    assert "infinities" in (found.reason or "") and "loses" not in (found.reason or "")
    assert all(word in (found.hint or "") for word in ("saturation off", "pl.tile.assume", "pl.minimum"))


def test_what_the_hint_names_is_taken() -> None:
    lower(parse(text(SATURATED.format("t", "FP32").replace('"on"', '"off"'))), "a5")
    lower(parse(text(SATURATED.format("u", "FP32"), "FP32", "u = pl.tile.assume(t, -8.0, 8.0)")), "a5")
    lower(parse(text("pl.minimum(pl.maximum(t, -3e38), 3e38)")), "a5")


@pytest.mark.parametrize("arch", ["a2a3", "a5", None])
@pytest.mark.parametrize("name", [n for n, d in OPS.items() if n.startswith("tensor.") and d.composite])
def test_composites_of_whole_tensors_send_to_tiles(name: str, arch: str | None) -> None:
    found = refused(text("t", "FP32", f"s = pl.{name}(x)"), arch)
    assert found.code == "TG022" and "whole tensor" in found.message
    form = name.replace("tensor.", "tile.")
    assert f"pl.{form}" in (found.hint or "")
    lower(parse(text(f"pl.{form}(t)")), arch)


def test_a_raw_quantisation_is_told_the_algorithm_that_is_taken() -> None:
    words = "pl.tile.tquant_mx_raw(t, w, w, group_axis=1, dtype=pl.FP4, scale_alg={})"
    source = text("t", "BF16", "w = pl.tile.slice(t, [1, 32], [0, 0])", f'q, e = {words.format(repr("nv"))}')
    source = source.replace("c = t", "c = pl.tile.slice(t, [16, 64], [0, 0])")
    found = refused(source, "a5")
    assert found.code == "TG022" and 'scale_alg="ocp"' in (found.hint or "")
