"""``lower``: what it writes, its summary, its forms, its options."""

from __future__ import annotations

import json
import re

import pytest
import tilegg as api

from .conftest import EXAMPLES, cast_kernel, kernel

BOTH = kernel(
    "FP32", "FP32", "pl.cast(pl.cast(pl.abs(a), target_type=pl.FP16, mode='rint'), target_type=pl.FP32)"
)
TWICE = cast_kernel("INT32", "BF16")


def test_pto_is_what_the_library_writes(tilegg, source):
    path = source(BOTH)
    done = tilegg("lower", path, "--arch", "a5")
    assert done.code == 0
    lowered = api.lower(api.parse(BOTH, str(path)), "a5")
    assert done.out == api.emit(lowered)
    assert "pto.tcvt" in done.out and 'pto.target_arch = "a5"' in done.out


def test_file_output_equals_stdout_and_nothing_else_is_left(tilegg, source, tmp_path):
    path, out = source(BOTH), tmp_path / "out.pto"
    assert tilegg("lower", path, "--arch", "a5", "-o", out).out == ""
    assert out.read_text(encoding="utf-8") == tilegg("lower", path, "--arch", "a5").out
    assert sorted(p.name for p in tmp_path.iterdir()) == ["kernel.py", "out.pto"]


def test_summary_compares_with_the_plain_lowering(tilegg):
    done = tilegg("lower", EXAMPLES / "quant_int8.py", "--arch", "a2a3", "--emit", "ir")
    found = re.search(r"a2a3: (\d+) instructions, (\d+) cycles; plain lowering (\d+), (\d+) cycles \((.*)%\)", done.err)
    assert found, done.err
    assert int(found[2]) < int(found[4]) and float(found[5]) < 0
    assert "optimum proved for cycles" in done.err


def test_quiet_writes_the_result_only(tilegg, source):
    done = tilegg("lower", source(TWICE), "--arch", "a5", "-q")
    assert done.code == 0 and done.err == "" and done.out


def test_inexact_casts_are_remarked_with_their_error(tilegg, source):
    done = tilegg("lower", source(TWICE), "--arch", "a5")
    assert "remark[TG024]" in done.err and "differ" in done.err
    assert "TG024" not in tilegg("lower", source(BOTH), "--arch", "a5").err


def test_ir_reads_back_and_lowers_to_itself(tilegg, source):
    first = tilegg("lower", source(BOTH), "--arch", "a5", "--emit", "ir").out
    again = tilegg("lower", source(first, "again.py"), "--arch", "a5", "--emit", "ir").out
    assert again == first
    assert api.parse(first).functions[0].name == "k"


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_json_counts_add_up(arch, tilegg):
    done = tilegg("lower", EXAMPLES / "dequant_bf16.py", "--arch", arch, "--emit", "json")
    found = done.json
    assert found["schema"] == 1 and found["arch"] == arch
    rows = [row for f in found["functions"] for row in f["instructions"]]
    assert sum(row["cycles"] for row in rows) == pytest.approx(found["totals"]["cycles"], abs=0.01 * len(rows))
    assert found["totals"]["cycles"] <= found["plain"]["cycles"]
    assert found["optimum"] == "proved"


def test_json_failure_is_a_json_object(tilegg, source):
    done = tilegg("lower", source(cast_kernel("FP32", "FP4")), "--arch", "a2a3", "--emit", "json")
    assert done.code == 1
    assert [d["code"] for d in done.json["diagnostics"]] == ["TG020"]
    assert done.json["diagnostics"][0]["line"] == 11


@pytest.mark.parametrize("objective", ["cycles", "instructions", "accuracy"])
def test_objectives_are_reached(objective, tilegg, source):
    words = ("--arch", "a2a3", "--objective", objective, "--emit", "ir")
    done = tilegg("lower", source(cast_kernel("FP32", "INT8")), *words)
    lowered = api.lower(api.parse(cast_kernel("FP32", "INT8")), "a2a3", objective=objective)
    assert done.out == api.print_program(lowered.program)
    assert f"for {objective}" in done.err


