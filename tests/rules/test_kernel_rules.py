"""The rules for kernels: each holds, wrong ones are caught, and the values that careless algebra changes."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg import lower, parse
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, DTYPES, FP16, FP32, INT32, UINT16
from tilegg.ir.interp import run
from tilegg.rewrite.knowledge import Knowledge
from tilegg.rules import arithmetic as A
from tilegg.rules import integers as I
from tilegg.rules import library as _library  # noqa: F401
from tilegg.rules.check import check_rule
from tilegg.rules.computed import COMPUTED, computed
from tilegg.rules.facts import is_float, is_index
from tilegg.rules.rule import RULES, Rule, Term
from tilegg.rules.terms import DTYPE_CODES, MODE_CODES

FILES = {
    "activations": ("lrelu.", "relu."),
    "exponentials": ("exp.",),
    "folding": ("fold.",),
    "lines": ("line.",),
    "narrow": ("narrow.",),
    "arithmetic": ("scalar.", "divs.", "subs.", "neg.", "muls.", "add.", "sub.", "abs."),
    "shapes": ("expand.", "window.", "concat.", "reshape."),
    "integers": ("index.", "integer."),
    "fusion": ("fuse.",),
}
KERNEL_RULES = [r for r in RULES.values() if r.name.startswith(tuple(p for ps in FILES.values() for p in ps))]


@pytest.mark.parametrize("rule", KERNEL_RULES, ids=lambda r: r.name)
def test_rule_holds(rule: Rule) -> None:
    found = check_rule(rule, samples=12, seed=5)
    assert found.ok, found.failures
    assert rule.reason and rule.contract in ("exact", "contracted")


def _wrong(name: str, lhs: Term, rhs: object, when: list[object], contract: str = "exact") -> Rule:
    return Rule(f"wrong.{name}", lhs, rhs, tuple(when), contract, "", "normalise", 10_000)  # type: ignore[arg-type]


_POWER = computed("power", I.c, dtype=DTYPE_CODES["INT32"], gives=(I.k, I.mask))
_HALF = computed("halving", I.c, dtype=DTYPE_CODES["FP32"], gives=(I.k,))
WRONG = [
    _wrong("difference", A.op("add", A.op("neg", A.y), A.x), A.op("sub", A.y, A.x), []),
    _wrong("negated-difference", A.op("neg", A.op("sub", A.x, A.y)), A.op("sub", A.y, A.x), [is_float(A.d)]),
    _wrong("twice", A.op("add", A.x, A.x), A.x, []),
    _wrong("quotient", A.op("divs", A.x, A.c), A.op("muls", A.x, A.r),
           [computed("minus", A.c, dtype=A.d, gives=(A.r,))]),
    _wrong("sum-of-any", I.to_int(I._f("add", I.x, I.y), I.m, I.s), I._i("add", I.to_int(I.x), I.to_int(I.y)), []),
    _wrong("halving-negative", I.to_int(I._f("muls", I.x, I.c), MODE_CODES["trunc"], I.s),
           I._i("shrs", I.to_int(I.x), I.k), [is_index(I.x), _HALF]),
    _wrong("halving-nearest", I.to_int(I._f("muls", I.x, I.c), MODE_CODES["rint"], I.s),
           I._i("shrs", I.to_int(I.x), I.k), [is_index(I.x), _HALF]),
    _wrong("quotient-negative", I._i("divs", I.x, I.c), I._i("shrs", I.x, I.k), [_POWER]),
    _wrong("mask", I._i("rems", I.x, I.c), I._i("ands", I.x, I.k), [_POWER]),
    _wrong("fused-as-exact", A.op("add", A.op("muls", A.x, A.c), A.y), A.op("axpy", A.y, A.x, A.c), [is_float(A.d)]),
    _wrong("fused-other", A.op("add", A.op("muls", A.x, A.c), A.y), A.op("axpy", A.x, A.y, A.c), [is_float(A.d)],
           "contracted"),
    _wrong("more-roundings", Term("tile.div", (A.d, A.sh, A.rest), (A.x, A.y)),
           A.op("mul", A.x, Term("tile.recip", (A.d, A.sh, A.rest), (A.y,))), [is_float(A.d)], "contracted"),
]  # fmt: skip


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.name)
def test_wrong_rule_is_caught(rule: Rule) -> None:
    assert check_rule(rule, samples=40).failures


def test_computed_literals() -> None:
    rng = np.random.default_rng(0)
    for name, table in COMPUTED.items():
        found = 0
        # Each table is about some dtypes; a bound holds where the first dtype is the narrower one.
        for dtype, wide in ((FP32, FP16), (INT32, FP16), (UINT16, FP16), (BF16, FP32)):
            more = {("dtype",): (), ("dtype", "dtype"): (wide,)}.get(table.codes, (BF16, "rint", None))
            rows = [table.function(*table.example(rng, dtype), dtype, *more) for _ in range(50)]
            found = max(found, sum(r is not None for r in rows))
        assert found >= 10, name


def _kernel(body: str, shape: str = "[1, 64]", dtype: str = "FP32", out: str = "FP32") -> str:
    lines = "\n".join(f"        {line}" for line in body.strip().split("\n"))
    return f"""
