"""The structural verifier finds what is wrong with programs made by hand."""

import dataclasses
import sys
from pathlib import Path

import pytest
from tilegg.ir.dtypes import BF16, FP32, INDEX, INT8
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
    Return,
    Scope,
    Value,
    While,
    Yield,
    index,
)  # fmt: skip
from tilegg.ir.text import parse
from tilegg.ir.types import UNKNOWN, scalar, tensor, tile
from tilegg.ir.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from text_kernels import KERNELS

X = Value("x", tensor([16, 64], FP32))
N = Value("n", scalar())
T = Value("t", tile([16, 64], FP32))
BF, I8 = tile([16, 64], BF16), tile([16, 64], INT8)
LOAD = Op("tile.load", (X, (index(0), index(0)), (index(16), index(64)), None), {}, (T,))


def codes(*statements, results=(), functions=()):
    f = Function("kernel", (Param(X), Param(N)), tuple(results), Block(tuple(statements)))
    return [d.code for d in verify(Program("", (f, *functions)))]


def op(name, *operands, result=None, **attrs):
    return Op(name, operands, attrs, () if result is None else (result,))


def test_sound_programs_have_no_findings():
    assert codes(LOAD, op("tile.exp", T, result=Value("e", T.type)), Return(())) == []
    for text in KERNELS.values():
        assert verify(parse(text)) == []


@pytest.mark.parametrize(
    ("statements", "code"),
    [
        ([op("tile.exp", T, result=Value("e", T.type))], "TG009"),  # used before its definition
        ([LOAD, LOAD], "TG009"),  # defined twice
        ([LOAD, op("tile.exp", T, result=Value("x", T.type))], "TG009"),  # a parameter's name again
        ([LOAD, op("tile.exp", T, result=Value("e e", T.type))], "TG009"),  # no name
        ([LOAD, op("tile.exp", Value("t", tile([8, 64], FP32)), result=Value("e", tile([8, 64], FP32)))], "TG010"),
        ([LOAD, op("tile.exp", T, result=Value("e", tile([16, 64], BF16)))], "TG010"),
        ([LOAD, op("tile.exp", T, result=Value("e", tile([16, 32], FP32)))], "TG010"),
        ([LOAD, op("tile.exp", result=Value("e", T.type))], "TG005"),
        ([LOAD, op("tile.exp", None, result=Value("e", T.type))], "TG005"),
        ([LOAD, op("tile.exp", N, result=Value("e", T.type))], "TG006"),
        ([LOAD, op("tile.adds", T, T, result=Value("e", T.type))], "TG006"),
        ([LOAD, op("tile.exp", T, result=Value("e", T.type), mode="rint")], "TG005"),
        ([LOAD, op("tile.cast", T, None, result=Value("e", T.type))], "TG005"),  # no target_type
        ([LOAD, op("tile.cast", T, None, result=Value("e", BF), target_type=BF16, mode="round")], "TG005"),
        ([LOAD, op("tile.cast", T, None, result=Value("e", I8), target_type=INT8, saturation_mode="on")], "TG005"),
        ([LOAD, op("tile.nothing", T)], "TG018"),
        ([LOAD, Op("tile.exp", (T,), {}, (Value("a", T.type), Value("b", T.type)))], "TG005"),
        ([op("call", X, callee="missing")], "TG003"),
        ([op("call", X, callee="kernel")], "TG005"),
        ([Return((N,))], "TG014"),
        ([Jump("break")], "TG002"),
        ([For("parallel", Value("i", scalar()), (index(0), N, index(1)), (), Block((Jump("break"),)), ())], "TG002"),
        ([For("spiral", Value("i", scalar()), (index(0), N, index(1)), (), Block(()), ())], "TG002"),
        ([For("range", Value("i", scalar()), (index(0), N, index(0)), (), Block(()), ())], "TG008"),
        ([For("range", Value("i", scalar()), (index(0), X, index(1)), (), Block(()), ())], "TG006"),
        ([If(X, Block(()), Block(()), ())], "TG006"),
        ([Return(()), LOAD], "TG002"),
        ([Yield((N,))], "TG014"),
    ],
)  # fmt: skip
def test_one_finding(statements, code):
    assert codes(*statements) == [code]


def loop(body, carried=True, results=True):
    arg = Carried(Value("a", scalar()), index(0))
    return For(
        "range", Value("i", scalar()), (index(0), N, index(1)), (arg,) if carried else (), Block(tuple(body)),
        (Value("r", scalar()),) if results else (),
    )  # fmt: skip


