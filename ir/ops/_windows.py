"""Windows and single elements of tensors and tiles: checks of what is static, indices of what is evaluated.

The checks refuse with TG008, when an operation is read, what can only fail when it runs: positions, sizes and valid
shapes that are numbers. Dynamic dimensions and offsets pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..diagnostics import error
from ..infer import POSITIVE
from ..op import Call
from ..types import Dim, TensorType, TileType, shape_text
from ._result import dim_of, dims_of


def check_inside(call: Call, bounds: Any, offsets: Any, shape: Any) -> None:
    """Check a window of operand 0: positive sizes, inside ``bounds`` unless a valid shape says what is used."""
    for axis, (limit, offset, size) in enumerate(zip(bounds, map(dim_of, offsets), shape)):
        if isinstance(size, int) and size <= 0:
            call.fail("TG008", f"size {size} along dimension {axis} is not positive", hint=POSITIVE)
        if isinstance(offset, int) and offset < 0:
            hint = "offsets count from the first element; a window cannot begin before it"
            call.fail("TG008", f"offset {offset} along dimension {axis} is negative", hint=hint)
        start = offset if isinstance(offset, int) else 0
        if not isinstance(limit, int) or not isinstance(size, int) or start + size <= limit:
            continue
        if isinstance(call.type(0), TileType):
            hint = f"a window stays inside its tile: at most {max(limit - start, 0)} elements begin at {offset}"
        elif len(call.operands) > 3 and not call.operands[3]:
            hint = "give a valid_shape that stays inside the tensor"
        else:
            continue
        call.fail("TG008", f"offset {offset} + size {size} exceeds dimension {axis} of {shape_text(bounds)}", hint=hint)


def check_valid(call: Call, shape: Any, valid: Any) -> None:
    """Check that a valid shape has the rank of a shape and stays within it."""
    if len(valid) != len(shape):
        call.fail("TG008", f"valid shape {shape_text(valid)} does not have the rank of {shape_text(shape)}")
    for size, extent in zip(shape, valid):
        if isinstance(extent, int) and extent < 0:
            hint = "it counts the leading elements in use, from 0 to the size"
            call.fail("TG008", f"valid shape {shape_text(valid)} has a negative extent", hint=hint)
        if isinstance(size, int) and isinstance(extent, int) and extent > size:
            call.fail("TG008", f"valid shape {shape_text(valid)} exceeds the shape {shape_text(shape)}")


def require_inside(call: Call, bounds: Sequence[Dim], offsets: Sequence[Dim], sizes: Sequence[Dim], what: str) -> None:
    """Check that a region lies inside a tensor of shape ``bounds``; one with a dynamic offset, that it has room."""
    for axis, (limit, offset, size) in enumerate(zip(bounds, offsets, sizes)):
        if isinstance(offset, int) and offset < 0:
            call.fail("TG008", f"{what}: offset {offset} along dimension {axis} is negative")
        start = offset if isinstance(offset, int) else 0
        if isinstance(limit, int) and isinstance(size, int) and start + size > limit:
            call.fail(
                "TG008",
                f"{what}: offset {offset} + size {size} exceeds dimension {axis} of {shape_text(bounds)}",
                reason="the write would fall on neighbouring elements" if "writ" in what else "",
            )


def require_element(call: Call, bounds: Sequence[Dim], indices: Sequence[Any]) -> None:
    """Check the position of one element: an index for each dimension, from 0 to its extent."""
    at = dims_of(indices)
    if len(at) != len(bounds):
        hint = f"one index for each dimension of {shape_text(bounds)}"
        call.fail("TG008", f"the position {shape_text(at)} has rank {len(at)}, not {len(bounds)}", hint=hint)
    for axis, (limit, index) in enumerate(zip(bounds, at)):
        if isinstance(index, int) and index < 0:
            hint = "positions count from the first element, which is 0"
            call.fail("TG008", f"index {index} along dimension {axis} is negative", hint=hint)
        if isinstance(limit, int) and isinstance(index, int) and index >= limit:
            hint = f"positions along dimension {axis} are 0 to {limit - 1}" if limit else "there are no elements"
            call.fail("TG008", f"index {index} lies outside dimension {axis} of {shape_text(bounds)}", hint=hint)


def readable(t: TileType | TensorType) -> tuple[Dim, ...]:
    """Return how far elements can be read: a tile's valid extents, where they are static, and its shape otherwise."""
    if isinstance(t, TensorType):
        return t.shape
    return tuple(v if isinstance(v, int) else n for n, v in zip(t.shape, t.valid_shape))


# -- what the interpreter indexes with ---------------------------------------------------------------------


def window_at(offsets: Any, sizes: Any) -> tuple[slice, ...]:
    """Return the slices of a window; raises TG032 for a negative offset."""
    if any(o < 0 for o in offsets):
        raise error("TG032", f"the window starts at the negative offset {shape_text(offsets)}")
    return tuple(slice(int(o), int(o) + int(s)) for o, s in zip(offsets, sizes))


def index_at(indices: Any) -> tuple[int, ...]:
    """Return the index of one element; raises TG032 for a negative one."""
    if any(i < 0 for i in indices):
        raise error("TG032", f"the index {shape_text(indices)} is negative")
    return tuple(int(i) for i in indices)


def aligned(tile: Any, rank: int) -> Any:
    """Return a tile's elements with as many axes as the tensor has: leading axes of extent 1 come or go."""
    while tile.ndim > rank and tile.shape[0] == 1:
        tile = tile[0]
    return tile.reshape((1,) * (rank - tile.ndim) + tile.shape) if tile.ndim < rank else tile


def aligned_shape(shape: Sequence[Dim], rank: int) -> tuple[Dim, ...] | None:
    """Return the shape of :func:`aligned` elements; ``None`` when leading axes that do not have extent 1 would go."""
    more = len(shape) - rank
    if any(isinstance(d, int) and d != 1 for d in shape[: max(more, 0)]):
        return None
    return (1,) * -more + tuple(shape[max(more, 0) :])
