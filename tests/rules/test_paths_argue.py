"""Proofs by argument against running every value, and the conversions of real kernels that need no other proof."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys
from pathlib import Path

import pytest
from tilegg.ir import valueset
from tilegg.ir.convert import ROUND_MODES, all_values, encode, same_bits
from tilegg.ir.dtypes import BF16, FP4, FP8E4M3FN, FP8E5M2, FP16, FP32, HF8, INT4, INT8, INT16, INT32, INT64, UINT8
from tilegg.ir.valueset import ValueSet
from tilegg.rules.paths_argue import argued, belongs
from tilegg.rules.paths_chain import Conversion, Verdict, run
from tilegg.rules.paths_values import members

from .road_chains import conversions

MODES = ROUND_MODES[1:]
STOPS = (BF16, FP16, FP8E5M2, INT8, INT16, INT32, FP32)
NORMED = ValueSet(-127.0001, 127.0001, -149, 24, nan=True, negative_zero=True)
KERNELS = Path(__file__).parents[2] / "benchmarks" / "corpus"


def narrowed(src, values: ValueSet) -> ValueSet:
    whole = valueset.of_dtype(src)
    return ValueSet(
        max(values.lo, whole.lo), min(values.hi, whole.hi), max(values.grid, whole.grid), min(values.sig, whole.sig),
        values.nan and whole.nan, values.inf and whole.inf, values.negative_zero and whole.negative_zero,
    )  # fmt: skip


@pytest.mark.parametrize("src", [FP16, BF16, INT16, INT8, FP8E4M3FN], ids=repr)
def test_no_argument_contradicts_the_values(src) -> None:
    sets = [valueset.of_dtype(src), narrowed(src, NORMED), narrowed(src, ValueSet(0, 15.5, -20, nan=True)),
            narrowed(src, ValueSet(-40000, 300, -3)), narrowed(src, ValueSet(130, 60000, -1))]  # fmt: skip
    everything = all_values(src)
    inside = {values: everything[members(everything, src, values)] for values in sets}
    decided = {True: 0, False: 0}
    for stop, dst in itertools.product(STOPS, (INT4, INT8, UINT8, INT32, FP16, BF16, FP8E4M3FN, FP4)):
        if src in (stop, dst) or stop is dst:
            continue
        for modes in itertools.product(MODES, repeat=2):
            for values, saturate in itertools.product(sets, (True, False)):
                chain = conversions((src, stop, dst), modes, saturate)
                request = Conversion(src, dst, modes[-1], chain[-1].saturate)
                verdict = argued(request, chain, values)
                if verdict is None:
                    continue
                decided[verdict.exact] += 1
                equal = same_bits(run(chain, inside[values]), request.apply(inside[values]), dst)
                assert verdict.exact == bool(equal.all()), f"{chain} {values}: {verdict}"
                if verdict.witness is not None:
                    one = encode([verdict.witness], src, "rint")
                    assert not same_bits(run(chain, one), request.apply(one), dst)[0], f"{chain}: {verdict}"
                    assert belongs(verdict.witness, src, values)
    assert min(decided.values()) > 300, decided


@pytest.mark.parametrize(
    ("dtypes", "modes", "values", "why"),
    [
        ((FP32, FP16, INT8), ("odd", "rint"), NORMED, "FP16 rounds to odd with two bits to spare"),
        ((FP32, INT16, FP16, INT8), ("rint", "rint", "rint"), NORMED, "rounded once, by the hop to INT16; "),
        ((FP32, INT64, INT32), ("round", "round"), valueset.of_dtype(FP32), "rounded once, by the hop to INT64"),
        ((FP32, BF16, INT32), ("trunc", "trunc"), ValueSet(0, 15, -149, 24), "trunc to BF16, which holds"),
        ((INT32, FP32, FP16), ("round", "round"), valueset.of_dtype(INT32), "FP32 holds every arriving value"),
        ((BF16, FP16, INT8), ("rint", "rint"), valueset.of_dtype(BF16), "FP16 holds every arriving value"),
        ((INT16, INT8), ("trunc",), valueset.of_dtype(INT16), "whole numbers are not rounded"),
    ],
)
def test_arguments_that_kernels_live_on(dtypes, modes, values, why) -> None:
    chain = conversions(dtypes, modes, False)
    request = Conversion(dtypes[0], dtypes[-1], "odd" if len(dtypes) == 2 else modes[-1], chain[-1].saturate)
    verdict = argued(request, chain, values)
    assert verdict is not None and verdict.exact and verdict.proof.startswith(f"argued: {why}"), verdict


def test_a_number_that_tells() -> None:
    chain = conversions((FP32, FP16, INT8), ("rint", "rint"), False)
    verdict = argued(Conversion(FP32, INT8, "rint", True), chain, NORMED)
    assert verdict == Verdict(False, "counterexample among telling numbers", 0.5 + 2.0**-24)
    nan = argued(Conversion(FP32, FP4, "rint", False), conversions((FP32, INT32, FP4), ("rint", "rint"), False), NORMED)
    assert nan is not None and not nan.exact


def test_no_argument_where_order_is_lost() -> None:
    through = conversions((FP32, HF8, INT8), ("rint", "rint"), False)
    assert argued(Conversion(FP32, INT8, "rint", True), through, NORMED) is None
    # An overflow that becomes NaN on the way arrives as 0.
    lost = conversions((FP32, FP8E4M3FN, INT64), ("rint", "rint"), False)
    assert argued(Conversion(FP32, INT64, "rint", True), lost, valueset.of_dtype(FP32)) is None


def test_low_bits_are_those_of_the_rounded_integer() -> None:
    """300.4 is 44 in the low bits of INT8, however it gets there: unless something clamps it first."""
    far = ValueSet(-300, 300, -149, 24, nan=True)
    request = Conversion(FP32, INT8, "rint", False)
    last = Conversion(FP16, INT8, "rint", False)
    chain = (Conversion(FP32, INT16, "rint", True), Conversion(INT16, FP16, "rint", False), last)
    verdict = argued(request, chain, far)
    assert verdict is not None and verdict.exact and verdict.proof.endswith("; both keep the low bits")
    whole = valueset.of_dtype(INT32)
    clamped = (Conversion(INT32, INT16, "trunc", True), Conversion(INT16, INT8, "trunc", False))
    assert argued(Conversion(INT32, INT8, "trunc", False), clamped, whole) == Verdict(
        False, "counterexample among telling numbers", 32768
    )


def test_members_by_number() -> None:
    values = ValueSet(-2, 3, -1, 2)
    assert [x for x in (-2.5, -2, -1.75, -0.5, 0, 1.25, 2.5, 3) if belongs(x, FP16, values)] == [-2, -0.5, 0, 3]
    assert not belongs(-0.0, FP16, values) and not belongs(5.0, FP4, ValueSet(0, 255, 0))
    assert belongs(math.nan, FP16, values), "specials are asked for by the set"
    # HF8 has two mantissa bits at 2^-17, one at 2^-15 and none below 2^-22.
    assert belongs(2.0**-16, HF8, valueset.of_dtype(HF8)) and not belongs(416.0, HF8, valueset.of_dtype(HF8))


PROBE = """
import sys
from tilegg.cli import main
status = main(["lower", sys.argv[1], "--arch", sys.argv[2], "--contract", "exact", "-q", "-o", sys.argv[3]])
print(status, "numpy" in sys.modules)
"""


@pytest.mark.parametrize("kernel", ["quant_int8", "quant_4bit", "rope_index", "block_plan"])
@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_kernels_with_conversions_need_no_arrays(kernel: str, arch: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROBE, str(KERNELS / f"{kernel}.py"), arch, str(tmp_path / "out.pto")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.split()[-2:] == ["0", "False"], done.stderr
