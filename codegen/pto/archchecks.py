"""Verification rules that hold for one target branch only: ``"a2a3"`` (a2, a3, no arch given) or ``"a5"``.

Figures for scratch tiles: assembler v0.60 verifier. The lists of element types are in ``accepted``.
"""

from __future__ import annotations

from xdsl.utils.exceptions import VerifyException

from .accepted import A5_LOW_PRECISION_CASTS, accepted
from .conditions import (
    Named,
    capacity,
    element_in,
    fail,
    in_space,
    none_box,
    not_empty,
    row_major,
    same_element,
    same_shape,
    same_valid,
    storage_bytes,
    tile,
    tiles,
)
from .dps import DpsOp
from .elements import LOW_PRECISION, element_bytes, spell
from .types import DYNAMIC, TileBufType
from .words import word

#: Names for the two verifier branches; any other arch word is taken as a2a3 by the assembler.
BRANCHES = {"a2": "a2a3", "a3": "a2a3", "a2a3": "a2a3", "a5": "a5"}
_LABEL = {"a2a3": "on a2/a3", "a5": "on a5"}
_DATA = ("src0", "src", "scalar", "dst")


def check_elements(op: DpsOp, arch: str) -> None:
    """The element type of the data is one the target's list has."""
    words = accepted(op.ROW.mnemonic, arch)
    if words is None:
        return
    if not words:
        fail(f"pto.{op.ROW.mnemonic} does not exist {_LABEL[arch]}")
    values = op.named()
    name = next(name for name in _DATA if tile(values, name) is not None)
    element_in(values, name, words, _LABEL[arch])


def rows_too(op: DpsOp, arch: str) -> None:
    """Tile-scalar on a2a3: valid rows agree too (a5 does not compare them for tadds)."""
    if arch == "a2a3" or op.ROW.mnemonic != "tadds":
        same_valid(op.named(), "src dst", axes=(0,))


def fill(op: DpsOp, arch: str) -> None:
    """texpands on a2a3: a vec dst is row_major."""
    values = op.named()
    dst = tile(values, "dst")
    if arch == "a2a3" and dst is not None and dst.data.space == "vec":
        row_major(values, "dst")


def compare(op: DpsOp, arch: str) -> None:
    """tcmp: on a5 the three have one physical shape, though the mask is packed.

    On a2a3: vec tiles, equal valid shapes of the sources, equal valid rows of the mask.
    """
    values = op.named()
    if arch == "a5":
        same_shape(values, "src0 src1 dst")
        return
    in_space(values, "src0 src1 dst")
    same_valid(values, "src0 src1")
    same_valid(values, "src0 dst", axes=(0,))


def select(op: DpsOp, arch: str) -> None:
    """tsel tmp on a2a3: four-byte elements; 16 bytes for 16-bit data, 8 for 32-bit data."""
    values = op.named()
    tmp, data = tile(values, "tmp"), tile(values, "src0")
    if arch == "a5" or tmp is None or data is None:
        return
    if element_bytes(tmp.element) != 4:
        fail(f"tmp must have four-byte elements on a2/a3, not {spell(tmp.element)}")
    capacity(values, "tmp", 16 if element_bytes(data.element) == 2 else 8)


def select_scalar(op: DpsOp, arch: str) -> None:
    """tsels: on a5 the mask is row_major; on a2a3 tmp has src's element type and at least one row of it."""
    values = op.named()
    if arch == "a5":
        row_major(values, "mask")
        return
    same_element(values, "src tmp")
    row_major(values, "tmp")
    src = tile(values, "src")
    assert src is not None
    capacity(values, "tmp", src.data.cols * element_bytes(src.element))


def row_reduction(op: DpsOp, arch: str) -> None:
    """tmp on a2a3: the element type of src, at least 32 bytes."""
    if arch == "a2a3":
        same_element(op.named(), "src tmp")
        capacity(op.named(), "tmp", 32)


def column_sum(op: DpsOp, arch: str) -> None:
    """tcolsum on a5: src is not empty."""
    if arch == "a5" and not _empty_marker(op.named()):
        not_empty(op.named(), "src")


def _empty_marker(values: Named) -> bool:
    dst = tile(values, "dst")
    return dst is not None and dst.valid == (0, 0)


def convert(op: DpsOp, arch: str) -> None:
    """tcvt: a5 has some low-precision pairs, a2a3 none; on a2a3 a tmp has the size the routine uses."""
    values = op.named()
    src, dst = tile(values, "src"), tile(values, "dst")
    assert src is not None and dst is not None
    one, other = spell(src.element), spell(dst.element)
    if one in LOW_PRECISION or other in LOW_PRECISION:
        if arch == "a2a3":
            fail(f"low-precision element types are not supported on a2/a3 ({one} to {other})")
        if other not in A5_LOW_PRECISION_CASTS.get(one, ()):
            fail(f"there is no conversion from {one} to {other} on a5")
    if arch == "a2a3" and "tmp" in values:
        capacity(values, "tmp", _convert_scratch(op, src, dst))


