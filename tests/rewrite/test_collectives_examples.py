"""The distributed examples: lowered for both targets and run on several ranks."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tilegg.cli import main
from tilegg.extract.lower import lower
from tilegg.ir.program import Program
from tilegg.ir.ranks import run_ranks, schedules
from tilegg.ir.text import parse
from tilegg.rules.collectives.choose import CHUNKS, link_model
from tilegg.rules.target import load_target

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str, arch: str | None) -> Program:
    program = parse((EXAMPLES / f"{name}.py").read_text())
    return program if arch is None else lower(program, arch).program


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("arch", [None, "a2a3", "a5"])
def test_mean_gradient(arch: str | None, ranks: int) -> None:
    rng = np.random.default_rng(ranks)
    grads = [rng.standard_normal((16, 2500)).astype(np.float32) for _ in range(ranks)]
    want = np.mean(grads, axis=0, dtype=np.float64)
    given = [{"grad": g, "inv_ranks": 1 / ranks} for g in grads]
    program = example("distributed_allreduce", arch)
    for schedule in schedules(ranks, 4):
        dims = {"NR": ranks, "ROUNDS": 2 * (ranks - 1)}
        result = run_ranks(program, ranks, given, dims=dims, schedule=schedule).check()
        assert all(np.allclose(o["mean"], want, atol=1e-6) for o in result.outputs) and result.clear_signals()
        assert len({o["mean"].tobytes() for o in result.outputs}) == 1, "the same bits on every rank"


@pytest.mark.parametrize("arch", [None, "a2a3", "a5"])
def test_moe(arch: str | None) -> None:
    ranks = 3
    rng = np.random.default_rng(1)
    send = rng.integers(0, 33, (ranks, ranks)).astype(np.int32)
    send[0] = [32, 0, 1]
    x = [rng.standard_normal((ranks * 32, 64)).astype(np.float32) for _ in range(ranks)]
    gate = [rng.uniform(0, 1, (ranks * 32, 8)).astype(np.float32) for _ in range(ranks)]
    weights = [0.5, 2.0, 3.0]
    given = [
        {"x": x[r], "send": send[r], "gate": gate[r], "weight": weights[r], "outbox": np.zeros_like(x[r]),
         "counts": np.zeros(ranks, np.int32), "y": np.zeros_like(x[r])}
        for r in range(ranks)
    ]  # fmt: skip
    program = example("distributed_moe", arch)
    for schedule in schedules(ranks, 10):
        result = run_ranks(program, ranks, given, schedule=schedule).check()
        for r in range(ranks):
            want = np.zeros_like(x[r])
            for e in range(ranks):
                rows = slice(e * 32, e * 32 + send[r, e])
                answer = np.maximum(x[r][rows] * np.float32(weights[e]), 0)
                want[rows] = x[r][rows] + answer * gate[r][rows].max(axis=1, keepdims=True)
            assert np.array_equal(result.outputs[r]["y"], want)
        assert not any(s.any() for s in result.windows["signal"])
        if arch is not None:
            moved = {(a, b): 256 * (send[a, b] + send[b, a]) for a in range(ranks) for b in range(ranks) if a != b}
            assert result.moved == {k: v for k, v in moved.items() if v}


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_explain_shows_the_figures_of_the_choice(arch: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(EXAMPLES / "distributed_allreduce.py"), "--arch", arch]) == 0
    shown = capsys.readouterr()
    (line,) = (s for s in (shown.out + shown.err).splitlines() if "TG054" in s)
    assert "mode='auto' takes" in line and f"figures of {arch}" in line
    model = link_model(load_target(arch))
    for found in re.finditer(r"(\d+) bytes on (\d+) ranks take ([\d.]+) us on a mesh, ([\d.]+) us on a ring", line):
        nbytes, n = int(found[1]), int(found[2])
        mesh = min(model.mesh(nbytes, n, c) for c in CHUNKS)
        ring = min(model.ring(nbytes, n, c) for c in CHUNKS)
        assert (found[3], found[4]) == (f"{mesh / 1000:.1f}", f"{ring / 1000:.1f}")
