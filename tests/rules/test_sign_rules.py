"""Signs that meet in products, quotients, sums and differences, and chains of factors: what is left, and what stays."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import tilegg
from tilegg.ir.convert import all_values, same_bits
from tilegg.ir.dtypes import DTYPES, FP32
from tilegg.ir.program import Const, Op, walk
from tilegg.rules import arithmetic as A
from tilegg.rules import identities as I
from tilegg.rules.check import check_rule
from tilegg.rules.check_eval import Valued, evaluate
from tilegg.rules.computed import COMPUTED, computed
from tilegg.rules.facts import is_float, is_index
from tilegg.rules.rule import RULES, Rule, Term
from tilegg.rules.terms import DTYPE_CODES
from tilegg.testing import assert_lowering_correct

from .step_kernels import kernel

SIGNS = [r for r in RULES.values() if r.file == "signs" or r.name.startswith("chain.muls.")]


def left(dtype: str, *steps: str, arch: str = "a5") -> list[str]:
    """Return the operations of the lowered kernel between loads and store, with their literals."""
    text = kernel(*steps, dtype=dtype)
    assert_lowering_correct(text, arch, contract="exact", inputs=4)
    made = tilegg.lower(tilegg.parse(text), arch, contract="exact", memo=None)
    ops = [s for s in walk(made.program.functions[0].body) if isinstance(s, Op)]
    return [
        " ".join([s.name.removeprefix("tile."), *(repr(o.value) for o in s.operands if isinstance(o, Const))])
        for s in ops if s.name not in ("tile.load", "tile.store")
    ]  # fmt: skip


@pytest.mark.parametrize("rule", SIGNS, ids=lambda r: r.name)
def test_rule_holds(rule: Rule) -> None:
    found = check_rule(rule, samples=12, seed=5)
    assert found.ok, found.failures


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("last", "want"),
    [
        ("pl.tile.mul(n, pl.tile.neg(b))", ["mul"]),
        ("pl.tile.div(n, pl.tile.neg(b))", ["div"]),
        ("pl.tile.neg(pl.tile.mul(n, b))", ["mul"]),
        ("pl.tile.neg(pl.tile.mul(b, n))", ["mul"]),
        ("pl.tile.neg(pl.tile.div(b, n))", ["div"]),
        ("pl.tile.add(b, pl.tile.mul(n, b))", ["mul", "sub"]),
        ("pl.tile.add(pl.tile.mul(n, b), b)", ["mul", "sub"]),
        ("pl.tile.sub(b, pl.tile.mul(n, b))", ["mul", "add"]),
        ("pl.tile.add(b, n)", ["sub"]),
        ("pl.tile.sub(b, n)", ["add"]),
        ("pl.tile.abs(n)", ["abs"]),
        ("pl.tile.abs(pl.tile.mul(b, n))", ["mul", "abs"]),
        ("pl.tile.neg(n)", []),
        ("pl.tile.muls(n, 3.0)", ["muls -3.0"]),
        ("pl.tile.divs(n, 3.0)", ["divs -3.0"]),
        ("pl.tile.rdivs(n, 3.0)", ["rdivs -3.0"]),
        ("pl.tile.neg(pl.tile.divs(b, 3.0))", ["divs -3.0"]),
        ("pl.tile.neg(pl.tile.rdivs(b, 3.0))", ["rdivs -3.0"]),
    ],
)
def test_signs_of_floats(last: str, want: list[str], arch: str) -> None:
    assert left("FP32", "n = pl.tile.neg(a)", f"r = {last}", arch=arch) == want


@pytest.mark.parametrize(
    ("last", "want"),
    [
        ("pl.tile.add(b, pl.tile.row_expand_mul(n, v))", ["row_expand_mul", "sub"]),
        ("pl.tile.sub(b, pl.tile.row_expand_mul(a, w))", ["row_expand_mul", "add"]),
        ("pl.tile.row_expand_mul(n, w)", ["row_expand_mul"]),
        ("pl.tile.row_expand_add(a, w)", ["row_expand_sub"]),
        ("pl.tile.row_expand_sub(a, w)", ["row_expand_add"]),
    ],
)
def test_signs_of_what_has_a_value_per_row(last: str, want: list[str]) -> None:
    vector = "tmp = pl.tile.create([4, 64], pl.FP32)", "v = pl.tile.row_max(b, tmp)"
    made = left("FP32", *vector, "n = pl.tile.neg(a)", "w = pl.tile.neg(v)", f"r = {last}")
    assert made == ["create", "row_max", *want]


def test_signs_of_integers() -> None:
    assert left("INT32", "r = pl.tile.mul(pl.tile.neg(a), pl.tile.neg(b))") == ["mul"]
    assert left("INT32", "r = pl.tile.neg(pl.tile.sub(a, b))") == ["sub"]
    made = left("INT32", "r = pl.tile.div(pl.tile.neg(a), pl.tile.neg(b))")
    assert made.count("neg") == 2  # the least integer is its own negation


def test_differences_of_floats_keep_their_sign() -> None:
    assert left("FP32", "r = pl.tile.neg(pl.tile.sub(a, b))") == ["sub", "neg"]
    assert left("FP32", "r = pl.tile.sub(pl.tile.neg(a), b)") == ["neg", "sub"]


@pytest.mark.parametrize(
    ("dtype", "first", "second", "want"),
    [
        ("FP32", "2.0", "4.0", ["muls 8.0"]),
        ("FP32", "4.0", "1.5", ["muls 6.0"]),
        ("FP32", "3.0", "-4.0", ["muls -12.0"]),
        ("BF16", "2.0", "-8.0", ["muls -16.0"]),
        ("FP16", "256.0", "64.0", ["muls 16384.0"]),
        ("INT32", "2", "4", ["muls 8"]),
        ("FP32", "0.5", "-0.5", ["muls -0.25"]),
        # Not one: the product is no number of the dtype; a number below the normal ones would be rounded once.
        ("FP16", "1024.0", "256.0", ["muls 1024.0", "muls 256.0"]),
        ("BF16", "3.0", "171.0", ["muls 3.0", "muls 171.0"]),
        ("FP32", "1.5", "4.0", ["muls 1.5", "muls 4.0"]),
        ("FP32", "0.25", "0.5", ["muls 0.25", "muls 0.5"]),
        ("FP32", "0.5", "0.25", ["muls 0.5", "muls 0.25"]),
        ("FP32", "0.5", "4.0", ["muls 0.5", "muls 4.0"]),
        ("FP32", "4.0", "0.5", ["muls 4.0", "muls 0.5"]),
        ("FP32", "3.0", "5.0", ["muls 3.0", "muls 5.0"]),
    ],
)
def test_chains_of_factors(dtype: str, first: str, second: str, want: list[str]) -> None:
    assert left(dtype, f"c = pl.tile.muls(a, {first})", f"r = pl.tile.muls(c, {second})") == want


def test_quotients_that_grow_are_factors() -> None:
    assert left("FP32", "c = pl.tile.divs(a, 0.5)", "r = pl.tile.divs(c, 0.25)") == ["muls 8.0"]
    assert left("FP32", "c = pl.tile.divs(a, 2.0)", "r = pl.tile.divs(c, 2.0)") == ["muls 0.25"]


def test_quotients_that_would_round_twice_stay_two() -> None:
    steps = "c = pl.tile.divs(a, 2.0)", "r = pl.tile.divs(c, 4.0)"
    assert len(left("FP32", *steps)) == 2
    made = tilegg.lower(tilegg.parse(kernel(*steps)), "a5", contract="exact")
    x = np.full((4, 64), 11 * 2.0**-149, np.float32)
    found = tilegg.run(made.program, {"x": x, "y": x})["out"][0, 0]
    assert found == np.float32(2.0**-148) and x[0, 0] * np.float32(0.125) == np.float32(2.0**-149)


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_chains_of_factors_on_every_value(dtype: str) -> None:
    """Every value of a short dtype, under every pair of factors that the table takes."""
    d = DTYPES[dtype]
    drawn = [s * n for n in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.5, 64.0, 255.0, 256.0, 2.0**14) for s in (1, -1)]
    rule = RULES["chain.muls.scaled"]
    codes = {A.d: DTYPE_CODES[dtype], A.sh: 0}
    taken = 0
    for first, second in itertools.product(drawn, drawn):
        found = COMPUTED["scaled"].function(Const(first, FP32), Const(second, FP32), d)
        if found is None:
            continue
        taken += 1
        numbers = zip((I.c1, I.c2, I.r), (first, second, found[0].value))
        values = {v: Valued.scalar(n, FP32) for v, n in numbers}
        values[I.x] = Valued.tile(all_values(d), d)
        left, right = (evaluate(p, codes, values) for p in (rule.lhs, rule.rhs))
        assert same_bits(left.data, right.data, d).all(), (first, second)
    assert taken > 100


def test_small_integers_may_shrink() -> None:
    steps = (
        "i = pl.tile.cast(a, target_type=pl.INT16)", "f = pl.tile.cast(i, target_type=pl.FP32)",
        "c = pl.tile.divs(f, 2.0)", "h = pl.tile.divs(c, 2.0)",
        "n = pl.tile.cast(h, target_type=pl.INT32, mode='floor')", "r = pl.tile.cast(n, target_type=pl.FP32)",
    )  # fmt: skip
    assert [s for s in left("FP32", *steps) if s != "cast"] == ["muls 0.25"]


def test_no_chain_is_too_long_to_stay_finite() -> None:
    table = COMPUTED["scaled"].function
    for dtype in ("FP32", "FP16", "BF16"):
        top = {"FP32": 2.0**127, "BF16": 2.0**127, "FP16": 2.0**15}[dtype]
        assert table(Const(top / 2, FP32), Const(2.0, FP32), DTYPES[dtype]) == (Const(top, FP32),)
        assert table(Const(top, FP32), Const(2.0, FP32), DTYPES[dtype]) is None
        assert table(Const(2.0, FP32), Const(math.inf, FP32), DTYPES[dtype]) is None


def _wrong(name: str, lhs: Term, rhs: object, when: list[object]) -> Rule:
    return Rule(f"wrong.{name}", lhs, rhs, tuple(when), "exact", "", "normalise", 10_000)  # type: ignore[arg-type]


_N = A.op("neg", A.x)
_CHAIN = A.op("muls", A.op("muls", A.x, A.c), A.y)
_ONE = A.op("muls", A.x, A.r)
WRONG = [
    _wrong("product", A.op("mul", _N, A.y), A.op("mul", A.x, A.y), []),
    _wrong("both", A.op("mul", _N, A.op("neg", A.y)), A.op("neg", A.op("mul", A.x, A.y)), []),
    _wrong("difference", A.op("neg", A.op("sub", A.x, A.y)), A.op("sub", A.y, A.x), [is_float(A.d)]),
    _wrong("sum", A.op("sub", _N, A.y), A.op("neg", A.op("add", A.x, A.y)), [is_float(A.d)]),
    _wrong("magnitude", A.op("abs", _N), A.op("abs", A.x), []),
    _wrong("quotient", A.op("divs", _N, A.c), A.op("divs", A.x, A.r),
           [computed("minus", A.c, dtype=A.d, gives=(A.r,))]),
    _wrong("any-product", _CHAIN, _ONE, [computed("product", A.c, A.y, dtype=A.d, gives=(A.r,))]),
    _wrong("shrinking", _CHAIN, _ONE, [computed("scaled_index", A.c, A.y, dtype=A.d, gives=(A.r,))]),
    _wrong("index-of-any", _CHAIN, _ONE, [is_index(A.x), computed("product", A.c, A.y, dtype=A.d, gives=(A.r,))]),
]  # fmt: skip


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.name)
def test_wrong_rule_is_caught(rule: Rule) -> None:
    assert check_rule(rule, samples=60).failures
