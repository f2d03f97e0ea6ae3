"""Failures that users of such systems have reported: each gives the right value here, and the wrong form is named."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilegg import lower
from tilegg.codegen.signals import check_signals, replay
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Program
from tilegg.ir.ranks import Ahead, RankResult, run_ranks, schedules
from tilegg.ir.text import parse
from tilegg.rewrite.expand import expand

sys.path.insert(0, str(Path(__file__).parent))
from signal_suite.text import HEAD, SIG, arrive, barrier, gather, indent, notify, retire, wait

XY = "x: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]"
ROW = "data: pld.DistributedTensor[[1, 8], pl.FP32]"
STORE = "t{k} = pl.load({source}, [0, 0], [1, 8])\nd{k} = pl.store(t{k}, [0, 0], data)\n"
TWO = "a: pl.Tensor[[1, 8], pl.FP32], b: pl.Tensor[[1, 8], pl.FP32], y: pl.Out[pl.Tensor[[2, 8], pl.FP32]]"


def program(params: str, body: str, window: str = "data") -> Program:
    return parse(HEAD.format(params=params, window=window) + indent(body), "k.py")


def row(value: float) -> np.ndarray:
    return np.full((1, 8), value, np.float32)


def runs(p: Program, ranks: int, given: Any, count: int = 30, **options: Any) -> list[RankResult]:
    return [run_ranks(p, ranks, given, schedule=s, **options) for s in schedules(ranks, count)]


def words(p: Program, ranks: int) -> set[str]:
    """Return the classes that are found; every witness shows what it is for."""
    report = check_signals(p, [ranks])
    assert all(replay(p, f).shows for f in report.findings)
    return {f.word for f in report.findings}


def values(results: list[RankResult], rank: int, name: str = "y", at: int = 0) -> set[float]:
    return {float(r.outputs[rank][name][at, 0]) for r in results}


class TestSecondSumOnOneSignal:
    """Two sums in place, [1] + [2] and [10] + [20], on the same window and signal."""

    PARAMS = f"{TWO}, {ROW}, {SIG}"

    def call(self, k: int, source: str, first: str, second: str) -> str:
        add = (
            f"g{k} = pld.tile.remote_load(data, 1 - me, [0, 0], [1, 8])\ns{k} = pl.add(t{k}, g{k})\n"
            f"y = pl.store(s{k}, [{k}, 0], y)\n"
        )
        return STORE.format(k=k, source=source) + first + add + second + f"e{k} = pl.store(s{k}, [0, 0], data)\n"

    def outcomes(self, p: Program) -> set[tuple[float, float]]:
        given = [{"a": row(1), "b": row(10)}, {"a": row(2), "b": row(20)}]
        results = runs(p, 2, given, 60)
        assert all(r.ok for r in results)
        return {(float(o["y"][0, 0]), float(o["y"][1, 0])) for r in results for o in r.outputs}

    def test_credits_that_are_retired(self) -> None:
        done = barrier("3") + retire("3")
        calls = [self.call(k, s, barrier("1"), barrier("2")) + done for k, s in enumerate("ab")]
        p = program(self.PARAMS, "".join(calls))
        assert self.outcomes(p) == {(3.0, 30.0)}
        assert check_signals(p, [2]).proved

    def test_a_flag_that_stays_set(self) -> None:
        flag = arrive(op="Set") + gather("1")
        p = program(self.PARAMS, "".join(self.call(k, s, flag, "") for k, s in enumerate("ab")))
        seen = {second for _, second in self.outcomes(p)}
        assert 30.0 in seen and seen & {12.0, 13.0}, "the peer's old input or old result is added"
        assert "stale-signal" in words(p, 2)


class TestEqualityBehindAFastPeer:
    """Two credits arrive before the waiter polls for the first."""

    CELL = "sig: pld.DistributedTensor[[1, 1], pl.INT32]"

    def body(self, cmp: str) -> Program:
        first = wait("0, 0", "1", cmp) + wait("0, 0", "2") + notify("me", "0, 0", "-2")
        return program(self.CELL, f"if me == 0:\n{indent(notify('1', '0, 0') * 2)}else:\n{indent(first)}", "sig")

    def test_equal_hangs_and_at_least_does_not(self) -> None:
        assert run_ranks(self.body("Eq"), 2, {}, schedule=Ahead((0, 1))).findings[0].kind == "deadlock"
        assert run_ranks(self.body("Eq"), 2, {}, schedule=Ahead((1, 0))).ok
        assert all(r.ok and r.clear_signals() for r in runs(self.body("Ge"), 2, {}))
        assert words(self.body("Eq"), 2) == {"eq-on-counter"}
        assert check_signals(self.body("Ge"), [2]).proved


class TestPackedSlots:
    """Every rank sets slot r of rank 0 to 1000 + r: cells of one line are written back together."""

    def slots(self, pitch: int, ranks: int) -> Program:
        params = f"sig: pld.DistributedTensor[[{pitch * ranks}, 1], pl.INT32]"
        take = f"if me == 0:\n    for s in pl.range(1, n):\n        {wait(f's * {pitch}, 0', '1000')}"
        return program(params, "if me != 0:\n    " + notify("0", f"me * {pitch}, 0", "1000 + me", "Set") + take, "sig")

    @pytest.mark.parametrize("ranks", [3, 4, 8])
    def test_packed_cells_lose_values_and_padded_ones_keep_them(self, ranks: int) -> None:
        for pitch, kept in ((1, False), (16, True)):
            p = self.slots(pitch, ranks)
            results = runs(p, ranks, {}, 20, memory="fenced")
            cells = [r.signals["sig"][0][pitch::pitch, 0].tolist() for r in results if r.ok]
            want = [1000 + r for r in range(1, ranks)]
            assert (len(cells) == len(results) and all(c == want for c in cells)) is kept
            assert ("shared-line" in words(p, ranks)) is not kept


STEPS = {
    "store": "pld.tile.remote_store(t, data, 1, [0, 0])\n",
    "notify": notify("1", "0, 0"),
    "clean": "pl.system.cacheinvalid(data, [1, 8], [0, 0])\n",
    "fence": "pl.system.fence()\n",
}


class TestSignalAheadOfData:
    """A 7 goes to the peer's window, then the credit; the peer waits, then reads."""

    PARAMS = f"{XY}, {ROW}, sig: pld.DistributedTensor[[1, 1], pl.INT32]"

    def push(self, *order: str, acquire: str = "") -> Program:
        send = "t = pl.load(x, [0, 0], [1, 8])\n" + "".join(STEPS[o] for o in order)
        take = wait("0, 0") + acquire + "v = pl.read(data, [0, 0])\npl.write(y, [0, 0], v)\n"
        take += notify("me", "0, 0", "-1")
        return program(self.PARAMS, f"if me == 0:\n{indent(send)}else:\n{indent(take)}")

    def seen(self, p: Program, **options: str) -> set[float]:
        return values(runs(p, 2, {"x": row(7), "data": row(0)}, 40, **options), 1)

    def test_store_then_notify(self) -> None:
        assert self.seen(self.push("store", "notify")) == {7.0}
        assert check_signals(self.push("store", "notify"), [2]).proved

    def test_notify_then_store(self) -> None:
        assert self.seen(self.push("notify", "store")) == {0.0, 7.0}
        assert words(self.push("notify", "store"), 2) == {"notify-before-data"}

    def test_without_publication_the_old_value_is_seen(self) -> None:
        drop = "pl.system.cacheinvalid()\n"
        right = self.push("store", "clean", "fence", "notify", acquire=drop)
        assert self.seen(right, memory="fenced") == {7.0} and check_signals(right, [2]).proved
        for order in ("store fence notify", "store clean notify", "store notify clean fence"):
            wrong = self.push(*order.split(), acquire=drop)
            assert self.seen(wrong, memory="fenced") == {0.0, 7.0}
            assert words(wrong, 2) == {"missing-marker"}
        assert words(self.push("store", "clean", "fence", "notify"), 2) == {"missing-marker"}, "nothing is acquired"


