"""The JSON form of a lowering: keys, totals, strictness, memory figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tilegg.extract.explain import explain
from tilegg.extract.footprint import live_bytes, scratch_bytes
from tilegg.extract.lower import lower
from tilegg.extract.pareto import pareto
from tilegg.extract.report_json import to_json
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP16, FP32, INT32
from tilegg.ir.equivalence import equivalent
from tilegg.ir.program import Const
from tilegg.ir.text import parse
from tilegg.rules.paths_show import explore
from tilegg.rules.rule import RULES
from tilegg.rules.target import load_target

from .programs import Maker, chain, quantise, random_program

KEYS = {
    "": "schema arch objective contract functions totals plain optimum remarks",
    "function": "name instructions",
    "instruction": "op result operands dtype shape attrs cycles rule span",
    "totals": "instructions cycles scratch_bytes live_bytes",
    "plain": "instructions cycles",
    "span": "file line column end_line end_column",
}


def read(program: Any, arch: str = "a2a3", **options: Any) -> dict[str, Any]:
    """Lower, write strict JSON and read it back."""
    made = to_json(lower(program, arch, **options))
    found: dict[str, Any] = json.loads(json.dumps(made, allow_nan=False))
    return found


def test_keys_and_their_order() -> None:
    found = read(quantise())
    assert list(found) == KEYS[""].split()
    assert list(found["functions"][0]) == KEYS["function"].split()
    for i in found["functions"][0]["instructions"]:
        assert list(i) == KEYS["instruction"].split()
        assert list(i["span"]) == KEYS["span"].split()
    assert list(found["totals"]) == KEYS["totals"].split()
    assert list(found["plain"]) == KEYS["plain"].split()
    assert (found["schema"], found["arch"], found["objective"], found["contract"]) == (1, "a2a3", "cycles", "faithful")
    assert found["optimum"] == "proved"


def test_totals_are_those_of_the_listed_instructions() -> None:
    for seed in range(4):
        try:
            found = read(random_program(seed, "a5"), "a5")
        except TileggError:
            continue
        listed = [i for f in found["functions"] for i in f["instructions"]]
        assert found["totals"]["instructions"] == len(listed)
        assert found["totals"]["cycles"] == pytest.approx(sum(i["cycles"] for i in listed), abs=0.01)
        assert {i["rule"] for i in listed} <= {"", *RULES}


def test_an_instruction() -> None:
    cast = read(quantise())["functions"][0]["instructions"][-2]
    assert cast["op"] == "tile.cast" and cast["result"].startswith("o__cast_int8")
    assert cast["operands"][0].startswith("o__reshape") and cast["operands"][1] is None
    assert (cast["dtype"], cast["shape"]) == ("INT8", [1, 1024])
    assert cast["attrs"] == {"mode": "rint", "target_type": "INT8"}
    assert cast["rule"] == "line.cast"
    assert cast["span"]["file"] == "quantise.py" and cast["span"]["line"] == 19


def test_plain_is_the_fixed_lowering() -> None:
    found = read(chain(BF16, FP32, BF16), "a5")
    assert found["totals"]["instructions"] == 2 and found["plain"]["instructions"] == 4
    assert found["totals"]["cycles"] < found["plain"]["cycles"]


def test_remarks_are_diagnostic_objects() -> None:
    (remark,) = read(chain(INT32, (BF16, "rint")))["remarks"]
    assert (remark["code"], remark["severity"]) == ("TG024", "remark")
    assert set(remark) == {"code", "severity", "message", "file", "line", "column", "reason", "hint", "notes"}


def test_numbers_that_json_has_not_are_words() -> None:
    m = Maker()
    x = m.load(FP32)
    m.store(m.op("tile.maximums", (x, Const(float("-inf"), FP32)), FP32))
    m.store(m.op("tile.adds", (x, Const(float("nan"), FP32)), FP32))
    found = read(m.program(), "a5")
    operands = [i["operands"][1] for i in found["functions"][0]["instructions"] if i["op"][-1] == "s"]
    assert operands == ["-inf", "nan"]


def test_scratch_is_the_largest_tile_of_one_instruction() -> None:
    target = load_target("a2a3")
    assert scratch_bytes(chain(FP32, FP16), target) == 0
    assert scratch_bytes(quantise(), target) == 16 * 64 * 4  # the row maximum's scratch is as large as its source
    assert scratch_bytes(quantise(), None) == 0


def test_live_bytes_are_the_peak() -> None:
    size = 16 * 64
    assert live_bytes(chain(FP32, FP16)) == size * (4 + 2)
    assert live_bytes(chain(BF16, FP32, FP16)) == size * (4 + 2)  # FP32 and FP16; the BF16 tile is dead by then
    m = Maker()
    x, y = m.load(FP32), m.load(FP32)
    m.store(m.op("tile.add", (x, y), FP32))
    assert live_bytes(m.program()) == 3 * size * 4


LOOP = """
import pypto.language as pl

