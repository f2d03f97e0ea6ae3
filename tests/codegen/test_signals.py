"""The signal check: verdicts against the simulator, budgets, schedules, drawing, the command line and the gate."""

from __future__ import annotations

import json
import random
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from tilegg.cli import main
from tilegg.codegen.emit import emit
from tilegg.codegen.signals import CLASSES, check_signals, draw_html, draw_svg, replay
from tilegg.codegen.signals.cells import build
from tilegg.codegen.signals.draw import event_graph
from tilegg.codegen.signals.report import Setting
from tilegg.codegen.signals.structure import influences
from tilegg.codegen.signals.unroll import unroll
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Block, Const, For, If, Op, Program, walk
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse
from tilegg.rewrite.expand import expand

sys.path.insert(0, str(Path(__file__).parent))
from signal_suite.text import HEAD, SIG, barrier, indent, notify, retire, wait

HANGS = ("deadlock", "unsatisfiable-wait", "wrong-cell", "divergent-barrier")
ORDERS = ("unordered", "notify-before-data", "use-before-wait")
ONE_CELL = "sig: pld.DistributedTensor[[1, 1], pl.INT32]"


def program(params: str, body: str, window: str = "sig") -> Program:
    return parse(HEAD.format(params=params, window=window) + indent(body), "k.py")


# -- random programs -------------------------------------------------------------------------------------------


def drawn(rng: random.Random, ranks: int) -> Program:
    """Return a program of straight code per rank: credits, waits, stores to a peer's slot and loads of the own."""
    text = "t = pl.load(x, [0, 0], [1, 8])\n"
    for r in range(ranks):
        lines = [line for _ in range(rng.randint(2, 5)) for line in _some(rng, r, ranks)]
        text += f"if me == {r}:\n" + indent("".join(lines) or "a = 1\n")
    params = (
        "x: pl.Tensor[[1, 8], pl.FP32], data: pld.DistributedTensor[[2, 8], pl.FP32], "
        "sig: pld.DistributedTensor[[3, 1], pl.INT32]"
    )
    return program(params, text, "data")


def _some(rng: random.Random, r: int, ranks: int) -> list[str]:
    peer, slot = rng.choice([p for p in range(ranks) if p != r]), rng.randint(0, 1)
    cell = f"{rng.randint(0, 1)}, 0"
    match rng.randint(0, 5):
        case 0 | 1:
            return [notify(str(peer), cell)]
        case 2 | 3:
            return [wait(cell, str(rng.randint(1, 2)))]
        case 4:
            return [f"pld.tile.remote_store(t, data, {peer}, [{slot}, 0])\n", notify(str(peer), cell)]
    return [f"g{rng.randint(0, 99)} = pl.load(data, [{slot}, 0], [1, 8])\n"]


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_agree_with_the_simulator(seed: int) -> None:
    rng = random.Random(seed)
    ranks = rng.choice((2, 3))
    p = drawn(rng, ranks)
    report = check_signals(p, [ranks])
    words = {f.word for f in report.findings}
    runs = [
        run_ranks(p, ranks, {"x": [[1.0] * 8]}, schedule=s, trace=True, undefined="allow") for s in schedules(ranks, 25)
    ]
    hung = [bool(r.findings) for r in runs]
    assert any(hung) == all(hung) == bool(words & set(HANGS)), "one run decides"
    if not any(hung):
        left = any(bool(a.any()) for a in runs[0].signals.get("sig", ()))
        assert not left or words & {"credit-leak", "stale-signal"} or not _waits(runs[0])
        assert len({_order(r) for r in runs}) == 1 or words & set(ORDERS), "an order was seen to change"
    assert all(replay(p, f).shows for f in report.findings)


def _waits(result: object) -> bool:
    return any(e.kind == "wait" for e in result.trace)


