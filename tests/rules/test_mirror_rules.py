"""Operations written with their operands in either order: one value, without a term more than was written."""

from __future__ import annotations

import pytest
import tilegg
from tilegg.extract.trajectory import derivation
from tilegg.ir.program import Op, walk
from tilegg.rewrite.egglog_text import compile_rule
from tilegg.rewrite.engine import Engine
from tilegg.rewrite.knowledge import Knowledge
from tilegg.rewrite.region import names_in_types, regions
from tilegg.rewrite.saturate import Plan, saturate
from tilegg.rules import arithmetic as A
from tilegg.rules.check import check_rule
from tilegg.rules.mirrors import COMMUTATIVE, TURNED
from tilegg.rules.rule import RULES, Rule
from tilegg.rules.select import LE, LT, cmp
from tilegg.rules.target import load_target
from tilegg.testing import assert_lowering_correct

from .step_kernels import kernel

MIRRORS = [r for r in RULES.values() if r.file == "mirrors"]


def left(text: str, arch: str = "a5") -> list[str]:
    """Return the operations of the lowered kernel between loads and store, but for how tiles are laid out."""
    assert_lowering_correct(text, arch, contract="exact", inputs=4)
    made = tilegg.lower(tilegg.parse(text), arch, contract="exact", memo=None)
    names = [s.name.removeprefix("tile.") for s in walk(made.program.functions[0].body) if isinstance(s, Op)]
    return [n for n in names if n not in ("load", "store", "reshape")]


@pytest.mark.parametrize("rule", MIRRORS, ids=lambda r: r.name)
def test_rule_holds_and_makes_no_term(rule: Rule) -> None:
    found = check_rule(rule, samples=12, seed=3)
    assert found.ok, found.failures
    assert rule.meets and "(let " not in compile_rule(rule) and "(set " not in compile_rule(rule)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("name", COMMUTATIVE)
def test_both_orders_are_computed_once(name: str, arch: str) -> None:
    dtype = "INT16" if name.endswith("_") or name == "xor" else "FP32"
    steps = f"c = pl.tile.{name}(a, b)", f"d = pl.tile.{name}(b, a)"
    made = left(kernel(*steps, "r = pl.tile.sub(c, d)", dtype=dtype), arch)
    once = ["or_", "and_", "sub"] if (name, arch) == ("xor", "a2a3") else [name]
    assert made == [*once, "sub"]


def test_what_is_computed_from_mirrored_values_is_shared_too() -> None:
    steps = "c = pl.tile.exp(pl.tile.mul(a, b))", "d = pl.tile.exp(pl.tile.mul(b, a))"
    assert left(kernel(*steps, "r = pl.tile.sub(c, d)")) == ["mul", "exp", "sub"]
    steps = "c = pl.tile.add(a, pl.tile.mul(a, b))", "d = pl.tile.add(pl.tile.mul(b, a), a)"
    assert left(kernel(*steps, "r = pl.tile.sub(c, d)")) == ["mul", "add", "sub"]


def test_operands_that_become_one_value_by_other_rules() -> None:
    steps = "c = pl.tile.mul(a, b)", "n = pl.tile.neg(pl.tile.neg(b))", "d = pl.tile.mul(n, a)"
    assert left(kernel(*steps, "r = pl.tile.sub(c, d)")) == ["mul", "sub"]


def test_tiles_made_with_mirrored_scalars() -> None:
    text = kernel("c = pl.tile.muls(a, s)", "d = pl.tile.muls(a, t)", "r = pl.tile.sub(c, d)")
    head = "    s = p * q\n    t = q * p\n    a = "
    scalars = "p: pl.Scalar[pl.FP32], q: pl.Scalar[pl.FP32], out: pl.Out"
    text = text.replace("    a = ", head).replace("out: pl.Out", scalars)
    assert left(text).count("muls") == 1


def test_comparisons_and_magnitudes() -> None:
    steps = "m = pl.tile.cmp(a, b, cmp_type=2)", "n = pl.tile.cmp(b, a, cmp_type=4)"
    chosen = "c = pl.tile.sel(m, a, b)", "d = pl.tile.sel(n, a, b)", "r = pl.tile.sub(c, d)"
    assert left(kernel(*steps, *chosen)) == ["cmp", "sel", "sub"]
    steps = "c = pl.tile.abs(pl.tile.sub(a, b))", "d = pl.tile.abs(pl.tile.sub(b, a))", "r = pl.tile.mul(c, d)"
    assert left(kernel(*steps)) == ["sub", "abs", "mul"]
    other = "m = pl.tile.cmp(a, b, cmp_type=2)", "n = pl.tile.cmp(b, a, cmp_type=2)"
    assert left(kernel(*other, *chosen)).count("cmp") == 2


@pytest.mark.parametrize("name", ["sub", "div"])
def test_operations_with_an_order_stay_two(name: str) -> None:
    steps = f"c = pl.tile.{name}(a, b)", f"d = pl.tile.{name}(b, a)"
    assert left(kernel(*steps, "r = pl.tile.mul(c, d)")).count(name) == 2


def test_the_written_order_stays_where_nothing_is_gained() -> None:
    made = tilegg.lower(tilegg.parse(kernel("c = pl.tile.mul(b, a)", "r = pl.tile.mul(c, a)")), "a5", memo=None)
    text = tilegg.print_program(made.program)
    assert "pl.tile.mul(b, a)" in text and "pl.tile.mul(c, a)" in text


def test_no_node_is_added() -> None:
    apart = Engine(r for r in RULES.values() if r.file != "mirrors")
    texts = [
        kernel("c = pl.tile.mul(a, b)", "d = pl.tile.mul(b, a)", "r = pl.tile.sub(pl.tile.exp(c), pl.tile.exp(d))"),
        kernel("c = pl.tile.mul(a, b)", "d = pl.tile.add(c, a)", "r = pl.tile.add(d, b)"),
    ]
    for text in texts:
        function = tilegg.parse(text).functions[0]
        (region,) = regions(function.body, names_in_types(function))
        plan = Plan(load_target("a5"), True)
        with_them, without = (saturate(region, Knowledge(function), plan, own).size for own in (None, apart))
        assert with_them <= without


def test_the_derivation_names_the_rule() -> None:
    text = kernel("c = pl.tile.mul(a, b)", "d = pl.tile.mul(b, a)", "r = pl.tile.add(pl.tile.exp(c), pl.tile.exp(d))")
    found = derivation(tilegg.lower(tilegg.parse(text), "a5", memo=None), samples=2)
    assert found.reached and [s.name for s in found.steps] == ["mirror.mul"], found.render()


def _wrong(name: str, lhs: object, rhs: object) -> Rule:
    return Rule(f"wrong.{name}", lhs, rhs, (), "exact", "", "normalise", 10_000, meets=True)  # type: ignore[arg-type]


WRONG = [
    _wrong("difference", A.op("sub", A.x, A.y), A.op("sub", A.y, A.x)),
    _wrong("amount", A.op("shl", A.x, A.y), A.op("shl", A.y, A.x)),
    _wrong("magnitude-of-integers", A.op("abs", A.op("sub", A.x, A.y)), A.op("abs", A.op("sub", A.y, A.x))),
    _wrong("order", cmp(LT, A.x, A.y), cmp(LT, A.y, A.x)),
    _wrong("other-order", cmp(LT, A.x, A.y), cmp(TURNED[LE], A.y, A.x)),
]


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.name)
def test_wrong_rule_is_caught(rule: Rule) -> None:
    assert check_rule(rule, samples=40).failures
