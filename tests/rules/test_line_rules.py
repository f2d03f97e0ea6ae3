"""Tiles that stand as one row: what becomes cheaper, what must stay as it is, and that reshapes meet and go."""

from __future__ import annotations

import pytest
from tilegg import emit, lower, parse
from tilegg.extract.lowered import Lowered
from tilegg.ir.equivalence import equivalent
from tilegg.rules import lines as L
from tilegg.rules.arithmetic import op
from tilegg.rules.check import check_rule
from tilegg.rules.rule import RULES, Rule, Term

KERNEL = """
import pypto.language as pl
@pl.program
class K:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, x: pl.Tensor[{shape}, pl.{dtype}], x2: pl.Tensor[{shape}, pl.{dtype}],
        y: pl.Out[pl.Tensor[{shape}, pl.{out}]],
    ):
        a = pl.load(x, [0, 0], {shape})
        b = pl.load(x2, [0, 0], {shape})
        r = {body}
        return pl.store(r, [0, 0], y)
"""


def _lowered(body: str, shape: tuple[int, int], arch: str, dtype: str = "FP32", out: str = "") -> Lowered:
    text = KERNEL.format(body=body, shape=list(shape), dtype=dtype, out=out or dtype)
    found = lower(parse(text), arch, contract="exact", memo=None)
    assert equivalent(found.source, found.program, samples=6).equal
    assert emit(found, arch)
    return found


def _work(found: Lowered) -> list[str]:
    names = [i.op.name.removeprefix("tile.") for f in found.functions for i in f.instructions]
    return [n for n in names if n not in ("load", "store")]


_EXPDIF = ["reshape", "reshape", "col_expand_expdif", "reshape"]


@pytest.mark.parametrize("shape", [(8, 64), (16, 1), (3, 8)])
def test_a_difference_and_its_exponential_are_one_instruction(shape: tuple[int, int]) -> None:
    assert _work(_lowered("pl.exp(pl.sub(a, b))", shape, "a5")) == _EXPDIF
    # On the older architecture it is no cheaper, whatever the shape.
    assert [n for n in _work(_lowered("pl.exp(pl.sub(a, b))", shape, "a2a3")) if n != "reshape"] == ["sub", "exp"]


@pytest.mark.parametrize("shape", [(1, 64), (3, 12)])
def test_tiles_of_one_row_and_padded_rows_stay(shape: tuple[int, int]) -> None:
    assert _work(_lowered("pl.exp(pl.sub(a, b))", shape, "a5")) == ["sub", "exp"]


def test_what_is_computed_on_one_row_stays_there() -> None:
    body = "pl.add(pl.mul(pl.mul(a, 3.0), b), 1.0)"
    narrow = _lowered(body, (8, 8), "a2a3")
    assert _work(narrow) == ["reshape", "muls", "reshape", "mul", "adds", "reshape"]
    assert narrow.totals.cycles < narrow.plain.cycles
    assert _work(_lowered(body, (8, 64), "a2a3")) == ["muls", "mul", "adds"]
    assert _work(_lowered(body, (8, 8), "a5")) == ["muls", "mul", "adds"]


def test_quotients_by_columns_are_narrow_once_only() -> None:
    body = "pl.col_expand_div(a, pl.slice(b, [1, 8], [0, 0]))"
    assert "reshape" not in _work(_lowered(body, (8, 8), "a2a3"))  # windows stay windows
    divided = _work(_lowered("pl.col_expand_div(a, pl.col_sum(b))", (8, 8), "a2a3"))
    assert [n for n in divided if n != "reshape"] == ["col_sum", "col_expand", "div"]
    assert _work(_lowered("pl.col_expand_div(a, pl.col_sum(b))", (8, 64), "a2a3")) == ["col_sum", "col_expand_div"]


def test_the_last_conversion_of_a_chain_may_run_on_one_row() -> None:
    assert "reshape" in _work(_lowered("pl.cast(a, target_type=pl.INT8)", (16, 64), "a2a3", "FP16", "INT8"))
    assert "reshape" not in _work(_lowered("pl.cast(a, target_type=pl.INT8)", (16, 128), "a2a3", "FP16", "INT8"))
    assert "reshape" not in _work(_lowered("pl.cast(a, target_type=pl.INT8)", (16, 64), "a5", "FP16", "INT8"))


def test_windows_are_not_copied_to_one_row() -> None:
    body = "pl.mul(pl.slice(a, [8, 8], [0, 8]), 3.0)"
    text = KERNEL.format(body=body, shape=[8, 16], dtype="FP32", out="FP32")
    text = text.replace("y: pl.Out[pl.Tensor[[8, 16]", "y: pl.Out[pl.Tensor[[8, 8]")
    assert "reshape" not in _work(lower(parse(text), "a2a3", contract="exact", memo=None))


def _wrong(name: str, like: str, rhs: Term) -> Rule:
    rule = RULES[like]
    return Rule(f"wrong.{name}", rule.lhs, rhs, rule.when, "exact", "", "normalise", 10_000)


_row = L._as_row
WRONG = [
    _wrong("operands", "line.expdif", L._again(L._on_row("col_expand_expdif", _row(L.y), _row(L.x)))),
    _wrong("no-exponential", "line.expdif", L._again(L._on_row("sub", _row(L.x), _row(L.y)))),
    _wrong("left-a-row", "line.neg", L._on_row("neg", _row(L.x))),
    _wrong("other-operation", "line.maximum", L._again(L._on_row("minimum", _row(L.x), _row(L.y)))),
    _wrong("not-at-all", "line.neg", op("abs", L.x)),
]


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.name)
def test_wrong_rule_is_caught(rule: Rule) -> None:
    assert check_rule(rule, samples=20).failures


@pytest.mark.parametrize("dtype", ["INT8", "INT16"])
def test_a_row_is_not_made_of_a_narrower_dtype_whose_rows_are_padded(dtype: str) -> None:
    text = f"""
import pypto.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[2, 8], pl.{dtype}], out: pl.Out[pl.Tensor[[2, 8], pl.FP32]]):
        t = pl.load(x, [0, 0], [2, 8])
        f = pl.cast(t, target_type=pl.FP32)
        s = pl.muls(f, 2.0)
        return pl.store(s, [0, 0], out)
"""
    for arch in ("a2a3", "a5"):
        found = lower(parse(text), arch)
        assert "pto.tcvt" in emit(found, arch)
        reshaped = [s for s in _work(found) if s == "reshape"]
        assert found.totals.cycles <= found.plain.cycles and len(reshaped) in (0, 2)
