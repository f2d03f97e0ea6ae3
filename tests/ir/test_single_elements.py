"""Single elements: what is read is the number that is stored, and writing it back stores the same bits."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg.ir.codes import all_values, decode, same_bits
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, BOOL, DTYPES, FP32, INT4, DType
from tilegg.ir.interp import run
from tilegg.ir.lanes import number
from tilegg.ir.pointers import Pointer
from tilegg.ir.text import parse

CODED = [d for d in DTYPES.values() if d.is_coded]
READS = ("pl.tile.read(t, [0, i])", "pl.tensor.read(x, [0, i])")
WRITES = ("pl.tile.write(u, [0, i], e)", "pl.tensor.write(y, [0, i], e)")


def copied(dtype: DType, out: DType, read: str, *lines: str) -> tuple[np.ndarray, np.ndarray]:
    """Run the lines for the element ``e`` that ``read`` gives, for every code (of BF16 some, NaNs and zeros among
    them); return the elements and what comes out.
    """
    values = all_values(dtype).reshape(1, -1)[:, :: 255 if dtype is BF16 else 1]
    n = values.size
    text = (
        "import pypto.language as pl\n\n@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(x: pl.Tensor[[1, {n}], pl.{dtype}], y: pl.Out[pl.Tensor[[1, {n}], pl.{out}]]):\n"
        f"    t = pl.tile.load(x, [0, 0], [1, {n}])\n    u = pl.tile.create([1, {n}], pl.{out})\n"
        f"    for i in pl.range({n}):\n        e = {read}\n"
        + "".join(f"        {line}\n" for line in lines)
        + ("    pl.store(u, [0, 0], y)\n" if "tile.write" in lines[-1] else "")
    )
    return values, np.asarray(run(parse(text), {"x": values})["y"])


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("dtype", [*CODED, BF16], ids=str)
def test_an_element_that_is_read_and_written_is_copied(dtype: DType, read: str, write: str) -> None:
    values, found = copied(dtype, dtype, read, write)
    assert same_bits(values, found, dtype).all()


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("dtype", [*CODED, BF16], ids=str)
def test_a_scalar_is_the_number_that_is_stored(dtype: DType, read: str) -> None:
    cast = "e = pl.scalar.cast(e, pl.FP32)" if dtype is not BF16 else "e = pl.cast(e, pl.FP32)"
    values, found = copied(dtype, FP32, read, cast, WRITES[1])
    exact = decode(values, dtype).astype(np.float32)
    assert same_bits(exact, found, FP32).all()


@pytest.mark.parametrize("dtype", CODED, ids=str)
def test_arrays_and_pointers_hold_numbers(dtype: DType) -> None:
    lines = (f"a = pl.array.create(2, dtype=pl.{dtype})", "a = pl.array.update_element(a, 1, e)",
             "e = pl.array.get_element(a, 1)", WRITES[1])  # fmt: skip
    values, found = copied(dtype, dtype, READS[1], *lines)
    assert same_bits(values, found, dtype).all()
    memory = all_values(dtype)
    one = Pointer(memory, dtype).read(5)
    assert one == decode(memory[5:6], dtype)[0]


def test_a_number_of_any_rank() -> None:
    assert number(np.array([[True]]), BOOL) is True
    assert number(np.array(-3, np.int8), INT4) == -3
    assert number(np.uint8(0x38), DTYPES["FP8E4M3FN"]) == 1.0


@pytest.mark.parametrize("write", ["pl.tile.write(t, [0, 1], {})", "pl.tensor.write(y, [0, 1], {})"])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [("INT8", "300"), ("UINT16", "-1"), ("INT32", "0.5"), ("FP16", "1e6"), ("INT32", "True"), ("BOOL", "2"),
     ("BOOL", "math.nan"), ("FP8E8M0", "0.0"), ("FP8E8M0", "-1.0"), ("FP8E8M0", "math.inf"), ("FP4", "math.nan"),
     ("FP4", "math.inf"), ("FP8E4M3FN", "-math.inf"), ("FP8E4M3FN", "500.0"), ("UINT64", "9223372036854775808")],
)  # fmt: skip
def test_a_literal_that_is_written_fits_the_dtype(dtype: str, value: str, write: str) -> None:
    text = (
        "import pypto.language as pl\n\n@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(x: pl.Tensor[[8, 32], pl.{dtype}], y: pl.Out[pl.Tensor[[8, 32], pl.{dtype}]]):\n"
        f"    t = pl.tile.load(x, [0, 0], [8, 32])\n    {{}}\n    pl.store(t, [0, 0], y)\n"
    )
    with pytest.raises(TileggError, match="TG011"):
        parse(text.format(write.format(value)))
    parse(text.format(write.format(1)))
