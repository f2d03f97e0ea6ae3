"""tmrgsort: merging of sorted lists, within one tile or of two to four tiles.

Formats: assembler v0.60 operation definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import BoolAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    opt_operand_def,
    opt_prop_def,
    var_operand_def,
)
from xdsl.printer import Printer

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
from .types import TileBufType

if TYPE_CHECKING:
    from xdsl.parser import Parser


@op_definition
class TmrgsortOp(PtoOp):
    """``ins(%src, %len : T, i32) outs(%dst : T)``, or two to four sources with a count of what was taken::

        pto.tmrgsort ins(%a, %b, %tmp {exhausted = false} : T, T, T) outs(%dst, %n : T, vector<4xi16>)

    Without a tmp the word ``no_tmp`` stands before the dictionary.
    """

    name = "pto.tmrgsort"
    srcs = var_operand_def(TileBufType)
    blockLen = opt_operand_def(IntegerType)
    dsts = var_operand_def(TileBufType)
    tmp = opt_operand_def(TileBufType)
    excuted = opt_operand_def()
    exhausted = opt_prop_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def print(self, printer: Printer) -> None:
        srcs, block, dsts, tmp, _ = segment_sizes(self)
        values = self._operands
        first = srcs + block
        ins = [*values[:first], *values[first + dsts : first + dsts + tmp]]
        outs = [*values[first : first + dsts], *values[first + dsts + tmp :]]
        printer.print_string(" ins(")
        print_values(printer, ins)
        if not block:
            flag = self.properties.get("exhausted")
            word = "true" if isinstance(flag, IntegerAttr) and flag.value.data else "false"
            printer.print_string(f"{'' if tmp else ' no_tmp'} {{exhausted = {word}}}")
        printer.print_string(f" : {types_text(ins)}) outs(")
        print_values(printer, outs)
        printer.print_string(f" : {types_text(outs)})")
        print_dictionary(printer, self.dictionary(skip=() if block else ("exhausted",)))

    @classmethod
    def parse(cls, parser: Parser) -> TmrgsortOp:
        at = parser.pos
        parser.parse_keyword("ins")
        parser.parse_punctuation("(")
        names = parse_values(parser)
        bare = parser.parse_optional_keyword("no_tmp") is not None
        entries = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        ins = resolve(parser, names, parse_types(parser, len(names)))
        parser.parse_punctuation(")")
        parser.parse_keyword("outs")
        parser.parse_punctuation("(")
        names = parse_values(parser)
        parser.parse_punctuation(":")
        outs = resolve(parser, names, parse_types(parser, len(names)))
        parser.parse_punctuation(")")
        properties, attributes = cls.split(parser, entries | parser.parse_optional_attr_dict())
        if len(outs) == 1 and len(ins) == 2:
            sizes, operands = (1, 1, 1, 0, 0), [*ins, *outs]
        elif len(outs) == 2 and 2 <= len(ins) - (not bare) <= 4:
            tmp = [] if bare else [ins.pop()]
            sizes, operands = (len(ins), 0, 1, len(tmp), 1), [*ins, outs[0], *tmp, outs[1]]
            false: Attribute = BoolAttr.from_bool(False)
            properties.setdefault("exhausted", false)
        else:
            parser.raise_error("expected a tile and a block length, or two to four tiles", at)
        properties[SEGMENTS] = segments(*sizes)
        return cls.create(operands=operands, properties=properties, attributes=attributes)

    def needs_generic(self) -> bool:
        srcs, block, dsts, tmp, excuted = segment_sizes(self)
        one = (srcs, block, dsts, tmp, excuted) == (1, 1, 1, 0, 0)
        return not one and not (2 <= srcs <= 4 and (block, dsts, excuted) == (0, 1, 1))

    def verify_(self) -> None:
        if self.needs_generic():
            fail("expected a tile and a block length, or two to four tiles, one dst and a count")
