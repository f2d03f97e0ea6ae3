"""MLIR of scalar and SIMT functions: the intrinsics of the LLVM IR emitter; LLVM's own tools where installed."""

import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tilegg.codegen.llvm import emit_llvm
from tilegg.codegen.mlir_scalars import emit_mlir
from tilegg.extract.scalars import lower_scalars
from tilegg.ir import lanes
from tilegg.ir.builder import Builder
from tilegg.ir.codes import all_values, same_bits
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES, FP32, INT32
from tilegg.ir.op import OPS
from tilegg.ir.program import Program
from tilegg.ir.samples import hostile
from tilegg.ir.simt import Run
from tilegg.ir.simt_threads import SimtState, Threads
from tilegg.ir.text import parse
from tilegg.ir.types import scalar

llvm = pytest.importorskip("llvmlite.binding")
sys.path.insert(0, str(Path(__file__).parent))
from llvm_run import RUNTIME, driver, machine  # noqa: E402

OPT, TRANSLATE = shutil.which("mlir-opt-19"), shutil.which("mlir-translate-19")
INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64", "INDEX")
FLOATS = ("FP16", "BF16", "FP32")
PLAIN = [d for d in OPS.values() if d.pure and d.name.startswith(("scalar.", "llvm.")) and d.scalar is not None]
#: Destinations of conversions.
GOALS = {"scalar.cast": ("BOOL", *INTEGERS, *FLOATS), "scalar.wrap": INTEGERS}
COUNT = 2048


def alone(decl, of, name="f", **attrs):
    b = Builder(name)
    own = [DTYPES["BOOL"] if p.name == "condition" else of for p in decl.operand_params]
    b.ret(b.op(decl.name, *(b.param(f"x{i}", scalar(d)) for i, d in enumerate(own)), **attrs))
    return b.function()


def everything():
    """Every plain operation on every dtype that both emitters write; the others must be refused by both."""
    found = []
    for decl in PLAIN:
        goals = [{"dtype": DTYPES[d]} for d in GOALS[decl.name]] if decl.name in GOALS else [{}]
        for name in decl.scalar.types:
            for attrs in goals:
                f = alone(decl, DTYPES[name], f"f{len(found)}", **attrs)
                try:
                    text = emit_llvm(f)
                except TileggError:
                    with pytest.raises(TileggError):
                        emit_mlir(f)
                    continue
                found.append((f, text, emit_mlir(f)))
    return found


@pytest.fixture(scope="module")
def written():
    return everything()


def test_both_emitters_choose_the_same_intrinsics(written):
    kinds = set()
    for f, text, mlir in written:
        ours = sorted(re.sub(r"(\.[if]\d+|\.bf16)+$", "", m) for m in re.findall(r"call \w+ @(llvm[\w.]+)\(", text))
        named = [m.replace("llvm.intr.", "llvm.") for m in re.findall(r'"(llvm\.intr[\w.]+)"', mlir)]
        theirs = sorted([*named, *re.findall(r'call_intrinsic "(llvm\.[\w.]+?)\.i\d+\.f32"', mlir)])
        assert ours == theirs, f.body.statements[0]
        kinds.update(ours)
    assert len(written) > 400
    assert {f"llvm.{n}" for n in ("maxnum", "minnum", "smax", "umin", "fabs", "sqrt", "exp", "pow")} <= kinds
    assert not {k for k in kinds if "maximum" in k or "minimum" in k}


def interpret(f, columns):
    with np.errstate(all="ignore"):
        given = [lanes.load(c, p.value.type.dtype) for c, p in zip(columns, f.params)]
        threads = Run({f.name: f}, Threads((columns[0].size, 1, 1)), SimtState(), 100_000)
        (found,) = threads.function(f, given)
    return lanes.store(found, f.results[0].dtype)


