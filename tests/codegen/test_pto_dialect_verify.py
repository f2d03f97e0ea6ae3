"""What the PTO verifier refuses, with its messages; the assembler (v0.60) refuses each case too, if only later."""

from __future__ import annotations

import pytest
from tilegg.codegen.pto.api import parse_pto, verify_module, verify_pto
from tilegg.ir.diagnostics import TileggError


def tile(dtype: str = "f32", shape: str = "32x64", *more: str, space: str = "vec") -> str:
    return f"!pto.tile_buf<{', '.join((space, f'{shape}x{dtype}', *more))}>"


F, H, I, B8 = tile(), tile("f16"), tile("i32"), tile("ui8")
NARROW, COL = tile("f32", "32x64", "valid=32x32"), tile("f32", "32x64", "blayout=col_major")
DYN, MAT, FP8 = tile("f32", "32x64", "valid=?x?"), tile(space="mat"), tile("f8E4M3FN")
ONE = tile("f32", "32x8", "valid=32x1")


def dps(name: str, ins: list[str], out: str, inside: str = "") -> tuple[list[str], str]:
    """Return argument types and text of an operation on fresh arguments."""
    names = [f"%a{i}" for i in range(len(ins))]
    text = f"pto.{name} ins({', '.join(names)}{inside} : {', '.join(ins)}) outs(%a{len(ins)} : {out})"
    return [*ins, out], text


def findings(types: list[str], text: str, arch: str | None = None) -> list[str]:
    args = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    body = text if text.rstrip().endswith("return") else f"{text}\n  return"
    module = parse_pto(f"func.func @k({args}) {{\n  {body}\n}}", filename="k.pto")
    return [finding.message for finding in verify_module(module, arch)]