class TestRootStagesAgain:
    """The root broadcasts 5, then 7; a slow rank still copies the first."""

    PARAMS = f"{TWO}, {ROW}, {SIG}"

    def two(self, between: str, credits: str) -> Program:
        stage = "if me == 0:\n" + indent(STORE)
        copy = "g{k} = pld.tile.remote_load(data, 0, [0, 0], [1, 8])\ny = pl.store(g{k}, [{k}, 0], y)\n"
        first = (stage + barrier("1") + copy).format(k=0, source="a")
        second = (stage + barrier(credits) + copy).format(k=1, source="b")
        return program(self.PARAMS, first + between + second + retire(credits))

    def test_with_a_completion_round(self) -> None:
        p = self.two(barrier("2"), "3")
        results = runs(p, 3, {"a": row(5), "b": row(7)}, 40)
        assert all(values(results, r) == {5.0} and values(results, r, at=1) == {7.0} for r in range(3))
        assert check_signals(p, [3]).proved

    def test_without_it_the_first_copy_may_be_the_second_value(self) -> None:
        p = self.two("", "2")
        results = runs(p, 3, {"a": row(5), "b": row(7)}, 60)
        assert values(results, 1) == {5.0, 7.0}
        assert words(p, 3) == {"unordered"}


class TestSignalNotZeroAtTheStart:
    PARAMS = f"{XY}, {ROW}, sig: pld.DistributedTensor[[2, 1], pl.INT32]"

    def exchange_body(self, g: str = "1") -> str:
        send = "t = pl.load(x, [0, 0], [1, 8])\npld.tile.remote_store(t, data, 1 - me, [0, 0])\n"
        take = wait("0, 0", g) + "u = pl.load(data, [0, 0], [1, 8])\ny = pl.store(u, [0, 0], y)\n"
        return send + notify("1 - me", "0, 0") + take

    def exchange(self, before: str) -> Program:
        return program(self.PARAMS, before + self.exchange_body())

    def test_leftovers_let_a_wait_pass_early(self) -> None:
        p = self.exchange("")
        clean, dirty = (
            runs(p, 2, {"x": row(9), "data": row(0), "sig": np.full((2, 1), n, np.int32)}, 40) for n in (0, 1)
        )
        assert values(clean, 0) == {9.0} and values(dirty, 0) == {0.0, 9.0}

    def test_a_flag_that_is_cleared_after_the_peer_has_set_it(self) -> None:
        reset = notify("me", "0, 0", "0", "Set")
        lost = self.exchange(reset)
        assert {r.findings[0].kind if r.findings else "" for r in runs(lost, 2, {"x": row(9)}, 40)} == {"", "deadlock"}
        report = check_signals(lost, [2])
        assert {"mixed-set-add", "deadlock"} & {f.word for f in report.findings} and not report.proved

    def test_cleared_behind_a_barrier(self) -> None:
        meet = notify("1 - me", "1, 0") + wait("1, 0") + notify("me", "1, 0", "-1")
        p = self.exchange(notify("me", "0, 0", "0", "Set") + meet)
        results = runs(p, 2, {"x": row(9), "sig": np.array([[5], [0]], np.int32)}, 60)
        assert all(r.ok for r in results) and values(results, 0) == values(results, 1) == {9.0}

    def test_epochs_need_no_clearing(self) -> None:
        """The k-th call waits for k: what earlier calls left is counted in."""
        body = self.exchange_body("k")
        p = program(f"k: pl.Scalar[pl.INT32], {self.PARAMS}", body)
        for k in (1, 2, 5):
            left = np.array([[k - 1], [0]], np.int32)
            results = runs(p, 2, {"k": k, "x": row(k), "data": row(0), "sig": left}, 40)
            assert values(results, 0) == {float(k)} and all(r.signals["sig"][0][0, 0] == k for r in results)


