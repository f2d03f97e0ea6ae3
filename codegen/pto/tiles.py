"""Declarations of tiles and other names for their storage.

Formats and rules: assembler v0.60 operation definitions and verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    var_operand_def,
)
from xdsl.printer import Printer

from .base import (
    SEGMENTS,
    PtoOp,
    TypedOp,
    constant_of,
    integers,
    op_definition,
    print_dictionary,
    print_values,
    segment_sizes,
    segments,
    type_text,
)
from .conditions import fail, plain, storage_bytes
from .elements import PACKED_PAIRS, element_bytes, spell
from .types import DYNAMIC, TileBufType, dim_text, shared_tile
from .views import INDEX, SIZED, indices, parse_list

if TYPE_CHECKING:
    from xdsl.parser import Parser


@op_definition
class AllocTileOp(PtoOp):
    """``%t = pto.alloc_tile [addr = %a] [valid_row = %r] [valid_col = %c] : !pto.tile_buf<...>``.

    ``addr`` counts bytes (i64); a valid operand is there exactly when the type's valid extent is ``?``.
    """

    name = "pto.alloc_tile"
    addr = opt_operand_def(i64)
    valid_row = opt_operand_def(IndexType)
    valid_col = opt_operand_def(IndexType)
    result = result_def(TileBufType)
    irdl_options = SIZED
    KEYS: ClassVar[tuple[str, str, str]] = ("addr", "valid_row", "valid_col")

    def given(self) -> dict[str, SSAValue]:
        """Return the operands that are there, by keyword."""
        keys = [key for key, there in zip(self.KEYS, segment_sizes(self), strict=True) if there]
        return dict(zip(keys, self._operands, strict=True))

    def print(self, printer: Printer) -> None:
        for key, value in self.given().items():
            printer.print_string(f" {key} = ")
            printer.print_ssa_value(value)
        print_dictionary(printer, self.dictionary())
        printer.print_string(f" : {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> AllocTileOp:
        operands: list[SSAValue] = []
        sizes = []
        for key in cls.KEYS:
            there = parser.parse_optional_keyword(key) is not None
            sizes.append(int(there))
            if there:
                parser.parse_punctuation("=")
                value = parser.parse_unresolved_operand()
                operands.append(parser.resolve_operand(value, i64 if key == "addr" else INDEX))
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        properties[SEGMENTS] = segments(*sizes)
        parser.parse_punctuation(":")
        return cls.create(
            operands=operands,
            result_types=[parser.parse_type()],
            properties=properties,
            attributes=attributes,
        )

    def verify_(self) -> None:
        tile = self.results[0].type
        assert isinstance(tile, TileBufType)
        check_alignment(tile)
        given = self.given()
        for key, extent in zip(self.KEYS[1:], tile.valid, strict=True):
            if extent == DYNAMIC and key not in given:
                fail(f"{key} is required, because the type's valid extent is ?")
            if extent != DYNAMIC and key in given:
                fail(f"{key} must be absent, because the type's valid extent is {dim_text(extent)}")
        _check_address(given.get("addr"), tile.data.space)


def _check_address(value: SSAValue | None, space: str) -> None:
    at = None if value is None else constant_of(value)
    step = 512 if space in ("left", "right", "acc") else 32
    if at is not None and (at < 0 or at % step):
        fail(f"addr {at} must be a non-negative multiple of {step} in {space}")


def check_alignment(tile: TileBufType) -> None:
    """Check the layout of a tile that is to be allocated.

    Raises:
        VerifyException: rows, columns or bytes do not fill the layout's blocks.
    """
    spec = tile.data
    size = element_bytes(tile.element)
    if spec.slayout == "none_box":
        what, extent = ("cols", spec.cols) if spec.blayout == "row_major" else ("rows", spec.rows)
        step = 16 if spell(tile.element) in PACKED_PAIRS else 32
        if extent * size % step:
            fail(
                f"{what} * sizeof({spell(tile.element)}) must be a multiple of {step} bytes, "
                f"not {extent * size}"
            )
        return
    rows, cols = _inner_box(spec.fractal, spec.slayout, size)
    if spec.rows % rows and not (spec.space == "vec" or spec.fractal == 32 or spec.rows == 1):
        fail(f"rows of a boxed tile must be a multiple of {rows}, not {spec.rows}")
    if spec.cols % cols:
        fail(f"columns of a boxed tile must be a multiple of {cols}, not {spec.cols}")


def _inner_box(fractal: int, slayout: str, size: int) -> tuple[int, int]:
    """Return rows and columns of the inner box of a boxed layout."""
    if fractal == 1024:
        return 16, 16
    if fractal == 32:
        return 16, 2
    return (16, 32 // size) if slayout == "row_major" else (32 // size, 16)


@op_definition
class SetValidShapeOp(TypedOp):
    """``pto.set_validshape %t, %r, %c : TILE``: changes the valid extents in place."""

    name = "pto.set_validshape"
    source = operand_def(TileBufType)
    valid_row = operand_def(IndexType)
    valid_col = operand_def(IndexType)
    FORMAT: ClassVar[str] = "$source `,` $valid_row `,` $valid_col attr-dict `:` type($source)"
    ARROW: ClassVar[bool] = False

    def verify_(self) -> None:
        tile = self._operands[0].type
        assert isinstance(tile, TileBufType)
        if tile.valid != (DYNAMIC, DYNAMIC):
            fail("both valid extents of the type must be ?")
        if not isinstance(self._operands[0].owner, PtoOp):
            fail("the tile must be allocated in the function; an argument is not allowed")
        for what, value, extent in zip(("rows", "columns"), self._operands[1:], tile.shape, strict=True):
            known = constant_of(value)
            if known is not None and not 0 <= known <= extent:
                fail(f"valid {what} {known} outside 0..{extent}")


@op_definition
class GetValidShapeOp(TypedOp):
    """``%r, %c = pto.get_validshape %t : TILE``."""

    name = "pto.get_validshape"
    source = operand_def(TileBufType)
    valid_row = result_def(INDEX)
    valid_col = result_def(INDEX)
    FORMAT: ClassVar[str] = "$source attr-dict `:` type($source)"
    ARROW: ClassVar[bool] = False


@lru_cache(maxsize=1024)
def index_array(values: tuple[int, ...]) -> ArrayAttr[IntegerAttr]:
    """Return ``[16, 32]`` as an array of i64, shared."""
    return ArrayAttr([IntegerAttr(value, i64) for value in values])


@op_definition
class SubviewOp(PtoOp):
    """``%s = pto.subview %t[%i, %j] sizes [16, 32] [valid [%r, %c]] : TILE -> TILE'``."""

    name = "pto.subview"
    source = operand_def(TileBufType)
    offsets = var_operand_def(IndexType)
    valid_row = opt_operand_def(IndexType)
    valid_col = opt_operand_def(IndexType)
    sizes = prop_def(ArrayAttr)
    result = result_def(TileBufType)
    irdl_options = SIZED

    def print(self, printer: Printer) -> None:
        operands = self._operands
        offsets = segment_sizes(self)[1]
        printer.print_string(" ")
        printer.print_ssa_value(operands[0])
        printer.print_string("[")
        print_values(printer, operands[1 : 1 + offsets])
        printer.print_string(f"] sizes [{', '.join(map(str, integers(self.properties['sizes'])))}]")
        if len(operands) > 1 + offsets:
            printer.print_string(" valid [")
            print_values(printer, operands[1 + offsets :])
            printer.print_string("]")
        print_dictionary(printer, self.dictionary(skip=("sizes",)))
        printer.print_string(f" : {type_text(operands[0].type)} -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> SubviewOp:
        source = parser.parse_unresolved_operand()
        offsets = parse_list(parser)
        parser.parse_keyword("sizes")
        number = lambda: parser.parse_integer(allow_boolean=False)  # noqa: E731
        sizes = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, number)
        valid = parse_list(parser) if parser.parse_optional_keyword("valid") is not None else []
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        at = parser.pos
        type_ = parser.parse_type()
        extents = indices(parser, valid)
        if not isinstance(type_, TileBufType) or len(sizes) != 2:
            parser.raise_error("expected a tile and two sizes", at)
        arrow = parser.parse_optional_punctuation("->") is not None
        result = parser.parse_type() if arrow else subview_type(type_, (sizes[0], sizes[1]), extents)
        properties["sizes"] = index_array(tuple(sizes))
        properties[SEGMENTS] = segments(1, len(offsets), *((1, 1) if valid else (0, 0)))
        return cls.create(
            operands=[parser.resolve_operand(source, type_), *indices(parser, offsets), *extents],
            result_types=[result],
            properties=properties,
            attributes=attributes,
        )

    def verify_(self) -> None:
        source, result = self._operands[0].type, self.results[0].type
        assert isinstance(source, TileBufType) and isinstance(result, TileBufType)
        sizes = integers(self.properties["sizes"])
        _, offsets, *valid = segment_sizes(self)
        if offsets != 2 or len(sizes) != 2 or min(sizes) <= 0:
            fail("a subview needs two offsets and two positive sizes")
        if valid[0] != valid[1]:
            fail("the valid operands are given both or not at all")
        if any((constant_of(value) or 0) < 0 for value in self._operands[1:3]):
            fail("offsets must not be negative")
        _check_boxes(source, sizes, [constant_of(value) for value in self._operands[1:3]])
        _check_start(self._operands[0], *map(constant_of, self._operands[1:3]))
        bounds = self._operands[3:]
        expected = subview_type(source, (sizes[0], sizes[1]), bounds)
        free = replace(result.data, valid_rows=expected.valid[0], valid_cols=expected.valid[1])
        if free != expected.data:
            fail(f"the result must be {type_text(expected)} up to its valid shape, not {type_text(result)}")
        if (bounds and result.valid != expected.valid) or (DYNAMIC in result.valid and not bounds):
            fail(f"the result's valid shape must be that of {type_text(expected)}")


