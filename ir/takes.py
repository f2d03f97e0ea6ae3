"""Which dtypes an operation takes: its own type rule is asked, with sample operands."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

from .diagnostics import TileggError
from .dtypes import FP32, INT16, INT32, UINT8, UINT32, DType
from .op import Call, Kind, OpDecl, OpParam
from .program import Const, Value, index
from .types import tensor, tile

_SHAPE = (32, 64)
#: Shapes of parameters by name: vectors beside a tile, and its packed predicate.
_SHAPES = {"row_vec": (32, 1), "col_vec": (1, 64), "mask": (32, 32)}
_VALID = {"mask": (32, 8)}
#: Dtypes of further tiles, such as positions and scales, beside the one in question.
_FURTHER = (INT32, INT16, UINT32, UINT8, FP32)
_DATA = (Kind.TILE, Kind.ARRAY)
_TILES = (*_DATA, Kind.SCRATCH)


@cache
def takes(decl: OpDecl, dtype: DType) -> bool:
    """Return whether a tile operation takes a dtype for its data: False where its type rule refuses each sample.

    True also where the rule has another objection to a sample than a dtype.
    """
    data = [p for p in decl.operand_params if p.kind in (*_TILES, Kind.TENSOR) and (p.required or p.kind in _DATA)]
    # A tensor in the first place holds the data; tiles beside it are positions.
    subject = next((p for p in data if p.name != "mask"), data[0] if data else None)
    others = [p.name for p in data if p is not subject and p.name != "mask" and p.kind is not Kind.TENSOR]
    for given in product(dict.fromkeys((dtype, *_FURTHER)), repeat=len(others)):
        dtypes = dict(zip(others, given))
        if subject is not None:
            dtypes[subject.name] = dtype
        if _complaint(decl, dtype, dtypes) != "TG007":
            return True
    return False


def _complaint(decl: OpDecl, dtype: DType, dtypes: dict[str, DType]) -> str:
    """Return the code of what the rule says about sample operands, "" for nothing."""
    operands = tuple(_operand(p, dtype, dtypes.get(p.name, UINT8)) for p in decl.operand_params)
    attrs = {p.name: _attribute(p, dtype) for p in decl.attr_params if p.required}
    try:
        decl.result(Call(decl, operands, attrs, None))
    except TileggError as problem:
        return problem.diagnostics[0].code
    return ""


def _operand(p: OpParam, dtype: DType, own: DType) -> Any:
    if p.kind in _TILES:
        if not p.required and p.kind is Kind.SCRATCH:
            return None
        return Value(p.name, tile(_SHAPES.get(p.name, _SHAPE), own, _VALID.get(p.name)))
    if not p.required:
        return None
    if p.kind in (Kind.TENSOR, Kind.WINDOW):
        return Value(p.name, tensor(_SHAPE, dtype))
    if p.kind is Kind.DIMS:
        return tuple(map(index, _SHAPE))
    return Const(1.0 if dtype.is_float else 1, dtype)


def _attribute(p: OpParam, dtype: DType) -> Any:
    return {Kind.DTYPE: dtype, Kind.WORD: "", Kind.FLAG: False}.get(p.kind, 1)
