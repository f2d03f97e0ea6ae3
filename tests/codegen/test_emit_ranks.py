"""Lowered collectives as assembly, executed on several ranks and compared with their definitions."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.codegen.emit_names import extra_sizes
from tilegg.codegen.pto import api as pto
from tilegg.ir.dimexpr import evaluate
from tilegg.ir.ranks import run_ranks
from tilegg.ir.types import TensorType

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "rewrite"))
from collective_cases import COLLECTIVES, Case, inputs, program, run
from comm_kernels import KERNELS
from emit_check import from_memory, to_memory, values_for
from pto_ranks import Mesh

TARGETS = ("a2a3", "a5")


def emitted(source: Any, target: str) -> tuple[Any, str]:
    """Return the lowered program and its assembly, which survives reading and printing."""
    lowered = tilegg.lower(source, target)
    text = tilegg.emit(lowered, signals=False)
    again = pto.parse_pto(text)
    pto.verify_pto(again)
    assert pto.print_pto(again) == text
    return lowered.program, text


def extents(t: TensorType, dims: dict[str, int]) -> tuple[int, ...]:
    """Return the shape of a tensor for given sizes."""
    return tuple(int(evaluate(d, dims)) for d in t.shape)


def memory_of(f: Any, given: dict[str, Any], dims: dict[str, int], rng: np.random.Generator) -> dict[str, Any]:
    """Return the arguments of a kernel: bytes for tensors; windows without contents are random, signals zero."""
    out: dict[str, Any] = {name: dims[name] for name in extra_sizes(f)}
    for p in f.params:
        t, name = p.value.type, p.value.name
        if not isinstance(t, TensorType):
            out[name] = given[name]
            continue
        shape = extents(t, dims)
        if name in given:
            out[name] = to_memory(np.asarray(given[name], t.dtype.storage).reshape(shape), t.dtype)
        elif t.is_window and t.dtype.name == "INT32":
            out[name] = np.zeros(int(np.prod(shape)) * 4, np.uint8)
        else:
            out[name] = rng.integers(0, 256, int(np.prod(shape)) * t.dtype.storage.itemsize, dtype=np.uint8)
    return out


def execute(
    p: Any, text: str, ranks: int, given: list[dict[str, Any]], dims: dict[str, int], **how: Any
) -> list[dict[str, np.ndarray]]:
    """Run the assembly on all ranks; return each rank's tensors."""
    f = p.functions[0]
    rng = np.random.default_rng(how.get("seed", 0))
    args = [memory_of(f, g, dims, rng) for g in given]
    windows = [q.value.name for q in f.params if isinstance(q.value.type, TensorType) and q.value.type.is_window]
    Mesh(text, ranks, **how).run(f.name, args, windows)
    out = []
    for a in args:
        found = {}
        for q in f.params:
            t = q.value.type
            if isinstance(t, TensorType):
                shape = extents(t, dims)
                found[q.value.name] = from_memory(a[q.value.name], t.dtype, shape)
        out.append(found)
    return out


def compare(case: Case, target: str, calls: int = 1) -> None:
    source, given = program(case, calls), inputs(case, calls)
    want = run(source, case, given).check()
    p, text = emitted(source, target)
    dims = {"NR": case.ranks, "M": 2 * (case.ranks - 1)}
    seed = TARGETS.index(target)
    got = execute(p, text, case.ranks, given, dims, seed=seed, early=bool(seed))
    for r in range(case.ranks):
        for name, slices in want.windows.items():
            known = want.known[name][r]
            assert slices[r][known].tobytes() == got[r][name][known].tobytes(), f"{case}: {name} of rank {r}"
        for name, value in want.outputs[r].items():
            assert np.asarray(value).tobytes() == got[r][name].tobytes(), f"{case}: {name} of rank {r}"
        assert not got[r]["sig"].any(), f"{case}: the signal of rank {r} is not zero"


SMALL = [
    Case(what, dtype, op, ranks, size)
    for what, dtype, op, ranks, size in (
        ("mesh", "FP32", "Sum", 3, 17), ("mesh", "FP16", "Max", 2, 4097), ("mesh", "FP32", "Prod", 4, 1),
        ("ring", "FP32", "Sum", 3, 17), ("ring", "FP16", "Min", 4, 100), ("ring", "FP32", "Sum", 2, 10000),
        ("ring", "FP16", "Sum", 3, -1),
    )
] + [
    Case(what, dtype, "Sum", ranks, size)
    for what in COLLECTIVES for dtype, ranks, size in (("FP32", 3, 17), ("FP16", 2, 4100), ("FP32", 4, 1))
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", SMALL, ids=str)
def test_collectives_give_what_they_are_defined_to(case: Case, target: str) -> None:
    compare(case, target)


@pytest.mark.parametrize("what", ["mesh", "ring", "allgather", "all_to_all_v"])
def test_calls_follow_one_another_on_one_signal(what: str) -> None:
    compare(Case(what, "FP32", "Sum", 3, 9), "a5", calls=2)


# -- every operation ---------------------------------------------------------------------------------------

CASES = [(name, target) for name, k in KERNELS.items() for target in k.targets]


@cache
def compiled(name: str, target: str) -> tuple[Any, str]:
    k = KERNELS[name]
    lowered = tilegg.lower(tilegg.parse(k.text, f"{name}.py"), target)
    return lowered.program, tilegg.emit(lowered, signals=k.clean, locations=False)


@pytest.mark.parametrize(("name", "target"), CASES)
def test_every_form_does_what_the_program_means(name: str, target: str) -> None:
    k = KERNELS[name]
    p, text = compiled(name, target)
    pto.verify_pto(pto.parse_pto(text))
    dims = {"NR": k.ranks, **k.dims}
    given = []
    for r in range(k.ranks):
        rng = np.random.default_rng([r, 5])
        found = {}
        for q in p.functions[0].params:
            t = q.value.type
            if isinstance(t, TensorType) and not (t.is_window and t.dtype.name == "INT32"):
                found[q.value.name] = values_for(t.dtype, tuple(dims.get(d, d) for d in t.shape), rng)
        given.append(found)
    want = run_ranks(p, k.ranks, given, dims=dims).check()
    for seed in range(2):
        got = execute(p, text, k.ranks, given, dims, lanes=k.lanes, seed=seed, early=bool(seed % 2))
        for r in range(k.ranks):
            for window, slices in want.windows.items():
                known = want.known[window][r]
                assert slices[r][known].tobytes() == got[r][window][known].tobytes(), f"{window} of rank {r}"
            for out, value in want.outputs[r].items():
                assert np.asarray(value).tobytes() == got[r][out].tobytes(), f"{out} of rank {r}"
