"""Statements that fail on every number of ranks are errors; what may be the doing of the check is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg.cli import main
from tilegg.codegen.signals import check_signals
from tilegg.ir.program import Program
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from signal_suite.text import HEAD, SIG, indent

DATA = f"w: pl.InOut[pld.DistributedTensor[[NR, 64], pl.FP32]], {SIG}, peer: pl.Scalar[pl.INT32]"
LOAD = "t = pld.tile.remote_load(w, {}, [0, 0], [1, 8])\n"
ROOT = "w = pld.tensor.broadcast(w, sig, root={})\n"


def text(body: str, params: str = DATA) -> str:
    return HEAD.format(params=params, window="sig") + indent(body)


def program(body: str, params: str = DATA) -> Program:
    return parse(text(body, params), "k.py")


@pytest.mark.parametrize("asked", [[], ["--ranks", "3"], ["--ranks", "2,4"]])
@pytest.mark.parametrize("body", [LOAD.format("n"), ROOT.format("9"), "if me == 0:\n    " + LOAD.format("n + me")])
def test_what_fails_everywhere_is_an_error_and_nothing_is_written(
    body: str, asked: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "k.py", tmp_path / "k.pto"
    source.write_text(text(body))
    assert main(["check", str(source), *asked]) == 1
    assert "error[TG074]" in capsys.readouterr().err
    assert main(["lower", str(source), "--arch", "a5", "-o", str(out), *asked]) == 1
    assert "error[TG074]" in capsys.readouterr().err and not out.exists()


def test_where_one_number_of_ranks_works_the_others_are_no_error() -> None:
    report = check_signals(program(LOAD.format("3")), [2, 4])
    assert [(f.word, f.certain) for f in report.findings] == [("unchecked", False)]
    assert check_signals(program(ROOT.format("1"))).ok


def test_values_that_the_check_has_made_up_are_not_held_against_the_program() -> None:
    for body in (LOAD.format("peer"), LOAD.format("n + peer"), "if peer > 1:\n    " + LOAD.format("n")):
        report = check_signals(program(body), [2])
        assert report.findings and not any(f.wrong for f in report.findings)
    # The first element of a window is whatever a peer has put there.
    read = "v = pl.read(sig, [0, 0])\n" + LOAD.format("v + n")
    found = check_signals(program(read), [2]).findings
    assert found and not any(f.wrong for f in found)


def test_sizes_that_the_check_has_made_up_are_not_held_against_the_program() -> None:
    sized = f"w: pl.InOut[pld.DistributedTensor[[N, 8], pl.FP32]], {SIG}"
    rows = "t = pl.load(w, [{}, 0], [1, 8])\n"
    found = check_signals(program("m = pl.tensor.dim(w, 0)\n" + rows.format("m - 1000"), sized), [2]).findings
    assert found and not any(f.wrong for f in found)


def test_too_many_events_stay_a_warning() -> None:
    loop = "for i in pl.range(500):\n    pld.system.notify(sig, me, [0, 0], 0, op=pld.NotifyOp.AtomicAdd)\n"
    report = check_signals(program(loop), [2], budget=300)
    assert [(f.word, f.wrong) for f in report.findings] == [("unchecked", False)]
