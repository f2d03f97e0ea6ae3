"""Roads of native casts: hop counts, legality, exactness classes, facts, ranking and errors."""

from dataclasses import replace

import numpy as np
import pytest
from tilegg.ir import valueset
from tilegg.ir.convert import all_values, convert, decode, encode
from tilegg.ir.dtypes import (
    BF16,
    DTYPES,
    FP4,
    FP8E4M3FN,
    FP8E5M2,
    FP16,
    FP32,
    HF8,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    DType,
)  # fmt: skip
from tilegg.ir.valueset import ValueSet
from tilegg.rules.paths import Road, roads
from tilegg.rules.paths_chain import Conversion
from tilegg.rules.paths_legal import edges_from, listed
from tilegg.rules.paths_proof import decide
from tilegg.rules.paths_rank import best_roads
from tilegg.rules.paths_values import members, specials
from tilegg.rules.target import Target, load_target

A5, A2A3 = load_target("a5"), load_target("a2a3")
NAMES = {
    "bf16": BF16, "fp16": FP16, "fp32": FP32, "fp4": FP4, "fp8e4m3": FP8E4M3FN, "fp8e5m2": FP8E5M2, "hf8": HF8,
    "int4": INT4, "int8": INT8, "int16": INT16, "int32": INT32, "int64": INT64, "uint8": UINT8,
    "uint16": UINT16, "uint32": UINT32,
}  # fmt: skip
# The cast-legality page: source: destinations, with the number of instructions where it is not one.
PAGE = {
    "a5": """
bf16: fp16 fp32 fp4 int32 fp8e4m3(2) fp8e5m2(2) hf8(2) int16(2) int8(2) uint16(2) uint8(2)
fp16: fp32 hf8 int16 int32 int8 uint8 bf16(2) fp8e4m3(2) fp8e5m2(2) uint16(2) fp4(3)
fp32: bf16 fp16 fp8e4m3 fp8e5m2 hf8 int16 int32 int64 fp4(2) int8(2) uint16(2) uint8(2)
fp4: bf16 fp8e4m3(3) fp8e5m2(3) hf8(3) int8(3) uint8(3)
fp8e4m3: fp32 bf16(2) fp16(2) fp8e5m2(2) hf8(2) int16(2) fp4(3) int8(3) uint16(3) uint8(3)
fp8e5m2: fp32 bf16(2) fp16(2) fp8e4m3(2) hf8(2) int16(2) fp4(3) int8(3) uint16(3) uint8(3)
hf8: fp32 bf16(2) fp16(2) fp8e4m3(2) fp8e5m2(2) int16(2) fp4(3) int8(3) uint16(3) uint8(3)
int16: fp16 fp32 int32 uint32 uint8 bf16(2) fp8e4m3(2) fp8e5m2(2) hf8(2) int8(2) uint16(2) fp4(3)
int32: fp32 int16 int64 uint16 uint8 bf16(2) fp16(2) fp8e4m3(2) fp8e5m2(2) hf8(2) fp4(3) int8(3)
int64: fp32 int32 bf16(2) fp16(2) fp8e4m3(2) fp8e5m2(2) hf8(2) int16(2) uint16(2) uint8(2) fp4(3) int8(3)
int8: fp16 int16 int32 hf8(2) uint16(2) uint8(2) fp8e4m3(3) fp8e5m2(3) fp4(4)
uint32: int16 uint16 uint8 int8(3)
uint8: fp16 uint16 hf8(2) int8(2) fp8e4m3(3) fp8e5m2(3) fp4(4)
""",
    "a2a3": """
bf16: fp32 int32 fp16(2) int16(2) int4(3) int8(3) uint8(3)
fp16: fp32 int16 int32 int4 int8 uint8 bf16(2)
fp32: bf16 fp16 int16 int32 int64 int4(2) int8(2) uint8(2)
int16: fp16 fp32 bf16(2) int4(2) int8(2) uint8(2)
int32: fp16 fp32 int16 int64 bf16(2) int4(2) int8(2) uint8(2)
int4: fp16 int8(2) uint8(2)
int64: fp32 int32 bf16(2) fp16(2) int16(2) int4(3) int8(3) uint8(3)
int8: fp16 int4(2) uint8(2)
uint8: fp16 int4(2) int8(2)
""",
}


def page_table(name: str) -> dict[tuple[DType, DType], int]:
    table = {}
    for line in PAGE[name].strip().splitlines():
        src, rest = line.split(":")
        for word in rest.split():
            dst, _, count = word.rstrip(")").partition("(")
            table[NAMES[src], NAMES[dst]] = int(count or 1)
    return table


