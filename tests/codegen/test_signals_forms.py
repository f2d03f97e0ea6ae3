"""What a signal holds: 32-bit signed cells, for notifies that nobody waits for as well."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg.cli import main
from tilegg.codegen.signals import check_signals, replay
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from signal_suite.text import HEAD, indent, notify, wait


def text(dtype: str, body: str) -> str:
    params = f"sig: pl.InOut[pld.DistributedTensor[[4, 4], pl.{dtype}]]"
    return HEAD.format(params=params, window="sig") + indent(body)


@pytest.mark.parametrize(
    ("dtype", "codes"),
    [("INT32", []), ("FP32", ["TG065"]), ("INT16", ["TG065"]), ("INT64", ["TG072"]), ("UINT32", ["TG072"])],
)
def test_a_notify_alone_addresses_int32_cells(dtype: str, codes: list[str]) -> None:
    p = parse(text(dtype, notify("0", "0, 0")), "k.py")
    report = check_signals(p, [2])
    assert [f.code for f in report.findings] == codes
    assert all(f.places()[0].line == 12 and replay(p, f).shows for f in report.findings)


def test_check_and_lower_refuse_it_alike(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "k.py", tmp_path / "k.pto"
    source.write_text(text("FP32", notify("0", "0, 0")))
    for words in (["check", str(source)], ["lower", str(source), "--arch", "a5", "-o", str(out)]):
        assert main(words) == 1
    assert "error[TG065]" in capsys.readouterr().err and not out.exists()


def test_where_somebody_waits_the_wait_is_told_and_each_fault_once() -> None:
    p = parse(text("INT16", notify("(me + 1) % n", "0, 0") + wait("0, 0") + notify("me", "0, 0", "-1")), "k.py")
    assert [f.places()[0].line for f in check_signals(p, [2]).findings if f.word == "wrong-cell"] == [13]
