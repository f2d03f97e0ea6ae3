"""What the PTO verifier refuses of instructions that move elements, as the assembler (v0.60) does; and takes alike."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from test_pto_dialect_verify import F, H, I, dps, findings, tile

U, B8, LENGTHS = tile("ui32"), tile("ui8"), tile("i32", "32x8")
MX4 = " {quant_type = #pto<quant_type MXFP4_E2M1>, grpAxis = #pto<mx_group_axis axis%d>}"
COUNTS = tile("i32", "1x32")
CODES = tile("!pto.f4E2M1x2", "32x16")
LINE = tile("ui8", "1x32")


def sparse(name: str, ins: str, types: list[str], outs: str, tail: str = "") -> tuple[list[str], str]:
    """Return argument types and text of tgather or tscatter."""
    count = ins.count("%")
    left, right = types[:count], types[count:]
    return types, f"pto.{name} ins({ins} : {', '.join(left)}) outs({outs} : {', '.join(right)}){tail}"


def compared(source: str, scalar: str, how: str, counts: str = COUNTS) -> tuple[list[str], str]:
    types = [source, scalar, B8, I, counts]
    return sparse("tgather", "%a0, %a1, %a2", types, "%a3, %a4", f" {{cmpMode = #pto<cmp {how}>, offset = 0 : i32}}")


def histogram(source: str, index: str, byte: int, out: str = "") -> tuple[list[str], str]:
    types, text = dps("thistogram", [source, index], out or tile("ui32", "32x256"))
    return types, f"{text} {{byte = {byte} : i32}}"


def microscaled(source: str, codes: str, exponents: str, work: str, axis: int) -> tuple[list[str], str]:
    types = [source, codes, exponents, work, work]
    return types, (
        f"pto.tquant.mx ins(%a0 : {source}) outs(%a1, %a2, %a3, %a4 : {', '.join(types[1:])})" + MX4 % axis
    )


COLUMN = tile("ui8", "32x1", "blayout=col_major")
ROWS = tile("ui8", "2x64")
HALF = tile("ui16")
REFUSED = [
    ("a5", dps("tconcatidx", [U, U, LENGTHS, LENGTHS], tile("ui32", "32x128")), "src0: element type ui32 is not one"),
    ("a3", dps("tconcatidx", [F, F, U, U], tile("f32", "32x128")), "src0Idx: element type ui32 is not one of"),
    ("a3", dps("tconcatidx", [F, F, tile("i32", "64x8"), tile("i32", "64x8")], F), "dst and src0Idx must have"),
    ("a5", histogram(HALF, tile("ui8", "32x32"), 1), "idx must use the col_major blayout"),
    ("a5", histogram(HALF, tile("ui8", "64x1", "blayout=col_major"), 1), "idx must have src's rows, 32"),
    ("a5", histogram(HALF, COLUMN, 2), "byte must be 0 to 1"),
    ("a5", histogram(U, COLUMN, 1), "idx must use the row_major blayout"),
    ("a5", histogram(U, tile("ui8", "2x32"), 1), "idx must have src's columns, 64"),
    ("a5", histogram(U, ROWS, 0), "idx must have 3 rows for this byte, not 2"),
    ("a5", histogram(U, ROWS, 1, tile("ui32", "32x128")), "at least 256 columns, not 128"),
    ("a3", sparse("tscatter", "%a0, %a1", [F, I, tile("f32", "16x64")], "%a2"), "valid shape of src, 32x64, must not"),
    ("a5", sparse("tscatter", "%a0, %a1", [F, tile("i16"), F], "%a2"), "indices for f32 must be i32, not i16"),
    ("a5", sparse("tscatter", "%a0, %a1", [F, tile("i32", "16x64"), F], "%a2"), "must have the same valid shape"),
    *((arch, compared(F, "f32", how), f"cmpMode must be eq or gt, not {how}")
      for arch in ("a3", "a5") for how in ("ne", "lt", "le", "ge")),
    ("a5", compared(F, "f32", "gt", tile("ui32", "1x32")), "cdst must have dst's element type i32, not ui32"),
    ("a3", compared(I, "i32", "gt"), "i32 is not compared with gt on a2/a3"),
    ("a3", compared(tile("i16"), "i16", "eq"), "i16 is not compared with eq on a2/a3"),
    ("a5", dps("tsort32", [I, U], I), "src: element type i32 is not one of f16 f32"),
    ("a5", dps("tci", ["i16"], tile("i32", "1x64")), "the first number must have dst's element type i32"),
    ("a3", dps("tci", ["i32", tile("i32", "1x64")], tile("i32", "1x64")), "tmp must hold at least 768 bytes, not 256"),
    ("a5", microscaled(tile("bf16", "32x64", "valid=32x32"), tile("!pto.f4E2M1x2", "32x32", "valid=32x16"),
                       LINE, tile("bf16", "1x128"), 1), "all columns of src must be valid"),
    ("a5", microscaled(tile("bf16", "32x32"), tile("!pto.f4E2M1x2", "32x32", "valid=32x16"), LINE,
                       tile("bf16", "1x128"), 1), "dst must have 16 physical columns, not 32"),
    ("a5", microscaled(tile("f16", "32x32"), CODES, LINE, tile("f16", "1x32"), 0), "a multiple of 32 bytes, not 16"),
    ("a5", microscaled(tile("bf16", "32x32"), CODES, LINE, tile("bf16", "1x16"), 0), "max must have src's 32 physical"),
]  # fmt: skip

TAKEN = [
    ("a5", dps("tconcatidx", [F, F, LENGTHS, LENGTHS], tile("f32", "32x128"))),
    ("a5", histogram(HALF, COLUMN, 1)),
    ("a5", histogram(U, ROWS, 1)),
    ("a5", histogram(U, COLUMN, 3)),
    ("a3", sparse("tscatter", "%a0, %a1", [tile("f32", "16x64"), tile("i32", "16x64"), F], "%a2")),
    ("a3", compared(F, "f32", "gt")),
    ("a3", compared(I, "i32", "eq")),
    ("a5", compared(tile("i16"), "i16", "gt")),
    ("a5", dps("tsort32", [H, U], H)),
    ("a3", dps("tci", ["i32", tile("i32", "1x192")], tile("i32", "1x64"))),
    ("a5", microscaled(tile("bf16", "32x32"), CODES, LINE, tile("bf16", "1x128"), 1)),
    ("a5", microscaled(tile("bf16", "32x32"), CODES, LINE, tile("bf16", "1x32"), 0)),
]


@pytest.mark.parametrize(("arch", "case", "message"), REFUSED)
def test_refused(arch: str, case: tuple[list[str], str], message: str) -> None:
    found = findings(*case, arch)
    assert len(found) == 1 and message in found[0], found


@pytest.mark.parametrize(("arch", "case"), TAKEN)
def test_taken(arch: str, case: tuple[list[str], str]) -> None:
    assert findings(*case, arch) == []


@pytest.mark.parametrize(("element", "cols", "row", "col", "byte"), [
    ("!pto.f4E2M1x2", 16, 1, 0, 16), ("!pto.f4E2M1x2", 48, 1, 0, 48), ("f32", 64, 0, 4, 16), ("i8", 32, 2, 0, 0),
    ("!pto.f4E2M1x2", 16, 2, 0, 0),
])  # fmt: skip
def test_windows_begin_at_a_block(element: str, cols: int, row: int, col: int, byte: int) -> None:
    whole, part = f"!pto.tile_buf<vec, 4x{cols}x{element}>", f"!pto.tile_buf<vec, 1x8x{element}>"
    constants = f"%r = arith.constant {row} : index %c = arith.constant {col} : index"
    found = findings([whole], f"{constants} %s = pto.subview %a0[%r, %c] sizes [1, 8] : {whole} -> {part}", "a5")
    assert found == ([] if byte == 0 else [f"pto.subview: the window begins at byte {byte}, {_NOT}"])


_NOT = "which is not a multiple of 32"
