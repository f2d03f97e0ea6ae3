"""Collectives executed as their definitions on 2 to 4 ranks, and the definitions themselves against plain NumPy."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.ir.collectives import all_to_all, allgather, allreduce, combine, reduce_scatter, ring_bounds
from tilegg.ir.dtypes import FP16, FP32
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from rank_kernels import kernel

SIG = "sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
OPS = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}
DTYPES = {"FP16": (np.float16, FP16), "FP32": (np.float32, FP32)}


def data(rank: int, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return a rank's numbers, of magnitudes that make sums depend on their order."""
    rng = np.random.default_rng(100 * rank + shape[-1])
    return (rng.uniform(-2, 2, shape) * 2.0 ** rng.integers(-5, 4, shape)).astype(DTYPES[dtype][0])


def in_order(parts: list[np.ndarray], op: str) -> np.ndarray:
    out = parts[0]
    for part in parts[1:]:
        out = OPS[op](out, part)
    return out


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", OPS)
class TestReductions:
    def test_mesh_allreduce_in_rank_order(self, op: str, dtype: str, ranks: int) -> None:
        params = f"w: pld.DistributedTensor[[3, 7], pl.{dtype}], {SIG}"
        program = kernel(params, f"    r = pld.tensor.allreduce(w, sig, op=pld.ReduceOp.{op})\n")
        parts = [data(r, (3, 7), dtype) for r in range(ranks)]
        want = in_order(parts, op)
        for schedule in schedules(ranks, 4):
            result = run_ranks(program, ranks, [{"w": p} for p in parts], schedule=schedule).check()
            assert all(w.tobytes() == want.tobytes() for w in result.windows["w"])

    def test_ring_allreduce_by_segments(self, op: str, dtype: str, ranks: int) -> None:
        params = f"w: pld.DistributedTensor[[1, 53], pl.{dtype}], ring: pld.DistributedTensor[[M, NR], pl.INT32]"
        line = f"    r = pld.tensor.allreduce(w, ring, op=pld.ReduceOp.{op}, mode='ring')\n"
        parts = [data(r, (1, 53), dtype) for r in range(ranks)]
        result = run_ranks(
            kernel(params, line, "w"), ranks, [{"w": p} for p in parts], dims={"M": 2 * (ranks - 1), "NR": ranks}
        ).check()
        bounds = ring_bounds(53, ranks, DTYPES[dtype][1])
        for s in range(ranks):
            cut = slice(bounds[s], bounds[s + 1])
            want = in_order([parts[(s + k) % ranks][:, cut] for k in range(ranks)], op)
            assert all(w[:, cut].tobytes() == want.tobytes() for w in result.windows["w"])

    def test_reduce_scatter_leaves_other_rows(self, op: str, dtype: str, ranks: int) -> None:
        params = f"w: pld.DistributedTensor[[NR, 9], pl.{dtype}], {SIG}"
        program = kernel(params, f"    r = pld.tensor.reduce_scatter(w, sig, op=pld.ReduceOp.{op})\n")
        parts = [data(r, (ranks, 9), dtype) for r in range(ranks)]
        result = run_ranks(program, ranks, [{"w": p} for p in parts]).check()
        for r, window in enumerate(result.windows["w"]):
            want = parts[r].copy()
            want[r] = in_order([p[r] for p in parts], op)
            assert window.tobytes() == want.tobytes()


