"""What a chain that is not exact stands for, hops made of several instructions among them."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from tilegg.extract.faithful import exact_form, inexact_casts
from tilegg.ir import dtypes
from tilegg.ir.codes import all_values, same_bits
from tilegg.ir.diagnostics import TileggError
from tilegg.rules.composed import COMPOSED

TO = ("INT8", "UINT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP8E4M3FN", "FP4")
ENDS = [(src, dst) for src in sorted({c.src.name for c in COMPOSED}) for dst in TO if src != dst]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize(("src", "dst"), ENDS)
def test_the_conversion_behind_a_chain_is_found(src: str, dst: str, arch: str) -> None:
    own = dtypes.DTYPES[src]
    data = (all_values(own) if own.bits <= 16 else np.linspace(-300, 300, 256).astype(own.storage)).reshape(1, -1)
    for mode in ("rint", "round", "floor", "trunc", "odd"):
        text = f"""
import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[1, {data.size}], pl.{src}], y: pl.Out[pl.Tensor[[1, {data.size}], pl.{dst}]]):
    a = pl.load(x, [0, 0], [1, {data.size}])
    return pl.store(pl.cast(a, pl.{dst}, mode="{mode}"), [0, 0], y)
"""
        program = tilegg.parse(text)
        try:
            made = tilegg.lower(program, arch, contract="faithful", memo=None)
        except TileggError:
            continue
        for cast in inexact_casts(made):
            assert (cast.direct.operands[0].type.dtype.name, cast.road is not None) == (src, True)  # type: ignore[union-attr]
        found, asked = (tilegg.run(p, {"x": data})["y"] for p in (exact_form(made), program))
        assert same_bits(found, asked, dtypes.DTYPES[dst]).all()
