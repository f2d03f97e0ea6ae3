"""What is stated of inexact chains, against runs of every value, or of boundary values of wide sources.

Nothing here uses the counting: both ways are run on values that this file makes, and compared as numbers.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from tilegg.ir import valueset
from tilegg.ir.codes import all_values, from_bits
from tilegg.ir.convert import ROUND_MODES, convert, decode, encode
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import (
    BF16,
    DTYPES,
    FP8E4M3FN,
    FP8E5M2,
    FP16,
    FP32,
    HF8,
    INT8,
    INT16,
    INT32,
    INT64,
    DType,
)
from tilegg.rules.paths import Road, roads
from tilegg.rules.paths_audit import SATURATIONS
from tilegg.rules.paths_legal import edges_from
from tilegg.rules.paths_rank import best_roads, describe
from tilegg.rules.target import Target, load_target

A5, A2A3 = load_target("a5"), load_target("a2a3")


def pairs(target: Target) -> list[tuple[DType, DType]]:
    edges = edges_from(target)
    known = {d.name for d in edges} | {e.dst.name for out in edges.values() for e in out}
    dtypes = [d for d in DTYPES.values() if d.name in known]
    return [(a, b) for a in dtypes for b in dtypes if a is not b]


@lru_cache(maxsize=64)
def inputs(src: DType, dst: DType) -> np.ndarray:
    """Every value of a narrow source; of a wide one powers of two, the values of ``dst``, ties, and random bits."""
    if src.bits <= 16:
        return all_values(src)
    reached = decode(all_values(dst if dst.bits <= 16 else BF16), dst if dst.bits <= 16 else BF16).astype(np.float64)
    reached = np.unique(reached[np.isfinite(reached)])
    reached = reached[:: -(-reached.size // 4096)]
    powers = np.ldexp(1.0, np.arange(-149 if src.is_float else 0, 128 if src.is_float else 64))
    numbers = np.concatenate(
        [reached, (reached[1:] + reached[:-1]) / 2, reached * 1.5, powers, -powers, powers * 1.5, [0.0, 1e9, -1e9]]
    )
    at = encode(numbers, src, "rint", True)
    generator = np.random.default_rng(5)
    if not src.is_float:
        at = np.concatenate([at, at - at.dtype.type(1), at + at.dtype.type(1)])
        least, most = np.iinfo(src.storage).min, np.iinfo(src.storage).max
        return np.concatenate([at, generator.integers(least, most, 4000, src.storage, endpoint=True)])
    with np.errstate(over="ignore"):
        up, down = np.nextafter(at, np.float32(np.inf)), np.nextafter(at, np.float32(-np.inf))
    chance = from_bits(generator.integers(0, 2**32, 4000, np.uint32), src)
    special = np.array([np.nan, np.inf, -np.inf, -0.0], np.float32)
    return np.concatenate([at, up, down, chance, special])


@lru_cache(maxsize=64)
def order(dtype: DType) -> np.ndarray:
    values = decode(all_values(dtype), dtype)
    return np.unique(values[np.isfinite(values)])


def steps(a: np.ndarray, b: np.ndarray, dtype: DType) -> int:
    """The largest number of values from one of some finite numbers to the other."""
    if a.size == 0:
        return 0
    if dtype is FP32:
        codes = [x.astype(np.float32).view(np.int32).astype(np.int64) for x in (a, b)]
        places = [np.where(c < 0, -(c & 0x7FFFFFFF), c) for c in codes]
    elif dtype.is_float:
        places = [np.searchsorted(order(dtype), x) for x in (a, b)]
    else:
        return int(max(abs(x - y) for x, y in zip(a.tolist(), b.tolist())))
    return int(np.abs(places[0] - places[1]).max())


def check(road: Road) -> None:
    array, dst = inputs(road.src, road.dst), road.dst
    wanted = convert(array, road.src, dst, road.request.mode, road.request.saturate)
    got = array
    for hop in road.hops:
        got = convert(got, hop.src, hop.dst, hop.effective, hop.clamps)
    wanted, got = decode(wanted, dst), decode(got, dst)
    same = (wanted == got) & (np.signbit(wanted) == np.signbit(got)) | (wanted != wanted) & (got != got)
    finite = np.isfinite(wanted) & np.isfinite(got)
    lost, stated = ~same & ~finite, road.error
    assert steps(wanted[finite & ~same], got[finite & ~same], dst) <= stated.max_ulp
    assert stated.rate or same.all() or not stated.exhaustive
    if stated.not_finite is None:
        assert not lost.any()
    else:
        some = stated.not_finite
        one = encode(np.array([some.value]), road.src, "rint")
        ends = [decode(f(one), dst)[0] for f in (road.request.apply, road.apply)]
        np.testing.assert_array_equal(ends, [some.wanted, some.got])
        assert not np.isfinite(ends).all()
    if stated.distribution == "every value" and road.src.bits <= 16:
        assert stated.rate == np.count_nonzero(~same) / array.size
        assert stated.max_ulp == steps(wanted[finite & ~same], got[finite & ~same], dst)
        assert (stated.not_finite.rate if stated.not_finite else 0.0) == np.count_nonzero(lost) / array.size
    if stated.exhaustive and stated.not_finite is not None and not np.isnan(stated.not_finite.value):
        # The example is where such results begin.
        begins = np.abs(decode(array[lost], road.src).astype(np.float64))
        assert abs(stated.not_finite.value) <= np.nanmin(begins, initial=np.inf)


@pytest.mark.parametrize("target", [A5, A2A3], ids=lambda t: t.name)
@pytest.mark.parametrize("mode", ROUND_MODES)
def test_what_is_stated_holds_for_every_value(target: Target, mode: str) -> None:
    found = [r for s in SATURATIONS for a, b in pairs(target) for r in roads(target, a, b, mode, s, k=2)]
    inexact = {(r.request, r.chain): r for r in found if not r.exact}
    assert inexact
    for road in inexact.values():
        check(road)


def only(src: DType, dst: DType, mode: str, saturation: str | None = None) -> Road:
    return roads(A5, src, dst, mode, saturation)[0]


@pytest.mark.parametrize(
    ("dst", "mode", "at", "wanted", "got"),
    [
        (FP8E4M3FN, "floor", 1e9, 448.0, np.nan),
        (FP8E4M3FN, "ceil", -1e9, -448.0, np.nan),
        (FP8E5M2, "floor", 1e9, 57344.0, np.inf),
        (FP8E5M2, "ceil", -1e9, -57344.0, -np.inf),
    ],
)
def test_nan_and_infinity_are_no_code_after_the_last(
    dst: DType, mode: str, at: float, wanted: float, got: float
) -> None:
    road = only(FP32, dst, mode)
    one = encode(np.array([at]), FP32, "rint")
    ends = [decode(f(one), dst)[0] for f in (road.request.apply, road.apply)]
    np.testing.assert_array_equal(ends, [wanted, got])
    assert road.error.max_ulp == 1 and road.error.not_finite is not None


def test_the_share_of_results_that_are_not_finite_is_counted() -> None:
    # To nearest, 464 is the last that gives 448 instead of NaN, on either side; upwards 448 is, and none is below.
    stated = only(FP32, FP8E4M3FN, "ceil").error
    up = int(np.float32(464).view(np.int32)) - int(np.float32(448).view(np.int32))
    down = int(np.float32(np.inf).view(np.int32)) - 1 - int(np.float32(464).view(np.int32))
    assert stated.distribution == "every value" and stated.not_finite is not None
    lost = stated.not_finite
    assert round(lost.rate * stated.samples) == up + down
    assert (lost.value, lost.got) == (float(np.nextafter(np.float32(448), np.float32(449))), 448.0)
    assert np.isnan(lost.wanted)


def test_words_name_the_values_without_two_finite_results() -> None:
    assert describe(only(FP32, FP8E4M3FN, "ceil")) == (
        "0.5 of all values differ, by up to 1 ulp; not both results are finite for 0.23 of all: "
        "448.0000305175781 gives 448.0, not nan (every value)"
    )
    assert str(only(INT16, FP8E4M3FN, "round").error) == (
        "40 of 65,536 values differ, by up to 1 ulp; not both results are finite for 2 of them: "
        "464 gives 448.0, not nan"
    )
    beyond = roads(A5, FP32, FP8E4M3FN, "round")[0]
    assert describe(beyond) == (
        "5.5e-08 of all values in the destination's range differ, by up to 1 ulp; not both results are finite for "
        "others: 464.0 gives 448.0, not nan"
    )


def test_json_gives_nan_and_infinity_as_text() -> None:
    found = only(FP16, FP8E5M2, "floor").error.to_json()["not_finite"]
    assert found["rate"] == 255 / 65536
    assert (found["value"], found["wanted"], found["got"]) == (-57376.0, "-inf", -57344.0)
    assert only(INT32, FP16, "round").error.to_json()["not_finite"] is None


@pytest.mark.parametrize(
    ("src", "dst", "mode", "kind"),
    [
        (FP32, FP8E4M3FN, "ceil", "request_ignored"),
        (FP16, FP8E4M3FN, "round", "request_ignored"),
        (INT32, BF16, "rint", "double_rounding"),
        (FP32, HF8, "round", "exact"),
    ],
)
def test_one_rounding_is_not_called_two(src: DType, dst: DType, mode: str, kind: str) -> None:
    assert roads(A5, src, dst, mode)[0].kind == kind


def test_the_refusal_names_the_ignored_mode() -> None:
    with pytest.raises(TileggError, match="a5 ignores mode ceil: FP32 to FP8E4M3FN is always rint") as caught:
        best_roads(A5, FP32, FP8E4M3FN, "ceil", contract="exact")
    assert "twice" not in str(caught.value)


def test_low_bits_are_bounded_by_the_whole_range() -> None:
    stated = only(INT32, INT8, "rint", "off").error
    assert not stated.exhaustive and stated.max_ulp == 255


@pytest.mark.parametrize("source", [INT32, INT64])
def test_the_number_half_a_step_beyond_the_largest_is_looked_at(source: DType) -> None:
    """The target rounds ties away from zero: 40960 gives infinity, where ties to even give 32768."""
    values = valueset.cast_to(valueset.of_dtype(source), FP32, "rint")
    found = roads(A5, FP32, HF8, "rint", None, values, k=1)[0]
    assert not found.exact and found.error.not_finite is not None
    assert abs(found.error.not_finite.value) == 40960 and found.error.not_finite.rate == 0
