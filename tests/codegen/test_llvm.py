"""Emitted LLVM IR, compiled and run by LLVM, against the interpreter: bit for bit, NaN payloads aside."""

import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.codegen.llvm import emit_llvm
from tilegg.ir import lanes
from tilegg.ir.builder import Builder
from tilegg.ir.codes import all_values, same_bits, ulp_distance
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES, FP16, FP32, INDEX, INT32, INT64, UINT32, UINT64
from tilegg.ir.literals import const
from tilegg.ir.op import OPS
from tilegg.ir.samples import hostile, random_bits
from tilegg.ir.simt import Run
from tilegg.ir.simt_threads import SimtState, Threads
from tilegg.ir.types import scalar

pytest.importorskip("llvmlite")
sys.path.insert(0, str(Path(__file__).parent))
from llvm_run import run_llvm

INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "INDEX")
FLOATS = ("FP16", "BF16", "FP32")
LIBRARY = ("exp", "log", "pow")


def interpret(f, columns):
    """The function's result on storage arrays, by the exact meanings."""
    threads = Threads((columns[0].size, 1, 1))
    with np.errstate(all="ignore"):
        given = [lanes.load(c, p.value.type.dtype) for c, p in zip(columns, f.params)]
        (found,) = Run({f.name: f}, threads, SimtState(), 10_000).function(f, given)
    dtype = f.body.statements[-1].operands[0].type.dtype
    return lanes.store(found, dtype), dtype


def alone(name, dtypes, **attrs):
    b = Builder("f")
    b.ret(b.op(name, *(b.param(f"x{i}", scalar(d)) for i, d in enumerate(dtypes)), **attrs))
    return b.function()


