"""The structural verifier: what every program must satisfy, however it was made.

Programs from text satisfy it by construction; programs from the builder and from passes are checked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from .diagnostics import Diagnostic, Span, TileggError
from .distributed_checks import distributed_problems
from .domains import domain_problems
from .dtypes import TASK_ID
from .infer import check_operand, join_types, merge_types, result_types, stored_attrs, type_of
from .op import OPS, OpDecl
from .predicates import Predicates
from .program import (
    Block,
    Carried,
    Const,
    For,
    Function,
    If,
    Jump,
    Op,
    Operand,
    Program,
    Raw,
    Return,
    Scope,
    Statement,
    Value,
    While,
    Yield,
    flat_operands,
    require_program,
)
from .text.source import is_name
from .types import OpaqueType, ScalarType, TileType, Type, scalar

LOOP_KINDS = ("range", "parallel", "unroll", "pipeline", "spmd", "split_aiv")
#: Operations without a declaration: calls of functions, elements of values of unknown type.
STRUCTURAL = ("call", "getitem", "setitem")
_BOUND = re.compile(r"\bas (\w+)$")


def verify(program: Program) -> list[Diagnostic]:
    """Return what is wrong with a program; an empty list when nothing is.

    Checked: names are unique and identifiers; values are defined before they are used, with one type; operations
    have the operands, attributes and results their declarations say, with the types inference gives; loops and
    branches yield what they carry; returns match the function's results; distributed operations stand where they
    can run.
    """
    require_program(program, "verify")
    found: list[Diagnostic] = []
    names = [f.name for f in program.functions]
    for name in dict.fromkeys(n for n in names if names.count(n) > 1):
        found.append(Diagnostic("TG009", f"function {name} is defined twice"))
    for f in program.functions:
        _Checker(program, f, found).function()
    return found + distributed_problems(program) + domain_problems(program)


@dataclass
class _Loop:
    """The loop around a statement: its kind and what it carries."""

    kind: str
    carried: tuple[Carried, ...]


@dataclass
class _Checker:
    """Checks one function."""

    program: Program
    f: Function
    found: list[Diagnostic]
    visible: dict[str, Type] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    loops: list[_Loop] = field(default_factory=list)
    predicates: Predicates = field(default_factory=Predicates)

    def report(self, code: str, message: str, span: Span | None, reason: str = "") -> None:
        self.found.append(Diagnostic(code, f"{self.f.name}: {message}", span, reason))

    def attempt(self, action: Callable[[], object]) -> None:
        """Run a check that raises, and keep its diagnostics."""
        try:
            action()
        except TileggError as problem:
            self.found.extend(problem.diagnostics)

    # -- names -------------------------------------------------------------------------------------------

    def define(self, v: Value, span: Span | None) -> None:
        if not is_name(v.name):
            self.report("TG009", f"{v.name!r} is no name", span)
        if v.name in self.taken:
            self.report("TG009", f"{v.name} is defined twice", span)
        self.taken.add(v.name)
        self.visible[v.name] = v.type

    def use(self, operands: Sequence[Operand], span: Span | None) -> None:
        for o in flat_operands(tuple(operands)):
            if not isinstance(o, Value):
                continue
            known = self.visible.get(o.name)
            if known is None:
                reason = "it is defined elsewhere in the function" if o.name in self.taken else ""
                self.report("TG009", f"{o.name} is used where it is not defined", span, reason)
            elif known is not o.type and known != o.type:
                self.report("TG010", f"{o.name} is used as a {o.type}, but is a {known}", span)

    # -- functions and blocks ----------------------------------------------------------------------------

    def function(self) -> None:
        for name in self.program.dynamic:
            self.visible[name] = scalar()
        for p in self.f.params:
            self.define(p.value, self.f.span)
            if p.direction != "In" and isinstance(p.value.type, ScalarType):
                self.report("TG006", f"the scalar {p.value.name} cannot be {p.direction}", self.f.span)
        self.block(self.f.body, None, None)

    def block(self, block: Block, results: tuple[Value, ...] | None, span: Span | None) -> Statement | None:
        """Check a block; ``results`` are what its yield must match (``None``: it may not yield).

        Values defined inside are not visible afterwards. Returns the last statement.
        """
        before = dict(self.visible) if results is not None else None
        statements = block.statements
        for i, s in enumerate(statements):
            following = statements[i + 1] if i + 1 < len(statements) else None
            if isinstance(s, Yield):
                self._yield(s, results, following)
            else:
                self.statement(s, results)
            if isinstance(s, Jump | Return) and following is not None:
                self.report("TG002", "a statement after a jump is never reached", s.span)
        last = statements[-1] if statements else None
        if results and not isinstance(last, Yield | Jump | Return) and not _ends_inside(last):
            self.report("TG014", f"the block must yield {len(results)} values", span)
        if before is not None:
            self.visible = before
        return last

    def _yield(self, s: Yield, results: tuple[Value, ...] | None, following: Statement | None) -> None:
        self.use(s.operands, s.span)
        if isinstance(following, Jump):
            wanted: Sequence[Type] = [c.arg.type for c in self.loops[-1].carried] if self.loops else []
        elif following is not None:
            self.report("TG014", "a yield must be the last statement of its block", s.span)
            return
        elif not results:
            self.report("TG014", "there is nothing to yield to", s.span)
            return
        else:
            wanted = [r.type for r in results]
        if len(wanted) != len(s.operands):
            self.report("TG014", f"{len(s.operands)} values are yielded where {len(wanted)} are due", s.span)
            return
        for o, t in zip(s.operands, wanted):
            self.attempt(lambda o=o, t=t: join_types(t, type_of(o), s.span, "a yielded value"))  # type: ignore[misc]

    def statement(self, s: Statement, results: tuple[Value, ...] | None) -> None:
        match s:
            case Op():
                self.use(s.operands, s.span)
                self._op(s)
                for v in s.results:
                    self.define(v, s.span)
            case For():
                self._for(s)
            case While():
                self._while(s)
            case If():
                self._if(s)
            case Scope():
                self._scope(s, results)
            case Return():
                self._return(s)
            case Jump():
                if not self.loops or self.loops[-1].kind not in ("range", "while"):
                    self.report("TG002", f"{s.kind} outside a sequential loop", s.span)
            case Raw() | Yield():
                pass

    def _scope(self, s: Scope, results: tuple[Value, ...] | None) -> None:
        bound = _BOUND.search(s.header)
        if bound is not None:
            self.taken.add(bound.group(1))
            self.visible[bound.group(1)] = scalar(TASK_ID)
        for inner in s.body:
            if isinstance(inner, Yield):
                self._yield(inner, results, None)
            else:
                self.statement(inner, results)

    def _return(self, s: Return) -> None:
        self.use(s.operands, s.span)
        if len(s.operands) != len(self.f.results):
            message = f"{len(s.operands)} values are returned where {len(self.f.results)} are due"
            self.report("TG014", message, s.span)
            return
        for o, t in zip(s.operands, self.f.results):
            self.attempt(lambda o=o, t=t: merge_types(type_of(o), t, s.span))  # type: ignore[misc]

    # -- operations --------------------------------------------------------------------------------------

    def _op(self, s: Op) -> None:
        decl = OPS.get(s.name)
        if decl is not None:
            self._declared(s, decl)
        elif s.name == "call":
            self._call(s)
        elif s.name not in STRUCTURAL and not s.name.startswith(("pl.", "pld.")):
            self.report("TG018", f"{s.name} is not an operation", s.span)

    def _declared(self, s: Op, decl: OpDecl) -> None:
        if len(s.operands) != len(decl.operand_params):
            message = f"{s.name} has {len(s.operands)} operands, {len(decl.operand_params)} are due"
            self.report("TG005", message, s.span)
            return
        clean = True
        for param, o in zip(decl.operand_params, s.operands):
            try:
                check_operand(decl, param, o, s.span)
            except TileggError as problem:
                clean = False
                self.found.extend(problem.diagnostics)
        clean = self._attrs(s, decl) and clean
        if clean:
            self.attempt(lambda: self._results(s, decl))

    def _attrs(self, s: Op, decl: OpDecl) -> bool:
        """Check the attributes; return whether the result types can be inferred from them."""
        complete = True
        known = {p.name for p in decl.attr_params}
        for name in s.attrs:
            if name not in known and name != "attrs":
                self.report("TG005", f"{s.name} has no attribute {name}", s.span)
        for p in decl.attr_params:
            if p.required and p.name not in s.attrs:
                self.report("TG005", f"{s.name}: attribute {p.name} is missing", s.span)
                complete = False
        kept = stored_attrs(decl, s.attrs)
        for name in s.attrs:
            if name not in kept:
                self.report("TG005", f"{s.name}: attribute {name} is stored with its default", s.span)
        return complete

    def _results(self, s: Op, decl: OpDecl) -> None:
        self.predicates.check(decl, s.operands, s.span)
        types = result_types(decl, s.operands, s.attrs, s.span)
        self.predicates.note(s.name, s.operands, s.results)
        if types is None or not s.results:
            return
        if not types and len(s.results) == 1 and isinstance(s.results[0].type, OpaqueType):
            return
        if len(types) != len(s.results):
            message = f"{s.name} has {len(s.results)} results, {len(types)} are due"
            self.report("TG005", message, s.span)
            return
        for t, v in zip(types, s.results):
            merged = merge_types(t, v.type, s.span)
            if merged != v.type and not _same_but_layout(merged, v.type):
                self.report("TG010", f"{v.name} is a {v.type}, the operation gives a {t}", s.span)

    def _call(self, s: Op) -> None:
        callee = s.attrs.get("callee")
        target = next((f for f in self.program.functions if f.name == callee), None)
        if target is None:
            self.report("TG003", f"unknown function {callee}", s.span)
            return
        count = len(s.operands) - len(s.attrs.get("keywords", ()))
        if count != len(target.params):
            message = f"{callee} takes {len(target.params)} arguments, got {count}"
            self.report("TG005", message, s.span)
        if s.results and len(s.results) != len(target.results):
            message = f"{callee} gives {len(target.results)} results, {len(s.results)} are named"
            self.report("TG005", message, s.span)

    # -- control flow ------------------------------------------------------------------------------------

    def _for(self, s: For) -> None:
        self.use(s.bounds, s.span)
        if s.kind not in LOOP_KINDS:
            self.report("TG002", f"unknown loop kind {s.kind}", s.span)
        for b in s.bounds:
            t = type_of(b)
            if b is not None and not isinstance(t, OpaqueType) and not _is_integer(t):
                self.report("TG006", f"a loop bound must be an integer, got {t or 'a list'}", s.span)
        if isinstance(s.bounds[2], Const) and s.bounds[2].value == 0:
            self.report("TG008", "the loop's step is zero", s.span)
        self._carry(s.carried, s.results, s.span)
        before = dict(self.visible)
        self.define(s.var, s.span)
        self._loop_body(s.kind, s.carried, s.body, s.results, s.span)
        self.visible = before
        for v in s.results:
            self.define(v, s.span)

    def _loop_body(
        self, kind: str, carried: tuple[Carried, ...], body: Block, results: tuple[Value, ...], span: Span | None
    ) -> None:
        self.loops.append(_Loop(kind, carried))
        for c in carried:
            self.define(c.arg, span)
        self.block(body, results, span)
        self.loops.pop()

    def _carry(self, carried: tuple[Carried, ...], results: tuple[Value, ...], span: Span | None) -> None:
        self.use([c.init for c in carried], span)
        if len(carried) != len(results):
            self.report("TG014", f"{len(carried)} values are carried, {len(results)} result", span)
        for c, r in zip(carried, results):
            self.attempt(lambda c=c: join_types(c.arg.type, type_of(c.init), span, c.arg.name))  # type: ignore[misc]
            self.attempt(lambda c=c, r=r: join_types(c.arg.type, r.type, span, r.name))  # type: ignore[misc]

    def _while(self, s: While) -> None:
        self._carry(s.carried, s.results, s.span)
        before = dict(self.visible)
        self.loops.append(_Loop("while", s.carried))
        for c in s.carried:
            self.define(c.arg, s.span)
        self.block(s.head, None, s.span)
        self.use((s.cond,), s.span)
        self._condition(s.cond, s.span)
        self.block(s.body, s.results, s.span)
        self.loops.pop()
        self.visible = before
        for v in s.results:
            self.define(v, s.span)

    def _condition(self, cond: Operand, span: Span | None) -> None:
        t = type_of(cond)
        if not isinstance(t, ScalarType | OpaqueType):
            self.report("TG006", f"a condition is a scalar, got {t or 'a list'}", span)

    def _if(self, s: If) -> None:
        self.use((s.cond,), s.span)
        self._condition(s.cond, s.span)
        for block in (s.then, s.orelse):
            self.block(block, s.results, s.span)
        for v in s.results:
            self.define(v, s.span)


def _ends_inside(last: Statement | None) -> bool:
    """Return whether a block's last statement is a scope that ends the block itself."""
    if not isinstance(last, Scope) or not last.body.statements:
        return False
    inner = last.body.statements[-1]
    return isinstance(inner, Yield | Jump | Return) or _ends_inside(inner)


def _is_integer(t: Type | None) -> bool:
    return isinstance(t, ScalarType) and t.dtype.is_int


def _same_but_layout(a: Type, b: Type) -> bool:
    """Return whether tile types differ in what no operation depends on: the layout left implied."""
    return isinstance(a, TileType) and isinstance(b, TileType) and (a.shape, a.dtype, a.valid_shape) == (
        b.shape, b.dtype, b.valid_shape
    )  # fmt: skip
