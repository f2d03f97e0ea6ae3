"""What goes wrong with other protocols, and that the lowered collectives do not share it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Block, Const, For, If, Op, Program, Statement, walk
from tilegg.ir.ranks import RankResult, explore, run_ranks, schedules
from tilegg.rewrite.expand import expand
from tilegg.rules.collectives.reuse import Reuse

sys.path.insert(0, str(Path(__file__).parent))
from collective_cases import kernel

SIG = "sig: pld.DistributedTensor[[NR, 1], pl.INT32]"


def one(value: float, dtype: type = np.float32) -> np.ndarray:
    return np.full((1, 8), value, dtype)


def mapped(program: Program, change: Any) -> Program:
    """Return the program with every operation replaced by ``change(op)`` (``None``: left out)."""

    def block(b: Block) -> Block:
        out: list[Statement] = []
        for s in b:
            if isinstance(s, Op):
                made = change(s)
                out += [] if made is None else [made]
            elif isinstance(s, For):
                out.append(replace(s, body=block(s.body)))
            elif isinstance(s, If):
                out.append(replace(s, then=block(s.then), orelse=block(s.orelse)))
            else:
                out.append(s)
        return Block(tuple(out))

    return replace(program, functions=tuple(replace(f, body=block(f.body)) for f in program.functions))


def outcomes(program: Program, ranks: int, given: Any, count: int = 40) -> list[RankResult]:
    return [run_ranks(program, ranks, given, schedule=s) for s in schedules(ranks, count)]


def waits(program: Program) -> list[Op]:
    return [s for s in walk(program.functions[0].body) if isinstance(s, Op) and s.name == "pld.system.wait"]


TWICE = kernel(
    ["w: pld.DistributedTensor[[1, 8], pl.FP32]", SIG, "x: pl.Tensor[[1, 8], pl.FP32]",
     "y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]", "z: pl.Out[pl.Tensor[[1, 8], pl.FP32]]"],
    """\
    w = pld.tensor.allreduce(w, sig)
    y = pl.store(pl.load(w, [0, 0], [1, 8]), [0, 0], y)
    w = pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], w)
    w = pld.tensor.allreduce(w, sig)
    z = pl.store(pl.load(w, [0, 0], [1, 8]), [0, 0], z)
    return y, z
