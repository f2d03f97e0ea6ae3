"""Signals that a loop carries or a branch chooses: they stay signals, in the check, the lowering and the simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg.cli import main
from tilegg.codegen.signals import check_signals
from tilegg.ir.program import Program
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.ranks_signals import signal_names
from tilegg.ir.text import parse
from tilegg.rewrite.expand import expand

sys.path.insert(0, str(Path(__file__).parent))
from signal_suite.text import HEAD, SIG, indent

ONE_CELL = "sig: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]"
EPOCHS = "for i in pl.range(64):\n    sig = pld.tensor.barrier(sig)\n"
RING = (
    "{head}\n"
    "    pld.system.notify(s, (me + 1) % n, [0, 0], {sent}, op=pld.NotifyOp.AtomicAdd)\n"
    "    pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)\n"
    "    pld.system.notify(s, me, [0, 0], -1, op=pld.NotifyOp.AtomicAdd)\n"
    "    out = pl.yield_(s)\n"
)
COUNTED = "for i, (s,) in pl.range(3, init_values=(sig,)):"


def text(params: str, body: str) -> str:
    return HEAD.format(params=params, window="sig") + indent(body)


def program(params: str, body: str) -> Program:
    return parse(text(params, body), "k.py")


@pytest.mark.parametrize("ranks", [2, 8])
def test_epochs_of_a_reassigned_signal_run_as_written_and_as_lowered(ranks: int) -> None:
    p = program(SIG, EPOCHS)
    lowered = expand(p)
    for form in (p, lowered):
        report = check_signals(form, [ranks])
        assert report.proved, report.diagnostics()
    for schedule in schedules(ranks, 6):
        result = run_ranks(lowered, ranks, {}, schedule=schedule)
        assert not result.findings and not any(s.any() for s in result.signals["sig"])


def test_epochs_are_written_as_assembly(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "k.py", tmp_path / "k.pto"
    source.write_text(text(SIG, EPOCHS))
    assert main(["check", str(source)]) == 0
    assert "decided" in capsys.readouterr().out
    assert main(["lower", str(source), "--arch", "a5", "-o", str(out)]) == 0, capsys.readouterr().err
    assert "pto" in out.read_text()


def test_a_carried_signal_is_checked_as_the_parameter_it_is() -> None:
    good = program(ONE_CELL, RING.format(head=COUNTED, sent=1))
    assert check_signals(good).proved
    assert not run_ranks(good, 4, {}).findings
    found = check_signals(program(ONE_CELL, RING.format(head=COUNTED, sent=0))).findings
    assert found and found[0].word in ("deadlock", "unsatisfiable-wait")


def test_what_a_loop_or_a_branch_gives_is_followed_to_its_own_parameter() -> None:
    two = f"{ONE_CELL}, data: pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]"
    send = "pld.system.notify({}, me, [0, 0], 0, op=pld.NotifyOp.AtomicAdd)\n"
    nested = (
        "for i, (a, b) in pl.range(2, init_values=(data, sig)):\n"
        "    for j, (c,) in pl.range(2, init_values=(b,)):\n"
        "        d = pl.yield_(c)\n"
        "    e, f = pl.yield_(a, d)\n"
    )
    for name, wanted in (("f", {"sig"}), ("e", {"data"})):
        p = program(two, nested + send.format(name))
        assert signal_names(p, p.functions[0]) == wanted
    either = "if me == 0:\n    a = pl.yield_(sig)\nelse:\n    a = pl.yield_(data)\n"
    p = program(two, either + send.format("a"))
    assert signal_names(p, p.functions[0]) == {"sig", "data"}
    swapped = "for i, (a, b) in pl.range(2, init_values=(data, sig)):\n    e, f = pl.yield_(b, a)\n"
    p = program(two, swapped + send.format("f"))
    assert signal_names(p, p.functions[0]) == {"sig", "data"}