@pytest.mark.parametrize("name", ["a5", "a2a3"])
def test_hop_counts_are_those_of_the_page(name: str) -> None:
    target, table = load_target(name), page_table(name)
    assert len(table) == {"a5": 126, "a2a3": 53}[name]
    for (src, dst), count in table.items():
        for mode in ("round", "rint", "trunc"):
            best = best_roads(target, src, dst, mode, objective="instructions")[0]
            assert best.road.instructions == count, f"{src} to {dst} {mode}: {best.road}"


@pytest.mark.parametrize("name", ["a5", "a2a3"])
def test_unlisted_pairs_are_legal_by_exact_roads_only(name: str) -> None:
    target, table = load_target(name), page_table(name)
    for src in NAMES.values():
        for dst in NAMES.values():
            assert listed(target, src, dst) == ((src, dst) in table) or src is dst
            if src is not dst and (src, dst) not in table:
                assert all(r.exact for r in roads(target, src, dst, "round")), f"{src} to {dst}"


def stops(found: tuple[Road, ...]) -> list[str]:
    return [" ".join(d.name for d in road.stops) for road in found]


def the_road(target: Target, text: str, mode: str, saturation: str | None = None, **more: object) -> Road:
    """The road through the given stops in the requested mode on every hop."""
    names = text.split()
    found = roads(target, DTYPES[names[0]], DTYPES[names[-1]], mode, saturation, k=40, **more)
    return next(
        r for r in found if r.stops == tuple(DTYPES[n] for n in names) and all(h.mode == mode for h in r.hops)
    )


def differing(road: Road, array: np.ndarray) -> int:
    """How many values differ from one conversion, computed without the road's own machinery."""
    chained = array
    for hop in road.hops:
        chained = convert(chained, hop.src, hop.dst, hop.effective, hop.clamps)
    direct = convert(array, road.src, road.dst, road.request.mode, road.request.saturate)
    return int(np.count_nonzero(decode(chained, road.dst) != decode(direct, road.dst)))


# -- legality ----------------------------------------------------------------------------------------------


def test_a_hop_is_judged_by_the_values_that_arrive() -> None:
    assert "INT8 FP16 FP32" in stops(roads(A2A3, INT8, FP32, "rint"))
    assert "UINT8 FP16 FP32" in stops(roads(A5, UINT8, FP32, "rint"))
    assert "FP32 INT16 FP16 INT8" in stops(roads(A2A3, FP32, INT8, "rint"))
    assert roads(A5, UINT32, FP32, "rint") == ()
    assert "INT32 INT16 FP16" not in stops(roads(A5, INT32, FP16, "rint", k=40))
    assert "INT32 INT16 FP32 BF16" not in stops(roads(A5, INT32, BF16, "rint", k=40))


def test_facts_make_a_hop_legal() -> None:
    small = roads(A5, UINT32, FP32, "rint", values=valueset.interval(0, 32767, 0))
    assert stops(small)[0] == "UINT32 INT16 FP32" and small[0].exact
    assert roads(A5, UINT32, FP32, "rint", values=valueset.interval(0, 32768, 0)) == ()


def test_no_road_visits_a_dtype_twice_or_rounds_in_place() -> None:
    for target in (A5, A2A3):
        for src in edges_from(target):
            for dst in NAMES.values():
                for road in roads(target, src, dst, "rint", max_hops=3):
                    assert len(set(road.stops)) == len(road.stops)
                    assert len(road.hops) <= 3 and (road.instructions <= 3 or not road.native)


def test_equal_dtypes_need_no_instruction() -> None:
    (road,) = roads(A5, BF16, BF16, "floor")
    assert road.exact and road.hops == ()
    assert roads(A5, BF16, BF16, "floor", "on") == (), "infinities would have to be clamped"


def test_only_the_last_hop_carries_saturation_and_others_the_mode() -> None:
    road = the_road(A5, "FP32 INT16 FP16 INT8", "floor", "off")
    assert [h.saturation for h in road.hops] == [None, None, "off"]
    assert [h.mode for h in road.hops] == ["floor"] * 3
    assert [h.clamps for h in road.hops] == [True, False, False]


# -- exactness ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "text", "mode", "value", "wrong", "right"),
    [
        (A5, "INT32 FP32 BF16", "rint", 16842753, 16777216, 16908288),
        (A2A3, "INT32 FP32 BF16", "rint", -16842753, -16777216, -16908288),
        (A5, "INT32 FP32 BF16", "rint", 33685505, 33554432, 33816576),
        (A5, "FP32 BF16 FP4", "rint", 1.251953125, 1.0, 1.5),
        (A5, "FP32 BF16 FP4", "rint", 2.500244140625, 2.0, 3.0),
        (A2A3, "FP32 FP16 INT8", "rint", -126.50000762939453, -126, -127),
        (A5, "INT16 FP16 FP32 BF16", "rint", 2057, 2048, 2064),
    ],
)
def test_roads_that_round_twice(
    target: Target, text: str, mode: str, value: float, wrong: float, right: float
) -> None:
    road = the_road(target, text, mode)
    array = encode(np.array([value]), road.src, "rint")
    assert decode(road.apply(array), road.dst)[0] == wrong
    assert decode(convert(array, road.src, road.dst, mode), road.dst)[0] == right
    assert not road.exact and road.witness is not None
    assert differing(road, encode(np.array([road.witness]), road.src, "rint")) == 1


