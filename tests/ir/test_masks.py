"""A packed predicate beside numbers is refused, and what the message says to write instead works."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import tilegg
from tilegg.ir import predicates
from tilegg.ir.builder import Builder
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import FP32
from tilegg.ir.op import OPS
from tilegg.ir.program import Block
from tilegg.ir.types import tensor
from tilegg.ir.verify import verify


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


NAMED = "n = pl.tile.mask_not(m)\n    both = pl.tile.and_(m, n)\n    neither = pl.tile.not_(m)"
#: Operations that read elements as numbers, on a predicate alone.
NUMERIC = [
    "pl.cast(m, target_type=pl.FP32)", "pl.mul(m, 2)", "pl.tile.maximums(m, 3)", "pl.tile.minimums(m, 3)",
    "pl.maximum(m, m)", "pl.tile.add(m, m)", "m + 1", "-m", "pl.tile.cmps(m, 0, cmp_type=1)",
    "pl.tile.cmp(m, m, cmp_type=0)", "pl.tile.shrs(m, 1)", "m << 1", "pl.tile.shr(m, m)", "pl.tile.row_max(m)",
    "pl.tile.col_sum(m)", "pl.exp(m)", "pl.tile.row_expand_mul(m, pl.tile.row_max(t))", "pl.tile.abs(n)",
    "pl.tile.muls(both, 2)", "pl.tile.muls(neither, 2)",
]  # fmt: skip


@pytest.mark.parametrize("expression", NUMERIC)
@pytest.mark.parametrize("dtype", ["FP32", "INT32"])
def test_a_predicate_alone_is_no_number_either(expression: str, dtype: str) -> None:
    hint = refusal(kernel(f"{NAMED}\n    y = {expression}", dtype))
    numbers = re.search(r"once: (pl\.tile\.select\(.*\)); to choose", hint)
    assert numbers is not None
    tilegg.parse(kernel(f"{NAMED}\n    y = {numbers[1]}", dtype))


def test_predicates_without_a_name_are_called_mask() -> None:
    hint = refusal(kernel("y = pl.cast(pl.tile.cmps(t, 1, cmp_type=4), target_type=pl.FP32)", "FP32"))
    assert "pl.tile.select(mask, pl.tile.expands(t, 1), 0)" in hint


def test_bitwise_operations_selections_and_bytes_of_predicates_are_fine() -> None:
    for line in (
        "y = pl.tile.select(pl.tile.not_(m & m), t, 0)",
        "y = pl.tile.select(pl.tile.mask_not(pl.tile.or_(m, pl.tile.xor(m, m))), t, 0)",
        "n = pl.tile.expands(m, 3)\n    k = pl.tile.adds(n, 1)\n    y = pl.tile.neg(t)",
        "b = pl.tile.reinterpret_view(m, pl.UINT8)\n    k = pl.tile.adds(b, 1)\n    y = pl.tile.neg(t)",
    ):
        assert tilegg.parse(kernel(line, "FP32")).functions


def test_tiles_of_bytes_are_numbers() -> None:
    frame = kernel("y = {}", "UINT8")
    for expression in ("pl.mul(t, 2)", "pl.tile.shrs(t, 1)", "pl.maximum(t, t)", "pl.tile.and_(t, t) + 1"):
        assert tilegg.parse(frame.replace("{}", expression)).functions


def test_built_and_assembled_programs_are_told_too() -> None:
    b = Builder("k")
    x = b.param("x", tensor([16, 64], FP32))
    t = b.tile.load(x, [0, 0], [16, 64])
    m = b.tile.cmps(t, 1.0, cmp_type="gt")
    with pytest.raises(TileggError, match="packed predicate"):
        b.tile.muls(m, 2)
    good = tilegg.parse(kernel("y = pl.tile.reinterpret_view(m, pl.UINT8)\n    y = pl.tile.neg(t)", "FP32"))
    f = good.functions[0]
    wrong = [replace(s, name="tile.neg", attrs={}, operands=s.operands[:1])
             if getattr(s, "name", "") == "tile.reinterpret_view" else s for s in f.body.statements]  # fmt: skip
    (found,) = verify(replace(good, functions=(replace(f, body=Block(tuple(wrong))),)))
    assert found.code == "TG008" and "packed predicate" in found.message


def test_the_families_of_numbers_exist() -> None:
    assert {d.family for d in OPS.values()} >= predicates._NUMBERS
    assert set(OPS) >= predicates._NUMERIC | predicates._COMBINES | predicates._SHAPED
