"""``scalars`` and ``ops --scalar``."""

import json
import re
from pathlib import Path

import pytest
from tilegg.ir.op import OPS

KERNEL = """
import pypto.language as pl

@pl.function
def f(x: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INT32]) -> pl.Scalar[pl.FP32]:
    y = pl.pto.fmax(x, 1.0)
    z = pl.cast(n, pl.FP32)
    w = pl.max(y, z)
    return w
"""


@pytest.fixture
def kernel(tmp_path):
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    return str(path)


def test_the_classification_lists_every_recorded_operation(tilegg):
    done = tilegg("ops", "--scalar", "--json")
    wanted = {d.name for d in OPS.values() if d.scalar is not None and d.scalar.group}
    assert {r["name"] for r in done.json["ops"]} == wanted and len(wanted) > 100
    text = tilegg("ops", "--scalar").out
    assert all(name in text for name in wanted) and "K. target-specific scalar operations" in text
    assert "pto.vote_any" in tilegg("ops", "vote", "--scalar").out


def test_lowering(tilegg, kernel):
    assert tilegg("scalars", kernel).out.count("pl.llvm.maxnum") == 2
    kept = tilegg("scalars", kernel, "--compat", "keep").out
    assert kept.count("pl.llvm.maxnum") == 1 and kept.count("pl.pto.fmax") == 1


def test_llvm(tilegg, kernel):
    out = tilegg("scalars", kernel, "--emit", "llvm").out
    assert "define float @f(float %x, i32 %n)" in out and out.count("call float @llvm.maxnum.f32") == 2


def test_mlir(tilegg, kernel):
    out = tilegg("scalars", kernel, "--emit", "mlir").out
    assert '"llvm.intr.maxnum"(' in out and "arith.sitofp %n : i32 to f32" in out


def test_casts(tilegg, kernel):
    out = tilegg("scalars", kernel, "--emit", "casts").out
    assert "%z = pto.cast %n signed : i32 -> f32" in out and "pto.sitofp" in out
    found = json.loads(tilegg("scalars", kernel, "--emit", "casts-json").out)
    assert [d["design"] for d in found["functions"][0]["designs"]] == [1, 2, 3, 4]


def test_misplaced_operations_are_reported(tilegg, tmp_path):
    path = tmp_path / "k.py"
    path.write_text("import pypto.language as pl\n\n@pl.function\ndef f():\n    t = pl.pto.get_tid_x()\n")
    done = tilegg("scalars", str(path))
    assert done.code == 1 and "TG055" in done.err and ":5:" in done.err
    assert "TG055" in tilegg("check", str(path)).err


def test_the_page_names_tests_that_exist_and_tables_that_are_fresh():
    root = Path(__file__).parents[2]
    page = (root / "docs" / "scalar.md").read_text(encoding="utf-8")
    named = [row for row in page.split("## Accepted when")[1].splitlines() if "tests/" in row]
    assert len(named) == 11
    for row in named:
        texts = [(root / path).read_text(encoding="utf-8") for path in re.findall(r"`(tests/[\w/]+\.py)::", row)]
        for name in re.findall(r"(test_\w+)`", row):
            assert any(f"def {name}(" in text for text in texts), name
    for decl in OPS.values():
        if decl.scalar is not None and decl.scalar.group:
            assert f"| `{decl.name}` | {decl.scalar.group} | {decl.scalar.domain} |" in page, decl.name
