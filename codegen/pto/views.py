"""Views of global memory.

Formats and rules: assembler v0.60 operation definitions and verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_prop_def,
    result_def,
    var_operand_def,
)
from xdsl.printer import Printer

from .base import (
    SEGMENTS,
    FormatOp,
    PtoOp,
    constant_of,
    op_definition,
    print_dictionary,
    print_values,
    resolve,
    segment_sizes,
    segments,
    type_text,
)
from .conditions import fail
from .elements import spell
from .types import (
    DYNAMIC,
    PartitionTensorViewType,
    PtrSpec,
    PtrType,
    TensorViewType,
    ViewSpec,
)
from .words import WORD_ATTRS

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand

INDEX = IndexType()
SIZED = (AttrSizedOperandSegments(as_property=True),)


def parse_list(parser: Parser) -> list[UnresolvedOperand]:
    """Read ``[%a, %b]``."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)


def _named_list(parser: Parser, name: str) -> list[UnresolvedOperand]:
    parser.parse_punctuation(",")
    parser.parse_keyword(name)
    parser.parse_punctuation("=")
    return parse_list(parser)


def indices(parser: Parser, values: Sequence[UnresolvedOperand]) -> list[SSAValue]:
    return resolve(parser, values, [INDEX] * len(values))


@op_definition
class MakeTensorViewOp(PtoOp):
    """``%v = pto.make_tensor_view %p, shape = [...], strides = [...] : !pto.tensor_view<...>``.

    Shape and strides are index values, strides count elements.
    """

    name = "pto.make_tensor_view"
    ptr = operand_def(PtrType)
    shape = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    layout = opt_prop_def(WORD_ATTRS["layout"])
    result = result_def(TensorViewType)
    irdl_options = SIZED

    def print(self, printer: Printer) -> None:
        _, shape, _ = segment_sizes(self)
        operands = self._operands
        printer.print_string(" ")
        printer.print_ssa_value(operands[0])
        printer.print_string(", shape = [")
        print_values(printer, operands[1 : 1 + shape])
        printer.print_string("], strides = [")
        print_values(printer, operands[1 + shape :])
        printer.print_string("]")
        print_dictionary(printer, self.dictionary())
        printer.print_string(f" : {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> MakeTensorViewOp:
        ptr = parser.parse_unresolved_operand()
        shape = _named_list(parser, "shape")
        strides = _named_list(parser, "strides")
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        at = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, TensorViewType):
            parser.raise_error("expected a !pto.tensor_view type", at)
        # The pointer's type is not written: it points to the view's elements in global memory.
        pointer = parser.resolve_operand(ptr, PtrType(PtrSpec(type_.element, "gm")))
        properties[SEGMENTS] = segments(1, len(shape), len(strides))
        return cls.create(
            operands=[pointer, *indices(parser, shape), *indices(parser, strides)],
            result_types=[type_],
            properties=properties,
            attributes=attributes,
        )

    def verify_(self) -> None:
        ptr, view = self._operands[0].type, self.results[0].type
        assert isinstance(ptr, PtrType) and isinstance(view, TensorViewType)
        if ptr.element != view.element:
            fail(f"the pointer is to {spell(ptr.element)}, the view of {spell(view.element)}")
        _, shape, strides = segment_sizes(self)
        if {shape, strides} != {len(view.shape)}:
            fail(
                f"a view of rank {len(view.shape)} needs as many shapes and strides, "
                f"not {shape} and {strides}"
            )