""",
)  # fmt: skip
GIVEN = [{"w": one(1), "x": one(10)}, {"w": one(2), "x": one(20)}]


class TestBackToBack:
    def test_the_second_result_is_not_stale(self) -> None:
        for result in outcomes(expand(TWICE), 2, GIVEN):
            result.check()
            assert all((o["y"] == 3).all() and (o["z"] == 30).all() for o in result.outputs)
            assert result.clear_signals()

    def test_flags_that_are_set_once_give_stale_results(self) -> None:
        """The same steps with flags instead of credits: no epilogue, every wait for 1."""

        def change(s: Op) -> Op | None:
            if s.name == "pld.system.notify":
                value = s.operands[3]
                assert isinstance(value, Const)
                return None if value.value < 0 else replace(s, attrs={"op": "set"})
            return replace(s, operands=(*s.operands[:2], Const(1))) if s.name == "pld.system.wait" else s

        results = outcomes(mapped(expand(TWICE), change), 2, GIVEN)
        assert any((o["z"] != 30).any() for r in results for o in r.outputs)
        assert not any(r.clear_signals() for r in results)

    def test_an_epilogue_that_takes_less_leaves_credits(self) -> None:
        def change(s: Op) -> Op:
            if s.name == "pld.system.notify" and s.operands[3] == Const(-2):
                return replace(s, operands=(*s.operands[:3], Const(-1)))
            return s

        assert not any(r.clear_signals() for r in outcomes(mapped(expand(TWICE), change), 2, GIVEN, 5))

    def test_credits_of_the_next_call_stay(self) -> None:
        """A fast peer's credit of the second call may arrive before the slow rank has retired the first call's."""
        seen = set()
        for schedule in schedules(3, 20):
            given = [{"w": one(r), "x": one(r)} for r in range(3)]
            result = run_ranks(expand(TWICE), 3, given, schedule=schedule, trace=True).check()
            seen |= {e.seen for e in result.trace if e.kind == "notify" and e.value == 1}
            assert result.clear_signals()
        assert 3 in seen, "one more than the two of a call"
        assert max(seen) <= 4

    def test_an_equality_wait_hangs_behind_a_fast_peer(self) -> None:
        made = expand(TWICE)
        assert all(w.attrs["cmp"] == "ge" for w in waits(made))
        equal = mapped(made, lambda s: replace(s, attrs={"cmp": "eq"}) if s.name == "pld.system.wait" else s)
        found = explore(equal, 2, GIVEN, count=40)
        assert found.failed is not None and found.failed.findings[0].kind == "deadlock"

    @pytest.mark.parametrize("left_out", [1, 2, 3])
    def test_every_barrier_is_needed(self, left_out: int) -> None:
        """Without the waits of one barrier a schedule is wrong; the first inputs lie ready, so not the first."""
        made = expand(TWICE)
        victim = waits(made)[left_out]
        broken = mapped(made, lambda s: None if s is victim else s)
        ok = [
            not r.findings and all((o["y"] == 3).all() and (o["z"] == 30).all() for o in r.outputs)
            for r in outcomes(broken, 2, GIVEN)
        ]
        assert not all(ok)

    def test_a_signal_must_start_at_zero(self) -> None:
        """Leftovers let waits pass early, and stay."""
        given = [g | {"sig": np.full((2, 1), 5, np.int32)} for g in GIVEN]
        results = outcomes(expand(TWICE), 2, given)
        assert any((o["y"] != 3).any() for r in results for o in r.outputs)
        assert all((s == 5).all() for r in results for s in np.array(r.windows["sig"])[:, [0, 1]][0, 1:])


RESTAGED = kernel(
    ["w: pld.DistributedTensor[[1, 8], pl.FP32]", SIG, "x: pl.Tensor[[1, 8], pl.FP32]",
     "y: pl.Out[pl.Tensor[[1, 8], pl.FP32]]", "z: pl.Out[pl.Tensor[[1, 8], pl.FP32]]"],
    """\
    me = pld.rank(pld.get_comm_ctx(w))
    w = pld.tensor.broadcast(w, sig, root=0)
    y = pl.store(pl.load(w, [0, 0], [1, 8]), [0, 0], y)
    if me == 0:
        v = pl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], w)
    w = pld.tensor.broadcast(w, sig, root=0)
    z = pl.store(pl.load(w, [0, 0], [1, 8]), [0, 0], z)
    return y, z
""",
)  # fmt: skip
STAGED = [{"w": one(5), "x": one(7)}, {"x": one(7)}, {"x": one(7)}]


def right(results: list[RankResult]) -> bool:
    return all(
        not r.findings and all((o["y"] == 5).all() and (o["z"] == 7).all() for o in r.outputs) for r in results
    )


class TestReuse:
    def test_a_root_waits_for_its_readers_before_it_stages_anew(self) -> None:
        made = expand(RESTAGED)
        assert right(outcomes(made, 3, STAGED))
        assert [w.operands[2] for w in waits(made)] == [Const(1), Const(2), Const(1)], "the last needs no second round"

    def test_without_that_round_a_slow_reader_gets_the_later_value(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Reuse, "after", lambda self, op: False)
        results = outcomes(expand(RESTAGED), 3, STAGED)
        assert not right(results)
        assert {float(o["y"][0, 0]) for r in results for o in r.outputs} == {5.0, 7.0}

    GATHER = """\
    for i in pl.range(3):
        x = pl.full([1, 8], pl.FP32, 1.0)
        w = pld.tensor.allgather(a, w, sig)
        t = pl.load(w, [0, 0], [3, 8])
        y = pl.store(t, [0, 0], y)
{more}\
        s = pld.tensor.allgather(b, w, sig)
