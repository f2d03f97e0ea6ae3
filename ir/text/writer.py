"""The writer: programs as Python-syntax IR text, one statement a line, in SSA form with annotations.

``parse(print_program(p)) == p`` for every program the verifier accepts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..program import (
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
from ..types import Type
from .write_ops import print_dictionary, print_operand, renderer
from .write_types import print_type

_INDENT = "    "
_WIDTH = 110


def print_program(program: Program) -> str:
    """Return the text of a program."""
    require_program(program, "print_program")
    body = _Writer(program.name != "")
    level = 1 if program.name else 0
    for i, f in enumerate(program.functions):
        if i:
            body.lines.append("")
        body.function(f, level)
    text = "\n".join(body.lines)
    head = [f"# pypto.program: {program.name}"] if program.name else []
    head += program.header
    if "math." in text:
        head.append("import math")
    head.append("import pypto.language as pl")
    if "pld." in text:
        head.append("import pypto.language.distributed as pld")
    head.append("")
    if program.dynamic:
        head += [f'{name} = pl.dynamic("{name}")' for name in program.dynamic]
        head.append("")
    if program.name:
        head += ["@pl.program", f"class {program.name}:"]
    return "\n".join(head) + "\n" + text + "\n"


def print_op(op: Op) -> str:
    """Return the line of one operation."""
    writer = _Writer(True)
    writer.op(op, "")
    return writer.lines[0]


class _Writer:
    """Collects lines; knows the names written so far, as the reader will."""

    def __init__(self, in_class: bool) -> None:
        self.lines: list[str] = []
        self.in_class = in_class
        self.types: dict[int, tuple[Type, str]] = {}
        self.names: set[str] = set()

    def type(self, t: Type) -> str:
        found = self.types.get(id(t))
        if found is None:
            # The type is kept with its text, so that its id stays its own.
            found = self.types[id(t)] = (t, print_type(t))
        return found[1]

    # -- functions ---------------------------------------------------------------------------------------

    def function(self, f: Function, level: int) -> None:
        indent = _INDENT * level
        attrs = dict(f.attrs)
        decorator = attrs.pop("decorator", "pl.function")
        words = ", ".join(f"{k}={v}" for k, v in attrs.items())
        self.lines.append(f"{indent}@{decorator}({words})" if words else f"{indent}@{decorator}")
        params = ["self"] if f.has_self and self.in_class else []
        for p in f.params:
            t = self.type(p.value.type)
            params.append(f"{p.value.name}: " + (t if p.direction == "In" else f"pl.{p.direction}[{t}]"))
        results = [self.type(t) for t in f.results]
        arrow = "" if not results else f" -> {results[0]}" if len(results) == 1 else f" -> tuple[{', '.join(results)}]"
        line = f"{indent}def {f.name}({', '.join(params)}){arrow}:"
        if len(line) <= _WIDTH:
            self.lines.append(line)
        else:
            self.lines.append(f"{indent}def {f.name}(")
            self.lines += [f"{indent}{_INDENT}{p}," for p in params]
            self.lines.append(f"{indent}){arrow}:")
        self.names = {p.value.name for p in f.params}
        self.block(f.body, indent + _INDENT, (), ())

    def block(
        self, block: Block, indent: str, own: Sequence[Value], loop: Sequence[Value], started: bool = False
    ) -> None:
        """Write statements; ``own`` are the results a yield here gives, ``loop`` those of the loop."""
        statements = block.statements
        if not statements and not started:
            self.lines.append(f"{indent}pass")
        for i, s in enumerate(statements):
            if s.__class__ is Op:
                self.op(s, indent)
            elif isinstance(s, Yield):
                before_jump = i + 1 < len(statements) and isinstance(statements[i + 1], Jump)
                self._yield(s, indent, loop if before_jump else own)
            else:
                self._statement(s, indent, own, loop)

    def op(self, op: Op, indent: str) -> None:
        results = op.results
        right = renderer(op.name)(op, print_operand)
        if op.name == "call" and not self.in_class:
            right = right.removeprefix("self.")
        if len(results) == 1:
            v = results[0]
            self.names.add(v.name)
            self.lines.append(f"{indent}{v.name}: {self.type(v.type)} = {right}")
        elif results:
            self.names.update(v.name for v in results)
            self.lines.append(f"{indent}{', '.join([v.name for v in results])} = {right}")
        else:
            self.lines.append(indent + right)

    def _statement(self, s: Statement, indent: str, own: Sequence[Value], loop: Sequence[Value]) -> None:
        inner = indent + _INDENT
        match s:
            case For():
                self._for(s, indent)
            case While():
                self._while(s, indent)
            case If():
                self.lines.append(f"{indent}if {print_operand(s.cond)}:")
                self.block(s.then, inner, s.results, loop)
                if s.orelse.statements:
                    self.lines.append(f"{indent}else:")
                    self.block(s.orelse, inner, s.results, loop)
                self.names.update(v.name for v in s.results)
            case Scope():
                self.lines.append(f"{indent}with {s.header}:")
                self.block(s.body, inner, own, loop)
            case Return():
                values = ", ".join(print_operand(o) for o in s.operands)
                self.lines.append(f"{indent}return {values}".rstrip())
            case Jump():
                self.lines.append(indent + s.kind)
            case Raw():
                self.lines += [indent + line for line in s.text.splitlines()]
            case _:
                raise AssertionError(f"no text for {type(s).__name__}")

    def _yield(self, s: Yield, indent: str, results: Sequence[Value]) -> None:
        values = ", ".join([print_operand(o) for o in s.operands])
        if len(results) == 1:
            v = results[0]
            self.lines.append(f"{indent}{v.name}: {self.type(v.type)} = pl.yield_({values})")
        else:
            names = ", ".join(v.name for v in results)
            self.lines.append(f"{indent}{names} = pl.yield_({values})" if names else f"{indent}pl.yield_({values})")

    # -- loops -------------------------------------------------------------------------------------------

    def _for(self, s: For, indent: str) -> None:
        start, stop, step = s.bounds
        plain_step = isinstance(step, Const) and step.value == 1
        from_zero = isinstance(start, Const) and start.value == 0
        shown = [stop] if plain_step and from_zero else [start, stop] if plain_step else [start, stop, step]
        words = [print_operand(o) for o in shown]
        words += [print_dictionary(v) if k == "attrs" else f"{k}={v}" for k, v in s.attrs.items()]
        words += [_inits(s.carried)] if s.carried else []
        head = s.var.name + (f", {_tuple([c.arg.name for c in s.carried])}" if s.carried else "")
        self.lines.append(f"{indent}for {head} in pl.{s.kind}({', '.join(words)}):")
        self.names.add(s.var.name)
        self.names.update(c.arg.name for c in s.carried)
        self.block(s.body, indent + _INDENT, s.results, s.results)
        self.names.update(v.name for v in s.results)

    def _while(self, s: While, indent: str) -> None:
        inner = indent + _INDENT
        names = _tuple([c.arg.name for c in s.carried])
        words = _inits(s.carried) if s.carried else ""
        self.lines.append(f"{indent}for {names} in pl.while_({words}):" if s.carried else f"{indent}while True:")
        if not s.carried:
            self.lines.pop()
            self._plain_while(s, indent)
            return
        self.names.update(c.arg.name for c in s.carried)
        condition = self._condition(s)
        if condition is None:
            self.block(s.head, inner, (), (), started=True)
            condition = print_operand(s.cond)
        self.lines.append(f"{inner}pl.cond({condition})")
        self.block(s.body, inner, s.results, s.results, started=True)
        self.names.update(v.name for v in s.results)

    def _plain_while(self, s: While, indent: str) -> None:
        """A loop without carried values."""
        condition = self._condition(s)
        if condition is None:
            # Nothing is carried, so the head is written out before pl.cond.
            self.lines.append(f"{indent}for () in pl.while_(init_values=()):")
            self.block(s.head, indent + _INDENT, (), (), started=True)
            self.lines.append(f"{indent}{_INDENT}pl.cond({print_operand(s.cond)})")
        else:
            self.lines.append(f"{indent}while {condition}:")
        self.block(s.body, indent + _INDENT, (), (), started=condition is None)

    def _condition(self, s: While) -> str | None:
        """Return the head as one nested expression, if reading that gives back the same values.

        The reader names nested operations in evaluation order; so the head must be in that order, each
        value used once, under the names it would give.
        """
        if not s.head.statements:
            return print_operand(s.cond)
        ops: dict[str, Op] = {}
        for number, op in enumerate(s.head.statements):
            if not isinstance(op, Op) or len(op.results) != 1 or op.result.name != self._generated("cond", number):
                return None
            ops[op.result.name] = op
        order: list[str] = []
        text = _nested(s.cond, ops, order, set())
        body_uses = {v.name for b in s.body.statements for v in _used(b)}
        if text is None or order != list(ops) or any(name in body_uses for name in ops):
            return None
        self.names.update(ops)
        return text

    def _generated(self, target: str, number: int) -> str:
        n = 0
        while True:
            name = f"{target}__arg_tmp_v{n}"
            if name not in self.names:
                if number == 0:
                    return name
                number -= 1
            n += 1


def _nested(o: Operand, ops: dict[str, Op], order: list[str], seen: set[str]) -> str | None:
    """Return an operand's text with operations of ``ops`` in place; ``None`` when that cannot be."""
    if not isinstance(o, Value) or o.name not in ops:
        return print_operand(o)
    if o.name in seen:
        return None
    seen.add(o.name)
    op = ops[o.name]
    texts: dict[int, str] = {}
    for inner in op.operands:
        text = _nested(inner, ops, order, seen) if not isinstance(inner, tuple) else None
        if isinstance(inner, tuple):
            if any(isinstance(v, Value) and v.name in ops for v in flat_operands(inner)):
                return None
            text = print_operand(inner)
        if text is None:
            return None
        texts[id(inner)] = f"({text})" if isinstance(inner, Value) and inner.name in ops else text
    order.append(o.name)
    return renderer(op.name)(op, lambda x: texts.get(id(x), print_operand(x)))


def _used(s: Statement) -> list[Value]:
    """Return the values a statement reads, nested ones included."""
    out: list[Operand] = []
    match s:
        case Op() | Yield() | Return():
            out = list(s.operands)
        case For():
            out = [*s.bounds, *(c.init for c in s.carried), *(v for b in s.body for v in _used(b))]
        case While():
            out = [
                s.cond,
                *(c.init for c in s.carried),
                *(v for part in (s.head, s.body) for b in part for v in _used(b)),
            ]
        case If():
            out = [s.cond, *(v for part in (s.then, s.orelse) for b in part for v in _used(b))]
        case Scope():
            out = [v for b in s.body for v in _used(b)]
    return [v for v in flat_operands(tuple(out)) if isinstance(v, Value)]


def _tuple(names: list[str]) -> str:
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def _inits(carried: Sequence[Carried]) -> str:
    return "init_values=" + _tuple([print_operand(c.init) for c in carried])
