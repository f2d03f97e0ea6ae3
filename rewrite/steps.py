"""Rows for steps with literals: chains of one operation, and numbers that change nothing (``rules/identities.py``).

Rows come from what a region contains, so that rules about such steps load for regions that have them. Whether rules
about repetitions and mirror images load is told here, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from ..ir.dtypes import DType
from ..ir.program import Const, Op, Value
from ..ir.types import TileType
from ..rules.computed import COMPUTED
from ..rules.identities import CHAINED_EXTREMES, CHAINED_FACTORS, CHAINED_INTEGERS, CHAINED_SHIFTS, NEUTRAL, chain_table
from ..rules.mirrors import COMMUTATIVE, SCALARS
from ..rules.terms import DTYPE_CODES, literal_codes, literal_value
from .region import Region

#: A literal and the dtype of the tile it meets.
Number = tuple[Const, DType]

_CHAINED = {f"tile.{n}": n for n in (*CHAINED_EXTREMES, *CHAINED_INTEGERS, *CHAINED_SHIFTS)}
#: Steps that are others of another number: which ones, and the table that gives the number.
_OTHERWISE = {"tile.subs": ("adds", "minus"), "tile.divs": ("muls", "inverse")}
#: Steps of a chain that are taken together.
_LONGEST = 4


def step_rows(region: Region) -> Iterator[tuple[str, Number]]:
    """Yield the rows for one operation with a literal after another, each with the number it gives."""
    steps: dict[str, tuple[str, tuple[Const, ...]]] = {}
    for op in region.ops:
        step = _step(op)
        if step is None:
            continue
        name, number = step
        before = steps.get(op.operands[0].name)  # type: ignore[union-attr]
        known = [number]
        dtype: DType = op.result.type.dtype  # type: ignore[union-attr]
        for first in before[1] if before is not None and before[0] == name else ():
            for table in CHAINED_FACTORS if name == "muls" and dtype.is_float else (chain_table(name),):
                row, found = _row(table, dtype, *_codes(first), *_codes(number))
                if found is not None:
                    yield row, (found, dtype)
                    known.append(found)
        steps[op.result.name] = (name, tuple(known[:_LONGEST]))


@lru_cache(maxsize=4096)
def _row(table: str, dtype: DType, *codes: int) -> tuple[str, Const | None]:
    """Return the row of two literals, given by their codes, and the literal it gives (``None``: there is no row)."""
    given = [Const(*literal_value(*codes[i : i + 2])) for i in (0, 2)]
    found = COMPUTED[table].function(*given, dtype)
    return ("", None) if found is None else (row_text(table, given, (DTYPE_CODES[dtype.name],), found), found[0])


def _codes(c: Const) -> tuple[int, int]:
    return literal_codes(c.value, c.dtype)


def _step(op: Op) -> tuple[str, Const] | None:
    """Return the operation and the literal of a step that chains have; a difference is a sum, a quotient a product."""
    name = _CHAINED.get(op.name) or _OTHERWISE.get(op.name, ("",))[0]
    if not name or not isinstance(op.operands[0], Value) or not isinstance(op.result.type, TileType):
        return None
    number, dtype = op.operands[1], op.result.type.dtype
    if not isinstance(number, Const) or (dtype.is_float and name not in (*CHAINED_EXTREMES, "muls")):
        return None
    if op.name not in _OTHERWISE:
        return name, number
    other = COMPUTED[_OTHERWISE[op.name][1]].function(number, dtype)
    return None if other is None else (name, other[0])


def neutral_rows(region: Region, made: Iterable[Number]) -> Iterator[str]:
    """Yield the rows of numbers that change nothing: literals of the region, and those that other rows give."""
    met: dict[tuple[str, DType], Const] = {}
    for number, dtype in (*_literals(region), *made):
        if number.value in (0, 1):
            met.setdefault((literal_text(number), dtype), number)
            if dtype.is_float and number.value == 0:  # x - 0 is x + -0
                less = Const(-float(number.value), number.dtype)
                met.setdefault((literal_text(less), dtype), less)
    for (_, dtype), number in met.items():
        for table in NEUTRAL:
            if COMPUTED[table].function(number, dtype) is not None:
                yield row_text(table, (number,), (DTYPE_CODES[dtype.name],), ())


def _literals(region: Region) -> Iterator[Number]:
    for op in region.ops:
        t = op.result.type
        if isinstance(t, TileType):
            yield from ((o, t.dtype) for o in op.operands if isinstance(o, Const) and o.dtype.kind != "bool")


#: Operations whose two last operands may be one value, and operations after which others say nothing new.
_PAIRED = frozenset(f"tile.{n}" for n in ("maximum", "minimum", "and_", "or_", "sel"))
_AFTER = {"tile.abs": ("tile.abs", "tile.neg"), "tile.relu": ("tile.relu", "tile.maximums", "tile.sels")}


def repeats(region: Region) -> bool:
    """Tell whether an operation follows itself or one it equals, or has operands that are or may become one value."""
    made: dict[str, str] = {}
    for op in region.ops:
        if op.name in _AFTER and made.get(_name(op.operands[0])) in _AFTER[op.name]:
            return True
        if op.name in _PAIRED:
            first, second = (_name(o) for o in op.operands[:3][-2:])
            if first == second or made.get(first, first) == made.get(second, second):
                return True
        made[op.result.name] = op.name
    return False


#: Operations that another one may equal but for its operands' order, and those whose magnitude may.
_EITHER = frozenset({*(f"tile.{n}" for n in (*COMMUTATIVE, "sub", "cmp")), *(f"scalar.{n}" for n in SCALARS)})


def mirrored(region: Region) -> bool:
    """Tell whether two operations may differ by the order of their operands only: there are two of a kind and dtype."""
    met = [(op.name, op.result.type.dtype) for op in region.ops if op.name in _EITHER]  # type: ignore[union-attr]
    return len(met) > len(set(met))


def _name(o: object) -> str:
    return o.name if isinstance(o, Value) else ""


def row_text(table: str, given: Iterable[Const], codes: Iterable[int], found: Iterable[Const]) -> str:
    """Return a row of a computed table as an e-graph fact."""
    return f"({' '.join([table, *map(literal_text, given), *map(str, codes), *map(literal_text, found)])})"


def literal_text(c: Const) -> str:
    """Return a literal as an e-graph term."""
    kind, bits = literal_codes(c.value, c.dtype)
    return f"(Lit {kind} {bits})"
