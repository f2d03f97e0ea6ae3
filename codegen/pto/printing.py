"""Printing of modules as assembly text, with source locations."""

from __future__ import annotations

from io import StringIO

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.printer import Printer
from xdsl.traits import IsolatedFromAbove

from ...ir.diagnostics import Span
from .base import PtoOp

#: Operations that print without their dialect's name, as the assembler does.
_SHORT_NAMES = {"builtin.module": "module", "func.return": "return"}


class PtoPrinter(Printer):
    """The library's printer with known locations after each operation: ``... loc("k.py":12:5)``."""

    def __init__(self, stream: StringIO, *, locations: bool = True, generic: bool = False) -> None:
        super().__init__(stream, print_generic_format=generic)
        self.locations = locations

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        """Print text; most pieces stay within a line and go straight to the stream."""
        if "\n" in text:
            super().print_string(text, indent=indent)
        else:
            self._current_column += len(text)
            self.stream.write(text)

    def print_op(self, op: Operation) -> None:
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
            self.print_string(_SHORT_NAMES.get(op.name, op.name))
            op.print(self)
            if scope:
                self.exit_scope()
        if self.locations and not isinstance(op.location, UnknownLoc):
            self.print_string(_location_text(op.location))


def _location_text(location: LocationAttr) -> str:
    if isinstance(location, FileLineColLoc):
        name = location.filename.data
        # Escapes are the library's business; names without special characters are written directly.
        if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
            return f' loc("{name}":{location.line.data}:{location.column.data})'
    return f" {location}"


def location_of(span: Span) -> FileLineColLoc:
    """Return the location attribute of the start of a span."""
    return FileLineColLoc(StringAttr(span.file), IntAttr(span.line), IntAttr(span.column))


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
