"""Where all pipes have to be idle before a notify.

A notify runs on the scalar pipe and the assembler does not hold it back (v0.60): a load that is still under way when
the signal is seen may read what the peer then writes. So a ``pto.barrier <PIPE_ALL>`` stands before a notify to another
rank wherever vector or memory work may be in flight since the last barrier or fence, once before a loop that only
notifies.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.program import For, Function, If, Op, Scope, Statement, While, inner_blocks, walk
from ..rewrite.markers_flow import FENCE, Facts

#: Operations on tiles that start no work.
_PASSIVE = frozenset(
    f"tile.{name}" for name in (
        "create", "slice", "reshape", "reinterpret_view", "set_validshape", "assume", "get_block_idx", "get_block_num",
        "get_subblock_idx",
    )
)  # fmt: skip
_REMOTE = ("pld.tile.remote_load", "pld.tile.remote_store")
#: Operations behind which all pipes are idle; transfers end in a barrier of their own.
_DRAINED = (FENCE, "pld.tile.put", "pld.tile.get")


def drains_of(f: Function) -> frozenset[int]:
    """Return the statements of a function, by identity, before which a barrier stands."""
    if not any(isinstance(s, Op) and (s.name == "call" or s.name.startswith("pld.")) for s in walk(f.body)):
        return frozenset()
    work = _Drains(Facts(f))
    work.block(f.body.statements, False)
    return frozenset(work.found)


class _Drains:
    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.found: set[int] = set()
        self._known: dict[int, tuple[bool, bool]] = {}
        #: What loops were found to leave in flight, by loop, what they began with, and whether barriers were noted.
        self._loops: dict[tuple[int, bool, bool], bool] = {}

    def block(self, statements: Sequence[Statement], busy: bool, sure: bool = True) -> bool:
        """Follow statements; return whether work may be in flight behind them. ``sure``: note the barriers."""
        for s in statements:
            busy = self._statement(s, busy, sure)
        return busy

    def _statement(self, s: Statement, busy: bool, sure: bool) -> bool:
        notifies, works = self._kind(s)
        if notifies and (isinstance(s, Op) or not works):
            if busy and sure:
                self.found.add(id(s))
            return works
        match s:
            case Op():
                return works or (busy and s.name not in _DRAINED)
            case For() | While():
                return self._around(s, busy, sure)
            case If():
                then, orelse = (self.block(b.statements, busy, sure) for b in (s.then, s.orelse))
                return then or orelse
            case Scope():
                return self.block(s.body.statements, busy, sure)
        return busy

    def _around(self, s: For | While, busy: bool, sure: bool) -> bool:
        key = id(s), busy, sure
        if key not in self._loops:
            inner = [x for b in inner_blocks(s) for x in b]
            before = busy or self.block(inner, busy, False)
            self._loops[key] = self.block(inner, before, sure) or busy
        return self._loops[key]

    def _kind(self, s: Statement) -> tuple[bool, bool]:
        """Return whether a statement tells other ranks something, and whether it starts work."""
        found = self._known.get(id(s))
        if found is None:
            ops = [s] if isinstance(s, Op) else [x for b in inner_blocks(s) for x in walk(b) if isinstance(x, Op)]
            found = self._known[id(s)] = any(map(self.facts.releases, ops)), any(map(_works, ops))
        return found


def _works(s: Op) -> bool:
    return (s.name.startswith("tile.") and s.name not in _PASSIVE) or s.name in _REMOTE or s.name == "call"
