"""Puts all emitted assembly through the real assembler: examples, test kernels, every operation and conversion.

    PTOAS=/path/to/ptoas python -m pytest -c tests/pytest.ini --rootdir tests tests/codegen/check_ptoas.py -q -rs

Skips when PTOAS is not set. Parsing verifies each file, and writing C++ runs the assembler's whole pipeline.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tilegg
from tilegg.codegen.pto.api import parse_pto, verify_pto
from tilegg.codegen.reading import read_module
from tilegg.extract.lower import CONTRACTS
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP16, FP32
from tilegg.ir.program import Const
from tilegg.rewrite.mutate import trial
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "rewrite"))
from collective_cases import COLLECTIVES, DTYPES, OPS, Case
from collective_cases import program as collective_program
from comm_kernels import KERNELS as COMM_KERNELS
from emit_kernels import A5_KERNELS, AS_WRITTEN, KERNELS, MX_KERNELS
from emit_samples import SHAPE, TARGETS, Builder, cast_programs, operation_programs
from simt_sweep import SWEEPS as SIMT_SWEEPS
from simt_texts import KERNELS as SIMT_KERNELS
from simt_texts import TEXTS as SIMT_TEXTS
from simt_texts import WRONG as SIMT_WRONG

PTOAS = os.environ.get("PTOAS", "")
FLAGS = ("--enable-insert-sync", "-o", os.devnull)
pytestmark = pytest.mark.skipif(not PTOAS, reason="PTOAS does not name an assembler")


def _examples(target: str) -> Iterator[tuple[str, Any]]:
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.py")):
        try:
            yield path.stem, tilegg.lower(tilegg.parse(path.read_text(), path.name), target)
        except TileggError:
            continue


def _kernels(target: str) -> Iterator[tuple[str, Any]]:
    for name, (text, _, _) in {**KERNELS, **(A5_KERNELS if target == "a5" else {})}.items():
        program = tilegg.parse(text, f"{name}.py")
        yield f"{name}_written", program
        if name not in AS_WRITTEN:
            yield name, tilegg.lower(program, target)
    for name, text in MX_KERNELS.items() if target == "a5" else ():
        program = tilegg.parse(text, f"{name}.py")
        yield f"{name}_written", program
        yield name, tilegg.lower(program, target)


def _corpus(target: str) -> Iterator[tuple[str, Any]]:
    """The kernels of the benchmarks, as written and lowered under every contract."""
    for path in sorted((Path(__file__).parents[2] / "benchmarks" / "corpus").glob("*.py")):
        program = tilegg.parse(path.read_text(), path.name)
        for contract in CONTRACTS:
            try:
                yield f"{path.stem}_{contract}", tilegg.lower(program, target, contract=contract)
            except TileggError:
                continue


def _rules(target: str) -> Iterator[tuple[str, Any]]:
    """Programs with the left side of every rule, lowered."""
    for seed, name in enumerate(RULES):
        for number, contract in enumerate(("exact", "contracted")):
            try:
                program, *_ = trial(2 * seed + number, name)
                yield f"{name}_{contract}", tilegg.lower(program, target, contract=contract)
            except TileggError:
                continue


def _communication(target: str) -> Iterator[tuple[str, Any]]:
    """Every form of every communicating operation."""
    for name, kernel in COMM_KERNELS.items():
        if target in kernel.targets:
            yield name, tilegg.lower(tilegg.parse(kernel.text, f"{name}.py"), target)


def _collectives(target: str) -> Iterator[tuple[str, Any]]:
    """Every collective in every dtype and reduction, with sizes of one chunk and of several, called twice."""
    for what in ("mesh", "ring", *COLLECTIVES):
        reduces = what in ("mesh", "ring", "reduce_scatter")
        for op in OPS if reduces else OPS[:1]:
            for dtype in DTYPES:
                for size in (1, 17, 10000):
                    case = Case(what, dtype, op, 4, size)
                    yield str(case), tilegg.lower(collective_program(case, 2), target)


def _constants(target: str) -> Iterator[tuple[str, Any]]:
    """Numbers that need care in text: infinities, NaN, minus zero, the smallest and largest ones."""
    for dtype in (FP32, FP16):
        most = 3.4e38 if dtype is FP32 else 65504.0
        for i, value in enumerate((float("inf"), float("-inf"), float("nan"), -0.0, 1e-45, most, 0.1)):
            b = Builder()
            b.store(b.op("tile.muls", (b.load(SHAPE, dtype), Const(value, dtype))))
            yield f"constant_{dtype.short}_{i}", b.program()
    b = Builder()
    b.store(b.op("tile.full", ((Const(16), Const(64)), Const(float("inf"), BF16)), dtype=BF16))
    yield "constant_bf16", b.program()


SHAPES = ((8, 8), (16, 1), (1, 24), (5, 7))
GROUPS = {
    "examples": _examples,
    "kernels": _kernels,
    "corpus": _corpus,
    "rules": _rules,
    "constants": _constants,
    "communication": _communication,
    "collectives": _collectives,
    "operations": operation_programs,
    "conversions": cast_programs,
    "small conversions": lambda target: (
        (f"{name}_{shape[0]}x{shape[1]}", program)
        for shape in SHAPES
        for i, (name, program) in enumerate(cast_programs(target, shape))
        if i % 5 == 0 and "fp4" not in name
    ),
}


def _emitted(group: str, target: str, folder: Path) -> list[Path]:
    """Write the group's files; programs tilegg refuses are left out."""
    files = []
    for name, program in GROUPS[group](target):
        try:
            text = tilegg.emit(program, target, signals=False)
        except TileggError:
            continue
        files.append(folder / f"{name}.pto")
        files[-1].write_text(text)
    return files


