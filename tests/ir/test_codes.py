"""Value sets, order and comparison of elements, and the hostile inputs made from them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tilegg.ir.convert import (
    all_values,
    decode,
    encode,
    ordinal,
    representable,
    same_bits,
    ulp_distance,
)
from tilegg.ir.dtypes import (
    BF16,
    DTYPES,
    FP4,
    FP8E4M3FN,
    FP16,
    FP32,
    HF4,
    HF8,
    INDEX,
    INT8,
    INT64,
    UINT64,
    DType,
)
from tilegg.ir.samples import hostile

NUMERIC = [d for d in DTYPES.values() if d.is_numeric]
NARROW = [d for d in NUMERIC if d.bits <= 16]

pytestmark = pytest.mark.filterwarnings("error")


def values(array: np.ndarray, dtype: DType) -> list:
    return decode(array, dtype).tolist()


def stored(numbers: list, dtype: DType) -> np.ndarray:
    """A storage array of numbers that the dtype represents."""
    assert all(representable(n, dtype) for n in numbers)
    return encode(numbers, dtype)


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_representable_is_membership_in_the_value_set(dtype):
    listed = {v for v in values(all_values(dtype), dtype) if math.isfinite(v)}
    assert all(representable(v, dtype) and representable(Fraction(v), dtype) for v in listed)
    ordered = sorted(listed)
    for low, high in itertools.pairwise(ordered):
        assert not representable((Fraction(low) + Fraction(high)) / 2, dtype)
    assert not representable(Fraction(ordered[-1]) * 2 + 1, dtype)
    assert representable(math.nan, dtype) == dtype.has_nan
    assert representable(math.inf, dtype) == dtype.has_inf
    assert representable(-0.0, dtype) == dtype.has_negative_zero


def test_representable_in_wide_types():
    assert representable(2**24, FP32) and not representable(2**24 + 1, FP32)
    assert representable(Fraction(1, 2**149), FP32) and not representable(Fraction(3, 2**150), FP32)
    assert not representable(0.1, FP32) and representable(float(np.float32(0.1)), FP32)
    assert representable(2**64 - 1, UINT64) and not representable(2**63, INT64)
    assert not representable(Fraction(1, 3), FP32) and not representable(0.5, INDEX)
    assert not representable(0, HF4)


@pytest.mark.parametrize("dtype", NARROW, ids=repr)
def test_ordinals_count_the_values(dtype):
    array = all_values(dtype)
    array = array[np.isfinite(decode(array, dtype).astype(np.float64))]
    order = np.argsort(decode(array, dtype), kind="stable")
    places = ordinal(array, dtype)[order]
    exact = decode(array, dtype)[order]
    assert (np.diff(places) == (np.diff(exact) != 0)).all()


def test_ulp_distance():
    ends = np.array([-(2**63), 5], np.int64), np.array([2**63 - 1, 3], np.int64)
    assert ulp_distance(*ends, INT64).tolist() == [2.0**64, 2]
    first = np.array([1.0, -0.0, np.nan, np.nan, 65504], np.float16)
    second = np.array([1.0 + 2.0**-9, 0.0, np.nan, 1.0, np.inf], np.float16)
    assert ulp_distance(first, second, FP16).tolist() == [2, 0, 0, math.inf, 1]
    assert ulp_distance(stored([0.875], HF8), stored([1.125], HF8), HF8).tolist() == [3]
    top = ordinal(stored([15.0], HF8), HF8)[0]
    assert ulp_distance(stored([15.0], HF8), stored([-15.0], HF8), HF8).tolist() == [2 * top]


def test_same_bits_tells_zeros_apart_and_nans_not():
    first = np.array([0.0, np.nan, 1.0], np.float32)
    second = np.array([-0.0, -np.nan, 1.0], np.float32)
    assert same_bits(first, second, FP32).tolist() == [False, True, True]
    assert same_bits(np.array([0x7F], np.uint8), np.array([0xFF], np.uint8), FP8E4M3FN).all()
    assert same_bits(np.array([0x0F], np.uint8), np.array([0xFF], np.uint8), FP4).all()
    assert not same_bits(np.array([0x80], np.uint8), np.array([0x00], np.uint8), HF8).any()


@pytest.mark.parametrize("src", NUMERIC, ids=repr)
def test_hostile_inputs_are_storage_of_the_source_and_repeatable(src):
    for dst in NUMERIC:
        first = hostile(src, dst, np.random.default_rng(6), 64)
        assert first.dtype == src.storage and first.shape == (64,)
        assert same_bits(first, hostile(src, dst, np.random.default_rng(6), 64), src).all()
        assert (decode(first, src).min() >= src.min_value) or src.is_float


def test_hostile_inputs_hit_ties_and_range_ends():
    array = decode(hostile(FP32, INT8, np.random.default_rng(7), 2000), FP32)
    array = array[np.isfinite(array)]
    assert (np.abs(np.modf(array)[0]) == 0.5).sum() > 50
    assert (array == 127.5).any() and (np.abs(array - 127.5) < 1e-4).sum() > 5
    array = hostile(FP32, BF16, np.random.default_rng(8), 2000)
    assert ((array.view(np.uint32) & 0xFFFF) == 0x8000).sum() > 50
    array = hostile(INT64, FP32, np.random.default_rng(9), 2000)
    assert (np.abs(array.astype(np.float64)) > 2.0**24).sum() > 500
