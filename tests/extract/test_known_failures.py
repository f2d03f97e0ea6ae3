"""Inputs on which compilers of this field have gone wrong, each with its right value, through the whole lowering."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
import tilegg
from tilegg.ir.convert import convert, decode, encode
from tilegg.ir.dtypes import DTYPES, parse_dtype
from tilegg.ir.program import Op, walk

ARCHES = ("a2a3", "a5")


def kernel(src: str, *steps: str, n: int = 32, assume: tuple[float, float] | None = None) -> tilegg.ir.program.Program:
    """A program that loads one row, applies the steps (``cast`` keyword text or ``op(args)``) and stores."""
    lines = [f"t0 = pl.tile.load(x, [0, 0], [1, {n}])"]
    if assume:
        lines.append(f"t0 = pl.tile.assume(t0, {assume[0]}, {assume[1]})")
    last = src
    for i, step in enumerate(steps, 1):
        if "(" in step:
            name, arg = step.rstrip(")").split("(")
            lines.append(f"t{i} = pl.tile.{name}(t{i - 1}, {arg})")
        else:
            last = step.split(",")[0]
            lines.append(f"t{i} = pl.tile.cast(t{i - 1}, target_type=pl.{step})")
    lines.append(f"return pl.tile.store(t{len(steps)}, [0, 0], out)")
    body = "\n    ".join(lines)
    text = (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(x: pl.Tensor[[1, {n}], pl.{src}], out: pl.Out[pl.Tensor[[1, {n}], pl.{last}]]):\n    {body}\n"
    )
    return tilegg.parse(text)


def casts(program: tilegg.ir.program.Program) -> list[str]:
    """The casts of a program as ``SRC>DST mode`` words, in order."""
    found = [s for s in walk(program.functions[0].body) if isinstance(s, Op) and s.name == "tile.cast"]
    return [
        f"{op.operands[0].type.dtype.name}>{op.result.type.dtype.name} {op.attrs.get('mode', 'round')}" for op in found
    ]


def evaluate(program: tilegg.ir.program.Program, src: str, values: list[float], n: int = 32) -> list[float]:
    """Run a kernel on a row that starts with the values; the results as numbers."""
    dtype = parse_dtype(src)
    row = np.zeros((1, n), dtype=dtype.storage)
    row[0, : len(values)] = (
        encode(np.array(values, dtype=np.float64), dtype, "rint", False) if dtype.is_float else np.array(values)
    )
    out = tilegg.run(program, {"x": row, "out": out_row(program, n)})["out"]
    last = program.functions[0].params[1].value.type.dtype
    return list(decode(np.asarray(out), last)[0, : len(values)].tolist())


def out_row(program: tilegg.ir.program.Program, n: int) -> np.ndarray:
    return np.zeros((1, n), dtype=program.functions[0].params[1].value.type.dtype.storage)


def lowered(program: tilegg.ir.program.Program, arch: str, **options: str) -> tilegg.ir.program.Program:
    return tilegg.lower(program, arch, **options).program


class TestDoubleRounding:
    @pytest.mark.parametrize("arch", ARCHES)
    def test_int32_to_bf16_through_fp32_is_reported_or_made_exact(self, arch: str) -> None:
        program = kernel("INT32", "BF16, mode='rint'")
        values = [16842753, -16842753, 33685505]
        assert evaluate(program, "INT32", values) == [16908288, -16908288, 33816576]
        chain = tilegg.lower(program, arch)
        assert casts(chain.program) == ["INT32>FP32 rint", "FP32>BF16 rint"]
        assert [i.inexact for i in chain.functions[0].instructions if i.op.name == "tile.cast"] == [False, True]
        exact = lowered(program, arch, contract="exact")
        assert casts(exact) == ["INT32>FP32 trunc", "FP32>INT32 trunc", "FP32>BF16 rint"]
        assert evaluate(exact, "INT32", values) == [16908288, -16908288, 33816576]
        with pytest.raises(tilegg.TileggError) as caught:
            tilegg.lower(kernel("INT64", "BF16, mode='rint'"), arch, contract="exact")
        assert caught.value.diagnostics[0].code == "TG021"

    @pytest.mark.parametrize("arch", ARCHES)
    def test_int32_to_bf16_ties_away_is_exact_with_a_truncating_first_hop(self, arch: str) -> None:
        program = kernel("INT32", "BF16")
        exact = lowered(program, arch, contract="exact")
        assert casts(exact) == ["INT32>FP32 trunc", "FP32>BF16 round"]
        assert evaluate(exact, "INT32", [16842753, -16842753, 33685505]) == [16908288, -16908288, 33816576]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_int32_to_fp16_through_fp32_is_innocent(self, arch: str) -> None:
        program = kernel("INT32", "FP16, mode='rint'")
        chain = lowered(program, arch, contract="exact")
        want = [65504, 65504, float("inf"), 2048, 2052, -65520 * float("inf")]
        assert evaluate(chain, "INT32", [65504, 65519, 65520, 2049, 2051, -70000]) == want

    @pytest.mark.parametrize("arch", ARCHES)
    def test_a_shorter_chain_that_loses_values_is_never_taken(self, arch: str) -> None:
        to_half = lowered(kernel("INT32", "FP16, mode='rint'"), arch)
        assert evaluate(to_half, "INT32", [40000]) == [40000]
        to_bf16 = lowered(kernel("INT16", "BF16, mode='rint'"), arch)
        assert casts(to_bf16) == ["INT16>FP32 rint", "FP32>BF16 rint"]
        assert evaluate(to_bf16, "INT16", [2057]) == [2064]

    def test_fp32_to_fp4_through_bf16(self) -> None:
        values = [1.251953125, 2.500244140625]
        assert evaluate(kernel("FP32", "FP4, mode='rint'", n=64), "FP32", values, 64) == [1.5, 3.0]
        # Ties away, the default, has an exact road of the same length: truncate to BF16 first.
        exact = lowered(kernel("FP32", "FP4", n=64), "a5", contract="exact")
        assert casts(exact) == ["FP32>BF16 trunc", "BF16>FP4 round"]
        assert evaluate(exact, "FP32", values, 64) == [1.5, 3.0]
        inexact = tilegg.lower(kernel("FP32", "FP4, mode='rint'", n=64), "a5")
        assert any(i.inexact for i in inexact.functions[0].instructions)
        odd = lowered(kernel("FP32", "FP4, mode='rint'", n=64), "a5", contract="exact")
        assert evaluate(odd, "FP32", values, 64) == [1.5, 3.0]


class TestPairsWithAnExactChain:
    @pytest.mark.parametrize("arch", ARCHES)
    @pytest.mark.parametrize(
        ("src", "dst", "hops"),
        [
            ("INT8", "FP32", ["INT8>FP16", "FP16>FP32"]),
            ("INT8", "BF16", ["INT8>FP16", "FP16>FP32", "FP32>BF16"]),
            ("UINT8", "FP32", ["UINT8>FP16", "FP16>FP32"]),
        ],
    )
    def test_eight_bit_integers_to_wider_floats(self, arch: str, src: str, dst: str, hops: list[str]) -> None:
        program = kernel(src, dst, n=256)
        exact = lowered(program, arch, contract="exact")
        assert [c.split()[0] for c in casts(exact)] == hops
        low = -128 if src == "INT8" else 0
        values = list(range(low, low + 256))
        assert evaluate(exact, src, values, 256) == values

    def test_int16_to_int32_where_only_floats_connect_them(self) -> None:
        exact = lowered(kernel("INT16", "INT32"), "a2a3", contract="exact")
        assert [c.split()[0] for c in casts(exact)] == ["INT16>FP32", "FP32>INT32"]
        assert evaluate(exact, "INT16", [-32768, 32767, -1]) == [-32768, 32767, -1]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_a_written_detour_of_five_casts_becomes_three(self, arch: str) -> None:
        program = kernel("INT8", "INT32", "FP32", "FP16", "FP32", "BF16")
        exact = lowered(program, arch, contract="exact")
        assert [c.split()[0] for c in casts(exact)] == ["INT8>FP16", "FP16>FP32", "FP32>BF16"]
        values = list(range(-128, 128, 9))
        assert evaluate(exact, "INT8", values) == values

    @pytest.mark.parametrize("arch", ARCHES)
    def test_quantisation_through_int16(self, arch: str) -> None:
        program = kernel("FP32", "INT16, mode='trunc'", "FP16, mode='rint'", "INT8, mode='rint'")
        exact = lowered(program, arch, contract="exact")
        values = [2.9, -2.9, 126.99, 127.5, 3000.7, -3000.7, 0.1]
        assert evaluate(exact, "FP32", values) == [2, -2, 126, 127, 127, -128, 0]
        assert evaluate(program, "FP32", values) == evaluate(exact, "FP32", values)


class TestModes:
    def test_rint_and_round_differ_on_ties(self) -> None:
        values = [-2.5, -0.5, 0.5, 1.5, 2.5, 3.5]
        assert evaluate(kernel("FP32", "INT32, mode='rint'"), "FP32", values) == [-2, 0, 0, 2, 2, 4]
        assert evaluate(kernel("FP32", "INT32, mode='round'"), "FP32", values) == [-3, -1, 1, 2, 3, 4]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_integers_to_bf16_round_and_do_not_truncate(self, arch: str) -> None:
        chain = lowered(kernel("INT32", "BF16, mode='rint'"), arch)
        assert evaluate(chain, "INT32", [259, -259, 33000, 32767]) == [260, -260, 33024, 32768]

    @staticmethod
    def two_modes(src: str) -> tilegg.ir.program.Program:
        widen = "" if src == "FP32" else "    t = pl.tile.cast(t, target_type=pl.FP32)\n"
        return tilegg.parse(
            "@pl.function\n"
            f"def k(x: pl.Tensor[[1, 32], pl.{src}], a: pl.Out[pl.Tensor[[1, 32], pl.BF16]],\n"
            "      b: pl.Out[pl.Tensor[[1, 32], pl.BF16]]):\n"
            "    t = pl.tile.load(x, [0, 0], [1, 32])\n"
            + widen
            + "    p = pl.tile.cast(t, target_type=pl.BF16)\n"
            "    q = pl.tile.cast(t, target_type=pl.BF16, mode='rint')\n"
            "    ra = pl.tile.store(p, [0, 0], a)\n"
            "    rb = pl.tile.store(q, [0, 0], b)\n"
            "    return ra, rb\n"
        )

    @pytest.mark.parametrize("arch", ARCHES)
    def test_casts_of_different_modes_stay_apart(self, arch: str) -> None:
        assert casts(lowered(self.two_modes("FP32"), arch)) == ["FP32>BF16 round", "FP32>BF16 rint"]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_casts_of_different_modes_merge_where_no_tie_can_occur(self, arch: str) -> None:
        assert casts(lowered(self.two_modes("BF16"), arch)) == []

    def test_fp8_conversion_keeps_the_mode(self) -> None:
        program = kernel("FP32", "FP8E4M3FN, mode='rint'")
        assert evaluate(program, "FP32", [1.1, 0.3, 17.9]) == [1.125, 0.3125, 18]
        text = tilegg.emit(tilegg.lower(program, "a5"), "a5")
        assert "rmode = #pto<round_mode RINT>" in text


class TestRanges:
    def test_overflow_to_e5m2(self) -> None:
        program = kernel("FP32", "FP8E5M2, mode='rint'")
        inf = float("inf")
        assert evaluate(program, "FP32", [61439, 61440, 1e5, inf]) == [57344, inf, inf, inf]
        clamped = kernel("FP32", "FP8E5M2, mode='rint', saturation_mode='on'")
        assert evaluate(clamped, "FP32", [61439, 61440, 1e5]) == [57344, 57344, 57344]

    def test_fp8_subnormals_and_nan_decode(self) -> None:
        program = lowered(kernel("FP8E4M3FN", "FP32"), "a5", contract="exact")
        row = np.zeros((1, 32), np.uint8)
        row[0, :3] = [0x01, 0x07, 0x7F]
        out = tilegg.run(program, {"x": row, "out": np.zeros((1, 32), np.float32)})["out"]
        assert out[0, :2].tolist() == [0.001953125, 0.013671875] and np.isnan(out[0, 2])

    @pytest.mark.parametrize("arch", ARCHES)
    def test_out_of_range_halves_to_int8(self, arch: str) -> None:
        values = [float("inf"), 510, -200]
        on = lowered(kernel("FP16", "INT8, mode='trunc'"), arch)
        assert evaluate(on, "FP16", values) == [127, 127, -128]
        off = lowered(kernel("FP16", "INT8, mode='trunc', saturation_mode='off'"), arch)
        assert evaluate(off, "FP16", values[1:]) == [-2, 56]

    def test_nan_to_integers_is_zero_by_choice(self) -> None:
        assert evaluate(kernel("FP32", "INT32, mode='rint'"), "FP32", [float("nan")]) == [0]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_saturation_reaches_the_last_hop_and_the_assembly(self, arch: str) -> None:
        on, off = (kernel("FP32", f"INT8, mode='trunc', saturation_mode='{word}'") for word in ("on", "off"))
        assert evaluate(lowered(on, arch), "FP32", [200.7, -200.7]) == [127, -128]
        assert evaluate(off, "FP32", [200.7, -200.7]) == [-56, 56]
        text = tilegg.emit(tilegg.lower(on, arch), arch)
        assert "satmode = #pto<saturation_mode ON>" in text

    def test_signed_widening_extends_the_sign(self) -> None:
        assert evaluate(kernel("INT8", "INT16"), "INT8", [-47]) == [-47]
        assert evaluate(kernel("INT8", "UINT16, saturation_mode='off'"), "INT8", [-18]) == [65518]
        assert evaluate(kernel("INT16", "UINT32, saturation_mode='off'"), "INT16", [-15478]) == [4294951818]


class TestQuantisationTail:
    TAIL = ("INT32, mode='rint'", "FP16, mode='round'", "INT8, mode='trunc'")
    VALUES = (2.5, -127.49, 127.6, 300.0)

    def test_right_values_of_the_written_chain(self) -> None:
        program = kernel("FP32", *self.TAIL)
        assert evaluate(program, "FP32", list(self.VALUES)) == [2, -127, 127, 127]
        wrapping = kernel("FP32", *self.TAIL[:2], self.TAIL[2] + ", saturation_mode='off'")
        assert evaluate(wrapping, "FP32", list(self.VALUES)) == [2, -127, -128, 44]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_a_known_range_shortens_it_to_two_exact_hops(self, arch: str) -> None:
        program = kernel("FP32", *self.TAIL, assume=(-127.0, 127.0))
        exact = lowered(program, arch, contract="exact")
        assert casts(exact) == ["FP32>FP16 odd", "FP16>INT8 rint"]
        near = np.linspace(-127, 127, 20001, dtype=np.float32)
        wide = kernel("FP32", *self.TAIL, n=20001 + 31, assume=(-127.0, 127.0))
        chain = lowered(wide, arch, contract="exact")
        row = np.zeros((1, 20032), np.float32)
        row[0, :20001] = near
        row[0, 20001:20005] = [-126.50000762939453, 126.50000762939453, -126.5, 0.49999997]
        got = tilegg.run(chain, {"x": row, "out": np.zeros((1, 20032), np.int8)})["out"]
        assert np.array_equal(got, np.rint(row).astype(np.int8))

    @pytest.mark.parametrize("arch", ARCHES)
    def test_without_the_range_the_written_value_is_kept(self, arch: str) -> None:
        program = kernel("FP32", *self.TAIL)
        chain = lowered(program, arch, contract="exact")
        values = [*self.VALUES, 70000.0, -70000.0, -126.50000762939453]
        assert evaluate(chain, "FP32", values) == evaluate(program, "FP32", values)


class TestRoundTrips:
    @pytest.mark.parametrize("arch", ARCHES)
    def test_the_same_dtype_needs_no_instruction(self, arch: str) -> None:
        assert casts(lowered(kernel("FP32", "FP32, mode='none'"), arch)) == []
        # Rounding to integers by way of INT32 is a real rounding and stays.
        program = kernel("FP16", "INT32, mode='rint'", "FP16, mode='rint'")
        chain = lowered(program, arch)
        assert evaluate(chain, "FP16", [2.5, 3.5, -0.75]) == [2.0, 4.0, -1.0]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_an_index_that_went_through_fp32_is_the_index(self, arch: str) -> None:
        program = kernel("FP32", "muls(0.5)", "INT32, mode='trunc'", "FP32", "INT32", assume=(0.0, 4096.0))
        assert casts(lowered(program, arch)) == ["FP32>INT32 trunc"]

    @pytest.mark.parametrize("arch", ARCHES)
    def test_int32_through_fp32_stays_without_a_range(self, arch: str) -> None:
        program = kernel("INT32", "FP32", "INT32")
        assert len(casts(lowered(program, arch))) == 2
        bounded = kernel("INT32", "FP32", "INT32", assume=(-16777216, 16777216))
        assert casts(lowered(bounded, arch)) == []

    @pytest.mark.parametrize("arch", ARCHES)
    def test_bf16_through_fp32_goes_and_fp32_through_bf16_stays(self, arch: str) -> None:
        assert casts(lowered(kernel("BF16", "FP32", "BF16"), arch)) == []
        program = kernel("FP32", "BF16, mode='rint'", "FP32")
        chain = lowered(program, arch)
        assert casts(chain) == ["FP32>BF16 rint", "BF16>FP32 round"]
        assert evaluate(chain, "FP32", [1.01, 3.14159274]) == [1.0078125, 3.140625]
        half = lowered(kernel("FP32", "FP16, mode='rint'", "FP32"), arch)
        assert evaluate(half, "FP32", [70000.0]) == [float("inf")]

    def test_every_bf16_survives_fp32(self) -> None:
        every = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
        finite = every[~np.isnan(every.astype(np.float32))]
        wide = convert(finite, DTYPES["BF16"], DTYPES["FP32"], "round")
        back = convert(wide, DTYPES["FP32"], DTYPES["BF16"], "round")
        assert np.array_equal(back.view(np.uint16), finite.view(np.uint16))


@pytest.mark.parametrize("arch", ARCHES)
def test_what_an_unknown_operation_gives_passes_through(arch: str) -> None:
    program = tilegg.parse(
        "@pl.function\n"
        "def k(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
        "    t = pl.tile.load(x, [0, 0], [16, 64])\n"
        "    u = pl.tile.frobnicate(t, 3)\n"
        "    return pl.tile.store(u, [0, 0], out)\n"
    )
    assert tilegg.lower(program, arch).program == program


class TestWhatCannotBe:
    @staticmethod
    def refused(text: str) -> tilegg.Diagnostic:
        with pytest.raises(tilegg.TileggError) as caught:
            tilegg.lower(tilegg.parse(text), "a5")
        return caught.value.diagnostics[0]

    @staticmethod
    def program(n: int, line: str, load: str = "", dtype: str = "INT8") -> str:
        return (
            "@pl.function\n"
            f"def k(x: pl.Tensor[[{n}, {n}], pl.{dtype}], out: pl.Out[pl.Tensor[[{n}, {n}], pl.{dtype}]]):\n"
            f"    t = pl.tile.load(x, [0, 0], [{n}, {n}]{load})\n"
            f"    u = {line}\n"
            "    return pl.tile.store(u, [0, 0], out)\n"
        )

    def test_a_tile_larger_than_local_memory(self) -> None:
        found = self.refused(self.program(4096, "pl.tile.exp(t)", dtype="FP32"))
        assert found.code == "TG019" and "67,108,864 bytes" in found.message and found.span is not None

    def test_a_literal_outside_the_dtype(self) -> None:
        assert self.refused(self.program(64, "pl.tile.adds(t, 300)")).code == "TG011"
        assert self.refused(self.program(64, "pl.tile.adds(t, 1.5)")).code == "TG011"
        tilegg.lower(tilegg.parse(self.program(64, "pl.tile.adds(t, -128)")), "a5")

    def test_a_load_of_nothing(self) -> None:
        assert self.refused(self.program(64, "pl.tile.adds(t, 1)", ", valid_shape=[0, 64]")).code == "TG008"
