"""Lowered collectives against their definitions, on 2 to 8 ranks under many schedules."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from tilegg.ir.collectives import clamp_count, ring_bounds
from tilegg.ir.dtypes import FP16, FP32
from tilegg.ir.program import Op, walk
from tilegg.ir.text import parse, print_program
from tilegg.rewrite.expand import expand

sys.path.insert(0, str(Path(__file__).parent))
from collective_cases import (
    COLLECTIVES,
    DTYPES,
    MAX_RECV,
    OPS,
    RANKS,
    SIZES,
    Case,
    check,
    inputs,
    lowered,
    pairwise,
)

ALLREDUCE = [Case(*row) for row in pairwise(("mesh", "ring"), tuple(DTYPES), OPS, RANKS, SIZES)]
OTHERS = [Case(*row) for row in pairwise(COLLECTIVES, tuple(DTYPES), OPS, RANKS, SIZES)]
EVERY = ("mesh", "ring", *COLLECTIVES)


def some(i: int) -> tuple[int, ...]:
    """Return three of twenty schedules, others for each case."""
    return i % 20, (i + 7) % 20, (i + 13) % 20


def test_the_sample_covers_all_pairs() -> None:
    rows = [(c.what, c.dtype, c.op, c.ranks, c.size) for c in ALLREDUCE]
    assert len({(r[3], r[4]) for r in rows}) == len(RANKS) * len(SIZES)
    assert len({(r[0], r[4]) for r in rows}) == 2 * len(SIZES)
    assert len({(r[1], r[2]) for r in rows}) == len(DTYPES) * len(OPS)
    assert {c.what for c in OTHERS} == set(COLLECTIVES)


@pytest.mark.parametrize(("i", "case"), list(enumerate(ALLREDUCE)), ids=str)
def test_allreduce(i: int, case: Case) -> None:
    result = check(case, some(i))
    size = DTYPES[case.dtype]().itemsize
    if case.what == "mesh":
        peers = [(r, p) for r in range(case.ranks) for p in range(case.ranks) if r != p]
        assert result.moved == dict.fromkeys(peers, case.elements * size), "every rank reads every other window once"
        return
    n = case.ranks
    bounds = ring_bounds(case.elements, n, FP16 if case.dtype == "FP16" else FP32)
    lengths = [bounds[s + 1] - bounds[s] for s in range(n)]
    for r in range(n):
        # In the first half all segments but r + 1 go to the right, in the second all but r + 2.
        want = 2 * sum(lengths) - lengths[(r + 1) % n] - lengths[(r + 2) % n]
        assert result.moved.get((r, (r + 1) % n), 0) == want * size
    assert all(p == (r + 1) % n for r, p in result.moved)


@pytest.mark.parametrize(("i", "case"), list(enumerate(OTHERS)), ids=str)
def test_others(i: int, case: Case) -> None:
    result = check(case, some(i))
    row, n = case.elements * DTYPES[case.dtype]().itemsize, case.ranks
    peers = [(r, p) for r in range(n) for p in range(n) if r != p]
    if case.what in ("allgather", "all_to_all", "reduce_scatter"):
        assert result.moved == dict.fromkeys(peers, row)
    if case.what == "broadcast":
        assert result.moved == {(r, 0): 2 * row for r in range(1, n)}
    if case.what == "barrier":
        assert not result.moved
    if case.what == "all_to_all_v":
        counts = [g["c0"] for g in inputs(case)]
        rows = {(r, p): clamp_count(counts[r][p], MAX_RECV) for r, p in peers}
        assert result.moved == {k: v * row for k, v in rows.items() if v}, "no row of padding is moved"


@pytest.mark.parametrize("what", EVERY)
@pytest.mark.parametrize(
    ("dtype", "op", "ranks", "size"),
    [("FP32", "Sum", 3, 17), ("FP16", "Prod", 5, 4097), ("FP16", "Max", 2, -1), ("FP32", "Min", 4, 100)],
)
def test_three_calls_on_one_signal(what: str, dtype: str, op: str, ranks: int, size: int) -> None:
    """Each call's result is read before the next call; the signal is zero at the end."""
    check(Case(what, dtype, op, ranks, size), range(0, 20, 3), calls=3)


@pytest.mark.parametrize("what", EVERY)
def test_the_lowered_form_is_plain(what: str) -> None:
    case = Case(what, "FP32", "Sum", 4, 100)
    program = lowered(case, 2)
    assert expand(program) is program
    assert parse(print_program(program)) == program
    ops = [s for s in walk(program.functions[0].body) if isinstance(s, Op)]
    names = Counter(s.name for s in ops)
    assert not any(n.removeprefix("pld.tensor.") in (*COLLECTIVES, "allreduce", "put", "get") for n in names)
    assert all(s.attrs["op"] == "atomic_add" for s in ops if s.name == "pld.system.notify"), "cells are only added to"
    waits = [s for s in ops if s.name == "pld.system.wait"]
    assert waits and all(s.attrs["cmp"] == "ge" for s in waits)
    assert all(s.span is not None for s in ops)
