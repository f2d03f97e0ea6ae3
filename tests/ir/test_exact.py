"""Conversion of single numbers against conversion of arrays, and rounding of ratios against Fractions."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tilegg.ir.convert import ROUND_MODES, all_values, convert, decode
from tilegg.ir.dtypes import BOOL, DTYPES, FP8E8M0, FP16, HF8, INT8, DType
from tilegg.ir.exact import converted, rounded, same
from tilegg.ir.samples import hostile, special_values

MODES = ROUND_MODES[1:]
NUMERIC = [d for d in DTYPES.values() if d.is_numeric]


@pytest.mark.parametrize("src", NUMERIC, ids=repr)
def test_single_numbers_are_converted_as_arrays_are(src: DType) -> None:
    generator = np.random.default_rng(3)
    compared = 0
    for dst, mode, saturate in itertools.product(NUMERIC, MODES, (True, False)):
        few = src.bits <= 8
        array = all_values(src) if few else np.concatenate([special_values(src), hostile(src, dst, generator, 20)])
        array = array[:: max(1, array.size // 60)]
        results = decode(convert(array, src, dst, mode, saturate), dst).tolist()
        for number, expected in zip(decode(array, src).tolist(), results, strict=True):
            found = converted(number, src, dst, mode, saturate)
            compared += found is not None
            assert found is None or same(found, expected), f"{number!r} to {dst} {mode} {saturate}: {found!r}"
    assert (compared > 2000) == (src is not BOOL)


def test_what_single_numbers_are_not_converted_to() -> None:
    assert converted(1, INT8, BOOL, "rint", True) is None and converted(1.0, FP16, HF8, "rint", True) is None
    assert converted(1.0, FP16, FP8E8M0, "rint", True) is None


@given(st.fractions(-100, 100, max_denominator=64), st.sampled_from(MODES))
def test_ratios_are_rounded_as_their_modes_say(ratio: Fraction, mode: str) -> None:
    found = rounded(*ratio.as_integer_ratio(), mode)
    below, above = ratio.numerator // ratio.denominator, -(-ratio.numerator // ratio.denominator)
    distance = abs(ratio - found)
    assert found in (below, above)
    match mode:
        case "floor":
            assert found == below
        case "ceil":
            assert found == above
        case "trunc":
            assert abs(found) <= abs(ratio)
        case "odd":
            assert below == above or found % 2 == 1
        case _:
            assert distance <= Fraction(1, 2)
            tie = distance == Fraction(1, 2)
            assert not tie or (found % 2 == 0 if mode == "rint" else abs(found) > abs(ratio))