def test_print_after_shows_each_pass_on_stderr(tilegg, source):
    words = ("lower", source(BOTH), "--arch", "a5", "-o", "/dev/null")
    done = tilegg(*words, "--print-after", "all")
    marks = re.findall(r"after (\w+) -----", done.err)
    assert marks[0] == "parse" and marks[-1] == "emit"
    assert set(marks) == {"parse", "saturate", "extract", "emit"}
    one = tilegg(*words, "--print-after", "saturate").err
    assert "classes" in one and "[cast." in one and "after extract" not in one


def test_time_passes_adds_up(tilegg, source):
    done = tilegg("lower", source(BOTH), "--arch", "a5", "--time-passes", "--no-memo")
    rows = dict(re.findall(r"^  (\w+) +([\d.]+) ms", done.err, re.M))
    assert {"parse", "saturate", "extract", "emit", "write", "total"} <= set(rows)
    parts = sum(float(ms) for name, ms in rows.items() if name != "total")
    assert parts == pytest.approx(float(rows["total"]), abs=1.0)


def test_node_limit_stops_with_a_remark(tilegg):
    done = tilegg("lower", EXAMPLES / "rope_index.py", "--arch", "a5", "--node-limit", "1", "--no-memo", "--emit", "ir")
    assert done.code == 0
    assert "remark[TG026]" in done.err


def test_exact_search_gives_no_worse_a_program(tilegg):
    words = ("lower", EXAMPLES / "rmsnorm.py", "--arch", "a5", "--emit", "json", "--no-memo")
    exact, greedy = tilegg(*words, "--exact").json, tilegg(*words).json
    assert exact["optimum"] == "proved"
    assert exact["totals"]["cycles"] <= greedy["totals"]["cycles"]


def test_report_is_one_page_with_the_source(tilegg, tmp_path):
    page = tmp_path / "r.html"
    done = tilegg("lower", EXAMPLES / "fp4.py", "--arch", "a5", "-o", tmp_path / "o.pto", "--report", page)
    assert done.code == 0
    text = page.read_text(encoding="utf-8")
    assert text.lstrip().lower().startswith("<!doctype html") and "to_fp4" in text
    assert not re.search(r"""(src|href)=["']https?:""", text)


def test_output_does_not_depend_on_the_hash_seed_or_the_memo(tilegg):
    words = ("lower", EXAMPLES / "quant_int8.py", "--arch", "a5")
    assert tilegg(*words).out == tilegg(*words, "--no-memo").out == tilegg(*words).out


# -- forms of diagnostics ----------------------------------------------------------------------------------


def test_diagnostics_as_json(tilegg, source):
    done = tilegg("lower", source(TWICE), "--arch", "a5", "--diagnostics", "json")
    found = json.loads(done.err)
    assert found["schema"] == 1
    assert [(d["code"], d["severity"]) for d in found["diagnostics"]] == [("TG024", "remark")]


def test_diagnostics_as_sarif(tilegg, source):
    path = source(TWICE.replace("FP32", "FP33").replace("INT32", "INT33"))
    done = tilegg("lower", path, "--arch", "a5", "--diagnostics", "sarif")
    log = json.loads(done.err)
    assert log["version"] == "2.1.0"
    results = log["runs"][0]["results"]
    assert results[0]["ruleId"] == "TG004"
    assert results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == str(path)


@pytest.mark.parametrize(
    ("words", "painted"), [((), False), (("--color", "always"), True), (("--color", "never"), False)]
)
def test_colour_only_where_asked_for(words, painted, tilegg, source):
    done = tilegg("lower", source(TWICE), "--arch", "a5", *words)
    assert ("\x1b[" in done.err) is painted


# -- explain -----------------------------------------------------------------------------------------------


def test_explain_names_rules_and_alternatives(tilegg):
    done = tilegg("explain", EXAMPLES / "quant_int8.py", "--arch", "a5")
    assert done.code == 0
    assert "cast." in done.out and "cycles" in done.out


