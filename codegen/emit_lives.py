"""Which names are read again: behind a statement, or in the rounds to come of the loops it stands in."""

from __future__ import annotations

from ..ir.program import Block, For, Op, Operand, Statement, Value, While, defined, flat_operands, inner_blocks


class Lives:
    """The reads of a function's values; statements are numbered in program order."""

    def __init__(self, body: Block) -> None:
        self._at: dict[int, int] = {}
        self._reads: dict[str, list[int]] = {}
        self._made: dict[str, int] = {}
        self._loops: list[tuple[int, int]] = []
        self._block(body)

    def _block(self, block: Block) -> None:
        for s in block.statements:
            at = self._at[id(s)] = len(self._at)
            for o in flat_operands(_operands(s)):
                if isinstance(o, Value):
                    self._reads.setdefault(o.name, []).append(at)
            for inner in inner_blocks(s):
                self._block(inner)
            if isinstance(s, For | While):
                self._loops.append((at, len(self._at)))
            for r in defined(s):
                self._made[r.name] = at

    def again(self, name: str, s: Statement) -> bool:
        """Return whether a value is read behind a statement, or in a later round of a loop around it."""
        at, reads = self._at[id(s)], self._reads.get(name, [])
        made = self._made.get(name, -1)
        return any(
            read > at or any(made <= start < at < end and start < read < end for start, end in self._loops)
            for read in reads
        )


def _operands(s: Statement) -> tuple[Operand, ...]:
    match s:
        case For(bounds=bounds, carried=carried):
            return (*bounds, *(c.init for c in carried))
        case While(carried=carried):
            return tuple(c.init for c in carried)
        case Op(operands=operands):
            return operands
    return (*getattr(s, "operands", ()), *([s.cond] if hasattr(s, "cond") else []))