def test_int32_to_fp16_through_fp32_is_exact_overflow_included() -> None:
    road = the_road(A5, "INT32 FP32 FP16", "rint")
    assert road.exact
    values = np.arange(-70000, 70001, dtype=np.int32)
    assert differing(road, values) == 0
    shown = np.array([65504, 65519, 65520, 2049, 2051, 40000], np.int32)
    assert decode(road.apply(shown), FP16).tolist() == [65504, 65504, np.inf, 2048, 2052, 40000]
    assert decode(the_road(A5, "INT32 FP32 FP16", "rint", "on").apply(shown), FP16)[2] == 65504


def test_int16_to_bf16_through_fp32_is_exact_and_through_fp16_is_not() -> None:
    values = all_values(INT16)
    exact, inexact = the_road(A5, "INT16 FP32 BF16", "rint"), the_road(A5, "INT16 FP16 FP32 BF16", "rint")
    assert exact.exact and differing(exact, values) == 0
    assert not inexact.exact and differing(inexact, values) == 3840
    assert inexact.error.exhaustive and inexact.error.differing == 3840 and inexact.error.max_ulp == 1


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (A5, "INT8 FP16 FP32"),
        (A5, "INT8 FP16 FP32 BF16"),
        (A5, "UINT8 FP16 FP32"),
        (A2A3, "INT16 FP32 INT32"),
    ],
)
def test_pairs_with_an_exact_road_the_page_does_not_list(target: Target, text: str) -> None:
    for mode in ("round", "rint", "floor", "ceil", "trunc"):
        road = the_road(target, text, mode)
        assert road.exact and differing(road, all_values(road.src)) == 0


def test_odd_before_any_mode_is_exact_where_the_hardware_has_it() -> None:
    found = roads(A5, FP32, INT8, "rint")
    assert next(str(r) for r in found if r.exact) == "FP32 → FP16 (odd) → INT8"
    assert [h.mode for h in found[0].hops] == ["odd", "rint"]
    boundary = np.float32([0.50000006, -126.50000762939453, -127.49, 2.5, 1e9, -np.inf, np.nan])
    assert differing(found[0], boundary) == 0


def test_truncation_before_ties_away_is_exact() -> None:
    road = roads(A5, INT32, BF16, "round")[0]
    assert str(road) == "INT32 → FP32 (trunc) → BF16" and road.exact
    plain = the_road(A5, "INT32 FP32 BF16", "round")
    values = np.array([16842751, 16842752, 16842753, -16842751], np.int32)
    assert differing(road, values) == 0 and differing(plain, values) == 2
    assert str(roads(A5, FP32, FP4, "round")[0]) == "FP32 → BF16 (trunc) → FP4"


def test_no_road_of_native_casts_is_exact_to_bf16_or_fp4_in_mode_rint() -> None:
    assert not any(r.exact and r.native for r in roads(A5, INT32, BF16, "rint", k=40))
    assert not any(r.exact and r.native for r in roads(A5, FP32, FP4, "rint", k=40))


def test_the_best_exact_road_is_always_among_the_answers() -> None:
    plain, whole = roads(A2A3, INT32, FP16, "round", k=1), roads(A2A3, INT32, FP16, "round")
    assert not whole[0].exact and whole[1].exact
    assert plain == (whole[1],)
    assert {r.exact for r in roads(A5, FP32, INT8, "rint")} == {True, False}


def test_a_mode_the_hardware_ignores_makes_a_native_cast_inexact() -> None:
    (road,) = roads(A5, FP32, FP8E4M3FN, "round")
    assert not road.exact and road.hops[0].effective == "rint" and "ignores mode round" in road.remark
    assert differing(road, encode(np.array([road.witness]), FP32, "rint")) == 1
    assert roads(A5, FP32, FP8E4M3FN, "rint")[0].exact
    assert roads(A5, FP32, HF8, "round")[0].exact and not roads(A5, FP32, HF8, "rint")[0].exact
    coarse = ValueSet(-8, 8, 0)
    assert roads(A5, FP32, FP8E4M3FN, "round", values=coarse)[0].exact, "nothing rounds, so no mode matters"


