"""Inputs on which compilers of this field are known to have gone wrong, with their right values, on the whole pipeline.

Each program is lowered for every target that can take it (and for none), and what comes out is run; where a target
cannot, the refusal says why. Casts and their chains are in ``tests/extract/test_known_failures.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.extract.lowered import Lowered
from tilegg.extract.scalars import lower_scalars
from tilegg.ir import mx
from tilegg.ir.convert import decode, encode
from tilegg.ir.dtypes import BF16, FP4, FP8E4M3FN, FP8E8M0
from tilegg.ir.program import Op, walk
from tilegg.ir.types import TileType
from tilegg.testing import assert_lowering_correct

ARCHES = ("a5", "a2a3")
ANY = (*ARCHES, None)
NAN, INF = math.nan, math.inf


def kernel(*lines: str, src: str = "FP32", dst: str | None = None, shape: str = "1, 64", valid: str = "") -> str:
    """Loads ``t``, runs the lines, stores ``r``."""
    body = "".join(f"    {line}\n" for line in lines)
    return (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(x: pl.Tensor[[{shape}], pl.{src}], out: pl.Out[pl.Tensor[[{shape}], pl.{dst or src}]]):\n"
        f"    t = pl.tile.load(x, [0, 0], [{shape}]{valid and f', valid_shape=[{valid}]'})\n{body}"
        "    return pl.tile.store(r, [0, 0], out)\n"
    )


def lowered(text: str, arch: str | None, **options: Any) -> Lowered:
    return tilegg.lower(tilegg.parse(text), arch, **options)


def values(made: Lowered, numbers: Any) -> list[float]:
    """Run on a row that starts with the numbers (the rest are zeros); return what they become."""
    x, out = (p.value.type for p in made.program.functions[0].params[:2])
    given = np.asarray(numbers)
    row = np.zeros(x.shape, x.dtype.storage)
    row.reshape(-1)[: len(given)] = encode(given, x.dtype, "rint", False)
    found = tilegg.run(made.program, {"x": row, "out": np.zeros(out.shape, out.dtype.storage)})["out"]
    return decode(np.asarray(found), out.dtype).reshape(-1)[: len(given)].tolist()


def names(made: Lowered) -> list[str]:
    ops = [s.name.removeprefix("tile.") for s in walk(made.program.functions[0].body) if isinstance(s, Op)]
    return [n for n in ops if n not in ("load", "store", "reinterpret_view")]


def refusal(text: str, arch: str | None, **options: Any) -> tilegg.Diagnostic:
    with pytest.raises(tilegg.TileggError) as caught:
        lowered(text, arch, **options)
    return caught.value.diagnostics[0]


def same(found: list[float], want: list[float]) -> bool:
    """Equal values, NaN included, zeros of one sign."""
    signs = (np.signbit(found) == np.signbit(want)) | np.isnan(want)
    return np.array_equal(found, want, equal_nan=True) and bool(signs.all())


class TestNarrowing:
    FP4_INPUTS = (1.251953125, 2.500244140625)

    def test_fp32_to_fp4_takes_one_rounding_or_says_that_it_takes_two(self) -> None:
        text = kernel("r = pl.tile.cast(t, target_type=pl.FP4, mode='rint')", dst="FP4")
        assert values(lowered(text, None), self.FP4_INPUTS) == [1.5, 3.0]
        exact = lowered(text, "a5", contract="exact")
        assert values(exact, self.FP4_INPUTS) == [1.5, 3.0] and exact.totals.inexact == 0
        chain = lowered(text, "a5")
        assert values(chain, self.FP4_INPUTS) == [1.0, 2.0] and chain.totals.cycles < exact.totals.cycles
        assert [r.code for r in chain.remarks] == ["TG024"] and chain.totals.inexact == 1
        assert refusal(text, "a2a3").code == "TG020"

    def test_an_odd_first_hop_makes_it_exact(self) -> None:
        text = kernel(
            "h = pl.tile.cast(t, target_type=pl.BF16, mode='odd')",
            "r = pl.tile.cast(h, target_type=pl.FP4, mode='rint')", dst="FP4",
        )  # fmt: skip
        assert values(lowered(text, None), self.FP4_INPUTS) == [1.5, 3.0]
        # No target converts FP32 to BF16 in this mode: integer arithmetic on the bits does it.
        exact = lowered(text, "a5", contract="exact")
        assert values(exact, self.FP4_INPUTS) == [1.5, 3.0] and "or_" in names(exact)

    @pytest.mark.parametrize("arch", ANY)
    @pytest.mark.parametrize(
        ("saturation", "want"), [("", [2, -127, 127, 127]), (", saturation_mode='off'", [2, -127, -128, 44])]
    )
    def test_the_int8_tail(self, saturation: str, want: list[int], arch: str | None) -> None:
        text = kernel(
            "i = pl.tile.cast(t, target_type=pl.INT32, mode='rint')", "h = pl.tile.cast(i, target_type=pl.FP16)",
            f"r = pl.tile.cast(h, target_type=pl.INT8, mode='trunc'{saturation})", dst="INT8",
        )  # fmt: skip
        if arch is not None:  # what the target's conversions do as well
            assert_lowering_correct(text, arch, contract="exact", inputs=16)
        made = lowered(text, arch, contract="exact")
        assert values(made, [2.5, -127.49, 127.6, 300]) == want
        assert values(made, [-126.50000762939453, 126.50000762939453, 70000])[:2] == [-127, 127]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_an_index_that_went_through_fp32_is_the_index(self, arch: str) -> None:
        text = kernel(
            "c = pl.tile.assume(t, 0.0, 65536.0)", "h = pl.tile.muls(c, 0.5)",
            "d = pl.tile.cast(h, target_type=pl.INT32, mode='trunc')", "f = pl.tile.cast(d, target_type=pl.FP32)",
            "r = pl.tile.cast(f, target_type=pl.INT32)", dst="INT32",
        )  # fmt: skip
        made = lowered(text, arch, contract="exact")
        assert names(made).count("cast") == 1
        assert values(made, [0, 1, 2, 3, 65535, 65536, 7.9]) == [0, 0, 1, 1, 32767, 32768, 3]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_one_round_trip_goes_and_the_other_stays(self, arch: str) -> None:
        there, back = "w = pl.tile.cast(t, target_type=pl.{})", "r = pl.tile.cast(w, target_type=pl.{})"
        assert names(lowered(kernel(there.format("FP32"), back.format("BF16"), src="BF16"), arch)) == []
        rounding = lowered(kernel("w = pl.tile.cast(t, target_type=pl.BF16, mode='rint')", back.format("FP32")), arch)
        assert values(rounding, [1.01, 3.14159274]) == [1.0078125, 3.140625]
        half = lowered(kernel("w = pl.tile.cast(t, target_type=pl.FP16, mode='rint')", back.format("FP32")), arch)
        assert values(half, [70000.0]) == [INF]
        lossy = kernel("w = pl.tile.cast(t, target_type=pl.FP16, mode='rint')", back.format("BF16"), src="BF16")
        made = lowered(lossy.replace("1, 64", "16, 1024"), arch)
        every = np.arange(65536, dtype=np.uint16).view(BF16.storage).reshape(4, 16, 1024)
        found = np.stack([tilegg.run(made.program, {"x": part})["out"] for part in every])
        numbers = np.isfinite(every.astype(np.float32))
        changed = (found.view(np.uint16) != every.view(np.uint16)) & numbers
        assert (changed.sum(), numbers.sum()) == (56576, 65280)


class TestCompareAndSelect:
    @pytest.mark.parametrize("arch", ANY)
    def test_order_of_int32(self, arch: str | None) -> None:
        made = lowered(
            kernel("m = pl.tile.cmps(t, 0, cmp_type=4)", "o = pl.tile.adds(pl.tile.muls(t, 0), 1)",
                   "r = pl.tile.select(m, o, 0)", src="INT32"), arch,
        )  # fmt: skip
        assert values(made, [-1, 0, 1, 2**31 - 1, -(2**31), 2**24 + 1]) == [0, 0, 1, 1, 0, 1]

    def test_a_predicate_is_packed_and_no_number(self) -> None:
        mask = "m = pl.tile.cmps(t, 0.0, cmp_type=4)"
        found = refusal(kernel(mask, "r = pl.tile.add(t, m)", shape="8, 808"), "a5")
        assert found.code == "TG008" and "packed predicate tile [8, 128] valid [8, 101] UINT8" in found.message
        same_width = refusal(kernel(mask, "r = pl.tile.add(t, m)", shape="8, 32"), "a5")
        assert same_width.code == "TG008" and "which is no number" in same_width.message

    @pytest.mark.parametrize("arch", ANY)
    def test_a_predicate_becomes_numbers_by_one_selection(self, arch: str | None) -> None:
        lines = ("m = pl.tile.cmps(t, 0.0, cmp_type=4)", "o = pl.tile.full([8, 808], pl.FP32, 1.0)",
                 "n = pl.tile.select(m, o, 0.0)", "r = pl.tile.add(n, pl.tile.muls(n, 2.0))")  # fmt: skip
        made = lowered(kernel(*lines, shape="8, 808"), arch)
        (mask,) = (s.result.type for s in walk(made.program.functions[0].body)
                   if isinstance(s, Op) and s.name == "tile.cmps")  # fmt: skip
        assert (mask.dtype.name, mask.shape, mask.valid_shape) == ("UINT8", (8, 128), (8, 101))
        assert names(made).count("sels") + names(made).count("sel") == 1
        assert values(made, [-1.0, 0.5, 0.0, 2.0]) == [0.0, 3.0, 0.0, 3.0]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_values_and_predicates_of_one_shape_are_told_apart(self, arch: str) -> None:
        lines = ("h = pl.tile.cast(t, target_type=pl.FP16)", "m = pl.tile.cmps(h, 0.0, cmp_type=1)",
                 "a = pl.tile.full([16, 32], pl.FP16, 7.0)", "r = pl.tile.select(m, a, -1.0)")  # fmt: skip
        made = lowered(kernel(*lines, src="UINT8", dst="FP16", shape="16, 32"), arch)
        assert values(made, [0, 5, 0, 7, 0, 255]) == [-1, 7, -1, 7, -1, 7]
        found = refusal(kernel("h = pl.tile.cast(t, target_type=pl.FP16)", "r = pl.tile.select(t, h, h)",
                               src="UINT8", dst="FP16", shape="16, 32"), arch)  # fmt: skip
        assert found.code == "TG008" and "predicate" in f"{found.message} {found.reason} {found.hint}"

    @pytest.mark.parametrize("arch", ANY)
    def test_a_clamp_by_two_selections_on_one_source(self, arch: str | None) -> None:
        lines = ("lo = pl.tile.cmps(t, -1.0, cmp_type=2)", "a = pl.tile.select(lo, -1.0, t)",
                 "hi = pl.tile.cmps(t, 1.0, cmp_type=4)", "r = pl.tile.select(hi, 1.0, a)")  # fmt: skip
        made = lowered(kernel(*lines, shape="16, 128"), arch)
        assert same(values(made, [-3, 0.5, 9, NAN, -0.0, INF, -INF]), [-1, 0.5, 1, NAN, -0.0, 1, -1])
        if arch is not None:
            assert "pto.tsel" in tilegg.emit(made, arch)

    @pytest.mark.parametrize("arch", ARCHES)
    def test_the_same_clamp_of_what_is_no_nan_is_two_extremes(self, arch: str) -> None:
        lines = ("u = pl.tile.assume(t, -100, 100)",
                 "lo = pl.tile.cmps(u, -1.0, cmp_type=2)", "a = pl.tile.select(lo, -1.0, u)",
                 "hi = pl.tile.cmps(u, 1.0, cmp_type=4)", "r = pl.tile.select(hi, 1.0, a)")  # fmt: skip
        made = lowered(kernel(*lines, shape="16, 128"), arch)
        assert same(values(made, [-3, 0.5, 9, -0.0, 1, -100]), [-1, 0.5, 1, -0.0, 1, -1])
        assert names(made) == ["maximums", "minimums"]

    @pytest.mark.parametrize("arch", ANY)
    def test_a_threshold_on_part_of_a_tile(self, arch: str | None) -> None:
        """Softplus: what overflows where it is not taken must not be seen."""
        lines = ("m = pl.tile.cmps(t, 20.0, cmp_type=4)", "e = pl.tile.adds(pl.tile.exp(t), 1.0)",
                 "r = pl.tile.select(m, t, pl.tile.log(e))")  # fmt: skip
        made = lowered(kernel(*lines, shape="32, 32", valid="32, 4"), arch)
        x = np.zeros((32, 32), np.float32)
        x[:, :4] = [21, 1, 200, 0]
        found = tilegg.run(made.program, {"x": x, "out": np.zeros_like(x)})["out"]
        assert (found[:, 0] == 21).all() and (found[:, 2] == 200).all() and not found[:, 4:].any()
        assert np.abs(found[:, 1] - 1.3132617).max() < 2e-7 and np.abs(found[:, 3] - math.log(2)).max() < 1e-7

    @pytest.mark.parametrize("contract", ["exact", "faithful", "contracted"])
    @pytest.mark.parametrize("arch", ANY)
    @pytest.mark.parametrize(
        ("expression", "want"),
        [
            ("pl.tile.muls(t, 0.0)", [NAN, NAN]),
            ("pl.tile.sub(t, t)", [NAN, NAN]),
            ("pl.tile.adds(pl.tile.sub(t, t), 3.0)", [NAN, NAN]),
            ("pl.tile.minimums(pl.tile.maximums(t, -1.0), 1.0)", [1.0, NAN]),
            ("pl.tile.maximums(t, 1.0)", [INF, NAN]),
            ("pl.tile.select(pl.tile.cmps(t, 0.0, cmp_type=4), pl.tile.full([1, 64], pl.FP32, 1.0), 0.0)", [1.0, 0.0]),
            ("pl.tile.select(pl.tile.cmps(t, 1.0, cmp_type=4), t, 1.0)", [INF, 1.0]),
        ],
    )
    def test_algebra_keeps_nan_and_infinity(
        self, expression: str, want: list[float], arch: str | None, contract: str
    ) -> None:
        assert same(values(lowered(kernel(f"r = {expression}"), arch, contract=contract), [INF, NAN]), want)


class TestSineAndCosine:
    #: Arguments and sines; the last argument is beyond what recipes state an error for (2**17).
    SINES = ((1e4, -0.305614389), (1e5, 0.035748798), (1e6, -0.349993502))

    @pytest.mark.parametrize("arch", ANY)
    def test_large_arguments(self, arch: str | None) -> None:
        arguments, want = zip(*self.SINES)
        made = lowered(kernel("r = pl.tile.sin(t)"), arch)
        assert np.abs(np.subtract(values(made, arguments), want)).max() < 2e-7

    def test_the_meaning_is_right_everywhere(self) -> None:
        row = np.zeros((1, 64), np.float32)
        row[0, :6] = [1e4, 1e5, 1e6, 1.2e7, 1e8, 1e10]
        found = tilegg.run(tilegg.parse(kernel("r = pl.tile.sin(t)")), {"x": row})["out"][0, :6]
        want = [-0.305614389, 0.035748798, -0.349993502, 0.91242759, 0.931639027, -0.487506025]
        assert np.abs(found - want).max() < 1e-7

    @pytest.mark.parametrize("arch", ANY)
    def test_no_result_is_larger_than_one_inside_the_stated_range(self, arch: str | None) -> None:
        x = np.concatenate([np.linspace(-(2.0**17), 2.0**17, 40001), (np.arange(-8000, 8000) + 0.5) * math.pi])
        for of in ("sin", "cos"):
            made = lowered(kernel(f"r = pl.tile.{of}(t)", shape="16, 512"), arch)
            found = np.concatenate([values(made, part) for part in np.array_split(x, 8)])
            assert np.abs(found).max() <= 1 + 2**-23
            assert np.abs(found - getattr(np, of)(x.astype(np.float32).astype(float))).max() < 2.1e-7

    @pytest.mark.parametrize("arch", ANY)
    def test_a_known_range_drops_the_reduction(self, arch: str | None) -> None:
        whole, known = (
            lowered(kernel(f"u = {u}", "r = pl.tile.sin(u)"), arch)
            for u in ("pl.tile.neg(t)", "pl.tile.assume(t, -1.5, 1.5)")
        )
        assert len(names(known)) <= len(names(whole)) - 8
        assert abs(values(known, [0.5])[0] - math.sin(0.5)) < 2e-7

    @pytest.mark.parametrize("arch", ANY)
    def test_special_values(self, arch: str | None) -> None:
        sine, cosine = (values(lowered(kernel(f"r = pl.tile.{of}(t)"), arch), [-0.0, 0.0, INF, -INF, NAN])
                        for of in ("sin", "cos"))  # fmt: skip
        # The sign of sin(-0) is promised by some recipes only, among them the one for A5.
        assert sine[:2] == [0, 0] and not np.signbit(sine[1]) and (np.signbit(sine[0]) or arch != "a5")
        assert cosine[:2] == [1, 1] and np.isnan(sine[2:]).all() and np.isnan(cosine[2:]).all()


MX = """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[{m}, {n}], pl.{src}], q: pl.Out[pl.Tensor[[{rows}, {cols}], pl.{dst}]],
      s: pl.Out[pl.Tensor[[{groups}], pl.FP8E8M0]]):
    t = pl.tile.load(x, [0, 0], [{m}, {n}])
    codes, scales = pl.tile.tquant_mx(t, group_axis={axis}, dtype=pl.{dst})
    a = pl.tile.store(codes, [0, 0], q)
    b = pl.tile.store(scales, [0, 0], s)
    return a, b
