"""Conversions that other converters got wrong: each test is named after the kind of failure."""

import itertools
import math

import numpy as np
import pytest
from tilegg.ir.convert import (
    ROUND_MODES,
    all_values,
    convert,
    decode,
    is_nan,
    same_bits,
)
from tilegg.ir.dtypes import (
    BF16,
    BOOL,
    DTYPES,
    FP4,
    FP8E4M3FN,
    FP8E5M2,
    FP8E8M0,
    FP16,
    FP32,
    HF8,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT16,
    UINT32,
    UINT64,
    DType,
)

NUMERIC = [d for d in DTYPES.values() if d.is_numeric]

pytestmark = pytest.mark.filterwarnings("error")


def values(array: np.ndarray, dtype: DType) -> list:
    return decode(array, dtype).tolist()


def test_rint_sends_ties_to_even_and_round_away_from_zero_with_the_sign_of_zero_kept():
    ties = np.array([-2.5, -0.5, 0.5, 1.5, 2.5, 3.5], np.float32)
    assert values(convert(ties, FP32, INT32, "rint"), INT32) == [-2, 0, 0, 2, 2, 4]
    assert values(convert(ties, FP32, INT32, "round"), INT32) == [-3, -1, 1, 2, 3, 4]
    # The same ties on the grid of FP8E4M3FN near zero, where the sign of zero shows.
    small = (ties * 2.0**-9).astype(np.float32)
    rint = [v * 2.0**9 for v in values(convert(small, FP32, FP8E4M3FN, "rint"), FP8E4M3FN)]
    away = [v * 2.0**9 for v in values(convert(small, FP32, FP8E4M3FN, "round"), FP8E4M3FN)]
    assert [repr(v) for v in rint] == ["-2.0", "-0.0", "0.0", "2.0", "2.0", "4.0"]
    assert away == [-3, -1, 1, 2, 3, 4]


def test_the_largest_float_below_a_half_rounds_to_zero():
    below = np.array([np.nextafter(np.float32(0.5), np.float32(0)), 8388607.5, 8388609.0], np.float32)
    assert values(convert(below, FP32, INT32, "round"), INT32) == [0, 8388608, 8388609]


def test_int32_to_bf16_rounds_once_and_not_through_fp32():
    source = np.array([16842753, 259, -259, 33000, 32767], np.int32)
    assert values(convert(source, INT32, BF16, "rint"), BF16) == [16908288, 260, -260, 33024, 32768]
    through = convert(convert(source[:1], INT32, FP32, "rint"), FP32, BF16, "rint")
    assert values(through, BF16) == [16777216]


def test_int64_to_floats_rounds_once_and_not_through_float64():
    source = np.array([2**60 + 2**36 + 1, -(2**60) - 2**36 - 1, 2**63 - 1], np.int64)
    above = 2.0**60 + 2.0**37
    assert values(convert(source, INT64, FP32, "rint"), FP32) == [above, -above, 2.0**63]
    assert float(source[0]) == 2.0**60 + 2.0**36  # float64 has lost the one that breaks the tie


def test_fp8_conversion_honours_the_round_mode():
    source = np.array([1.1, 0.3, 17.9], np.float32)
    assert values(convert(source, FP32, FP8E4M3FN, "rint"), FP8E4M3FN) == [1.125, 0.3125, 18]
    assert values(convert(source, FP32, FP8E4M3FN, "trunc"), FP8E4M3FN) == [1.0, 0.28125, 16]


def test_fp32_to_fp4_rounds_once_and_a_bf16_hop_needs_odd():
    source = np.array([1.251953125, 2.500244140625], np.float32)
    assert values(convert(source, FP32, FP4, "rint"), FP4) == [1.5, 3.0]
    for hop, wanted in (("rint", [1.0, 2.0]), ("odd", [1.5, 3.0])):
        chain = convert(convert(source, FP32, BF16, hop), BF16, FP4, "rint")
        assert values(chain, FP4) == wanted


def test_fp8e5m2_overflows_to_infinity_unless_saturating():
    source = np.array([61439, 61440, 1e5, np.inf], np.float32)
    assert values(convert(source, FP32, FP8E5M2, "rint"), FP8E5M2) == [57344, math.inf, math.inf, math.inf]
    assert values(convert(source, FP32, FP8E5M2, "rint", True), FP8E5M2) == [57344.0] * 4
    assert values(convert(source, FP32, FP8E5M2, "trunc"), FP8E5M2) == [57344, 57344, 57344, math.inf]


def test_fp8e4m3fn_overflow_is_nan_unless_saturating():
    source = np.array([464, 465, -1e9, -np.inf], np.float32)
    assert repr(values(convert(source, FP32, FP8E4M3FN, "rint"), FP8E4M3FN)) == "[448.0, nan, nan, nan]"
    assert values(convert(source, FP32, FP8E4M3FN, "rint", True), FP8E4M3FN) == [448, 448, -448, -448]


def test_fp8e4m3fn_subnormals_and_nan_decode():
    assert repr(values(np.array([1, 7, 0x7F], np.uint8), FP8E4M3FN)) == "[0.001953125, 0.013671875, nan]"


def test_e8m0_ends_decode():
    assert repr(values(np.array([0, 134, 255], np.uint8), FP8E8M0)) == repr([2.0**-127, 128.0, math.nan])
    widened = convert(np.array([0, 134, 255], np.uint8), FP8E8M0, FP32)
    assert repr(values(widened, FP32)) == repr([2.0**-127, 128.0, math.nan])


