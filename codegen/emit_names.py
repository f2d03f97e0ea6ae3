"""Names in a function: the sizes it needs beside its parameters, and how often each name is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..ir.program import For, Function, If, Op, Operand, Return, Statement, Value, While, Yield, walk
from ..ir.types import Dim, ScalarType, TensorType, TileType, TupleType, Type

_NAME = re.compile(r"[A-Za-z_]\w*")


class Names:
    """The names of a function, found in one walk."""

    def __init__(self, function: Function) -> None:
        self._function = function
        params = [p.value for p in function.params]
        #: Names that have a value at run time.
        self.known = {v.name for v in params}
        #: How often each name is read.
        self.counts: Counter[str] = Counter()
        #: Names in types and scalar operands, in order of first appearance.
        self._mentioned: dict[str, None] = {}
        #: Types that name nothing new, by number: they repeat, and the function keeps them alive.
        self._types: set[int] = set()
        for v in params:
            self._type(v.type)
        for s in walk(function.body):
            self._statement(s)

    def _statement(self, s: Statement) -> None:
        counts = self.counts
        scalars = self._mentioned if s.__class__ is Op else None
        for v in _read(s):
            counts[v.name] += 1
            if scalars is not None and isinstance(v.type, ScalarType):
                scalars.setdefault(v.name)
        for r in getattr(s, "results", ()):
            self.known.add(r.name)
            self._type(r.type)
        if isinstance(s, For):
            self.known.add(s.var.name)
        if isinstance(s, For | While):
            self.known.update([c.arg.name for c in s.carried])

    def _type(self, t: Type) -> None:
        if id(t) not in self._types:
            self._types.add(id(t))
            for name in _names_in(t):
                self._mentioned.setdefault(name)

    def extra_sizes(self) -> tuple[str, ...]:
        """Return the sizes the function needs beside its parameters, in order of first appearance."""
        return tuple([name for name in self._mentioned if name not in self.known and name not in _WORDS])

    def unbound(self) -> Iterator[tuple[Value, str]]:
        """Yield valid extents of windows that nothing gives a value at run time, with the window.

        Physical extents come with the tensor, scalars with the call; a name that only says what is valid does not.
        """
        bound = self.known | _WORDS
        types = [(p.value, t) for p in self._function.params if isinstance(t := p.value.type, TensorType)]
        for _, t in types:
            bound |= {n for d in t.shape if isinstance(d, str) for n in _NAME.findall(d)}
        for value, t in types:
            for d in (t.valid or ()) if t.is_window else ():
                if isinstance(d, str) and not bound.issuperset(_NAME.findall(d)):
                    yield value, d


def extra_sizes(function: Function) -> tuple[str, ...]:
    """Return the sizes a function needs beside its parameters, in order of first appearance."""
    return Names(function).extra_sizes()


#: Words of dimension expressions that are no sizes.
_WORDS = frozenset(("min", "max", "pl", "cast", "INDEX", "INT32", "INT64"))


def _names_in(t: Type) -> Iterator[str]:
    match t:
        case TileType():
            dims: tuple[Dim, ...] = (*t.shape, *t.valid_shape)
        case TensorType():
            dims = (*t.shape, *(t.stride or ()), *(t.valid or ()))
        case TupleType():
            for item in t.items:
                yield from _names_in(item)
            return
        case _:
            return
    for d in dims:
        if isinstance(d, str):
            yield from _NAME.findall(d)


def own_uses(s: Statement) -> Iterator[str]:
    """Yield the names a statement reads itself, not those its blocks read."""
    for v in _read(s):
        yield v.name


def _read(s: Statement) -> list[Value]:
    operands: Sequence[Any] = ()
    match s:
        case Op() | Yield() | Return():
            operands = s.operands
        case For():
            operands = (*s.bounds, *(c.init for c in s.carried))
        case While():
            operands = (s.cond, *(c.init for c in s.carried))
        case If():
            operands = (s.cond,)
    found: list[Value] = []
    _values(operands, found)
    return found


def _values(operands: Sequence[Operand], found: list[Value]) -> None:
    for o in operands:
        if o.__class__ is Value:
            found.append(o)
        elif o.__class__ is tuple:
            _values(o, found)