class TestSkewedExchange:
    """Room for 128 rows of each peer, 4 of them filled: 4 rows travel."""

    PARAMS = (
        "x: pl.Tensor[[256, 16], pl.FP32], w: pld.DistributedTensor[[256, 16], pl.FP32], "
        f"{SIG}, c: pl.Tensor[[NR], pl.INT32], g: pld.DistributedTensor[[NR, 1], pl.INT32]"
    )

    @pytest.mark.parametrize("sent", [[4, 4], [0, 128], [1, 300]])
    def test_rows_on_the_wire(self, sent: list[int]) -> None:
        p = program(self.PARAMS, "r = pld.tensor.all_to_all_v(x, w, sig, c, g)\n", "w")
        x = np.arange(256 * 16, dtype=np.float32).reshape(256, 16)
        given = [{"x": x + 5000 * r, "c": np.array(sent, np.int32)} for r in range(2)]
        made = expand(p)
        for result in runs(made, 2, given, 10):
            result.check()
            rows = [min(n, 128) for n in sent]
            moved = {(0, 1): 64 * rows[1], (1, 0): 64 * rows[0]}
            assert result.moved == {k: v for k, v in moved.items() if v}
            for r in range(2):
                for s in range(2):
                    block = slice(128 * s, 128 * s + rows[r])
                    want = given[s]["x"][128 * r : 128 * r + rows[r]]
                    assert np.array_equal(result.windows["w"][r][block], want)
                assert result.known["w"][r].sum() == 2 * 16 * rows[r], "padding rows stay undefined"
        assert check_signals(made, [2], dims={"NR": 2}).ok


class TestLanes:
    """Notify and wait inside a block loop of two lanes: both count."""

    CELL = "sig: pld.DistributedTensor[[1, 1], pl.INT32], o: pl.Out[pl.Tensor[[1, 1], pl.INT32]]"

    @pytest.mark.parametrize("lanes", [1, 2, 4])
    @pytest.mark.parametrize("header", ["with pl.spmd({n}):", "for b in pl.spmd({n}):"])
    def test_the_counter_reaches_the_lanes(self, header: str, lanes: int) -> None:
        body = header.format(n=lanes) + "\n" + indent(notify("(me + 1) % n", "0, 0") + wait("0, 0"))
        body += wait("0, 0", str(lanes)) + "v = pl.read(sig, [0, 0])\npl.write(o, [0, 0], v)\n"
        p = program(self.CELL, body + notify("me", "0, 0", f"-{lanes}"), "sig")
        for ranks in (2, 3):
            results = runs(p, ranks, {}, 20)
            assert all(r.ok and r.clear_signals() for r in results)
            assert {int(o["o"][0, 0]) for r in results for o in r.outputs} == {lanes}
            assert check_signals(p, [ranks]).ok


