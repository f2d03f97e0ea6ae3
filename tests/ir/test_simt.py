"""SIMT bodies over a grid of threads: collectives against brute force, divergence, memory, atomics, state."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.ir.builder import Builder
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BOOL, DTYPES, FP16, FP32, INDEX, INT32, INT64, UINT32, UINT64
from tilegg.ir.interp import run
from tilegg.ir.lanes import element, load
from tilegg.ir.samples import hostile
from tilegg.ir.simt import launch
from tilegg.ir.text import parse
from tilegg.ir.types import scalar

sys.path.insert(0, str(Path(__file__).parent))
from scalar_samples import OWN, VALUED, alone

RNG = np.random.default_rng(7)
NAN, INF = float("nan"), float("inf")


def kernel(body, params, n=32, simt=True):
    """A function around ``body(builder, *values)``, launched with the arrays; returns its result."""
    b = Builder("f", type="pl.FunctionType.SimtEntry" if simt else "pl.FunctionType.InCore")
    values = [b.param(f"x{i}", scalar(t)) for i, (t, _) in enumerate(params)]
    found = body(b, *values)
    b.ret(*(found if isinstance(found, tuple) else (found,)))
    f = b.function()
    arrays = [a for _, a in params]
    out = launch({"f": f}, "f", [n, 1, 1], arrays)
    return out if isinstance(found, tuple) else out[0]


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    zero = np.signbit(a) == np.signbit(b) if a.dtype.kind == "f" else True
    return bool(np.all(((a == b) & zero) | ((a != a) & (b != b))))


# -- lanes and Python numbers agree ----------------------------------------------------------------------------


def draw(dtype, count):
    own = element(dtype)
    small = [0, 1, 2, 3, 5, 7, 8, 31, 33, 127] if own.is_int else [0, 1]
    picked = hostile(own, own, RNG, count)
    if own.is_int:
        picked[: len(small)] = np.array(small).astype(own.storage) if own.max_value >= 127 else picked[: len(small)]
    return load(picked, dtype)


@pytest.mark.parametrize("decl", [d for d in VALUED if d.scalar.domain == "anywhere"], ids=lambda d: d.name)
def test_threads_compute_what_ordinary_functions_do(decl):
    for name in decl.scalar.types:
        if name in ("INT4", "UINT4"):
            continue
        dtype, n = DTYPES[name], 48
        program = alone(decl, dtype, False)
        f = program.functions[0]
        (op, _) = f.body.statements
        b = Builder("g")
        columns = [draw(OWN.get((decl.name, p.name), dtype), n) for p in decl.operand_params]
        ins = [b.param(f"y{i}", p.value.type) for i, p in enumerate(f.params)]
        b.ret(b.op(decl.name, *ins, **op.attrs))
        g = b.function()
        by_threads = launch({"g": g}, "g", [n, 1, 1], columns)[0]
        for i in range(n):
            one = run(g, {f"y{k}": c[i].item() for k, c in enumerate(columns)})["return"]
            assert same(by_threads[i], one), (name, [c[i] for c in columns], by_threads[i], one)


# -- maximum and minimum ---------------------------------------------------------------------------------------

PAIRS = [
    (FP32, 1.0, 2.0, 2.0, 1.0), (FP32, -1.0, -2.0, -1.0, -2.0), (FP32, NAN, 3.0, 3.0, 3.0), (FP32, 3.0, NAN, 3.0, 3.0),
    (FP32, NAN, NAN, NAN, NAN), (FP32, 0.0, -0.0, 0.0, -0.0), (FP32, -0.0, 0.0, 0.0, -0.0), (FP32, INF, 1.0, INF, 1.0),
    (FP32, -INF, 1.0, 1.0, -INF), (FP32, INF, NAN, INF, INF), (FP16, NAN, 2.0, 2.0, 2.0), (INT32, -5, 3, 3, -5),
    (INT32, -(2**31), 2**31 - 1, 2**31 - 1, -(2**31)), (UINT32, 2**32 - 1, 1, 2**32 - 1, 1),
    (UINT64, 2**64 - 1, 1, 2**64 - 1, 1), (INDEX, -1, 4, 4, -1), (INT64, -(2**63), 0, 0, -(2**63)),
]  # fmt: skip


@pytest.mark.parametrize("dtype, a, b, most, least", PAIRS)
@pytest.mark.parametrize("simt", [False, True])
def test_maximum_and_minimum(dtype, a, b, most, least, simt):
    for name, want in (("max", most), ("min", least)):
        if simt:
            got = kernel(lambda f, x, y: f.op(f"scalar.{name}", x, y), [(dtype, a), (dtype, b)], 4)[0]  # noqa: B023
        else:
            f = Builder("f")
            f.ret(f.op(f"scalar.{name}", f.param("x", scalar(dtype)), f.param("y", scalar(dtype))))
            got = run(f.program(), {"x": a, "y": b})["return"]
        assert same(got, want), name


def test_the_kept_forms_mean_the_same():
    x, y = draw(FP32, 512), draw(FP32, 512)
    for kept, plain in (("pto.fmax", "scalar.max"), ("pto.fmin", "scalar.min"), ("llvm.maxnum", "scalar.max")):
        a = kernel(lambda f, p, q: f.op(kept, p, q), [(FP32, x), (FP32, y)], 512)  # noqa: B023
        assert same(a, kernel(lambda f, p, q: f.op(plain, p, q), [(FP32, x), (FP32, y)], 512))  # noqa: B023


# -- across lanes ----------------------------------------------------------------------------------------------


def brute(values, active, fn, width=32):
    return [fn(values, active, lane - lane % width, lane, width) for lane in range(len(values))]


@pytest.mark.parametrize("dtype", [INT32, UINT32, INT64, FP16, FP32])
@pytest.mark.parametrize("width", [16, 32])
def test_shuffles(dtype, width):
    x, by = draw(dtype, 96), RNG.integers(0, 40, 96)
    for name, where in (
        ("idx", lambda lane, k: lane - lane % width + k % width), ("up", lambda lane, k: lane - k),
        ("down", lambda lane, k: lane + k), ("bfly", lambda lane, k: lane ^ k),
    ):  # fmt: skip
        got = kernel(lambda f, p, q: f.op(f"pto.shuffle_{name}", p, q, width=width), [(dtype, x), (INT32, by)], 96)  # noqa: B023
        for t in range(96):
            lane, base = t % 32, t - t % 32
            source = where(lane, int(by[t]))
            if source // width != lane // width or source < 0:
                source = lane
            assert same(got[t], x[base + source]), (name, t)


def diverged(operation, dtype, values, mask, n):
    """Run a collective in a branch that only some threads take; the others get 0."""

    def body(f, x, on):
        with f.if_(on) as branch:
            with branch.then():
                branch.yield_(f.op(operation, x))
            with branch.orelse():
                branch.yield_(x)
        return branch.results[0]

    return kernel(body, [(dtype, values), (BOOL, mask)], n)


@pytest.mark.parametrize("n", [32, 64, 40])
def test_votes_and_ballots(n):
    for _ in range(20):
        p, on = RNG.random(n) < RNG.choice([0.05, 0.5, 0.95]), RNG.random(n) < 0.8
        for name in ("vote_all", "vote_any", "vote_uni"):
            got = diverged(f"pto.{name}", BOOL, p, on, n)
            for t in np.flatnonzero(on):
                warp = slice(t - t % 32, t - t % 32 + 32)
                votes = p[warp][on[warp]]
                uniform = votes.all() or not votes.any()
                want = {"vote_all": votes.all(), "vote_any": votes.any(), "vote_uni": uniform}[name]
                assert got[t] == want
        ballot = kernel(lambda f, x: f.pto.vote_ballot(x), [(BOOL, p)], n)
        for t in range(n):
            base = t - t % 32
            assert ballot[t] == sum(1 << i for i in range(min(32, n - base)) if p[base + i])


@pytest.mark.parametrize("dtype", [INT32, UINT32, FP16, FP32])
def test_reductions_over_active_lanes(dtype):
    for _ in range(10):
        x, on = RNG.integers(-50, 50, 64).astype(float), RNG.random(64) < 0.7
        x = np.abs(x) if dtype is UINT32 else x
        for name, fn in (("add", np.sum), ("max", np.max), ("min", np.min)):
            got = diverged(f"pto.redux_{name}", dtype, x, on, 64)
            for t in np.flatnonzero(on):
                warp = slice(t - t % 32, t - t % 32 + 32)
                assert got[t] == fn(x[warp][on[warp]])


@pytest.mark.parametrize("threads", [2, 4, 8, 16, 32])
@pytest.mark.parametrize("dtype", [INT32, FP32, FP16])
def test_all_reduce(threads, dtype):
    x = draw(dtype, 64)
    for name, combine in (("sum", "add"), ("max", "max"), ("min", "min")):
        got = kernel(lambda f, p: f.op(f"pto.simt_allreduce_{name}", p, threads=threads), [(dtype, x)], 64)  # noqa: B023
        want = x.copy()
        step = threads // 2
        while step:
            # Each combination is the scalar operation of the language, run alone.
            b = Builder("c")
            b.ret(b.op(f"scalar.{combine}", b.param("p", scalar(dtype)), b.param("q", scalar(dtype))))
            c = b.program()
            want = np.array([run(c, {"p": want[t].item(), "q": want[t ^ step].item()})["return"] for t in range(64)])
            step //= 2
        assert same(got, want), name


def test_all_reduce_of_integers_is_the_plain_sum():
    x = RNG.integers(-1000, 1000, 32)
    assert (kernel(lambda f, p: f.pto.simt_allreduce_sum(p), [(INT32, x)]) == x.sum()).all()


def test_queries():
    text = """
