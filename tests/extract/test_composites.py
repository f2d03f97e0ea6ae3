"""Composite operations through the whole lowering: what they become on each target, at what cost, with what values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.extract.explain import explain
from tilegg.extract.lowered import Lowered
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import parse_dtype
from tilegg.ir.op import OPS
from tilegg.ir.program import Op, Program, walk
from tilegg.rewrite.audit import audit
from tilegg.rules.target import load_target

ARCHES = ("a5", "a2a3")
ANY = (*ARCHES, None)


def kernel(*lines: str, dtype: str = "FP32", shape: tuple[int, ...] = (64, 64), valid: str = "") -> Program:
    """Loads ``t``, runs the lines, stores ``y``; ``valid`` is the text of a valid shape."""
    zeros = ", ".join("0" for _ in shape)
    text = f"""
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[{list(shape)}, pl.{dtype}], out: pl.Out[pl.Tensor[{list(shape)}, pl.{dtype}]]):
    t = pl.tile.load(x, [{zeros}], {list(shape)}{', ' + valid if valid else ''})
"""
    text += "".join(f"    {line}\n" for line in lines)
    return tilegg.parse(f"{text}    return pl.tile.store(y, [{zeros}], out)\n")


def names(lowered: Lowered) -> list[str]:
    """The instructions between load and store."""
    ops = [s.name.removeprefix("tile.") for s in walk(lowered.program.functions[0].body) if isinstance(s, Op)]
    return [n for n in ops if n not in ("load", "store", "reinterpret_view")]


def cycles(lowered: Lowered, *what: str) -> float:
    """The cycles of the named instructions, of all but load and store without names."""
    return sum(
        i.cycles for f in lowered.functions for i in f.instructions
        if (i.op.name[5:] in what if what else i.op.name[5:] not in ("load", "store"))
    )  # fmt: skip


def run(program: Program, x: Any, dtype: str = "FP32") -> Any:
    """The stored result for rows of input, padded with zeros."""
    whole = np.zeros((64, 64), parse_dtype(dtype).storage)
    values = np.asarray(x, whole.dtype).reshape(-1)
    whole.reshape(-1)[: values.size] = values
    out = tilegg.run(program, {"x": whole, "out": np.zeros_like(whole)})["out"]
    return np.asarray(out).reshape(-1)[: values.size]


# -- sine and cosine -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ANY)
@pytest.mark.parametrize("of", ["sin", "cos"])
def test_a_recipe_takes_the_composites_place(of: str, arch: str | None) -> None:
    program = kernel(f"y = pl.tile.{of}(t)")
    lowered = tilegg.lower(program, arch)
    assert not any(OPS[f"tile.{n}"].composite for n in names(lowered)) and "approx" not in names(lowered)
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-6434, 6434, 2000), rng.uniform(-131072, 131072, 2000)]).astype(np.float32)
    true = getattr(np, of)(x.astype(np.float64))
    assert np.abs(run(lowered.program, x) - true).max() < 2e-7
    assert np.isnan(run(lowered.program, [math.nan, math.inf])).all()
    with np.errstate(all="ignore"):
        assert np.isnan(run(program, [math.nan, math.inf])).all()


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("of", "least"), [("sin", 31), ("cos", 34)])
def test_the_chosen_recipe_beats_the_pages(of: str, least: int, arch: str) -> None:
    lowered = tilegg.lower(kernel(f"y = pl.tile.{of}(t)"), arch)
    assert lowered.plain.instructions == least + 2
    moved = cycles(lowered, "load", "store")
    assert (lowered.totals.cycles - moved) <= 0.60 * (lowered.plain.cycles - moved)
    assert lowered.totals.instructions - 2 <= 21 and lowered.optimum == "proved"


@pytest.mark.parametrize("arch", ARCHES)
def test_sine_and_cosine_share_their_reduction(arch: str) -> None:
    one = [cycles(tilegg.lower(kernel(f"y = pl.tile.{of}(t)"), arch)) for of in ("sin", "cos")]
    both = tilegg.lower(kernel("a = pl.tile.sin(t)", "b = pl.tile.cos(t)", "y = pl.tile.mul(a, b)"), arch)
    assert cycles(both) < 0.9 * sum(one)
    assert names(both).count("axpy") == 2
    x = np.linspace(-3000, 3000, 4000, dtype=np.float32)
    true = np.sin(x.astype(np.float64)) * np.cos(x.astype(np.float64))
    assert np.abs(run(both.program, x) - true).max() < 4e-7


@pytest.mark.parametrize("arch", ANY)
@pytest.mark.parametrize(("bound", "most"), [(1.5, 11), (0.75, 8)])
def test_known_ranges_shorten_recipes(bound: float, most: int, arch: str | None) -> None:
    for of in ("sin", "cos"):
        lowered = tilegg.lower(kernel(f"u = pl.tile.assume(t, -{bound}, {bound})", f"y = pl.tile.{of}(u)"), arch)
        assert len(names(lowered)) <= most, names(lowered)
        x = np.linspace(-bound, bound, 3000, dtype=np.float32)
        assert np.abs(run(lowered.program, x) - getattr(np, of)(x.astype(np.float64))).max() < 2e-7


def test_minus_zero_stays_where_promised() -> None:
    lowered = tilegg.lower(kernel("y = pl.tile.sin(t)"), "a5")
    assert np.signbit(run(lowered.program, [-0.0]))[0] and not np.signbit(run(lowered.program, [0.0]))[0]


@pytest.mark.parametrize("arch", ANY)
def test_lowering_twice_is_lowering_once(arch: str | None) -> None:
    program = kernel("m = pl.tile.cmps(t, 0.5, cmp_type=4)", "u = pl.tile.select(m, 0.25, t)", "y = pl.tile.cos(u)")
    once = tilegg.lower(program, arch).program
    assert tilegg.lower(once, arch).program == once


def test_intermediates_are_named_after_the_result() -> None:
    lowered = tilegg.lower(kernel("angle = pl.tile.sin(t)", "y = pl.tile.neg(angle)"), "a5")
    made = [r.name for s in walk(lowered.program.functions[0].body) if isinstance(s, Op) for r in s.results]
    helpers = [n for n in made if n.startswith("angle__") and "_tmp_v" in n]
    assert "angle" in made and len(helpers) >= 18 and len(set(made)) == len(made)


def test_handwritten_arithmetic_does_not_merge_with_a_recipe() -> None:
    """The same steps written by hand have their own value: the sine's class holds the sine."""
    by_hand = [
        "u = pl.tile.mul(v, v)", "p = pl.tile.muls(u, 2.604926501e-06)", "p1 = pl.tile.adds(p, -0.0001980894471)",
        "p2 = pl.tile.mul(p1, u)", "p3 = pl.tile.adds(p2, 0.00833304934)", "p4 = pl.tile.mul(p3, u)",
        "p5 = pl.tile.adds(p4, -0.1666665792)", "p6 = pl.tile.mul(p5, u)", "p7 = pl.tile.adds(p6, 1.0)",
        "q = pl.tile.mul(v, p7)",
    ]  # fmt: skip
    program = kernel("v = pl.tile.assume(t, -1.5, 1.5)", "s = pl.tile.sin(v)", *by_hand, "y = pl.tile.sub(s, q)")
    report = audit(program, load_target("a5"), 3)
    assert report.ok, report.problems
    graphs: list[Any] = []
    def keep(name: str, graph: Any) -> None:
        if name == "saturate":
            graphs.append(graph)

    lowered = tilegg.lower(program, "a5", after=keep, memo=None)
    classes = [graphs[0].op_class[i] for i in (1, 11)]
    assert classes[0] != classes[1]
    assert names(lowered).count("mul") == 5, "the steps themselves are shared"


