"""Comparisons before and after a conversion that loses nothing: every value, both targets, and where they stay two."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from tilegg.ir.convert import all_values
from tilegg.ir.dtypes import DTYPES, FP32, INDEX
from tilegg.ir.ops.select import COMPARISONS
from tilegg.ir.program import Const, Op, walk
from tilegg.rules import compares as C
from tilegg.rules.casts import cast
from tilegg.rules.check import check_rule
from tilegg.rules.check_eval import Valued, evaluate
from tilegg.rules.computed import COMPUTED
from tilegg.rules.facts import fits
from tilegg.rules.rule import RULES, Condition, Rule
from tilegg.rules.select import LE, LT, cmp, cmps
from tilegg.rules.terms import DTYPE_CODES
from tilegg.testing import assert_lowering_correct

MINE = [r for r in RULES.values() if r.file == "compares"]
PAIRS = [
    ("FP16", "FP32"), ("BF16", "FP32"), ("INT8", "FP16"), ("INT8", "FP32"), ("INT8", "INT16"), ("UINT8", "FP16"),
    ("UINT8", "FP32"), ("UINT8", "INT32"), ("INT16", "FP32"), ("UINT16", "FP32"), ("INT16", "INT32"),
]  # fmt: skip
NUMBERS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 7.0, 100.0, 127.0, 128.0, 255.0, -128.0, 2.0**-14, 2048.0, 32767.0)


@pytest.mark.parametrize("rule", MINE, ids=lambda r: r.name)
def test_rule_holds(rule: Rule) -> None:
    found = check_rule(rule, samples=12, seed=5)
    assert found.ok, found.failures


@pytest.mark.parametrize(("src", "dst"), PAIRS)
def test_every_value_of_a_short_source_compares_the_same(src: str, dst: str) -> None:
    source, wide = DTYPES[src], DTYPES[dst]
    codes = {C.a: DTYPE_CODES[src], C.b: DTYPE_CODES[dst], C.m: 0, C.s: 0 if wide.is_float else 1}
    tried = 0
    for number in NUMBERS:
        written = Const(number, FP32) if wide.is_float else Const(int(number), INDEX)
        found = COMPUTED["same_in"].function(written, source, wide)
        if found is None:
            continue
        tried += 1
        values = {v: Valued.scalar(n.value, n.dtype) for v, n in ((C.c, written), (C.r, found[0]))}
        values[C.x] = Valued.tile(all_values(source), source)
        for word in COMPARISONS:
            rule = RULES[f"cmps.cast.{word}"]
            every = {v: 0 for v in (*rule.lhs.args, *rule.lhs.children[0].args) if not isinstance(v, int)}  # type: ignore[union-attr]
            left, right = (evaluate(p, {**every, **codes}, values) for p in (rule.lhs, rule.rhs))
            assert np.array_equal(left.data, right.data), (word, number)
    assert tried >= 4


def test_numbers_that_both_dtypes_hold() -> None:
    table = COMPUTED["same_in"].function
    fp16, int8, uint8, int32 = (DTYPES[n] for n in ("FP16", "INT8", "UINT8", "INT32"))
    assert table(Const(0.5, FP32), fp16, FP32) == (Const(0.5, FP32),)
    assert table(Const(3.0, FP32), int8, FP32) == (Const(3, INDEX),)
    assert table(Const(3, INDEX), int8, int32) == (Const(3, INDEX),)
    assert table(Const(3, INDEX), fp16, int32) == (Const(3.0, FP32),)
    for number, source in ((0.1, fp16), (1e5, fp16), (2.0**-20, fp16), (0.5, int8), (128.0, int8), (-1.0, uint8)):
        assert table(Const(number, FP32), source, FP32) is None, number
    assert table(Const(float("inf"), FP32), fp16, FP32) is None
    assert table(Const(True, DTYPES["BOOL"]), int8, FP32) is None


def kernel(src: str, *steps: str, dst: str = "FP32") -> str:
    """A kernel of steps on a narrow tile ``t``, it converted ``w``, and a wide tile ``u``; stores ``r``."""
    body = "\n".join(f"    {s}" for s in steps)
    return f"""
import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[4, 64], pl.{src}], y: pl.Tensor[[4, 64], pl.{dst}], out: pl.Out[pl.Tensor[[4, 64], pl.{dst}]]):
    t = pl.tile.load(x, [0, 0], [4, 64])
    u = pl.tile.load(y, [0, 0], [4, 64])
    w = pl.tile.cast(t, target_type=pl.{dst})
{body}
    return pl.tile.store(r, [0, 0], out)
