"""Whole files: aliases, both tile forms, locations, control flow, and the builders."""

from __future__ import annotations

import re
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilegg.codegen.pto.api import (
    DYNAMIC,
    ModuleBuilder,
    parse_pto,
    print_pto,
    ptr_type,
    span_of,
    tile_type,
    verify_module,
    verify_pto,
    word,
)
from tilegg.ir.diagnostics import Span, TileggError
from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i32

# Clamp an int16 image to a scalar bound, pick the larger of it and a float bias, store bf16.
ALIASED = """
!Src = !pto.tile_buf<vec, 16x128xi16>
!Wide = !pto.tile_buf<loc=vec, dtype=f32, rows=16, cols=128, v_row=16, v_col=128, blayout=row_major,
    slayout=none_box, fractal=512, pad=0>
!Narrow = !pto.tile_buf<vec, 16x128xbf16>
!Mask = !pto.tile_buf<vec, 16x128xui8, valid=16x16>
#greater = #pto<cmp gt>
#nearest = #pto<round_mode RINT>
module attributes {pto.target_arch = "a5"} {
  func.func @pick(%image: !pto.ptr<i16>, %bias: !pto.ptr<f32, gm>, %out: !pto.ptr<bf16>, %bound: f32)
      attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %rows = arith.constant 16 : index
    %cols = arith.constant 128 : index
    %gi = pto.make_tensor_view %image, shape = [%rows, %cols], strides = [%cols, %one] : !pto.tensor_view<?x?xi16>
    %gb = pto.make_tensor_view %bias, shape = [%rows, %cols], strides = [%cols, %one] : !pto.tensor_view<?x?xf32>
    %go = pto.make_tensor_view %out, shape = [%rows, %cols], strides = [%cols, %one] : !pto.tensor_view<?x?xbf16>
    %wi = pto.partition_view %gi, offsets = [%zero, %zero], sizes = [%rows, %cols] : !pto.tensor_view<?x?xi16>
    %wb = pto.partition_view %gb, offsets = [%zero, %zero], sizes = [%rows, %cols] : !pto.tensor_view<?x?xf32>
    %wo = pto.partition_view %go, offsets = [%zero, %zero], sizes = [%rows, %cols] : !pto.tensor_view<?x?xbf16>
    %i = pto.alloc_tile : !Src
    %f = pto.alloc_tile : !Wide
    %b = pto.alloc_tile : !Wide
    %m = pto.alloc_tile : !Mask
    %h = pto.alloc_tile : !Narrow
    pto.tload ins(%wi : !pto.partition_tensor_view<16x128xi16>) outs(%i : !Src)
    pto.tload ins(%wb : !pto.partition_tensor_view<16x128xf32>) outs(%b : !Wide)
    pto.tcvt ins(%i {rmode = #nearest, satmode = #pto<saturation_mode OFF>} : !Src) outs(%f : !Wide)
    pto.tmins ins(%f, %bound : !Wide, f32) outs(%f : !Wide)
    pto.tcmp ins(%f, %b {cmpMode = #greater} : !Wide, !Wide) outs(%m : !Mask)
    pto.tsel ins(%m, %f, %b : !Mask, !Wide, !Wide) outs(%f : !Wide)
    pto.tcvt ins(%f {rmode = #nearest, satmode = #pto<saturation_mode OFF>} : !Wide) outs(%h : !Narrow)
    pto.tstore ins(%h : !Narrow) outs(%wo : !pto.partition_tensor_view<16x128xbf16>)
    return
  }
}
"""


def test_a_file_with_aliases_prints_without_them_and_short() -> None:
    module = parse_pto(ALIASED)
    verify_pto(module)
    text = print_pto(module)
    assert "!Wide" not in text and "loc=vec" not in text and "#nearest" not in text
    assert "%f = pto.alloc_tile : !pto.tile_buf<vec, 16x128xf32>\n" in text
    assert text.startswith('module attributes {pto.target_arch = "a5"} {\n  func.func @pick(')
    assert "attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>} {" in text
    assert print_pto(parse_pto(text)) == text


