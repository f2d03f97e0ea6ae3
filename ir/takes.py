"""Which dtypes an operation takes: its own type rule is asked, with sample operands."""

from __future__ import annotations

from collections.abc import Iterator
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
#: One position for each row.
_ROWS = (32, 1)
#: Dtypes of further tiles, such as positions and scales, beside the one in question.
_FURTHER = (INT32, INT16, UINT32, UINT8, FP32)
_DATA = (Kind.TILE, Kind.ARRAY)
_TILES = (*_DATA, Kind.SCRATCH)


@cache
def takes(decl: OpDecl, dtype: DType) -> bool:
    """Return whether a tile operation takes a dtype for its data: False where its type rule refuses each sample.

    True also where the rule has another objection to a sample than a dtype.
    """
    return any(_complaint(decl, operands, dtype) != "TG007" for operands in _samples(decl, dtype, _SHAPE))


@cache
def sample(decl: OpDecl, dtype: DType) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return operands and attributes that the type rule takes with data of a dtype; ``None`` where it takes none."""
    for beside in (_SHAPE, _ROWS):
        for operands in _samples(decl, dtype, beside):
            if not _complaint(decl, operands, dtype):
                return operands, _attributes(decl, dtype)
    return None


def _samples(decl: OpDecl, dtype: DType, beside: tuple[int, int]) -> Iterator[tuple[Any, ...]]:
    """Yield sample operands with data of a dtype; further tiles have each dtype in turn and the shape ``beside``."""
    given = (*_TILES, Kind.TENSOR, Kind.ANY)
    data = [p for p in decl.operand_params if p.kind in given and (p.required or p.kind in _DATA)]
    # A tensor in the first place holds the data; tiles beside it are positions.
    subject = next((p for p in data if p.name != "mask"), data[0] if data else None)
    others = [p.name for p in data if p is not subject and p.name != "mask" and p.kind is not Kind.TENSOR]
    for combined in product(dict.fromkeys((dtype, *_FURTHER)), repeat=len(others)):
        dtypes = dict(zip(others, combined))
        if subject is not None:
            dtypes[subject.name] = dtype
        yield tuple(
            _operand(p, dtype, dtypes.get(p.name, UINT8), _SHAPE if dtypes.get(p.name) is dtype else beside)
            for p in decl.operand_params
        )


def _complaint(decl: OpDecl, operands: tuple[Any, ...], dtype: DType) -> str:
    """Return the code of what the rule says about sample operands, "" for nothing."""
    try:
        decl.result(Call(decl, operands, _attributes(decl, dtype), None))
    except TileggError as problem:
        return problem.diagnostics[0].code
    return ""


def _attributes(decl: OpDecl, dtype: DType) -> dict[str, Any]:
    return {p.name: _attribute(p, dtype) for p in decl.attr_params if p.required}


def _operand(p: OpParam, dtype: DType, own: DType, shape: tuple[int, int]) -> Any:
    if p.kind in (*_TILES, Kind.ANY) and (p.required or p.kind in _TILES):
        if not p.required and p.kind is Kind.SCRATCH:
            return None
        return Value(p.name, tile(_SHAPES.get(p.name, shape), own, _VALID.get(p.name)))
    if not p.required:
        return None
    if p.kind in (Kind.TENSOR, Kind.WINDOW):
        return Value(p.name, tensor(_SHAPE, dtype))
    if p.kind is Kind.DIMS:
        return tuple(map(index, _SHAPE))
    return Const(1.0 if dtype.is_float else 1, dtype)


def _attribute(p: OpParam, dtype: DType) -> Any:
    return {Kind.DTYPE: dtype, Kind.WORD: "", Kind.FLAG: False}.get(p.kind, 1)
