"""Inputs and outputs of runs: what is accepted, what is refused with TG030, and the files that hold them."""

import sys
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dimexpr import evaluate
from tilegg.ir.dtypes import (
    BF16,
    BOOL,
    FP4,
    FP8E4M3FN,
    FP8E8M0,
    FP16,
    FP32,
    HF8,
    INDEX,
    INT4,
    INT8,
    INT32,
    INT64,
    UINT8,
)
from tilegg.ir.interp import TileArray, run, to_storage
from tilegg.ir.interp_io import to_scalar
from tilegg.ir.npz import read_npz, write_npz
from tilegg.ir.types import OpaqueType, scalar, tensor, tile

sys.path.insert(0, str(Path(__file__).parent))
from kernels import Kernel, elementwise


def refused(given, dtype, match):
    with pytest.raises(TileggError, match=match) as caught:
        to_storage(given, dtype, "x")
    assert caught.value.diagnostics[0].code == "TG030"


class TestElements:
    def test_storage_arrays_pass_unchanged(self):
        for dtype in (FP32, FP16, BF16, INT8, HF8, BOOL):
            array = np.zeros(3, dtype.storage)
            assert to_storage(array, dtype) is array

    def test_representable_values_are_converted(self):
        assert to_storage([1, 2], FP32).dtype == np.float32
        assert to_storage(np.array([1.5, -0.0]), FP16).dtype == np.float16
        assert to_storage(np.array([0.5, np.nan]), BF16).dtype == ml_dtypes.bfloat16
        assert to_storage(np.array([3.0]), INT8).tolist() == [3]
        assert to_storage(np.array([1.0, 448.0]), FP8E4M3FN).tolist() == [0x38, 0x7E]
        assert to_storage([True], INT32).tolist() == [1]

    def test_lossy_values_are_refused(self):
        refused(np.array([0.1]), FP32, "not every element is representable")
        refused(np.array([2**24 + 1]), FP32, "not every element is representable")
        refused(np.array([300]), INT8, "not every element is representable")
        refused(np.array([1.5]), INT64, "not every element is representable")
        refused(np.array([np.nan]), INT32, "not every element is representable")
        refused(np.array([500.0]), FP8E4M3FN, "uint8 bit codes")

    def test_what_is_no_number_is_refused(self):
        refused(np.array(["a"]), FP32, "no numbers")
        refused(np.array([1j]), FP32, "no numbers")
        refused(np.array([Fraction(1, 2)], object), FP32, "no numbers")

    def test_code_views(self):
        assert to_storage(np.array([0x3F80], np.uint16), BF16).tolist() == [1.0]
        assert to_storage(np.array([1.0, -2.0], ml_dtypes.float8_e4m3fn), FP8E4M3FN).tolist() == [0x38, 0xC0]
        assert to_storage(np.array([2.0], ml_dtypes.float4_e2m1fn), FP4).tolist() == [4]
        assert to_storage(np.array([2.0], ml_dtypes.float8_e8m0fnu), FP8E8M0).tolist() == [128]
        assert to_storage(np.array([-3], ml_dtypes.int4), INT4).tolist() == [-3]

    def test_four_bit_ranges(self):
        refused(np.array([8], np.int8), INT4, r"-8\.\.7")
        refused(np.array([16], np.uint8), FP4, r"0\.\.15")

    def test_scalars(self):
        assert to_scalar(np.float64(0.1), FP32) == float(np.float32(0.1))
        assert to_scalar(np.array(7), INT8) == 7
        assert to_scalar(3.0, INDEX) == 3
        assert to_scalar(1, BOOL) is True

    @pytest.mark.parametrize("wrap", [lambda x: x, np.asarray])
    def test_scalars_as_bit_codes(self, wrap):
        """NumPy scalars and arrays without axes are read as arrays are, Python numbers as numbers."""
        assert to_scalar(wrap(np.uint16(0x3FC0)), BF16) == 1.5
        assert to_scalar(wrap(ml_dtypes.bfloat16(1.5)), BF16) == 1.5
        assert to_scalar(wrap(np.uint8(0x3C)), FP8E4M3FN) == 1.5
        assert to_scalar(wrap(ml_dtypes.float8_e4m3fn(1.5)), FP8E4M3FN) == 1.5
        assert to_scalar(wrap(np.uint8(3)), FP4) == 1.5
        assert to_scalar(wrap(ml_dtypes.bfloat16(1.5)), FP32) == 1.5
        assert to_scalar(wrap(np.float32(1.5)), BF16) == 1.5
        assert to_scalar(wrap(np.uint16(0x3FC0)), FP32) == 0x3FC0
        assert to_scalar(56.0, BF16) == 56.0 and to_scalar(56, FP8E4M3FN) == 56.0
        with pytest.raises(TileggError, match="one element per byte"):
            to_scalar(wrap(np.uint8(16)), FP4)

    def test_scalars_of_files(self, tmp_path):
        k = Kernel(x=scalar(BF16), y=scalar(FP8E4M3FN))
        f = k.returns(k("scalar.cast", k.p_x, dtype=FP32), k("scalar.cast", k.p_y, dtype=FP32))
        codes = {"x": np.uint16(0x3FC0), "y": np.uint8(0x3C)}
        floats = {"x": np.array(1.5, ml_dtypes.bfloat16), "y": np.array(1.5, ml_dtypes.float8_e4m3fn)}
        for given in (codes, floats, {"x": 1.5, "y": 1.5}):
            assert run(f, given) == {"return_0": 1.5, "return_1": 1.5}
        for given in (codes, floats):
            np.savez(tmp_path / "x.npz", **given)
            assert run(f, read_npz(tmp_path / "x.npz")) == {"return_0": 1.5, "return_1": 1.5}
        for value, dtype in ((300, INT8), (1.5, INT32), (float("nan"), INT32), ("3", INT32), (None, FP32)):
            with pytest.raises(TileggError) as caught:
                to_scalar(value, dtype)
            assert caught.value.diagnostics[0].code == "TG030"


