"""Local memory: what is chosen fits wherever the program as written does."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilegg import lower, parse
from tilegg.extract.fitting import fitted
from tilegg.extract.footprint import peak, room
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
    assert room(small.program.functions[0], target) * (rows // 16) > target.ub_usable_bytes
    # ... and the large one as written does, so that it is what comes out.
    assert room(large.program.functions[0], target) <= target.ub_usable_bytes
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
    assert room(both.program.functions[0], target) <= target.ub_usable_bytes
    assert sum(r.fallback for r in both.functions[0].regions) < len(both.functions[0].regions)
    assert both.totals.cycles < both.plain.cycles
    assert lower(program, "a5").totals.cycles == pytest.approx(lower(program, "a5").plain.cycles)


def test_without_a_target_nothing_is_bounded() -> None:
    found = lower(rotation(320), None)
    assert fitted(lambda written: found, None) is found  # type: ignore[arg-type, return-value]


QUANT = (CORPUS / "act_quant_bf16.py").read_text()
MASKS = """
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[{rows}, 128], pl.FP32], o: pl.Out[pl.Tensor[[{rows}, 128], pl.FP32]]):
    t = pl.load(x, [0, 0], [{rows}, 128])
    m0 = pl.tile.cmps(t, 0.5, cmp_type="gt")
    m1 = pl.tile.cmps(t, 1.5, cmp_type="gt")
    u = pl.tile.select(m0, t, 0.25)
    u = pl.tile.select(m1, u, 1.25)
    return pl.store(u, [0, 0], o)
"""


def test_gaps_between_tiles_count() -> None:
    """Three FP32 tiles behind one of BF16, which is free by then but too small for any of them."""
    target = load_target("a2a3")
    lowered = lower(parse(QUANT.replace("[16, ", "[56, ").replace(" 16]", " 56]")), "a2a3", contract="exact")
    assert room(lowered.program.functions[0], target) <= target.ub_usable_bytes
    assert not [d for d in lowered.remarks if d.code == "TG028"]
    merged = lower(parse(QUANT), "a2a3", contract="exact").program.functions[0]
    assert room(merged, target) == 16 * 256 * (2 + 3 * 4) and peak(merged)[0] < room(merged, target)


def test_a_mask_is_as_large_as_what_was_compared() -> None:
    f = parse(MASKS.format(rows=16)).functions[0]
    size = 16 * 128
    # The tile, both masks and the first selection.
    assert peak(f)[0] == 2 * 4 * size + 2 * size == room(f, load_target("a5"))


def test_a_tile_without_contents_takes_room_from_its_first_use_on() -> None:
    text = """
@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 1], pl.FP32]]):
    tmp = pl.tile.create([16, 64], pl.FP32)
    t = pl.load(x, [0, 0], [16, 64])
    a = pl.abs(t)
    b = pl.exp(a)
    return pl.store(pl.row_max(b, tmp), [0, 0], o)
"""
    f = parse(text).functions[0]
    assert peak(f)[0] == 2 * 16 * 64 * 4 + 16 * 4


def test_a_carried_tile_whose_initial_value_is_read_on_is_a_tile_more() -> None:
    text = """
@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    t = pl.load(x, [0, 0], [16, 64])
    for i, (c,) in pl.range(4, init_values=(t,)):
        d = pl.mul(c, {})
        r = pl.yield_(d)
    return pl.store({}, [0, 0], o)
"""
    alone, read = (parse(text.format("0.5", last)).functions[0] for last in ("r", "pl.add(r, t)"))
    size = 16 * 64 * 4
    assert peak(alone)[0] == 2 * size and peak(read)[0] == 3 * size
