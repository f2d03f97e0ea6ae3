"""The builder makes sound programs and refuses what does not fit, at once."""

import numpy as np
import pytest
from tilegg.ir.builder import Builder
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP32, INDEX, INT8, INT32
from tilegg.ir.interp import run
from tilegg.ir.literals import const
from tilegg.ir.program import Const, For, If, Op, Verbatim
from tilegg.ir.text import parse, print_program
from tilegg.ir.types import scalar, tensor, tile
from tilegg.ir.verify import verify


def sound(program):
    """The program, after checks: the verifier is content and the text reads back the same."""
    assert verify(program) == []
    assert parse(print_program(program)) == program
    return program


def kernel():
    b = Builder("kernel", type="pl.FunctionType.InCore")
    return b, b.param("x", tensor([16, 64], FP32)), b.param("out", tensor([16, 64], BF16), "Out")


def test_a_straight_kernel():
    b, x, out = kernel()
    t = b.tile.load(x, [0, 0], [16, 64])
    c = b.tile.cast(b.tile.adds(t, 1.0), target_type=BF16, mode="rint", name="c")
    b.ret(b.tile.store(c, [0, 0], out))
    program = sound(b.program("Quant"))
    f = program.function("kernel")
    assert f.attrs == {"type": "pl.FunctionType.InCore"} and f.results == (out.type,)
    assert [s.name for s in f.body if isinstance(s, Op)] == ["tile.load", "tile.adds", "tile.cast", "tile.store"]
    assert f.body.statements[2].attrs == {"target_type": BF16, "mode": "rint"} and c.name == "c"
    data = np.full((16, 64), 2.0, np.float32)
    assert (run(program, {"x": data})["out"].astype(np.float32) == 3.0).all()


def test_loops_and_branches():
    b = Builder("count")
    n = b.param("n", scalar())
    with b.range(n, carry={"a": 0, "k": 1}, var="i", results=("s",)) as loop:
        even = b.scalar.eq(b.scalar.mod(loop.var, 2), 0)
        with b.if_(even) as branch:
            with branch.then():
                branch.yield_(b.scalar.add(loop.args[0], loop.var))
            with branch.orelse():
                branch.yield_(loop.args[0])
        loop.yield_(branch.results[0], b.scalar.mul(loop.args[1], 2))
    with b.while_({"w": loop.results[0]}) as again:
        again.condition(b.scalar.lt(again.args[0], 100))
        again.yield_(b.scalar.add(again.args[0], 7))
    b.ret(again.results[0], loop.results[1])
    program = sound(b.program())
    assert [v.name for v in loop.results] == ["s", "result_1"]
    assert "pl.cond(w < 100)" in print_program(program)
    assert run(program, {"n": 5}) == {"return_0": 6 + 14 * 7, "return_1": 32}


def test_breaks_hand_values_on():
    b = Builder("search")
    n = b.param("n", scalar())
    with b.range(100, carry={"a": 0}) as loop:
        following = b.scalar.add(loop.args[0], loop.var)
        with b.if_(b.scalar.gt(following, n)) as branch, branch.then():
            b.break_(following)
        loop.yield_(following)
    b.ret(loop.results[0])
    assert run(sound(b.program()), {"n": 20}) == {"return": 21}


def test_calls_scopes_and_verbatim_operations():
    inner = Builder("inner")
    y = inner.param("y", tensor([16, 64], FP32), "InOut")
    inner.ret(y)
    b = Builder("main", type="pl.FunctionType.Orchestration")
    x = b.param("x", tensor([16, 64], FP32), "InOut")
    with b.scope("pl.at(level=pl.Level.CORE_GROUP)"):
        r = b.call(inner, x)
        b.verbatim("pl.system.bar", r, Verbatim("pl.PipeType.V"), mode='"hard"')
    m = b.verbatim("pl.tensor.matmul", r, r, results=[tensor([16, 16], FP32)], result="m")
    b.ret(m)
    program = sound(b.program("P", inner))
    assert [f.name for f in program.functions] == ["inner", "main"]
    assert 'pl.system.bar(inner_0, pl.PipeType.V, mode="hard")' in print_program(program)


