"""Scalar rules hold on hostile values of every dtype they apply to; lowered programs mean what they meant."""

from dataclasses import replace

import numpy as np
import pytest
from tilegg.extract.lower import lower
from tilegg.extract.scalars import lower_scalars
from tilegg.ir import lanes
from tilegg.ir.builder import Builder
from tilegg.ir.codes import same_bits
from tilegg.ir.convert import convert
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES, FP32, INDEX, INT32, UINT32
from tilegg.ir.interp import run
from tilegg.ir.literals import const
from tilegg.ir.op import OPS
from tilegg.ir.program import Const, Op, walk
from tilegg.ir.samples import hostile
from tilegg.ir.simt import Run
from tilegg.ir.simt_threads import SimtState, Threads
from tilegg.ir.text import parse, print_program
from tilegg.ir.types import scalar
from tilegg.ir.verify import verify
from tilegg.rewrite.knowledge import Knowledge
from tilegg.rewrite.region import regions
from tilegg.rewrite.saturate import Plan, saturate
from tilegg.rules.check import check_rule
from tilegg.rules.check_scalars import is_scalar_rule
from tilegg.rules.check_values import check_values
from tilegg.rules.computed import COMPUTED
from tilegg.rules.rule import RULES, Term, Var
from tilegg.rules.target import load_target

RNG = np.random.default_rng(11)
SCALAR_RULES = {r.name: r for r in RULES.values() if is_scalar_rule(r)}


def test_scalar_rules_are_rules_like_others():
    assert len(SCALAR_RULES) > 30 and all(r.reason and r.contract == "exact" for r in SCALAR_RULES.values())
    # Every one is checked on its own in test_rules.py; here, that all dtypes come up.
    found = check_rule(SCALAR_RULES["scalar.mod.power-of-two"], 100)
    assert found.ok and found.exhaustive > 30 and found.values > 500_000


@pytest.mark.parametrize("name", ["scalar.div.power-of-two", "scalar.rem.power-of-two"])
def test_without_the_fact_the_shift_is_wrong(name):
    rule = SCALAR_RULES[name]
    loose = replace(rule, when=tuple(c for c in rule.when if c.relation != "positive"))
    found = check_rule(loose, 40)
    assert not found.ok and "x=-" in found.failures[0]


def test_a_reduction_of_tiles_needs_numbers():
    rule = SCALAR_RULES["scalar.max.reduced"]
    loose = replace(rule, when=rule.when[:1])
    assert not check_rule(loose, 40).ok and check_rule(rule, 40).ok


def test_swapped_intrinsics_are_found():
    for a, b in (("llvm.smax", "llvm.umax"), ("llvm.maxnum", "llvm.minnum"), ("llvm.umin", "llvm.smin")):
        rule = next(r for r in SCALAR_RULES.values() if isinstance(r.rhs, Term) and r.rhs.op == a)
        wrong = replace(rule, rhs=replace(rule.rhs, op=b))
        assert not check_rule(wrong, 20).ok


def test_equal_zeros_are_one_value_only_where_the_language_leaves_them_open():
    assert check_rule(SCALAR_RULES["scalar.max.compared"], 20).inexact > 0
    wrong = replace(SCALAR_RULES["scalar.abs.fabs"], rhs=Var("x", "value"))
    assert not check_rule(wrong, 20).ok


def test_powers():
    found = [COMPUTED["two_to"].function(Const(v, d), d) for v, d in (
        (1, INT32), (8, INDEX), (1 << 62, INDEX), (128, DTYPES["UINT8"]), (128, DTYPES["INT8"]), (0, INT32),
        (-8, INT32), (3, INT32), (True, INT32), (8.0, FP32),
    )]  # fmt: skip
    assert [f and (f[0].value, f[1].value) for f in found] == [
        (0, 0), (3, 7), (62, (1 << 62) - 1), (7, 127), None, None, None, None, None, None,
    ]  # fmt: skip


# -- programs --------------------------------------------------------------------------------------------------


def names(program):
    return [s.name for f in program.functions for s in walk(f.body) if isinstance(s, Op)]


