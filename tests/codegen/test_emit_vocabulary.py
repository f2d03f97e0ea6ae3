"""Assembly of the wider vocabulary: read back, verified, and executed against the interpreter bit for bit."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.codegen.pto import api as pto
from tilegg.ir.builder import Builder
from tilegg.ir.convert import decode
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP4, FP8E4M3FN, FP16, FP32, INT8, INT16, INT32, UINT8, UINT16, UINT32
from tilegg.ir.interp import run
from tilegg.ir.types import TensorType, tensor

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import from_memory, to_memory, values_for
from emit_kernels import MX_KERNELS
from tilegg.testing.machine_vocabulary import VocabularyMachine

BOTH = ("a2a3", "a5")
Case = tuple[Callable[..., Any], list[tuple[list[int], Any, Any]], list[tuple[list[int], Any]], tuple[str, ...]]


def below(limit: int, distinct: bool = False) -> Callable[..., np.ndarray]:
    """Draw positions below a limit."""

    def draw(dtype: Any, shape: list[int], rng: np.random.Generator) -> np.ndarray:
        count = int(np.prod(shape))
        found = rng.permutation(limit)[:count] if distinct else rng.integers(0, limit, count)
        return found.reshape(shape).astype(dtype.storage)

    return draw


def blocks(limit: int) -> Callable[..., np.ndarray]:
    """Draw byte offsets of blocks."""
    return lambda dtype, shape, rng: (32 * rng.integers(0, limit, shape)).astype(dtype.storage)


def pairs(run: int) -> Callable[..., np.ndarray]:
    """Draw FP32 pairs (value, index) in sorted runs of that many elements."""

    def draw(dtype: Any, shape: list[int], rng: np.random.Generator) -> np.ndarray:
        out = np.empty(shape, np.float32)
        for start in range(0, shape[1], run):
            values = np.sort(rng.normal(0, 3, run // 2).astype(np.float32))[::-1]
            out[0, start : start + run : 2] = values
            out[0, start + 1 : start + run : 2] = rng.permutation(run // 2).astype(np.uint32).view(np.float32)
        return out

    return draw


def full(value: int) -> Callable[..., np.ndarray]:
    """Draw one number."""
    return lambda dtype, shape, rng: np.full(shape, value, dtype.storage)


def f(*shape: int) -> tuple[list[int], Any, Any]:
    return list(shape), FP32, None


CASES: dict[str, Case] = {
    "gather": (lambda b, x, i: b.tile.gather(x, i), [f(16, 32), ([8, 16], INT32, below(512))], [([8, 16], FP32)], BOTH),
    "gather_half": (
        lambda b, x, i: b.tile.gather(x, i), [([4, 32], FP16, None), ([4, 16], INT32, below(128))], [([4, 16], FP16)],
        BOTH,
    ),
    "gatherb": (
        lambda b, x, o: b.tile.gatherb(x, o), [f(16, 32), ([2, 8], UINT32, blocks(64))], [([2, 64], FP32)], BOTH,
    ),
    "gather_mask": (lambda b, x: b.tile.gather_mask(x, mask_pattern=4), [f(16, 64)], [([16, 16], FP32)], BOTH),
    "gather_mask_bits": (
        lambda b, x: b.tile.gather_mask(x, mask_pattern=2, output_dtype=UINT32), [f(16, 32)], [([16, 16], UINT32)],
        BOTH,
    ),
    "gather_compare": (
        lambda b, x: b.tile.gather_compare(x, 0.5, b.tile.create([16, 32], dtype=UINT8), cmp_mode=4, out_cols=16),
        [f(16, 32)], [([16, 16], INT32), ([1, 16], INT32)], BOTH,
    ),
    "scatter": (
        lambda b, d, x, i: b.tile.scatter(d, x, i),
        [f(16, 32), f(8, 16), ([8, 16], INT32, below(512, True))], [([16, 32], FP32)], BOTH,
    ),
    "scatter_keeps_the_target": (
        lambda b, d, x, i: (b.tile.scatter(d, x, i), d),
        [f(16, 32), f(8, 16), ([8, 16], INT32, below(512, True))], [([16, 32], FP32), ([16, 32], FP32)], BOTH,
    ),
    "scatter_mask": (
        lambda b, d, x: b.tile.scatter_mask(d, x, mask_pattern=1), [f(16, 32), f(16, 16)], [([16, 32], FP32)], BOTH,
    ),
    "sort32": (
        lambda b, x, i: b.tile.sort32(x, i), [f(2, 64), ([2, 64], UINT32, below(1000))], [([2, 128], FP32)], BOTH,
    ),
    "sort32_ragged_signed": (
        lambda b, x, i: b.tile.sort32(x, i), [f(2, 40), ([2, 40], INT32, below(1000))], [([2, 80], FP32)], BOTH,
    ),
    "sort32_half": (
        lambda b, x, i: b.tile.sort32(x, i), [([2, 32], FP16, None), ([2, 32], UINT32, below(99))], [([2, 128], FP16)],
        BOTH,
    ),
    "mrgsort_runs": (
        lambda b, x: b.tile.mrgsort(x, block_len=64), [([1, 512], FP32, pairs(64))], [([1, 512], FP32)], BOTH,
    ),
    "mrgsort_lists": (
        lambda b, x, y, z: b.tile.mrgsort(x, y, z),
        [([1, n], FP32, pairs(n)) for n in (64, 128, 32)], [([1, 224], FP32)], BOTH,
    ),
    "concat_idx": (
        lambda b, x, y, i, j: b.tile.concat_idx(x, y, i, j),
        [f(16, 32), f(16, 32), ([16, 1], INT32, full(128)), ([16, 1], INT32, full(64))], [([16, 64], FP32)], BOTH,
    ),
    "concat_idx_unsigned": (
        lambda b, x, y, i, j: b.tile.concat_idx(x, y, i, j),
        [([16, 32], UINT16, None), ([16, 32], UINT16, None), ([16, 1], INT32, full(8)), ([16, 1], INT32, full(64))],
        [([16, 64], UINT16)], BOTH,
    ),
    "concat_idx_unsigned_columns": (
        lambda b, x, y, i, j: b.tile.concat_idx(x, y, i, j),
        [([16, 1], UINT32, None), ([16, 1], UINT32, None), ([16, 8], INT16, full(4)), ([16, 8], INT16, full(4))],
        [([16, 2], UINT32)], BOTH,
    ),
    "scatter_column_over_rows": (
        lambda b, d, x, i: b.tile.scatter(d, x, i),
        [f(64, 8), f(16, 1), ([16, 1], INT32, below(512, True))], [([64, 8], FP32)], BOTH,
    ),
    "scatter_column_into_line": (
        lambda b, d, x, i: b.tile.scatter(d, x, i),
        [f(1, 64), f(16, 1), ([16, 1], INT32, below(64, True))], [([1, 64], FP32)], BOTH,
    ),
    "gather_compare_unsigned_counts": (
        lambda b, x: b.tile.gather_compare(
            x, 0.5, b.tile.create([16, 32], dtype=UINT8), cmp_mode=4, out_cols=32, count_dtype=UINT32
        ),
        [f(16, 32)], [([16, 32], INT32), ([1, 16], UINT32)], BOTH,
    ),
    "quant": (lambda b, x, s: b.tile.quant(x, s), [f(32, 64), f(32, 1)], [([32, 64], INT8)], BOTH),
    "quant_offset": (
        lambda b, x, s, o: b.tile.quant(x, s, o), [f(32, 64), f(32, 1), f(32, 1)], [([32, 64], UINT8)], BOTH,
    ),
    "dequant": (
        lambda b, x, s, o: b.tile.dequant(x, s, o), [([32, 64], INT8, None), f(32, 1), f(32, 1)], [([32, 64], FP32)],
        BOTH,
    ),
    "axpy": (lambda b, y, x: b.tile.axpy(y, x, 1.1), [f(16, 64), f(16, 64)], [([16, 64], FP32)], BOTH),
    "axpy_keeps_what_is_read": (
        lambda b, y, x: (b.tile.axpy(y, x, 1.1), y), [f(16, 64), f(16, 64)], [([16, 64], FP32), ([16, 64], FP32)], BOTH,
    ),
    "axpy_widens": (
        lambda b, y, x: b.tile.axpy(y, x, 1.5), [f(16, 64), ([16, 64], FP16, None)], [([16, 64], FP32)], BOTH,
    ),
    "argmin": (lambda b, x: b.tile.row_argmin(x), [f(16, 64)], [([16, 1], INT32)], BOTH),
    "col_argmax": (lambda b, x: b.tile.col_argmax(x), [f(16, 64)], [([1, 64], INT32)], BOTH),
    "part_max": (
        lambda b, x, y: b.tile.part_max(b.tile.set_validshape(x, 16, 40), y), [f(16, 64), f(16, 64)],
        [([16, 64], FP32)], BOTH,
    ),
    "part_argmax": (
        lambda b, x, y, i, j: b.tile.part_argmax(x, y, i, j),
        [f(16, 64), f(16, 64), ([16, 64], INT32, None), ([16, 64], INT32, None)], [([16, 64], FP32), ([16, 64], INT32)],
        BOTH,
    ),
    "pow": (lambda b, x: b.tile.pow(b.tile.abs(x), b.tile.abs(x)), [f(16, 64)], [([16, 64], FP32)], BOTH),
    "pows": (lambda b, x: b.tile.pows(b.tile.abs(x), 2.0), [f(16, 64)], [([16, 64], FP32)], BOTH),
    "tri": (lambda b: b.tile.tri(2, [16, 32], dtype=FP16), [], [([16, 32], FP16)], BOTH),
    "histogram": (
        lambda b, x, i: b.tile.histogram(x, i, byte=1),
        [([32, 32], UINT16, None), ([32, 1], UINT8, None)], [([32, 256], UINT32)], ("a5",),
    ),
    "histogram_wide": (
        lambda b, x, i: b.tile.histogram(x, i, byte=1),
        [([16, 64], UINT32, below(1 << 18)), ([2, 1], UINT8, below(2))], [([16, 256], UINT32)], ("a5",),
    ),
    "histogram_wide_low": (
        lambda b, x, i: b.tile.histogram(x, i, byte=2),
        [([16, 64], UINT32, below(1 << 18)), ([1, 1], UINT8, full(0))], [([16, 256], UINT32)], ("a5",),
    ),
    "assemble": (lambda b, x, y: b.tile.assemble(x, y, [4, 8]), [f(16, 32), f(8, 8)], [([16, 32], FP32)], BOTH),
    "extract": (lambda b, x: b.tile.extract(x, 4, 8, [8, 8]), [f(16, 32)], [([8, 8], FP32)], BOTH),
    "fillpad_expand": (
        lambda b, x: b.tile.fillpad_expand(b.tile.set_validshape(x, 16, 10), [32, 32]), [f(16, 16)], [([32, 32], FP32)],
        BOTH,
    ),
    "quant_mx_left": (
        lambda b, x: b.tile.tquant_mx(x, group_axis=1)[0], [f(32, 64)], [([32, 64], FP8E4M3FN)], ("a5",),
    ),
    "quant_mx_right": (
        lambda b, x: b.tile.tquant_mx(x, group_axis=0)[0], [f(32, 64)], [([64, 32], FP8E4M3FN)], ("a5",),
    ),
    "quant_mx_half": (
        lambda b, x: b.tile.tquant_mx(x, group_axis=1)[0], [([16, 64], BF16, None)], [([16, 64], FP8E4M3FN)], ("a5",),
    ),
    "quant_mx_nv": (
        lambda b, x: b.tile.tquant_mx(x, group_axis=1, scale_alg="nv")[0], [f(32, 128)], [([32, 128], FP8E4M3FN)],
        ("a5",),
    ),
    "quant_mx_fp4": (
        lambda b, x: b.tile.tquant_mx(x, group_axis=1, dtype=FP4)[0], [([32, 64], BF16, None)], [([32, 64], FP4)],
        ("a5",),
    ),
    "quant_mx_raw": (
        lambda b, x: b.tile.tquant_mx_raw(
            x, b.tile.create([1, 64], dtype=FP32), b.tile.create([1, 64], dtype=FP32), group_axis=1
        ),
        [f(32, 64)], [([32, 64], INT8), ([1, 64], UINT8)], ("a5",),
    ),
    "quant_mx_raw_rows": (
        lambda b, x: b.tile.tquant_mx_raw(
            x, b.tile.create([2, 32], dtype=FP16), b.tile.create([2, 32], dtype=FP16), group_axis=0
        ),
        [([64, 32], FP16, None)], [([64, 32], INT8), ([2, 32], UINT8)], ("a5",),
    ),
}  # fmt: skip


def kernel(case: Case) -> Any:
    """Load every input, compute, store every result."""
    body, ins, outs, _ = case
    b = Builder("kernel", type="pl.FunctionType.InCore")
    params = [b.param(f"x{i}", tensor(shape, dtype)) for i, (shape, dtype, _) in enumerate(ins)]
    targets = [b.param(f"out{i}", tensor(shape, dtype), "Out") for i, (shape, dtype) in enumerate(outs)]
    tiles = [b.tile.load(p, [0, 0], list(shape)) for p, (shape, _, _) in zip(params, ins)]
    made = body(b, *tiles)
    made = made if isinstance(made, tuple) else (made,)
    b.ret(*[b.tile.store(r, [0, 0], t) for r, t in zip(made, targets)])
    return b.program("P")


def draw(program: Any, makers: dict[str, Any], seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    inputs = {}
    for p in program.functions[0].params:
        t = p.value.type
        assert isinstance(t, TensorType)
        make = makers.get(p.value.name)
        inputs[p.value.name] = values_for(t.dtype, t.shape, rng) if make is None else make(t.dtype, list(t.shape), rng)
    return inputs


def execute(program: Any, target: str, inputs: dict[str, np.ndarray]) -> str:
    """Emit, read back, verify, run both and compare every output."""
    lowered = tilegg.lower(program, target)
    text = tilegg.emit(lowered)
    again = pto.parse_pto(text)
    pto.verify_pto(again)
    assert pto.print_pto(again) == text
    f0 = program.functions[0]
    expected = run(program, inputs)
    memory = {p.value.name: to_memory(inputs[p.value.name], p.value.type.dtype) for p in f0.params}
    VocabularyMachine(text, 1).run(f0.name, memory)
    for p in f0.params:
        if p.direction == "In":
            continue
        t = p.value.type
        found = from_memory(memory[p.value.name], t.dtype, t.shape)
        want = np.asarray(expected[p.value.name])
        if t.dtype.is_float:
            same = want.view(f"u{want.itemsize}") == found.view(f"u{want.itemsize}")
            nan = np.isnan(decode(want, t.dtype)) & np.isnan(decode(found, t.dtype))
            assert (same | nan).all(), p.value.name
        else:
            assert np.array_equal(want, found), p.value.name
    return text


@pytest.mark.parametrize("name", CASES)
def test_assembly_does_what_the_interpreter_does(name: str) -> None:
    case = CASES[name]
    program = kernel(case)
    makers = {f"x{i}": make for i, (_, _, make) in enumerate(case[1]) if make is not None}
    for target in case[3]:
        execute(program, target, draw(program, makers, 7))
    for target in set(BOTH) - set(case[3]):
        with pytest.raises(TileggError) as problem:
            tilegg.lower(program, target)
        assert problem.value.diagnostics[0].code == "TG022"


def test_rows_gathered_from_and_scattered_to_tensors() -> None:
    b = Builder("rows", type="pl.FunctionType.InCore")
    table = b.param("table", tensor([64, 32], FP32))
    at = b.param("at", tensor([1, 8], INT32))
    out = b.param("out", tensor([8, 32], FP32), "Out")
    rows = b.tile.mgather(table, b.tile.load(at, [0, 0], [1, 8]))
    b.ret(b.tile.store(rows, [0, 0], out))
    program = b.program("P")
    b = Builder("place", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([8, 16], FP32))
    at = b.param("at", tensor([8, 16], INT32))
    out = b.param("out", tensor([64, 32], FP32), "InOut")
    b.ret(b.tile.mscatter(b.tile.load(x, [0, 0], [8, 16]), b.tile.load(at, [0, 0], [8, 16]), out))
    other = b.program("P")
    for target in BOTH:
        execute(program, target, draw(program, {"at": below(64)}, 3))
        execute(other, target, draw(other, {"at": below(2048, True)}, 3))


def test_an_accumulation_in_place_needs_no_copy() -> None:
    """One instruction where the old value is dead, a copy more where it is read again."""
    text = tilegg.emit(tilegg.lower(kernel(CASES["axpy"]), "a5"))
    assert "pto.tmov" not in text and text.count("pto.alloc_tile") == 2
    text = tilegg.emit(tilegg.lower(kernel(CASES["axpy_keeps_what_is_read"]), "a5"))
    assert text.count("pto.tmov") == 1


def test_quantisation_has_four_outs_and_room_for_the_scales() -> None:
    text = tilegg.emit(tilegg.lower(kernel(CASES["quant_mx_left"]), "a5"))
    line = next(x for x in text.splitlines() if "pto.tquant.mx" in x)
    outs = line.split("outs(")[1].split(" : ")
    assert outs[0].count("%") == 4
    assert "quant_type MXFP8" in line and "axis1" in line
    # 64 groups of a tile of more than 1024 elements: twice 64 scales.
    assert "1x128xf32, valid=1x64" in line
    assert "tmov" not in text  # the scales are not used, so nothing moves them


@pytest.mark.parametrize("name", MX_KERNELS)
def test_scales_leave_the_kernel(name: str) -> None:
    """In the tensor's order, without the move to the matrix unit's."""
    program = tilegg.parse(MX_KERNELS[name], f"{name}.py")
    text = execute(program, "a5", draw(program, {}, 5))
    assert "pto.tquant.mx" in text and "tmov" not in text
    assert tilegg.lower(program, "a5").totals.instructions == len(re.findall(r"^ +pto\.t", text, re.M))


def test_exponents_are_brought_into_the_order_of_the_matrix_unit() -> None:
    for name, shape in (("mx_exponents", "32x2"), ("mx_exponents_of_rows", "32x2")):
        text = tilegg.emit(tilegg.parse(MX_KERNELS[name], f"{name}.py"), "a5")
        pto.verify_pto(pto.parse_pto(text))
        line = next(x for x in text.splitlines() if "pto.tmov" in x)
        assert f"outs(%boxes : !pto.tile_buf<vec, {shape}xui8, slayout=row_major, fractal=32>)" in line


def _scales(line: str, layout: str = "", width: int = 2) -> str:
    return (
        "import pypto.language as pl\n@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(x: pl.Tensor[[32, 64], pl.FP32], s: pl.Out[pl.Tensor[[32, {width}], pl.FP8E8M0{layout}]]):\n"
        "    c, e = pl.tile.tquant_mx(pl.tile.load(x, [0, 0], [32, 64]), group_axis=1, dtype=pl.FP8E4M3FN)\n"
        f"    {line}\n    return pl.tile.store(e, [0, 0], s)\n"
    )


@pytest.mark.parametrize(
    ("text", "words", "hint"),
    [
        (_scales("m = pl.tile.move(e, target_memory=pl.Mem.Vec)\n    e = m"), "only be stored", "load it"),
        (_scales("pass", ", pl.TensorLayout.MX_A_ZZ"), "boxes", "lie row by row"),
        (_scales("pass", width=8), "parts of the rows", "[M, 2] of their own"),
    ],
)
def test_scales_that_cannot_be_stored(text: str, words: str, hint: str) -> None:
    with pytest.raises(TileggError) as problem:
        tilegg.emit(tilegg.lower(tilegg.parse(text), "a5"))
    found = problem.value.diagnostics[0]
    assert found.code == "TG023" and words in found.message and hint in found.hint


@pytest.mark.parametrize("dtype", [FP32, INT16])
def test_lines_are_stored_as_rows_that_fill_no_blocks(dtype: Any) -> None:
    case: Case = (
        lambda b, x: b.tile.reshape(x, [8, 6]), [([1, 48], dtype, None)], [([8, 6], dtype)], BOTH,
    )  # fmt: skip
    for target in BOTH:
        execute(kernel(case), target, draw(kernel(case), {}, 1))


def test_retyped_bytes_can_only_be_stored() -> None:
    case: Case = (
        lambda b, x: b.tile.cast(b.tile.tquant_mx(x, group_axis=1)[0], target_type=FP32), [f(32, 64)],
        [([32, 64], FP32)], ("a5",),
    )  # fmt: skip
    with pytest.raises(TileggError) as problem:
        tilegg.emit(tilegg.lower(kernel(case), "a5"))
    assert problem.value.diagnostics[0].code == "TG023" and "only be stored" in problem.value.diagnostics[0].message


def test_positions_need_rows_without_gaps() -> None:
    """A source that shares its width with a narrower dtype has padded rows, where positions mean other elements."""
    case: Case = (
        lambda b, x, i: b.tile.gather(b.tile.cast(b.tile.cast(x, target_type=INT8), target_type=FP16), i),
        [([4, 16], FP16, None), ([4, 16], INT32, below(64))], [([4, 16], FP16)], BOTH,
    )  # fmt: skip
    with pytest.raises(TileggError) as problem:
        tilegg.emit(tilegg.lower(kernel(case), "a5"))
    assert problem.value.diagnostics[0].code == "TG023" and "positions" in problem.value.diagnostics[0].message


@pytest.mark.parametrize(
    ("body", "dtype", "target", "words"),
    [
        (lambda b, x: b.tile.muladd_dst(x, x, x), FP32, "a5", "the assembler has not"),
        (lambda b, x: b.tile.fused_muladd_relu(x, x, x), FP16, "a2a3", "the assembler has not"),
        (lambda b, x: b.tile.subrelu(x, x), FP32, "a5", "the assembler has not"),
        (lambda b, x: b.tile.addrelu_conv(x, x, target_type=INT8), INT16, "a5", "the assembler has not"),
        (lambda b, x: b.tile.addrelu(x, x), FP32, "a5", "taddrelu"),
        (lambda b, x: b.tile.addrelu(x, x), FP32, "a2a3", "no lowering"),
        (lambda b, x: b.tile.addc(x, x, x), FP32, "a5", "no device backend"),
    ],
)
def test_instructions_the_assembler_lacks_are_refused(body: Any, dtype: Any, target: str, words: str) -> None:
    b = Builder("kernel", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([16, 64], dtype))
    made = body(b, b.tile.load(x, [0, 0], [16, 64]))
    out = b.param("out", tensor([16, 64], made.type.dtype), "Out")
    b.ret(b.tile.store(made, [0, 0], out))
    with pytest.raises(TileggError) as problem:
        tilegg.lower(b.program("P"), target)
    assert words in str(problem.value)
