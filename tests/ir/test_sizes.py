"""Tiles without elements and windows that cannot be are refused where they are written."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import FP32
from tilegg.ir.types import tensor

LOAD = "t = pl.load(x, [0, 0], [16, 64])"


def refused(*lines: str, parameter: str = "pl.Tensor[[16, 64], pl.FP32]") -> str:
    """Return the diagnostic of a kernel with these lines, which must be a TG008 in the last of them."""
    text = f"@pl.function\ndef k(x: {parameter}, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
    text += "".join(f"    {line}\n" for line in lines) + "    return out\n"
    with pytest.raises(TileggError) as caught:
        tilegg.parse(text, "k.py")
    (found,) = caught.value.diagnostics
    assert found.code == "TG008" and found.span is not None and found.span.file == "k.py"
    assert found.span.line == 2 + len(lines) and found.span.column > 1
    assert found.hint, "what to do is said"
    return found.message


@pytest.mark.parametrize("size", [0, -16])
@pytest.mark.parametrize(
    "line",
    ["t = pl.load(x, [0, 0], [{}, 16])", "t = pl.tile.create([16, {}], dtype=pl.FP32)",
     "t = pl.tile.full([{}, 16], dtype=pl.FP32, value=1.0)", "t = pl.tile.ci(0, [1, {}], dtype=pl.INT32)"],
)  # fmt: skip
def test_sizes_of_tiles_are_positive(line: str, size: int) -> None:
    assert f"size {size} along dimension" in refused(line.format(size))


def test_operations_on_tiles_give_tiles_with_elements() -> None:
    assert "size -16" in refused(LOAD, "y = pl.tile.reshape(t, [-16, -64])")
    assert "size -16" in refused(LOAD, "y = pl.tile.slice(t, [4, -16], [0, 0])")
    assert "size 0" in refused(LOAD, "y = pl.tile.slice(t, [0, 16], [0, 0])")


def test_types_of_tiles_have_elements() -> None:
    assert "[0, 16] has no elements" in refused(parameter="pl.Tile[[0, 16], pl.FP32]")


@pytest.mark.parametrize("valid", ["[-1, 64]", "[16, -2]"])
def test_valid_extents_are_not_negative(valid: str) -> None:
    assert "negative extent" in refused(f"t = pl.load(x, [0, 0], [16, 64], valid_shape={valid})")
    rows, columns = valid.strip("[]").split(", ")
    assert "negative extent" in refused(LOAD, f"y = pl.tile.set_validshape(t, {rows}, {columns})")


def test_a_load_of_nothing_and_a_window_before_the_tensor() -> None:
    assert "is empty" in refused("t = pl.load(x, [0, 0], [16, 64], valid_shape=[0, 64])")
    assert "offset -1" in refused("t = pl.load(x, [-1, 0], [16, 64])")


def test_the_builder_refuses_them_too() -> None:
    b = tilegg.Builder("k")
    x = b.param("x", tensor([16, 64], FP32))
    for make in (lambda: b.tile.load(x, [0, 0], [16, 0]), lambda: b.tile.create([-1, 8], dtype=FP32)):
        with pytest.raises(TileggError) as caught:
            make()
        assert caught.value.diagnostics[0].code == "TG008"


def test_dynamic_and_valid_extents_of_zero_stay() -> None:
    text = (
        "@pl.function\ndef k(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX]):\n"
        "    t = pl.load(x, [0, 0], [16, 64], valid_shape=[n, 64])\n"
        "    y = pl.tile.set_validshape(t, 0, 64)\n    return y\n"
    )
    assert not tilegg.verify(tilegg.parse(text))


@pytest.mark.parametrize("count", ["2.0", "s"])
def test_valid_extents_are_integers(count: str) -> None:
    text = (
        "@pl.function\ndef k(x: pl.Tensor[[16, 64], pl.FP32], s: pl.Scalar[pl.FP32]):\n"
        f"    t = pl.load(x, [0, 0], [16, 64])\n    y = pl.tile.set_validshape(t, 4, {count})\n    return y\n"
    )
    with pytest.raises(TileggError, match="valid_cols must be an integer") as caught:
        tilegg.parse(text)
    assert caught.value.diagnostics[0].code == "TG006"


SET = (
    "@pl.function\ndef k(x: pl.Tensor[[2, 32], pl.UINT8], s: pl.Scalar[pl.INDEX],"
    " o: pl.Out[pl.Tensor[[2, 32], pl.UINT8]]):\n"
    "    t = pl.load(x, [0, 0], [2, 32])\n    y = pl.tile.set_validshape(t, s, 32)\n    return pl.store(y, [0, 0], o)\n"
)


@pytest.mark.parametrize("rows", [-1, 3])
def test_a_run_time_extent_beyond_the_tile_is_refused_where_it_stands(rows: int) -> None:
    with pytest.raises(TileggError, match="does not fit into") as caught:
        tilegg.run(tilegg.parse(SET, "k.py"), {"x": np.zeros((2, 32), np.uint8), "s": rows})
    found = caught.value.diagnostics[0]
    assert found.code == "TG032" and found.span is not None and found.span.line == 4


def test_drawn_extents_fit_the_tile() -> None:
    program = tilegg.parse(SET)
    report = tilegg.equivalent(program, program, samples=8)
    assert report.equal and (report.runs, report.rejected) == (8, 0)