def test_the_same_program_passes_for_both_targets_and_generically() -> None:
    module = parse_pto(ALIASED)
    generic = parse_pto(print_pto(module, generic=True))
    for arch in ("a2", "a3", "a5"):
        verify_pto(module, arch)
        verify_pto(generic, arch)


def test_an_alias_is_read_anew_in_another_file() -> None:
    body = "func.func @k(%t: !pto.tile_buf<vec, 8x8x!E>) { return }"
    one = print_pto(parse_pto(f"!E = f32\n{body}"))
    other = print_pto(parse_pto(f"!E = i32\n{body}"))
    assert "8x8xf32" in one and "8x8xi32" in other


def build_loop(arch: str = "a5") -> ModuleBuilder:
    """Sum blocks of a matrix into an accumulator in a loop, with a bound that is known at run time only."""
    module = ModuleBuilder(arch)
    args = [("src", ptr_type("f32")), ("dst", ptr_type("f32"))]
    function = module.function("accumulate", args, span=Span("k.py", 3, 1, 3, 9))
    body = function.body
    body.at(Span("k.py", 4, 5, 4, 20))
    tile = tile_type("f32", 32, 64, valid=(DYNAMIC, DYNAMIC))
    view = body.tensor_view(function.args["src"], [256, 64], [64, 1], name="v")
    out = body.tensor_view(function.args["dst"], [32, 64], [64, 1], layout="nd")
    total = body.alloc(tile, valid=(32, 64), name="total")
    part = body.alloc(tile, valid=(32, 64), name="part")
    body.dps("texpands", [body.constant(0.0, "f32")], [total])
    body.at(Span("k.py", 6, 9, 6, 30))
    with body.loop(0, 256, 32, name="row") as loop:
        window = loop.body.partition(view, [loop.index, 0], [32, 64])
        loop.body.load(window, part)
        loop.body.dps("tadd", [total, part], [total])
    body.at(None)
    body.store(total, body.partition(out, [0, 0], [32, 64]), atomic=True)
    function.finish()
    return module


def test_builders_make_a_verified_module_that_reads_back() -> None:
    module = build_loop()
    verify_pto(module.op)
    text = print_pto(module.op)
    assert print_pto(parse_pto(text)) == text
    assert text.count("arith.constant 32 : index") == 1
    assert "scf.for %row = %c0 to %c256 step %c32 {" in text
    assert "{atomicType = #pto<atomic_type atomic_add>}" in text
    assert (
        "pto.alloc_tile valid_row = %c32 valid_col = %c64 : !pto.tile_buf<vec, 32x64xf32, valid=?x?>" in text
    )


def test_the_builders_of_single_operations() -> None:
    module = ModuleBuilder("a3")
    body = module.function("k", []).body
    wide, narrow = body.alloc(tile_type("f32", 32, 64), name="wide"), body.alloc(tile_type("i16", 32, 64))
    tmp = body.alloc(tile_type("f32", 8, 64), addr=512)
    window = body.subview(wide, [0, 8], (32, 8), name="window")
    body.cvt(wide, narrow, "FLOOR", saturate=True)
    body.cvt(wide, narrow, "TRUNC", saturate=False, tmp=tmp)
    body.move(window, window)
    body.dps("trsqrt", [wide, wide], [wide])
    body.barrier("PIPE_V")
    text = print_pto(module.op)
    assert "{rmode = #pto<round_mode FLOOR>, satmode = #pto<saturation_mode ON>}" in text
    assert "pto.tcvt ins(%wide, %" in text and "satmode = #pto<saturation_mode OFF>}" in text
    assert "%window = pto.subview %wide[%c0, %c8] sizes [32, 8] : " in text
    assert "pto.alloc_tile addr = %" in text
    with pytest.raises(ValueError, match=r"pto.tadd takes src0 src1 -> dst, not 1 -> 1"):
        body.dps("tadd", [wide], [wide])