"""
    PARAMS = ("a: pl.Tensor[[1, 8], pl.FP32]", "b: pl.Tensor[[1, 8], pl.FP32]",
              "w: pld.DistributedTensor[[NR, 8], pl.FP32]", SIG, "y: pl.Out[pl.Tensor[[3, 8], pl.FP32]]")  # fmt: skip

    def gather(self, more: str = "") -> Program:
        return kernel(self.PARAMS, self.GATHER.format(more=more))

    def test_pushes_wait_for_readers_of_the_same_window(self, monkeypatch: pytest.MonkeyPatch) -> None:
        given = [{"a": one(r), "b": one(100 + r)} for r in range(3)]
        want = np.repeat(np.arange(3, dtype=np.float32)[:, None], 8, 1)

        def fine(results: list[RankResult]) -> bool:
            return all(not r.findings and all((o["y"] == want).all() for o in r.outputs) for r in results)

        made = expand(self.gather())
        # The first of the loop follows the last of the round before, at whose end all have met.
        assert [w.operands[2] for w in waits(made)] == [Const(1), Const(1), Const(2)]
        assert fine(outcomes(made, 3, given))
        monkeypatch.setattr(Reuse, "before", lambda self, op: False)
        assert not fine(outcomes(expand(self.gather()), 3, given))

    def test_a_barrier_between_makes_the_round_superfluous(self) -> None:
        made = expand(self.gather("        q = pld.tensor.barrier(sig)\n"))
        assert [w.operands[2] for w in waits(made)] == [Const(1), Const(1), Const(1)]
        # One that only some rounds pass does not.
        made = expand(self.gather("        if i > 0:\n            q = pld.tensor.barrier(sig)\n"))
        assert Const(2) in [w.operands[2] for w in waits(made)]

    def test_a_single_use_has_one_round(self) -> None:
        body = "    w = pld.tensor.allgather(a, w, sig)\n    y = pl.store(pl.load(w, [0, 0], [3, 8]), [0, 0], y)\n"
        assert [w.operands[2] for w in waits(expand(kernel(self.PARAMS, body)))] == [Const(1)]


class TestExchange:
    def test_four_rows_of_128_move_four_rows(self) -> None:
        params = ["x: pl.Tensor[[256, 16], pl.FP32]", "w: pld.DistributedTensor[[256, 16], pl.FP32]", SIG,
                  "c: pl.Tensor[[NR], pl.INT32]", "g: pld.DistributedTensor[[NR, 1], pl.INT32]"]  # fmt: skip
        made = expand(kernel(params, "    r = pld.tensor.all_to_all_v(x, w, sig, c, g)\n"))
        x = np.arange(256 * 16, dtype=np.float32).reshape(256, 16)
        given = [{"x": x + 5000 * r, "c": np.array([4, 4], np.int32)} for r in range(2)]
        result = run_ranks(made, 2, given).check()
        assert result.moved == {(0, 1): 4 * 64, (1, 0): 4 * 64}, "not the capacity of 128 rows"
        assert np.array_equal(result.windows["w"][1][:4], given[0]["x"][128:132])
        assert result.known["w"][1].sum() == 2 * 4 * 16

    def test_counts_are_published_anew_in_every_call(self) -> None:
        """The second call sends fewer rows, negative and excessive counts are clamped."""
        params = ["x: pl.Tensor[[6, 4], pl.FP32]", "w: pld.DistributedTensor[[6, 4], pl.FP32]", SIG,
                  "c: pl.Tensor[[2, 3], pl.INT32]", "g: pld.DistributedTensor[[NR, 1], pl.INT32]",
                  "h: pl.Out[pl.Tensor[[2, 3], pl.INT32]]"]  # fmt: skip
        body = """\
    for k in pl.range(2):
        sent = pl.reshape(pl.slice(c, [1, 3], [k, 0]), [3])
        r = pld.tensor.all_to_all_v(x, w, sig, sent, g)
        for s in pl.range(3):
            n = pl.read(g, [s, 0])
            pl.write(h, [k, s], n)