def lowered(make, **params):
    b = Builder("f")
    values = [b.param(n, scalar(t)) for n, t in params.items()]
    b.ret(make(b, *values))
    program = b.program()
    out = lower_scalars(program)
    assert verify(out) == [] and parse(print_program(out)) == out
    return program, out


@pytest.mark.parametrize(
    "dtype, most, least",
    [
        (FP32, ["llvm.maxnum"], ["llvm.minnum"]), (INT32, ["llvm.smax"], ["llvm.smin"]),
        (UINT32, ["llvm.umax"], ["llvm.umin"]), (INDEX, ["scalar.gt", "scalar.select"], ["scalar.lt", "scalar.select"]),
    ],
)  # fmt: skip
def test_maximum_and_minimum_by_kind(dtype, most, least):
    assert names(lowered(lambda b, x, y: b.scalar.max(x, y), x=dtype, y=dtype)[1]) == most
    assert names(lowered(lambda b, x, y: b.scalar.min(x, y), x=dtype, y=dtype)[1]) == least


BEST = """
@pl.function
def f(a: pl.Scalar[pl.FP32], b: pl.Scalar[pl.FP32], c: pl.Scalar[pl.FP32], d: pl.Scalar[pl.FP32]) -> pl.Scalar[pl.FP32]:
    best = pl.max(a, b)
    best = pl.max(best, c)
    best = pl.max(best, d)
    return best
"""


LESS = replace(
    load_target("a5"), path="less",
    capabilities={k: v for k, v in load_target("a5").capabilities.items() if k != "float_scalar_extrema"},
)  # fmt: skip


@pytest.mark.parametrize("target", [load_target("a5"), LESS], ids=["with", "without"])
def test_the_best_of_several_numbers(target):
    program = parse(BEST)
    out = lower_scalars(program, target=target)
    extrema = target is not LESS
    assert verify(out) == [] and ("llvm.maxnum" in names(out)) == extrema
    assert ("scalar.select" in names(out)) != extrema
    for values, want in (((3.0, 9.0, 2.0, -1.0), 9.0), ((-3.0, -9.0, float("nan"), -4.0), -3.0)):
        given = dict(zip("abcd", values))
        assert run(out, given)["return"] == want == run(program, given)["return"]


def test_what_a_target_lacks():
    b = Builder("f")
    x = b.param("x", scalar(FP32))
    b.ret(b.pto.fma(x, x, x), b.pto.sqrt(x), b.scalar.sqrt(x))
    program = b.program()
    assert names(lower(program, "a5").program) == ["pto.fma", "scalar.sqrt"]
    with pytest.raises(TileggError, match=r"TG022.*pto\.fma: a2a3 does not have hivm"):
        lower(program, "a2a3")
    kept = Builder("g")
    v = kept.param("v", scalar(DTYPES["FP16X2"]))
    kept.ret(kept.pto.sqrt(v))
    with pytest.raises(TileggError, match=r"(?s)TG022.*pto\.sqrt.*a2a3 does not have hivm"):
        lower(kept.program(), "a2a3")


PACKED = [d for d in OPS.values() if d.scalar is not None and d.scalar.packed and d.name != "pto.convert"]


@pytest.mark.parametrize("decl", PACKED, ids=lambda d: d.name)
def test_packed_pairs_are_two_elements(decl):
    for name in decl.scalar.packed:
        pair = DTYPES[name]
        single = DTYPES[pair.packed_of]
        if single.name not in decl.scalar.types and decl.name != "pto.absf":
            continue
        count = len([p for p in decl.operand_params if p.name != "by"])
        columns = [lanes.load(hostile(single, single, RNG, 128).reshape(64, 2), single) for _ in range(count)]
        lane = [np.arange(64) % 5] if count < len(decl.operand_params) else []
        types = [INT32] if lane else []

        def result(dtype, given, name=decl.name, types=types):
            b = Builder("f", type="pl.FunctionType.SimtEntry")
            b.ret(b.op(name, *(b.param(f"x{i}", scalar(d)) for i, d in enumerate([dtype] * count + types))))  # noqa: B023
            f = b.function()
            with np.errstate(all="ignore"):
                return Run({"f": f}, Threads((64, 1, 1)), SimtState(), 1000).function(f, [*given, *lane])[0]  # noqa: B023

        both = result(pair, columns)
        element = single if single.name in decl.scalar.types else FP32
        halves = [result(element, [c[:, i] for c in columns]) for i in range(2)]
        want = lanes.store(np.stack(halves, 1), single)
        assert same_bits(lanes.store(both, pair), want, single).all()


