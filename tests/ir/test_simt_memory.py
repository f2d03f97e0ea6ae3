"""Memory of SIMT threads: atomics in turns, private stacks, kept values, bounds; whole programs with launches."""

import numpy as np
import pytest
from tilegg.extract.scalars import lower_scalars
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import FP32, INT32, UINT64
from tilegg.ir.equivalence import equivalent
from tilegg.ir.interp import run
from tilegg.ir.simt import launch
from tilegg.ir.simt_threads import SimtState
from tilegg.ir.text import parse

RNG = np.random.default_rng(7)


def test_atomics_take_turns():
    n = 256
    text = """
@pl.function(type=pl.FunctionType.SimtEntry)
def f(p: pl.InOut[pl.Ptr[pl.DT, "gm"]], at: pl.Scalar[pl.INT32], x: pl.Scalar[pl.DT]):
    q = pl.pto.addptr(p, at)
    old = pl.pto.atomic_OP(q, x)
    return old
"""
    for dtype in (INT32, UINT64, FP32):
        for name in ("add", "sub", "max", "min", "exch", "and", "or", "xor"):
            if name in ("and", "or", "xor") and dtype.is_float:
                continue
            f = parse(text.replace("DT", dtype.name).replace("OP", name)).functions[0]
            at = RNG.integers(0, 5, n)
            x = (RNG.random(n) * 100 if dtype.is_float else RNG.integers(0, 1000, n)).astype(dtype.storage)
            memory = np.zeros(5, dtype.storage)
            want, olds = memory.copy(), []
            for a, v in zip(at, x):
                olds.append(want[a])
                with np.errstate(over="ignore"):
                    want[a] = {"add": lambda o, v: o + v, "sub": lambda o, v: o - v, "max": max, "min": min,
                               "exch": lambda o, v: v, "and": lambda o, v: o & v, "or": lambda o, v: o | v,
                               "xor": lambda o, v: o ^ v}[name](want[a], v)  # fmt: skip
            (got,) = launch({"f": f}, "f", [n, 1, 1], [memory, at, x])
            assert (memory == want).all() and (got.astype(dtype.storage) == np.array(olds)).all(), (dtype, name)


def test_compare_and_swap():
    text = """
@pl.function(type=pl.FunctionType.SimtEntry)
def f(p: pl.InOut[pl.Ptr[pl.INT32, "gm"]]):
    t = pl.pto.get_tid_x()
    old = pl.pto.atomic_cas(p, t, t + 1)
    return old
"""
    memory = np.array([0], np.int32)
    (old,) = launch({"f": parse(text).functions[0]}, "f", [16, 1, 1], [memory])
    assert memory[0] == 16 and old.tolist() == list(range(16))


def test_stacks_are_private_and_state_outlives_a_launch():
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.SimtEntry)
    def first():
        t = pl.pto.get_tid_x()
        s = pl.llvm.alloca(pl.INT32, count=4)
        pl.llvm.store(t, s, 2)
        pl.llvm.store(t + t, s, 1)
        a = pl.llvm.load(s, 1)
        b = pl.llvm.load(s, 2)
        pl.pto.keep(a + b, slot=3)

    @pl.function(type=pl.FunctionType.SimtEntry)
    def second(q: pl.InOut[pl.Ptr[pl.INT32, "ub"]]):
        t = pl.pto.get_tid_x()
        x = pl.pto.resume(pl.INT32, slot=3)
        pl.pto.store(x, q, t)

    @pl.function
    def main(q: pl.InOut[pl.Ptr[pl.INT32, "ub"]]):
        pl.pto.simt_launch("first", [8, 1, 1])
        pl.pto.simt_launch("second", [8, 1, 1], q)
"""
    out = run(parse(text), {"q": np.zeros(8, np.int32)})["q"]
    assert out.tolist() == [3 * t for t in range(8)]
    program = parse(text)
    with pytest.raises(TileggError, match="nothing was kept in slot 3"):
        functions = {f.name: f for f in program.functions}
        launch(functions, "second", [8, 1, 1], [np.zeros(8, np.int32)], SimtState())


KERNEL = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.SimtEntry)
    def body(p: pl.Ptr[pl.FP32, "gm"], q: pl.InOut[pl.Ptr[pl.FP32, "gm"]]):
        t = pl.pto.get_tid_x()
        x = pl.pto.ldg(p, t)
        m = pl.pto.simt_allreduce_max(x)
        pl.pto.stg(m, q, t)

    @pl.function
    def main(p: pl.Ptr[pl.FP32, "gm"], q: pl.InOut[pl.Ptr[pl.FP32, "gm"]]):
        pl.pto.simt_launch("body", [64, 1, 1], p, q)
"""


def test_programs_with_threads_are_compared_and_shrunk():
    program = parse(KERNEL)
    assert equivalent(program, lower_scalars(program), samples=20).equal
    found = equivalent(program, parse(KERNEL.replace("allreduce_max", "allreduce_min")), samples=20)
    assert not found.equal and len(found.counterexample.places) <= 1


def test_a_simt_entry_runs_on_one_warp():
    x = RNG.random(32).astype(np.float32)
    out = run(parse(KERNEL), {"p": x, "q": np.zeros(40, np.float32)}, function="body")["q"]
    assert (out[:32] == x.max()).all() and (out[32:] == 0).all()


def test_accesses_outside_of_the_memory():
    text = """
@pl.function(type=pl.FunctionType.SimtEntry)
def f(p: pl.Ptr[pl.FP32, "gm"], n: pl.Scalar[pl.INT32]):
    t = pl.pto.get_tid_x()
    if t < n:
        x = pl.pto.ldg(p, t)
"""
    f = parse(text).functions[0]
    launch({"f": f}, "f", [32, 1, 1], [np.zeros(8, np.float32), 8])
    with pytest.raises(TileggError, match="element 8 is outside"):
        launch({"f": f}, "f", [32, 1, 1], [np.zeros(8, np.float32), 9])


def test_memory_in_ordinary_functions_and_pairs():
    text = """
@pl.function
def f(p: pl.Ptr[pl.FP16, "gm"], q: pl.InOut[pl.Ptr[pl.FP16, "gm"]]):
    a = pl.load(p, 2, contiguous=2)
    b = pl.pto.fma(a, a, a)
    pl.store(b, q, 0)
    x = pl.pto.load_scalar(p, 1)
    pl.pto.store_scalar(x, q, 3)
"""
    p = np.array([1, 2, 3, 4], np.float16)
    assert run(parse(text), {"p": p, "q": np.zeros(4, np.float16)})["q"].tolist() == [12, 20, 0, 2]


def test_a_read_only_parameter_is_not_written():
    text = """
@pl.function
def f(p: pl.Ptr[pl.FP32, "gm"]):
    pl.store(1.0, p, 0)
"""
    with pytest.raises(TileggError, match="read only"):
        run(parse(text), {"p": np.zeros(4, np.float32)})