class TestManyEpochs:
    """An all-to-all barrier of 64 epochs: every row counts 64, and no peer is ever ahead by more than one."""

    def test_every_row_reads_the_epochs(self) -> None:
        loop = "for g in pl.range(64):\n" + indent(arrive() + gather("g + 1"))
        p = program(SIG, loop, "sig")
        for ranks in (2, 4, 8):
            for schedule in schedules(ranks, 6):
                result = run_ranks(p, ranks, {}, schedule=schedule, trace=True).check()
                for r, cells in enumerate(result.signals["sig"]):
                    assert cells[:, 0].tolist() == [0 if s == r else 64 for s in range(ranks)]
                waits = [e for e in result.trace if e.kind == "wait"]
                assert len(waits) == 64 * ranks * (ranks - 1)
                assert all(e.value <= e.seen <= e.value + 1 for e in waits), "outstanding notifies are bounded"

    def test_eight_ranks_are_decided(self) -> None:
        loop = "for g in pl.range(64):\n" + indent(arrive() + gather("g + 1"))
        report = check_signals(program(SIG, loop + retire("64"), "sig"), [2, 4, 8])
        assert report.proved and max(c.events for c in report.checked) == 64 * 8 * 14 + 8 * 7
        assert words(program(SIG, loop, "sig"), 8) == {"credit-leak"}


class TestAccumulation:
    """A sum rounds in the window's dtype at every step, as the definition of the lowered form has it."""

    def total(self, dtype: str, given: list[float], mode: str = "mesh") -> float:
        signal = SIG if mode == "mesh" else "sig: pld.DistributedTensor[[6, NR], pl.INT32]"
        p = program(f"w: pld.DistributedTensor[[1, 8], pl.{dtype}], {signal}",
                    f"r = pld.tensor.allreduce(w, sig, mode='{mode}')\n", "w")  # fmt: skip
        kind = np.float16 if dtype == "FP16" else np.float32
        inputs = [{"w": np.full((1, 8), v, kind)} for v in given]
        found = {float(w[0, 0]) for q in (p, expand(p)) for w in run_ranks(q, 4, inputs).check().windows["w"]}
        assert len(found) == 1, "definition and lowered form agree on every rank"
        return found.pop()

    @pytest.mark.parametrize("mode", ["mesh", "ring"])
    def test_overflow(self, mode: str) -> None:
        assert self.total("FP16", [20000] * 4, mode) == np.inf
        assert self.total("FP32", [20000] * 4, mode) == 80000

    def test_small_addends(self) -> None:
        given = [2048.0, 1.0, 1.0, 1.0]
        assert self.total("FP16", given) == 2048 and self.total("FP32", given) == 2051
        assert float(np.float16(2051)) == 2052, "one rounding of the FP32 sum"

    def test_bf16_is_summed_in_fp32_and_rounded_once(self) -> None:
        with pytest.raises(TileggError, match="TG007"):
            self.total("BF16", [256, 1, 1, 1])
        params = f"x: pl.Tensor[[1, 8], pl.BF16], w: pld.DistributedTensor[[1, 8], pl.FP32], {SIG}, "
        params += "y: pl.Out[pl.Tensor[[1, 8], pl.BF16]]"
        body = (
            "t = pl.tile.cast(pl.load(x, [0, 0], [1, 8]), target_type=pl.FP32)\nv = pl.store(t, [0, 0], w)\n"
            "r = pld.tensor.allreduce(v, sig)\n"
            "u = pl.tile.cast(pl.load(r, [0, 0], [1, 8]), target_type=pl.BF16, mode='rint')\n"
            "y = pl.store(u, [0, 0], y)\n"
        )
        p = program(params, body, "w")
        given = [{"x": np.full((1, 8), v, ml_dtypes.bfloat16)} for v in (256, 1, 1, 1)]
        for q in (p, expand(p), *(lower(p, arch).program for arch in ("a2a3", "a5"))):
            for result in runs(q, 4, given, 5):
                assert {float(o["y"][0, 0]) for o in result.check().outputs} == {260.0}

    def test_the_documentation_says_so(self) -> None:
        text = (Path(__file__).parents[2] / "docs" / "collectives.md").read_text("utf-8")
        assert "rounds in the window's dtype" in text
        for words_ in ("2048 + 1 + 1 + 1 is 2048 in an FP16 window", "2052", "80000 in an FP32 one"):
            assert words_ in " ".join(text.split())