A, I, R = Value("a", scalar()), Value("i", scalar()), Value("r", scalar())
NEXT = Op("scalar.add", (A, I), {}, (Value("b", scalar()),))


@pytest.mark.parametrize(
    ("statements", "wanted"),
    [
        ([loop([NEXT, Yield((NEXT.result,))]), Return((R,))], []),
        ([loop([NEXT]), Return((R,))], ["TG014"]),
        ([loop([NEXT, Yield((NEXT.result, A))]), Return((R,))], ["TG014"]),
        ([loop([Yield((A,)), NEXT]), Return((R,))], ["TG014", "TG014"]),
        ([loop([LOAD, Yield((T,))]), Return((R,))], ["TG014"]),
        ([loop([NEXT, Yield((NEXT.result,))], results=False), Return((N,))], ["TG014", "TG014"]),
        ([loop([NEXT, Yield((NEXT.result,))]), Return((NEXT.result,))], ["TG009"]),  # the body's value outside
        ([loop([NEXT, Yield((A,)), Jump("break")]), Return((R,))], []),
        ([loop([NEXT, Yield((A, A)), Jump("break")]), Return((R,))], ["TG014"]),
    ],
)
def test_loops(statements, wanted):
    assert codes(*statements, results=[scalar()]) == wanted


def branch(then, orelse, results=(R,)):
    cond = Op("scalar.gt", (N, index(2)), {}, (Value("c", scalar_bool()),))
    return [cond, If(cond.result, Block(tuple(then)), Block(tuple(orelse)), tuple(results))]


def scalar_bool():
    from tilegg.ir.dtypes import BOOL

    return scalar(BOOL)


def test_branches():
    good = branch([Yield((N,))], [Yield((index(3),))])
    assert codes(*good, Return((R,)), results=[scalar()]) == []
    assert codes(*branch([Yield((N,))], []), Return((R,)), results=[scalar()]) == ["TG014"]
    assert codes(*branch([Yield((N,))], [Yield((Const(1.5, FP32),))]), Return((R,)), results=[scalar()]) == ["TG014"]
    inner = Op("scalar.add", (N, N), {}, (Value("v", scalar()),))
    leaked = branch([inner], [], results=())
    assert codes(*leaked, Return((inner.result,)), results=[scalar()]) == ["TG009"]


def test_while_loops():
    arg = Carried(A, index(0))
    head = Op("scalar.lt", (A, N), {}, (Value("c", scalar_bool()),))
    body = Op("scalar.add", (A, index(1)), {}, (Value("b", scalar()),))
    good = While((arg,), Block((head,)), head.result, Block((body, Yield((body.result,)))), (R,))
    assert codes(good, Return((R,)), results=[scalar()]) == []
    assert codes(dataclasses.replace(good, cond=T), Return((R,)), results=[scalar()]) == ["TG009", "TG006"]
    assert codes(dataclasses.replace(good, body=Block((body,))), Return((R,)), results=[scalar()]) == ["TG014"]


def test_scopes_bind_names_and_are_transparent():
    use = Op("pl.wait", (Value("tid", scalar_task()),), {}, ())
    assert codes(Scope("pl.at(level=pl.Level.CORE_GROUP) as tid", Block((LOAD,))), use, op("tile.exp", T)) == []


def scalar_task():
    from tilegg.ir.dtypes import TASK_ID

    return scalar(TASK_ID)


def test_functions_of_one_name_and_dynamic_sizes():
    f = Function("kernel", (), (), Block(()))
    assert [d.code for d in verify(Program("", (f, f)))] == ["TG009"]
    use = Op("scalar.add", (Value("M", scalar()), index(1)), {}, (Value("k", scalar(INDEX)),))
    f = Function("kernel", (), (), Block((use,)))
    assert [d.code for d in verify(Program("", (f,)))] == ["TG009"]
    assert verify(Program("", (f,), ("M",))) == []


def test_scalar_outputs_and_unknown_operands():
    f = Function("kernel", (Param(N, "Out"),), (), Block(()))
    assert [d.code for d in verify(Program("", (f,)))] == ["TG006"]
    unknown = Value("u", UNKNOWN)
    made = Op("pl.tile.matmul", (T, T), {}, (unknown,))
    assert codes(LOAD, made, op("tile.exp", unknown, result=Value("e", UNKNOWN))) == []
