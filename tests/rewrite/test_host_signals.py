"""Signals that host programs leave out."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg.extract.lower import lower
from tilegg.ir.program import For, Op, Program, walk
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse, print_program
from tilegg.rewrite.expand import expand
from tilegg.rewrite.host_signals import with_signals

TEXT = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: pl.Tensor[[1, 8], pl.FP32], w: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]]):
        pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], w)

    @pl.function(type=pl.FunctionType.InCore)
    def take(self, w: pld.DistributedTensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
        pl.store(pl.load(w, [0, 0], [1, 8]), [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, xs: pl.Tensor[[N, 1, 8], pl.FP32], ys: pl.Out[pl.Tensor[[N, 1, 8], pl.FP32]]):
        w = pld.window(pld.alloc_window_buffer(32), [1, 8], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            self.fill(xs[r], w, device=r)
        for i in pl.range(2):
            w = pld.tensor.allreduce(w{extra})
        for r in pl.range(pld.world_size()):
            self.take(w, ys[r], device=r)
        return ys
"""


def host_ops(program: Program, name: str) -> list[Op]:
    return [s for s in walk(program.function("host").body) if isinstance(s, Op) and s.name == name]


@pytest.mark.parametrize("cores", [1, 4])
def test_a_window_is_made_before_the_loop(cores: int) -> None:
    program = parse(TEXT.format(extra=f", core_num={cores}" if cores > 1 else ""))
    made = with_signals(program)
    assert with_signals(made) is made and parse(print_program(made)) == made and expand(made) is made
    windows = host_ops(made, "pld.tensor.window")
    assert len(windows) == 2
    signal = windows[1].result
    assert signal.type.shape[1] == cores and signal.type.dtype.name == "INT32"
    (call,) = host_ops(made, "pld.tensor.allreduce")
    assert call.operands[1] == signal
    body = made.function("host").body.statements
    loops = [i for i, s in enumerate(body) if isinstance(s, For)]
    assert loops[0] < body.index(windows[1]) < loops[1], "outside the loop that calls"
    for schedule in schedules(3, 6):
        xs = np.arange(24, dtype=np.float32).reshape(3, 1, 8)
        result = run_ranks(made, 3, {"xs": xs}, function="host", schedule=schedule).check()
        assert np.array_equal(result.outputs[0]["ys"], np.broadcast_to(3 * xs.sum(0), xs.shape))


def test_explicit_signals_and_kernels_stay() -> None:
    program = parse(TEXT.format(extra=""))
    made = with_signals(program)
    assert [f for f in made.functions if f.name != "host"] == [f for f in program.functions if f.name != "host"]
    assert with_signals(made) is made


def test_lowering_makes_them() -> None:
    program = parse(TEXT.format(extra=""))
    assert host_ops(lower(program, "a5").program, "pld.tensor.allreduce")[0].operands[1] is not None