def _check_start(source: SSAValue, row: int | None, col: int | None) -> None:
    """A window of plain local memory begins at a 32-byte block: the assembler makes it a tile at that address."""
    while isinstance(source.owner, SubviewOp):
        source = source.owner.source
    whole = source.type
    assert isinstance(whole, TileBufType)
    spec = whole.data
    if spec.slayout != "none_box" or spec.space != "vec" or row is None or col is None:
        return
    at = row * spec.cols + col if spec.blayout == "row_major" else col * spec.rows + row
    if at * element_bytes(whole.element) % 32:
        fail(f"the window begins at byte {at * element_bytes(whole.element)}, which is not a multiple of 32")


def _check_boxes(source: TileBufType, sizes: Sequence[int], offsets: Sequence[int | None]) -> None:
    """A window of a boxed tile consists of whole inner boxes."""
    spec = source.data
    if spec.slayout == "none_box":
        return
    box = _inner_box(spec.fractal, spec.slayout, element_bytes(source.element))
    for step, size, offset in zip(box, sizes, offsets, strict=True):
        if size % step or (offset or 0) % step:
            fail(f"offsets and sizes in a boxed tile must be multiples of {box[0]}x{box[1]}")


def subview_type(source: TileBufType, sizes: tuple[int, int], valid: Sequence[SSAValue] = ()) -> TileBufType:
    """Return the type of a subview: the source's with the sizes; constant valid operands become static."""
    known = [constant_of(value) for value in valid]
    rows, cols = (
        [DYNAMIC if n is None else min(n, size) for n, size in zip(known, sizes, strict=True)]
        if valid
        else sizes
    )
    return shared_tile(replace(source.data, rows=sizes[0], cols=sizes[1], valid_rows=rows, valid_cols=cols))