class TestParameters:
    KERNEL = elementwise(lambda k, x: k.adds(x, 1.0), FP32)
    X = np.zeros((4, 16), np.float32)

    def fails(self, inputs, match):
        with pytest.raises(TileggError, match=match) as caught:
            run(self.KERNEL, inputs)
        assert caught.value.diagnostics[0].code == "TG030"

    def test_missing_and_unknown_names(self):
        self.fails({}, "no input for parameter x")
        self.fails({"x": self.X, "ouut": self.X}, "did you mean out")
        self.fails({"x": self.X, "zzzzz": 1}, "parameters: x, out")

    def test_shapes(self):
        self.fails({"x": self.X.T}, r"x should be a tensor \[4, 16\] FP32, got shape \[16, 4\]")
        self.fails({"x": self.X[0]}, "got shape")
        self.fails({"x": self.X, "out": self.X[:2]}, "out should be")

    def test_dtypes(self):
        self.fails({"x": self.X.astype(np.complex64)}, "should hold FP32 elements, got complex64")

    def test_inputs_are_not_changed_even_when_shared(self):
        x = self.X.copy()
        out = run(self.KERNEL, {"x": x, "out": x})["out"]
        assert out.sum() == 64
        assert x.sum() == 0

    def test_tile_parameters(self):
        t = tile([4, 16], FP32, [3, 5])
        k = Kernel(t=t)
        f = k.returns(k.adds(k.p_t, 1.0))
        assert run(f, {"t": np.zeros((3, 5), np.float32)})["return"].tolist() == [[1.0] * 5] * 3
        whole = TileArray(np.zeros((4, 16), np.float32), (3, 5))
        assert run(f, {"t": whole})["return"].shape == (3, 5)
        with pytest.raises(TileggError, match="got shape"):
            run(f, {"t": np.zeros((4, 16), np.float32)})

    def test_opaque_parameters_may_be_left_out(self):
        k = Kernel(ctx=OpaqueType("pl.CommCtx"), a=scalar(INDEX))
        assert run(k.returns(k.p_a), {"a": 1}) == {"return": 1}

    def test_returned_parameters_are_listed_once(self):
        k = Kernel(x=tensor([2, 2], FP32), out=("InOut", tensor([2, 2], FP32)))
        f = k.returns(k.p_out, k.p_x)
        x, out = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)
        outputs = run(f, {"x": x, "out": out})
        assert list(outputs) == ["out", "return_1"]
        outputs["return_1"][0, 0] = 5
        assert x[0, 0] == 1


