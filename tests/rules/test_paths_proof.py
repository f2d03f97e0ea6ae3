"""The proofs against brute force: every way to decide, on sources small enough to run whole, and the audit."""

import itertools

import numpy as np
import pytest
from tilegg.ir import valueset
from tilegg.ir.convert import ROUND_MODES, all_values, convert, decode, is_nan, same_bits
from tilegg.ir.dtypes import (
    BF16,
    FP4,
    FP8E4M3FN,
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
)
from tilegg.ir.samples import hostile as hostile_pairs
from tilegg.ir.samples import special_values
from tilegg.ir.valueset import ValueSet
from tilegg.rules.paths import roads
from tilegg.rules.paths_audit import audit, requests
from tilegg.rules.paths_chain import Conversion, run
from tilegg.rules.paths_error import _counted, furthest
from tilegg.rules.paths_proof import _by_steps, decide
from tilegg.rules.paths_values import Line, hostile, listing, members
from tilegg.rules.target import load_target

from .road_chains import conversions

MODES = ROUND_MODES[1:]
CHAINS = [
    (FP16, FP32, BF16), (FP16, BF16, FP4), (FP16, BF16, HF8), (FP16, INT16, INT8), (FP16, BF16, INT8),
    (BF16, FP16, INT8), (BF16, FP16, FP8E4M3FN), (BF16, FP16, HF8), (INT16, FP16, BF16), (INT16, FP16, HF8),
    (INT16, BF16, FP16), (INT16, INT8, FP16), (BF16, FP8E4M3FN, FP4), (INT16, FP16, INT4), (BF16, INT32, UINT16),
]  # fmt: skip
NEVER_EXACT = [(INT16, BF16, FP16), (INT16, INT8, FP16), (BF16, FP8E4M3FN, FP4)]


@pytest.mark.parametrize("dtypes", CHAINS, ids=lambda c: "-".join(d.name for d in c))
def test_the_proof_by_steps_agrees_with_running_every_value(dtypes: tuple) -> None:
    src, dst = dtypes[0], dtypes[-1]
    everything = all_values(src)
    exact = 0
    for modes in itertools.product(MODES, repeat=2):
        for saturate in (False, True):
            chain = conversions(dtypes, modes, saturate)
            request = Conversion(src, dst, modes[-1], chain[-1].saturate)
            verdict = _by_steps(request, chain, valueset.of_dtype(src))
            equal = same_bits(run(chain, everything), request.apply(everything), dst)
            assert verdict.exact == bool(equal.all()), f"{modes} {saturate}: {verdict}"
            if not verdict.exact:
                witness = verdict.witness
                found = [w for w in decode(everything[~equal], src).tolist() if w == witness or w != w]
                assert found or not verdict.proof.startswith("counterexample"), f"{witness} does not differ"
            exact += verdict.exact
    assert (exact > 0) != (dtypes in NEVER_EXACT)


SETS = [
    ValueSet(-100, 100, 0),
    ValueSet(0, 255, 0),
    ValueSet(-4, 4, -6),
    ValueSet(-(2**24), 2**24, 0),
    ValueSet(-(2**26), 2**26, 3),
    ValueSet(-448, 448, -20, nan=True),
    ValueSet(-3e38, 3e38, -149, 24, True, True, True),
    ValueSet(0, 65504, -24, 11, negative_zero=True),
]


@pytest.mark.parametrize("values", SETS, ids=str)
def test_claims_under_facts_hold_on_every_value_tried(values: ValueSet) -> None:
    generator = np.random.default_rng(5)
    sources = [
        s for s in (FP32, INT32, INT64, FP16, INT16) if s.is_float or (values.grid >= 0 and values.finite)
    ]
    claims = 0
    for target in (load_target("a5"), load_target("a2a3")):
        for src, dst in itertools.product(sources, (BF16, FP16, FP4, HF8, INT8, UINT8, INT16, INT32, FP32)):
            array = np.concatenate([special_values(src), hostile_pairs(src, dst, generator, 3000)])
            array = np.concatenate([array, hostile(src, values)])
            array = array[members(array, src, values)]
            for mode, word in (("rint", "on"), ("round", "off"), ("rint", "off"), ("floor", "on")):
                for road in roads(target, src, dst, mode, word, values):
                    direct = convert(array, src, dst, mode, word == "on")
                    equal = bool(same_bits(road.apply(array), direct, dst).all())
                    claims += road.exact
                    assert equal or not road.exact, f"{road} {mode} {word}"
    assert claims > 20


def test_members_follow_the_definition() -> None:
    values = ValueSet(-2, 3, -1, 2, negative_zero=False)
    array = all_values(FP16)
    kept = decode(array[members(array, FP16, values)], FP16)
    assert sorted(kept.tolist()) == [-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3]
    assert not np.signbit(kept[kept == 0]).any()


