"""Every operation of the PTO dialect: custom text, generic text, and back."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from tilegg.codegen.pto.api import OPS, parse_pto, print_pto

sys.path.insert(0, str(Path(__file__).parent))
from simt_texts import FAMILIES, LAUNCHES

F = "!pto.tile_buf<vec, 32x64xf32>"
I = "!pto.tile_buf<vec, 32x64xi32>"
M = "!pto.tile_buf<vec, 32x64xui8>"
C = "!pto.tile_buf<vec, 32x64xf32, valid=32x1>"
ACC = "!pto.tile_buf<acc, 32x64xf32>"
SC = "!pto.tile_buf<scaling, 1x64xf32>"
DYN = "!pto.tile_buf<vec, 32x64xf32, valid=?x?>"
V = "!pto.tensor_view<?x?xf32>"
P = "!pto.partition_tensor_view<32x64xf32>"
S = "!pto.partition_tensor_view<1x1xi32>"
PTR = "!pto.ptr<f32>"

HEADER = f"""
func.func @k(%p: {PTR}, %q: !pto.ptr<i8>, %v: {V}, %w: {P}, %g: {S}, %f: {F}, %h: {F}, %i: {I}, %m: {M},
             %c: {C}, %acc: {ACC}, %sc: {SC}, %dyn: {DYN}, %x: f32, %n: i32, %l: i64, %a: index, %b: index,
             %vec: vector<4xi16>, %sess: !pto.async_session, %ev: !pto.async_event) {{
"""


def tile_op(name: str, ins: str, in_types: str, out: str = "%h", out_type: str = F, tail: str = "") -> str:
    return f"pto.{name} ins({ins} : {in_types}) outs({out} : {out_type}){tail}"


FF, FFF = f"{F}, {F}", f"{F}, {F}, {F}"
ROW = "!pto.tile_buf<vec, 32x64xf32, valid=32x1>"
SAMPLES: list[str] = [
    *(
        tile_op(f"t{n}", "%f, %f", FF)
        for n in [
            "add",
            "sub",
            "mul",
            "div",
            "max",
            "min",
            "and",
            "or",
            "xor",
            "shl",
            "shr",
            "rem",
            "fmod",
            "addrelu",
            "prelu",
            "pow",
        ]
    ),
    *(tile_op(f"t{n}", "%f, %f, %i", f"{FF}, {I}") for n in ["xor", "rem", "prelu", "pow", "addc", "subc"]),
    *(
        tile_op(f"t{n}s", "%f, %x", f"{F}, f32")
        for n in ["add", "sub", "mul", "max", "min", "fmod", "div", "rem", "pow"]
    ),
    *(tile_op(f"t{n}s", "%f, %n", f"{F}, i32") for n in ["and", "or", "xor", "shl", "shr"]),
    *(tile_op(f"t{n}", "%f, %x, %i", f"{F}, f32, {I}") for n in ["rems", "pows"]),
    tile_op("txors", "%f, %n, %i", f"{F}, i32, {I}"),
    tile_op("tdivs", "%x, %f", f"f32, {F}"),
    tile_op("tdivs", "%x, %f", f"f32, {F}", tail=" {precisionType = #pto<div_precision high_precision>}"),
    *(tile_op(f"t{n}sc", "%f, %x, %h", f"{F}, f32, {F}") for n in ("add", "sub")),
    tile_op("tlrelu", "%f, %x", f"{F}, f32"),
    tile_op("taxpy", "%f, %x", f"{F}, f32"),
    tile_op("texpands", "%x", "f32"),
    *(
        tile_op(f"t{n}", "%f", F)
        for n in ["abs", "relu", "not", "neg", "exp", "log", "sqrt", "recip", "rsqrt", "trans"]
    ),
    *(tile_op(f"t{n}", "%f, %i", f"{F}, {I}") for n in ["rsqrt", "trans"]),
    tile_op("texp", "%f", F, tail=" {precisionType = #pto<exp_precision high_precision>}"),
    tile_op("tcvt", "%f {rmode = #pto<round_mode RINT>}", F, "%i", I),
    tile_op("tcvt", "%f {rmode = #pto<round_mode TRUNC>, satmode = #pto<saturation_mode ON>}", F, "%i", I),
    tile_op("tcvt", "%f, %i {rmode = #pto<round_mode FLOOR>}", f"{F}, {I}", "%i", I),
    tile_op("tcmp", "%f, %h {cmpMode = #pto<cmp lt>}", FF, "%m", M),
    tile_op("tcmps", "%f, %x {cmpMode = #pto<cmp ge>}", f"{F}, f32", "%m", M),
    tile_op("tsel", "%m, %f, %h", f"{M}, {FF}"),
    tile_op("tsel", "%m, %f, %h, %i", f"{M}, {FF}, {I}"),
    tile_op("tsels", "%m, %f, %x", f"{M}, {F}, f32"),
    tile_op("tsels", "%m, %f, %i, %x", f"{M}, {F}, {I}, f32"),
    *(tile_op(f"trow{n}", "%f", F, "%c", C) for n in ["sum", "max", "min", "prod", "argmax", "argmin"]),
    *(tile_op(f"trow{n}", "%f, %h", FF, "%c", C) for n in ["sum", "max", "min", "prod", "argmax", "argmin"]),
    *(tile_op(f"tcol{n}", "%f", F) for n in ["sum", "max", "min", "prod", "argmax", "argmin"]),
    *(tile_op(f"tcol{n}", "%f, %h", FF) for n in ["argmax", "argmin"]),
    tile_op("tcolsum", "%f, %h {isBinary = true}", FF),
    *(tile_op(f"t{axis}expand", "%f", F) for axis in ("row", "col")),
    *(
        tile_op(f"t{axis}expand{n}", "%f, %h", FF)
        for axis in ("row", "col")
        for n in ["add", "sub", "mul", "div", "max", "min", "expdif"]
    ),
    tile_op("trowexpanddiv", "%f, %c, %i", f"{F}, {C}, {I}"),
    *(tile_op(f"tpart{n}", "%f, %h", FF) for n in ["add", "mul", "max", "min"]),
    *(
        tile_op(f"tpart{n}", "%f, %h, %i, %i", f"{FF}, {I}, {I}", "%f, %i", f"{F}, {I}")
        for n in ("argmax", "argmin")
    ),
    tile_op("tconcat", "%f, %h", FF),
    tile_op("tconcatidx", "%f, %h, %i, %i", f"{FF}, {I}, {I}"),
    tile_op("tfillpad", "%f", F),
    tile_op("tfillpad", "%f", F, tail=" {padValue = #pto.pad_value<zero>}"),
    tile_op("tgatherb", "%f, %i", f"{F}, {I}"),
    tile_op("tsort32", "%f, %i", f"{F}, {I}"),
    tile_op("tsort32", "%f, %i, %h", f"{F}, {I}, {F}"),
    tile_op("thistogram", "%f, %i", f"{F}, {I}", tail=" {byte = 1 : i32}"),
    tile_op("tci", "%n", "i32", "%i", I),
    tile_op("tci", "%n, %f", f"i32, {F}", "%i", I, " {descending = true}"),
    tile_op("ttri", "%n {upperOrLower = 1 : i32}", "i32"),
    tile_op("trandom", "%n, %n, %n, %n, %n, %n {rounds = 7 : i32}", "i32, i32, i32, i32, i32, i32", "%i", I),
    tile_op("tsetval", "%a, %x", "index, f32"),
    tile_op("tget_scale_addr", "%f", F),
    tile_op("tprefetch", "%w", P),
    tile_op("mgather", "%w, %i", f"{P}, {I}", tail=" {coalesce = #pto<coalesce row>}"),
    tile_op("mgather", "%w, %i, %w", f"{P}, {I}, {P}", tail=" {coalesce = #pto<coalesce elem>}"),
    tile_op("mscatter", "%f, %i", f"{F}, {I}", "%w", P, " {scatterOob = #pto<scatter_oob skip>}"),
    tile_op("textract", "%f, %a, %b", f"{F}, index, index"),
    tile_op("tinsert", "%f, %a, %b", f"{F}, index, index"),
    tile_op("tmrgsort", "%f, %n", f"{F}, i32"),
    tile_op("tmrgsort", "%f, %h, %f {exhausted = false}", FFF, "%h, %vec", f"{F}, vector<4xi16>"),
    tile_op("tmrgsort", "%f, %h no_tmp {exhausted = true}", FF, "%h, %vec", f"{F}, vector<4xi16>"),
    f"%r = pto.tassign %f, %l : {F} -> {F}",
    tile_op("tdequant", "%f, %h, %i", f"{FF}, {I}"),
    tile_op("tquant", "%f, %h", FF, "%m", M, " {quant_type = #pto<quant_type INT8_SYM>}"),
    tile_op("tquant", "%f, %h, %f", FFF, "%m", M, " {quant_type = #pto<quant_type INT8_ASYM>}"),
    tile_op("tquant", "%f, %h", FF, "%m, %i", f"{M}, {I}", " {quant_type = #pto<quant_type INT8_SYM>}"),
    tile_op(
        "tquant.mx",
        "%f",
        F,
        "%m, %m, %f, %h",
        f"{M}, {M}, {FF}",
        " {quant_type = #pto<quant_type MXFP8>, grpAxis = #pto<mx_group_axis axis0>}",
    ),
    tile_op(
        "tquant.mx",
        "%f",
        F,
        "%m, %m, %f, %h, %m",
        f"{M}, {M}, {FF}, {M}",
        " {quant_type = #pto<quant_type MXFP8>, storeMode = #pto<vec_store_mode nz>, interleave = true}",
    ),
    *(tile_op(n, "%f, %h", FF, "%acc", ACC) for n in ("tmatmul", "tgemv")),
    *(tile_op(f"{n}.acc", "%acc, %f, %h", f"{ACC}, {FF}", "%acc", ACC) for n in ("tmatmul", "tgemv")),
    *(tile_op(f"{n}.bias", "%f, %h, %sc", f"{FF}, {SC}", "%acc", ACC) for n in ("tmatmul", "tgemv")),
    *(tile_op(f"{n}.mx", "%f, %m, %h, %m", f"{F}, {M}, {F}, {M}", "%acc", ACC) for n in ("tmatmul", "tgemv")),
    *(
        tile_op(f"{n}.mx.acc", "%acc, %f, %m, %h, %m", f"{ACC}, {F}, {M}, {F}, {M}", "%acc", ACC)
        for n in ("tmatmul", "tgemv")
    ),
    *(
        tile_op(f"{n}.mx.bias", "%f, %m, %h, %m, %sc", f"{F}, {M}, {F}, {M}, {SC}", "%acc", ACC)
        for n in ("tmatmul", "tgemv")
    ),
    tile_op("tgather", "%f, %i", f"{F}, {I}"),
    tile_op("tgather", "%f, %i, %h", f"{F}, {I}, {F}"),
    tile_op("tgather", "%f, {maskPattern = #pto.mask_pattern<P0101>}", f'{F}, "row"'),
    tile_op(
        "tgather",
        "%f, %x, %i",
        f"{F}, f32, {I}",
        "%h, %c",
        f"{F}, {C}",
        " {cmpMode = #pto<cmp gt>, offset = 7 : i32}",
    ),
    tile_op("tscatter", "%f, %i", f"{F}, {I}"),
    tile_op("tscatter", "%f, {maskPattern = #pto.mask_pattern<P1010>}", f'{F}, "row"'),
    f"%r = pto.make_tensor_view %p, shape = [%a, %b], strides = [%b, %a] : {V}",
    f"%r = pto.make_tensor_view %p, shape = [%a, %b], strides = [%b, %a] {{layout = #pto.layout<dn>}} : {V}",
    f"%r = pto.partition_view %v, offsets = [%a, %b], sizes = [%b, %a] : {V} -> {P}",
    f"%r = pto.get_tensor_view_dim %v, %a : {V} -> index",
    f"%r = pto.get_tensor_view_stride %v, %a : {V} -> index",
    f"%r = pto.alloc_tile : {F}",
    f"%r = pto.alloc_tile addr = %l : {F}",
    f"%r = pto.alloc_tile valid_row = %a valid_col = %b : {DYN}",
    "%r = pto.alloc_tile addr = %l valid_col = %b : !pto.tile_buf<vec, 32x64xf32, valid=32x?>",
    f"pto.set_validshape %dyn, %a, %b : {DYN}",
    f"%r, %s = pto.get_validshape %dyn : {DYN}",
    f"%r = pto.subview %f[%a, %b] sizes [16, 32] : {F} -> !pto.tile_buf<vec, 16x32xf32>",
    f"%r = pto.subview %f[%a, %b] sizes [16, 32] valid [%a, %b] : {F} -> "
    "!pto.tile_buf<vec, 16x32xf32, valid=?x?>",
    f"%r = pto.bitcast %f : {F} -> {I}",
    f"%r = pto.treshape %f : {F} -> !pto.tile_buf<vec, 64x32xf32>",
    f"%r = pto.tile_valid_rows %f : {F} -> index",
    f"%r = pto.tile_valid_cols %f : {F} -> index",
    tile_op("tload", "%w", P),
    tile_op("tload", "%w", P, "%f", tail=" pad_mode = #pto.padmode<PadValue> pad_value = %x : f32"),
    tile_op("tload", "%w", P, tail=" left_padding_num = %a : index right_padding_num = %b : index"),
    tile_op("tstore", "%f", F, "%w", P),
    tile_op("tstore", "%f", F, "%w", P, " {atomicType = #pto<atomic_type atomic_add>}"),
    f"pto.tstore ins(%acc : {ACC} fp %sc : {SC}) outs(%w : {P})",
    f"pto.tstore ins(%acc : {ACC}, %l : i64) outs(%w : {P})",
    tile_op("tmov", "%f", F),
    f"pto.tmov ins(%acc : {ACC}, %sc : {SC}) outs(%f : {F})",
    f"pto.tmov ins(%acc : {ACC}, %sc : {SC}, %l : i64) outs(%f : {F})",
    f"%r = pto.addptr %p, %a : {PTR} -> {PTR}",
    f"%r = pto.castptr %p : {PTR} -> !pto.ptr<i8>",
    f"%r = pto.ptrtoint %p : {PTR} -> i64",
    f"%r = pto.inttoptr %l : i64 -> {PTR}",
    f"%r = pto.load_scalar %p[%a] : {PTR} -> f32",
    f"pto.store_scalar %x, %p[%a] : {PTR}, f32",
    f"%r = pto.tgetval ins(%f, %a : {F}, index) outs : f32",
    *(f"%r = pto.get_{n}" for n in ["block_idx", "block_num", "subblock_idx", "subblock_num"]),
    'pto.print ins("%d", %n : i32)',
    "pto.trap",
    "pto.barrier <PIPE_V>",
    "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID0>]",
    "pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID7>]",
    "pto.set_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %a]",
    "pto.wait_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %a]",
    "pto.record_event [#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]",
    "pto.wait_event [#pto.pipe_event_type<TLOAD>, #pto.pipe_event_type<TVEC>, #pto.event<EVENT_ID0>]",
    "pto.barrier_sync[<TVEC>]",
    "pto.sync.set <PIPE_MTE3>, 3",
    "pto.sync.set <PIPE_MTE3>, 3 {ffts_mode = 2 : i32}",
    "pto.sync.wait <PIPE_V>, %a",
    "pto.section.vector {\n      pto.barrier <PIPE_V>\n    }",
    "pto.section.cube {\n      pto.barrier <PIPE_M>\n    }",
    "pto.cmo.cacheinvalid all #pto.address_space<gm>",
    f"pto.cmo.cacheinvalid %w single_cache_line : {P}",
    "pto.fence.barrier_all #pto.fence_scope<gm>",
    f"pto.comm.tput(%w, %w, buf(%f) : {P}, {P}, {F})",
    f"pto.comm.tput(%w, %w, buf(%f, %h) : {P}, {P}, {FF}) {{atomicType = #pto<atomic_type atomic_add>}}",
    f"pto.comm.tget(%w, %w, buf(%f) : {P}, {P}, {F})",
    f"pto.comm.tnotify(%g, %n : {S}, i32) {{notifyOp = #pto<notify_op set>}}",
    f"pto.comm.twait(%g, %n : {S}, i32) {{cmp = #pto<wait_cmp ge>}}",
    f"%r = pto.comm.ttest(%g, %n : {S}, i32) {{cmp = #pto<wait_cmp eq>}} -> i1",
    f"pto.comm.tbroadcast(%w, recv(%f), group(%w, %w) : {P}, {F}, {P}, {P}) {{root = 0 : i32}}",
    f"pto.comm.tgather(%w, recv(%f, %h), group(%w) : {P}, {FF}, {P}) {{root = 0 : i32}}",
    f"pto.comm.tscatter(%w, recv(%f), group(%w) : {P}, {F}, {P}) {{root = 0 : i32}}",
    f"pto.comm.treduce(%w, %f, recv(%h), group(%w, %w) : {P}, {FF}, {P}, {P}) "
    "{reduceOp = #pto<reduce_op sum>, root = 1 : i32}",
    f"%r = pto.comm.build_async_session(%f, %q : {F}, !pto.ptr<i8>) -> !pto.async_session",
    f"%r = pto.comm.tput_async(%w, %w, %sess : {P}, {P}, !pto.async_session) -> !pto.async_event",
    f"%r = pto.comm.tget_async(%w, %w, %sess : {P}, {P}, !pto.async_session) -> !pto.async_event",
    "%r = pto.comm.wait_async_event(%ev, %sess : !pto.async_event, !pto.async_session) -> i1",
    "%r = pto.comm.test_async_event(%ev, %sess : !pto.async_event, !pto.async_session) -> i1",
]


def op_name(text: str) -> str:
    return text[text.index("pto.") :].split("(")[0].split("[")[0].split()[0]


def module_of(text: str) -> str:
    return f"{HEADER}    {text}\n    return\n}}\n"


@pytest.mark.parametrize("text", SAMPLES)
def test_custom_text_comes_back_unchanged(text: str) -> None:
    assert f"    {text}\n" in print_pto(parse_pto(module_of(text)))


@pytest.mark.parametrize("text", SAMPLES)
def test_generic_text_is_the_same_operation(text: str) -> None:
    module = parse_pto(module_of(text))
    generic = print_pto(module, generic=True)
    assert f'"{op_name(text)}"(' in generic
    assert print_pto(parse_pto(generic)) == print_pto(module)


def test_every_operation_has_a_sample() -> None:
    simt = "\n".join([*(line for lines in FAMILIES.values() for line in lines), LAUNCHES])
    # An operation of the level is named before its operands; types and attributes come behind a mark.
    named = {found for found in re.findall(r"(?<![#!<{])\bpto\.[\w.]+", simt) if found in OPS}
    assert {op_name(text) for text in SAMPLES} | named == set(OPS)


def test_an_extract_with_a_scale_is_written_generically() -> None:
    types = f"({ACC}, index, index, {F}, {SC}) -> ()"
    sizes = "<{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 0>}>"
    text = f'"pto.textract"(%acc, %a, %b, %f, %sc) {sizes} : {types}'
    assert text in print_pto(parse_pto(module_of(text)))


def test_a_move_with_only_a_scalar_is_written_generically() -> None:
    module = parse_pto(module_of(f"pto.tmov ins(%acc : {ACC}, %l : i64) outs(%f : {F})"))
    text = print_pto(module)
    assert '"pto.tmov"(%acc, %f, %l) <{operandSegmentSizes = array<i32: 1, 1, 0, 1>}>' in text
    assert print_pto(parse_pto(text)) == text


GENERIC = [
    (f'"pto.tadd"(%f, %h, %f) : ({F}, {F}, {F}) -> ()', tile_op("tadd", "%f, %h", FF, "%f")),
    (
        f'"pto.tsels"(%m, %f, %x, %h) : ({M}, {F}, f32, {F}) -> ()',
        tile_op("tsels", "%m, %f, %x", f"{M}, {F}, f32"),
    ),
    (
        '"pto.tcvt"(%f, %i) {rmode = #pto<round_mode RINT>, sat_mode = #pto<saturation_mode ON>}'
        f" : ({F}, {I}) -> ()",
        tile_op("tcvt", "%f {rmode = #pto<round_mode RINT>, satmode = #pto<saturation_mode ON>}", F, "%i", I),
    ),
    # trsqrt and tpow have dst before tmp in the generic form only.
    (f'"pto.trsqrt"(%f, %h, %i) : ({F}, {F}, {I}) -> ()', tile_op("trsqrt", "%f, %i", f"{F}, {I}")),
    (
        f'"pto.tsetval"(%f, %a, %x) : ({F}, index, f32) -> ()',
        tile_op("tsetval", "%a, %x", "index, f32", "%f"),
    ),
    (
        '%r = "pto.alloc_tile"(%a) {operandSegmentSizes = array<i32: 0, 1, 0>} : (index) -> '
        "!pto.tile_buf<vec, 32x64xf32, valid=?x64>",
        "%r = pto.alloc_tile valid_row = %a : !pto.tile_buf<vec, 32x64xf32, valid=?x64>",
    ),
    (
        f'"pto.tload"(%w, %f) <{{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>}}> : ({P}, {F}) -> ()',
        tile_op("tload", "%w", P, "%f"),
    ),
]


@pytest.mark.parametrize(("generic", "custom"), GENERIC)
def test_generic_operand_order_is_the_assemblers(generic: str, custom: str) -> None:
    assert custom in print_pto(parse_pto(module_of(generic)))


VARIANTS = [
    ('pto.set_flag["PIPE_V", "PIPE_MTE3", "EVENT_ID1"]', "pto.set_flag[<PIPE_V>, <PIPE_MTE3>, <EVENT_ID1>]"),
    ("pto.barrier #pto.pipe<PIPE_ALL>", "pto.barrier <PIPE_ALL>"),
    ("%r = pto.addptr %p, %a : <f32, gm> -> <f32>", f"%r = pto.addptr %p, %a : {PTR} -> {PTR}"),
    ("%r = pto.load_scalar %p[%a] : <f32, gm> -> f32", f"%r = pto.load_scalar %p[%a] : {PTR} -> f32"),
    ("pto.store_scalar %x, %p[%a] : <f32, gm>, f32", f"pto.store_scalar %x, %p[%a] : {PTR}, f32"),
    ("pto.fence.barrier_all <gm>", "pto.fence.barrier_all #pto.fence_scope<gm>"),
    (f"%r = pto.addptr %p, %a : !pto.ptr<f32, gm> -> {PTR}", f"%r = pto.addptr %p, %a : {PTR} -> {PTR}"),
    (
        f"%r = pto.partition_view %v, offsets = [%a, %b], sizes = [%b, %a] : {V}",
        f"sizes = [%b, %a] : {V} -> !pto.partition_tensor_view<?x?xf32>",
    ),
    (
        f"%r = pto.subview %f[%a, %b] sizes [16, 32] : {F}",
        f"sizes [16, 32] : {F} -> !pto.tile_buf<vec, 16x32xf32>",
    ),
    (
        tile_op("tcvt", "%f {sat_mode = #pto<saturation_mode OFF>}", F, "%i", I),
        tile_op("tcvt", "%f {satmode = #pto<saturation_mode OFF>}", F, "%i", I),
    ),
]


@pytest.mark.parametrize(("read", "printed"), VARIANTS)
def test_other_spellings_are_read(read: str, printed: str) -> None:
    assert printed in print_pto(parse_pto(module_of(read)))
