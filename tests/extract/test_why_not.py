"""Answers to "why not?" hold for the chain, the operation and the values that are asked about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tilegg.extract.derive import Bindings, Deriver
from tilegg.extract.explain import explain
from tilegg.extract.lower import lower
from tilegg.extract.lowered import RegionResult
from tilegg.extract.why_needs import _condition
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP4, FP32, HF8, INT8, INT32
from tilegg.ir.program import Program
from tilegg.ir.text import parse
from tilegg.rewrite.encode import shape_code
from tilegg.rewrite.graph import LITERAL
from tilegg.rules.computed import COMPUTED
from tilegg.rules.rule import RULES, Pattern, Rule, Term, Var, variables
from tilegg.rules.target import load_target

from .programs import Maker, chain, quantise

HEAD = """
import pypto.language as pl

@pl.function
def k(x: pl.Tensor[[16, 64], pl.FP32], w: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    t = pl.load(x, [0, 0], [16, 64])
    u = pl.load(w, [0, 0], [16, 64])
"""
CLAMP = 'c = pl.tile.select(pl.tile.cmps(t, 1.0, cmp_type="gt"), 1.0, t)'
WEIGHTED = (
    'm = pl.tile.cmps(t, 0.0, cmp_type="gt")',
    "one = pl.tile.full([16, 64], pl.INT32, 1)",
    "mi = pl.tile.select(m, one, 0)",
    "a = pl.cast(t, target_type=pl.INT32, mode='trunc')",
    "b = pl.cast(u, target_type=pl.INT32, mode='trunc')",
    "d = pl.sub(b, a)",
    "p = pl.mul(mi, d)",
    "s = pl.add(a, p)",
    "c = pl.cast(s, target_type=pl.FP32)",
)


def kernel(*lines: str) -> Program:
    """A function that stores ``c``, computed from the tiles ``t`` and ``u``."""
    body = [*lines, "r = pl.store(c, [0, 0], out)", "return r"]
    return parse(HEAD + "".join(f"    {line}\n" for line in body), "k.py")


def answer(program: Program, question: str, arch: str = "a5", contract: str = "faithful") -> list[str]:
    return explain(lower(program, arch, contract=contract), why_not=question).answer[1:]


# -- facts -------------------------------------------------------------------------------------------------


def _in(p: Pattern | int) -> Iterator[Var]:
    if not isinstance(p, int):
        yield from [p] if isinstance(p, Var) else variables(p)


def _bound(rule: Rule, result: RegionResult, value: int) -> Bindings:
    """Bind everything that a rule's conditions speak of: values to one class, codes to those of its type."""
    code = {"value": value, "shape": shape_code(result.region.ops[0].result.type)}
    seen = [v for c in rule.when for a in c.args for v in _in(a)]
    return {v.name: code.get(v.kind, 0) for v in [*variables(rule.lhs), *seen]}


@pytest.mark.parametrize("of", ["tile", "literal"])
def test_every_condition_of_a_rule_can_be_answered(of: str) -> None:
    lowered = lower(kernel(CLAMP), "a5")
    (result,) = lowered.functions[0].regions
    literals = [c for c, nodes in enumerate(result.graph.classes) if any(n.kind == LITERAL for n in nodes)]
    value = literals[0] if of == "literal" else result.graph.leaf_class[0]
    deriver = Deriver(result, load_target("a5"))
    asked = set()
    for rule in RULES.values():
        bound = _bound(rule, result, value)
        failing = deriver.failing(rule, bound)
        assert set(failing) <= set(rule.when)
        asked |= {c.relation for c in rule.when}
        if rule.phase == "normalise":
            assert all(_condition(result, c, bound) for c in rule.when)
    assert asked > {"literal", "nonzero", "index", "windows", "keeps_infinity", "is_float"} and asked & set(COMPUTED)


def test_only_literals_are_literals() -> None:
    (result,) = lower(kernel(CLAMP), "a5").functions[0].regions
    deriver = Deriver(result, None)
    rule = next(r for r in RULES.values() if any(c.relation == "nonzero" for c in r.when))
    (wanted,) = (c for c in rule.when if c.relation == "nonzero")
    (operand,) = wanted.args
    assert isinstance(operand, Var) and not isinstance(operand, Term)
    literals = [c for c, nodes in enumerate(result.graph.classes) if any(n.kind == LITERAL for n in nodes)]
    assert any(wanted not in deriver.failing(rule, {operand.name: c}) for c in literals)
    assert wanted in deriver.failing(rule, {operand.name: result.graph.leaf_class[0]})


@pytest.mark.parametrize("operation", ["tile.sel", "tile.sels", "tile.expands", "tile.select", "sel"])
@pytest.mark.parametrize("contract", ["faithful", "exact"])
def test_forms_of_a_select_can_be_asked_for(operation: str, contract: str) -> None:
    assert answer(kernel(CLAMP), operation, contract=contract)


def test_a_missing_literal_is_named() -> None:
    found = answer(kernel(CLAMP), "tile.sels")
    assert any(line.endswith("select.tile-scalar would give it, but needs t to be a literal number") for line in found)


# -- operations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["tile.select", "tile.expands"])
def test_forms_that_are_listed_are_not_denied(operation: str) -> None:
    found = answer(kernel(CLAMP), operation, contract="exact")
    assert any(f"{operation}(" in line for line in found), found
    assert not any("no value of the program" in line or "the rules" in line for line in found), found


# -- chains ------------------------------------------------------------------------------------------------

FP4_RATE = "1,119 of 200,000 samples differ, by up to 1 ulp"


@pytest.mark.parametrize(
    ("stops", "arch", "chosen", "rate"),
    [
        ((FP32, (FP4, "rint")), "a5", "FP32 → BF16 (odd) → FP4", FP4_RATE),
        ((FP32, (INT8, "rint")), "a5", "FP32 → FP16 (odd) → INT8", "2,344 of 200,000 samples differ"),
        ((INT32, (BF16, "rint")), "a2a3", "INT32 → FP32 (odd) → BF16", "7.6e-06 of all values differ"),
    ],
)  # fmt: skip
def test_a_chain_asked_for_by_dtypes_is_the_plain_one(
    stops: tuple, arch: str, chosen: str, rate: str  # type: ignore[type-arg]
) -> None:
    plain = chosen.replace(" (odd)", "")
    first, second, *more = answer(chain(*stops), plain, arch, "exact")
    assert first.endswith(f"= {chosen}: it is what was chosen")
    wanted = f"{plain}, native casts in mode rint: the contract exact admits no double rounding; {rate}"
    assert second.strip().startswith(wanted), second
    assert all("it needs a fact" in line for line in more)


def test_a_chain_in_other_modes_makes_no_promise_for_the_plain_one() -> None:
    """What rounds to odd on the way is exact on small numbers; the native casts are not."""
    for contract in ("faithful", "exact"):
        found = answer(chain(FP32, (FP4, "rint")), "fp32>bf16>fp4", contract=contract)
        assert not any("needs a fact" in line for line in found), found


def test_the_plain_chain_beside_the_chosen_one_of_its_stops() -> None:
    first, second = answer(chain(FP32, (INT8, "rint")), "fp32>fp16>int8")
    assert first.endswith("= FP32 → FP16 (odd) → INT8: it is what was chosen")
    assert second.startswith("    FP32 → FP16 → INT8, native casts in mode rint: same cost; inexact: 1.17% of samples")


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("FP32 → FP16 (odd) → INT8", "it is what was chosen"),
        ("fp32>fp16(odd)>int8(rint)", "it is what was chosen"),
        ("fp32>fp16>int8 (rint)", "same cost; inexact: 1.17% of samples differ, by up to 1 ulp"),
        ("fp32>fp16 (floor)>int8", "not looked at: modes other than rint are, where they make a chain exact"),
    ],
)  # fmt: skip
def test_a_chain_can_be_asked_for_by_its_modes(question: str, wanted: str) -> None:
    (only,) = answer(chain(FP32, (INT8, "rint")), question)
    assert only == f"  k, v2 = FP32 → FP16 (odd) → INT8: {wanted}"