def test_hifloat8_has_no_negative_zero():
    source = np.array([-0.0, -1e-30, 0.0], np.float32)
    assert convert(source, FP32, HF8, "round").tolist() == [0, 0, 0]


def test_out_of_range_float_to_int8_clamps_or_wraps():
    source = np.array([np.inf, 510, -200], np.float16)
    assert values(convert(source, FP16, INT8, "round", True), INT8) == [127, 127, -128]
    assert values(convert(source, FP16, INT8, "round", False), INT8) == [-1, -2, 56]
    source = np.array([200.7, -200.7], np.float32)
    assert values(convert(source, FP32, INT8, "trunc", True), INT8) == [127, -128]
    assert values(convert(source, FP32, INT8, "trunc", False), INT8) == [-56, 56]


@pytest.mark.parametrize("dst", [d for d in NUMERIC if d.is_int], ids=repr)
def test_nan_and_infinity_to_integers(dst):
    source = np.array([np.nan, np.inf, -np.inf], np.float32)
    assert values(convert(source, FP32, dst), dst) == [0, dst.max_value, dst.min_value]
    ones = -1 if dst.signed else dst.max_value
    assert values(convert(source, FP32, dst, saturate=False), dst) == [0, ones, 0]


def test_fp32_beyond_64_bits_wraps_to_the_exact_low_bits():
    source = np.array([2.0**63, -(2.0**63), 2.0**64 + 2.0**41, -(2.0**63) - 2.0**40, 2.0**127], np.float32)
    signed = [-(2**63), -(2**63), 2**41, 2**63 - 2**40, 0]
    assert values(convert(source, FP32, INT64, saturate=False), INT64) == signed
    unsigned = [v % 2**64 for v in signed]
    assert values(convert(source, FP32, UINT64, saturate=False), UINT64) == unsigned


def test_widening_extends_by_the_sign_of_the_source():
    assert values(convert(np.array([-18], np.int8), INT8, UINT16, saturate=False), UINT16) == [65518]
    assert values(convert(np.array([-47], np.int8), INT8, INT16), INT16) == [-47]
    source = np.array([-15478], np.int16)
    assert values(convert(source, INT16, UINT32, saturate=False), UINT32) == [4294951818]


def test_int32_to_fp16_at_the_top_of_the_range_and_on_ties():
    source = np.array([65504, 65519, 65520, 2049, 2051], np.int32)
    assert values(convert(source, INT32, FP16, "rint"), FP16) == [65504, 65504, math.inf, 2048, 2052]
    assert values(convert(source, INT32, FP16, "rint", True), FP16) == [65504, 65504, 65504, 2048, 2052]


def test_uint32_maximum_to_fp32():
    assert values(convert(np.array([4294967295], np.uint32), UINT32, FP32, "rint"), FP32) == [4294967296]


def test_bf16_through_fp32_is_the_identity_and_fp32_through_bf16_is_not():
    every = all_values(BF16)
    for out, back in itertools.product(ROUND_MODES, repeat=2):
        assert same_bits(convert(convert(every, BF16, FP32, out), FP32, BF16, back), every, BF16).all()
    source = np.array([1.01, 3.14159274], np.float32)
    chain = convert(convert(source, FP32, BF16, "rint"), BF16, FP32)
    assert values(chain, FP32) == [1.0078125, 3.140625]


def test_bf16_through_fp16_loses_most_values():
    every = all_values(BF16)
    every = every[~is_nan(every, BF16)]
    chain = convert(convert(every, BF16, FP16, "rint"), FP16, BF16, "rint")
    changed = ~same_bits(chain, every, BF16) & np.isfinite(decode(every, BF16))
    assert (changed.sum(), np.isfinite(decode(every, BF16)).sum()) == (56576, 65280)


def test_int8_quantisation_tail_flips_a_sign_when_it_wraps():
    source = np.array([2.5, -127.49, 127.6, 300], np.float32)
    half = convert(convert(source, FP32, INT32, "rint"), INT32, FP16, "round")
    assert values(convert(half, FP16, INT8, "trunc", False), INT8) == [2, -127, -128, 44]
    assert values(convert(half, FP16, INT8, "trunc", True), INT8) == [2, -127, 127, 127]


def test_odd_rounding_lands_on_the_neighbour_with_an_odd_last_bit():
    source = np.array([0.25, -0.25, 2.5, -2.5, 3.0, 4.0, 3.99], np.float32)
    assert values(convert(source, FP32, INT32, "odd"), INT32) == [1, -1, 3, -3, 3, 4, 3]
    huge = np.array([1e9, -1e9, 449.0], np.float32)
    assert values(convert(huge, FP32, FP8E4M3FN, "odd"), FP8E4M3FN) == [448, -448, 448]


def test_mode_none_is_rint_to_floats_and_trunc_to_integers():
    source = np.array([2.75, -2.75, 1.0 + 2.0**-8], np.float32)
    assert values(convert(source, FP32, INT8, "none"), INT8) == [2, -2, 1]
    assert values(convert(source, FP32, BF16, "none"), BF16)[2] == 1.0


def test_bool_is_not_zero():
    source = np.array([0.0, -0.0, 0.25, np.nan, -3], np.float32)
    assert values(convert(source, FP32, BOOL), BOOL) == [0, 0, 1, 1, 1]
    assert values(convert(np.array([0, 256], np.int32), INT32, BOOL, saturate=False), BOOL) == [0, 1]
    assert values(convert(np.array([False, True]), BOOL, BF16), BF16) == [0, 1]
