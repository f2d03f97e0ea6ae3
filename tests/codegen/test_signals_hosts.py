"""The signal check of host programs: fresh signals, numbers of ranks they are made for, tasks and their caches."""

from __future__ import annotations

import pytest
from tilegg.codegen.signals import check_signals
from tilegg.extract.lower import lower
from tilegg.ir.program import Program
from tilegg.ir.text import parse

TEXT = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def push(self, x: pl.Tensor[[1, 8], pl.FP32], w: pl.InOut[pld.DistributedTensor[[1, 8], pl.FP32]],
             sig: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]], peer: pl.Scalar[pl.INT32]):
        t = pl.load(x, [0, 0], [1, 8])
        pld.tile.remote_store(t, w, peer, [0, 0])
        pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(sig, [0, 0], {g}, cmp=pld.WaitCmp.Ge)

    @pl.function(type=pl.FunctionType.InCore)
    def take(self, w: pld.DistributedTensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]):
        pl.store(pl.load(w, [0, 0], [1, 8]), [0, 0], y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, xs: pl.Tensor[[{rows}, 1, 8], pl.FP32], ys: pl.Out[pl.Tensor[[{rows}, 1, 8], pl.FP32]]):
        buf = pld.alloc_window_buffer(32)
        cells = pld.alloc_window_buffer(4)
        for r in pl.range({tasks}):
            w = pld.window(buf, [1, 8], dtype=pl.FP32)
            sig = pld.window(cells, [1, 1], dtype=pl.INT32)
            self.push(pl.tensor.slice(xs, [1, 1, 8], [r, 0, 0], [], [0]), w, sig, (r + 1) % {tasks}, device=r)
            self.take(w, pl.tensor.slice(ys, [1, 1, 8], [r, 0, 0], [], [0]), device=r)
        return ys
"""


def program(rows: str = "NR", tasks: str = "pld.world_size()", g: str = "1") -> Program:
    return parse(TEXT.format(rows=rows, tasks=tasks, g=g), "host.py")


def test_signals_that_the_host_makes_are_fresh_every_time() -> None:
    """Credits that stay are no fault there: the runtime clears the windows before it runs the program again."""
    report = check_signals(program())
    assert report.ok and {c.setting.ranks for c in report.checked} == {2, 3, 4, 8}
    assert report.assumptions == ("cells is zero again whenever the program starts",)
    assert {f.word for f in check_signals(program(), calls=2).findings} >= {"stale-signal"}, "not cleared in between"


def test_a_wait_that_is_never_satisfied_is_a_fault_all_the_same() -> None:
    assert {f.word for f in check_signals(program(g="2")).findings} == {"unsatisfiable-wait"}


def test_numbers_of_ranks_that_the_host_tensors_do_not_have() -> None:
    report = check_signals(program(rows="4"))
    assert report.ok and {c.setting.ranks for c in report.checked} == {2, 3, 4}
    assert any(limit.startswith("it is not made for 8 ranks: tensor.slice") for limit in report.limits)
    asked = check_signals(program(rows="4"), [8])
    assert [f.word for f in asked.findings] == ["unchecked"], "who asks for it is told"


@pytest.mark.parametrize("count", [2, 3, 4])
def test_tasks_for_some_ranks_only(count: int) -> None:
    report = check_signals(program(rows=str(count), tasks=str(count)))
    assert report.ok and {c.setting.ranks for c in report.checked} == {count}
    assert f"it is not made for 8 ranks: {8 - count} of them have nothing to do" in report.limits


def test_a_program_that_runs_on_no_number_is_not_passed() -> None:
    report = check_signals(program(rows="1"))
    assert report.certificate() is None and {f.word for f in report.findings} == {"unchecked"}


def test_a_task_begins_with_fresh_caches() -> None:
    """The read stands in another task than the wait: no cacheinvalid is missing between them."""
    made = lower(program(), "a2a3").program
    assert check_signals(made).ok


HELD = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.function(type=pl.FunctionType.Orchestration)
def chip(x: pl.Tensor[[1, 8], pl.FP32], w: pld.DistributedTensor[[1, 8], pl.FP32],
         y: pl.Out[pl.Tensor[[1, 8], pl.FP32]], sig: pld.DistributedTensor[[1, 1], pl.INT32],
         peer: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP) as ready:
        pld.system.defer_wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    with pl.at(level=pl.Level.CORE_GROUP{deps}) as taken:
        pl.store(pl.load(w, [0, 0], [1, 8]), [0, 0], y)
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tile.remote_store(pl.load(x, [0, 0], [1, 8]), w, peer, [0, 0])
        pld.system.notify(sig, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
"""


def test_tasks_that_a_deferred_wait_holds_back_are_not_run_in_the_order_of_the_text() -> None:
    (found,) = check_signals(parse(HELD.format(deps=", deps=[ready]")), [1]).findings
    assert found.word == "unchecked" and "holds back" in found.message and found.places()[0].line == 11
    other = check_signals(parse(HELD.format(deps=", deps=[others]")), [1]).findings
    assert all("holds back" not in f.message for f in other)