import pypto.language as pl
@pl.program
class K:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[{shape}, pl.{dtype}], y: pl.Out[pl.Tensor[{shape}, pl.{out}]]):
        a = pl.load(x, [0, 0], {shape})
{lines}
        return pl.store(r, [0, 0], y)
"""


def _ops(text: str, arch: str = "a5", contract: str = "exact") -> list[str]:
    lowered = lower(parse(text), arch, contract=contract, memo=None)
    return [i.op.name.removeprefix("tile.") for f in lowered.functions for i in f.instructions if i.count]


@pytest.mark.parametrize("body", ["r = pl.mul(a, 0.0)", "r = pl.sub(a, a)", "r = pl.add(a, 0.0)"])
def test_nothing_that_nan_infinity_or_minus_zero_would_show(body: str) -> None:
    assert len(_ops(_kernel(body))) == 3


def test_round_trip_of_a_narrow_dtype_goes_and_a_rounding_stays() -> None:
    there = "w = pl.cast(a, target_type=pl.FP32)\nr = pl.cast(w, target_type=pl.BF16)"
    assert _ops(_kernel(there, dtype="BF16", out="BF16")) == ["load", "store"]
    rounding = "w = pl.cast(a, target_type=pl.BF16)\nr = pl.cast(w, target_type=pl.FP32)"
    assert _ops(_kernel(rounding)) == ["load", "cast", "cast", "store"]


INDEX_CHAIN = """
j = pl.tile.ci({start}, [1, 64], dtype=pl.INT32)
h = pl.mul(pl.cast(j, target_type=pl.FP32), 0.5)
d = pl.cast(h, target_type=pl.INT32, mode="trunc")
r = pl.cast(pl.cast(d, target_type=pl.FP32), target_type=pl.INT32)
"""


def test_truncated_halves_of_an_arange_are_a_shift() -> None:
    chain = INDEX_CHAIN.format(start=0)
    assert _ops(_kernel(chain, dtype="INT32", out="INT32"))[-3:] == ["ci", "shrs", "store"]


def test_truncation_of_negative_numbers_is_no_shift() -> None:
    assert "shrs" not in _ops(_kernel(INDEX_CHAIN.format(start=-7), dtype="INT32", out="INT32"))


def test_integer_quotient_is_a_shift_and_one_of_any_sign_is_raised_first() -> None:
    known = "t = pl.tile.ci(0, [1, 64], dtype=pl.INT32)\nr = pl.tile.divs(t, 8)"
    assert _ops(_kernel(known, dtype="INT32", out="INT32")) == ["ci", "shrs", "store"]
    for arch, raised in (("a2a3", ["muls", "sub"]), ("a5", ["ands", "add"])):
        for number, steps in ((8, ["shrs", *raised, "shrs"]), (2, ["shrs", "sub", "shrs"]), (6, ["divs"])):
            text = _kernel(f"r = pl.tile.divs(a, {number})", dtype="INT32", out="INT32")
            assert _ops(text, arch) == ["load", *steps, "store"]


@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"])
def test_quotients_and_remainders_by_powers_of_two_round_to_zero(dtype: str) -> None:
    kind = DTYPES[dtype]
    ends = [int(kind.min_value), int(kind.min_value) + 1, 0, 1, 7, 8, 9, int(kind.max_value), int(kind.max_value) - 1]
    data = np.resize(np.asarray([*ends, *([-9, -8, -7, -1] if kind.signed else [])], kind.storage), (1, 64))
    for k in (1, 3, kind.bits - 2):
        wide = data.astype(np.int64)
        right = {"divs": (wide - np.fmod(wide, 2**k)) >> k, "fmods": np.fmod(wide, 2**k), "rems": wide % 2**k}
        for name, expected in right.items():
            text = _kernel(f"r = pl.tile.{name}(a, {2**k})", dtype=dtype, out=dtype)
            for arch in ("a2a3", "a5"):
                try:
                    made = lower(parse(text), arch, memo=None).program
                except TileggError as problem:
                    assert problem.diagnostics[0].code == "TG022"
                    continue
                assert np.array_equal(run(made, {"x": data})["y"], expected.astype(kind.storage)), (name, k, arch)


def test_remainders_are_masks() -> None:
    text = _kernel("r = pl.tile.rems(a, 8)", dtype="INT32", out="INT32")
    assert _ops(text, "a5") == ["load", "ands", "store"]
    assert _ops(text, "a2a3") == ["load", "expands", "and_", "store"]


def test_a_product_and_a_sum_are_fused_only_on_request() -> None:
    body = "r = pl.add(pl.exp(a), pl.mul(a, 4097.0))"
    text = _kernel(body)
    assert "axpy" not in _ops(text) and "axpy" not in _ops(text, contract="faithful")
    assert "axpy" in _ops(text, contract="contracted")


def test_fused_product_has_one_rounding() -> None:
    # e**(-0.005 * 4097) is about 2**-29.6: less than the last place of the product, but it breaks the tie.
    text = _kernel("e = pl.exp(pl.mul(a, -0.005))\nr = pl.add(e, pl.mul(a, 4097.0))")
    x = np.full((1, 64), 4097.0, np.float32)
    found = {}
    for contract in ("exact", "contracted"):
        program = lower(parse(text), "a5", contract=contract, memo=None).program
        found[contract] = float(run(program, {"x": x})["y"][0, 0])
    assert found == {"exact": 16785408.0, "contracted": 16785410.0}


@pytest.mark.parametrize(("factor", "name"), [(127.0, "divs"), (1 / 127.0, "muls"), (2.0**-10, "muls")])
def test_scaling_by_the_reciprocal_of_a_scaled_maximum_is_bounded(factor: float, name: str) -> None:
    body = f"""
