"""Half of the correct programs of the labelled suite, as assembly on several ranks: windows end as in the simulator."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tilegg
from tilegg.codegen.signals.report import Setting
from tilegg.codegen.signals.settings import inputs_for, sizes
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.ranks import run_ranks

sys.path.insert(0, str(Path(__file__).parent))
from signal_cases import all_cases
from signal_suite.text import Case
from test_emit_ranks import execute

RIGHT = [c for c in all_cases() if c.word is None][::2]
#: What a kernel cannot be together with something else.
ALONE = ("outside the waiter", "outside the spmd block")


def agrees(c: Case, target: str) -> bool:
    """Return whether a program could be written; fails when it then does something else."""
    p = tilegg.parse(c.text, "k.py")
    f, ranks = p.functions[0], c.ranks[0]
    try:
        lowered = tilegg.lower(p, target)
        text = tilegg.emit(lowered, signals=False)
    except TileggError as problem:
        assert any(word in str(problem) for word in ALONE), c.name
        return False
    names = sizes(p, f, ranks, {})
    given = list(map(inputs_for(f, Setting(f.name, ranks, tuple(sorted(names.items())), 0)), range(ranks)))
    want = run_ranks(p, ranks, given, dims=names, undefined="allow")
    got = execute(lowered.program, text, ranks, given, {"NR": ranks, **names}, seed=1)
    for r in range(ranks):
        for window, slices in want.windows.items():
            known = want.known[window][r]
            assert slices[r][known].tobytes() == got[r][window][known].tobytes(), f"{c.name}: {window} of rank {r}"
    return True


@pytest.mark.parametrize("part", range(10))
def test_correct_programs_end_as_in_the_simulator(part: int) -> None:
    chosen = RIGHT[part::10]
    written = [agrees(c, ("a2a3", "a5")[i % 2]) for i, c in enumerate(chosen)]
    assert sum(written) >= 0.8 * len(chosen)