"""


def mx_text(src: str, dst: str, axis: int = 1, m: int = 16, n: int = 64) -> str:
    rows, cols = (m, n) if axis == 1 else (n, m)
    groups = f"{m}, {n // 32}" if axis == 1 else f"{n // 32}, {m}"
    return MX.format(src=src, dst=dst, axis=axis, m=m, n=n, rows=rows, cols=cols, groups=groups)


def quantised(text: str, arch: str | None, blocks: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    """Run on rows whose first groups hold the blocks; return codes and scales."""
    made = lowered(text, arch)
    t = made.program.functions[0].params[0].value.type
    x = np.zeros(t.shape)
    for row, block in enumerate(blocks):
        x[row, : len(block)] = block
    out = tilegg.run(made.program, {"x": encode(x, t.dtype, "rint", False)})
    return out["q"], out["s"]


class TestBlockScaledQuantisation:
    @pytest.mark.parametrize("arch", ["a5", None])
    def test_the_exponent_of_the_maximum_less_two(self, arch: str | None) -> None:
        codes, scales = quantised(mx_text("BF16", "FP4"), arch, [[2.7, 1, -0.3], [5.5], [1.2]])
        assert scales[:3, 0].tolist() == [126, 127, 125]
        assert decode(codes, FP4)[0, :3].tolist() == [6, 2, -0.5]
        assert mx.dequantise(codes, scales, FP4, 1)[0, :3].tolist() == [3.0, 1.0, -0.25]

    @pytest.mark.parametrize("arch", ["a5", None])
    def test_the_maximum_is_not_rounded_first(self, arch: str | None) -> None:
        _, scales = quantised(mx_text("FP32", "FP8E4M3FN"), arch, [[255.75]])
        assert scales[0, 0] == 126
        assert float(encode([255.75], BF16, "rint")[0]) == 256.0  # what a narrowing moved upwards would read

    def test_edge_scales_decode_by_value(self) -> None:
        text = kernel("r = pl.tile.cast(t, target_type=pl.FP32)", src="FP8E8M0", dst="FP32")
        row = np.zeros((1, 64), np.uint8)
        row[0, :3] = [0, 134, 255]
        found = tilegg.run(lowered(text, None).program, {"x": row})["out"][0, :3].tolist()
        assert found[:2] == [2.0**-127, 128.0] and math.isnan(found[2])
        on_a5 = lowered(text, "a5", contract="exact")
        assert same(tilegg.run(on_a5.program, {"x": row})["out"][0, :3].tolist(), [2.0**-127, 128.0, math.nan])
        assert refusal(text, "a2a3").code == "TG020"

    @pytest.mark.parametrize("axis", [0, 1])
    @pytest.mark.parametrize("arch", ["a5", None])
    def test_layouts_of_the_scales_and_their_meaning(self, arch: str | None, axis: int) -> None:
        text = mx_text("FP32", "FP8E4M3FN", axis, m=32)
        made = lowered(text, arch)
        types = [r.type for s in walk(made.program.functions[0].body) if isinstance(s, Op) for r in s.results]
        scales = [t for t in types if isinstance(t, TileType) and t.dtype is FP8E8M0][-1]
        layout = dict(scales.layout)
        # On the way to memory scales need not be in the order of the matrix unit.
        if arch is not None:
            assert layout == {} and scales.shape == ((2, 32), (32, 2))[axis]
        else:
            order = layout.get("blayout", "row_major"), layout["slayout"]
            assert order == (("col_major",) * 2, ("row_major",) * 2)[axis]
        x = np.random.default_rng(4).normal(0, 3, (32, 64)).astype(np.float32)
        out = tilegg.run(made.program, {"x": x})
        back = mx.dequantise(out["q"], out["s"], FP8E4M3FN, axis)
        wanted = x if axis == 1 else x.T
        assert np.abs(back - wanted).max() <= 64 * mx.scale_values(out["s"]).max()

    def test_what_cannot_be_quantised(self) -> None:
        wide, short = refusal(mx_text("FP32", "FP8E4M3FN", n=32), "a5"), refusal(mx_text("FP16", "FP4", m=8), "a5")
        assert (wide.code, short.code) == ("TG008", "TG008")
        assert "K, the second dimension, must be a multiple of 64" in wide.message
        assert "M, the first dimension, must be a multiple of 16" in short.message
        other = refusal(mx_text("FP32", "FP8E4M3FN"), "a2a3")
        assert other.code == "TG022" and "tquant" in f"{other.message} {other.reason}"


class TestArithmetic:
    def test_division_of_thread_numbers(self) -> None:
        text = (
            "@pl.function(type=pl.FunctionType.SimtEntry)\n"
            "def f(n: pl.Scalar[pl.INT32]):\n    t = pl.pto.get_tid_x()\n"
            "    return pl.div(t, 8), pl.rem(t, 8), n // 8, pl.div(n, 8), pl.rem(n, 8)\n"
        )
        made = lower_scalars(tilegg.parse(text))
        used = [s.name for s in walk(made.functions[0].body) if isinstance(s, Op)]
        assert used == ["pto.get_tid_x", "scalar.shr", "scalar.bit_and", "scalar.shr", "scalar.div", "scalar.rem"]
        out = tilegg.run(made, {"n": -7})
        found = [np.asarray(out[f"return_{i}"]).reshape(-1) for i in range(5)]
        threads = np.arange(found[0].size)
        assert np.array_equal(found[0], threads >> 3) and np.array_equal(found[1], threads & 7)
        assert [int(v[0]) for v in found[2:]] == [-1, 0, -7]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_a_product_and_a_sum_are_fused_only_on_request(self, arch: str) -> None:
        text = (
            "@pl.function(type=pl.FunctionType.InCore)\n"
            "def k(x: pl.Tensor[[1, 64], pl.FP32], out: pl.Out[pl.Tensor[[1, 64], pl.FP32]],\n"
            "      y: pl.Tensor[[1, 64], pl.FP32]):\n"
            "    a = pl.tile.load(x, [0, 0], [1, 64])\n    c = pl.tile.load(y, [0, 0], [1, 64])\n"
            "    return pl.tile.store(pl.tile.add(pl.tile.muls(a, 4097.0), c), [0, 0], out)\n"
        )
        x, y = np.full((1, 64), 4097, np.float32), np.full((1, 64), 2.0**-30, np.float32)
        found = {}
        for contract in ("exact", "faithful", "contracted"):
            made = lowered(text, arch, contract=contract)
            found[contract] = float(tilegg.run(made.program, {"x": x, "y": y})["out"][0, 0])
        assert found == {"exact": 16785408, "faithful": 16785408, "contracted": 16785410}