@pytest.mark.parametrize(("question", "code"), [("fp32>fp16 (up)>int8", "TG004"), ("fp32 (odd)>fp16>int8", "TG003")])
def test_modes_that_mean_nothing_are_errors(question: str, code: str) -> None:
    with pytest.raises(TileggError, match=code):
        answer(chain(FP32, (INT8, "rint")), question)


def test_modes_that_round_nothing_are_no_other_chain() -> None:
    (only,) = answer(quantise(), "fp32>int16>fp16>int8", "a2a3")
    assert only.endswith("+68 cycles, +1 instructions")


def test_small_rates_are_shown() -> None:
    text = explain(lower(chain(FP32, (HF8, "rint")), "a5")).render()
    assert "inexact: 0.87% of values in the destination's range differ, by up to 1 ulp" in text
    assert "inexact: 5.3e-08 of all values in the destination's range differ, by up to 1 ulp" in text


SUMMED = (
    'm = pl.tile.cmps(t, 0.0, cmp_type="gt")',
    "w = pl.tile.select(m, pl.tile.full([16, 64], pl.FP32, 1.0), 0.0)",
    "a = pl.tile.assume(t, 0.0, {})",
    "b = pl.tile.assume(u, 0.0, {})",
    "c = pl.add(b, pl.mul(w, pl.sub(a, b)))",
)


