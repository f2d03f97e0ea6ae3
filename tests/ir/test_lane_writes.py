"""Scalar stores of the blocks of one launch: which share a cache line, and what a run gives."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg import emit, lower
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.interp import run
from tilegg.ir.program import Program
from tilegg.ir.text import parse
from tilegg.ir.verify import verify

HEAD = """
import pypto.language as pl
import pypto.language.distributed as pld

@pl.function(type=pl.FunctionType.InCore)
def kernel({params}):
"""


def program(body: str, params: str = "out: pl.Out[pl.Tensor[[16, 1], pl.INT32]]") -> Program:
    return parse(HEAD.format(params=params) + "".join(f"    {line}\n" for line in body.splitlines()))


def words(p: Program) -> list[str]:
    return [d.message for d in verify(p) if d.code == "TG070"]


LOOP = "for e in pl.spmd(16):\n    pl.write(out, [{at}], 12345)"


@pytest.mark.parametrize(
    ("columns", "at", "apart"),
    [
        (1, "e, 0", 4), (4, "e, 0", 16), (16, "e, 0", None), (16, "0, e", 4), (2, "15 - e, 1", 8),
        (8, "e // 1, 0", None), (1, "e * 2 % 16, 0", None), (4, "e, e % 4", None), (4, "3, 1", None),
        (8, "(e + 1) * 1 - 1, 7", 32),
    ],
)  # fmt: skip
def test_distance_of_the_blocks_elements(columns: int, at: str, apart: int | None) -> None:
    found = words(program(LOOP.format(at=at), f"out: pl.Out[pl.Tensor[[16, {columns}], pl.INT32]]"))
    assert found == ([] if apart is None else [f"the blocks of a launch write elements {apart} bytes apart into out"])


def test_sixteen_blocks_each_write_their_element() -> None:
    """The value of every element by the program's meaning; packed, a device may keep only one of a line."""
    packed, padded = (
        program(LOOP.format(at="e, 0"), f"out: pl.Out[pl.Tensor[[16, {n}], pl.INT32]]") for n in (1, 16)
    )
    for p in (packed, padded):
        assert (run(p, {})["out"][:, 0] == 12345).all()
    assert words(packed) and not words(padded)


def test_a_kernel_that_asks_for_its_block() -> None:
    body = "b = pl.tile.get_block_idx()\npl.write(out, [b, 0], 12345)"
    packed, padded = (program(body, f"out: pl.Out[pl.Tensor[[16, {n}], pl.INT32]]") for n in (1, 16))
    assert len(words(packed)) == 1 and not words(padded)
    with pytest.raises(TileggError, match="TG070") as caught:
        emit(lower(packed, "a2a3"), "a2a3")
    assert caught.value.diagnostics[0].span.line == 8
    assert "pto.get_block_idx" in emit(lower(padded, "a2a3"), "a2a3")


@pytest.mark.parametrize(
    "body",
    [
        "for e in pl.spmd(16):\n    if e == 3:\n        pl.write(out, [e, 0], 1)",
        "for e in pl.spmd(1):\n    pl.write(out, [e, 0], 1)",
        "for e in pl.range(16):\n    pl.write(out, [e, 0], 1)",
        "for e in pl.spmd(4):\n    for k in pl.range(e):\n        pl.write(out, [k, 0], 1)",
        "for e in pl.spmd(4):\n    t = pl.tile.full([1, 1], dtype=pl.INT32, value=1)\n    pl.store(t, [e, 0], out)",
    ],
)
def test_no_conflict_is_shown(body: str) -> None:
    assert words(program(body)) == []


@pytest.mark.parametrize(
    "body",
    [
        "with pl.spmd(4):\n    pl.write(out, [pl.tile.get_block_idx(), 0], 1)",
        "for e in pl.spmd(4):\n    for k in pl.range(3):\n        pl.write(out, [e * 4 + k, 0], 1)",
        "b = 2\nfor e in pl.spmd(b):\n    pl.write(out, [e + b, 0], 1)",
    ],
)
def test_conflicts_in_other_words(body: str) -> None:
    assert len(words(program(body))) == 1


def test_flags_that_blocks_set() -> None:
    params = "sig: pld.DistributedTensor[[64, 1], pl.INT32]"
    body = "for e in pl.spmd(4):\n    pld.system.notify(sig, 0, [e{step}, 0], 1, op=pld.NotifyOp.{op})"
    assert words(program(body.format(step="", op="Set"), params))
    assert not words(program(body.format(step=" * 16", op="Set"), params))
    assert not words(program(body.format(step="", op="AtomicAdd"), params)), "adds are made in memory"


def test_strides_of_a_view_count() -> None:
    view = "pl.TensorView(stride=[{stride}, 1], layout=pl.TensorLayout.ND)"
    for stride, expected in ((16, 0), (8, 1)):
        params = f"out: pl.Out[pl.Tensor[[16, 4], pl.INT32, {view.format(stride=stride)}]]"
        assert len(words(program(LOOP.format(at="e, 0"), params))) == expected


def test_sixty_four_byte_elements_apart_hold_every_value() -> None:
    p = program(LOOP.format(at="e, 0"), "out: pl.Out[pl.Tensor[[16, 8], pl.INT64]]")
    assert words(p) == [] and np.array_equal(run(p, {})["out"][:, 0], np.full(16, 12345))
