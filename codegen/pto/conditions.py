"""Conditions on the tiles of an operation, the words the verification rules are written in.

Every function raises :class:`VerifyException` whose message names the operands and what they have.
Extents that are :data:`DYNAMIC` agree with anything.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from .elements import ELEMENT_NAMES, LOW_PRECISION, element_bytes, spell
from .types import DYNAMIC, TileBufType, dim_text

Named = Mapping[str, SSAValue]
AXES = ("rows", "columns")


def tile(values: Named, name: str) -> TileBufType | None:
    """Return the tile type of an operand, None when it is absent or no tile."""
    value = values.get(name)
    return value.type if value is not None and isinstance(value.type, TileBufType) else None


def tiles(values: Named, names: str) -> list[tuple[str, TileBufType]]:
    """Return (name, type) of those of the space-separated operands that are tiles."""
    return [(name, found) for name in names.split() if (found := tile(values, name)) is not None]


def fail(message: str) -> None:
    """Raise the verification error."""
    raise VerifyException(message)


def same_element(values: Named, names: str) -> None:
    """All the tiles have one element type."""
    first, *rest = tiles(values, names)
    for name, found in rest:
        if found.element != first[1].element:
            fail(
                f"{first[0]} and {name} must have the same element type, "
                f"not {spell(first[1].element)} and {spell(found.element)}"
            )


def agree(one: int, other: int) -> bool:
    """True unless both extents are known and differ."""
    return one == other or DYNAMIC in (one, other)


def same_valid(values: Named, names: str, axes: tuple[int, ...] = (0, 1)) -> None:
    """All the tiles have the first one's valid extents along the axes (0 rows, 1 columns)."""
    first, *rest = tiles(values, names)
    for name, found in rest:
        for axis in axes:
            one, other = first[1].valid[axis], found.valid[axis]
            if not agree(one, other):
                fail(f"{first[0]} and {name} must have the same valid {AXES[axis]}, not {one} and {other}")


def same_shape(values: Named, names: str) -> None:
    """All the tiles have one physical shape."""
    first, *rest = tiles(values, names)
    for name, found in rest:
        if found.shape != first[1].shape:
            fail(
                f"{first[0]} and {name} must have the same physical shape, "
                f"not {_shape(first[1])} and {_shape(found)}"
            )


def _shape(found: TileBufType) -> str:
    return f"{found.shape[0]}x{found.shape[1]}"


def row_major(values: Named, names: str) -> None:
    """The tiles use the row_major blayout."""
    for name, found in tiles(values, names):
        if found.data.blayout != "row_major":
            fail(f"{name} must use the row_major blayout, not {found.data.blayout}")


def none_box(values: Named, names: str) -> None:
    """The tiles use the none_box slayout."""
    for name, found in tiles(values, names):
        if found.data.slayout != "none_box":
            fail(f"{name} must use the none_box slayout, not {found.data.slayout}")


def in_space(values: Named, names: str, spaces: str = "vec") -> None:
    """The tiles are in one of the spaces."""
    for name, found in tiles(values, names):
        if found.data.space not in spaces.split():
            fail(f"{name} must be in {spaces.replace(' ', ' or ')}, not in {found.data.space}")


def plain(values: Named) -> None:
    """No tile has a low-precision element type."""
    for name, value in values.items():
        if isinstance(value.type, TileBufType) and ELEMENT_NAMES.get(value.type.element) in LOW_PRECISION:
            fail(f"{name}: element type {spell(value.type.element)} is not supported by this operation")


def element_in(values: Named, name: str, accepted: str, where: str = "") -> None:
    """The element type of a tile is one of the accepted spellings."""
    found = tile(values, name)
    if found is not None and not admits(accepted, spell(found.element)):
        suffix = f" {where}" if where else ""
        fail(f"{name}: element type {spell(found.element)} is not one of {accepted}{suffix}")


def admits(accepted: str, spelling: str) -> bool:
    """True when ``spelling`` is in the space-separated list; ``i8`` there stands for every signedness."""
    words = accepted.split()
    return spelling in words or (spelling[1:] in words and spelling[0] in "us")


def valid_is(values: Named, name: str, axis: int, limit: int) -> None:
    """A known valid extent of the tile equals ``limit``."""
    found = tile(values, name)
    if found is not None and not agree(found.valid[axis], limit):
        fail(f"{name} must have valid {AXES[axis]} {limit}, not {dim_text(found.valid[axis])}")


def not_empty(values: Named, names: str) -> None:
    """No tile has a valid extent that is known to be zero."""
    for name, found in tiles(values, names):
        for axis in (0, 1):
            if found.valid[axis] == 0:
                fail(f"{name} must have valid {AXES[axis]} greater than zero")


def is_empty(values: Named, name: str) -> bool:
    """True when both valid extents are known to be zero, which marks an operation that does nothing."""
    found = tile(values, name)
    return found is not None and found.valid == (0, 0)


def distinct(values: Named, one: str, other: str) -> None:
    """The two operands are different values."""
    if values[one] is values[other]:
        fail(f"{one} and {other} must be different tiles")


def capacity(values: Named, name: str, least: int) -> None:
    """The tile's physical storage holds at least ``least`` bytes."""
    found = tile(values, name)
    if found is not None:
        have = storage_bytes(found)
        if have < least:
            fail(f"{name} must hold at least {least} bytes, not {have}")


def storage_bytes(found: TileBufType) -> int:
    """Return the bytes of a tile's physical storage."""
    return found.data.rows * found.data.cols * element_bytes(found.element)
