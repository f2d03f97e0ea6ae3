"""Tiles that are made only to give an expand its shape: nothing reads their elements, so they need no instruction.

``row_expand`` and ``col_expand`` take a target tile of which they use the shape alone. Kernels pass a tile of zeros
made for the purpose; it is replaced by a created tile, which costs nothing.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir.program import (
    Block,
    Const,
    Function,
    Op,
    Operand,
    Program,
    Statement,
    Value,
    walk,
    with_blocks,
)
from .region import own_uses

_SHAPED = frozenset({"tile.row_expand", "tile.col_expand", "tile.expands"})
_MADE = frozenset({"tile.full"})


def without_unread(program: Program) -> Program:
    """Return the program with such tiles created instead; the same object when there are none."""
    functions = tuple(map(_function, program.functions))
    if all(a is b for a, b in zip(functions, program.functions)):
        return program
    return replace(program, functions=functions)


def _function(f: Function) -> Function:
    statements = list(walk(f.body))
    made = {s.result.name for s in statements if isinstance(s, Op) and s.name in _MADE and len(s.results) == 1}
    if not made:
        return f
    shaped = {name for s in statements if isinstance(s, Op) and s.name in _SHAPED for name in _target(s)}
    read = {name for s in statements for name in _read(s)}
    unread = (made & shaped) - read
    return replace(f, body=_block(f.body, unread)) if unread else f


def _target(s: Op) -> list[str]:
    return [s.operands[0].name] if isinstance(s.operands[0], Value) else []


def _read(s: Statement) -> list[str]:
    """Return the names whose elements a statement reads."""
    if isinstance(s, Op) and s.name in _SHAPED:
        return [o.name for o in s.operands[1:] if isinstance(o, Value)]
    return own_uses(s)


def _block(block: Block, unread: set[str]) -> Block:
    return Block(tuple(_statement(s, unread) for s in block.statements))


def _statement(s: Statement, unread: set[str]) -> Statement:
    if isinstance(s, Op):
        return _created(s) if s.results and s.result.name in unread else s
    return with_blocks(s, lambda block: _block(block, unread))


def _created(s: Op) -> Op:
    shape: Operand = s.operands[0]
    assert isinstance(shape, tuple) and all(isinstance(d, Const | Value) for d in shape)
    return Op("tile.create", (shape,), {"dtype": s.attrs["dtype"]}, s.results, s.span)
