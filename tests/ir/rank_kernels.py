"""Hand-written rank programs for the tests of the simulator."""

from __future__ import annotations

from tilegg.ir.program import Program
from tilegg.ir.text import parse

PRELUDE = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")

@pl.function(type=pl.FunctionType.InCore)
def kernel({params}):
    ctx = pld.get_comm_ctx({window})
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
"""

BARRIER = """\
    for p in pl.range(n):
        if p != me:
            pld.system.notify(sig, p, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for s in pl.range(n):
        if s != me:
            pld.system.wait(sig, [s, 0], {g}, cmp=pld.WaitCmp.Ge)
"""
RETIRE = """\
    for s in pl.range(n):
        if s != me:
            pld.system.notify(sig, me, [s, 0], -{g}, op=pld.NotifyOp.AtomicAdd)
"""


def kernel(params: str, body: str, window: str = "sig") -> Program:
    """Return a rank program of one function with the usual first lines."""
    text = PRELUDE.format(params=params, window=window) + body
    return parse(text if text.endswith("\n") else text + "\n")


PING_PONG = kernel(
    "x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]], "
    "data: pld.DistributedTensor[[1, 8], pl.FP32], sig: pld.DistributedTensor[[1, 1], pl.INT32]",
    """\
    t = pl.load(x, [0, 0], [1, 8])
    if me == 0:
        pld.tile.remote_store(t, data, 1, [0, 0])
        pld.system.notify(sig, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        got = pl.load(data, [0, 0], [1, 8])
        y = pl.store(got, [0, 0], y)
    else:
        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        got = pl.load(data, [0, 0], [1, 8])
        back = pl.add(got, t)
        pld.tile.remote_store(back, data, 0, [0, 0])
        pld.system.notify(sig, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        y = pl.store(got, [0, 0], y)
    return y
""",
)
