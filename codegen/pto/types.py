"""Types of the PTO dialect: pointers, global views and tiles.

Each parametrised type holds one plain Python record. Texts and records are kept in tables, because a real
file repeats the same few types thousands of times: reading a known text is one dictionary look-up.
Layout, pad and alignment figures: assembler v0.60, type definitions and verifier.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

from xdsl.ir import Attribute, Data, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.printer import Printer

from .elements import element, spell

if TYPE_CHECKING:
    from xdsl.parser import AttrParser

#: A dimension that is not known statically, written ``?``.
DYNAMIC = -1

SPACES = ("vec", "mat", "left", "right", "acc", "bias", "scaling")
BLAYOUTS = ("row_major", "col_major")
SLAYOUTS = ("none_box", "row_major", "col_major")
FRACTALS = (32, 512, 1024)
PADS = (0, 1, 2, 3)
COMPACTS = (0, 1, 2)
#: Pointer address spaces and their second names; the first of each pair is printed.
PTR_SPACES = {
    "gm": "gm", "ub": "ub", "vec": "ub", "l1": "l1", "mat": "l1", "l0a": "l0a", "left": "l0a",
    "l0b": "l0b", "right": "l0b", "l0c": "l0c", "acc": "l0c", "bt": "bt", "bias": "bt",
    "fb": "fb", "scaling": "fb",
}  # fmt: skip


@irdl_attr_definition
class AsyncSessionType(ParametrizedAttribute, TypeAttribute):
    """``!pto.async_session``."""

    name = "pto.async_session"


@irdl_attr_definition
class AsyncEventType(ParametrizedAttribute, TypeAttribute):
    """``!pto.async_event``."""

    name = "pto.async_event"


class _Spec(Hashable, Protocol):
    @property
    def text(self) -> str: ...


SpecT = TypeVar("SpecT", bound=_Spec)


class _TextType(Data[SpecT], TypeAttribute, Generic[SpecT]):
    """A type written ``!pto.name<...>`` whose content is one record with a ``text``."""

    _seen: ClassVar[dict[tuple[str, str], _Spec]] = {}

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SpecT:
        source = parser.lexer.input.content
        start = parser.pos
        end = source.find(">", start) + 1
        body = source[start:end]
        known = cls._seen.get((cls.name, body))
        if known is not None:
            parser._resume_from(end)
            return known  # type: ignore[return-value]
        with parser.in_angle_brackets():
            spec = cls.parse_spec(parser, start)
        # An alias inside the text means another type in another file, so only plain texts are kept.
        if "!" not in body.replace("!pto.", "") and body.count("<") == 1:
            cls._seen[cls.name, body] = spec
        return spec

    @classmethod
    def parse_spec(cls, parser: AttrParser, at: int) -> SpecT:
        """Read the content between the angle brackets."""
        raise NotImplementedError

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data.text)


@dataclass(frozen=True)
class PtrSpec:
    """Content of a pointer type: the element type and the address space."""

    element: Attribute
    space: str

    @cached_property
    def text(self) -> str:
        """The bracketed text; the default space is left out."""
        return f"<{spell(self.element)}>" if self.space == "gm" else f"<{spell(self.element)}, {self.space}>"


@irdl_attr_definition
class PtrType(_TextType[PtrSpec]):
    """``!pto.ptr<T[, space]>``; the space is ``gm`` unless written."""

    name = "pto.ptr"

    @property
    def element(self) -> Attribute:
        return self.data.element

    @classmethod
    def parse_spec(cls, parser: AttrParser, at: int) -> PtrSpec:
        inner = parser.parse_type()
        if parser.parse_optional_punctuation(",") is None:
            return PtrSpec(inner, "gm")
        where = parser.pos
        space = PTR_SPACES.get(parser.parse_identifier())
        if space is None:
            parser.raise_error(f"expected one of {', '.join(PTR_SPACES)}", where)
        return PtrSpec(inner, space)


@dataclass(frozen=True)
class ViewSpec:
    """Content of a global view type: dimensions (:data:`DYNAMIC` for ``?``) and the element type."""

    shape: tuple[int, ...]
    element: Attribute

    @cached_property
    def text(self) -> str:
        """The bracketed text."""
        return "<" + "".join(f"{dim_text(d)}x" for d in self.shape) + spell(self.element) + ">"


class _ViewType(_TextType[ViewSpec]):
    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def element(self) -> Attribute:
        return self.data.element

    @classmethod
    def parse_spec(cls, parser: AttrParser, at: int) -> ViewSpec:
        dims = _parse_dims(parser)
        if not dims:
            parser.raise_error("a view has at least one dimension", at)
        return ViewSpec(dims, parser.parse_type())


@irdl_attr_definition
class TensorViewType(_ViewType):
    """``!pto.tensor_view<?x64xf32>``: a strided view of global memory."""

    name = "pto.tensor_view"


@irdl_attr_definition
class PartitionTensorViewType(_ViewType):
    """``!pto.partition_tensor_view<32x64xf32>``: a rectangle of a tensor view."""

    name = "pto.partition_tensor_view"


_View = TypeVar("_View", bound=_ViewType)


_VIEWS: dict[tuple[type[_ViewType], tuple[int, ...], Attribute], _ViewType] = {}


def view_type(cls: type[_View], shape: tuple[int, ...], inner: Attribute) -> _View:
    """Return the (shared) view type of a class with dimensions and an element type."""
    key = (cls, shape, inner)
    known = _VIEWS.get(key)
    if known is None:
        known = _VIEWS.setdefault(key, cls(ViewSpec(shape, inner)))
    assert isinstance(known, cls)
    return known


@dataclass(frozen=True)
class TileSpec:
    """Content of a tile type. Extents in elements; ``valid_*`` may be :data:`DYNAMIC`."""

    space: str
    rows: int
    cols: int
    element: Attribute
    valid_rows: int
    valid_cols: int
    blayout: str = "row_major"
    slayout: str = "none_box"
    fractal: int = 512
    pad: int = 0
    compact: int = 0

    @cached_property
    def text(self) -> str:
        """The short form with defaults left out."""
        parts = [self.space, f"{self.rows}x{self.cols}x{spell(self.element)}"]
        if self.valid != (self.rows, self.cols):
            parts.append(f"valid={dim_text(self.valid_rows)}x{dim_text(self.valid_cols)}")
        for key, default in _TILE_DEFAULTS:
            if getattr(self, key) != default:
                parts.append(f"{key}={getattr(self, key)}")
        return f"<{', '.join(parts)}>"

    @property
    def valid(self) -> tuple[int, int]:
        """The valid extents."""
        return self.valid_rows, self.valid_cols

    def problem(self) -> str | None:
        """Say what makes the type impossible, if anything."""
        if self.rows <= 0 or self.cols <= 0:
            return "tile rows and columns must be positive"
        for what, valid, extent in (
            ("rows", self.valid_rows, self.rows),
            ("columns", self.valid_cols, self.cols),
        ):
            if valid != DYNAMIC and not 0 <= valid <= extent:
                return f"valid {what} {valid} outside 0..{extent}"
        for key, allowed in _TILE_WORDS:
            if getattr(self, key) not in allowed:
                return f"{key} must be one of {', '.join(map(str, allowed))}, not {getattr(self, key)}"
        return None


_TILE_WORDS: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("space", SPACES),
    ("blayout", BLAYOUTS),
    ("slayout", SLAYOUTS),
    ("fractal", FRACTALS),
    ("pad", PADS),
    ("compact", COMPACTS),
)
_TILE_DEFAULTS: tuple[tuple[str, object], ...] = (
    ("blayout", "row_major"),
    ("slayout", "none_box"),
    ("fractal", 512),
    ("pad", 0),
    ("compact", 0),
)


@irdl_attr_definition
class TileBufType(_TextType[TileSpec]):
    """``!pto.tile_buf<vec, 32x64xf32>``; the long ``loc=..., dtype=...`` form is read too."""

    name = "pto.tile_buf"

    @property
    def element(self) -> Attribute:
        return self.data.element

    @property
    def shape(self) -> tuple[int, int]:
        return self.data.rows, self.data.cols

    @property
    def valid(self) -> tuple[int, int]:
        return self.data.valid

    @classmethod
    def parse_spec(cls, parser: AttrParser, at: int) -> TileSpec:
        from .tiletext import parse_tile

        return parse_tile(parser, at)


def dim_text(dim: int) -> str:
    """Return a dimension as text."""
    return "?" if dim == DYNAMIC else str(dim)


_DIM = re.compile(r"\s*(\?|[0-9]+)\s*x")


def _parse_dims(parser: AttrParser) -> tuple[int, ...]:
    """Read ``32x?x`` and leave the parser at the element type (``0x4`` is two dimensions, not a number)."""
    source = parser.lexer.input.content
    pos = parser.pos
    dims: list[int] = []
    while (found := _DIM.match(source, pos)) is not None:
        dims.append(DYNAMIC if found[1] == "?" else int(found[1]))
        pos = found.end()
    parser._resume_from(pos)
    return tuple(dims)


_TILES: dict[TileSpec, TileBufType] = {}


def tile_type(
    dtype: str,
    rows: int,
    cols: int,
    *,
    valid: tuple[int, int] | None = None,
    space: str = "vec",
    blayout: str = "row_major",
    slayout: str = "none_box",
    fractal: int = 512,
    pad: int = 0,
    compact: int = 0,
) -> TileBufType:
    """Return the (shared) tile type; ``dtype`` is the assembler's spelling, extents count elements.

    Raises:
        ValueError: unknown spelling, extent or configuration word.
    """
    vrows, vcols = valid or (rows, cols)
    spec = TileSpec(
        space, rows, cols, element(dtype), vrows, vcols, blayout, slayout, fractal, pad, compact
    )  # fmt: skip
    known = _TILES.get(spec)
    if known is None:
        problem = spec.problem()
        if problem:
            raise ValueError(problem)
        known = shared_tile(spec)
    return known


def shared_tile(spec: TileSpec) -> TileBufType:
    """Return the (shared) tile type of a record."""
    known = _TILES.get(spec)
    return known if known is not None else _TILES.setdefault(spec, TileBufType(spec))


@lru_cache(maxsize=1024)
def ptr_type(dtype: str, space: str = "gm") -> PtrType:
    """Return ``!pto.ptr<dtype[, space]>``, shared."""
    return PtrType(PtrSpec(element(dtype), PTR_SPACES[space]))


def tensor_view_type(dtype: str, shape: tuple[int, ...]) -> TensorViewType:
    """Return ``!pto.tensor_view``; a dimension may be :data:`DYNAMIC`."""
    return view_type(TensorViewType, tuple(shape), element(dtype))


def partition_type(dtype: str, shape: tuple[int, ...]) -> PartitionTensorViewType:
    """Return ``!pto.partition_tensor_view``; a dimension may be :data:`DYNAMIC`."""
    return view_type(PartitionTensorViewType, tuple(shape), element(dtype))
