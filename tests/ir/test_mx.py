"""Block-scaled quantisation: scales, codes, edge cases, layouts, both group axes, text."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from tilegg.ir import mx
from tilegg.ir.builder import Builder
from tilegg.ir.convert import decode, encode
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP4, FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, UINT8
from tilegg.ir.interp import run
from tilegg.ir.interp_eval import eval_op
from tilegg.ir.op import OPS, Call
from tilegg.ir.program import Value
from tilegg.ir.types import TupleType, tensor, tile
from tilegg.ir.verify import verify


def group(*values: float) -> np.ndarray:
    """One row of a group: the values, then zeros."""
    row = np.zeros((1, 32), np.float32)
    row[0, : len(values)] = values
    return row


def bf16(x: np.ndarray) -> np.ndarray:
    return encode(x.astype(np.float64), BF16, "rint", False)


# -- scales --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("amax", "code"), [(2.7, 126), (5.5, 127), (1.2, 125)])
def test_ocp_exponent_comes_before_the_division(amax: float, code: int) -> None:
    found = mx.quantise(bf16(group(amax)), BF16, FP4, 1)
    assert found.scales.tolist() == [[code]]


def test_fp4_block_by_hand() -> None:
    found = mx.quantise(bf16(group(2.7, 1.0, -0.3)), BF16, FP4, 1)
    assert decode(found.codes, FP4)[0, :3].tolist() == [6.0, 2.0, -0.5]
    assert mx.dequantise(found.codes, found.scales, FP4, 1)[0, :3].tolist() == [3.0, 1.0, -0.25]


def test_maximum_is_not_rounded_before_its_exponent_is_read() -> None:
    found = mx.quantise(group(255.75), FP32, FP8E4M3FN, 1)
    assert found.scales.tolist() == [[126]]
    rounded = decode(bf16(np.array([255.75])), BF16)[0]
    assert rounded == 256.0  # what a hoisted narrowing would have given: exponent 8, code 127


@pytest.mark.parametrize(
    ("amax", "ocp", "nv"),
    [
        (0.0, 0, 0),
        (448.0, 127, 127),
        (449.0, 127, 128),  # one above the largest value: clipped, or the next scale
        (1.0, 119, 119),
        (1.75, 119, 119),  # 1.75/448 is a power of two
        (1.76, 119, 120),
        (2.0**-120, 0, 0),
        (float("inf"), 247, 254),
        (float("nan"), 255, 255),
        (3.4028234663852886e38, 246, 247),
    ],
)
def test_scale_codes(amax: float, ocp: int, nv: int) -> None:
    for algorithm, want in (("ocp", ocp), ("nv", nv)):
        assert mx.quantise(group(amax), FP32, FP8E4M3FN, 1, algorithm).scales.tolist() == [[want]], algorithm


def test_ocp_clips_what_nv_keeps() -> None:
    x = group(500.0, 450.0, 1.0)
    for algorithm, want in (("ocp", [448.0, 448.0, 1.0]), ("nv", [512.0, 448.0, 1.0])):
        found = mx.quantise(x, FP32, FP8E4M3FN, 1, algorithm)
        assert mx.dequantise(found.codes, found.scales, FP8E4M3FN, 1)[0, :3].tolist() == want


def test_nan_makes_the_whole_group_nan() -> None:
    found = mx.quantise(group(1.0, float("nan"), 2.0), FP32, FP8E4M3FN, 1)
    assert (found.codes == 0x7F).all() and found.scales[0, 0] == 255
    halves = mx.quantise(bf16(group(1.0, float("nan"))), BF16, FP4, 1)
    assert (halves.codes == 7).all() and halves.scales[0, 0] == 255
    assert np.isnan(mx.dequantise(found.codes, found.scales, FP8E4M3FN, 1)).all()


def test_a_nan_survives_the_cut_of_half_precision() -> None:
    quiet = np.zeros((1, 32), np.uint16)
    quiet[0, 3] = 0x7C01  # a NaN whose payload lies in the bits that BF16 has not
    assert mx.quantise(quiet.view(np.float16), FP16, FP8E4M3FN, 1).scales.tolist() == [[255]]


def test_infinity_is_clipped() -> None:
    found = mx.quantise(group(float("inf"), -float("inf"), 4.0), FP32, FP8E4M3FN, 1)
    assert decode(found.codes, FP8E4M3FN)[0, :3].tolist() == [448.0, -448.0, 0.0]
    assert mx.quantise(bf16(group(float("inf"))), BF16, FP4, 1).scales.tolist() == [[253]]


def test_signed_zero_and_negative_underflow() -> None:
    found = mx.quantise(group(1.0, -0.0, -1e-30), FP32, FP8E4M3FN, 1)
    assert found.codes[0, 1] == 0x80 and found.codes[0, 2] == 0x80


def test_decoding_edge_scales() -> None:
    codes = np.array([0, 134, 255], np.uint8)
    values = mx.scale_values(codes)
    assert values[0] == 2.0**-127 and values[0] == pytest.approx(5.877e-39, rel=1e-3)
    assert values[1] == 128.0 and np.isnan(values[2])
    shown = decode(codes, FP8E8M0)
    assert shown[0] == values[0] and shown[1] == values[1] and np.isnan(shown[2])
    factors = mx.multipliers(np.array([0, 127, 254, 255], np.uint8))
    assert factors[:3].tolist() == [2.0**127, 1.0, 2.0**-127] and np.isnan(factors[3])


def test_value_is_code_times_power_of_two_never_the_linear_code() -> None:
    rng = np.random.default_rng(1)
    x = (rng.normal(0, 3, (16, 64)) * np.exp2(rng.integers(-20, 20, (16, 64)))).astype(np.float32)
    for algorithm in mx.ALGORITHMS:
        for axis in (0, 1):
            y = np.ascontiguousarray(x if axis == 1 else x.T)
            found = mx.quantise(y, FP32, FP8E4M3FN, axis, algorithm)
            back = mx.dequantise(found.codes, found.scales, FP8E4M3FN, axis)
            size = np.repeat(mx.scale_values(found.scales), 32, axis=axis)
            # Half a step of the coarsest binade, or the clipped part of a maximum.
            limit = 64.0 * size if algorithm == "ocp" else 16.0 * size
            assert (np.abs(back - y) <= limit).all()


def test_refused_inputs() -> None:
    for x, src, dst, axis, algorithm, code in [
        (group(1.0), FP32, FP4, 1, "ocp", "TG007"),
        (group(1.0), FP32, INT8, 1, "ocp", "TG007"),
        (np.zeros((3, 33), np.float32), FP32, FP8E4M3FN, 1, "ocp", "TG008"),
        (group(1.0), FP32, FP8E4M3FN, 1, "mean", "TG005"),
    ]:
        with pytest.raises(TileggError) as problem:
            mx.quantise(x, src, dst, axis, algorithm)
        assert problem.value.diagnostics[0].code == code


# -- layouts -------------------------------------------------------------------------------------------------


def test_zz_boxes_are_sixteen_rows_of_two() -> None:
    scales = np.arange(32 * 4, dtype=np.uint8).reshape(32, 4)
    flat = mx.zz_order(scales)
    # The first box: rows 0..15, columns 0 and 1, row by row.
    assert flat[:32].tolist() == [v for r in range(16) for v in (4 * r, 4 * r + 1)]
    assert flat[32:34].tolist() == [2, 3]
    assert np.array_equal(mx.from_zz_order(flat, 32, 4), scales)


# -- operations ----------------------------------------------------------------------------------------------


def result_of(name: str, *types: object, **attrs: object) -> object:
    decl = OPS[name]
    operands = tuple(Value(f"v{i}", t) if t is not None else None for i, t in enumerate(types))
    return decl.result(Call(decl, operands, {**decl.defaults, **attrs}, None))


def test_types_of_both_axes() -> None:
    left = result_of("tile.tquant_mx", tile((16, 64), BF16), group_axis=1)
    assert isinstance(left, TupleType)
    assert left.items[0] == tile((16, 64), FP8E4M3FN)
    assert left.items[1].shape == (16, 2) and dict(left.items[1].layout) == {"fractal": "32", "slayout": "row_major"}
    right = result_of("tile.tquant_mx", tile((32, 64), BF16), group_axis=0)
    assert right.items[0] == tile((64, 32), FP8E4M3FN)
    assert right.items[1].shape == (2, 32)
    assert dict(right.items[1].layout) == {"blayout": "col_major", "fractal": "32", "slayout": "col_major"}


@pytest.mark.parametrize(
    ("t", "attrs", "code", "words"),
    [
        (tile((16, 64), INT8), {"group_axis": 1}, "TG007", "FP16, BF16 and FP32"),
        (tile((16, 64), FP16), {"group_axis": 0}, "TG008", "multiple of 32"),
        (tile((16, 32), FP16), {"group_axis": 1}, "TG008", "multiple of 64"),
        (tile((8, 64), FP16), {"group_axis": 1}, "TG008", "multiple of 16"),
        (tile((16, 64), FP16, (16, 32)), {"group_axis": 1}, "TG008", "valid"),
        (tile(("m", 64), FP16), {"group_axis": 1}, "TG008", "static"),
        (tile((16, 64), FP16), {"group_axis": 2}, "TG005", "0 or 1"),
        (tile((16, 64), FP32), {"group_axis": 1, "dtype": FP4}, "TG007", "FP4"),
        (tile((16, 64), FP16), {"group_axis": 1, "scale_alg": "mean"}, "TG005", "ocp, nv"),
    ],
)
def test_refused_types(t: object, attrs: dict[str, object], code: str, words: str) -> None:
    with pytest.raises(TileggError) as problem:
        result_of("tile.tquant_mx", t, **attrs)
    found = problem.value.diagnostics[0]
    assert found.code == code and words in f"{found.message} {found.hint}"


def test_raw_and_moves() -> None:
    ws = tile((1, 32), FP16)
    raw = result_of("tile.tquant_mx_raw", tile((16, 64), FP16), ws, ws, group_axis=1)
    assert raw == TupleType((tile((16, 64), INT8), tile((1, 32), UINT8)))
    with pytest.raises(TileggError, match="must hold 32 elements"):
        result_of("tile.tquant_mx_raw", tile((16, 64), FP16), tile((1, 31), FP16), ws, group_axis=1)
    moved = result_of(
        "tile.tmov_x2zz", tile((1, 32), UINT8), tile((1, 96), UINT8), group_axis=1, dst_rows=16, dst_cols=2
    )
    assert moved.shape == (16, 2)
    with pytest.raises(TileggError, match="at least 66"):
        result_of("tile.tmov_x2zz", tile((1, 32), UINT8), tile((1, 64), UINT8), group_axis=1, dst_rows=16, dst_cols=2)
    assert result_of("tile.tmov_x2zz", tile((2, 16), UINT8), tile((1, 32), UINT8), group_axis=0).shape == (16, 2)
    with pytest.raises(TileggError, match="dst_rows and dst_cols"):
        result_of("tile.tmov_x2zz", tile((1, 32), UINT8), tile((1, 96), UINT8), group_axis=1)


def test_raw_pieces_make_the_whole() -> None:
    """The composite equals the raw form with its moves, for both axes."""
    rng = np.random.default_rng(2)
    x = rng.normal(0, 5, (32, 64)).astype(np.float32)
    for axis in (1, 0):
        whole = result_of("tile.tquant_mx", tile((32, 64), FP32), group_axis=axis)
        codes, scales = eval_op(OPS["tile.tquant_mx"], [x], [tile((32, 64), FP32)], {"group_axis": axis}, whole)
        y = x if axis == 1 else np.ascontiguousarray(x.T)
        t = tile(y.shape, FP32)
        groups = tile((1, 64) if axis == 1 else (2, 32), FP32)
        raw = result_of("tile.tquant_mx_raw", t, groups, groups, group_axis=axis)
        data, exp = eval_op(OPS["tile.tquant_mx_raw"], [y, None, None], [t, groups, groups], {"group_axis": axis}, raw)
        attrs = {"group_axis": axis, "dst_rows": 32, "dst_cols": 2} if axis == 1 else {"group_axis": 0}
        tmp = tile((1, 96), UINT8)
        zz = result_of("tile.tmov_x2zz", tile(exp.data.shape, UINT8), tmp, **attrs)
        boxed = eval_op(OPS["tile.tmov_x2zz"], [exp, None], [tile(exp.data.shape, UINT8), tmp], attrs, zz)
        final = boxed.data if axis == 1 else np.ascontiguousarray(boxed.data.T)
        assert np.array_equal(data.data.view(np.uint8), codes.data)
        assert np.array_equal(final, scales.data)


def test_transposed_view_swaps_the_layouts() -> None:
    zz = tile((32, 2), FP8E8M0, None, "Vec", (("fractal", "32"), ("slayout", "row_major")))
    nn = result_of("tile.transpose_view", zz)
    assert nn.shape == (2, 32)
    assert dict(nn.layout) == {"blayout": "col_major", "fractal": "32", "slayout": "col_major"}
    assert result_of("tile.transpose_view", nn) == zz


def program(axis: int) -> tilegg.Builder:
    rows, cols = 32, 64
    b = Builder("quantise", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([rows, cols], FP32))
    shape = [rows, cols] if axis == 1 else [cols, rows]
    q = b.param("q", tensor(shape, FP8E4M3FN), "Out")
    s = b.param("s", tensor([rows, 2] if axis == 1 else [2, rows], FP8E8M0), "Out")
    codes, scales = b.tile.tquant_mx(b.tile.load(x, [0, 0], [rows, cols]), group_axis=axis)
    stored = b.tile.store(codes, [0, 0], q)
    b.ret(stored, b.tile.store(scales, [0, 0], s))
    return b.program("Mx")


@pytest.mark.parametrize("axis", [0, 1])
def test_programs_run_and_read_back(axis: int) -> None:
    p = program(axis)
    assert verify(p) == []
    again = tilegg.parse(tilegg.print_program(p))
    assert tilegg.print_program(again) == tilegg.print_program(p)
    x = np.random.default_rng(3).normal(0, 2, (32, 64)).astype(np.float32)
    out = run(again, {"x": x})
    want = mx.quantise(x if axis == 1 else np.ascontiguousarray(x.T), FP32, FP8E4M3FN, axis)
    assert np.array_equal(out["q"], want.codes) and np.array_equal(out["s"], want.scales)


def test_short_spelling_and_one_name_for_the_pair() -> None:
    text = tilegg.print_program(program(1))
    head, call = "pl.tile.tquant_mx(", "pl.quant_mx("
    assert head in text
    short = tilegg.parse(text.replace(head, call))
    assert short == tilegg.parse(text)
