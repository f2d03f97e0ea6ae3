"""Verification rules of the tile operations that hold for every target.

Each rule demands what the assembler's verifier demands (assembler v0.60) and names the operands of the form
it belongs to. Rules of one target branch are in ``archchecks``.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType

from .base import constant_of
from .conditions import (
    Named,
    admits,
    capacity,
    distinct,
    fail,
    in_space,
    plain,
    row_major,
    same_element,
    same_shape,
    same_valid,
    tile,
    tiles,
)
from .dps import DpsOp
from .elements import PACKED_PAIRS, element_bytes, spell
from .types import DYNAMIC, TileBufType
from .words import WordAttr, word


def remainder_scalar(op: DpsOp) -> None:
    """trems, tfmods: src and dst of one element type and valid shape, row_major; the scalar has that type too."""
    values = op.named()
    plain(values)
    same_element(values, "src dst")
    same_valid(values, "src dst")
    row_major(values, "src dst")
    src = tile(values, "src")
    assert src is not None
    if values["scalar"].type != src.element:
        fail(f"the scalar must have the tiles' element type {spell(src.element)}")


def binary(op: DpsOp) -> None:
    """dst = src0 op src1: one element type, one valid shape, row_major (physical shapes may differ)."""
    values = op.named()
    plain(values)
    same_element(values, "src0 src1 dst")
    same_valid(values, "src0 src1 dst")
    row_major(values, "src0 src1 dst")


def prelu(op: DpsOp) -> None:
    """As binary, and equal physical shapes; tmp a row_major vec tile."""
    binary(op)
    same_shape(op.named(), "src0 src1 dst")
    in_space(op.named(), "tmp")
    row_major(op.named(), "tmp")


def power(op: DpsOp) -> None:
    """tpow, tpows: as binary; integers take no tmp, a scalar has the tiles' element type."""
    values = op.named()
    names = "base exp dst" if op.ROW.mnemonic == "tpow" else "src dst"
    plain(values)
    same_element(values, f"{names} tmp")
    same_valid(values, f"{names} tmp")
    row_major(values, f"{names} tmp")
    dst = tile(values, "dst")
    assert dst is not None
    if "scalar" in values and values["scalar"].type != dst.element:
        fail(f"the scalar must have the tiles' element type {spell(dst.element)}")
    if "tmp" in values and isinstance(dst.element, IntegerType):
        fail("integers take no tmp operand")


def shift(op: DpsOp) -> None:
    """tshl, tshr: as binary, each source against dst."""
    values = op.named()
    plain(values)
    same_element(values, "src0 src1 dst")
    same_valid(values, "dst src0 src1")
    row_major(values, "src0 src1 dst")


def same_shapes(op: DpsOp) -> None:
    """taddc, taddsc: equal physical shapes, and nothing else."""
    same_shape(op.named(), "src0 src1 src2 dst")


def tile_scalar(op: DpsOp) -> None:
    """dst = src op scalar: vec tiles of one element type and valid shape; the scalar's type is free."""
    values = op.named()
    plain(values)
    in_space(values, "src dst")
    same_element(values, "src dst")
    same_valid(values, "src dst")


def either_scalar(op: DpsOp) -> None:
    """dst = src / scalar or scalar / src: exactly one of the two is a tile."""
    values = op.named()
    found = tiles(values, "src scalar")
    if len(found) != 1:
        fail("exactly one of src and scalar must be a tile")
    name = found[0][0]
    plain(values)
    in_space(values, f"{name} dst")
    same_element(values, f"{name} dst")
    same_valid(values, f"{name} dst")


def bitwise_scalar(op: DpsOp) -> None:
    """dst = src op scalar on bits: row_major tiles, and dst is not src."""
    values = op.named()
    distinct(values, "src", "dst")
    plain(values)
    same_element(values, "src dst")
    row_major(values, "src dst")
    same_valid(values, "src dst")


def shift_left_scalar(op: DpsOp) -> None:
    """Integer tiles of one element type, a constant distance is not negative."""
    values = op.named()
    plain(values)
    same_element(values, "src dst")
    distance = constant_of(values["scalar"])
    if distance is not None and distance < 0:
        fail(f"the shift distance must not be negative, not {distance}")


