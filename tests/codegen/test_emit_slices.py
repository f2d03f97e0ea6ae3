"""Slices that drop axes, as assembly: executed on bytes and compared with the interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tilegg

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check

TEXT = """
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[3, 4, 16], pl.FP32], k: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[4, 16], pl.FP32]]):
    part = pl.tensor.slice(x, [1, 4, 16], [k, 0, 0], [], [0])
    for i in pl.range(2):
        row = pl.tensor.slice({source}, {shape}, {at}, [], {drop})
        t = pl.load(row, [0, 0], [1, 16])
        out = pl.store(pl.add(t, t), [i, 0], out)
"""


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("source", "shape", "at", "drop"),
    [
        ("part", "[1, 16]", "[i + 1, 0]", "[]"),
        ("x", "[1, 1, 16]", "[k, i, 0]", "[0]"),
        ("x", "[1, 4, 16]", "[i + 1, 0, 0]", "[0]"),
        ("x", "[2, 1, 16]", "[1, i, 0]", "[1]"),
    ],
)
def test_a_slice_without_an_axis(source: str, shape: str, at: str, drop: str, target: str) -> None:
    program = tilegg.parse(TEXT.format(source=source, shape=shape, at=at, drop=drop), "k.py")
    for k in (0, 2):
        check(program, target, {"k": k}, {})