class TestDimensionExpressions:
    @pytest.mark.parametrize(
        ("text", "value"),
        [
            ("n", 10), ("n * 2 - 1", 19), ("(n + 7) // 8", 2), ("-n % 4", 2), ("min(n, 3)", 3),
            ("pl.max(n, m)", 12), ("n // 0", None), ("k + 1", None), ("n.real", None), ("f(n)", None),
            ("n +", None), ("1 << 3", None), ("__import__('os')", None),
        ],
    )  # fmt: skip
    def test_values(self, text, value):
        assert evaluate(text, {"n": 10, "m": 12}) == value

    def test_a_name_that_is_no_expression_is_looked_up_as_it_is(self):
        assert evaluate("x y", {"x y": 3}) == 3

    def test_deep_nesting_is_no_crash(self):
        assert evaluate("(" * 500 + "n" + ")" * 500, {"n": 1}) in (None, 1)
        assert evaluate("+".join(["n"] * 5000), {"n": 1}) in (None, 5000)


class TestFiles:
    def test_round_trip_through_codes(self, tmp_path):
        path = tmp_path / "x.npz"
        bf16 = np.array([[1.0, -2.5]], ml_dtypes.bfloat16)
        fp8 = np.array([3.0], ml_dtypes.float8_e5m2)
        values = {"file": bf16, "e": fp8, "i": np.arange(3), "s": 2.5, "b": np.array([True])}
        write_npz(path, values)
        found = read_npz(path)
        assert list(found) == ["b", "e", "file", "i", "s"]
        assert found["file"].dtype == np.uint16
        assert np.array_equal(to_storage(found["file"], BF16), bf16)
        assert found["e"].dtype == np.uint8
        assert found["s"].shape == ()
        assert found["s"] == 2.5

    def test_the_bytes_depend_on_the_values_alone(self, tmp_path):
        a, b = tmp_path / "a.npz", tmp_path / "b.npz"
        write_npz(a, {"x": np.arange(3), "y": 1})
        write_npz(b, {"y": 1, "x": np.arange(3)})
        assert a.read_bytes() == b.read_bytes()

    def test_numpy_reads_and_writes_such_files(self, tmp_path):
        write_npz(tmp_path / "a.npz", {"x": np.arange(3)})
        with np.load(tmp_path / "a.npz") as archive:
            assert archive["x"].tolist() == [0, 1, 2]
        np.savez(tmp_path / "b.npz", x=np.array([1.0], ml_dtypes.bfloat16))
        assert read_npz(tmp_path / "b.npz")["x"].tolist() == [0x3F80]
        np.savez_compressed(tmp_path / "c.npz", x=np.zeros(9))
        assert read_npz(tmp_path / "c.npz")["x"].shape == (9,)

    def bad(self, action, *arguments):
        with pytest.raises(TileggError) as caught:
            action(*arguments)
        assert caught.value.diagnostics[0].code == "TG013"

    def test_bad_files_are_refused(self, tmp_path):
        (tmp_path / "junk.npz").write_bytes(b"PK\x03\x04junk")
        np.save(tmp_path / "one.npy", np.arange(3))
        np.savez(tmp_path / "objects.npz", x=np.array([1, None]))
        np.savez(tmp_path / "text.npz", x=np.array(["a"]))
        for name in ("junk.npz", "one.npy", "objects.npz", "text.npz", "missing.npz", "."):
            self.bad(read_npz, tmp_path / name)

    def test_nothing_half_written_stays(self, tmp_path):
        self.bad(write_npz, tmp_path / "no" / "x.npz", {"x": 1})
        self.bad(write_npz, tmp_path / "x.npz", {"x": np.array(["a"])})
        assert list(tmp_path.iterdir()) == []


def test_uint8_is_values_for_integers():
    assert to_storage(np.array([5], np.uint8), UINT8).tolist() == [5]
    assert to_storage(np.array([5], np.uint8), INT32).tolist() == [5]
