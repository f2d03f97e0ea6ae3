"""Rules loaded on demand: what a region gives does not depend on the regions before it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tilegg
from tilegg.rewrite import engine as engines

HEAD = (
    "@pl.function(type=pl.FunctionType.InCore)\n"
    "def k(x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):\n"
    "    t = pl.tile.load(x, [0, 0], [16, 64])\n"
)
SIN = "    y = pl.tile.sin(t)\n"
SELECT = "    m = pl.tile.cmps(t, 0.5, cmp_type=4)\n    y = pl.tile.select(m, 0.25, t)\n"
PLAIN = "    y = pl.tile.exp(t)\n"


def nodes(body: str) -> list[Any]:
    """The graph of a kernel's region, as comparable data."""
    program = tilegg.parse(f"{HEAD}{body}    return pl.tile.store(y, [0, 0], out)\n")
    (region,) = tilegg.lower(program, "a5", memo=None).functions[0].regions
    return [[(n.decl.name if n.decl else n.kind, n.key, n.children, n.rule) for n in c] for c in region.graph.classes]


def fresh(*bodies: str) -> list[list[Any]]:
    """The graphs of kernels lowered one after another on an engine of their own."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: [nodes(b) for b in bodies]).result()


def test_graphs_do_not_depend_on_what_was_lowered_before() -> None:
    alone = [fresh(b)[0] for b in (SIN, SELECT, PLAIN)]
    for order in ((0, 1, 2, 0), (2, 1, 0, 2), (1, 1, 2, 0)):
        found = fresh(*([SIN, SELECT, PLAIN][i] for i in order))
        assert found == [alone[i] for i in order]


def test_rules_stay_loaded_and_only_those_that_can_match_are() -> None:
    def look() -> tuple[set[str], set[str]]:
        nodes(PLAIN)
        before = set(engines.engine()._loaded)
        nodes(SELECT)
        nodes(SELECT)
        return before, set(engines.engine()._loaded)

    with ThreadPoolExecutor(1) as thread:
        before, after = thread.submit(look).result()
    assert not any(n.startswith(("select.", "sin.")) for n in before)
    assert "select.scalar-tile.complement" in after and not any(n.startswith("sin.") for n in after)


def test_rules_of_looser_contracts_run_only_where_they_are_admitted() -> None:
    eng = engines.engine()
    body = ["(union (val 0) (Inp 0))", "(union (val 1) (tile_muls 14 1 (val 0) (Lit 29 4611686018427387904)))"]
    body.append("(union (val 2) (tile_add 14 1 (val 1) (val 0)))")

    def look(without: frozenset[str]) -> tuple[set[str], int]:
        try:
            eng.declare(["tile.muls", "tile.add"], without)
            eng.add(body)
            eng.run("normalise", engines.Budget())
            return {r.contract for r in eng.active()}, eng.size()
        finally:
            eng.reset()

    strict, few = look(frozenset({"contracted"}))
    loose, many = look(frozenset())
    again, as_few = look(frozenset({"contracted"}))
    assert "contracted" in loose and "contracted" not in strict | again
    assert few == as_few < many