"""


def left(text: str, arch: str = "a5") -> list[str]:
    assert_lowering_correct(text, arch, contract="exact", inputs=4)
    made = tilegg.lower(tilegg.parse(text), arch, contract="exact", memo=None)
    names = [s.name.removeprefix("tile.") for s in walk(made.program.functions[0].body) if isinstance(s, Op)]
    return [n for n in names if n not in ("load", "store")]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("how", range(6))
def test_the_comparison_comes_before_the_conversion(how: int, arch: str) -> None:
    text = kernel("FP16", f"m = pl.tile.cmps(w, 0.5, cmp_type={how})", "r = pl.tile.sel(m, u, pl.tile.neg(u))")
    assert left(text, arch) == ["cmps", "neg", "sel"]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_one_comparison_serves_two_dtypes(arch: str) -> None:
    steps = "m = pl.tile.cmps(t, 0.5, cmp_type=4)", "n = pl.tile.cmps(w, 0.5, cmp_type=4)"
    chosen = "a = pl.tile.cast(pl.tile.select(m, t, 0.0), target_type=pl.FP32)", "b = pl.tile.select(n, u, 0.0)"
    made = left(kernel("FP16", *steps, *chosen, "r = pl.tile.add(a, b)"), arch)
    assert made.count("cmps") == 1 and made.count("cast") == 1
    # 0.1 is another number in FP16.
    apart = [s.replace("0.5", "0.1") for s in steps]
    assert left(kernel("FP16", *apart, *chosen, "r = pl.tile.add(a, b)"), arch).count("cmps") == 2


def test_two_tiles_of_one_dtype() -> None:
    text = kernel("BF16", "n = pl.tile.neg(t)", "v = pl.tile.cast(n, target_type=pl.FP32)",
                  "m = pl.tile.cmp(w, v, cmp_type=2)", "r = pl.tile.sel(m, u, pl.tile.neg(u))")  # fmt: skip
    assert "cmp" in left(text)
    text = text.replace("BF16", "FP16")
    assert left(text, "a2a3").count("cast") == 0


def test_integers_by_their_range() -> None:
    steps = "m = pl.tile.cmps(w, 3.0, cmp_type=0)", "r = pl.tile.sel(m, u, pl.tile.neg(u))"
    assert left(kernel("INT16", *steps)).count("cast") == 0
    # This hardware compares such integers as if they were FP16.
    assert left(kernel("INT16", *steps), "a2a3").count("cast") == 1
    for arch in ("a2a3", "a5"):
        # Conversion to FP32 rounds large integers; small ones it does not.
        assert left(kernel("INT32", *steps), arch).count("cast") == 1
        small = "s = pl.tile.assume(t, -1000, 1000)", "v = pl.tile.cast(s, target_type=pl.FP32)"
        assert left(kernel("INT32", *small, *(x.replace("(w", "(v") for x in steps)), arch).count("cast") == 0


def _wrong(name: str, lhs: object, rhs: object, when: list[Condition]) -> Rule:
    return Rule(f"wrong.{name}", lhs, rhs, tuple(when), "exact", "", "normalise", 10_000)  # type: ignore[arg-type]


_CAST = cast(C.x, C.a, C.b, C.m, C.s)
_SAME = C.computed("same_in", C.c, dtype=C.a, more=(C.b,), gives=(C.r,))
WRONG = [
    _wrong("rounded", cmps(LT, _CAST, C.c), cmps(LT, C.x, C.r), [_SAME]),
    _wrong("other-order", cmps(LT, _CAST, C.c), cmps(LE, C.x, C.r), [_SAME, fits(C.x, C.b)]),
    _wrong("one-rounded", cmp(LT, _CAST, cast(C.y, C.a, C.b, C.m, C.s)), cmp(LT, C.x, C.y),
           [C.is_compared(C.a), fits(C.x, C.b)]),
    _wrong("exchanged", cmp(LT, _CAST, cast(C.y, C.a, C.b, C.m, C.s)), cmp(LT, C.y, C.x),
           [C.is_compared(C.a), fits(C.x, C.b), fits(C.y, C.b)]),
]  # fmt: skip


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.name)
def test_wrong_rule_is_caught(rule: Rule) -> None:
    assert check_rule(rule, samples=60).failures


_SATURATED = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP16], y: pl.Tensor[[16, 64], pl.FP16],
          out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        a = pl.cast(pl.load(x, [0, 0], [16, 64]), target_type=pl.FP16, saturation_mode="on")
        b = pl.cast(pl.load(y, [0, 0], [16, 64]), target_type=pl.FP16, saturation_mode="on")
        one = pl.tile.full([16, 64], pl.FP32, 1.0)
        r = pl.tile.sels({mask}, one, scalar=0.0)
        return pl.store(r, [0, 0], out)
"""


@pytest.mark.parametrize("mask", ["pl.tile.cmp(a, b, cmp_type=0)", "pl.tile.cmps(a, 65504.0, cmp_type=0)"])
def test_an_infinity_that_becomes_the_largest_number_equals_it(mask: str) -> None:
    program = tilegg.parse(_SATURATED.format(mask=mask), "k.py")
    given = {"x": np.full((16, 64), np.inf, np.float16), "y": np.full((16, 64), 65504, np.float16)}
    assert (tilegg.run(program, given)["out"] == 1).all()
    # No instruction does that, and a comparison of what was converted is no way around it.
    with pytest.raises(tilegg.TileggError, match="no conversion from FP16 to FP16 on a5 saturates"):
        tilegg.lower(program, "a5", memo=None)
