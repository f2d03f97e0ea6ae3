"""The operations of ``func`` that assembly is written with; see :mod:`.arith` for why they are not the library's."""

from __future__ import annotations

from xdsl.dialects.builtin import FunctionType, StringAttr, SymbolRefAttr
from xdsl.ir import Operation, OpTraits
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove, IsTerminator, SymbolOpInterface, SymbolTable
from xdsl.utils.exceptions import VerifyException

from .base import print_dictionary, print_values, type_text, types_text


class FuncOp(Operation):
    """``func.func @name(%a: index) attributes {pto.entry} {``, or a declaration without a body."""

    name = "func.func"
    traits = OpTraits(lambda: (IsolatedFromAbove(), SymbolOpInterface()))

    def print(self, printer: Printer) -> None:
        visibility, kind = self.properties.get("sym_visibility"), self._type()
        if isinstance(visibility, StringAttr):
            printer.print_string(f" {visibility.data}")
        printer.print_string(" ")
        name = self.properties["sym_name"]
        assert isinstance(name, StringAttr)
        printer.print_symbol_name(name)
        if not self.regions[0].blocks:
            printer.print_attribute(kind)
            printer.print_op_attributes(self.attributes, print_keyword=True)
            return
        printer.print_string("(")
        printer.print_list(self.regions[0].blocks[0].args, printer.print_block_argument)
        printer.print_string(")")
        outputs = [type_text(t) for t in kind.outputs.data]
        if outputs:
            printer.print_string(f" -> {outputs[0]}" if len(outputs) == 1 else f" -> ({', '.join(outputs)})")
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.regions[0], False, False)

    def verify_(self) -> None:
        if not isinstance(self.properties.get("sym_name"), StringAttr):
            raise VerifyException("a function has a name")
        blocks = self.regions[0].blocks
        if blocks and tuple(a.type for a in blocks[0].args) != self._type().inputs.data:
            raise VerifyException("the entry block arguments have the types of the function's inputs")

    def _type(self) -> FunctionType:
        found = self.properties.get("function_type")
        if not isinstance(found, FunctionType):
            raise VerifyException("a function has a type")
        return found


class CallOp(Operation):
    """``func.call @name(%a, %b) : (index, f32) -> ()``."""

    name = "func.call"
    traits = OpTraits(tuple)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.properties["callee"])
        printer.print_string("(")
        print_values(printer, self._operands)
        printer.print_string(")")
        print_dictionary(printer, self.attributes)
        printer.print_string(" : ")
        printer.print_operation_type(self)

    def verify_(self) -> None:
        callee = self.properties.get("callee")
        found = SymbolTable.lookup_symbol(self, callee) if isinstance(callee, SymbolRefAttr) else None
        kind = None if found is None else found.properties.get("function_type")
        if not isinstance(kind, FunctionType):
            raise VerifyException("a call names a function of the module")
        if kind != FunctionType.from_lists([v.type for v in self._operands], [r.type for r in self.results]):
            raise VerifyException(f"it takes and gives what {callee} does not")


class ReturnOp(Operation):
    """``func.return %a : i32``."""

    name = "func.return"
    traits = OpTraits(lambda: (IsTerminator(),))

    def print(self, printer: Printer) -> None:
        print_dictionary(printer, self.attributes)
        if self._operands:
            printer.print_string(" ")
            print_values(printer, self._operands)
            printer.print_string(f" : {types_text(self._operands)}")

    def verify_(self) -> None:
        around = self.parent_op()
        if not isinstance(around, FuncOp) or around._type().outputs.data != tuple(v.type for v in self._operands):
            raise VerifyException("a function returns what its type says")