def _convert_scratch(op: DpsOp, src: TileBufType, dst: TileBufType) -> int:
    """Return the bytes of tmp a conversion without saturation uses on a2/a3."""
    if op.properties.get("sat_mode", word("saturation_mode", "OFF")).data == "ON":  # type: ignore[attr-defined]
        return 0
    one, size = spell(src.element), element_bytes(dst.element)
    pair = one, spell(dst.element).lstrip("us")
    if pair not in (("f32", "i16"), ("f16", "i16"), ("f16", "i8")):
        return 0
    rows, cols = dst.valid
    if DYNAMIC in (rows, cols):
        fail("a tmp needs static valid extents of dst on a2/a3")
    if one == "f32":
        head = 256 * min(cols // 64, 255)
        rest = cols % 64
        tail = 32 * ((min(rows, 255) - 1) * (src.data.cols // 8) + -(-rest // 8)) if rest else 0
        return max(head, tail) if rows and cols else 0
    width = min(cols, 64)
    narrow = 32 * -(-width // 8)
    return max(narrow, 128 + 32 * -(-width // 16)) if size == 1 and cols else narrow


def transpose(op: DpsOp, arch: str) -> None:
    """ttrans: src row_major and tmp as large as src when used on a2a3; 32-byte major dimensions on a5."""
    values = op.named()
    src, dst = tile(values, "src"), tile(values, "dst")
    assert src is not None and dst is not None
    if arch == "a2a3":
        row_major(values, "src")
        if _transpose_uses_tmp(src, dst):
            capacity(values, "tmp", storage_bytes(src))
        return
    for name, found in tiles(values, "src dst"):
        major = found.data.cols if found.data.blayout == "row_major" else found.data.rows
        if major * element_bytes(found.element) % 32:
            fail(f"the major dimension of {name} must be a multiple of 32 bytes on a5")


def _transpose_uses_tmp(src: TileBufType, dst: TileBufType) -> bool:
    size = element_bytes(src.element)
    blocks, rest = divmod(src.data.cols, 32 // size)
    return dst.data.cols % (32 if size == 1 else 16) == 0 and rest == 0 and blocks <= 255


def remainder(op: DpsOp, arch: str) -> None:
    """trem and trems tmp on a2a3: dst's element type, enough rows and columns; vec and row_major on both."""
    values = op.named()
    in_space(values, "tmp")
    row_major(values, "tmp")
    tmp, dst = tile(values, "tmp"), tile(values, "dst")
    if arch == "a5" or tmp is None or dst is None:
        return
    same_element(values, "dst tmp")
    rows = 2 if op.ROW.mnemonic == "trem" else 1
    if tmp.valid[0] != DYNAMIC and tmp.valid[0] < rows:
        fail(f"tmp must have at least {rows} valid rows on a2/a3, not {tmp.valid[0]}")
    if DYNAMIC not in (tmp.valid[1], dst.valid[1]) and tmp.valid[1] < dst.valid[1]:
        fail(f"tmp must have at least the {dst.valid[1]} valid columns of dst on a2/a3, not {tmp.valid[1]}")
    capacity(values, "tmp", rows * dst.data.cols * element_bytes(dst.element))


def exclusive_or(op: DpsOp, arch: str) -> None:
    """txor and txors tmp on a2a3: element type, valid shape and bytes of dst, row_major."""
    values = op.named()
    tmp, dst = tile(values, "tmp"), tile(values, "dst")
    if arch == "a5" or tmp is None or dst is None:
        return
    same_element(values, "dst tmp")
    row_major(values, "tmp")
    same_valid(values, "dst tmp")
    capacity(values, "tmp", storage_bytes(dst))


def prelu(op: DpsOp, arch: str) -> None:
    """tprelu tmp on a2a3: 8-bit integers, one row more than dst, a packed bit per column."""
    values = op.named()
    tmp, dst = tile(values, "tmp"), tile(values, "dst")
    if arch == "a5" or tmp is None or dst is None:
        return
    element_in(values, "tmp", "i8", _LABEL[arch])
    in_space(values, "tmp")
    row_major(values, "tmp")
    if dst.valid[0] != DYNAMIC and tmp.data.rows < dst.valid[0] + 1:
        fail(f"tmp must have at least {dst.valid[0] + 1} rows on a2/a3, not {tmp.data.rows}")
    if DYNAMIC not in (dst.valid[1], tmp.valid[1]) and tmp.valid[1] < -(-dst.valid[1] // 8):
        fail(f"tmp must have at least {-(-dst.valid[1] // 8)} valid columns on a2/a3, not {tmp.valid[1]}")


def partial(op: DpsOp, arch: str) -> None:
    """tpart* on a2a3: at least one source has dst's valid shape."""
    values = op.named()
    if arch == "a5" or op.ROW.mnemonic == "tpartmul":
        return
    for name in ("src0", "src1"):
        try:
            same_valid(values, f"dst {name}")
            return
        except VerifyException:
            continue
    fail("at least one of src0 and src1 must have dst's valid shape on a2/a3")


def concat(op: DpsOp, arch: str) -> None:
    """tconcat on a5: row_major."""
    if arch == "a5":
        row_major(op.named(), "src0 src1 dst")


def only_a5(op: DpsOp, arch: str) -> None:
    """The operation exists on a5 only."""
    if arch != "a5":
        fail(f"{op.name} exists on a5 only")


def microscale(op: DpsOp, arch: str) -> None:
    """tquant.mx exists on a5 only; its tiles are plain vec tiles."""
    only_a5(op, arch)
    names = "src dst exp max scaling"
    in_space(op.named(), names)
    none_box(op.named(), names)


def branch(arch: str) -> str:
    """Return the verifier branch of an arch word.

    Raises:
        ValueError: not an arch the assembler knows.
    """
    found = BRANCHES.get(arch.lower())
    if found is None:
        raise ValueError(f"{arch!r} is not one of {', '.join(BRANCHES)}")
    return found
