"""Rows for constant folding: a walk over a region's constant tiles (see ``rules/folding.py``)."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.dtypes import DType
from ..ir.program import Const, Op, Value
from ..ir.types import TileType
from ..rules.computed import COMPUTED
from ..rules.folding import FOLDED_ALONE, FOLDED_SCALAR, converted
from ..rules.terms import DTYPE_CODES
from .encode import argument_codes
from .region import Region
from .steps import Number, mirrored, neutral_rows, repeats, row_text, step_rows

#: Operations that make a constant tile, and the operand that is the number.
_CONSTANT = {"tile.full": -1, "tile.expands": 1}
_SCALAR = {f"tile.{n}": n for n in FOLDED_SCALAR}
_ALONE = {f"tile.{n}": n for n in FOLDED_ALONE}
#: Operations between tiles that other rules turn into one with a scalar where the second tile is constant.
_TILES = {f"tile.{n.removesuffix('s')}": n for n in FOLDED_SCALAR}


def folded_rows(region: Region) -> list[str]:
    """Return the rows of the folding tables: for what constant tiles alone give, and for steps with literals."""
    rows = dict(_constant_rows(region))
    steps = dict(step_rows(region))
    neutral = neutral_rows(region, [*rows.values(), *steps.values()])
    return [*rows, *steps, *neutral, *["(repeats)"] * repeats(region), *["(mirrored)"] * mirrored(region)]


def _constant_rows(region: Region) -> Iterator[tuple[str, Number]]:
    """Yield the rows for what a region computes from constant tiles alone, each with the number it gives."""
    known: dict[str, Const] = {}
    for op in region.ops:
        if not isinstance(op.result.type, TileType):
            continue
        if op.name in _CONSTANT:
            number = op.operands[_CONSTANT[op.name]]
            if isinstance(number, Const) and number.dtype.kind != "bool":
                known[op.result.name] = number
        elif known:
            for row, number in _row(op, known):
                yield row, (number, op.result.type.dtype)
                known[op.result.name] = number


def _row(op: Op, known: dict[str, Const]) -> Iterator[tuple[str, Const]]:
    first = _number(op.operands[0], known) if op.operands else None
    if first is None or isinstance(op.operands[0], Const):
        return
    dtype: DType = op.result.type.dtype  # type: ignore[union-attr]
    if op.name == "tile.cast":
        codes = argument_codes(op)
        given = (codes[2], codes[0], codes[3], codes[4])
        yield from _made("converted", (first,), converted(first, *given), given)
    elif op.name in _ALONE:
        table = f"folded_{_ALONE[op.name]}"
        yield from _made(table, (first,), COMPUTED[table].function(first, dtype), (DTYPE_CODES[dtype.name],))
    elif op.name in _SCALAR or op.name in _TILES:
        second = _number(op.operands[1], known)
        if second is not None:
            table = f"folded_{_SCALAR.get(op.name) or _TILES[op.name]}"
            found = COMPUTED[table].function(first, second, dtype)
            yield from _made(table, (first, second), found, (DTYPE_CODES[dtype.name],))


def _number(o: object, known: dict[str, Const]) -> Const | None:
    if isinstance(o, Const):
        return o
    return known.get(o.name) if isinstance(o, Value) else None


def _made(
    table: str, given: tuple[Const, ...], found: tuple[Const, ...] | None, codes: tuple[int, ...]
) -> Iterator[tuple[str, Const]]:
    if found is not None:
        yield row_text(table, given, codes, found), found[0]
