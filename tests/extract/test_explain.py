"""Explanations: rules, reasons, alternatives, facts, and what is gone."""

from __future__ import annotations

import json

import pytest
from tilegg.extract.explain import explain
from tilegg.extract.lower import lower
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP8E4M3FN, FP16, FP32, HF8, INT8, INT32, INT64
from tilegg.ir.text import parse

from .programs import Maker, chain, quantise, random_program


def test_the_quantisation_tail() -> None:
    text = explain(lower(quantise(), "a2a3")).render()
    lines = text.splitlines()
    assert lines[0].startswith("a2a3, objective cycles, contract faithful: 10 instructions")
    assert "optimum proved" in lines[0]
    for wanted in (
        "by cast.fuse.integer-narrowing: ",
        "exact: ",
        "from amax scaling (line 16)",
        "not FP32 → FP16 → INT8 ",
        "+68 cycles, +1 instructions",
        "i = cast(q) FP32 → INT32, rint",
        "not needed: o (line 19) does without it by cast.fuse.exact-first, cast.fuse.integer-narrowing",
    ):
        assert wanted in text, wanted


def test_every_source_operation_is_accounted_for() -> None:
    """An operation is either emitted under its name or listed as gone, never both."""
    for seed in range(6):
        program = random_program(seed, "a5")
        try:
            lowered = lower(program, "a5")
        except TileggError:
            continue
        (f,) = explain(lowered, alternatives=0).functions
        emitted = {i.result for i in f.instructions}
        gone = {d.result for d in f.dropped}
        source = {s.results[0].name for s in program.functions[0].body if getattr(s, "results", ())}
        assert source <= emitted | gone
        assert not emitted & gone
        assert all(d.why for d in f.dropped)


def test_round_trips_name_their_rules() -> None:
    (f,) = explain(lower(chain(BF16, FP32, BF16), "a5")).functions
    first, second = f.dropped
    assert [r.name for r in second.rules] == ["cast.fuse.exact-first", "cast.identity"]
    assert second.why.startswith("the same value as v1 by ")
    assert first.why.startswith("not needed: v3 (now v1) does without it by cast.fuse.exact-first")


def test_common_subexpressions_are_computed_once() -> None:
    m = Maker()
    x = m.load(FP32)
    m.store(m.op("tile.add", (m.op("tile.exp", (x,), FP32), m.op("tile.exp", (x,), FP32)), FP32))
    (f,) = explain(lower(m.program(), "a5")).functions
    assert [(d.result, d.why) for d in f.dropped] == [("v3", "the same value as v2, computed once")]


def test_unused_operations_are_said_to_be_unused() -> None:
    m = Maker()
    x = m.load(FP32)
    y = m.load(FP32)
    m.op("tile.exp", (m.op("tile.neg", (y,), FP32),), FP32)
    m.store(x)
    (f,) = explain(lower(m.program(), "a5")).functions
    whys = {d.result: d.why for d in f.dropped}
    assert whys["v4"] == "nothing reads it"
    assert whys["v3"] == "read only by v4, gone too"
    assert whys["v2"] == "nothing reads it any more"


def test_as_written_and_chains() -> None:
    (f,) = explain(lower(chain(INT32, BF16), "a5")).functions
    load, hop, last, store = f.instructions
    assert (load.rule, store.rule) == ("as written", "as written")
    assert hop.part_of == last.result
    assert last.rule == "cast.road.exact.2" and last.proof
    assert [r.name for r in last.rules] == ["cast.road.exact.2"]


def test_ignored_modes_are_remarked_with_rate_and_exact_chain() -> None:
    lowered = lower(chain(INT32, FP16), "a2a3", objective="instructions")
    (remark,) = lowered.remarks
    assert remark.code == "TG025" and remark.severity == "remark"
    assert "ignores mode round" in remark.message
    assert "differ" in remark.reason
    assert remark.hint.startswith("exact: INT32 → FP32 → FP16 costs -")
    assert "remark[TG025]" in explain(lowered).render()


def test_double_rounding_is_remarked() -> None:
    (remark,) = lower(chain(INT32, (BF16, "rint")), "a2a3").remarks
    assert (remark.code, remark.severity) == ("TG024", "remark")
    assert remark.message == "INT32 to BF16 may round twice: INT32 → FP32 → BF16"
    assert "differ, by up to 1 ulp" in remark.reason
    assert remark.hint.startswith("exact: INT32 → FP32 (odd) → BF16 costs +")
    (remark,) = lower(chain(INT64, (BF16, "rint")), "a2a3").remarks
    assert remark.hint == "no exact chain exists; tile.assume can prove a narrower range"


