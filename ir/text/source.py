"""A source text: parsed by Python's own parser into a syntax tree, never executed; its places."""

from __future__ import annotations

import ast
import difflib
import keyword
import warnings
from collections.abc import Iterable

from ..diagnostics import Diagnostic, Span, TileggError, error

#: Longest text that is read, in characters (a statement takes about 150).
MAX_CHARACTERS = 32_000_000
#: Most statements that are read, counted as lines and semicolons.
MAX_STATEMENTS = 200_000
#: Deepest nesting of statements and expressions that is read.
MAX_DEPTH = 100


class Source:
    """The text of one file with its name."""

    __slots__ = ("_lines", "ascii", "file", "text")

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.ascii = text.isascii()
        self._lines: list[str] | None = None

    @property
    def lines(self) -> list[str]:
        """The lines as Python's parser counts them."""
        if self._lines is None:
            self._lines = self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        return self._lines

    def parse(self) -> ast.Module:
        """Return the syntax tree; raises TG001 or TG012."""
        start = Span(self.file, 1, 1, 1, 1)
        if len(self.text) > MAX_CHARACTERS:
            message = f"the text has {len(self.text)} characters, more than {MAX_CHARACTERS}"
            raise error("TG012", message, start)
        if self.text.count("\n") + self.text.count(";") > MAX_STATEMENTS:
            raise error("TG012", f"the text has more than {MAX_STATEMENTS} lines", start)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(self.text, self.file)
        except (RecursionError, MemoryError):
            raise too_deep(Span(self.file, 1, 1, 1, 1)) from None
        except SyntaxError as problem:
            raise self._syntax_error(problem) from None
        except ValueError as problem:
            # Null bytes and lone surrogates.
            raise error(
                "TG001",
                "the text is not Python source",
                Span(self.file, 1, 1, 1, 1),
                reason=str(problem)[:200],
            ) from None

    def _syntax_error(self, problem: SyntaxError) -> TileggError:
        line, column = problem.lineno or 1, problem.offset or 1
        end_line, end_column = problem.end_lineno or line, problem.end_offset or column + 1
        if (end_line, end_column) <= (line, column):
            end_line, end_column = line, column + 1
        span = Span(self.file, line, max(column, 1), end_line, max(end_column, 1))
        message = (problem.msg or "invalid syntax")[:200]
        if "too many" in message or "too complex" in message:
            return error("TG012", message, span)
        return error("TG001", message, span, hint="the text must be valid Python syntax")

    def span(self, node: ast.AST) -> Span:
        """Return the place of a syntax node."""
        line, end = node.lineno, node.end_lineno or node.lineno  # type: ignore[attr-defined]
        column, end_column = node.col_offset, node.end_col_offset or 0  # type: ignore[attr-defined]
        if self.ascii:
            return Span(self.file, line, column + 1, end, end_column + 1)
        return Span(self.file, line, self._character(line, column), end, self._character(end, end_column))

    def _character(self, line: int, offset: int) -> int:
        row = self.lines[line - 1] if line <= len(self.lines) else ""
        return len(row.encode("utf-8", "replace")[:offset].decode("utf-8", "replace")) + 1

    def slice(self, node: ast.AST) -> str | None:
        """Return the text of a node that stands on one line, else ``None``."""
        line = node.lineno  # type: ignore[attr-defined]
        if node.end_lineno != line or not self.ascii:  # type: ignore[attr-defined]
            return None
        text: str = self.lines[line - 1][node.col_offset : node.end_col_offset]  # type: ignore[attr-defined]
        return text

    def leading_comments(self) -> tuple[str, ...]:
        """Return the comment lines before the first statement, without the program-name line."""
        out: list[str] = []
        start = 0
        while start < len(self.text):
            end = self.text.find("\n", start)
            end = len(self.text) if end < 0 else end
            line = self.text[start:end].strip()
            if line and not line.startswith("#"):
                break
            if line and not line.startswith("# pypto.program"):
                out.append(line)
            start = end + 1
        return tuple(out)


def is_name(text: str) -> bool:
    """Return whether a text can stand as a name."""
    return text.isidentifier() and not keyword.iskeyword(text)


def too_deep(span: Span | None) -> TileggError:
    """Return the diagnostic for nesting that exhausts the stack."""
    return error("TG012", "the text is nested too deeply", span, hint="split the expression into statements")


def did_you_mean(word: str, known: Iterable[str], prefix: str = "") -> str:
    """Return a hint with the closest known words, or an empty text."""
    if len(word) > 80:
        return ""
    close = difflib.get_close_matches(word, list(known), n=3, cutoff=0.7)
    return f"did you mean {' or '.join(prefix + c for c in close)}?" if close else ""


def first_span(problem: TileggError, span: Span | None) -> TileggError:
    """Return the error with ``span`` given to diagnostics that have none."""
    if all(d.span is not None for d in problem.diagnostics):
        return problem
    return TileggError(
        *(
            d if d.span is not None else Diagnostic(d.code, d.message, span, d.reason, d.hint, d.severity, d.notes)
            for d in problem.diagnostics
        )
    )
