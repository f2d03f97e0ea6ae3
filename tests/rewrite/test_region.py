"""Regions: what becomes one e-graph, where it ends, its leaves and roots."""

from __future__ import annotations

from tilegg.ir.dtypes import FP32, INDEX
from tilegg.ir.program import Block, Const, Function, Op, Param, Statement, Value, index
from tilegg.ir.types import scalar, tensor, tile
from tilegg.rewrite.region import WINDOW, encodable, names_in_types, regions

T = tile((2, 8), FP32)
X = Value("x", tensor((2, 8), FP32))
A = Value("a", T)
LOAD = Op("tile.load", (X, (index(0), index(0)), (index(2), index(8)), None), {}, (A,))


def neg(of: Value, name: str) -> Op:
    return Op("tile.neg", (of,), {}, (Value(name, T),))


def store(v: Value) -> Op:
    return Op("tile.store", (v, (index(0), index(0)), X, None), {}, (Value(f"w_{v.name}", X.type),))


def test_a_region_spans_loads_and_stores_with_leaves_and_roots() -> None:
    first, second = neg(A, "b"), neg(Value("b", T), "c")
    found = regions(Block((LOAD, first, store(first.result), second, store(second.result))), frozenset())
    assert len(found) == 1
    region = found[0]
    assert region.ops == (first, second) and region.positions == (1, 3)
    assert [v.name for v in region.leaves] == ["a"]
    assert region.roots == {"b", "c"}


def test_a_value_used_only_inside_is_no_root_and_an_unused_one_is_not_needed() -> None:
    first, second, unused = neg(A, "b"), neg(Value("b", T), "c"), neg(A, "d")
    (region,) = regions(Block((LOAD, first, second, unused, store(second.result))), frozenset())
    assert region.roots >= {"c"} and "b" not in region.roots


def test_a_write_into_a_tile_and_an_unknown_operation_end_the_region() -> None:
    write = Op("tile.write", (A, (index(0), index(0)), Const(1.0, FP32)), {}, (Value("a2", T),))
    unknown = Op("pl.tile.unheard_of", (A,), {}, (Value("u", T),))
    for barrier in (write, unknown):
        block = Block((LOAD, neg(A, "b"), barrier, neg(A, "c"), store(Value("b", T)), store(Value("c", T))))
        assert [len(r.ops) for r in regions(block, frozenset())] == [1, 1]


def test_long_runs_are_cut_into_windows() -> None:
    ops: list[Statement] = [LOAD]
    last = A
    for i in range(WINDOW + 10):
        ops.append(neg(last, f"n{i}"))
        last = Value(f"n{i}", T)
    found = regions(Block((*ops, store(last))), frozenset())
    assert [len(r.ops) for r in found] == [WINDOW, 10]
    assert found[0].roots == {f"n{WINDOW - 1}"} and [v.name for v in found[1].leaves] == [f"n{WINDOW - 1}"]


def test_scalars_that_types_mention_stay_statements() -> None:
    n = Value("n", scalar(INDEX))
    add = Op("scalar.add", (n, index(1)), {}, (Value("m", scalar(INDEX)),))
    dynamic = Value("y", tensor(("m", 8), FP32))
    f = Function("f", (Param(n), Param(dynamic)), (), Block((add,)))
    fixed = names_in_types(f)
    assert "m" in fixed and not encodable(add, fixed) and encodable(add, frozenset())


def test_an_annotation_that_narrows_the_valid_shape_keeps_the_operation_as_it_is() -> None:
    narrow = tile((2, 8), FP32, (2, 3))
    cast = Op("tile.cast", (A, None), {"target_type": FP32}, (Value("n", narrow),))
    assert not encodable(cast, frozenset())
    inside = Op("tile.cast", (Value("n", narrow), None), {"target_type": FP32}, (Value("m", narrow),))
    assert encodable(inside, frozenset())
