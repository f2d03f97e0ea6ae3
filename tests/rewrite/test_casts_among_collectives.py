"""Casts between collectives, in loops and branches, of received and of narrowed tiles: native chains, same values."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilegg import emit, lower
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Op, Program, walk
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse
from tilegg.rules.target import load_target

HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")

@pl.function(type=pl.FunctionType.InCore)
def kernel({params}):
    me = pld.rank(pld.get_comm_ctx(sig))
    n = pld.nranks(pld.get_comm_ctx(sig))
"""
SIG = "sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
PARAMS = (
    "x: pl.Tensor[[4, 64], pl.{src}], w: pld.DistributedTensor[[1, 64], pl.FP32], "
    "v: pld.DistributedTensor[[NR, 64], pl.{dst}], m: pl.Scalar[pl.INDEX], "
    f"y: pl.Out[pl.Tensor[[4, 64], pl.{{dst}}]], {SIG}"
)
BODY = """\
    for i in pl.range(4):
        t = pl.load(x, [i, 0], [1, 64])
        f = pl.tile.cast(t, target_type=pl.FP32, mode="rint")
        s = pl.store(f, [0, 0], w)
        r = pld.tensor.allreduce(s, sig)
        g = pl.load(r, [0, 0], [1, 64])
        if i > 1:
            q = pl.tile.cast(g, target_type=pl.{dst}, mode="rint")
            u = pl.yield_(q)
        else:
            h = pl.tile.cast(pl.muls(g, 0.5), target_type=pl.{dst}, mode="floor")
            u = pl.yield_(h)
        y = pl.store(u, [i, 0], y)
        b = pld.tensor.barrier(sig)
    k = 0
    while k < 3:
        a = pl.load(x, [k, 0], [1, 64], [1, m])
        z = pl.tile.cast(pl.tile.cast(a, target_type=pl.FP32, mode="rint"), target_type=pl.{dst}, mode="rint")
        pld.tile.remote_store(z, v, (me + 1) % n, [me, 0])
        c = pld.tensor.barrier(sig)
        if me == 0:
            o = pld.tile.remote_load(v, (me + n - 1) % n, [(me + n - 2) % n, 0], [1, 64], [1, m])
            e = pl.tile.cast(o, target_type=pl.FP32, mode="rint")
            l = pl.tile.cast(pl.muls(e, 3.0), target_type=pl.{dst}, mode="trunc")
            y = pl.store(l, [k, 0], y)
        c2 = pld.tensor.barrier(sig)
        k = k + 1
"""
STORAGE = {"FP32": np.float32, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "INT32": np.int32, "INT16": np.int16,
           "INT8": np.int8, "UINT8": np.uint8}  # fmt: skip


def casts(program: Program) -> list[Op]:
    return [s for s in walk(program.functions[0].body) if isinstance(s, Op) and s.name == "tile.cast"]


def all_native(program: Program, arch: str) -> bool:
    edges = load_target(arch).casts
    return all((s.operands[0].type.dtype.name, s.result.type.dtype.name) in edges for s in casts(program))


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("src", "dst"),
    [("INT8", "BF16"), ("BF16", "INT8"), ("INT32", "BF16"), ("UINT8", "INT16"), ("FP16", "UINT8"), ("INT16", "INT32"),
     ("FP32", "FP32")],
)  # fmt: skip
def test_everywhere_in_a_rank_program(arch: str, src: str, dst: str) -> None:
    program = parse(HEAD.format(params=PARAMS.format(src=src, dst=dst)) + BODY.format(dst=dst))
    made = lower(program, arch)
    assert all_native(made.program, arch)
    rng = np.random.default_rng(7)
    given = [
        {"x": rng.integers(0, 60, (4, 64)).astype(STORAGE[src]), "m": 40, "y": np.zeros((4, 64), STORAGE[dst])}
        for _ in range(3)
    ]  # fmt: skip
    want = run_ranks(program, 3, given, dims={"NR": 3}).check()
    for schedule in schedules(3, 4):
        got = run_ranks(made.program, 3, given, dims={"NR": 3}, schedule=schedule).check()
        for a, b in zip(want.outputs, got.outputs):
            assert a["y"].tobytes() == b["y"].tobytes()
    assert emit(made, arch)


NARROW = """\
    t = pl.load(x, [0, 0], [4, 64])
    q: {annotation} = pl.tile.cast(t, target_type=pl.INT8, mode="rint")
    pld.tile.remote_store(q, w, (me + 1) % n, [0, 0])
    s = pld.tensor.barrier(sig)
"""
NARROWED = f"x: pl.Tensor[[4, 64], pl.FP32], w: pld.DistributedTensor[[4, 64], pl.INT8], m: pl.Scalar[pl.INDEX], {SIG}"


def narrow(annotation: str) -> Program:
    return parse(HEAD.format(params=NARROWED) + NARROW.format(annotation=annotation))


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize(("valid", "shape"), [("[4, m]", (4, 10)), ("[2, 64]", (2, 64)), ("[3, m]", (3, 10))])
def test_a_result_that_its_annotation_narrows(arch: str, valid: str, shape: tuple[int, int]) -> None:
    program = narrow(f"pl.Tile[[4, 64], pl.INT8, pl.TileView(valid_shape={valid})]")
    made = lower(program, arch)
    assert all_native(made.program, arch) and len(casts(made.program)) >= 2
    x = np.random.default_rng(3).uniform(-300, 300, (4, 64)).astype(np.float32)
    given: dict[str, Any] = {"x": x, "m": 10, "w": np.full((4, 64), 99, np.int8)}
    want, got = (run_ranks(p, 2, given, dims={"NR": 2}).check() for p in (program, made.program))
    for a, b in zip(want.windows["w"], got.windows["w"]):
        assert np.array_equal(a, b)
        assert (b[shape[0] :] == 99).all() and (b[:, shape[1] :] == 99).all()
    assert emit(made, arch)


def test_a_tile_with_a_fixed_address_is_not_cut() -> None:
    """Its chain would need a tile that nobody has placed."""
    with pytest.raises(TileggError, match=r"TG022.*no conversion from FP32 to INT8"):
        lower(narrow('pl.Tile[[4, 64], pl.INT8, pl.MemRef("q0", 0, 256), pl.Mem.Vec]'), "a5")