def test_literals_take_their_dtype():
    b = Builder("k")
    t = b.tile.full([16, 64], FP32, 0.1)
    u = b.tile.full([16, 64], INT8, const(-3, INT8))
    b.ret(t, u)
    f = sound(b.program()).functions[0]
    assert f.body.statements[0].operands[1] == Const(float(np.float32(0.1)), FP32)
    assert f.body.statements[1].operands[1] == Const(-3, INT8)
    assert const(7, INDEX) == Const(7) and const(1, FP32) == Const(1.0, FP32)


def test_the_type_of_a_result_may_say_more():
    b, x, _ = kernel()
    t = b.tile.load(x, [0, 0], [16, 64], type=tile([16, 64], FP32, [8, 64]))
    assert t.type.valid_shape == (8, 64)


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (lambda b, x: b.tile.exp(x), "TG006"),
        (lambda b, x: b.tile.load(x, [0, 0]), "TG005"),
        (lambda b, x: b.tile.load(x, [0, 0], [16, 64], wrong=1), "TG005"),
        (lambda b, x: b.tile.load(x, [0, 0], [16, 64], tensor=x), "TG005"),
        (lambda b, x: b.tile.load(x, [0, 0], [17, 64]), "TG008"),
        (lambda b, x: b.tile.load(x, [0, 0], [16, 64], target_memory="Vek"), "TG004"),
        (lambda b, x: b.tile.load("x", [0, 0], [16, 64]), "TG006"),
        (lambda b, x: b.tile.load(x, [0, 0], [16, 64], name="x"), "TG009"),
        (lambda b, x: b.tile.load(x, [0, 0], [16, 64], name="a b"), "TG009"),
        (lambda b, x: b.tile.full([4, 4], "fp33", 1), "TG004"),
        (lambda b, x: b.tile.full([4, 4], FP32, 1e40), "TG011"),
        (lambda b, x: b.param("x", scalar()), "TG009"),
        (lambda b, x: b.op("tile.nothing"), "TG018"),
        (lambda b, x: b.verbatim("foo.bar"), "TG018"),
        (lambda b, x: b.tile.load(x, [0, 0], [16, 64], type=tile([8, 64], FP32)), "TG010"),
        (lambda b, x: (b.ret(x), b.ret(x, x)), "TG014"),
        (lambda b, x: const(300, INT8), "TG011"),
        (lambda b, x: const(0.5, INT32), "TG011"),
        (lambda b, x: b.call(Builder("other"), x), "TG005"),
    ],
)
def test_what_does_not_fit_is_refused(action, code):
    b, x, _ = kernel()
    with pytest.raises(TileggError) as caught:
        action(b, x)
    assert caught.value.diagnostics[0].code == code


def test_loops_must_yield_what_they_carry():
    b, x, _ = kernel()
    with pytest.raises(TileggError, match="TG014"), b.range(4, carry={"a": 0}):
        pass
    with pytest.raises(TileggError, match="TG014"), b.range(4, carry={"c": 0}) as loop:
        loop.yield_(b.tile.load(x, [0, 0], [16, 64]))
    with pytest.raises(TileggError, match="TG014"), b.while_({"d": 0}) as again:
        again.yield_(again.args[0])
    with pytest.raises(TileggError, match="TG014"), b.if_(True) as branch, branch.then():
        branch.yield_(1)


def test_attributes_of_the_builder_are_the_declared_namespaces():
    b = Builder("k")
    assert "cast" in dir(b.tile) and "add" in dir(b.scalar)
    with pytest.raises(AttributeError):
        _ = b.nothing
    with pytest.raises(AttributeError):
        _ = b.tile.nothing


def test_kinds_of_loops():
    b = Builder("k")
    with b.range(0, 8, 2, kind="pipeline", stage="2"):
        pass
    with b.if_(b.scalar.lt(1, 2)):
        pass
    loop, _, branch = sound(b.program()).functions[0].body
    assert isinstance(loop, For) and loop.kind == "pipeline" and loop.attrs == {"stage": "2"}
    assert isinstance(branch, If)
