"""A builder of programs: functions, operations, loops and branches as Python calls and ``with`` blocks.

    b = Builder("kernel", type="pl.FunctionType.InCore")
    x = b.param("x", tensor([16, 64], FP32))
    out = b.param("out", tensor([16, 64], BF16), "Out")
    t = b.tile.load(x, [0, 0], [16, 64])
    with b.range(4, carry={"acc": t}) as loop:
        loop.yield_(b.tile.adds(loop.args[0], 1.0))
    c = b.tile.cast(loop.results[0], target_type=BF16)
    b.ret(b.tile.store(c, [0, 0], out))
    program = b.program("Quant")

Operations are those declared (``b.tile.*``, ``b.tensor.*``, ``b.scalar.*``, ...); their operands and attributes
are checked and their result types inferred at once. Everything wrong raises :class:`TileggError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .bind import bind_arguments
from .diagnostics import error
from .infer import join_types, merge_types, result_types, stored_attrs, type_of
from .literals import operand
from .op import OPS
from .predicates import Predicates
from .program import (
    Block,
    Carried,
    Direction,
    For,
    Function,
    If,
    Jump,
    Op,
    Operand,
    Param,
    Program,
    Return,
    Scope,
    Statement,
    Value,
    While,
    Yield,
    index,
)
from .text.source import is_name
from .types import UNKNOWN, Type, scalar


class Builder:
    """Builds one function; see the module's example."""

    def __init__(self, name: str, *, has_self: bool = True, **attrs: str) -> None:
        self.name = name
        self._attrs = attrs
        self._has_self = has_self
        self._params: list[Param] = []
        self._results: tuple[Type, ...] | None = None
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._predicates = Predicates()
        self._out: list[Statement] = []
        self._open: list[_Body] = []
        self._in_head = False

    # -- operations --------------------------------------------------------------------------------------

    def __getattr__(self, space: str) -> _Namespace:
        if space.startswith("_") or not any(n.startswith(space + ".") for n in OPS):
            raise AttributeError(space)
        return _Namespace(self, space)

    def op(self, name: str, /, *args: Any, result: str | None = None, type: Type | None = None, **kwargs: Any) -> Any:
        """Add a declared operation by its full name (``tile.cast``) and return its result.

        ``result`` names it; ``type`` may add to the inferred type what inference does not know. Several results
        come as a tuple, none as ``None``.
        """
        decl = OPS.get(name)
        if decl is None:
            raise error("TG018", f"{name} is not a declared operation", hint="Builder.verbatim adds any operation")
        operands, attrs = bind_arguments(decl, args, kwargs)
        self._predicates.check(decl, operands, None)
        types = result_types(decl, operands, attrs)
        if types is None:
            types = (UNKNOWN if type is None else type,)
        elif type is not None and len(types) == 1:
            types = (merge_types(types[0], type),)
        return self._add(name, operands, stored_attrs(decl, attrs), types, result)

    def verbatim(
        self, name: str, *args: Any, results: Sequence[Type] = (), result: str | None = None, **attrs: str
    ) -> Any:
        """Add an operation tilegg does not know, by its full text (``pl.tile.matmul``); attributes are texts."""
        if not name.startswith(("pl.", "pld.")):
            raise error("TG018", f"{name} is not an operation", hint="operations start with pl. or pld.")
        return self._add(name, tuple(operand(a) for a in args), dict(attrs), tuple(results), result)

    def call(self, callee: Function | Builder, *args: Any, result: str | None = None) -> Any:
        """Add a call of another function of the program and return its results."""
        f = callee.function() if isinstance(callee, Builder) else callee
        if len(args) != len(f.params):
            raise error("TG005", f"{f.name} takes {len(f.params)} arguments, got {len(args)}")
        return self._add("call", tuple(operand(a) for a in args), {"callee": f.name}, f.results, result)

    def _add(
        self, name: str, operands: tuple[Operand, ...], attrs: dict[str, Any], types: Sequence[Type], result: str | None
    ) -> Any:
        stem = result or attrs.get("callee") or name.rpartition(".")[2].rstrip("_")
        if len(types) == 1 and result is not None:
            values: tuple[Value, ...] = (Value(self._take(result), types[0]),)
        else:
            values = tuple(Value(self._fresh(stem), t) for t in types)
        self._out.append(Op(name, operands, attrs, values))
        self._predicates.note(name, operands, values)
        return values[0] if len(values) == 1 else values or None

    # -- names -------------------------------------------------------------------------------------------

    def _take(self, name: str) -> str:
        if not is_name(name):
            raise error("TG009", f"{name!r} is no name")
        if name in self._names:
            raise error("TG009", f"{name} is defined twice", hint="leave the name out to get a fresh one")
        self._names.add(name)
        return name

    def _fresh(self, stem: str) -> str:
        # In a while loop's head these are the names a reader gives, so that a printer can nest the expression.
        stem = "cond__arg_tmp_v" if self._in_head else f"{stem}_"
        n = self._numbers.get(stem, 0)
        while f"{stem}{n}" in self._names:
            n += 1
        self._numbers[stem] = n + 1
        return self._take(f"{stem}{n}")

    def _value(self, name: str | None, stem: str, t: Type) -> Value:
        return Value(self._take(name) if name else self._fresh(stem), t)

    # -- the function ------------------------------------------------------------------------------------

    def param(self, name: str, type: Type, direction: Direction = "In") -> Value:
        """Add a parameter and return its value."""
        value = Value(self._take(name), type)
        self._params.append(Param(value, direction))
        return value

    def ret(self, *values: Any) -> None:
        """Return values from the function."""
        operands = tuple(operand(v) for v in values)
        types = tuple(type_of(o) or UNKNOWN for o in operands)
        if self._results is not None and len(self._results) != len(types):
            raise error("TG014", f"{len(types)} values are returned where {len(self._results)} are due")
        self._results = self._results or types
        self._out.append(Return(operands))

    def function(self) -> Function:
        """Return the function built so far."""
        if self._open:
            raise error("TG014", f"{self.name}: a loop or branch is still open")
        body = Block(tuple(self._out))
        return Function(
            self.name, tuple(self._params), self._results or (), body, dict(self._attrs), has_self=self._has_self
        )

    def program(self, name: str = "", *others: Function | Builder, dynamic: Sequence[str] = ()) -> Program:
        """Return a program of this function and the others, in a class ``name`` (bare functions: empty)."""
        functions = [f.function() if isinstance(f, Builder) else f for f in (*others, self)]
        return Program(name, tuple(functions), tuple(dynamic))

    # -- control flow ------------------------------------------------------------------------------------

    @contextmanager
    def range(
        self,
        *bounds: Any,
        carry: Mapping[str, Any] | None = None,
        var: str | None = None,
        kind: str = "range",
        results: Sequence[str] = (),
        **attrs: str,
    ) -> Iterator[Loop]:
        """Open a counted loop: ``(stop)``, ``(start, stop)`` or ``(start, stop, step)``.

        ``carry`` maps names of carried values to their initial values; ``kind`` is range, parallel, unroll,
        pipeline or spmd; further keywords are kept as texts.
        """
        given = tuple(operand(b) for b in bounds)
        if not 1 <= len(given) <= 3:
            raise error("TG005", f"a loop takes 1 to 3 bounds, got {len(given)}")
        limits = (index(0), given[0], index(1)) if len(given) == 1 else (*given, index(1))[:3]
        index_type = next((t for b in limits if (t := type_of(b)) is not None and t != scalar()), scalar())
        value = self._value(var, "i", index_type)
        loop = Loop(self, value, self._carried(carry or {}))
        with self._body(loop) as body:
            yield loop
        names = loop._close(results)
        self._out.append(For(kind, value, limits, loop.carried, body.block(), names, dict(attrs)))  # type: ignore[arg-type]

    @contextmanager
    def while_(self, carry: Mapping[str, Any], results: Sequence[str] = ()) -> Iterator[Loop]:
        """Open a loop that runs while ``loop.condition(...)``, set before anything else in it, holds."""
        loop = Loop(self, None, self._carried(carry))
        with self._body(loop) as body:
            self._in_head = True
            yield loop
        self._in_head = False
        if loop._head is None:
            raise error("TG014", "the loop has no condition", hint="call loop.condition(value) first in it")
        names = loop._close(results)
        head, cond = loop._head
        rest = Block(tuple(body.statements[len(head.statements) :]))
        self._out.append(While(loop.carried, head, cond, rest, names))

    def _carried(self, carry: Mapping[str, Any]) -> tuple[Carried, ...]:
        out = []
        for name, init in carry.items():
            start = operand(init)
            t = type_of(start)
            if t is None:
                raise error("TG014", f"{name} cannot be carried")
            out.append(Carried(Value(self._take(name), t), start))
        return tuple(out)

    @contextmanager
    def if_(self, cond: Any, results: Sequence[str] = ()) -> Iterator[Branch]:
        """Open a branch; inside it use ``with branch.then():`` and ``with branch.orelse():``."""
        test = operand(cond)
        branch = Branch(self)
        yield branch
        self._out.append(If(test, branch._then, branch._orelse, branch._close(results)))

    @contextmanager
    def scope(self, header: str) -> Iterator[None]:
        """Open a ``with`` scope; the header (``pl.at(level=...)``) is kept as it stands."""
        outer, self._out = self._out, []
        try:
            yield
        finally:
            inner, self._out = self._out, outer
        self._out.append(Scope(header, Block(tuple(inner))))

    def break_(self, *values: Any) -> None:
        """Leave the loop, handing on the carried values."""
        self._jump("break", values)

    def continue_(self, *values: Any) -> None:
        """Go on with the next round, handing on the carried values."""
        self._jump("continue", values)

    def _jump(self, kind: Any, values: Sequence[Any]) -> None:
        if values:
            self._out.append(Yield(tuple(operand(v) for v in values)))
        self._out.append(Jump(kind))

    @contextmanager
    def _body(self, owner: _Yields) -> Iterator[_Body]:
        body = _Body()
        outer, self._out = self._out, body.statements
        self._open.append(body)
        owner._given = None
        try:
            yield body
        finally:
            self._out = outer
            self._open.pop()
        if owner._given is not None:
            body.statements.append(Yield(owner._given))


