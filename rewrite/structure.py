"""Facts that types and literals tell: which operands of selections and comparisons are tiles, and which numbers."""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.program import Const, Op, Value
from ..ir.types import TileType
from ..rules.facts import OF_LITERALS, literal_holds
from ..rules.terms import DTYPE_CODES
from .encode import _literal_codes, shape_code
from .region import Region

_ASKING = frozenset({"tile.select", "tile.sel", "tile.sels", "tile.cmp", "tile.cmps"})


def structure_rows(region: Region) -> list[str]:
    """Return the rows of ``typed``, ``literal`` and ``nonzero``, and what literals are not (NaN, -0).

    For the operands of the region's selections and comparisons.
    """
    rows: dict[str, None] = {}
    number: dict[str, int] = {v.name: i for i, v in enumerate(region.leaves)}
    for i, op in enumerate(region.ops, len(region.leaves)):
        if op.name in _ASKING:
            rows.update(dict.fromkeys(_rows(op, number)))
        number[op.result.name] = i
    return list(rows)


def _rows(op: Op, number: dict[str, int]) -> Iterator[str]:
    for o in op.operands:
        if isinstance(o, Const):
            yield from _literal_rows(o)
        elif isinstance(o, Value) and o.name in number and isinstance(o.type, TileType):
            yield from _tile_rows(o.type, f"(val {number[o.name]})")


def _tile_rows(t: TileType, term: str) -> Iterator[str]:
    yield f"(typed {term} {DTYPE_CODES[t.dtype.name]} {shape_code(t)})"


def _literal_rows(c: Const) -> Iterator[str]:
    kind, bits = _literal_codes(c)
    term = f"(Lit {kind} {bits})"
    yield from (f"({relation} {term})" for relation in OF_LITERALS if literal_holds(relation, c.value))
