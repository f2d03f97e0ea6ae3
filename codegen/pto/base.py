"""What all PTO operations share: the base class, cheap type texts and the dictionary of attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from threading import RLock
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, IntegerAttr, i32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, OpDef, irdl_op_definition
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .elements import ELEMENT_NAMES
from .types import _TextType

if TYPE_CHECKING:
    from xdsl.irdl.declarative_assembly_format import FormatProgram
    from xdsl.parser import Parser, UnresolvedOperand

SEGMENTS = "operandSegmentSizes"
_Op = TypeVar("_Op", bound="PtoOp")


class PtoOp(IRDLOperation):
    """An operation of the PTO dialect.

    ``SURFACE`` renames properties in the custom text (name of the property to name in the text). ``PLACED``: the
    class's checks ask where the operation stands. All others may ask for types, attributes, for the operations that
    define the operands and the constants they are, and which operands are the same: what is found right once is not
    asked again.
    """

    SURFACE: ClassVar[Mapping[str, str]] = {}
    PLACED: ClassVar[bool] = False

    def verify_arch(self, arch: str) -> None:
        """Check what only holds for one target branch, ``"a2a3"`` or ``"a5"``.

        Raises:
            VerifyException: the assembler would refuse the operation for this target.
        """

    def verify_own(self) -> None:
        """Check what the class itself says, beside what its operands, results and attributes must be.

        Raises:
            VerifyException: the operation is not well formed.
        """

    def needs_generic(self) -> bool:
        """True when the custom text cannot express the operation."""
        return False

    def dictionary(self, skip: Sequence[str] = ()) -> dict[str, Attribute]:
        """Return properties and attributes as the custom text shows them, without ``skip``."""
        if not self.properties and not self.attributes:
            return {}
        hidden = {SEGMENTS, *skip}
        shown = {self.SURFACE.get(k, k): v for k, v in self.properties.items() if k not in hidden}
        shown.update((k, v) for k, v in self.attributes.items() if k not in hidden)
        return shown

    @classmethod
    def split(
        cls, parser: Parser, entries: Mapping[str, Attribute]
    ) -> tuple[dict[str, Attribute], dict[str, Attribute]]:
        """Divide a parsed dictionary into (properties, attributes)."""
        own = cls.get_irdl_definition().properties
        back = {shown: name for name, shown in cls.SURFACE.items()}
        properties: dict[str, Attribute] = {}
        attributes: dict[str, Attribute] = {}
        for key, value in entries.items():
            name = back.get(key, key)
            if name in properties:
                parser.raise_error(f"{name} is given twice, as {key} too")
            (properties if name in own else attributes)[name] = value
        return properties, attributes


class FormatOp(PtoOp):
    """An operation whose text a format in the library's notation tells; it is parsed when it is needed first."""

    FORMAT: ClassVar[str]

    def print(self, printer: Printer) -> None:
        _program(type(self)).print(printer, self)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        return _program(cls).parse(parser, cls)


@cache
def _program(cls: type[FormatOp]) -> FormatProgram:
    from xdsl.irdl.declarative_assembly_format import FormatProgram

    return FormatProgram.from_str(cls.FORMAT, cls.get_irdl_definition())


class TypedOp(FormatOp):
    """An operation written ``%a, %b : TYPE [-> TYPE]``: the first operand's type and, if so asked, the results'."""

    ARROW: ClassVar[bool] = True

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_values(printer, self._operands)
        print_dictionary(printer, self.dictionary())
        printer.print_string(f" : {type_text(self._operands[0].type)}")
        if self.ARROW:
            printer.print_string(f" -> {types_text(self.results)}")


class BareOp(FormatOp):
    """An operation of which nothing is written beside its name."""

    FORMAT: ClassVar[str] = "attr-dict"

    def print(self, printer: Printer) -> None:
        print_dictionary(printer, self.attributes)


#: Held while a class is defined.
_DEFINING = RLock()


def op_definition(cls: type[_Op]) -> type[_Op]:
    """Have an operation's class defined, as the library does, when it is used first: a kernel needs few of them.

    Its own checks are kept apart from those of its shape. Where the class is not well formed, its first use raises
    PyRDLOpDefinitionError.
    """

    def create(own: type[_Op], *args: Any, **kwargs: Any) -> _Op:
        return defined(own).create(*args, **kwargs)

    def get_irdl_definition(own: type[_Op]) -> OpDef:
        return defined(own).get_irdl_definition()

    every: Any = cls
    every.create, every.get_irdl_definition = classmethod(create), classmethod(get_irdl_definition)
    return cls


