"""Where lowering puts the markers of memory consistency, and where it leaves those of the program alone."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

import pytest
import tilegg

sys.path.insert(0, str(Path(__file__).parent))
from collective_cases import COLLECTIVES, Case, difference, inputs, program, run
from tilegg.cli import main
from tilegg.codegen.signals import check_signals
from tilegg.codegen.signals.doubled import doubled_markers
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Block, If, Op, Program, inner_blocks, walk
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse, print_program
from tilegg.rewrite.expand import expand
from tilegg.rewrite.markers import with_markers

HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")

@pl.function(type=pl.FunctionType.InCore)
def kernel(
    x: pl.Tensor[[1, 16], pl.FP32], y: pl.Out[pl.Tensor[[1, 16], pl.FP32]],
    w: pld.DistributedTensor[[1, 64], pl.FP32], v: pld.DistributedTensor[[1, 64], pl.FP32],
    sig: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(sig)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    t = pl.load(x, [0, 0], [1, 16])
"""
STORE = "w = pl.store(t, [0, 0], w)"
NOTIFY = "pld.system.notify(sig, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)"
OWN = "pld.system.notify(sig, me, [0, 0], -1, op=pld.NotifyOp.AtomicAdd)"
WAIT = "pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)"
READ = "r = pl.load(w, [0, 0], [1, 16])"
CLEAN, FENCE, ALL = "pl.system.cacheinvalid(w, [1, 16], [0, 0])", "pl.system.fence()", "pl.system.cacheinvalid()"


def source(body: str) -> Program:
    return parse(HEAD + "".join(f"    {line}\n" for line in body.strip().splitlines()), "k.py")


NAMES = {
    "pld.system.notify": "n", "pld.system.wait": "i", "system.fence": "f", "tile.store": "w", "tensor.write": "w",
    "pld.tile.remote_store": "w", "pld.tile.put": "w", "tile.load": "r", "tensor.read": "r",
    "pld.tile.remote_load": "r", "pld.tile.get": "g",
}  # fmt: skip


def shape_of(s: Op) -> str:
    """Return an operation as a letter: write, notify, wait (i), read, region cleaned, fence, all invalidated."""
    if s.name == "system.cacheinvalid":
        return "a" if s.operands[0] is None else "c"
    return NAMES.get(s.name, "")


def shape(p: Program) -> str:
    """Return the operations of a kernel as letters, blocks in ()."""

    def text(block: Block) -> str:
        out = ""
        for s in block:
            if isinstance(s, Op):
                out += shape_of(s)
            inner = "".join(text(b) for b in inner_blocks(s))
            out += f"({inner})" if inner else ""
        return out

    return text(p.functions[0].body).removeprefix("r")


