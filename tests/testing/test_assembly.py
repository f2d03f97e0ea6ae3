"""Assembly executed on bytes: right for what the emitter writes, and what would be wrong in it is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import tilegg
from testing_kernels import cast, kernel
from tilegg.testing import NotEquivalent, assert_lowering_correct, check_assembly

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("name", ["quant_int8", "rmsnorm", "rope_index", "fp4"])
def test_examples_are_executed(name: str) -> None:
    (report,) = assert_lowering_correct(EXAMPLES / f"{name}.py", "a5", inputs=2)
    assert report.assembly is not None and report.assembly.left_out == {}
    assert [r.runs for r in report.assembly.executed.values()] == [4]


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("pl.tile.sub(t, pl.tile.muls(t, 3.0))", lambda text: text.replace("pto.tsub ", "pto.tadd ")),
        ("pl.tile.cast(pl.tile.cast(t, target_type=pl.BF16, mode='rint'), target_type=pl.FP32)",
         lambda text: text.replace("round_mode RINT", "round_mode FLOOR")),
        ("pl.tile.adds(t, 1.5)", lambda text: text.replace("1.500000e+00", "1.500001e+00")),
        ("pl.tile.exp(t)", lambda text: text.replace("offsets = [%c0, %c0]", "offsets = [%c0, %c1]", 1)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("arch", ["a5", "a2a3"])
def test_wrong_assembly_is_found(
    line: str, change: Callable[[str], str], arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = kernel("FP32", "FP32", f"r = {line}")
    assert_lowering_correct(text, arch, inputs=2)
    from tilegg.testing import assembly as module

    class Changed(module._Machine):
        def __init__(self, text: str, seed: int) -> None:
            assert change(text) != text
            super().__init__(change(text), seed)

    monkeypatch.setattr(module, "_Machine", Changed)
    with pytest.raises(NotEquivalent, match=f"{arch}, the lowered k and its assembly"):
        assert_lowering_correct(text, arch, inputs=2)


def test_undefined_elements_are_no_difference() -> None:
    wide = kernel("INT8", "INT8", "r = pl.tile.set_validshape(t, 16, 64)", valid=", valid_shape=[16, 40]")
    (report,) = assert_lowering_correct(wide, "a5", inputs=3)
    assert list(report.assembly.executed) == ["k"]


def test_padding_that_is_read_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum over the physical row instead of the valid one."""
    from tilegg.testing import assembly as module

    text = kernel("FP32", "FP32", "r = pl.tile.row_expand(t, pl.tile.row_sum(t))", valid=", valid_shape=[16, 40]")
    assert_lowering_correct(text, "a5", inputs=2, facts={"x": (-8, 8)})

    class Whole(module._Machine):
        def pto_trowsum(self, op, values):
            source = values[0]
            valid, source.valid[:] = list(source.valid), source.type.shape
            self.instruction(op, "trowsum", values)
            source.valid[:] = valid

    monkeypatch.setattr(module, "_Machine", Whole)
    with pytest.raises(NotEquivalent):
        assert_lowering_correct(text, "a5", inputs=2, facts={"x": (-8, 8)})


def test_what_is_left_out_is_told() -> None:
    path = EXAMPLES / "distributed_allreduce.py"
    made = tilegg.lower(tilegg.parse(path.read_text(), path.name), "a5")
    report = check_assembly(made)
    assert report.executed == {} and "distributed tensor" in report.left_out["kernel"]
    assert report.text == tilegg.emit(made)


def test_programs_without_assembly() -> None:
    (report,) = assert_lowering_correct(cast("FP32", "FP16"), "a5", assembly=False)
    assert report.assembly is None
    with pytest.raises(tilegg.TileggError) as caught:
        assert_lowering_correct(kernel("FP32", "FP32", "r = pl.tile.adds(t, s)", extra="s: pl.Scalar[pl.INT4], "), "a5")
    assert caught.value.diagnostics[0].code in ("TG023", "TG007")


