"""The multi-rank simulator: ping-pong, deadlocks, undefined reads, visibility, schedules and replay."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.interp import run
from tilegg.ir.program import Program
from tilegg.ir.ranks import (
    Ahead,
    Fair,
    Random,
    explore,
    format_schedule,
    parse_schedule,
    run_ranks,
    schedules,
)
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from rank_kernels import BARRIER, PING_PONG, RETIRE, kernel

ROW = np.arange(8, dtype=np.float32).reshape(1, 8)
SIG = "sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
DATA = "data: pld.DistributedTensor[[1, 8], pl.FP32]"
XY = "x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]"


class TestPingPong:
    def test_both_directions_arrive_under_every_schedule(self) -> None:
        for schedule in schedules(2, 40):
            result = run_ranks(PING_PONG, 2, [{"x": ROW}, {"x": ROW * 10}], schedule=schedule).check()
            assert np.array_equal(result.outputs[1]["y"], ROW), schedule.name
            assert np.array_equal(result.outputs[0]["y"], ROW * 11), schedule.name

    def test_events_tell_what_happened(self) -> None:
        result = run_ranks(PING_PONG, 2, [{"x": ROW}, {"x": ROW}], trace=True)
        kinds = [(e.rank, e.kind) for e in result.trace]
        assert kinds == [
            (0, "store"), (0, "deliver"), (0, "notify"), (1, "wait"), (1, "load"), (1, "store"), (1, "deliver"),
            (1, "notify"), (1, "finish"), (0, "wait"), (0, "load"), (0, "finish"),
        ]  # fmt: skip
        notify = next(e for e in result.trace if e.kind == "notify")
        assert (notify.cell.window, notify.cell.owner, notify.cell.number) == ("sig", 1, 0)
        assert (notify.value, notify.word, notify.seen) == (1, "atomic_add", 1)
        store, deliver = result.trace[0], result.trace[1]
        assert store.writes == deliver.writes and deliver.value == store.number
        assert (store.writes[0].owner, store.writes[0].nbytes) == (1, 32)
        assert store.span is not None and store.span.line == 14
        assert result.moved == {(0, 1): 32, (1, 0): 32}
        assert result.signals["sig"][0].tolist() == [[1]]

    def test_the_signal_cells_are_left_as_they_are(self) -> None:
        result = run_ranks(PING_PONG, 2, [{"x": ROW}, {"x": ROW}])
        assert not result.clear_signals() and sorted(result.signals) == ["sig"]


class TestDeadlock:
    def test_a_wait_that_nobody_notifies(self) -> None:
        program = kernel(SIG, "    pld.system.wait(sig, [me, 0], 1, cmp=pld.WaitCmp.Ge)\n")
        result = run_ranks(program, 3, {})
        (finding,) = result.findings
        assert finding.kind == "deadlock" and finding.ranks == (0, 1, 2)
        assert [(c.owner, c.number) for c in finding.cells] == [(0, 0), (1, 1), (2, 2)]
        assert "sig[1] of rank 1 >= 1, which holds 0" in " ".join(finding.notes)
        with pytest.raises(TileggError, match="TG051"):
            result.check()

    def test_two_ranks_that_wait_for_each_other_first(self) -> None:
        body = (
            "    pld.system.wait(sig, [1 - me, 0], 1, cmp=pld.WaitCmp.Ge)\n"
            "    pld.system.notify(sig, 1 - me, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)\n"
        )
        assert run_ranks(kernel(SIG, body), 2, {}).findings[0].kind == "deadlock"

    def test_an_equality_wait_overrun_by_a_fast_peer(self) -> None:
        # Right when the waiter polls between the two notifies, stuck when the peer is faster.
        body = (
            "    if me == 0:\n"
            "        pld.system.wait(sig, [1, 0], 1, cmp=pld.WaitCmp.{cmp})\n"
            "    else:\n"
            "        pld.system.notify(sig, 0, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)\n"
            "        pld.system.notify(sig, 0, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)\n"
        )
        equal, at_least = kernel(SIG, body.format(cmp="Eq")), kernel(SIG, body.format(cmp="Ge"))
        assert run_ranks(equal, 2, {}, schedule=Ahead((0, 1))).ok
        assert run_ranks(equal, 2, {}, schedule=Ahead((1, 0))).findings[0].kind == "deadlock"
        found = explore(equal, 2, {})
        assert found.failed is not None
        again = run_ranks(equal, 2, {}, schedule=found.failed.schedule)
        assert again.findings == found.failed.findings
        assert explore(at_least, 2, {}).failed is None

    def test_a_collective_that_one_rank_skips(self) -> None:
        program = kernel(SIG, "    if me != 1:\n        s = pld.tensor.barrier(sig)\n")
        (finding,) = run_ranks(program, 3, {}).findings
        assert finding.kind == "deadlock" and finding.ranks == (0, 2)
        assert any("not every rank reaches" in n for n in finding.notes)
        assert "finished: rank 1" in finding.notes

    def test_ranks_at_different_collectives(self) -> None:
        two = SIG + ", other: pld.DistributedTensor[[NR, 1], pl.INT32]"
        choice = "    if me == 0:\n        a = pld.tensor.barrier(sig)\n    else:\n"
        body = choice + "        b = pld.tensor.barrier(other)\n"
        assert run_ranks(kernel(two, body), 2, {}).findings[0].kind == "deadlock"


class TestMemory:
    def test_an_undefined_window_is_poisoned_and_flagged(self) -> None:
        body = "    t = pl.load(data, [0, 0], [1, 8])\n    y = pl.store(t, [0, 0], y)\n    return y\n"
        program = kernel(f"{XY}, {DATA}", body, "data")
        result = run_ranks(program, 2, {"x": ROW})
        assert [f.kind for f in result.findings] == ["undefined read", "undefined read"]
        assert np.isnan(result.outputs[0]["y"]).all()
        assert result.findings[0].diagnostic().span.line == 12
        assert run_ranks(program, 2, {"x": ROW, "data": ROW}).ok

    def test_a_peers_undefined_rows(self) -> None:
        body = (
            "    if me == 0:\n"
            "        half = pl.load(x, [0, 0], [1, 4])\n"
            "        d = pl.store(half, [0, 0], data)\n"
            "    s = pld.tensor.barrier(sig)\n"
            "    t = pld.tile.remote_load(data, 0, [0, {at}], [1, 4])\n"
            "    z = pl.store(t, [0, 0], y)\n"
            "    return z\n"
        )
        params = f"{XY}, {DATA}, {SIG}"
        assert run_ranks(kernel(params, body.format(at=0)), 2, {"x": ROW}).ok
        bad = run_ranks(kernel(params, body.format(at=4)), 2, {"x": ROW})
        assert {f.kind for f in bad.findings} == {"undefined read"}
        assert bad.known["data"][0].tolist() == [[True] * 4 + [False] * 4]
        assert not bad.known["data"][1].any()

    def test_a_write_may_stay_invisible_without_a_notify(self) -> None:
        # Rank 1 is released by a signal that rank 0 raised before its store.
        body = (
            "    t = pl.load(x, [0, 0], [1, 8])\n"
            "    if me == 0:\n"
            "{first}{second}"
            "    else:\n"
            "        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)\n"
            "        got = pl.load(data, [0, 0], [1, 8])\n"
            "        z = pl.store(got, [0, 0], y)\n"
        )
        store = "        pld.tile.remote_store(t, data, 1, [0, 0])\n"
        notify = "        pld.system.notify(sig, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)\n"
        params = f"{XY}, {DATA}, {SIG}"
        inputs = {"x": ROW + 1, "data": ROW * 0}
        right, wrong = (kernel(params, body.format(first=a, second=b)) for a, b in ((store, notify), (notify, store)))
        assert explore(right, 2, inputs).agree
        seen = {float(run_ranks(wrong, 2, inputs, schedule=s).outputs[1]["y"][0, 0]) for s in schedules(2, 30)}
        assert seen == {0.0, 1.0}, "the old and the new value, as the schedule has it"
        assert not explore(wrong, 2, inputs, count=30).agree

    def test_the_own_writes_are_read_back(self) -> None:
        body = (
            "    t = pl.load(x, [0, 0], [1, 8])\n"
            "    d = pl.store(t, [0, 0], data)\n"
            "    u = pl.load(d, [0, 0], [1, 8])\n"
            "    z = pl.store(u, [0, 0], y)\n"
        )
        for schedule in schedules(2, 12):
            result = run_ranks(kernel(f"{XY}, {DATA}", body, "data"), 2, {"x": ROW}, schedule=schedule).check()
            assert np.array_equal(result.outputs[1]["y"], ROW)

    def test_unordered_writes_land_in_either_order(self) -> None:
        body = (
            "    t = pl.load(x, [0, 0], [1, 8])\n"
            "    pld.tile.remote_store(t, data, 0, [0, 0])\n"
            "    s = pld.tensor.barrier(sig)\n"
        )
        program = kernel(f"{XY}, {DATA}, {SIG}", body)
        last = {
            float(run_ranks(program, 3, lambda r: {"x": ROW * 0 + r}, schedule=s).windows["data"][0][0, 0])
            for s in schedules(3, 30)
        }
        assert last == {0.0, 1.0, 2.0}

    @pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT32", "INT8"])
    def test_atomic_adds_of_all_ranks_accumulate(self, dtype: str) -> None:
        params = f"x: pl.Tensor[[2, 32], pl.{dtype}], acc: pld.DistributedTensor[[2, 32], pl.{dtype}]"
        program = kernel(params, "    pld.tensor.put(acc, 0, x, atomic=pld.AtomicType.Add)\n", "acc")
        storage = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32, "INT8": np.int8}[dtype]
        zero = np.zeros((2, 32), storage)
        for schedule in schedules(4, 10):
            result = run_ranks(program, 4, lambda r: {"x": zero + r + 1, "acc": zero}, schedule=schedule).check()
            assert (result.windows["acc"][0] == 10).all()

    def test_fences_of_the_program_alone(self) -> None:
        body = (
            "    t = pl.load(x, [0, 0], [1, 8])\n"
            "    if me == 0:\n"
            "        pld.tile.remote_store(t, data, 1, [0, 0])\n"
            "{markers}"
            "        pld.system.notify(sig, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)\n"
            "    else:\n"
            "        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)\n"
            "        got = pl.load(data, [0, 0], [1, 8])\n"
            "        z = pl.store(got, [0, 0], y)\n"
        )
        region = "        pl.system.cacheinvalid(data, [1, 8], [0, 0])\n"
        fence = "        pl.system.fence()\n"

        def sound(markers: str, memory: str) -> bool:
            program = kernel(f"{XY}, {DATA}, {SIG}", body.format(markers=markers))
            return explore(program, 2, {"x": ROW + 1, "data": ROW * 0}, memory=memory).agree

        assert sound("", "released") and not sound("", "fenced")
        assert sound(region + fence, "fenced")
        assert not sound(fence, "fenced") and not sound(region, "fenced") and not sound(fence + region, "fenced")

    def test_setters_of_one_cache_line_undo_each_other(self) -> None:
        # Packed cells share a line, which a scalar store writes back as a whole; a line for each keeps them apart.
        body = "    pld.system.notify(sig, 0, [me * {pitch}, 0], 1000 + me, op=pld.NotifyOp.Set)\n"
        for pitch, kept in ((1, False), (16, True)):
            params = "sig: pld.DistributedTensor[[48, 1], pl.INT32]"
            program = kernel(params, body.format(pitch=pitch))

            def whole(memory: str, program: Program = program, pitch: int = pitch) -> bool:
                runs = [run_ranks(program, 3, {}, schedule=s, memory=memory) for s in schedules(3, 20)]
                cells = [[int(r.signals["sig"][0][k * pitch, 0]) for k in range(3)] for r in runs]
                return all(c == [1000, 1001, 1002] for c in cells)

            assert whole("fenced") is kept
            assert whole("released"), "the default model keeps elements apart"

    def test_a_scalar_read_is_stale_until_the_cache_is_invalidated(self) -> None:
        body = (
            "    if me == 0:\n"
            "        pld.tensor.put(data, 1, x)\n"
            "        pl.system.cacheinvalid(data, [1, 8], [0, 0])\n"
            "        pl.system.fence()\n"
            "        pld.system.notify(sig, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)\n"
            "    else:\n"
            "        before = pl.tensor.read(data, [0, 0])\n"
            "        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)\n"
            "{marker}"
            "        after = pl.tensor.read(data, [0, 0])\n"
            "        z = pl.tensor.write(y, [0, 0], after)\n"
        )

        def values(marker: str) -> set[float]:
            program = kernel(f"{XY}, {DATA}, {SIG}", body.format(marker=marker))
            inputs = {"x": ROW + 7, "data": ROW * 0}
            runs = [run_ranks(program, 2, inputs, schedule=s, memory="fenced") for s in schedules(2, 20)]
            return {float(r.outputs[1]["y"][0, 0]) for r in runs}

        assert values("") == {0.0, 7.0}
        assert values("        pl.system.cacheinvalid()\n") == {7.0}


class TestSignalReuse:
    """One signal for two exchanges: credits that are retired stay right, a flag that is only set goes stale."""

    PARAMS = (
        "a: pl.Tensor[[1, 8], pl.FP32], b: pl.Tensor[[1, 8], pl.FP32], u: pl.Out[pl.Tensor[[1, 8], pl.FP32]], "
        f"v: pl.Out[pl.Tensor[[1, 8], pl.FP32]], {DATA}, {SIG}"
    )

    def exchange(self, source: str, into: str, begin: str, end: str) -> str:
        return (
            f"    t_{into} = pl.load({source}, [0, 0], [1, 8])\n"
            f"    d_{into} = pl.store(t_{into}, [0, 0], data)\n"
            f"{begin}"
            f"    g_{into} = pld.tile.remote_load(data, 1 - me, [0, 0], [1, 8])\n"
            f"    r_{into} = pl.add(t_{into}, g_{into})\n"
            f"    o_{into} = pl.store(r_{into}, [0, 0], {into})\n"
            f"{end}"
        )

    FLAG = (
        "    pld.system.notify(sig, 1 - me, [me, 0], 1, op=pld.NotifyOp.Set)\n"
        "    pld.system.wait(sig, [1 - me, 0], 1, cmp=pld.WaitCmp.Ge)\n"
    )

    def inputs(self, rank: int) -> dict[str, np.ndarray]:
        one = np.ones((1, 8), np.float32)
        return {"a": one * (rank + 1), "b": one * (10 * (rank + 1))}

    def test_retired_credits(self) -> None:
        begin, end = BARRIER.format(g=1), BARRIER.format(g=2) + RETIRE.format(g=2)
        program = kernel(self.PARAMS, self.exchange("a", "u", begin, end) + self.exchange("b", "v", begin, end))
        for schedule in schedules(2, 60):
            result = run_ranks(program, 2, self.inputs, schedule=schedule).check()
            assert result.clear_signals()
            for out in result.outputs:
                assert (out["u"] == 3).all() and (out["v"] == 30).all(), schedule.name

    def test_a_flag_set_once_is_stale_the_second_time(self) -> None:
        program = kernel(self.PARAMS, self.exchange("a", "u", self.FLAG, "") + self.exchange("b", "v", self.FLAG, ""))
        seen = set()
        for schedule in schedules(2, 60):
            result = run_ranks(program, 2, self.inputs, schedule=schedule)
            seen |= {float(out[k][0, 0]) for out in result.outputs for k in ("u", "v")}
        assert {3.0, 30.0} < seen and seen & {11.0, 12.0, 21.0, 22.0}, "data of the wrong round is added"


class TestSchedules:
    def test_text_form(self) -> None:
        choices = (0, 1, (1, 3), 12)
        assert format_schedule(choices) == "0 1 1!3 12"
        assert parse_schedule("0 1 1!3 12") == choices
        for wrong in ("x", "1!", "-1", "1!x"):
            with pytest.raises(TileggError, match="TG040"):
                parse_schedule(wrong)

    def test_every_run_replays(self) -> None:
        for schedule in (Fair(), Random(7), Ahead((1, 0))):
            first = run_ranks(PING_PONG, 2, [{"x": ROW}, {"x": ROW}], schedule=schedule, trace=True)
            text = format_schedule(first.schedule)
            again = run_ranks(PING_PONG, 2, [{"x": ROW}, {"x": ROW}], schedule=text, trace=True)
            assert [str(e) for e in again.trace] == [str(e) for e in first.trace]
            assert again.schedule == first.schedule

    def test_seeds_are_reproducible_and_differ(self) -> None:
        runs = [run_ranks(PING_PONG, 2, {"x": ROW}, schedule=seed).schedule for seed in (1, 1, 2, 3, 4, 5)]
        assert runs[0] == runs[1] and len(set(runs)) > 2

    def test_a_schedule_that_does_not_fit(self) -> None:
        with pytest.raises(TileggError, match="TG040"):
            run_ranks(PING_PONG, 2, {"x": ROW}, schedule=(1, 1, 1, 1))

    def test_thousands_of_schedules_are_quick(self) -> None:
        start = time.perf_counter()
        for seed in range(300):
            run_ranks(PING_PONG, 2, {"x": ROW}, schedule=seed)
        assert time.perf_counter() - start < 3.0


class TestInputs:
    def test_forms_of_inputs(self) -> None:
        for inputs in ({"x": ROW}, [{"x": ROW}] * 2, lambda r: {"x": ROW}):
            assert run_ranks(PING_PONG, 2, inputs).ok
        with pytest.raises(TileggError, match="TG030"):
            run_ranks(PING_PONG, 3, [{"x": ROW}] * 2)
        with pytest.raises(TileggError, match="TG030"):
            run_ranks(PING_PONG, 2, {})
        with pytest.raises(TileggError, match="TG030"):
            run_ranks(PING_PONG, 0, {"x": ROW})
        with pytest.raises(TileggError, match="TG040"):
            run_ranks(PING_PONG, 2, {"x": ROW}, memory="weak")
        with pytest.raises(TileggError, match="TG030"):
            run_ranks(PING_PONG, 2, {"x": ROW}, calls=0)

    def test_calls_follow_one_another(self) -> None:
        body = BARRIER.format(g=1) + "    v = pl.read(o, [0, 0])\n    pl.write(o, [0, 0], v + me + 1)\n"
        program = kernel(f"{SIG}, o: pl.InOut[pl.Tensor[[1, 1], pl.INT32]]", body + RETIRE.format(g=1))
        for schedule in schedules(3, 8):
            result = run_ranks(program, 3, {"o": [[0]]}, calls=4, schedule=schedule).check()
            assert [o["o"].item() for o in result.outputs] == [4, 8, 12] and result.clear_signals()

    def test_window_sizes(self) -> None:
        program = kernel("w: pld.DistributedTensor[[M, 8], pl.FP32]", "    pl.system.fence()\n", "w")
        with pytest.raises(TileggError, match="size of window w"):
            run_ranks(program, 2, {})
        assert run_ranks(program, 2, {}, dims={"M": 3}).windows["w"][0].shape == (3, 8)
        assert run_ranks(program, 2, {"w": ROW}).windows["w"][1].tolist() == ROW.tolist()
        with pytest.raises(TileggError, match="different shapes"):
            run_ranks(program, 2, lambda r: {"w": np.zeros((r + 1, 8), np.float32)})

    def test_a_failing_statement_is_a_finding(self) -> None:
        program = kernel(SIG, "    pld.system.notify(sig, me + 1, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)\n")
        (finding,) = run_ranks(program, 2, {}).findings
        assert finding.kind == "fault" and "no rank 2 among 2" in finding.message
        assert finding.diagnostic().span.line == 12
        outside = kernel(SIG, "    pld.system.wait(sig, [n, 0], 1, cmp=pld.WaitCmp.Ge)\n")
        assert run_ranks(outside, 2, {}).findings[0].kind == "fault"

    def test_an_endless_loop_stops(self) -> None:
        program = kernel(SIG.replace("NR", "2"), "    while n > 0:\n        pl.system.fence()\n")
        (finding,) = run_ranks(program, 2, {}, max_steps=1000).findings
        assert finding.kind == "fault" and "1000 steps" in finding.message


def test_control_flow_around_communication() -> None:
    params = f"{SIG}, k: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[1, 1], pl.INT32]]"
    body = """\
    total = 0
    for i in pl.range(k):
        if i == 2:
            continue
        if i == 5:
            break
        pld.system.notify(sig, (me + 1) % n, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        total = total + 1
    c = 0
    while c < total:
        c = c + 1
        pld.system.wait(sig, [0, 0], c, cmp=pld.WaitCmp.Ge)
    r = pl.tensor.write(o, [0, 0], total)
"""
    program = kernel(params, body)
    for schedule in schedules(3, 10):
        result = run_ranks(program, 3, {"k": 9}, schedule=schedule).check()
        assert [out["o"].item() for out in result.outputs] == [4, 4, 4]
        assert [s[0, 0] for s in result.signals["sig"]] == [4, 4, 4]


def test_communication_in_called_functions() -> None:
    text = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def raise_(self, s: pld.DistributedTensor[[2, 1], pl.INT32], to: pl.Scalar[pl.INT32]):
        pld.system.notify(s, to, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, sig: pld.DistributedTensor[[2, 1], pl.INT32], other: pld.DistributedTensor[[2, 1], pl.INT32]):
        me = pld.rank(pld.get_comm_ctx(sig))
        self.raise_(sig, 1 - me)
        self.raise_(other, me)
        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)
"""
    result = run_ranks(parse(text), 2, {}).check()
    assert sorted(result.signals) == ["other", "sig"], "both are signals, one only through the call"
    assert [s.tolist() for s in result.signals["other"]] == [[[1], [0]]] * 2


class TestDeferredWait:
    BODY = (
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        pld.system.defer_wait(sig, [0, 0], {g}, cmp=pld.WaitCmp.Ge)\n"
        "{after}"
    )

    def test_the_task_completes_when_the_counter_is_ready(self) -> None:
        notify = "    pld.system.notify(sig, (me + 1) % n, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)\n"
        program = kernel(SIG, self.BODY.format(g=1, after=notify))
        result = run_ranks(program, 2, {}, trace=True).check()
        assert [e.kind for e in result.trace if e.rank == 0] == ["defer", "notify", "wait", "finish"]
        assert run_ranks(kernel(SIG, self.BODY.format(g=2, after=notify)), 2, {}).findings[0].kind == "deadlock"

    def test_counters_compare_as_unsigned(self) -> None:
        # The hazard the thresholds' range guards against: -1 counts as a very large number.
        program = kernel(SIG, self.BODY.format(g=5, after=""))
        cells = np.full((2, 1), -1, np.int32)
        assert run_ranks(program, 2, {"sig": cells}).ok
        assert run_ranks(program, 2, {"sig": cells + 5}).findings[0].kind == "deadlock"


def test_a_run_of_one_rank_is_the_ordinary_interpreter() -> None:
    body = (
        "    t = pl.load(x, [0, 0], [1, 8])\n"
        "    pld.tile.remote_store(t, data, me, [0, 0], atomic=pld.AtomicType.Add)\n"
        "    pld.tensor.put(data, 0, x, [0, 4], [0, 0], [1, 4])\n"
        "    pld.system.notify(sig, me, [0, 0], 3, op=pld.NotifyOp.Set)\n"
        "    pld.system.wait(sig, [0, 0], 3, cmp=pld.WaitCmp.Eq)\n"
        "    pld.tensor.get(y, 0, data)\n"
        "    d = pld.tensor.allreduce(data, sig)\n"
    )
    program = kernel(f"{XY}, {DATA}, {SIG}", body)
    windows = {"data": ROW + 1, "sig": np.zeros((1, 1), np.int32)}
    plain = run(program, {"x": ROW, **windows})
    ranks = run_ranks(program, 1, {"x": ROW, **windows}).check()
    want = [[1.0, 3.0, 5.0, 7.0, 0.0, 1.0, 2.0, 3.0]]
    assert plain["y"].tolist() == want and ranks.outputs[0]["y"].tolist() == want
    assert plain["data"].tolist() == want and ranks.windows["data"][0].tolist() == want
    with pytest.raises(TileggError, match="run_ranks"):
        run(kernel(SIG, "    pld.system.notify(sig, 1, [0, 0], 1, op=0)\n"), {"sig": np.zeros((1, 1), np.int32)})
    with pytest.raises(TileggError, match="never ends"):
        run(kernel(SIG, "    pld.system.wait(sig, [0, 0], 1, cmp=1)\n"), {"sig": np.zeros((1, 1), np.int32)})
