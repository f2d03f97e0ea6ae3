"""Windows of tiles under what repeats a value per row or column: one operation on the whole, and when not."""

from __future__ import annotations

import pytest
from tilegg import lower, parse
from tilegg.ir.equivalence import equivalent
from tilegg.rewrite.windows import Window, column_rows
from tilegg.rules import shapes as S
from tilegg.rules.check import check_rule
from tilegg.rules.rule import RULES, Pattern, Rule, Term

KERNEL = """
import pypto.language as pl
@pl.program
class K:
    @pl.function(type=pl.FunctionType.InCore)
    def k(
        self, x: pl.Tensor[[16, 64], pl.FP32], v: pl.Tensor[[1, 64], pl.FP32], w: pl.Tensor[[16, 1], pl.FP32],
        y: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        a = pl.load(x, [0, 0], [16, 64])
        b = pl.load(v, [0, 0], [1, 64])
        c = pl.load(w, [0, 0], [16, 1])
        p = {first}
        q = {second}
        r = pl.tile.concat(p, q)
        return pl.store(r, [0, 0], y)
"""
LEFT, RIGHT = "pl.slice(a, [16, 32], [0, 0])", "pl.slice(a, [16, 32], [0, 32])"
LEFT_ROW, RIGHT_ROW = "pl.slice(b, [1, 32], [0, 0])", "pl.slice(b, [1, 32], [0, 32])"


def _work(first: str, second: str, arch: str) -> list[str]:
    found = lower(parse(KERNEL.format(first=first, second=second)), arch, contract="exact", memo=None)
    assert equivalent(found.source, found.program, samples=6).equal
    names = [i.op.name.removeprefix("tile.") for f in found.functions for i in f.instructions if i.count]
    return [n for n in names if n not in ("load", "store")]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_both_halves_at_once(name: str, arch: str) -> None:
    rows = [f"pl.row_expand_{name}({half}, c)" for half in (LEFT, RIGHT)]
    assert _work(*rows, arch) == [f"row_expand_{name}"]
    columns = [f"pl.col_expand_{name}({LEFT}, {LEFT_ROW})", f"pl.col_expand_{name}({RIGHT}, {RIGHT_ROW})"]
    assert _work(*columns, arch) == [f"col_expand_{name}"]


def test_a_chain_of_operations_on_both_halves() -> None:
    halves = [f"pl.mul(pl.exp(pl.row_expand_sub(pl.mul({half}, 0.3), c)), 2.0)" for half in (LEFT, RIGHT)]
    assert _work(*halves, "a5") == ["muls", "row_expand_expdif", "muls"]


def test_other_columns_of_the_row_are_no_part_of_it() -> None:
    crossed = [f"pl.col_expand_add({LEFT}, {RIGHT_ROW})", f"pl.col_expand_add({RIGHT}, {LEFT_ROW})"]
    assert _work(*crossed, "a5") == ["col_expand_add", "col_expand_add", "concat"]


def test_halves_in_the_other_order_are_put_together() -> None:
    assert _work(RIGHT, LEFT, "a5") == ["concat"]


def test_column_windows() -> None:
    left, right = Window(1, 0, 32, 16, 64), Window(2, 32, 32, 16, 64)
    row, short = Window(3, 0, 32, 1, 64), Window(4, 0, 32, 1, 128)
    rows = column_rows({"x": [left, right], "v": [row], "u": [short]})
    assert "(halves x 1 2)" in rows and "(halves x 2 1)" not in rows
    assert "(beside x 1 v 3)" in rows and not any(r.startswith(("(beside x 2 v", "(beside x 1 u")) for r in rows)


_X = Term("tile.slice", (S.d, S.sh, S.rest), (S.x,))
_V = Term("tile.slice", (S.d, S.s2, S.rest2), (S.v,))


def _wrong(name: str, like: str, lhs: Term, rhs: Pattern) -> Rule:
    when = tuple(c for c in RULES[like].when if c.relation != "beside")
    return Rule(f"wrong.{name}", lhs, rhs, when, "exact", "", "normalise", 10_000)


def _whole(name: str) -> Term:
    return Term("tile.slice", (S.d, S.sh, S.rest), (Term(f"tile.{name}", (S.d, S.sx), (S.x, S.v)),))


WRONG = [
    _wrong("any-columns", "window.col_expand_add", S.op("col_expand_add", _X, _V), _whole("col_expand_add")),
    _wrong("other", "window.row_expand_sub", S.op("row_expand_sub", _X, S.v), _whole("row_expand_add")),
]


@pytest.mark.parametrize("rule", WRONG, ids=lambda r: r.name)
def test_wrong_rule_is_caught(rule: Rule) -> None:
    assert check_rule(rule, samples=40).failures
