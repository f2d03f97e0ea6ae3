"""Printing of modules as assembly text, with source locations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from io import StringIO
from typing import NamedTuple

from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    FileLineColLoc,
    IntAttr,
    LocationAttr,
    ModuleOp,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove

from ...ir.diagnostics import Span
from .base import PtoOp, spelled, type_text
from .making import make
from .types import _TextType

#: Operations that print without their dialect's name, as the assembler does.
_SHORT_NAMES = {"builtin.module": "module", "func.return": "return"}


class PtoPrinter(Printer):
    """The library's printer with known locations after each operation: ``... loc("k.py":12:5)``."""

    def __init__(self, stream: StringIO, *, locations: bool = True, generic: bool = False) -> None:
        super().__init__(stream, print_generic_format=generic)
        self.locations = locations
        #: Names of values, by the values' numbers: what is printed holds them all.
        self._names: dict[int, str] = {}
        self._place: tuple[LocationAttr | None, str] = (None, "")

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Print text; most pieces stay within a line and go straight to the stream."""
        if "\n" in text:
            super().print_string(text, indent=indent)
        else:
            self._current_column += len(text)
            self.stream.write(text)

    def print_ssa_value(self, value: SSAValue) -> str:
        name = self.name_of(value)
        self.print_string(name)
        return name[1:]

    def print_attribute(self, attribute: Attribute) -> None:
        if isinstance(attribute, _TextType):
            self.print_string(type_text(attribute))
        else:
            super().print_attribute(attribute)

    def name_of(self, value: SSAValue) -> str:
        """Return the name of a value, ``%`` included: its hint, numbered from the second use, or a number."""
        name = self._names.get(id(value))
        if name is None:
            hint = value.name_hint
            if hint:
                count = self.ssa_names.get(hint, 0)
                self.ssa_names[hint] = count + 1
                name = f"%{hint}_{count}" if count else f"%{hint}"
            else:
                name = "%" + self._get_new_valid_name_id()
            self._names[id(value)] = name
        return name

    def print_op(self, op: Operation) -> None:
        form = None if self.print_generic_format or op.regions else _form_of(op)
        if form is not None:
            self._print_filled(op, form)
            return
        if self.print_generic_format or type(op).print is Operation.print:
            super().print_op(op)
        elif isinstance(op, PtoOp) and op.needs_generic():
            self.print_generic_format = True
            super().print_op(op)
            self.print_generic_format = False
        else:
            self._print_results(op)
            scope = op.has_trait(IsolatedFromAbove) if op.regions else False
            if scope:
                self.enter_scope()
            _print_plain(self, op)
            if scope:
                self.exit_scope()
        self.print_string(self._location(op))

    def _print_filled(self, op: Operation, form: _Form) -> None:
        """Print an operation from the text of its form."""
        start = ", ".join([self.name_of(r) for r in op.results]) + " = " if op.results else ""
        operands, named, name_of = op._operands, self._names, self.name_of
        values = [operands[i] for i in form.places] if form.mixed else operands
        text = form.text % tuple([named.get(id(v)) or name_of(v) for v in values])
        self.print_string(f"{start}{text}{self._location(op)}")

    def _location(self, op: Operation) -> str:
        """Return what stands behind an operation; neighbours mostly share it."""
        location = op.location
        if self._place[0] is not location:
            self._place = (location, _location_text(location) if self.locations else "")
        return self._place[1]


def _print_plain(printer: Printer, op: Operation) -> None:
    """Print an operation's custom form without its results."""
    printer.print_string(_SHORT_NAMES.get(op.name, op.name))
    op.print(printer)


class _Form(NamedTuple):
    """The text of operations that differ in the names of their values only.

    ``text`` has ``%s`` where an operand is named, ``places`` says which; ``mixed``: not simply all in order.
    """

    text: str
    places: Sequence[int]
    mixed: bool


class _Recorder(PtoPrinter):
    """Prints an operation without names, and notes where which value would be named."""

    def __init__(self) -> None:
        self.out = StringIO()
        super().__init__(self.out, locations=False)
        self.named: list[tuple[int, SSAValue]] = []

    def print_ssa_value(self, value: SSAValue) -> str:
        self.named.append((self.out.tell(), value))
        return ""


#: Forms by class, types and attributes, None for operations that are printed each by itself. Objects are known by
#: their numbers, so that each entry keeps its own alive.
_FORMS: dict[tuple[object, ...], tuple[_Form | None, object]] = {}
_REMEMBERED = 20_000


def _form_of(op: Operation) -> _Form | None:
    """Return the form of an operation without regions; None when its text is no such form."""
    types = [v._type for v in op._operands]
    given = [r._type for r in op.results]
    key = (op.__class__, *map(id, types), None, *map(id, given), *spelled(op))
    known = _FORMS.get(key)
    if known is None:
        if len(_FORMS) >= _REMEMBERED:
            _FORMS.clear()
        like = None if op.successors else _like(op, types, given)
        kept = (types, given, *op.properties.values(), *op.attributes.values())
        known = _FORMS[key] = (None if like is None else _recorded(like), kept)
    return known[0]


def _like(op: Operation, types: Sequence[Attribute], results: Sequence[Attribute]) -> Operation:
    """Return an operation that has all a form is known by, each operand a value of its own."""
    operands = Block(arg_types=types).args
    like = make(type(op), operands, results, dict(op.properties), UNKNOWN_LOC)
    like.attributes = dict(op.attributes)
    return like


def _recorded(op: Operation) -> _Form | None:
    """Return the form that the class's own ``print`` gives."""
    if type(op).print is Operation.print or (isinstance(op, PtoOp) and op.needs_generic()):
        return None
    recorder = _Recorder()
    _print_plain(recorder, op)
    text, places, pieces, start = recorder.out.getvalue(), [], [], 0
    for end, value in recorder.named:
        if value not in op._operands:
            return None
        places.append(op._operands.index(value))
        pieces.append(text[start:end].replace("%", "%%"))
        start = end
    pieces.append(text[start:].replace("%", "%%"))
    mixed = places != list(range(len(op._operands)))
    return None if "\n" in text else _Form("%s".join(pieces), tuple(places), mixed)


def _location_text(location: LocationAttr) -> str:
    if isinstance(location, FileLineColLoc):
        name = location.filename.data
        # Escapes are the library's business; names without special characters are written directly.
        if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
            return f' loc("{name}":{location.line.data}:{location.column.data})'
    return "" if isinstance(location, UnknownLoc) else f" {location}"


def location_of(span: Span) -> FileLineColLoc:
    """Return the (shared) location attribute of the start of a span."""
    return _location(span.file, span.line, span.column)


@lru_cache(maxsize=65_536)
def _location(file: str, line: int, column: int) -> FileLineColLoc:
    return FileLineColLoc(StringAttr(file), IntAttr(line), IntAttr(column))


def span_of(location: LocationAttr) -> Span | None:
    """Return the place a location names, None when it is unknown or a composed one."""
    if not isinstance(location, FileLineColLoc):
        return None
    line, column = location.line.data, location.column.data
    return Span(location.filename.data, line, column, line, column + 1)


def print_pto(module: ModuleOp, *, locations: bool = True, generic: bool = False) -> str:
    """Return the text of a module, ending in a newline.

    Args:
        module: the module to print.
        locations: write ``loc("file":line:col)`` after operations whose location is known.
        generic: print the generic form, ``"pto.tadd"(%a, %b, %c) : (...) -> ()``.
    """
    stream = StringIO()
    PtoPrinter(stream, locations=locations, generic=generic).print_op(module)
    stream.write("\n")
    return stream.getvalue()
