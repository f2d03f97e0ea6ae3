"""Scalars beside tiles in one lowering: index arithmetic by shifts, extrema by reductions, threads in one module."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import tilegg
from tilegg.extract.explain import explain
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Op, Program, walk
from tilegg.ir.text import parse
from tilegg.rules.target import load_target

ARCHES = ("a2a3", "a5")


def names(program: Program) -> list[str]:
    return [s.name for f in program.functions for s in walk(f.body) if isinstance(s, Op)]


INDEXED = """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    b = pl.tile.get_block_idx()
    for i in pl.range(0, 16):
        row = pl.div(i, 4) * 8 + pl.rem(b, 8)
        col = (n // 16) % 4 * 16
        t = pl.tile.load(x, [row, col], [8, 16])
        pl.tile.store(pl.tile.adds(t, 1.0), [pl.div(n, 8), 0], o)
"""


@pytest.mark.parametrize("arch", ARCHES)
def test_index_arithmetic_of_kernels_becomes_shifts_and_masks(arch: str) -> None:
    lowered = tilegg.lower(parse(INDEXED), arch)
    found = names(lowered.program)
    # Counters and blocks are not negative; the parameter may be, so that its truncating division stays.
    assert found.count("scalar.shr") == 2 and found.count("scalar.bit_and") == 2 and found.count("scalar.div") == 1
    assert not {"scalar.rem", "scalar.mod", "scalar.floordiv"} & set(found)
    text = tilegg.emit(lowered, arch)
    assert "arith.shrsi" in text and "arith.andi" in text and "arith.remsi" not in text
    assert "backend" not in text


def best(rows: int, start: str = "", assume: bool = True) -> str:
    reads = [f"pl.tile.read(m, [{i}, 0])" for i in range(rows)]
    first = start or reads.pop(0)
    lines = [f"    best = pl.max(best, {r})" for r in reads]
    bound = "    t = pl.tile.assume(t, -1000.0, 1000.0)\n" * assume
    return f"""
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[{rows}, 64], pl.FP32], o: pl.Out[pl.Tensor[[{rows}, 64], pl.FP32]]):
    t = pl.tile.load(x, [0, 0], [{rows}, 64])
{bound}    tmp = pl.tile.create([{rows}, 64], dtype=pl.FP32)
    m = pl.tile.row_max(t, tmp)
    best = {first}
""" + "\n".join([*lines, "    pl.tile.store(pl.tile.adds(t, best), [0, 0], o)"])


def maxima(rows: int) -> np.ndarray:
    x = np.zeros((rows, 64), np.float32)
    x[:, 5] = [3.0, 9.0, 2.0, -1.0, 4.0, 8.5, 0.0, -3.0][:rows]
    return x


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("start", ["", "-3.0e38"])
def test_the_best_of_eight_row_maxima_is_a_reduction_where_that_is_cheaper(arch: str, start: str) -> None:
    program = parse(best(8, start))
    lowered = tilegg.lower(program, arch)
    found = names(lowered.program)
    assert found.count("tile.read") == 1 and "tile.col_max" in found and lowered.totals.cycles < lowered.plain.cycles
    assert found.count("scalar.max") == bool(start)
    x = maxima(8)
    for p in (program, lowered.program):
        out = tilegg.run(p, {"x": x, "o": np.zeros_like(x)})["o"]
        assert out[0, 0] == 9.0 and (out == x + 9).all()
    assert "scalar.max.reduced" in explain(lowered).render()
    tilegg.emit(lowered, arch)


def test_two_reads_are_cheaper_than_a_reduction() -> None:
    lowered = tilegg.lower(parse(best(2)), "a5")
    assert names(lowered.program).count("tile.read") == 2 and "tile.col_max" not in names(lowered.program)


def test_where_nan_may_occur_the_elements_are_compared() -> None:
    program = parse(best(8, assume=False))
    lowered = tilegg.lower(program, "a5")
    assert names(lowered.program).count("tile.read") == 8 and names(lowered.program).count("scalar.max") == 7
    x = maxima(8)
    x[4, :] = np.nan
    assert tilegg.run(lowered.program, {"x": x, "o": np.zeros_like(x)})["o"][1, 5] == 18.0


@pytest.mark.parametrize("rows", [2, 8])
def test_without_float_extrema_of_scalars(rows: int) -> None:
    target = load_target("a5")
    less = {k: v for k, v in target.capabilities.items() if k != "float_scalar_extrema"}
    program = parse(best(rows))
    from tilegg.extract.lower import Options, _Lowering

    lowered = _Lowering(program, replace(target, path="less", capabilities=less), Options(memo=None)).run()
    found = names(lowered.program)
    assert "scalar.max" not in found and ("tile.col_max" in found if rows == 8 else "scalar.select" in found)
    x = maxima(rows)
    assert tilegg.run(lowered.program, {"x": x, "o": np.zeros_like(x)})["o"][0, 0] == 9.0


MIXED = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.SimtEntry)
    def entry(p: pl.InOut[pl.Ptr[pl.FP32, "gm"]], n: pl.Scalar[pl.INT32]):
        t = pl.pto.get_tid_x()
        x = pl.pto.ldg(p, pl.rem(t, 16))
        pl.pto.stg(pl.pto.fmax(x, pl.pto.sqrt(x)), p, self.scaled(n, t))

    @pl.function
    def scaled(n: pl.Scalar[pl.INT32], t: pl.Scalar[pl.INT32]) -> pl.Scalar[pl.INT32]:
        return pl.max(n, t)

    @pl.function(type=pl.FunctionType.InCore)
    def main(
        x: pl.InOut[pl.Tensor[[16, 64], pl.FP32]], p: pl.InOut[pl.Ptr[pl.FP32, "gm"]],
        o: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        pl.pto.simt_launch("entry", [16, 1, 1], x, 3)
        t = pl.tile.load(x, [0, 0], [16, 64])
        with pl.section_simt(16, 1, 1):
            i = pl.pto.get_laneid()
            pl.pto.stg(1.0, p, pl.max(i, 3))
        pl.tile.store(pl.tile.adds(t, pl.max(1.0, 2.0)), [0, 0], o)
"""


