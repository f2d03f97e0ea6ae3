"""What programs compute: hand-computed values, roundings, specials, padding, masks, dimensions."""

import sys
import time
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tilegg.ir.codes import bits_of
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import (
    BF16,
    BOOL,
    DTYPES,
    FP8E4M3FN,
    FP16,
    FP32,
    INDEX,
    INT4,
    INT8,
    INT16,
    INT32,
    UINT4,
    UINT8,
)
from tilegg.ir.interp import TileArray, eval_op, evaluator, run
from tilegg.ir.op import OPS
from tilegg.ir.program import Const, Function
from tilegg.ir.tilearray import padded, poison, poison_element
from tilegg.ir.types import scalar, tensor, tile

sys.path.insert(0, str(Path(__file__).parent))
from kernels import Kernel, elementwise

NAN, INF = float("nan"), float("inf")


def apply(build, *arrays, dtype=FP32, out=None):
    """Run an elementwise kernel on one-row inputs, given as lists, and return its row."""
    rows = [np.array([a]).astype(dtype.storage) for a in arrays]
    f = elementwise(build, *[dtype] * len(rows), out=out, shape=rows[0].shape)
    return run(f, dict(zip("xyzw", rows)))["out"][0]


def same(found, expected):
    """Equal values with equal signs of zero; NaN where NaN is due."""
    found, expected = np.asarray(found, np.float64), np.asarray(expected, np.float64)
    assert found.shape == expected.shape
    both = (found == expected) & (np.signbit(found) == np.signbit(expected))
    assert np.all(both | (np.isnan(found) & np.isnan(expected))), (found, expected)


class TestFloatRules:
    def test_infinity_and_nan_times_zero_are_nan(self):
        same(apply(lambda k, x: k.muls(x, 0.0), [INF, -INF, NAN, 2.0, -2.0]), [NAN, NAN, NAN, 0.0, -0.0])

    def test_infinity_minus_itself_is_nan(self):
        same(apply(lambda k, x: k.sub(x, x), [INF, -INF, NAN, 3.0]), [NAN, NAN, NAN, 0.0])

    def test_maximum_hands_on_nan_and_orders_zeros(self):
        got = apply(lambda k, x, y: k.maximum(x, y), [1.0, NAN, -0.0, 0.0], [NAN, 1.0, 0.0, -0.0])
        same(got, [NAN, NAN, 0.0, 0.0])

    def test_minimum_hands_on_nan_and_orders_zeros(self):
        got = apply(lambda k, x, y: k.minimum(x, y), [1.0, NAN, -0.0, 0.0], [NAN, 1.0, 0.0, -0.0])
        same(got, [NAN, NAN, -0.0, -0.0])

    def test_clamp_keeps_nan(self):
        got = apply(lambda k, x: k.minimums(k.maximums(x, -1.0), 1.0), [NAN, INF, -INF, 0.5])
        same(got, [NAN, 1.0, -1.0, 0.5])

    @pytest.mark.parametrize(("code", "mask"), [(0, 0b0001), (1, 0b1110), (2, 0), (4, 0b0100), (5, 0b0101)])
    def test_comparisons_with_nan_fail_except_not_equal(self, code, mask):
        k = Kernel(x=tensor([1, 4], FP32), y=tensor([1, 4], FP32), out=("Out", tensor([1, 1], UINT8)))
        a, b = (k.load(p, [0, 0], [1, 4]) for p in (k.p_x, k.p_y))
        f = k.returns(k.store(k.cmp(a, b, cmp_type=code), [0, 0], k.p_out))
        x = np.array([[0.0, NAN, 2.0, NAN]], np.float32)
        y = np.array([[-0.0, NAN, 1.0, 0.0]], np.float32)
        assert run(f, {"x": x, "y": y})["out"].tolist() == [[mask]]

    def test_multiply_then_add_rounds_twice(self):
        # 4097**2 = 16785409 needs 25 bits: rounded to 16785408 before the addend, which then vanishes.
        a, c = [4097.0], [2.0**-30]
        same(apply(lambda k, x, y: k.add(k.mul(x, x), y), a, c), [16785408.0])

    def test_fp16_rounds_each_operation(self):
        # 2048 + 1 is a tie between 2048 and 2050: to even, twice.
        same(apply(lambda k, x, y: k.add(k.add(x, y), y), [2048.0], [1.0], dtype=FP16), [2048.0])

    def test_bf16_rounds_each_operation(self):
        # 1 + 2**-8 is a tie: to even, 1; 1 + 2**-7 is exact.
        got = apply(lambda k, x, y: k.add(x, y), [1.0, 1.0], [2.0**-8, 2.0**-7], dtype=BF16)
        same(got, [1.0, 1.0 + 2.0**-7])

    def test_denormals_are_kept(self):
        same(apply(lambda k, x: k.muls(x, 0.5), [2.0**-148, 2.0**-149]), [2.0**-149, 0.0])

    def test_scalar_operands_take_the_dtype_of_the_tile(self):
        # 0.1 is rounded to FP32 as a literal, then to FP16 as the operand.
        got = apply(lambda k, x: k.muls(x, 0.1), [1.0], dtype=FP16)
        assert bits_of(got, FP16).tolist() == [0x2E66]

    def test_negation_flips_the_sign_of_zero_and_subtraction_does_not(self):
        same(apply(lambda k, x: k.neg(x), [0.0, -0.0]), [-0.0, 0.0])
        same(apply(lambda k, x: k.sub(k.muls(x, 0.0), x), [0.0, -0.0]), [0.0, 0.0])


