"""Which forms of collectives and transfers are lowered, to what, and which are refused."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilegg.extract.lower import lower
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import For, Op, Program, walk
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse, print_program
from tilegg.rewrite.expand import expand
from tilegg.rules.collectives.choose import LinkModel, choose, link_model, ring_from
from tilegg.rules.target import load_target

sys.path.insert(0, str(Path(__file__).parent))
from collective_cases import difference, kernel

SIG = "sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
RING = "sig: pld.DistributedTensor[[M, NR], pl.INT32]"
RNG = np.random.default_rng(5)


def ops(program: Program, *names: str) -> list[Op]:
    """Return the operations of the first function, those of the given names."""
    found = [s for s in walk(program.functions[0].body) if isinstance(s, Op)]
    return [s for s in found if s.name in names] if names else found


def floats(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def agrees(program: Program, ranks: int, given: Any, count: int = 6, **dims: int) -> Program:
    """Compare the lowered program with the original under schedules; return it."""
    made = expand(program)
    assert made is not program and expand(made) is made and parse(print_program(made)) == made
    sizes = {"NR": ranks, "M": 2 * (ranks - 1)} | dims
    want = run_ranks(program, ranks, given, dims=sizes).check()
    for schedule in schedules(ranks, count):
        problem = difference(want, run_ranks(made, ranks, given, dims=sizes, schedule=schedule))
        assert not problem, problem
    return made


def allreduce(shape: str, mode: str = "mesh", view: str = "", dtype: str = "FP32") -> Program:
    layout = "DN" if view.startswith("DN") else "ND"
    extra = f", pl.TensorView(layout=pl.TensorLayout.{layout}, {view.removeprefix('DN')})" if view else ""
    window = f"w: pld.DistributedTensor[{shape}, pl.{dtype}{extra}]"
    params = [window, RING if mode == "ring" else SIG, "v: pl.Scalar[pl.INDEX]"]
    return kernel(params, f"    r = pld.tensor.allreduce(w, sig, mode='{mode}')\n    return r\n")


def refused(program: Program, *words: str, code: str = "TG050") -> None:
    with pytest.raises(TileggError) as caught:
        expand(program)
    first = caught.value.diagnostics[0]
    text = f"{first.message} {first.reason} {first.hint}"
    assert first.code == code and first.span is not None and all(w in text for w in words), text


class TestWindows:
    @pytest.mark.parametrize("mode", ["mesh", "ring"])
    @pytest.mark.parametrize(
        ("text", "shape"),
        [("[2, 3, 5]", (2, 3, 5)), ("[a, b]", (3, 7)), ("[a, 5]", (2, 5)), ("[64, 200]", (64, 200)), ("[9]", (9,))],
    )
    def test_any_rank_and_run_time_sizes(self, mode: str, text: str, shape: tuple[int, ...]) -> None:
        agrees(allreduce(text, mode), 3, [{"w": floats(*shape), "v": 0} for _ in range(3)])

    @pytest.mark.parametrize(
        ("mode", "text", "shape", "valid"),
        [
            ("mesh", "[4, 8]", (4, 8), "[2, 3]"), ("mesh", "[4, 8]", (4, 8), "[2, v]"),
            ("mesh", "[4, 8]", (4, 8), "[v * 2, 8]"), ("mesh", "[2, 4, 8]", (2, 4, 8), "[1, 3, 5]"),
            ("ring", "[4, 8]", (4, 8), "[2, 8]"), ("ring", "[4, 8]", (4, 8), "[1, 3]"),
            ("ring", "[a, 8]", (4, 8), "[v, 8]"), ("ring", "[2, 4, 8]", (2, 4, 8), "[1, 3, 8]"),
        ],
    )  # fmt: skip
    def test_valid_in_part(self, mode: str, text: str, shape: tuple[int, ...], valid: str) -> None:
        program = allreduce(text, mode, f"valid_shape={valid}")
        made = agrees(program, 3, [{"w": floats(*shape), "v": 2} for _ in range(3)])
        if mode == "mesh":
            generations = {int(o.operands[2].value) for o in ops(made, "pld.system.wait")}
            assert generations == {1, 2}, "two barriers"

    def test_a_known_rectangle_takes_a_compact_tile_and_an_unknown_one_the_windows(self) -> None:
        for valid, shape in (("[2, 3]", (2, 8)), ("[2, v]", (4, 8))):
            made = expand(allreduce("[4, 8]", view=f"valid_shape={valid}"))
            assert {o.result.type.shape for o in ops(made, "tile.load")} == {shape}

    def test_a_valid_prefix_keeps_the_physical_row(self) -> None:
        (view,) = ops(expand(allreduce("[4, 8]", "ring", "valid_shape=[2, 8]")), "tensor.view")
        assert view.result.type.shape == (1, 32) and view.result.type.valid == (1, 16)

    @pytest.mark.parametrize(
        ("program", "words"),
        [
            (("[4, 8]", "mesh", "stride=[16, 1]"), "strides"), (("[4, 8]", "ring", "stride=[16, 1]"), "strides"),
            (("[4, 8]", "mesh", "DNvalid_shape=[2, 8]"), "DN"),
            (("[2, 4, 8]", "mesh", "valid_shape=[2, 3, 8]"), "rectangle"),
            (("[4, 8]", "ring", "valid_shape=[2, 3]"), "contiguous"),
            (("[64, 128]", "mesh", "valid_shape=[60, 100]"), "one chunk"),
            (("[a, 8]", "mesh", "valid_shape=[v, 8]"), "static bound"),
            (("[4, 8]", "mesh", "valid_shape=[q, 8]"), "no value at run time"),
        ],
    )  # fmt: skip
    def test_refusals(self, program: tuple[str, str, str], words: str) -> None:
        refused(allreduce(*program), words)

    @pytest.mark.parametrize(
        "call",
        ["broadcast(w, sig, root=0)", "reduce_scatter(w, sig)", "allgather(x, w, sig)", "all_to_all(w2, w, sig)"],
    )
    @pytest.mark.parametrize("view", ["stride=[16, 1]", "valid_shape=[4, 3]"])
    def test_windows_of_the_others_are_packed(self, call: str, view: str) -> None:
        window = f"pld.DistributedTensor[[4, 8], pl.FP32, pl.TensorView(layout=pl.TensorLayout.ND, {view})]"
        params = [f"w: {window}", "w2: pl.Tensor[[4, 8], pl.FP32]", "x: pl.Tensor[[1, 8], pl.FP32]",
                  "sig: pld.DistributedTensor[[4, 1], pl.INT32]"]  # fmt: skip
        if "broadcast" in call and "valid" in view:
            expand(kernel(params, f"    r = pld.tensor.{call}\n"))  # a whole window is copied, valid or not
            return
        refused(kernel(params, f"    r = pld.tensor.{call}\n"), "strides" if "stride" in view else "valid only in")

    def test_signals_of_another_shape(self) -> None:
        window = "w: pld.DistributedTensor[[1, 8], pl.FP32]"
        shapes = {"mesh": "[2, 4]", "ring": "[4, 1]"}
        for mode, shape in shapes.items():
            params = [window, f"sig: pld.DistributedTensor[{shape}, pl.INT32]"]
            try:
                program = kernel(params, f"    r = pld.tensor.allreduce(w, sig, mode='{mode}')\n")
            except TileggError as problem:
                assert problem.diagnostics[0].code == "TG008" and mode == "ring"
                continue
            refused(program, "signal", code="TG008")
        refused(kernel([window], "    r = pld.tensor.allreduce(w)\n"), "no signal", code="TG053")
        params = [window, "sig: pld.DistributedTensor[[4, 2], pl.INT32]"]
        refused(kernel(params, "    r = pld.tensor.allreduce(w, sig, core_num=2)\n"), "pl.spmd")

    def test_bf16_is_no_dtype_of_reductions(self) -> None:
        with pytest.raises(TileggError) as caught:
            allreduce("[1, 8]", dtype="BF16")
        assert caught.value.diagnostics[0].code == "TG007"


class TestGeometry:
    @pytest.mark.parametrize(
        ("dtype", "size", "width", "chunks"),
        [("FP32", 1, 8, 1), ("FP32", 17, 24, 1), ("FP32", 4096, 4096, 1), ("FP32", 4097, 4096, 2),
         ("FP16", 1, 16, 1), ("FP16", 8192, 8192, 1), ("FP16", 10000, 8192, 2)],
    )  # fmt: skip
    def test_mesh_chunks(self, dtype: str, size: int, width: int, chunks: int) -> None:
        made = expand(allreduce(f"[1, {size}]", dtype=dtype))
        loads = ops(made, "tile.load", "pld.tile.remote_load")
        assert {o.result.type.shape for o in loads} == {(1, width)}
        loops = [s.bounds[1] for s in walk(made.functions[0].body) if isinstance(s, For) and "chunk" in s.var.name]
        assert [int(b.value) for b in loops] == ([chunks] if chunks > 1 else [])
        retired = [o.operands[3].value for o in ops(made, "pld.system.notify") if o.operands[3].value < 0]
        assert retired == [-1 - chunks], "the credits of the ready barrier and of one for each chunk"

    @pytest.mark.parametrize(
        ("dtype", "size", "stage"),
        [("FP32", "17", (1, 16)), ("FP32", "8", (1, 8)), ("FP32", "65537", (1, 4096)), ("FP32", "n", (1, 4096)),
         ("FP32", "7", (1, 8)), ("FP16", "100", (1, 96)), ("INT8", "40", (1, 32))],
    )  # fmt: skip
    def test_stages(self, dtype: str, size: str, stage: tuple[int, int]) -> None:
        params = [f"x: pl.Tensor[[1, {size}], pl.{dtype}]", f"w: pld.DistributedTensor[[NR, {size}], pl.{dtype}]", SIG]
        made = expand(kernel(params, "    r = pld.tensor.allgather(x, w, sig)\n"))
        (create,) = ops(made, "tile.create")
        assert create.result.type.shape == stage and create.result.type.memory == "Vec"
        narrowed = ops(made, "tile.set_validshape")
        assert [o.result.type.valid for o in narrowed] == ([(1, 7)] if size == "7" else [])

    def test_a_small_exchange_stages_no_more_than_it_may_send(self) -> None:
        params = ["x: pl.Tensor[[8, 8], pl.FP32]", "w: pld.DistributedTensor[[8, 8], pl.FP32]",
                  "s: pld.DistributedTensor[[4, 1], pl.INT32]", "c: pl.Tensor[[4], pl.INT32]",
                  "g: pld.DistributedTensor[[4, 1], pl.INT32]"]  # fmt: skip
        made = expand(kernel(params, "    r = pld.tensor.all_to_all_v(x, w, s, c, g)\n"))
        assert ops(made, "tile.create")[0].result.type.shape == (2, 8)


class TestPlaces:
    def test_host_and_chip_calls_stay(self) -> None:
        text = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class P:
    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self):
        w = pld.window(pld.alloc_window_buffer(32), [1, 8], dtype=pl.FP32)
        w = pld.tensor.allreduce(w)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, w: pld.DistributedTensor[[1, 8], pl.FP32], s: pld.DistributedTensor[[4, 1], pl.INT32]):
        w = pld.tensor.allreduce(w, s)
"""
        program = parse(text)
        assert expand(program) is program

    def test_in_loops_and_branches(self) -> None:
        body = """\
    one = 1
    for i, (acc,) in pl.range(3, init_values=(w,)):
        if i > 0:
            r = pld.tensor.allreduce(acc, sig)
            out = pl.yield_(r)
        else:
            b = pld.tensor.barrier(sig)
            out = pl.yield_(acc)
        last = pl.yield_(out)
    k = 0
    while k < 2:
        s = pld.tensor.allreduce(w, sig, op=pld.ReduceOp.Max)
        k = k + 1
    y = pl.store(pl.load(last, [0, 0], [1, 8]), [0, 0], y)
    return y
"""
        params = ["w: pld.DistributedTensor[[1, 8], pl.FP32]", SIG, "y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]"]
        agrees(kernel(params, body), 3, [{"w": floats(1, 8)} for _ in range(3)], count=15)

    @pytest.mark.parametrize("arch", ["a2a3", "a5"])
    @pytest.mark.parametrize("mode", ["mesh", "ring"])
    def test_through_the_whole_lowering(self, arch: str, mode: str) -> None:
        program = allreduce("[1, 5000]", mode)
        result = lower(program, arch).program
        given = [{"w": floats(1, 5000), "v": 0} for _ in range(3)]
        want = run_ranks(program, 3, given, dims={"NR": 3, "M": 4}).check()
        for schedule in schedules(3, 8):
            assert not difference(want, run_ranks(result, 3, given, dims={"NR": 3, "M": 4}, schedule=schedule))