def _order(result: object) -> tuple[object, ...]:
    """Return for each load which store it saw last, and the last store of each slot."""
    last: dict[object, object] = {}
    seen = []
    counts: dict[int, int] = {}
    for e in result.trace:
        if e.kind in ("deliver", "finish"):
            continue
        k = counts[e.rank] = counts.get(e.rank, 0) + 1
        for w in e.writes:
            last[w.owner, w.start] = (e.rank, k)
        for r in e.reads:
            seen.append((e.rank, k, last.get((r.owner, r.start))))
    return (*sorted(seen, key=str), *sorted(last.items(), key=str))


# -- what is decided, and what is not --------------------------------------------------------------------------


def test_a_clean_program_is_certified() -> None:
    report = check_signals(program(SIG, barrier("1") + retire("1")))
    certificate = report.certificate()
    assert report.ok and report.proved and certificate is not None
    assert certificate["ranks"] == [2, 3, 4, 8] and certificate["verdict"] == "decided"


def test_without_communication_there_is_nothing_to_check() -> None:
    text = HEAD.format(params=SIG, window="sig") + "    a = me + n\n"
    report = check_signals(parse(text, "k.py"))
    assert report.ok and not report.checked


def test_too_many_events_are_not_passed_silently() -> None:
    calls = "for g in pl.range(500):\n" + indent(barrier("1") + retire("1"))
    report = check_signals(program(SIG, calls), [2], budget=300)
    assert [f.word for f in report.findings] == ["unchecked"] and report.certificate() is None


def test_flags_that_are_reset_are_searched_not_proved() -> None:
    flag = "if me == 0:\n" + indent(notify("1", "0, 0", "1", "Set"))
    flag += "else:\n" + indent(wait("0, 0") + notify("me", "0, 0", "0", "Set"))
    report = check_signals(program(ONE_CELL, flag), [2])
    assert report.ok and not report.proved
    assert "checked up to" in report.checked[0].method


FLAG = "if me == 0:\n" + indent(notify("1", "0, 0", "1", "Set")) + "else:\n" + indent(
    wait("0, 0") + notify("me", "0, 0", "0", "Set")
)  # fmt: skip


def test_what_is_not_decided_is_never_called_proved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = check_signals(program(ONE_CELL, FLAG), [2])
    certificate = report.certificate()
    assert certificate is not None and certificate["verdict"] == "checked up to the stated limits"
    assert certificate["limits"] == ["what happens depends on the schedule: checked under some, not proved"]
    assert [s["method"] for s in certificate["settings"]] == ["checked up to all 4 states of its signals, 12 schedules"]
    assert main(["check", written(tmp_path, ONE_CELL, FLAG), "--ranks", "2"]) == 0
    shown = capsys.readouterr().out
    assert "signals: checked up to" in shown and ": decided" not in shown and "not proved" in shown


def test_a_search_that_is_cut_off_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilegg.codegen.signals import check, explore

    graph = build(unroll(program(ONE_CELL, FLAG), Setting("kernel", 2)))
    assert explore.search(graph).complete and not explore.search(graph, 1).complete
    monkeypatch.setattr(check, "search", lambda g: explore.search(g, 1))
    report = check_signals(program(ONE_CELL, FLAG), [2])
    assert report.checked[0].method.startswith("checked up to the first 1 states") and not report.proved


def test_a_polling_loop_is_run_under_schedules() -> None:
    body = "if me == 0:\n    " + notify("1", "0, 0") + "else:\n" + indent(
        "v = 0\nwhile v < 1:\n    v = pl.tensor.read(sig, [0, 0])\n" + wait("0, 0") + notify("me", "0, 0", "-1")
    )
    p = program(ONE_CELL, body)
    assert "window" in influences(p)
    report = check_signals(p, [2])
    assert report.ok and "schedules" in report.checked[0].method


def test_reading_a_peer_that_has_not_signalled_is_an_assumption() -> None:
    params = f"data: pld.DistributedTensor[[1, 8], pl.FP32], {SIG}"
    pull = "for p in pl.range(n):\n    g = pld.tile.remote_load(data, p, [0, 0], [1, 8])\n"
    ready = check_signals(program(params, barrier("1") + pull + retire("1"), "data"))
    early = check_signals(program(params, pull + barrier("1") + retire("1"), "data"))
    assert ready.proved and early.proved
    assert ready.assumptions == ()
    assert early.assumptions == ("data is filled on every rank before any rank starts",)
    assert early.certificate()["assumptions"] == list(early.assumptions)