@pytest.mark.parametrize("arch", ARCHES)
def test_explanations_state_the_bound_and_the_alternatives(arch: str) -> None:
    text = explain(tilegg.lower(kernel("y = pl.tile.sin(t)"), arch), alternatives=6).render()
    assert "by sin.fused: " in text and "error at most" in text and "sin(-0) is -0" in text
    assert "recipe sin.fused-tight" in text and "recipe sin.reference" in text
    assert "on the way to y" in text


@pytest.mark.parametrize("arch", ARCHES)
def test_the_objective_accuracy_takes_the_smallest_stated_error(arch: str) -> None:
    program = kernel("y = pl.tile.sin(t)")
    plain, exact = tilegg.lower(program, arch), tilegg.lower(program, arch, objective="accuracy")
    assert "by sin.fused-tight: " in explain(exact).render() and "by sin.fused: " in explain(plain).render()
    assert cycles(plain) < cycles(exact)
    x = np.random.default_rng(3).uniform(-131072, 131072, 4000).astype(np.float32)
    true = np.sin(x.astype(np.float64))
    assert np.abs(run(exact.program, x) - true).max() < np.abs(run(plain.program, x) - true).max()


def test_other_dtypes_are_refused_where_they_are_written() -> None:
    with pytest.raises(TileggError, match="takes FP32 only"):
        kernel("y = pl.tile.sin(t)", dtype="FP16")


# -- select --------------------------------------------------------------------------------------------------------

