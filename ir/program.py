"""Programs: functions of SSA statements with structured control flow. A program is a value.

Equality is structural and ignores source spans, so ``parse(print(p)) == p`` can be asked literally.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal

from .diagnostics import Span
from .dtypes import INDEX, DType
from .types import ScalarType, Type, scalar

#: A compile-time operand of an operation: numbers, words, dtypes, or tuples of them.
Attr = Any


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value: a name, unique in its function, and a type."""

    name: str
    type: Type

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Const:
    """A literal scalar operand."""

    value: int | float | bool
    dtype: DType = INDEX

    @property
    def type(self) -> ScalarType:
        return scalar(self.dtype)

    def __eq__(self, other: object) -> bool:
        # repr tells -0.0 from 0.0, True from 1, and makes NaN equal to itself.
        if not isinstance(other, Const):
            return NotImplemented
        return self.dtype is other.dtype and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((repr(self.value), self.dtype.name))


@lru_cache(maxsize=4096)
def index(value: int) -> Const:
    """Return the INDEX literal ``value``."""
    return Const(value, INDEX)


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Source text tilegg keeps without understanding it."""

    text: str


Operand = Value | Const | Verbatim | tuple["Operand", ...] | None


@dataclass(frozen=True, slots=True)
class Op:
    """One operation: ``results = name(operands, **attrs)``.

    ``operands`` follow the declaration's operand order (``None``: an optional one left out);
    ``attrs`` holds only what deviates from the declared defaults.
    """

    name: str
    operands: tuple[Operand, ...]
    attrs: dict[str, Attr]
    results: tuple[Value, ...]
    span: Span | None = field(default=None, compare=False)

    @property
    def result(self) -> Value:
        return self.results[0]


@dataclass(frozen=True, slots=True)
class Block:
    """Statements in program order."""

    statements: tuple[Statement, ...]

    def __iter__(self) -> Iterator[Statement]:
        return iter(self.statements)


@dataclass(frozen=True, slots=True)
class Carried:
    """A loop-carried value: the block argument and its initial operand."""

    arg: Value
    init: Operand


@dataclass(frozen=True, slots=True)
class For:
    """A counted loop; ``kind`` is range, parallel, unroll, pipeline or spmd."""

    kind: str
    var: Value
    bounds: tuple[Operand, Operand, Operand]
    carried: tuple[Carried, ...]
    body: Block
    results: tuple[Value, ...]
    attrs: dict[str, Attr] = field(default_factory=dict)
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class While:
    """A loop that runs while ``cond`` (computed by ``head`` from the carried values) holds."""

    carried: tuple[Carried, ...]
    head: Block
    cond: Operand
    body: Block
    results: tuple[Value, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class If:
    """A branch; with results, both blocks end in a :class:`Yield` of as many values."""

    cond: Operand
    then: Block
    orelse: Block
    results: tuple[Value, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Scope:
    """A ``with`` block whose header is kept verbatim."""

    header: str
    body: Block
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Yield:
    """The values a loop body or a branch hands on."""

    operands: tuple[Operand, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    """The function's results."""

    operands: tuple[Operand, ...]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Jump:
    """``break`` or ``continue`` of the innermost sequential loop."""

    kind: Literal["break", "continue"]
    span: Span | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Raw:
    """A statement kept verbatim (dedented source lines)."""

    text: str
    span: Span | None = field(default=None, compare=False)


Statement = Op | For | While | If | Scope | Yield | Return | Jump | Raw

Direction = Literal["In", "Out", "InOut"]


@dataclass(frozen=True, slots=True)
class Param:
    """A function parameter and whether it is read, written or both."""

    value: Value
    direction: Direction = "In"


@dataclass(frozen=True, slots=True)
class Function:
    """A function: parameters, result types, body; ``attrs`` are the decorator's keywords, verbatim."""

    name: str
    params: tuple[Param, ...]
    results: tuple[Type, ...]
    body: Block
    attrs: dict[str, str] = field(default_factory=dict)
    span: Span | None = field(default=None, compare=False)
    has_self: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Program:
    """A program: a named class of functions, or bare functions when ``name`` is empty.

    ``dynamic`` lists the module-level ``pl.dynamic`` names; ``header`` the leading comment lines.
    """

    name: str
    functions: tuple[Function, ...]
    dynamic: tuple[str, ...] = ()
    header: tuple[str, ...] = ()

    def function(self, name: str) -> Function:
        """Return the function of that name; raises ``KeyError``."""
        for f in self.functions:
            if f.name == name:
                return f
        raise KeyError(name)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Show the text: what IPython and Hypothesis ask for."""
        from .text import print_program

        printer.text("\n" + print_program(self))


def require_program(given: object, caller: str, *also: type) -> None:
    """Raise ``TypeError`` where something else than a program, or one of ``also``, is given to a public function."""
    if not isinstance(given, (Program, *also)):
        kinds = " or ".join(t.__name__ for t in (Program, *also))
        own = isinstance(getattr(given, "program", None), Program)
        hint = "give its .program" if own else "read text with tilegg.parse(text, name) first"
        raise TypeError(f"{caller} takes a {kinds}, not {type(given).__name__}: {hint}")


def walk(block: Block) -> Iterator[Statement]:
    """Yield every statement of the block, nested ones included, in program order."""
    for s in block.statements:
        yield s
        if s.__class__ is not Op:
            for inner in inner_blocks(s):
                yield from walk(inner)


def inner_blocks(s: Statement) -> tuple[Block, ...]:
    """Return the blocks nested directly in a statement."""
    match s:
        case For() | Scope():
            return (s.body,)
        case While():
            return (s.head, s.body)
        case If():
            return (s.then, s.orelse)
        case _:
            return ()


def with_blocks(s: Statement, inside: Callable[[Block], Block]) -> Statement:
    """Return the statement with ``inside`` applied to each block nested directly in it, in program order."""
    match s:
        case For() | Scope():
            return replace(s, body=inside(s.body))
        case While():
            return replace(s, head=inside(s.head), body=inside(s.body))
        case If():
            return replace(s, then=inside(s.then), orelse=inside(s.orelse))
        case _:
            return s


def flat_operands(operands: tuple[Operand, ...]) -> Iterator[Value | Const | Verbatim]:
    """Yield the operands with lists flattened and absent ones dropped."""
    for o in operands:
        if isinstance(o, tuple):
            yield from flat_operands(o)
        elif o is not None:
            yield o


def defined(s: Statement) -> tuple[Value, ...]:
    """Return the values a statement defines in its own block."""
    return s.results if isinstance(s, Op | For | While | If) else ()
