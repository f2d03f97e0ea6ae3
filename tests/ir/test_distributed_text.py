"""Enumerations and text of the distributed operations: integers and names in, one spelling out, round trips."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg import lower
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import INT32, INT64
from tilegg.ir.enums import AbiEnum, AtomicType, NotifyOp, ReduceOp, WaitCmp
from tilegg.ir.program import Op, Program, walk
from tilegg.ir.text import parse, parse_with_remarks, print_program
from tilegg.ir.types import CONTEXT, POINTER, TensorType, scalar
from tilegg.ir.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from distributed_kernels import last, parse_line
from test_distributed_ops import ACCEPTED

VALUES = {
    NotifyOp: {"AtomicAdd": 0, "Set": 1},
    WaitCmp: {"Eq": 0, "Ge": 1},
    AtomicType: {"None_": 0, "Add": 1},
    ReduceOp: {"Sum": 0, "Max": 1, "Min": 2, "Prod": 3},
}


@pytest.mark.parametrize("enum", VALUES)
def test_values_are_fixed(enum: type[AbiEnum]) -> None:
    # Programs and dumps carry these numbers: members are only ever added at the end.
    found = {m.name: int(m) for m in enum}
    assert list(found.items())[: len(VALUES[enum])] == list(VALUES[enum].items())


@pytest.mark.parametrize("enum", VALUES)
def test_members_are_checked_on_construction(enum: type[AbiEnum]) -> None:
    for m in enum:
        for given in (m, int(m), m.name, m.word, f"pld.{enum.__name__}.{m.name}"):
            assert enum.of(given) is m
    for wrong in (-1, len(enum), True, "Nothing", None, 1.0):
        with pytest.raises(TileggError, match="TG004"):
            enum.of(wrong)


def test_words() -> None:
    assert NotifyOp.words() == ("atomic_add", "set")
    assert AtomicType.words() == ("none", "add")
    assert ReduceOp.words() == ("sum", "max", "min", "prod")


@pytest.mark.parametrize("op", ["0", "pld.NotifyOp.AtomicAdd", '"AtomicAdd"', '"atomic_add"'])
def test_texts_give_names_or_integers(op: str) -> None:
    made = last(f"pld.system.notify(sig, peer, [0, 0], 1, op={op})")
    assert made.attrs == {"op": "atomic_add"}


def test_defaults_are_not_stored() -> None:
    assert last("pld.tensor.put(win, peer, x, atomic=0, chunk_rows=0, pipeline=False)").attrs == {}
    assert last('pld.tensor.allreduce(win, sig, op=0, mode="mesh", core_num=1)').attrs == {}


@pytest.mark.parametrize("line", ACCEPTED)
def test_round_trip(line: str) -> None:
    program = parse_line(line)
    text = print_program(program)
    again, remarks = parse_with_remarks(text)
    assert again == program
    assert print_program(again) == text
    assert [r for r in remarks if r.code == "TG018"] == [], "every operation is declared"


def test_dump_form_with_bound_effects() -> None:
    line = "e: pl.UnknownType = pld.system.wait(sig, [0, 0], pl.const(1, pl.INT32), cmp=1)"
    program = parse_line(line)
    assert parse(print_program(program)) == program
    printed = "e: pl.UnknownType = pld.system.wait(sig, [0, 0], pl.const(1, pl.INT32), cmp=pld.WaitCmp.Ge)"
    assert printed in print_program(program)


HOST = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class Ring:
    @pl.function(type=pl.FunctionType.InCore)
    def step(self, x: pl.Tensor[[1, 8], pl.FP32], data: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]]):
        ctx = pld.get_comm_ctx(data)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        pld.tensor.put(data, peer=(me + 1) % n, src=x, atomic=pld.AtomicType.None_)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, xs: pl.Tensor[[2, 1, 8], pl.FP32]):
        buf = pld.alloc_window_buffer(pld.world_size() * 32)
        shaped = pld.alloc_window_buffer([1, 8], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            data = pld.window(buf, [1, 8], dtype=pl.FP32)
            self.step(xs[r], data, device=r)
"""


def test_host_programs_are_typed_and_round_trip() -> None:
    program = parse(HOST)
    text = print_program(program)
    assert parse(text) == program and verify(program) == []
    ops = [s for f in program.functions for s in walk(f.body) if isinstance(s, Op) and s.results]
    made = {s.result.name: s.result.type for s in ops}
    assert made["ctx"] == CONTEXT and made["me"] == scalar(INT32) and made["buf"] == POINTER
    data = made["data"]
    assert isinstance(data, TensorType) and data.is_window and data.shape == (1, 8)
    sizes = [t for t in made.values() if t == scalar(INT64)]
    assert sizes, "world_size is INT64"
    call = next(s for s in walk(program.function("host").body) if isinstance(s, Op) and s.name == "call")
    assert call.attrs["keywords"] == ("device",)


def test_a_context_is_no_tensor() -> None:
    with pytest.raises(TileggError, match="TG006"):
        parse_line("pld.rank(win)")
    with pytest.raises(TileggError, match="TG006"):
        parse_line("pld.window(win, [4], dtype=pl.FP32)")
    with pytest.raises(TileggError, match="TG005"):
        parse_line("b = pld.alloc_window_buffer([4, 4])")
    with pytest.raises(TileggError, match="TG008"):
        parse_line("b = pld.alloc_window_buffer(0)")


def primitives(program: Program) -> list[Op]:
    """Return the operations that have an instruction of their own, in program order."""
    staged = ("pld.tensor.", "pld.system.defer_wait")
    ops = [s for f in program.functions for s in walk(f.body) if isinstance(s, Op)]
    return [s for s in ops if s.name.startswith(("pld.", "system.")) and not s.name.startswith(staged)]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_lowering_leaves_communication_as_it_stands(arch: str) -> None:
    seen = 0
    for line in ACCEPTED:
        program = parse_line(line)
        want = primitives(program)
        if want:
            assert primitives(lower(program, arch).program) == want, line
            seen += 1
    assert seen > 15