GT = "m = pl.tile.cmps(t, 0.5, cmp_type=4)"
PATTERN = np.array([-3.0, 0.5, 9.0, 0.75, math.nan, -0.0, math.inf], np.float32)


@pytest.mark.parametrize("arch", ANY)
def test_tile_and_scalar_is_one_instruction(arch: str | None) -> None:
    lowered = tilegg.lower(kernel(GT, "y = pl.tile.select(m, t, 0.25)"), arch)
    assert names(lowered) == ["cmps", "sels"]
    assert run(lowered.program, PATTERN).tolist() == [0.25, 0.25, 9.0, 0.75, 0.25, 0.25, math.inf]


@pytest.mark.parametrize("arch", ANY)
def test_two_tiles_are_selected_as_they_are(arch: str | None) -> None:
    lowered = tilegg.lower(kernel(GT, "v = pl.tile.neg(t)", "y = pl.tile.select(m, t, v)"), arch)
    assert names(lowered) == ["cmps", "neg", "sel"]
    assert run(lowered.program, PATTERN)[:4].tolist() == [3.0, -0.5, 9.0, 0.75]


@pytest.mark.parametrize("arch", ARCHES)
def test_a_scalar_where_the_mask_holds_inverts_the_mask(arch: str) -> None:
    program = kernel(GT, "y = pl.tile.select(m, 0.25, t)")
    lowered = tilegg.lower(program, arch)
    assert names(lowered) == ["cmps", "mask_not", "sels"]
    want = [-3.0, 0.5, 0.25, 0.25, math.nan, -0.0, 0.25]
    assert np.array_equal(run(lowered.program, PATTERN), want, equal_nan=True)
    assert np.array_equal(run(program, PATTERN), want, equal_nan=True)
    assert np.signbit(run(lowered.program, PATTERN))[5]


def test_inverting_the_mask_is_far_cheaper_than_spreading_the_scalar() -> None:
    lowered = tilegg.lower(kernel(GT, "y = pl.tile.select(m, 0.25, t)"), "a2a3")
    moved = cycles(lowered, "load", "store", "cmps")
    assert lowered.totals.cycles - moved <= 0.35 * (lowered.plain.cycles - moved)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("how", "known"), [(0, False), (1, False), (2, True), (5, True)])
def test_a_comparison_with_an_inverse_needs_no_inverted_mask(how: int, known: bool, arch: str) -> None:
    """Equality always has one; order has one where no NaN can occur."""
    lines = ["v = pl.tile.assume(t, -100, 100)" if known else "v = pl.tile.neg(t)"]
    lines += ["w = pl.tile.exp(t)", f"m = pl.tile.cmps(v, 0.5, cmp_type={how})", "y = pl.tile.select(m, 0.25, w)"]
    lowered = tilegg.lower(kernel(*lines), arch)
    assert "mask_not" not in names(lowered) and names(lowered)[-1] == "sels"
    x = np.array([-0.5, 0.5, 1.0, -7.0], np.float32)
    assert run(lowered.program, x).tolist() == run(kernel(*lines), x).tolist()


@pytest.mark.parametrize("arch", ARCHES)
def test_clamps_become_maximum_and_minimum_where_no_nan_is_left(arch: str) -> None:
    lines = ["lo = pl.tile.cmps(v, -1.0, cmp_type=2)", "a = pl.tile.select(lo, -1.0, v)",
             "hi = pl.tile.cmps(a, 1.0, cmp_type=4)", "y = pl.tile.select(hi, 1.0, a)"]  # fmt: skip
    clamped = tilegg.lower(kernel("v = pl.tile.assume(t, -1000, 1000)", *lines), arch)
    assert "sels" not in names(clamped) and "maximums" in names(clamped)
    assert run(clamped.program, [-3.0, 0.5, 9.0, -0.0]).tolist() == [-1.0, 0.5, 1.0, 0.0]
    kept = tilegg.lower(kernel("v = pl.tile.neg(t)", *lines), arch)
    assert "maximums" not in names(kept) and names(kept).count("sels") == 2
    assert math.isnan(run(kept.program, [math.nan])[0])


@pytest.mark.parametrize("arch", ARCHES)
def test_bf16_takes_the_road_over_two_tiles(arch: str) -> None:
    lines = ["f = pl.tile.cast(t, target_type=pl.FP32)", "m = pl.tile.cmps(f, 0.5, cmp_type=4)"]
    lowered = tilegg.lower(kernel(*lines, "y = pl.tile.select(m, t, 0.25)", dtype="BF16"), arch)
    assert names(lowered)[-2:] == ["expands", "sel"]


