"""Every lowered collective passes the signal check on 2 to 8 ranks, alone and three times on one signal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tilegg.codegen.signals.check import check_signals
from tilegg.rewrite.expand import expand
from tilegg.rules.collectives.reuse import Reuse

sys.path.insert(0, str(Path(__file__).parent))
from collective_cases import COLLECTIVES, RANKS, Case, lowered, program

EVERY = ("mesh", "ring", *COLLECTIVES)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("what", EVERY)
def test_certificate(what: str, ranks: int) -> None:
    case, dims = Case(what, "FP16" if ranks % 2 else "FP32", "Sum", ranks, 100), {"M": 2 * (ranks - 1), "NR": ranks}
    certificate = check_signals(lowered(case), (ranks,), dims=dims).require().certificate()
    assert certificate is not None and certificate["ranks"] == [ranks]
    if what != "all_to_all_v":
        # There the counts, and with them the credits, depend on the data.
        assert all(s["method"] == "decided" for s in certificate["settings"])


@pytest.mark.parametrize("what", EVERY)
def test_three_calls(what: str) -> None:
    check_signals(lowered(Case(what, "FP32", "Sum", 3, 17), 3), (3,), dims={"M": 4, "NR": 3}).require()


@pytest.mark.parametrize("size", [1, 4097, 10000])
def test_several_chunks_and_empty_segments(size: int) -> None:
    for what in ("mesh", "ring"):
        check_signals(lowered(Case(what, "FP32", "Sum", 4, size)), (4,), dims={"M": 6, "NR": 4}).require()


@pytest.mark.parametrize("what", ["allgather", "all_to_all"])
def test_the_check_sees_the_race_of_pushes_into_a_window_in_use(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reuse, "before", lambda self, op: False)
    unsafe = expand(program(Case(what, "FP32", "Sum", 3, 17), 3))
    assert not check_signals(unsafe, (3,), dims={"M": 4, "NR": 3}).ok
