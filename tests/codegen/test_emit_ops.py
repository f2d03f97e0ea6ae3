"""Every tile operation on both targets, written as assembly, executed on bytes, compared with the interpreter."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tilegg
from tilegg.cli.catalog import verdicts_of
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES
from tilegg.ir.op import OPS
from tilegg.ir.program import Program
from tilegg.rules.target import load_target

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check
from emit_samples import TARGETS, cast_programs, operation_programs

#: Families that compute element by element.
ELEMENTWISE = frozenset(
    {"tile-tile arithmetic", "tile-scalar arithmetic", "unary", "bitwise and shifts"}
    | {"fused arithmetic", "compare and select"}
)

def _run(samples: Iterator[tuple[str, Program]], target: str) -> int:
    done = 0
    for name, program in samples:
        try:
            check(program, target)
        except (AssertionError, TileggError) as problem:
            raise AssertionError(f"{name}: {problem}") from problem
        done += 1
    return done


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
    assert _run(_thinned(operation_programs(target), 5), target) > 70


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_legal_can_be_written(target: str) -> None:
    """Every operation on every dtype that the target's tables list, with all the forms of its operands."""
    wrong = []
    for name, program in operation_programs(target):
        try:
            tilegg.emit(tilegg.lower(program, target))
        except TileggError as problem:
            wrong.append(f"{name}: {problem}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("target", TARGETS)
def test_every_elementwise_operation_is_tried(target: str) -> None:
    """Each that computes element by element, on each dtype of the tables that its declaration takes."""
    tried = {name for name, _ in operation_programs(target)}
    known = load_target(target)
    for decl in OPS.values():
        if decl.family not in ELEMENTWISE or decl.pto is None or not decl.name.startswith("tile."):
            continue
        for dtype, verdict in verdicts_of(known, decl).items():
            if verdict.ok and DTYPES[dtype].pto:
                assert f"{decl.name.removeprefix('tile.')}_{DTYPES[dtype].short}" in tried


def _unary(dtype: str, line: str) -> Program:
    return tilegg.parse(
        "@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(x: pl.Tensor[[16, 64], pl.{dtype}], out: pl.Out[pl.Tensor[[16, 64], pl.{dtype}]]):\n"
        f"    a = pl.tile.load(x, [0, 0], [16, 64])\n    return pl.tile.store({line}, [0, 0], out)\n"
    )


@pytest.mark.parametrize("target", TARGETS)
def test_scalars_without_sign_are_refused_beside_unsigned_tiles(target: str) -> None:
    with pytest.raises(TileggError) as problem:
        tilegg.lower(_unary("UINT32", "pl.tile.pows(a, 5)"), target)
    found = problem.value.diagnostics[0]
    assert found.code == "TG022" and "have no sign" in found.reason
    assert "pl.tile.pow(x, pl.tile.expands(x, scalar))" in found.hint
    check(tilegg.lower(_unary("UINT32", "pl.tile.pow(a, pl.tile.expands(a, 5))"), target), target)


@pytest.mark.parametrize("dtype", ["UINT16", "UINT32"])
def test_remainders_of_unsigned_tiles_take_a_tile_of_the_scalar(dtype: str) -> None:
    text = check(tilegg.lower(_unary(dtype, "pl.tile.rems(a, 5)"), "a5"), "a5")
    assert "pto.trem " in text and "pto.trems" not in text and "pto.texpands" in text


@pytest.mark.parametrize("line", ["pl.tile.pow(a, a)", "pl.tile.pows(a, 2.0)"])
def test_powers_of_bf16_are_the_precise_form(line: str) -> None:
    assert "precisionType = #pto<pow_precision high_precision>" in check(tilegg.lower(_unary("BF16", line), "a5"), "a5")
    assert "precisionType" not in check(tilegg.lower(_unary("FP32", line), "a5"), "a5")


@pytest.mark.parametrize("target", TARGETS)
def test_conversions(target: str) -> None:
    assert _run(_thinned(cast_programs(target), 6), target) >= 20


@pytest.mark.parametrize("shape", [(8, 8), (16, 1), (1, 24), (40, 1), (5, 7), (1, 1)])
def test_conversions_of_unaligned_shapes(shape: tuple[int, int]) -> None:
    for target in TARGETS:
        samples = ((n, p) for n, p in cast_programs(target, shape) if "fp4" not in n)
        assert _run(_thinned(samples, 40), target) >= 20