class TestIntegers:
    def test_overflow_wraps(self):
        got = apply(lambda k, x, y: k.add(x, y), [127, -128], [1, -1], dtype=INT8)
        assert got.tolist() == [-128, 127]

    def test_four_bit_types_wrap_at_four_bits(self):
        assert apply(lambda k, x, y: k.add(x, y), [7, -8, 3], [1, -1, 4], dtype=INT4).tolist() == [-8, 7, 7]
        assert apply(lambda k, x, y: k.mul(x, y), [7, 15], [3, 15], dtype=UINT4).tolist() == [5, 1]
        assert apply(lambda k, x: k.not_(x), [0, 5], dtype=UINT4).tolist() == [15, 10]

    def test_division_truncates(self):
        got = apply(lambda k, x, y: k.div(x, y), [7, -7, 7, -7], [2, 2, -2, 0], dtype=INT32)
        assert got.tolist() == [3, -3, -3, 0]


class TestCasts:
    def test_round_modes(self):
        x = [2.5, -2.5, 3.5, 0.4]
        expected = {
            "rint": [2, -2, 4, 0],
            "round": [3, -3, 4, 0],
            "floor": [2, -3, 3, 0],
            "ceil": [3, -2, 4, 1],
            "trunc": [2, -2, 3, 0],
            "odd": [3, -3, 3, 1],
        }
        for mode, want in expected.items():
            got = apply(lambda k, x, m=mode: k.cast(x, target_type=INT32, mode=m), x, out=INT32)
            assert got.tolist() == want, mode

    def test_saturation(self):
        x = [300.0, -300.0, NAN, INF]
        on = apply(lambda k, x: k.cast(x, target_type=INT8), x, out=INT8)
        off = apply(lambda k, x: k.cast(x, target_type=INT8, saturation_mode="off"), x, out=INT8)
        assert on.tolist() == [127, -128, 0, 127]
        assert off.tolist() == [44, -44, 0, -1]

    def test_fp8_results_are_codes(self):
        got = apply(lambda k, x: k.cast(x, target_type=FP8E4M3FN), [1.0, -448.0, 1000.0], out=FP8E4M3FN)
        assert got.dtype == np.uint8
        assert got.tolist() == [0x38, 0xFE, 0x7F]

    def test_a_chain_rounds_at_every_hop(self):
        direct = apply(lambda k, x: k.cast(x, target_type=INT8), [10.4998], out=INT8)
        hops = apply(lambda k, x: k.cast(k.cast(x, target_type=FP16), target_type=INT8), [10.4998], out=INT8)
        assert (direct.tolist(), hops.tolist()) == ([10], [11])

    def test_there_is_no_arithmetic_on_fp8_codes(self):
        with pytest.raises(TileggError, match="no arithmetic on FP8E4M3FN") as caught:
            elementwise(lambda k, x: k.add(x, x), FP8E4M3FN)
        assert caught.value.diagnostics[0].code == "TG007"


