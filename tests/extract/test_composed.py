"""What is said of operations whose place other instructions take is what lowering does."""

from __future__ import annotations

import pytest
import tilegg
from tilegg import TileggError
from tilegg.extract.composed import composed, sample_program
from tilegg.ir.dtypes import DTYPES
from tilegg.ir.op import OPS
from tilegg.ir.program import Op
from tilegg.ir.takes import sample, takes
from tilegg.ir.verify import verify
from tilegg.rules.target import load_target, target_names

COMPOSITES = sorted(n for n, d in OPS.items() if d.composite and n.startswith("tile."))


@pytest.mark.parametrize("arch", target_names())
@pytest.mark.parametrize("name", [*COMPOSITES, "tile.cmp", "tile.cmps"])
def test_a_dtype_is_listed_where_the_operation_is_lowered(name: str, arch: str) -> None:
    found = composed(OPS[name], load_target(arch))
    assert found
    for dtype, verdict in found.items():
        program = sample_program(OPS[name], DTYPES[dtype])
        assert program is not None
        try:
            made = tilegg.lower(program, arch).program
        except TileggError as problem:
            first = problem.diagnostics[0]
            assert not verdict.ok and verdict.reason == (first.reason or first.message)
            continue
        assert verdict.ok
        assert not any(OPS[s.name].composite for f in made.functions for s in f.body if isinstance(s, Op))


@pytest.mark.parametrize("name", COMPOSITES)
def test_samples_are_programs_of_every_dtype_that_a_composite_takes(name: str) -> None:
    for dtype in DTYPES.values():
        assert takes(OPS[name], dtype) is (sample(OPS[name], dtype) is not None)
        program = sample_program(OPS[name], dtype)
        assert program is None or not verify(program)


def test_operations_of_one_instruction_and_casts_are_not_asked() -> None:
    a5 = load_target("a5")
    assert not any(composed(OPS[name], a5) for name in ("tile.exp", "tile.cast", "tensor.sin", "tile.create"))
