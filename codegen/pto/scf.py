"""The operations of ``scf`` that assembly is written with; see :mod:`.arith` for why they are not the library's."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, OpTraits, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .base import print_dictionary, print_values, type_text, types_text

_TERMINATOR = OpTraits(lambda: (IsTerminator(), Pure()))
_AROUND = OpTraits(lambda: (RecursiveMemoryEffect(),))


class YieldOp(Operation):
    """``scf.yield %a, %b : i32, index``."""

    name = "scf.yield"
    traits = _TERMINATOR

    def verify_(self) -> None:
        if not isinstance(self.parent_op(), ForOp | IfOp | WhileOp):
            raise VerifyException("it ends the body of a loop, or a part of a branch")

    def print(self, printer: Printer) -> None:
        print_dictionary(printer, self.attributes)
        _print_typed(printer, self._operands)


class ConditionOp(Operation):
    """``scf.condition(%when) %a, %b : i32, index``."""

    name = "scf.condition"
    traits = _TERMINATOR

    def verify_(self) -> None:
        around = self.parent_op()
        if not isinstance(around, WhileOp) or [type_text(v.type) for v in self._operands[:1]] != ["i1"]:
            raise VerifyException("it ends the head of a loop, by an i1")
        _check_same("what is passed on is", [r.type for r in around.results], self._operands[1:])

    def print(self, printer: Printer) -> None:
        printer.print_string("(")
        print_values(printer, self._operands[:1])
        printer.print_string(")")
        print_dictionary(printer, self.attributes)
        _print_typed(printer, self._operands[1:])


class ForOp(Operation):
    """``scf.for %i = %low to %high step %by iter_args(%a = %x) -> (i32) {``."""

    name = "scf.for"
    traits = _AROUND

    def print(self, printer: Printer) -> None:
        low, high, by, *inits = self._operands
        index, *carried = self.regions[0].block.args
        printer.print_string(" ")
        print_values(printer, [index])
        for word, bound in ((" = ", low), (" to ", high), (" step ", by)):
            printer.print_string(word)
            print_values(printer, [bound])
        if carried:
            printer.print_string(" iter_args(")
            _print_assignments(printer, carried, inits)
            printer.print_string(f") -> ({types_text(carried)})")
        if not isinstance(index.type, IndexType):
            printer.print_string(f" : {type_text(index.type)}")
        printer.print_string(" ")
        printer.print_region(
            self.regions[0], print_entry_block_args=False, print_empty_block=False, print_block_terminators=bool(inits)
        )
        print_dictionary(printer, self.attributes)

    def verify_(self) -> None:
        inits = [v.type for v in self._operands[3:]]
        body = self.regions[0].block
        if len(self._operands) < 3 or {v.type for v in self._operands[:3]} != {v.type for v in body.args[:1]}:
            raise VerifyException("the induction variable has the type of the bounds and the step")
        _check_same("the body takes", inits, body.args[1:])
        _check_same("the results are", inits, self.results)
        _check_yield(body, inits)


class IfOp(Operation):
    """``scf.if %when -> (i32) {``, with an else part when it is not empty."""

    name = "scf.if"
    traits = _AROUND

    def print(self, printer: Printer) -> None:
        then, other = self.regions
        printer.print_string(" ")
        print_values(printer, self._operands)
        if self.results:
            printer.print_string(f" -> ({types_text(self.results)})")
        for word, region in ((" ", then), (" else ", other)):
            if region is then or region.blocks:
                printer.print_string(word)
                printer.print_region(
                    region, print_entry_block_args=False, print_block_terminators=bool(self.results)
                )
        print_dictionary(printer, self.attributes)

    def verify_(self) -> None:
        if [type_text(v.type) for v in self._operands] != ["i1"]:
            raise VerifyException("it chooses by one i1")
        if self.results and not self.regions[1].blocks:
            raise VerifyException("what gives results has an else part")
        for region in self.regions:
            if region.blocks:
                _check_yield(region.block, [r.type for r in self.results])


class WhileOp(Operation):
    """``scf.while (%a = %x) : (i32) -> i32 { ... } do { ... }``."""

    name = "scf.while"
    traits = _AROUND

    def print(self, printer: Printer) -> None:
        head, body = self.regions
        printer.print_string(" (")
        _print_assignments(printer, head.block.args, self._operands)
        printer.print_string(") : ")
        printer.print_operation_type(self)
        printer.print_string(" ")
        printer.print_region(head, print_entry_block_args=False)
        printer.print_string(" do ")
        printer.print_region(body)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    def verify_(self) -> None:
        head, body = (region.block for region in self.regions)
        inits = [v.type for v in self._operands]
        _check_same("the head takes", inits, head.args)
        _check_same("the body takes", [r.type for r in self.results], body.args)
        _check_yield(body, inits)


def _print_typed(printer: Printer, values: Sequence[SSAValue]) -> None:
    if values:
        printer.print_string(" ")
        print_values(printer, values)
        printer.print_string(f" : {types_text(values)}")


def _print_assignments(printer: Printer, names: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
    for i, (name, value) in enumerate(zip(names, values, strict=True)):
        printer.print_string(", " if i else "")
        print_values(printer, [name])
        printer.print_string(" = ")
        print_values(printer, [value])


def _check_same(what: str, types: Sequence[object], values: Sequence[SSAValue]) -> None:
    if list(types) != [v.type for v in values]:
        raise VerifyException(f"{what} ({types_text(values)}), which is not what is carried")


def _check_yield(block: Block, types: Sequence[object]) -> None:
    last = block.last_op
    if isinstance(last, YieldOp):
        _check_same("its yield gives", types, last._operands)
