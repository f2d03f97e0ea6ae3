"""The reader's entry: files, classes and functions."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ..collection import no_collection
from ..diagnostics import Diagnostic, TileggError, error
from ..infer import merge_types, type_of
from ..program import Function, Program, Return, walk
from ..types import UNKNOWN, ScalarType, Type
from .annotations import TypeReader
from .control import Control
from .dataflow import Dataflow
from .functions import decorator_of, global_sizes, read_signature
from .module import Module, NotLiteral, Signature
from .resolve import Target
from .source import Source, first_span, is_name, too_deep
from .state import MAX_ERRORS, TooManyErrors, block

_FUNCTION_ROOTS = ("pl.function", "pl.jit", "pl.inline")


def parse(text: str | bytes, file: str = "<text>") -> Program:
    """Return the program a Python-syntax IR text describes; the text is parsed, never executed.

    Raises :class:`TileggError` with up to 20 diagnostics (TG001 to TG014) when it describes none.
    """
    return parse_with_remarks(text, file)[0]


def parse_with_remarks(text: str | bytes, file: str = "<text>") -> tuple[Program, list[Diagnostic]]:
    """Return the program and the warnings and remarks on it (TG002, TG015, TG016, TG018)."""
    # A syntax tree has no cycles.
    with no_collection():
        reading = _Reading(Source(_decoded(text, file), file))
        try:
            return reading.read()
        finally:
            # The one cycle: without it the syntax tree goes at once.
            del reading.module.body_results


def _decoded(text: str | bytes, file: str) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise error("TG013", f"{file} is not UTF-8 text", reason=str(problem)) from None


class _Reading:
    """One file on its way to a program."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.module = Module(source)
        self.types = TypeReader(self.module)
        self.errors: list[Diagnostic] = []
        self.targets: dict[str, Target] = {}
        self.done: dict[str, Function] = {}
        self.active: set[str] = set()
        self.module.body_results = self._body_results

    def read(self) -> tuple[Program, list[Diagnostic]]:
        tree = self.source.parse()
        try:
            self._collect_headers(tree.body)
            functions = [f for name in self.module.signatures if (f := self._function(name)) is not None]
        except TooManyErrors:
            functions = []
        except RecursionError:
            raise too_deep(None) from None
        if self.errors:
            raise TileggError(*self.errors[:MAX_ERRORS])
        if not functions:
            raise error(
                "TG002",
                "the text has no function of the language",
                hint="a program is a class with @pl.program, or functions with @pl.function",
            )
        dynamic = tuple(self.module.dynamic_names)
        program = Program(self.module.class_name, tuple(functions), dynamic, self.source.leading_comments())
        return program, self.module.remarks

    # -- module level ------------------------------------------------------------------------------------

    def _collect_headers(self, statements: list[ast.stmt]) -> None:
        found: list[tuple[ast.FunctionDef, ast.expr]] = []
        for s in statements:
            self._guarded(s, lambda s=s: self._top(s, found))  # type: ignore[misc]
        for node, decorator in found:
            self._guarded(node, lambda n=node, d=decorator: self._header(n, d))  # type: ignore[misc]

    def _guarded(self, node: ast.AST, action: Callable[[], None]) -> None:
        try:
            action()
        except TileggError as problem:
            self.errors.extend(first_span(problem, self.source.span(node)).diagnostics)
            if len(self.errors) >= MAX_ERRORS:
                raise TooManyErrors from None

    def _top(self, s: ast.stmt, found: list[tuple[ast.FunctionDef, ast.expr]]) -> None:
        match s:
            case ast.Import() | ast.ImportFrom():
                self.module.bind_import(s)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._constant(name, value)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._constant(name, value)
            case ast.FunctionDef():
                decorator = decorator_of(self.module, s, _FUNCTION_ROOTS)
                if decorator is None:
                    self._skipped(s, f"function {s.name} has no @pl.function and is left out")
                else:
                    found.append((s, decorator))
            case ast.ClassDef():
                self._class(s, found)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                pass
            case ast.If():
                self._skipped(s, "the statement is not part of the program and is left out")
            case _:
                hint = "nothing is executed: only imports, constants and functions may stand here"
                raise error("TG002", "a statement outside the program", self.source.span(s), hint=hint)

    def _skipped(self, s: ast.stmt, message: str) -> None:
        self.module.remark("TG002", message, s, hint="nothing is executed")

    def _constant(self, name: str, value: ast.expr) -> None:
        if isinstance(value, ast.Call) and self.module.dotted(value.func) == "pl.dynamic":
            text = value.args[0].value if value.args and isinstance(value.args[0], ast.Constant) else name
            text = text if isinstance(text, str) and is_name(text) else name
            self.module.declare_dynamic(text, name)
            return
        try:
            self.module.constants[name] = self.module.fold(value)
        except NotLiteral:
            self.module.constants[name] = value

    def _class(self, s: ast.ClassDef, found: list[tuple[ast.FunctionDef, ast.expr]]) -> None:
        methods = [(f, decorator_of(self.module, f, _FUNCTION_ROOTS)) for f in s.body if isinstance(f, ast.FunctionDef)]
        if decorator_of(self.module, s, ("pl.program",)) is None and not any(d for _, d in methods):
            self._skipped(s, f"class {s.name} has no @pl.program and is left out")
            return
        if self.module.class_name:
            raise error("TG002", "a text holds one program", self.source.span(s),
                        hint=f"the first is {self.module.class_name}")  # fmt: skip
        self.module.class_name = s.name
        for item in s.body:
            match item:
                case ast.FunctionDef():
                    decorator = decorator_of(self.module, item, _FUNCTION_ROOTS)
                    if decorator is None:
                        self._skipped(item, f"function {item.name} has no @pl.function and is left out")
                    else:
                        found.append((item, decorator))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._constant(name, value)
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    raise error("TG002", "a statement outside the program's functions", self.source.span(item))

    def _header(self, node: ast.FunctionDef, decorator: ast.expr) -> None:
        if node.name in self.module.signatures:
            raise error("TG009", f"function {node.name} is defined twice", self.source.span(node))
        self.module.signatures[node.name] = Signature(node, broken=True)
        self.module.signatures[node.name] = read_signature(self.module, self.types, node, decorator)

    # -- functions ---------------------------------------------------------------------------------------

    def _body_results(self, name: str) -> tuple[Type, ...] | None:
        """Return the result types of a function whose header does not give them."""
        if name in self.active:
            hint = "annotate its results"
            raise error("TG002", f"{name} calls itself before its results are known", None, hint=hint)
        function = self._function(name)
        return function.results if function is not None else None

    def _function(self, name: str) -> Function | None:
        if name in self.done:
            return self.done[name]
        signature = self.module.signatures[name]
        if signature.broken:
            return None
        self.active.add(name)
        state = Control(self.module, self.types, Dataflow(signature.node), self.errors, targets=self.targets)
        outputs = []
        for p in signature.params:
            if p.value.name in state.used:
                self._guarded(signature.node, lambda: _twice(p.value.name))  # noqa: B023
            state.used[p.value.name] = 0
            state.names[p.value.name] = p.value
            if isinstance(p.value.type, ScalarType):
                state.sizes[p.value.name] = p.value
            if p.direction != "In":
                outputs.append(p.value.name)
                state.roots[p.value.name] = p.value.name
        state.outputs = tuple(outputs)
        state.run(signature.node.body)
        self.active.discard(name)
        results = self._results(state, signature)
        function = Function(
            name, signature.params, results, block(state.out), signature.attrs,
            self.source.span(signature.node), signature.has_self,
        )  # fmt: skip
        self.done[name] = function
        return function

    def _results(self, state: Control, signature: Signature) -> tuple[Type, ...]:
        """Return the result types, from the annotation or the returns, which must agree."""
        returns = [s for s in walk(block(state.out)) if isinstance(s, Return)]
        declared = signature.results
        known = {p.value.name for p in signature.params} | self.module.dynamic_names.keys()
        for r in returns:
            found = tuple(
                global_sizes(self.module, signature.node.name, type_of(o) or UNKNOWN, known) for o in r.operands
            )
            if declared is None:
                declared = found
            try:
                if len(found) != len(declared):
                    message = f"{len(found)} values are returned where {len(declared)} are due"
                    raise error("TG014", message, r.span)
                for a, b in zip(found, declared):
                    merge_types(a, b, r.span)
            except TileggError as problem:
                state.collect(problem, signature.node)
        return declared or ()


def _twice(name: str) -> None:
    raise error("TG009", f"parameter {name} is given twice")
