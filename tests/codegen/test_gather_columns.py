"""What the assembler asks of the tiles of pto.tgather: whole rows, and i32 indices on a2/a3."""

from __future__ import annotations

import pytest
from tilegg import TileggError, emit, lower, parse

TEXT = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 32], pl.{dtype}], i: pl.Tensor[[8, {cols}], pl.{index}],
          out: pl.Out[pl.Tensor[[8, {cols}], pl.{dtype}]]):
        t = pl.load(x, [0, 0], [16, 32])
        k = pl.load(i, [0, 0], [8, {cols}])
        r = pl.tile.gather(t, k)
        return pl.store(r, [0, 0], out)
"""


def assembly(arch: str, cols: int, dtype: str = "FP32", index: str = "INT32") -> str:
    return emit(lower(parse(TEXT.format(cols=cols, dtype=dtype, index=index)), arch), arch)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_rows_are_whole_blocks(arch: str) -> None:
    assert "pto.tgather" in assembly(arch, 8) and "pto.tgather" in assembly(arch, 16, "FP16")
    for cols, dtype in ((5, "FP32"), (8, "FP16")):
        with pytest.raises(TileggError, match=f"all columns of dst must be valid, but {cols} of"):
            assembly(arch, cols, dtype)


def test_short_indices_are_for_a5() -> None:
    assert "pto.tgather" in assembly("a5", 16, "FP16", "INT16")
    with pytest.raises(TileggError, match="indices are i32 on a2/a3"):
        assembly("a2a3", 16, "FP16", "INT16")
