"""Every tile operation on both targets, written as assembly, executed on bytes, compared with the interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Program

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check
from emit_samples import TARGETS, cast_programs, operation_programs

Samples = Callable[[str], Iterator[tuple[str, Program]]]
#: What the assembler has no form for, by the message that says so.
_REFUSALS = (
    "cannot get another shape or element type in assembly",
    "does not begin at a 32-byte block",
    "the scalar must have the tiles' element type",
    "cannot lower it",
    "pto.tpow",
    "the emitter has no form",
)


def _run(samples: Iterator[tuple[str, Program]], target: str) -> tuple[int, list[str]]:
    done, refused = 0, []
    for name, program in samples:
        try:
            check(program, target)
            done += 1
        except TileggError as problem:
            assert any(text in str(problem) for text in _REFUSALS), f"{name}: {problem}"
            refused.append(name)
        except AssertionError as problem:
            raise AssertionError(f"{name}: {problem}") from problem
    return done, refused


def _thinned(samples: Iterator[tuple[str, Program]], every: int) -> Iterator[tuple[str, Program]]:
    """Keep the first sample of each operation and every so many of the others."""
    seen: set[str] = set()
    for i, (name, program) in enumerate(samples):
        operation = name.rsplit("_", 1)[0]
        if operation not in seen or i % every == 0:
            seen.add(operation)
            yield name, program


@pytest.mark.parametrize("target", TARGETS)
def test_operations(target: str) -> None:
    done, refused = _run(_thinned(operation_programs(target), 5), target)
    assert done > 70
    assert len(refused) <= 12, refused


@pytest.mark.parametrize("target", TARGETS)
def test_conversions(target: str) -> None:
    done, refused = _run(_thinned(cast_programs(target), 6), target)
    assert done >= 20 and not refused


@pytest.mark.parametrize("shape", [(8, 8), (16, 1), (1, 24), (40, 1), (5, 7), (1, 1)])
def test_conversions_of_unaligned_shapes(shape: tuple[int, int]) -> None:
    for target in TARGETS:
        samples = ((n, p) for n, p in cast_programs(target, shape) if "fp4" not in n)
        done, refused = _run(_thinned(samples, 40), target)
        assert done >= 20 and not refused