CASES = {
    "a store that a notify releases": (f"{STORE}\n{NOTIFY}", "wcfn"),
    "a store without a notify": (f"{NOTIFY}\n{STORE}", "nw"),
    "a store before the own retirement": (f"{STORE}\n{OWN}", "wn"),
    "a store to a plain tensor": (f"y = pl.store(t, [0, 0], y)\n{NOTIFY}", "wn"),
    "a notify without data": (NOTIFY, "n"),
    "a scalar store": (f"w = pl.tensor.write(w, [0, 3], 1.0)\n{NOTIFY}", "wcfn"),
    "a remote store": (f"pld.tile.remote_store(t, w, 1, [0, 0])\n{NOTIFY}", "wcfn"),
    "two stores": (f"{STORE}\n{STORE}\n{NOTIFY}", "wcfwcfn"),
    "a get into a window": (f"pld.tensor.get(w, 1, v)\n{NOTIFY}", "gcfn"),
    "a get into a plain tensor": ("pld.tensor.get(y, 1, v, [0, 0], [0, 0], [1, 16])\n" + NOTIFY, "gn"),
    "a store in a loop, notified in the next round": (f"for i in pl.range(3):\n    {NOTIFY}\n    {STORE}", "(nwcf)"),
    "a store in a loop, notified behind it": (f"for i in pl.range(3):\n    {STORE}\n{NOTIFY}", "(wcf)n"),
    "a store whose notify stands on one branch": (f"{STORE}\nif n > 2:\n    {NOTIFY}", "wcf(n)"),
    "a wait and a read": (f"{WAIT}\n{READ}", "iar"),
    "a wait and no read": (WAIT, "i"),
    "two waits and a read": (f"{WAIT}\n{WAIT}\n{READ}", "iiar"),
    "a wait, two reads": (f"{WAIT}\n{READ}\nu = pl.load(v, [0, 0], [1, 16])", "iarr"),
    "a loop of waits": (f"for i in pl.range(n):\n    {WAIT}\n{READ}", "(i)ar"),
    "a loop of stores, notifies and waits": (
        f"for i in pl.range(n):\n    {STORE}\n    {NOTIFY}\n    {WAIT}\n{READ}", "(wcfni)ar"),
    "a loop of waits and reads": (f"for i in pl.range(n):\n    {WAIT}\n    {READ}", "(iar)"),
    "a read in the next round": (f"for i in pl.range(n):\n    {READ}\n    {WAIT}", "(ria)"),
    "a wait on one branch": (f"if n > 2:\n    {WAIT}\n{READ}", "(ia)r"),
    "reads on one branch": (f"{WAIT}\nif n > 2:\n    {READ}", "ia(r)"),
    "published by hand": (f"{STORE}\n{CLEAN}\n{FENCE}\n{NOTIFY}", "wcfn"),
    "published by hand, everything": (f"{STORE}\n{ALL}\n{FENCE}\n{NOTIFY}", "wafn"),
    "published by hand, behind the loop": (f"for i in pl.range(3):\n    {STORE}\n{CLEAN}\n{FENCE}\n{NOTIFY}", "(w)cfn"),
    "published by hand on one branch": (f"{STORE}\nif n > 2:\n    {CLEAN}\n    {FENCE}\n{NOTIFY}", "wcf(cf)n"),
    "one of two published by hand": (f"{STORE}\n{CLEAN}\n{FENCE}\nv = pl.store(t, [0, 0], v)\n{NOTIFY}", "wcfwcfn"),
    "a while loop of stores and waits": (
        f"i: pl.Scalar[pl.INT32] = me\nwhile i < n:\n    {STORE}\n    {NOTIFY}\n    {WAIT}\n    i = i + 1\n{READ}",
        "(wcfni)ar"),
    "invalidated by hand": (f"{WAIT}\n{ALL}\n{READ}", "iar"),
    "invalidated by hand behind a loop": (f"for i in pl.range(n):\n    {WAIT}\n{ALL}\n{READ}", "(i)ar"),
}


@pytest.mark.parametrize("name", CASES)
def test_markers_stand_where_they_are_needed_and_only_there(name: str) -> None:
    body, want = CASES[name]
    made = with_markers(expand(source(body)))
    assert shape(made) == want
    assert with_markers(made) is made, "once is enough"
    assert parse(print_program(made)) == made


@pytest.mark.parametrize("name", [k for k, (_, want) in CASES.items() if k != "published by hand on one branch"])
def test_no_marker_is_doubled(name: str) -> None:
    assert not doubled_markers(with_markers(expand(source(CASES[name][0]))))


# -- random control flow -----------------------------------------------------------------------------------

LINES = {"w": STORE, "n": NOTIFY, "i": WAIT, "r": READ, "o": OWN, "c": CLEAN, "f": FENCE, "a": ALL}


def drawn(rng: random.Random, depth: int, by_hand: str = "") -> list[str]:
    """Return lines of random stores, notifies, waits and reads in loops and branches."""
    out: list[str] = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.choice("wnir" * 2 + "o" + by_hand + ("LIW" if depth else ""))
        if kind in LINES:
            out.append(LINES[kind])
            continue
        inner = ["    " + line for line in drawn(rng, depth - 1, by_hand)]
        number = rng.randint(0, 10**6)
        if kind == "L":
            out += [f"for i{number} in pl.range(n):", *inner]
        elif kind == "I":
            out += [f"if n > {number}:", *inner]
            if rng.random() < 0.5:
                out += ["else:", *("    " + line for line in drawn(rng, depth - 1, by_hand))]
        else:
            out += [f"k{number}: pl.Scalar[pl.INT32] = me", f"while k{number} < n:", *inner]
            out.append(f"    k{number} = k{number} + 1")
    return out


def path(block: Block, rng: random.Random) -> str:
    """Return the letters of one run through a block: branches and numbers of rounds are random."""
    out = ""
    for s in block:
        if isinstance(s, Op):
            own = s.name == "pld.system.notify" and getattr(s.operands[1], "name", "") == "me"
            out += "o" if own else shape_of(s)
        elif isinstance(s, If):
            out += path(rng.choice((s.then, s.orelse)), rng)
        else:
            for _ in range(rng.randint(0, 3)):
                out += "".join(path(b, rng) for b in inner_blocks(s))
    return out


