"""What markers depend on: where windows are written, which notifies release that, and what follows a wait.

Analyses of one function's control flow. Writes are followed backwards from every notify: a write is *dirty* until a
cacheinvalid of its window, *clean* until a fence, then published. Markers are taken for what they say: whether a
region is the right one is for the signal check to find out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..ir.op import OPS
from ..ir.ops.distributed_collectives import COLLECTIVES
from ..ir.program import (
    Block,
    For,
    Function,
    If,
    Jump,
    Op,
    Operand,
    Raw,
    Return,
    Scope,
    Statement,
    Value,
    While,
    Yield,
    flat_operands,
    inner_blocks,
)
from ..ir.types import TensorType

INVALID, FENCE = "system.cacheinvalid", "system.fence"
WAIT, NOTIFY = "pld.system.wait", "pld.system.notify"
#: Operation -> which operand it writes in global memory.
WRITTEN = {
    "tile.store": 2, "tensor.write": 0, "tile.mscatter": 2, "pld.tile.remote_store": 1, "pld.tile.put": 0,
    "pld.tile.get": 0,
}  # fmt: skip
#: Operations that read global memory besides those declared to.
_READS = frozenset({"pld.tile.put", "pld.tile.get", "call"})
_COLLECTIVES = frozenset(f"pld.tensor.{name}" for name in COLLECTIVES)


def is_read(s: Op) -> bool:
    """Return whether an operation reads elements of global memory."""
    decl = OPS.get(s.name)
    if decl is None or s.name in _READS:
        return s.name in _READS
    return decl.effect == "read" and decl.family not in ("views", "ranks and windows", "queries") and any(
        isinstance(getattr(o, "type", None), TensorType) for o in s.operands
    )


class Facts:
    """Which window each tensor of a function may be (``every``: which parameter), and which scalars are the rank."""

    def __init__(self, f: Function, every: bool = False) -> None:
        self._roots: dict[str, frozenset[str]] = {
            p.value.name: frozenset((p.value.name,)) for p in f.params
            if isinstance(p.value.type, TensorType) and (every or p.value.type.is_window)
        }  # fmt: skip
        self.windows = sorted(self._roots)
        self._own: set[str] = set()
        # A second round follows what loops carry back.
        for _ in range(2):
            self._block(f.body)

    def roots(self, o: Operand) -> frozenset[str]:
        """Return the windows a tensor may be (part of)."""
        return self._roots.get(o.name, frozenset()) if isinstance(o, Value) else frozenset()

    def releases(self, s: Op) -> bool:
        """Return whether an operation may tell another rank that data is there."""
        if s.name == NOTIFY:
            peer = s.operands[1]
            return not (isinstance(peer, Value) and peer.name in self._own)
        return s.name == "call" or s.name in _COLLECTIVES

    def written(self, s: Op) -> frozenset[str]:
        """Return the windows an operation writes."""
        at = WRITTEN.get(s.name)
        return frozenset() if at is None else self.roots(s.operands[at])

    def _block(self, block: Block) -> None:
        for s in block:
            match s:
                case Op():
                    self._op(s)
                case For() | While():
                    self._join([c.arg for c in s.carried], [c.init for c in s.carried])
                    for inner in inner_blocks(s):
                        self._block(inner)
                    given = list(_yielded(s.body))
                    self._join([c.arg for c in s.carried], given)
                    self._join(s.results, [*given, *(c.init for c in s.carried)])
                case If():
                    for inner in inner_blocks(s):
                        self._block(inner)
                        self._join(s.results, list(_yielded(inner)))
                case _:
                    for inner in inner_blocks(s):
                        self._block(inner)

    def _op(self, s: Op) -> None:
        self._join(s.results, list(flat_operands(s.operands)))
        own = s.name == "scalar.cast" and isinstance(s.operands[0], Value) and s.operands[0].name in self._own
        if own or s.name == "pld.system.rank":
            self._own.add(s.result.name)

    def _join(self, values: Sequence[Value], given: Sequence[Operand]) -> None:
        found = frozenset().union(*(self.roots(o) for o in given))
        for v in values:
            if found and isinstance(v.type, TensorType):
                self._roots[v.name] = self._roots.get(v.name, frozenset()) | found


def _yielded(block: Block) -> Iterator[Operand]:
    last = block.statements[-1] if block.statements else None
    if isinstance(last, Yield):
        yield from last.operands


# -- writes that a notify releases -------------------------------------------------------------------------

#: What becomes of a write: published in time or never released; released before a fence; before everything.
_SAFE, _HALF, _OPEN = 0, 1, 2
#: By window: the fate of a write that is dirty, and of one that is clean.
_Fate = dict[str, tuple[int, int]]


class Fates:
    """Follows the writes of a function to the notifies behind them."""

    def __init__(self, facts: Facts, called: bool) -> None:
        self.facts = facts
        self._released: _Fate = dict.fromkeys(facts.windows, (_OPEN, _HALF))
        self._end: _Fate = self._released if called else dict.fromkeys(facts.windows, (_SAFE, _SAFE))
        self._found: dict[int, int] = {}
        #: What was found for blocks, by block and what follows: loops ask again.
        self._known: dict[tuple[int, tuple[tuple[int, int], ...]], _Fate] = {}

    def unpublished(self, body: Block) -> frozenset[int]:
        """Return the writes, by identity, that some path leads to a notify with no marker on the way."""
        self._block(body, self._end)
        return frozenset(number for number, fate in self._found.items() if fate == _OPEN)

    def _block(self, block: Block, after: _Fate) -> _Fate:
        key = id(block), tuple(after[w] for w in self.facts.windows)
        if key not in self._known:
            for s in reversed(block.statements):
                after = self._statement(s, after)
            self._known[key] = after
        return self._known[key]

    def _statement(self, s: Statement, after: _Fate) -> _Fate:
        match s:
            case Op():
                return self._op(s, after)
            case For():
                now = after
                while (again := _worse(after, self._block(s.body, now))) != now:
                    now = again
                return now
            case While():
                now = self._block(s.head, after)
                while (again := self._block(s.head, _worse(after, self._block(s.body, now)))) != now:
                    now = again
                return now
            case If():
                return _worse(self._block(s.then, after), self._block(s.orelse, after))
            case Scope():
                return self._block(s.body, after)
            case Return():
                return self._end
            case Raw():
                return self._released
            case _:
                return after

    def _op(self, s: Op, after: _Fate) -> _Fate:
        if self.facts.releases(s):
            return self._released
        if s.name == FENCE:
            return {w: (dirty, _SAFE) for w, (dirty, _) in after.items()}
        if s.name == INVALID:
            cleaned = self.facts.windows if s.operands[0] is None else self.facts.roots(s.operands[0])
            return {w: (fate[1], fate[1]) if w in cleaned else fate for w, fate in after.items()}
        written = self.facts.written(s)
        if written:
            self._found[id(s)] = max(self._found.get(id(s), _SAFE), *(after[w][0] for w in written))
        return after


def _worse(a: _Fate, b: _Fate) -> _Fate:
    return {w: (max(a[w][0], b[w][0]), max(a[w][1], b[w][1])) for w in a}


# -- what follows a wait -----------------------------------------------------------------------------------

#: What may come first: ``"read"``, another ``"wait"``, ``"clean"`` (a cacheinvalid of everything), or ``"pass"``.
Outcomes = frozenset[str]
_PASS: Outcomes = frozenset(("pass",))


def outcomes(statements: Sequence[Statement]) -> Outcomes:
    """Return what may come first in statements; ``"pass"``: nothing of that kind."""
    found: set[str] = set()
    for s in statements:
        here = _of(s)
        found |= here - _PASS
        if "pass" not in here:
            return frozenset(found)
    return frozenset(found | _PASS)


def first(statements: Sequence[Statement], after: Outcomes) -> Outcomes:
    """Return what may come first in statements and, where they let it pass, behind them."""
    found = outcomes(statements)
    return (found - _PASS) | after if "pass" in found else found


def _of(s: Statement) -> Outcomes:
    match s:
        case Op():
            if is_read(s):
                return frozenset(("read",))
            if s.name == WAIT:
                return frozenset(("wait",))
            return frozenset(("clean",)) if s.name == INVALID and s.operands[0] is None else _PASS
        case For():
            return outcomes(s.body.statements) | _PASS
        case While():
            return first(s.head.statements, outcomes(s.body.statements) | _PASS)
        case If():
            return outcomes(s.then.statements) | outcomes(s.orelse.statements)
        case Scope():
            return outcomes(s.body.statements)
        case Jump() | Raw():
            return frozenset(("read",))
    return _PASS


