"""Rank programs that together use every communicating operation in every form that has assembly."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
N = pl.dynamic("N")

"""
KERNEL = "@pl.function(type=pl.FunctionType.InCore)\ndef kernel({params}):\n"
X, Y, W = "x: pl.Tensor[{s}, pl.{t}]", "y: pl.Out[pl.Tensor[{s}, pl.{t}]]", "w: pld.DistributedTensor[{s}, pl.{t}]"
SIG = "sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
START = """\
ctx = pld.get_comm_ctx(sig)
me = pld.rank(ctx)
n = pld.nranks(ctx)
right: pl.Scalar[pl.INT32] = (me + 1) % n
"""
MEET = """\
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


@dataclass(frozen=True)
class RankKernel:
    """A kernel: its text, sizes, ranks, cores per rank, and which targets take it."""

    text: str
    dims: dict[str, int] = field(default_factory=dict)
    ranks: int = 3
    lanes: int = 1
    targets: tuple[str, ...] = ("a2a3", "a5")
    #: Whether its signals are zero at the end, as the signal check wants it.
    clean: bool = True


def kernel(params: str, body: str, **more: Any) -> RankKernel:
    """Return a kernel with the usual first lines and a signal as its last parameter."""
    lines = (START + body).splitlines()
    text = HEAD + KERNEL.format(params=f"{params}, {SIG}" if params else SIG)
    return RankKernel(text + "".join(f"    {line}\n" for line in lines), **more)


def moved(shape: str, move: str, dtype: str = "FP32", back: str = "", rows: str = "", **more: Any) -> RankKernel:
    """Return a kernel that fills its window from ``x``, meets, moves, meets, and copies its window to ``y``."""
    s, t = shape, dtype
    params = ", ".join(p.format(s=s, t=t) for p in (X, W, Y))
    zeros = ", ".join("0" for _ in s.split(","))
    fill = f"a = pl.store(pl.load(x, [{zeros}], {rows or s}), [{zeros}], w)\n"
    copy = f"y = pl.store(pl.load(w, [{zeros}], {rows or s}), [{zeros}], y)\n"
    body = fill + MEET.format(g=1) + move + MEET.format(g=2) + (back or copy) + RETIRE.format(g=2) + "return y\n"
    return kernel(params, body, **more)


KERNELS: dict[str, RankKernel] = {
    "remote_load": moved("[8, 32]", "got = pld.tile.remote_load(w, right, [0, 0], [8, 32])\n",
                         back="y = pl.store(got, [0, 0], y)\n"),
    "remote_load_part": moved("[8, 32]", "got = pld.tile.remote_load(w, right, [2, 8], [4, 16], [3, 9])\n",
                              back="y = pl.store(got, [0, 0], y)\n"),
    "remote_load_plane": moved("[2, 8, 32]", "got = pld.tile.remote_load(w, right, [1, 0, 0], [1, 8, 32])\n",
                               back="y = pl.store(got, [0, 0, 0], y)\n"),
    "remote_load_column": moved("[16, 1]", "got = pld.tile.remote_load(w, right, [0, 0], [16, 1])\n",
                                back="y = pl.store(got, [0, 0], y)\n"),
    "remote_store": moved("[8, 32]", "t = pl.load(x, [0, 0], [4, 16])\npld.tile.remote_store(t, w, right, [4, 16])\n"),
    "remote_store_add": moved(
        "[8, 32]", "t = pl.load(x, [0, 0], [8, 32])\n"
        "pld.tile.remote_store(t, w, right, [0, 0], atomic=pld.AtomicType.Add)\n"),
    "remote_store_plane": moved(
        "[2, 8, 32]", "t = pl.load(x, [0, 0, 0], [1, 8, 32])\npld.tile.remote_store(t, w, right, [1, 0, 0])\n"),
    "remote_store_tensor": moved("[8, 32]", "pld.tensor.remote_store(x, w, right, [0, 0])\n"),
    "remote_store_slice": moved(
        "[8, 32]", "t = pl.load(x, [0, 0], [2, 16])\nv = pl.tensor.slice(w, [4, 16], [2, 8])\n"
        "pld.tile.remote_store(t, v, right, [1, 0])\n"),
    "remote_store_view": moved(
        "[8, 32]", "t = pl.load(x, [0, 0], [1, 32])\nv = pl.tensor.view(w, [1, 256])\n"
        "pld.tile.remote_store(t, v, right, [0, 40])\n"),
    "put": moved("[8, 32]", "pld.tensor.put(w, right, x)\n"),
    "put_part": moved("[8, 32]", "pld.tensor.put(w, right, x, [4, 8], [0, 0], [3, 16])\n"),
    "put_chunks": moved("[8, 32]", "pld.tensor.put(w, right, x, chunk_rows=2, chunk_cols=8)\n"),
    "put_pipeline": moved("[8, 32]", "pld.tensor.put(w, right, x, chunk_rows=2, chunk_cols=8, pipeline=True)\n"),
    "put_add": moved("[8, 32]", "pld.tensor.put(w, right, x, atomic=pld.AtomicType.Add)\n", "FP16"),
    "put_planes": moved("[2, 4, 32]", "pld.tensor.put(w, right, x)\n", rows="[1, 4, 32]"),
    "put_rows_known_later": moved(
        "[N, 32]", "pld.tensor.put(w, right, x, chunk_rows=2, chunk_cols=32)\n", dims={"N": 5}, rows="[5, 32]"),
    "put_part_known_later": moved(
        "[8, 32]", "rows: pl.Scalar[pl.INDEX] = pl.cast(n, pl.INDEX) + 1\n"
        "pld.tensor.put(w, right, x, [0, 0], [2, 0], [rows, 32], chunk_rows=2, chunk_cols=32)\n"),
    "put_column": moved("[16, 1]", "pld.tensor.put(w, right, x, [4, 0], [0, 0], [8, 1])\n"),
    "get": moved("[8, 32]", "pld.tensor.get(y, right, w)\n", back="a = right\n"),
    "get_into_window": moved(
        "[8, 32]", "pld.tensor.get(w, right, w, [0, 0], [4, 0], [4, 32], chunk_rows=4, chunk_cols=16)\n"),
    "get_pipeline": moved(
        "[8, 32]", "pld.tensor.get(y, right, w, chunk_rows=2, chunk_cols=8, pipeline=True)\n", back="a = right\n"),
    "bytes": moved("[8, 32]", "pld.tensor.put(w, right, x, [1, 3], [0, 0], [2, 5])\n", "INT8"),
    "bf16_added": moved(
        "[8, 32]", "pld.tensor.put(w, right, x, atomic=pld.AtomicType.Add)\n", "BF16", targets=("a2a3",)),
    "scalars": moved(
        "[4, 16]", "v = pl.tensor.read(w, [1, 3])\na = pl.tensor.write(w, [2, 0], v + 1.0)\n"),
    "ranks": kernel(
        "out: pl.Out[pl.Tensor[[2], pl.INT32]]",
        "out = pl.tensor.write(out, [0], me)\nout = pl.tensor.write(out, [1], n * 10)\nreturn out\n"),
    "set": kernel(
        "flags: pld.DistributedTensor[[NR, 16], pl.INT32], out: pl.Out[pl.Tensor[[1], pl.INT32]]",
        "pld.system.notify(flags, right, [me, 0], 40 + me, op=pld.NotifyOp.Set)\n"
        "left: pl.Scalar[pl.INT32] = (me + n - 1) % n\n"
        "pld.system.wait(flags, [left, 0], 40 + left, cmp=pld.WaitCmp.Eq)\n"
        "out = pl.tensor.write(out, [0], pl.tensor.read(flags, [left, 0]))\nreturn out\n", clean=False),
    "line_of_cells": kernel(
        "cells: pld.DistributedTensor[[NR], pl.INT32]",
        "pld.system.notify(cells, right, [me], 2, op=pld.NotifyOp.AtomicAdd)\n"
        "left: pl.Scalar[pl.INT32] = (me + n - 1) % n\n"
        "pld.system.wait(cells, [left], 2, cmp=pld.WaitCmp.Ge)\n"
        "pld.system.notify(cells, me, [left], -2, op=pld.NotifyOp.AtomicAdd)\n"),
}  # fmt: skip

LANES = """\
with pl.spmd(2):
    ctx = pld.get_comm_ctx(lanes)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right: pl.Scalar[pl.INT32] = (me + 1) % n
    pld.system.notify(lanes, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(lanes, [0, 0], 1, cmp=pld.WaitCmp.Ge)
"""
EACH_LANE = """\
for lane in pl.spmd(2):
    ctx = pld.get_comm_ctx(lanes)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right: pl.Scalar[pl.INT32] = (me + 1) % n
    pld.system.notify(lanes, right, [lane, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(lanes, [lane, 0], 1, cmp=pld.WaitCmp.Ge)
    pld.system.notify(lanes, me, [lane, 0], -1, op=pld.NotifyOp.AtomicAdd)
"""


def _lanes(body: str, clean: bool) -> RankKernel:
    text = HEAD + KERNEL.format(params="lanes: pld.DistributedTensor[[2, 1], pl.INT32]")
    return RankKernel(text + "".join(f"    {line}\n" for line in body.splitlines()), ranks=2, lanes=2, clean=clean)


KERNELS["lanes"] = _lanes(LANES, False)
KERNELS["each_lane"] = _lanes(EACH_LANE, True)
KERNELS["called"] = RankKernel(
    HEAD + """
@pl.program
class Calls:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[N, 16], pl.FP32],
        w: pld.DistributedTensor[[N, 16], pl.FP32],
        y: pl.Out[pl.Tensor[[N, 16], pl.FP32]],
        sig: pld.DistributedTensor[[NR, 1], pl.INT32],
    ) -> pl.Tensor[[N, 16], pl.FP32]:
        shared = self.push(x, w, sig, 1)
        y = pl.store(pl.load(shared, [0, 0], [4, 16]), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.InCore)
    def push(
        self,
        given: pl.Tensor[[N, 16], pl.FP32],
        window: pld.DistributedTensor[[N, 16], pl.FP32],
        credits: pld.DistributedTensor[[NR, 1], pl.INT32],
        step: pl.Scalar[pl.INT32],
    ) -> pld.DistributedTensor[[N, 16], pl.FP32]:
        ctx = pld.get_comm_ctx(credits)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        left: pl.Scalar[pl.INT32] = (me + n - step) % n
        pld.tensor.put(window, (me + step) % n, given, chunk_rows=2, chunk_cols=16)
        pld.system.notify(credits, (me + step) % n, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(credits, [left, 0], 1, cmp=pld.WaitCmp.Ge)
        pld.system.notify(credits, me, [left, 0], -1, op=pld.NotifyOp.AtomicAdd)
        return window
""", {"N": 4})  # fmt: skip
