"""Where -0 can occur: in no range without zero, and in sums and products where the interpreter makes it of specials."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from tilegg.ir import valueset as vs
from tilegg.ir.convert import decode, encode
from tilegg.ir.dtypes import BF16, FP16, FP32, DType
from tilegg.ir.interp_eval import eval_op
from tilegg.ir.members import contains
from tilegg.ir.op import OPS
from tilegg.ir.tilearray import TileArray
from tilegg.ir.types import tile
from tilegg.rules.check_values import tightest

FLOATS = [FP32, FP16, BF16]
OPERATIONS = ["add", "sub", "mul", "maximum", "minimum"]


def numbers(dtype: DType) -> list[float]:
    """Special values: both zeros and infinities, NaN, the least, the largest and ordinary numbers."""
    least, most = 2.0**dtype.quantum_exponent, float(dtype.max_value)
    return [math.nan, *(s * x for s in (1.0, -1.0) for x in (0.0, least, 1.0, 1.5, most, math.inf))]


def call(name: str, dtype: DType) -> vs.Call:
    return vs.Call(name, tile((1, 1), dtype), {}, {})


def table(name: str, dtype: DType) -> np.ndarray:
    """What the interpreter makes of every two special values."""
    every = encode(numbers(dtype), dtype, "rint", False)
    left, right = (x.reshape(1, -1) for x in np.meshgrid(every, every, indexing="ij"))
    types = [tile(left.shape, dtype)] * 2
    found = eval_op(OPS[f"tile.{name}"], [TileArray(left), TileArray(right)], types, {}, types[0])
    assert isinstance(found, TileArray)
    return decode(np.ascontiguousarray(found.region), dtype).reshape(len(every), -1)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
@pytest.mark.parametrize("name", OPERATIONS)
def test_every_result_of_special_values_is_in_the_set(name: str, dtype: DType) -> None:
    results, given = table(name, dtype), np.array(numbers(dtype))
    pairs = list(combinations_with_replacement(range(len(given)), 2))
    sets = {p: tightest(given[list(p)]) for p in pairs}
    for p, q in product(pairs, pairs):
        if p[0] == p[1] or q[0] == q[1]:
            found = OPS[f"tile.{name}"].transfer[0](sets[p], sets[q], call=call(name, dtype))
            assert contains(found, results[np.ix_(p, q)].reshape(-1)).all(), (sets[p], sets[q], found)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_no_sum_or_difference_is_a_negative_zero_but_of_zeros(dtype: DType) -> None:
    given = numbers(dtype)
    for name in ("add", "sub"):
        negative = (table(name, dtype) == 0) & np.signbit(table(name, dtype))
        of = {(str(given[i]), str(given[k])) for i, k in np.argwhere(negative)}
        assert of == {("-0.0", "-0.0" if name == "add" else "0.0")}


EVERYTHING = vs.of_dtype(FP32)
POSITIVE = vs.clamp(EVERYTHING, 1.0, 5.0)
AROUND = vs.clamp(EVERYTHING, -3.0, 4.0)
WITHOUT = replace(AROUND, negative_zero=False)


def test_a_range_without_zero_has_no_negative_zero() -> None:
    assert not POSITIVE.negative_zero and "-0" not in str(POSITIVE)
    assert AROUND.negative_zero and vs.clamp(EVERYTHING, 0.0, 5.0).negative_zero
    assert not vs.clamp(EVERYTHING, -5.0, -(2.0**-149)).negative_zero
    one, zero = vs.constant(1.0, FP32), vs.constant(0.0, FP32)
    here = call("extreme", FP32)
    assert not vs.maximum(EVERYTHING, one, call=here).negative_zero
    assert not vs.minimum(EVERYTHING, vs.neg(one, call=here), call=here).negative_zero
    assert vs.maximum(EVERYTHING, zero, call=here).negative_zero
    assert not vs.cast_to(POSITIVE, FP16, "rint").negative_zero
    assert vs.cast_to(vs.clamp(EVERYTHING, -1.0, -1e-30), FP16, "rint").negative_zero  # what underflows
    assert not vs.constant(2.0, FP32).negative_zero and vs.constant(-0.0, FP32).negative_zero


@pytest.mark.parametrize(
    ("name", "a", "b", "can"),
    [
        ("add", AROUND, AROUND, True), ("add", AROUND, WITHOUT, False), ("add", POSITIVE, AROUND, False),
        ("sub", POSITIVE, AROUND, False), ("sub", AROUND, POSITIVE, False), ("sub", WITHOUT, AROUND, False),
        ("sub", AROUND, WITHOUT, True), ("mul", POSITIVE, POSITIVE, False), ("mul", POSITIVE, AROUND, True),
        ("mul", replace(POSITIVE, inf=True, sign=1), vs.constant(0.0, FP32), False),
    ],
)  # fmt: skip
def test_sums_differences_and_products(name: str, a: vs.ValueSet, b: vs.ValueSet, can: bool) -> None:
    assert OPS[f"tile.{name}"].transfer[0](a, b, call=call(name, FP32)).negative_zero is can


@pytest.mark.parametrize(
    ("name", "a", "scalar", "can"),
    [
        ("adds", AROUND, 0.0, False),
        ("adds", AROUND, -0.0, True),
        ("subs", AROUND, 0.0, True),
        ("subs", AROUND, 1.0, False),
    ],
)
def test_sums_with_a_scalar(name: str, a: vs.ValueSet, scalar: float, can: bool) -> None:
    found = OPS[f"tile.{name}"].transfer[0](a, vs.constant(scalar, FP32), call=call(name, FP32))
    assert found.negative_zero is can
