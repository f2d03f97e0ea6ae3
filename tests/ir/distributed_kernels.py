"""Rank programs that several tests use: a header with the usual parameters, and whole protocols."""

from __future__ import annotations

from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Op, Program, walk
from tilegg.ir.text import parse

HEADER = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
N = pl.dynamic("N")

@pl.function(type=pl.FunctionType.InCore)
def kernel(
    x: pl.Tensor[[8, 32], pl.FP32],
    x16: pl.Tensor[[8, 32], pl.FP16],
    big: pl.Tensor[[16, 32], pl.FP32],
    dyn: pl.Tensor[[N, 32], pl.FP32],
    ints: pl.Tensor[[4], pl.INT32],
    out: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
    win: pld.DistributedTensor[[8, 32], pl.FP32],
    other: pld.DistributedTensor[[8, 32], pl.FP32],
    wide: pld.DistributedTensor[[16, 64], pl.FP32],
    rows: pld.DistributedTensor[[N, 32], pl.FP32],
    cols: pld.DistributedTensor[[8, N], pl.FP32],
    flat: pld.DistributedTensor[[64], pl.FP32],
    cube: pld.DistributedTensor[[2, 8, 32], pl.FP32],
    bytes8: pld.DistributedTensor[[8, 32], pl.UINT8],
    part: pld.DistributedTensor[[8, 32], pl.FP32, pl.TensorView(layout=pl.TensorLayout.ND, valid_shape=[5, 20])],
    sig: pld.DistributedTensor[[4, 1], pl.INT32],
    sig1: pld.DistributedTensor[[4], pl.INT32],
    ring: pld.DistributedTensor[[6, 4], pl.INT32],
    counts: pld.DistributedTensor[[4, 1], pl.INT32],
    fsig: pld.DistributedTensor[[4, 1], pl.FP32],
    peer: pl.Scalar[pl.INT32],
    ratio: pl.Scalar[pl.FP32],
    n: pl.Scalar[pl.INDEX],
):
    t = pl.tile.load(x, [0, 0], [8, 32])
    t16 = pl.tile.load(x16, [0, 0], [8, 32])
    stage = pl.tile.create([2, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
    stage2 = pl.tile.create([2, 32], dtype=pl.FP32, target_memory=pl.Mem.Vec)
"""


def parse_line(line: str, header: str = HEADER) -> Program:
    """Parse a kernel that ends in one statement."""
    return parse(f"{header}    {line}\n")


def last(line: str) -> Op:
    """Return the operation of one statement in the usual kernel."""
    ops = [s for s in walk(parse_line(line).functions[0].body) if isinstance(s, Op)]
    return ops[-1]


def refusal(line: str, header: str = HEADER) -> tuple[str, str]:
    """Return the code and full text of the diagnostic that refuses a statement."""
    try:
        parse_line(line, header)
    except TileggError as problem:
        first = problem.diagnostics[0]
        assert first.span is not None, first
        return first.code, first.render()
    raise AssertionError(f"accepted: {line}")
