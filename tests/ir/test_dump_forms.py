"""Forms that dumps of host programs have: slices that drop axes, sizes that ask for the number of ranks."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.interp import run
from tilegg.ir.program import Op, walk
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse, parse_with_remarks, print_program

HOST = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")

@pl.program
class Swap:
    @pl.function(type=pl.FunctionType.InCore)
    def step(self, x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]],
             w: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]], s: pl.InOut[pld.DistributedTensor[[NR, 1], pl.INT32]],
             peer: pl.Scalar[pl.INT32]):
        t: pl.Tile[[1, 8], pl.FP32] = pl.tile.load(x, [0, 0], [1, 8])
        pld.tile.remote_store(t, w, peer, [0, 0])
        pld.system.notify(s, peer, [0, 0], pl.const(1, pl.INT32), op=0)
        pld.system.wait(s, [0, 0], 1, cmp=1)
        g: pl.Tile[[1, 8], pl.FP32, pl.TileView(valid_shape=[1, pl.cast(peer, pl.INDEX) * 0 + 8])] = pl.tile.load(
            w, [0, 0], [1, 8], [1, pl.cast(peer, pl.INDEX) * 0 + 8])
        pl.tile.store(g, [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, xs: pl.Tensor[[NR, 1, 8], pl.FP32], ys: pl.Out[pl.Tensor[[NR, 1, 8], pl.FP32]]):
        buf: pl.Ptr = pld.tensor.alloc_window_buffer(pl.const(8, pl.INDEX) * pl.const(4, pl.INDEX))
        sig: pl.Ptr = pld.tensor.alloc_window_buffer(pld.system.world_size() * 4)
        for r in pl.range(pld.system.world_size()):
            w: pld.DistributedTensor[[1, 8], pl.FP32] = pld.tensor.window(buf, [1, 8], dtype=pl.FP32)
            s: pld.DistributedTensor[[pld.system.world_size(), 1], pl.INT32] = pld.tensor.window(
                sig, [pld.system.world_size(), 1], dtype=pl.INT32)
            self.step(pl.tensor.slice(xs, [1, 1, 8], [r, 0, 0], [], [0]),
                      pl.tensor.slice(ys, [1, 1, 8], [r, 0, 0], [], [0]),
                      w, s, (r + 1) % pld.system.world_size(), device=r)
        return ys
"""


def test_a_host_program_as_it_is_dumped() -> None:
    program, remarks = parse_with_remarks(HOST)
    assert not remarks and parse(print_program(program)) == program
    xs = np.arange(24, dtype=np.float32).reshape(3, 1, 8)
    for schedule in schedules(3, 5):
        result = run_ranks(program, 3, {"xs": xs}, function="host", schedule=schedule).check()
        assert np.array_equal(result.outputs[0]["ys"], np.roll(xs, 1, axis=0))


KERNEL = """
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[3, 4, 8], pl.FP32], k: pl.Scalar[pl.INDEX], y: pl.Out[pl.Tensor[[1, 1, 4, 8], pl.FP32]]):
    {slice}
    t = pl.load(row, {at}, [1, 8])
    r = pl.tile.store(t, [0, 0, 2, 0], y)
"""


@pytest.mark.parametrize(
    ("text", "at", "shape"),
    [
        ("row = pl.tensor.slice(x, [1, 4, 8], [k, 0, 0], [], [0])", "[3, 0]", (4, 8)),
        ("row = pl.tensor.slice(x, [1, 1, 8], [k, 3, 0], [], [1])", "[0, 0]", (1, 8)),
        ("row = pl.tensor.slice(x, [1, 4, 8], [k, 0, 0], drop_dims=[0])", "[3, 0]", (4, 8)),
        ("row = pl.tensor.slice(x, [1, 4, 8], [k, 0, 0], [1, 4, 8], [0])", "[3, 0]", (4, 8)),
    ],
)
def test_slices_that_drop_axes(text: str, at: str, shape: tuple[int, ...]) -> None:
    program = parse(KERNEL.format(slice=text, at=at))
    (op,) = (s for s in walk(program.functions[0].body) if isinstance(s, Op) and s.name == "tensor.slice")
    assert op.result.type.shape == shape and parse(print_program(program)) == program
    x = np.arange(96, dtype=np.float32).reshape(3, 4, 8)
    y = run(program, {"x": x, "k": 1})["y"]
    assert np.array_equal(y[0, 0, 2], x[1, 3]), "a tile of rank 2 fills the last two axes"


@pytest.mark.parametrize("drop", ["[1]", "[3]", "[-1]", "[0, 1]"])
def test_only_axes_of_one_element_are_dropped(drop: str) -> None:
    with pytest.raises(TileggError, match="TG008"):
        parse(KERNEL.format(slice=f"row = pl.tensor.slice(x, [1, 4, 8], [k, 0, 0], [], {drop})", at="[3, 0]"))
