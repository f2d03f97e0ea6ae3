"""Verification of instructions that put elements elsewhere: joined rows, histograms, gathering, scattering, sorting.

Rules: assembler v0.60 verifier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr

from .accepted import ARITH, INTS, WIDE
from .conditions import (
    Named,
    admits,
    agree,
    capacity,
    element_in,
    fail,
    in_space,
    none_box,
    plain,
    row_major,
    same_element,
    same_valid,
    storage_bytes,
    tile,
    tiles,
)
from .elements import element_bytes, spell
from .types import DYNAMIC, TileBufType
from .words import WordAttr

if TYPE_CHECKING:
    from .dps import DpsOp

#: Columns of dst for each column of src, by mask pattern.
_SPREAD = {"P1111": 1, "P0101": 2, "P1010": 2}


def _vectors(values: Named, names: str) -> None:
    in_space(values, names)
    row_major(values, names)


def joined(op: DpsOp) -> None:
    """tconcatidx: signless elements, lengths of i8, i16 or i32, as many valid rows everywhere."""
    values = op.named()
    plain(values)
    same_element(values, "src0 src1 dst")
    same_element(values, "src0Idx src1Idx")
    in_space(values, "src0 src1 src0Idx src1Idx dst")
    same_valid(values, "dst src0 src1 src0Idx src1Idx", axes=(0,))
    for name, words in (("src0", WIDE), ("src0Idx", INTS)):
        found = tile(values, name)
        if found is not None and spell(found.element) not in words.split():
            fail(f"{name}: element type {spell(found.element)} is not one of {words}")
    for name, found in tiles(values, "src0Idx src1Idx"):
        if found.valid[1] == 0:
            fail(f"{name} must have at least one valid column")


def joined_on(op: DpsOp, arch: str) -> None:
    """tconcatidx on a5: row_major."""
    if arch == "a5":
        row_major(op.named(), "src0 src1 src0Idx src1Idx dst")


def histogram(op: DpsOp) -> None:
    """thistogram: a column of filter bytes for 16-bit elements, else a row for each byte above the counted one."""
    values = op.named()
    plain(values)
    in_space(values, "src idx dst")
    row_major(values, "src dst")
    none_box(values, "src dst")
    for name, words in (("src", "i16 i32"), ("idx", "i8"), ("dst", "i32")):
        element_in(values, name, words)
    src, idx, dst = (tile(values, name) for name in ("src", "idx", "dst"))
    assert src is not None and idx is not None and dst is not None
    if src.data.rows != dst.data.rows or not agree(src.valid[0], dst.valid[0]):
        fail("dst must have src's rows and valid rows")
    if dst.data.cols < 256 or 0 < dst.valid[1] < 256:
        fail(f"dst must have at least 256 columns, not {min(dst.data.cols, dst.valid[1])}")
    given = op.properties.get("byte")
    byte = given.value.data if isinstance(given, IntegerAttr) else 1
    wide = element_bytes(src.element) == 4
    if not 0 <= byte < (4 if wide else 2):
        fail(f"byte must be 0 to {3 if wide else 1} for {spell(src.element)}, not {byte}")
    if not wide:
        _filter_column(src, idx)
    elif byte != 3:
        _filter_rows(src, idx, 3 - byte)


def _filter_column(src: TileBufType, idx: TileBufType) -> None:
    if (idx.data.blayout, idx.data.slayout) != ("col_major", "none_box"):
        fail("idx must use the col_major blayout and the none_box slayout for 16-bit elements")
    if idx.data.rows != src.data.rows or not agree(idx.valid[0], src.valid[0]):
        fail(f"idx must have src's rows, {src.data.rows}, and valid rows, not {idx.data.rows}")
    if idx.data.cols != 1 or idx.valid[1] not in (0, 1):
        fail(f"idx must have one column, not {idx.data.cols}")


def _filter_rows(src: TileBufType, idx: TileBufType, rows: int) -> None:
    if (idx.data.blayout, idx.data.slayout) != ("row_major", "none_box"):
        fail("idx must use the row_major blayout and the none_box slayout for 32-bit elements")
    if idx.data.cols != src.data.cols or not agree(idx.valid[1], src.valid[1]):
        fail(f"idx must have src's columns, {src.data.cols}, and valid columns, not {idx.data.cols}")
    if idx.data.rows != rows or idx.valid[0] not in (0, rows, DYNAMIC):
        fail(f"idx must have {rows} rows for this byte, not {idx.data.rows}")


def blocks(op: DpsOp) -> None:
    """tgatherb: elements of 1, 2 or 4 bytes."""
    values = op.named()
    plain(values)
    dst = tile(values, "dst")
    if dst is not None and element_bytes(dst.element) not in (1, 2, 4):
        fail(f"dst must have elements of 1, 2 or 4 bytes, not {spell(dst.element)}")


def blocks_on(op: DpsOp, arch: str) -> None:
    """tgatherb on a2a3: dst is row_major."""
    if arch == "a2a3":
        row_major(op.named(), "dst")


def sort(op: DpsOp) -> None:
    """tsort32: values and pairs of one float type, 32-bit indices."""
    values = op.named()
    plain(values)
    _vectors(values, "src idx tmp dst")
    same_element(values, "src dst")
    element_in(values, "src", "f16 f32")
    element_in(values, "idx", "i32")


def sort_on(op: DpsOp, arch: str) -> None:
    """tsort32 tmp on a2a3: as large as src."""
    src = tile(op.named(), "src")
    if arch == "a2a3" and src is not None:
        capacity(op.named(), "tmp", storage_bytes(src))


def indexed(src: TileBufType, indices: TileBufType, dst: TileBufType) -> None:
    """tscatter by index: src and indices of one valid shape, which does not exceed dst's; indices as wide as data."""
    values = {"src": src, "indexes": indices, "dst": dst}
    _plain_vectors(values)
    _like(src, dst)
    if not admits(WIDE, spell(src.element)):
        fail(f"src: element type {spell(src.element)} is not one of {WIDE}")
    width, index = element_bytes(src.element), spell(indices.element).lstrip("us")
    wanted = "i32" if width == 4 else "i16"
    if index != wanted:
        fail(f"indices for {spell(src.element)} must be {wanted}, not {spell(indices.element)}")
    for axis in (0, 1):
        if not agree(src.valid[axis], indices.valid[axis]):
            fail("src and indexes must have the same valid shape")
        if DYNAMIC not in (src.valid[axis], dst.valid[axis]) and src.valid[axis] > dst.valid[axis]:
            fail(f"the valid shape of src, {_text(src)}, must not exceed dst's, {_text(dst)}")


