"""The assertions: wrong programs are found with a small counterexample, equal ones pass, broken ones are diagnosed."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import tilegg
from testing_kernels import cast, kernel
from tilegg import Builder, TileggError
from tilegg.extract import lower as lower_module
from tilegg.ir.dtypes import FP32
from tilegg.ir.ops.composite import REAL
from tilegg.ir.program import Op, Program, Value
from tilegg.ir.types import tensor
from tilegg.rules.rule import RULES, Bound
from tilegg.testing import NotEquivalent, as_program, assert_equivalent, assert_lowering_correct, elements_of
from tilegg.testing.fanout import compare_programs
from tilegg.testing.lowering import check_lowering


def difference(a: object, b: object, **options: object) -> NotEquivalent:
    with pytest.raises(NotEquivalent) as caught:
        assert_equivalent(a, b, **options)  # type: ignore[arg-type]
    return caught.value


class TestWrongProgramsAreFound:
    @pytest.mark.parametrize("exhaustive", [False, True])
    def test_another_round_mode(self, exhaustive: bool) -> None:
        found = difference(cast("FP16", "INT8 rint"), cast("FP16", "INT8 round"), exhaustive=exhaustive)
        (place,) = found.report.counterexample.places
        assert abs(place.element.value) % 1 == 0.5

    def test_double_rounding(self) -> None:
        found = difference(cast("FP32", "INT8"), cast("FP32", "FP16", "INT8"), facts={"x": (-127, 127)})
        (place,) = found.report.counterexample.places
        wrong = found.report.counterexample.difference
        assert wrong.expected.value == np.rint(place.element.value) != wrong.actual.value

    def test_the_sign_of_zero(self) -> None:
        found = difference(kernel("FP32", "FP32", "r = pl.tile.adds(t, 0.0)"), kernel("FP32", "FP32", "r = t"))
        assert [p.element.bits for p in found.report.counterexample.places] == [0x80000000]
        assert_equivalent(
            kernel("FP32", "FP32", "r = pl.tile.adds(t, 0.0)"), kernel("FP32", "FP32", "r = t"), contract="ulp:0"
        )

    def test_nan_that_is_eaten(self) -> None:
        zero, product = (kernel("FP16", "FP16", f"r = {e}") for e in ("pl.tile.sub(t, t)", "pl.tile.muls(t, 0.0)"))
        assert_equivalent(kernel("FP16", "FP16", "r = pl.tile.muls(pl.tile.abs(t), 0.0)"), zero, exhaustive=True)
        found = difference(zero, product, exhaustive=True, facts={"x": "finite"})
        assert found.report.counterexample.difference.actual.bits == 0x8000

    def test_overflow(self) -> None:
        on, off = (
            kernel("INT16", "INT8", f"r = pl.tile.cast(t, target_type=pl.INT8, mode='trunc', saturation_mode='{word}')")
            for word in ("on", "off")
        )
        found = difference(on, off, exhaustive=True)
        (place,) = found.report.counterexample.places
        assert not -128 <= place.element.value <= 127
        assert_equivalent(on, off, facts={"x": (-128, 127)}, exhaustive=True)

    def test_a_second_program_that_fails(self) -> None:
        wide = kernel("FP32", "FP32", "r = t")
        late = wide.replace("tile.load(x, [0, 0]", "tile.load(x, [pl.tensor.dim(x, 0) - 8, 0]")
        with pytest.raises(NotEquivalent, match="second program fails"):
            assert_equivalent(wide, late)


class TestMessage:
    FOUND = (cast("FP32", "BF16", "FP32"), cast("FP32", "BF16 round", "FP32"))

    def test_it_names_both_values_their_distance_and_the_input(self) -> None:
        text = str(difference(*self.FOUND))
        assert re.search(r"x\[\d+, \d+\] = \S+ \(0x\w{8}\)", text) and "expected" in text and "ulp apart" in text

    def test_what_it_says_to_run_shows_the_difference(self) -> None:
        error = difference(*self.FOUND)
        lines = [line.strip() for line in str(error).partition("to reproduce:")[2].splitlines() if line.strip()]
        names = {"tilegg": tilegg, **dict(zip("ab", map(tilegg.parse, self.FOUND)))}
        exec("\n".join(lines[:2]), names)
        (first, second), where = (eval(line, names) for line in lines[2:]), error.report.counterexample.difference.index
        assert first[where] != second[where] and (first != second).sum() == 1
        assert np.array_equal(names["inputs"]["x"], error.report.counterexample.inputs["x"])

    def test_equal_programs_give_the_report(self) -> None:
        report = assert_equivalent(self.FOUND[0], self.FOUND[0], inputs=5, seed=3)
        assert (report.equal, report.runs, report.seed) == (True, 5, 3)

    def test_codes_become_elements(self) -> None:
        assert elements_of("BF16", (2, 2), 0x3F80, {(1, 0): 0x4000}).astype(float).tolist() == [[1, 1], [2, 1]]
        assert elements_of("INT4", (2,), 0xF).tolist() == [-1, -1]


class TestWhatIsAProgram:
    def test_text_path_program_function_builder_and_lowering(self, tmp_path) -> None:
        text = kernel("FP32", "FP32", "r = pl.tile.muls(t, 2.0)")
        path = tmp_path / "k.py"
        path.write_text(text)
        program = tilegg.parse(text)

        def doubled(b: Builder) -> None:
            x, out = b.param("x", tensor([16, 64], FP32)), b.param("out", tensor([16, 64], FP32), "Out")
            b.ret(b.tile.store(b.tile.muls(b.tile.load(x, [0, 0], [16, 64]), 2.0), [0, 0], out))

        builder = Builder("other")
        doubled(builder)
        forms = [text, path, str(path), program, program.functions[0], doubled, builder, lambda b: builder]
        for form in [*forms, tilegg.lower(program, "a5")]:
            assert assert_equivalent(text, form, inputs=3).equal

    def test_text_that_does_not_parse(self) -> None:
        with pytest.raises(TileggError) as caught:
            assert_equivalent(kernel("FP32", "FP33", "r = t"), kernel("FP32", "FP32", "r = t"))
        (found,) = caught.value.diagnostics
        assert found.code == "TG004" and found.span.file == "the first program"

    def test_programs_that_do_not_verify(self) -> None:
        good = tilegg.parse(kernel("FP32", "FP32", "r = pl.tile.muls(t, 2.0)"))
        (f,) = good.functions
        body = [replace(s, operands=(Value("y", s.result.type), s.operands[1])) if s.name == "tile.muls" else s
                for s in f.body.statements if isinstance(s, Op)]  # fmt: skip
        statements = (*body, f.body.statements[-1])
        broken = Program("", (replace(f, body=replace(f.body, statements=statements)),))
        for call in (lambda: assert_equivalent(good, broken), lambda: assert_lowering_correct(broken, "a5")):
            with pytest.raises(TileggError) as caught:
                call()
            assert caught.value.diagnostics[0].code == "TG009"

    def test_what_is_none(self, tmp_path) -> None:
        for wrong, code in ((7, "TG030"), (tmp_path / "no.py", "TG013"), ("no line break", "TG013")):
            with pytest.raises(TileggError) as caught:
                as_program(wrong)
            assert caught.value.diagnostics[0].code == code


class TestWrongOptions:
    TEXT = kernel("FP32", "FP32", "r = t")

    @pytest.mark.parametrize("count", [0, -3])
    def test_no_inputs(self, count: int) -> None:
        with pytest.raises(ValueError, match=f"must be positive, got {count}"):
            assert_equivalent(self.TEXT, self.TEXT, inputs=count)
        with pytest.raises(ValueError, match=f"must be positive, got {count}"):
            tilegg.equivalent(tilegg.parse(self.TEXT), tilegg.parse(self.TEXT), samples=count)
        with pytest.raises(ValueError, match=f"must be positive, got {count}"):
            assert_lowering_correct(self.TEXT, "a5", inputs=count)

    @pytest.mark.parametrize("count", ["a", 1.5])
    def test_inputs_that_are_no_integer(self, count: object) -> None:
        with pytest.raises(TypeError, match=f"number of inputs must be an integer, got {count!r}"):
            assert_equivalent(self.TEXT, self.TEXT, inputs=count)  # type: ignore[arg-type]

    @pytest.mark.parametrize("option", ["dims", "facts"])
    def test_names_that_the_program_has_not(self, option: str) -> None:
        wrong = {option: {"zz": 3 if option == "dims" else (0, 1)}}
        checks = (
            lambda: assert_equivalent(self.TEXT, self.TEXT, **wrong),
            lambda: assert_equivalent(self.TEXT, self.TEXT, exhaustive=True, **wrong),
            lambda: assert_lowering_correct(self.TEXT, "a5", **wrong),
        )
        for check in checks:
            with pytest.raises(TileggError, match="zz") as caught:
                check()
            assert caught.value.diagnostics[0].code == "TG030"

    def test_what_is_no_program(self) -> None:
        program = tilegg.parse(self.TEXT)
        with pytest.raises(TypeError, match=r"^compare_programs takes a Program or Function, not str: .*tilegg\.parse"):
            compare_programs(program, self.TEXT)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^lower takes a Program, not str: .*tilegg\.parse"):
            check_lowering(self.TEXT, "a5")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"^run takes a Program or Function, not Lowered: give its \.program$"):
            tilegg.run(tilegg.lower(program, "a5"), {})  # type: ignore[arg-type]

    def test_sizes_of_a_run_and_of_the_signal_check(self) -> None:
        program = tilegg.parse(self.TEXT)
        wrong = {"zz": 3}
        checks = (lambda: tilegg.run(program, {}, dims=wrong), lambda: tilegg.check_signals(program, dims=wrong))
        for check in checks:
            with pytest.raises(TileggError, match="dims zz: the program has no size of this name"):
                check()


class TestLowerings:
    def test_every_target_by_default(self) -> None:
        reports = assert_lowering_correct(cast("FP32", "INT32", "FP16 round", "INT8 trunc"), inputs=8)
        assert [r.lowered.arch for r in reports] == ["a2a3", "a5"]

    def test_inexact_casts_and_recipes_are_put_back(self) -> None:
        (report,) = assert_lowering_correct(cast("INT32", "BF16"), "a5", inputs=8)
        assert [c.direct.result.type.dtype.name for c in report.inexact] == ["BF16"] and report.acting["k"].equal
        text = kernel("FP32", "FP32", "s = pl.tile.sin(t)", "c = pl.tile.cos(t)",
                      "r = pl.tile.sin(pl.tile.add(s, c))")  # fmt: skip
        for contract in ("exact", "faithful"):
            for report in assert_lowering_correct(text, contract=contract, inputs=8):
                assert [m.use.direct.name for m in report.recipes] == ["tile.sin", "tile.cos", "tile.sin"]
                assert "error at most" in report.render() and len(report.to_json()["recipes"]) == 3

    def test_what_the_target_does_with_casts_is_compared(self) -> None:
        (report,) = assert_lowering_correct(cast("BF16", "FP32", "FP8E4M3FN"), "a5", exhaustive=True)
        assert report.functions["k"].cases == report.acting["k"].cases == 65536

    @pytest.mark.parametrize("name", ["mode", "operand"])
    def test_a_wrong_lowering_is_found(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        right = lower_module.lower

        def wrong(program, *args, **options):
            made = right(program, *args, **options)
            (f,) = made.program.functions
            changed = replace(f, body=replace(f.body, statements=tuple(map(broken, f.body.statements))))
            return replace(made, program=replace(made.program, functions=(changed,)))

        def broken(s):
            if name == "mode" and isinstance(s, Op) and s.name == "tile.cast":
                return replace(s, attrs={**s.attrs, "mode": "floor"})
            if name == "operand" and isinstance(s, Op) and s.name == "tile.sub":
                return replace(s, operands=s.operands[::-1])
            return s

        monkeypatch.setattr("tilegg.testing.lowering.lower", wrong)
        lines = ("u = pl.tile.cast(t, target_type=pl.FP16, mode='rint')", "w = pl.tile.muls(u, 3.0)",
                 "r = pl.tile.sub(u, w)")  # fmt: skip
        with pytest.raises(NotEquivalent, match=r"a5, k and its lowering: the programs differ"):
            assert_lowering_correct(kernel("FP32", "FP16", *lines), "a5")

    @pytest.mark.parametrize("arch", ["a2a3", "a5"])
    def test_left_out_roundings_need_a_bound(self, arch: str) -> None:
        text = kernel("FP32", "FP32", "r = pl.tile.add(pl.tile.muls(t, 3.1), t)")
        assert_lowering_correct(text, arch, contract="exact")
        with pytest.raises(NotEquivalent, match="allow them with within='ulp:2'"):
            assert_lowering_correct(text, arch, contract="contracted")
        assert_lowering_correct(text, arch, contract="contracted", within="ulp:1")

    def test_advice_is_for_what_leaving_roundings_out_may_do(self) -> None:
        sums = "r = pl.tile.sub(pl.tile.add(pl.tile.muls(t, 3.1), t), pl.tile.muls(t, 4.1))"
        program = tilegg.parse(kernel("FP32", "FP32", sums))
        apart, infinite = (
            check_lowering(program, "a5", contract="contracted", facts={"x": limits})
            for limits in ((1, 9), (1e38, 3e38))
        )
        assert "--within ulp:N, with a large N where later steps cancel" in apart.advice("--within {}")
        assert not infinite.ok and not infinite.advice("--within {}")
        assert not check_lowering(program, "a5").advice("--within {}")

    def test_the_objective_is_that_of_the_lowering(self) -> None:
        text = cast("FP32", "FP16 rint", "INT8 rint")
        for objective in ("cycles", "instructions", "accuracy"):
            (report,) = assert_lowering_correct(text, "a5", objective=objective, within=None, inputs=4)
            assert report.lowered.objective == objective
        (report,) = assert_lowering_correct(text, "a5", inputs=4)
        assert report.lowered.objective == "cycles" and report.functions["k"].contract == "exact"
        program = tilegg.parse(text)
        assert check_lowering(program, "a5", objective="accuracy", inputs=4).lowered.objective == "accuracy"
        with pytest.raises(TileggError, match="unknown objective 'speed'"):
            assert_lowering_correct(text, "a5", objective="speed")

    @pytest.mark.parametrize("within", ["near", 2, "ulp:-1"])
    def test_unknown_bounds_are_diagnosed(self, within: object) -> None:
        with pytest.raises(TileggError, match="unknown contract") as caught:
            assert_lowering_correct(cast("FP32", "FP16"), "a5", within=within)
        assert caught.value.diagnostics[0].code == "TG040"

    def test_without_a_bound_left_out_roundings_are_told(self) -> None:
        text = kernel("FP32", "FP32", "r = pl.tile.add(pl.tile.muls(t, 3.1), t)")
        with pytest.raises(NotEquivalent, match="allow them with within='ulp:2'"):
            assert_lowering_correct(text, "a5", contract="contracted", within=None)

    def test_what_a_target_cannot_do_is_diagnosed(self) -> None:
        with pytest.raises(TileggError) as caught:
            assert_lowering_correct(cast("FP32", "FP4"), "a2a3")
        assert caught.value.diagnostics[0].code == "TG020"

    def test_facts_name_parameters(self) -> None:
        with pytest.raises(TileggError) as caught:
            assert_lowering_correct(cast("FP32", "FP16"), "a5", facts={"y": (0, 1)})
        assert caught.value.diagnostics[0].code == "TG030"


class TestRecipes:
    """What recipes give is measured on the inputs that are drawn."""

    TEXT = kernel("FP32", "FP32", "s = pl.tile.sin(t)", "r = pl.tile.cos(s)")

    def test_the_errors_stand_beside_the_bounds(self) -> None:
        for report in assert_lowering_correct(self.TEXT, inputs=8, facts={"x": (-2000, 2000)}, assembly=False):
            assert [m.use.direct.name for m in report.recipes] == ["tile.sin", "tile.cos"]
            for m, data in zip(report.recipes, report.to_json()["recipes"]):
                assert m.bands and m.largest <= 1 + 2**-23 and data["wrong"] is None
                for band, found in zip(m.bands, data["errors"]):
                    assert band.count == found["arguments"] == 8 * 16 * 64
                    assert 1e-8 < found["measured"] == band.error <= band.stated
                    real = {"tile.sin": np.sin, "tile.cos": np.cos}[m.use.direct.name]
                    assert abs(real(np.float64(band.at))) <= 1
            assert "measured" in report.render()

    def test_arguments_that_nothing_is_stated_for_do_not_count(self) -> None:
        (report,) = assert_lowering_correct(self.TEXT, "a5", inputs=4, facts={"x": (2e5, 1e7)}, assembly=False)
        assert [b.count for b in report.recipes[0].bands] == [0, 0]
        assert "no such argument came up" in report.render()

    @pytest.mark.parametrize("arch", ["a2a3", "a5"])
    def test_a_bound_that_is_too_small_fails(self, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for r in [r for r in RULES.values() if r.bound is not None]:
            monkeypatch.setitem(RULES, r.name, replace(r, bound=Bound(((3.0, 1e-9),))))
        message = r"(?s)does not keep its bound.*x = \S+ gives .* at most 1e-09 is stated"
        with pytest.raises(AssertionError, match=message):
            assert_lowering_correct(self.TEXT, arch, inputs=8)

    def test_a_recipe_that_was_changed_fails(self) -> None:
        program = tilegg.parse(self.TEXT)
        made = tilegg.lower(program, "a5")
        (f,) = made.program.functions
        at, first = next((i, s) for i, s in enumerate(f.body.statements) if isinstance(s, Op) and s.name == "tile.muls")
        changed = replace(first, operands=(first.operands[0], replace(first.operands[1], value=0.3183)))
        body = replace(f.body, statements=(*f.body.statements[:at], changed, *f.body.statements[at + 1 :]))
        wrong = replace(made, program=replace(made.program, functions=(replace(f, body=body),)))
        assert check_lowering(program, lowered=made, inputs=8).ok
        report = check_lowering(program, lowered=wrong, inputs=8)
        assert report.functions["k"].equal and not report.ok and "broken: x =" in report.render()

    def test_every_composite_with_a_bound_has_its_real_function(self) -> None:
        assert {r.lhs.op for r in RULES.values() if r.bound is not None} <= set(REAL)