def test_many_epochs_on_eight_ranks() -> None:
    report = check_signals(program(SIG, "for g in pl.range(64):\n" + indent(barrier("1") + retire("1"))), [8])
    assert report.proved and report.checked[0].events == 64 * 8 * 21


PUSHED = f"x: pl.Tensor[[1, 8], pl.FP32], data: pld.DistributedTensor[[NR, 8], pl.FP32], {SIG}"
PUSH = "t = pl.load(x, [0, 0], [1, 8])\nfor p in pl.range(n):\n    pld.tile.remote_store(t, data, p, [me, 0])\n"
USE = "for s in pl.range(n):\n    g = pl.load(data, [s, 0], [1, 8])\n"


@pytest.mark.parametrize(
    ("body", "word"),
    [
        (PUSH + barrier("1") + USE + retire("1"), "unordered"),
        (PUSH + barrier("1") + USE + barrier("2") + retire("2"), None),
        (barrier("1") + PUSH + barrier("2") + USE + retire("2"), None),
    ],
)
def test_calls_one_after_the_other(body: str, word: str | None, tmp_path: Path) -> None:
    p = program(PUSHED, body, "data")
    assert check_signals(p, [2, 3]).proved
    report = check_signals(p, [2, 3], calls=2)
    assert [f.word for f in report.findings] == ([word] if word else [])
    assert all(f.setting.calls == 2 and replay(p, f).shows for f in report.findings)
    file = tmp_path / "k.py"
    file.write_text(HEAD.format(params=PUSHED, window="data") + indent(body), "utf-8")
    assert main(["check", str(file), "--ranks", "2", "--calls", "3"]) == (1 if word else 0)


def test_credits_that_pile_up_over_calls() -> None:
    once = check_signals(program(SIG, barrier("1")), [2])
    twice = check_signals(program(SIG, barrier("1")), [2], calls=2)
    assert [f.word for f in once.findings] == ["credit-leak"]
    assert [f.word for f in twice.findings] == ["stale-signal"]
    assert all(replay(program(SIG, barrier("1")), f).shows for f in twice.findings)


def test_lowered_collectives_may_be_called_again() -> None:
    """Allreduce ends behind a barrier of all ranks; an allgather shows no reuse to the function it stands in."""
    window = "data: pld.DistributedTensor[[1, 64], pl.FP32]"
    summed = expand(program(f"{window}, {SIG}", "d = pld.tensor.allreduce(data, sig)\n", "data"))
    assert check_signals(summed, [2, 3], calls=3).ok
    gathered = expand(program(PUSHED, "d = pld.tensor.allgather(x, data, sig)\n" + USE, "data"))
    assert {f.word for f in check_signals(gathered, [3], calls=2).findings} == {"unordered"}


def test_every_lane_of_a_block_loop_counts() -> None:
    lanes = "with pl.spmd(2):\n    " + notify("(me + 1) % n", "0, 0")
    for g, word in (("2", None), ("3", "unsatisfiable-wait"), ("1", "credit-leak")):
        retired = notify("me", "0, 0", f"-{min(int(g), 2)}")
        report = check_signals(program(ONE_CELL, lanes + wait("0, 0", g) + retired), [2, 3])
        assert [f.word for f in report.findings[:1]] == ([word] if word else [])


def test_static_signals_fix_the_number_of_ranks() -> None:
    ring = "sig: pld.DistributedTensor[[6, 4], pl.INT32]"
    report = check_signals(program(ring, notify("(me + 1) % n", "0, me") + wait("0, (me + n - 1) % n")
                                   + notify("me", "0, (me + n - 1) % n", "-1")))  # fmt: skip
    assert {c.setting.ranks for c in report.checked} == {4} and report.ok
    four = program(SIG.replace("NR", "4"), barrier("1") + retire("1"))
    report = check_signals(four)
    assert {c.setting.ranks for c in report.checked} == {2, 3, 4} and report.ok
    assert report.limits == ("its signals and peers do not fit 8 ranks",)