class _Body:
    """Statements of an open block."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []

    def block(self) -> Block:
        return Block(tuple(self.statements))


class _Yields:
    """A construct whose blocks hand values on."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._given: tuple[Operand, ...] | None = None
        #: The values after the construct, once it is closed.
        self.results: tuple[Value, ...] = ()

    def yield_(self, *values: Any) -> None:
        """Hand values on; the last thing in the block."""
        if self._given is not None:
            raise error("TG014", "the block yields twice")
        self._given = tuple(operand(v) for v in values)

    def _name_results(self, types: Sequence[Type], names: Sequence[str]) -> tuple[Value, ...]:
        build = self._builder
        self.results = tuple(
            build._value(names[i] if i < len(names) else None, "result", t) for i, t in enumerate(types)
        )
        return self.results


class Loop(_Yields):
    """An open loop: its variable ``var``, the carried values ``args``, afterwards ``results``."""

    def __init__(self, builder: Builder, var: Value | None, carried: tuple[Carried, ...]) -> None:
        super().__init__(builder)
        self.var: Any = var
        self.carried = carried
        self.args = tuple(c.arg for c in carried)
        self._head: tuple[Block, Operand] | None = None

    def condition(self, cond: Any) -> None:
        """Set the condition of a while loop, from what has been computed in it so far."""
        self._head = (Block(tuple(self._builder._out)), operand(cond))
        self._builder._in_head = False

    def _close(self, names: Sequence[str]) -> tuple[Value, ...]:
        given = self._given or ()
        if len(given) != len(self.carried):
            raise error("TG014", f"{len(given)} values are yielded, {len(self.carried)} are carried")
        for c, o in zip(self.carried, given):
            join_types(c.arg.type, type_of(o), None, f"the carried value {c.arg.name}")
        return self._name_results([a.type for a in self.args], names)


