"""Rules about exponentials and outer products: what they bring and what breaks them."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg import lower, parse
from tilegg.ir.dtypes import FP16, FP32
from tilegg.ir.interp import run
from tilegg.ir.program import Const
from tilegg.rules import exponentials as E
from tilegg.rules import shapes as S
from tilegg.rules.arithmetic import op
from tilegg.rules.check import check_rule
from tilegg.rules.computed import COMPUTED
from tilegg.rules.rule import RULES, Pattern, Rule

KERNEL = """
import pypto.language as pl
@pl.program
class K:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, x: pl.Tensor[[8, 64], pl.FP32], v: pl.Tensor[[1, 64], pl.FP32], w: pl.Tensor[[8, 1], pl.FP32],
        y: pl.Out[pl.Tensor[[8, 64], pl.FP32]],
    ):
        a = pl.load(x, [0, 0], [8, 64])
        b = pl.load(v, [0, 0], [1, 64])
        c = pl.load(w, [0, 0], [8, 1])
        r = {body}
        return pl.store(r, [0, 0], y)
"""


def _ops(body: str, arch: str = "a5") -> list[str]:
    lowered = lower(parse(KERNEL.format(body=body)), arch, contract="exact", memo=None)
    names = [i.op.name.removeprefix("tile.") for f in lowered.functions for i in f.instructions if i.count]
    return [n for n in names if n not in ("load", "store")]


def test_the_sign_before_an_exponential_goes_into_the_factor() -> None:
    gate = "pl.exp(pl.neg(pl.col_expand_add(pl.mul(a, 0.3), b)))"
    assert _ops(gate) == ["muls", "col_expand_expdif"]
    assert _ops("pl.neg(pl.col_expand_add(pl.mul(a, 0.3), b))") == ["muls", "col_expand_add", "neg"]
    assert _ops("pl.exp(pl.neg(pl.sub(a, pl.abs(a))))", "a2a3") == ["abs", "sub", "exp"]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_zeros_of_either_sign_have_one_exponential(arch: str) -> None:
    program = parse(KERNEL.format(body="pl.exp(pl.neg(pl.col_expand_add(pl.mul(a, 0.5), b)))"))
    lowered = lower(program, arch, contract="exact", memo=None).program
    numbers = np.array([0.0, -0.0, 2.0, -2.0, np.inf, -np.inf, np.nan, 1e-45], np.float32)
    x = np.repeat(numbers, 64).reshape(8, 64)
    v = np.tile(np.array([0.0, -0.0, -1.0, 1.0, np.inf, -np.inf, np.nan, 3e38], np.float32), 8).reshape(1, 64)
    inputs = {"x": x, "v": v, "w": np.zeros((8, 1), np.float32)}
    assert np.array_equal(run(program, inputs)["y"], run(lowered, inputs)["y"], equal_nan=True)


@pytest.mark.parametrize(
    ("inner", "outer", "count"),
    [("pl.div(a, 32.0)", 2.0, 2), ("pl.mul(a, 0.25)", 3.0, 2), ("pl.mul(a, 4.0)", 0.25, 3), ("pl.mul(a, 0.3)", 2.0, 3)],
)
def test_scaling_twice_before_an_exponential(inner: str, outer: float, count: int) -> None:
    """Growing first could overflow, and other factors round twice."""
    assert len(_ops(f"pl.exp(pl.mul({inner}, {outer}))")) == count


def test_only_fp32_is_scaled_once() -> None:
    half, two = Const(0.5, FP32), Const(2.0, FP32)
    assert COMPUTED["shrunk"].function(half, two, FP32) == (Const(1.0, FP32),)
    assert COMPUTED["shrunk"].function(half, two, FP16) is None
    assert COMPUTED["shrunk"].function(half, Const(2.0**65, FP32), FP32) is None
    assert COMPUTED["parted"].function(two, two, FP32) == (Const(1.0, FP32),)
    assert COMPUTED["parted"].function(half, two, FP32) is None


def test_an_outer_product_repeats_the_row_of_values() -> None:
    body = "pl.col_expand_mul(pl.row_expand(a, c), b)"
    assert _ops(body, "a2a3") == ["col_expand", "row_expand_mul"]


_SMALL = RULES["exp.muls.muls"].when
WRONG: list[tuple[str, Pattern, Pattern]] = [
    ("bare", op("neg", op("add", E.x, E.y)), op("sub", op("neg", E.x), E.y)),
    ("same-order", op("exp", op("neg", op("sub", E.x, E.y))), op("exp", op("sub", E.x, E.y))),
    ("swapped-operands", op("col_expand_mul", op("row_expand", S.t, S.v), S.y), op("col_expand_mul", S.t, S.y)),
]


@pytest.mark.parametrize(("name", "lhs", "rhs"), WRONG, ids=[n for n, _, _ in WRONG])
def test_wrong_rule_is_caught(name: str, lhs: Pattern, rhs: Pattern) -> None:
    wrong = Rule(f"wrong.{name}", lhs, rhs, (), "exact", "", "normalise", 10_000)  # type: ignore[arg-type]
    assert check_rule(wrong, samples=40).failures


def test_scaling_once_needs_the_exponential() -> None:
    lhs = op("muls", op("muls", E.x, E.c1), E.c2)
    wrong = Rule("wrong.scaled", lhs, op("muls", E.x, E.r), _SMALL, "exact", "", "normalise", 10_000)
    assert check_rule(wrong, samples=40).failures
