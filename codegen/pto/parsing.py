"""Reading of assembly text."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.parser.generic_parser import ParserState
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import MLIRLexer

from ...ir.diagnostics import Span, error
from .base import PtoOp
from .dialect import pto_context


class _Lines:
    """Line and column of an offset in a text."""

    def __init__(self, text: str) -> None:
        self.starts = [0, *(found.end() for found in re.finditer("\n", text))]

    def at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1


class _Lexer(MLIRLexer):
    """The library's lexer with a pattern for strings that takes linear time on an unclosed quote."""

    _unescaped_characters_regex = re.compile(r'"[^"\\\n\v\f]*(?:\\(?:["nt\\]|[0-9A-Fa-f]{2})[^"\\\n\v\f]*)*"')


class PtoParser(Parser):
    """The library's parser; with a file name, operations without a location get their place in that file."""

    def __init__(self, context: Context, text: str, filename: str | None, lines: _Lines) -> None:
        super().__init__(context, "")
        self._parser_state = ParserState(_Lexer(Input(text, filename or "<pto>")))
        self.filename = None if filename is None else StringAttr(filename)
        self.lines = lines
        self._start = 0

    def parse_operation(self) -> Operation:
        offset = self._start = self.pos
        op = super().parse_operation()
        if self.filename is not None and isinstance(op.location, UnknownLoc):
            line, column = self.lines.at(offset)
            op.location = FileLineColLoc(self.filename, IntAttr(line), IntAttr(column))
        return op

    def _parse_generic_operation(self, op_type: type[Operation]) -> Operation:
        op = super()._parse_generic_operation(op_type)
        if isinstance(op, PtoOp):
            # The custom text can only be written for the right operands and attributes.
            try:
                op.get_irdl_definition().verify(op)
            except VerifyException as problem:
                self.raise_error(f"{op.name}: {problem}", self._start)
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
    where = _Lines(text)
    parser: PtoParser | None = None
    try:
        # The first token is read already here.
        parser = PtoParser(_CONTEXT[0], text, filename, where)
        return parser.parse_module()
    except ParseError as problem:
        start, end = cast(int, problem.span.start), cast(int, problem.span.end)
        message = problem.msg
    except (DiagnosticException, ValueError, OverflowError) as problem:
        start = 0 if parser is None else parser.pos
        end, message = start + 1, str(problem)
    except RecursionError:
        start, end, message = 0, 1, "the text is nested too deeply"
    span = Span(filename or "<pto>", *where.at(start), *where.at(end))
    raise error("TG027", f"malformed assembly: {message.strip()}", span)
