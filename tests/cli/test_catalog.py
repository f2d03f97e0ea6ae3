"""``rules``, ``targets``, ``ops``, ``check`` and ``fmt``."""

from __future__ import annotations

import json

import pytest
import tilegg as api
from tilegg.ir.op import OPS
from tilegg.rules.rule import RULES

from .conftest import EXAMPLES, cast_kernel, kernel

GOOD = cast_kernel("FP32", "BF16")


def test_rules_lists_every_declared_rule(tilegg):
    done = tilegg("rules", "--json")
    assert [r["name"] for r in done.json["rules"]] == list(RULES)
    text = tilegg("rules").out
    assert all(name in text for name in RULES)


def test_one_rule(tilegg):
    done = tilegg("rules", "cast.identity")
    assert "cast[a→a, m, s](x) = x" in done.out and "because" in done.out
    missing = tilegg("rules", "cast.identiti")
    assert missing.code == 1 and "did you mean cast.identity" in missing.err


def test_rules_verify_counts(tilegg):
    done = tilegg("rules", "cast.mode", "--verify", "--samples", "5", "--json")
    assert done.code == 0 and done.json["ok"]
    assert all(r["values"] > 0 and not r["failures"] for r in done.json["rules"])
    assert [k["kind"] for k in done.json["kinds"]] == ["cast"] and not done.json["not_proved"]


def test_rules_verify_tells_what_is_proved(tilegg):
    done = tilegg("rules", "integer.", "--verify", "--samples", "3")
    assert done.code == 0 and "proved with Z3" in done.out
    assert "integer and mask rules: 16, proved for every integer dtype they take: 16" in done.out
    folded = tilegg("rules", "fold.", "--verify", "--samples", "2")
    assert folded.code == 0 and "integer and mask rules: 0" in folded.out


def test_rules_verify_catches_a_wrong_rule(tilegg, monkeypatch):
    from dataclasses import replace

    wrong = replace(RULES["cast.fuse.exact-first"], when=())
    monkeypatch.setitem(RULES, wrong.name, wrong)
    done = tilegg("rules", wrong.name, "--verify", "--samples", "50")
    assert done.code == 1 and "on the left" in done.out


def test_targets(tilegg):
    assert [t["name"] for t in tilegg("targets", "--json").json["targets"]] == list(api.target_names())
    assert tilegg("targets", "list").out == tilegg("targets").out
    shown = tilegg("targets", "show", "a5", "--json").json
    assert {"hardware", "casts", "ops", "costs", "sources"} <= set(shown)
    assert len(shown["casts"]) == len(api.load_target("a5").casts)
    assert "== casts ==" in tilegg("targets", "show", "a5").out
    only = tilegg("targets", "show", "a5", "--table", "hardware").out
    assert "ub_bytes" in only and "== casts ==" not in only


def test_target_difference(tilegg):
    rows = tilegg("targets", "diff", "a2a3", "a5", "--json").json["differences"]
    assert any(r["table"] == "casts" and "FP4" in r["key"] and r["a"] == "absent" for r in rows)
    assert "do not differ" in tilegg("targets", "diff", "a5", "a5").out


@pytest.mark.parametrize(
    "words", [("show",), ("diff", "a5"), ("list", "a5"), ("show", "a9"), ("show", "a5", "--table", "x")]
)
def test_wrong_target_words(words, tilegg):
    done = tilegg("targets", *words)
    assert done.code == 1 and "error[TG040]" in done.err


def test_ops_lists_the_dtypes_that_an_operation_takes_itself(tilegg):
    rows = {r["name"]: r["targets"] for r in tilegg("ops", "--json").json["ops"]}
    listed = {name: {t: " ".join(v["dtypes"]) for t, v in found.items()} for name, found in rows.items() if found["a5"]}
    assert listed["tile.gather"] == dict.fromkeys(("a2a3", "a5"), "INT16 INT32 FP16 FP32")
    assert listed["tile.scatter"]["a5"] == "INT8 INT16 INT32 FP16 BF16 FP32"
    assert listed["tile.rdivs"]["a5"] == "FP16 FP32"
    assert listed["tile.mask_not"] == {"a2a3": "UINT8", "a5": "UINT8"}
    assert listed["tile.tmov_x2zz"] == {"a2a3": "", "a5": "UINT8"}
    assert "A5 only" in rows["tile.tmov_x2zz"]["a2a3"]["refused"]
    assert listed["tile.rems"]["a5"] == "INT16 INT32 FP16 FP32" and "UINT32" in listed["tile.rem"]["a5"]
    assert listed["tile.sort32"]["a5"] == "FP16 FP32" and listed["tile.quant"]["a5"] == "FP32"


