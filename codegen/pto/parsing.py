"""Reading of assembly text."""

from __future__ import annotations

from bisect import bisect_right
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError

from ...ir.diagnostics import Span, TileggError, error
from .dialect import pto_context


class _Lines:
    """Line and column of an offset in a text."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(i + 1 for i, char in enumerate(text) if char == "\n")]

    def at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1


class PtoParser(Parser):
    """The library's parser; with a file name, operations without a location get their place in that file."""

    def __init__(self, context: Context, text: str, filename: str | None) -> None:
        super().__init__(context, text, filename or "<pto>")
        self.filename = None if filename is None else StringAttr(filename)
        self.lines = _Lines(text)
        self._start = 0

    def parse_operation(self) -> Operation:
        offset = self._start = self.pos
        op = super().parse_operation()
        if self.filename is not None and isinstance(op.location, UnknownLoc):
            line, column = self.lines.at(offset)
            op.location = FileLineColLoc(self.filename, IntAttr(line), IntAttr(column))
        return op

    def _get_op_by_name(self, name: str) -> type[Operation]:
        known = self.ctx.get_optional_op(name, dialect_stack=self._parser_state.dialect_stack)
        if known is None:
            # The library would point behind the name.
            self.raise_error(f"operation {name} is not registered", self._start)
        return known


_CONTEXT: list[Context] = []


def parse_pto(text: str, filename: str | None = None) -> ModuleOp:
    """Read a module from assembly text; bare functions are wrapped in a module.

    Args:
        text: the assembly. It is only parsed; ``verify_pto`` checks it.
        filename: when given, operations without ``loc(...)`` get their place in this file.

    Raises:
        TileggError: TG027, the text is malformed.
    """
    if not _CONTEXT:
        _CONTEXT.append(pto_context())
    parser = PtoParser(_CONTEXT[0], text, filename)
    try:
        return parser.parse_module()
    except ParseError as problem:
        raise _malformed(problem.msg, problem.span.start, problem.span.end, parser) from None
    except (DiagnosticException, ValueError, OverflowError) as problem:
        raise _malformed(str(problem), parser.pos, parser.pos + 1, parser) from None
    except RecursionError:
        raise _malformed("the text is nested too deeply", 0, 1, parser) from None


def _malformed(message: str, start: object, end: object, parser: PtoParser) -> TileggError:
    first, last = (parser.lines.at(cast(int, offset)) for offset in (start, end))
    span = Span(parser.lexer.input.name, *first, *last)
    return error("TG027", f"malformed assembly: {message.strip()}", span)