def test_eight_bit_integers_are_refused_where_no_instruction_takes_them() -> None:
    lines = ["m = pl.tile.cmps(f, 0.5, cmp_type=4)", "y = pl.tile.select(m, t, 3)"]
    program = kernel("h = pl.tile.cast(t, target_type=pl.FP16)", "f = pl.tile.cast(h, target_type=pl.FP32)", *lines,
                     dtype="INT8")  # fmt: skip
    with pytest.raises(TileggError, match=r"select is not legal on a2a3") as refused:
        tilegg.lower(program, "a2a3")
    assert "tsel" in refused.value.diagnostics[0].reason
    assert names(tilegg.lower(program, "a5"))[-1] == "sels"
    assert names(tilegg.lower(program, None))[-1] == "sels"


@pytest.mark.parametrize("arch", ANY)
def test_more_than_two_dimensions_take_the_road_over_two_tiles(arch: str | None) -> None:
    for line in ("y = pl.tile.select(m, t, 0.25)", "y = pl.tile.select(m, 0.25, t)"):
        assert names(tilegg.lower(kernel(GT, line, shape=(2, 8, 64)), arch)) == ["cmps", "expands", "sel"]


@pytest.mark.parametrize("arch", ANY)
@pytest.mark.parametrize("line", ["y = pl.tile.select(m, t, 0.25)", "y = pl.tile.select(m, 0.25, t)"])
def test_valid_shapes_are_kept(line: str, arch: str | None) -> None:
    lowered = tilegg.lower(kernel(GT, line, valid="[50, 41]"), arch)
    results = [s.result.type for s in walk(lowered.program.functions[0].body) if isinstance(s, Op)]
    tiles = [t for t in results[:-1] if t.dtype.name == "FP32"]
    assert all(t.valid_shape == (50, 41) for t in tiles)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("how", range(6))
def test_integer_order_is_right_on_every_target(how: int, arch: str) -> None:
    lines = [f"m = pl.tile.cmps(t, 0, cmp_type={how})", "o = pl.tile.muls(t, 0)", "e = pl.tile.adds(o, 1)",
             "y = pl.tile.select(m, e, 0)"]  # fmt: skip
    program = kernel(*lines, dtype="INT32")
    lowered = tilegg.lower(program, arch)
    compare = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)[how]
    x = np.array([-1, 0, 1, -(2**31), 2**31 - 1, 2**24 + 1], np.int32)
    assert run(lowered.program, x, "INT32").tolist() == compare(x, 0).astype(int).tolist()
    used = {s.attrs.get("cmp_type", 0) for s in walk(lowered.program.functions[0].body)
            if isinstance(s, Op) and s.name in ("tile.cmp", "tile.cmps")}  # fmt: skip
    assert arch == "a5" or used <= {0, 1}


@pytest.mark.parametrize("arch", ARCHES)
def test_the_branch_not_taken_does_not_leak(arch: str) -> None:
    """Softplus with a threshold: log1p(exp x) overflows where x is taken."""
    lines = ["m = pl.tile.cmps(t, 20.0, cmp_type=4)", "e = pl.tile.exp(t)", "e1 = pl.tile.adds(e, 1.0)",
             "l = pl.tile.log(e1)", "y = pl.tile.select(m, t, l)"]  # fmt: skip
    lowered = tilegg.lower(kernel(*lines), arch)
    got = run(lowered.program, [21.0, 1.0, 200.0])
    assert got[0] == 21.0 and abs(got[1] - 1.3132617) < 1e-6 and got[2] == 200.0


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    "lines",
    [
        ["y = pl.tile.sin(t)"],
        ["u = pl.tile.maximums(pl.tile.minimums(t, 0.7), -0.7)", "y = pl.tile.add(pl.tile.sin(u), pl.tile.cos(u))"],
        [GT, "y = pl.tile.select(m, 0.25, t)"],
    ],
)
def test_audit_finds_nothing(lines: list[str], arch: str) -> None:
    report = audit(kernel(*lines, valid="[50, 41]"), load_target(arch), 5)
    assert report.ok, report.problems


def test_the_audit_notices_a_recipe_that_breaks_its_bound() -> None:
    from dataclasses import replace

    from tilegg.rewrite.mutate import Mutant, applied
    from tilegg.rules.rule import RULES, Bound

    rule = RULES["sin.fused"]
    small = replace(rule, bound=Bound(((131072.0, 1e-9),)))
    with applied(Mutant("small bound", "rule", ((RULES, rule.name, small),), rule=rule.name)):
        report = audit(kernel("y = pl.tile.sin(t)"), load_target("a5"), 5)
    assert any("stated error" in p.text for p in report.problems)