tmp = pl.tile.create([8, 64], pl.FP32)
m = pl.maximum(pl.row_max(pl.abs(a), tmp), 1e-4)
r = pl.row_expand_mul(a, pl.recip(pl.tile.{name}(m, {factor!r})))
"""
    program = parse(_kernel(body, "[8, 64]"))
    knowledge = Knowledge(program.functions[0])
    (op,) = [o for o in knowledge.ops.values() if o.name == "tile.row_expand_mul"]
    bound = knowledge.of(op.result).hi
    limit = factor if name == "divs" else 1 / factor
    assert limit <= bound <= limit * 1.001 + 1
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((8, 64)) * 10.0 ** rng.integers(-40, 38, (8, 1))).astype(np.float32)
    x[0] = np.float32(3.4028235e38)
    with np.errstate(all="ignore"):
        got = run(program, {"x": x})["y"]
    assert np.nanmax(np.abs(got)) <= bound


@pytest.mark.parametrize("flag, last", [("", "row_expand_div"), (", high_precision=True", "row_expand_mul")])
def test_a_reciprocal_of_higher_precision_is_no_plain_quotient(flag: str, last: str) -> None:
    body = f"v = pl.row_max(a, pl.tile.create([8, 64], pl.FP32))\nr = pl.row_expand_mul(a, pl.recip(v{flag}))"
    assert last in _ops(_kernel(body, shape="[8, 64]"), contract="contracted")
