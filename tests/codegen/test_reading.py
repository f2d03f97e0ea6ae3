"""Hand-written SIMT assembly: parsed, verified, printed, read as a program, run, optimised and written back."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tilegg
from tilegg.codegen.mlir_scalars import emit_mlir
from tilegg.codegen.pto.api import parse_pto, print_pto, verify_pto
from tilegg.codegen.reading import read_module
from tilegg.extract.scalars import lower_scalars
from tilegg.ir import lanes
from tilegg.ir.codes import same_bits
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES
from tilegg.ir.op import OPS
from tilegg.ir.program import Op, walk
from tilegg.ir.samples import hostile
from tilegg.ir.simt import Run
from tilegg.ir.simt_threads import SimtState, Threads
from tilegg.ir.text import parse, print_program
from tilegg.ir.types import PtrType

sys.path.insert(0, str(Path(__file__).parent))
from simt_sweep import SWEEPS
from simt_texts import HISTOGRAM, SOFTMAX, TEXTS, WRONG, entry
from test_scalar_mlir import PLAIN, alone, interpret


def module(text):
    made = parse_pto(text, "hand.pto")
    verify_pto(made)
    return made


def names(program):
    return [s.name for f in program.functions for s in walk(f.body) if isinstance(s, Op)]


@pytest.mark.parametrize("name", TEXTS)
def test_assembly_is_printed_as_it_was_read(name):
    first = print_pto(module(TEXTS[name]), locations=False)
    assert print_pto(module(first), locations=False) == first
    # Every operation is there, with all its words.
    lines = [line.strip() for line in TEXTS[name].splitlines() if re.match(r" *(%\w+ = )?(pto|llvm)\.", line)]
    for line in lines:
        usual = line.replace("<{is_int_min_poison = false}>", "").split(":")[0].replace('"', "")
        assert usual.split("(")[0].split("{")[0].strip() in first.replace('"', ""), line


@pytest.mark.parametrize("name", TEXTS)
def test_the_generic_form_is_read_too(name):
    text = print_pto(module(TEXTS[name]), locations=False)
    assert print_pto(module(print_pto(parse_pto(text), generic=True)), locations=False) == text


@pytest.mark.parametrize("name", TEXTS)
def test_assembly_is_read_as_a_program_and_written_back(name):
    program = read_module(module(TEXTS[name]))
    assert parse(print_program(program)) == program
    for lowered in (lower_scalars(program, compat="keep"), lower_scalars(program)):
        again = read_module(module(tilegg.emit(lowered, "a5")))
        assert [f.name for f in again.functions] == [f.name for f in program.functions]
        same_results(program, again)


def test_every_operation_of_the_level_is_read():
    read = {n for text in TEXTS.values() for n in names(read_module(module(text)))}
    level = {n for n, d in OPS.items() if n.startswith("pto.") and d.scalar is not None}
    # What the assembler has no name for, and the scalar unit's own access.
    made = {n for n in level if "allreduce" in n} | {"pto.load_scalar", "pto.store_scalar"}
    assert level - read <= made, level - read - made


def same_results(a, b):
    """Run the SIMT entries of two programs on the same memory."""
    for f in a.functions:
        if "SimtEntry" not in f.attrs.get("type", ""):
            continue
        found = [memory_after(p, f.name) for p in (a, b)]
        for x, y in zip(*found):
            assert x.dtype.itemsize == y.dtype.itemsize and x.tobytes() == y.tobytes()


def memory_after(program, name):
    rng = np.random.default_rng(5)
    f = program.function(name)
    state = SimtState()
    given, memory = [], []
    for p in f.params:
        t = p.value.type
        if isinstance(t, PtrType):
            bits = {16: np.float16, 32: np.float32}.get(t.dtype.bits) if t.dtype.is_float else None
            array = np.arange(64).astype(bits or f"int{t.dtype.bits}").view(t.dtype.storage)
            memory.append(array)
            given.append(array)
        else:
            number = int(rng.integers(1, 30))
            given.append(float(number) if t.dtype.is_float else bool(number & 1) if t.dtype.kind == "bool" else number)
    state.kept.update({0: np.arange(32.0), 2: np.arange(32)})
    tilegg.ir.simt.launch({g.name: g for g in program.functions}, name, [32, 1, 1], given, state)
    return [*memory, *(np.asarray(v) for _, v in sorted(state.kept.items()))]


@pytest.mark.parametrize("name", WRONG)
def test_what_the_assembler_refuses_is_refused(name):
    text, why = WRONG[name]
    with pytest.raises(TileggError, match=r"TG02[37]|TG05[56]") as problem:
        module(text)
    code = {"outside of SIMT": "TG055", "threads are started": "TG056"}.get(why, "TG02")
    assert problem.value.diagnostics[0].code.startswith(code)
    assert why in str(problem.value), str(problem.value)
    assert problem.value.diagnostics[0].span is not None


@pytest.mark.parametrize("name", SWEEPS)
def test_every_type_space_and_sign(name):
    """As many combinations as the assembler takes; ``check_ptoas.py`` compares them one by one."""
    make, count = SWEEPS[name]
    taken = 0
    for text in make():
        try:
            module(text)
        except TileggError:
            continue
        taken += 1
    assert taken == count


def test_plain_code_read_back_means_the_same():
    """Every scalar operation on every dtype, through MLIR and back."""
    rng = np.random.default_rng(3)
    total = 0
    for decl in PLAIN:
        goals = [{"dtype": DTYPES[d]} for d in ("INT8", "UINT16", "INT32", "UINT64", "INDEX", "FP16", "FP32")]
        for name in decl.scalar.types:
            for attrs in goals if decl.name in ("scalar.cast", "scalar.wrap") else [{}]:
                f = alone_or_none(decl, name, attrs)
                if f is None:
                    continue
                (back,) = read_module(module(emit_mlir(f))).functions
                columns = [hostile(p.value.type.dtype, f.results[0].dtype, rng, 96) for p in f.params]
                want, dtype = interpret(f, columns), f.results[0].dtype
                given = [c.view(p.value.type.dtype.storage) for c, p in zip(columns, back.params)]
                got = interpret(back, given).view(dtype.storage)
                same = same_bits(got, want, dtype)
                if dtype.is_float and f.body.statements[0].name.endswith(("max", "min", "maxnum", "minnum")):
                    same |= (got == 0) & (want == 0)
                assert same.all(), (print_program_of(f), print_program_of(back))
                total += 1
    assert total > 300


def alone_or_none(decl, name, attrs):
    try:
        f = alone(decl, DTYPES[name], "f", **attrs)
        emit_mlir(f)
    except TileggError:
        return None
    return f


def print_program_of(f):
    return print_program(tilegg.ir.program.Program("", (f,)))


COMPARISONS = """func.func @f(%x: f32, %y: f32) -> i1 {{
  %r = arith.cmpf {}, %x, %y : f32
  return %r : i1
}}
"""
TRUTH = {
    "ord": lambda x, y: (x == x) & (y == y), "uno": lambda x, y: (x != x) | (y != y),
    "one": lambda x, y: (x < y) | (x > y), "ueq": lambda x, y: ~((x < y) | (x > y)),
    "ugt": lambda x, y: ~(x <= y), "uge": lambda x, y: ~(x < y), "ult": lambda x, y: ~(x >= y),
    "ule": lambda x, y: ~(x > y), "oeq": lambda x, y: x == y, "une": lambda x, y: x != y,
    "false": lambda x, y: np.zeros(x.shape, bool), "true": lambda x, y: np.ones(x.shape, bool),
}  # fmt: skip


@pytest.mark.parametrize("how", TRUTH)
def test_comparisons_of_floats(how):
    (f,) = read_module(module(COMPARISONS.format(how))).functions
    x = np.repeat(np.array([0.0, -0.0, 1.0, np.inf, np.nan], np.float32), 5)
    y = np.tile(np.array([0.0, -0.0, 1.0, np.inf, np.nan], np.float32), 5)
    threads = Run({"f": f}, Threads((25, 1, 1)), SimtState(), 100)
    (found,) = threads.function(f, [lanes.load(v, DTYPES["FP32"]) for v in (x, y)])
    assert (np.broadcast_to(found, 25) == TRUTH[how](x, y)).all()


LOOP = """func.func @f(%n: i32, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (f32)  : i32 {
    %k = arith.sitofp %i : i32 to f32
    %t = arith.addf %s, %k : f32
    scf.yield %t : f32
  }
  %w:2 = scf.while (%a = %n, %b = %r) : (i32, f32) -> (i32, f32) {
    %go = arith.cmpi sgt, %a, %c0 : i32
    scf.condition(%go) %a, %b : i32, f32
  } do {
  ^bb0(%a: i32, %b: f32):
    %d = arith.subi %a, %c1 : i32
    %e = arith.addf %b, %one : f32
    scf.yield %d, %e : i32, f32
  }
  return %w#1 : f32
}
"""


def test_loops():
    program = read_module(module(LOOP))
    assert tilegg.run(program, {"n": 5, "x": 0.5})["return"] == 0.5 + 10 + 5
    assert parse(print_program(program)) == program


def test_what_the_language_does_not_have():
    for line, why in (
        ("%r = arith.maximumf %x, %x : f32", "write arith.maxnumf"),
        ("%r = pto.castptr %p : !pto.ptr<f32> -> !pto.ptr<i8>", "one dtype"),
        ("%r = arith.bitcast %x : f32 to i32", "no such operation"),
    ):
        with pytest.raises(TileggError, match="TG029") as problem:
            read_module(module(entry(line)))
        found = problem.value.diagnostics[0]
        assert why in found.render() and found.span is not None and found.span.file == "hand.pto"


def test_one_pointer_has_one_sign():
    both = entry("%r = pto.atomic_max %k, %n unsigned : !pto.ptr<i32>, i32 -> i32",
                 "%s = pto.atomic_max %k, %n signed : !pto.ptr<i32>, i32 -> i32")  # fmt: skip
    with pytest.raises(TileggError, match=r"TG029.*signed, another operation as unsigned"):
        read_module(module(both))


KEPT = entry("%mx = pto.fmax %x, %x : f32, f32 -> f32", "%q = pto.sqrt %mx : f32 -> f32",
             "%t = pto.get_tid_x : i32", "%c8 = arith.constant 8 : i32", "%d = arith.divsi %t, %c8 : i32",
             "%e = arith.index_cast %d : i32 to index", "pto.stg %q, %p[%e] : !pto.ptr<f32>, f32")  # fmt: skip


def test_kept_forms_stay_or_become_plain():
    program = read_module(module(KEPT))
    kept = names(tilegg.lower(program, "a5", compat="keep").program)
    canonical = names(tilegg.lower(program, "a5").program)
    assert "pto.fmax" in kept and "pto.sqrt" in kept
    assert "llvm.maxnum" in canonical and "llvm.sqrt" in canonical
    # The number of a thread is not negative, so that both divide by a shift.
    assert "scalar.shr" in kept and "scalar.shr" in canonical


def test_a_softmax_of_warps_and_its_assembly():
    program = parse(SOFTMAX)
    x = np.random.default_rng(0).standard_normal((4, 32)).astype(np.float32)
    lowered = tilegg.lower(program, "a5")
    # Thread numbers are not negative: no division is left.
    assert not {"scalar.rem", "scalar.max"} & set(names(lowered.program))
    assert names(lowered.program).count("scalar.div") == 1
    again = read_module(module(tilegg.emit(lowered, "a5")))
    e = np.exp(x - x.max(1, keepdims=True))
    results = []
    for p in (program, lowered.program, again):
        shape = 128 if p is again else (4, 32)
        given = {"x": x.reshape(shape), "y": np.zeros(shape, np.float32)}
        results.append(np.asarray(tilegg.run(p, given, function="main")["y"]).reshape(4, 32))
    assert np.abs(results[0] - e / e.sum(1, keepdims=True)).max() < 1e-6
    assert all(r.tobytes() == results[0].tobytes() for r in results)


def test_a_histogram_of_atomics_and_its_assembly():
    program = parse(HISTOGRAM)
    values = np.arange(32, dtype=np.int32) * 7 - 40
    again = read_module(module(tilegg.emit(tilegg.lower(program, "a5"), "a5")))
    for p in (program, again):
        given = {"x": values, "bins": np.zeros(8, np.int32), "out": np.zeros(8, np.int32)}
        assert tilegg.run(p, given)["out"].tolist() == np.bincount(values % 8, minlength=8).tolist()
