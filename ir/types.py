"""Types of the language: scalars, tensors in global memory, tiles in local memory, tuples.

A dimension is a Python int, or a string: the name of a scalar value or an integer expression over such
names (``"n"``, ``"n - 1"``). All types are frozen values; build them with :func:`tile`, :func:`tensor`
and :func:`scalar`, which return one shared object per distinct type.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .dtypes import DTYPES, INDEX, DType

Dim = int | str

#: Bytes of a block of local memory: places and rows of plain tiles are whole numbers of it.
BLOCK_BYTES = 32
#: Memory spaces of the language (global memory is ``DDR``, the unified buffer is ``Vec``).
MEMORY_SPACES = ("DDR", "Vec", "Mat", "Left", "Right", "Acc", "Bias", "Scaling", "LeftScale", "RightScale")


@dataclass(frozen=True, slots=True)
class ScalarType:
    """One element in a scalar register."""

    dtype: DType

    def __str__(self) -> str:
        return f"scalar {self.dtype.name}"


@dataclass(frozen=True, slots=True)
class TensorType:
    """A tensor in global memory: shape in elements, optional stride / layout / valid shape.

    ``kind`` is ``"Tensor"``, or ``"DistributedTensor"`` for a window that peers can address.
    """

    shape: tuple[Dim, ...]
    dtype: DType
    stride: tuple[Dim, ...] | None = None
    layout: str | None = None
    valid: tuple[Dim, ...] | None = None
    kind: str = "Tensor"
    memref: str | None = None

    @property
    def is_window(self) -> bool:
        """True for the own rank's slice of a communication window, which peers can address."""
        return self.kind == "DistributedTensor"

    def __str__(self) -> str:
        word = "distributed tensor" if self.is_window else "tensor"
        return f"{word} {shape_text(self.shape)} {self.dtype.name}"


@dataclass(frozen=True, slots=True)
class TileType:
    """A tile in local memory: physical shape in elements, valid shape (``None``: the shape itself).

    ``layout`` holds the remaining view fields (``blayout``, ``slayout``, ``fractal``, ``pad``,
    ``stride``, ``start_offset``) as sorted pairs, with defaults left out. ``memref`` is the verbatim
    planned address of late dumps.
    """

    shape: tuple[Dim, ...]
    dtype: DType
    valid: tuple[Dim, ...] | None = None
    memory: str | None = "Vec"
    layout: tuple[tuple[str, str], ...] = ()
    memref: str | None = None

    @property
    def valid_shape(self) -> tuple[Dim, ...]:
        """The valid extent of each dimension."""
        return self.shape if self.valid is None else self.valid

    def __str__(self) -> str:
        valid = f" valid {shape_text(self.valid)}" if self.valid is not None else ""
        return f"tile {shape_text(self.shape)}{valid} {self.dtype.name}"


@dataclass(frozen=True, slots=True)
class TupleType:
    """Several values returned together."""

    items: tuple[Type, ...]

    def __str__(self) -> str:
        return "tuple of " + ", ".join(map(str, self.items))


@dataclass(frozen=True, slots=True)
class OpaqueType:
    """A type tilegg carries without looking inside (``pl.Ptr``, communication contexts, unknown results)."""

    text: str

    def __str__(self) -> str:
        return self.text


#: Address spaces of pointers: global memory, the unified buffer, a thread's or function's own stack.
ADDRESS_SPACES = ("gm", "ub", "local")


@dataclass(frozen=True, slots=True)
class PtrType:
    """A pointer to elements of one dtype in an address space; offsets count elements."""

    dtype: DType
    space: str = "gm"

    def __str__(self) -> str:
        return f"pointer to {self.dtype.name} in {self.space}"


_ARRAY = re.compile(r"pl\.Array\[(\d+), pl\.(\w+)\]")


def array_of(t: object) -> tuple[int, DType] | None:
    """Return length and dtype of a small array of scalars; ``None`` for any other type."""
    found = _ARRAY.fullmatch(t.text) if isinstance(t, OpaqueType) else None
    if found is None or found.group(2) not in DTYPES:
        return None
    return int(found.group(1)), DTYPES[found.group(2)]


Type = ScalarType | TensorType | TileType | TupleType | PtrType | OpaqueType

UNKNOWN = OpaqueType("pl.UnknownType")
#: A window buffer or another allocation, and a communication context: types operations are declared on.
POINTER = OpaqueType("pl.Ptr")
CONTEXT = OpaqueType("pld.CommCtxType")


@lru_cache(maxsize=65536)
def _tile(
    shape: tuple[Dim, ...],
    dtype: DType,
    valid: tuple[Dim, ...] | None,
    memory: str | None,
    layout: tuple[tuple[str, str], ...],
    memref: str | None,
) -> TileType:
    return TileType(shape, dtype, None if valid == shape else valid, memory, layout, memref)


def tile(
    shape: Sequence[Dim],
    dtype: DType,
    valid: Sequence[Dim] | None = None,
    memory: str | None = "Vec",
    layout: tuple[tuple[str, str], ...] = (),
    memref: str | None = None,
) -> TileType:
    """Return the tile type; a valid shape equal to the shape is stored as ``None``."""
    return _tile(tuple(shape), dtype, None if valid is None else tuple(valid), memory, layout, memref)


def tensor(shape: Sequence[Dim], dtype: DType, kind: str = "Tensor") -> TensorType:
    """Return a plain tensor type."""
    return TensorType(tuple(shape), dtype, kind=kind)


@lru_cache(maxsize=64)
def scalar(dtype: DType = INDEX) -> ScalarType:
    """Return the scalar type of ``dtype``."""
    return ScalarType(dtype)


def shape_text(shape: Sequence[Dim]) -> str:
    """Return ``[16, n]`` for a shape."""
    return "[" + ", ".join(map(str, shape)) + "]"


def with_dtype(t: TileType, dtype: DType) -> TileType:
    """Return the tile type with another element type."""
    return _tile(t.shape, dtype, t.valid, t.memory, t.layout, None)


def static(shape: Sequence[Dim]) -> tuple[int, ...] | None:
    """Return the shape as ints, or ``None`` when a dimension is dynamic."""
    out = tuple(d for d in shape if isinstance(d, int))
    return out if len(out) == len(shape) else None
