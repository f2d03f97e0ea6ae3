"""Tiles without elements and windows that cannot be are refused where they are written."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import FP32
from tilegg.ir.program import Program
from tilegg.ir.types import tensor

LOAD = "t = pl.load(x, [0, 0], [16, 64])"


def diagnosed(*lines: str, parameter: str = "pl.Tensor[[16, 64], pl.FP32]") -> tuple[str, str]:
    """Return the message and the hint of a kernel with these lines, which must be a TG008 in the last of them."""
    text = f"@pl.function\ndef k(x: {parameter}, out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
    text += "".join(f"    {line}\n" for line in lines) + "    return out\n"
    with pytest.raises(TileggError) as caught:
        tilegg.parse(text, "k.py")
    (found,) = caught.value.diagnostics
    assert found.code == "TG008" and found.span is not None and found.span.file == "k.py"
    assert found.span.line == 2 + len(lines) and found.span.column > 1
    return found.message, found.hint


def refused(*lines: str, parameter: str = "pl.Tensor[[16, 64], pl.FP32]") -> str:
    """Return the message of :func:`diagnosed`, which must come with a hint."""
    message, hint = diagnosed(*lines, parameter=parameter)
    assert hint, "what to do is said"
    return message


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


TENSOR = "o: pl.Out[pl.Tensor[[8, 64], pl.FP32]]"
INDICES = ["[16, 0]", "[0, 64]", "[-1, 0]", "[0, -64]", "[99, 99]"]


@pytest.mark.parametrize("at", INDICES)
@pytest.mark.parametrize(
    "lines",
    [(LOAD, "e = pl.tile.read(t, {})"), (LOAD, "w = pl.tile.write(t, {}, 1.0)"), ("e = pl.read(x, {})",),
     ("w = pl.write(x, {}, 1.0)",)],
)  # fmt: skip
def test_elements_lie_inside(lines: tuple[str, ...], at: str) -> None:
    message = refused(*lines[:-1], lines[-1].format(at))
    assert message.endswith("is negative" if "-" in at else "of [16, 64]") and "index" in message


@pytest.mark.parametrize("access", ["pl.tile.read(t, {})", "pl.tile.write(t, {}, 1.0)", "pl.read(x, {})"])
def test_positions_have_the_rank(access: str) -> None:
    assert "has rank 1, not 2" in refused(LOAD, f"e = {access.format('[3]')}")
    assert "has rank 3, not 2" in refused(LOAD, f"e = {access.format('[0, 3, 0]')}")


def test_only_valid_elements_are_read_and_all_are_written() -> None:
    part = "t = pl.load(x, [0, 0], [16, 64], valid_shape=[4, 64])"
    assert "index 4 lies outside dimension 0 of [4, 64]" in refused(part, "e = pl.tile.read(t, [4, 0])")
    assert "dimension 0 of [16, 64]" in refused(part, "w = pl.tile.write(t, [16, 0], 1.0)")
    accepted(part, "w = pl.tile.write(t, [15, 63], 1.0)", "e = pl.tile.read(t, [3, 63])")


def test_axes_are_those_of_the_tensor() -> None:
    for axis in (2, -3):
        assert f"no axis {axis} in [16, 64]" in refused(f"n = pl.tensor.dim(x, {axis})")
    accepted("a = pl.tensor.dim(x, 1)", "b = pl.tensor.dim(x, -2)")


def test_elements_of_arrays() -> None:
    made = "a = pl.array.create(4, pl.INT32)"
    for at in (4, -1):
        assert f"index {at}" in refused(made, f"e = pl.array.get_element(a, {at})")
        assert f"index {at}" in refused(made, f"b = pl.array.update_element(a, {at}, 1)")
    accepted(made, "e = pl.array.get_element(a, 3)")


def accepted(*lines: str, parameters: str = "x: pl.Tensor[[16, 64], pl.FP32]") -> Program:
    """Return the kernel with these lines, which must be read and verify."""
    text = f"@pl.function\ndef k({parameters}, n: pl.Scalar[pl.INDEX]):\n"
    program = tilegg.parse(text + "".join(f"    {line}\n" for line in lines) + "    return x\n")
    assert not tilegg.verify(program)
    return program


def test_dynamic_positions_and_extents_are_left_to_the_run() -> None:
    accepted(LOAD, "w = pl.tile.write(t, [n, 63], 1.0)", "e = pl.tile.read(t, [15, n])", "v = pl.write(x, [n, n], e)")
    dynamic = "x: pl.Tensor[[M, 64], pl.FP32]"
    accepted(LOAD, "e = pl.read(x, [99, 63])", "y = pl.store(t, [90, 0], x)", parameters=dynamic)
    accepted("t = pl.load(x, [0, 0], [16, 64], valid_shape=[n, 64])", "y = pl.store(t, [n, 0], o)",
             parameters=f"x: pl.Tensor[[16, 64], pl.FP32], {TENSOR}")  # fmt: skip


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("y = pl.store(t, [0, 0], o)", "offset 0 + size 16 exceeds dimension 0 of [8, 64]"),
        ("y = pl.store(t, [0, -1], out)", "offset -1 along dimension 1 is negative"),
        ("y = pl.store(t, [1, 0], out)", "offset 1 + size 16 exceeds dimension 0 of [16, 64]"),
        ("y = pl.store(t, [pl.tensor.dim(o, 0), 0], o)", "size 16 exceeds dimension 0 of [8, 64]"),
        ("y = pl.tile.store(t, [4, 0], o, [8, 64])", "offset 4 + size 8 exceeds dimension 0 of [8, 64]"),
        ("y = pl.tile.store(t, [0, 0], out, [32, 64])", "offset 0 + size 32 exceeds dimension 0 of [16, 64]"),
        ("y = pl.tile.store(t, [0, 0], out, [16])", "shapes must have the tensor's rank 2"),
        ("y = pl.store(t, [0], v)", "does not fit into a tensor of rank 1"),
    ],
)
def test_stores_stay_inside_the_tensor(line: str, what: str) -> None:
    parameters = f"pl.Tensor[[16, 64], pl.FP32], {TENSOR}, v: pl.Out[pl.Tensor[[1024], pl.FP32]]"
    message, _ = diagnosed(LOAD, line, parameter=parameters)
    assert what in message


def test_what_is_valid_is_stored() -> None:
    parameters = f"x: pl.Tensor[[16, 64], pl.FP32], {TENSOR}, c: pl.Out[pl.Tensor[[2, 8, 64], pl.FP32]]"
    part = "t = pl.load(x, [0, 0], [16, 64], valid_shape=[8, 64])"
    accepted(part, "y = pl.store(t, [0, 0], o)", "z = pl.store(t, [1, 0, 0], c)", parameters=parameters)
    accepted(LOAD, "y = pl.tile.store(t, [0, 0], o, [8, 64])", parameters=parameters)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("t = pl.load(o, [0, 0], [16, 64], valid_shape=[16, 64])", "the region read: offset 0 + size 16 exceeds"),
        ("t = pl.load(o, [2, 0], [16, 64], valid_shape=[7, 64])", "the region read: offset 2 + size 7 exceeds"),
        ("t = pl.load(o, [pl.tensor.dim(o, 0), 0], [16, 64])", "size 16 exceeds dimension 0 of [8, 64]"),
        ("s = pl.tensor.slice(o, [16, 64], [0, 0], valid_shape=[9, 64])", "the region in use: offset 0 + size 9"),
        ("s = pl.tensor.slice(x, [16, 64], [0, 0], valid_shape=[17, 64])", "exceeds the shape [16, 64]"),
    ],
)
def test_what_is_valid_is_inside_the_tensor(line: str, what: str) -> None:
    message, _ = diagnosed(line, parameter=f"pl.Tensor[[16, 64], pl.FP32], {TENSOR}")
    assert what in message
    accepted(
        "t = pl.load(o, [2, 0], [16, 64], valid_shape=[6, 64])", parameters=f"x: pl.Tensor[[16, 64], pl.FP32], {TENSOR}"
    )


def test_a_store_past_the_tensor_at_run_time_is_refused() -> None:
    text = (
        "@pl.function\ndef k(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Scalar[pl.INDEX],"
        f" {TENSOR}):\n    {LOAD}\n    return pl.tile.store(t, [n, 0], o, [8, 64])\n"
    )
    inputs = {"x": np.ones((16, 64), np.float32)}
    assert (tilegg.run(tilegg.parse(text), {**inputs, "n": 0})["o"] == 1).all()
    with pytest.raises(TileggError, match="reaches past the tensor"):
        tilegg.run(tilegg.parse(text), {**inputs, "n": 4})