def unary(op: DpsOp) -> None:
    """dst = op src: vec row_major tiles of one element type and valid shape."""
    unary_any_layout(op)
    row_major(op.named(), "src dst")


def unary_any_layout(op: DpsOp) -> None:
    """dst = op src: vec tiles of one element type and valid shape, in any layout."""
    negate(op)
    same_valid(op.named(), "src dst", axes=(0,))


def negate(op: DpsOp) -> None:
    """tneg: vec tiles of one element type and valid columns, in any layout."""
    values = op.named()
    plain(values)
    in_space(values, "src dst")
    same_element(values, "src dst")
    same_valid(values, "src dst", axes=(1,))


def rsqrt(op: DpsOp) -> None:
    """As unary; high precision needs a tmp, and a tmp holds at least 32 bytes."""
    unary(op)
    values = op.named()
    if (
        op.properties.get("precisionType") == word("rsqrt_precision", "high_precision")
        and "tmp" not in values
    ):
        fail("high_precision needs the tmp operand")
    in_space(values, "tmp")
    row_major(values, "tmp")
    capacity(values, "tmp", 32)


def axpy(op: DpsOp) -> None:
    """dst += src * scalar: the scalar has src's element type; dst may widen f16 to f32."""
    values = op.named()
    plain(values)
    in_space(values, "src dst")
    row_major(values, "src dst")
    same_valid(values, "src dst")
    same_shape(values, "src dst")
    src, dst = tile(values, "src"), tile(values, "dst")
    assert src is not None and dst is not None
    if values["scalar"].type != src.element:
        fail(f"the scalar must have src's element type {spell(src.element)}, not {values['scalar'].type}")
    if src.element != dst.element and (spell(src.element), spell(dst.element)) != ("f16", "f32"):
        fail(f"dst must have src's element type, or f32 for f16, not {spell(dst.element)}")


def fill(op: DpsOp) -> None:
    """dst = scalar everywhere: the scalar has dst's element type; dst in vec or mat."""
    values = op.named()
    plain(values)
    in_space(values, "dst", "vec mat")
    dst = tile(values, "dst")
    assert dst is not None
    if values["scalar"].type != dst.element:
        fail(f"the scalar must have dst's element type {spell(dst.element)}, not {values['scalar'].type}")


def convert(op: DpsOp) -> None:
    """tcvt: equal physical and valid shapes, where a packed pair counts as two columns."""
    values = op.named()
    src, dst = tile(values, "src"), tile(values, "dst")
    assert src is not None and dst is not None
    for what, one, other in (
        ("physical shape", _logical(src, src.shape), _logical(dst, dst.shape)),
        ("valid shape", _logical(src, src.valid), _logical(dst, dst.valid)),
    ):
        if any(DYNAMIC not in (a, b) and a != b for a, b in zip(one, other, strict=True)):
            fail(f"src and dst must have the same {what}, not {one[0]}x{one[1]} and {other[0]}x{other[1]}")
    in_space(values, "tmp")
    row_major(values, "tmp")
    plain({"tmp": values["tmp"]} if "tmp" in values else {})


def _logical(found: TileBufType, extents: tuple[int, int]) -> tuple[int, int]:
    """Return extents in values; columns of a packed-pair tile count bytes."""
    rows, cols = extents
    double = spell(found.element) in PACKED_PAIRS and cols != DYNAMIC
    return rows, 2 * cols if double else cols


def compare(op: DpsOp) -> None:
    """tcmp: sources of one element type, a mask of 8-bit integers."""
    values = op.named()
    plain(values)
    same_element(values, "src0 src1")
    mask = tile(values, "dst")
    if mask is not None and not admits("i8", spell(mask.element)):
        fail(f"the mask must have 8-bit integer elements, not {spell(mask.element)}")


def compare_scalar(op: DpsOp) -> None:
    """tcmps: vec tiles with equal valid rows; the scalar's and the mask's types are free."""
    values = op.named()
    plain(values)
    in_space(values, "src dst")
    same_valid(values, "src dst", axes=(0,))


def select(op: DpsOp) -> None:
    """tsel: data tiles of one element type, row_major; tmp a row_major vec tile. The mask is free."""
    values = {name: value for name, value in op.named().items() if name != "mask"}
    plain(values)
    in_space(values, "tmp")
    row_major(values, "src0 src1 dst tmp")
    same_element(values, "src0 src1 dst")


