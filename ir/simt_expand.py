"""All-reduces expanded to what they are made of: butterfly shuffles, and the scalar operation that combines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .dtypes import INT32
from .ops.simt_collectives import COMBINES
from .program import (
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


def expand_collectives(program: Program) -> Program:
    """Return the program without all-reduces; one that has none is returned as it is."""
    if not any(isinstance(s, Op) and s.name in COMBINES for f in program.functions for s in walk(f.body)):
        return program
    return replace(program, functions=tuple(_Expansion(f).run() for f in program.functions))


class _Expansion:
    def __init__(self, f: Function) -> None:
        self.f = f
        self.taken = {p.value.name for p in f.params}
        self.taken.update(v.name for s in walk(f.body) for v in getattr(s, "results", ()))

    def run(self) -> Function:
        return replace(self.f, body=self.block(self.f.body))

    def block(self, block: Block) -> Block:
        return Block(tuple(new for s in block.statements for new in self.statement(s)))

    def statement(self, s: Statement) -> Iterator[Statement]:
        if isinstance(s, Op) and s.name in COMBINES and s.results:
            yield from self.expanded(s)
        else:
            yield with_blocks(s, self.block)

    def expanded(self, s: Op) -> Iterator[Statement]:
        """Yield a shuffle and a combination for each halving of the group."""
        value: Operand = s.operands[0]
        step = int(s.attrs.get("threads", 32)) // 2
        while step:
            other = Value(self.fresh(s.result.name, f"bfly{step}"), s.result.type)
            found = s.result if step == 1 else Value(self.fresh(s.result.name, f"step{step}"), s.result.type)
            yield Op("pto.shuffle_bfly", (value, Const(step, INT32)), {}, (other,), s.span)
            yield Op(f"scalar.{COMBINES[s.name]}", (value, other), {}, (found,), s.span)
            value = found
            step //= 2

    def fresh(self, stem: str, what: str) -> str:
        n = 0
        while f"{stem}__{what}_tmp_v{n}" in self.taken:
            n += 1
        name = f"{stem}__{what}_tmp_v{n}"
        self.taken.add(name)
        return name