def test_packed_conversions():
    f = Builder("f")
    x = f.param("x", scalar(DTYPES["FP32X2"]))
    h = f.pto.convert(x, DTYPES["FP16X2"], rounding="z")
    f.ret(h, f.pto.convert(x, DTYPES["FP8E4M3FNX2"], rounding="r", saturation="sat"))
    g = f.function()
    values = hostile(FP32, DTYPES["FP16"], RNG, 256).reshape(128, 2)
    a, b = Run({"f": g}, Threads((128, 1, 1)), SimtState(), 100).function(g, [lanes.load(values, FP32)])
    for got, dst, mode, clamp in ((a, "FP16", "trunc", False), (b, "FP8E4M3FN", "rint", True)):
        want = convert(values, FP32, DTYPES[dst], mode, clamp)
        assert same_bits(lanes.store(got, DTYPES[dst]), want, DTYPES[dst]).all()


THREAD_INDEX = """
@pl.function(type=pl.FunctionType.SimtEntry)
def f(n: pl.Scalar[pl.INT32]):
    t = pl.pto.get_tid_x()
    a = pl.div(t, 8)
    b = pl.rem(t, 8)
    c = t // 8
    d = pl.div(n, 8)
    e = pl.rem(n, 8)
    return a, b, c, d, e
"""