@pytest.mark.parametrize("arch", ["a5", "a2a3"])
@pytest.mark.parametrize("rows", [2, 40])
@pytest.mark.parametrize(
    ("line", "dtypes", "facts"),
    [
        ("pl.tile.quant(t0, t1)", "FP32 FP32 INT8", (8, 8)),
        ("pl.tile.quant(t0, t1, t2)", "FP32 FP32 FP32 UINT8", (8, 8, 90)),
        ("pl.tile.quant(t0, t1, tmp=pl.tile.create([{rows}, 1], dtype=pl.FP32))", "FP32 FP32 INT8", None),
        ("pl.tile.quant(pl.tile.adds(t0, 1.0), pl.tile.row_sum(t1))", "FP32 FP32 INT8", (8, 8)),
        ("pl.tile.dequant(t0, t1, t2)", "INT8 FP32 FP32 FP32", None),
        ("pl.tile.dequant(t0, t1, t2)", "INT16 FP32 FP32 FP32", None),
        ("pl.tile.tri(-1, [{rows}, 1], dtype=pl.FP32)", "FP32 FP32", None),
        ("pl.tile.tri(-3, [{rows}, 1], dtype=pl.FP32, upper=True)", "FP32 FP32", None),
    ],
)
def test_columns_beside_a_value_per_row(
    line: str, dtypes: str, facts: tuple[int, ...] | None, rows: int, arch: str
) -> None:
    """Each row of one element has a scale of its own, though the column is one line."""
    text = columns(line.format(rows=rows), rows, *dtypes.split())
    ranges = {f"x{i}": (-limit, limit) for i, limit in enumerate(facts or ())}
    (report,) = assert_lowering_correct(text, arch, inputs=4, facts=ranges)
    assert report.assembly is not None and report.assembly.left_out == {}
    assert [r.runs for r in report.assembly.executed.values()] == [4]


def columns(line: str, rows: int, *dtypes: str, wide: int = 1) -> str:
    """Return a kernel of column tiles: sources t0, t1, ..., and what ``line`` makes of them, ``wide`` columns."""
    ins = [f"pl.Tensor[[{rows}, 1], pl.{d}]" for d in dtypes[:-1]]
    out = f"pl.Tensor[[{rows}, {wide}], pl.{dtypes[-1]}]"
    params = [*(f"x{i}: {t}" for i, t in enumerate(ins)), f"o: pl.Out[{out}]"]
    loads = [f"t{i} = pl.tile.load(x{i}, [0, 0], [{rows}, 1])" for i in range(len(ins))]
    body = "\n        ".join([*loads, f"r = {line}", "return pl.tile.store(r, [0, 0], o)"])
    head = "import pypto.language as pl\n\n@pl.program\nclass P:\n    @pl.function\n"
    return f"{head}    def k(self, {', '.join(params)}) -> {out}:\n        {body}\n"


@pytest.mark.parametrize("arch", ["a5", "a2a3"])
def test_a_scale_whose_place_the_result_takes(arch: str) -> None:
    text = columns("pl.tile.dequant(t0, t1, t2)", 2, "INT8", "FP32", "FP32", "FP32").replace(
        "        r = pl.tile.dequant(t0, t1, t2)\n",
        "        for i, (s,) in pl.range(3, init_values=(t1,)):\n"
        "            r = pl.yield_(pl.tile.dequant(t0, s, t2))\n",
    )
    assert_lowering_correct(text, arch, inputs=4, facts={"x1": (-2, 2), "x2": (-9, 9)})


def test_a_triangles_column_at_a_run_time_diagonal_is_refused() -> None:
    text = columns("pl.tile.tri(s, [8, 1], dtype=pl.FP32)", 8, "FP32", "FP32").replace(
        "(self, ", "(self, s: pl.Scalar[pl.INT32], "
    )
    with pytest.raises(tilegg.TileggError) as caught:
        assert_lowering_correct(text, "a5", inputs=2)
    found = caught.value.diagnostics[0]
    assert found.code == "TG023" and "one line" in found.reason and "transpose" in found.hint


