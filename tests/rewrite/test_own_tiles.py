"""Tiles that are changed in place stand for no other value, and no other value stands for them."""

from __future__ import annotations

import pytest
from tilegg import TileggError, emit, lower, parse
from tilegg.ir.equivalence import equivalent
from tilegg.ir.program import Op, walk

HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [16, 64])
"""
#: What a program does, and how many copies that needs.
CASES = {
    "two equal tiles": ("c = pl.full([16, 64], dtype=pl.FP32, value=0.0)",
                        "d = pl.full([16, 64], dtype=pl.FP32, value=0.0)",
                        "pl.tile.write(c, [0, 0], 1000.0)", "r = pl.add(d, c)", 0),
    "two equal results": ("c = pl.abs(t)", "d = pl.abs(t)", "pl.tile.write(c, [0, 0], -5.0)", "r = pl.add(d, c)", 0),
    "a product that does nothing": ("c = pl.mul(t, 1.0)", "pl.tile.write(c, [0, 0], 7.0)", "r = pl.add(t, c)", 1),
    "a maximum of one value": ("c = pl.maximum(t, t)", "pl.tile.write(c, [0, 0], 7.0)", "r = pl.sub(t, c)", 1),
    "a cast to the dtype itself": ("c = pl.cast(t, target_type=pl.FP32)", "pl.tile.write(t, [0, 0], 7.0)",
                                   "r = pl.sub(c, t)", 1),
    "both are changed": ("c = pl.cast(t, target_type=pl.FP32)", "pl.tile.write(t, [0, 0], 7.0)",
                         "pl.tile.write(c, [0, 1], 9.0)", "r = pl.sub(c, t)", 1),
    "nothing is shared": ("c = pl.exp(t)", "pl.tile.write(c, [0, 0], 7.0)", "r = pl.sub(c, t)", 0),
    "a view is the tile itself": ("c = pl.reshape(t, [64, 16])", "pl.tile.write(c, [0, 0], 7.0)",
                                  "r = pl.add(t, pl.reshape(c, [16, 64]))", 0),
}  # fmt: skip


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("case", CASES)
def test_a_changed_tile_is_its_own(case: str, arch: str) -> None:
    *lines, copies = CASES[case]
    program = parse(HEAD + "".join(f"        {line}\n" for line in (*lines, "return pl.store(r, [0, 0], out)")))
    lowered = lower(program, arch, contract="exact")
    report = equivalent(program, lowered.program)
    assert report.equal, report
    made = [s for s in walk(lowered.program.functions[0].body) if isinstance(s, Op) and s.name == "tile.move"]
    assert len(made) == copies
    if "view" not in case:
        assert emit(lowered, arch).count("pto.tmov") == copies


def test_an_element_written_through_another_shape_changes_the_tile() -> None:
    """Both names are one tile in assembly, too: nothing is copied."""
    lines = ("c = pl.reshape(t, [64, 16])", "pl.tile.write(c, [0, 0], 7.0)", "r = pl.exp(t)",
             "return pl.store(r, [0, 0], out)")  # fmt: skip
    text = emit(lower(parse(HEAD + "".join(f"        {line}\n" for line in lines)), "a5"), "a5")
    assert "pto.tmov" not in text and "pto.tsetval" in text


def test_a_window_and_another_shape_beside_a_write_are_refused() -> None:
    lines = ("c = pl.reshape(t, [64, 16])", "s = pl.slice(t, [16, 32], [0, 32])", "pl.tile.write(c, [0, 0], 7.0)",
             "r = pl.add(pl.exp(t), pl.concat(s, s))", "return pl.store(r, [0, 0], out)")  # fmt: skip
    program = parse(HEAD + "".join(
        f"        {line}\n" for line in lines).replace("pl.concat", "pl.tile.concat"))  # fmt: skip
    with pytest.raises(TileggError, match="is written while 's' shares its storage"):
        emit(lower(program, "a5"), "a5")