def test_division_of_thread_numbers_by_powers_of_two():
    program = parse(THREAD_INDEX)
    out = lower_scalars(program)
    # The thread's number is not negative, the parameter may be: -7 / 8 is 0, -7 >> 3 is -1.
    assert names(out) == ["pto.get_tid_x", "scalar.shr", "scalar.bit_and", "scalar.div", "scalar.rem"]
    for n in (-7, 7, -(2**31)):
        results = []
        for p in (program, out):
            found = Run({"f": p.functions[0]}, Threads((1024, 1, 1)), SimtState(), 1000).function(p.functions[0], [n])
            results.append([r.tolist() for r in found])
        assert results[0] == results[1] and results[0][0] == [t // 8 for t in range(1024)]


def test_facts_pass_through_divisions_masks_and_shifts():
    text = THREAD_INDEX.replace("d = pl.div(n, 8)", "d = pl.div(pl.div(t, 8), 4)").replace(
        "e = pl.rem(n, 8)", "e = pl.rem(n & 255, 16)"
    )
    assert {"scalar.div", "scalar.rem"}.isdisjoint(names(lower_scalars(parse(text))))


@pytest.mark.parametrize("word", ["div", "floordiv", "mod", "rem", "bit_and", "shr", "abs"])
def test_facts_hold(word):
    found = check_values(OPS[f"scalar.{word}"], 400)
    assert found.failures == () and found.values > 100


def test_unsigned_division_needs_no_fact_and_clamps_give_one():
    assert names(lowered(lambda b, x: b.scalar.div(x, const(8, UINT32)), x=UINT32)[1]) == ["scalar.shr"]
    program, out = lowered(lambda b, x: b.scalar.div(b.scalar.max(x, const(0, INT32)), const(16, INT32)), x=INT32)
    assert names(out) == ["llvm.smax", "scalar.shr"]
    assert [run(p, {"x": -33})["return"] for p in (program, out)] == [0, 0]


def test_kept_forms_are_rewritten_or_left():
    b = Builder("f")
    x, v = b.param("x", scalar(FP32)), b.param("v", scalar(DTYPES["FP16X2"]))
    b.ret(b.pto.fmax(x, 1.0), b.pto.sqrt(x), b.pto.fmax(v, v), b.pto.fma(x, x, x))
    program = b.program()
    assert names(lower_scalars(program)) == ["llvm.maxnum", "llvm.sqrt", "pto.fmax", "pto.fma"]
    assert names(lower_scalars(program, compat="keep")) == ["pto.fmax", "pto.sqrt", "pto.fmax", "pto.fma"]


def test_products_and_sums_stay_apart():
    out = lowered(lambda b, x, y: b.scalar.add(b.scalar.mul(x, y), x), x=FP32, y=FP32)[1]
    assert names(out) == ["scalar.mul", "scalar.add"]


def test_all_reduce_combines_as_the_plain_operation():
    for word, intrinsic in (("max", "llvm.maxnum"), ("min", "llvm.minnum"), ("sum", "scalar.add")):
        b = Builder("f", type="pl.FunctionType.SimtEntry")
        x = b.param("x", scalar(FP32))
        b.ret(b.op(f"pto.simt_allreduce_{word}", x))
        program = b.program()
        out = lower_scalars(program)
        assert verify(out) == [] and names(out) == ["pto.shuffle_bfly", intrinsic] * 5
        given = hostile(FP32, FP32, RNG, 64).astype(np.float64)
        a, b = (
            Run({"f": p.functions[0]}, Threads((64, 1, 1)), SimtState(), 1000).function(p.functions[0], [given])[0]
            for p in (program, out)
        )
        assert same_bits(a.astype(np.float32), b.astype(np.float32), FP32).all()


def test_tile_and_scalar_terms_share_one_graph():
    text = """
@pl.function
def f(x: pl.Scalar[pl.FP32], y: pl.Scalar[pl.FP32], a: pl.Tile[[16, 64], pl.FP32]) -> pl.Tile[[16, 64], pl.FP32]:
    m = pl.max(x, y)
    b = pl.tile.adds(a, m)
    n = pl.pto.fmax(x, y)
    c = pl.tile.adds(a, n)
    d = pl.tile.add(b, c)
    return d
"""
    f = parse(text).functions[0]
    (region,) = regions(f.body, frozenset())
    graph = saturate(region, Knowledge(f), Plan(None))
    by_name = {op.result.name: c for op, c in zip(region.ops, graph.op_class)}
    # One maximum however it is written, and so one tile too.
    assert by_name["m"] == by_name["n"] and by_name["b"] == by_name["c"]
    assert names(lower_scalars(parse(text))) == ["llvm.maxnum", "tile.adds", "tile.add"]


RANDOM = (
    "add", "sub", "mul", "max", "min", "div", "rem", "mod", "floordiv", "bit_and", "bit_xor", "shl", "shr", "abs",
    "neg",
)  # fmt: skip


@pytest.mark.parametrize("dtype", [INT32, UINT32, INDEX, DTYPES["INT8"], FP32])
def test_random_programs_mean_the_same(dtype):
    for seed in range(12):
        rng = np.random.default_rng([seed, dtype.bits])
        b = Builder("f")
        values = [b.param(n, scalar(dtype)) for n in "xy"]
        for _ in range(12):
            word = str(rng.choice(RANDOM))
            decl = OPS[f"scalar.{word}"]
            if dtype.name not in decl.scalar.types:
                continue
            arity = len(decl.operand_params)
            picked = [values[int(i)] for i in rng.integers(0, len(values), arity)]
            if arity == 2 and rng.random() < 0.5:
                picked[1] = const(float(rng.integers(-3, 4)) if dtype.is_float else 1 << int(rng.integers(0, 7)), dtype)
            values.append(b.op(decl.name, *picked))
        b.ret(*values[-3:])
        program = b.program()
        out = lower_scalars(program)
        assert verify(out) == []
        assert not {n for n in names(out) if n in ("scalar.max", "scalar.min", "scalar.abs")}
        given = [lanes.load(hostile(dtype, dtype, rng, 512), dtype) for _ in range(2)]
        found = []
        for p in (program, out):
            threads = Run({"f": p.functions[0]}, Threads((512, 1, 1)), SimtState(), 1000)
            with np.errstate(all="ignore"):
                found.append(threads.function(p.functions[0], given))
        for u, v in zip(*found):
            assert same_bits(lanes.store(u, dtype), lanes.store(v, dtype), dtype).all()
