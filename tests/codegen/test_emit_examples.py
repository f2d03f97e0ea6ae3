"""The distributed examples: their assembly in ``examples/pto`` runs on several ranks and agrees with the simulator."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.ir.ranks import run_ranks

sys.path.insert(0, str(Path(__file__).parent))
from test_emit_ranks import execute

EXAMPLES = Path(__file__).parents[2] / "examples"


def agree(name: str, target: str, ranks: int, given: list[dict[str, Any]], dims: dict[str, int]) -> list[Any]:
    """Run an example's assembly and compare with the program as written, to the bit; return its outputs."""
    source = tilegg.parse((EXAMPLES / f"{name}.py").read_text(), f"{name}.py")
    text = (EXAMPLES / "pto" / f"{name}.{target}.pto").read_text()
    lowered = tilegg.lower(source, target).program
    want = run_ranks(source, ranks, given, dims=dims).check()
    got = execute(lowered, text, ranks, given, dims, seed=ranks)
    for r in range(ranks):
        for out, value in want.outputs[r].items():
            assert np.asarray(value).tobytes() == got[r][out].tobytes(), f"{out} of rank {r}"
    return got


@pytest.mark.parametrize(("target", "ranks"), [("a2a3", 2), ("a2a3", 5), ("a5", 3)])
def test_mean_gradient(target: str, ranks: int) -> None:
    """On a2a3 a mesh with two ranks, a ring with five."""
    rng = np.random.default_rng(ranks)
    grads = [rng.integers(-99, 99, (16, 2500)).astype(np.float32) for _ in range(ranks)]
    given = [{"grad": g, "inv_ranks": 0.25} for g in grads]
    got = agree("distributed_allreduce", target, ranks, given, {"NR": ranks, "ROUNDS": 2 * (ranks - 1)})
    assert all(np.array_equal(g["mean"], sum(grads) / 4) for g in got)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_moe(target: str) -> None:
    ranks = 3
    rng = np.random.default_rng(1)
    x = [rng.standard_normal((ranks * 32, 64)).astype(np.float32) for _ in range(ranks)]
    send = rng.integers(0, 9, (ranks, ranks)).astype(np.int32)
    send[0] = [32, 0, 1]
    given = [
        {"x": x[r], "send": send[r], "gate": rng.uniform(0, 1, (ranks * 32, 8)).astype(np.float32), "weight": 1.5,
         "outbox": np.zeros_like(x[r]), "counts": np.zeros(ranks, np.int32), "y": np.zeros_like(x[r])}
        for r in range(ranks)
    ]  # fmt: skip
    got = agree("distributed_moe", target, ranks, given, {"NR": ranks, "TOKENS": 32 * ranks})
    assert all(not g["signal"].any() for g in got)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_exchange(target: str) -> None:
    source = tilegg.parse((EXAMPLES / "protocol_exchange.py").read_text())
    rng = np.random.default_rng(4)
    (f,) = source.functions
    shapes = {p.value.name: p.value.type.shape for p in f.params if not p.value.type.is_window}
    given = [
        {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()} for _ in range(4)
    ]  # fmt: skip
    agree("protocol_exchange", target, 4, given, {})
