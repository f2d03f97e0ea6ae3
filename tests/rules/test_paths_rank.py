"""Ranking of roads, contracts, the Pareto front, and measured errors."""

import numpy as np
import pytest
from tilegg.ir.convert import convert
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, DTYPES, FP4, FP8E4M3FN, FP16, FP32, HF8, INT8, INT16, INT32, INT64, UINT32, DType
from tilegg.rules.paths import Road, page_rank, roads
from tilegg.rules.paths_rank import RankedRoad, best_roads, pareto_front
from tilegg.rules.target import Target, load_target

A5, A2A3 = load_target("a5"), load_target("a2a3")


def stops(road: Road) -> str:
    return " ".join(dtype.name for dtype in road.stops)


def plain_road(text: str, mode: str) -> Road:
    """The road on a5 through the given stops in the requested mode on every hop."""
    names = text.split()
    found = roads(A5, DTYPES[names[0]], DTYPES[names[-1]], mode, k=40)
    return next(r for r in found if stops(r) == text and all(h.mode == mode for h in r.hops))


def test_same_width_into_float_first_breaks_ties_of_instruction_count() -> None:
    road = best_roads(A5, INT32, INT8, "rint", objective="instructions")[0].road
    assert stops(road) == "INT32 FP32 FP16 INT8" and page_rank(road) == (0, 1, 1)
    others = best_roads(A5, INT32, INT8, "rint", objective="instructions")[1:]
    assert "INT32 INT16 FP16 INT8" in [stops(r.road) for r in others]


def test_objectives_rank_differently() -> None:
    by_cycles = best_roads(A2A3, INT32, FP16, "rint", objective="cycles")
    assert stops(by_cycles[0].road) == "INT32 FP32 FP16", "the native one has a barrier per row"
    assert [r.cycles for r in by_cycles] == sorted(r.cycles for r in by_cycles)
    assert best_roads(A2A3, INT32, FP16, "rint", objective="instructions")[0].road.instructions == 1
    accurate = best_roads(A5, INT16, HF8, "rint", objective="accuracy")
    assert [r.rate for r in accurate] == sorted(r.rate for r in accurate)


def test_larger_tiles_cost_more() -> None:
    small, large = (best_roads(A5, INT32, BF16, "rint", shape=s)[0].cycles for s in ((16, 64), (64, 512)))
    assert 0 < small < large


def test_contracts() -> None:
    assert not best_roads(A5, INT32, BF16, "rint")[0].road.exact
    assert all(r.road.exact for r in best_roads(A5, FP32, INT8, "rint", contract="exact"))
    with pytest.raises(TileggError) as caught:
        best_roads(A5, INT64, BF16, "rint", contract="exact")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "TG021"
    assert "INT64 → FP32 → BF16" in diagnostic.reason and "16842753" in diagnostic.reason


def test_an_illegal_pair_names_source_destination_and_target() -> None:
    with pytest.raises(TileggError) as caught:
        best_roads(A5, UINT32, FP32, "rint")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "TG020"
    assert all(word in diagnostic.message for word in ("UINT32", "FP32", "a5"))


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        ("TG004", {"mode": "nearest"}),
        ("TG004", {"saturation": "maybe"}),
        ("TG040", {"objective": "speed"}),
        ("TG040", {"contract": "loose"}),
    ],
)
def test_unknown_words_are_diagnosed(code: str, arguments: dict[str, str]) -> None:
    with pytest.raises(TileggError) as caught:
        best_roads(A5, FP32, INT8, **{"mode": "rint", **arguments})
    assert caught.value.diagnostics[0].code == code


def front(target: Target, src: DType, dst: DType, mode: str) -> list[RankedRoad]:
    return [r for r in pareto_front(best_roads(target, src, dst, mode)) if r.pareto]


def test_the_pareto_front() -> None:
    (exact,) = front(A5, FP32, INT8, "rint")
    assert exact.road.exact, "cheapest and exact: it beats all others"
    (short, whole) = front(A5, INT32, BF16, "rint")
    assert not short.road.exact and whole.road.exact and short.cycles < whole.cycles
    ranked = pareto_front(best_roads(A2A3, FP32, INT8, "rint"))
    for one in ranked:
        beaten = any(o.cycles <= one.cycles and o.rate < one.rate for o in ranked)
        assert not (one.pareto and beaten)


# -- errors ------------------------------------------------------------------------------------------------


def test_the_error_of_int32_to_bf16_is_the_published_one() -> None:
    road = plain_road("INT32 FP32 BF16", "rint")
    measured = road.error
    assert (measured.differing, measured.samples, measured.exhaustive) == (32512, 2**32, True)
    assert measured.max_ulp == 1
    # Published: 3 of 200,000 uniform values; 1.5 are to be expected.
    values = np.random.default_rng(3).integers(-(2**31), 2**31, 2_000_000).astype(np.int32)
    found = np.flatnonzero(road.apply(values) != convert(values, INT32, BF16, "rint"))
    assert 5 <= found.size <= 30


def test_fp32_to_int8_through_fp16_differs_at_rounding_boundaries_only() -> None:
    road = plain_road("FP32 FP16 INT8", "rint")
    values = np.random.default_rng(1).uniform(-127, 127, 400_000).astype(np.float32)
    direct = convert(values, FP32, INT8, "rint")
    wrong = values[road.apply(values) != direct].astype(np.float64)
    assert wrong.size > 0
    assert (np.abs(np.abs(wrong) % 1 - 0.5) <= 2.0**-5).all()
    assert road.error.max_ulp == 1


def test_fp32_to_fp4_through_bf16_reproduces_the_known_count() -> None:
    values = (np.random.default_rng(2).standard_normal(2_000_000) * 2).astype(np.float32)
    for road, count in ((plain_road("FP32 BF16 FP4", "rint"), 11429), (roads(A5, FP32, FP4, "round")[0], 0)):
        direct = convert(values, FP32, FP4, road.request.mode)
        assert int((road.apply(values) != direct).sum()) == count


def test_rare_differences_are_counted_not_sampled() -> None:
    error = roads(A5, FP32, FP8E4M3FN, "round")[0].error
    # Every second tie of the 126 positive finite steps below the last, and of the negative ones.
    assert (error.differing, error.max_ulp, error.exhaustive) == (126, 1, True)


def test_proved_roads_have_no_error_and_cover_every_value() -> None:
    error = roads(A5, INT32, FP16, "rint")[0].error
    assert (error.rate, error.max_ulp, error.samples, error.exhaustive) == (0.0, 0, 2**32, True)
    assert roads(A5, INT8, FP32, "rint")[0].error.samples == 256


def test_the_error_of_low_bits_is_sampled() -> None:
    error = roads(A5, INT32, INT8, "rint", "off")[0].error
    assert not error.exhaustive and error.samples == 200_000 and error.rate > 0.9 and error.max_ulp > 1


def test_a_saturating_cast_to_the_same_dtype_says_what_is_missing() -> None:
    with pytest.raises(TileggError, match="infinities would become the largest finite FP32; no instruction does that"):
        best_roads(load_target("a5"), FP32, FP32, "rint", "on")
