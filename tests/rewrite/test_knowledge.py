"""The forward analysis over whole functions: loops, branches, clamps, promises."""

from __future__ import annotations

from tilegg.ir import valueset as vs
from tilegg.ir.dtypes import BOOL, FP32, INDEX, INT8, INT32
from tilegg.ir.program import Block, Carried, Const, For, Function, If, Op, Param, Value, Yield, index
from tilegg.ir.types import scalar, tensor, tile
from tilegg.rewrite.knowledge import Knowledge

T8 = tile((2, 8), INT8)
X = Value("x", tensor((2, 8), INT8))
LOADED = Value("t", T8)
LOAD = Op("tile.load", (X, (index(0), index(0)), (index(2), index(8)), None), {}, (LOADED,))


def function(*statements: object, params: tuple[Value, ...] = (X,)) -> Function:
    return Function("f", tuple(map(Param, params)), (), Block(tuple(statements)))  # type: ignore[arg-type]


def counter(bounds: tuple[object, object, object]) -> vs.ValueSet:
    i = Value("i", scalar(INDEX))
    loop = For("range", i, bounds, (), Block(()), ())  # type: ignore[arg-type]
    return Knowledge(function(loop)).of(i)


def test_loop_counters_lie_within_their_bounds_in_both_directions() -> None:
    up, down = counter((index(2), index(10), index(3))), counter((index(5), index(0), index(-1)))
    assert up.lo <= 2 and up.hi >= 8 and up.hi < 10
    assert down.lo <= 1 and down.hi >= 5


def test_a_counter_with_unknown_end_has_its_start_as_lower_bound() -> None:
    n = Value("n", scalar(INDEX))
    i = Value("i", scalar(INDEX))
    loop = For("range", i, (index(4), n, index(1)), (), Block(()), ())
    assert Knowledge(function(loop, params=(X, n))).of(i).lo == 4


def test_loop_carried_values_may_be_anything_their_dtype_holds() -> None:
    start = Value("s", T8)
    arg, result = Value("a", T8), Value("r", T8)
    clamp = Op("tile.minimums", (LOADED, Const(3, INT8)), {}, (start,))
    loop = For(
        "range", Value("i", scalar(INDEX)), (index(0), index(2), index(1)),
        (Carried(arg, start),), Block((Yield((LOADED,)),)), (result,),
    )  # fmt: skip
    known = Knowledge(function(LOAD, clamp, loop))
    assert known.of(start).hi == 3
    assert known.of(arg) == known.of(result) == vs.of_dtype(INT8)


def test_a_branch_gives_the_union_of_its_sides() -> None:
    low, high, out = Value("l", T8), Value("h", T8), Value("o", T8)
    condition = Value("c", scalar(BOOL))
    branch = If(
        condition,
        Block((Op("tile.minimums", (LOADED, Const(-3, INT8)), {}, (low,)), Yield((low,)))),
        Block((Op("tile.maximums", (LOADED, Const(100, INT8)), {}, (high,)), Yield((high,)))),
        (out,),
    )
    found = Knowledge(function(LOAD, branch, params=(X, condition))).of(out)
    assert (found.lo, found.hi) == (-128, 127)
    assert Knowledge(function(LOAD, branch, params=(X, condition))).of(low).hi == -3


def test_clamps_and_promises_narrow_and_casts_carry_it_on() -> None:
    y = Value("y", tensor((2, 8), FP32))
    t = Value("u", tile((2, 8), FP32))
    load = Op("tile.load", (y, (index(0), index(0)), (index(2), index(8)), None), {}, (t,))
    promised = Value("p", t.type)
    assume = Op("tile.assume", (t, Const(-3.0, FP32), Const(7.5, FP32)), {}, (promised,))
    whole = Value("w", tile((2, 8), INT32))
    cast = Op("tile.cast", (promised, None), {"target_type": INT32, "mode": "floor"}, (whole,))
    known = Knowledge(function(load, assume, cast, params=(y,)))
    assert known.of(promised).finite
    assert (known.of(whole).lo, known.of(whole).hi) == (-3, 7)
