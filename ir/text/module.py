"""What is known of a file while its functions are read: import names, constants, signatures, remarks."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..diagnostics import Diagnostic, Severity, Span, error
from ..program import Param
from ..types import Type
from .source import Source

#: Results of folding are kept below this many bits, so that no text can ask for a gigabyte integer.
_MAX_BITS = 128

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


class NotLiteral(Exception):
    """The expression is not made of literals alone."""


@dataclass
class Signature:
    """A function's header: parameters and, when annotated, result types."""

    node: ast.FunctionDef
    params: tuple[Param, ...] = ()
    results: tuple[Type, ...] | None = None
    attrs: dict[str, str] = field(default_factory=dict)
    has_self: bool = False
    broken: bool = False


class Module:
    """The file-wide context of a reading."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.aliases: dict[str, str] = {"pl": "pl", "pld": "pld"}
        self.plain_aliases = True
        #: Module-level names: a literal value, or the syntax node of something that is no literal.
        self.constants: dict[str, Any] = {}
        #: Dynamic dimensions by the Python name they are bound to, and their own names.
        self.dynamic: dict[str, str] = {}
        self.dynamic_names: dict[str, None] = {}
        self.signatures: dict[str, Signature] = {}
        self.class_name = ""
        #: Result types of a function without a return annotation, found by reading its body.
        self.body_results: Callable[[str], tuple[Type, ...] | None] = lambda name: None
        self.remarks: list[Diagnostic] = []
        self._seen: set[tuple[str, str]] = set()

    def remark(
        self,
        code: str,
        message: str,
        node: ast.AST | None,
        *,
        hint: str = "",
        reason: str = "",
        severity: Severity = "remark",
        once: str = "",
    ) -> None:
        """Note a remark or warning; those with the same ``once`` key are reported a single time."""
        if once:
            if (code, once) in self._seen:
                return
            self._seen.add((code, once))
        span = self.source.span(node) if node is not None else None
        self.remarks.append(Diagnostic(code, message, span, reason, hint, severity))

    def declare_dynamic(self, text: str, bound: str | None = None) -> None:
        """Note a dynamic dimension, bound to a Python name (its own by default)."""
        self.dynamic[bound or text] = text
        self.dynamic_names[text] = None

    # -- names -------------------------------------------------------------------------------------------

    def bind_import(self, node: ast.Import | ast.ImportFrom) -> None:
        """Note the names that an import gives to the language's modules."""
        modules = {"pypto.language": "pl", "pypto.language.distributed": "pld"}
        for a in node.names:
            prefix = f"{node.module}." if isinstance(node, ast.ImportFrom) and node.module else ""
            bound = modules.get(prefix + a.name)
            if bound is not None and (a.asname or isinstance(node, ast.ImportFrom)):
                self.aliases[a.asname or a.name] = bound
        self.plain_aliases = all(k == v for k, v in self.aliases.items())

    def dotted(self, node: ast.expr) -> str | None:
        """Return a dotted name with the import's name made ``pl`` or ``pld``; ``None`` for anything else."""
        parts: list[str] = []
        while node.__class__ is ast.Attribute:
            parts.append(node.attr)
            node = node.value
        if node.__class__ is not ast.Name:
            return None
        root: str = node.id
        parts.append(self.aliases.get(root, root))
        parts.reverse()
        return ".".join(parts)

    def text(self, node: ast.AST, renames: Mapping[str, str] | None = None) -> str:
        """Return the source text of a node, with import names and renamed values put right."""
        if not renames and self.plain_aliases:
            found = self.source.slice(node)
            if found is not None:
                return found
        names = {**{k: v for k, v in self.aliases.items() if k != v}, **(renames or {})}
        if names:
            node = _Rename(names).visit(_copy(node))
        return ast.unparse(node)

    # -- literals ----------------------------------------------------------------------------------------

    def fold(self, node: ast.expr) -> Any:
        """Return the Python value of a literal expression; raises :class:`NotLiteral`, or TG011."""
        match node:
            case ast.Constant(value=bool() | int() | float() | str() as value):
                return value
            case ast.Name(id=name):
                value = self.constants.get(name, node)
                if isinstance(value, ast.AST):
                    raise NotLiteral
                return value
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return tuple([self.fold(i) if i.__class__ is not ast.Constant else _plain(i) for i in items])
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=inner):
                value = self._number(inner)
                return -value if isinstance(op, ast.USub) else value
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
                return self.fold_binary(op, self._number(left), self._number(right), node)
        raise NotLiteral

    def _number(self, node: ast.expr) -> int | float:
        value = self.fold(node)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        raise NotLiteral

    def fold_binary(self, op: ast.operator, a: int | float, b: int | float, node: ast.AST) -> int | float:
        """Return the value of arithmetic on two literals; raises TG011 when it has none."""
        apply = _BINARY.get(type(op))
        if apply is None:
            raise NotLiteral
        try:
            value: int | float = apply(a, b)
        except (ArithmeticError, ValueError) as problem:
            raise error("TG011", "the constant has no value", self.span(node), reason=str(problem)) from None
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise error("TG011", "the constant is too large", self.span(node))
        return value

    def span(self, node: ast.AST) -> Span:
        """Return the place of a node."""
        return self.source.span(node)


def _plain(node: ast.expr) -> Any:
    value = node.value  # type: ignore[attr-defined]
    if isinstance(value, bool | int | float | str):
        return value
    raise NotLiteral


class _Rename(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.AST:
        new = self.names.get(node.id)
        return node if new is None else ast.copy_location(ast.Name(new, node.ctx), node)


def _copy(node: ast.AST) -> Any:
    """Copy a syntax tree, so that a transformer may change it."""
    fields = {
        name: [_copy(v) if isinstance(v, ast.AST) else v for v in value]
        if isinstance(value, list)
        else _copy(value)
        if isinstance(value, ast.AST)
        else value
        for name, value in ast.iter_fields(node)
    }
    return ast.copy_location(type(node)(**fields), node) if hasattr(node, "lineno") else type(node)(**fields)