@pl.function(type=pl.FunctionType.SimtEntry)
def f():
    x = pl.pto.get_tid_x()
    y = pl.pto.get_tid_y()
    z = pl.pto.get_tid_z()
    lane = pl.pto.get_laneid()
    le = pl.pto.get_lanemask_le()
    gt = pl.pto.get_lanemask_gt()
    d = pl.pto.get_block_dim_y()
    return x, y, z, lane, le, gt, d
"""
    f = parse(text).functions[0]
    x, y, z, lane, le, gt, d = launch({"f": f}, "f", [8, 4, 3], [])
    t = np.arange(96)
    assert (x == t % 8).all() and (y == t // 8 % 4).all() and (z == t // 32).all() and (d == 4).all()
    assert (lane == t % 32).all() and (le == (2 << (t % 32)) - 1).all() and (le + gt == 2**32 - 1).all()


# -- divergence ------------------------------------------------------------------------------------------------

COLLATZ = """
@pl.function(type=pl.FunctionType.SimtEntry)
def f(n: pl.Scalar[pl.INT64]):
    k = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        k = k + 1
        if k > 40:
            break
    return k
"""


def test_loops_end_for_each_thread_by_itself():
    f = parse(COLLATZ).functions[0]
    starts = np.arange(1, 65)
    (got,) = launch({"f": f}, "f", [64, 1, 1], [starts])

    def steps(n):
        k = 0
        while n > 1 and k <= 40:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            k += 1
        return k

    assert got.tolist() == [steps(n) for n in range(1, 65)]
    ordinary = parse(COLLATZ.replace("(type=pl.FunctionType.SimtEntry)", ""))
    assert got.tolist() == [run(ordinary, {"n": n})["return"] for n in range(1, 65)]


def test_counted_loops_and_calls_in_branches():
    text = """
