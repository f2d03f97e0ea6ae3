"""The wider vocabulary: types that are taken and refused, meanings by hand-computed values, text and back."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import tilegg
from tilegg.ir.builder import Builder
from tilegg.ir.convert import decode, encode
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import (
    BF16,
    DTYPES,
    FP8E4M3FN,
    FP16,
    FP32,
    INT4,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    DType,
)
from tilegg.ir.interp import TileArray, run
from tilegg.ir.interp_eval import eval_op
from tilegg.ir.op import OPS
from tilegg.ir.ops.memory import pad_element
from tilegg.ir.types import tensor, tile
from tilegg.ir.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from op_calls import pairs_of, refused, row, type_of, values

NAN, INF = float("nan"), float("inf")


# -- fused arithmetic ----------------------------------------------------------------------------------------


def test_axpy_rounds_once() -> None:
    # 1 + 2^-12 squared is 1 + 2^-11 + 2^-24: rounded first it loses the last term, and the sum is 2^-11.
    x = row(1 + 2.0**-12)
    assert values("tile.axpy", row(-1.0), x, 1 + 2.0**-12)[0, 0] == np.float32(2.0**-11 + 2.0**-24)
    assert (x * x - np.float32(1))[0, 0] == np.float32(2.0**-11)


@pytest.mark.parametrize("dtype", [FP32, FP16, BF16])
def test_fused_multiply_add_is_the_exact_sum_rounded_once(dtype: DType) -> None:
    rng = np.random.default_rng(5)
    near = encode(rng.normal(0, 1, (3, 500)) * np.exp2(rng.integers(-6, 6, (3, 500))), dtype, "rint", False)
    a, b, c = (decode(r, dtype) for r in near)
    # Sums that all but cancel show a second rounding.
    c[:250] = decode(encode(-(a * b)[:250], dtype, "rint", False), dtype)
    exact = [Fraction(x) * Fraction(y) + Fraction(z) for x, y, z in zip(a, b, c)]
    want = encode(np.array(exact, object), dtype, "rint", False)
    stored = [encode(v, dtype, "rint", False)[None, :] for v in (a, b, c)]
    found = values("tile.muladd_dst", stored[2], stored[0], stored[1])[0]
    assert np.array_equal(decode(found, dtype), decode(want, dtype))


def test_fused_special_values() -> None:
    acc = row(-0.0, 1.0, INF, -INF, NAN, -0.0)
    lhs, rhs = row(-0.0, INF, 1.0, INF, 1.0, 0.0), row(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    found = values("tile.muladd_dst", acc, lhs, rhs)[0]
    assert np.signbit(found[0]) and found[1] == INF and found[2] == INF and np.isnan(found[3]) and np.isnan(found[4])
    assert not np.signbit(found[5])  # -0 + 0 is +0


def test_fused_forms_name_the_overwritten_operand() -> None:
    a, b, c = row(2.0), row(3.0), row(5.0)
    assert values("tile.muladd_dst", a, b, c)[0, 0] == 17.0
    assert values("tile.fused_muladd", a, b, c)[0, 0] == 11.0
    assert values("tile.fused_muladd_relu", row(-2.0), b, c)[0, 0] == 0.0
    for name in ("axpy", "muladd_dst", "fused_muladd", "fused_muladd_relu"):
        assert OPS[f"tile.{name}"].inout == "acc"
    assert OPS["tile.scatter"].inout == "dst" and OPS["tile.assemble"].inout == "target"


def test_relu_forms() -> None:
    assert values("tile.addrelu", row(1.0, -3.0, NAN), row(2.0, 1.0, 1.0)).tolist()[0][:2] == [3.0, 0.0]
    assert np.isnan(values("tile.addrelu", row(NAN), row(1.0)))
    assert values("tile.subrelu", row(1.0, 4.0), row(2.0, 1.0)).tolist() == [[0.0, 3.0]]
    assert values("tile.addrelu_conv", row(100, -5, dtype=np.int16), row(100, 1, dtype=np.int16),
                  target_type=INT8).tolist() == [[127, 0]]  # fmt: skip
    assert values("tile.subrelu_conv", row(2.5), row(0.0), target_type=FP16).dtype == np.float16
    refused("TG007", "FP32 to FP16", "tile.addrelu_conv", tile((1, 4), FP32), tile((1, 4), FP32), target_type=INT8)


def test_four_bit_sums_wrap_before_the_relu() -> None:
    t = tile((1, 1), INT4)
    seven, four = np.array([[7]], np.int8), np.array([[4]], np.int8)
    assert eval_op(OPS["tile.addrelu"], [seven, four], [t, t], {}, t).region.tolist() == [[0]]


def test_dequantising_sum() -> None:
    big = 2**30
    found = values("tile.add_deq_relu", row(big, -big, 3, dtype=np.int32), row(1, 0, 0, dtype=np.int32), 2.0**-20)
    assert found.dtype == np.float16 and found.tolist() == [[1024.0, 0.0, np.float16(3 * 2.0**-20)]]
    assert values("tile.add_deq_relu", row(big, dtype=np.int32), row(0, dtype=np.int32), 1.0)[0, 0] == 65504


def test_pair_sums() -> None:
    assert values("tile.pair_reduce_sum", row(1, 2, 3, 4)).tolist() == [[3.0, 7.0]]
    refused("TG008", "even", "tile.pair_reduce_sum", tile((2, 3), FP32))


def test_powers() -> None:
    assert values("tile.pow", row(2.0, 9.0, -2.0, 0.0), row(10.0, 0.5, 3.0, 0.0)).tolist() == [[1024.0, 3.0, -8.0, 1.0]]
    assert np.isnan(values("tile.pows", row(-2.0), 0.5))
    assert values("tile.pows", row(3, -3, 2, dtype=np.int32), 5).tolist() == [[243, -243, 32]]
    assert values("tile.pow", row(2, 7, dtype=np.int8), row(7, 3, dtype=np.int8)).tolist() == [[-128, 87]]  # 343 - 256
    assert values("tile.pow", row(2, 1, -1, dtype=np.int32), row(-1, -5, -3, dtype=np.int32)).tolist() == [[0, 1, -1]]


def test_three_term_sums() -> None:
    a, b, c = row(1e8), row(-1e8), row(1.0)
    assert values("tile.addc", a, b, c)[0, 0] == 1.0
    assert values("tile.subc", row(5.0), row(2.0), row(1.0))[0, 0] == 4.0
    assert values("tile.addsc", row(1.0), 2.0, row(3.0))[0, 0] == 6.0
    assert values("tile.subsc", row(1.0), 2.0, row(3.0))[0, 0] == 2.0


def test_axpy_types() -> None:
    t = tile((4, 64), FP32, (4, 50))
    assert type_of("tile.axpy", t, tile((4, 64), FP16, (4, 50)), 2.0) == t
    refused("TG007", "widened", "tile.axpy", tile((4, 64), FP16), tile((4, 64), FP32), 2.0)
    refused("TG007", "floating", "tile.axpy", tile((4, 64), INT32), tile((4, 64), INT32), 2)
    refused("TG008", "valid shapes", "tile.axpy", t, tile((4, 64), FP32), 2.0)
    refused("TG007", "no arithmetic", "tile.axpy", tile((4, 64), FP8E4M3FN), tile((4, 64), FP8E4M3FN), 2.0)


# -- partial operations --------------------------------------------------------------------------------------


def test_partial_operations_copy_what_only_one_has() -> None:
    whole = TileArray(np.arange(8, dtype=np.float32).reshape(2, 4))
    part = TileArray(np.full((2, 4), 10, np.float32), (1, 2))
    assert values("tile.part_add", whole, part).tolist() == [[10, 11, 2, 3], [4, 5, 6, 7]]
    assert values("tile.part_mul", part, whole).tolist() == [[0, 10, 2, 3], [4, 5, 6, 7]]
    assert values("tile.part_max", whole, part).tolist() == [[10, 10, 2, 3], [4, 5, 6, 7]]
    assert values("tile.part_min", whole, part).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_partial_types() -> None:
    a, b = tile((8, 64), FP32, (8, 32)), tile((8, 64), FP32)
    assert type_of("tile.part_add", a, b) == b and type_of("tile.part_add", b, a) == b
    refused("TG008", "covers", "tile.part_add", tile((8, 64), FP32, (4, 64)), a)
    refused("TG007", "dtypes", "tile.part_max", a, tile((8, 64), FP16))


def test_partial_positions() -> None:
    a, b = row(1.0, 5.0, 2.0), row(3.0, 5.0, NAN)
    i, j = row(10, 11, 12, dtype=np.int32), row(20, 21, 22, dtype=np.int32)
    larger, at = values("tile.part_argmax", a, b, i, j)
    assert larger[0, :2].tolist() == [3.0, 5.0] and at[0, :2].tolist() == [20, 11]
    smaller, at = values("tile.part_argmin", a, b, i, j)
    assert smaller[0, :2].tolist() == [1.0, 5.0] and at[0, :2].tolist() == [10, 11]
    refused("TG007", "INT32", "tile.part_argmax", *[tile((1, 8), FP32)] * 2, *[tile((1, 8), INT16)] * 2)


# -- positions, generators, histogram ------------------------------------------------------------------------


def test_positions_of_extremes() -> None:
    x = np.array([[3.0, 9.0, 9.0, -1.0], [NAN, 1.0, 2.0, 0.0]], np.float32)
    assert values("tile.row_argmax", x).tolist() == [[1], [0]]
    assert values("tile.row_argmin", x[:1]).tolist() == [[3]]
    assert values("tile.col_argmax", x[:, 1:]).tolist() == [[0, 0, 1]]
    assert values("tile.col_argmin", x[:, 1:]).tolist() == [[1, 1, 0]]
    t = type_of("tile.row_argmax", tile((8, 64), FP16, (5, 60)))
    assert t == tile((8, 1), INT32, (5, 1))
    assert type_of("tile.col_argmin", tile((8, 64), FP16)) == tile((1, 64), INT32)
    refused("TG008", "rank-2", "tile.row_argmax", tile((8,), FP32))


def test_triangles() -> None:
    assert values("tile.tri", 0, [3, 4]).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0]]
    assert values("tile.tri", 1, [3, 4], upper=True).tolist() == [[0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]
    assert values("tile.tri", -1, [2, 2], dtype=FP16).dtype == np.float16
    assert type_of("tile.tri", 0, [4, 8], [2, 8]) == tile((4, 8), INT32, (2, 8))
    refused("TG008", "does not fit", "tile.tri", 0, [4, 8], [5, 8])
    refused("TG007", "FP8E4M3FN", "tile.tri", 0, [4, 8], dtype=FP8E4M3FN)


def test_random_words_depend_on_key_counter_and_place() -> None:
    seeds = (1, 2, 3, 4, 5, 6)
    once = values("tile.random", *seeds, [4, 64])
    assert once.dtype == np.uint32 and np.array_equal(once, values("tile.random", *seeds, [4, 64]))
    assert len(np.unique(once)) > 250
    assert not np.array_equal(once, values("tile.random", 2, *seeds[1:], [4, 64]))
    assert not np.array_equal(once, values("tile.random", *seeds, [4, 64], rounds=7))
    # The counter moves on element by element.
    later = values("tile.random", 1, 2, 4, 4, 5, 6, [4, 64])
    assert np.array_equal(once.reshape(-1)[1:], later.reshape(-1)[:-1])
    refused("TG007", "INT32 or UINT32", "tile.random", *seeds, [4, 64], dtype=FP32)
    refused("TG005", "7 or 10", "tile.random", *seeds, [4, 64], rounds=8)


def test_histograms_of_a_byte() -> None:
    x = np.array([[0x0102, 0x0103, 0x0202, 0x0102]], np.uint16)
    high = values("tile.histogram", x, np.array([[0]], np.uint8), byte=1)
    assert high[0, [1, 2]].tolist() == [3, 1] and high.sum() == 4
    low = values("tile.histogram", x, np.array([[1]], np.uint8), byte=0)
    assert low[0, [2, 3]].tolist() == [2, 1] and low.sum() == 3
    refused("TG005", "no byte 2", "tile.histogram", tile((1, 8), UINT16), tile((1, 1), UINT8), byte=2)
    refused("TG008", "8 rows are needed", "tile.histogram", tile((8, 8), UINT16), tile((4, 1), UINT8), byte=0)
    refused("TG008", "3 rows are needed", "tile.histogram", tile((8, 8), UINT32), tile((2, 1), UINT8), byte=0)
    assert type_of("tile.histogram", tile((8, 8), UINT16), tile((1, 1), UINT8), byte=1) == tile((8, 256), UINT32)
    assert type_of("tile.histogram", tile((8, 8), UINT32), tile((1, 1), UINT8), byte=2) == tile((8, 256), UINT32)


# -- gather and scatter --------------------------------------------------------------------------------------


def test_padding() -> None:
    part = TileArray(np.full((2, 2), 7, np.float32), (1, 2))
    assert values("tile.fillpad_expand", part, [2, 3], pad_value="min").tolist() == [[7, 7, -INF], [-INF] * 3]
    assert type_of("tile.fillpad_expand", tile((2, 8), FP32, (1, 8)), [4, 8]) == tile((4, 8), FP32)
    refused("TG008", "shrinks", "tile.fillpad_expand", tile((2, 8), FP32), [1, 8])
    inside = TileArray(np.full((2, 2), 7, np.int8), (1, 2))
    assert values("tile.fillpad_inplace", inside, pad_value="max").tolist() == [[7, 7], [127, 127]]
    assert inside.data.tolist() == [[7, 7], [127, 127]]


@pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.storage_name], ids=str)
def test_pads_are_infinite_where_the_dtype_has_infinities_else_its_limits(dtype: DType) -> None:
    limits = (INF, -INF) if dtype.has_inf else (dtype.max_value, dtype.min_value)
    for word, limit in zip(("max", "min"), limits):
        assert decode(np.asarray([pad_element(word, dtype)]), dtype)[0] == limit


def test_rows_of_unlike_length_side_by_side() -> None:
    a, b = np.array([[1, 2], [3, 4]], np.float32), np.array([[5, 6], [7, 8]], np.float32)
    one, two = np.array([[4], [8]], np.int32), np.array([[8], [4]], np.int32)  # bytes
    assert values("tile.concat_idx", a, b, one, two).tolist() == [[1, 5, 6, 0], [3, 4, 7, 0]]
    with pytest.raises(TileggError, match="shorter"):
        values("tile.concat_idx", a, b, np.array([[16], [0]], np.int32), two)
    rows, lengths = tile((4, 8), FP32), tile((4, 8), INT32)
    refused("TG008", "4 rows are needed", "tile.concat_idx", rows, rows, lengths, tile((3, 8), INT32))
    refused("TG008", "src0_idx is valid in [2, 8]", "tile.concat_idx", rows, rows, tile((4, 8), INT32, (2, 8)), lengths)


def test_quantisation_by_rows() -> None:
    x = np.array([[1.5, 2.5, 400.0, NAN], [-1.0, -400.0, 0.0, 3.0]], np.float32)
    scale = np.array([[1.0], [2.0]], np.float32)
    assert values("tile.quant", x, scale).tolist() == [[2, 2, 127, 0], [-2, -128, 0, 6]]
    offset = np.array([[10.0], [-1.0]], np.float32)
    assert values("tile.quant", x, scale, offset).tolist() == [[12, 12, 255, 0], [0, 0, 0, 5]]
    codes = np.array([[2, -2], [100, 0]], np.int8)
    assert values("tile.dequant", codes, scale, offset).tolist() == [[-8.0, -12.0], [202.0, 2.0]]
    assert type_of("tile.quant", tile((4, 32), FP32), tile((4, 1), FP32)) == tile((4, 32), INT8)
    assert type_of("tile.dequant", tile((4, 32), INT16), *[tile((4, 1), FP32)] * 2) == tile((4, 32), FP32)
    refused("TG007", "FP32", "tile.quant", tile((4, 32), FP16), tile((4, 1), FP32))
    refused("TG008", "column", "tile.dequant", tile((4, 32), INT8), tile((1, 4), FP32), tile((4, 1), FP32))


# -- text ----------------------------------------------------------------------------------------------------


def test_text_and_back() -> None:
    b = Builder("k", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([16, 64], FP32))
    at = b.param("at", tensor([16, 64], INT32))
    out = b.param("out", tensor([16, 64], FP32), "Out")
    t = b.tile.load(x, [0, 0], [16, 64])
    i = b.tile.load(at, [0, 0], [16, 64])
    y = b.tile.axpy(t, b.tile.gather(t, i), 2.0)
    y = b.tile.part_max(y, b.tile.set_validshape(t, 8, 64))
    larger, _ = b.tile.part_argmax(y, t, i, i)
    y = b.tile.scatter(larger, t, i)
    y = b.tile.scatter_mask(y, b.tile.gather_mask(y, mask_pattern=2), mask_pattern=2)
    y = b.tile.assemble(y, b.tile.extract(y, 0, 8, [8, 8]), [8, 0])
    y = b.tile.pows(b.tile.pow(y, t), 2.0)
    b.tile.row_argmax(y)
    b.tile.tri(1, [16, 64], dtype=FP16, upper=True)
    b.tile.random(1, 2, 3, 4, 5, 6, [16, 64], rounds=7)
    b.tile.sort32(y, b.tile.reinterpret_view(i, dtype=UINT32))
    b.ret(b.tile.store(y, [0, 0], out))
    program = b.program("P")
    assert verify(program) == []
    text = tilegg.print_program(program)
    assert tilegg.parse(text) == program
    assert "pl.tile.axpy(" in text and "mask_pattern=2" in text


def test_customary_spellings() -> None:
    text = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[2, 64], pl.FP32], i: pl.Tensor[[2, 64], pl.UINT32],
          out: pl.Out[pl.Tensor[[1, 256], pl.FP32]]) -> pl.Tensor[[1, 256], pl.FP32]:
        t = pl.load(x, [0, 0], [2, 64])
        s = pl.sort32(t, pl.load(i, [0, 0], [2, 64]))
        r = pl.mrgsort(pl.reshape(s, [1, 256]), block_len=64)
        return pl.store(r, [0, 0], out)
"""
    program = tilegg.parse(text, "k.py")
    names = [s.name for s in program.functions[0].body if hasattr(s, "name")]
    assert "tile.sort32" in names and "tile.mrgsort" in names
    assert tilegg.parse(tilegg.print_program(program)) == program
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (2, 64)).astype(np.float32)
    found = run(program, {"x": x, "i": np.arange(128, dtype=np.uint32).reshape(2, 64)})["out"]
    assert [i for _, i in pairs_of(found[0])] == np.argsort(-x.reshape(-1), kind="stable").tolist()
