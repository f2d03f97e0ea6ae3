"""Blocks of one rank: they run at once on the chip, one after the other here, in ascending and in descending order.

What goes wrong in an order that ends is a fault. A run that hangs in one order and ends in the other tells nothing of
blocks that run at once. A clean answer says which orders were looked at, and is never a proof.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...ir.program import Block, Const, For, Op, Program, Scope, Statement, inner_blocks, walk
from ...ir.ranks_flow import communicates, suspending
from ...ir.ranks_lines import launched
from .fitting import Part
from .report import Setting, SignalFinding

IN_TURN = "the blocks of a rank were run one after the other, in ascending and in descending order, never at once"
ONE_ORDER = "the blocks of a rank were run one after the other, in {} order alone, never at once"


def splits(program: Program) -> bool:
    """Return whether several blocks of one rank touch windows, notify or wait."""
    talking = suspending(program.functions)
    return any(
        _several(s) and any(_talks(b, talking) for b in inner_blocks(s))
        for f in program.functions for s in walk(f.body)
    )  # fmt: skip


def _several(s: Statement) -> bool:
    """Return whether a statement runs its body as more than one block, as far as the text tells."""
    if isinstance(s, For):
        if s.kind != "spmd":
            return False
        start, stop, step = (b.value if isinstance(b, Const) else None for b in s.bounds)
        known = isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step != 0
        return not known or len(range(start, stop, step)) > 1  # type: ignore[arg-type]
    count = launched(s.header) if isinstance(s, Scope) else None
    return count is not None and count not in ("0", "1")


def _talks(block: Block, talking: frozenset[str]) -> bool:
    ops = (s for s in walk(block) if isinstance(s, Op))
    return any(communicates(s) or (s.name == "call" and s.attrs.get("callee") in talking) for s in ops)


def in_both_orders(check: Callable[[Setting], Part], setting: Setting) -> tuple[Part, tuple[str, ...]]:
    """Return the check of a setting with the blocks in the order that shows more, and what limits the answer."""
    up = check(setting)
    if up.findings and not any(map(_hung, up.findings)):
        return up, (ONE_ORDER.format("ascending"),)
    down = check(replace(setting, descending=True))
    failed = any(x.word == "unchecked" for x in down.findings)
    if failed:
        return up, (ONE_ORDER.format("ascending"),)
    hung = any(map(_hung, down.findings))
    if not up.findings:
        return (up, (IN_TURN, _waits("descending", down))) if hung else (down if down.findings else up, (IN_TURN,))
    return (up, (IN_TURN,)) if hung else (down, (IN_TURN, _waits("ascending", up)))


def _hung(f: SignalFinding) -> bool:
    return f.witness is not None and f.witness.expect.kind == "stuck"


def _waits(order: str, part: Part) -> str:
    place = next((p for f in part.findings if _hung(f) for p in f.places()), None)
    where = f" at line {place.line}" if place is not None else ""
    return f"in {order} order a block waits{where} for one that has not started: not judged"