def defined(cls: type[_Op]) -> type[_Op]:
    """Return the class, defined."""
    with _DEFINING:
        if "create" in vars(cls):
            del cls.get_irdl_definition
            own = cls.verify_
            irdl_op_definition(cls).verify_own = own  # type: ignore[method-assign]
            del cls.create
    return cls


_TEXTS: dict[Attribute, str] = dict(ELEMENT_NAMES)


def type_text(attr: Attribute) -> str:
    """Return the text of a type in full (``!pto.tile_buf<...>``)."""
    if isinstance(attr, _TextType):
        return f"!{attr.name}{attr.data.text}"
    known = _TEXTS.get(attr)
    if known is None:
        known = _TEXTS.setdefault(attr, str(attr))
    return known


def types_text(values: Sequence[SSAValue]) -> str:
    """Return the types of the values, separated by commas."""
    return ", ".join([type_text(v.type) for v in values])


def print_values(printer: Printer, values: Sequence[SSAValue]) -> None:
    """Print the names of the values, separated by commas."""
    for i, value in enumerate(values):
        if i:
            printer.print_string(", ")
        printer.print_ssa_value(value)


def print_dictionary(printer: Printer, entries: Mapping[str, Attribute]) -> None:
    """Print `` {key = value, ...}``, or nothing for an empty dictionary."""
    if entries:
        printer.print_string(" ")
        printer.print_attr_dict(entries)


def parse_values(parser: Parser) -> list[UnresolvedOperand]:
    """Read ``%a, %b, ...`` (at least one)."""
    values = [parser.parse_unresolved_operand()]
    while parser.parse_optional_punctuation(",") is not None:
        values.append(parser.parse_unresolved_operand())
    return values


def parse_types(parser: Parser, count: int) -> list[Attribute]:
    """Read ``count`` types separated by commas."""
    types: list[Attribute] = [parser.parse_type()]
    for _ in range(count - 1):
        parser.parse_punctuation(",")
        types.append(parser.parse_type())
    return types


def resolve(
    parser: Parser, values: Sequence[UnresolvedOperand], types: Sequence[Attribute]
) -> list[SSAValue]:
    """Look the operands up, with their types."""
    return [parser.resolve_operand(value, type_) for value, type_ in zip(values, types, strict=True)]


_SEGMENT_ATTRS: dict[tuple[int, ...], DenseArrayBase] = {}
#: Their sizes, by the attributes' numbers: they are never given up.
_SIZES: dict[int, tuple[int, ...]] = {}


def segments(*sizes: int) -> DenseArrayBase:
    """Return the (shared) ``operandSegmentSizes`` attribute."""
    known = _SEGMENT_ATTRS.get(sizes)
    if known is None:
        known = _SEGMENT_ATTRS.setdefault(sizes, DenseArrayBase.from_list(i32, sizes))
        _SIZES[id(known)] = sizes
    return known


def segment_sizes(op: Operation) -> tuple[int, ...]:
    """Return the operand segment sizes an operation carries (empty when it has none)."""
    attr = op.properties.get(SEGMENTS)
    if id(attr) in _SIZES:
        return _SIZES[id(attr)]
    return tuple(int(n) for n in attr.get_values()) if isinstance(attr, DenseArrayBase) else ()


def spelled(op: Operation) -> tuple[object, ...]:
    """Return names and numbers of an operation's properties and attributes."""
    properties, attributes = op.properties, op.attributes
    if attributes:
        return (*properties, None, *attributes, *map(id, properties.values()), *map(id, attributes.values()))
    return (*properties, *map(id, properties.values())) if properties else ()


def constant_attribute(value: SSAValue) -> Attribute | None:
    """Return the attribute of the ``arith.constant`` that defines a value, None when none does."""
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "arith.constant":
        # An attribute that stands for zero is false, so the two places are asked one after the other.
        return owner.properties.get("value", owner.attributes.get("value"))
    return None


def constant_of(value: SSAValue) -> int | None:
    """Return the integer a value is, when an ``arith.constant`` defines it."""
    attr = constant_attribute(value)
    return int(attr.value.data) if isinstance(attr, IntegerAttr) else None


def integers(attr: Attribute) -> list[int]:
    """Return the integers of an array attribute.

    Raises:
        VerifyException: not an array of integers.
    """
    if not isinstance(attr, ArrayAttr):
        raise VerifyException("expected an array of integers")
    found = [int(item.value.data) for item in attr.data if isinstance(item, IntegerAttr)]
    if len(found) != len(attr.data):
        raise VerifyException("expected an array of integers")
    return found
