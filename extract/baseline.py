"""The input's own lowering: every operation as written, every cast by its shortest chain. What we compare with."""

from __future__ import annotations

from ..ir.program import Block, Op, Operand, inner_blocks
from ..ir.types import TileType, with_dtype
from ..rules.paths import roads
from .price import Price, Pricer, Refusal


def plain_block(block: Block, pricer: Pricer) -> tuple[int, float]:
    """Return instruction count and cycles of a block's fixed lowering (illegal operations count nothing)."""
    count, cycles = 0, 0.0
    for s in block.statements:
        if isinstance(s, Op):
            n, c = plain_op(s, pricer)
            count, cycles = count + n, cycles + c
        for inner in inner_blocks(s):
            n, c = plain_block(inner, pricer)
            count, cycles = count + n, cycles + c
    return count, cycles


def plain_op(op: Op, pricer: Pricer) -> tuple[int, float]:
    """Return instruction count and cycles of one operation's fixed lowering."""
    if op.name == "tile.cast":
        return _plain_cast(op, pricer)
    price = pricer.written(op)
    return (0, 0.0) if isinstance(price, Refusal) else (price.instructions, price.cycles)


def _plain_cast(op: Op, pricer: Pricer) -> tuple[int, float]:
    result = op.result.type
    source = _tile(op.operands[0])
    assert isinstance(result, TileType)
    mode, saturation = op.attrs.get("mode", "round"), op.attrs.get("saturation_mode")
    if source.dtype is result.dtype:
        return 0, 0.0
    if pricer.target is None:
        return 1, 1.0
    found = roads(pricer.target, source.dtype, result.dtype, mode, saturation)
    if not found:
        return 0, 0.0
    count, cycles = 0, 0.0
    here = source
    for hop in found[0].hops:
        there = with_dtype(result, hop.dst)
        price = pricer.hop(here, there, hop.effective, hop.saturation)
        assert isinstance(price, Price)
        count, cycles, here = count + 1, cycles + price.cycles, there
    return count, cycles


def _tile(operand: Operand) -> TileType:
    t = getattr(operand, "type", None)
    assert isinstance(t, TileType)
    return t
