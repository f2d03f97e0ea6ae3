"""Every bad input ends in a coded diagnostic with a place: no trace, no output file."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path

import pytest

from .conftest import cast_kernel, kernel

GOOD = cast_kernel("FP32", "BF16")

BAD_TEXTS = {
    "unclosed": (GOOD.replace("return pl.store(b", "return pl.store((b"), "TG001"),
    "indent": (GOOD.replace("        b =", "      b ="), "TG001"),
    "no program": ("x = 1\n", "TG002"),
    "executed code": (GOOD + "\nimport os\nos.system('true')\n", "TG002"),
    "unknown dtype": (GOOD.replace("pl.FP32", "pl.FP33"), "TG004"),
    "unknown mode": (GOOD.replace('"rint"', '"sideways"'), "TG004"),
    "undefined value": (GOOD.replace("pl.cast(a,", "pl.cast(missing,"), "TG003"),
    "used before defined": (GOOD.replace("a = pl.load", "c = pl.abs(b)\n        a = pl.load"), "TG003"),
    "wrong arity": (kernel("FP32", "FP32", "pl.tile.add(a)"), "TG005"),
    "too many operands": (kernel("FP32", "FP32", "pl.tile.abs(a, a, a)"), "TG005"),
    "unknown keyword": (kernel("FP32", "FP32", "pl.tile.abs(a, speed=3)"), "TG005"),
    "dtype conflict": (
        kernel("FP32", "FP32", "pl.tile.add(a, pl.cast(a, target_type=pl.FP16))"), "TG007",
    ),
    "shape conflict": (
        kernel("FP32", "FP32", "pl.tile.add(a, pl.tile.create([16, 32], pl.FP32))"), "TG008",
    ),
    "valid shape beyond shape": (
        GOOD.replace("pl.load(x, [0, 0], [16, 64])", "pl.load(x, [0, 0], [16, 64], valid_shape=[16, 65])"),
        "TG008",
    ),
    "annotation conflict": (GOOD.replace("a = pl.load", "a: pl.Tile[[16, 64], pl.INT8] = pl.load"), "TG010"),
    "deep expression": (kernel("FP32", "FP32", "pl.abs(" * 250 + "a" + ")" * 250), "TG0(01|12)"),
    "deep unary": (kernel("FP32", "FP32", "pl.adds(a, " + "-" * 5000 + "1.0)"), "TG0(01|12)"),
    "deep attributes": (GOOD + "x = a" + ".b" * 20000 + "\n", "TG0(02|12)"),
    "null byte": (GOOD.replace("a = pl", "a\0 = pl"), "TG001"),
    "empty": ("", "TG002"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_bad_text_is_a_coded_diagnostic_with_a_place(name, tilegg, source, tmp_path):
    text, code = BAD_TEXTS[name]
    path, out = source(text), tmp_path / "out.pto"
    done = tilegg("lower", path, "--arch", "a5", "-o", out)
    assert done.code == 1
    assert done.out == ""
    assert re.search(rf"error\[{code}\]", done.err), done.err
    if text:
        assert re.search(rf"{re.escape(str(path))}:\d+:\d+: error", done.err), done.err
    assert sorted(os.listdir(tmp_path)) == ["kernel.py"]


def test_the_caret_stands_under_the_word(tilegg, source):
    done = tilegg("check", source(GOOD.replace("pl.FP32", "pl.FP33")))
    lines = done.err.splitlines()
    at = next(i for i, line in enumerate(lines) if "pl.FP33" in line and "error" not in line)
    assert lines[at + 1].strip("^ ") == ""
    assert lines[at + 1].index("^") == lines[at].index("pl.FP33")


@pytest.mark.parametrize("value", ["float('nan')", "float('inf')", "-float('inf')", "1e999"])
def test_constants_without_value_in_an_integer_are_refused(value, tilegg, source):
    done = tilegg("check", source(kernel("INT32", "INT32", f"pl.tile.adds(a, {value})")))
    assert done.code == 1
    assert "error[TG0" in done.err


def test_illegal_pair_of_the_target(tilegg, source, tmp_path):
    path, out = source(cast_kernel("FP32", "FP4")), tmp_path / "out.pto"
    done = tilegg("lower", path, "--arch", "a2a3", "-o", out)
    assert done.code == 1
    assert "error[TG020]" in done.err and f"{path}:11:" in done.err
    assert not out.exists()


def test_no_exact_chain_under_the_exact_contract(tilegg, source):
    path = source(cast_kernel("INT64", "BF16"))
    assert tilegg("lower", path, "--arch", "a5").code == 0
    done = tilegg("lower", path, "--arch", "a5", "--contract", "exact")
    assert done.code == 1 and f"{path}:11:" in done.err and "error[TG021]" in done.err


def test_unknown_target_is_named_with_the_known_ones(tilegg, source):
    done = tilegg("lower", source(GOOD), "--arch", "a9")
    assert done.code == 1
    assert "error[TG040]" in done.err and "a2a3" in done.err


# -- files -------------------------------------------------------------------------------------------------


def test_missing_file(tilegg, tmp_path):
    done = tilegg("lower", tmp_path / "none.py", "--arch", "a5")
    assert done.code == 1 and "error[TG013]" in done.err and "none.py" in done.err


def test_directory_as_input(tilegg, tmp_path):
    done = tilegg("check", tmp_path)
    assert done.code == 1 and "error[TG013]" in done.err


def test_binary_file_names_the_byte(tilegg, tmp_path):
    path = tmp_path / "kernel.py"
    path.write_bytes(b"# text\n" + bytes(range(128, 256)) * 40)
    done = tilegg("check", path)
    assert done.code == 1
    assert f"{path}:2:1: error[TG013]" in done.err


def test_empty_file(tilegg, source):
    assert "error[TG002]" in tilegg("fmt", source("")).err


@pytest.mark.parametrize("junk", ["(", "x ", "a = b + 1\n!", "\x01\x02", "'"])
def test_ten_megabytes_of_junk(junk, tilegg, source):
    done = tilegg("check", source((junk * 10_000_000)[:10_000_000]))
    assert done.code == 1
    assert re.search(r"error\[TG0(01|12)\]", done.err)
    assert len(done.err) < 2000


def test_too_large_an_input_is_not_read(tilegg, tmp_path):
    path = tmp_path / "kernel.py"
    with path.open("wb") as file:
        file.truncate(65_000_000)
    done = tilegg("check", path)
    assert done.code == 1 and f"{path}:1:1: error[TG012]" in done.err


def test_output_folder_that_does_not_exist(tilegg, source, tmp_path):
    done = tilegg("fmt", source(GOOD), "-o", tmp_path / "no" / "out.py")
    assert done.code == 1 and "error[TG013]" in done.err
    assert sorted(os.listdir(tmp_path)) == ["kernel.py"]


def test_output_that_is_a_folder(tilegg, source, tmp_path):
    (tmp_path / "out").mkdir()
    done = tilegg("fmt", source(GOOD), "-o", tmp_path / "out")
    assert done.code == 1 and "error[TG013]" in done.err
    assert sorted(os.listdir(tmp_path)) == ["kernel.py", "out"]


def test_a_report_that_cannot_be_written_leaves_the_other_output_alone(tilegg, source, tmp_path):
    out = tmp_path / "out.py"
    out.write_text("old")
    words = ("--arch", "a5", "--emit", "ir", "-o", out, "--report", tmp_path / "no" / "r.html")
    done = tilegg("lower", source(GOOD), *words)
    assert done.code == 1 and "error[TG013]" in done.err
    assert out.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["kernel.py", "out.py"]


def test_existing_output_survives_a_failure(tilegg, source, tmp_path):
    out = tmp_path / "out.pto"
    out.write_text("old")
    assert tilegg("lower", source("broken("), "--arch", "a5", "-o", out).code == 1
    assert out.read_text() == "old"


def test_output_keeps_permissions_and_links(tilegg, source, tmp_path):
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    assert tilegg("fmt", source(GOOD), "-o", link).code == 0
    assert link.is_symlink() and "@pl.program" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_devices_are_written_not_replaced(tilegg, source):
    assert tilegg("fmt", source(GOOD), "-o", os.devnull).code == 0
    assert Path(os.devnull).is_char_device()


def test_stdin_once(tilegg):
    done = tilegg("equiv", "-", "-")
    assert done.code == 1 and "error[TG013]" in done.err


def test_stdin_and_stdout(tilegg, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.encode())))
    done = tilegg("fmt", "-", "-o", "-")
    assert done.code == 0 and "@pl.program" in done.out


def test_stdin_diagnostics_show_its_lines(tilegg, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GOOD.replace("FP32", "FP33").encode())))
    done = tilegg("check", "-")
    assert "<stdin>:8:" in done.err and "pl.FP33" in done.err


# -- npz ---------------------------------------------------------------------------------------------------


def test_inputs_that_are_no_npz(tilegg, source, tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"junk")
    done = tilegg("run", source(GOOD), "--inputs", path)
    assert done.code == 1 and "error[TG013]" in done.err


def test_run_without_its_inputs(tilegg, source):
    done = tilegg("run", source(GOOD))
    assert done.code == 1 and "error[TG030]" in done.err
