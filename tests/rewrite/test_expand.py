"""Structured expansions: what they make, that they change nothing else, and that doing them twice changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.ir.builder import Builder
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP4, FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, INT32, DType
from tilegg.ir.interp import run
from tilegg.ir.program import Op, Value, walk
from tilegg.ir.types import tensor
from tilegg.rewrite.expand import EXPANSIONS, expand
from tilegg.rules.target import load_target


def program(axis: int, dtype: DType = FP32, loop: bool = False, out: DType = FP8E4M3FN, **attrs: Any) -> Any:
    rows, cols = 32, 64
    b = Builder("quantise", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([rows, cols], dtype))
    q = b.param("q", tensor([rows, cols] if axis == 1 else [cols, rows], out), "Out")
    s = b.param("s", tensor([rows, 2] if axis == 1 else [2, rows], FP8E8M0), "Out")

    def body() -> tuple[Value, Value]:
        t = b.tile.load(x, [0, 0], [rows, cols])
        codes, scales = b.tile.tquant_mx(t, group_axis=axis, dtype=out, **attrs)
        return b.tile.store(codes, [0, 0], q), b.tile.store(scales, [0, 0], s)

    if loop:
        with b.range(2):
            body()
        b.ret(q, s)
    else:
        b.ret(*body())
    return b.program("Mx")


def names(p: Any) -> list[str]:
    return [s.name for s in walk(p.functions[0].body) if isinstance(s, Op)]


@pytest.mark.parametrize("axis", [0, 1])
def test_the_steps_and_their_names(axis: int) -> None:
    p = expand(program(axis))
    assert tilegg.verify(p) == []
    steps = names(p)
    assert "tile.tquant_mx" not in steps
    assert steps.count("tile.tquant_mx_raw") == 1 and steps.count("tile.tmov_x2zz") == 1
    assert steps.count("tile.create") == 3
    assert ("tile.transpose" in steps) == ("tile.transpose_view" in steps) == (axis == 0)
    made = {r.name: r for s in walk(p.functions[0].body) if isinstance(s, Op) for r in s.results}
    rooms = {"max": (1, 64), "scaling": (1, 64), "x2zz": (1, 96)}
    if axis == 0:
        rooms = {"max": (2, 32), "scaling": (2, 32), "x2zz": (1, 32)}
    for what, shape in rooms.items():
        value = made[f"tquant_mx_0__{what}_tmp_v0"]
        assert value.type.shape == shape and value.type.memory == "Vec"
    # The results keep their names and types.
    original = {r.name: r for s in program(axis).functions[0].body if isinstance(s, Op) for r in s.results}
    for name in ("tquant_mx_0", "tquant_mx_1"):
        assert made[name].type == original[name].type


@pytest.mark.parametrize("axis", [0, 1])
def test_scales_that_are_only_stored_are_the_raw_exponents(axis: int) -> None:
    p = expand(program(axis), load_target("a5"))
    assert tilegg.verify(p) == []
    made = {r.name: r for s in walk(p.functions[0].body) if isinstance(s, Op) for r in s.results}
    assert "tile.tmov_x2zz" not in names(p) and made["tquant_mx_1"].type.layout == ()
    assert made["tquant_mx_1"].type.shape == ((32, 2) if axis == 1 else (2, 32))
    assert expand(p, load_target("a5")) is p


def test_scales_with_another_use_are_brought_into_the_order_of_the_matrix_unit() -> None:
    b = Builder("quantise", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([32, 64], FP32))
    s = b.param("s", tensor([32, 2], FP8E8M0), "Out")
    _, scales = b.tile.tquant_mx(b.tile.load(x, [0, 0], [32, 64]), group_axis=1)
    turned = b.tile.transpose_view(scales)
    b.ret(b.tile.store(scales, [0, 0], s))
    p = expand(b.program("Mx"), load_target("a5"))
    assert "tile.tmov_x2zz" in names(p) and turned.type.shape == (2, 32)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("dtype", "out"), [(FP32, FP8E4M3FN), (BF16, FP8E4M3FN), (FP16, FP4)])
@pytest.mark.parametrize("alg", ["ocp", "nv"])
def test_the_expansion_means_the_same(axis: int, dtype: DType, out: DType, alg: str) -> None:
    p = program(axis, dtype, out=out, scale_alg=alg)
    rng = np.random.default_rng(4)
    x = rng.normal(0, 3, (32, 64)) * np.exp2(rng.integers(-9, 9, (32, 64)))
    x[0, :8] = [0.0, -0.0, np.inf, 1e-40, 7.0, 6.0, 448.0, 449.0]
    x[9, 40] = np.nan
    given = {"x": x.astype(np.float32).astype(dtype.storage)}
    want, found = run(p, given), run(expand(p), given)
    for name in ("q", "s"):
        assert np.array_equal(want[name], found[name]), name
    if alg == "ocp" or dtype is FP32:
        lowered = run(tilegg.lower(p, "a5").program, given)
        assert all(np.array_equal(want[name], lowered[name]) for name in ("q", "s"))


def test_twice_is_once_and_nothing_else_changes() -> None:
    once = expand(program(1, loop=True))
    assert expand(once) is once
    assert names(once).count("tile.tquant_mx_raw") == 1
    b = Builder("plain", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([4, 64], FP32))
    b.ret(b.tile.store(b.tile.exp(b.tile.load(x, [0, 0], [4, 64])), [0, 0], x))
    plain = b.program("P")
    assert expand(plain) is plain


def test_names_in_use_are_not_taken() -> None:
    b = Builder("k", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([16, 64], FP32))
    t = b.tile.load(x, [0, 0], [16, 64], name="q__max_tmp_v0")
    b.tile.tquant_mx(t, group_axis=1, name="q")
    b.ret()
    p = expand(b.program("P"))
    assert tilegg.verify(p) == []
    assert sum("__max_tmp_v" in r.name for s in walk(p.functions[0].body) if isinstance(s, Op) for r in s.results) == 2


def test_targets_without_the_instruction_refuse_the_written_operation() -> None:
    with pytest.raises(TileggError) as problem:
        tilegg.lower(program(1), "a2a3")
    found = problem.value.diagnostics[0]
    assert found.code == "TG022" and "tile.tquant_mx" in found.message and "A5 only" in found.message
    assert "pto.tquant.mx" in (found.hint or "")
    with pytest.raises(TileggError, match="OCP") as problem:
        expand(program(1, BF16, scale_alg="nv"), load_target("a5"))
    hint = problem.value.diagnostics[0].hint or ""
    assert 'scale_alg="ocp"' in hint and "lower for" not in hint
    assert expand(program(0, BF16, scale_alg="nv"), load_target("a5"))


def test_every_expansion_needs_an_instruction_that_some_target_has() -> None:
    targets = [load_target(n) for n in tilegg.target_names()]
    for name, entry in EXPANSIONS.items():
        assert any(t.legal(entry.needs, d).ok for t in targets for d in ("FP32", "BF16")), name


def row_update(shape: list[int], numbers: list[int], source: list[int], dtype: DType, valid: int | None = None) -> Any:
    b = Builder("k", type="pl.FunctionType.InCore")
    x, s, o = (b.param(n, tensor(d, dtype), way) for n, d, way in
               (("x", shape, "In"), ("s", source, "In"), ("o", shape, "Out")))  # fmt: skip
    i = b.param("i", tensor(numbers, INT32))
    corner = [0] * len(shape)
    whole = b.tile.load(x, corner, shape)
    if valid is not None:
        whole = b.tile.set_validshape(whole, valid, shape[1])
    rows = b.tile.load(i, [0, 0], numbers)
    written = b.tile.scatter_update(whole, rows, b.tile.load(s, corner, source))
    b.ret(b.tile.store(written, corner, o))
    return b.program("P")


@pytest.mark.parametrize("target", ["a5", "a2a3"])
@pytest.mark.parametrize(
    ("shape", "numbers", "source", "dtype"),
    [
        ([32, 64], [1, 8], [8, 64], FP32),
        ([32, 64], [2, 8], [16, 64], FP16),
        ([32, 64], [1, 8], [8, 64], INT8),
        ([4, 8, 1, 32], [2, 8], [2, 8, 1, 32], BF16),
    ],
)
def test_updated_rows_become_a_scatter(
    shape: list[int], numbers: list[int], source: list[int], dtype: DType, target: str
) -> None:
    p = row_update(shape, numbers, source, dtype)
    expanded = expand(p, load_target(target))
    assert tilegg.verify(expanded) == []
    assert "tile.scatter" in names(expanded) and "tile.scatter_update" not in names(expanded)
    rng = np.random.default_rng(6)
    given = {
        "x": rng.normal(0, 9, shape).astype(dtype.storage),
        "s": rng.normal(0, 9, source).astype(dtype.storage),
        "i": rng.permutation(32)[: np.prod(numbers)].reshape(numbers).astype(np.int32),
    }
    want = run(p, given)["o"]
    flat = given["x"].reshape(32, shape[-1]).copy()
    flat[given["i"].ravel()] = given["s"].reshape(-1, shape[-1])
    assert np.array_equal(want, flat.reshape(shape))
    assert np.array_equal(run(expanded, given)["o"], want)
    lowered = tilegg.lower(p, target)
    assert np.array_equal(run(lowered.program, given)["o"], want)
    assert "pto.tscatter" in tilegg.emit(lowered)


def test_updates_whose_positions_do_not_fit_stay_as_written() -> None:
    for p in (row_update([1024, 64], [1, 8], [8, 64], FP16), row_update([32, 64], [1, 8], [8, 64], FP32, valid=16)):
        assert expand(p) is p
    assert "tile.scatter" in names(expand(row_update([512, 64], [1, 8], [8, 64], FP16)))
