"""One test per declared rule, named after it, and per operation with a transfer function; the checks themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tilegg.ir import valueset as vs
from tilegg.ir.convert import decode, encode
from tilegg.ir.dtypes import BF16, FP16, FP32, INT8, INT32, INT64, UINT64
from tilegg.ir.members import contains
from tilegg.ir.op import OPS
from tilegg.rules.casts import cast_signature_is_as_expected
from tilegg.rules.check import check_all, check_rule, summary
from tilegg.rules.check_conditions import holds_exactly
from tilegg.rules.check_values import check_values, operations, tightest
from tilegg.rules.rule import RULES, Var


@pytest.mark.parametrize("name", list(RULES))
def test_rule(name: str) -> None:
    found = check_rule(RULES[name], samples=25)
    assert found.ok, found.failures
    assert found.instances >= (3 if name == "cast.road.faithful.1" else 10) and found.values > 0


#: Operations that take particular shapes or dtypes only, so that few random operands suit them.
PARTICULAR = {"tile.histogram", "tile.pair_reduce_sum", "tile.gather_mask", "tile.extract"}


@pytest.mark.parametrize("name", [d.name for d in operations()])
def test_values_of(name: str) -> None:
    found = check_values(OPS[name], samples=60)
    assert not found.failures
    assert found.samples > 20 or name in PARTICULAR


def test_every_source_of_at_most_16_bits_is_run_whole() -> None:
    found = check_rule(RULES["cast.identity"], samples=40)
    assert found.exhaustive > 20


def test_an_unsound_rule_is_caught_with_a_counterexample() -> None:
    rule = RULES["cast.fuse.exact-first"]
    broken = replace(rule, when=rule.when[1:])
    found = check_rule(broken, samples=40)
    assert not found.ok and "on the left" in found.failures[0]


def test_an_ill_typed_right_side_is_caught() -> None:
    rule = RULES["cast.fuse.exact-first"]
    broken = replace(rule, rhs=Var("x", "value"))
    assert check_rule(broken, samples=40).failures


def test_the_summary_names_every_rule_and_counts_what_holds() -> None:
    checks = check_all(samples=2)
    text = summary(checks)
    assert all(name in text for name in RULES)
    assert f"of {len(RULES)} rules hold" in text


def test_the_cast_constructor_has_the_argument_order_of_the_patterns() -> None:
    assert cast_signature_is_as_expected()


def test_exact_representation_is_decided_element_by_element() -> None:
    x = np.array([1.0, 0.1, -0.0, np.inf, np.nan, 300.0, 65520.0], np.float32)
    assert holds_exactly(x, FP32, INT8).tolist() == [True, False, False, False, False, False, False]
    assert holds_exactly(x, FP32, FP16).tolist() == [True, False, True, True, True, True, False]
    big = np.array([2**53 + 1, 2**63 - 1, 2**62], np.int64)
    assert holds_exactly(big, INT64, FP32).tolist() == [False, False, True]
    top = np.array([2**64 - 1, 2**63], np.uint64)
    assert holds_exactly(top, UINT64, INT64).tolist() == [False, False]


def test_membership_minds_grid_significand_zero_sign_and_specials() -> None:
    some = vs.ValueSet(-4, 4, -1, 3, nan=True)
    numbers = np.array([0.5, 0.25, 3.5, 4.5, -0.0, 0.0, np.nan, np.inf])
    assert contains(some, numbers).tolist() == [True, False, True, False, False, True, True, False]
    assert contains(replace(some, negative_zero=True), np.array([-0.0])).all()
    assert contains(vs.interval(0, 2**64 - 1, 0), np.array([2**64 - 1], np.uint64)).all()
    assert not contains(vs.interval(0, 2**64 - 2, 0), np.array([2**64 - 1], np.uint64)).any()


def test_the_tightest_set_holds_exactly_what_it_was_made_from() -> None:
    numbers = decode(encode([0.5, -3.0, 0.0], BF16), BF16)
    found = tightest(numbers)
    assert contains(found, numbers).all()
    assert (found.lo, found.hi, found.grid, found.sig, found.nan, found.negative_zero) == (-3, 0.5, -1, 2, False, False)


@pytest.mark.parametrize(
    ("values", "dtype", "mode", "saturate", "number"),
    [
        (vs.ValueSet(0, 1, 0, 1, inf=True), BF16, "rint", True, float(BF16.max_value)),
        (vs.ValueSet(2.0**120, 2.0**120, 120, 1), FP16, "trunc", False, 65504.0),
        (vs.ValueSet(3, 5, 0, nan=True), INT32, "rint", True, 0),
        (vs.ValueSet(-1e-30, -1e-30, -149), FP16, "rint", False, -0.0),
        (vs.ValueSet(100, 300, 0), INT8, "rint", False, 44),
    ],
)
def test_a_cast_set_holds_clamped_infinities_overflows_and_nan(
    values: vs.ValueSet, dtype: object, mode: str, saturate: bool, number: float
) -> None:
    found = vs.cast_to(values, dtype, mode, saturate)  # type: ignore[arg-type]
    assert contains(found, np.array([number])).all()


def test_a_fraction_becomes_true() -> None:
    from tilegg.ir.dtypes import BOOL

    assert contains(vs.cast_to(vs.ValueSet(0.25, 0.25, -2), BOOL, "trunc"), np.array([1])).all()


def test_literals_wrap_as_the_operations_do() -> None:
    assert vs.constant(1 << 20, INT8) == vs.constant(0, INT8)
    assert vs.constant(200, INT8).lo == -56
    assert vs.scalar_like(vs.constant(300, INT32), INT8) == vs.of_dtype(INT8)
    assert vs.scalar_like(vs.constant(0.1, FP32), FP16).hi > 0.0999


def test_a_clamp_drops_infinities_on_the_clamped_sides_only() -> None:
    from tilegg.ir.types import tile

    call = vs.Call("clamp", tile((1, 1), FP32), {}, {})
    everything = replace(vs.of_dtype(FP32), nan=False)
    below = vs.minimum(everything, vs.constant(127.0, FP32), call=call)
    assert (below.plus_inf, below.minus_inf, below.hi) == (False, True, 127)
    both = vs.maximum(below, vs.constant(-128.0, FP32), call=call)
    assert both.finite and (both.lo, both.hi) == (-128, 127)
    whole = vs.cast_to(both, INT32, "rint")
    assert (whole.lo, whole.hi) == (-128, 127)
