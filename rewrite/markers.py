"""Markers of memory consistency: what a notify releases is published, and what a wait guards is read anew.

Behind a write to a window that a later notify releases stand a ``system.cacheinvalid`` of the written region and a
``system.fence``; between a wait and the next read of global memory stands a ``system.cacheinvalid`` of everything,
behind the loop where the wait is in one that only waits. Each exactly once: where markers of the program itself serve
a write or a wait, none is added, so that adding markers twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.levels import INCORE, level_of
from ..ir.program import Block, For, Function, If, Op, Program, Scope, Statement, While, inner_blocks, walk
from ..ir.types import TensorType
from .markers_flow import FENCE, INVALID, WAIT, Facts, Fates, Outcomes, first, is_read, outcomes
from .markers_region import Scalars, written_region
from .names import names_of


def with_markers(program: Program) -> Program:
    """Return the program with the markers its kernels lack; the same object when they lack none.

    What a kernel that others call, or that an orchestration launches, leaves behind may be released, or read, next.
    """
    called = frozenset(
        str(s.attrs.get("callee")) for f in program.functions for s in walk(f.body)
        if isinstance(s, Op) and s.name == "call"
    )  # fmt: skip
    functions = tuple(_function(f, f.name in called) for f in program.functions)
    if all(a is b for a, b in zip(functions, program.functions)):
        return program
    return replace(program, functions=functions)


def places_markers(program: Program) -> bool:
    """Return whether a program contains markers."""
    return any(isinstance(s, Op) and s.name in (INVALID, FENCE) for f in program.functions for s in walk(f.body))


def _function(f: Function, called: bool) -> Function:
    windows = any(isinstance(p.value.type, TensorType) and p.value.type.is_window for p in f.params)
    if level_of(f) != INCORE or not windows:
        return f
    work = _Markers(f, called)
    body = work.block(f.body, frozenset(("read",) if called else ()))
    return replace(f, body=body) if work.added else f


class _Markers:
    """Adds the markers of one function; ``called``: its caller may release what it wrote, and read on."""

    def __init__(self, f: Function, called: bool) -> None:
        facts = Facts(f)
        self.taken = names_of(f)
        self.unpublished = Fates(facts, called).unpublished(f.body)
        self.scalars = Scalars(f)
        self.added = 0

    def block(self, block: Block, after: Outcomes) -> Block:
        """Return the block with its markers; ``after``: what may come first behind it."""
        out: list[Statement] = []
        for i, s in enumerate(block.statements):
            rest = block.statements[i + 1 :]
            made, waits = self._statement(s, rest, after)
            out.append(made)
            if isinstance(s, Op) and id(s) in self.unpublished:
                out += self._published(s)
            if waits and "read" in first(rest, after):
                out += self._marker(s)
        return block if len(out) == len(block.statements) and all(map(_same, out, block.statements)) else Block(
            tuple(out)
        )

    def _statement(self, s: Statement, rest: Sequence[Statement], after: Outcomes) -> tuple[Statement, bool]:
        """Return a statement with the markers inside, and whether it is a wait as a whole."""
        match s:
            case Op():
                return s, s.name == WAIT
            case For():
                waits, leave = _only_waits(s), first(rest, after)
                turns = leave if s.kind == "spmd" else leave | first(s.body.statements, leave)
                body = self.block(s.body, _NOTHING if waits else turns)
                return self._with(s, replace(s, body=body)), waits
            case While():
                waits, leave = _only_waits(s), first(rest, after)
                around = first(s.head.statements, leave | outcomes(s.body.statements))
                body = self.block(s.body, _NOTHING if waits else around)
                head = self.block(s.head, _NOTHING if waits else leave | first(s.body.statements, leave))
                return self._with(s, replace(s, head=head, body=body)), waits
            case If():
                leave = first(rest, after)
                then, orelse = self.block(s.then, leave), self.block(s.orelse, leave)
                return self._with(s, replace(s, then=then, orelse=orelse)), False
            case Scope():
                return self._with(s, replace(s, body=self.block(s.body, first(rest, after)))), False
        return s, False

    def _with(self, old: Statement, new: Statement) -> Statement:
        return old if all(map(_same, inner_blocks(old), inner_blocks(new))) else new

    # -- markers -----------------------------------------------------------------------------------------

    def _published(self, s: Op) -> list[Statement]:
        from ..rules.collectives import Context, Steps

        steps = Steps(s, self.taken, Context())
        tensor, shape, offsets = written_region(steps, self.scalars, s)
        steps.op(INVALID, tensor, shape, offsets)
        steps.op(FENCE)
        self.added += 1
        return steps.statements()

    def _marker(self, s: Statement) -> list[Statement]:
        self.added += 1
        return [Op(INVALID, (None, None, None), {}, (), getattr(s, "span", None))]


#: Behind a loop that only waits comes its own marker.
_NOTHING: Outcomes = frozenset()


def _same(a: object, b: object) -> bool:
    return a is b


def _only_waits(s: Statement) -> bool:
    """Return whether a loop waits but neither reads nor cleans."""
    ops = [x for b in inner_blocks(s) for x in walk(b) if isinstance(x, Op)]
    waits = any(x.name == WAIT for x in ops)
    return waits and not any(is_read(x) or (x.name == INVALID and x.operands[0] is None) for x in ops)