ALWAYS = [
    (dps("tadd", [F, H], F), "src0 and src1 must have the same element type, not f32 and f16"),
    (dps("tadd", [F, F], NARROW), "src0 and dst must have the same valid columns, not 64 and 32"),
    (dps("tadd", [F, COL], F), "src1 must use the row_major blayout, not col_major"),
    (dps("tadd", [FP8, FP8], FP8), "src0: element type f8E4M3FN is not supported by this operation"),
    (dps("tprelu", [F, F], tile("f32", "64x64", "valid=32x64")), "must have the same physical shape"),
    (dps("tadds", [F, "f32"], MAT), "dst must be in vec, not in mat"),
    (dps("tdivs", [F, F], F), "exactly one of src and scalar must be a tile"),
    (dps("tshls", [I, "i32"], tile("i16")), "src and dst must have the same element type, not i32 and i16"),
    (dps("trems", [F, "i32"], F), "the scalar must have the tiles' element type f32"),
    (dps("tlrelu", [F, "f16"], F), "slope"),
    (dps("taxpy", [F, "f16"], F), "the scalar must have src's element type f32, not f16"),
    (dps("taxpy", [F, "f32"], H), "dst must have src's element type, or f32 for f16, not f16"),
    (dps("texpands", ["i32"], F), "the scalar must have dst's element type f32, not i32"),
    (dps("texpands", ["f32"], tile(space="acc")), "dst must be in vec or mat, not in acc"),
    (dps("tabs", [F], COL), "dst must use the row_major blayout"),
    (dps("trsqrt", [F, tile("f32", "1x4")], F), "tmp must hold at least 32 bytes, not 16"),
    (dps("tcvt", [F], tile("i32", "32x32")), "must have the same physical shape, not 32x64 and 32x32"),
    (dps("tcvt", [NARROW], I), "must have the same valid shape, not 32x32 and 32x64"),
    (dps("tcvt", [tile("bf16")], tile("!pto.f4E2M1x2")), "not 32x64 and 32x128"),
    (dps("tcmp", [F, H], B8), "src0 and src1 must have the same element type"),
    (dps("tcmp", [F, F], I), "the mask must have 8-bit integer elements, not i32"),
    (dps("tcmps", [F, "f32"], tile("ui8", "16x64")), "src and dst must have the same valid rows, not 32 and 16"),
    (dps("tsel", [B8, F, H], F), "src0 and src1 must have the same element type"),
    (dps("tsel", [B8, F, F, COL], F), "tmp must use the row_major blayout"),
    (dps("tsels", [B8, F, "f32"], NARROW), "src and dst must have the same valid columns"),
    (dps("trowsum", [F], F), "dst must have valid columns 1, not 64"),
    (dps("trowsum", [COL], ONE), "src must use the row_major blayout"),
    (dps("trowsum", [F], tile("f32", "32x2", "valid=32x1", "blayout=col_major")), "must have one column, not 2"),
    (dps("trowargmax", [F], ONE), "dst must have 32-bit integer elements, not f32"),
    (dps("tcolsum", [F, F], F), "the tmp operand needs the isBinary attribute"),
    (dps("tcolsum", [F, tile("f32", "1x64")], F, " {isBinary = true}"), "tmp must hold at least 4096 bytes, not 256"),
    (dps("tcolmax", [F], tile("f32", "1x32")), "src and dst must have the same valid columns, not 64 and 32"),
    (dps("trowexpand", [tile("f32", "16x8")], F), "src and dst must have the same valid rows, not 16 and 32"),
    (dps("trowexpandadd", [F, F], F), "src1 must have valid columns 8, not 64"),
    (dps("tcolexpandmul", [F, tile("f32", "1x32")], F), "src1 and dst must have the same valid columns"),
    (dps("tpartadd", [F, F], NARROW), "the valid shape of src0 must not exceed dst's"),
    (dps("tconcat", [F, F], F), "dst must have room for 128 columns, not 64"),
    (dps("tfillpad", [F], F), "dst's type must have a pad other than 0"),
    (dps("tfillpad", [F], tile("f16", "32x64", "pad=1")), "same size of 1, 2 or 4 bytes, not 4 and 2"),
    (dps("ttrans", [F], H), "src and dst must have the same element type"),
    (dps("tmatmul", [F, F], tile(space="acc")), "lhs must be in left, not in vec"),
    (([I, "i32", I], "pto.tands ins(%a0, %a1 : T, i32) outs(%a0 : T)".replace("T", I)), "must be different tiles"),
    (
        ([I, I], f"%s = arith.constant -1 : i32 pto.tshls ins(%a0, %s : {I}, i32) outs(%a1 : {I})"),
        "the shift distance must not be negative, not -1",
    ),
]  # fmt: skip

