"""Verification rules of reductions and expansions that hold for every target.

Each rule demands what the assembler's verifier demands (assembler v0.60).
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr
from xdsl.utils.exceptions import VerifyException

from .conditions import (
    Named,
    admits,
    capacity,
    fail,
    in_space,
    is_empty,
    none_box,
    not_empty,
    plain,
    row_major,
    same_element,
    same_shape,
    same_valid,
    tile,
    valid_is,
)
from .dps import DpsOp
from .elements import element_bytes, spell
from .types import DYNAMIC


def row_reduction(op: DpsOp) -> None:
    """One value per row: dst has valid columns 1, in row_major or as one col_major column."""
    values = op.named()
    same_element(values, "src dst")
    row_layout(op)


def row_index(op: DpsOp) -> None:
    """trowargmax, trowargmin: dst holds 32-bit indices."""
    row_layout(op)
    _indices(op)
    values = op.named()
    not_empty(values, "src")
    valid_is(values, "dst", 1, 1)
    same_valid(values, "src dst", axes=(0,))


def _indices(op: DpsOp) -> None:
    dst = tile(op.named(), "dst")
    if dst is not None and not admits("i32", spell(dst.element)):
        fail(f"dst must have 32-bit integer elements, not {spell(dst.element)}")


def row_layout(op: DpsOp) -> None:
    """The layout of a reduction along rows."""
    values = op.named()
    plain(values)
    in_space(values, "src dst tmp")
    row_major(values, "src")
    none_box(values, "src dst")
    dst = tile(values, "dst")
    if dst is not None and dst.data.blayout == "col_major" and dst.data.cols != 1:
        fail(f"a col_major dst must have one column, not {dst.data.cols}")
    if not is_empty(values, "dst"):
        not_empty(values, "src")
        same_valid(values, "src dst", axes=(0,))
        valid_is(values, "dst", 1, 1)


def column_reduction(op: DpsOp) -> None:
    """One value per column: plain row_major vec tiles with equal valid columns."""
    values = op.named()
    same_element(values, "src dst")
    column_layout(op)
    if not is_empty(values, "dst"):
        same_valid(values, "src dst", axes=(1,))


def column_layout(op: DpsOp) -> None:
    """Plain row_major vec tiles."""
    values = op.named()
    plain(values)
    in_space(values, "src dst")
    row_major(values, "src dst")
    none_box(values, "src dst")


def column_index(op: DpsOp) -> None:
    """tcolargmax, tcolargmin: dst is one row of indices."""
    column_layout(op)
    _indices(op)
    values = op.named()
    not_empty(values, "src")
    in_space(values, "tmp")
    row_major(values, "tmp")
    valid_is(values, "dst", 0, 1)
    same_valid(values, "src dst", axes=(1,))


def column_sum(op: DpsOp) -> None:
    """tcolsum: as a column reduction; tmp and isBinary go together, a binary sum needs half of src in tmp."""
    column_reduction(op)
    values = op.named()
    binary_sum = op.properties.get("isBinary")
    if "tmp" not in values:
        return
    if binary_sum is None:
        fail("the tmp operand needs the isBinary attribute")
    same_element(values, "src tmp")
    in_space(values, "tmp")
    row_major(values, "tmp")
    none_box(values, "tmp")
    src, tmp = tile(values, "src"), tile(values, "tmp")
    assert src is not None and tmp is not None
    if isinstance(binary_sum, IntegerAttr) and binary_sum.value.data:
        rows, cols = src.valid
        if DYNAMIC in (rows, cols):
            fail("a binary sum needs static valid extents of src")
        if tmp.data.cols < cols:
            fail(f"tmp must have at least the {cols} valid columns of src, not {tmp.data.cols}")
        capacity(values, "tmp", -(-rows // 2) * cols * element_bytes(src.element))


def row_expand(op: DpsOp) -> None:
    """dst[r, c] = src[r]: vec, one element type, equal valid rows."""
    values = op.named()
    plain(values)
    in_space(values, "src dst")
    none_box(values, "src dst")
    row_major(values, "dst")
    same_element(values, "src dst")
    if not is_empty(values, "dst"):
        not_empty(values, "src dst")
        same_valid(values, "src dst", axes=(0,))


def column_expand(op: DpsOp) -> None:
    """dst[r, c] = src[c]: plain vec tiles, one element type, equal valid columns."""
    values = op.named()
    column_layout(op)
    same_element(values, "src dst")
    same_valid(values, "src dst", axes=(1,))


def row_expand_binary(op: DpsOp) -> None:
    """dst = src0 op src1 with one value per row spread over the columns.

    tadd wants src0 to be the full operand; max, min and expdif take either; the others compare nothing.
    """
    values = op.named()
    plain(values)
    same_element(values, "src0 src1 dst")
    row_major(values, "dst")
    kind = op.ROW.mnemonic.removeprefix("trowexpand")
    if kind == "add":
        _full_and_per_row(values, "src0", "src1")
    elif kind in ("max", "min", "expdif") and not is_empty(values, "dst"):
        not_empty(values, "dst")
        full, other = ("src0", "src1") if covers(values, "src0") else ("src1", "src0")
        _full_and_per_row(values, full, other)
        same_element(values, "dst tmp")


def covers(values: Named, name: str) -> bool:
    """True when the tile's valid shape agrees with dst's."""
    try:
        same_valid(values, f"dst {name}")
    except VerifyException:
        return False
    return True


def _full_and_per_row(values: Named, full: str, other: str) -> None:
    """``full`` covers dst, ``other`` has one value (or one 32-byte block) per row."""
    row_major(values, full)
    same_valid(values, f"dst {full}")
    same_valid(values, f"dst {other}", axes=(0,))
    found = tile(values, other)
    assert found is not None
    block = 32 // element_bytes(found.element)
    valid_is(values, other, 1, block if found.data.blayout == "row_major" else 1)


def column_expand_binary(op: DpsOp) -> None:
    """dst = src0 op src1 with src1 one row that is spread over the rows."""
    values = op.named()
    plain(values)
    same_element(values, "src0 src1 dst")
    same_shape(values, "src0 dst")
    same_valid(values, "src0 dst")
    same_valid(values, "src1 dst", axes=(1,))
    row_major(values, "src0 src1 dst")
