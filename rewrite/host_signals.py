"""Signals that host programs leave out: an allreduce without one gets a private window.

Before the statement of the function's body that the call stands in, also where that is a loop: the number of ranks,
a buffer of ``world_size * core_num`` INT32 cells, and the window ``[world_size, core_num]``. The protocol clears its
cells, so one window serves every round. A ring needs an explicit signal (refused where the call is made).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..ir.dtypes import INT32
from ..ir.levels import HOST, level_of
from ..ir.program import Block, Function, Op, Program, Statement, Value, walk, with_blocks
from .names import names_of

if TYPE_CHECKING:
    from ..rules.collectives import Steps

_CALL = "pld.tensor.allreduce"
_CELL_BYTES = 4


def with_signals(program: Program) -> Program:
    """Return the program with explicit signals in its host functions; the same object when none is missing."""
    functions = tuple(_function(f) if level_of(f) == HOST else f for f in program.functions)
    if all(a is b for a, b in zip(functions, program.functions)):
        return program
    return replace(program, functions=functions)


def _missing(s: Statement) -> bool:
    return isinstance(s, Op) and s.name == _CALL and s.operands[1] is None


def _function(f: Function) -> Function:
    if not any(_missing(s) for s in walk(f.body)):
        return f
    taken = names_of(f)
    out: list[Statement] = []
    for s in f.body:
        made: list[Statement] = []
        changed = _with(s, taken, made)
        out += [*made, changed]
    return replace(f, body=Block(tuple(out)))


def _with(s: Statement, taken: set[str], made: list[Statement]) -> Statement:
    """Return a statement whose calls have signals; what makes these is appended to ``made``."""

    def inside(block: Block) -> Block:
        return Block(tuple(_with(x, taken, made) for x in block))

    if not isinstance(s, Op) or not _missing(s):
        return with_blocks(s, inside)
    from ..rules.collectives import Context, Steps

    steps = Steps(s, taken, Context())
    signal = _window(steps, int(s.attrs.get("core_num", 1)))
    made += steps.statements()
    return replace(s, operands=(s.operands[0], signal))


def _window(steps: Steps, cores: int) -> Value:
    ranks = steps.make("pld.system.world_size", "world_size")
    size = steps.mul(ranks, cores * _CELL_BYTES, "bytes")
    buffer = steps.make("pld.tensor.alloc_window_buffer", "signal_buffer", size)
    window: Value = steps.make("pld.tensor.window", "signal", buffer, [ranks, cores], dtype=INT32)
    return window