def test_loops_carry_values_and_branches_yield() -> None:
    module = ModuleBuilder()
    function = module.function("count", [("n", i32)], results=[i32], entry=False, kernel_kind=None)
    body = function.body
    first = body.constant(0, "i32")
    with body.loop(0, 4, carried=[first]) as loop:
        step = loop.body.add(arith.AddiOp(loop.carried[0], function.args["n"])).results[0]
        loop.yields = [step]
    flag = body.add(arith.CmpiOp(loop.results[0], first, "eq")).results[0]
    assert flag.type == i1
    with body.branch(flag, [i32]) as branch:
        branch.then_yields = [first]
        branch.other_yields = [loop.results[0]]
    with body.branch(flag) as plain:
        plain.then.barrier("PIPE_V")
    function.finish(branch.results)
    verify_pto(module.op)
    text = print_pto(module.op)
    assert "iter_args(" in text and "else" in text and text.count("else") == 1
    assert print_pto(parse_pto(text)) == text


def test_constants_tell_zero_from_minus_zero_and_one_from_true() -> None:
    module = ModuleBuilder()
    body = module.function("k", []).body
    assert body.constant(0.0, "f32") is not body.constant(-0.0, "f32")
    assert body.constant(1, "i32") is body.constant(1, "i32")
    assert body.constant(1) is not body.constant(1, "i32")
    assert body.constant(1.0, "f16") is not body.constant(1.0, "f32")


def test_locations_are_printed_and_read_back() -> None:
    text = print_pto(build_loop().op)
    lines = {line.strip().split(" loc(")[0]: line for line in text.splitlines()}
    assert 'loc("k.py":4:5)' in next(line for key, line in lines.items() if "texpands" in key)
    assert 'loc("k.py":6:9)' in next(line for key, line in lines.items() if "pto.tadd" in key)
    assert "loc(" not in next(line for key, line in lines.items() if "pto.tstore" in key)
    assert "loc(unknown)" not in text
    places = [span_of(op.location) for op in parse_pto(text).walk() if op.name == "pto.tadd"]
    assert [(p.file, p.line, p.column) for p in places if p] == [("k.py", 6, 9)]
    assert "loc(" not in print_pto(build_loop().op, locations=False)


def test_a_strange_file_name_is_escaped() -> None:
    module = ModuleBuilder()
    function = module.function("k", [])
    function.body.at(Span('a "b"\\c.py', 1, 2, 1, 3))
    function.body.barrier()
    function.finish()
    text = print_pto(module.op)
    assert print_pto(parse_pto(text)) == text
    place = next(span_of(op.location) for op in parse_pto(text).walk() if op.name == "pto.barrier")
    assert place is not None and place.file == 'a "b"\\c.py'


def test_operations_without_location_get_their_place_in_a_named_file() -> None:
    module = parse_pto("func.func @k() {\n  pto.barrier <PIPE_V>\n  return\n}", filename="x.pto")
    place = next(span_of(op.location) for op in module.walk() if op.name == "pto.barrier")
    assert place is not None and (place.file, place.line, place.column) == ("x.pto", 2, 3)


