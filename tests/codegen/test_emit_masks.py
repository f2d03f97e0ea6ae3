"""What is a mask in assembly: the results of comparisons and of work on their bits, and nothing by its dtype alone."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check

TARGETS = ("a2a3", "a5")


def kernel(shape: list[int], dtype: str, *lines: str, to: list[int] | None = None, out: str = "") -> str:
    """Load FP32 numbers ``t`` and two tiles ``a`` and ``b`` of a dtype; store ``y``."""
    at, size, made = [0] * len(shape), list(shape), list(to or shape)
    tensors = "".join(f", {name}: pl.Tensor[{size}, pl.{dtype}]" for name in "ab")
    return (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(t: pl.Tensor[{size}, pl.FP32]{tensors}, out: pl.Out[pl.Tensor[{made}, pl.{out or dtype}]]):\n"
        + "".join(f"    {name} = pl.tile.load({name}, {at}, {size})\n" for name in "tab")
        + "".join(f"    {line}\n" for line in lines)
        + f"    return pl.tile.store(y, {[0] * len(made)}, out)\n"
    )


COMPARED = "m = pl.tile.cmps(t, 0.5, cmp_type=4)"


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "UINT16", "UINT32", "FP16", "BF16"])
@pytest.mark.parametrize("shape", [[16, 64], [2, 16, 64], [3, 7, 32], [2, 2, 4, 64], [16, 1], [1, 1024]])
def test_bytes_that_were_selected_are_no_mask(shape: list[int], dtype: str) -> None:
    program = tilegg.parse(kernel(shape, dtype, COMPARED, "y = pl.tile.select(m, a, b)"))
    check(tilegg.lower(program, "a5"), "a5")
    if dtype not in ("INT8", "UINT8"):
        check(tilegg.lower(program, "a2a3"), "a2a3")


def test_bytes_that_were_selected_get_another_shape() -> None:
    lines = [COMPARED, "r = pl.tile.select(m, a, b)", "y = pl.tile.reshape(r, [1, 1024])"]
    check(tilegg.lower(tilegg.parse(kernel([16, 64], "UINT8", *lines, to=[1, 1024])), "a5"), "a5")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "number"),
    [("UINT8", 200), ("UINT16", 65535), ("UINT32", 4294967295), ("BF16", 0.5)],
)
@pytest.mark.parametrize("shape", [[2, 16, 64], [16, 64], [2, 2, 4, 32], [16, 1]])
@pytest.mark.parametrize("side", ["true", "false"])
def test_scalars_beside_tiles_of_any_rank(side: str, shape: list[int], dtype: str, number: float, target: str) -> None:
    chosen = f"{number}, b" if side == "true" else f"a, {number}"
    program = tilegg.parse(kernel(shape, dtype, COMPARED, f"y = pl.tile.select(m, {chosen})"))
    if (dtype, target) == ("UINT8", "a2a3"):
        with pytest.raises(TileggError, match="tsel on UINT8"):
            tilegg.lower(program, target)
    else:
        check(tilegg.lower(program, target), target)


@pytest.mark.parametrize("target", TARGETS)
def test_unsigned_tiles_are_filled_under_their_signed_name(target: str) -> None:
    line = "y = pl.tile.full([16, 64], dtype=pl.UINT32, value=4000000000)"
    text = check(tilegg.lower(tilegg.parse(kernel([16, 64], "UINT32", line)), target), target)
    assert re.search(r"pto\.texpands ins\(%\w+ : i32\) outs\(%\w+ : !pto\.tile_buf<vec, 16x64xi32>\)", text)


#: Masks that come to a selection in other ways.
WAYS = {
    "and": ["m = pl.tile.and_(m, pl.tile.cmps(t, 2.0, cmp_type=2))"],
    "xor": ["m = pl.tile.xor(m, pl.tile.cmps(t, 2.0, cmp_type=2), pl.tile.create([16, 32], dtype=pl.UINT8))"],
    "not": ["m = pl.tile.mask_not(m)"],
    "moved": ["m = pl.tile.move(m, target_memory=pl.Mem.Vec)"],
    "narrowed": ["m = pl.tile.set_validshape(m, 16, 8)"],
    "bytes": ["m = pl.tile.and_(m, pl.tile.expands(m, 85))"],
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("way", WAYS)
def test_masks_stay_masks(way: str, target: str) -> None:
    if way == "bytes" and target == "a2a3":
        return  # no instruction of A2/A3 fills bytes
    text = kernel([16, 64], "FP32", COMPARED, *WAYS[way], "y = pl.tile.sel(m, a, b)")
    check(tilegg.lower(tilegg.parse(text), target), target)


@pytest.mark.parametrize("way", sorted(set(WAYS) - {"bytes", "narrowed"}))
def test_masks_of_columns_stay_masks(way: str) -> None:
    text = kernel([16, 1], "FP32", COMPARED, *WAYS[way], "y = pl.tile.select(m, a, b)")
    check(tilegg.lower(tilegg.parse(text), "a5"), "a5")


def test_the_narrowed_mask_of_a_column() -> None:
    lines = [
        COMPARED, "m = pl.tile.set_validshape(m, 9, 1)", "a = pl.tile.set_validshape(a, 9, 1)",
        "b = pl.tile.set_validshape(b, 9, 1)", "y = pl.tile.select(m, a, b)",
    ]  # fmt: skip
    check(tilegg.lower(tilegg.parse(kernel([16, 1], "FP32", *lines)), "a5"), "a5")


def test_the_folded_mask_of_a_tile_of_rank_3() -> None:
    lines = [
        COMPARED, "m = pl.tile.reshape(m, [16, 32])", "a = pl.tile.reshape(a, [16, 256])",
        "b = pl.tile.reshape(b, [16, 256])", "y = pl.tile.select(m, a, b)",
    ]  # fmt: skip
    check(tilegg.lower(tilegg.parse(kernel([2, 8, 256], "FP32", *lines, to=[16, 256])), "a5"), "a5")


@pytest.mark.parametrize(
    ("shape", "line", "words"),
    [
        ([16, 256], "y = pl.tile.reshape(m, [1, 512])", "divided otherwise"),
        ([16, 1], "y = pl.tile.slice(m, [1, 32], [0, 0])", "read by tile.slice"),
        ([16, 1], "y = pl.tile.ands(m, 1)", "read by tile.ands"),
        ([16, 1], "y = m", "cannot be stored"),
    ],
)
def test_bytes_of_masks_that_lie_otherwise_are_refused(shape: list[int], line: str, words: str) -> None:
    made = {"reshape": [1, 512], "slice": [1, 32]}.get(line.split("(")[0].rpartition(".")[2], [16, 32])
    with pytest.raises(TileggError) as problem:
        tilegg.emit(tilegg.lower(tilegg.parse(kernel(shape, "FP32", COMPARED, line, to=made, out="UINT8")), "a5"))
    found = problem.value.diagnostics[0]
    assert found.code == "TG023" and words in found.message and found.hint


@pytest.mark.parametrize("line", ["y = m", "y = pl.tile.slice(m, [8, 32], [8, 0])", "y = pl.tile.ors(m, 3)"])
def test_bytes_of_masks_of_rows_can_be_read(line: str) -> None:
    rows = 8 if "slice" in line else 16
    text = kernel([16, 256], "FP32", COMPARED, line, to=[rows, 32], out="UINT8")
    check(tilegg.lower(tilegg.parse(text), "a5"), "a5")


@pytest.mark.parametrize(
    ("form", "given", "made"),
    [
        ("sel(m, a, b, s)", "[1, 32], dtype=pl.UINT8", "1x16xui32"),
        ("sels(m, a, s, 1.0)", "[1, 64], dtype=pl.INT32", "1x64xf32"),
        ("sels(m, a, s, 1.0)", "[1, 8], dtype=pl.FP32", "1x64xf32"),
        ("sel(m, a, b, s)", "[1, 16], dtype=pl.INT32", "1x16xi32"),
        ("sels(m, a, s, 1.0)", "[1, 64], dtype=pl.FP32", "1x64xf32"),
    ],
)
def test_scratch_tiles_of_selections_fit_the_target_or_others_are_made(form: str, given: str, made: str) -> None:
    lines = [COMPARED, f"s = pl.tile.create({given})", f"y = pl.tile.{form}"]
    program = tilegg.parse(kernel([16, 64], "FP32", *lines))
    check(tilegg.lower(program, "a5"), "a5")
    lowered = tilegg.lower(program, "a2a3")
    check(lowered, "a2a3")
    (selection,) = [line for line in tilegg.emit(lowered, "a2a3").splitlines() if "pto.tsel" in line]
    assert made in selection
