"""Four ways to write scalar casts: every program reads back as itself from each of them."""

import random
from dataclasses import replace

import pytest
from tilegg.codegen.casts_compare import comparison, comparison_text, program_of
from tilegg.codegen.casts_designs import (
    DESIGNS,
    WIDTHS,
    Cast,
    CastProgram,
    check,
    is_float,
    own_mode,
    print_design,
)
from tilegg.codegen.casts_reading import parse_design
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.rounding import ROUND_MODES
from tilegg.ir.text import parse

TYPES = list(WIDTHS)


def modes_of(cast):
    """The modes a cast may say."""
    own = own_mode(cast)
    rounding = [m for m in ROUND_MODES if own and m not in ("none", own)]
    return [*rounding, "nonzero"] if cast.dst == "i1" else rounding


def random_program(rng):
    params = tuple((f"p{i}", rng.choice(TYPES)) for i in range(rng.randint(1, 4)))
    known, casts = list(params), []
    for i in range(rng.randint(0, 8)):
        source, src = rng.choice(known)
        dst = rng.choice([t for t in TYPES if t != src])
        sign = "" if is_float(src) and is_float(dst) else rng.choice(["signed", "unsigned"])
        cast = Cast(f"v{i}", source, src, dst, sign)
        casts.append(replace(cast, mode=rng.choice(["", *modes_of(cast)])))
        known.append((f"v{i}", dst))
    return CastProgram("f", params, tuple(casts))


@pytest.mark.parametrize("design", DESIGNS)
def test_ten_thousand_random_programs_read_back(design):
    rng = random.Random(design)
    casts = 0
    for _ in range(10_000):
        p = random_program(rng)
        assert parse_design(print_design(p, design), design) == p
        casts += len(p.casts)
    assert casts > 30_000


def test_every_single_cast_in_every_design():
    count = 0
    for src in TYPES:
        for dst in TYPES:
            for sign in ("", "signed", "unsigned"):
                p = CastProgram("f", (("x", src),), (Cast("y", "x", src, dst, sign),))
                legal = src != dst and (sign == "") == (is_float(src) and is_float(dst))
                if not legal:
                    with pytest.raises(TileggError):
                        check(p)
                    continue
                count += 1
                texts = [print_design(p, d) for d in DESIGNS]
                assert len(set(texts)) >= 3 and all(parse_design(t, d) == p for t, d in zip(texts, DESIGNS))
    assert count == 6 + 2 * (9 * 8 - 6)


ONE = CastProgram(
    "k", (("n", "i32"), ("h", "f16"), ("i", "index")),
    (Cast("a", "n", "i32", "f32", "signed"), Cast("b", "n", "i32", "f32", "unsigned"), Cast("c", "h", "f16", "bf16"),
     Cast("d", "n", "i32", "i8", "unsigned"), Cast("e", "i", "index", "f32", "unsigned")),
)  # fmt: skip


def test_what_each_design_says():
    one, two, three, four = (print_design(ONE, d) for d in DESIGNS)
    assert "%a = pto.cast %n : si32 -> f32" in one
    assert "%n__ui32 = builtin.unrealized_conversion_cast %n : si32 to ui32" in one
    assert "%c = pto.cast %h : f16 -> bf16" in one and "%c = pto.cast %h : f16 -> bf16" in two
    assert "%b = pto.cast %n unsigned : i32 -> f32" in two
    assert "%a = pto.itof %n signed : i32 -> f32" in three and "%c = pto.ftof %h : f16 -> bf16" in three
    assert "%d = pto.trunci %n {unsigned} : i32 -> i8" in three and "%d = pto.trunci %n {unsigned} : i32 -> i8" in four
    assert "%c__via = pto.extf %h : f16 -> f32\n  %c = pto.truncf %c__via : f32 -> bf16" in four
    assert "pto.sitofp" in four and "pto.uitofp" in four and "pto.index_castui %i : index -> i64" in four


def test_counts():
    found = comparison(ONE)
    assert [d["operations"] for d in found["designs"]] == [7, 5, 5, 7]
    assert [d["bridges"] for d in found["designs"]] == [2, 0, 0, 0]
    assert "design 4: arith names" in comparison_text(found)


@pytest.mark.parametrize(
    "design, line",
    [
        (1, "%y = pto.cast %x signed : f32 -> si32"), (1, "%y = pto.cast %x : f32 -> index"),
        (2, "%y = pto.cast %x : f32 -> i32"), (2, "%y = pto.cast %x signed : f32 -> f16"),
        (2, "%y = pto.itof %x signed : f32 -> i32"), (3, "%y = pto.itof %x signed : f32 -> i32"),
        (3, "%y = pto.ftoi %x : f32 -> i32"), (4, "%y = pto.extf %x : f32 -> f16"),
        (4, "%y = pto.fptosi %x signed : f32 -> i32"),
        (2, "%y = pto.cast %z signed : f32 -> i32"), (2, "%y pto.cast"), (4, "%y = pto.cast %x : f32 -> f16"),
    ],
)  # fmt: skip
def test_wrong_texts_are_refused(design, line):
    with pytest.raises(TileggError) as caught:
        parse_design(f"func @f(%x: f32) {{\n  {line}\n}}\n", design)
    assert caught.value.diagnostics[0].code in ("TG027", "TG004", "TG009", "TG007")


