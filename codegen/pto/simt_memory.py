"""Loads, stores and atomics of scalars, the launch of SIMT code and SIMT sections.

Formats, cache policies and places: assembler v0.60.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from xdsl.dialects.builtin import FlatSymbolRefAttr, IndexType, IntegerType, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, SymbolTable

from ...ir.ops.simt_memory import L1, L2_LOAD, L2_STORE
from .base import PtoOp, op_definition, parse_values, print_dictionary, print_values, type_text
from .classes import Classes
from .conditions import fail
from .elements import spell
from .scalars import parse_pointer_type
from .simt import check_type, made, parse_sign, sign_word
from .simt_scopes import ENTRY, before_threads, in_threads
from .types import PtrType

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand

_INDEX = IndexType()
_I32 = IntegerType(32)
_ATOMIC = ("i32", "i64", "f16", "bf16", "f32", "vector<2xf16>", "vector<2xbf16>")


def _pointer(value: SSAValue, pointee: Attribute, spaces: tuple[str, ...]) -> None:
    t = value.type
    if not isinstance(t, PtrType):
        fail(f"needs a pointer, not {spell(t)}")
        return
    if t.data.space not in spaces:
        fail(f"needs a pointer to {' or '.join(spaces)}, not to {t.data.space}")
    if t.element != pointee:
        fail(f"the pointer is to {spell(t.element)}, the value is {spell(pointee)}")


def _payload(t: Attribute) -> None:
    if spell(t) in ("i1", "index"):
        fail(f"moves no {spell(t)}")


def _parse_policy(parser: Parser, levels: dict[str, tuple[str, ...]]) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for level, words in levels.items():
        if parser.parse_optional_keyword(level) is not None:
            parser.parse_punctuation("(")
            at = parser.pos
            word = parser.parse_optional_identifier()
            if word not in words:
                parser.raise_error(f"expected one of {', '.join(words)}", at)
            parser.parse_punctuation(")")
            found[level] = StringAttr(word)
    return found


def _print_policy(printer: Printer, op: PtoOp) -> None:
    for level in ("l1cache", "l2cache"):
        word = op.properties.get(level)
        if isinstance(word, StringAttr):
            printer.print_string(f" {level}({word.data})")


def _parse_place(parser: Parser, value: UnresolvedOperand) -> tuple[UnresolvedOperand, SSAValue]:
    parser.parse_punctuation("[")
    at = parser.resolve_operand(parser.parse_unresolved_operand(), _INDEX)
    parser.parse_punctuation("]")
    return value, at


class SimtLoadOp(PtoOp):
    """Base: ``%x = pto.NAME %p[%i] [l1cache(..)] [l2cache(..)] : PTR -> T``."""

    PLACED: ClassVar[bool] = True
    LEVELS: ClassVar[dict[str, tuple[str, ...]]] = {}
    args = var_operand_def()
    res = var_result_def()
    l1cache = opt_prop_def(StringAttr)
    l2cache = opt_prop_def(StringAttr)

    def print(self, printer: Printer) -> None:
        ptr, at = self._operands
        printer.print_string(" ")
        printer.print_ssa_value(ptr)
        printer.print_string("[")
        printer.print_ssa_value(at)
        printer.print_string("]")
        _print_policy(printer, self)
        print_dictionary(printer, self.attributes)
        printer.print_string(f" : {type_text(ptr.type)} -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> SimtLoadOp:
        value, at = _parse_place(parser, parser.parse_unresolved_operand())
        properties = _parse_policy(parser, cls.LEVELS)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        ptr = parser.resolve_operand(value, parse_pointer_type(parser))
        parser.parse_punctuation("->")
        result = parser.parse_type()
        return cls.create(
            operands=[ptr, at], result_types=[result], properties=properties, attributes=attributes
        )  # fmt: skip

    def verify_(self) -> None:
        _pointer(self._operands[0], self.results[0].type, ("gm",) if self.LEVELS else ("gm", "ub"))
        if self.LEVELS:
            _payload(self.results[0].type)
            in_threads(self)


class SimtStoreOp(PtoOp):
    """Base: ``pto.NAME %x, %p[%i] [l1cache(..)] [l2cache(..)] : PTR, T``; operands in this order."""

    PLACED: ClassVar[bool] = True
    LEVELS: ClassVar[dict[str, tuple[str, ...]]] = {}
    args = var_operand_def()
    l1cache = opt_prop_def(StringAttr)
    l2cache = opt_prop_def(StringAttr)

    def print(self, printer: Printer) -> None:
        value, ptr, at = self._operands
        printer.print_string(" ")
        print_values(printer, [value, ptr])
        printer.print_string("[")
        printer.print_ssa_value(at)
        printer.print_string("]")
        _print_policy(printer, self)
        print_dictionary(printer, self.attributes)
        printer.print_string(f" : {type_text(ptr.type)}, {type_text(value.type)}")

    @classmethod
    def parse(cls, parser: Parser) -> SimtStoreOp:
        stored = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        place, at = _parse_place(parser, parser.parse_unresolved_operand())
        properties = _parse_policy(parser, cls.LEVELS)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        ptr = parser.resolve_operand(place, parse_pointer_type(parser))
        parser.parse_punctuation(",")
        value = parser.resolve_operand(stored, parser.parse_type())
        return cls.create(operands=[value, ptr, at], properties=properties, attributes=attributes)

    def verify_(self) -> None:
        _pointer(self._operands[1], self._operands[0].type, ("gm",) if self.LEVELS else ("gm", "ub"))
        if self.LEVELS:
            _payload(self._operands[0].type)
            in_threads(self)


class AtomicOp(PtoOp):
    """Base: ``%o = pto.NAME %p, %x [l2cache(..)] [signed|unsigned] : PTR, T -> T``; ``atomic_cas`` has %cmp, %new."""

    PLACED: ClassVar[bool] = True
    COUNT: ClassVar[int] = 2
    args = var_operand_def()
    res = var_result_def()
    l2cache = opt_prop_def(StringAttr)
    signedness = opt_prop_def(StringAttr)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self._operands)
        _print_policy(printer, self)
        if sign_word(self):
            printer.print_string(f" {sign_word(self)}")
        print_dictionary(printer, self.attributes)
        types = f"{type_text(self._operands[0].type)}, {type_text(self._operands[1].type)}"
        printer.print_string(f" : {types} -> {type_text(self.results[0].type)}")

    @classmethod
    def parse(cls, parser: Parser) -> AtomicOp:
        values = parse_values(parser)
        properties = _parse_policy(parser, {"l2cache": L2_STORE})
        sign = parse_sign(parser)
        if sign is not None:
            properties["signedness"] = sign
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        ptr = parser.resolve_operand(values[0], parse_pointer_type(parser))
        parser.parse_punctuation(",")
        t = parser.parse_type()
        parser.parse_punctuation("->")
        result = parser.parse_type()
        operands = [ptr, *(parser.resolve_operand(v, t) for v in values[1:])]
        return cls.create(
            operands=operands, result_types=[result], properties=properties, attributes=attributes
        )  # fmt: skip

    def verify_(self) -> None:
        if len(self._operands) != self.COUNT or len(self.results) != 1:
            fail(f"takes {self.COUNT} operands and gives one result")
        t = self._operands[1].type
        check_type("the value", t, _ATOMIC)
        for v in (*self._operands[2:], self.results[0]):
            check_type("a value", v.type, ("=",), t)
        _pointer(self._operands[0], t, ("gm", "ub"))
        if sign_word(self) and not isinstance(t, IntegerType):
            fail("has no sign for floats")
        if self.name in ("pto.atomic_and", "pto.atomic_or", "pto.atomic_xor") and not isinstance(t, IntegerType):
            fail("takes integers")
        space = self._operands[0].type.data.space  # type: ignore[attr-defined]
        if spell(t) == "i64" and space == "ub":
            fail("64-bit integers are combined in gm only")
        if spell(t).startswith("vector"):
            in_threads(self)


ATOMICS = ("add", "sub", "min", "max", "and", "or", "xor", "exch", "cas")
MEMORY_OPS = Classes({
    "load": partial(made, SimtLoadOp, "load", "``pto.load``"),
    "ldg": partial(made, SimtLoadOp, "ldg", "``pto.ldg``", LEVELS={"l1cache": L1, "l2cache": L2_LOAD}),
    "store": partial(made, SimtStoreOp, "store", "``pto.store``"),
    "stg": partial(made, SimtStoreOp, "stg", "``pto.stg``", LEVELS={"l1cache": L1, "l2cache": L2_STORE}),
    **{
        f"atomic_{n}": partial(made, AtomicOp, f"atomic_{n}", f"``pto.atomic_{n}``", COUNT=2 + (n == "cas"))
        for n in ATOMICS
    },
})  # fmt: skip


@op_definition
class SimtLaunchOp(PtoOp):
    """``pto.simt_launch @body<<<%x, %y, %z>>>(%p, ...) : (PTR, ...) -> ()``: from a function that is no SIMT entry."""

    PLACED: ClassVar[bool] = True
    name = "pto.simt_launch"
    args = var_operand_def()
    callee = prop_def(SymbolRefAttr)

    def print(self, printer: Printer) -> None:
        assert isinstance(self.callee, SymbolRefAttr)
        printer.print_string(f" @{self.callee.root_reference.data}<<<")
        print_values(printer, self._operands[:3])
        printer.print_string(">>>(")
        print_values(printer, self._operands[3:])
        types = ", ".join(type_text(v.type) for v in self._operands[3:])
        printer.print_string(f") : ({types}) -> ()")
        print_dictionary(printer, self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> SimtLaunchOp:
        callee = FlatSymbolRefAttr(parser.parse_symbol_name())
        for _ in range(3):
            parser.parse_punctuation("<")
        sizes = [parser.resolve_operand(v, _I32) for v in parse_values(parser)]
        for _ in range(3):
            parser.parse_punctuation(">")
        values = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: parse_pointer_type(parser))
        parser.parse_punctuation("->")
        parser.parse_punctuation("(")
        parser.parse_punctuation(")")
        if len(sizes) != 3 or len(values) != len(types):
            parser.raise_error("expected three sizes, and a type for each argument")
        given = [parser.resolve_operand(v, t) for v, t in zip(values, types)]
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=[*sizes, *given], properties={"callee": callee}, attributes=attributes)

    def verify_(self) -> None:
        before_threads(self, "; threads are started from outside of it")
        table: Operation | None = self.parent_op()
        while table is not None and not table.has_trait(SymbolTable):
            table = table.parent_op()
        if table is None:
            return
        assert isinstance(self.callee, SymbolRefAttr)
        found = SymbolTable.lookup_symbol(table, self.callee)
        name = self.callee.root_reference.data
        if found is None or found.name != "func.func":
            fail(f"{name!r} is no function of the module")
        elif ENTRY not in found.attributes:
            fail(f"{name!r} is not marked {ENTRY}")
        else:
            wanted = found.properties["function_type"].inputs.data  # type: ignore[attr-defined]
            if [v.type for v in self._operands[3:]] != list(wanted):
                fail(f"{name!r} takes {', '.join(map(spell, wanted))}")


@op_definition
class SectionSimtOp(PtoOp):
    """``pto.section.simt<<<32, 1, 1>>> { ... }``: threads inside of an ordinary function."""

    PLACED: ClassVar[bool] = True
    name = "pto.section.simt"
    sizes = prop_def(StringAttr)
    body = region_def("single_block")
    traits = traits_def(NoTerminator())

    def print(self, printer: Printer) -> None:
        assert isinstance(self.sizes, StringAttr)
        printer.print_string(f"<<<{self.sizes.data}>>> ")
        printer.print_region(self.regions[0], print_empty_block=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> SectionSimtOp:
        for _ in range(3):
            parser.parse_punctuation("<")
        at = parser.pos
        sizes = [parser.parse_integer(allow_boolean=False, allow_negative=False)]
        while parser.parse_optional_punctuation(",") is not None:
            sizes.append(parser.parse_integer(allow_boolean=False, allow_negative=False))
        for _ in range(3):
            parser.parse_punctuation(">")
        if len(sizes) != 3:
            parser.raise_error("expected three sizes", at)
        region = parser.parse_region()
        properties = {"sizes": StringAttr(", ".join(map(str, sizes)))}
        return cls.create(regions=[region], properties=properties, attributes=parser.parse_optional_attr_dict())

    def verify_(self) -> None:
        assert isinstance(self.sizes, StringAttr)
        if "0" in self.sizes.data.split(", "):
            fail(f"there are no threads in <<<{self.sizes.data}>>>")
        before_threads(self)


@op_definition
class StoreVfsimtInfoOp(PtoOp):
    """``pto.store_vfsimt_info %z, %y, %x : i32, i32, i32``: the sizes of the call of an entry that follows."""

    name = "pto.store_vfsimt_info"
    args = var_operand_def()

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self._operands)
        print_dictionary(printer, self.attributes)
        printer.print_string(" : i32, i32, i32")

    @classmethod
    def parse(cls, parser: Parser) -> StoreVfsimtInfoOp:
        values = parse_values(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        operands = []
        for i, v in enumerate(values):
            if i:
                parser.parse_punctuation(",")
            operands.append(parser.resolve_operand(v, parser.parse_type()))
        return cls.create(operands=operands, attributes=attributes)

    def verify_(self) -> None:
        if [v.type for v in self._operands] != [_I32] * 3:
            fail("takes three i32 sizes: z, y, x")