def test_literal_peers_fix_the_number_of_ranks() -> None:
    pair = "if me == 0:\n" + indent(notify("1", "0, 0")) + "else:\n" + indent(wait("0, 0") + notify("me", "0, 0", "-1"))
    report = check_signals(program(ONE_CELL, pair))
    assert report.ok and {c.setting.ranks for c in report.checked} == {2}
    swap = notify("1 - me", "0, 0") + wait("0, 0") + notify("me", "0, 0", "-1")
    report = check_signals(program(ONE_CELL, swap))
    assert report.ok and {c.setting.ranks for c in report.checked} == {2}


def test_several_producers_order_only_what_must_happen() -> None:
    collect = "if me != 0:\n    " + notify("0", "0, 0") + "else:\n" + indent(wait("0, 0", "{g}"))
    for g, count in (("n - 1", 2), ("1", 0)):
        u = unroll(program(ONE_CELL, collect.format(g=g)), Setting("kernel", 3))
        graph = build(u)
        assert sum(map(len, graph.releases.values())) == count
        assert nx.is_directed_acyclic_graph(event_graph(graph))


@pytest.mark.parametrize("told_at_once", [False, True])
def test_a_counter_of_several_producers_over_two_generations(told_at_once: bool) -> None:
    """A second credit stands for another rank's first only where its giver can be ahead: when it was told first."""
    params = f"x: pl.Tensor[[1, 8], pl.FP32], data: pld.DistributedTensor[[NR, 8], pl.FP32], {ONE_CELL}"
    store = "pld.tile.remote_store(t, data, p, [me, 0])\n"
    credit = "if p != me:\n    " + notify("p", "0, 0")
    each = "for p in pl.range(n):\n"
    send = each + indent(store + credit) if told_at_once else each + indent(store) + each + indent(credit)
    tell = each + indent(credit)
    use = "for s in pl.range(n):\n    g = pl.load(data, [s, 0], [1, 8])\n"
    first, second = wait("0, 0", "n - 1"), wait("0, 0", "2 * n - 2")
    text = "t = pl.load(x, [0, 0], [1, 8])\n" + send + first + use + tell + second + notify("me", "0, 0", "2 - 2 * n")
    p = program(params, text, "data")
    assert check_signals(p, [2]).ok
    report = check_signals(p, [3])
    assert bool({f.word for f in report.findings} & set(ORDERS)) == told_at_once
    assert all(replay(p, f).shows for f in report.findings)