class TestValidShapes:
    def test_padding_is_not_zero(self):
        for dtype in DTYPES.values():
            if dtype.is_numeric:
                element = np.asarray(poison_element(dtype)).reshape(1)
                assert element.dtype == dtype.storage
                assert bits_of(element, dtype)[0] != 0

    def test_meanings_see_only_the_valid_region(self):
        t = tile([4, 16], FP32, [3, 5])
        data = poison((4, 16), FP32)
        data[:3, :5] = 2.0
        sums = tile([4, 1], FP32, [3, 1])
        got = eval_op(OPS["tile.row_sum"], (TileArray(data, (3, 5)), None), (t, None), {}, sums)
        assert got.valid == (3, 1)
        assert got.region.tolist() == [[10.0]] * 3
        assert np.isnan(got.data[3, 0])

    def test_a_store_writes_only_the_valid_region(self):
        f = elementwise(lambda k, x: k.adds(x, 1.0), FP32, valid=(2, 3))
        got = run(f, {"x": np.zeros((4, 16), np.float32), "out": np.full((4, 16), 7, np.float32)})["out"]
        expected = np.full((4, 16), 7.0)
        expected[:2, :3] = 1.0
        assert np.array_equal(got, expected)

    def test_reading_padding_shows(self):
        f = elementwise(lambda k, x: k.set_validshape(x, 4, 16), FP32, valid=(4, 8))
        got = run(f, {"x": np.ones((4, 16), np.float32)})["out"]
        assert np.array_equal(got[:, :8], np.ones((4, 8)))
        assert np.isnan(got[:, 8:]).all()

    def test_fillpad_defines_the_padding(self):
        f = elementwise(lambda k, x: k.fillpad(x), FP32, valid=(4, 8))
        got = run(f, {"x": np.ones((4, 16), np.float32)})["out"]
        assert got.sum() == 32.0

    def test_an_unwritten_output_is_undefined_but_the_same_every_time(self):
        f = elementwise(lambda k, x: x, INT16, valid=(1, 1))
        x = np.zeros((4, 16), np.int16)
        first, second = run(f, {"x": x})["out"], run(f, {"x": x})["out"]
        assert np.array_equal(first, second)
        assert (first.reshape(-1)[1:] == poison_element(INT16)).all()
        assert first[0, 0] == 0

    def test_padded_keeps_a_full_region_as_it_is(self):
        region = np.ones((2, 2), np.float32)
        assert padded(region, (2, 2), FP32).data is region


class TestMasks:
    def test_select_by_packed_predicate(self):
        got = apply(
            lambda k, x, y: k.sel(k.cmps(x, 0.0, cmp_type=4), x, y), [1.0, -1.0, NAN, 0.0] * 5, [9.0] * 20
        )
        same(got, [1.0, 9.0, 9.0, 9.0] * 5)

    def test_bits_are_least_significant_first_and_rows_padded(self):
        k = Kernel(x=tensor([2, 10], INT32), out=("Out", tensor([2, 2], UINT8)))
        mask = k.cmps(k.load(k.p_x, [0, 0], [2, 10]), 0, cmp_type=1)
        assert mask.type.shape == (2, 32)
        assert mask.type.valid_shape == (2, 2)
        f = k.returns(k.store(mask, [0, 0], k.p_out))
        x = np.zeros((2, 10), np.int32)
        x[0, 0] = x[0, 3] = x[1, 9] = 5
        assert run(f, {"x": x})["out"].tolist() == [[0b1001, 0], [0, 0b10]]

    def test_scalar_select(self):
        got = apply(lambda k, x: k.sels(k.cmps(x, 2.0, cmp_type=2), x, None, -7.0), [1.0, 2.0, 3.0])
        same(got, [1.0, -7.0, -7.0])


class TestReductionsAndExpands:
    def test_row_sum_adds_in_index_order(self):
        # 2**24 + 1 rounds back each time; the pairwise order would count the ones.
        row = [2.0**24, 1.0, 1.0, 1.0]
        got = apply(lambda k, x: k.row_expand(x, k.row_sum(x)), row)
        same(got, [2.0**24] * 4)

    def test_row_max_and_min_hand_on_nan(self):
        same(apply(lambda k, x: k.row_expand(x, k.row_max(x)), [1.0, NAN, 3.0]), [NAN] * 3)
        same(apply(lambda k, x: k.row_expand(x, k.row_min(x)), [1.0, -2.0, 3.0]), [-2.0] * 3)

    def test_column_reductions(self):
        f = elementwise(lambda k, x: k.col_expand(x, k.col_sum(x)), INT32, shape=(3, 4))
        x = np.arange(12, dtype=np.int32).reshape(3, 4)
        assert run(f, {"x": x})["out"].tolist() == [[12, 15, 18, 21]] * 3

    def test_softmax_row(self):
        def softmax(k, x):
            e = k.exp(k.row_expand_sub(x, k.row_max(x)))
            return k.row_expand_div(e, k.row_sum(e))

        got = apply(softmax, [0.0, 0.0, 0.0, 0.0])
        same(got, [0.25] * 4)