@pl.function
def k(x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    b: pl.Tile[[16, 64], pl.FP32] = pl.load(x, [0, 0], [16, 64])
    for i in pl.range(0, 4):
        t: pl.Tile[[16, 64], pl.FP32] = pl.load(x, [i * 16, 0], [16, 64])
        v = pl.reshape(t, [64, 16])
        w = pl.reshape(v, [16, 64])
        u = pl.add(w, b)
        s = pl.exp(u)
        out = pl.store(s, [i * 16, 0], out)
    return out
"""


def test_tiles_read_in_a_loop_live_to_its_end_and_views_share() -> None:
    size = 16 * 64 * 4
    # b lives through the loop; t with its views and u at the addition, then u and s.
    assert live_bytes(parse(LOOP, "k.py")) == 3 * size
    without = LOOP.replace("pl.add(w, b)", "pl.neg(w)")
    assert live_bytes(parse(without, "k.py")) == 2 * size
    changed = LOOP.replace("pl.reshape(v, [16, 64])", "pl.add(t, v)")
    changed = changed.replace("pl.reshape(t, [64, 16])", "pl.exp(t)")
    assert live_bytes(parse(changed, "k.py")) == 4 * size


DOCS = (Path(__file__).parents[2] / "docs" / "json.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """Return one section of the documentation."""
    return DOCS.split(f"## {title}\n")[1].split("\n## ")[0]


def documented(title: str) -> set[str]:
    """Return every key that a section names between backticks, also inside ``{a, b}``."""
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]*)`", section(title)))))


def keys_of(value: Any) -> set[str]:
    """Return all keys of nested objects, but not those of attributes."""
    if isinstance(value, list):
        return {k for v in value for k in keys_of(v)}
    if not isinstance(value, dict):
        return set()
    return set(value) | {k for name, v in value.items() if name != "attrs" for k in keys_of(v)}


def test_every_key_is_documented() -> None:
    program = chain(INT32, (BF16, "rint"))
    lowered = lower(program, "a2a3")
    remark = keys_of(lowered.remarks[0].to_json())
    assert remark <= documented("Diagnostics")
    assert keys_of(to_json(lowered)) - remark <= documented("`tilegg lower --emit json`")
    explained = keys_of(explain(lower(quantise(), "a2a3")).to_json())
    explained |= keys_of([p.to_json() for p in pareto(program, "a2a3")])
    assert explained <= documented("`tilegg explain --json`")
    found = explore(load_target("a5"), FP32, FP16)
    assert keys_of(found) <= documented("`tilegg casts --json`")
    report = equivalent(chain(FP32, BF16), chain(FP32, (BF16, "floor")), samples=4)
    assert not report.equal
    wanted = documented("`tilegg equiv --json` and `tilegg verify --json`")
    parameters = {p.value.name for p in chain(FP32, BF16).functions[0].params}
    assert keys_of(report.to_json()) - parameters <= wanted
