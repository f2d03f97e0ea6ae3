"""Packed nibbles and predicate masks against bit arithmetic one element at a time."""

import numpy as np
import pytest
from tilegg.ir.convert import all_values, decode
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, DTYPES, FP4, FP32, INT4, INT8, INT32, UINT4
from tilegg.ir.packing import (
    from_memory,
    mask_row_bytes,
    mask_valid_bytes,
    pack_mask,
    pack_nibbles,
    to_memory,
    unpack_mask,
    unpack_nibbles,
)

NIBBLES = [d for d in DTYPES.values() if d.is_numeric and d.values_per_byte == 2]


def test_the_even_column_is_the_low_nibble():
    assert pack_nibbles(np.array([[1, -2, 7]], np.int8), INT4).tolist() == [[0xE1, 0x07]]
    assert unpack_nibbles(np.array([[0xE1, 0x07]], np.uint8), INT4, 3).tolist() == [[1, -2, 7]]


def test_int4_is_sign_extended_and_the_others_are_not():
    packed = np.array([0x8F], np.uint8)
    assert unpack_nibbles(packed, INT4, 2).tolist() == [-1, -8]
    assert unpack_nibbles(packed, UINT4, 2).tolist() == [15, 8]
    assert decode(unpack_nibbles(packed, FP4, 2), FP4).tolist() == [-6.0, -0.0]


@pytest.mark.parametrize("dtype", NIBBLES, ids=repr)
@pytest.mark.parametrize("columns", [0, 1, 2, 15, 32])
def test_nibbles_come_back(dtype, columns):
    rng = np.random.default_rng(1)
    array = rng.choice(all_values(dtype), (3, 2, columns))
    packed = pack_nibbles(array, dtype)
    assert packed.dtype == np.uint8 and packed.shape == (3, 2, (columns + 1) // 2)
    back = unpack_nibbles(packed, dtype, columns)
    assert back.dtype == dtype.storage and (back == array).all()
    for index in np.ndindex(3, 2):
        row, codes = packed[index], array[index].tolist()
        wanted = sum((code % 16) << (4 * j) for j, code in enumerate(codes))
        assert int.from_bytes(row.tobytes(), "little") == wanted


def test_mask_rows_are_padded_to_32_bytes():
    assert [mask_row_bytes(c) for c in (0, 1, 8, 256, 257, 808, 1024)] == [0, 32, 32, 32, 64, 128, 128]
    assert [mask_valid_bytes(c) for c in (0, 1, 8, 9, 808)] == [0, 1, 1, 2, 101]


def test_the_first_column_is_the_lowest_bit():
    mask = np.zeros((1, 10), np.bool_)
    mask[0, [0, 9]] = True
    assert pack_mask(mask)[0, :3].tolist() == [1, 2, 0]


@pytest.mark.parametrize("columns", [1, 7, 8, 9, 64, 257, 808])
def test_masks_come_back(columns):
    mask = np.random.default_rng(2).random((5, columns)) < 0.5
    packed = pack_mask(mask)
    assert packed.shape == (5, mask_row_bytes(columns))
    for row in range(5):
        for j in range(columns):
            assert bool(packed[row, j // 8] >> (j % 8) & 1) == mask[row, j]
    assert packed.sum(axis=1).tolist() == packed[:, : mask_valid_bytes(columns)].sum(axis=1).tolist()
    back = unpack_mask(packed, columns)
    assert back.dtype == np.bool_ and (back == mask).all()
    assert (unpack_mask(packed[:, : mask_valid_bytes(columns)], columns) == mask).all()


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.is_numeric], ids=repr)
def test_memory_holds_the_bytes_of_a_row(dtype):
    raw = np.random.default_rng(3).choice(all_values(dtype if dtype.bits <= 16 else INT8), (4, 7))
    array = raw.astype(dtype.storage)
    memory = to_memory(array, dtype)
    assert memory.dtype == np.uint8 and memory.shape == (4, dtype.nbytes(7))
    back = from_memory(memory, dtype, 7)
    assert back.dtype == dtype.storage and back.tobytes() == array.tobytes()


def test_memory_of_a_wide_type_is_little_endian():
    assert to_memory(np.array([[0x01020304]], np.int32), INT32).tolist() == [[4, 3, 2, 1]]


def test_wrong_arrays_are_refused():
    for code, call in [
        ("TG007", lambda: pack_nibbles(np.zeros(4, np.int8), INT8)),
        ("TG007", lambda: pack_nibbles(np.zeros(4, np.int32), INT4)),
        ("TG008", lambda: pack_nibbles(np.int8(1), INT4)),
        ("TG007", lambda: unpack_nibbles(np.zeros(4, np.uint8), BF16, 2)),
        ("TG006", lambda: unpack_nibbles(np.zeros(4, np.int8), INT4, 2)),
        ("TG008", lambda: unpack_nibbles(np.zeros(4, np.uint8), INT4, 9)),
        ("TG006", lambda: pack_mask(np.zeros(4, np.uint8))),
        ("TG006", lambda: unpack_mask(np.zeros(4, np.float32), 2)),
        ("TG008", lambda: unpack_mask(np.zeros((2, 4), np.uint8), 33)),
    ]:
        with pytest.raises(TileggError, match=code):
            call()
    assert to_memory(np.zeros((2, 0), np.float32), FP32).shape == (2, 0)