def _complaint(path: Path, arch: str) -> str:
    done = subprocess.run([PTOAS, f"--pto-arch={arch}", str(path), *FLAGS], capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else f"{path.name}: {done.stderr.strip()[:400]}"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("group", GROUPS)
def test_the_assembler_accepts(group: str, target: str, tmp_path: Path) -> None:
    files = _emitted(group, target, tmp_path)
    assert files
    arch = load_target(target).arch
    with ThreadPoolExecutor(2) as pool:
        complaints = [c for c in pool.map(lambda p: _complaint(p, arch), files) if c]
    assert not complaints, f"{len(complaints)} of {len(files)} refused:\n" + "\n".join(complaints[:20])


def _simt_programs() -> Iterator[tuple[str, str]]:
    """SIMT code as it was written by hand, and written back from what was read."""
    for name, text in SIMT_TEXTS.items():
        yield f"hand_{name}".replace(" ", "_"), text
        program = read_module(parse_pto(text))
        for compat in ("keep", "canonical"):
            yield f"{compat}_{name}".replace(" ", "_"), tilegg.emit(tilegg.lower(program, "a5", compat=compat), "a5")
    for name, text in SIMT_KERNELS.items():
        yield name, tilegg.emit(tilegg.lower(tilegg.parse(text, f"{name}.py"), "a5"), "a5")


def _vector(path: Path) -> str:
    flags = ("--pto-arch=a5", "--pto-backend=vpto", "--emit-vpto", "-o", os.devnull)
    done = subprocess.run([PTOAS, str(path), *flags], capture_output=True, text=True, timeout=60)
    return "" if done.returncode == 0 else f"{path.name}: {done.stderr.strip()[:400]}"


def test_the_assembler_accepts_simt_code(tmp_path: Path) -> None:
    files = []
    for name, text in _simt_programs():
        files.append(tmp_path / f"{name}.pto")
        files[-1].write_text(text)
    with ThreadPoolExecutor(2) as pool:
        complaints = [c for c in pool.map(_vector, files) if c]
    assert len(files) > 40 and not complaints, "\n".join(complaints)


def test_the_assembler_refuses_what_the_dialect_refuses(tmp_path: Path) -> None:
    taken = []
    for name, (text, _) in SIMT_WRONG.items():
        path = tmp_path / f"{name.replace(' ', '_')}.pto"
        path.write_text(text)
        if not _vector(path):
            taken.append(name)
    assert not taken


#: The assembler's own checker of texts, where it stands beside the assembler.
CHECKER = Path(PTOAS).with_name("pto-opt")


@pytest.mark.skipif(not CHECKER.exists(), reason="there is no pto-opt beside the assembler")
@pytest.mark.parametrize("name", SIMT_SWEEPS)
def test_each_combination_of_types_is_taken_or_refused_alike(name: str, tmp_path: Path) -> None:
    texts = list(SIMT_SWEEPS[name][0]())
    path = tmp_path / "sweep.pto"
    path.write_text("// -----\n".join(texts))
    flags = ("--split-input-file", str(path), "-o", os.devnull)
    done = subprocess.run([str(CHECKER), *flags], capture_output=True, text=True)
    starts, line = [], 1
    for text in texts:
        starts.append(line)
        line += text.count("\n") + 1
    places = [int(n) + 1 for n in re.findall(r"^within split at [^:]*:(\d+) offset.* error", done.stderr, re.M)]
    places += [int(n) for n in re.findall(rf"^{re.escape(str(path))}:(\d+):.* error", done.stderr, re.M)]
    refused = {bisect_right(starts, place) - 1 for place in places}
    differ = [text for i, text in enumerate(texts) if _taken(text) == (i in refused)]
    assert not differ, f"{len(differ)} of {len(texts)} differ:\n" + "\n".join(differ[:10])


def _taken(text: str) -> bool:
    try:
        verify_pto(parse_pto(text))
    except TileggError:
        return False
    return True