@op_definition
class PartitionViewOp(PtoOp):
    """``%w = pto.partition_view %v, offsets = [...], sizes = [...] : VIEW -> PARTITION``."""

    name = "pto.partition_view"
    source = operand_def(TensorViewType)
    offsets = var_operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    result = result_def(PartitionTensorViewType)
    irdl_options = SIZED

    def print(self, printer: Printer) -> None:
        _, offsets, _ = segment_sizes(self)
        operands = self._operands
        printer.print_string(" ")
        printer.print_ssa_value(operands[0])
        printer.print_string(", offsets = [")
        print_values(printer, operands[1 : 1 + offsets])
        printer.print_string("], sizes = [")
        print_values(printer, operands[1 + offsets :])
        printer.print_string("]")
        print_dictionary(printer, self.dictionary())
        printer.print_string(f" : {type_text(operands[0].type)} -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> PartitionViewOp:
        source = parser.parse_unresolved_operand()
        offsets = _named_list(parser, "offsets")
        sizes = _named_list(parser, "sizes")
        properties, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        parser.parse_punctuation(":")
        at = parser.pos
        view = parser.parse_type()
        if not isinstance(view, TensorViewType):
            parser.raise_error("expected a !pto.tensor_view type", at)
        extents = indices(parser, sizes)
        if parser.parse_optional_punctuation("->") is not None:
            result: Attribute = parser.parse_type()
        else:
            known = (constant_of(value) for value in extents)
            dims = tuple(DYNAMIC if n is None or n < 0 else n for n in known)
            result = PartitionTensorViewType(ViewSpec(dims, view.element))
        properties[SEGMENTS] = segments(1, len(offsets), len(sizes))
        return cls.create(
            operands=[parser.resolve_operand(source, view), *indices(parser, offsets), *extents],
            result_types=[result],
            properties=properties,
            attributes=attributes,
        )

    def verify_(self) -> None:
        view, part = self._operands[0].type, self.results[0].type
        assert isinstance(view, TensorViewType) and isinstance(part, PartitionTensorViewType)
        if view.element != part.element:
            fail(f"the source has {spell(view.element)} elements, the result {spell(part.element)}")
        rank = len(view.shape)
        _, offsets, sizes = segment_sizes(self)
        if {offsets, sizes} != {rank}:
            fail(f"a source of rank {rank} needs as many offsets and sizes, not {offsets} and {sizes}")
        for dim in range(rank):
            offset = constant_of(self._operands[1 + dim])
            size = constant_of(self._operands[1 + rank + dim])
            static = part.shape[dim] if len(part.shape) == rank else DYNAMIC
            _check_extent(dim, offset, size, view.shape[dim], static)


def _check_extent(dim: int, offset: int | None, size: int | None, extent: int, static: int) -> None:
    """Check one dimension of a partition against the source's extent and the result's static size."""
    if offset is not None and offset < 0:
        fail(f"offset {offset} of dimension {dim} is negative")
    if size is None:
        return
    if size <= 0:
        fail(f"size {size} of dimension {dim} is not positive")
    if DYNAMIC != static != size:
        fail(f"size {size} of dimension {dim} differs from the result type's {static}")
    if extent != DYNAMIC and (offset or 0) + size > extent:
        fail(f"dimension {dim} reaches {(offset or 0) + size} of a source extent of {extent}")


@op_definition
class GetTensorViewDimOp(FormatOp):
    """``%d = pto.get_tensor_view_dim %v, %i : VIEW -> index``."""

    name = "pto.get_tensor_view_dim"
    tensor_view = operand_def(TensorViewType)
    dim_index = operand_def(IndexType)
    result = result_def(IndexType)
    FORMAT: ClassVar[str] = "$tensor_view `,` $dim_index `:` type($tensor_view) `->` type($result) attr-dict"


@op_definition
class GetTensorViewStrideOp(FormatOp):
    """``%s = pto.get_tensor_view_stride %v, %i : VIEW -> index``, in elements."""

    name = "pto.get_tensor_view_stride"
    tensor_view = operand_def(TensorViewType)
    dim_index = operand_def(IndexType)
    result = result_def(IndexType)
    FORMAT: ClassVar[str] = "$tensor_view `,` $dim_index `:` type($tensor_view) `->` type($result) attr-dict"
