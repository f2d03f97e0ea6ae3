"""A packed predicate beside numbers is refused, and what the message says to write instead works."""

from __future__ import annotations

import re

import numpy as np
import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError


def kernel(line: str, dtype: str, columns: int = 64, valid: str = "") -> str:
    """Loads ``t``, compares it into ``m``, runs the line, stores ``y``."""
    shape = f"[16, {columns}]"
    return f"""
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[{shape}, pl.{dtype}], out: pl.Out[pl.Tensor[{shape}, pl.{dtype}]]):
    t = pl.tile.load(x, [0, 0], {shape}{valid})
    m = pl.tile.cmps(t, 1, cmp_type=4)
    {line}
    return pl.tile.store(y, [0, 0], out)
"""


def refusal(text: str) -> str:
    with pytest.raises(TileggError) as caught:
        tilegg.parse(text)
    (found,) = caught.value.diagnostics
    assert found.code == "TG008" and "packed predicate" in found.message and found.span is not None
    return found.hint


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "maximum"])
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT32", "UINT8"])
@pytest.mark.parametrize(("columns", "valid"), [(64, ""), (32, ""), (64, ", valid_shape=[9, 33]")])
def test_the_hint_makes_numbers_of_the_mask(operation: str, dtype: str, columns: int, valid: str) -> None:
    for operands in ("t, m", "m, t"):
        hint = refusal(kernel(f"y = pl.tile.{operation}({operands})", dtype, columns, valid))
        numbers = re.search(r"once: (pl\.tile\.select\(.*\)); to choose", hint)
        assert numbers is not None
        again = kernel(f"n = {numbers[1]}\n    y = pl.tile.{operation}(t, n)", dtype, columns, valid)
        x = np.arange(16 * columns).reshape(16, columns) % 5
        out = np.zeros((16, columns), dtype.lower().replace("fp", "float"))
        got = tilegg.run(tilegg.parse(again), {"x": x.astype(out.dtype), "out": out})["out"]
        meaning = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum}[operation]
        rows, cols = (9, 33) if valid else (16, columns)
        want = meaning(x.astype(out.dtype), (x > 1).astype(out.dtype))
        assert np.array_equal(got[:rows, :cols], want[:rows, :cols])


def test_expansions_and_selections_say_so_too() -> None:
    assert "pl.tile.select(m, pl.tile.expands(t, 1), 0)" in refusal(kernel("y = pl.tile.sel(m, t, m)", "FP32"))
    assert "select" in refusal(kernel("y = pl.tile.row_expand_mul(t, m)", "FP32"))


def test_other_shapes_are_no_masks() -> None:
    text = kernel("u = pl.tile.slice(t, [16, 32], [0, 0])\n    y = pl.tile.add(t, u)", "FP32")
    with pytest.raises(TileggError, match="operands have shapes") as caught:
        tilegg.parse(text)
    assert "broadcast" in caught.value.diagnostics[0].hint
