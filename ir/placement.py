"""Which core of a mixed kernel runs an operation, when the kernel is split into a cube and a vector function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .op import OpDecl
from .types import TileType

VECTOR, CUBE, SHARED = "VECTOR", "CUBE", "SHARED"
_CUBE_MEMORIES = ("Mat", "Left", "Right", "Acc", "Bias", "Scaling")


def core_of(decl: OpDecl, operands: Sequence[Any] = ()) -> str:
    """Return ``"VECTOR"``, ``"CUBE"`` or ``"SHARED"`` for an operation on these operands.

    What the declaration says, else where its first tile operand lives, else SHARED: copied to both sides.
    """
    if decl.placement is not None and decl.placement.core is not None:
        return decl.placement.core
    for o in operands:
        t = getattr(o, "type", None)
        if isinstance(t, TileType):
            return CUBE if t.memory in _CUBE_MEMORIES else VECTOR
    return SHARED


def may_duplicate(decl: OpDecl) -> bool:
    """Return whether both sides of a split kernel may keep a copy of the operation."""
    return decl.placement is None or not decl.placement.no_duplicate
