"""``casts``: table, JSON, picture, and pairs that no target converts."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
import tilegg as api
from tilegg.ir.dtypes import parse_dtype


def test_json_is_what_the_library_explores(tilegg):
    done = tilegg("casts", "fp32", "int8", "--arch", "a2a3", "--mode", "rint", "--json")
    found = done.json
    assert (found["src"], found["dst"], found["arch"], found["mode"]) == ("FP32", "INT8", "a2a3", "rint")
    assert found == api.explore_casts(api.load_target("a2a3"), parse_dtype("fp32"), parse_dtype("int8"), "rint")


def test_the_best_chain_comes_first_for_each_objective(tilegg):
    def chains(objective):
        words = ("--arch", "a2a3", "--mode", "rint", "--objective", objective, "--json")
        return tilegg("casts", "fp32", "int8", *words).json["chains"]

    by_cycles = [c["cycles"] for c in chains("cycles")]
    assert by_cycles == sorted(by_cycles)
    by_count = [c["instructions"] for c in chains("instructions")]
    assert by_count == sorted(by_count)
    classes = [c["class"] for c in chains("accuracy")]
    assert classes == sorted(classes, key=["exact", "double_rounding"].index)


def test_the_shape_scales_the_price_and_k_limits_the_list(tilegg):
    small = tilegg("casts", "fp32", "bf16", "--arch", "a5", "--json", "--shape", "1x64").json
    large = tilegg("casts", "fp32", "bf16", "--arch", "a5", "--json", "--shape", "64x256", "-k", "1").json
    assert small["shape"] == [1, 64] and large["shape"] == [64, 256]
    assert small["chains"][0]["cycles"] < large["chains"][0]["cycles"]
    assert len(large["chains"]) == 1


def test_text_marks_the_front(tilegg):
    done = tilegg("casts", "int32", "bf16", "--arch", "a5")
    assert done.code == 0
    assert "INT32 → " in done.out and "\n*" in done.out


def test_picture_is_xml(tilegg, tmp_path):
    out = tmp_path / "c.svg"
    assert tilegg("casts", "fp32", "fp4", "--arch", "a5", "--svg", "-o", out).code == 0
    assert ElementTree.parse(out).getroot().tag.endswith("svg")


def test_illegal_pair_is_a_diagnostic_object(tilegg):
    done = tilegg("casts", "fp32", "fp4", "--arch", "a2a3", "--json")
    assert done.code == 1
    (d,) = done.json["diagnostics"]
    assert d["code"] == "TG020" and "FP4" in d["message"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("fp33", "int8", "--arch", "a5"), "TG004"),
        (("fp32", "int8", "--arch", "a5", "--mode", "sideways"), "TG004"),
        (("fp32", "int8", "--arch", "a9"), "TG040"),
        (("fp32", "int8", "--arch", "/none.toml"), "TG013"),
    ],
)
def test_unknown_words(words, code, tilegg):
    done = tilegg("casts", *words)
    assert done.code == 1 and f"error[{code}]" in done.err and done.out == ""


@pytest.mark.parametrize("shape", ["64", "0x4", "axb", "4x8x4", "4x-1", "99999999999x1", "١x٢"])
def test_malformed_shapes_are_usage_errors(shape, tilegg):
    done = tilegg("casts", "fp32", "int8", "--arch", "a5", "--shape", shape)
    assert done.code == 2 and "usage:" in done.err


@pytest.mark.parametrize(
    ("pair", "reason", "hint"),
    [
        (("fp8e8m0", "fp32"), "a2a3 has no native conversion from FP8E8M0", "a5 can: --arch a5; here, keep"),
        (("fp32", "fp8e4m3fn"), "a2a3 has no native conversion to FP8E4M3FN", "a5 can: --arch a5; here, keep"),
        (("fp32", "fp8e8m0"), "a2a3 has no native conversion to FP8E8M0", "keep the values in a dtype"),
    ],
)
def test_a_dtype_the_target_does_not_convert_is_not_to_be_narrowed(tilegg, pair, reason, hint):
    done = tilegg("casts", *pair, "--arch", "a2a3", "--json")
    assert done.code == 1
    (d,) = done.json["diagnostics"]
    assert (d["code"], d["reason"]) == ("TG020", reason) and d["hint"].startswith(hint)
