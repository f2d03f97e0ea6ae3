"""The operations of ``arith`` that assembly is written with.

They have the names and texts of the library's own, whose definitions take longer to load than most kernels to lower:
only texts that are read need those. Overflow and fast-math flags are never set, so that there are none here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, Signedness, VectorType
from xdsl.ir import Attribute, Operation, OpTraits
from xdsl.printer import Printer
from xdsl.traits import ConstantLike, Pure
from xdsl.utils.exceptions import VerifyException

from .base import print_dictionary, print_values, type_text

_Test = Callable[[Attribute], bool]


def _is_integer(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType) and type_.signedness.data is Signedness.SIGNLESS


def _is_whole(type_: Attribute) -> bool:
    return isinstance(type_, IndexType) or _is_integer(type_)


def _is_float(type_: Attribute) -> bool:
    return isinstance(type_, AnyFloat)


def _width(type_: Attribute) -> int:
    """Return the bits of an integer or a float; the index type counts as none."""
    return int(getattr(type_, "bitwidth", 0))


class _ArithOp(Operation):
    """An operation that gives one result for its number of operands."""

    OPERANDS: ClassVar[int] = 1
    traits = OpTraits(lambda: (Pure(),))

    def verify_(self) -> None:
        if len(self._operands) != self.OPERANDS or len(self.results) != 1:
            raise VerifyException(f"it takes {self.OPERANDS} operands and gives one result")


class ConstantOp(_ArithOp):
    """``%c4 = arith.constant 4 : index``."""

    name = "arith.constant"
    OPERANDS = 0
    traits = OpTraits(lambda: (Pure(), ConstantLike()))

    def print(self, printer: Printer) -> None:
        print_dictionary(printer, self.attributes)
        printer.print_string(" ")
        printer.print_attribute(self.properties["value"])

    def verify_(self) -> None:
        super().verify_()
        type_, value = self.results[0].type, self.properties.get("value")
        right = _is_whole(type_) if isinstance(value, IntegerAttr) else isinstance(type_, AnyFloat | VectorType)
        if not right or getattr(value, "type", None) != type_:
            raise VerifyException(f"its value is no {type_text(type_)}")


class _Alike(_ArithOp):
    """Operands and the result have one type: ``%c = arith.addi %a, %b : i32``."""

    OPERANDS = 2
    TAKES: ClassVar[staticmethod[[Attribute], bool]]

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self._operands)
        print_dictionary(printer, self.attributes)
        printer.print_string(f" : {type_text(self.results[0].type)}")

    def verify_(self) -> None:
        super().verify_()
        type_ = self.results[0].type
        if not type(self).TAKES(type_) or any(v.type != type_ for v in self._operands):
            raise VerifyException("operands and result have one type, of its kind")


def _alike(name: str, takes: _Test = _is_whole, operands: int = 2) -> type[Operation]:
    made = {"name": f"arith.{name}", "TAKES": staticmethod(takes), "OPERANDS": operands, "__module__": __name__}
    return type(f"Arith_{name}", (_Alike,), made)


AddiOp = _alike("addi")
SubiOp = _alike("subi")
MuliOp = _alike("muli")
DivUIOp = _alike("divui")
DivSIOp = _alike("divsi")
FloorDivSIOp = _alike("floordivsi")
RemUIOp = _alike("remui")
RemSIOp = _alike("remsi")
MinUIOp = _alike("minui")
MaxUIOp = _alike("maxui")
MinSIOp = _alike("minsi")
MaxSIOp = _alike("maxsi")
AndIOp = _alike("andi")
OrIOp = _alike("ori")
XOrIOp = _alike("xori")
ShLIOp = _alike("shli")
ShRUIOp = _alike("shrui")
ShRSIOp = _alike("shrsi")
SubfOp = _alike("subf", _is_float)
MulfOp = _alike("mulf", _is_float)
DivfOp = _alike("divf", _is_float)
MinnumfOp = _alike("minnumf", _is_float)
MaxnumfOp = _alike("maxnumf", _is_float)
NegfOp = _alike("negf", _is_float, operands=1)


class SelectOp(_Alike):
    """``%r = arith.select %when, %a, %b : f32``."""

    name = "arith.select"
    OPERANDS = 3

    def verify_(self) -> None:
        _ArithOp.verify_(self)
        when, *values = [v.type for v in self._operands]
        if _width(when) != 1 or any(t != self.results[0].type for t in values):
            raise VerifyException("it chooses by an i1 between two values of the result's type")


class _Compared(_ArithOp):
    """``%r = arith.cmpi slt, %a, %b : i32``: the number of the predicate is written as a word."""

    OPERANDS = 2
    TAKES: ClassVar[staticmethod[[Attribute], bool]]
    WORDS: ClassVar[tuple[str, ...]]

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.WORDS[self._predicate()]}, ")
        print_values(printer, self._operands)
        printer.print_string(f" : {type_text(self._operands[0].type)}")

    def verify_(self) -> None:
        super().verify_()
        a, b = (v.type for v in self._operands)
        if a != b or not type(self).TAKES(a) or _width(self.results[0].type) != 1:
            raise VerifyException("it compares two values of one type, of its kind, to an i1")
        if not 0 <= self._predicate() < len(self.WORDS):
            raise VerifyException("it has no such predicate")

    def _predicate(self) -> int:
        attr = self.properties.get("predicate")
        return int(attr.value.data) if isinstance(attr, IntegerAttr) else -1


class CmpiOp(_Compared):
    name = "arith.cmpi"
    TAKES = staticmethod(_is_whole)
    WORDS = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")


class CmpfOp(_Compared):
    name = "arith.cmpf"
    TAKES = staticmethod(_is_float)
    WORDS = ("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno",
             "true")  # fmt: skip


class _Converted(_ArithOp):
    """``%r = arith.extf %x : f16 to f32``."""

    FROM: ClassVar[staticmethod[[Attribute], bool]]
    TO: ClassVar[staticmethod[[Attribute], bool]]
    #: Bits of the result against those of the operand: 1 more, -1 fewer, 0 either.
    WIDER: ClassVar[int]

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self._operands)
        print_dictionary(printer, self.attributes)
        printer.print_string(f" : {type_text(self._operands[0].type)} to {type_text(self.results[0].type)}")

    def verify_(self) -> None:
        super().verify_()
        own, src, dst = type(self), self._operands[0].type, self.results[0].type
        if not own.FROM(src) or not own.TO(dst) or (own.WIDER and (_width(dst) - _width(src)) * own.WIDER <= 0):
            raise VerifyException("it does not convert between these types")


def _converted(name: str, src: _Test, dst: _Test, wider: int = 0) -> type[Operation]:
    made = {"name": f"arith.{name}", "FROM": staticmethod(src), "TO": staticmethod(dst), "WIDER": wider}
    return type(f"Arith_{name}", (_Converted,), {**made, "__module__": __name__})


TruncIOp = _converted("trunci", _is_integer, _is_integer, -1)
ExtSIOp = _converted("extsi", _is_integer, _is_integer, 1)
ExtUIOp = _converted("extui", _is_integer, _is_integer, 1)
ExtFOp = _converted("extf", _is_float, _is_float)
TruncFOp = _converted("truncf", _is_float, _is_float)
SIToFPOp = _converted("sitofp", _is_integer, _is_float)
UIToFPOp = _converted("uitofp", _is_integer, _is_float)
FPToSIOp = _converted("fptosi", _is_float, _is_integer)


class IndexCastOp(_Converted):
    """``%i = arith.index_cast %n : i64 to index``: one of the types is the index type."""

    name = "arith.index_cast"
    FROM = TO = staticmethod(_is_whole)
    WIDER = 0

    def verify_(self) -> None:
        super().verify_()
        if isinstance(self._operands[0].type, IndexType) == isinstance(self.results[0].type, IndexType):
            raise VerifyException("one of its types is the index type")
