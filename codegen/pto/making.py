"""Cheap making of operations: what the library's ``create`` and ``add_op`` do, for operations without regions.

The library goes through setters that first undo what was there before, and through checks that what is new cannot fail.
Of an emission's operations nearly all are made here. The fields are those of xDSL's ``Operation``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TypeVar

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue, Use
from xdsl.ir.core import SSAValues
from xdsl.irdl import IRDLOperation, OptionalDef

from .base import PtoOp, defined

_Op = TypeVar("_Op", bound=Operation)


_NONE: SSAValues[OpResult] = SSAValues()


def make(
    cls: type[_Op],
    operands: Sequence[SSAValue],
    types: Sequence[Attribute],
    properties: dict[str, Attribute],
    location: LocationAttr,
) -> _Op:
    """Return an operation that owns ``properties``; defaults of properties are filled in."""
    op = cls.__new__(cls)
    op._operands = SSAValues(operands)
    uses = []
    for i, value in enumerate(operands):
        use = Use(op, i)
        value.add_use(use)
        uses.append(use)
    op._operand_uses = tuple(uses)
    op.results = SSAValues([OpResult(t, op, i) for i, t in enumerate(types)]) if types else _NONE
    op.properties = properties
    op.attributes = {}
    op.location = location
    if _has_defaults(cls):
        op.__post_init__()  # type: ignore[no-untyped-call]
    return op


@cache
def _has_defaults(cls: type[Operation]) -> bool:
    if not issubclass(cls, IRDLOperation):
        return True
    # Another thread may be defining the class: half of that must not be seen.
    known = (defined(cls) if issubclass(cls, PtoOp) else cls).get_irdl_definition()
    given = (*known.properties.values(), *known.attributes.values())
    return any(not isinstance(d, OptionalDef) and d.default_value is not None for d in given)


def append(block: Block, op: Operation) -> None:
    """Put a new operation at the end of a block."""
    last = block._last_op
    op.parent = block
    op._prev_op = last
    if last is None:
        block._first_op = op
    else:
        last._next_op = op
    block._last_op = op


def insert(block: Block, op: Operation, after: Operation | None) -> None:
    """Put a new operation behind another of the block, None: in front of all."""
    following = block._first_op if after is None else after._next_op
    if following is None:
        append(block, op)
        return
    op.parent = block
    op._prev_op, op._next_op = after, following
    following._prev_op = op
    if after is None:
        block._first_op = op
    else:
        after._next_op = op


def name_value(value: SSAValue, hint: str) -> None:
    """Give a value its name's hint."""
    value._name = _valid_hint(hint)


@lru_cache(maxsize=4096)
def _valid_hint(hint: str) -> str:
    return SSAValue.extract_valid_name(hint)
