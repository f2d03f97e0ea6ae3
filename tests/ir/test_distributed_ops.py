"""The distributed operations' verifiers: each rule accepted and refused, with code and words of the message."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg.ir.op import OPS
from tilegg.ir.placement import SHARED, VECTOR, core_of, may_duplicate
from tilegg.ir.program import Op
from tilegg.ir.types import TileType

sys.path.insert(0, str(Path(__file__).parent))
from distributed_kernels import HEADER, last, refusal

ACCEPTED = [
    "pld.tile.remote_load(win, peer, [0, 0], [8, 32])",
    "pld.tile.remote_load(win, peer=peer, offsets=[4, 0], shape=[8, 32], valid_shape=[4, 32])",
    "pld.tile.remote_load(rows, peer, [n, 0], [8, 32], [n, 32])",
    "pld.tile.remote_load(cube, 1, [1, 0, 0], [1, 8, 32])",
    "pld.tile.remote_store(t, win, peer, [0, 0])",
    "pld.tile.remote_store(t, wide, peer, [8, 32], atomic=pld.AtomicType.Add)",
    "pld.tile.remote_store(t, cube, peer, [1, 0, 0])",
    "pld.tensor.remote_store(x, win, peer, [0, 0], atomic=1)",
    "pld.remote_store(t, win, peer, [0, 0])",
    "pld.remote_store(x, win, peer, [0, 0])",
    "pld.put(win, peer, x)",
    "pld.tensor.put(win, peer, other, atomic=pld.AtomicType.None_)",
    "pld.tensor.put(win, peer, x, atomic=pld.AtomicType.Add)",
    "pld.tensor.put(dst=win, peer=0, src=x)",
    "pld.tensor.put(win, peer, big, [0, 0], [8, 0], [8, 32])",
    "pld.tensor.put(win, peer, big, [0, 0], [8, 0], [4, 16], chunk_rows=2, chunk_cols=16, pipeline=True)",
    "pld.tensor.put(rows, peer, dyn, chunk_rows=4)",
    "pld.tensor.put(cols, peer, cols, chunk_cols=64)",
    "pld.tensor.put(win, peer, x, [0, 0], [0, 0], [n, 32], chunk_rows=8)",
    "pld.tensor.get(win, peer, other)",
    "pld.tensor.get(out, peer, win)",
    "pld.tensor.get(out, peer, wide, [0, 0], [8, 32], [8, 32])",
    "pld.tensor.get(out, peer, win, chunk_rows=4, chunk_cols=16, pipeline=True)",
    "pld.tile.put(win, peer, x, stage)",
    "pld.tile.put(win, peer, x, stage, stage2, atomic=pld.AtomicType.Add)",
    "pld.tile.put(win, peer, x, stage, None, [0, 0], [0, 0], [n, 32])",
    "pld.tile.get(out, peer, win, stage, stage2)",
    "pld.tile.put(win, peer, x, stage, [0, 0], [0, 0], [4, 32], atomic=0)",
    "pld.tile.get(out, peer, win, stage, [0, 0], [0, 0], [n, 32])",
    "pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)",
    "pld.system.notify(target=sig, peer=peer, offsets=[n, 0], value=n, op=1)",
    "pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)",
    "pld.system.wait(signal=sig1, offsets=[0], expected=n, cmp=0)",
    "pld.system.defer_wait(sig, [n, 0], 2147483647, cmp=pld.WaitCmp.Ge)",
    "pld.tensor.allreduce(win, sig)",
    "pld.tensor.allreduce(win, sig, op=pld.ReduceOp.Prod, mode='mesh')",
    "pld.tensor.allreduce(win, ring, mode='ring')",
    "pld.tensor.allreduce(win)",
    "pld.tensor.allreduce(win, sig1)",
    "pld.tensor.allreduce(win, ring, core_num=4)",
    "pld.tensor.allreduce(win, sig, mode='auto')",
    "pld.tensor.barrier(sig)",
    "pld.tensor.broadcast(win, sig, root=3)",
    "pld.tensor.reduce_scatter(rows, sig, op=2)",
    "pld.tensor.allgather(pl.tensor.slice(x, [1, 32], [0, 0]), rows, sig)",
    "pld.tensor.all_to_all(dyn, rows, sig)",
    "pld.tensor.all_to_all_v(x, win, sig, ints, counts)",
    "pld.tensor.all_to_all_v(x, win, sig, ints, counts, core_num=1)",
    "pl.system.cacheinvalid()",
    "pl.system.cacheinvalid(win, [4, 32], [4, 0])",
    "pl.system.fence()",
]

REFUSED = [
    # the peer's side must be a window
    ("pld.tile.remote_load(x, peer, [0, 0], [8, 32])", "TG006", "distributed tensor"),
    ("pld.tile.remote_store(t, out, peer, [0, 0])", "TG006", "distributed tensor"),
    ("pld.tensor.put(out, peer, win, atomic=0)", "TG006", "distributed tensor"),
    ("pld.tensor.get(win, peer, x)", "TG006", "distributed tensor"),
    ("pld.system.notify(x, peer, [0, 0], 1, op=0)", "TG006", "distributed tensor"),
    ("pld.system.wait(ints, [0], 1, cmp=1)", "TG006", "distributed tensor"),
    ("pld.tensor.allreduce(x, sig)", "TG006", "distributed tensor"),
    ("pld.tensor.barrier(ints)", "TG006", "distributed tensor"),
    ("pld.get_comm_ctx(x)", "TG006", "distributed tensor"),
    # peers and scalars
    ("pld.tile.remote_load(win, ratio, [0, 0], [8, 32])", "TG006", "peer must be an integer"),
    ("pld.tile.remote_load(win, t, [0, 0], [8, 32])", "TG006", "peer must be a scalar"),
    ("pld.tensor.put(win, ratio, x)", "TG006", "peer must be an integer"),
    ("pld.system.notify(sig, peer, [0, 0], t, op=0)", "TG006", "value must be a scalar"),
    ("pld.system.wait(sig, [0, 0], x, cmp=1)", "TG006", "expected must be a scalar"),
    # ranks of lists
    ("pld.tile.remote_load(win, peer, [0], [8, 32])", "TG008", "offsets [0] must have 2 entries"),
    ("pld.tile.remote_load(win, peer, [0, 0], [32])", "TG008", "shape [32] must have 2 entries"),
    ("pld.tile.remote_load(win, peer, [0, 0], [8, 32], [8])", "TG008", "valid_shape [8] must have 2 entries"),
    ("pld.tile.remote_store(t, win, peer, [0])", "TG008", "must have 2 entries"),
    ("pld.system.notify(sig, peer, [0], 1, op=0)", "TG008", "must have 2 entries"),
    ("pld.system.wait(sig, [0, 0, 0], 1, cmp=1)", "TG008", "must have 2 entries"),
    ("pld.tensor.put(win, peer, x, [0], [0, 0], [8, 32])", "TG008", "dst_offsets [0] must have 2 entries"),
    # bounds
    ("pld.tile.remote_load(win, peer, [4, 0], [8, 32])", "TG008", "exceeds dimension 0"),
    ("pld.tile.remote_load(win, peer, [-1, 0], [8, 32])", "TG008", "negative"),
    ("pld.tile.remote_load(win, peer, [0, 0], [0, 32])", "TG008", "sizes are positive"),
    ("pld.tile.remote_load(win, peer, [0, 0], [8, 32], [9, 32])", "TG008", "exceeds the shape"),
    ("pl.store(t, [1, 0], win)", "TG008", "written region: offset 1 + size 8"),
    ("pl.load(win, [8, 0], [1, 32])", "TG008", "exceeds dimension 0"),
    ("pl.read(win, [8, 0])", "TG008", "index 8 lies outside dimension 0 of [8, 32]"),
    ("pl.write(win, [0, -1], 1.0)", "TG008", "index -1 along dimension 1 is negative"),
    ("pld.system.notify(sig, peer, [4, 0], 1, op=0)", "TG008", "index 4 lies outside dimension 0"),
    ("pld.system.notify(sig, peer, [0, -1], 1, op=0)", "TG008", "negative"),
    ("pld.system.wait(sig, [4, 0], 1, cmp=1)", "TG008", "index 4 lies outside dimension 0"),
    ("pld.tile.remote_store(t, win, peer, [1, 0])", "TG008", "neighbouring"),
    ("pld.tile.remote_store(t, cube, peer, [2, 0, 0])", "TG008", "exceeds dimension 0"),
    ("pld.tensor.put(win, peer, big, [1, 0], [8, 0], [8, 32])", "TG008", "written region of dst"),
    ("pld.tensor.put(win, peer, big, [0, 0], [9, 0], [8, 32])", "TG008", "region of src"),
    # elements, ranks, shapes
    ("pld.tile.remote_store(t16, win, peer, [0, 0])", "TG007", "FP16 and FP32"),
    ("pld.tensor.put(win, peer, x16)", "TG007", "FP32 and FP16"),
    ("pld.tile.remote_store(t, flat, peer, [0])", "TG008", "rank 2 or more"),
    ("pld.tensor.remote_store(cube, cube, peer, [0, 0, 0])", "TG008", "leading dimensions"),
    ("pld.tensor.put(win, peer, cube)", "TG008", "differ in rank"),
    ("pld.tensor.put(win, peer, big)", "TG008", "needs equal shapes"),
    ("pld.tensor.put(rows, peer, cols, chunk_rows=4, chunk_cols=4)", "TG008", "needs equal shapes"),
    ("pld.tensor.get(out, peer, wide)", "TG008", "needs equal shapes"),
    # all three or none
    ("pld.tensor.put(win, peer, x, [0, 0])", "TG005", "all three or not at all"),
    ("pld.tensor.get(out, peer, win, [0, 0], [0, 0])", "TG005", "all three or not at all"),
    ("pld.tile.put(win, peer, x, stage, shape=[8, 32])", "TG005", "all three or not at all"),
    # chunks and pipelines
    ("pld.tensor.put(rows, peer, dyn)", "TG008", "needs chunk_rows"),
    ("pld.tensor.put(cols, peer, cols)", "TG008", "needs chunk_cols"),
    ("pld.tensor.get(cols, peer, cols, chunk_rows=4)", "TG008", "needs chunk_cols"),
    ("pld.tensor.put(win, peer, x, [0, 0], [0, 0], [n, 32])", "TG008", "needs chunk_rows"),
    ("pld.tensor.put(win, peer, x, chunk_rows=-1)", "TG008", "negative"),
    ("pld.tensor.put(win, peer, x, chunk_rows=True)", "TG006", "integer"),
    ("pld.tensor.put(win, peer, x, chunk_rows=n)", "TG006", "literal"),
    ("pld.tensor.put(win, peer, x, [0, 0], [0, 0], [0, 32])", "TG008", "sizes are positive"),
    ("pld.tensor.put(win, peer, x, pipeline=True)", "TG008", "pipeline needs"),
    ("pld.tensor.put(win, peer, x, chunk_rows=2, pipeline=True)", "TG008", "pipeline needs"),
    ("pld.tensor.get(out, peer, win, chunk_cols=8, pipeline=True)", "TG008", "pipeline needs"),
    # atomic adds
    ("pld.tensor.put(bytes8, peer, bytes8, atomic=pld.AtomicType.Add)", "TG007", "no atomic add of UINT8"),
    ("pld.tensor.get(out, peer, win, atomic=0)", "TG005", "atomic"),
    ("pld.tensor.put(win, peer, x, atomic=2)", "TG004", "atomic type"),
    # staging tiles
    ("pld.tile.put(win, peer, x, t16)", "TG007", "stage has dtype FP16"),
    ("pld.tile.put(win, peer, x, pl.tile.create([16, 32], dtype=pl.FP32))", "TG008", "stage has 16 rows"),
    ("pld.tile.get(out, peer, win, pl.tile.create([8, 64], dtype=pl.FP32))", "TG008", "stage has 64 columns"),
    ("pld.tile.put(win, peer, x, pl.tile.create([2, 32], dtype=pl.FP32, target_memory=pl.Mem.Mat))", "TG008", "Vec"),
    ("pld.tile.put(win, peer, x, stage, t)", "TG008", "differ in shape"),
    ("pld.tile.put(win, peer, x, stage, stage)", "TG008", "are one tile"),
    ("pld.tile.get(out, peer, win, stage, stage)", "TG008", "are one tile"),
    ("pld.tile.put(win, peer, t, stage)", "TG006", "src must be a tensor"),
    # the other level's entry is named
    ("pld.tile.remote_store(x, win, peer, [0, 0])", "TG006", "pld.tensor.remote_store"),
    ("pld.tensor.remote_store(t, win, peer, [0, 0])", "TG006", "pld.tile.remote_store"),
    # enumerations
    ("pld.system.notify(sig, peer, [0, 0], 1, op=2)", "TG004", "notify operation"),
    ("pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.Sub)", "TG004", "notify operation"),
    ("pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Gt)", "TG004", "known: eq, ge"),
    ("pld.tensor.allreduce(win, sig, op=4)", "TG004", "reduction"),
    ("pld.system.wait(sig, [0, 0], 1)", "TG005", "'cmp' is missing"),
    # deferred waits
    ("pld.system.defer_wait(fsig, [0, 0], 1, cmp=1)", "TG007", "INT32"),
    ("pld.system.defer_wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Eq)", "TG050", "only WaitCmp.Ge"),
    ("pld.system.defer_wait(sig, [0, 0], -1, cmp=1)", "TG008", "outside 0..2147483647"),
    ("pld.system.defer_wait(sig, [0, 0], 2147483648, cmp=1)", "TG008", "outside 0..2147483647"),
    ("pld.system.defer_wait(sig, [4, 0], 1, cmp=1)", "TG008", "exceeds dimension 0"),
    ("pld.system.defer_wait(sig, [0, 0], ratio, cmp=1)", "TG006", "integer"),
    # collectives
    ("pld.tensor.allreduce(bytes8, sig)", "TG007", "no reduction of UINT8"),
    ("pld.tensor.allreduce(win, fsig)", "TG007", "INT32 cells"),
    ("pld.tensor.allreduce(win, mode='ring')", "TG005", "explicit signal"),
    ("pld.tensor.allreduce(win, ring, mode='ring', core_num=2)", "TG050", "one core"),
    ("pld.tensor.allreduce(win, sig, core_num=0)", "TG050", "positive"),
    ("pld.tensor.allreduce(win, sig, mode='tree')", "TG004", "unknown mode"),
    ("pld.tensor.allreduce(win, sig, mode='ring')", "TG008", "needs a signal [0, 1]"),
    ("pld.tensor.allreduce(win, sig1, mode='ring')", "TG008", "[2 * (NR - 1), NR]"),
    ("pld.tensor.allreduce(win, sig, core_num=2)", "TG008", "lanes"),
    ("pld.tensor.allreduce(win, sig1, core_num=2)", "TG008", "rank 2"),
    ("pld.tensor.broadcast(win, sig, root=4)", "TG008", "no rank"),
    ("pld.tensor.broadcast(win, sig, root=-1)", "TG008", "no rank"),
    ("pld.tensor.broadcast(win, sig, root=n)", "TG006", "literal"),
    ("pld.tensor.barrier(fsig)", "TG007", "INT32 cells"),
    ("pld.tensor.allreduce(win, sig, core_num=-1)", "TG050", "positive"),
    ("pld.tensor.allreduce(win, sig, core_num=n)", "TG006", "literal"),
    ("pld.tensor.all_to_all_v(x, win, sig, ints, counts, core_num=0)", "TG050", "one core"),
    ("pld.tensor.broadcast(win, sig)", "TG005", "'root' is missing"),
    ("pld.tensor.reduce_scatter(win, sig)", "TG008", "8 rows"),
    ("pld.tensor.reduce_scatter(flat, sig)", "TG008", "row for each rank"),
    ("pld.tensor.allgather(x, rows, sig)", "TG008", "one row of the target"),
    ("pld.tensor.allgather(x16, rows, sig)", "TG007", "FP16 and FP32"),
    ("pld.tensor.all_to_all(x, cols, sig)", "TG008", "8 rows"),
    ("pld.tensor.all_to_all(big, rows, sig, core_num=1)", "TG005", "core_num"),
    ("pld.tensor.all_to_all_v(win, win, sig, ints, counts)", "TG050", "same window"),
    ("pld.tensor.all_to_all_v(x, win, sig, ints, sig)", "TG050", "same window"),
    ("pld.tensor.all_to_all_v(x16, win, sig, ints, counts)", "TG007", "FP16 and FP32"),
    ("pld.tensor.all_to_all_v(big, win, sig, ints, counts)", "TG008", "differ in shape"),
    ("pld.tensor.all_to_all_v(x, part, sig, ints, counts)", "TG008", "valid only in"),
    ("pld.tensor.all_to_all_v(x, win, ring, ints, counts)", "TG008", "[NR, 1]"),
    ("pld.tensor.all_to_all_v(x, win, sig, big, counts)", "TG007", "INT32"),
    ("pld.remote_store(x, out, peer, [0, 0])", "TG006", "distributed tensor"),
    ("pld.put(out, peer, win)", "TG006", "distributed tensor"),
    ("pld.tensor.all_to_all_v(x, win, sig, ints, sig1)", "TG008", "[NR, 1]"),
    ("pld.tensor.all_to_all_v(x, win, sig, ints, counts, core_num=2)", "TG050", "CHIP"),
    # memory markers
    ("pl.system.cacheinvalid(win)", "TG005", "all three or not at all"),
    ("pl.system.cacheinvalid(win, [8, 32], [1, 0])", "TG008", "exceeds"),
    ("pl.system.fence(win)", "TG005", "positional"),
]


def test_dumps_leave_the_second_stage_out() -> None:
    op = last("pld.tile.put(win, peer, x, stage, [4, 0], [0, 0], [4, 32], atomic=1)")
    assert op.operands[4] is None and [len(o) for o in op.operands[5:8]] == [2, 2, 2]
    assert op == last("pld.tile.put(win, peer, x, stage, None, [4, 0], [0, 0], [4, 32], atomic=1)")


@pytest.mark.parametrize("line", ACCEPTED)
def test_accepted(line: str) -> None:
    assert isinstance(last(line), Op)


@pytest.mark.parametrize("line,code,words", REFUSED, ids=[r[0] for r in REFUSED])
def test_refused(line: str, code: str, words: str) -> None:
    found, text = refusal(line)
    assert (found, words in text) == (code, True), text


def test_remote_load_is_valid_where_the_source_is() -> None:
    def tile_of(line: str) -> TileType:
        t = last("r = " + line).result.type
        assert isinstance(t, TileType)
        return t

    assert tile_of("pld.tile.remote_load(part, peer, [0, 0], [8, 32])").valid == (5, 20)
    assert tile_of("pld.tile.remote_load(part, peer, [4, 16], [4, 16])").valid == (1, 4)
    assert tile_of("pld.tile.remote_load(part, peer, [0, 0], [4, 16])").valid is None
    assert tile_of("pld.tile.remote_load(part, peer, [0, 0], [8, 32], [2, 32])").valid == (2, 20)
    assert tile_of("pld.tile.remote_load(part, peer, [n, 0], [8, 32])").valid == ("min(8, (5) - (n))", 20)
    assert tile_of("pld.tile.remote_load(win, peer, [0, 0], [8, 32], [n, 32])").valid == ("n", 32)


def test_strides_that_are_not_compact_are_refused() -> None:
    header = HEADER.replace(
        "part: pld.DistributedTensor[[8, 32], pl.FP32, pl.TensorView(layout=pl.TensorLayout.ND, valid_shape=[5, 20])]",
        "part: pld.DistributedTensor[[8, 32], pl.FP32, pl.TensorView(stride=[64, 1], layout=pl.TensorLayout.ND)]",
    )
    assert header != HEADER
    code, text = refusal("pld.tensor.all_to_all_v(x, part, sig, ints, counts)", header)
    assert code == "TG008" and "compact" in text


def test_nested_layouts_are_refused() -> None:
    plain = "sig: pld.DistributedTensor[[4, 1], pl.INT32"
    nz = HEADER.replace(plain + "]", plain + ", pl.NZ]")
    assert nz != HEADER
    code, text = refusal("pld.system.defer_wait(sig, [0, 0], 1, cmp=1)", nz)
    assert code == "TG008" and "NZ" in text


def test_core_placement() -> None:
    def core(line: str) -> str:
        op = last(line)
        return core_of(OPS[op.name], op.operands)

    assert core("pld.tensor.put(win, peer, x)") == VECTOR
    assert core("pld.tensor.get(out, peer, win)") == VECTOR
    assert core("pld.tile.put(win, peer, x, stage)") == VECTOR
    assert core("pld.tile.get(out, peer, win, stage)") == VECTOR
    assert core("pld.tile.remote_store(t, win, peer, [0, 0])") == VECTOR
    assert OPS["pld.tile.remote_store"].placement is None, "derived from its tile operand"
    assert core("pld.tile.remote_load(win, peer, [0, 0], [8, 32])") == SHARED
    assert core("pld.system.notify(sig, peer, [0, 0], 1, op=0)") == SHARED
    assert core("pld.system.wait(sig, [0, 0], 1, cmp=1)") == SHARED
    assert [n for n, d in OPS.items() if not may_duplicate(d)] == ["pld.system.notify"]


def test_a_cube_tile_places_its_operation_on_the_cube() -> None:
    op = last("pl.tile.store(pl.tile.create([8, 32], dtype=pl.FP32, target_memory=pl.Mem.Acc), [0, 0], out)")
    assert core_of(OPS[op.name], op.operands) == "CUBE"


def test_the_fifteen_operations_are_declared() -> None:
    names = {
        "tile": ("remote_load", "remote_store"),
        "tensor": ("remote_store", "get", "put", "allreduce", "barrier", "broadcast", "reduce_scatter", "allgather",
                   "all_to_all", "all_to_all_v"),
        "system": ("notify", "wait", "defer_wait"),
    }  # fmt: skip
    declared = [f"pld.{space}.{n}" for space, short in names.items() for n in short]
    assert len(declared) == 15 and all(n in OPS for n in declared)