BY_TARGET = [
    ("a3", dps("tadd", [B8, B8], B8), "src0: element type ui8 is not one of i16 i32 f16 f32 on a2/a3"),
    ("a5", dps("taddrelu", [F, F], F), "pto.taddrelu does not exist on a5"),
    ("a5", dps("tcmp", [F, F], tile("ui8", "32x32")), "src0 and dst must have the same physical shape"),
    ("a3", dps("tcmp", [tile("i16"), tile("i16")], B8), "src0: element type i16 is not one of i32 f16 f32"),
    ("a3", dps("tsel", [B8, F, F, H], F), "tmp must have four-byte elements on a2/a3, not f16"),
    ("a3", dps("tsels", [B8, F, tile("f32", "1x32"), "f32"], F), "tmp must hold at least 256 bytes, not 128"),
    ("a3", dps("trowsum", [F, I], ONE), "src and tmp must have the same element type, not f32 and i32"),
    ("a5", dps("tcvt", [FP8], H), "there is no conversion from f8E4M3FN to f16 on a5"),
    ("a3", dps("tcvt", [FP8], F), "low-precision element types are not supported on a2/a3"),
    ("a3", dps("tcvt", [F, tile("f32", "1x8")], tile("i16")), "tmp must hold at least 256 bytes, not 32"),
    ("a3", dps("ttrans", [COL], F), "src must use the row_major blayout"),
    ("a5", dps("ttrans", [tile("f32", "4x4")], tile("f32", "4x8")), "must be a multiple of 32 bytes on a5"),
    ("a3", dps("trem", [F, F, tile("f32", "1x64")], F), "tmp must have at least 2 valid rows on a2/a3, not 1"),
    ("a3", dps("txor", [I, I, F], I), "dst and tmp must have the same element type, not i32 and f32"),
    ("a3", dps("tprelu", [F, F, tile("ui8")], F), "tmp must have at least 33 rows on a2/a3, not 32"),
    ("a3", dps("tpartadd", [NARROW, NARROW], F), "at least one of src0 and src1 must have dst's valid shape"),
    ("a5", dps("tconcat", [COL, COL], tile("f32", "32x128")), "src0 must use the row_major blayout"),
    ("a3", dps("trandom", ["i32"] * 6, I), "pto.trandom exists on a5 only"),
    ("a3", dps("tquant.mx", [F], F), "takes"),
    ("a3", dps("tpow", [F, F, H], F), "base and tmp must have the same element type"),
    ("a3", dps("tpow", [H, H], H), "dst: element type f16 is not one of i8 i16 i32 f32 on a2/a3"),
    ("a5", dps("tstore", [MAT], "!pto.partition_tensor_view<32x64xf32>"), "src must be in vec or acc, not in mat"),
    ("a3", dps("tload", ["!pto.partition_tensor_view<32x64xf8E4M3FN>"], FP8), "is not one of i8 i16 i32 i64"),
    ("a3", dps("tmov", [F], tile("f32", "16x64")), "must have the same physical shape on a2/a3"),
]  # fmt: skip