def test_explain_json(tilegg):
    done = tilegg("explain", EXAMPLES / "quant_int8.py", "--arch", "a5", "--json")
    assert done.code == 0 and done.json["schema"] == 1


def test_why_not_answers_only(tilegg):
    words = ("explain", EXAMPLES / "quant_int8.py", "--arch", "a5", "--why-not")
    done = tilegg(*words, "fp32>int32>fp16>int8")
    assert done.code == 0 and done.out.startswith("why not fp32>int32>fp16>int8?\n")
    assert "error[TG003]" in tilegg(*words, "nothing_of_the_kind").err
    assert "error[TG004]" in tilegg(*words, "fp32>fp33").err


def test_the_steps_to_another_program(tilegg, source):
    slow = source(kernel("FP32", "FP32", "pl.neg(pl.neg(pl.mul(a, 2.0)))"), "slow.py")
    fast = source(kernel("FP32", "FP32", "pl.mul(a, 2.0)"), "fast.py")
    done = tilegg("explain", slow, "--arch", "a5", "--to", fast)
    assert done.code == 0 and "neg.neg (exact)" in done.out and "run again: no difference" in done.out
    found = tilegg("explain", slow, "--arch", "a5", "--to", fast, "--samples", "2", "--json").json
    assert found["reached"] and [s["check"]["runs"] for s in found["steps"]] == [2]
    other = source(kernel("FP32", "FP32", "pl.mul(a, 3.0)"), "other.py")
    done = tilegg("explain", slow, "--arch", "a5", "--to", other)
    assert done.code == 1 and "the interpreter finds that they differ" in done.out


def test_the_steps_between_values_of_one_program(tilegg, source):
    path = source(kernel("FP32", "FP32", "pl.add(pl.neg(pl.neg(a)), a)"))
    body = api.parse(path.read_text()).functions[0].body
    values = [s.result.name for s in body if getattr(s, "name", "") == "tile.neg"]
    done = tilegg("explain", path, "--arch", "a5", "--from", values[1], "--to", values[0])
    assert done.code == 1 and "are not equal in the e-graph" in done.out
    assert "error[TG003]" in tilegg("explain", path, "--arch", "a5", "--to", values[0]).err
    for more in ((), ("--pareto",), ("--json",)):
        done = tilegg("explain", path, "--arch", "a5", "--from", values[1], *more)
        assert (done.code, done.out) == (2, "") and f"argument --from: {values[1]} needs --to" in done.err
    done = tilegg("explain", path, "--arch", "a5", "--from", values[1], "--to", "nowhere")
    assert done.code == 1 and "nothing in the program is called 'nowhere'" in done.err


def test_the_derivation_can_be_run_again(tilegg):
    done = tilegg("explain", EXAMPLES / "quant_int8.py", "--arch", "a5", "--samples", "2")
    assert "4 steps, 2180 → 1858 cycles; every step is exact; 4 of 4 run again" in done.out
    assert done.out.count("run again: no difference (2 inputs") == 4


def test_explain_writes_the_report_too(tilegg, tmp_path):
    path = tmp_path / "report.html"
    words = ("--arch", "a5", "--report")
    assert tilegg("explain", EXAMPLES / "quant_int8.py", *words, path).out.startswith("a5, objective cycles")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    other = tmp_path / "other.html"
    tilegg("lower", EXAMPLES / "quant_int8.py", *words, other, "-o", tmp_path / "out.pto")
    assert other.read_text(encoding="utf-8") == path.read_text(encoding="utf-8")


def test_pareto_holds_the_fastest_and_the_most_accurate(tilegg, source):
    path = source(cast_kernel("INT32", "FP16"))
    points = tilegg("explain", path, "--arch", "a2a3", "--pareto", "--json").json["points"]
    fastest = api.lower(api.parse(cast_kernel("INT32", "FP16")), "a2a3")
    assert points[0]["cycles"] == pytest.approx(fastest.totals.cycles, abs=1e-3)
    assert [p["cycles"] for p in points] == sorted(p["cycles"] for p in points)
    assert tilegg("explain", path, "--arch", "a2a3", "--pareto").out.count("\n") > len(points)