class TestTransfers:
    BODY = "    ctx = pld.get_comm_ctx(w)\n    p = (pld.rank(ctx) + 1) % pld.nranks(ctx)\n"

    def transfer(self, call: str, shape: str = "[4, 20]", extra: str = "") -> Program:
        params = [f"x: pl.Tensor[{shape}, pl.FP32]", f"w: pld.DistributedTensor[{shape}, pl.FP32]", SIG,
                  f"y: pl.Out[pl.Tensor[{shape}, pl.FP32]]", "m: pl.Scalar[pl.INDEX]"]  # fmt: skip
        return kernel(params, f"{self.BODY}    {call}\n    s = pld.tensor.barrier(sig)\n{extra}")

    @pytest.mark.parametrize(
        ("call", "stages", "valid"),
        [
            ("pld.tensor.put(w, p, x, atomic=pld.AtomicType.None_)", [(4, 24)], (4, 20)),
            ("pld.tensor.put(w, p, x, atomic=0, chunk_rows=2, chunk_cols=8)", [(2, 8)], (2, 8)),
            ("pld.tensor.put(w, p, x, atomic=0, chunk_rows=9, chunk_cols=90)", [(4, 24)], (4, 20)),
            ("pld.tensor.put(w, p, x, atomic=0, chunk_rows=1, chunk_cols=16, pipeline=True)", [(1, 16)] * 2, (1, 16)),
            ("pld.tensor.put(w, p, x, [1, 4], [0, 0], [m, 8], atomic=0, chunk_rows=2)", [(2, 8)], (2, 8)),
        ],
    )  # fmt: skip
    def test_put(self, call: str, stages: list[tuple[int, int]], valid: tuple[int, int]) -> None:
        made = agrees(self.transfer(call), 3, [{"x": floats(4, 20), "m": 3, "w": np.zeros((4, 20))} for _ in range(3)])
        created = ops(made, "tile.create")
        assert [o.result.type.shape for o in created] == stages
        (put,) = ops(made, "pld.tile.put")
        assert put.operands[3].type.valid_shape == valid
        names = [o.result.name.partition("__")[2] for o in created]
        assert names == (["tput_stage_ping_tmp_v0", "tput_stage_pong_tmp_v0"] if len(stages) > 1 else
                         ["tput_stage_tmp_v0"])  # fmt: skip

    def test_atomic_put_adds(self) -> None:
        made = agrees(
            self.transfer("pld.tensor.put(w, p, x, atomic=pld.AtomicType.Add)"), 3,
            [{"x": floats(4, 20), "m": 0, "w": np.ones((4, 20))} for _ in range(3)],
        )  # fmt: skip
        assert ops(made, "pld.tile.put")[0].attrs == {"atomic": "add"}

    def test_get_after_a_barrier(self) -> None:
        extra = "    pld.tensor.get(y, p, w, chunk_rows=1, chunk_cols=8, pipeline=True)\n    return y\n"
        program = self.transfer("t = pl.store(pl.load(x, [0, 0], [4, 20]), [0, 0], w)", extra=extra)
        made = agrees(program, 3, [{"x": floats(4, 20), "m": 0} for _ in range(3)])
        assert [o.result.type.shape for o in ops(made, "tile.create")] == [(1, 8)] * 2
        assert len(ops(made, "pld.tile.get")) == 1

    @pytest.mark.parametrize("shape", ["[4, 20]", "[1, 1, 3, 5]"])
    def test_remote_store_of_a_tensor(self, shape: str) -> None:
        zeros = ", ".join("0" * (shape.count(",") + 1))
        sizes = tuple(map(int, shape.strip("[]").split(",")))
        program = self.transfer(f"pld.tensor.remote_store(x, w, p, [{zeros}])", shape)
        made = agrees(program, 3, [{"x": floats(*sizes), "m": 0} for _ in range(3)])
        assert len(ops(made, "tile.load")) == len(ops(made, "pld.tile.remote_store")) == 1

    def test_what_cannot_be_staged(self) -> None:
        refused(self.transfer("pld.tensor.remote_store(x, w, p, [0, 0])", "[a, 8]"), "dynamic", "pld.tensor.put")
        with pytest.raises(TileggError) as caught:
            expand(self.transfer("pld.tensor.put(w, p, x, atomic=0)", "[400, 400]"), load_target("a5"))
        assert caught.value.diagnostics[0].code == "TG050" and "chunk_rows" in caught.value.diagnostics[0].hint


