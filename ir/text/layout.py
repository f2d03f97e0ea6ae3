"""Tile and tensor layouts: which fields of a view a memory space and a shape already imply."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Dim

#: Layouts of tensors in global memory; the first is what a plain tensor has.
TENSOR_LAYOUTS = ("ND", "DN", "NZ", "MX_A_ZZ", "MX_B_NN")
DEFAULT_TENSOR_LAYOUT = TENSOR_LAYOUTS[0]

# Per memory space: block layout, layout inside a block, bytes of a block (source: the language's tile views).
_IMPLIED: dict[str | None, tuple[str, str, str]] = {
    None: ("row_major", "none_box", "512"),
    "Vec": ("row_major", "none_box", "512"),
    "Acc": ("col_major", "row_major", "1024"),
    "Mat": ("col_major", "row_major", "512"),
    "Right": ("row_major", "col_major", "512"),
}
_FIELDS = ("blayout", "slayout", "fractal")

#: Enumeration each view field's words belong to, for printing; other fields are printed as they stand.
WORD_PREFIX = {
    "blayout": "pl.TileLayout.",
    "slayout": "pl.TileLayout.",
    "pad": "pl.PadValue.",
    "compact": "pl.CompactMode.",
    "layout": "pl.TensorLayout.",
}


def is_implied(field: str, value: str, memory: str | None, shape: Sequence[Dim]) -> bool:
    """Return whether a tile view's field has the value it would have unwritten."""
    if field == "pad":
        return value == "null"
    implied = _IMPLIED.get(memory)
    if implied is None or field not in _FIELDS:
        return False
    # A column vector in a flat space is stored column by column, which is the same order.
    if field == "blayout" and memory in (None, "Vec") and len(shape) == 2 and shape[1] == 1:
        return value == "col_major"
    return value == implied[_FIELDS.index(field)]
