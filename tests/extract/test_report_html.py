"""The HTML report: self-contained, well formed, escaped, and saying what the explanation says."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import pytest
from tilegg.extract.explain import explain
from tilegg.extract.lower import lower
from tilegg.extract.pareto import pareto
from tilegg.extract.report_html import to_html
from tilegg.ir.dtypes import BF16, FP16, FP32, INT8, INT32
from tilegg.ir.text import parse

from .programs import QUANTISE, Maker, chain, quantise

VOID = {"meta", "input", "br", "circle", "line"}


class Checker(HTMLParser):
    """Checks that elements nest, and collects texts and attributes."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.problems: list[str] = []
        self.texts: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(k, v or "") for k, v in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> in {self.open[-3:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def checked(page: str) -> Checker:
    """Parse a page; it must nest and must not load anything."""
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert not checker.problems and not checker.open
    assert not checker.tags & {"link", "img", "iframe", "object", "embed"}
    names = {value for name, value in checker.attributes if name == "id"}
    for name, value in checker.attributes:
        assert name != "src" and not name.startswith("on"), (name, value)
        assert name != "href" or (value.startswith("#") and value[1:] in names)
    assert not re.search(r"https?:|url\(|@import", page.replace("http://www.w3.org/2000/svg", ""))
    return checker


@pytest.fixture(scope="module")
def report() -> str:
    return to_html(lower(quantise(), "a2a3"), QUANTISE)


def test_the_page_is_whole_and_loads_nothing(report: str) -> None:
    checker = checked(report)
    assert report.startswith("<!DOCTYPE html>")
    assert {"style", "script", "table", "details", "summary", "input"} <= checker.tags
    assert "prefers-color-scheme: dark" in report


def test_it_says_what_was_done(report: str) -> None:
    text = " ".join(checked(report).texts)
    for wanted in (
        "P on a2a3",
        "-36.1% from 1652 as written",
        "cast.fuse.integer-narrowing",
        "FP32 → INT16 → FP16 → INT8",
        "+68 cycles, +1 instructions",
        "not needed: o (line 19) does without it by cast.fuse.exact-first, cast.fuse.integer-narrowing",
        "8,256 B",
    ):
        assert wanted in text, wanted


def test_source_and_instructions_are_linked_by_line(report: str) -> None:
    lines = [v for k, v in checked(report).attributes if k == "data-line"]
    # Line 19 stands in the source, four times in the lowered text and in the table, and in the steps.
    assert lines.count("19") == 13
    gone = re.findall(r'<div class="gone" data-line="(\d+)"', report)
    assert gone == ["17", "18"]


def test_hidden_nodes_are_counted(report: str) -> None:
    assert re.search(r"\d+ nodes are hidden", report)
    assert re.search(r"quantise, region 1: \d+ classes, \d+ nodes, saturated", report)


def test_the_front_is_drawn_when_there_is_a_choice() -> None:
    m = Maker()
    m.store(m.cast(m.load(INT32), FP16))
    lowered = lower(m.program(), "a2a3", objective="instructions")
    page = to_html(lowered, "")
    checked(page)
    program, cast = re.findall(r'<svg role="img" aria-label="cost against error: .*?</svg>', page)
    assert "The program" in program and program.count("<circle") == 2 and program.count("dot chosen") == 1
    assert "v2: its choices" in cast and cast.count("<circle") == 3
    assert page.count("shown here") == 1
    assert "TG025" in page
    # A front that is handed in is not computed again.
    assert to_html(lowered, "", points=pareto(m.program(), "a2a3")) == page
    assert "cost against error:" not in to_html(lower(chain(BF16, FP32, BF16), "a5"), "")


def test_text_from_the_program_is_escaped() -> None:
    text = "\n".join(
        [
            "import pypto.language as pl",
            "@pl.function",
            "def k(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.INT8]]):",
            "    t = pl.load(x, [0, 0], [16, 64])",
            "    u = pl.cast(t, target_type=pl.INT8)  # </pre><script>alert('&')</script>",
            "    out = pl.store(u, [0, 0], out)",
            "    return out",
        ]
    )
    lowered = lower(parse(text, "k.py"), "a5")
    page = to_html(lowered, text)
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    checked(page)


def test_the_derivation_and_its_rules_are_listed(report: str) -> None:
    steps = re.search(r'<table id="steps">.*?</table>', report, re.S)
    assert steps is not None and steps.group().count("<tr data-find") == 4
    rules = re.search(r'<table id="rules-used">.*?</table>', report, re.S)
    assert rules is not None and "cast.fuse.integer-narrowing" in rules.group()
    assert report.count('class="badge exact"') >= 6


def test_graph_data_cannot_end_its_element(report: str) -> None:
    found = re.findall(r'<script type="application/json">(.*?)</script>', report, re.S)
    assert len(found) == 1 and "<" not in found[0]
    classes = json.loads(found[0])
    assert sum(c["u"] for c in classes) > 5
    for c in classes:
        assert all(0 <= k < len(classes) for n in c["nodes"] for k in n["k"])
        assert sum(n["p"] for n in c["nodes"]) == c["u"]


def test_notebooks_get_tables_without_scripts() -> None:
    lowered = lower(quantise(), "a2a3")
    for shown in (lowered, explain(lowered)):
        page = shown._repr_html_()
        checked(page)
        assert "<script" not in page and "row_expand_mul" in page


def test_it_is_deterministic(report: str) -> None:
    assert to_html(lower(quantise(), "a2a3", memo=None), QUANTISE) == report


def test_without_target_or_choices() -> None:
    checked(to_html(lower(chain(FP32, INT8), None), ""))
    m = Maker()
    m.store(m.load(FP32))
    checked(to_html(lower(m.program(), "a5"), ""))
