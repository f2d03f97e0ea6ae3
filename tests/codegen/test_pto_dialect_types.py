"""Types and enumerated attributes of the PTO dialect: both tile forms, round trips, refusals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tilegg.codegen.pto.api import (
    DYNAMIC,
    parse_pto,
    partition_type,
    pto_context,
    ptr_type,
    tensor_view_type,
    tile_type,
    word,
)
from tilegg.codegen.pto.elements import ELEMENTS, element, element_bytes
from tilegg.codegen.pto.types import BLAYOUTS, SLAYOUTS, SPACES, TileBufType
from tilegg.codegen.pto.words import ENUM_WORDS, PARAMETER_WORDS
from tilegg.ir.diagnostics import TileggError
from xdsl.parser import Parser

CONTEXT = pto_context()


def read_type(text: str) -> object:
    return Parser(CONTEXT, text).parse_type()


def long_form(tile: TileBufType) -> str:
    """Spell every field, as the older versions of the assembler want it."""
    spec = tile.data
    valid = ["?" if v == DYNAMIC else str(v) for v in spec.valid]
    element_text = next(text for text, attr in ELEMENTS.items() if attr == spec.element)
    return (
        f"!pto.tile_buf<loc={spec.space}, dtype={element_text}, rows={spec.rows}, cols={spec.cols}, "
        f"v_row={valid[0]}, v_col={valid[1]}, blayout={spec.blayout}, slayout={spec.slayout}, "
        f"fractal={spec.fractal}, pad={spec.pad}, compact={spec.compact}>"
    )


@st.composite
def tiles(draw: st.DrawFn) -> TileBufType:
    rows, cols = draw(st.integers(1, 300)), draw(st.integers(1, 300))
    valid = tuple(draw(st.integers(-1, extent)) for extent in (rows, cols))
    return tile_type(
        draw(st.sampled_from(sorted(ELEMENTS))),
        rows,
        cols,
        valid=(valid[0], valid[1]),
        space=draw(st.sampled_from(SPACES)),
        blayout=draw(st.sampled_from(BLAYOUTS)),
        slayout=draw(st.sampled_from(SLAYOUTS)),
        fractal=draw(st.sampled_from((32, 512, 1024))),
        pad=draw(st.integers(0, 3)),
        compact=draw(st.integers(0, 2)),
    )


@settings(max_examples=200, deadline=None)
@given(tiles())
def test_any_tile_type_comes_back_from_both_forms(tile: TileBufType) -> None:
    text = str(tile)
    assert read_type(text) == tile
    assert read_type(long_form(tile)) == tile
    assert read_type(text.replace(", ", " ,  ")) == tile
    assert str(read_type(long_form(tile))) == text


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(sorted(ELEMENTS)),
    st.lists(st.one_of(st.just(DYNAMIC), st.integers(0, 70)), min_size=1, max_size=5),
)
def test_any_view_type_comes_back(dtype: str, dims: list[int]) -> None:
    for make in (tensor_view_type, partition_type):
        view = make(dtype, tuple(dims))
        assert read_type(str(view)) == view


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("!pto.ptr<f32, gm>", "!pto.ptr<f32>"),
        ("!pto.ptr<i8, vec>", "!pto.ptr<i8, ub>"),
        ("!pto.ptr<!pto.hif8>", "!pto.ptr<!pto.hif8>"),
        ("!pto.tensor_view<?x0x4xf32>", "!pto.tensor_view<?x0x4xf32>"),
        ("!pto.tile_buf<vec, 8x8xf32, valid=8x8, pad=0>", "!pto.tile_buf<vec, 8x8xf32>"),
        (
            "!pto.tile_buf<mat, 16x16xf16, pad=2, valid=0x4>",
            "!pto.tile_buf<mat, 16x16xf16, valid=0x4, pad=2>",
        ),
        (
            "!pto.tile_buf<loc=vec, dtype=i8, rows=2, cols=32, v_row=-1, v_col=3, blayout=row_major, "
            "slayout=none_box, fractal=512, pad=0>",
            "!pto.tile_buf<vec, 2x32xi8, valid=?x3>",
        ),
    ],
)
def test_spellings(written: str, printed: str) -> None:
    assert str(read_type(written)) == printed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("!pto.tile_buf<gm, 8x8xf32>", "space must be one of vec"),
        ("!pto.tile_buf<vec, 0x8xf32>", "must be positive"),
        ("!pto.tile_buf<vec, 8x8xf32, valid=9x8>", "valid rows 9 outside 0..8"),
        ("!pto.tile_buf<vec, 8x8xf32, valid=8x9>", "valid columns 9 outside 0..8"),
        ("!pto.tile_buf<vec, 8x8xf32, fractal=64>", "fractal must be one of 32, 512, 1024"),
        ("!pto.tile_buf<vec, 8x8xf32, pad=4>", "pad must be one of 0, 1, 2, 3"),
        ("!pto.tile_buf<vec, 8x8xf32, blayout=nd>", "blayout must be one of"),
        ("!pto.tile_buf<vec, 8x8xf32, pad=1, pad=1>", "pad is given twice"),
        ("!pto.tile_buf<vec, 8x8xf32, valid=1x1, valid=1x1>", "valid is given twice"),
        ("!pto.tile_buf<vec, 8x8xf32, mode=1>", "unknown key mode"),
        ("!pto.tile_buf<vec, 8x8x8xf32>", "type expected"),
        ("!pto.tile_buf<vec, ?x8xf32>", "expected the physical shape"),
        ("!pto.tile_buf<loc=vec, rows=8>", "Expected 'dtype'"),
        ("!pto.ptr<f32, hbm>", "expected one of gm"),
        ("!pto.tensor_view<f32>", "at least one dimension"),
    ],
)
def test_impossible_types_are_refused(text: str, words: str) -> None:
    with pytest.raises(TileggError, match=words.replace("?", r"\?")):
        parse_pto(f"func.func @k(%a: {text}) {{ return }}")


def test_types_are_shared_and_checked_when_made() -> None:
    assert tile_type("f32", 8, 8) is tile_type("f32", 8, 8, valid=(8, 8))
    assert ptr_type("f32", "vec") == ptr_type("f32", "ub")
    for bad in (
        lambda: tile_type("f64", 8, 8),
        lambda: tile_type("f32", 8, 8, valid=(9, 1)),
        lambda: element("x"),
    ):
        with pytest.raises(ValueError, match=r"element type|outside"):
            bad()


def test_element_sizes_are_those_of_storage() -> None:
    sizes = {name: element_bytes(attr) for name, attr in ELEMENTS.items()}
    assert sizes["i1"] == sizes["ui8"] == sizes["f8E4M3FN"] == sizes["!pto.f4E2M1x2"] == 1
    assert sizes["bf16"] == sizes["i16"] == 2 and sizes["f32"] == 4 and sizes["i64"] == 8


@pytest.mark.parametrize("family", [*ENUM_WORDS, *PARAMETER_WORDS])
def test_every_word_comes_back_in_its_own_spelling(family: str) -> None:
    spaced = family in ENUM_WORDS
    for text in (ENUM_WORDS | PARAMETER_WORDS)[family].split():
        attr = word(family, text)
        written = f"#pto<{family} {text}>" if spaced else f"#pto.{family}<{text}>"
        assert str(attr) == written
        assert Parser(CONTEXT, written).parse_attribute() == attr


def test_the_two_spellings_do_not_mix() -> None:
    for text in ("#pto.cmp<lt>", "#pto<layout nd>", "#pto<cmp less>"):
        with pytest.raises(TileggError):
            parse_pto(f"func.func @k() attributes {{x = {text}}} {{ return }}")


def test_unknown_words_are_refused_when_made() -> None:
    with pytest.raises(ValueError, match="the words of cmp: eq, ne"):
        word("cmp", "less")
    with pytest.raises(ValueError, match="not an attribute family"):
        word("compare", "lt")
