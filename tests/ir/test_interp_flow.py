"""Control flow: loops of every kind, carried values, branches, jumps, calls, budgets, positions of errors."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.ir.diagnostics import Span, TileggError
from tilegg.ir.dtypes import BOOL, FP32, INDEX, INT32
from tilegg.ir.interp import run
from tilegg.ir.program import (
    Block,
    Carried,
    Const,
    For,
    Function,
    If,
    Jump,
    Op,
    Param,
    Program,
    Raw,
    Return,
    Scope,
    Value,
    Verbatim,
    While,
    Yield,
    index,
)
from tilegg.ir.types import UNKNOWN, TupleType, scalar, tensor

sys.path.insert(0, str(Path(__file__).parent))
from kernels import Kernel

I32 = scalar(INT32)


def code_of(caught):
    return caught.value.diagnostics[0].code


def summing(kind="range", bounds=(0, 5, 1), body=None):
    """total = 1; for i in bounds: total = total * 2 + i."""
    k = Kernel()
    i, acc, out = k.new(), k.new(), k.new()

    def double_and_add(k, i, acc):
        k.put(Yield((k("scalar.add", k("scalar.mul", acc, 2), i),)))

    inner = k.block(lambda: (body or double_and_add)(k, i, acc))
    loop = For(kind, i, tuple(map(index, bounds)), (Carried(acc, index(1)),), inner, (out,))
    k.put(loop)
    return k.returns(out)


@pytest.mark.parametrize("kind", ["range", "parallel", "unroll", "pipeline", "spmd"])
def test_loops_of_every_kind_run_in_order(kind):
    expected = 1
    for i in range(5):
        expected = expected * 2 + i
    assert run(summing(kind), {}) == {"return": expected}


@pytest.mark.parametrize(
    ("bounds", "values"), [((3, 3, 1), []), ((2, 9, 3), [2, 5, 8]), ((4, 0, -2), [4, 2]), ((5, 2, 1), [])]
)
def test_loop_bounds(bounds, values):
    expected = 1
    for i in values:
        expected = expected * 2 + i
    assert run(summing(bounds=bounds), {}) == {"return": expected}


def test_a_zero_step_is_an_error():
    with pytest.raises(TileggError, match="step is zero") as caught:
        run(summing(bounds=(0, 3, 0)), {})
    assert code_of(caught) == "TG032"


def jumping(kind):
    """Adds i to the carried value; at i == 3 jumps before the yield."""

    def body(k, i, acc):
        stop = k("scalar.eq", i, 3)
        k.put(If(stop, Block((Jump(kind),)), Block(()), ()))
        k.put(Yield((k("scalar.add", acc, i),)))

    return summing(body=body)


def test_break_keeps_the_values_of_the_last_whole_round():
    assert run(jumping("break"), {}) == {"return": 1 + 0 + 1 + 2}


def test_continue_keeps_the_carried_values():
    assert run(jumping("continue"), {}) == {"return": 1 + 0 + 1 + 2 + 4}


def test_a_yield_right_before_a_jump_hands_on_values():
    def body(k, i, acc):
        stop = k("scalar.eq", i, 3)
        skip = k("scalar.eq", i, 1)
        then = Block((Yield((index(100),)), Jump("continue")))
        k.put(If(skip, then, Block(()), ()))
        k.put(If(stop, Block((Yield((k("scalar.mul", acc, 2),)), Jump("break"))), Block(()), ()))
        k.put(Yield((k("scalar.add", acc, i),)))

    assert run(summing(body=body), {}) == {"return": (100 + 2) * 2}


def test_return_leaves_nested_loops():
    k = Kernel(n=scalar(INDEX))
    i, j = k.new(), k.new()

    def inner():
        hit = k("scalar.eq", k("scalar.mul", i, j), k.p_n)
        k.put(If(hit, Block((Return((i,)),)), Block(()), ()))

    body = k.block(inner)
    nested = For("range", j, (index(1), index(10), index(1)), (), body, ())
    k.put(For("range", i, (index(1), index(10), index(1)), (), Block((nested,)), ()))
    f = k.returns(Const(-1, INDEX))
    assert run(f, {"n": 12})["return"] == 2
    assert run(f, {"n": 11})["return"] == -1


def test_while_halves_until_small():
    k = Kernel(n=scalar(INDEX))
    x, steps, last, count = k.new(), k.new(), k.new(), k.new()
    cond = None

    def head():
        nonlocal cond
        cond = k("scalar.gt", x, 1)

    first = k.block(head)
    body = k.block(lambda: k.put(Yield((k("scalar.floordiv", x, 2), k("scalar.add", steps, 1)))))
    carried = (Carried(x, k.p_n), Carried(steps, index(0)))
    k.put(While(carried, first, cond, body, (last, count)))
    assert run(k.returns(last, count), {"n": 100}) == {"return_0": 1, "return_1": 6}


def test_branches_yield():
    k = Kernel(a=I32)
    result = k.new(I32)
    cond = k("scalar.lt", k.p_a, Const(0, INT32))
    then = k.block(lambda: k.put(Yield((k("scalar.neg", k.p_a),))))
    k.put(If(cond, then, Block((Yield((k.p_a,)),)), (result,)))
    f = k.returns(result)
    assert [run(f, {"a": a})["return"] for a in (-5, 0, 7)] == [5, 0, 7]


def test_tiles_are_carried():
    k = Kernel(x=tensor([8, 4], INT32), out=("Out", tensor([1, 4], INT32)))
    start = k.full([1, 4], 0, dtype=INT32)
    i, acc, total = k.new(), k.new(start.type), k.new(start.type)
    body = k.block(lambda: k.put(Yield((k.add(acc, k.load(k.p_x, [i, 0], [1, 4])),))))
    k.put(For("range", i, (index(0), index(8), index(1)), (Carried(acc, start),), body, (total,)))
    f = k.returns(k.store(total, [0, 0], k.p_out))
    x = np.arange(32, dtype=np.int32).reshape(8, 4)
    assert np.array_equal(run(f, {"x": x})["out"], x.sum(axis=0, keepdims=True))


def test_the_wrong_number_of_yields_is_an_error():
    with pytest.raises(TileggError, match="values are due") as caught:
        run(summing(body=lambda k, i, acc: k.put(Yield((i, acc)))), {})
    assert code_of(caught) == "TG014"


class TestBudget:
    def endless(self):
        return Function("f", (), (), Block((While((), Block(()), Const(True, BOOL), Block(()), ()),)))

    def test_an_endless_loop_stops(self):
        with pytest.raises(TileggError, match="stopped after 1000 steps") as caught:
            run(self.endless(), {}, max_steps=1000)
        assert code_of(caught) == "TG032"

    def test_endless_recursion_stops(self):
        f = Function("f", (), (), Block((Op("call", (), {"callee": "f"}, ()),)))
        with pytest.raises(TileggError, match="nested deeper") as caught:
            run(Program("P", (f,)), {}, function="f")
        assert code_of(caught) == "TG032"


class TestScopes:
    def test_a_scope_runs_its_body(self):
        k = Kernel()
        body = k.block(lambda: k.put(Return((k("scalar.add", 1, 2),))))
        k.put(Scope("pl.at(level=pl.Level.CORE_GROUP)", body))
        assert run(k.returns(Const(0, INDEX)), {}) == {"return": 3}

    def blocks(self, header=None):
        """Each block writes its index + 10 * count into its column."""
        k = Kernel(out=("Out", tensor([1, 4], INT32)))

        def body():
            me, count = k.get_block_idx(), k.get_block_num()
            k("tensor.write", k.p_out, [0, me], k("scalar.add", me, k("scalar.mul", count, 10)))

        inner = k.block(body)
        if header is None:
            k.put(For("spmd", k.new(), (index(0), index(4), index(1)), (), inner, ()))
        else:
            k.put(Scope(header, inner))
        return k.returns()

    def test_spmd_bodies_see_their_block(self):
        assert run(self.blocks(), {})["out"].tolist() == [[40, 41, 42, 43]]
        assert run(self.blocks("pl.spmd(4)"), {})["out"].tolist() == [[40, 41, 42, 43]]

    def test_without_spmd_there_is_one_block(self):
        got = run(self.blocks("pl.scope()"), {"out": np.zeros((1, 4), np.int32)})["out"]
        assert got.tolist() == [[10, 0, 0, 0]]


class TestCalls:
    def program(self):
        x, out = Value("x", tensor([4, "n"], FP32)), Value("out", tensor([4, "n"], FP32))
        k = Kernel(a=tensor([4, "n"], FP32), b=("Out", tensor([4, "n"], FP32)))
        n = k("tensor.dim", k.p_a, axis=1)
        t = k.muls(k.load(k.p_a, [0, 0], [4, 8], [4, n]), 2.0)
        kernel = k.returns(k.store(t, [0, 0], k.p_b), name="twice")
        result = Value("r", out.type)
        body = Block((Op("call", (x, out), {"callee": "twice"}, (result,)), Return((result,))))
        main = Function("main", (Param(x), Param(out, "Out")), (out.type,), body)
        return Program("P", (kernel, main))

    def test_callees_write_into_the_callers_tensors(self):
        x = np.arange(12, dtype=np.float32).reshape(4, 3)
        outputs = run(self.program(), {"x": x})
        assert list(outputs) == ["out"]
        assert np.array_equal(outputs["out"], x * 2)

    def test_a_function_can_be_run_by_name(self):
        a = np.ones((4, 2), np.float32)
        assert np.array_equal(run(self.program(), {"a": a}, function="twice")["b"], a * 2)

    def test_an_unknown_function_is_reported(self):
        with pytest.raises(TileggError, match="no function 'thrice'") as caught:
            run(self.program(), {}, function="thrice")
        assert code_of(caught) == "TG030"

    def test_two_entries_need_a_choice(self):
        twin = Program("P", (Kernel().returns(name="f"), Kernel().returns(name="g")))
        with pytest.raises(TileggError, match="not one entry") as caught:
            run(twin, {})
        assert code_of(caught) == "TG030"

    def test_argument_shapes_must_fit_the_callee(self):
        program = self.program()
        unknown = Value("out", UNKNOWN)
        call = Op("call", (Value("y", UNKNOWN), unknown), {"callee": "twice"}, (), TestUnknown.SPAN)
        y, out = Value("y", tensor([3, 8], FP32)), Value("out", tensor([3, 8], FP32))
        main = Function("main", (Param(y), Param(out, "Out")), (), Block((call,)))
        with pytest.raises(TileggError, match=r"k\.py:7:3: .*shape \[3, 8\]"):
            run(Program("P", (program.functions[0], main)), {"y": np.zeros((3, 8), np.float32)})

    def test_several_results(self):
        k = Kernel(a=I32)
        pair = k.returns(k.p_a, k("scalar.neg", k.p_a), name="pair")
        a, p, q = Value("a", I32), Value("p", I32), Value("q", I32)
        body = Block((Op("call", (a,), {"callee": "pair"}, (p, q)), Return((q, p))))
        main = Function("main", (Param(a),), (I32, I32), body)
        assert run(Program("P", (pair, main)), {"a": 3}) == {"return_0": -3, "return_1": 3}


def test_tuples_are_projected():
    t = TupleType((I32, I32))
    k = Kernel(a=I32)
    pair = k.returns(k.p_a, k("scalar.neg", k.p_a), name="pair")
    a, p, q = Value("a", I32), Value("p", t), Value("q", I32)
    call = Op("call", (a, Const(3, INDEX)), {"callee": "pair", "keywords": ("device",)}, (p,))
    for at, value in ((1, -3), (0, 3)):
        body = Block((call, Op("tuple.get", (p,), {"index": at}, (q,)), Return((q,))))
        main = Function("main", (Param(a),), (I32,), body)
        assert run(Program("P", (pair, main)), {"a": 3}) == {"return": value}


class TestUnknown:
    SPAN = Span("k.py", 7, 3, 7, 9)

    def test_unknown_operations_name_their_place(self):
        f = Function("f", (), (), Block((Op("pl.tile.frob", (), {}, (), self.SPAN),)))
        with pytest.raises(TileggError, match=r"k\.py:7:3: .*pl\.tile.frob has no known meaning") as caught:
            run(f, {})
        assert code_of(caught) == "TG032"

    def test_memory_planning_and_ordering_do_nothing(self):
        alloc = Op("pl.tile.alloc", (Verbatim("pl.Mem.Vec"), index(4096)), {}, (Value("mem", UNKNOWN),))
        wait = Op("pl.system.sync_wait", (index(0),), {}, ())
        f = Function("f", (), (scalar(INDEX),), Block((alloc, wait, Return((index(3),)))))
        assert run(f, {}) == {"return": 3}

    def test_only_executed_statements_matter(self):
        unknown = Block((Op("pl.tile.frob", (), {}, ()),))
        f = Function("f", (), (), Block((If(Const(False, BOOL), unknown, Block(()), ()),)))
        assert run(f, {}) == {}

    def test_raw_statements_and_verbatim_operands(self):
        raw = Function("f", (), (), Block((Raw("del x", self.SPAN),)))
        with pytest.raises(TileggError, match=r"k\.py:7:3") as caught:
            run(raw, {})
        assert code_of(caught) == "TG032"
        f = Function("f", (), (scalar(INDEX),), Block((Return((Verbatim("magic()"),)),)))
        with pytest.raises(TileggError, match="magic") as caught:
            run(f, {})
        assert code_of(caught) == "TG032"

    def test_failures_inside_an_operation_get_its_place(self):
        x = Value("x", tensor([2, 2], FP32))
        read = Op("tensor.read", (x, (index(5), index(0))), {}, (Value("v", scalar(FP32)),), self.SPAN)
        f = Function("f", (Param(x),), (), Block((read,)))
        with pytest.raises(TileggError, match=r"k\.py:7:3: (.|\n)*out of bounds"):
            run(f, {"x": np.zeros((2, 2), np.float32)})