def draw(dtype, count, rng):
    return np.concatenate([hostile(dtype, dtype, rng, count // 2), random_bits(dtype, rng, count - count // 2)])


def compared(f, columns):
    """Compare LLVM and the interpreter on all elements; return how many there were."""
    want, dtype = interpret(f, columns)
    got = run_llvm(f, columns)
    same = same_bits(got, want, dtype)
    if dtype.is_float and f.body.statements[0].name in ("scalar.max", "scalar.min", "llvm.maxnum", "llvm.minnum"):
        # Of two zeros LLVM may give either.
        a, b = columns
        with np.errstate(invalid="ignore"):
            same |= (a == 0) & (b == 0) & (got == 0)
    at = np.flatnonzero(~same)
    assert at.size == 0, f"{[c[at[0]] for c in columns]}: LLVM {got[at[0]]}, here {want[at[0]]} ({at.size} differ)"
    return want.size


def family(names, dtypes, count, rng):
    total = 0
    for name in names:
        arity = len(OPS[f"scalar.{name}"].operand_params)
        for d in dtypes:
            if d in OPS[f"scalar.{name}"].scalar.types:
                f = alone(f"scalar.{name}", [DTYPES[d]] * arity)
                total += compared(f, [draw(DTYPES[d], count, rng) for _ in range(arity)])
    return total


FAMILIES = {
    "arithmetic": (("add", "sub", "mul", "neg"), (*INTEGERS, *FLOATS), 1 << 15),
    "division": (("div", "rem", "floordiv", "mod"), INTEGERS, 1 << 15),
    "division of floats": (("div",), FLOATS, 350_000),
    "maximum and minimum": (("max", "min"), (*INTEGERS, *FLOATS), 1 << 16),
    "comparisons": (("eq", "ne", "lt", "le", "gt", "ge"), (*INTEGERS, *FLOATS, "BOOL"), 1 << 14),
    "logic": (("and_", "or_", "not_"), (*INTEGERS, *FLOATS, "BOOL"), 1 << 15),
    "bits": (("bit_and", "bit_or", "bit_xor", "bit_not", "shl", "shr"), INTEGERS, 1 << 15),
    "magnitude and root": (("abs", "sqrt"), (*FLOATS, "INT32", "INT64"), 1 << 17),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_a_million_values_of_each_family(name):
    names, dtypes, count = FAMILIES[name]
    assert family(names, dtypes, count, np.random.default_rng(3)) >= 1_000_000


def test_library_functions_agree_to_the_last_bit_but_one():
    # LLVM leaves their accuracy to the target's library; here that of the machine the test runs on.
    rng, total, differ = np.random.default_rng(5), 0, 0
    for name in LIBRARY:
        for d in FLOATS:
            dtype = DTYPES[d]
            f = alone(f"scalar.{name}", [dtype] * len(OPS[f"scalar.{name}"].operand_params))
            columns = [draw(dtype, 120_000, rng) for _ in f.params]
            want, got = interpret(f, columns)[0], run_llvm(f, columns)
            steps = ulp_distance(got, want, dtype)
            assert steps.max() <= 1
            total, differ = total + want.size, differ + int((steps > 0).sum())
    assert total >= 1_000_000 and differ / total < 1e-3


def test_all_casts_of_narrow_types_and_a_million_of_the_wide_ones():
    rng = np.random.default_rng(9)
    exhaustive = sampled = refused = 0
    for a in ("BOOL", *INTEGERS, *FLOATS):
        for b in ("BOOL", *INTEGERS, *FLOATS):
            src, dst = DTYPES[a], DTYPES[b]
            f = alone("scalar.cast", [src], dtype=dst)
            try:
                emit_llvm(f)
            except TileggError as problem:
                assert problem.diagnostics[0].code == "TG023" and b == "BF16" and src.bits > 24, (a, b)
                refused += 1
                continue
            if src.bits <= 16:
                exhaustive += compared(f, [all_values(src)])
            else:
                drawn = np.concatenate([hostile(src, dst, rng, 1 << 14), random_bits(src, rng, 1 << 14)])
                sampled += compared(f, [drawn])
    assert exhaustive > 3_000_000 and sampled > 1_000_000 and refused == 5


@pytest.mark.parametrize("mode", ["rint", "round", "floor", "ceil", "trunc"])
def test_casts_to_integers_in_every_mode(mode):
    for d in FLOATS:
        src = DTYPES[d]
        values = all_values(src) if src.bits <= 16 else hostile(src, INT32, np.random.default_rng(2), 1 << 15)
        for dst in (INT32, UINT32, DTYPES["INT8"], INT64):
            compared(alone("scalar.cast", [src], dtype=dst, mode=mode), [values])


def test_casts_with_roundings_llvm_does_not_have():
    for src, dst, mode in ((FP32, FP16, "trunc"), (FP32, INT32, "odd"), (INT64, FP32, "floor")):
        with pytest.raises(TileggError, match="TG023"):
            emit_llvm(alone("scalar.cast", [src], dtype=dst, mode=mode))


@pytest.mark.parametrize(
    "name, dtype, text",
    [
        ("scalar.max", FP32, "call float @llvm.maxnum.f32(float"),
        ("scalar.min", FP16, "call half @llvm.minnum.f16(half"),
        ("scalar.max", INT32, "@llvm.smax.i32("),
        ("scalar.min", UINT64, "@llvm.umin.i64("),
        ("scalar.max", INDEX, "icmp sgt i64"),
        ("scalar.abs", FP32, "@llvm.fabs.f32("),
        ("scalar.sqrt", FP32, "@llvm.sqrt.f32("),
        ("scalar.exp", FP32, "@llvm.exp.f32("),
        ("scalar.log", FP16, "@llvm.log.f16("),
        ("scalar.pow", FP32, "@llvm.pow.f32("),
        ("pto.fmax", FP32, "@llvm.maxnum.f32("),
        ("pto.fmin", FP16, "@llvm.minnum.f16("),
        ("pto.absf", FP32, "@llvm.fabs.f32("),
        ("llvm.umax", UINT32, "@llvm.umax.i32("),
    ],
)
def test_the_intrinsics(name, dtype, text):
    found = emit_llvm(alone(name, [dtype] * len(OPS[name].operand_params)))
    assert text in found and "maximum" not in found and "minimum" not in found


def test_maximum_and_minimum_compile_to_no_nan_propagation():
    b = Builder("f")
    x, y = b.param("x", scalar(FP32)), b.param("y", scalar(FP32))
    b.ret(b.scalar.max(x, y))
    nan = np.float32("nan")
    got = run_llvm(b.function(), [np.array([nan, 1, nan, 2], np.float32), np.array([1, nan, nan, 3], np.float32)])
    assert got[:2].tolist() == [1, 1] and np.isnan(got[2]) and got[3] == 3


def test_products_and_sums_are_not_fused():
    b = Builder("f")
    x, y, z = (b.param(n, scalar(FP32)) for n in "xyz")
    b.ret(b.scalar.add(b.scalar.mul(x, y), z))
    given = [np.array([v], np.float32) for v in (4097, 4097, 2.0**-30)]
    assert run_llvm(b.function(), given)[0] == 16785408.0
    with pytest.raises(TileggError, match="no form in plain LLVM IR"):
        emit_llvm(alone("pto.fma", [FP32] * 3))


def test_literals_and_mixed_integers():
    rng = np.random.default_rng(4)
    b = Builder("f")
    x, i = b.param("x", scalar(INT32)), b.param("i", scalar(INDEX))
    s = b.scalar.add(b.scalar.mul(x, 3), i)
    t = b.scalar.div(s, -1)
    u = b.scalar.mod(t, const(-7, INT32))
    v = b.scalar.shr(b.scalar.shl(u, 2), 40)
    c = b.scalar.and_(b.scalar.lt(v, 5), b.scalar.not_(b.scalar.eq(s, 0)))
    b.ret(b.scalar.select(c, b.scalar.floordiv(t, 8), u))
    compared(b.function(), [draw(INT32, 40_000, rng), draw(INDEX, 40_000, rng)])
    for value in (0.1, float("inf"), float("nan"), 1e-45, 65519.0, 3.3895e38):
        for d in FLOATS:
            g = Builder("f")
            y = g.param("y", scalar(DTYPES[d]))
            g.ret(g.scalar.max(g.scalar.mul(y, 1.0), value))
            compared(g.function(), [draw(DTYPES[d], 2000, rng)])


def test_what_is_no_pure_scalar_code():
    b = Builder("f", type="pl.FunctionType.SimtEntry")
    b.ret(b.pto.get_tid_x())
    with pytest.raises(TileggError, match="TG023"):
        emit_llvm(b.function())
    b = Builder("f")
    n = b.param("n", scalar(INT32))
    with b.range(n, carry={"a": n}) as loop:
        loop.yield_(loop.args[0])
    b.ret(loop.results[0])
    with pytest.raises(TileggError, match="straight-line"):
        emit_llvm(b.function())