def test_sections_and_signals() -> None:
    module = ModuleBuilder("a5")
    function = module.function("notify", [("p", ptr_type("i32"))])
    cell = function.body.partition(
        function.body.tensor_view(function.args["p"], [4, 1], [1, 1], layout="dn"), [0, 0], [1, 1]
    )
    with function.body.section("vector") as section:
        one = section.constant(1, "i32")
        section.op("pto.comm.tnotify", [cell, one], properties={"notifyOp": word("notify_op", "set")})
        section.op("pto.comm.twait", [cell, one], properties={"cmp": word("wait_cmp", "ge")})
        section.op("pto.cmo.cacheinvalid", properties={"space": word("address_space", "gm")})
    function.finish()
    verify_pto(module.op)
    text = print_pto(module.op)
    assert "pto.section.vector {" in text
    assert print_pto(parse_pto(text)) == text


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("func.func @k() {\n  pto.tadd ins(%a)\n}", 2, 18, ""),
        ("module {", 1, 9, ""),
        ("func.func @k(%t: !pto.tile_buf<ub, 8x8xf32>) { return }", 1, 31, "space must be one of vec, mat"),
        ("func.func @k() {\n  pto.nothing\n  return\n}", 2, 3, "operation pto.nothing is not registered"),
        ("func.func @k() {\n  pto.barrier <PIPE_X>\n  return\n}", 2, 16, "expected one of PIPE_S, PIPE_V"),
        ("", 1, 1, ""),
    ],
)
def test_malformed_text_is_a_diagnostic(text: str, line: int, column: int, words: str) -> None:
    with pytest.raises(TileggError) as caught:
        parse_pto(text, filename="bad.pto")
    found = caught.value.diagnostics[0]
    assert found.code == "TG027" and words in found.message
    assert found.span is not None and found.span.file == "bad.pto"
    assert (found.span.line, found.span.column) == (line, column)


def test_deep_nesting_is_a_diagnostic() -> None:
    with pytest.raises(TileggError) as caught:
        parse_pto("module {" * 5000)
    assert caught.value.diagnostics[0].code == "TG027"


def test_the_package_is_not_loaded_with_tilegg() -> None:
    code = "import sys, tilegg; sys.exit('xdsl' in sys.modules or 'tilegg.codegen.pto' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_findings_are_limited_and_ordered() -> None:
    bad = "  pto.tadd ins(%a, %a : T, T) outs(%b : U)\n".replace("T", "!pto.tile_buf<vec, 8x8xf32>")
    bad = bad.replace("U", "!pto.tile_buf<vec, 8x8xi32>")
    head = "func.func @k(%a: !pto.tile_buf<vec, 8x8xf32>, %b: !pto.tile_buf<vec, 8x8xi32>) {\n"
    found = verify_module(parse_pto(head + bad * 50 + "  return\n}", filename="x.pto"))
    assert len(found) == 20
    assert [d.span.line for d in found if d.span] == list(range(2, 22))


def test_an_unclosed_quote_is_refused_at_once() -> None:
    with pytest.raises(TileggError):
        parse_pto('func.func @k() attributes {x = "' + "a" * 100_000)


TOKENS = re.findall(r"%\w+|[\w.]+|\S", ALIASED)
PIECES = [
    *sorted(set(TOKENS)),
    "-1",
    "99999999999999999999",
    '"',
    "\\",
    "\x00",
    "é",
    "loc(",
    "0x",
    "array<i32: 1>",
]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, len(TOKENS) - 1), st.sampled_from(PIECES), st.booleans())
def test_any_damage_is_a_diagnostic(place: int, piece: str, insert: bool) -> None:
    tokens = TOKENS[:place] + [piece] + TOKENS[place + (0 if insert else 1) :]
    try:
        module = parse_pto(" ".join(tokens))
    except TileggError as refused:
        assert refused.diagnostics[0].code == "TG027"
        return
    text = print_pto(module)
    assert print_pto(parse_pto(text)) == text
    assert all(finding.code == "TG023" for finding in verify_module(module, "a5"))


def test_building_and_printing_take_linear_time() -> None:
    # A bound far above the usual 0.05 ms an instruction, so that a busy machine passes and a quadratic step fails.
    def seconds(count: int) -> float:
        start = time.process_time()
        function = ModuleBuilder().function("k", [("p", ptr_type("f32"))])
        tile = function.body.alloc(tile_type("f32", 32, 64))
        for i in range(count):
            function.body.at(Span("k.py", i + 1, 1, i + 1, 2))
            function.body.dps("tadd", [tile, tile], [tile])
        function.finish()
        print_pto(function.op.parent_op())  # type: ignore[arg-type]
        return time.process_time() - start

    seconds(200)
    assert min(seconds(10_000) for _ in range(2)) < 3.0
