"""Pointers, scalars and queries of the running core.

Formats: assembler v0.60 operation definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import (
    AnyFloatConstr,
    IndexType,
    IntegerType,
    SignlessIntegerConstraint,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import BaseAttr, operand_def, prop_def, result_def
from xdsl.printer import Printer

from .base import BareOp, FormatOp, PtoOp, op_definition, print_dictionary, print_values, type_text, types_text
from .conditions import fail
from .elements import spell
from .types import PTR_SPACES, PtrSpec, PtrType, TileBufType

if TYPE_CHECKING:
    from xdsl.parser import Parser

_SCALAR = SignlessIntegerConstraint | AnyFloatConstr


_INDEX = IndexType()


def _pointee(pointer: Attribute, value: Attribute) -> None:
    assert isinstance(pointer, PtrType)
    if pointer.element != value:
        fail(f"the pointer is to {spell(pointer.element)}, the value is {spell(value)}")


def parse_pointer_type(parser: Parser) -> Attribute:
    """Read a type; a pointer may be shortened to ``<f32, gm>``, as the assembler prints it in these operations."""
    if parser.parse_optional_characters("<") is None:
        return parser.parse_type()
    element_type = parser.parse_type()
    space = parser.parse_identifier() if parser.parse_optional_punctuation(",") is not None else "gm"
    parser.parse_punctuation(">")
    if space not in PTR_SPACES:
        parser.raise_error(f"expected one of {', '.join(PTR_SPACES)}")
    return PtrType(PtrSpec(element_type, PTR_SPACES[space]))


class PointerOp(PtoOp):
    """Base: ``%r = pto.NAME %x [, %i | [%i]] : T -> R``."""

    #: Text before and after the index operand; None for an operation without one.
    INDEXED: ClassVar[tuple[str, str] | None] = None

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self._operands[0])
        if self.INDEXED is not None:
            printer.print_string(self.INDEXED[0])
            printer.print_ssa_value(self._operands[1])
            printer.print_string(self.INDEXED[1])
        print_dictionary(printer, self.dictionary())
        printer.print_string(f" : {type_text(self._operands[0].type)} -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> PointerOp:
        first = parser.parse_unresolved_operand()
        indices = []
        if cls.INDEXED is not None:
            parser.parse_punctuation("[" if cls.INDEXED[1] else ",")
            indices.append(parser.resolve_operand(parser.parse_unresolved_operand(), _INDEX))
            if cls.INDEXED[1]:
                parser.parse_punctuation("]")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(first, parse_pointer_type(parser))
        parser.parse_punctuation("->")
        result = parse_pointer_type(parser)
        return cls.create(operands=[operand, *indices], result_types=[result], attributes=attributes)


@op_definition
class AddPtrOp(PointerOp):
    """``%q = pto.addptr %p, %i : PTR -> PTR``: the offset is an index in elements."""

    name = "pto.addptr"
    ptr = operand_def(PtrType)
    offset = operand_def(IndexType)
    result = result_def(PtrType)
    INDEXED: ClassVar[tuple[str, str] | None] = (", ", "")

    def verify_(self) -> None:
        if self._operands[0].type != self.results[0].type:
            fail("the result must have the pointer's type")


@op_definition
class CastPtrOp(PointerOp):
    """``%r = pto.castptr %p : A -> B``: between pointers of one space, or a pointer and an integer."""

    name = "pto.castptr"
    input = operand_def(BaseAttr(PtrType) | BaseAttr(IntegerType))
    result = result_def(BaseAttr(PtrType) | BaseAttr(IntegerType))

    def verify_(self) -> None:
        one, other = self._operands[0].type, self.results[0].type
        if not isinstance(one, PtrType) and not isinstance(other, PtrType):
            fail("one side must be a pointer")
        if isinstance(one, PtrType) and isinstance(other, PtrType) and one.data.space != other.data.space:
            fail(f"the pointers are in different spaces, {one.data.space} and {other.data.space}")


@op_definition
class PtrToIntOp(PointerOp):
    """``%a = pto.ptrtoint %p : PTR -> i64``."""

    name = "pto.ptrtoint"
    ptr = operand_def(PtrType)
    result = result_def(i64)


@op_definition
class IntToPtrOp(PointerOp):
    """``%p = pto.inttoptr %a : i64 -> PTR``."""

    name = "pto.inttoptr"
    addr = operand_def(IntegerType)
    result = result_def(PtrType)


@op_definition
class LoadScalarOp(PointerOp):
    """``%x = pto.load_scalar %p[%i] : PTR -> T``."""

    name = "pto.load_scalar"
    ptr = operand_def(PtrType)
    offset = operand_def(IndexType)
    value = result_def()
    INDEXED: ClassVar[tuple[str, str] | None] = ("[", "]")

    def verify_(self) -> None:
        _pointee(self._operands[0].type, self.results[0].type)


@op_definition
class StoreScalarOp(PtoOp):
    """``pto.store_scalar %x, %p[%i] : PTR, T``."""

    name = "pto.store_scalar"
    ptr = operand_def(PtrType)
    offset = operand_def(IndexType)
    value = operand_def()

    def print(self, printer: Printer) -> None:
        ptr, offset, value = self._operands
        printer.print_string(" ")
        print_values(printer, [value, ptr])
        printer.print_string("[")
        printer.print_ssa_value(offset)
        printer.print_string("]")
        print_dictionary(printer, self.dictionary())
        printer.print_string(f" : {types_text([ptr, value])}")

    @classmethod
    def parse(cls, parser: Parser) -> StoreScalarOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        ptr = parser.parse_unresolved_operand()
        parser.parse_punctuation("[")
        offset = parser.resolve_operand(parser.parse_unresolved_operand(), _INDEX)
        parser.parse_punctuation("]")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pointer = parser.resolve_operand(ptr, parse_pointer_type(parser))
        parser.parse_punctuation(",")
        stored = parser.resolve_operand(value, parser.parse_type())
        return cls.create(operands=[pointer, offset, stored], attributes=attributes)

    def verify_(self) -> None:
        _pointee(self._operands[0].type, self._operands[2].type)


@op_definition
class TgetvalOp(FormatOp):
    """``%v = pto.tgetval ins(%t, %i : TILE, index) outs : T``: one element of a tile."""

    name = "pto.tgetval"
    src = operand_def(TileBufType)
    offset = operand_def(IndexType)
    dst = result_def(_SCALAR)
    FORMAT: ClassVar[str] = (
        "`ins` `(` $src `,` $offset `:` type($src) `,` type($offset) `)` `outs` `:` type($dst) attr-dict"
    )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ins(")
        print_values(printer, self._operands)
        printer.print_string(f" : {types_text(self._operands)}) outs : {type_text(self.results[0].type)}")
        print_dictionary(printer, self.attributes)

    def verify_(self) -> None:
        tile = self._operands[0].type
        assert isinstance(tile, TileBufType)
        if tile.element != self.results[0].type:
            fail(f"the tile has {spell(tile.element)} elements, the value is {spell(self.results[0].type)}")


class QueryOp(PtoOp):
    """Base of the queries: no operands, one i64."""

    def print(self, printer: Printer) -> None:
        if self.attributes:
            printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> QueryOp:
        return cls.create(result_types=[i64], attributes=parser.parse_optional_attr_dict())


@op_definition
class GetBlockIdxOp(QueryOp):
    """``%b = pto.get_block_idx``."""

    name = "pto.get_block_idx"
    result = result_def(i64)


@op_definition
class GetBlockNumOp(QueryOp):
    """``%n = pto.get_block_num``."""

    name = "pto.get_block_num"
    result = result_def(i64)


@op_definition
class GetSubblockIdxOp(QueryOp):
    """``%b = pto.get_subblock_idx``."""

    name = "pto.get_subblock_idx"
    result = result_def(i64)


@op_definition
class GetSubblockNumOp(QueryOp):
    """``%n = pto.get_subblock_num``."""

    name = "pto.get_subblock_num"
    result = result_def(i64)


@op_definition
class PrintOp(PtoOp):
    """``pto.print ins("%d", %x : i32)``."""

    name = "pto.print"
    format = prop_def(StringAttr)
    scalar = operand_def(BaseAttr(IntegerType) | AnyFloatConstr)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ins(")
        printer.print_attribute(self.properties["format"])
        printer.print_string(", ")
        printer.print_ssa_value(self._operands[0])
        printer.print_string(f" : {type_text(self._operands[0].type)})")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> PrintOp:
        parser.parse_keyword("ins")
        parser.parse_punctuation("(")
        text = parser.parse_str_literal()
        parser.parse_punctuation(",")
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        scalar = parser.resolve_operand(value, parser.parse_type())
        parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=[scalar], properties={"format": StringAttr(text)}, attributes=attributes)


@op_definition
class TrapOp(BareOp):
    """``pto.trap``."""

    name = "pto.trap"
