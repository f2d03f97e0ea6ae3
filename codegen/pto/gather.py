"""tgather and tscatter, whose operands depend on the form: by index, by mask pattern, by comparison.

Formats: assembler v0.60 operation definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import AnyFloatConstr, IntegerAttr, SignlessIntegerConstraint, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    operand_def,
    opt_operand_def,
    opt_prop_def,
)
from xdsl.printer import Printer

from . import shuffles
from .base import (
    SEGMENTS,
    PtoOp,
    op_definition,
    parse_types,
    parse_values,
    print_dictionary,
    print_values,
    resolve,
    segment_sizes,
    segments,
    types_text,
)
from .conditions import fail
from .elements import spell
from .types import DYNAMIC, TileBufType, _TextType
from .words import WORD_ATTRS, WordAttr

if TYPE_CHECKING:
    from xdsl.parser import Parser


class SparseOp(PtoOp):
    """Base: ``ins(%src, %x [, %tmp] : ...)`` or ``ins(%src, {maskPattern = ...} : T)``, and ``outs(...)``."""

    def sides(self) -> tuple[list[SSAValue], list[SSAValue]]:
        """Return the operands of ins and outs in text order."""
        raise NotImplementedError

    def print(self, printer: Printer) -> None:
        ins, outs = self.sides()
        printer.print_string(" ins(")
        print_values(printer, ins)
        pattern = self.properties.get("maskPattern")
        if pattern is not None:
            printer.print_string(f", {{maskPattern = {pattern}}}")
        printer.print_string(f" : {types_text(ins)}")
        axis = self.properties.get("axis")
        if axis is not None:
            printer.print_string(f", {axis}")
        printer.print_string(") outs(")
        print_values(printer, outs)
        printer.print_string(f" : {types_text(outs)})")
        print_dictionary(printer, self.dictionary(skip=("maskPattern", "axis")))

    @classmethod
    def parse_sides(
        cls, parser: Parser
    ) -> tuple[list[SSAValue], list[SSAValue], dict[str, Attribute], dict[str, Attribute]]:
        """Read the whole text: ins, outs, properties, attributes."""
        parser.parse_keyword("ins")
        parser.parse_punctuation("(")
        ins = [parser.parse_unresolved_operand()]
        properties: dict[str, Attribute] = {}
        while parser.parse_optional_punctuation(",") is not None:
            value = parser.parse_optional_unresolved_operand()
            if value is None:
                properties, _ = cls.split(parser, parser.parse_optional_attr_dict())
                break
            ins.append(value)
        parser.parse_punctuation(":")
        ins_found = resolve(parser, ins, parse_types(parser, len(ins)))
        if parser.parse_optional_punctuation(",") is not None:
            properties["axis"] = StringAttr(parser.parse_str_literal())
        parser.parse_punctuation(")")
        parser.parse_keyword("outs")
        parser.parse_punctuation("(")
        outs = parse_values(parser)
        parser.parse_punctuation(":")
        outs_found = resolve(parser, outs, parse_types(parser, len(outs)))
        parser.parse_punctuation(")")
        more, attributes = cls.split(parser, parser.parse_optional_attr_dict())
        return ins_found, outs_found, properties | more, attributes


def _check_columns(value: SSAValue, what: str) -> None:
    """Fail where the rows of a tile are longer than what is valid of them."""
    assert isinstance(value.type, TileBufType)
    spec = value.type.data
    if spec.valid_cols not in (DYNAMIC, spec.cols):
        fail(f"all columns of {what} must be valid, but {spec.valid_cols} of {spec.cols} are")


@op_definition
class TgatherOp(SparseOp):
    """``pto.tgather``: by index, by mask pattern, or the indices of elements that compare with a scalar."""

    name = "pto.tgather"
    src = operand_def(TileBufType)
    dst = operand_def(TileBufType)
    cdst = opt_operand_def(TileBufType)
    indices = opt_operand_def(TileBufType)
    tmp = opt_operand_def(TileBufType)
    kValue = opt_operand_def(SignlessIntegerConstraint | AnyFloatConstr)
    maskPattern = opt_prop_def(WORD_ATTRS["mask_pattern"])
    axis = opt_prop_def(StringAttr)
    cmpMode = opt_prop_def(WORD_ATTRS["cmp"])
    offset = opt_prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def sides(self) -> tuple[list[SSAValue], list[SSAValue]]:
        rest = iter(self._operands[2:])
        cdst, indices, tmp, value = (next(rest) if n else None for n in segment_sizes(self)[2:])
        ins = [self._operands[0], value if cdst is not None else indices, tmp]
        outs = [self._operands[1], cdst]
        return [v for v in ins if v is not None], [v for v in outs if v is not None]

    @classmethod
    def parse(cls, parser: Parser) -> TgatherOp:
        at = parser.pos
        ins, outs, properties, attributes = cls.parse_sides(parser)
        by_value = len(outs) == 2
        if len(ins) > 3 or len(outs) > 2 or by_value != any(not isinstance(v.type, _TextType) for v in ins):
            parser.raise_error("expected the index, mask or compare form of pto.tgather", at)
        second, tmp = ins[1:2], ins[2:3]
        indices, value = ([], second) if by_value else (second, [])
        properties[SEGMENTS] = segments(1, 1, len(outs) - 1, len(indices), len(tmp), len(value))
        return cls.create(
            operands=[ins[0], *outs, *indices, *tmp, *value], properties=properties, attributes=attributes
        )

    def verify_(self) -> None:
        _, _, cdst, indices, _, value = segment_sizes(self)
        forms = (indices, value and cdst, int("maskPattern" in self.properties))
        if sum(map(bool, forms)) != 1:
            fail("exactly one of indices, a compared value with cdst, and maskPattern is needed")
        _check_axis(self)
        src, dst = _tile(self._operands[0]), _tile(self._operands[1])
        if not cdst:
            _check_columns(self._operands[1], "dst")
        if indices:
            _check_columns(self.sides()[0][1], "indices")
            shuffles.by_index(src, dst)
        elif cdst:
            self._verify_comparison(src, dst)
        else:
            shuffles.picked(src, dst, self.properties["maskPattern"], _axis(self))

    def _verify_comparison(self, src: TileBufType, dst: TileBufType) -> None:
        (_, value, *tmp), (_, counts) = self.sides()
        if not tmp:
            fail("the compare form needs a tmp operand")
        shuffles.by_comparison(src, dst, _tile(counts), _tile(tmp[0]), value.type, self._how())

    def _how(self) -> str:
        given = self.properties.get("cmpMode")
        return given.data if isinstance(given, WordAttr) else "eq"

    def verify_arch(self, arch: str) -> None:
        _, _, cdst, indices, tmp, _ = segment_sizes(self)
        if cdst:
            shuffles.by_comparison_on(_tile(self._operands[0]), self._how(), arch)
        if arch != "a2a3" or not indices:
            return
        if not tmp:
            fail("the index form needs a tmp operand on a2/a3")
        index = self.sides()[0][1].type
        if isinstance(index, TileBufType) and spell(index.element) != "i32":
            fail("indices are i32 on a2/a3")


@op_definition
class TscatterOp(SparseOp):
    """``pto.tscatter ins(%src, %indexes : ...) outs(%dst : ...)``, or by mask pattern."""

    name = "pto.tscatter"
    src = operand_def(TileBufType)
    dst = operand_def(TileBufType)
    indexes = opt_operand_def(TileBufType)
    axis = opt_prop_def(StringAttr)
    maskPattern = opt_prop_def(WORD_ATTRS["mask_pattern"])

    def sides(self) -> tuple[list[SSAValue], list[SSAValue]]:
        return [self._operands[0], *self._operands[2:]], [self._operands[1]]

    @classmethod
    def parse(cls, parser: Parser) -> TscatterOp:
        at = parser.pos
        ins, outs, properties, attributes = cls.parse_sides(parser)
        if len(ins) > 2 or len(outs) != 1:
            parser.raise_error("expected the index or mask form of pto.tscatter", at)
        return cls.create(operands=[ins[0], *outs, *ins[1:]], properties=properties, attributes=attributes)

    def verify_(self) -> None:
        if (len(self._operands) == 3) == ("maskPattern" in self.properties):
            fail("exactly one of indexes and maskPattern is needed")
        _check_axis(self)
        src, dst, *indexes = map(_tile, self._operands)
        if indexes:
            shuffles.indexed(src, indexes[0], dst)
        else:
            shuffles.masked(src, dst, self.properties["maskPattern"], _axis(self))


def _tile(value: SSAValue) -> TileBufType:
    assert isinstance(value.type, TileBufType)
    return value.type


def _axis(op: SparseOp) -> str:
    axis = op.properties["axis"]
    assert isinstance(axis, StringAttr)
    return axis.data


def _check_axis(op: SparseOp) -> None:
    """A mask pattern and an axis go together."""
    if ("maskPattern" in op.properties) != ("axis" in op.properties):
        fail("a mask pattern needs an axis, and only a mask pattern has one")