@pl.program
class P:
    @pl.function
    def square(x: pl.Scalar[pl.INT32]) -> pl.Scalar[pl.INT32]:
        y = x * x
        return y

    @pl.function(type=pl.FunctionType.SimtEntry)
    def f(n: pl.Scalar[pl.INT32]) -> pl.Scalar[pl.INT32]:
        s = n - n
        for i in pl.range(0, n, 1):
            if i == 3:
                continue
            q = self.square(n)
            s = s + q
        return s
"""
    program = parse(text)
    n = np.arange(10)
    (got,) = launch({f.name: f for f in program.functions}, "f", [10, 1, 1], [n])
    assert got.tolist() == [(k - (k > 3)) * k * k for k in range(10)]


def test_a_barrier_that_not_all_threads_reach():
    text = """
@pl.function(type=pl.FunctionType.SimtEntry)
def f(n: pl.Scalar[pl.INT32]):
    t = pl.pto.get_tid_x()
    if t < n:
        pl.pto.syncthreads()
    return
"""
    f = parse(text, "k.py").functions[0]
    launch({"f": f}, "f", [8, 1, 1], [8])
    with pytest.raises(TileggError) as caught:
        launch({"f": f}, "f", [8, 1, 1], [5])
    d = caught.value.diagnostics[0]
    assert d.code == "TG059" and "thread 5" in d.reason and d.span.line == 6


def test_endless_loops_stop():
    f = parse(COLLATZ.replace("k > 40", "k > 4000").replace("n // 2", "n")).functions[0]
    with pytest.raises(TileggError, match="too many statements"):
        launch({"f": f}, "f", [4, 1, 1], [2], max_steps=200)


# -- exact meanings --------------------------------------------------------------------------------------------


def test_separate_and_fused_multiply_add():
    a, c = 4097.0, 2.0**-30

    def apart(f, x, y, z):
        return f.scalar.add(f.scalar.mul(x, y), z)

    def fused(f, x, y, z):
        return f.pto.fma(x, y, z)

    given = [(FP32, a), (FP32, a), (FP32, c)]
    assert kernel(apart, given, 1)[0] == 16785408.0 and kernel(fused, given, 1)[0] == 16785410.0


def test_integer_target_operations():
    a, b = RNG.integers(-(2**63), 2**63 - 1, 500), RNG.integers(-(2**63), 2**63 - 1, 500)
    got = kernel(lambda f, x, y: f.pto.mulhi(x, y), [(INT64, a), (INT64, b)], 500)
    assert got.tolist() == [(int(x) * int(y)) >> 64 for x, y in zip(a, b)]
    ua, ub = a.astype(np.uint64), b.astype(np.uint64)
    got = kernel(lambda f, x, y: f.pto.mulhi(x, y), [(UINT64, ua), (UINT64, ub)], 500)
    assert got.tolist() == [(int(x) * int(y)) >> 64 for x, y in zip(ua, ub)]
    w = [(UINT32, np.array([0x03020100])), (UINT32, np.array([0x87868584])), (UINT32, np.array([0x7531]))]
    assert kernel(lambda f, x, y, z: f.pto.prmt(x, y, z), w, 1)[0] == 0x87850301
    w[2] = (UINT32, np.array([0xF8C4]))
    assert kernel(lambda f, x, y, z: f.pto.prmt(x, y, z), w, 1)[0] == 0xFF00FF84
    top = (UINT32, np.array([2**32 - 1]))
    wide = kernel(lambda f, x, y: f.pto.mul_i32toi64(x, y), [top, top], 1)
    assert int(wide[0]) == (2**32 - 1) ** 2


def test_rounding_operations():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 0.49999997, -0.0, INF, NAN, 8388609.0])
    want = {
        "rint": [0.0, 2.0, 2.0, -0.0, -2.0, 0.0, -0.0, INF, NAN, 8388609.0],
        "round": [1.0, 2.0, 3.0, -1.0, -2.0, 0.0, -0.0, INF, NAN, 8388609.0],
        "floor": [0.0, 1.0, 2.0, -1.0, -2.0, 0.0, -0.0, INF, NAN, 8388609.0],
        "ceil": [1.0, 2.0, 3.0, -0.0, -1.0, 1.0, -0.0, INF, NAN, 8388609.0],
    }
    for name, values in want.items():
        assert same(kernel(lambda f, v: f.op(f"pto.{name}", v), [(FP32, x)], 10), values), name  # noqa: B023


def test_scalar_casts_without_a_mode():
    def cast(value, src, dst):
        b = Builder("f")
        b.ret(b.scalar.cast(b.param("x", scalar(DTYPES[src])), DTYPES[dst]))
        return run(b.program(), {"x": value})["return"]

    assert cast(3.9, "FP32", "UINT32") == 3 and cast(-3.9, "FP32", "INT32") == -3
    assert cast(4294967295, "UINT32", "FP32") == 4294967296.0 and cast(1.5, "BF16", "FP32") == 1.5
    assert cast(NAN, "FP32", "INT32") == 0 and cast(1e20, "FP32", "INT32") == 2**31 - 1


def test_signed_division_by_powers_of_two():
    for t in range(-40, 40):
        f = Builder("f")
        x = f.param("x", scalar(INT32))
        f.ret(f.scalar.floordiv(x, 8), f.scalar.div(x, 8), f.scalar.mod(x, 8), f.scalar.rem(x, 8))
        got = run(f.program(), {"x": t})
        assert [got[f"return_{i}"] for i in range(4)] == [t // 8, int(t / 8), t % 8, t - 8 * int(t / 8)]
