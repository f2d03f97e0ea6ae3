"""Sine, cosine and selection: exact meanings, and every refusal with what to do about it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP8E4M3FN, FP16, FP32, INT32, UINT8
from tilegg.ir.interp import run
from tilegg.ir.interp_eval import eval_op
from tilegg.ir.op import OPS, Call
from tilegg.ir.packing import pack_mask
from tilegg.ir.program import Const, Value
from tilegg.ir.types import scalar, tensor, tile

INF, NAN = float("inf"), float("nan")


def type_of(name: str, *types: Any, **attrs: Any) -> Any:
    decl = OPS[name]
    operands = tuple(Const(t, FP32 if isinstance(t, float) else INT32) if isinstance(t, int | float) else Value("v", t)
                     for t in types)  # fmt: skip
    return decl.result(Call(decl, operands, {**decl.defaults, **attrs}, None))


def refused(code: str, words: str, hint: str, *types: Any, name: str = "tile.select") -> None:
    with pytest.raises(TileggError) as problem:
        type_of(name, *types)
    found = problem.value.diagnostics[0]
    assert found.code == code and words in found.message, found
    assert hint in found.hint, found


# -- sine and cosine -----------------------------------------------------------------------------------------


def trig(name: str, *x: float) -> np.ndarray:
    t = tile((1, len(x)), FP32)
    return eval_op(OPS[name], [np.array([x], np.float32)], [t], {}, t).region[0]


def test_values_far_out_are_correctly_rounded() -> None:
    """Reference values to more digits than a recipe's reduction keeps."""
    assert trig("tile.sin", 1e4, 1e6, 1.2e7, 1e8).tolist() == [
        np.float32(v) for v in (-0.305614388888252, -0.349993502171292, 0.912427590068196, 0.931639027109726)
    ]
    assert trig("tile.sin", 1e5)[0] == np.float32(0.035748797972)
    assert trig("tile.cos", 0.0, 3.1415927410125732)[:2].tolist() == [1.0, -1.0]


def test_special_values() -> None:
    found = trig("tile.sin", -0.0, 0.0, INF, -INF, NAN)
    assert np.signbit(found[0]) and not np.signbit(found[1]) and np.isnan(found[2:]).all()
    assert trig("tile.cos", -0.0)[0] == 1.0 and np.isnan(trig("tile.cos", INF, NAN)).all()


@pytest.mark.parametrize("name", ["tile.sin", "tile.cos"])
def test_fp32_only(name: str) -> None:
    assert type_of(name, tile((4, 8), FP32, (4, 5))) == tile((4, 8), FP32, (4, 5))
    for dtype in (FP16, BF16, INT32, FP8E4M3FN):
        refused("TG007", f"FP32 only, got {dtype.name}", "target_type=pl.FP32", tile((4, 8), dtype), name=name)
        refused("TG007", "FP32 only", "pl.FP32", tensor((4, 8), dtype), name=name.replace("tile", "tensor"))
    assert type_of(name.replace("tile", "tensor"), tensor((4, 8), FP32)) == tensor((4, 8), FP32)


# -- select --------------------------------------------------------------------------------------------------

X = tile((4, 64), FP32)
MASK = tile((4, 32), UINT8, (4, 8))


def test_forms() -> None:
    assert type_of("tile.select", MASK, X, X) == X
    assert type_of("tile.select", MASK, X, 0.0) == X
    assert type_of("tile.select", MASK, 1, X) == X
    narrow = tile((4, 64), FP32, (4, 20))
    assert type_of("tile.select", tile((4, 32), UINT8, (4, 3)), narrow, narrow) == narrow
    deep = tile((2, 4, 64), BF16)
    assert type_of("tile.select", tile((2, 4, 32), UINT8, (2, 4, 8)), deep, 2.0) == deep