"""
        made = expand(kernel(params, body))
        counts = [np.array([[2, 1, 9], [0, -3, 1]], np.int32) * (1 if r < 2 else -1) for r in range(3)]
        given = [{"x": np.ones((6, 4), np.float32), "c": counts[r]} for r in range(3)]
        for result in outcomes(made, 3, given):
            result.check()
            for r in range(3):
                want = [[int(np.clip(counts[s][k][r], 0, 2)) for s in range(3)] for k in range(2)]
                assert result.outputs[r]["h"].tolist() == want
            assert not any(s.any() for s in result.windows["sig"])


class TestPrecision:
    """Reductions round in the window's dtype at every step; wider accumulation is the author's choice of window."""

    def total(self, dtype: str, values: list[float]) -> Any:
        window = f"w: pld.DistributedTensor[[1, 8], pl.{dtype}]"
        made = expand(kernel([window, SIG], "    r = pld.tensor.allreduce(w, sig)\n"))
        kind = np.float16 if dtype == "FP16" else np.float32
        result = run_ranks(made, len(values), [{"w": one(v, kind)} for v in values]).check()
        (value,) = {float(w[0, 0]) for w in result.windows["w"]}
        return value

    def test_fp16_overflows_where_fp32_does_not(self) -> None:
        assert self.total("FP16", [20000] * 4) == np.inf
        assert self.total("FP32", [20000] * 4) == 80000

    def test_bf16_goes_through_an_fp32_window(self) -> None:
        with pytest.raises(TileggError) as caught:
            self.total("BF16", [256, 1, 1, 1])
        assert caught.value.diagnostics[0].code == "TG007"
        params = ["x: pl.Tensor[[1, 8], pl.BF16]", "w: pld.DistributedTensor[[1, 8], pl.FP32]", SIG,
                  "y: pl.Out[pl.Tensor[[1, 8], pl.BF16]]"]  # fmt: skip
        body = """\
    t = pl.tile.cast(pl.load(x, [0, 0], [1, 8]), target_type=pl.FP32)
    v = pl.store(t, [0, 0], w)
    r = pld.tensor.allreduce(v, sig)
    y = pl.store(pl.tile.cast(pl.load(r, [0, 0], [1, 8]), target_type=pl.BF16, mode="rint"), [0, 0], y)
    return y
"""
        import ml_dtypes

        given = [{"x": one(v).astype(ml_dtypes.bfloat16)} for v in (256, 1, 1, 1)]
        result = run_ranks(expand(kernel(params, body)), 4, given).check()
        assert {float(o["y"][0, 0]) for o in result.outputs} == {260.0}, "259 in FP32, rounded once"


def test_windows_that_a_loop_exchanges_are_followed() -> None:
    """Two windows in turn: each is pushed into anew two rounds after it has been read, behind a round of the other."""
    body = """\
    for i, (p, q) in pl.range(4, init_values=(w, v)):
        r = pld.tensor.allgather(a, p, sig)
        t = pl.store(pl.load(r, [0, 0], [3, 8]), [0, 0], y)
        p_next, q_next = pl.yield_({order})
"""
    params = ["a: pl.Tensor[[1, 8], pl.FP32]", "w: pld.DistributedTensor[[NR, 8], pl.FP32]",
              "v: pld.DistributedTensor[[NR, 8], pl.FP32]", SIG, "y: pl.Out[pl.Tensor[[3, 8], pl.FP32]]"]  # fmt: skip
    for order in ("p, q", "q, p"):
        made = expand(kernel(params, body.format(order=order)))
        assert [w.operands[2] for w in waits(made)] == [Const(1), Const(2)]
        for result in outcomes(made, 3, [{"a": one(r)} for r in range(3)], 12):
            result.check()
            assert all((o["y"] == np.arange(3)[:, None]).all() for o in result.outputs)


@pytest.mark.parametrize("size", [8, 4100])
def test_rows_may_be_staged_anew_after_a_reduce_scatter(size: int) -> None:
    """Its second barrier tells that every peer has read, also where a row takes several chunks."""
    params = [f"w: pld.DistributedTensor[[2, {size}], pl.FP32]", SIG, f"x: pl.Tensor[[2, {size}], pl.FP32]",
              f"y: pl.Out[pl.Tensor[[2, {size}], pl.FP32]]"]  # fmt: skip
    body = f"""\
    me = pld.rank(pld.get_comm_ctx(w))
    for k in pl.range(2):
        r = pld.tensor.reduce_scatter(w, sig)
        y = pl.store(pl.load(r, [me, 0], [1, {size}]), [k, 0], y)
        for i in pl.range(2):
            v = pl.store(pl.load(x, [i, 0], [1, {size}]), [i, 0], w)
"""
    made = expand(kernel(params, body))
    rng = np.random.default_rng(size)
    w, x = rng.standard_normal((2, 2, 2, size)).astype(np.float32)
    for result in outcomes(made, 2, [{"w": w[r], "x": x[r]} for r in range(2)], 12):
        result.check()
        for r in range(2):
            assert np.array_equal(result.outputs[r]["y"], [w[0, r] + w[1, r], x[0, r] + x[1, r]])
