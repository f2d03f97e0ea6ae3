"""Conversions against gfloat, en_dtypes, ml_dtypes and Fractions, and the calls' own manners."""

import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path

import en_dtypes
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilegg.ir.convert import (
    ROUND_MODES,
    all_codes,
    all_values,
    convert,
    decode,
    encode,
    parse_mode,
    same_bits,
)
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import (
    BF16,
    DTYPES,
    FP4,
    FP4E1M2,
    FP8E4M3FN,
    FP8E5M2,
    FP8E8M0,
    FP16,
    FP32,
    HF4,
    HF8,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT4,
    UINT8,
    UINT16,
    DType,
)
from tilegg.ir.literals import HALVES_AND_SINGLE, nearest
from tilegg.ir.samples import hostile, special_values

sys.path.insert(0, str(Path(__file__).parent))
from convert_oracle import FORMATS, MODES, disagreements, expected, expected_scalar

NUMERIC = [d for d in DTYPES.values() if d.is_numeric]
FLOATS = [d for d in NUMERIC if d.is_float]
NARROW = [d for d in NUMERIC if d.bits <= 16]
WIDE = [d for d in NUMERIC if d.bits > 16]
SAMPLES = 4000  # per pair, mode and saturation; benchmarks/bench_convert.py takes a million

pytestmark = pytest.mark.filterwarnings("error")


def values(array: np.ndarray, dtype: DType) -> list:
    return decode(array, dtype).tolist()


def check(array: np.ndarray, src: DType, dst: DType) -> None:
    for mode, saturate in itertools.product(MODES, (False, True)):
        result = convert(array, src, dst, mode, saturate)
        bad = disagreements(result, expected(array, src, dst, mode, saturate), dst, decode)
        assert not bad.size, (src, dst, mode, saturate, array[bad[:5]], result[bad[:5]])
        if src.bits <= 16:  # often used, narrow sources go by table
            size = 5 << 14
            again = convert(np.resize(array, size), src, dst, mode, saturate)
            assert same_bits(np.resize(result, size), again, dst).all()


# -- against the libraries ---------------------------------------------------------------------------------


@pytest.mark.parametrize("src", NARROW, ids=repr)
def test_every_value_of_a_narrow_source_converts_as_the_libraries_say(src):
    array = all_values(src)
    for dst in NUMERIC:
        check(array, src, dst)


@pytest.mark.parametrize("src", WIDE, ids=repr)
def test_hostile_values_of_a_wide_source_convert_as_the_libraries_say(src):
    rng = np.random.default_rng(20)
    for dst in NUMERIC:
        check(np.concatenate([special_values(src), hostile(src, dst, rng, SAMPLES)]), src, dst)


@pytest.mark.parametrize("dst", NUMERIC, ids=repr)
def test_conversion_agrees_with_exact_fractions(dst):
    rng = np.random.default_rng(21)
    for src in NUMERIC:
        array = hostile(src, dst, rng, 24)
        exact = values(array, src)
        for mode, saturate in itertools.product(MODES, (False, True)):
            got = values(convert(array, src, dst, mode, saturate), dst)
            for value, result in zip(exact, got, strict=True):
                wanted = expected_scalar(value, dst, mode, saturate)
                assert repr(float(wanted)) == repr(float(result)), (src, dst, mode, saturate, value)
                assert wanted == result or math.isnan(wanted)


@settings(max_examples=300, deadline=None)
@given(st.floats(), st.sampled_from(NUMERIC), st.sampled_from(MODES), st.booleans())
def test_encode_rounds_any_float64_once(value, dst, mode, saturate):
    got = decode(encode([value], dst, mode, saturate), dst)[0].item()
    assert repr(got) == repr(expected_scalar(value, dst, mode, saturate))


@pytest.mark.parametrize("dst", HALVES_AND_SINGLE)
def test_one_number_rounds_as_a_conversion_does(dst):
    rng = np.random.default_rng(6)
    fp32 = decode(np.concatenate([special_values(FP32), hostile(FP32, dst, rng, 4000)]), FP32)
    own = decode(special_values(dst), dst)
    own = np.unique(own[np.isfinite(own)])
    # Between two values, and as little beside it as double precision can tell.
    halves = own[:-1] + np.diff(own) / 2
    ends = [1e308, -1e308, 5e-324, -5e-324]
    given = np.concatenate([fp32, halves, np.nextafter(halves, -np.inf), np.nextafter(halves, np.inf), ends])
    wanted = decode(encode(given, dst, "rint", False), dst).tolist()
    assert [repr(nearest(x, dst)) for x in given.tolist()] == [repr(x) for x in wanted]


@settings(max_examples=300, deadline=None)
@given(st.fractions() | st.integers(), st.sampled_from(NUMERIC), st.sampled_from(MODES), st.booleans())
def test_encode_rounds_integers_of_any_size_and_fractions_once(value, dst, mode, saturate):
    array = np.empty(1, object)
    array[0] = value
    got = decode(encode(array, dst, mode, saturate), dst)[0].item()
    assert repr(got) == repr(expected_scalar(value, dst, mode, saturate))


