"""Whether a function uses a collective's window around the call so that the call needs one more round.

A push lands in a peer's window without asking; a broadcast's root may go on while others still copy from it. Both are
safe where a collective of all ranks lies between the call and the other use of the window, on every path.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...ir.op import OPS
from ...ir.ops.distributed_collectives import COLLECTIVES
from ...ir.program import Block, For, Function, If, Op, Statement, Value, While, Yield, inner_blocks
from ...ir.types import TensorType

_TARGET = {"allgather": 1, "all_to_all": 1, "all_to_all_v": 1}
#: Collectives at whose end no rank touches the window any more without another barrier.
_CLEAN = ("barrier", "allgather", "all_to_all", "all_to_all_v")
_PASSIVE = ("pld.system.get_comm_ctx", "tensor.dim", "tensor.view", "tensor.reshape", "tensor.slice")


class Reuse:
    """The uses of the windows of one function, in program order."""

    def __init__(self, f: Function) -> None:
        self._ops: list[tuple[Op, tuple[int, ...]]] = []
        self._spans: dict[int, tuple[int, int]] = {}
        self._loops: set[int] = set()
        self._roots: dict[str, frozenset[str]] = {}
        self._at: dict[int, int] = {}
        self._number = 0
        self._collect(f.body, ())

    def before(self, op: Op) -> bool:
        """Return whether the call's window may still be in use by a peer when the call pushes into it."""
        return _collective(op) in ("allgather", "all_to_all") and self._scan(op, -1, self._use_before)

    def after(self, op: Op) -> bool:
        """Return whether the call's window may be written after the call without a barrier between."""
        return _collective(op) == "broadcast" and self._scan(op, 1, self._use_after)

    # -- collecting --------------------------------------------------------------------------------------

    def _collect(self, block: Block, chain: tuple[int, ...]) -> None:
        for s in block:
            if isinstance(s, Op):
                self._alias(s)
                self._at[id(s)] = len(self._ops)
                self._ops.append((s, chain))
                continue
            if isinstance(s, For | While):
                # Rounds may exchange carried windows, so each may be any of them.
                self._follow([c.arg for c in s.carried], [c.init for c in s.carried])
            for inner in inner_blocks(s):
                self._enter(s, inner, chain)
            self._results(s)

    def _enter(self, s: Statement, block: Block, chain: tuple[int, ...]) -> None:
        number = self._number = self._number + 1
        start = len(self._ops)
        self._collect(block, (*chain, number))
        self._spans[number] = start, len(self._ops)
        if isinstance(s, For | While):
            self._loops.add(number)

    def _alias(self, s: Op) -> None:
        source = _window(s)
        if source is not None:
            self._follow([r for r in s.results if _is_window(r)], [source])

    def _results(self, s: Statement) -> None:
        if isinstance(s, For | While | If):
            ends = [b.statements[-1] for b in inner_blocks(s) if b.statements]
            given = [o for e in ends if isinstance(e, Yield) for o in e.operands]
            if isinstance(s, For | While):
                given += [c.init for c in s.carried]
            self._follow(s.results, given)

    def _follow(self, values: Sequence[Value], given: Sequence[Any]) -> None:
        """Note that each window among ``values`` may be any of the windows ``given``."""
        roots = frozenset().union(*(self._root(o) for o in given if _is_window(o)))
        self._roots.update((v.name, roots) for v in values if _is_window(v))

    def _root(self, v: Value) -> frozenset[str]:
        return self._roots.get(v.name, frozenset((v.name,)))

    # -- looking around ------------------------------------------------------------------------------------

    def _scan(self, op: Op, step: int, use: Any) -> bool:
        """Go from the call to the start (or end) of the function, and once around every loop it is in."""
        at = self._at[id(op)]
        _, chain = self._ops[at]
        target = _window(op)
        assert target is not None
        root = self._root(target)
        place = at + step
        for number in (*reversed(chain), None):
            start, end = (0, len(self._ops)) if number is None else self._spans[number]
            stop = start - 1 if step < 0 else end
            found = self._first(range(place, stop, step), chain, root, use)
            if found is not None:
                return found
            if number in self._loops:
                around = range(end - 1, at, -1) if step < 0 else range(start, at)
                if self._first(around, chain, root, use):
                    return True
            place = stop
        return False

    def _first(self, places: Iterable[int], chain: tuple[int, ...], root: frozenset[str], use: Any) -> bool | None:
        """Return whether the first thing met is a use (true) or a barrier that is always passed (false)."""
        for i in places:
            op, where = self._ops[i]
            found = use(op, root)
            if found is True or (found is False and where == chain[: len(where)]):
                return bool(found)
        return None

    def _touches(self, op: Op, root: frozenset[str]) -> bool:
        return any(self._root(v) & root for v in _windows(op))

    def _use_before(self, op: Op, root: frozenset[str]) -> bool | None:
        name = _collective(op)
        if name in _CLEAN or (name and not self._touches(op, root)):
            return False
        return True if op.name not in _PASSIVE and self._touches(op, root) else None

    def _use_after(self, op: Op, root: frozenset[str]) -> bool | None:
        name = _collective(op)
        if name and not (name == "all_to_all_v" and self._touches(op, root)):
            return False
        writes = op.name == "call" or (op.name in OPS and OPS[op.name].effect == "write")
        return True if writes and op.name not in _PASSIVE and self._touches(op, root) else None


def _collective(op: Op) -> str:
    name = op.name.removeprefix("pld.tensor.")
    return name if op.name != name and name in COLLECTIVES else ""


def _is_window(v: Any) -> bool:
    return isinstance(v, Value) and isinstance(v.type, TensorType) and v.type.is_window


def _windows(op: Op) -> list[Value]:
    return [o for o in op.operands if isinstance(o, Value) and _is_window(o)]


def _window(op: Op) -> Value | None:
    """Return the window an operation's result is, or the target of a collective."""
    at = _TARGET.get(_collective(op))
    if at is not None:
        o = op.operands[at]
        return o if isinstance(o, Value) else None
    return next(iter(_windows(op)), None)
