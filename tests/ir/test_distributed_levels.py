"""Where distributed operations may stand: host, chip and core levels, deferred waits, targets."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg.extract.lower import lower
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.distributed_checks import Limits, distributed_problems, ring_signal_problem
from tilegg.ir.dtypes import INT32
from tilegg.ir.levels import CHIP, HOST, INCORE, level_of
from tilegg.ir.program import Function, Program
from tilegg.ir.text import parse
from tilegg.ir.types import TensorType
from tilegg.rewrite.expand import limits_of
from tilegg.rules.target import load_target

sys.path.insert(0, str(Path(__file__).parent))
from distributed_kernels import parse_line

PRELUDE = "import pypto.language as pl\nimport pypto.language.distributed as pld\n\n"
KERNEL = "@pl.function(type=pl.FunctionType.InCore)"
HOSTED = "@pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)"
CHIPPED = "@pl.function(type=pl.FunctionType.Orchestration)"


def codes(program: Program, **options: object) -> list[str]:
    return [d.code for d in distributed_problems(program, **options)]  # type: ignore[arg-type]


def function(decorator: str, params: str, *body: str) -> Program:
    lines = "\n    ".join(body)
    return parse(f"{PRELUDE}{decorator}\ndef f({params}):\n    {lines}\n")


def host(*body: str) -> Program:
    allocations = [f"b{i} = pld.alloc_window_buffer(4096)" for i in range(6)]
    return function(HOSTED, "x: pl.Tensor[[8, 32], pl.FP32], c: pl.Tensor[[4], pl.INT32]", *allocations, *body)


@pytest.mark.parametrize(
    "attrs,level",
    [
        ({"level": "pl.Level.HOST", "role": "pl.Role.Orchestrator"}, HOST),
        ({"type": "pl.FunctionType.Orchestration"}, CHIP),
        ({"level": "pl.Level.CHIP", "role": "pl.Role.Orchestrator"}, CHIP),
        ({"type": "pl.FunctionType.InCore"}, INCORE),
        ({"type": "pl.FunctionType.AIV", "level": "pl.Level.CHIP_DIE", "role": "pl.Role.SubWorker"}, INCORE),
        ({"decorator": "pl.jit.host"}, HOST),
        ({"decorator": "pl.jit.incore"}, INCORE),
        ({}, INCORE),
    ],
)
def test_levels(attrs: dict[str, str], level: str) -> None:
    from tilegg.ir.program import Block

    assert level_of(Function("f", (), (), Block(()), attrs)) == level


def test_allocation_belongs_to_the_host() -> None:
    body = ("b = pld.alloc_window_buffer(64)", "w = pld.window(b, [4, 4], dtype=pl.FP32)", "n = pld.world_size()")
    assert codes(function(KERNEL, "", *body)) == ["TG053"] * 3
    assert codes(function(CHIPPED, "", *body)) == ["TG053"] * 3
    assert codes(function(HOSTED, "", *body)) == []


def test_data_movement_belongs_to_kernels() -> None:
    window = "w = pld.window(b0, [8, 32], dtype=pl.FP32)"
    assert codes(host(window, "pld.tensor.put(w, 0, x)")) == ["TG053"]
    assert codes(host(window, "t = pld.tile.remote_load(w, 0, [0, 0], [8, 32])")) == ["TG053"]
    signal = "s = pld.window(b0, [4, 1], dtype=pl.INT32)"
    assert codes(host(signal, "pld.system.wait(s, [0, 0], 1, cmp=1)")) == ["TG053"]


class TestAllreduce:
    WINDOW = "w = pld.window(b0, [8, 32], dtype=pl.FP32)"

    def test_signal_may_be_left_out_on_the_host_only(self) -> None:
        assert codes(host(self.WINDOW, "r = pld.tensor.allreduce(w)")) == []
        assert codes(parse_line("r = pld.tensor.allreduce(win)")) == ["TG053"]

    def test_cores(self) -> None:
        call = "r = pld.tensor.allreduce(w, core_num=8)"
        assert codes(host(self.WINDOW, call)) == []
        assert codes(host(self.WINDOW, call), limits=Limits("few", 8, True)) == []
        assert codes(host(self.WINDOW, call), limits=Limits("few", 7, True)) == ["TG050"]
        for arch, cores in (("a2a3", 48), ("a5", 72)):
            for count in (cores, cores + 1):
                program = host(self.WINDOW, f"r = pld.tensor.allreduce(w, core_num={count})")
                if count == cores:
                    lower(program, arch)
                    continue
                with pytest.raises(TileggError, match=f"asks for {count} cores, a chip of {arch} has {cores}"):
                    lower(program, arch)
        assert "TG050" in codes(parse_line("r = pld.tensor.allreduce(win, ring, core_num=4)"))

    def test_kernel_mesh_signal_is_one_cell_per_rank(self) -> None:
        assert codes(parse_line("r = pld.tensor.allreduce(win, sig)")) == []
        assert codes(parse_line("r = pld.tensor.allreduce(win, sig1)")) == ["TG008"]
        assert codes(parse_line("r = pld.tensor.allreduce(win, ring)")) == ["TG008"]
        wide = "s = pld.window(b1, [4, 8], dtype=pl.INT32)"
        assert codes(host(self.WINDOW, wide, "r = pld.tensor.allreduce(w, s, core_num=8)")) == []

    def test_auto_takes_the_signal_of_either(self) -> None:
        for shape, found in (("sig", []), ("ring", []), ("sig1", ["TG008"]), ("counts", [])):
            program = parse_line(f"r = pld.tensor.allreduce(win, {shape}, mode='auto')")
            assert codes(program) == found
            if found:
                with pytest.raises(TileggError, match="TG008"):
                    lower(program, "a2a3")
            else:
                lower(program, "a2a3")

    def test_ring_signal_has_a_row_more_on_the_host(self) -> None:
        assert codes(parse_line("r = pld.tensor.allreduce(win, ring, mode='ring')")) == []
        for rows, found in ((6, ["TG008"]), (7, [])):
            signal = f"s = pld.window(b1, [{rows}, 4], dtype=pl.INT32)"
            assert codes(host(self.WINDOW, signal, "r = pld.tensor.allreduce(w, s, mode='ring')")) == found
        assert ring_signal_problem(TensorType(("R", "NR"), INT32)) == ""


class TestHostExchange:
    SIGNALS = (
        "w = pld.window(b0, [8, 32], dtype=pl.FP32)", "i = pld.window(b1, [8, 32], dtype=pl.FP32)",
        "s = pld.window(b2, [4, 1], dtype=pl.INT32)", "n = pld.window(b3, [4], dtype=pl.INT32)",
        "m = pld.window(b4, [4, 1], dtype=pl.INT32)",
    )  # fmt: skip

    def test_windows_of_their_own(self) -> None:
        assert codes(host(*self.SIGNALS, "r = pld.tensor.all_to_all_v(i, w, s, n, m)")) == []
        assert codes(host(*self.SIGNALS, "r = pld.tensor.all_to_all_v(x, w, s, n, m)")) == ["TG006"]
        assert codes(host(*self.SIGNALS, "r = pld.tensor.all_to_all_v(i, w, s, c, m)")) == ["TG006"]

    def test_two_views_of_one_allocation(self) -> None:
        again = "i2 = pld.window(b0, [8, 32], dtype=pl.FP32)"
        assert codes(host(*self.SIGNALS, again, "r = pld.tensor.all_to_all_v(i2, w, s, n, m)")) == ["TG050"]

    def test_not_in_a_loop(self) -> None:
        loop = "for k in pl.range(3):\n        r = pld.tensor.all_to_all_v(i, w, s, n, m)"
        assert codes(host(*self.SIGNALS, loop)) == ["TG050"]
        assert codes(host(*self.SIGNALS, loop.replace("all_to_all_v(i, w, s, n, m)", "barrier(s)"))) == []


def test_atomic_add_of_bf16_is_for_one_target() -> None:
    line = "pld.tensor.put(w, 0, x, atomic=pld.AtomicType.Add)"
    params = "x: pl.Tensor[[8, 32], pl.BF16], w: pld.DistributedTensor[[8, 32], pl.BF16]"
    program = function(KERNEL, params, line)
    a2a3, a5 = (limits_of(load_target(name)) for name in ("a2a3", "a5"))
    assert codes(program) == [] and codes(program, limits=a2a3) == []
    assert codes(program, limits=a5) == ["TG022"]
    assert codes(function(KERNEL, params.replace("BF16", "FP16"), line), limits=a5) == []
    lower(program, "a2a3")
    with pytest.raises(TileggError, match=r"TG022.*BF16 atomically, which a5 cannot"):
        lower(program, "a5")
    store = function(KERNEL, params, "pl.tile.store(pl.tile.load(x, [0, 0], [8, 32]), [0, 0], w, atomic=1)")
    assert codes(store, limits=a5) == ["TG022"]


class TestDeferredWaits:
    PARAMS = "s: pld.DistributedTensor[[128, 1], pl.INT32], x: pl.Tensor[[4], pl.INT32], n: pl.Scalar[pl.INDEX]"
    SCOPE = "with pl.at(level=pl.Level.CORE_GROUP):"
    WAIT = "pld.system.defer_wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)"

    def waiter(self, *body: str, scope: str = SCOPE) -> list[str]:
        inner = "\n        ".join(body)
        return codes(function(KERNEL, self.PARAMS, f"{scope}\n        {inner}"))

    def test_a_waiter_of_its_own(self) -> None:
        assert self.waiter(self.WAIT) == []
        assert self.waiter("k = n + 1", self.WAIT, "if k > 2:\n            " + self.WAIT) == []
        assert self.waiter("v = pl.tensor.read(x, [0])", self.WAIT) == [], "before the first registration"

    def test_outside_a_waiter(self) -> None:
        assert codes(function(KERNEL, self.PARAMS, self.WAIT)) == ["TG050"]
        assert self.waiter(self.WAIT, scope="with pl.spmd(4):") == ["TG050"]
        nested = f"for i in pl.range(2):\n        {self.SCOPE}\n            {self.WAIT}"
        assert codes(function(KERNEL, self.PARAMS, nested)) == ["TG050"]

    def test_an_orchestration_submits_waiters_from_loops_and_regions(self) -> None:
        """One waiter for each slot, each with its own scalars; what other tasks do does not matter."""
        consumer = f"{self.SCOPE}\n                v = pl.tensor.read(x, [0])"
        body = (
            "with pl.scope(mode=pl.ScopeMode.MANUAL):\n        for i in pl.range(4):\n            "
            f"{self.SCOPE}\n                e = pl.tensor.read(x, [0])\n                {self.WAIT}\n"
            f"            {consumer}"
        )
        assert codes(function(CHIPPED, self.PARAMS, body)) == []
        assert codes(function(KERNEL, self.PARAMS, body)) != []

    def test_no_predicate_and_no_early_resolve(self) -> None:
        for word in ("predicate=n", "allow_early_resolve=True"):
            assert self.waiter(self.WAIT, scope=f"with pl.at(level=pl.Level.CORE_GROUP, {word}):") == ["TG050"]

    def test_nothing_but_scalars_after_the_first(self) -> None:
        assert self.waiter(self.WAIT, "v = pl.tensor.read(x, [0])") == ["TG050"]
        assert self.waiter(self.WAIT, "pl.system.fence()") == ["TG050"]
        assert self.waiter(self.WAIT, "pld.system.notify(s, 0, [0, 0], 1, op=0)") == ["TG050"]
        loop = f"for i in pl.range(2):\n            v = pl.tensor.read(x, [0])\n            {self.WAIT}"
        assert self.waiter(loop) == ["TG050"], "the second round reads after the first registration"

    def test_at_most_64_conditions(self) -> None:
        wait = "pld.system.defer_wait(s, [i, 0], 1, cmp=pld.WaitCmp.Ge)"
        assert self.waiter(f"for i in pl.range(64):\n            {wait}") == []
        assert self.waiter(f"for i in pl.range(65):\n            {wait}") == ["TG050"]
        assert self.waiter(f"for i in pl.range(n):\n            {wait}") == []

    def test_the_signal_is_the_parameter(self) -> None:
        slices = "v = pl.tensor.slice(s, [64, 1], [0, 0])"
        assert self.waiter(slices, self.WAIT.replace("(s,", "(v,")) == ["TG050"]
