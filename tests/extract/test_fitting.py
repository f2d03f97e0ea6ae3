"""Local memory: what is chosen fits wherever the program as written does."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilegg import lower, parse
from tilegg.extract.fitting import fitted, need
from tilegg.ir.equivalence import equivalent
from tilegg.ir.program import Program
from tilegg.rules.target import load_target

CORPUS = Path(__file__).parents[2] / "benchmarks" / "corpus"


def rotation(rows: int) -> Program:
    """Rotated halves: one conversion of whole rows is cheaper than two of halves, and holds more at a time."""
    return parse((CORPUS / "rope_halves.py").read_text().replace("[16, ", f"[{rows}, "))


@pytest.mark.parametrize("arch, rows", [("a2a3", 192), ("a5", 256)])
def test_a_cheaper_form_that_needs_more_memory_than_there_is_is_not_taken(arch: str, rows: int) -> None:
    target = load_target(arch)
    small, large = lower(rotation(16), arch), lower(rotation(rows), arch)
    # What the small one chooses would not fit at this size ...
    assert need(small.program.functions[0], target) * (rows // 16) > target.ub_usable_bytes
    # ... and the large one as written does, so that it is what comes out.
    assert need(large.program.functions[0], target) <= target.ub_usable_bytes
    assert large.totals.cycles <= large.plain.cycles
    assert not [d for d in large.remarks if d.code == "TG028"]
    assert equivalent(large.source, large.program, samples=2).equal


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_what_cannot_fit_is_said_with_the_place(arch: str) -> None:
    lowered = lower(rotation(320), arch)
    (remark,) = [d for d in lowered.remarks if d.code == "TG028"]
    assert remark.severity == "remark" and remark.span is not None
    assert f"{load_target(arch).ub_usable_bytes:,}" in remark.message


def test_regions_that_have_room_are_improved_all_the_same() -> None:
    program = rotation(256)
    text = (CORPUS / "rope_halves.py").read_text().replace("[16, ", "[256, ")
    # A second part of the function, behind a loop, that needs little memory and gains by a shorter chain of casts.
    more = """        z_t = pl.load(x, [0, 0], [8, 64])
        for i in pl.range(0, 1):
            w_t = pl.cast(pl.cast(z_t, target_type=pl.FP32), target_type=pl.BF16)
            pl.store(w_t, [0, 0], y)
        y_out ="""
    both = lower(parse(text.replace("        y_out =", more)), "a5")
    target = load_target("a5")
    assert need(both.program.functions[0], target) <= target.ub_usable_bytes
    assert sum(r.fallback for r in both.functions[0].regions) < len(both.functions[0].regions)
    assert both.totals.cycles < both.plain.cycles
    assert lower(program, "a5").totals.cycles == pytest.approx(lower(program, "a5").plain.cycles)


def test_without_a_target_nothing_is_bounded() -> None:
    found = lower(rotation(320), None)
    assert fitted(lambda written: found, None) is found  # type: ignore[arg-type, return-value]