def test_one_rounding_in_another_mode_is_no_double_rounding() -> None:
    (remark,) = lower(chain(FP16, FP8E4M3FN), "a5").remarks
    assert remark.code == "TG025" and "FP32 to FP8E4M3FN is always rint" in remark.message
    both = lower(chain(FP32, (HF8, "rint")), "a5").remarks
    assert [d.code for d in both] == ["TG025", "TG024"]


def test_results_that_are_not_finite_are_told_wherever_an_error_is() -> None:
    lowered = lower(chain(FP32, (FP8E4M3FN, "ceil")), "a5")
    told = "not both results are finite for 0.23 of all: 448.0000305175781 gives 448.0, not nan"
    (remark,) = lowered.remarks
    assert told in remark.reason and told in explain(lowered).render()
    alternatives = explain(lower(chain(FP32, (HF8, "rint")), "a5")).to_json()["functions"][0]["instructions"][2]
    (other,) = [a["error"] for a in alternatives["alternatives"] if a["text"] == "FP32 → HF8"]
    assert other["not_finite"] == {"rate": 0.0, "value": 40960.0, "wanted": 32768.0, "got": "inf"}


@pytest.mark.parametrize(
    ("stops", "why"),
    [
        ((FP32, (FP8E4M3FN, "ceil")), "a5 ignores mode ceil: FP32 to FP8E4M3FN is always rint"),
        ((FP16, (FP8E4M3FN, "floor")), "a5 ignores mode floor: FP32 to FP8E4M3FN is always rint"),
        (
            (FP32, (HF8, "rint")),
            "a5 ignores mode rint: FP32 to HF8 is always round; other legal chains can round twice",
        ),
        ((INT64, (BF16, "rint")), "the chain can round twice"),
    ],
)
def test_a_refused_cast_gives_the_true_reason(stops: tuple, why: str) -> None:
    with pytest.raises(TileggError) as caught:
        lower(chain(*stops), "a5", contract="exact")
    (d,) = caught.value.diagnostics
    assert (d.code, d.reason) == ("TG021", why)


def test_error_rates_are_measured_when_asked_for() -> None:
    lowered = lower(chain(INT32, (BF16, "rint")), "a2a3")
    assert "remarks" not in vars(lowered)
    assert lowered.remarks is lowered.remarks


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("fp32>int16>fp16>int8", "+68 cycles, +1 instructions"),
        ("FP32 -> FP16 -> INT8", "it is what was chosen"),
        ("FP32→INT8", "no conversion from FP32 to INT8"),
        ("fp32 > bf16 > int8", "no native conversion from BF16 to INT8"),
        ("o", "was chosen; instead"),
        ("i", "is gone: not needed"),
        ("tadds", "no value of the program has a form with tadds"),
    ],
)
def test_why_not(question: str, wanted: str) -> None:
    found = explain(lower(quantise(), "a2a3"), why_not=question)
    assert found.answer[0] == f"why not {question}?"
    assert any(wanted in line for line in found.answer[1:]), found.answer
    assert found.render().rstrip().endswith(found.answer[-1])


@pytest.mark.parametrize(
    ("question", "code"),
    [("fp32>fp99", "TG004"), ("int64>int8", "TG003"), ("nowhere", "TG003"),
     ("int8>>fp32", "TG003"), (">fp32", "TG003"), ("fp32 ->", "TG003"), ("", "TG003")],
)  # fmt: skip
def test_questions_about_nothing(question: str, code: str) -> None:
    with pytest.raises(TileggError) as caught:
        explain(lower(quantise(), "a2a3"), why_not=question)
    (found,) = caught.value.diagnostics
    assert found.code == code and "''" not in found.message.removeprefix("''") and found.hint


def test_json_is_strict_and_stable() -> None:
    lowered = lower(quantise(), "a2a3")
    first = json.dumps(explain(lowered).to_json(), allow_nan=False)
    again = json.dumps(explain(lower(quantise(), "a2a3", memo=None)).to_json(), allow_nan=False)
    assert first == again
    read = json.loads(first)
    assert list(read) == [
        "schema", "arch", "objective", "contract", "totals", "plain", "optimum", "functions", "remarks", "answer",
        "derivation",
    ]  # fmt: skip
    assert list(read["functions"][0]) == ["name", "instructions", "dropped"]


def test_the_fallback_is_explained_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from .test_lower import find_nothing

    monkeypatch.setattr("tilegg.extract.lower.saturate", find_nothing)
    lowered = lower(chain(INT8, FP32), "a2a3", memo=None)
    (f,) = explain(lowered).functions
    assert [i.rule for i in f.instructions if i.op == "tile.cast"][-1] == "cast.road.exact.2"


