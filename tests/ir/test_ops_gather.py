"""Gathers, scatters, windows of tiles and sorts: meanings by hand-computed values, types that are refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import FP16, FP32, INT16, INT32, UINT8, UINT16, UINT32
from tilegg.ir.interp_eval import eval_op
from tilegg.ir.op import OPS
from tilegg.ir.types import TupleType, tensor, tile

sys.path.insert(0, str(Path(__file__).parent))
from op_calls import pairs_of, refused, row, type_of, values

NAN, INF = float("nan"), float("inf")


def test_gather_counts_over_the_physical_tile() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert values("tile.gather", x, row(0, 5, 11, dtype=np.int32)).tolist() == [[0.0, 5.0, 11.0]]
    with pytest.raises(TileggError, match="outside"):
        values("tile.gather", x, row(12, dtype=np.int32))
    assert type_of("tile.gather", tile((4, 8), FP16), tile((2, 8), INT16, (2, 5))) == tile((2, 8), FP16, (2, 5))
    refused("TG007", "16-bit", "tile.gather", tile((4, 8), FP32), tile((2, 8), INT16))


def test_gather_blocks() -> None:
    x = np.arange(32, dtype=np.float32).reshape(2, 16)
    offsets = np.array([[0, 96, 64, 32, 0, 0, 0, 0]], np.uint32)
    found = values("tile.gatherb", x, offsets)
    assert found.shape == (1, 64) and found[0, :16].tolist() == [*range(8), *range(24, 32)]
    refused("TG008", "multiple of 8", "tile.gatherb", tile((2, 16), FP32), tile((1, 4), UINT32))


@pytest.mark.parametrize(("pattern", "first", "step"), [(1, 0, 2), (2, 1, 2), (3, 0, 4), (6, 3, 4), (7, 0, 1)])
def test_mask_patterns(pattern: int, first: int, step: int) -> None:
    x = np.arange(16, dtype=np.float32).reshape(2, 8)
    taken = values("tile.gather_mask", x, mask_pattern=pattern)
    assert taken.tolist() == x[:, first::step].tolist()
    spread = values("tile.scatter_mask", np.full_like(x, 9), taken, mask_pattern=pattern)
    want = np.zeros_like(x)
    want[:, first::step] = taken
    assert np.array_equal(spread, want)
    bits = values("tile.gather_mask", x, mask_pattern=pattern, output_dtype=UINT32)
    assert np.array_equal(bits.view(np.float32), taken)


def test_mask_types() -> None:
    assert type_of("tile.gather_mask", tile((4, 16), FP32), mask_pattern=3) == tile((4, 4), FP32)
    refused("TG005", "1 to 7", "tile.gather_mask", tile((4, 16), FP32), mask_pattern=0)
    refused("TG008", "groups of 4", "tile.gather_mask", tile((4, 6), FP32), mask_pattern=3)
    refused("TG007", "width", "tile.gather_mask", tile((4, 16), FP32), mask_pattern=1, output_dtype=UINT16)
    refused("TG008", "valid in", "tile.scatter_mask", tile((4, 16), FP32), tile((4, 16), FP32), mask_pattern=1)


def test_gather_by_comparison() -> None:
    x = np.array([[1.0, 5.0, 3.0, NAN], [9.0, 8.0, 7.0, 6.0]], np.float32)
    found, count = values("tile.gather_compare", x, 2.0, np.zeros((2, 32), np.uint8), cmp_mode=4, out_cols=3)
    assert found.tolist() == [[1, 2, 0], [0, 1, 2]] and count.tolist() == [[2, 4]]
    t = type_of("tile.gather_compare", tile((8, 64), FP32), 0.0, tile((8, 64), UINT8), out_cols=16)
    assert t == TupleType((tile((8, 16), INT32), tile((1, 8), INT32)))
    refused("TG005", "positive", "tile.gather_compare", tile((8, 64), FP32), 0.0, tile((8, 64), UINT8), out_cols=0)


def test_scatter() -> None:
    target = np.zeros((2, 4), np.float32)
    found = values("tile.scatter", target, row(5.0, 6.0), row(3, 4, dtype=np.int32))
    assert found.tolist() == [[0, 0, 0, 5.0], [6.0, 0, 0, 0]] and not target.any()
    refused("TG007", "INT32", "tile.scatter", tile((4, 8), FP32), tile((2, 8), FP32), tile((2, 8), INT16))
    refused("TG008", "valid shapes", "tile.scatter", tile((4, 8), FP32), tile((2, 8), FP32), tile((2, 4), INT32))


def test_rows_are_updated() -> None:
    target = np.zeros((4, 2), np.float32)
    found = values("tile.scatter_update", target, row(3, 1, dtype=np.int32), np.array([[1, 2], [3, 4]], np.float32))
    assert found.tolist() == [[0, 0], [3, 4], [0, 0], [1, 2]]
    refused(
        "TG005", "dim=-2", "tile.scatter_update", tile((4, 8), FP32), tile((1, 2), INT32), tile((2, 8), FP32), dim=0
    )
    refused("TG008", "row numbers", "tile.scatter_update", tile((4, 8), FP32), tile((1, 3), INT32), tile((2, 8), FP32))


def test_windows_of_tiles() -> None:
    target = np.zeros((3, 4), np.float32)
    assert values("tile.assemble", target, np.ones((2, 2), np.float32), [1, 2]).tolist() == [
        [0, 0, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]
    ]  # fmt: skip
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert values("tile.extract", x, 1, 1, [2, 2]).tolist() == [[5, 6], [9, 10]]
    refused("TG008", "exceeds", "tile.assemble", tile((4, 8), FP32), tile((2, 8), FP32), [3, 0])
    refused("TG008", "leaves", "tile.extract", tile((4, 8), FP32), 0, 6, [4, 4])
    assert type_of("tile.extract", tile((4, 8), FP32, (3, 8)), 2, 0, [2, 8]) == tile((2, 8), FP32, (1, 8))


def test_an_assembled_tile_grows_only_to_a_rectangle() -> None:
    grown = type_of("tile.assemble", tile((4, 16), FP32, (4, 8)), tile((4, 8), FP32), [0, 8])
    assert grown == tile((4, 16), FP32)
    kept = type_of("tile.assemble", tile((4, 16), FP32, (4, 8)), tile((2, 8), FP32), [0, 8])
    assert kept == tile((4, 16), FP32, (4, 8))


def test_rows_and_elements_of_tensors() -> None:
    mem = np.arange(12, dtype=np.float32).reshape(4, 3)
    decl = OPS["tile.mgather"]
    at = np.array([[3, 0]], np.int32)
    types = [tensor((4, 3), FP32), tile((1, 2), INT32), None]

    def gathered(index_: np.ndarray, **attrs: Any) -> list[Any]:
        t = type_of("tile.mgather", types[0], tile(index_.shape, INT32), **attrs)
        return eval_op(decl, [mem, index_, None], [types[0], tile(index_.shape, INT32), None], attrs, t).region.tolist()

    assert gathered(at) == [[9, 10, 11], [0, 1, 2]]
    assert gathered(np.array([[11, 0]], np.int32), coalesce="elem") == [[11, 0]]
    outside = np.array([[-1, 5]], np.int32)
    assert gathered(outside, gather_oob="clamp") == [[0, 1, 2], [9, 10, 11]]
    assert gathered(outside, gather_oob="wrap") == [[9, 10, 11], [3, 4, 5]]
    assert gathered(outside, gather_oob="zero") == [[0, 0, 0], [0, 0, 0]]
    with pytest.raises(TileggError, match="outside"):
        gathered(outside)
    refused("TG005", "gather_oob", "tile.mgather", types[0], types[1], gather_oob="mirror")
    refused("TG008", "one line", "tile.mgather", types[0], tile((2, 2), INT32))


# -- sorting -------------------------------------------------------------------------------------------------


def test_blocks_of_32_are_sorted_with_their_indices() -> None:
    x = np.arange(40, dtype=np.float32)[None, :]
    x[0, 5] = 31.0  # equals the last of its block: the smaller index comes first
    found = pairs_of(values("tile.sort32", x, np.arange(40, dtype=np.uint32)[None, :])[0])
    assert found[:3] == [(31.0, 5), (31.0, 31), (30.0, 30)]
    assert found[32:34] == [(39.0, 39), (38.0, 38)] and len(found) == 40
    assert type_of("tile.sort32", tile((2, 64), FP16), tile((2, 64), UINT32)) == tile((2, 256), FP16)
    assert type_of("tile.sort32", tile((2, 64), FP32), tile((2, 64), UINT32)) == tile((2, 128), FP32)
    half = values("tile.sort32", np.array([[1, 3]], np.float16), np.array([[7, 8]], np.uint32))
    assert half.shape == (1, 8) and pairs_of(half[0]) == [(3.0, 8), (1.0, 7)]
    refused("TG007", "FP16 and FP32", "tile.sort32", tile((2, 64), INT32), tile((2, 64), UINT32))
    for other in ((32, 56), (33, 56), (32, 64), (33,), (1, 63), (2, 33, 64)):
        refused("TG008", "idx in", "tile.sort32", tile((33, 64), FP32), tile(other, UINT32))
    part, whole = tile((33, 64), FP32, (30, 64)), tile((33, 64), UINT32)
    refused("TG008", "idx in [33, 64]", "tile.sort32", part, whole)
    assert type_of("tile.sort32", part, tile((33, 64), UINT32, ("n", 64))) == tile((33, 128), FP32, (30, 128))


def test_sorted_runs_are_merged() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(0, 1, (1, 128)).astype(np.float32)
    runs = values("tile.sort32", x, np.arange(128, dtype=np.uint32)[None, :])
    merged = pairs_of(values("tile.mrgsort_format1", runs, 64)[0])
    assert [i for _, i in merged] == np.argsort(-x[0], kind="stable").tolist()
    lists = values("tile.mrgsort_format2", runs[:, :64], runs[:, 64:128], runs[:, 128:])
    assert pairs_of(lists[0]) == merged
    refused("TG005", "multiple of 64", "tile.mrgsort_format1", tile((1, 256), FP32), 32)
    refused("TG005", "block_len", "tile.mrgsort", tile((1, 256), FP32))
    refused("TG008", "one row", "tile.mrgsort_format2", tile((2, 64), FP32), tile((2, 64), FP32))
    refused("TG008", "four runs of 64", "tile.mrgsort_format1", tile((1, 128), FP32), 64)
    refused("TG008", "four runs of 64", "tile.mrgsort", tile((1, 384), FP16), None, None, None, None, 64)
    refused("TG008", "no whole pairs", "tile.mrgsort_format2", tile((1, 64), FP32), tile((1, 63), FP32))
    refused("TG008", "a pair takes 4 elements", "tile.mrgsort_format2", tile((1, 66), FP16), tile((1, 64), FP16))


# -- padding, quantisation by rows ---------------------------------------------------------------------------
