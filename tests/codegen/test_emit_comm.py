"""The structure of emitted communication: peer addresses, contexts, cells, transfers, markers; and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.codegen.pto import api as pto
from tilegg.codegen.pto.base import constant_of, segment_sizes
from tilegg.codegen.pto.elements import element_bytes
from tilegg.ir.diagnostics import Diagnostic, TileggError
from tilegg.ir.ranks import run_ranks

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "rewrite"))
from collective_cases import COLLECTIVES, Case, inputs, program, run
from comm_kernels import HEAD, KERNEL, KERNELS, START
from pto_ranks import Mesh
from test_emit_ranks import compiled, emitted, execute
from tilegg.testing.machine import parsed

TARGETS = ("a2a3", "a5")
CONTEXT = pto.ptr_type("i64")
CASES = [(name, target) for name, k in KERNELS.items() for target in k.targets]


@cache
def operations(text: str) -> list[Any]:
    """Return all operations of a module in program order."""
    return list(parsed(text).walk())


def pointer_of(view: Any) -> Any:
    """Return the pointer a view of global memory is made from."""
    while getattr(view.owner, "name", "") in ("pto.partition_view", "pto.make_tensor_view"):
        view = view.owner.operands[0]
    return view


def is_remote(view: Any) -> bool:
    return getattr(pointer_of(view).owner, "name", "") == "pto.addptr"


def context_word(value: Any) -> tuple[Any, Any]:
    """Return the context argument and the index of the word a scalar was loaded from."""
    assert value.owner.name == "pto.load_scalar", value.owner
    ctx, at = value.owner.operands
    assert ctx.owner.parent_op().name == "func.func" and ctx.type == CONTEXT
    return ctx, at


def added_to_four(value: Any) -> Any:
    """Return what a base's index adds to the first one; a constant's own number less four."""
    known = constant_of(value)
    if known is not None:
        return known - 4
    assert value.owner.name == "arith.addi"
    parts = list(value.owner.operands)
    constants = [constant_of(p) for p in parts]
    assert 4 in constants
    return parts[1 - constants.index(4)]


def check_peer(pointer: Any) -> tuple[Any, Any]:
    """Check that a pointer is own + (base[peer] - base[me]) / size elements; return its context and own pointer."""
    own, elements = pointer.owner.operands
    cast = elements.owner
    assert cast.name == "arith.index_cast"
    quotient, size = cast.operands[0], element_bytes(own.type.element)
    if size > 1:
        assert quotient.owner.name == "arith.divsi" and constant_of(quotient.owner.operands[1]) == size
        quotient = quotient.owner.operands[0]
    assert quotient.owner.name == "arith.subi"
    (ctx, peer), (same, mine) = map(context_word, quotient.owner.operands)
    assert ctx is same
    assert added_to_four(peer) is not None
    me = added_to_four(mine)
    assert me.owner.name == "arith.index_cast" and me.owner.operands[0].owner.name == "arith.trunci"
    packed, word = context_word(me.owner.operands[0].owner.operands[0])
    assert packed is ctx and constant_of(word) == 2
    return ctx, own


@pytest.mark.parametrize(("name", "target"), CASES)
def test_peers_are_addressed_by_the_distance_of_the_bases(name: str, target: str) -> None:
    p, text = compiled(name, target)
    kernels = {op.properties["sym_name"].data: op for op in operations(text) if op.name == "func.func"}
    for f in p.functions:
        args = list(kernels[f.name].body.block.args)
        windows = [q.value.name for q in f.params if getattr(q.value.type, "is_window", False)]
        contexts = args[len(f.params) : len(f.params) + len(windows)]
        assert [a.name_hint for a in contexts] == [f"{w}_ctx" for w in windows], "behind the function's own, in order"
        assert all(a.type == CONTEXT for a in contexts)
        assert all(str(a.type) == "index" for a in args[len(f.params) + len(windows) :]), "then the sizes"
        remote = [op.results[0] for op in kernels[f.name].walk() if op.name == "pto.addptr"]
        for pointer in remote:
            ctx, own = check_peer(pointer)
            while own.owner.__class__.__name__ != "Block":
                own = own.owner.operands[0]
            assert ctx.name_hint == f"{own.name_hint}_ctx", "a window goes by its own context"
    assert any(op.name == "pto.addptr" for op in operations(text)) or name == "ranks"


def bodies(text: str) -> Iterator[list[Any]]:
    for op in operations(text):
        for region in op.regions:
            for block in region.blocks:
                yield list(block.ops)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_transfers_stand_between_barriers_and_carry_their_stages(name: str, target: str) -> None:
    _, text = compiled(name, target)
    stages = 2 if "pipeline" in name else 1
    for ops in bodies(text):
        for i, op in enumerate(ops):
            if op.name not in ("pto.comm.tput", "pto.comm.tget"):
                continue
            assert ops[i - 1].name == ops[i + 1].name == "pto.barrier"
            assert ops[i - 1].properties["pipe"].data == "PIPE_ALL"
            dst, src, *tiles = op.operands
            assert len(tiles) == stages and dst.type.shape == src.type.shape
            there, here = (dst, src) if op.name.endswith("tput") else (src, dst)
            assert is_remote(there) and not is_remote(here)
    adds = text.count("atomicType = #pto<atomic_type atomic_add>")
    assert adds == (1 if name in ("put_add", "bf16_added", "remote_store_add") else 0)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_signals_are_single_cells(name: str, target: str) -> None:
    _, text = compiled(name, target)
    for op in operations(text):
        if op.name not in ("pto.comm.tnotify", "pto.comm.twait"):
            continue
        cell = op.operands[0]
        assert set(cell.type.shape) == {1} and is_remote(cell) == (op.name == "pto.comm.tnotify")
        view = cell.owner.operands[0].owner
        columns = len(view.results[0].type.shape) == 2 and view.results[0].type.shape[1] == 1
        assert (getattr(view.properties.get("layout"), "data", None) == "dn") == columns


@pytest.mark.parametrize(("name", "target"), CASES)
def test_markers_follow_what_they_publish(name: str, target: str) -> None:
    _, text = compiled(name, target)
    for ops in bodies(text):
        for i, op in enumerate(ops):
            if op.name == "pto.cmo.cacheinvalid" and op.operands:
                following = [o for o in ops[i + 1 :] if o.name != "arith.constant"]
                assert following[0].name == "pto.fence.barrier_all"
                written = next(o for o in reversed(ops[:i]) if o.name in WRITES)
                place = written.operands[0 if written.name.startswith("pto.comm") else 1]
                if written.name != "pto.store_scalar":
                    assert op.operands[0].type == place.type
                    assert is_remote(op.operands[0]) == is_remote(place), "the slice that was written"
                    assert same_place(op.operands[0].owner, place.owner)
    regions, fences = text.count("single_cache_line"), text.count("fence.barrier_all")
    assert regions == fences


WRITES = ("pto.tstore", "pto.comm.tput", "pto.comm.tget", "pto.store_scalar")


def same_place(a: Any, b: Any) -> bool:
    _, rank, _ = segment_sizes(a)
    return list(a.operands[1 : 1 + 2 * rank]) == list(b.operands[1 : 1 + 2 * rank])


@pytest.mark.parametrize("target", TARGETS)
def test_partitions_have_the_rank_of_the_window(target: str) -> None:
    _, text = compiled("remote_store_plane", target)
    stores = [op for op in operations(text) if op.name == "pto.tstore" and is_remote(op.operands[1])]
    assert [op.operands[1].type.shape for op in stores] == [(1, 8, 32)]
    _, text = compiled("put_part_known_later", target)
    (put,) = [op for op in operations(text) if op.name == "pto.comm.tput"]
    assert put.operands[0].type.shape == (pto.DYNAMIC, 32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["FP16", "FP32"])
@pytest.mark.parametrize("what", ["mesh", "ring", *COLLECTIVES])
def test_every_collective_is_written_for_both_targets(what: str, dtype: str, target: str) -> None:
    every = what in ("mesh", "ring", "reduce_scatter") and dtype == "FP32"
    for op in ("Sum", "Max", "Min", "Prod") if every else ("Sum",):
        _, text = emitted(program(Case(what, dtype, op, 3, 5000), 2), target)
        assert "pto.comm.tnotify" in text and "pto.comm.twait" in text
        assert text.count("single_cache_line") == text.count("fence.barrier_all")


# -- the markers are needed --------------------------------------------------------------------------------


def without(text: str, kind: str, number: int) -> str:
    """Return the assembly without the n-th marker of a kind."""
    lines = text.splitlines(keepends=True)
    at = [i for i, line in enumerate(lines) if kind in line][number]
    return "".join(lines[:at] + lines[at + 1 :])


REGION, FENCE, ALL = "single_cache_line", "fence.barrier_all", "cacheinvalid all"
DRAIN = "pto.barrier <PIPE_ALL>"
PUBLISHED = (("remote_load", 0), ("remote_store", 1), ("put", 1), ("ring", 0), ("ring", 2))
#: Markers without which a reader sees old data: a store that peers load, a push, and what is read after it.
NEEDED = [
    *((name, REGION, at) for name, at in PUBLISHED),
    *((name, FENCE, at) for name, at in PUBLISHED),
    ("ring", ALL, 1),
    ("ring", DRAIN, 0),
]  # fmt: skip


def runs(name: str) -> tuple[str, Any]:
    """Return the assembly of a program and the function that tells whether a version of it gives the right results."""
    if name in KERNELS:
        k, (p, text) = KERNELS[name], compiled(name, "a5")
        rng = np.random.default_rng(3)
        given = [{"x": rng.normal(0, 1, (8, 32)).astype(np.float32)} for _ in range(3)]
        want, dims = run_ranks(p, 3, given, dims={"NR": 3}).check(), {"NR": 3, **k.dims}
    else:
        case = Case(name, "FP32", "Sum", 3, 17)
        given, dims = inputs(case, 2), {"NR": 3, "M": 4}
        want, (p, text) = run(program(case, 2), case, given).check(), emitted(program(case, 2), "a5")

    def right(assembly: str, seed: int) -> bool:
        got = execute(p, assembly, 3, given, dims, seed=seed)
        return all(
            np.asarray(value).tobytes() == got[r][out].tobytes()
            for r in range(3) for out, value in want.outputs[r].items()
        )  # fmt: skip

    return text, right


@pytest.mark.parametrize(("name", "kind", "at"), NEEDED)
def test_the_machine_shows_a_missing_marker(name: str, kind: str, at: int) -> None:
    text, right = runs(name)
    assert right(text, 0)
    assert not all(right(without(text, kind, at), seed) for seed in range(4))


W = "w: pld.DistributedTensor[[4, 32], pl.FP32], x: pl.Tensor[[4, 32], pl.FP32]"
BY_HAND = """\
t = pl.load(x, [0, 0], [4, 32])
for p in pl.range(n):
    if p != me:
        pld.tile.remote_store(t, w, p, [0, 0])
{marker}
pl.system.fence()
"""


@pytest.mark.parametrize(
    ("marker", "written"),
    [
        ("pl.system.cacheinvalid(w, [4, 32], [0, 0])", "all"),
        ("pl.system.cacheinvalid()", "all"),
        ("pld.tile.remote_store(t, w, right, [0, 0])\npl.system.cacheinvalid(w, [4, 16], [0, 8])", "all"),
        ("pl.system.cacheinvalid()\npld.tile.remote_store(t, w, right, [0, 0])\n"
         "pl.system.cacheinvalid(w, [4, 16], [0, 8])", "peer"),
        ("pl.system.cacheinvalid()\nw = pl.store(t, [0, 0], w)\npl.system.cacheinvalid(w, [4, 16], [0, 8])", "own"),
    ],
)  # fmt: skip
def test_a_region_marked_by_hand_is_that_of_the_slice_written(marker: str, written: str) -> None:
    """A peer whose loop has ended is not known any more: then everything is cleaned."""
    params = f"{W}, sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
    lines = (START + BY_HAND.format(marker=marker)).splitlines()
    text = HEAD + KERNEL.format(params=params) + "".join(f"    {line}\n" for line in lines)
    made = operations(tilegg.emit(tilegg.parse(text, "k.py"), "a5", signals=False))
    made = [op for op in made if op.name == "pto.cmo.cacheinvalid"]
    last = made[-1]
    found = "all" if not last.operands else "peer" if is_remote(last.operands[0]) else "own"
    assert found == written
    if last.operands:
        assert last.operands[0].type.shape == (4, 16)


# -- several cores -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_every_core_of_an_spmd_block_knows_its_context(target: str) -> None:
    """Two cores of each rank notify the right neighbour: each counter reaches two."""
    p, text = compiled("lanes", target)
    assert "%lanes_ctx[" in text
    got = execute(p, text, 3, [{}] * 3, {}, lanes=2)
    assert [int(g["lanes"][0, 0]) for g in got] == [2, 2, 2]
    _, numbered = compiled("each_lane", target)
    assert "pto.get_block_idx" in numbered


@pytest.mark.parametrize("target", TARGETS)
def test_contexts_are_passed_to_called_kernels(target: str) -> None:
    _, text = compiled("called", target)
    (call,) = [op for op in operations(text) if op.name == "func.call"]
    assert [v.name_hint for v in call.operands][-4:] == ["w_ctx", "sig_ctx", "N", "NR"]
    entries = {op.properties["sym_name"].data: "pto.entry" in op.attributes for op in operations(text)
               if op.name == "func.func"}  # fmt: skip
    assert entries == {"kernel": True, "push": False}


def test_a_context_never_takes_the_name_of_a_parameter() -> None:
    body = "    ctx = pld.get_comm_ctx(w)\n    me = pld.rank(ctx)\n    w_ctx = pl.tensor.write(w_ctx, [0], me)\n"
    params = "w: pld.DistributedTensor[[1, 8], pl.FP32], w_ctx: pl.Out[pl.Tensor[[1], pl.INT32]]"
    text = tilegg.emit(tilegg.parse(HEAD + KERNEL.format(params=params) + body, "k.py"), "a5")
    assert "%w_ctx: !pto.ptr<i32>, %w_ctx_: !pto.ptr<i64>" in text


DEFERRED = """\
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(4):
            pld.system.defer_wait(sig, [i, 0], count, cmp=pld.WaitCmp.Ge)
