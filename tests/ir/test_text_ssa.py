# ruff: noqa: E501  (one program a line)
"""Reassigned names become SSA values: carried through loops, merged after branches."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.interp import run
from tilegg.ir.program import For, If, Jump, Op, While, Yield, walk
from tilegg.ir.text import parse, parse_with_remarks, print_program
from tilegg.ir.types import TensorType
from tilegg.ir.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from text_kernels import incore

SCALARS = "n: pl.Scalar[pl.INDEX]"


def outcome(body, n, params=SCALARS):
    """Read a body, check it, print it, read it back, and run both on ``n``."""
    program = parse(incore(body, params=params))
    assert verify(program) == []
    again = parse(print_program(program))
    assert again == program
    value = run(program, {"n": n}, max_steps=10_000)["return"]
    assert value == run(again, {"n": n}, max_steps=10_000)["return"]
    return value


def python(body, n):
    """What the body means in Python itself, with pl.range as range."""
    source = "def kernel(n):\n" + "\n".join("    " + line for line in body.strip().split("\n"))
    scope = {"pl": type("pl", (), {"range": range, "min": min, "max": max})}
    exec(source, scope)  # the test's own text
    return scope["kernel"](n)


BODIES = {
    "straight": "a = n\na = a + 1\na = a * a\nreturn a",
    "loop": "a = 1\nfor i in pl.range(n):\n    a = a * 2 + i\nreturn a",
    "two loops": "a = 0\nfor i in pl.range(n):\n    t = i * 2\n    a = a + t\nfor i in pl.range(3):\n    t = i + 5\n    a = a + t\nreturn a",
    "nested": "a = 0\nb = 1\nfor i in pl.range(n):\n    for j in pl.range(i):\n        a = a + b\n    b = b + 1\nreturn a + b",
    "branch": "a = 1\nif n > 2:\n    a = a + n\nelse:\n    a = a - n\nreturn a",
    "one-sided branch": "a = 1\nif n > 2:\n    a = a + n\nreturn a",
    "branch defines": "if n > 2:\n    b = n\nelse:\n    b = 7\nreturn b",
    "branch in loop": "a = 0\nfor i in pl.range(n):\n    if i % 2 == 0:\n        a = a + i\n    else:\n        a = a * 2\nreturn a",
    "swap": "a = 0\nb = 1\nfor i in pl.range(n):\n    t = a + b\n    a = b\n    b = t\nreturn a",
    "while": "k = 0\nwhile k * k < n:\n    k = k + 1\nreturn k",
    "while with two conditions": "k = 0\nm = 50\nwhile k < n and m > 40:\n    k = k + 1\n    m = m - 3\nreturn k * 100 + m",
    "break": "k = 0\nfor i in pl.range(n):\n    k = k + i\n    if k > 5:\n        break\nreturn k",
    "break before the update": "k = 0\nfor i in pl.range(n):\n    if i == 3:\n        break\n    k = k + i\nreturn k",
    "continue": "k = 0\nfor i in pl.range(n):\n    if i % 2 == 0:\n        continue\n    k = k + i\nreturn k",
    "break of a while": "k = 0\nwhile k < 100:\n    k = k + 1\n    if k > n:\n        break\nreturn k",
    "break with a new value": "k = 0\nfor i in pl.range(n):\n    if i == 2:\n        k = 100\n        break\n    k = k + 1\nreturn k",
    "chained branches": "if n > 5:\n    a = 1\nelif n > 2:\n    a = 2\nelse:\n    a = 3\nreturn a",
    "augmented": "a = 3\na += n\na *= 2\nfor i in pl.range(n):\n    a -= i\nreturn a",
    "same name as the loop": "i = 5\nfor j in pl.range(n):\n    i = i + j\nreturn i",
    "unpacking": "a, b = 1, n\na, b = b, a\nreturn a * 10 + b",
    "early return in a branch": "if n > 3:\n    return n\nm = n * 2\nreturn m",
}


@pytest.mark.parametrize("n", [0, 1, 4, 9])
@pytest.mark.parametrize("name", BODIES)
def test_python_and_ir_agree(name, n):
    assert outcome(BODIES[name], n) == python(BODIES[name], n)


def test_only_what_is_read_again_is_carried():
    body = "t = n\nfor i in pl.range(n):\n    t = i + 1\n    u = t * 2\nt = 4\nreturn t"
    (loop,) = [s for s in walk(parse(incore(body, params=SCALARS)).functions[0].body) if isinstance(s, For)]
    assert loop.carried == () and loop.results == ()


def test_dead_branch_values_are_not_merged():
    body = "t = n\nif n > 1:\n    t = n + 1\n    u = t\nelse:\n    t = n + 2\n    u = t\nt = 1\nreturn t"
    (branch,) = [s for s in walk(parse(incore(body, params=SCALARS)).functions[0].body) if isinstance(s, If)]
    assert branch.results == ()


def test_names_follow_the_fields_convention():
    program = parse(incore("a__ssa_v0 = n + 1\na__ssa_v0 = a__ssa_v0 * (n + 2)\nreturn a__ssa_v0", params=SCALARS))
    names = [s.result.name for s in program.functions[0].body.statements if isinstance(s, Op)]
    assert names == ["a__ssa_v0", "a__arg_tmp_v0", "a__ssa_v1"]


def test_the_ssa_form_is_read_as_it_stands():
    body = (
        "for i, (a, b) in pl.range(n, init_values=(0, 1)):\n"
        "    c = a + b\n"
        "    x, y = pl.yield_(b, c)\n"
        "for (k,) in pl.while_(init_values=(x,)):\n"
        "    pl.cond(k < 100)\n"
        "    z = pl.yield_(k * 2 + 1)\n"
        "if n > 3:\n"
        "    r = pl.yield_(z)\n"
        "else:\n"
        "    r = pl.yield_(y)\n"
        "return r"
    )
    program = parse(incore(body, params=SCALARS))
    loop, again, cond, branch, _ = program.functions[0].body.statements
    assert [v.name for v in loop.results] == ["x", "y"] and [c.arg.name for c in loop.carried] == ["a", "b"]
    assert isinstance(again, While) and [s.result.name for s in again.head] == ["cond__arg_tmp_v0"]
    assert [v.name for v in branch.results] == ["r"] and cond.name == "scalar.gt"
    assert "pl.cond(k < 100)" in print_program(program)
    assert parse(print_program(program)) == program
    assert outcome(body, 5) == 191


def test_initial_values_without_a_yield():
    assert outcome("for i, (a,) in pl.range(n, init_values=(1,)):\n    a = a * 2\nreturn a", 6) == 64


def test_a_jump_hands_the_carried_values_on():
    program = parse(incore(BODIES["break"], params=SCALARS))
    (branch,) = [s for s in walk(program.functions[0].body) if isinstance(s, If)]
    given, jump = branch.then.statements
    assert isinstance(given, Yield) and isinstance(jump, Jump) and len(given.operands) == 1
    assert "k__ssa_v2: pl.Scalar[pl.INDEX] = pl.yield_(k__ssa_v1)\n" in print_program(program)


OUT = "n: pl.Scalar[pl.INDEX], x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"


@pytest.mark.parametrize(
    "body",
    [
        "for i in pl.range(n):\n    t = pl.load(x, [i * 16, 0], [16, 64])\n    out = pl.store(t, [i * 16, 0], out)\nreturn out",
        "for i in pl.range(n):\n    t = pl.load(x, [i * 16, 0], [16, 64])\n    r = pl.store(t, [i * 16, 0], out)\nreturn r",
        "for i in pl.range(n):\n    out[i * 16:i * 16 + 16, :] = pl.load(x, [i * 16, 0], [16, 64])\nreturn out",
        "for i in pl.range(n):\n    t = pl.load(x, [i * 16, 0], [16, 64])\n    if i > 5:\n        continue\n    r = pl.store(t, [i * 16, 0], out)\nreturn r",
    ],
)
def test_outputs_written_in_loops_are_carried(body):
    program = parse(incore(body, params=OUT))
    assert verify(program) == [] and parse(print_program(program)) == program
    (loop,) = [s for s in walk(program.functions[0].body) if isinstance(s, For)]
    assert [type(c.arg.type) for c in loop.carried] == [TensorType]
    x = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    for n in (0, 2):
        got = run(program, {"n": n, "x": x})["out"]
        assert (got[: 16 * n] == x[: 16 * n]).all()


def test_an_output_written_in_one_branch_only():
    body = "if n > 1:\n    t = pl.load(x, [0, 0], [64, 64])\n    r = pl.store(t, [0, 0], out)\nreturn r"
    program = parse(incore(body, params=OUT))
    (branch,) = [s for s in walk(program.functions[0].body) if isinstance(s, If)]
    assert branch.orelse.statements[-1].operands[0].name == "out"
    assert verify(program) == [] and parse(print_program(program)) == program


def test_a_value_of_a_loop_body_used_after_it_is_refused():
    with pytest.raises(TileggError) as caught:
        parse(incore("for i in pl.range(n):\n    a = i\nreturn a", params=SCALARS))
    (d,) = caught.value.diagnostics
    assert (d.code, d.span.line) == ("TG009", 6) and "loop" in d.reason


def test_dropped_writes_to_outputs_are_warned_of():
    body = "t = pl.load(x, [0, 0], [64, 64])\nout = t\nreturn t"
    _, remarks = parse_with_remarks(incore(body, params=OUT))
    assert [(d.code, d.severity, d.span.line) for d in remarks] == [("TG015", "warning", 5)]
    kept = "t = pl.load(x, [0, 0], [64, 64])\nr = pl.store(t, [0, 0], out)\nout = r\nreturn out"
    assert parse_with_remarks(incore(kept, params=OUT))[1] == []


def test_many_reassignments_stay_linear():
    # Two thousand versions of one name, two hundred branches: the names and the liveness must not cost squares.
    body = "a = n\n" + "a = a + 1\n" * 2000 + "if a > 3:\n    a = a + 1\n" * 200 + "return a"
    assert outcome(body, 0) == 2200