def complete(run: str) -> bool:
    """Return whether every store is published before the next notify, and every wait renewed before the next read."""
    state, stale = "", False
    for letter in run:
        if letter == "w":
            state = "dirty"
        elif letter in "ca" and state == "dirty":
            state = "clean"
        elif letter == "f" and state == "clean":
            state = ""
        elif letter == "n" and state:
            return False
        if letter == "r" and stale:
            return False
        stale = (stale or letter == "i") and letter != "a"
    return True


@pytest.mark.parametrize("seed", range(60))
def test_every_path_is_published_and_renewed(seed: int) -> None:
    rng = random.Random(seed)
    p = source("\n".join(drawn(rng, 3)))
    made = with_markers(p)
    assert with_markers(made) is made
    runs = [path(made.functions[0].body, rng) for _ in range(60)]
    assert all(map(complete, runs)), next(r for r in runs if not complete(r))
    assert not any("cc" in r or "ff" in r for r in runs), "exactly once"
    assert all(r[k + 1 : k + 3] == "cf" for r in runs for k in range(len(r)) if r[k] == "w" and "c" in r[k : k + 2])
    if not any("w" in r and "n" in r[r.index("w") :] for r in (path(p.functions[0].body, rng) for _ in range(300))):
        assert not any("c" in r for r in runs), "nothing is released"


@pytest.mark.parametrize("seed", range(40))
def test_markers_by_hand_are_kept_and_those_missing_are_added(seed: int) -> None:
    """A half placed by hand is the author's: only what none of it serves is completed."""
    rng = random.Random(seed)
    made = with_markers(source("\n".join(drawn(rng, 2, "cfa"))))
    assert with_markers(made) is made
    for _ in range(60):
        run = path(made.functions[0].body, rng)
        stale = False
        for letter in run:
            assert letter != "r" or not stale, run
            stale = (stale or letter == "i") and letter != "a"
        for k, letter in enumerate(run):
            if letter == "w" and "n" in run[k:]:
                assert set("ca") & set(run[k : run.index("n", k)]), run


def test_regions_are_what_is_written() -> None:
    body = f"""
for i in pl.range(4):
    c: pl.Scalar[pl.INDEX] = pl.min(16, 60 - i * 16)
    at: pl.Scalar[pl.INDEX] = i * 16
    part = pl.load(v, [0, at], [1, 16], [1, c])
    w = pl.store(part, [0, at], w)
    pld.tile.remote_store(part, v, 1, [0, 5])
    w = pl.tensor.write(w, [0, i], 2.0)
    pld.tensor.put(w, 1, v)
    pld.tensor.put(w, 1, v, [0, 8], [0, 0], [1, at])
    {NOTIFY}
"""
    text = print_program(with_markers(expand(source(body.replace("[1, at])", "[1, 4])")))))
    regions = [line.split("cacheinvalid(")[1] for line in text.splitlines() if "cacheinvalid(" in line]
    assert [r.split(", ", 1)[1].rstrip(")") for r in regions] == [
        "[1, c], [0, at]", "[1, c], [0, 5]", "[1, 1], [0, i]", "[1, 64], [0, 0]", "[1, 4], [0, 8]",
    ]  # fmt: skip


@pytest.mark.parametrize("what", ["mesh", "ring", *COLLECTIVES])
@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_lowered_collectives_carry_each_marker_once(what: str, target: str) -> None:
    case = Case(what, "FP32", "Sum", 3, 17)
    lowered = tilegg.lower(program(case, 2), target)
    report = check_signals(lowered.program, [3])
    assert report.ok, report.findings
    assert not doubled_markers(lowered.program)
    again = tilegg.lower(lowered.program, target).program
    assert markers(again) == markers(lowered.program)


@pytest.mark.parametrize("what", ["mesh", "ring", *COLLECTIVES])
def test_the_markers_alone_make_data_visible(what: str) -> None:
    """Under the memory model in which a notify publishes nothing."""
    case = Case(what, "FP32", "Sum", 3, 17)
    given, dims = inputs(case, 2), {"NR": 3, "M": 4}
    want = run(program(case, 2), case, given).check()
    lowered = tilegg.lower(program(case, 2), "a5").program
    for schedule in itertools.islice(schedules(3, 6), 6):
        got = run_ranks(lowered, 3, given, schedule=schedule, dims=dims, memory="fenced")
        assert not difference(want, got)


