"""Markers with nothing left to do: on every path to them the same has been done, and nothing has changed since."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...ir.op import OPS
from ...ir.program import Block, For, If, Op, Program, Scope, Statement, Value, While, defined, flat_operands, walk
from ...rewrite.markers_flow import FENCE, INVALID, NOTIFY, is_read

#: What has been done: ``("all",)``, ``("fence",)``, or ``("region", tensor, shape, offsets)``.
_Done = frozenset[tuple[object, ...]]
_ALL, _FENCE = ("all",), ("fence",)


def doubled_markers(program: Program) -> list[Op]:
    """Return the markers of a program that repeat what has just been done, in program order.

    A write, a wait, a call, or a read (which fills the cache again) makes a marker worth its while.
    """
    work = _Doubled()
    for f in program.functions:
        work.block(f.body, frozenset())
    return [s for f in program.functions for s in walk(f.body) if isinstance(s, Op) and id(s) in work.found]


class _Doubled:
    def __init__(self) -> None:
        self.found: set[int] = set()
        self._looking = 0
        #: What has been done behind blocks, by block, what had been before, and whether that was sure.
        self._known: dict[tuple[int, _Done, bool], _Done] = {}

    def block(self, block: Block, done: _Done) -> _Done:
        key = id(block), done, not self._looking
        if key not in self._known:
            for s in block:
                done = self._statement(s, done)
            self._known[key] = done
        return self._known[key]

    def _statement(self, s: Statement, done: _Done) -> _Done:
        match s:
            case Op():
                return self._op(s, done)
            case For():
                return self._around(s, done, lambda now: (now, self.block(s.body, now)))
            case While():
                return self._around(s, done, lambda now: self._turn(s, now))
            case If():
                return self.block(s.then, done) & self.block(s.orelse, done)
            case Scope():
                return self.block(s.body, done)
        return done

    def _turn(self, s: While, now: _Done) -> tuple[_Done, _Done]:
        left = self.block(s.head, now)
        return left, self.block(s.body, left)

    def _around(self, s: For | While, done: _Done, turn: Callable[[_Done], tuple[_Done, _Done]]) -> _Done:
        """Return what has been done whenever the loop ends; its own values are others in every round."""
        names = set(_inside(s))
        self._looking += 1
        while (again := done & _without(turn(done)[1], names)) != done:
            done = again
        self._looking -= 1
        return _without(turn(done)[0], names)

    def _op(self, s: Op, done: _Done) -> _Done:
        if s.name == INVALID:
            tensor = s.operands[0]
            key = _ALL if tensor is None else ("region", getattr(tensor, "name", tensor), *s.operands[1:])
            self._see(s, key in done or _ALL in done)
            return done - {_FENCE} | {key}
        if s.name == FENCE:
            self._see(s, _FENCE in done)
            return done | {_FENCE}
        if s.name == NOTIFY:
            return done - {_FENCE}
        decl = OPS.get(s.name)
        if is_read(s):
            done = done & {_FENCE}
        return frozenset() if decl is None or decl.effect == "write" else done

    def _see(self, s: Op, repeated: bool) -> None:
        if repeated and not self._looking:
            self.found.add(id(s))


def _without(done: _Done, names: set[str]) -> _Done:
    """Drop regions that values of a loop describe."""
    return frozenset(k for k in done if not names & set(_names(k)))


def _names(key: tuple[object, ...]) -> Iterator[str]:
    for part in key[1:]:
        if isinstance(part, str):
            yield part
        elif isinstance(part, tuple):
            yield from (o.name for o in flat_operands(part) if isinstance(o, Value))


def _inside(s: For | While) -> Iterator[str]:
    yield from (c.arg.name for c in s.carried)
    if isinstance(s, For):
        yield s.var.name
    for block in (s.body,) if isinstance(s, For) else (s.head, s.body):
        for x in walk(block):
            yield from (r.name for r in defined(x))
            if isinstance(x, For):
                yield x.var.name
            if isinstance(x, For | While):
                yield from (c.arg.name for c in x.carried)
