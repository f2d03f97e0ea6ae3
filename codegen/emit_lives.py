"""Which names are read again: behind a statement, or in the rounds to come of the loops it stands in."""

from __future__ import annotations

from ..ir.program import Block, For, Statement, While, defined, inner_blocks
from ..rewrite.region import own_uses


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
            for name in own_uses(s):
                self._reads.setdefault(name, []).append(at)
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