HOSTED = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def stage(self, x: pl.Tensor[[1, 16], pl.FP32], w: pl.InOut[pld.DistributedTensor[[1, 16], pl.FP32]]):
        t = pl.load(x, [0, 0], [1, 16])
        w = pl.store(t, [0, 0], w)
        return w

    @pl.function(type=pl.FunctionType.InCore)
    def meet(
        self,
        v: pl.InOut[pld.DistributedTensor[[1, 16], pl.FP32]],
        sig: pl.InOut[pld.DistributedTensor[[4, 1], pl.INT32]],
    ):
        t = pl.load(v, [0, 0], [1, 16])
        v = pl.store(pl.add(t, t), [0, 0], v)
        s = pld.tensor.barrier(sig)
        return s

    @pl.function(type=pl.FunctionType.InCore)
    def fetch(
        self,
        w: pld.DistributedTensor[[1, 16], pl.FP32],
        peer: pl.Scalar[pl.INT32],
        y: pl.Out[pl.Tensor[[1, 16], pl.FP32]],
    ):
        t = pld.tile.remote_load(w, peer, [0, 0], [1, 16])
        y = pl.store(t, [0, 0], y)
        return y

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[1, 16], pl.FP32], y: pl.Out[pl.Tensor[[1, 16], pl.FP32]]):
        b0 = pld.alloc_window_buffer(64)
        w = pld.window(b0, [1, 16], dtype=pl.FP32)
        b2 = pld.alloc_window_buffer(64)
        v = pld.window(b2, [1, 16], dtype=pl.FP32)
        b1 = pld.alloc_window_buffer(16)
        sig = pld.window(b1, [4, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.stage(x, w, device=r)
            self.meet(v, sig, device=r)
            self.fetch(w, 0, y, device=r)
        return y
"""


def test_what_one_task_writes_a_later_one_may_release() -> None:
    p = parse(HOSTED, "h.py")
    lowered = tilegg.lower(p, "a5")
    stage = next(f for f in lowered.program.functions if f.name == "stage")
    meet = next(f for f in lowered.program.functions if f.name == "meet")
    assert [s.name for s in stage.body if isinstance(s, Op)][-2:] == ["system.cacheinvalid", "system.fence"]
    assert [s.operands[0] for s in walk(meet.body) if isinstance(s, Op) and s.name == "system.cacheinvalid"][-1] is None
    text = tilegg.emit(lowered)
    assert [text.count(m) for m in ("single_cache_line", "fence.barrier_all", "cacheinvalid all")] == [2, 2, 1]


def markers(p: Program) -> list[str]:
    return [s.name for s in walk(p.functions[0].body) if isinstance(s, Op) and s.name.startswith("system.")]


HAND = {
    "missing": (f"{STORE}\n{CLEAN}\n{NOTIFY}", "TG073"),
    "doubled": (f"{STORE}\n{CLEAN}\n{FENCE}\n{CLEAN}\n{FENCE}\n{NOTIFY}", "TG075"),
    "right": (f"{STORE}\n{CLEAN}\n{FENCE}\n{NOTIFY}", ""),
    "none": (f"{STORE}\n{NOTIFY}", ""),
}


def by_hand(name: str) -> str:
    """Return a program in which rank 0 stores and publishes, and the others wait and read."""
    reads = f"    {WAIT}\n    {ALL}\n" if name != "none" else f"    {WAIT}\n"
    rest = f"else:\n{reads}    g = pld.tile.remote_load(w, 0, [0, 0], [1, 16])\n    {OWN}"
    first = "if me == 0:\n" + "".join(f"    {line}\n" for line in HAND[name][0].splitlines())
    return HEAD + "".join(f"    {line}\n" for line in (first + rest).splitlines())


@pytest.mark.parametrize("name", HAND)
def test_what_is_marked_by_hand_is_checked_before_it_is_written(name: str) -> None:
    code = HAND[name][1]
    p = parse(by_hand(name), "k.py")
    lowered = tilegg.lower(p, "a5")
    for program_ in (p, lowered):
        if code:
            with pytest.raises(TileggError) as refused:
                tilegg.emit(program_, "a5")
            assert {d.code for d in refused.value.diagnostics} == {code}
        else:
            text = tilegg.emit(program_, "a5", locations=False)
            counts = [text.count(m) for m in ("single_cache_line", "fence.barrier_all", "cacheinvalid all")]
            assert counts == [1, 1, 1]


@pytest.mark.parametrize("name", HAND)
def test_the_command_writes_nothing_for_a_program_with_a_finding(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.py").write_text(by_hand(name))
    out = tmp_path / "k.pto"
    code = main(["lower", str(tmp_path / "k.py"), "--arch", "a5", "-o", str(out)])
    assert (code == 0) == out.exists() == (HAND[name][1] == "")
    assert HAND[name][1] in capsys.readouterr().err