def test_ops_lists_what_other_instructions_take_the_place_of(tilegg):
    rows = {r["name"]: r["targets"] for r in tilegg("ops", "--json").json["ops"]}
    lowered = {name: {t: v["lowered"] for t, v in found.items()} for name, found in rows.items() if found["a5"]}
    assert lowered["tile.sin"] == {"a2a3": ["FP32"], "a5": ["FP32"]}
    assert lowered["tile.tquant_mx"] == {"a2a3": [], "a5": ["FP16", "BF16", "FP32"]}
    assert "INT8" in lowered["tile.select"]["a5"] and "INT8" not in lowered["tile.select"]["a2a3"]
    assert lowered["tile.add"] == {"a2a3": ["UINT16", "UINT32"], "a5": []}
    assert lowered["tile.exp"] == {"a2a3": [], "a5": []} and rows["tensor.sin"]["a5"] is None
    assert "a2a3: lowered to other instructions: FP32\n" in tilegg("ops", "tile.sin").out
    words = "a2a3: FP16 FP32; lowered to other instructions: INT16 INT32 UINT8 UINT16 UINT32\n"
    assert words in tilegg("ops", "tile.abs").out
    assert "FP32 FP8E4M3FN FP8E5M2\n" in tilegg("ops", "tile.read").out
    assert "a2a3: -\n" in tilegg("ops", "tensor.sin").out
    text = tilegg("ops", "tile.tquant_mx").out
    assert "a2a3: -\n" in text and "exists on A5 only" in text and "a5: lowered to other instructions: FP16" in text


def test_ops_lists_every_declared_operation(tilegg):
    rows = {r["name"]: r for r in tilegg("ops", "--json").json["ops"]}
    assert list(rows) == list(OPS)
    assert rows["tile.add"]["pto"] == "tadd" and "FP32" in rows["tile.add"]["targets"]["a5"]["dtypes"]
    a5 = api.load_target("a5")
    for row in rows.values():
        if row["pto"]:
            assert all(a5.legal(row["pto"], d) for d in row["targets"]["a5"]["dtypes"])


def test_one_op_and_close_names(tilegg):
    assert "pl.tile.row_max(tile" in tilegg("ops", "tile.row_max").out
    assert "tile.row_max" in tilegg("ops", "row_").out
    missing = tilegg("ops", "tile.row_mxa")
    assert missing.code == 1 and "did you mean" in missing.err


# -- check and fmt -----------------------------------------------------------------------------------------


def test_check_certifies_good_programs(tilegg):
    for path in sorted(EXAMPLES.glob("*.py")):
        done = tilegg("check", path, "--json")
        if path.stem.endswith("_hang"):
            assert done.code == 1 and [f["class"] for f in done.json["findings"]] == ["deadlock"]
            continue
        assert done.code == 0 and done.json["ok"] and done.json["findings"] == []
        assert done.json["certificate"]["statements"] > 3
    assert "ok (1 function" in tilegg("check", EXAMPLES / "fp4.py").out


def test_check_findings(tilegg, source):
    path = source(GOOD.replace("pl.cast(a,", "pl.cast(missing,"))
    done = tilegg("check", path, "--json")
    assert done.code == 1 and not done.json["ok"] and done.json["certificate"] is None
    finding = done.json["findings"][0]
    assert finding["code"] == "TG003"
    assert {"class", "ranks", "cells", "spans", "witness"} <= set(finding)
    assert finding["spans"][0]["line"] == 11
    text = tilegg("check", path)
    assert text.out == "" and "error[TG003]" in text.err


def test_check_reports_several_findings(tilegg, source):
    text = GOOD.replace("b = pl", "c = pl.abs(nothing)\n        d = pl.abs(nowhere)\n        b = pl")
    assert [f["code"] for f in tilegg("check", source(text), "--json").json["findings"]] == ["TG003", "TG003"]


def test_unknown_operations_pass_with_a_remark(tilegg, source):
    done = tilegg("check", source(kernel("FP32", "FP32", "pl.tile.mystery(a)")), "--json")
    assert done.code == 0 and done.json["ok"]
    assert {r["code"] for r in done.json["remarks"]} == {"TG018"}


def test_check_sarif(tilegg, source, tmp_path):
    out = tmp_path / "log.sarif"
    done = tilegg("check", source(GOOD.replace("FP32", "FP33")), "--sarif", "-o", out)
    assert done.code == 1 and done.out == ""
    assert json.loads(out.read_text())["runs"][0]["results"][0]["ruleId"] == "TG004"


def test_fmt_is_stable(tilegg, source):
    once = tilegg("fmt", source(GOOD)).out
    assert tilegg("fmt", source(once, "again.py")).out == once
    assert api.parse(once) == api.parse(GOOD)