@pytest.mark.parametrize("arch", ["a5", "a2a3"])
def test_a_valid_region_beyond_the_tile_has_a_reason(arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilegg.testing import assembly as module

    text = kernel("FP32", "FP32", "r = pl.tile.set_validshape(t, s, 64)", extra="s: pl.Scalar[pl.INDEX], ")
    (report,) = assert_lowering_correct(text, arch, inputs=3)
    assert report.assembly is not None and list(report.assembly.executed) == ["k"]

    class Further(module._Machine):
        def pto_subview(self, op, values):
            return super().pto_subview(op, [*values[:3], values[3] + 64, *values[4:]])

    monkeypatch.setattr(module, "_Machine", Further)
    with pytest.raises(NotEquivalent, match=r"no machine can: a valid region .* room for \(16, 64\)"):
        assert_lowering_correct(text, arch, inputs=3)


@pytest.mark.parametrize("arch", ["a5", "a2a3"])
def test_inputs_keep_the_promises_of_the_source(arch: str) -> None:
    """Rounding to odd is exact for small numbers only; the lowered program no longer says that they are small."""
    lines = ("t = pl.tile.assume(t, 0, 32)", "r = pl.tile.cast(t, target_type=pl.FP32, mode='odd')")
    (report,) = assert_lowering_correct(kernel("INT64", "FP32", *lines), arch, inputs=16, contract="exact")
    assert all(r.runs == 16 for r in report.acting.values()) and list(report.acting) == ["k"]
    assert report.assembly is not None and [r.runs for r in report.assembly.executed.values()] == [4]
    # A range that is promised of a result is not drawn, but watched.
    lines = ("t = pl.tile.assume(pl.tile.adds(t, 1), 0, 32)", lines[1])
    text = kernel("INT32", "FP32", *lines, shape=(1, 2))
    (report,) = assert_lowering_correct(text, arch, inputs=64, contract="exact")
    runs = [r.runs for r in (*report.acting.values(), *report.functions.values())]
    assert len(runs) == 2 and runs[0] == runs[1] and 0 < runs[0] < 64


@pytest.mark.parametrize("arch", ["a5", "a2a3"])
@pytest.mark.parametrize("rows", [2, 40])
@pytest.mark.parametrize(
    ("line", "dtypes", "wide", "limits"),
    [
        ("pl.tile.histogram(t0, t1, byte=0)", "UINT16 UINT8 UINT32", 256, {"x0": (0, 600), "x1": (0, 2)}),
        ("pl.tile.concat_idx(t0, t1, t2, t3)", "INT32 INT32 INT32 INT32 INT32", 2, {"x2": (4, 4), "x3": (4, 4)}),
        ("pl.tile.fillpad_expand(t0, [{rows}, 64])", "FP32 FP32", 64, {}),
        ("pl.tile.gather_compare(t0, 3, t1, cmp_mode=0, out_cols=8)[0]", "INT32 INT32 INT32", 8, {"x0": (2, 4)}),
    ],
)
def test_columns_are_rows_to_instructions_that_keep_rows_apart(
    line: str, dtypes: str, wide: int, limits: dict[str, tuple[int, int]], rows: int, arch: str
) -> None:
    if "histogram" in line:
        if arch == "a2a3":
            return
        rows = 32
    line = line.format(rows=rows)
    if line.endswith("[0]"):
        line = line.replace("t1", f"pl.tile.create([{rows}, 8], dtype=pl.INT32)")
    text = columns(line, rows, *dtypes.split(), wide=wide)
    (report,) = assert_lowering_correct(text, arch, inputs=4, facts=limits)
    assert report.assembly is not None and report.assembly.left_out == {}


@pytest.mark.parametrize(
    ("line", "dtypes", "wide", "word"),
    [
        ("pl.tile.mgather(x0, t1)", "FP32 INT32 FP32", 1, "one column"),
        ("pl.tile.histogram(t0, t1, byte=0)", "UINT16 UINT8 UINT32", 256, "filter bytes"),
    ],
)
def test_columns_that_the_assembler_does_not_take_are_refused(line: str, dtypes: str, wide: int, word: str) -> None:
    with pytest.raises(tilegg.TileggError, match=word) as caught:
        assert_lowering_correct(columns(line, 40, *dtypes.split(), wide=wide), "a5", inputs=2, facts={"x1": (0, 1)})
    found = caught.value.diagnostics[0]
    assert found.code == "TG023" and found.reason and found.hint


@pytest.mark.parametrize("dtype", ["FP8E4M3FN", "FP8E5M2", "BF16"])
@pytest.mark.parametrize("read", ["pl.tile.read(t, [3, 13])", "pl.tensor.read(x, [3, 13])"])
def test_single_elements_are_numbers_in_registers(dtype: str, read: str) -> None:
    copy = kernel(dtype, dtype, f"q = {read}", "r = pl.tile.write(t, [0, 9], q)", shape=(8, 32))
    assert_lowering_correct(copy, "a5", inputs=3)
    literal = kernel(dtype, dtype, "r = pl.tile.write(t, [0, 9], -1.6)", shape=(8, 32))
    assert_lowering_correct(literal, "a5", inputs=2)
    used = kernel(dtype, "FP32", f"q = pl.scalar.cast({read}, pl.FP32)", "r = pl.tile.full([8, 32], pl.FP32, 1.0)",
                  "r = pl.tile.muls(r, q)", shape=(8, 32))  # fmt: skip
    assert_lowering_correct(used, "a5", inputs=3)
