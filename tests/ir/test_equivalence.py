"""Equivalence testing: what it finds, how small the counterexamples get, and that nothing depends on luck."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.ir.compare import compare, largest_ulp, output_dtypes
from tilegg.ir.convert import decode
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, BOOL, DTYPES, FP8E4M3FN, FP16, FP32, INDEX, INT8, INT16, INT32, UINT8
from tilegg.ir.equivalence import Domain, equivalent
from tilegg.ir.inputs import assumed_domains, dtypes_of, restrict
from tilegg.ir.program import Const, Param, Program, Value
from tilegg.ir.samples import random_bits
from tilegg.ir.shrink import complexity
from tilegg.ir.types import scalar, tensor

sys.path.insert(0, str(Path(__file__).parent))
from kernels import Kernel, elementwise


def casts(*dtypes, mode="round"):
    """A build function: cast x through the dtypes."""

    def build(k, x):
        for d in dtypes:
            x = k.cast(x, target_type=d, mode=mode)
        return x

    return build


class TestFinds:
    def differs(self, a, b, *dtypes, out=None, **options):
        report = equivalent(elementwise(a, *dtypes, out=out), elementwise(b, *dtypes, out=out), **options)
        assert not report.equal
        return report.counterexample

    def test_commuted_operands_are_the_same(self):
        a = elementwise(lambda k, x, y: k.mul(x, y), FP32, FP32)
        b = elementwise(lambda k, x, y: k.mul(y, x), FP32, FP32)
        report = equivalent(a, b)
        assert report.equal
        assert (report.runs, report.rejected, report.elements) == (64, 0, 64 * 64)

    def test_negative_zero(self):
        found = self.differs(lambda k, x: k.adds(x, 0.0), lambda k, x: x, FP32)
        assert [str(p.element) for p in found.places] == ["-0.0 (0x80000000)"]

    def test_two_roundings_for_one(self):
        found = self.differs(casts(INT8), casts(FP16, INT8), FP32, out=INT8)
        (place,) = found.places
        value = place.element.value
        assert int(found.difference.expected.value) == np.floor(abs(value) + 0.5) * np.sign(value)
        assert found.difference.actual.value != found.difference.expected.value

    def test_a_lost_rounding(self):
        found = self.differs(casts(BF16, FP32), lambda k, x: x, FP32)
        assert len(found.places) == 1
        assert found.fill["x"].value == 0.0

    def test_another_round_mode(self):
        found = self.differs(casts(INT32), casts(INT32, mode="rint"), FP32, out=INT32)
        # The smallest tie that the two modes break differently.
        assert [p.element.value for p in found.places] in ([0.5], [-0.5])

    def test_ties_behind_an_amax_scaling(self):
        def quantise(mode):
            def build(k, x):
                scaled = k.muls(k.row_expand_div(x, k.row_max(k.abs(x))), 127.0)
                return k.cast(scaled, target_type=INT8, mode=mode)

            return build

        found = self.differs(quantise("rint"), quantise("round"), FP32, out=INT8)
        # One element sets the scale, another is then a tie.
        assert len(found.places) == 2
        assert 127.0 in [abs(p.element.value) for p in found.places]

    def test_large_inputs_shrink_quickly(self):
        a = elementwise(lambda k, x: k.row_expand(x, k.row_max(x)), FP32, shape=(64, 512))
        b = elementwise(lambda k, x: k.row_expand(x, k.row_max(k.abs(x))), FP32, shape=(64, 512))
        report = equivalent(a, b)
        assert len(report.counterexample.places) == 1

    def test_operands_in_the_wrong_order(self):
        found = self.differs(lambda k, x, y: k.sub(x, y), lambda k, x, y: k.sub(y, x), INT32, INT32)
        assert len(found.places) == 1
        assert found.places[0].element.value == 1

    def test_a_saturation_mode(self):
        def off(k, x):
            return k.cast(x, target_type=INT8, saturation_mode="off")

        found = self.differs(casts(INT8), off, INT16, out=INT8)
        (place,) = found.places
        assert not -128 <= place.element.value <= 127

    def test_reductions_need_two_elements(self):
        found = self.differs(
            lambda k, x: k.row_expand(x, k.row_sum(x)), lambda k, x: k.row_expand(x, k.row_max(x)), INT32
        )
        assert 1 <= len(found.places) <= 2

    def test_a_wide_valid_shape(self):
        a = elementwise(lambda k, x: k.adds(x, 1.0), FP32, valid=(4, 8))
        b = elementwise(lambda k, x: k.adds(x, 1.0), FP32, valid=(4, 9))
        found = equivalent(a, b).counterexample
        assert found.difference.index == (0, 8)

    def test_a_second_program_that_fails(self):
        k = Kernel(x=tensor([4, 16], FP32), out=("Out", tensor([4, 16], FP32)))
        start = k("scalar.add", k("tensor.dim", k.p_x, axis=0), -2)
        broken = k.returns(k.store(k.load(k.p_x, [start, 0], [4, 16]), [0, 0], k.p_out))
        found = equivalent(elementwise(lambda k, x: x, FP32), broken).counterexample
        assert found.failure.code == "TG032"
        assert "second program fails" in found.render()

    def test_every_dtype_can_be_drawn(self):
        for dtype in DTYPES.values():
            if dtype.is_numeric:
                same = elementwise(lambda k, x: x, dtype)
                assert equivalent(same, same, samples=10).equal


def test_x_minus_x_equals_absolute_value_times_zero():
    # Both are +0, and NaN for infinities and NaN.
    a = elementwise(lambda k, x: k.sub(x, x), FP16)
    b = elementwise(lambda k, x: k.muls(k.abs(x), 0.0), FP16)
    assert equivalent(a, b, samples=99).equal


class TestFacts:
    A = elementwise(casts(FP16, INT8), FP32, out=INT8)
    B = elementwise(casts(INT16, INT8), FP32, out=INT8)

    def test_ranges_are_respected(self):
        identity = elementwise(lambda k, x: x, FP32)
        clamp = elementwise(lambda k, x: k.maximums(k.minimums(x, 100.0), -3.0), FP32)
        assert not equivalent(identity, clamp).equal
        assert equivalent(identity, clamp, facts={"x": (-3, 100)}).equal
        assert not equivalent(identity, clamp, facts={"x": (-4, 100)}, samples=200).equal

    def test_finite_inputs(self):
        a = elementwise(lambda k, x: k.muls(x, 0.0), FP32)
        b = elementwise(lambda k, x: k.muls(k.minimums(k.maximums(x, -1.0), 1.0), 0.0), FP32)
        assert not equivalent(a, b).equal
        assert equivalent(a, b, facts={"x": "finite"}).equal

    def test_assumptions_of_the_program_count(self):
        a = elementwise(lambda k, x: casts(BF16, INT32)(k, k.assume(x, -256, 256)), INT16, out=INT32)
        b = elementwise(casts(INT32), INT16, out=INT32)
        assert assumed_domains(a) == {"x": Domain(-256, 256)}
        report = equivalent(a, b)
        assert report.equal
        assert report.rejected == 0
        assert not equivalent(elementwise(casts(BF16, INT32), INT16, out=INT32), b).equal

    def test_inputs_that_break_an_inner_assumption_do_not_count(self):
        def halved(k, x):
            return k.minimums(k.assume(k.muls(x, 0.5), 0, 100), 100.0)

        a = elementwise(halved, FP32, shape=(1, 2))
        b = elementwise(lambda k, x: k.muls(x, 0.5), FP32, shape=(1, 2))
        report = equivalent(a, b, samples=200, facts={"x": (0.0, 1e30)})
        assert report.equal
        assert report.rejected > 0
        assert report.runs > 0

    def test_counterexamples_stay_inside(self):
        a = elementwise(casts(INT8), FP32, out=INT8)
        found = equivalent(a, self.A, facts={"x": (5.25, 90)}, samples=200).counterexample
        x = found.inputs["x"]
        assert x.min() >= 5.25
        assert x.max() <= 90

    def test_bad_facts(self):
        for facts in ({"zz": (0, 1)}, {"x": "small"}, {"x": (2, 1)}, {"x": (0.1, 0.2)}):
            with pytest.raises(TileggError) as caught:
                f = elementwise(lambda k, x: x, INT32)
                equivalent(f, f, facts=facts)
            assert caught.value.diagnostics[0].code == "TG030"

    def test_restriction_keeps_ends_and_leaves_the_rest(self):
        rng = np.random.default_rng(0)
        for dtype in (FP32, BF16, INT8, UINT8, FP8E4M3FN):
            elements = random_bits(dtype, rng, 500)
            inside = decode(restrict(elements, dtype, Domain(3, 7.3), rng), dtype)
            assert inside.min() == 3
            assert inside.max() <= 7.3


class TestContracts:
    A = elementwise(lambda k, x, y: k.div(x, y), FP32, FP32)
    B = elementwise(lambda k, x, y: k.mul(x, k.recip(y)), FP32, FP32)
    FACTS = {"x": (1, 2), "y": (1, 2)}  # noqa: RUF012

    def test_ulp_bounds(self):
        assert not equivalent(self.A, self.B, facts=self.FACTS).equal
        report = equivalent(self.A, self.B, facts=self.FACTS, contract="ulp:2")
        assert report.equal
        assert 0 < report.max_ulp <= 2
        assert not equivalent(self.A, self.B, facts=self.FACTS, contract="ulp:0.5").equal

    def test_integers_are_compared_exactly(self):
        one, two = {"r": np.array([1], np.int32)}, {"r": np.array([2], np.int32)}
        assert compare(one, two, {"r": INT32}, "ulp:5").index == (0,)

    @pytest.mark.parametrize("dtype", [INT8, INT32, INDEX, UINT8, BOOL])
    def test_integers_are_units_apart(self, dtype):
        top = 1 if dtype is BOOL else 100
        one, two = {"r": np.array([0, 1], dtype.storage)}, {"r": np.array([0, 0], dtype.storage)}
        far = {"r": np.array([top, 0], dtype.storage)}
        assert compare(one, two, {"r": dtype}).ulp == largest_ulp(one, two, {"r": dtype}) == 1
        assert largest_ulp(two, far, {"r": dtype}) == top
        assert largest_ulp(one, one, {"r": dtype}) == 0

    def test_a_report_says_how_far_integers_are_apart(self):
        a, b = elementwise(lambda k, x: x, INT32), elementwise(lambda k, x: k.adds(x, 3), INT32)
        report = equivalent(a, b)
        assert report.max_ulp >= 3 and report.to_json()["counterexample"]["ulp"] == 3
        assert "ulp" not in report.render()

    @pytest.mark.parametrize("contract", ["", "close", "ulp", "ulp:", "ulp:-1", "ulp:nan", "exact:1"])
    def test_unknown_contracts(self, contract):
        with pytest.raises(TileggError) as caught:
            equivalent(self.A, self.B, contract=contract)
        assert caught.value.diagnostics[0].code == "TG040"


class TestCompare:
    def test_any_nan_equals_any_other(self):
        a = np.array([0x7FC00000], np.uint32).view(np.float32)
        b = np.array([0xFF812345], np.uint32).view(np.float32)
        assert compare({"r": a}, {"r": b}, {"r": FP32}) is None
        assert compare({"r": a}, {"r": np.ones(1, np.float32)}, {"r": FP32}).ulp == np.inf

    def test_zeros_differ_exactly_and_agree_in_ulp(self):
        a, b = np.zeros(1, np.float32), -np.zeros(1, np.float32)
        assert compare({"r": a}, {"r": b}, {"r": FP32}).ulp == 0
        assert compare({"r": a}, {"r": b}, {"r": FP32}, "ulp:0") is None

    def test_missing_outputs_and_shapes(self):
        one = {"r": np.zeros((1, 2), np.float32)}
        assert "no output r" in compare(one, {}, {"r": FP32}).reason
        assert "shapes" in compare(one, {"r": np.zeros((2, 1), np.float32)}, {"r": FP32}).reason

    def test_counts_and_scalars(self):
        found = compare({"r": np.arange(4)}, {"r": np.array([0, 2, 3, 3])}, {"r": INDEX})
        assert (found.index, found.count, found.expected.value, found.actual.value) == ((1,), 2, 1, 2)
        assert compare({"r": 1.0}, {"r": 1.0}, {"r": FP32}) is None
        assert compare({"r": 1.0}, {"r": 2.0}, {"r": FP32}).index == ()


class TestPrograms:
    def test_parameters_pair_by_position_when_names_differ(self):
        a = elementwise(lambda k, x: k.neg(x), FP32)
        k = Kernel(x__ssa_v0=tensor([4, 16], FP32), out__ssa_v0=("Out", tensor([4, 16], FP32)))
        t = k.load(k.p_x__ssa_v0, [0, 0], [4, 16])
        b = k.returns(k.store(k.neg(t), [0, 0], k.p_out__ssa_v0))
        report = equivalent(Program("A", (a,)), Program("B", (b,)))
        assert report.equal
        assert report.elements == 64 * 64

    def test_parameters_that_do_not_match(self):
        a = elementwise(lambda k, x: x, FP32)
        others = (
            elementwise(lambda k, x: x, FP16),
            elementwise(lambda k, x, y: x, FP32, FP32),
            elementwise(lambda k, x: x, FP32, shape=(4, 8)),
        )
        for b in others:
            with pytest.raises(TileggError) as caught:
                equivalent(a, b)
            assert caught.value.diagnostics[0].code == "TG030"

    def test_dynamic_sizes_are_drawn(self):
        def kernel(limit):
            k = Kernel(x=tensor([1, "n"], INT32), out=("Out", tensor([1, "n"], INT32)))
            n = k("scalar.min", k("tensor.dim", k.p_x, axis=1), limit)
            t = k.load(k.p_x, [0, 0], [1, 64], [1, n])
            k.store(k.adds(t, Const(1, INT32)), [0, 0], k.p_out)
            return k.returns()

        assert equivalent(kernel(64), kernel(64)).equal
        found = equivalent(kernel(64), kernel(32)).counterexample
        assert found.inputs["x"].shape == (1, 64)
        assert equivalent(kernel(64), kernel(32), dims={"n": 32}).equal

    def test_scalars_are_drawn_and_shrunk(self):
        def kernel(limit):
            k = Kernel(a=scalar(INT32))
            return k.returns(k("scalar.min", k.p_a, Const(limit, INT32)))

        found = equivalent(kernel(1000), kernel(10)).counterexample
        assert [p.parameter for p in found.places] == ["a"]
        assert found.places[0].element.value > 10
        assert found.difference.output == "return"

    def test_an_error_of_the_first_program_is_raised(self):
        k = Kernel(x=tensor([2, 2], FP32))
        past = k("tensor.dim", k.p_x, axis=0)
        f = k.returns(k("tensor.read", k.p_x, [past, 0]))
        with pytest.raises(TileggError) as caught:
            equivalent(f, f, samples=3)
        assert caught.value.diagnostics[0].code == "TG032"

    def test_outputs_and_dtypes(self):
        f = elementwise(casts(INT8), FP32, out=INT8)
        assert output_dtypes(f) == {"out": INT8, "return": INT8}
        assert [d.name for d in dtypes_of(f)] == ["FP32", "INT8", "INDEX"]
        assert f.params == (
            Param(Value("x", tensor([4, 16], FP32))),
            Param(Value("out", tensor([4, 16], INT8)), "Out"),
        )


class TestReports:
    A = elementwise(casts(INT8), FP32, out=INT8)
    B = elementwise(casts(FP16, INT8), FP32, out=INT8)

    def test_one_seed_gives_one_report(self):
        first, second = equivalent(self.A, self.B, seed=3), equivalent(self.A, self.B, seed=3)
        assert first.render() == second.render()
        assert first.to_json() == second.to_json()

    def test_text(self):
        text = equivalent(self.A, self.B).render()
        assert text.startswith("the programs differ under exact (")
        assert "expected" in text
        assert "(0x" in text
        same = equivalent(self.A, self.A, samples=5).render()
        assert same == "no difference under exact (5 inputs, 320 output elements, seed 0)"

    def test_json_is_plain(self):
        data = json.loads(json.dumps(equivalent(self.A, self.B).to_json(), allow_nan=False))
        assert data["schema"] == 1
        assert data["equal"] is False
        (place,) = data["counterexample"]["inputs"]
        assert place["parameter"] == "x"
        assert data["counterexample"]["output"] == "out"
        inf = elementwise(lambda k, x: k.sub(x, x), FP32), elementwise(lambda k, x: k.muls(x, 0.0), FP32)
        json.dumps(equivalent(*inf, samples=9).to_json(), allow_nan=False)

    def test_progress(self):
        seen = []
        equivalent(self.A, self.A, samples=3, progress=lambda done, of: seen.append((done, of)))
        assert seen == [(1, 3), (2, 3), (3, 3)]

    def test_simplicity(self):
        order = [0, 1, -1, 2.0, 3, 0.5, 1.25, 1.1, float("inf"), float("nan")]
        ranks = [complexity(v) for v in order]
        assert ranks == sorted(ranks)