def translated(mlir):
    """LLVM IR of MLIR text, by LLVM's own tools."""
    passes = ["--convert-scf-to-cf", "--convert-arith-to-llvm", "--convert-index-to-llvm", "--convert-cf-to-llvm",
              "--convert-func-to-llvm", "--reconcile-unrealized-casts"]  # fmt: skip
    low = subprocess.run([OPT, *passes], input=mlir, capture_output=True, text=True, check=False)
    assert low.returncode == 0, low.stderr[:2000]
    made = subprocess.run(
        [TRANSLATE, "--mlir-to-llvmir"], input=low.stdout, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr[:2000]
    return "\n".join(line for line in made.stdout.splitlines() if not line.startswith("target "))


def execute(text, functions, columns):
    drivers = [
        driver(f.name, [p.value.type.dtype for p in f.params], f.results[0].dtype).replace("@batch", f"@batch_{f.name}")
        for f in functions
    ]
    module = llvm.parse_assembly("\n".join([text, *drivers, RUNTIME]))
    out = []
    with llvm.create_mcjit_compiler(module, machine()) as engine:
        engine.finalize_object()
        for f, given in zip(functions, columns):
            arrays = [np.ascontiguousarray(c) for c in given]
            result = np.zeros(arrays[0].size, f.results[0].dtype.storage)
            kinds = [ctypes.c_void_p] * (len(arrays) + 1) + [ctypes.c_int64]
            run = ctypes.CFUNCTYPE(None, *kinds)(engine.get_function_address(f"batch_{f.name}"))
            run(*(a.ctypes.data for a in arrays), result.ctypes.data, result.size)
            out.append(result)
    return out


needs_mlir = pytest.mark.skipif(OPT is None or TRANSLATE is None, reason="needs apt-get install mlir-19-tools llvm-19")


@needs_mlir
def test_mlir_compiled_by_llvm_agrees_with_the_interpreter(written):
    rng = np.random.default_rng(6)
    library = ("exp", "log", "pow")
    chosen = [f for f, _, _ in written if f.body.statements[0].name.rpartition(".")[2] not in library]
    columns = []
    for f in chosen:
        (first, *_) = f.params
        if len(f.params) == 1 and first.value.type.dtype.bits <= 16:
            columns.append([all_values(first.value.type.dtype)])
            continue
        target = f.results[0].dtype
        columns.append([hostile(p.value.type.dtype, target, rng, COUNT) for p in f.params])
    text = translated(emit_mlir(Program("", tuple(chosen))))
    total = 0
    for f, given, got in zip(chosen, columns, execute(text, chosen, columns)):
        want, dtype = interpret(f, given), f.results[0].dtype
        same = same_bits(got, want, dtype)
        if dtype.is_float and f.body.statements[0].name.endswith(("max", "min", "maxnum", "minnum")):
            with np.errstate(invalid="ignore"):
                same |= (given[0] == 0) & (given[-1] == 0) & (got == 0)
        at = np.flatnonzero(~same)
        assert at.size == 0, (f.body.statements[0], [c[at[0]] for c in given], got[at[0]], want[at[0]])
        total += want.size
    assert total > 3_000_000


FLOW = """
@pl.function
def f(x: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INT32]) -> pl.Scalar[pl.FP32]:
    s = x
    for i in pl.range(0, n % 7, 1):
        if s > 10.0:
            s = s - 3.0
        else:
            s = s * 1.5 + 1.0
        s = pl.max(s, -4.0)
    return s
"""


@needs_mlir
def test_branches_and_loops():
    program = parse(FLOW)
    lowered = lower_scalars(program)
    rng = np.random.default_rng(8)
    given = [hostile(FP32, FP32, rng, COUNT), hostile(INT32, INT32, rng, COUNT)]
    for p in (program, lowered):
        f = p.functions[0]
        (got,) = execute(translated(emit_mlir(p)), [f], [given])
        assert same_bits(got, interpret(f, given), FP32).all()


SIMT = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.SimtEntry)
    def body(p: pl.Ptr[pl.FP32, "gm"], q: pl.InOut[pl.Ptr[pl.FP32, "ub"]], k: pl.Scalar[pl.UINT32]):
        t = pl.pto.get_tid_x()
        x = pl.pto.ldg(p, t, l1cache="cache", l2cache="nmfv")
        m = pl.pto.simt_allreduce_max(x, threads=2)
        h = pl.pto.convert(m, pl.INT32, rounding="z", saturation="sat", signedness="signed")
        r = pl.pto.redux_max(k)
        u = pl.pto.mulhi(k, r)
        b = pl.pto.vote_ballot(h < t)
        pl.store(m, q, t)
        v = pl.load(q, 0, contiguous=1)
        pl.pto.syncthreads()
        pl.pto.keep(v, slot=2)
        w = pl.pto.resume(pl.FP32, slot=2)
        o = pl.pto.atomic_add(q, w)
        z = pl.pto.shuffle_up(o, 1, width=16)

    @pl.function
    def main(p: pl.Ptr[pl.FP32, "gm"], q: pl.InOut[pl.Ptr[pl.FP32, "ub"]]):
        pl.pto.simt_launch("body", [64, 1, 1], p, q, pl.const(8, pl.UINT32))
        with pl.section_simt(32, 1, 1):
            t = pl.pto.get_tid_x()
