"""Element types of tiles and views: the library's own and the dialect's low-precision ones."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition


@irdl_attr_definition
class HiF8Type(ParametrizedAttribute, TypeAttribute):
    """``!pto.hif8``, one byte."""

    name = "pto.hif8"


@irdl_attr_definition
class HiF8x2Type(ParametrizedAttribute, TypeAttribute):
    """``!pto.hif8x2``, a pair in a scalar register."""

    name = "pto.hif8x2"


@irdl_attr_definition
class F8E8M0Type(ParametrizedAttribute, TypeAttribute):
    """``!pto.f8E8M0``, a power-of-two scale in one byte."""

    name = "pto.f8E8M0"


@irdl_attr_definition
class F4E1M2x2Type(ParametrizedAttribute, TypeAttribute):
    """``!pto.f4E1M2x2``, two values in one byte."""

    name = "pto.f4E1M2x2"


@irdl_attr_definition
class F4E2M1x2Type(ParametrizedAttribute, TypeAttribute):
    """``!pto.f4E2M1x2``, two values in one byte."""

    name = "pto.f4E2M1x2"


#: The spelling of every element type a tile may have, to the type.
ELEMENTS: dict[str, TypeAttribute] = {
    **{f"i{n}": IntegerType(n) for n in (1, 8, 16, 32, 64)},
    **{f"ui{n}": IntegerType(n, Signedness.UNSIGNED) for n in (8, 16, 32, 64)},
    **{f"si{n}": IntegerType(n, Signedness.SIGNED) for n in (8, 16, 32, 64)},
    "f16": Float16Type(),
    "bf16": BFloat16Type(),
    "f32": Float32Type(),
    "f8E4M3FN": Float8E4M3FNType(),
    "f8E5M2": Float8E5M2Type(),
    "!pto.hif8": HiF8Type(),
    "!pto.f8E8M0": F8E8M0Type(),
    "!pto.f4E1M2x2": F4E1M2x2Type(),
    "!pto.f4E2M1x2": F4E2M1x2Type(),
}
#: Packed pairs in scalar registers that have a type of their own, by spelling.
PAIR_TYPES: dict[str, TypeAttribute] = {
    "!pto.hif8x2": HiF8x2Type(), **{t: ELEMENTS[t] for t in ("!pto.f4E1M2x2", "!pto.f4E2M1x2")},
}  # fmt: skip
#: Each element type to its spelling.
ELEMENT_NAMES: dict[Attribute, str] = {attr: text for text, attr in ELEMENTS.items()}
#: Types of which only a few operations take tiles.
LOW_PRECISION = frozenset(name for name in ELEMENTS if name.startswith(("f8", "!pto.")))
PACKED_PAIRS = frozenset(("!pto.f4E1M2x2", "!pto.f4E2M1x2"))


def element(spelling: str) -> TypeAttribute:
    """Return the element type written ``spelling`` (``"f32"``, ``"ui8"``, ``"!pto.hif8"`` ...).

    Raises:
        ValueError: the assembler has no such element type.
    """
    found = ELEMENTS.get(spelling)
    if found is None:
        raise ValueError(f"{spelling!r} is not an element type of the assembler")
    return found


def element_bytes(attr: Attribute) -> int:
    """Return the bytes one element takes (a packed pair of four-bit values counts as one element)."""
    if isinstance(attr, IntegerType):
        return max(1, int(attr.width.data) // 8)
    return {"f32": 4, "f16": 2, "bf16": 2}.get(ELEMENT_NAMES.get(attr, ""), 1)


def spell(attr: Attribute) -> str:
    """Return the text of a type."""
    return ELEMENT_NAMES.get(attr) or str(attr)
