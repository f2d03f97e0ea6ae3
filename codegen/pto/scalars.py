"""Pointers, scalars and queries of the running core.

Formats: assembler v0.60 operation definitions.
"""

from __future__ import annotations

from xdsl.dialects.builtin import (
    AnyFloatConstr,
    IndexType,
    IntegerType,
    SignlessIntegerConstraint,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute
from xdsl.irdl import BaseAttr, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer

from .base import PtoOp, type_text
from .conditions import fail
from .elements import spell
from .types import PtrType, TileBufType

_SCALAR = SignlessIntegerConstraint | AnyFloatConstr


def _pointee(pointer: Attribute, value: Attribute) -> None:
    assert isinstance(pointer, PtrType)
    if pointer.element != value:
        fail(f"the pointer is to {spell(pointer.element)}, the value is {spell(value)}")


@irdl_op_definition
class AddPtrOp(PtoOp):
    """``%q = pto.addptr %p, %i : PTR -> PTR``: the offset is an index in elements."""

    name = "pto.addptr"
    ptr = operand_def(PtrType)
    offset = operand_def(IndexType)
    result = result_def(PtrType)
    assembly_format = "$ptr `,` $offset attr-dict `:` type($ptr) `->` type($result)"

    def verify_(self) -> None:
        if self._operands[0].type != self.results[0].type:
            fail("the result must have the pointer's type")


@irdl_op_definition
class CastPtrOp(PtoOp):
    """``%r = pto.castptr %p : A -> B``: between pointers of one space, or a pointer and an integer."""

    name = "pto.castptr"
    input = operand_def(BaseAttr(PtrType) | BaseAttr(IntegerType))
    result = result_def(BaseAttr(PtrType) | BaseAttr(IntegerType))
    assembly_format = "$input attr-dict `:` type($input) `->` type($result)"

    def verify_(self) -> None:
        one, other = self._operands[0].type, self.results[0].type
        if not isinstance(one, PtrType) and not isinstance(other, PtrType):
            fail("one side must be a pointer")
        if isinstance(one, PtrType) and isinstance(other, PtrType) and one.data.space != other.data.space:
            fail(f"the pointers are in different spaces, {one.data.space} and {other.data.space}")


@irdl_op_definition
class PtrToIntOp(PtoOp):
    """``%a = pto.ptrtoint %p : PTR -> i64``."""

    name = "pto.ptrtoint"
    ptr = operand_def(PtrType)
    result = result_def(i64)
    assembly_format = "$ptr attr-dict `:` type($ptr) `->` type($result)"


@irdl_op_definition
class IntToPtrOp(PtoOp):
    """``%p = pto.inttoptr %a : i64 -> PTR``."""

    name = "pto.inttoptr"
    addr = operand_def(IntegerType)
    result = result_def(PtrType)
    assembly_format = "$addr attr-dict `:` type($addr) `->` type($result)"


@irdl_op_definition
class LoadScalarOp(PtoOp):
    """``%x = pto.load_scalar %p[%i] : PTR -> T``."""

    name = "pto.load_scalar"
    ptr = operand_def(PtrType)
    offset = operand_def(IndexType)
    value = result_def()
    assembly_format = "$ptr `[` $offset `]` attr-dict `:` type($ptr) `->` type($value)"

    def verify_(self) -> None:
        _pointee(self._operands[0].type, self.results[0].type)


@irdl_op_definition
class StoreScalarOp(PtoOp):
    """``pto.store_scalar %x, %p[%i] : PTR, T``."""

    name = "pto.store_scalar"
    ptr = operand_def(PtrType)
    offset = operand_def(IndexType)
    value = operand_def()
    assembly_format = "$value `,` $ptr `[` $offset `]` attr-dict `:` type($ptr) `,` type($value)"

    def verify_(self) -> None:
        _pointee(self._operands[0].type, self._operands[2].type)


@irdl_op_definition
class TgetvalOp(PtoOp):
    """``%v = pto.tgetval ins(%t, %i : TILE, index) outs : T``: one element of a tile."""

    name = "pto.tgetval"
    src = operand_def(TileBufType)
    offset = operand_def(IndexType)
    dst = result_def(_SCALAR)
    assembly_format = (
        "`ins` `(` $src `,` $offset `:` type($src) `,` type($offset) `)` `outs` `:` type($dst) attr-dict"
    )

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


@irdl_op_definition
class GetBlockIdxOp(QueryOp):
    """``%b = pto.get_block_idx``."""

    name = "pto.get_block_idx"
    result = result_def(i64)


@irdl_op_definition
class GetBlockNumOp(QueryOp):
    """``%n = pto.get_block_num``."""

    name = "pto.get_block_num"
    result = result_def(i64)


@irdl_op_definition
class GetSubblockIdxOp(QueryOp):
    """``%b = pto.get_subblock_idx``."""

    name = "pto.get_subblock_idx"
    result = result_def(i64)


@irdl_op_definition
class GetSubblockNumOp(QueryOp):
    """``%n = pto.get_subblock_num``."""

    name = "pto.get_subblock_num"
    result = result_def(i64)


@irdl_op_definition
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


@irdl_op_definition
class TrapOp(PtoOp):
    """``pto.trap``."""

    name = "pto.trap"
    assembly_format = "attr-dict"