def test_the_casts_of_a_function():
    text = """
@pl.function
def f(x: pl.Scalar[pl.FP32], u: pl.Scalar[pl.UINT32], b: pl.Scalar[pl.BF16]):
    a = pl.cast(x, pl.UINT32)
    c = pl.cast(u, pl.FP32)
    d = pl.cast(b, pl.FP16)
    e = pl.cast(u, pl.INT32)
    g = pl.cast(e, pl.INT8)
    return a, c, d, g
"""
    p = program_of(parse(text).functions[0])
    assert p.casts == (
        Cast("a", "x", "f32", "i32", "unsigned"), Cast("c", "u", "i32", "f32", "unsigned"),
        Cast("d", "b", "bf16", "f16"), Cast("g", "u", "i32", "i8", "signed"),
    )  # fmt: skip
    assert all(parse_design(print_design(p, d), d) == p for d in DESIGNS)


def test_every_mode_of_every_cast_reads_back():
    count = 0
    for src in TYPES:
        for dst in TYPES:
            for sign in ("", "signed", "unsigned"):
                if src == dst or (sign == "") != (is_float(src) and is_float(dst)):
                    continue
                cast = Cast("y", "x", src, dst, sign)
                programs = [CastProgram("f", (("x", src),), (replace(cast, mode=m),)) for m in ["", *modes_of(cast)]]
                count += len(programs)
                for d in DESIGNS:
                    texts = [print_design(p, d) for p in programs]
                    # Whatever differs reads differently.
                    assert len(set(texts)) == len(texts)
                    assert [parse_design(t, d) for t in texts] == programs
    assert count > 500


@pytest.mark.parametrize(
    "cast",
    [
        Cast("y", "x", "f32", "i8", "signed", "trunc"), Cast("y", "x", "f32", "i8", "signed", "none"),
        Cast("y", "x", "f32", "i8", "signed", "nonzero"), Cast("y", "x", "f16", "f32", "", "floor"),
        Cast("y", "x", "i32", "i8", "signed", "rint"), Cast("y", "x", "f32", "f16", "", "rint"),
        Cast("y", "x", "i32", "f32", "signed", "nearest"), Cast("y", "x", "i32", "index", "signed", "floor"),
    ],
)  # fmt: skip
def test_modes_that_say_nothing_or_too_much_are_refused(cast):
    with pytest.raises(TileggError) as caught:
        check(CastProgram("f", (("x", cast.src),), (cast,)))
    assert caught.value.diagnostics[0].code == "TG004" and cast.mode in caught.value.diagnostics[0].message


@pytest.mark.parametrize(
    "design, line",
    [
        (1, "%y = pto.cast %x {trunc} : f32 -> si8"), (2, "%y = pto.cast %x signed {nearest} : f32 -> i8"),
        (3, "%y = pto.nonzero %x unsigned {rint} : f32 -> i1"), (3, "%y = pto.ftoi %x unsigned {nonzero} : f32 -> i1"),
        (4, "%y = pto.cmpf_une_zero %x {rint} : f32 -> i1"), (4, "%y = pto.cmpi_ne_zero %x : f32 -> i1"),
        (4, "%y__via = pto.fptosi %x : f32 -> i64\n  %y = pto.index_cast %y__via {rint} : i64 -> index"),
        (1, "%y = builtin.unrealized_conversion_cast %x {rint} : f32 to si8"),
    ],
)  # fmt: skip
def test_modes_in_wrong_places_are_refused(design, line):
    with pytest.raises(TileggError) as caught:
        parse_design(f"func @f(%x: f32) {{\n  {line}\n}}\n", design)
    assert caught.value.diagnostics[0].code in ("TG027", "TG004")


MODES = """
@pl.function
def f(x: pl.Scalar[pl.FP32], n: pl.Scalar[pl.INT32], h: pl.Scalar[pl.FP16]):
    a = pl.cast(x, pl.INT8, mode="rint")
    b = pl.cast(x, pl.INT8, mode="trunc")
    c = pl.cast(x, pl.BOOL)
    d = pl.cast(n, pl.BOOL)
    e = pl.cast(n, pl.FP32, mode="floor")
    g = pl.cast(x, pl.FP16, mode="odd")
    i = pl.cast(h, pl.FP32, mode="ceil")
    j = pl.cast(x, pl.INDEX, mode="ceil")
    return a, b, c, d, e, g, i, j
"""


def test_modes_of_a_function():
    p = program_of(parse(MODES).functions[0])
    assert [c.mode for c in p.casts] == ["rint", "", "nonzero", "nonzero", "floor", "odd", "", "ceil"]
    texts = one, two, three, four = [print_design(p, d) for d in DESIGNS]
    assert [parse_design(t, d) for t, d in zip(texts, DESIGNS)] == [p] * 4
    assert "%a = pto.cast %x {rint} : f32 -> si8" in one and "%c = pto.cast %x {nonzero} : f32 -> ui1" in one
    assert "%a = pto.cast %x signed {rint} : f32 -> i8" in two and "%b = pto.cast %x signed : f32 -> i8" in two
    assert "%a = pto.ftoi %x signed {rint} : f32 -> i8" in three and "%d = pto.nonzero %n signed : i32 -> i1" in three
    assert "%a = pto.fptosi %x {rint} : f32 -> i8" in four and "%d = pto.cmpi_ne_zero %n : i32 -> i1" in four
    # 0.5 is not zero: no conversion to an integer of one bit.
    assert "%c = pto.cmpf_une_zero %x" in four and "fptoui" not in four
    assert "%j__via = pto.fptosi %x {ceil} : f32 -> i64\n  %j = pto.index_cast %j__via : i64 -> index" in four