def test_programs_with_spans_show_lines() -> None:
    text = "\n".join(
        [
            "import pypto.language as pl",
            "@pl.function",
            "def k(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP16]]):",
            "    t = pl.load(x, [0, 0], [16, 64])",
            "    u = pl.cast(t, target_type=pl.FP16)",
            "    out = pl.store(u, [0, 0], out)",
            "    return out",
        ]
    )
    (f,) = explain(lower(parse(text, "k.py"), "a5")).functions
    assert [i.span.line for i in f.instructions if i.span] == [4, 5, 6]
    assert FP16.name in f.instructions[1].text


NEEDS = """
import pypto.language as pl

@pl.function
def k(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[16, 64], pl.INT32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
      o2: pl.Out[pl.Tensor[[16, 64], pl.INT32]], o3: pl.Out[pl.Tensor[[16, 64], pl.BF16]]):
    t = pl.load(x, [0, 0], [16, 64])
    u = pl.add(pl.mul(t, 3.0), t)
    w = pl.div(u, 3.0)
    out = pl.store(w, [0, 0], out)
    i = pl.load(y, [0, 0], [16, 64])
    f = pl.cast(i, target_type=pl.FP32)
    h = pl.cast(pl.mul(f, 0.5), target_type=pl.INT32, mode="floor")
    o2 = pl.store(h, [0, 0], o2)
    o3 = pl.store(pl.cast(i, target_type=pl.BF16, mode="rint"), [0, 0], o3)
    return out
"""


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("axpy", "k, u line 8: fuse.axpy.first would give it under the contract contracted"),
        ("axpy", "under that contract the program takes "),
        ("muls", "k, w line 9: divs.power-of-two would give it, but needs another literal than 3.0: a power of two"),
        ("shrs", "index.halving.floor would give it, but needs the fact index of f: every element is an integer"),
        ("pl.tile.rsqrt", "no value of the program has a form with tile.rsqrt"),
        ("row_sum", "  the rules lack it: none makes it of other operations"),
        ("xor", "  the rules that make it fit nothing that the program computes: "),
        ("tfusedmuladd", "the instruction set of a2a3 has tfusedmuladd, the assembler has not"),
        ("int32>fp32>bf16", "it would be exact if i were in [-16777216, 16777216] (tile.assume)"),
    ],
)
def test_why_not_says_what_is_missing(question: str, wanted: str) -> None:
    found = explain(lower(parse(NEEDS, "k.py"), "a2a3"), why_not=question)
    assert any(wanted in line for line in found.answer), found.answer


def test_a_program_that_only_moves_data_has_no_instruction_to_ask_about() -> None:
    text = (
        "@pl.function\ndef k(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
        "    return pl.store(pl.load(x, [0, 0], [16, 64]), [0, 0], out)\n"
    )
    answer = explain(lower(parse(text, "k.py"), "a5"), why_not="add").answer
    assert answer[1] == "  the program has no instruction that anything could stand for"


def test_the_promise_that_is_asked_for_helps() -> None:
    promised = NEEDS.replace("    f = pl", "    i = pl.tile.assume(i, -256, 256)\n    f = pl")
    lowered = lower(parse(promised, "k.py"), "a2a3")
    assert lowered.totals.inexact == 0 and not lowered.remarks
    assert any(i.op.name == "tile.shrs" for i in lowered.functions[0].instructions)


SUM_OF_NUMBERS = """
@pl.function
def k(x: pl.Tensor[[64, 64], pl.FP32], n: pl.Tensor[[64, 64], pl.INT32], b: pl.Tensor[[64, 64], pl.INT32],
      out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    new = pl.cast(pl.tile.assume(pl.load(n, [0, 0], [64, 64]), 0, 1000), target_type=pl.FP32)
    base = pl.cast(pl.tile.assume(pl.load(b, [0, 0], [64, 64]), 0, 1000), target_type=pl.FP32)
    m = pl.tile.cmps(pl.load(x, [0, 0], [64, 64]), 0.5, cmp_type="gt")
    w = pl.tile.select(m, pl.tile.full([64, 64], pl.FP32, 1.0), 0.0)
    return pl.store(pl.add(base, pl.mul(w, pl.sub(new, base))), [0, 0], out)
"""


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_values_that_can_be_made_of_themselves_have_a_name(arch: str) -> None:
    # The selection of integers that rules make is, by way of a conversion and its inverse, a form of itself.
    (f,) = explain(lower(parse(SUM_OF_NUMBERS), arch)).functions
    assert all(a.text for i in f.instructions for a in i.alternatives)
