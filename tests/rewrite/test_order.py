"""Classes and nodes stand in an order of their contents, whatever the process did before."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from tilegg.extract.lower import lower
from tilegg.ir.program import Program
from tilegg.ir.text import parse, print_program
from tilegg.rewrite import engine as engines
from tilegg.rewrite.engine import Engine, engine
from tilegg.rewrite.order import class_order
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.target import load_target

#: Nodes by class: two that differ in classes below only, which differ in what they say, and two that do not.
NODES = {
    0: [(("mul", 1), (2, 3)), (("mul", 1), (4, 5))],
    1: [(("add", 1), (6,)), (("add", 1), (7,))],
    2: [(("neg", 1), (3,))], 3: [(("lit", 1), ())], 4: [(("abs", 1), (5,))], 5: [(("lit", 1), ())],
    6: [(("exp", 1), (8,))], 7: [(("exp", 1), (9,))], 8: [(("lit", 5), ())], 9: [(("lit", 3), ())],
}  # fmt: skip


def test_the_order_does_not_depend_on_rows_and_numbers() -> None:
    expected = None
    rnd = random.Random(5)
    for _ in range(60):
        numbers = dict(zip(NODES, rnd.sample(range(100), len(NODES))))
        shown = {
            numbers[c]: rnd.sample([(n, tuple(numbers[k] for k in kids)) for n, kids in nodes], len(nodes))
            for c, nodes in rnd.sample(list(NODES.items()), len(NODES))
        }
        back = {n: c for c, n in numbers.items()}
        order = [back[n] for n in class_order([numbers[0], numbers[1]], shown)]
        expected = expected or order
        assert order == expected
    assert expected is not None and sorted(expected) == sorted(NODES) and expected[:2] == [0, 1]
    assert expected.index(4) < expected.index(2)  # abs before neg
    assert expected.index(7) < expected.index(6)  # 3 before 5


def test_chains_that_differ_at_their_ends_alone_are_told_apart() -> None:
    length, rnd = 12, random.Random(7)
    for _ in range(20):
        first, *rest = rnd.sample(range(100), 2 * length + 1)
        one, other = rest[:length], rest[length:]
        shown = {first: [(("add", 1), (one[0],)), (("add", 1), (other[0],))]}
        for chain, said in ((one, 5), (other, 3)):
            shown.update({c: [(("exp", 1), (k,))] for c, k in pairwise(chain)})
            shown[chain[-1]] = [(("lit", said), ())]
        order = class_order([first], dict(rnd.sample(list(shown.items()), len(shown))))
        assert order == [first, *(c for pair in zip(other, one) for c in pair)]


@pytest.fixture
def own_engine() -> Iterator[None]:
    """An engine that has done nothing, for this test alone."""
    before = engine()
    del engines._local.engine
    yield
    engines._local.engine = before


#: Seeds and sizes, some of which gave another choice of the same cost when the process had met their terms before.
SEEDS = [("a2a3", 9_483_009), ("a2a3", 3_223_985), ("a5", 686_117), *(("a5", n) for n in range(40, 52))]


@pytest.mark.parametrize(("arch", "seed"), SEEDS)
def test_lowering_again_gives_the_same_program(arch: str, seed: int, own_engine: None) -> None:
    for size in (6, 10, 20):
        program = random_program(seed, Kind(target=load_target(arch), size=size))
        try:
            first = shown(program, arch)
        except Exception:  # no legal form: another size may have one
            continue
        assert [shown(program, arch) for _ in range(3)] == [first] * 3


def shown(program: Program, arch: str) -> str:
    return print_program(lower(program, arch, memo=None).program)


KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[16, 64], pl.{dtype}], y: pl.Out[pl.Tensor[[16, 64], pl.INT8]]):
        t = pl.load(x, [0, 0], [16, 64])
        a = pl.{what}(pl.cast(t, target_type=pl.FP32))
        return pl.store(pl.cast(a, target_type=pl.INT8), [0, 0], y)
"""


@pytest.mark.parametrize("where", ["reset", "add", "run", "_load", "_empty_later", "_schedule"])
def test_what_was_interrupted_is_not_used_again(
    where: str, own_engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (
        parse("import pypto.language as pl\n" + KERNEL.format(dtype=dtype, what=what))
        for dtype, what in (("BF16", "abs"), ("FP16", "exp"))
    )
    expected = shown(other, "a5")
    del engines._local.engine
    real = getattr(Engine, where)

    def interrupted(self: Engine, *args: object, **named: object) -> object:
        made = real(self, *args, **named)
        if self.busy:
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(Engine, where, interrupted)
    with pytest.raises(KeyboardInterrupt):
        lower(one, "a5", memo=None)
    monkeypatch.undo()
    assert shown(other, "a5") == expected


def test_what_is_exact_comes_before_approximations() -> None:
    # Every exact chain from INT32 to BF16 costs more than the one that may round twice.
    text = KERNEL.format(dtype="INT32", what="abs").replace("pl.cast(t, target_type=pl.FP32)", "t")
    text = text.replace("target_type=pl.INT8", "target_type=pl.BF16, mode='rint'").replace("pl.INT8", "pl.BF16")
    text = "import pypto.language as pl\n" + text.replace("pl.abs(t)", "pl.neg(t)")
    found = lower(parse(text), "a2a3", memo=None)
    classes = [nodes for f in found.functions for r in f.regions for nodes in r.graph.classes]
    assert any(n.approx for nodes in classes for n in nodes)
    assert all([n.approx for n in nodes] == sorted(n.approx for n in nodes) for nodes in classes)
