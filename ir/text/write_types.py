"""Types as annotations."""

from __future__ import annotations

from collections.abc import Sequence

from ..types import Dim, OpaqueType, PtrType, ScalarType, TensorType, TileType, TupleType, Type
from .layout import WORD_PREFIX


def print_type(t: Type) -> str:
    """Return the annotation of a type, e.g. ``pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec]``."""
    match t:
        case TileType():
            return _tile(t)
        case TensorType():
            return _tensor(t)
        case ScalarType():
            return f"pl.Scalar[pl.{t.dtype.name}]"
        case TupleType():
            return f"tuple[{', '.join(print_type(i) for i in t.items)}]"
        case PtrType():
            return f'pl.Ptr[pl.{t.dtype.name}, "{t.space}"]'
        case OpaqueType():
            return t.text


def print_shape(shape: Sequence[Dim]) -> str:
    """Return ``[16, n]``."""
    return "[" + ", ".join(map(str, shape)) + "]"


def _tile(t: TileType) -> str:
    parts = [print_shape(t.shape), f"pl.{t.dtype.name}"]
    if t.memref is not None:
        parts.append(t.memref)
    if t.memory is not None:
        parts.append(f"pl.Mem.{t.memory}")
    view = [] if t.valid is None else [f"valid_shape={print_shape(t.valid)}"]
    view += [f"{field}={_word(field, value)}" for field, value in t.layout]
    if view:
        parts.append(f"pl.TileView({', '.join(view)})")
    return f"pl.Tile[{', '.join(parts)}]"


def _word(field: str, value: str) -> str:
    return WORD_PREFIX.get(field, "") + value if value.isidentifier() else value


def _tensor(t: TensorType) -> str:
    prefix = "pl" if t.kind == "Tensor" else "pld"
    parts = [print_shape(t.shape), f"pl.{t.dtype.name}"]
    if t.stride is None and t.valid is None:
        parts += [] if t.layout is None else [f"pl.{t.layout}"]
    else:
        view = [] if t.stride is None else [f"stride={print_shape(t.stride)}"]
        view.append(f"layout=pl.TensorLayout.{t.layout or 'ND'}")
        view += [] if t.valid is None else [f"valid_shape={print_shape(t.valid)}"]
        parts.append(f"pl.TensorView({', '.join(view)})")
    if t.memref is not None:
        parts.append(t.memref)
    return f"{prefix}.{t.kind}[{', '.join(parts)}]"
