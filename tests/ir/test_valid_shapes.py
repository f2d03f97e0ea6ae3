"""Tiles of unlike valid shape meet: which operations take them, where the result is valid, and what is refused."""

import numpy as np
import pytest
from tilegg import TileggError, emit, lower, parse, run
from tilegg.ir.program import Program
from tilegg.testing import assert_lowering_correct

_KERNEL = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[16, 64], pl.FP32],
          n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        a = pl.load(x, [0, 0], [16, 64], valid_shape=[{a}])
        b = pl.load(y, [0, 0], [16, 64], valid_shape=[{b}])
        r = {work}
        return pl.store(r, [0, 0], out)
"""


def _parse(work: str, a: str, b: str) -> Program:
    return parse(_KERNEL.format(work=work, a=a, b=b), "k.py")


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("work", ["pl.tile.part_add(a, b)", "pl.tile.part_add(b, a)", "pl.tile.part_max(a, b)"])
@pytest.mark.parametrize("a, b", [("n, 64", "16, 64"), ("16, 32", "16, 64"), ("n, m", "16, 64"), ("n, 64", "n, 64")])
def test_partial_operations_are_valid_where_either_operand_is(work: str, a: str, b: str, arch: str) -> None:
    assert_lowering_correct(_parse(work, a, b), arch, facts={"n": (1, 16), "m": (1, 64)}, inputs=6)


def test_rows_that_one_operand_holds_are_copied() -> None:
    given = {"x": np.ones((16, 64), np.float32), "y": np.full((16, 64), 2, np.float32), "n": 4, "m": 9}
    out = run(_parse("pl.tile.part_add(a, b)", "n, 64", "16, 64"), given)["out"]
    assert out[:, 0].tolist() == [3.0] * 4 + [2.0] * 12


@pytest.mark.parametrize("a, b", [("n, 64", "m, 64"), ("n, 64", "8, 64"), ("n, 64", "16, 32")])
def test_partial_operations_want_one_operand_to_cover_the_other(a: str, b: str) -> None:
    with pytest.raises(TileggError, match="covers the other"):
        _parse("pl.tile.part_add(a, b)", a, b)


@pytest.mark.parametrize("work", ["pl.add(a, b)", "pl.add(b, a)", "pl.tile.axpy(a, b, 2.0)", "pl.tile.prelu(a, b)"])
@pytest.mark.parametrize("a", ["n, 64", "8, 64"])
def test_a_whole_tile_beside_a_part_of_one_is_refused_in_either_order(work: str, a: str) -> None:
    with pytest.raises(TileggError, match="set_validshape"):
        _parse(work, a, "16, 64")


def test_a_selection_and_an_expand_want_the_same_rows() -> None:
    with pytest.raises(TileggError, match="the mask must be a packed predicate"):
        _parse("pl.tile.sel(pl.tile.cmps(a, 0.0, cmp_type=4), b, b)", "n, 64", "16, 64")
    with pytest.raises(TileggError, match="needs one value per row"):
        _parse("pl.row_expand_mul(a, pl.row_max(b))", "n, 64", "16, 64")


def test_extents_that_turn_out_unlike_are_named() -> None:
    program = _parse("pl.add(a, b)", "n, 64", "m, 64")
    ones = np.ones((16, 64), np.float32)
    assert run(program, {"x": ones, "y": ones, "n": 5, "m": 5})["out"][:5, 0].sum() == 10
    with pytest.raises(TileggError, match=r"valid in \[4, 64\] and in \[5, 64\] at run time"):
        run(program, {"x": ones, "y": ones, "n": 4, "m": 5})
    assert "pto.tadd" in emit(lower(program, "a5"), "a5")
