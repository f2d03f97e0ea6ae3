"""Rows of packed four-bit codes fill whole 32-byte blocks, so that each can begin a window; executed on bytes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check

TEXT = """
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[{shape}], pl.{source}], out: pl.Out[pl.Tensor[[{to}], pl.{dtype}]]):
    a = pl.load(x, [0, 0], [{shape}])
    return pl.store({line}, [0, 0], out)
"""
CODES = r"alloc_tile : !pto\.tile_buf<vec, (\d+)x(\d+)x!pto\.f4"


def kernel(shape: str, source: str, to: str, dtype: str, line: str) -> tilegg.Program:
    return tilegg.parse(TEXT.format(shape=shape, source=source, to=to, dtype=dtype, line=line), "k.py")


@pytest.mark.parametrize(("cols", "stored"), [(8, 32), (16, 32), (32, 32), (48, 32), (64, 32), (96, 64)])
@pytest.mark.parametrize("dtype", ["FP4", "FP4E1M2"])
def test_rows_fill_blocks(cols: int, stored: int, dtype: str) -> None:
    program = kernel(f"16, {cols}", "BF16", f"16, {cols}", dtype, f'pl.cast(a, target_type=pl.{dtype}, mode="rint")')
    text = tilegg.emit(tilegg.lower(program, "a5"))
    assert re.findall(CODES, text) == [("16", str(stored))]
    check(program, "a5", {}, {})


@pytest.mark.parametrize("cols", [8, 16, 32, 96])
def test_a_row_is_a_window(cols: int) -> None:
    row = f"pl.tile.slice(a, [1, {cols}], [1, 0])"
    check(kernel(f"3, {cols}", "FP4", f"1, {cols}", "FP4", row), "a5", {}, {})
    check(kernel(f"3, {cols}", "FP4", f"1, {cols}", "BF16", f"pl.cast({row}, target_type=pl.BF16)"), "a5", {}, {})


QUANTISED = """
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[64, {cols}], pl.{dtype}], out: pl.Out[pl.Tensor[[{rows}, {cols}], pl.FP4]]):
    a = pl.load(x, [0, 0], [64, {cols}])
    w = pl.tile.create([{groups}], pl.{dtype})
    r = pl.tile.tquant_mx_raw(a, w, w, group_axis={axis}, dtype=pl.FP4)
    return pl.store({line}, [0, 0], out)
"""


def quantised(cols: int, axis: int, dtype: str = "BF16", row: int | None = None) -> str:
    groups = f"1, {2 * cols}" if axis else f"2, {cols}"
    line = "r[0]" if row is None else f"pl.tile.slice(r[0], [1, {cols}], [{row}, 0])"
    rows = 64 if row is None else 1
    text = QUANTISED.format(cols=cols, axis=axis, dtype=dtype, groups=groups, line=line, rows=rows)
    return tilegg.emit(tilegg.lower(tilegg.parse(text, "k.py"), "a5"))


@pytest.mark.parametrize(("cols", "axis"), [(32, 1), (96, 1), (64, 1), (32, 0), (96, 0)])
def test_block_scaled_codes_have_rows_as_long_as_their_source(cols: int, axis: int) -> None:
    text = quantised(cols, axis)
    assert re.findall(CODES, text) == [("64", str(cols // 2))] and f"tile_buf<vec, 64x{cols}xbf16>" in text


def test_one_workspace_is_not_the_other() -> None:
    (line,) = [t for t in quantised(32, 0).splitlines() if "pto.tquant.mx" in t]
    outs = line[line.index("outs(") :].split(":")[0].removeprefix("outs(").split(", ")
    assert len(set(map(str.strip, outs))) == 4


def test_what_rows_of_half_a_block_cannot_do() -> None:
    assert "pto.subview" in quantised(32, 1, row=2)
    with pytest.raises(TileggError, match=r"(?s)TG023.*at row 1 of FP4 rows of 32 elements.*quantise a multiple of 64"):
        quantised(32, 1, row=1)
    with pytest.raises(TileggError, match=r"(?s)TG023.*rows of 32 FP16 values.*multiple of 64 columns"):
        quantised(32, 0, "FP16")
    assert "pto.tquant.mx" in quantised(64, 0, "FP16")