class TestDynamicDimensions:
    def tail(self):
        """Stores x + 1 for the first n columns of a [4, 16] tile."""
        k = Kernel(x=tensor([4, "n"], FP32), out=("Out", tensor([4, "n"], FP32)))
        n = k("tensor.dim", k.p_x, axis=1)
        t = k.load(k.p_x, [0, 0], [4, 16], [4, n])
        return k.returns(k.store(k.adds(t, 1.0), [0, 0], k.p_out))

    def test_sizes_come_from_the_input(self):
        for n in (1, 5, 16):
            out = run(self.tail(), {"x": np.ones((4, n), np.float32)})["out"]
            assert out.shape == (4, n)
            assert (out == 2.0).all()

    def test_a_window_past_the_end_is_reported(self):
        k = Kernel(x=tensor(["m", 16], FP32), out=("Out", tensor([4, 16], FP32)))
        f = k.returns(k.store(k.load(k.p_x, [0, 0], [4, 16]), [0, 0], k.p_out))
        with pytest.raises(TileggError, match="shape") as caught:
            run(f, {"x": np.ones((3, 16), np.float32)})
        assert caught.value.diagnostics[0].code == "TG032"

    def test_two_sizes_of_one_name_conflict(self):
        k = Kernel(x=tensor(["n", 4], FP32), y=tensor(["n", 4], FP32))
        f = k.returns(k.p_x)
        with pytest.raises(TileggError, match="already 2") as caught:
            run(f, {"x": np.zeros((2, 4), np.float32), "y": np.zeros((3, 4), np.float32)})
        assert caught.value.diagnostics[0].code == "TG030"

    def test_expressions_are_checked(self):
        k = Kernel(x=tensor(["n", 4], FP32), y=tensor(["n * 2 + 1", 4], FP32))
        f = k.returns(k.p_x)
        run(f, {"x": np.zeros((2, 4), np.float32), "y": np.zeros((5, 4), np.float32)})
        with pytest.raises(TileggError, match="got shape") as caught:
            run(f, {"x": np.zeros((2, 4), np.float32), "y": np.zeros((4, 4), np.float32)})
        assert caught.value.diagnostics[0].code == "TG030"

    def test_an_output_of_unknown_size_is_asked_for(self):
        k = Kernel(n=scalar(INDEX), out=("Out", tensor(["n", "m"], FP32)))
        f = k.returns(k.p_n)
        with pytest.raises(TileggError, match="size m") as caught:
            run(f, {"n": 3})
        assert caught.value.diagnostics[0].code == "TG030"
        assert run(f, {"n": 3}, dims={"m": 2})["out"].shape == (3, 2)

    def test_valid_shape_from_arithmetic(self):
        k = Kernel(x=tensor([4, 16], FP32), n=scalar(INDEX), out=("Out", tensor([4, 16], FP32)))
        width = k("scalar.min", k("scalar.sub", k.p_n, 2), 16)
        t = k.set_validshape(k.load(k.p_x, [0, 0], [4, 16]), 4, width)
        f = k.returns(k.store(t, [0, 0], k.p_out))
        out = run(f, {"x": np.ones((4, 16), np.float32), "n": 7, "out": np.zeros((4, 16), np.float32)})["out"]
        assert out.sum() == 20.0


class TestTensors:
    def test_slices_write_through(self):
        k = Kernel(out=("InOut", tensor([4, 4], INT32)))
        part = k("tensor.slice", k.p_out, [2, 2], [1, 1])
        k.store(k.full([2, 2], 5, dtype=INT32), [0, 0], part)
        f = k.returns()
        start = np.zeros((4, 4), np.int32)
        out = run(f, {"out": start})["out"]
        assert out.sum() == 20
        assert out[1:3, 1:3].tolist() == [[5, 5], [5, 5]]
        assert start.sum() == 0

    def test_atomic_store_adds(self):
        k = Kernel(out=("InOut", tensor([1, 2], INT32)))
        k.store(k.full([1, 2], 5, dtype=INT32), [0, 0], k.p_out, atomic="add")
        assert run(k.returns(), {"out": np.array([[1, 2]], np.int32)})["out"].tolist() == [[6, 7]]

    def test_inputs_cannot_be_written(self):
        k = Kernel(x=tensor([1, 2], INT32))
        k.store(k.full([1, 2], 5, dtype=INT32), [0, 0], k.p_x)
        x = np.zeros((1, 2), np.int32)
        with pytest.raises(TileggError, match="for input only") as caught:
            run(k.returns(), {"x": x})
        assert caught.value.diagnostics[0].code == "TG032"
        assert x.sum() == 0

    def test_elements_are_read_and_written(self):
        k = Kernel(x=tensor([2, 3], FP16), out=("Out", tensor([2, 3], FP16)))
        value = k("tensor.read", k.p_x, [1, 2])
        k("tensor.write", k.p_out, [0, 0], value)
        x = np.arange(6, dtype=np.float16).reshape(2, 3)
        outputs = run(k.returns(value), {"x": x})
        assert outputs["out"][0, 0] == 5.0
        assert outputs["return"] == 5.0


