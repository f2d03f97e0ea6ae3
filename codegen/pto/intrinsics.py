"""The dialects around SIMT code: the library's operations, and the ones it does not know."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, opt_prop_def, prop_def, var_operand_def, var_result_def
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .base import parse_values, print_values, resolve, type_text, types_text

if TYPE_CHECKING:
    from xdsl.parser import Parser


class IntrinsicOp(IRDLOperation):
    """Base: ``%m = llvm.intr.smax(%a, %b) : (i32, i32) -> i32``; all types are one."""

    args = var_operand_def()
    res = var_result_def()
    is_int_min_poison = opt_prop_def(IntegerAttr)

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        print_values(printer, self._operands)
        printer.print_string(")")
        printer.print_op_attributes({**self.properties, **self.attributes})
        printer.print_string(f" : ({types_text(self._operands)}) -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> IntrinsicOp:
        parser.parse_punctuation("(")
        values = parse_values(parser)
        parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        result = parser.parse_type()
        if len(types) != len(values):
            parser.raise_error("expected a type for each operand")
        poison = {k: v for k, v in attributes.items() if k == "is_int_min_poison"}
        rest = {k: v for k, v in attributes.items() if k not in poison}
        return cls.create(
            operands=resolve(parser, values, types), result_types=[result], properties=poison, attributes=rest
        )  # fmt: skip

    def verify_(self) -> None:
        if {v.type for v in self._operands} != {self.results[0].type}:
            raise VerifyException("all operands and the result have one type")


@irdl_op_definition
class CallIntrinsicOp(IRDLOperation):
    """``%i = llvm.call_intrinsic "llvm.fptosi.sat.i32.f32"(%x) : (f32) -> i32``."""

    name = "llvm.call_intrinsic"
    args = var_operand_def()
    res = var_result_def()
    intrin = prop_def(StringAttr)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.properties["intrin"])
        printer.print_string("(")
        print_values(printer, self._operands)
        printer.print_string(f") : ({types_text(self._operands)}) -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> CallIntrinsicOp:
        name = parser.parse_str_literal()
        parser.parse_punctuation("(")
        values = parse_values(parser)
        parser.parse_punctuation(")")
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
        parser.parse_punctuation("->")
        result = parser.parse_type()
        if len(types) != len(values):
            parser.raise_error("expected a type for each operand")
        operands = resolve(parser, values, types)
        return cls.create(operands=operands, result_types=[result], properties={"intrin": StringAttr(name)})


_OWN = ("smax", "smin", "umax", "umin", "abs", "rint", "round", "trunc", "roundeven")


def _made(name: str) -> type[Operation]:
    made = type(f"Intr_{name}", (IntrinsicOp,), {"name": f"llvm.intr.{name}"})
    defined: Any = irdl_op_definition(made)
    return defined  # type: ignore[no-any-return]


@cache
def llvm_dialect() -> Dialect:
    """Return the LLVM dialect as a file may use it: the library's, and the intrinsics it lacks.

    It takes a tenth of a second to load, so that only files with scalar code ask for it.
    """
    from xdsl.dialects import llvm

    known = {op.name: op for op in llvm.LLVM.operations}
    more = {f"llvm.intr.{n}": _made(n) for n in _OWN if f"llvm.intr.{n}" not in known}
    every: dict[str, type[Operation]] = {**known, **more, CallIntrinsicOp.name: CallIntrinsicOp}
    return Dialect("llvm", list(every.values()), list(llvm.LLVM.attributes))


@irdl_op_definition
class IndexCastUIOp(IRDLOperation):
    """``%i = arith.index_castui %x : i32 to index``: the cast that extends with zeros."""

    name = "arith.index_castui"
    args = var_operand_def()
    res = var_result_def()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self._operands)
        printer.print_string(f" : {types_text(self._operands)} to {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> IndexCastUIOp:
        value = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        operand = parser.resolve_operand(value, parser.parse_type())
        parser.parse_keyword("to")
        return cls.create(operands=[operand], result_types=[parser.parse_type()])


#: ``arith`` with the cast that the library lacks.
ARITH_DIALECT = Dialect("arith", [*arith.Arith.operations, IndexCastUIOp], list(arith.Arith.attributes))