def test_hifloat8_rounds_to_nearest_as_en_dtypes_does():
    source = np.concatenate([hostile(FP32, HF8, np.random.default_rng(3), 20000), special_values(FP32)])
    with np.errstate(all="ignore"):
        theirs = source.astype(en_dtypes.hifloat8).view(np.uint8)
    assert same_bits(convert(source, FP32, HF8, "round"), theirs, HF8).all()


@pytest.mark.parametrize(
    ("dst", "library", "mode"),
    [
        (BF16, ml_dtypes.bfloat16, "rint"),
        (FP8E4M3FN, ml_dtypes.float8_e4m3fn, "rint"),
        (FP8E5M2, ml_dtypes.float8_e5m2, "rint"),
        (FP16, np.float16, "rint"),
        (FP4, en_dtypes.float4_e2m1, "rint"),
        (FP4E1M2, en_dtypes.float4_e1m2, "rint"),
        (FP8E8M0, ml_dtypes.float8_e8m0fnu, "round"),
    ],
    ids=repr,
)
def test_fp32_conversion_agrees_with_the_library_cast(dst, library, mode):
    source = np.concatenate([hostile(FP32, dst, np.random.default_rng(4), 20000), special_values(FP32)])
    if dst is FP8E8M0:
        source = source[source >= 2.0**-126]  # what lies below, zero included, is ours to choose
    with np.errstate(all="ignore"):
        theirs = source.astype(library).view(f"u{np.dtype(library).itemsize}").view(dst.storage)
    if not dst.has_nan:
        source, theirs = source[~np.isnan(source)], theirs[~np.isnan(source)]
    assert same_bits(convert(source, FP32, dst, mode), theirs, dst).all()


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16], ids=repr)
def test_decoding_then_encoding_is_the_identity(dtype):
    array = all_values(dtype)
    for mode in ROUND_MODES:
        assert same_bits(encode(decode(array, dtype), dtype, mode), array, dtype).all()


# -- the calls themselves ----------------------------------------------------------------------------------


def test_the_default_saturates_integers_only():
    source = np.array([1e30, -1e30], np.float32)
    assert values(convert(source, FP32, INT8), INT8) == [127, -128]
    assert values(convert(source, FP32, FP16), FP16) == [math.inf, -math.inf]


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1,), (7, 5), (2, 3, 4), (300, 211)])
@pytest.mark.parametrize(
    ("src", "dst"), [(FP32, BF16), (FP16, INT8), (INT64, FP32), (FP8E4M3FN, FP32)], ids=repr
)
def test_any_shape_and_memory_order_gives_the_same_elements(shape, src, dst):
    flat = hostile(src, dst, np.random.default_rng(5), 2 * math.prod(shape))
    array = flat[::2].reshape(shape)
    before = array.copy()
    result = convert(array, src, dst)
    assert result.shape == shape and result.dtype == dst.storage
    assert same_bits(result, convert(np.asfortranarray(array), src, dst), dst).all()
    one_by_one = [convert(v.reshape(1), src, dst) for v in array.reshape(-1)[:50]]
    if one_by_one:
        assert same_bits(result.reshape(-1)[:50], np.concatenate(one_by_one), dst).all()
    assert same_bits(array, before, src).all()
    assert not np.shares_memory(array, convert(array, src, src))


def test_round_modes_are_named_or_numbered():
    assert [parse_mode(i) for i in range(7)] == list(ROUND_MODES) == list(MODES)
    assert parse_mode("RINT") == parse_mode(" Rint ") == parse_mode(np.int64(1)) == "rint"
    source = np.array([2.5], np.float32)
    assert convert(source, FP32, INT8, 4).tolist() == convert(source, FP32, INT8, "Ceil").tolist() == [3]
    for wrong in ("nearest", 7, -1, True, None, 1.0):
        with pytest.raises(TileggError, match="TG004"):
            parse_mode(wrong)


def test_wrong_arrays_and_dtypes_are_refused():
    with pytest.raises(TileggError, match="TG007"):
        convert(np.zeros(3), FP32, INT8)
    with pytest.raises(TileggError, match="TG007"):
        convert([1, 2], INT32, INT8)
    with pytest.raises(TileggError, match="TG032"):
        convert(np.zeros(3, np.float32), FP32, HF4)
    with pytest.raises(TileggError, match="TG007"):
        all_codes(FP32)
    for words in (["one"], [None], [1 + 2j]):
        with pytest.raises(TileggError, match="TG006"):
            encode(words, FP32)


def test_encode_takes_what_numbers_come_in():
    assert encode([True, False], INT8).tolist() == [1, 0]
    assert encode([2**64 - 1], FP32, "trunc").tolist() == [2.0**64 - 2.0**40]
    assert encode([[1, 2], [3, 4]], BF16).shape == (2, 2)
    assert encode(np.array([1.5], BF16.storage), FP16).tolist() == [1.5]
    assert encode([10**40, Fraction(1, 3)], FP32, "rint").tolist() == [math.inf, np.float32(1 / 3)]
    assert encode(np.float32(2.5), INT8).tolist() == 3


def test_every_float_format_has_an_independent_reference():
    assert {*FORMATS, HF8} == set(FLOATS)
    assert {INT4, UINT4, UINT8, UINT16, INT16} <= set(NARROW)
