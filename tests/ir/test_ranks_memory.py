"""Windows of several ranks: regions and their overlaps, peers of views, order of writes, undefined bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP32, INT32
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.ranks_memory import LINE, Memory, Region, View, Write, flush_order
from tilegg.ir.text import parse

sys.path.insert(0, str(Path(__file__).parent))
from rank_kernels import PRELUDE, kernel

boxes = st.tuples(st.integers(0, 6), st.integers(0, 12), st.integers(1, 6), st.integers(1, 12))


def region(array: np.ndarray, view: View, box: tuple[int, int, int, int]) -> Region:
    r, c, h, w = box
    return view.region(0, array[r : r + h, c : c + w])


@settings(max_examples=200, deadline=None)
@given(boxes, boxes)
def test_overlap_is_that_of_the_elements(a: tuple[int, int, int, int], b: tuple[int, int, int, int]) -> None:
    memory = Memory(2)
    array = memory.add("w", 8 * 16 * 4).slice_of(0, (8, 16), FP32)
    view = memory.view(array)
    marks = np.zeros((8, 16), int)
    for r, c, h, w in (a, b):
        marks[r : r + h, c : c + w] += 1
    assert region(array, view, a).overlaps(region(array, view, b)) == bool((marks == 2).any())


def test_regions_of_other_ranks_or_windows_never_overlap() -> None:
    here = Region("w", 0, 0, (4,), (4,), 4)
    assert here.overlaps(here)
    assert not here.overlaps(Region("w", 1, 0, (4,), (4,), 4))
    assert not here.overlaps(Region("v", 0, 0, (4,), (4,), 4))
    assert not here.overlaps(Region("w", 0, 16, (4,), (4,), 4))
    assert here.nbytes == 16 and here.stop == 16
    assert Region("w", 0, 8, (0, 4), (16, 4), 4).stop == 8


def test_cache_lines() -> None:
    assert Region("w", 0, 0, (16,), (4,), 4).lines() == {0}
    assert Region("w", 0, 60, (2,), (4,), 4).lines() == {0, 1}
    assert Region("w", 0, 0, (3, 1), (128, 4), 4).lines() == {0, 2, 4}
    assert Region("w", 0, 0, (0,), (4,), 4).lines() == set()


@pytest.mark.parametrize("dtype", [FP32, BF16, INT32])
def test_the_peer_of_a_view_is_the_same_part_of_its_slice(dtype: object) -> None:
    memory = Memory(3)
    window = memory.add("w", 200)
    slices = [window.slice_of(r, (5, 8), dtype) for r in range(3)]  # type: ignore[arg-type]
    assert window.base % LINE == 0 and window.pitch % LINE == 0 and window.pitch >= 200
    for r, s in enumerate(slices):
        s[...] = np.arange(40).reshape(5, 8) + 40 * r
    part = slices[1][1:4, ::2].T
    view = memory.view(part)
    assert view.rank == 1
    for r in range(3):
        assert np.array_equal(view.peer(r), slices[r][1:4, ::2].T)
    view.peer(2)[0, 0] = 7
    assert slices[2][1, 0] == 7
    assert view.cell(2, (1, 0)).number == 8 + 2


def test_arrays_outside_windows() -> None:
    memory = Memory(2)
    memory.add("w", 64)
    assert not memory.holds(np.zeros(4)) and not memory.holds(3)
    with pytest.raises(TileggError, match="no window"):
        memory.view(np.zeros(4))
    with pytest.raises(TileggError, match="does not fit"):
        memory.windows["w"].slice_of(0, (17,), FP32)


def test_overlapping_writes_of_a_rank_keep_their_order() -> None:
    def write(number: int, start: int) -> Write:
        none = np.zeros(0)
        return Write(0, number, Region("w", 0, start, (2,), (4,), 4), none, none, none, False)

    a, b, c, d = write(1, 0), write(2, 4), write(3, 8), write(4, 100)
    assert [w.number for w in flush_order([a, b, c, d], c)] == [1, 2, 3]
    assert [w.number for w in flush_order([a, b, c, d], a)] == [1]
    assert [w.number for w in flush_order([a, b, c, d], d)] == [4]


def test_views_of_windows_reach_their_peers() -> None:
    params = (
        "x: pl.Tensor[[1, 4], pl.FP32], data: pld.DistributedTensor[[4, 8], pl.FP32], "
        "sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
    )
    body = (
        "    half = pl.tensor.slice(data, [2, 8], [2, 0])\n"
        "    line = pl.tensor.reshape(half, [1, 16])\n"
        "    pld.tensor.put(line, 1 - me, x, [0, 4], [0, 0], [1, 4])\n"
        "    s = pld.tensor.barrier(sig)\n"
    )
    inputs = [{"x": np.full((1, 4), r + 1, np.float32)} for r in range(2)]
    for schedule in schedules(2, 6):
        result = run_ranks(kernel(params, body), 2, inputs, schedule=schedule, trace=True).check()
        for r in range(2):
            assert result.windows["data"][r][2, 4:].tolist() == [2 - r] * 4
            assert result.known["data"][r].sum() == 4
    put = next(e for e in result.trace if e.kind == "put")
    assert (put.writes[0].start, put.writes[0].nbytes) == ((16 + 4) * 4, 16)


def test_scalar_accesses_to_windows() -> None:
    params = "w: pld.DistributedTensor[[2, 4], pl.INT32], sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
    body = (
        "    a = pl.tensor.write(w, [1, me], me + 5)\n"
        "    v = pl.tensor.read(w, [1, me])\n"
        "    b = pl.tensor.write(w, [0, 0], v * 2)\n"
        "    s = pld.tensor.barrier(sig)\n"
        "    t = pl.tensor.read(w, [1, 3])\n"
    )
    for memory in ("released", "fenced"):
        result = run_ranks(kernel(params, body, "w"), 2, {}, memory=memory)
        assert [w[0, 0] for w in result.windows["w"]] == [10, 12]
        assert [f.kind for f in result.findings] == ["undefined read"] * 2, "the last element was never written"
        assert run_ranks(kernel(params, body, "w"), 2, {}, memory=memory, undefined="allow").ok
    with pytest.raises(TileggError, match="TG040"):
        run_ranks(kernel(params, body, "w"), 2, {}, undefined="ignore")


@pytest.mark.parametrize("memory", ["released", "fenced"])
def test_elements_of_windows_are_numbers_and_not_codes(memory: str) -> None:
    params = "w: pld.DistributedTensor[[1, 4], pl.FP8E4M3FN], sig: pld.DistributedTensor[[NR, 1], pl.INT32]"
    body = (
        "    a = pl.tensor.write(w, [0, 0], 1.5)\n"
        "    v = pl.tensor.read(w, [0, 0])\n"
        "    b = pl.tensor.write(w, [0, 1], v)\n"
        "    s = pld.tensor.barrier(sig)\n"
    )
    result = run_ranks(kernel(params, body, "w"), 2, {}, memory=memory)
    assert [w[0, :2].tolist() for w in result.windows["w"]] == [[0x3C, 0x3C]] * 2


def test_a_plain_tensor_is_no_argument_for_a_window() -> None:
    text = PRELUDE.format(params="sig: pld.DistributedTensor[[2, 1], pl.INT32]", window="sig")
    caller = (
        "\n@pl.function(type=pl.FunctionType.Orchestration)\n"
        "def main(t: pl.Tensor[[2, 1], pl.INT32], w: pld.DistributedTensor[[2, 1], pl.INT32]):\n    kernel({arg})\n"
    )
    parse(text + caller.format(arg="w"))
    with pytest.raises(TileggError, match="TG006"):
        parse(text + caller.format(arg="t"))
