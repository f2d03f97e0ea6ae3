"""Every dtype's row against the libraries' own tables, and the names it goes by."""

import copy
import math
import pickle
import subprocess
import sys
from pathlib import Path

import en_dtypes
import gfloat
import ml_dtypes
import numpy as np
import pytest
from ml_dtypes import finfo
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import (
    BF16,
    BOOL,
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
    INDEX,
    INT4,
    INT8,
    INT32,
    TASK_ID,
    UINT4,
    UINT8,
    UINT64,
    parse_dtype,
)

sys.path.insert(0, str(Path(__file__).parent))
from convert_oracle import FORMATS

NUMERIC = [d for d in DTYPES.values() if d.is_numeric]
FLOATS = [d for d in NUMERIC if d.is_float]
LIBRARY = {
    BF16: ml_dtypes.bfloat16,
    FP16: np.float16,
    FP8E4M3FN: ml_dtypes.float8_e4m3fn,
    FP8E5M2: ml_dtypes.float8_e5m2,
    FP8E8M0: ml_dtypes.float8_e8m0fnu,
    FP4: ml_dtypes.float4_e2m1fn,
    FP4E1M2: en_dtypes.float4_e1m2,
    HF8: en_dtypes.hifloat8,
}


def texts(values):
    """Values as text, in which zeros have signs and NaN equals itself."""
    return [repr(float(v)) for v in values]


@pytest.mark.parametrize("dtype", LIBRARY, ids=repr)
def test_code_values_are_the_librarys(dtype):
    codes = np.arange(1 << dtype.bits, dtype=f"u{dtype.storage.itemsize}")
    with np.errstate(invalid="ignore"):
        table = codes.view(LIBRARY[dtype]).astype(np.float32)
    assert texts(dtype.code_value(code) for code in codes.tolist()) == texts(table)


@pytest.mark.parametrize("dtype", FORMATS, ids=repr)
def test_parameters_are_gfloats(dtype):
    info = FORMATS[dtype]
    assert (dtype.bits, dtype.significand_bits, dtype.bias) == (info.k, info.precision, info.bias)
    assert (dtype.max_value, dtype.min_value, dtype.min_positive) == (info.max, info.min, info.smallest)
    assert dtype.has_negative_zero == info.has_nz
    assert (dtype.has_nan, dtype.has_inf) == (info.num_nans > 0, info.num_posinfs > 0)
    assert dtype.max_code == info.code_of_max
    if dtype.has_inf:
        assert dtype.inf_code == info.code_of_posinf
    if dtype.has_nan:
        assert math.isnan(gfloat.decode_float(info, dtype.nan_code).fval)


@pytest.mark.parametrize("dtype", [BF16, FP16, FP32, FP8E4M3FN, FP8E5M2, FP4], ids=repr)
def test_exponent_range_is_finfos(dtype):
    info = finfo({FP32: np.float32, **LIBRARY}[dtype])
    assert (dtype.min_exponent, dtype.max_exponent + 1) == (info.minexp, info.maxexp)
    assert dtype.quantum_exponent == math.log2(float(info.smallest_subnormal))


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16], ids=repr)
def test_precision_counts_the_values_of_each_binade(dtype):
    table = [dtype.code_value(c) for c in range(dtype.magnitude_mask + 1)]
    values = sorted(v for v in table if math.isfinite(v) and v)
    for exponent in range(dtype.quantum_exponent - 2, dtype.max_exponent + 2):
        inside = [v for v in values if 2.0**exponent <= v < 2.0 ** (exponent + 1)]
        precision = dtype.precision_at(exponent)
        step = 2.0 ** (exponent - precision + 1)
        grid = [2.0**exponent + k * step for k in range(1 << (precision - 1))] if precision else []
        assert inside == [v for v in grid if v <= dtype.max_value]


def test_hifloat8_specials():
    assert (HF8.inf_code, HF8.nan_code, HF8.max_code, HF8.max_value) == (0x6F, 0x80, 0x6E, 32768.0)
    assert (HF8.min_positive, HF8.min_exponent, HF8.has_negative_zero) == (2.0**-22, -15, False)


def test_integer_ranges():
    for dtype in NUMERIC:
        if dtype.is_int and dtype.bits >= 8:
            info = np.iinfo(dtype.storage)
            assert (dtype.min_value, dtype.max_value) == (info.min, info.max)
    assert (INT4.min_value, INT4.max_value, UINT4.min_value, UINT4.max_value) == (-8, 7, 0, 15)
    assert (BOOL.min_value, BOOL.max_value) == (0, 1)


def test_kinds():
    assert INDEX.is_int and INDEX.signed and UINT8.is_int and not UINT8.signed
    assert not BOOL.is_int and not BOOL.is_float and BOOL.is_numeric
    assert FP32.signed and not FP8E8M0.signed and not FP8E8M0.has_zero
    assert not HF4.is_numeric and not TASK_ID.is_int


def test_memory_sizes():
    assert [FP4.nbytes(n) for n in (0, 1, 2, 5)] == [0, 1, 1, 3]
    assert (FP32.nbytes(3), BF16.nbytes(3), BOOL.nbytes(3), UINT64.bytes) == (12, 6, 3, 8)
    assert {d.name for d in NUMERIC if d.values_per_byte == 2} == {"INT4", "UINT4", "FP4", "FP4E1M2"}


def test_opaque_dtypes_have_no_storage():
    with pytest.raises(TileggError, match="TG032"):
        _ = TASK_ID.storage
    with pytest.raises(TileggError, match="TG007"):
        INT32.precision_at(0)


@pytest.mark.parametrize("dtype", DTYPES.values(), ids=repr)
def test_one_instance_per_name(dtype):
    assert parse_dtype(dtype.name) is parse_dtype(dtype.short) is dtype
    assert copy.deepcopy([dtype])[0] is dtype and pickle.loads(pickle.dumps(dtype)) is dtype
    assert repr(dtype) == dtype.name
    if dtype.pto:
        assert parse_dtype(dtype.pto) is dtype
    assert all(parse_dtype(alias) is dtype for alias in dtype.aliases)


def test_pto_spellings_are_distinct():
    spelt = [d.pto for d in DTYPES.values() if d.pto]
    assert len(spelt) == len(set(spelt)) == 19


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("f32", FP32), ("Float32", FP32), ("ui8", UINT8), ("u8", UINT8), ("si8", INT8), ("hifloat8", HF8),
     ("fp8e4m3", FP8E4M3FN), ("f8E5M2", FP8E5M2), ("!pto.f4E2M1x2", FP4), ("e8m0", FP8E8M0),
     (" bf16 ", BF16)],
)  # fmt: skip
def test_customary_spellings(text, dtype):
    assert parse_dtype(text) is dtype


def test_an_unknown_name_is_refused_with_the_closest_ones():
    with pytest.raises(TileggError) as caught:
        parse_dtype("fp33")
    (found,) = caught.value.diagnostics
    assert found.code == "TG004" and "FP32" in found.hint
    with pytest.raises(TileggError) as caught:
        parse_dtype("?" * 5000)
    assert len(caught.value.diagnostics[0].message) < 200 and "FP8E4M3FN" in caught.value.diagnostics[0].hint


def test_importing_the_table_does_not_import_numpy():
    code = "import sys, tilegg.ir.dtypes; print('numpy' in sys.modules or 'ml_dtypes' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
