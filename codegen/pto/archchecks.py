"""Verification rules that hold for one target branch only: ``"a2a3"`` (a2, a3, no arch given) or ``"a5"``.

Figures for scratch tiles: assembler v0.60 verifier. The lists of element types are in ``accepted``.
"""

from __future__ import annotations

from .accepted import A5_LOW_PRECISION_CASTS, accepted
from .conditions import (
    AXES,
    Named,
    capacity,
    element_in,
    fail,
    in_space,
    is_empty,
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
from .reductions import covers
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


def negate(op: DpsOp, arch: str) -> None:
    """tneg on a2a3: equal valid rows too."""
    if arch == "a2a3":
        same_valid(op.named(), "src dst", axes=(0,))


def column_reduction(op: DpsOp, arch: str) -> None:
    """tcolsum, tcolmax, tcolmin on a5: src is not empty (unless dst is, which marks a no-op)."""
    values = op.named()
    if arch == "a5" and op.ROW.mnemonic != "tcolprod" and not is_empty(values, "dst"):
        not_empty(values, "src")


def column_index(op: DpsOp, arch: str) -> None:
    """tcolargmax, tcolargmin tmp on a2a3: src's element type and enough columns."""
    if arch == "a2a3":
        _index_scratch(op.named(), rows=1)


def row_index(op: DpsOp, arch: str) -> None:
    """trowargmax, trowargmin tmp: a row_major vec tile on a5; on a2a3 src's element type, enough rows and columns."""
    values = op.named()
    src, tmp = tile(values, "src"), tile(values, "tmp")
    if tmp is None or src is None:
        return
    if arch == "a5":
        row_major(values, "tmp")
        return
    if src.valid == tmp.valid or not 0 <= src.valid[1] <= 256 // element_bytes(src.element):
        if src.valid != tmp.valid and tmp.data.rows != src.data.rows:
            fail(f"tmp must have src's {src.data.rows} rows on a2/a3, not {tmp.data.rows}")
        _index_scratch(values, rows=src.valid[0])
        return
    same_element(values, "src tmp")
    capacity(values, "tmp", 32)
    none_box(values, "tmp")
    # One repeat: two values per row, below one another in a column or beside one another in two columns.
    column = tmp.data.blayout == "col_major"
    if column and (tmp.data.cols != 1 or tmp.valid[1] not in (1, DYNAMIC)):
        fail("a col_major tmp must have one column on a2/a3")
    _at_least(tmp, 0, src.valid[0] * 2 if column else src.valid[0])
    if not column:
        _at_least(tmp, 1, 2)


def _index_scratch(values: Named, rows: int) -> None:
    """A tmp of src's valid shape, or one with room for values and indices of every repeat."""
    src, tmp = tile(values, "src"), tile(values, "tmp")
    if src is None or tmp is None:
        return
    in_space(values, "tmp")
    same_element(values, "src tmp")
    capacity(values, "tmp", 32)
    if src.valid == tmp.valid:
        return
    row_major(values, "tmp")
    _at_least(tmp, 0, rows)
    if src.valid[1] != DYNAMIC:
        size = element_bytes(src.element)
        repeats, block = -(-src.valid[1] // (256 // size)), 32 // size
        _at_least(tmp, 1, (-(-repeats * 2 // block) + -(-repeats // block)) * block)


def _at_least(tmp: TileBufType, axis: int, least: int) -> None:
    """A known valid extent of tmp is at least ``least``."""
    if tmp.valid[axis] != DYNAMIC and tmp.valid[axis] < least:
        fail(f"tmp must have at least {least} valid {AXES[axis]} on a2/a3, not {tmp.valid[axis]}")


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
    """txor and txors tmp on a2a3: element type and bytes of dst, row_major; for txor the valid shape too."""
    values = op.named()
    tmp, dst = tile(values, "tmp"), tile(values, "dst")
    if arch == "a5" or tmp is None or dst is None:
        return
    same_element(values, "dst tmp")
    row_major(values, "tmp")
    if op.ROW.mnemonic == "txor":
        same_valid(values, "dst tmp")
    capacity(values, "tmp", storage_bytes(dst))


def prelu(op: DpsOp, arch: str) -> None:
    """tprelu tmp on a2a3: 8-bit integers, one row more than dst, a packed bit per column."""
    values = op.named()
    tmp, dst = tile(values, "tmp"), tile(values, "dst")
    if arch == "a5" or tmp is None or dst is None:
        return
    element_in(values, "tmp", "i8", _LABEL[arch])
    if dst.valid[0] != DYNAMIC and tmp.data.rows < dst.valid[0] + 1:
        fail(f"tmp must have at least {dst.valid[0] + 1} rows on a2/a3, not {tmp.data.rows}")
    if DYNAMIC not in (dst.valid[1], tmp.valid[1]) and tmp.valid[1] < -(-dst.valid[1] // 8):
        fail(f"tmp must have at least {-(-dst.valid[1] // 8)} valid columns on a2/a3, not {tmp.valid[1]}")


def row_expand(op: DpsOp, arch: str) -> None:
    """trowexpand<op> tmp on a2a3: only with a col_major per-row operand; dst's element type; enough bytes."""
    values = op.named()
    kind = op.ROW.mnemonic.removeprefix("trowexpand")
    tmp, dst = tile(values, "tmp"), tile(values, "dst")
    if kind == "div" and tmp is None and op.properties.get("precisionType") == _PRECISE:
        fail("high_precision needs the tmp operand")
    if tmp is None or dst is None or arch == "a5":
        return
    spread = _spread(values)
    if spread is None or spread.data.blayout != "col_major" or spread.valid[1] not in (1, DYNAMIC):
        fail("a tmp on a2/a3 needs a col_major operand with one value per row")
    if kind == "expdif":
        return
    in_space(values, "tmp")
    same_element(values, "dst tmp")
    rows = dst.valid[0]
    least = 8192 if rows == DYNAMIC else -(-rows // 8) * 256 if rows < 256 else 30 * 256
    capacity(values, "tmp", least)


_PRECISE = word("div_precision", "high_precision")


def _spread(values: Named) -> TileBufType | None:
    """Return the operand that is spread over the columns: the one whose valid shape is not dst's."""
    for full, other in (("src0", "src1"), ("src1", "src0")):
        if covers(values, full):
            return tile(values, other)
    return None


def power(op: DpsOp, arch: str) -> None:
    """tpow, tpows: a2a3 has no high precision and no f16; a tmp is as large as dst there."""
    values = op.named()
    precise = op.properties.get("precisionType") == word("pow_precision", "high_precision")
    if arch == "a2a3" and precise:
        fail("there is no high_precision on a2/a3")
    words = "f16 bf16 f32" if precise else "i8 i16 i32 f32" if arch == "a2a3" else "i8 i16 i32 f16 f32"
    element_in(values, "dst", words, _LABEL[arch])
    dst = tile(values, "dst")
    if arch == "a2a3" and dst is not None:
        capacity(values, "tmp", storage_bytes(dst))


def partial(op: DpsOp, arch: str) -> None:
    """tpart* on a2a3, and tpartarg* on both: at least one source has dst's valid shape."""
    values = op.named()
    if arch == "a5" and not op.ROW.mnemonic.startswith("tpartarg"):
        return
    if covers(values, "src0") or covers(values, "src1"):
        return
    fail("at least one of src0 and src1 must have dst's valid shape")


def concat(op: DpsOp, arch: str) -> None:
    """tconcat on a5: row_major."""
    if arch == "a5":
        row_major(op.named(), "src0 src1 dst")


def only_a5(op: DpsOp, arch: str) -> None:
    """The operation exists on a5 only."""
    if arch != "a5":
        fail(f"{op.name} exists on a5 only")


def microscale(op: DpsOp, arch: str) -> None:
    """tquant.mx exists on a5 only; its tiles are plain vec tiles of rows that fit each other."""
    only_a5(op, arch)
    names = "src dst exp max scaling"
    values = op.named()
    in_space(values, names)
    none_box(values, names)
    same_element(values, "src max scaling")
    src, dst, exp = (tile(values, name) for name in ("src", "dst", "exp"))
    assert src is not None and dst is not None and exp is not None
    packed = op.properties.get("quant_type") == word("quant_type", "MXFP4_E2M1")
    along_rows = op.properties.get("grpAxis") != word("mx_group_axis", "axis0")
    row = src.data.cols // (2 if packed else 1)
    if (packed or along_rows) and dst.data.cols != row:
        fail(f"dst must have {row} physical columns, not {dst.data.cols}")
    if along_rows:
        if exp.data.rows == 1 and src.data.cols != src.valid[1]:
            fail(f"all columns of src must be valid, but {src.valid[1]} of {src.data.cols} are")
        return
    if packed and row % 32 and spell(src.element) == "f16":
        fail(f"packed rows of f16 sources must be a multiple of 32 bytes, not {row}")
    for name, found in tiles(values, "max scaling"):
        if found.data.cols != src.data.cols:
            fail(f"{name} must have src's {src.data.cols} physical columns, not {found.data.cols}")


def branch(arch: str) -> str:
    """Return the verifier branch of an arch word.

    Raises:
        ValueError: not an arch the assembler knows.
    """
    found = BRANCHES.get(arch.lower())
    if found is None:
        raise ValueError(f"{arch!r} is not one of {', '.join(BRANCHES)}")
    return found