class TestAuto:
    """``mode="auto"``: the faster of mesh and ring by the links' latency and bandwidth."""

    def chosen(self, size: int, ranks: int, arch: str = "a2a3", signal: str = "") -> tuple[str, str]:
        signal = signal or f"[{2 * (ranks - 1)}, {ranks}]"
        params = [f"w: pld.DistributedTensor[[1, {size}], pl.FP32]", f"sig: pld.DistributedTensor[{signal}, pl.INT32]"]
        program = kernel(params, "    r = pld.tensor.allreduce(w, sig, mode='auto')\n")
        remarks: list[Any] = []
        made = expand(program, load_target(arch), remarks)
        given = [{"w": floats(1, size)} for _ in range(ranks)]
        dims = {"NR": ranks, "M": 2 * (ranks - 1)}
        got = run_ranks(made, ranks, given, dims=dims).check()
        total = np.sum([g["w"] for g in given], axis=0, dtype=np.float64)
        assert all(np.allclose(w, total, atol=1e-4) for w in got.windows["w"]) and got.clear_signals()
        (remark,) = remarks
        assert remark.code == "TG054" and remark.severity == "remark"
        return ("mesh" if ops(made, "pld.tile.remote_load") else "ring"), remark.message

    def test_small_ones_take_the_mesh_and_large_ones_the_ring(self) -> None:
        mode, message = self.chosen(64, 4)
        assert mode == "mesh" and "us on a mesh" in message and "us on a ring" in message and "a2a3" in message
        assert self.chosen(40_000, 8)[0] == "ring"

    def test_a_mesh_signal_leaves_no_choice(self) -> None:
        mode, message = self.chosen(200_000, 4, signal="[NR, 1]")
        assert mode == "mesh" and "no cells" in message

    def test_run_time_ranks_branch_where_the_choice_changes(self) -> None:
        params = ["w: pld.DistributedTensor[[1, 40000], pl.FP32]", RING]
        program = kernel(params, "    r = pld.tensor.allreduce(w, sig, mode='auto')\n")
        remarks: list[Any] = []
        border = ring_from(link_model(load_target("a2a3")), 40000, program.functions[0].params[0].value.type.dtype)
        assert 2 < border < 9
        made = expand(program, load_target("a2a3"), remarks)
        assert f"from {border} ranks on" in remarks[0].message
        for ranks in (2, border - 1, border):
            given = [{"w": floats(1, 40000)} for _ in range(ranks)]
            got = run_ranks(made, ranks, given, dims={"NR": ranks, "M": 2 * (ranks - 1)}, trace=True).check()
            puts = any(e.kind == "put" for e in got.trace)
            assert puts == (ranks >= border), "the ring pushes, the mesh loads"
            total = np.sum([g["w"] for g in given], axis=0, dtype=np.float64)
            assert all(np.allclose(w, total, atol=1e-4) for w in got.windows["w"]) and got.clear_signals()

    def test_the_model(self) -> None:
        m = LinkModel(1000.0, 0.5, 50.0, "")
        assert m.barrier(5) == 1200
        assert m.mesh(20000, 5, 16384) == 3 * 1200 + 4 * (2 * 1000 + 10000)
        assert m.ring(20000, 5, 16384) == 8 * (2 * 1200 + 1000 + 2000)
        for arch in ("a2a3", "a5"):
            assert link_model(load_target(arch)).source == f"figures of {arch}"
        assert link_model(None) == link_model(load_target("a2a3"))

    def test_the_border_with_the_least_loss(self) -> None:
        dtype = allreduce("[1, 8]").functions[0].params[0].value.type.dtype
        slow = LinkModel(1000.0, 1.0, 50.0, "")
        assert [choose(slow, 40000, dtype, n).mode for n in (2, 3, 8)] == ["mesh", "ring", "ring"]
        assert ring_from(slow, 40000, dtype) == 3
        assert ring_from(slow, 1, dtype) == 65, "never"

    def test_it_is_the_better_of_the_two_at_every_point(self) -> None:
        model = link_model(None)
        for n, size in itertools.product((2, 4, 8), (1, 1000, 10**5, 10**7)):
            dtype = allreduce("[1, 8]").functions[0].params[0].value.type.dtype
            found = choose(model, size, dtype, n)
            assert (found.mode == "ring") == (found.ring < found.mesh)
            assert found.mesh == min(model.mesh(found.nbytes, n, c) for c in (4096, 8192, 16384))