class Branch(_Yields):
    """An open branch: ``then()`` and ``orelse()`` open its blocks, ``results`` are its values afterwards."""

    def __init__(self, builder: Builder) -> None:
        super().__init__(builder)
        self._then = Block(())
        self._orelse = Block(())
        self._yielded: list[tuple[Operand, ...]] = []

    @contextmanager
    def then(self) -> Iterator[None]:
        """Open the block that runs when the condition holds."""
        with self._builder._body(self) as body:
            yield
        self._then = self._end(body)

    @contextmanager
    def orelse(self) -> Iterator[None]:
        """Open the block that runs when the condition does not hold."""
        with self._builder._body(self) as body:
            yield
        self._orelse = self._end(body)

    def _end(self, body: _Body) -> Block:
        if not (body.statements and isinstance(body.statements[-1], Jump | Return)):
            self._yielded.append(self._given or ())
        return body.block()

    def _close(self, names: Sequence[str]) -> tuple[Value, ...]:
        ends = self._yielded
        if any(len(e) != len(ends[0]) for e in ends):
            raise error("TG014", "the branches yield different numbers of values")
        if len(ends) == 1 and ends[0] and not self._orelse.statements:
            raise error("TG014", "only one branch yields", hint="yield in branch.orelse() too")
        types = []
        for i, first in enumerate(ends[0] if ends else ()):
            t = type_of(first)
            for other in ends[1:]:
                t = join_types(t, type_of(other[i]), None, "the result of the branches")
            types.append(t or UNKNOWN)
        return self._name_results(types, names)


class _Namespace:
    """``b.tile``: the declared operations of a namespace, as methods."""

    def __init__(self, builder: Builder, space: str) -> None:
        self._builder = builder
        self._space = space

    def __getattr__(self, name: str) -> Callable[..., Any]:
        full = f"{self._space}.{name}"
        if full not in OPS:
            raise AttributeError(full)
        build = self._builder

        def add(*args: Any, name: str | None = None, type: Type | None = None, **kwargs: Any) -> Any:
            return build.op(full, *args, result=name, type=type, **kwargs)

        add.__doc__ = OPS[full].doc
        return add

    def __dir__(self) -> list[str]:
        return [n.rpartition(".")[2] for n in OPS if n.startswith(self._space + ".")]