def test_values_of_every_form() -> None:
    x, y = np.arange(8, dtype=np.float32).reshape(1, 8), np.full((1, 8), NAN, np.float32)
    bits = np.array([[True, False, False, True, True, False, True, False]])
    mask, t = pack_mask(bits), tile((1, 8), FP32)
    types = [tile((1, 32), UINT8, (1, 1)), t, t]
    decl = OPS["tile.select"]

    def chosen(a: Any, b: Any) -> list[float]:
        found = [types[0], *(t if isinstance(v, np.ndarray) else scalar(FP32) for v in (a, b))]
        return eval_op(decl, [mask, a, b], found, {}, t).region[0].tolist()

    assert chosen(x, -1.0) == [0, -1, -1, 3, 4, -1, 6, -1]
    assert chosen(-1.0, x) == [-1, 1, 2, -1, -1, 5, -1, 7]
    found = chosen(x, y)
    assert [v for v in found if v == v] == [0, 3, 4, 6] and sum(v != v for v in found) == 4


def test_a_value_tile_is_no_predicate() -> None:
    """Even where its valid extents are those of a predicate, the physical shape tells; where both agree it is one."""
    refused("TG008", "packed predicate", "pl.tile.cmps(value, 0, cmp_type=1)", X, X, X)
    refused("TG008", "packed predicate", "pl.tile.cmps(value, 0, cmp_type=1)", tile((4, 64), UINT8), X, X)
    # [M, 32] UINT8 values for a [M, 32] result: wholly valid is no predicate, four valid bytes are.
    narrow = tile((4, 32), FP32)
    refused("TG008", "packed predicate", "cmps", tile((4, 32), UINT8), narrow, narrow)
    assert type_of("tile.select", tile((4, 32), UINT8, (4, 4)), narrow, narrow) == narrow
    refused("TG008", "packed predicate", "pl.tile.cmp", tile((4, 32), UINT8, (4, 4)), X, X)


def test_branches_must_agree() -> None:
    refused("TG008", "shapes", "row_expand", MASK, X, tile((1, 64), FP32))
    refused("TG008", "valid shapes", "set_validshape", MASK, X, tile((4, 64), FP32, (4, 20)))
    refused("TG007", "dtypes", "pl.FP32", MASK, X, tile((4, 64), FP16))


def test_scalar_branches_are_literals_over_static_extents() -> None:
    refused("TG006", "must be a literal", "expands", MASK, X, scalar(FP32))
    refused("TG006", "both branches are scalars", "pl.tile.full", MASK, 1.0, 2.0)
    refused("TG006", "a tile or a literal", "", MASK, X, tensor((4, 64), FP32))
    moving = tile(("m", 64), FP32)
    refused("TG008", "static extent", "valid_shape", tile(("m", 32), UINT8, ("m", 8)), moving, 0.0)
    refused("TG007", "does not suit", "integer", MASK, tile((4, 64), INT32), 0.5)
    refused("TG007", "FP8E4M3FN", "tiles", MASK, tile((4, 64), FP8E4M3FN), 0)


TEXT = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[4, 64], pl.FP32], out: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [4, 64])
        m = pl.tile.cmps(t, 0.0, cmp_type=4)
        y = pl.select(m, pl.sin(t), -1.0)
        return pl.store(pl.tile.select(m, 2.0, pl.cos(y)), [0, 0], out)
"""


def test_programs_read_print_and_run() -> None:
    program = tilegg.parse(TEXT, "k.py")
    assert tilegg.verify(program) == [] and tilegg.parse(tilegg.print_program(program)) == program
    x = np.random.default_rng(1).normal(0, 2, (4, 64)).astype(np.float32)
    found = run(program, {"x": x})["out"]
    inner = np.where(x > 0, np.sin(x.astype(np.float64)).astype(np.float32), np.float32(-1))
    want = np.where(x > 0, np.float32(2), np.cos(inner.astype(np.float64)).astype(np.float32))
    assert np.array_equal(found, want)


def test_refusals_show_the_place() -> None:
    text = TEXT.replace("m = pl.tile.cmps(t, 0.0, cmp_type=4)", "m = pl.cast(t, target_type=pl.UINT8)")
    with pytest.raises(TileggError) as problem:
        tilegg.parse(text, "k.py")
    found = problem.value.diagnostics[0]
    assert found.span is not None and found.span.line == 10 and "tile.select" in found.message
