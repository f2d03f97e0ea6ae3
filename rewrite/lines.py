"""Which tiles of a region gain on the target by standing as one row of all their elements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ..ir.dtypes import DTYPES, INDEX
from ..ir.op import OPS
from ..ir.program import Const, Op, Value
from ..ir.types import TileType, static
from ..rules.cost import Instr, cycles
from ..rules.facts import LAID
from ..rules.target import Target
from ..rules.terms import DTYPE_CODES, rest_code
from .encode import shape_code
from .region import Region

#: Elementwise operations that rules move to one row, and their instructions.
_MOVED = {
    f"tile.{n}": OPS[f"tile.{n}"].pto or ""
    for n in ("adds", "muls", "maximums", "minimums", "neg", "add", "sub", "mul", "div", "maximum", "minimum", "cast")
}
_MOVED["tile.col_expand_div"] = _MOVED["tile.div"]
#: Windows of tiles: a row of all elements would need a copy first.
_WINDOWS = frozenset({"tile.slice", "tile.set_validshape", "tile.transpose", "tile.transpose_view"})
_EXPDIF = OPS["tile.col_expand_expdif"].pto or ""

Shape = tuple[int, int]


def line_rows(region: Region, target: Target | None, narrowest: int) -> list[str]:
    """Return the rows of ``laid`` and its like: shapes of tiles without gaps that cost less as one row.

    ``narrowest``: the fewest bits of an element in the function. Tiles of one instruction have rows of as many
    elements, so that the rows of a wide tile have gaps where those of a narrow one (a mask, say) fill no whole block.
    """
    if target is None:
        return []
    rows: dict[str, None] = {}
    differences: set[str] = set()
    for op in region.ops:
        if op.name in _WINDOWS:
            return []
        t = op.result.type
        if op.name == "tile.sub":
            differences.add(op.result.name)
        if op.name in _MOVED and isinstance(t, TileType):
            rows.update(dict.fromkeys(_elementwise(op, t, target, narrowest)))
        elif op.name == "tile.exp" and getattr(op.operands[0], "name", "") in differences:
            rows.update(dict.fromkeys(_exponential(t, target, narrowest)))
    return list(rows)


def _elementwise(op: Op, t: TileType, target: Target, narrowest: int) -> Iterator[str]:
    shape = _whole(t)
    if shape is None or 1 in shape or not target.fills_blocks(shape[1], narrowest):
        return
    source = op.operands[0].type.dtype.name if isinstance(op.operands[0], Value) else t.dtype.name  # type: ignore[union-attr]
    for names in _narrow(_MOVED[op.name], source, t.dtype.name, shape, target):
        table, dtypes = ("laid", names[-1:]) if op.name != "tile.cast" else ("laid_cast", names)
        yield from _rows(table, dtypes, t, shape)


def _exponential(t: object, target: Target, narrowest: int) -> Iterator[str]:
    shape = _whole(t)
    if shape is None or (shape[1] > 1 and not target.fills_blocks(shape[1], narrowest)):
        return
    if isinstance(t, TileType) and _fuses(t.dtype.name, shape, target):
        yield from _rows("laid_exp", (t.dtype.name,), t, shape)


def _whole(t: object) -> Shape | None:
    """Return rows and columns of a fully valid tile in row-major order, ``None`` for others."""
    shape = static(t.shape) if isinstance(t, TileType) and t.valid is None and not t.layout else None
    return (shape[0], shape[1]) if shape is not None and len(shape) == 2 else None


@lru_cache(maxsize=4096)
def _narrow(op: str, source: str, result: str, shape: Shape, target: Target) -> tuple[tuple[str, str], ...]:
    """Return the dtypes with which an instruction costs less on one row: its own, or a last conversion's."""
    narrow = min(DTYPES[source], DTYPES[result], key=lambda d: d.bits)
    if not target.fills_blocks(shape[1], narrow.bits) or shape[1] * narrow.bits >= 8 * target.figure("repeat_bytes"):
        return ()
    pairs = [(source, result)]
    if op == "tcvt" and pairs[0] not in target.casts:
        # The chain that stands for it ends in a native conversion.
        pairs = [p for p in target.casts if p[1] == result and DTYPES[p[0]].bits < DTYPES[source].bits]
    return tuple(p for p in pairs if _gains(op, p, shape, target))


def _gains(op: str, dtypes: tuple[str, str], shape: Shape, target: Target) -> bool:
    rows, cols = shape
    if op != "tcvt" and not target.legal(op, dtypes[0]).ok:
        return False
    as_it_is, as_row = Instr(op, dtypes, rows, cols, cols), Instr(op, dtypes, 1, rows * cols, rows * cols)
    return cycles(target, as_row) < cycles(target, as_it_is)


@lru_cache(maxsize=1024)
def _fuses(name: str, shape: Shape, target: Target) -> bool:
    """Tell whether a difference and its exponential are cheaper as one instruction on one row."""
    count = shape[0] * shape[1]
    if shape[0] == 1 or not target.fills_blocks(shape[1] if shape[1] > 1 else count, DTYPES[name].bits):
        return False
    if not target.legal(_EXPDIF, name).ok:
        return False
    two = [cycles(target, Instr(op, (name, name), 1, count, count)) for op in ("tsub", "texp")]
    return cycles(target, Instr(_EXPDIF, (name, name, name), 1, count, count)) < sum(two)


def unused_tables(rows: list[str]) -> frozenset[str]:
    """Return the tables without a row: their rules need not be loaded."""
    return frozenset(LAID).difference(row[1 : row.index(" ")] for row in rows)


def _rows(table: str, dtypes: tuple[str, ...], t: TileType, shape: Shape) -> tuple[str, ...]:
    line = (1, shape[0] * shape[1])
    as_row = shape_code(TileType(line, t.dtype, None, t.memory))
    codes = f"{shape_code(t)} {_reshape(shape, line)} {as_row} {_reshape(line, shape)}"
    row = f"({table} {' '.join(str(DTYPE_CODES[n]) for n in dtypes)} {codes})"
    return (row,) if table == "laid_cast" else (row, f"(laid_row {codes})")


def _reshape(source: Shape, target: Shape) -> int:
    """Return the code of a reshape that only tiles of one shape undergo, so that another one can undo it."""
    dims = tuple(Const(n, INDEX) for n in target)
    return rest_code("tile.reshape", {}, (target, source), (None, dims))
