"""Literals beside scalars and elements: they adapt to the dtype, unless that would change their value."""

from __future__ import annotations

from ..dtypes import DType
from ..literals import misfit
from ..op import Call


def require_literal(call: Call, i: int, dtype: DType, patterns: bool = False) -> None:
    """Check that operand ``i``, if it is a literal, can be used as a ``dtype``; TG011.

    ``patterns``: bit patterns of the dtype's width are taken too (:func:`~tilegg.ir.literals.misfit`).
    """
    found = misfit(call.operands[i], dtype, patterns)
    if found is not None:
        message, reason, hint = found
        call.fail("TG011", message, reason=reason, hint=hint)