"""


def test_deferred_waits_go_to_the_adapter() -> None:
    params = "count: pl.Scalar[pl.INT32], sig: pld.DistributedTensor[[4, 1], pl.INT32]"
    text = tilegg.emit(
        tilegg.parse(HEAD + KERNEL.format(params=params) + DEFERRED, "k.py"), "a5", signals=False, locations=False
    )
    assert pto.print_pto(pto.parse_pto(text), locations=False) == text
    assert "func.func private @pld_defer_wait(!pto.ptr<i32>, index, i32)" in text and "twait" not in text
    seen = []
    mesh = Mesh(text, 1, outside=lambda core, name, values: seen.append((name, values[1:])))
    mesh.run("kernel", [{"count": 7, "sig": np.zeros(16, np.uint8)}], ["sig"])
    assert seen == [("pld_defer_wait", [i, 7]) for i in range(4)]


# -- functions of the host ---------------------------------------------------------------------------------

HOSTED = HEAD + """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def part(self, w: pld.DistributedTensor[[1, 16], pl.FP32], y: pl.Out[pl.Tensor[[1, 16], pl.FP32]]):
        return pl.store(pl.load(w, [0, 0], [1, 16]), [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, y: pl.Out[pl.Tensor[[1, 16], pl.FP32]]):
        buf = pld.alloc_window_buffer(64)
        w = pld.window(buf, [1, 16], dtype=pl.FP32)
        w2 = pld.tensor.allreduce(w)
        for r in pl.range(pld.world_size()):
            y = self.part(w2, y, device=r)
        return y
"""


def test_host_calls_are_no_device_code() -> None:
    remarks: list[Diagnostic] = []
    text = tilegg.emit(tilegg.lower(tilegg.parse(HOSTED, "p.py"), "a5"), remarks=remarks, signals=False)
    assert "@part" in text and "@main" not in text and "allreduce" not in text
    assert [r.message for r in remarks] == ["main is left out of the assembly"]


LOAD = "    t = pl.load(x, [0, 0], [4, 32])\n"
REFUSED = {
    "an unlowered collective": ("    r = pld.tensor.broadcast(w, sig, root=0)\n", "pld.tensor.broadcast"),
    "a transfer of columns": ("    pld.tensor.put(cols, 0, x)\n", "has layout DN"),
    "an extent in types only": ("    t = pl.load(part, [0, 0], [4, 32])\n", "the valid extent 'V'"),
    "an unlowered put": ("    pld.tensor.put(w, 0, x)\n", "lower the program first"),
    "a store outside spmd": (f"{LOAD}    w = pl.store(t, [0, 0], w)\n    with pl.spmd(2):\n        u = pl.add(t, t)\n",
                             "outside the spmd block"),
    "two spmd blocks": (f"    with pl.spmd(2):\n    {LOAD}    with pl.spmd(2):\n        w = pl.store(t, [0, 0], w)\n",
                        "one spmd block"),
    "a store beside a waiter": (
        f"{LOAD}    w = pl.store(t, [0, 0], w)\n    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        pld.system.defer_wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)\n", "outside the waiter"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_assembly_is_refused_by_name_and_place(name: str) -> None:
    body, message = REFUSED[name]
    params = f"{W}, sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
    if "cols" in body:
        params += ", cols: pld.DistributedTensor[[4, 32], pl.FP32, pl.DN]"
    if "part" in body:
        params += ", part: pld.DistributedTensor[[4, 32], pl.FP32, pl.TensorView(valid_shape=[V, 32])]"
    source = tilegg.parse('V = pl.dynamic("V")\n'.join((HEAD, KERNEL.format(params=params) + body)), "k.py")
    with pytest.raises(TileggError) as refused:
        tilegg.emit(source if "unlowered" in name else tilegg.lower(source, "a5"), "a5", signals=False)
    first = refused.value.diagnostics[0]
    assert first.code == "TG023" and message in first.render() and first.span is not None


def test_a_slice_with_gaps_is_not_passed_on() -> None:
    def called(cut: str) -> str:
        text = KERNELS["called"].text.replace("[N, 16]", "[4, 16]")
        text = text.replace(" w: pld.DistributedTensor[[4, 16]", " w: pld.DistributedTensor[[8, 32]")
        text = text.replace("self.push(x, w, sig, 1)", "self.push(x, pl.tensor.reshape(w, [16, 16]), sig, 1)")
        text = text.replace("pl.tensor.reshape(w, [16, 16])", cut)
        return tilegg.emit(tilegg.lower(tilegg.parse(text, "k.py"), "a5"), signals=False)

    with pytest.raises(TileggError, match="do not follow one another"):
        called("pl.tensor.slice(w, [4, 16], [0, 0])")
    text = called("pl.tensor.slice(pl.tensor.view(w, [16, 16]), [4, 16], [2, 0])")
    assert "pto.addptr" in text[: text.index("func.call")]


def test_a_kernel_cannot_be_both_launched_and_called() -> None:
    chip = """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[N, 16], pl.FP32], w: pld.DistributedTensor[[N, 16], pl.FP32],
             sig: pld.DistributedTensor[[NR, 1], pl.INT32]):
        r = self.push(x, w, sig, 1)
        return r
"""
    source = tilegg.parse(KERNELS["called"].text + chip, "k.py")
    with pytest.raises(TileggError, match="called by a kernel"):
        tilegg.emit(source, "a5", signals=False)
