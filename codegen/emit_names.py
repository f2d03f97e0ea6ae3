"""Names in a function: the sizes it needs beside its parameters, and how often each name is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ..ir.program import Block, For, Function, If, Op, Return, Statement, Value, While, Yield, flat_operands, walk
from ..ir.types import Dim, ScalarType, TensorType, TileType, TupleType, Type

_NAME = re.compile(r"[A-Za-z_]\w*")


def extra_sizes(function: Function) -> tuple[str, ...]:
    """Return the sizes a function needs beside its parameters, in order of first appearance."""
    known = _known(function)
    found: dict[str, None] = {}
    for name in _mentioned(function):
        if name not in known and name not in _WORDS:
            found.setdefault(name)
    return tuple(found)


def unbound(function: Function) -> Iterator[tuple[Value, str]]:
    """Yield valid extents of windows that nothing gives a value at run time, with the window.

    Physical extents come with the tensor, scalars with the call; a name that only says what is valid does not.
    """
    bound = _known(function) | _WORDS
    for p in function.params:
        if isinstance(p.value.type, TensorType):
            bound |= {n for d in p.value.type.shape if isinstance(d, str) for n in _NAME.findall(d)}
    for p in function.params:
        if isinstance(p.value.type, TensorType) and p.value.type.is_window:
            for d in p.value.type.valid or ():
                if isinstance(d, str) and not bound.issuperset(_NAME.findall(d)):
                    yield p.value, d


def _known(function: Function) -> set[str]:
    known = {p.value.name for p in function.params}
    for s in walk(function.body):
        known.update(r.name for r in getattr(s, "results", ()))
        if isinstance(s, For):
            known.add(s.var.name)
        if isinstance(s, For | While):
            known.update(c.arg.name for c in s.carried)
    return known


#: Words of dimension expressions that are no sizes.
_WORDS = frozenset(("min", "max", "pl", "cast", "INDEX", "INT32", "INT64"))


def _mentioned(function: Function) -> Iterator[str]:
    for p in function.params:
        yield from _names_in(p.value.type)
    for s in walk(function.body):
        if isinstance(s, Op):
            for o in flat_operands(s.operands):
                if isinstance(o, Value) and isinstance(o.type, ScalarType):
                    yield o.name
        for r in getattr(s, "results", ()):
            yield from _names_in(r.type)


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


def use_counts(block: Block) -> Counter[str]:
    """Return how often each name is read in a block."""
    counts: Counter[str] = Counter()
    for s in walk(block):
        for name in own_uses(s):
            counts[name] += 1
    return counts


def own_uses(s: Statement) -> Iterator[str]:
    """Yield the names a statement reads itself, not those its blocks read."""
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
    for o in flat_operands(tuple(operands)):
        if isinstance(o, Value):
            yield o.name