def test_host_programs_are_checked_over_their_tasks() -> None:
    text = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def push(self, x: pl.Tensor[[1, 8], pl.FP32], w: pld.DistributedTensor[[1, 8], pl.FP32],
             sig: pld.DistributedTensor[[2, 1], pl.INT32]):
        ctx = pld.get_comm_ctx(w)
        right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
        t = pl.load(x, [0, 0], [1, 8])
        pld.tile.remote_store(t, w, right, [0, 0])
        pld.system.notify(sig, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)

    @pl.function(type=pl.FunctionType.InCore)
    def take(self, w: pld.DistributedTensor[[1, 8], pl.FP32], sig: pld.DistributedTensor[[2, 1], pl.INT32]):
        ctx = pld.get_comm_ctx(w)
        pld.system.wait(sig, [0, 0], {g}, cmp=pld.WaitCmp.Ge)
        g = pl.load(w, [0, 0], [1, 8])
        pld.system.notify(sig, pld.rank(ctx), [0, 0], -1, op=pld.NotifyOp.AtomicAdd)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, x: pl.Tensor[[1, 8], pl.FP32]):
        w = pld.window(pld.alloc_window_buffer(32), [1, 8], dtype=pl.FP32)
        sig = pld.window(pld.alloc_window_buffer(8), [2, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.push(x, w, sig, device=r)
        for r in pl.range(pld.world_size()):
            self.take(w, sig, device=r)
"""
    assert check_signals(parse(text.replace("{g}", "1")), [2, 4]).ok
    found = check_signals(parse(text.replace("{g}", "2")), [3]).findings
    assert [f.word for f in found] == ["unsatisfiable-wait"] and found[0].places()[0].line == 19


# -- output ----------------------------------------------------------------------------------------------------

HANGING = "if me == 0:\n" + indent(wait("0, 0") + notify("1", "0, 0")) + "else:\n" + indent(
    wait("0, 0") + notify("0", "0, 0")
)  # fmt: skip


def written(path: Path, params: str, body: str) -> str:
    file = path / "k.py"
    file.write_text(HEAD.format(params=params, window="sig") + indent(body), "utf-8")
    return str(file)


@pytest.mark.parametrize("body", [HANGING, barrier("1") + retire("1"), barrier("1")])
def test_pictures_are_well_formed(body: str) -> None:
    p = program(SIG, body)
    report = check_signals(p, [2])
    root = ElementTree.fromstring(draw_svg(p, report))
    boxes = [e for e in root.iter() if e.tag.endswith("rect")]
    assert len(boxes) >= 3
    page = draw_html(p, report, "a <title>", "")
    assert "a &lt;title&gt;" in page and page.count("<svg") == 1


def test_check_reports_a_hang(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = written(tmp_path, SIG, HANGING), tmp_path / "k.svg"
    assert main(["check", file, "--ranks", "2", "--json", "--svg", str(picture)]) == 1
    shown = json.loads(capsys.readouterr().out)
    (finding,) = shown["findings"]
    assert not shown["ok"] and shown["certificate"] is None
    assert (finding["code"], finding["class"], finding["ranks"]) == ("TG051", "deadlock", [0, 1])
    assert finding["cells"] == ["sig[0] of rank 0", "sig[0] of rank 1"]
    assert [s["line"] for s in finding["spans"]] == [13, 16] and finding["witness"]["shows"] == "stuck"
    assert picture.read_text().startswith("<svg")
    assert main(["check", file, "--ranks", "2"]) == 1
    assert "pld.system.wait(sig, [0, 0], 1" in capsys.readouterr().err


def test_check_certifies(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, SIG, barrier("1") + retire("1"))
    assert main(["check", file, "--ranks", "2,5", "--json"]) == 0
    certificate = json.loads(capsys.readouterr().out)["certificate"]
    assert certificate["signals"]["ranks"] == [2, 5] and "signals" in certificate["checks"]
    assert main(["check", file]) == 0
    assert "signals: decided for 2, 3, 4, 8 ranks" in capsys.readouterr().out


def test_a_program_with_findings_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = written(tmp_path, SIG, HANGING), tmp_path / "k.pto"
    assert main(["lower", file, "--arch", "a5", "--ranks", "2", "-o", str(out)]) == 1
    assert "TG051" in capsys.readouterr().err and not out.exists()
    with pytest.raises(TileggError, match="TG051"):
        emit(program(SIG, HANGING), "a5")


def test_the_documentation_lists_every_class() -> None:
    text = (Path(__file__).parents[2] / "docs" / "signals.md").read_text("utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert [(r[0].strip("| `"), r[1], r[2].strip(" |")) for r in rows] == [
        (c.word, c.code, c.meaning) for c in CLASSES.values()
    ]


ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "ranks", "word"),
    [
        ("examples/protocol_exchange", 3, None), ("docs/signals/shift_race", 3, "unordered"),
        ("examples/protocol_hang", 3, "deadlock"), ("examples/distributed_moe", 2, None),
    ],
)  # fmt: skip
def test_the_documented_protocols(name: str, ranks: int, word: str | None) -> None:
    path = ROOT / f"{name}.py"
    p = parse(path.read_text("utf-8"), path.name)
    report = check_signals(p, [ranks])
    assert [f.word for f in report.findings] == ([word] if word else [])
    assert all(replay(p, f).shows for f in report.findings)
    picture = (ROOT / "docs" / "signals" / f"{path.stem}.svg").read_text("utf-8")
    assert picture == draw_svg(p, report), f"draw it anew: tilegg check {name}.py --ranks {ranks} --svg"


def test_the_example_that_hangs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hang, right = (str(ROOT / "examples" / f"protocol_{name}.py") for name in ("hang", "exchange"))
    assert main(["check", hang, "--ranks", "2,3,4,8"]) == 1 and "TG051" in capsys.readouterr().err
    assert main(["check", right, "--ranks", "2,3,4,8"]) == 0
    out = tmp_path / "k.pto"
    assert main(["lower", hang, "--arch", "a2a3", "-o", str(out)]) == 1 and not out.exists()


def test_the_example_that_is_right_passes_rows_on() -> None:
    path = ROOT / "examples" / "protocol_exchange.py"
    p = parse(path.read_text("utf-8"), path.name)
    for ranks in (2, 3, 5):
        given = [{"x": np.arange(128, dtype=np.float32).reshape(2, 64) + 1000 * r} for r in range(ranks)]
        for schedule in schedules(ranks, 12):
            result = run_ranks(p, ranks, given, schedule=schedule).check()
            assert result.clear_signals()
            assert all(np.array_equal(o["y"], given[r - 1]["x"]) for r, o in enumerate(result.outputs))


# -- lowered collectives with one statement spoilt ---------------------------------------------------------------


def spoilt(block: Block, target: Op, new: tuple[Op, ...]) -> Block:
    """Return the block with one operation replaced."""
    out: list[object] = []
    for s in block.statements:
        if s is target:
            out += new
        elif isinstance(s, For):
            out.append(replace(s, body=spoilt(s.body, target, new)))
        elif isinstance(s, If):
            out.append(replace(s, then=spoilt(s.then, target, new), orelse=spoilt(s.orelse, target, new)))
        else:
            out.append(s)
    return Block(tuple(out))


def mutants(p: Program) -> list[tuple[str, Program]]:
    """Return the program without each of its notifies, with other credits, with Set, and with equality waits."""
    f = p.functions[0]
    out = []
    for s in walk(f.body):
        if not isinstance(s, Op) or s.name not in ("pld.system.notify", "pld.system.wait"):
            continue
        changes = {"eq": (replace(s, attrs={**s.attrs, "cmp": "eq"}),)}
        if s.name == "pld.system.notify":
            changes = {"dropped": (), "set": (replace(s, attrs={**s.attrs, "op": "set"}),)}
            value = s.operands[3]
            if isinstance(value, Const):
                more = Const(value.value + (1 if value.value > 0 else -1), value.dtype)
                changes["more"] = (replace(s, operands=(*s.operands[:3], more)),)
        for how, new in changes.items():
            out.append((f"{how} {s.name}", replace(p, functions=(replace(f, body=spoilt(f.body, s, new)),))))
    return out


@pytest.mark.parametrize("name", ["reduce_scatter", "all_to_all", "ring"])
def test_lowered_collectives_with_a_spoilt_statement(name: str) -> None:
    rows = f"data: pld.DistributedTensor[[NR, 33], pl.FP32], x: pl.Tensor[[NR, 33], pl.FP32], {SIG}"
    params, call, ranks = {
        "reduce_scatter": (rows, "d = pld.tensor.reduce_scatter(data, sig, op=pld.ReduceOp.Sum)\n", (2, 3)),
        "all_to_all": (rows, "d = pld.tensor.all_to_all(x, data, sig)\ne = pl.load(d, [0, 0], [1, 33])\n", (2, 3)),
        "ring": (
            "data: pld.DistributedTensor[[1, 300], pl.FP32], sig: pld.DistributedTensor[[4, 3], pl.INT32]",
            'd = pld.tensor.allreduce(data, sig, op=pld.ReduceOp.Sum, mode="ring")\n', (3,),
        ),
    }[name]  # fmt: skip
    p = expand(program(params, call, "data"))
    assert check_signals(p, ranks).proved
    found = mutants(p)
    assert len(found) >= 5
    for how, mutant in found:
        report = check_signals(mutant, ranks)
        assert report.findings, how
        assert all(replay(mutant, f).shows for f in report.findings), how