@pytest.mark.parametrize("ranks", [2, 3, 4])
class TestMovement:
    def test_broadcast(self, ranks: int) -> None:
        for root in range(ranks):
            params = f"w: pld.DistributedTensor[[2, 5], pl.FP16], {SIG}"
            program = kernel(params, f"    r = pld.tensor.broadcast(w, sig, root={root})\n")
            # Only the root's window need be defined.
            inputs = [{"w": data(r, (2, 5), "FP16")} if r == root else {} for r in range(ranks)]
            result = run_ranks(program, ranks, inputs).check()
            assert all(np.array_equal(w, inputs[root]["w"]) for w in result.windows["w"])
            assert all(k.all() for k in result.known["w"])

    def test_allgather(self, ranks: int) -> None:
        params = f"x: pl.Tensor[[1, 17], pl.FP32], w: pld.DistributedTensor[[NR, 17], pl.FP32], {SIG}"
        program = kernel(params, "    r = pld.tensor.allgather(x, w, sig)\n")
        rows = [data(r, (1, 17), "FP32") for r in range(ranks)]
        result = run_ranks(program, ranks, [{"x": x} for x in rows], schedule=3).check()
        assert all(np.array_equal(w, np.concatenate(rows)) for w in result.windows["w"])

    def test_all_to_all(self, ranks: int) -> None:
        params = f"x: pl.Tensor[[NR, 6], pl.FP32], w: pld.DistributedTensor[[NR, 6], pl.FP32], {SIG}"
        program = kernel(params, "    r = pld.tensor.all_to_all(x, w, sig)\n")
        parts = [data(r, (ranks, 6), "FP32") for r in range(ranks)]
        result = run_ranks(program, ranks, [{"x": x} for x in parts]).check()
        for d, window in enumerate(result.windows["w"]):
            assert np.array_equal(window, np.stack([p[d] for p in parts]))

    def test_all_to_all_v_moves_clamped_rows_only(self, ranks: int) -> None:
        capacity = 3
        params = (
            "x: pl.Tensor[[T, 4], pl.FP32], counts: pl.Tensor[[NR], pl.INT32], "
            "w: pld.DistributedTensor[[T, 4], pl.FP32], "
            f"got: pld.DistributedTensor[[NR, 1], pl.INT32], {SIG}"
        )
        program = kernel(params, "    r = pld.tensor.all_to_all_v(x, w, sig, counts, got)\n")
        rng = np.random.default_rng(ranks)
        inputs = [
            {"x": data(r, (ranks * capacity, 4), "FP32"), "counts": rng.integers(-2, 6, ranks).astype(np.int32)}
            for r in range(ranks)
        ]
        result = run_ranks(program, ranks, inputs).check()
        for d in range(ranks):
            for s in range(ranks):
                rows = int(np.clip(inputs[s]["counts"][d], 0, capacity))
                assert result.windows["got"][d][s, 0] == rows
                block = slice(s * capacity, s * capacity + rows)
                sent = inputs[s]["x"][d * capacity : d * capacity + rows]
                assert np.array_equal(result.windows["w"][d][block], sent)
                rest = result.known["w"][d][s * capacity + rows : (s + 1) * capacity]
                assert not rest.any(), "rows that were not sent stay undefined"

    def test_barrier_orders_writes(self, ranks: int) -> None:
        params = f"x: pl.Tensor[[1, 4], pl.FP32], w: pld.DistributedTensor[[NR, 4], pl.FP32], {SIG}"
        body = (
            "    for p in pl.range(n):\n"
            "        pld.tensor.put(w, p, x, [me, 0], [0, 0], [1, 4])\n"
            "    s = pld.tensor.barrier(sig)\n"
            "    t = pl.load(w, [0, 0], [NR, 4])\n"
        )
        program = kernel(params, body.replace("[NR, 4]", f"[{ranks}, 4]"))
        for schedule in schedules(ranks, 12):
            run_ranks(program, ranks, lambda r: {"x": data(r, (1, 4), "FP32")}, schedule=schedule).check()


def test_collectives_in_a_row_and_in_loops() -> None:
    params = f"w: pld.DistributedTensor[[1, 8], pl.FP32], {SIG}"
    body = "    for i in pl.range(3):\n        r = pld.tensor.allreduce(w, sig)\n        b = pld.tensor.barrier(sig)\n"
    program = kernel(params, body)
    for schedule in schedules(3, 15):
        result = run_ranks(program, 3, lambda r: {"w": np.full((1, 8), r + 1, np.float32)}, schedule=schedule).check()
        assert all((w == 54).all() for w in result.windows["w"]) and result.clear_signals()


def test_a_partly_valid_window_is_reduced_where_it_is_valid() -> None:
    view = "pl.TensorView(layout=pl.TensorLayout.ND, valid_shape=[2, v])"
    params = f"w: pld.DistributedTensor[[4, 8], pl.FP32, {view}], {SIG}, v: pl.Scalar[pl.INDEX]"
    program = kernel(params, "    r = pld.tensor.allreduce(w, sig, op=pld.ReduceOp.Max)\n")
    result = run_ranks(program, 2, lambda r: {"w": np.full((4, 8), r, np.float32), "v": 3}).check()
    want = np.zeros((4, 8), np.float32)
    want[:2, :3] = 1
    assert np.array_equal(result.windows["w"][0], want)


