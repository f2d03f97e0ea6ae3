"""Two functions side by side: which values must be equal, and one e-graph in which both are written.

What stays in order (loads, stores, loops, branches) must be the same in both; the pure operations between may differ.
Values that statements in the same place define are one value; operands of such statements are what must be equal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..ir.diagnostics import Span, TileggError, error
from ..ir.op import OPS
from ..ir.program import (
    Block,
    For,
    Function,
    If,
    Op,
    Operand,
    Scope,
    Statement,
    Value,
    While,
    defined,
    inner_blocks,
)
from ..rewrite.knowledge import Knowledge
from ..rewrite.region import Region, names_in_types, regions
from ..rewrite.storage import changed, own_tiles

#: What the second function's values are called beside those of the first.
MARK = "′"


@dataclass
class Joined:
    """Two regions as one: the operations of both over common leaves, and the pairs of values to be equal."""

    first: tuple[Op, ...] = ()
    second: tuple[Op, ...] = ()
    leaves: dict[str, Value] = field(default_factory=dict)
    pairs: list[tuple[Value, Value]] = field(default_factory=list)

    def region(self) -> Region:
        """Return both as one region whose roots are the paired values."""
        ops = (*self.first, *self.second)
        made = {op.result.name for op in ops}
        roots = frozenset(v.name for pair in self.pairs for v in pair if v.name in made)
        return Region(ops, tuple(range(len(ops))), tuple(self.leaves.values()), roots)


@dataclass(frozen=True)
class Pairing:
    """The regions of two functions joined, and what is known about the values of both."""

    joined: list[Joined]
    knowledge: Knowledge
    #: Reads of the first function that the second one does without.
    unread: list[Op]


def paired(a: Function, b: Function, names: dict[str, str]) -> Pairing:
    """Pair two functions; ``names`` gives the second one's parameter for each of the first one's.

    Raises TG030 where the statements that stay in order differ, or the functions are too long for one e-graph a block.
    """
    work = _Pairing(a, b)
    work.same.update({names[p.value.name]: p.value for p in a.params})
    work.block(a.body, b.body)
    work.assign()
    knowledge = Knowledge(a)
    knowledge.ops.update({op.result.name: op for j in work.joined for op in j.second})
    knowledge.forget(work.ours(changed(b)))
    return Pairing(work.joined, knowledge, work.unread)


class _Pairing:
    def __init__(self, a: Function, b: Function) -> None:
        self.fixed_a, self.fixed_b = names_in_types(a), names_in_types(b)
        self.alone_a, self.alone_b = own_tiles(a, changed(a)), own_tiles(b, changed(b))
        self.same: dict[str, Operand] = {}
        self.joined: list[Joined] = []
        self.pairs: list[tuple[Value, Value]] = []
        self.home: dict[str, int] = {}
        self.unread: list[Op] = []
        self.first: dict[str, Value] = {}

    def ours(self, names: frozenset[str]) -> frozenset[str]:
        """Return the names that values of the second function have among those of both."""
        found = [self.same.get(name) for name in names]
        return frozenset(o.name for o in found if isinstance(o, Value))

    # -- statements ----------------------------------------------------------------------------------------

    def block(self, a: Block, b: Block) -> None:
        found_a, found_b = regions(a, self.fixed_a, self.alone_a), regions(b, self.fixed_b, self.alone_b)
        start = len(self.joined)
        if len(found_a) != len(found_b) and max(len(found_a), len(found_b)) > 1:
            raise _apart(f"{len(found_a)} and {len(found_b)} runs of operations without an effect between them")
        for i in range(max(len(found_a), len(found_b))):
            first = found_a[i] if i < len(found_a) else None
            ops, leaves = (first.ops, first.leaves) if first else ((), ())
            self.joined.append(Joined(ops, (), {v.name: v for v in leaves}))
            self.home.update({op.result.name: start + i for op in ops})
            self.first.update({op.result.name: op.result for op in ops})
        inside_a = {p for r in found_a for p in r.positions}
        inside_b = {p: start + i for i, r in enumerate(found_b) for p in r.positions}
        kept_a = [s for i, s in enumerate(a.statements) if i not in inside_a]
        self._second(b, inside_b, kept_a)

    def _second(self, b: Block, inside: dict[int, int], kept_a: list[Statement]) -> None:
        """Walk the second block: its pure operations are renamed, the others meet those of the first."""
        waiting = list(kept_a)
        for i, s in enumerate(b.statements):
            if i in inside:
                assert isinstance(s, Op)
                self._rename(s, inside[i])
                continue
            other = self._partner(s, waiting)
            if other is None:
                raise _apart(f"nothing in the first function stands for {_words(s)}", s)
            waiting.remove(other)
            self._meet(other, s)
        self.unread += [s for s in waiting if isinstance(s, Op) and _is_read(s)]
        needed = [s for s in waiting if not _is_read(s)]
        if needed:
            raise _apart(f"the first function has {_words(needed[0])}, the second one has not", needed[0])

    def _partner(self, s: Statement, waiting: list[Statement]) -> Statement | None:
        """Return the first function's statement for one of the second: the next one, reads in any order between."""
        if not _is_read(s):
            return next((w for w in waiting if not _is_read(w)), None)
        reads: list[Statement] = []
        for w in waiting:
            if not _is_read(w):
                break
            reads.append(w)
        exact = next((w for w in reads if self._same_read(w, s)), None)
        return exact or next((w for w in reads if isinstance(w, Op) and isinstance(s, Op) and _alike(w, s)), None)

    def _same_read(self, a: Statement, b: Statement) -> bool:
        assert isinstance(a, Op) and isinstance(b, Op)
        return _alike(a, b) and tuple(map(self.sub, b.operands)) == a.operands

    def _rename(self, op: Op, number: int) -> None:
        name = op.result.name + MARK
        operands = tuple(self._outer(self.sub(o), number) for o in op.operands)
        made = Op(op.name, operands, op.attrs, (Value(name, op.result.type),), op.span)
        self.same[op.result.name] = made.result
        self.home[name] = number
        joined = self.joined[number]
        joined.second = (*joined.second, made)
        for o in made.operands:
            if isinstance(o, Value) and self.home.get(o.name) != number:
                joined.leaves.setdefault(o.name, o)

    def _outer(self, o: Operand, number: int) -> Operand:
        """Return what stands for a value of another run of operations: the first function's of that name.

        The two must then be equal where they are computed.
        """
        if not isinstance(o, Value) or not o.name.endswith(MARK) or self.home.get(o.name) == number:
            return o
        mine = self.first.get(o.name.removesuffix(MARK))
        if mine is None or mine.type != o.type or self.home[mine.name] != self.home.get(o.name):
            return o
        self.pairs.append((mine, o))
        return mine

    def _meet(self, a: Statement, b: Statement) -> None:
        """Two statements are one: their operands must be equal, what they define is the same."""
        if type(a) is not type(b):
            raise _differ(a, b)
        match a, b:
            case Op(), Op():
                if not _alike(a, b):
                    raise _differ(a, b)
                self._operands(a.operands, b.operands, b)
            case For(), For():
                if a.kind != b.kind or len(a.carried) != len(b.carried):
                    raise _differ(a, b)
                self._operands(a.bounds, b.bounds, b)
                self.same[b.var.name] = a.var
            case If(), If():
                self._operands((a.cond,), (b.cond,), b)
            case Scope(), Scope():
                if a.header != b.header:
                    raise _differ(a, b)
            case _:
                if not hasattr(a, "operands") and not isinstance(a, While) and a != b:
                    raise _differ(a, b)
                self._operands(getattr(a, "operands", ()), getattr(b, "operands", ()), b)
        if isinstance(a, For | While) and isinstance(b, For | While):
            self._operands(tuple(c.init for c in a.carried), tuple(c.init for c in b.carried), b)
            self.same.update({d.arg.name: c.arg for c, d in zip(a.carried, b.carried)})
        for x, y in zip(inner_blocks(a), inner_blocks(b)):
            self.block(x, y)
        if isinstance(a, While) and isinstance(b, While):
            self._operands((a.cond,), (b.cond,), b)
        self.same.update({d.name: v for v, d in zip(defined(a), defined(b))})

    def _operands(self, a: tuple[Operand, ...], b: tuple[Operand, ...], where: Statement) -> None:
        if len(a) != len(b):
            raise _differ(where, where)
        for x, y in zip(a, map(self.sub, b)):
            if isinstance(x, tuple) and isinstance(y, tuple):
                self._operands(x, y, where)
            elif isinstance(x, Value) and isinstance(y, Value):
                if x.name != y.name:
                    self.pairs.append((x, y))
            elif x != y:
                both = f"{_operand(x)} in the first function, {_operand(y)} in the second"
                raise _apart(f"{_words(where)} has {both}", where)

    def sub(self, o: Operand) -> Operand:
        """Return an operand of the second function by the names of both."""
        if isinstance(o, tuple):
            return tuple(map(self.sub, o))
        return self.same.get(o.name, o) if isinstance(o, Value) else o

    # -- pairs ---------------------------------------------------------------------------------------------

    def assign(self) -> None:
        """Give every pair of values to the region that computes one of them; the other is computed there or a leaf."""
        for a, b in dict.fromkeys(self.pairs):
            at = {self.home[v.name] for v in (a, b) if v.name in self.home}
            if len(at) != 1:
                place = "no run of operations computes them" if not at else "they are computed in different blocks"
                raise _apart(f"{a.name} and {b.name.rstrip(MARK)} are to be equal, but {place}")
            joined = self.joined[at.pop()]
            joined.pairs.append((a, b))
            for v in (a, b):
                if v.name not in self.home:
                    joined.leaves.setdefault(v.name, v)