def select_scalar(op: DpsOp) -> None:
    """tsels: src and dst of one element type and valid shape, row_major."""
    values = op.named()
    plain(values)
    same_element(values, "src dst")
    same_valid(values, "src dst")
    row_major(values, "src dst")


def partial(op: DpsOp) -> None:
    """dst = src0 op src1 where both are valid: neither is larger than dst."""
    values = op.named()
    plain(values)
    same_element(values, "src0 src1 dst")
    kind = op.ROW.mnemonic.removeprefix("tpart")
    if kind not in ("add", "mul"):
        same_shape(values, "src0 src1 dst")
    if kind.startswith("arg"):
        _index_tiles(values)
    dst = tile(values, "dst")
    assert dst is not None
    for name, found in tiles(values, "src0 src1"):
        if any(DYNAMIC not in (a, b) and a > b for a, b in zip(found.valid, dst.valid, strict=True)):
            fail(f"the valid shape of {name} must not exceed dst's")


def _index_tiles(values: Named) -> None:
    """Each index tile has 32-bit integers and the shapes of its data tile."""
    same_element(values, "dstIdx src0Idx src1Idx")
    found = tile(values, "dstIdx")
    if found is not None and not admits("i32", spell(found.element)):
        fail(f"index tiles must have 32-bit integer elements, not {spell(found.element)}")
    for name in ("src0", "src1", "dst"):
        same_shape(values, f"{name} {name}Idx")
        data, index = tile(values, name), tile(values, f"{name}Idx")
        if data is not None and index is not None and data.valid != index.valid:
            fail(f"{name} and {name}Idx must have the same valid shape")


def concat(op: DpsOp) -> None:
    """dst = src0 | src1 along the columns: equal valid rows, and the columns fit."""
    values = op.named()
    plain(values)
    in_space(values, "src0 src1 dst")
    same_element(values, "src0 src1 dst")
    same_valid(values, "dst src0 src1", axes=(0,))
    one, other, dst = (tile(values, name) for name in ("src0", "src1", "dst"))
    assert one is not None and other is not None and dst is not None
    cols = (one.valid[1], other.valid[1])
    if DYNAMIC not in cols and sum(cols) > dst.data.cols:
        fail(f"dst must have room for {sum(cols)} columns, not {dst.data.cols}")


def pad(op: DpsOp) -> None:
    """tfillpad: elements of one size (1, 2 or 4 bytes), dst at least as large; padValue only in mat."""
    values = op.named()
    src, dst = tile(values, "src"), tile(values, "dst")
    assert src is not None and dst is not None
    sizes = (element_bytes(src.element), element_bytes(dst.element))
    if sizes[0] != sizes[1] or sizes[0] not in (1, 2, 4):
        fail(
            f"src and dst elements must have the same size of 1, 2 or 4 bytes, not {sizes[0]} and {sizes[1]}"
        )
    if any(a > b for a, b in zip(src.shape, dst.shape, strict=True)):
        fail("dst must be at least as large as src")
    if src.shape != dst.shape:
        in_space(values, "src dst")
    if dst.data.pad == 0:
        fail("dst's type must have a pad other than 0")
    if src.data.space == dst.data.space == "mat" and src != dst:
        fail("in mat, src and dst must have the same type")
    given = op.properties.get("padValue")
    if isinstance(given, WordAttr):
        in_space(values, "dst", "mat")
        # The words stand in the order of the numbers a tile type's pad has.
        if given.words.index(given.data) != dst.data.pad:
            fail(f"padValue {given.data} is not the pad of dst's type, {given.words[dst.data.pad]}")


def transpose(op: DpsOp) -> None:
    """ttrans: one element type; a tmp holds at least 32 bytes. Shapes are free."""
    values = op.named()
    plain(values)
    same_element(values, "src dst tmp")
    capacity(values, "tmp", 32)


_MATRIX_SPACES = {"lhs": "left", "a": "left", "rhs": "right", "b": "right"}


def matrix(op: DpsOp) -> None:
    """Matrix products: left and right operands and an accumulator, each in its own memory."""
    values = op.named()
    for name, space in _MATRIX_SPACES.items():
        in_space(values, name, space)
    in_space(values, "dst acc_in c_in", "acc")