def masked(src: TileBufType, dst: TileBufType, pattern: object, axis: str) -> None:
    """tscatter by mask pattern: dst is valid in src's valid shape, spread along the axis."""
    _plain_vectors({"src": src, "dst": dst})
    _like(src, dst)
    if not admits(WIDE, spell(src.element)):
        fail(f"src: element type {spell(src.element)} is not one of {WIDE}")
    _spread_along(src, dst, pattern, axis)


def picked(src: TileBufType, dst: TileBufType, pattern: object, axis: str) -> None:
    """tgather by mask pattern: src is valid in dst's valid shape, spread along the axis; elements of one size."""
    _row_major_vectors({"src": src, "dst": dst})
    if element_bytes(src.element) != element_bytes(dst.element):
        fail(f"src and dst must have elements of one size, not {spell(src.element)} and {spell(dst.element)}")
    _spread_along(dst, src, pattern, axis)


def _spread_along(few: TileBufType, many: TileBufType, pattern: object, axis: str) -> None:
    if axis not in ("row", "col"):
        fail(f"axis must be row or col, not {axis}")
    along = 1 if axis == "row" else 0
    times = _SPREAD.get(pattern.data, 4) if isinstance(pattern, WordAttr) else 1
    for i in (0, 1):
        factor = times if i == along else 1
        if DYNAMIC not in (few.valid[i], many.valid[i]) and many.valid[i] != few.valid[i] * factor:
            fail(f"the valid shape {_text(many)} must be {_text(few)}, times {times} along the axis")