def test_a_sum_of_floats_tells_which_fact_makes_it_a_selection() -> None:
    lines = answer(kernel(*(line.format(5.0) for line in SUMMED)), "sel")
    (said,) = [line for line in lines if "sel.weighted.index" in line]
    for name in "tu":
        assert f"the fact index of {name}: every element is an integer of at most 2**22 in magnitude" in said
    assert "known is [0, 5] in multiples of 2^-149, 24 bits or -0" in said


@pytest.mark.parametrize(
    ("question", "of", "arch"),
    [("subrelu", "sub", "a2a3"), ("subrelu", "sub", "a5"), ("addrelu", "add", "a2a3")],
)
def test_facts_are_named_whether_or_not_the_assembler_has_the_instruction(question: str, of: str, arch: str) -> None:
    program = kernel(f"s = pl.{of}(t, u)", "c = pl.tile.relu(s)")
    lines = answer(program, question, arch)
    (said,) = [line for line in lines if f"relu.{of} would give it" in line]
    assert "needs the fact ordered of s: no NaN can occur" in said
    assert "the fact one_zero of s: -0 cannot occur" in said
    assert said.endswith("tile.assume can promise a range without 0")


def test_an_instruction_that_nothing_could_become_says_so_of_its_rules() -> None:
    lines = answer(kernel("c = pl.tile.relu(t)"), "muladd_dst", "a2a3")
    assert lines[-2] == "  the program would not use it if the assembler had it"
    assert lines[-1].startswith("  the rules that make it fit nothing that the program computes: fuse.muladd")


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_the_promises_that_an_extreme_asks_for_make_it(arch: str) -> None:
    steps = ("t = pl.tile.assume(t, {}, 5.0)", 'm = pl.tile.cmp(t, u, cmp_type="gt")', "c = pl.tile.select(m, t, u)")
    lines = answer(kernel(*(s.format(-1.0) for s in steps)), "maximum", arch)
    (said,) = [line for line in lines if "sel.maximum.gt" in line]
    assert "the fact one_zero of t" in said and "tile.assume can promise a range without 0" in said
    promised = kernel(steps[0].format(1.0), "u = pl.tile.assume(u, 2.0, 9.0)", *steps[1:])
    assert any(line.startswith("  it is used: c = maximum(") for line in answer(promised, "maximum", arch))


# -- what is gone ------------------------------------------------------------------------------------------


def test_the_values_that_do_without_are_still_there() -> None:
    (f,) = explain(lower(kernel(*WEIGHTED), "a5")).functions
    whys = {d.result: d.why for d in f.dropped}
    assert {"one", "mi", "d", "p"} <= set(whys)
    for name in ("one", "mi", "d", "p"):
        assert whys[name].startswith("not needed: s (line 15) does without it by sel.weighted.integer"), whys


def test_every_reader_that_is_still_there_is_named() -> None:
    m = Maker()
    x = m.load(FP32)
    y = m.op("tile.neg", (x,), FP32)
    for other in (m.load(FP32), m.load(FP32)):
        m.store(m.op("tile.add", (other, y), FP32))
    (f,) = explain(lower(m.program(), "a5")).functions
    gone = {d.result: d.why for d in f.dropped}
    assert gone["v2"].startswith("not needed: v5, v7 do without it by ")


def test_a_step_without_a_rule_is_counted() -> None:
    m = Maker()
    x = m.load(FP32)
    m.store(m.op("tile.add", (m.op("tile.exp", (x,), FP32), m.op("tile.exp", (x,), FP32)), FP32))
    found = explain(lower(m.program(), "a5"))
    steps = found.derivation.steps
    assert any(s.rule is None for s in steps)
    assert f"derivation on a5: {len(steps)} step" in found.render()