def test_threads_and_tiles_are_lowered_and_written_together() -> None:
    program = parse(MIXED)
    lowered = tilegg.lower(program, "a5")
    by_function = {f.name: [s.name for s in walk(f.body) if isinstance(s, Op)] for f in lowered.program.functions}
    # SIMT code, also where it only is called, takes LLVM's forms; kernels keep the plain ones, sections do not.
    assert {"llvm.maxnum", "llvm.sqrt", "scalar.bit_and"} <= set(by_function["entry"])
    assert by_function["scaled"] == ["llvm.smax"]
    assert "llvm.smax" in by_function["main"] and "scalar.max" in by_function["main"]
    text = tilegg.emit(lowered, "a5")
    for line in (
        'pto.backend = "vpto"', "attributes {pto.simt_entry, pto.simt_max_threads = 16 : i32}", "call @scaled(",
        "pto.simt_launch @entry<<<", "pto.section.simt<<<16, 1, 1>>>", "pto.tadds ins(", '"llvm.intr.smax"(',
    ):  # fmt: skip
        assert line in text, line
    kept = tilegg.lower(program, "a5", compat="keep")
    assert {"pto.fmax", "pto.sqrt"} <= set(names(kept.program))
    with pytest.raises(TileggError, match=r"TG022.*pto\.get_tid_x: a2a3 does not have hivm"):
        tilegg.lower(program, "a2a3")
    with pytest.raises(TileggError, match=r"TG040.*compatibility"):
        tilegg.lower(program, "a5", compat="none")  # type: ignore[arg-type]


def test_code_in_the_wrong_place_is_not_lowered() -> None:
    for text in (
        '@pl.function\ndef f(p: pl.Ptr[pl.FP32, "gm"]):\n    x = pl.pto.ldg(p, 0)\n',
        "@pl.function(type=pl.FunctionType.SimtEntry)\ndef f():\n    a = pl.tile.create([8, 8], dtype=pl.FP32)\n",
    ):
        with pytest.raises(TileggError, match=r"TG05[56]"):
            tilegg.lower(parse(text), "a5")


def test_mathematics_of_scalars_need_the_vector_backend() -> None:
    alone = parse("@pl.function(type=pl.FunctionType.InCore)\ndef f(x: pl.Scalar[pl.FP32]):\n    y = pl.sqrt(x)\n")
    with pytest.raises(TileggError, match=r"TG023.*C\+\+ backend"):
        tilegg.emit(alone, "a5")
    text = (
        '@pl.function(type=pl.FunctionType.InCore)\ndef f(x: pl.Scalar[pl.FP32], p: pl.InOut[pl.Ptr[pl.FP32, "ub"]]):\n'
        "    pl.pto.store(pl.sqrt(x), p, 0)\n"
    )
    found = tilegg.emit(tilegg.lower(parse(text), "a5"), "a5")
    assert '"llvm.intr.sqrt"(%x)' in found and "pto.store" in found


POINTERS = """
@pl.function(type=pl.FunctionType.InCore)
def k(p: pl.InOut[pl.Ptr[pl.FP32, "gm"]], n: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
    x = pl.max(pl.load(p, n), pl.llvm.minnum(pl.pto.load(p, 1), 2.0))
    pl.store(x, pl.pto.addptr(p, n), 3)
    t = pl.tile.full([8, 64], dtype=pl.FP32, value=0.0)
    pl.tile.store(pl.tile.adds(t, x), [0, 0], o)
"""


@pytest.mark.parametrize("arch", ARCHES)
def test_kernels_read_global_memory_through_the_scalar_unit(arch: str) -> None:
    program = parse(POINTERS)
    text = tilegg.emit(tilegg.lower(program, arch), arch)
    assert text.count("pto.load_scalar") == 2 and "pto.store_scalar" in text and "pto.addptr" in text
    assert "backend" not in text and "arith.minnumf" in text and "llvm." not in text
    p = np.arange(16, dtype=np.float32)
    given = {"p": p.copy(), "n": 5, "o": np.zeros((8, 64), np.float32)}
    found = tilegg.run(tilegg.lower(program, arch).program, given)
    assert found["p"][8] == 5.0 and found["o"][0, 0] == 5.0


def test_a_target_without_the_vector_backend() -> None:
    ub = parse(POINTERS.replace('"gm"', '"ub"'))
    assert "vpto" in tilegg.emit(tilegg.lower(ub, "a5"), "a5")
    with pytest.raises(TileggError, match=r"TG023.*k needs the vector backend"):
        tilegg.emit(tilegg.lower(ub, "a2a3"), "a2a3")
