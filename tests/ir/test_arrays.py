"""Arrays of scalars: types, meaning, loops, errors."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg import emit, lower
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.interp import run
from tilegg.ir.program import Program
from tilegg.ir.text import parse, print_program

HEAD = """
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[1, 4], pl.INT32]]):
"""


def program(body: str) -> Program:
    return parse(HEAD + "".join(f"    {line}\n" for line in body.splitlines()))


COUNT = """\
counts: pl.Array[4, pl.INT32] = pl.array.create(4, dtype=pl.INT32)
for i in pl.range(8):
    v = pl.read(x, [0, i])
    if v >= 0:
        old: pl.Scalar[pl.INT32] = pl.array.get_element(counts, v)
        counts = pl.array.update_element(counts, v, old + 1)
for k in pl.range(4):
    n = pl.array.get_element(counts, k)
    pl.write(y, [0, k], n)"""


def test_a_histogram() -> None:
    p = program(COUNT)
    assert parse(print_program(p)) == p
    x = np.array([[0, 1, 1, 3, -1, 3, 3, 0]], np.int32)
    assert run(p, {"x": x})["y"].tolist() == [[2, 2, 0, 3]]


def test_an_index_outside_stops_the_run() -> None:
    with pytest.raises(TileggError, match="TG032"):
        run(program(COUNT), {"x": np.full((1, 8), 4, np.int32)})


@pytest.mark.parametrize(
    ("line", "code"),
    [("a = pl.array.create(0, dtype=pl.INT32)", "TG008"), ("b = pl.array.get_element(x, 0)", "TG006"),
     ("b = pl.array.update_element(x, 0, 1)", "TG006")],
)  # fmt: skip
def test_refused(line: str, code: str) -> None:
    with pytest.raises(TileggError) as caught:
        program(line)
    assert caught.value.diagnostics[0].code == code


def test_no_assembly_is_written_for_them() -> None:
    with pytest.raises(TileggError, match="TG023"):
        emit(lower(program(COUNT), "a2a3"), "a2a3")