"""
LINES = [
    "attributes {pto.simt_entry}", "%t = pto.get_tid_x : i32", "l1cache(cache) l2cache(nmfv) : !pto.ptr<f32> -> f32",
    ": f32, i32 -> f32", '"llvm.intr.maxnum"(%x, ',
    "pto.convert %m round(z) sat signed : f32 -> i32",
    "pto.redux_max %k unsigned : i32 -> i32", "pto.mulhi %k, %r unsigned : i32, i32 -> i32",
    ": !pto.ptr<f32, ub>, f32", "pto.vote_ballot %", "pto.syncthreads\n", "pto.keep %v {slot = 2} : f32",
    "pto.resume {slot = 2} : f32", "pto.atomic_add %q, %w : !pto.ptr<f32, ub>, f32 -> f32",
    "{width = 16 : i32}", "pto.simt_launch @body<<<", "pto.section.simt<<<32, 1, 1>>> {",
]  # fmt: skip


def test_simt_functions_in_the_assemblers_text():
    text = emit_mlir(lower_scalars(parse(SIMT)))
    for line in LINES:
        assert line in text, line


STACK = """
@pl.function
def f(x: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INT32]) -> pl.Scalar[pl.FP32]:
    s = pl.llvm.alloca(pl.FP32, count=4)
    pl.llvm.store(x, s, 0)
    pl.store(2.5, s, 1)
    pl.llvm.store(x + 1.0, s, 2)
    pl.llvm.store(-x, s, 3)
    y = pl.load(s, n & 3)
    return y
"""


@needs_mlir
def test_the_stack_compiled_by_llvm():
    (f,) = parse(STACK).functions
    rng = np.random.default_rng(8)
    given = [hostile(FP32, FP32, rng, COUNT), hostile(INT32, INT32, rng, COUNT)]
    text = emit_mlir(f)
    assert "llvm.alloca" in text and "pto." not in text
    (got,) = execute(translated(text), [f], [given])
    assert same_bits(got, interpret(f, given), FP32).all()


def test_what_has_no_form():
    with pytest.raises(TileggError, match="TG023"):
        emit_mlir(alone(OPS["scalar.cast"], FP32, dtype=DTYPES["FP16"], mode="trunc"))
    with pytest.raises(TileggError, match="TG023"):
        emit_mlir(parse("@pl.function\ndef f(x: pl.Tensor[[4], pl.FP32]):\n    return\n"))
    with pytest.raises(TileggError, match="literals"):
        body = "    with pl.section_simt(n, 1, 1):\n        s = n\n"
        emit_mlir(parse(f"@pl.function\ndef f(n: pl.Scalar[pl.INDEX]):\n{body}"))