def by_index(src: TileBufType, dst: TileBufType) -> None:
    """tgather by index: one element type."""
    _like(src, dst)


def by_comparison(
    src: TileBufType, dst: TileBufType, counts: TileBufType, tmp: TileBufType, value: object, how: str
) -> None:
    """tgather by comparison: eq or gt; indices and counts of one 32-bit integer type."""
    _plain_vectors({"src": src, "dst": dst, "cdst": counts, "tmp": tmp})
    if spell(dst.element).lstrip("us") != "i32":
        fail(f"dst must have 32-bit integer elements, not {spell(dst.element)}")
    if counts.element != dst.element:
        fail(f"cdst must have dst's element type {spell(dst.element)}, not {spell(counts.element)}")
    if value != src.element:
        fail(f"the compared value must have src's element type {spell(src.element)}")
    if how not in ("eq", "gt"):
        fail(f"cmpMode must be eq or gt, not {how}")
    if not admits(ARITH, spell(src.element)):
        fail(f"src: element type {spell(src.element)} is not one of {ARITH}")


def by_comparison_on(src: TileBufType, how: str, arch: str) -> None:
    """tgather by comparison on a2a3: floats, and i32 for equality."""
    if arch == "a2a3" and not admits("f16 f32 i32" if how == "eq" else "f16 f32", spell(src.element)):
        fail(f"{spell(src.element)} is not compared with {how} on a2/a3")


def counted(op: DpsOp) -> None:
    """tci: 16- or 32-bit integers from a first one of their type, in more than one column."""
    values = op.named()
    dst = tile(values, "dst")
    element_in(values, "dst", "i16 i32")
    if dst is not None and values["S"].type != dst.element:
        fail(f"the first number must have dst's element type {spell(dst.element)}")
    if dst is not None and dst.data.cols == 1:
        fail("dst must have more than one column")


def counted_on(op: DpsOp, arch: str) -> None:
    """tci tmp on a2a3: plain four-byte elements, as many as the routine uses."""
    values = op.named()
    dst, tmp = tile(values, "dst"), tile(values, "tmp")
    if arch == "a5" or dst is None or tmp is None:
        return
    _vectors(values, "tmp")
    none_box(values, "tmp")
    if spell(tmp.element).lstrip("us") not in ("i32", "f32"):
        fail(f"tmp must have four-byte elements on a2/a3, not {spell(tmp.element)}")
    capacity(values, "tmp", 768 if element_bytes(dst.element) == 4 else 1792)


def random_numbers(op: DpsOp) -> None:
    """trandom: 32-bit integers in rows, 7 or 10 rounds."""
    values = op.named()
    row_major(values, "dst")
    element_in(values, "dst", "i32")
    given = op.properties.get("rounds")
    if isinstance(given, IntegerAttr) and given.value.data not in (7, 10):
        fail(f"rounds must be 7 or 10, not {given.value.data}")


def _plain_vectors(found: dict[str, TileBufType]) -> None:
    for name, t in found.items():
        if not admits(f"{WIDE} i64", spell(t.element)):
            fail(f"{name}: element type {spell(t.element)} is not supported by this operation")
    _row_major_vectors(found)


def _row_major_vectors(found: dict[str, TileBufType]) -> None:
    for name, t in found.items():
        if t.data.space != "vec":
            fail(f"{name} must be in vec, not in {t.data.space}")
        if t.data.blayout != "row_major":
            fail(f"{name} must use the row_major blayout, not {t.data.blayout}")


def _like(src: TileBufType, dst: TileBufType) -> None:
    if src.element != dst.element:
        fail(f"src and dst must have the same element type, not {spell(src.element)} and {spell(dst.element)}")


def _text(t: TileBufType) -> str:
    return "x".join("?" if n == DYNAMIC else str(n) for n in t.valid)
