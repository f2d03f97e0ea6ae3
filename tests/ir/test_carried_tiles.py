"""A carried tile, and what a branch hands on, is a tile of its own: writing into it changes no other."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.ir.interp import run
from tilegg.ir.ranks import run_ranks
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from rank_kernels import kernel

LOOP = """
    for i, (c,) in pl.range(4, init_values=(t,)):
        pl.tile.write(c, [0, i], 5.0)
        d = pl.mul(c, 2.0)
{signal}        r = pl.yield_(d)
"""
WHILE = """
    for i, c in pl.while_(init_values=(0, t)):
        pl.cond(i < 4)
        pl.tile.write(c, [0, i], 5.0)
        d = pl.mul(c, 2.0)
{signal}        j, r = pl.yield_(i + 1, d)
"""
BRANCH = """
    s = pl.tile.read(t, [0, 1])
    if s > 0.5:
        pl.tile.write(t, [0, 0], 9.0)
{signal}        r = pl.yield_(t)
    else:
        q = pl.mul(t, 3.0)
        r = pl.yield_(q)
    pl.tile.write(r, [0, 2], 7.0)
"""
END = "    u = pl.add(t, r)\n    y = pl.store(u, [0, 0], y)\n    return y\n"
#: What the stored sum begins with, where the input is all ones.
CASES = {"loop": (LOOP, [81, 41, 21, 11, 17, 17, 17, 17]), "while": (WHILE, [81, 41, 21, 11, 17, 17, 17, 17]),
         "branch": (BRANCH, [18, 2, 8, 2, 2, 2, 2, 2])}  # fmt: skip
PARAMS = "x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]"
ONES = np.ones((1, 8), np.float32)
ZEROS = np.zeros((1, 8), np.float32)


@pytest.mark.parametrize("case", CASES)
def test_in_a_run(case: str) -> None:
    body, expected = CASES[case]
    head = f"@pl.function(type=pl.FunctionType.InCore)\ndef f({PARAMS}):\n    t = pl.load(x, [0, 0], [1, 8])"
    program = parse(head + body.format(signal="") + END)
    assert run(program, {"x": ONES, "y": ZEROS})["y"].tolist() == [expected]


@pytest.mark.parametrize("case", CASES)
def test_in_a_program_of_ranks(case: str) -> None:
    body, expected = CASES[case]
    signal = "        pld.system.notify(sig, me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)\n"
    program = kernel(f"{PARAMS}, sig: pld.DistributedTensor[[1, 1], pl.INT32]",
                     "    t = pl.load(x, [0, 0], [1, 8])" + body.format(signal=signal) + END)  # fmt: skip
    found = run_ranks(program, 2, {"x": ONES, "y": ZEROS})
    assert [out["y"].tolist() for out in found.outputs] == [[expected]] * 2