def test_reading_undefined_rows_in_a_collective_is_flagged() -> None:
    params = f"w: pld.DistributedTensor[[1, 8], pl.FP32], {SIG}"
    program = kernel(params, "    r = pld.tensor.allreduce(w, sig)\n")
    result = run_ranks(program, 2, [{"w": np.ones((1, 8), np.float32)}, {}])
    assert [(f.kind, f.ranks) for f in result.findings] == [("undefined read", (1,))]


def test_shapes_that_do_not_fit_the_ranks() -> None:
    params = "w: pld.DistributedTensor[[2, 8], pl.FP32], s: pld.DistributedTensor[[2, 1], pl.INT32]"
    program = kernel(params, "    r = pld.tensor.reduce_scatter(w, s)\n", "w")
    (finding,) = run_ranks(program, 3, {"w": np.ones((2, 8), np.float32)}).findings
    assert finding.kind == "fault" and finding.code == "TG030"


def test_host_collectives_with_a_synthesised_signal() -> None:
    program = parse("""
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
        buf = pld.alloc_window_buffer(32)
        w = pld.window(buf, [1, 8], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            self.fill(xs[r], w, device=r)
        w = pld.tensor.allreduce(w, op=pld.ReduceOp.Prod)
        for r in pl.range(pld.world_size()):
            self.take(w, ys[r], device=r)
        return ys
""")
    xs = np.stack([data(r, (1, 8), "FP32") for r in range(3)])
    want = in_order(list(xs), "Prod")
    for schedule in schedules(3, 8):
        result = run_ranks(program, 3, {"xs": xs}, schedule=schedule).check()
        assert all(np.array_equal(y, want) for y in result.outputs[0]["ys"])


class TestDefinitions:
    def test_order_of_a_sum(self) -> None:
        parts = [np.full(3, v, np.float32) for v in (1e8, -1e8, 1.0)]
        assert allreduce(parts, "sum", FP32).tolist() == [1.0, 1.0, 1.0], "(1e8 - 1e8) + 1"
        # Segment s starts at rank s: (-1e8 + 1) + 1e8 and (1 + 1e8) - 1e8 lose the 1.
        assert allreduce(parts, "sum", FP32, "ring").tolist() == [1.0, 0.0, 0.0]

    def test_fp16_sums_round_in_fp16(self) -> None:
        parts = [np.full(4, 20000, np.float16)] * 4
        assert np.isinf(allreduce(parts, "sum", FP16)).all()

    @pytest.mark.parametrize("op", ["max", "min", "sum", "prod"])
    def test_nan_spreads(self, op: str) -> None:
        parts = [np.array([v], np.float32) for v in (1.0, np.nan, 2.0)]
        assert np.isnan(combine(parts, op)[0])

    @pytest.mark.parametrize("n", range(2, 9))
    @pytest.mark.parametrize("size", [1, 7, 8, 15, 16, 17, 4095, 4096, 4097, 10000])
    def test_ring_borders(self, n: int, size: int) -> None:
        plain, aligned = ring_bounds(size, n, FP32), ring_bounds(size, n, FP16)
        assert plain == tuple(i * size // n for i in range(n + 1))
        for bounds in (plain, aligned):
            assert bounds[0] == 0 and bounds[n] == size and len(bounds) == n + 1
            assert all(a <= b for a, b in itertools.pairwise(bounds))
        for inner in aligned[1:n]:
            assert inner % 16 == 0 or inner == size

    def test_movement(self) -> None:
        parts = [np.arange(4).reshape(2, 2) + 10 * r for r in range(2)]
        assert [p.tolist() for p in all_to_all(parts)] == [[[0, 1], [10, 11]], [[2, 3], [12, 13]]]
        assert allgather([p[:1] for p in parts]).tolist() == [[0, 1], [10, 11]]
        assert [r.tolist() for r in reduce_scatter(parts, 0)] == [[10, 12], [14, 16]]