def test_listing_of_a_wide_source_lists_every_member_once() -> None:
    listed = listing(FP32, ValueSet(-3, 3, 0))
    assert listed is not None and sorted(listed.tolist()) == [-3, -2, -1, 0, 1, 2, 3]
    assert listing(FP32, valueset.of_dtype(FP32)) is None


@pytest.mark.parametrize(
    "values", [valueset.of_dtype(FP32), ValueSet(-5, 7, -3), ValueSet(-(2.0**60), 2.0**60, 40)]
)
def test_a_line_is_ascending_and_finds_its_places(values: ValueSet) -> None:
    line = Line.of(FP32, values)
    assert line is not None
    places = np.unique(np.linspace(line.first, line.last, 1001).astype(np.int64))
    numbers = decode(line.at(places), FP32)
    assert (np.diff(numbers) > 0).all()
    assert numbers[0] == max(values.lo, FP32.min_value) and numbers[-1] == min(values.hi, FP32.max_value)
    assert (line.below(numbers) == places).all()
    middle = (numbers[:-1] + numbers[1:]) / 2
    assert (line.below(middle) < places[1:]).all() and (line.below(middle) >= places[:-1]).all()


def test_a_wrong_expectation_of_steps_cannot_hide_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the ends as only places every step has to be found by halving."""
    import tilegg.rules.paths_proof as proof

    monkeypatch.setattr(proof, "step_places", lambda _request, line: np.array([line.first, line.last]))
    proof.prepare.cache_clear()
    proof._compared.cache_clear()
    everything = valueset.of_dtype(FP32)
    request = Conversion(FP32, FP4, "rint", False)
    twice = (Conversion(FP32, BF16, "rint", False), Conversion(BF16, FP4, "rint", False))
    truncated = (Conversion(FP32, BF16, "trunc", False), Conversion(BF16, FP4, "round", False))
    assert not decide(request, twice, everything).exact
    assert decide(request._replace(mode="round"), truncated, everything).exact
    proof.prepare.cache_clear()
    proof._compared.cache_clear()


@pytest.mark.parametrize("name", ["a5", "a2a3"])
def test_every_claim_survives_the_audit(name: str) -> None:
    """A fifth of all pairs, modes and saturations, every pair in some of them."""
    target = load_target(name)
    wanted = [r for i, r in enumerate(requests(target)) if i % 21 % 5 == i // 21 % 5]
    found = audit(target, wanted, 4000)
    assert not found.disagreements, found.disagreements[:5]
    assert found.exact > 500 and found.inexact > 150
    assert {(r[0], r[1]) for r in wanted} == {(r[0], r[1]) for r in requests(target)}


def test_the_audit_catches_a_false_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    import tilegg.rules.paths_audit as module

    def lying(*arguments: object, **more: object) -> tuple:
        return tuple(replace(r, exact=True) for r in roads(*arguments, **more))

    monkeypatch.setattr(module, "roads", lying)
    found = audit(load_target("a5"), [(FP32, FP4, "rint", None), (INT8, FP16, "rint", None)], 2000)
    assert len(found.disagreements) == 1 and "FP32 → BF16 → FP4" in found.disagreements[0]


@pytest.mark.parametrize("dtypes", CHAINS[:6], ids=lambda c: "-".join(d.name for d in c))
def test_counting_agrees_with_running_every_value(dtypes: tuple) -> None:
    src, dst = dtypes[0], dtypes[-1]
    everything = all_values(src)
    for modes, saturate in itertools.product(
        itertools.product(("rint", "round", "floor"), repeat=2), (False, True)
    ):
        chain = conversions(dtypes, modes, saturate)
        request = Conversion(src, dst, modes[-1], chain[-1].saturate)
        differ = ~same_bits(run(chain, everything), request.apply(everything), dst)
        counted = _counted(request, chain, valueset.of_dtype(src))[0]
        nans = int(is_nan(everything, src).sum())
        assert counted.samples == everything.size - max(0, nans - 1)
        assert counted.differing == int(differ.sum())
        assert counted.max_ulp == furthest(request, chain, everything)


def test_counting_a_wide_source_agrees_with_running_a_part_of_it() -> None:
    values = ValueSet(2**24 - 1000, 2**24 + 2**21, 0)
    request = Conversion(INT32, BF16, "rint", False)
    chain = (Conversion(INT32, FP32, "rint", False), Conversion(FP32, BF16, "rint", False))
    array = np.arange(values.lo, values.hi + 1, dtype=np.int32)
    (counted,) = _counted(request, chain, values)
    assert counted.samples == array.size
    assert counted.differing == int((run(chain, array) != request.apply(array)).sum()) > 0
