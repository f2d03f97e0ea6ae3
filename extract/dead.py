"""Reads and creations that nothing needs any more once a function has been lowered."""

from __future__ import annotations

from dataclasses import replace

from ..ir.program import Block, For, If, Op, Scope, Statement, Value, While, inner_blocks, walk
from ..rewrite.region import own_uses


def all_ops(block: Block) -> list[Op]:
    out: list[Op] = []
    for s in block.statements:
        if isinstance(s, Op):
            out.append(s)
        for inner in inner_blocks(s):
            out += all_ops(inner)
    return out


_DROPPABLE = frozenset({"tile.create", "tile.load", "tensor.read", "tensor.dim", "tensor.slice"})


def without_dead(block: Block, fixed: frozenset[str]) -> Block:
    """Drop reads and creations whose results nothing uses; what only they read goes too."""
    if not any(isinstance(s, Op) and s.name in _DROPPABLE for s in walk(block)):
        return block
    return _live(block, set(fixed))


def _live(block: Block, used: set[str]) -> Block:
    """Return the block without dead reads; ``used`` are the names read further down, and grows."""
    kept: list[Statement] = []
    for s in reversed(block.statements):
        if not isinstance(s, Op):
            s = _live_inside(s, used)
        elif s.name in _DROPPABLE and not any(r.name in used for r in s.results):
            continue
        used.update(own_uses(s))
        kept.append(s)
    return Block(tuple(reversed(kept)))


def _live_inside(s: Statement, used: set[str]) -> Statement:
    match s:
        case For() | Scope():
            return replace(s, body=_live(s.body, used))
        case While():
            used.update(o.name for o in (s.cond,) if isinstance(o, Value))
            body = _live(s.body, used)
            return replace(s, body=body, head=_live(s.head, used))
        case If():
            return replace(s, then=_live(s.then, used), orelse=_live(s.orelse, used))
        case _:
            return s