def _alike(a: Op, b: Op) -> bool:
    shapes = [[getattr(r.type, "shape", None) for r in op.results] for op in (a, b)]
    return a.name == b.name and a.attrs == b.attrs and len(a.operands) == len(b.operands) and shapes[0] == shapes[1]


def _is_read(s: Statement) -> bool:
    decl = OPS.get(s.name) if isinstance(s, Op) else None
    return decl is not None and decl.effect != "write" and isinstance(s, Op) and bool(s.results)


def _words(s: Statement) -> str:
    name = s.name if isinstance(s, Op) else type(s).__name__.lower()
    span: Span | None = getattr(s, "span", None)
    return f"{name} in line {span.line}" if span else name


def _operand(o: Operand) -> str:
    return getattr(o, "name", "") or str(getattr(o, "value", o))


def _differ(a: Statement, b: Statement) -> TileggError:
    return _apart(f"{_words(a)} of the first function meets {_words(b)} of the second", b)


def _apart(why: str, at: Any = None) -> TileggError:
    return error(
        "TG030", "the two programs differ in more than their pure operations", getattr(at, "span", None), reason=why,
        hint="loads, stores, loops and branches must be the same in both",
    )  # fmt: skip


def values_of(f: Function) -> Iterator[Op]:
    """Yield the operations of a function with one result."""
    stack = list(f.body.statements)
    while stack:
        s = stack.pop(0)
        if isinstance(s, Op) and len(s.results) == 1:
            yield s
        stack = [*(x for block in inner_blocks(s) for x in block.statements), *stack]
