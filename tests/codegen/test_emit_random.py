"""Random programs through lowering, emission and the byte machine, against the interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.target import load_target

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check

SHAPES = ((2, 8), (3, 5), (4, 1), (1, 16), (16, 64), (8, 24))
#: What emission may refuse: windows that begin inside a block, half bytes, element types of copies.
REFUSALS = ("TG020", "TG022", "TG023")


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_random_programs(target: str) -> None:
    done = 0
    for seed in range(1000, 1030):
        program = random_program(seed, Kind(load_target(target), shape=SHAPES[seed % len(SHAPES)]))
        try:
            check(tilegg.lower(program, target), target, seed=seed)
            done += 1
        except TileggError as problem:
            assert problem.diagnostics[0].code in REFUSALS, f"seed {seed}: {problem}"
        except AssertionError as problem:
            raise AssertionError(f"seed {seed}: {problem}") from problem
    assert done >= 24