PTR, VIEW = "!pto.ptr<f32>", "!pto.tensor_view<64x?xf32>"
STRUCTURE = [
    ([PTR], "%v = pto.make_tensor_view %a0, shape = [%c], strides = [%c] : !pto.tensor_view<?x?xf32>", "rank 2"),
    (
        ["!pto.ptr<f16>"],
        '%v = "pto.make_tensor_view"(%a0, %c, %c) <{operandSegmentSizes = array<i32: 1, 1, 1>}>'
        " : (!pto.ptr<f16>, index, index) -> !pto.tensor_view<?xf32>",
        "the pointer is to f16, the view of f32",
    ),
    ([VIEW], f"%w = pto.partition_view %a0, offsets = [%m, %c], sizes = [%c, %c] : {VIEW}", "offset -1"),
    ([VIEW], f"%w = pto.partition_view %a0, offsets = [%c, %c], sizes = [%z, %c] : {VIEW}", "size 0"),
    ([VIEW], f"%w = pto.partition_view %a0, offsets = [%c, %c], sizes = [%b, %c] : {VIEW}", "reaches 72"),
    (
        [VIEW],
        f"%w = pto.partition_view %a0, offsets = [%c, %c], sizes = [%c, %c] : {VIEW} -> "
        "!pto.partition_tensor_view<4x8xf32>",
        "size 8 of dimension 0 differs from the result type's 4",
    ),
    ([], f"%t = pto.alloc_tile : {DYN}", "valid_row is required"),
    ([], f"%t = pto.alloc_tile valid_row = %c : {F}", "valid_row must be absent"),
    ([], f"%t = pto.alloc_tile : {tile('f32', '8x7')}", "must be a multiple of 32 bytes, not 28"),
    ([], f"%t = pto.alloc_tile : {tile('f32', '6x8', 'blayout=col_major')}", "rows * sizeof(f32)"),
    ([], f"%t = pto.alloc_tile : {tile('f16', '8x16', 'slayout=row_major', space='mat')}", "a multiple of 16"),
    ([], f"%t = pto.alloc_tile addr = %odd : {F}", "addr 8 must be a non-negative multiple of 32 in vec"),
    ([DYN], f"pto.set_validshape %a0, %c, %c : {DYN}", "an argument is not allowed"),
    (
        [],
        f"%t = pto.alloc_tile valid_row = %c valid_col = %c : {DYN} pto.set_validshape %t, %b, %c : {DYN}",
        "valid rows 64 outside 0..32",
    ),
    ([], f"%t = pto.alloc_tile : {F} pto.set_validshape %t, %c, %c : {F}", "both valid extents of the type must be ?"),
    ([F], f"%s = pto.subview %a0[%m, %c] sizes [8, 8] : {F}", "offsets must not be negative"),
    ([F], f"%s = pto.subview %a0[%c, %c] sizes [8, 8] : {F} -> {tile('i32', '8x8')}", "the result must be"),
    ([F], f"%u = pto.bitcast %a0 : {F} -> {F}", "must have different element types"),
    ([H], f"%u = pto.bitcast %a0 : {H} -> {F}", "the result needs more bytes"),
    ([F], f"%u = pto.treshape %a0 : {F} -> {tile('f32', '32x32')}", "equal bytes, not 8192 and 4096"),
    ([PTR], f"%x = pto.load_scalar %a0[%c] : {PTR} -> i32", "the pointer is to f32, the value is i32"),
    ([PTR], f"%x = pto.castptr %a0 : {PTR} -> !pto.ptr<f32, ub>", "different spaces, gm and ub"),
    ([F], f"%x = pto.tgetval ins(%a0, %c : {F}, index) outs : i32", "the tile has f32 elements"),
    (
        [F, "!pto.partition_tensor_view<32x32xf32>"],
        f"pto.tstore ins(%a0 : {F}) outs(%a1 : !pto.partition_tensor_view<32x32xf32>)",
        "the view has 1024 elements, the valid part of the tile 2048",
    ),
    (
        [H, "!pto.partition_tensor_view<32x64xf32>"],
        f"pto.tload ins(%a1 : !pto.partition_tensor_view<32x64xf32>) outs(%a0 : {H})",
        "element sizes differ: f16 in the tile, f32 in the view",
    ),
    ([], "pto.cmo.cacheinvalid all #pto.address_space<vec>", "only global memory"),
    ([], "pto.barrier_sync[<TLOAD>]", "only TMATMUL and TVEC"),
    (
        ["!pto.partition_tensor_view<1xf32>", "i32"],
        "pto.comm.tnotify(%a0, %a1 : !pto.partition_tensor_view<1xf32>, i32) {notifyOp = #pto<notify_op set>}",
        "a signal and its value are i32",
    ),
    (
        ["!pto.partition_tensor_view<8xf32>", F],
        "pto.comm.tbroadcast(%a0, recv(%a1), group(%a0) : P, T, P) {root = 1 : i32}".replace(
            "P", "!pto.partition_tensor_view<8xf32>").replace("T", F),
        "root 1 is outside a group of 1",
    ),
    (
        ["!pto.partition_tensor_view<8xf32>", H],
        "pto.comm.tput(%a0, %a0, buf(%a1) : P, P, T)".replace("P", "!pto.partition_tensor_view<8xf32>").replace("T", H),
        "must have the same element type, not f32, f32, f16",
    ),
]  # fmt: skip
CONSTANTS = (
    "%c = arith.constant 8 : index\n  %b = arith.constant 64 : index\n  %z = arith.constant 0 : index\n"
    "  %m = arith.constant -1 : index\n  %odd = arith.constant 8 : i64\n  "
)


def is_refused(types: list[str], text: str, words: str, arch: str | None = None) -> None:
    try:
        found = findings(types, text, arch)
    except TileggError as refused:  # some forms cannot even be read
        found = [refused.diagnostics[0].message]
    assert len(found) == 1 and words in found[0], found