@op_definition
class BitcastOp(TypedOp):
    """``%u = pto.bitcast %t : TILE -> TILE'``: another element type for the same shape and storage."""

    name = "pto.bitcast"
    src = operand_def(TileBufType)
    result = result_def(TileBufType)
    FORMAT: ClassVar[str] = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        src, result = self._operands[0].type, self.results[0].type
        assert isinstance(src, TileBufType) and isinstance(result, TileBufType)
        plain({"source": self._operands[0], "result": self.results[0]})
        if src.element == result.element:
            fail("source and result must have different element types")
        if replace(result.data, element=src.element) != src.data:
            fail("source and result must agree in everything but the element type")
        if element_bytes(result.element) > element_bytes(src.element):
            fail("the result needs more bytes than the source has")


@op_definition
class ReshapeOp(TypedOp):
    """``%u = pto.treshape %t : TILE -> TILE'``: another shape for the same bytes."""

    name = "pto.treshape"
    src = operand_def(TileBufType)
    result = result_def(TileBufType)
    FORMAT: ClassVar[str] = "$src attr-dict `:` type($src) `->` type($result)"

    def verify_(self) -> None:
        src, result = self._operands[0].type, self.results[0].type
        assert isinstance(src, TileBufType) and isinstance(result, TileBufType)
        plain({"source": self._operands[0], "result": self.results[0]})
        if src.data.space != result.data.space:
            fail(f"source and result must be in one space, not {src.data.space} and {result.data.space}")
        if storage_bytes(src) != storage_bytes(result):
            fail(
                f"source and result must have equal bytes, "
                f"not {storage_bytes(src)} and {storage_bytes(result)}"
            )
        if (src.data.slayout == "none_box") != (result.data.slayout == "none_box"):
            fail("source and result must both be boxed, or neither")


@op_definition
class TassignOp(TypedOp):
    """``%r = pto.tassign %t, %a : TILE -> TILE``: places a tile at an address in bytes (i64)."""

    name = "pto.tassign"
    tile = operand_def(TileBufType)
    addr = operand_def(i64)
    result = result_def(TileBufType)
    FORMAT: ClassVar[str] = "$tile `,` $addr attr-dict `:` type($tile) `->` type($result)"

    def verify_(self) -> None:
        if self._operands[0].type != self.results[0].type:
            fail("the result must have the tile's type")


@op_definition
class TileValidRowsOp(TypedOp):
    """``%r = pto.tile_valid_rows %t : TILE -> index``."""

    name = "pto.tile_valid_rows"
    src = operand_def(TileBufType)
    result = result_def(IndexType)
    FORMAT: ClassVar[str] = "$src attr-dict `:` type($src) `->` type($result)"


@op_definition
class TileValidColsOp(TypedOp):
    """``%c = pto.tile_valid_cols %t : TILE -> index``."""

    name = "pto.tile_valid_cols"
    src = operand_def(TileBufType)
    result = result_def(IndexType)
    FORMAT: ClassVar[str] = "$src attr-dict `:` type($src) `->` type($result)"
