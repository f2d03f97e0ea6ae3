"""The explored dictionary, its text and picture, and the tables in the docs."""

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP8E4M3FN, FP16, FP32, INT8, INT16, INT32, INT64, UINT32, DType
from tilegg.rules.paths_docs import docs_table
from tilegg.rules.paths_show import explore, render_svg, render_text
from tilegg.rules.target import load_target

A5, A2A3 = load_target("a5"), load_target("a2a3")
DOCS = Path(__file__).parents[2] / "docs" / "casts.md"
CHAIN_KEYS = ["hops", "instructions", "cycles", "class", "error", "pareto"]


@pytest.mark.parametrize(
    ("src", "dst", "mode"), [(FP32, INT8, "rint"), (INT32, BF16, "round"), (FP32, FP8E4M3FN, "round")]
)
def test_the_dictionary_has_exactly_its_documented_keys(src: DType, dst: DType, mode: str) -> None:
    found = explore(A5, src, dst, mode, None, (16, 64), 8)
    assert list(found) == ["schema", "src", "dst", "arch", "mode", "saturation", "shape", "chains"]
    assert (found["schema"], found["src"], found["dst"], found["arch"]) == (1, src.name, dst.name, "a5")
    assert (found["mode"], found["saturation"], found["shape"]) == (mode, None, [16, 64])
    for chain in found["chains"]:
        assert list(chain) == CHAIN_KEYS
        assert list(chain["error"]) == ["rate", "max_ulp", "samples", "exhaustive", "distribution", "not_finite"]
        assert chain["instructions"] == len(chain["hops"])
        assert chain["class"] in ("exact", "double_rounding", "request_ignored")
        assert chain["cycles"] == pytest.approx(sum(hop["cycles"] for hop in chain["hops"]), abs=0.01)
        assert chain["class"] != "exact" or chain["error"]["rate"] == 0
    assert any(chain["pareto"] for chain in found["chains"])
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_the_best_comes_first_and_k_limits_the_chains() -> None:
    found = explore(A2A3, INT32, FP16, "rint")
    prices = [chain["cycles"] for chain in found["chains"]]
    assert prices == sorted(prices) and len(prices) > 1
    counts = [
        c["instructions"] for c in explore(A2A3, INT32, FP16, "rint", objective="instructions")["chains"]
    ]
    assert counts == sorted(counts)
    assert len(explore(A2A3, INT32, FP16, "rint", k=2)["chains"]) == 2


def test_the_text_names_every_chain_and_its_accuracy() -> None:
    lines = render_text(explore(A5, INT32, BF16, "rint")).splitlines()
    assert lines[0] == "INT32 to BF16 on a5, mode rint, saturation default, 64x64"
    assert re.search(
        r"^\* +2 +\d+ +INT32 → FP32 → BF16 +7\.6e-06 of all values differ, by up to 1 ulp$", lines[2]
    )
    assert any(re.search(r"^\* +7 +\d+ +INT32 → FP32 \(odd\) → BF16 +exact$", line) for line in lines)
    lines = render_text(explore(A5, INT64, BF16, "rint")).splitlines()
    assert lines[-1] == "no chain of up to 4 casts is exact for every value"
    assert "exact" in render_text(explore(A5, FP32, INT8, "rint", "on"))


@pytest.mark.parametrize(("src", "dst"), [(FP32, INT8), (INT16, UINT32), (INT32, BF16)])
def test_the_picture_is_well_formed_and_shows_every_hop(src: DType, dst: DType) -> None:
    found = explore(A5, src, dst, "rint")
    root = ElementTree.fromstring(render_svg(found))
    space = "{http://www.w3.org/2000/svg}"
    arrows = [e.get("marker-end") for e in root.iter(f"{space}line")]
    assert len(arrows) == sum(len(c["hops"]) for c in found["chains"])
    exact = sum(len(c["hops"]) for c in found["chains"] if c["class"] == "exact")
    assert arrows.count("url(#exact)") == exact
    words = [e.text for e in root.iter(f"{space}text")]
    for chain in found["chains"]:
        for hop in chain["hops"]:
            assert hop["dst"] in words and f"{hop['cycles']:.0f}" in words


def test_an_illegal_pair_is_a_diagnostic() -> None:
    with pytest.raises(TileggError) as caught:
        explore(A5, UINT32, FP32, "rint")
    assert caught.value.diagnostics[0].code == "TG020"
    assert "UINT8, UINT16" in caught.value.diagnostics[0].reason


@pytest.mark.parametrize("name", ["a5", "a2a3"])
def test_the_docs_hold_the_generated_tables(name: str) -> None:
    text = DOCS.read_text(encoding="utf-8")
    block = text.split(f"<!-- casts {name} -->\n")[1].split("<!-- end -->")[0]
    assert block == docs_table(load_target(name)), "run: python -m tilegg.rules.paths_docs docs/casts.md"