@pytest.mark.parametrize(("case", "words"), ALWAYS, ids=lambda c: c[1][:40] if isinstance(c, tuple) else "")
def test_refused_for_every_target(case: tuple[list[str], str], words: str) -> None:
    is_refused(*case, words)


@pytest.mark.parametrize(("arch", "case", "words"), BY_TARGET)
def test_refused_for_one_target(arch: str, case: tuple[list[str], str], words: str) -> None:
    is_refused(*case, words, arch)


@pytest.mark.parametrize(("types", "text", "words"), STRUCTURE)
def test_refused_views_tiles_and_scalars(types: list[str], text: str, words: str) -> None:
    is_refused(types, CONSTANTS + text, words)


ACCEPTED = [
    dps("tadd", [F, DYN], tile("f32", "64x128", "valid=32x64")),
    dps("tadd", [MAT, F], F),
    dps("tcmp", [F, F], B8, " {cmpMode = #pto<cmp lt>}"),
    dps("tcmp", [F, F], tile("i8", "32x64", "valid=32x8")),
    dps("tsel", [B8, F, F, tile("i32", "1x16")], F),
    dps("taxpy", [H, "f16"], F),
    dps("trowsum", [F, F], tile("f32", "32x1", "blayout=col_major")),
    dps("trowsum", [F], tile("f32", "32x8", "valid=0x0")),
    dps("tcvt", [F], tile("i16")),
    dps("tneg", [COL], COL),
    dps("tmuls", [tile("ui32"), "i32"], tile("ui32")),
    dps("tfillpad", [NARROW], tile("f32", "32x64", "pad=1")),
]


@pytest.mark.parametrize(("types", "text"), ACCEPTED)
def test_accepted_for_both_targets(types: list[str], text: str) -> None:
    assert findings(types, text, "a3") == findings(types, text, "a5") == findings(types, text) == []


def test_the_modules_own_target_is_the_default() -> None:
    body = f"func.func @k(%a: {B8}) {{ pto.tadd ins(%a, %a : {B8}, {B8}) outs(%a : {B8}) return }}"
    for arch, count in (("a3", 1), ("a5", 0), ("A5", 0)):
        module = parse_pto(f'module attributes {{pto.target_arch = "{arch}"}} {{ {body} }}')
        assert len(verify_module(module)) == count
        assert len(verify_module(module, "a2")) == 1


def test_an_unknown_target_is_a_diagnostic() -> None:
    with pytest.raises(TileggError, match=r"TG040.*'a9' is not one of a2, a3"):
        verify_pto(parse_pto("func.func @k() { return }"), "a9")


def test_the_error_has_message_and_location() -> None:
    types, text = dps("tadd", [F, H], F)
    args = ", ".join(f"%a{i}: {type_}" for i, type_ in enumerate(types))
    module = parse_pto(f'func.func @k({args}) {{\n  {text} loc("k.py":7:3)\n  return\n}}')
    with pytest.raises(TileggError) as caught:
        verify_pto(module)
    found = caught.value.diagnostics[0]
    assert found.code == "TG023" and found.message.startswith("pto.tadd: src0 and src1")
    assert str(found.span) == "k.py:7:3"


def test_values_must_be_defined_before_their_use() -> None:
    text = f"pto.tabs ins(%t : {F}) outs(%t : {F})\n  %t = pto.alloc_tile : {F}"
    found = findings([], text)
    assert len(found) == 1 and "not defined before its use" in found[0]
    inner = f"pto.section.vector {{ %t = pto.alloc_tile : {F} }}\n  pto.tabs ins(%t : {F}) outs(%t : {F})"
    with pytest.raises(TileggError):
        verify_pto(parse_pto(f"func.func @k() {{ {inner} return }}"))


def test_a_block_must_end_in_a_terminator() -> None:
    module = parse_pto("func.func @k() { pto.barrier <PIPE_V> }")
    assert ["terminator" in d.message for d in verify_module(module)] == [True]