def test_a_saturation_the_hardware_ignores_makes_a_native_cast_inexact() -> None:
    road = roads(A2A3, FP32, INT32, "rint", "off")[0]
    assert not road.exact and "clamps FP32 to INT32" in road.remark
    assert roads(A2A3, FP32, INT32, "rint", "off", valueset.interval(-(2**30), 2**30, -10))[0].exact


def test_results_undefined_for_negative_values_are_not_claimed() -> None:
    assert not roads(A5, INT16, UINT32, "rint")[0].exact
    assert "undefined" in roads(A5, INT16, UINT32, "rint")[0].remark
    assert roads(A5, INT16, UINT32, "rint", values=valueset.interval(0, 9, 0))[0].exact
    assert roads(A5, INT8, UINT32, "rint") == ()
    assert roads(A5, UINT8, UINT32, "rint")[0].exact


# -- facts -------------------------------------------------------------------------------------------------

CLAMPED = valueset.clamp(valueset.of_dtype(FP32), -127, 127)


@pytest.mark.parametrize("mode", ["round", "rint", "floor", "ceil", "trunc"])
@pytest.mark.parametrize("saturation", ["on", "off"])
def test_the_short_int8_tail_is_exact_below_128(mode: str, saturation: str) -> None:
    for target in (A5, A2A3):
        assert the_road(target, "FP32 INT16 FP16 INT8", mode, saturation, values=CLAMPED).exact
        shortest = roads(target, FP32, INT8, mode, saturation, CLAMPED)[0]
        assert shortest.exact and shortest.instructions == 2


def test_without_the_fact_the_wrapping_tail_is_not_exact() -> None:
    road = the_road(A5, "FP32 INT16 FP16 INT8", "rint", "off")
    assert not road.exact
    assert differing(road, np.float32([road.witness])) == 1


def test_integers_that_fit_fp32_are_exact_through_it() -> None:
    fits = valueset.interval(-(2**24), 2**24, 0)
    assert the_road(A5, "INT32 FP32 BF16", "rint", values=fits).exact
    assert not the_road(A5, "INT32 FP32 BF16", "rint", values=valueset.interval(-(2**25), 2**25, 0)).exact
    even = valueset.interval(-(2**25), 2**25, 1)
    assert the_road(A5, "INT32 FP32 BF16", "rint", values=even).exact


def test_values_that_came_from_a_narrow_type_are_run_whole() -> None:
    road = the_road(A5, "FP32 FP16 HF8", "round", values=valueset.of_dtype(BF16))
    brute = convert(all_values(BF16), BF16, FP32, "rint")
    assert road.exact == (differing(road, brute) == 0)
    assert road.proof.startswith("exhaustive")


def test_where_no_finite_value_is_shared_specials_still_count() -> None:
    far = ValueSet(300, 400, -10, nan=True)
    assert all(r.exact for r in roads(A5, FP32, INT8, "rint", values=ValueSet(300, 400, -10)))
    for road in roads(A5, FP32, BF16, "rint", values=far):
        assert not any(stop.is_int for stop in road.stops), "NaN would be lost"


def test_repeated_searches_come_from_the_memo() -> None:
    first = roads(A5, FP32, UINT8, "rint", values=CLAMPED)
    again = roads(A5, FP32, UINT8, "rint", values=valueset.clamp(valueset.of_dtype(FP32), -127, 127))
    assert first and all(a is b for a, b in zip(first, again, strict=True))


def test_where_nothing_leaves_the_range_clamping_conversions_serve_as_well() -> None:
    near = ValueSet(-100, 100, -149, 24)
    for target in (A2A3, A5):
        off = [r for r in roads(target, FP32, INT8, "rint", "off", near) if r.exact]
        on = [r for r in roads(target, FP32, INT8, "rint", "on", near) if r.exact]
        assert {tuple(h.clamps for h in r.hops)[-1] for r in off} == {True, False}
        assert min(r.instructions for r in off) == min(r.instructions for r in on)
        assert all(r.request == Conversion(FP32, INT8, "rint", False) for r in off)


def test_only_the_infinity_that_can_arrive_counts() -> None:
    """+inf keeps all ones as low bits and -inf none: a clamp on the way shows with +inf alone."""
    below = ValueSet(-3e38, 42, -149, 24, nan=True, inf=True, sign=-1)
    chain = (Conversion(FP32, INT16, "rint", True), Conversion(INT16, INT8, "rint", False))
    assert specials(FP32, below).tolist()[1:] == [-np.inf]
    array = np.float32([np.inf, -np.inf, 1.0])
    assert members(array, FP32, below).tolist() == [False, True, True]
    assert not decide(Conversion(FP32, INT8, "rint", False), chain, replace(below, sign=1)).exact