class TestScalars:
    def test_integers_wrap_to_their_dtype(self):
        k = Kernel(a=scalar(INT32))
        f = k.returns(k("scalar.add", k.p_a, Const(1, INT32)))
        assert run(f, {"a": 2**31 - 1}) == {"return": -(2**31)}

    def test_floats_are_rounded_to_their_dtype(self):
        k = Kernel(a=scalar(FP32), b=scalar(BF16))
        total = k("scalar.add", k.p_a, Const(2.0**-24, FP32))
        f = k.returns(total, k("scalar.mul", k.p_b, k.p_b))
        outputs = run(f, {"a": 1.0, "b": 1.0078125})
        assert outputs == {"return_0": 1.0, "return_1": 1.015625}

    def test_comparisons_are_bool(self):
        k = Kernel(a=scalar(INT32))
        f = k.returns(k("scalar.lt", k.p_a, Const(3, INT32)))
        assert run(f, {"a": 2})["return"] is True


class TestEvalOp:
    def test_plain_arrays_stand_for_full_tiles(self):
        t = tile([1, 2], FP32)
        a = np.array([[1.0, 2.0]], np.float32)
        assert eval_op(OPS["tile.add"], (a, a), (t, t), {}, t).region.tolist() == [[2.0, 4.0]]

    def test_names_give_dynamic_sizes(self):
        t = tile([1, 8], FP32, [1, "n"])
        a = np.ones((1, 3), np.float32)
        got = eval_op(OPS["tile.add"], (a, a), (t, t), {}, t, {"n": 3})
        assert (got.data.shape, got.valid) == ((1, 8), (1, 3))
        with pytest.raises(TileggError, match="shape"):
            eval_op(OPS["tile.add"], (a, a), (t, t), {}, t, {"n": 4})

    def test_a_meaning_that_fails_is_a_diagnostic(self):
        t = tile([1, 2], FP32)
        with pytest.raises(TileggError, match="cannot be evaluated") as caught:
            eval_op(OPS["tile.add"], (None, None), (t, t), {}, t)
        assert caught.value.diagnostics[0].code == "TG032"

    def test_arithmetic_on_bool_tiles_is_refused(self):
        t = tile([1, 2], BOOL)
        a = np.array([[True, False]])
        with pytest.raises(TileggError, match="no arithmetic on BOOL"):
            evaluator(OPS["tile.sub"], (t, t), {}, t)
        with pytest.raises(TileggError, match="no arithmetic on BOOL"):
            eval_op(OPS["tile.sub"], (a, a), (t, t), {}, t)


def test_ml_dtypes_inputs_are_taken():
    f = elementwise(lambda k, x: k.cast(x, target_type=FP32), FP8E4M3FN, out=FP32, shape=(1, 2))
    x = np.array([[1.5, -2.0]], ml_dtypes.float8_e4m3fn)
    assert run(f, {"x": x})["out"].tolist() == [[1.5, -2.0]]


def forty_operations() -> Function:
    def chain(k, x):
        for i in range(38):
            x = k.add(x, x) if i % 2 else k.muls(x, 0.5)
        return x

    return elementwise(chain, FP32, shape=(1, 16))


def test_forty_operations_take_about_a_millisecond():
    f, x = forty_operations(), np.ones((1, 16), np.float32)
    assert run(f, {"x": x})["out"].tolist() == x.tolist()
    times = []
    for _ in range(30):
        start = time.perf_counter()
        run(f, {"x": x})
        times.append(time.perf_counter() - start)
    # The goal is 1 ms; a loaded machine gets room.
    assert min(times) < 3e-3
