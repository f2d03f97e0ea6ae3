"""Statements: assignments, effects, returns, yields, jumps and scopes. (Loops, branches: ``control``.)"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ..diagnostics import TileggError, error
from ..dtypes import TASK_ID, DType
from ..infer import merge_types
from ..literals import literal
from ..program import Const, Jump, Operand, Return, Scope, Statement, Value, Yield
from ..types import UNKNOWN, ScalarType, Type, scalar
from .dataflow import reads
from .module import NotLiteral
from .source import MAX_DEPTH, too_deep
from .state import Frame, Unset, Yielded, block
from .subscripts import Subscripts

_ENDS = (ast.Return, ast.Break, ast.Continue)
_SILENT = ("pl.static_print", "pl.static_assert", "pl.dump_tag", "print")


@dataclass
class Statements(Subscripts):
    """Reads statements into the program."""

    #: Source names of Out and InOut parameters.
    outputs: tuple[str, ...] = ()
    depth: int = 0

    def run(self, statements: list[ast.stmt]) -> None:
        """Read statements in order; an error is noted and reading goes on with the next."""
        readers = self._STATEMENTS
        for i, s in enumerate(statements):
            try:
                reader = readers.get(s.__class__)
                if reader is None:
                    raise self._outside_statement(s)
                if self.frames and self.frames[-1].yielded is not None and not isinstance(s, ast.Break | ast.Continue):
                    raise error("TG014", "a yield must be the last statement of its block", self.span(s))
                reader(self, s)
            except TileggError as problem:
                self._poison(s)
                self.collect(problem, s)
            except RecursionError:
                self._poison(s)
                self.collect(too_deep(self.span(s)), s)
            if s.__class__ in _ENDS and i + 1 < len(statements):
                self._unreachable(statements[i + 1 :])
                return

    def _unreachable(self, rest: list[ast.stmt]) -> None:
        """Read what follows a jump for its errors and its yield's names, and leave it out."""
        self.module.remark("TG002", "the statement is never reached and is left out", rest[0])
        mark = len(self.out)
        self.run(rest)
        del self.out[mark:]

    def _poison(self, s: ast.stmt) -> None:
        """Give the names a failed statement would define an unknown value, so that errors do not cascade."""
        for name in self.flow.assigned([s]):
            if name not in self.names or not isinstance(s, ast.For | ast.While | ast.If | ast.With):
                self.define(name, UNKNOWN)

    def _outside_statement(self, s: ast.stmt) -> TileggError:
        what = _TITLES.get(type(s).__name__, type(s).__name__.lower())
        hint = _HINTS.get(type(s).__name__, "nothing is executed; the program is read as text")
        return error("TG002", f"{what} is outside the language", self.span(s), hint=hint)

    def inner(self, statements: list[ast.stmt], frame: Frame | None) -> list[Statement]:
        """Read a nested block and return its statements."""
        outer, self.out = self.out, []
        if frame is not None:
            self.frames.append(frame)
        try:
            self.run(statements)
            return self.out
        finally:
            self.out = outer
            if frame is not None:
                self.frames.pop()

    # -- assignments -------------------------------------------------------------------------------------

    def _annotated(self, s: Any) -> None:
        if s.value is None:
            raise error("TG002", "a declaration without a value", self.span(s), hint="give it a value")
        target = s.target
        if target.__class__ is not ast.Name:
            self._assign_to(target, s.value, s)
            return
        written = self.types.read(s.annotation, self.dim_name)
        self._assign_name(target.id, s.value, written, s)

    def _assign(self, s: Any) -> None:
        targets = s.targets
        if len(targets) > 1:
            hint = "one assignment a statement"
            raise error("TG002", "a chained assignment is outside the language", self.span(s), hint=hint)
        target = targets[0]
        if target.__class__ is ast.Name:
            self._assign_name(target.id, s.value, None, s)
        else:
            self._assign_to(target, s.value, s)

    def _assign_name(self, name: str, node: ast.expr, written: Type | None, s: ast.stmt) -> None:
        self.target = name
        if node.__class__ is ast.Call and self._is_yield(node):
            self._yield((name,), node, (written,), s)
            return
        value = self.value(node, name, written)
        found = self.names.get(name)
        if found is not value or value.__class__ is not Value:
            # The expression made no new value: the name stands for an existing one, or for a literal.
            if isinstance(value, tuple) and found is value:
                return
            self.names[name] = self._alias(value, written, s)
        if self.outputs and name in self.outputs:
            self._check_rebinding(name, value, node, s)

    def _alias(self, value: Operand, written: Type | None, s: ast.stmt) -> Operand | Unset:
        if value is None:
            raise error("TG006", "None is no value", self.span(s))
        if written is None:
            return value
        if isinstance(value, Const) and isinstance(written, ScalarType):
            return self._typed_literal(value, written.dtype, s)
        if isinstance(value, Value):
            merge_types(value.type, written, self.span(s))
        elif isinstance(value, Const):
            raise error("TG010", f"the annotation says {written}, the value is a {value.type}", self.span(s))
        return value

    def _typed_literal(self, value: Const, dtype: DType, s: ast.stmt) -> Const:
        if value.dtype is dtype:
            return value
        return literal(value.value, dtype, self.span(s))

    def _check_rebinding(self, name: str, value: Operand, node: ast.expr, s: ast.stmt) -> None:
        if isinstance(value, Value) and (self.roots.get(value.name) == name or name in reads(node)):
            return
        self.module.remark(
            "TG015",
            f"assigning to {name} only gives the name another value; nothing is written to the output",
            s,
            hint=f"write through it: {name}[:] = ..., or pl.tile.store(tile, offsets, {name})",
            severity="warning",
        )

    def _assign_to(self, target: ast.expr, node: ast.expr, s: ast.stmt) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            self._unpack(target, node, s)
        elif isinstance(target, ast.Subscript):
            base = target.value
            self.target = base.id if isinstance(base, ast.Name) else "t"
            self.store(target, self.value(node), s)
        else:
            raise error("TG002", "this cannot be assigned to", self.span(target))

    def _unpack(self, target: ast.Tuple | ast.List, node: ast.expr, s: ast.stmt) -> None:
        names = []
        for item in target.elts:
            if not isinstance(item, ast.Name):
                raise error("TG002", "unpacking takes plain names", self.span(item))
            names.append(item.id)
        if len(set(names) - {"_"}) != len([n for n in names if n != "_"]):
            raise error("TG009", "a name is given twice", self.span(target))
        self.target = names[0] if names else "t"
        if isinstance(node, ast.Call):
            if self._is_yield(node):
                self._yield(tuple(names), node, (None,) * len(names), s)
                return
            results = self.call_results(node, tuple(names), None)
            if len(results) == len(names) > 1 or (len(names) == 1 and len(results) == 1):
                return
            raise error("TG005", f"the call gives {len(results)} results for {len(names)} names", self.span(s))
        values = self.value(node)
        if not isinstance(values, tuple) or len(values) != len(names):
            count = len(values) if isinstance(values, tuple) else 1
            raise error("TG005", f"{count} values for {len(names)} names", self.span(s))
        self.names.update(zip(names, values))

    def _augmented(self, s: Any) -> None:
        if not isinstance(s.target, ast.Name):
            raise self._outside_statement(s)
        name = s.target.id
        self.target = name
        left = self.lookup(ast.copy_location(ast.Name(name, ast.Load()), s.target))
        right = self.value(s.value)
        node = ast.copy_location(ast.BinOp(s.target, s.op, s.value), s)
        self.names[name] = self.binary(s.op, left, right, node, name, None)

    # -- effects -----------------------------------------------------------------------------------------

    def _expression(self, s: Any) -> None:
        node = s.value
        if isinstance(node, ast.Constant) and (isinstance(node.value, str) or node.value is Ellipsis):
            return
        if not isinstance(node, ast.Call):
            raise error("TG002", "the expression has no effect", self.span(s), hint="assign it to a name")
        name = self.module.dotted(node.func) or ""
        if name in _SILENT:
            return
        self.target = "t"
        if self._is_yield(node):
            self._yield((), node, (), s)
            return
        self.call_results(node, None, None, used=False)

    def _pass(self, s: Any) -> None:
        """A statement without meaning."""

    def _return(self, s: Any) -> None:
        self.target = "ret"
        operands: list[Operand] = []
        if s.value is not None:
            parts = s.value.elts if isinstance(s.value, ast.Tuple) else [s.value]
            for part in parts:
                found = self.value(part)
                if found is not None:
                    operands += found if isinstance(found, tuple) else (found,)
        self.out.append(Return(tuple(operands), self.span(s)))
        if self.frames:
            self.frames[-1].jumped = True

    # -- yields and jumps --------------------------------------------------------------------------------

    def _is_yield(self, node: Any) -> bool:
        func = node.func
        if func.__class__ is not ast.Attribute or func.attr not in ("yield_", "yeild_"):
            return False
        return self.module.dotted(func) == "pl.yield_"

    def _yield(self, names: tuple[str, ...], node: ast.Call, types: tuple[Type | None, ...], s: ast.stmt) -> None:
        if node.keywords:
            raise error("TG005", "pl.yield_ takes no keywords", self.span(node))
        if not self.frames:
            raise error("TG014", "a yield outside a loop or branch", self.span(s))
        operands = tuple(self._yielded(a) for a in node.args)
        if not operands and not names:
            return
        if names and len(names) != len(operands):
            message = f"{len(operands)} values are yielded to {len(names)} names"
            raise error("TG014", message, self.span(s))
        self.frames[-1].yielded = Yielded(names, operands, types, s)

    def _yielded(self, node: ast.expr) -> Operand:
        found = self.value(node)
        if isinstance(found, tuple) or found is None:
            raise error("TG014", "a list cannot be yielded", self.span(node), hint="yield its parts")
        return found

    def _jump(self, s: Any) -> None:
        kind = "break" if isinstance(s, ast.Break) else "continue"
        loop = next((f for f in reversed(self.frames) if f.loop), None)
        if loop is None or loop.kind not in ("range", "while"):
            what = f"a pl.{loop.kind} loop" if loop else "any loop"
            raise error("TG002", f"{kind} inside {what}" if loop else f"{kind} outside {what}", self.span(s),
                        hint="only pl.range and while loops can be left early")  # fmt: skip
        frame = self.frames[-1]
        if frame.yielded is not None:
            operands = frame.yielded.operands
            loop.names = loop.names or frame.yielded.names
            frame.yielded = None
        else:
            operands = tuple(self._current(n, s) for n in loop.carried)
        if operands:
            self.out.append(Yield(operands, self.span(s)))
        self.out.append(Jump("break" if kind == "break" else "continue", self.span(s)))
        frame.jumped = True

    def _current(self, name: str, node: ast.AST) -> Operand:
        found = self.names.get(name)
        if found is None or isinstance(found, Unset | tuple):
            reason = found.reason if isinstance(found, Unset) else ""
            raise error("TG009", f"{name} has no value here", self.span(node), reason=reason)
        return found

    # -- scopes ------------------------------------------------------------------------------------------

    def _with(self, s: Any) -> None:
        bound: list[str] = []
        for item in s.items:
            self._check_header(item.context_expr)
            if item.optional_vars is not None:
                if not isinstance(item.optional_vars, ast.Name):
                    raise error("TG002", "a scope binds one plain name", self.span(item.optional_vars))
                bound.append(item.optional_vars.id)
        header = ", ".join(self._header(i) for i in s.items)
        if len(bound) > 1:
            raise error("TG002", "a statement opens scopes with one bound name at most", self.span(s))
        if bound:
            value = self.define(bound[0], scalar(TASK_ID))
            header += f" as {value.name}"
        self.nest(s)
        body = self.inner(s.body, None)
        self.depth -= 1
        self.out.append(Scope(header, block(body), self.span(s)))

    def _header(self, item: ast.withitem) -> str:
        node = item.context_expr
        return self.module.text(node, self.renames_in(node))

    def _check_header(self, node: ast.expr) -> None:
        name = self.module.dotted(node.func if isinstance(node, ast.Call) else node) or ""
        if not isinstance(node, ast.Call) or not name.startswith(("pl.", "pld.")):
            hint = "scopes are pl.at(...), pl.spmd(...), pl.scope(), pl.cluster(), ..."
            raise error("TG002", "not a scope of the language", self.span(node), hint=hint)

    def nest(self, s: ast.stmt) -> None:
        """Enter a nested block; raises TG012 when there are too many."""
        if self.depth >= MAX_DEPTH:
            raise too_deep(self.span(s))
        self.depth += 1

    @abstractmethod
    def if_(self, s: ast.If) -> None:
        """Read a branch."""

    @abstractmethod
    def for_(self, s: ast.For) -> None:
        """Read a counted loop, or the SSA form of a while loop."""

    @abstractmethod
    def while_(self, s: ast.While) -> None:
        """Read a while loop."""

    def is_literal(self, node: ast.expr) -> bool:
        """Return whether an expression is made of literals alone."""
        try:
            self.module.fold(node)
        except (NotLiteral, TileggError):
            return False
        return True

    _STATEMENTS: ClassVar[dict[type[ast.AST], Callable[[Any, Any], None]]] = {
        ast.AnnAssign: _annotated,
        ast.Assign: _assign,
        ast.AugAssign: _augmented,
        ast.Expr: _expression,
        ast.Pass: _pass,
        ast.Return: _return,
        ast.Break: _jump,
        ast.Continue: _jump,
        ast.With: _with,
        ast.If: lambda self, s: self.if_(s),
        ast.For: lambda self, s: self.for_(s),
        ast.While: lambda self, s: self.while_(s),
    }


_TITLES = {
    "FunctionDef": "a function inside a function", "ClassDef": "a class inside a function", "Delete": "del",
    "Assert": "assert", "Raise": "raise", "Try": "try", "Import": "an import inside a function",
    "ImportFrom": "an import inside a function", "Match": "match", "AsyncFor": "async", "AsyncWith": "async",
}  # fmt: skip
_HINTS = {
    "Assert": "use pl.static_assert, which makes no code",
    "FunctionDef": "functions stand in the class, or at module level",
}
