"""Blocks of one rank: what depends on the order in which they are run is no verdict, and no proof."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg.cli import main
from tilegg.codegen.signals import check_signals, replay
from tilegg.codegen.signals.blocks import IN_TURN
from tilegg.ir.program import Program
from tilegg.ir.ranks import run_ranks
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from signal_suite.text import HEAD, indent, notify, wait

CELL = "sig: pl.InOut[pld.DistributedTensor[[1, 16], pl.INT32]]"
RIGHT = "(me + 1) % n"
BOTH_NOTIFY = (
    "for b in pl.spmd(2):\n"
    + indent(notify(RIGHT, "0, 0") + "if b == {waits}:\n" + indent(wait("0, 0", "2") + notify("me", "0, 0", "-2")))
)
RACE = (
    "for b in pl.spmd(2):\n    if b == {writes}:\n"
    + indent(
        "t = pl.load(x, [0, 0], [1, 64])\n"
        f"pld.tile.remote_store(t, w, {RIGHT}, [0, 0])\n"
        + notify(RIGHT, "0, 0") + wait("0, 0") + notify("me", "0, 0", "-1"), 8
    )
    + "    else:\n        g = pl.load(w, [0, 0], [1, 64])\n        pl.store(g, [0, 0], y)\n"
)  # fmt: skip
DATA = (
    "x: pl.Tensor[[1, 64], pl.FP32], y: pl.Out[pl.Tensor[[1, 64], pl.FP32]], "
    f"w: pl.InOut[pld.DistributedTensor[[1, 64], pl.FP32]], {CELL}"
)


def text(params: str, body: str) -> str:
    return HEAD.format(params=params, window="sig") + indent(body)


def program(params: str, body: str) -> Program:
    return parse(text(params, body), "k.py")


@pytest.mark.parametrize(("waits", "hangs"), [(0, "ascending"), (1, "descending")])
def test_a_block_that_waits_for_another_block_is_no_deadlock(waits: int, hangs: str) -> None:
    p = program(CELL, BOTH_NOTIFY.format(waits=waits))
    report = check_signals(p, [2, 3])
    assert report.ok and not report.proved
    assert IN_TURN in report.limits and any(hangs in x and "not judged" in x for x in report.limits)
    for descending in (False, True):
        result = run_ranks(p, 2, {}, descending=descending)
        assert result.ok is (descending is (hangs == "ascending"))


@pytest.mark.parametrize("writes", [0, 1])
def test_a_race_between_blocks_is_found_or_left_open_but_never_certified(writes: int) -> None:
    p = program(DATA, RACE.format(writes=writes))
    report = check_signals(p, [2])
    assert not report.proved
    assert [f.code for f in report.findings] == ["TG069"] and replay(p, report.findings[0]).shows
    assert report.findings[0].setting.descending is (writes == 0)


def test_the_command_says_how_the_blocks_were_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "k.py"
    source.write_text(text(CELL, BOTH_NOTIFY.format(waits=0)))
    assert main(["check", str(source)]) == 0
    said = capsys.readouterr().out
    assert "checked up to the stated limits" in said and IN_TURN in said


def test_a_hang_in_either_order_is_a_finding() -> None:
    body = "for b in pl.spmd(2):\n" + indent(wait("0, b") + notify(RIGHT, "0, b") + notify("me", "0, b", "-1"))
    report = check_signals(program(CELL, body), [2])
    assert [f.word for f in report.findings] == ["deadlock"]


@pytest.mark.parametrize("head", ["for b in pl.spmd(1):", "for b in pl.range(2):"])
def test_one_block_is_decided(head: str) -> None:
    body = f"{head}\n" + indent(notify(RIGHT, "0, 0") + wait("0, 0") + notify("me", "0, 0", "-1"))
    assert check_signals(program(CELL, body), [2, 3]).proved
    quiet = "for b in pl.spmd(4):\n    a = b + 1\n" + notify(RIGHT, "0, 0") + wait("0, 0") + notify("me", "0, 0", "-1")
    assert check_signals(program(CELL, quiet), [2, 3]).proved
