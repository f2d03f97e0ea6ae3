"""Signals that host programs leave out."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg.extract.lower import lower
from tilegg.ir.diagnostics import Diagnostic
from tilegg.ir.program import For, Op, Program, walk
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse, print_program
from tilegg.rewrite.expand import expand
from tilegg.rewrite.host_signals import with_signals
from tilegg.rules.target import load_target

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


@pytest.mark.parametrize(
    ("size", "signal", "mode"),
    [(8, "[15, 8]", "mesh"), (100_000, "[15, 8]", "ring"), (100_000, "[8, 1]", "mesh"), (100_000, "[8]", "mesh"),
     (100_000, "", "mesh")],
)  # fmt: skip
def test_an_open_mode_is_decided(size: int, signal: str, mode: str) -> None:
    """The runtime knows mesh and ring; a ring needs its own signal, with a row for the return barrier."""
    text = TEXT.replace("[1, 8]", f"[1, {size}]").replace("buffer(32)", f"buffer({4 * size})")
    text = text.replace("[N, 1, 8]", f"[N, 1, {size}]")
    given = ""
    if signal:
        given = ", s"
        made = f"        s = pld.window(pld.alloc_window_buffer(480), {signal}, dtype=pl.INT32)\n        for r in"
        text = text.replace("        for r in", made, 1)
    remarks: list[Diagnostic] = []
    program = parse(text.format(extra=given + ", mode='auto'"))
    made_program = expand(with_signals(program), load_target("a2a3"), remarks)
    (call,) = host_ops(made_program, "pld.tensor.allreduce")
    assert call.attrs.get("mode", "mesh") == mode
    (remark,) = remarks
    assert remark.code == "TG054" and mode in remark.message
    assert (" us on a mesh, " in remark.message) == (signal == "[15, 8]")


def test_explicit_signals_and_kernels_stay() -> None:
    program = parse(TEXT.format(extra=""))
    made = with_signals(program)
    assert [f for f in made.functions if f.name != "host"] == [f for f in program.functions if f.name != "host"]
    assert with_signals(made) is made


def test_lowering_makes_them() -> None:
    program = parse(TEXT.format(extra=""))
    assert host_ops(lower(program, "a5").program, "pld.tensor.allreduce")[0].operands[1] is not None
