"""Instructions that overwrite an operand: priced without a copy exactly where the old value is dead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.ir.builder import Builder
from tilegg.ir.dtypes import FP32
from tilegg.ir.types import tensor

SHAPE = [32, 64]


def program(body: Callable[..., tuple[Any, ...]]) -> Any:
    b = Builder("k", type="pl.FunctionType.InCore")
    x, y = b.param("x", tensor(SHAPE, FP32)), b.param("y", tensor(SHAPE, FP32))
    made = body(b, b.tile.load(x, [0, 0], SHAPE), b.tile.load(y, [0, 0], SHAPE))
    outs = [b.param(f"out{i}", tensor(SHAPE, FP32), "Out") for i in range(len(made))]
    b.ret(*[b.tile.store(v, [0, 0], o) for v, o in zip(made, outs)])
    return b.program("P")


def instructions(lowered: Any) -> list[Any]:
    return [i for r in lowered.functions for i in r.instructions]


def copies(p: Any, target: str) -> tuple[int, int]:
    """Copies that are priced, and copies that are emitted."""
    lowered = tilegg.lower(p, target)
    loads_and_stores = sum(i.count for i in instructions(lowered) if i.op.name in ("tile.load", "tile.store"))
    operations = sum(1 for i in instructions(lowered) if i.count and i.op.name not in ("tile.load", "tile.store"))
    return lowered.totals.instructions - loads_and_stores - operations, tilegg.emit(lowered).count("pto.tmov")


CASES: dict[str, tuple[Callable[..., tuple[Any, ...]], int]] = {
    "a loaded tile nobody else reads": (lambda b, x, y: (b.tile.axpy(y, x, 2.0),), 0),
    "an intermediate": (lambda b, x, y: (b.tile.axpy(b.tile.exp(y), x, 2.0),), 0),
    "a chain": (lambda b, x, y: (b.tile.axpy(b.tile.axpy(y, x, 2.0), x, 3.0),), 0),
    "a loaded tile that is stored": (lambda b, x, y: (b.tile.axpy(y, x, 2.0), y), 1),
    "an intermediate that is stored": (lambda b, x, y: (lambda e: (b.tile.axpy(e, x, 2.0), e))(b.tile.exp(y)), 1),
    "an intermediate that is read again": (
        lambda b, x, y: (lambda e: (b.tile.axpy(e, x, 2.0), b.tile.exp(e)))(b.tile.exp(y)), 1,
    ),
    "its own source": (lambda b, x, y: (b.tile.axpy(y, y, 2.0), x), 1),
    "another name of a tile": (lambda b, x, y: (b.tile.axpy(b.tile.reshape(y, SHAPE), x, 2.0), y), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["a5", "a2a3"])
def test_copies_are_priced_where_they_are_emitted(name: str, target: str) -> None:
    body, wanted = CASES[name]
    priced, emitted = copies(program(body), target)
    assert priced == wanted and emitted <= priced


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_a_loop_adds_up_in_the_tile_it_carries(target: str) -> None:
    b = Builder("k", type="pl.FunctionType.InCore")
    x = b.param("x", tensor(SHAPE, FP32))
    out = b.param("out", tensor(SHAPE, FP32), "Out")
    t = b.tile.load(x, [0, 0], SHAPE)
    with b.range(3, carry={"acc": t}) as loop:
        loop.yield_(b.tile.axpy(loop.args[0], t, 2.0))
    b.ret(b.tile.store(loop.results[0], [0, 0], out))
    p = b.program("P")
    lowered = tilegg.lower(p, target)
    assert next(i.count for i in instructions(lowered) if i.op.name == "tile.axpy") == 1
    # The tile is copied before the loop, where the initial value is read on, and in no round.
    before, inside = tilegg.emit(lowered).split("scf.for")
    assert "pto.tmov" in before and "pto.tmov" not in inside and "pto.taxpy" in inside
    given = {"x": np.ones(SHAPE, np.float32)}
    assert tilegg.run(lowered.program, given)["out"][0, 0] == tilegg.run(p, given)["out"][0, 0] == 7.0


def test_the_memo_knows_what_dies() -> None:
    """Two regions of one structure, one of which may overwrite its input."""
    dead, live = program(CASES["a loaded tile nobody else reads"][0]), program(CASES["a loaded tile that is stored"][0])
    for first, second in ((dead, live), (live, dead)):
        both = [tilegg.lower(p, "a5").totals.instructions for p in (first, second)]
        alone = [tilegg.lower(p, "a5", memo=None).totals.instructions for p in (first, second)]
        assert both == alone


def test_why_not_an_instruction_the_assembler_lacks() -> None:
    from tilegg.extract.why_not import answer

    lowered = tilegg.lower(program(lambda b, x, y: (b.tile.add(b.tile.mul(x, y), y),)), "a5")
    said = str(answer(lowered, "tmuladddst"))
    assert "the instruction set of a5 has tmuladddst, the assembler has not" in said and "cycles" in said
    assert "the assembler has not" not in str(answer(lowered, "tadd"))
