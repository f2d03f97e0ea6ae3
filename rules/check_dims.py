"""Shapes of rule instances: dims for windows, reshapes and constant tiles, tiles of several rows with vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..ir import lazy_numpy as np
from ..ir.convert import encode
from ..ir.dtypes import FP32, INDEX
from ..ir.op import OPS, Kind, OpDecl
from ..ir.ops.reduce import COL, ROW
from ..ir.program import Const
from ..ir.types import TileType, tile
from .rule import Term, Var
from .terms import child_params

if TYPE_CHECKING:
    from .check_eval import Valued

_ROWS = 8
#: Seeds of reshapes: to one row, and to the shape of the instance's tiles again.
IN_ONE_ROW, AS_BEFORE = 0, -2
#: Seeds from here on are of windows that have half of the rows, and then one row.
OF_SOME_ROWS, OF_A_ROW = 6, 8
#: The tile of an instance that has only numbers.
_ANY = tile((1, 16), FP32)
#: Parameters that take one value per row or per column.
_VECTORS = {"row_vec": "row", "col_vec": "col"}


def fill_lists(
    decl: OpDecl, seed: int, types: list[Any], values: Mapping[Var, Valued], known: list[Any], operands: list[Any]
) -> None:
    """Give the list operands of an operation dims that fit its tile: a window, another shape, the common shape."""
    lists = made_up_lists(decl, seed, *_extent([] if seed == AS_BEFORE else types, values))
    for i, p in enumerate(decl.operand_params):
        if p.kind is Kind.DIMS and p.name in lists:
            known[i] = tuple(Const(d, INDEX) for d in lists[p.name])
            operands[i] = lists[p.name]


def made_up_lists(decl: OpDecl, seed: int, rows: int, cols: int) -> dict[str, tuple[int, ...]]:
    """Return dims for the list operands of an operation on a tile of ``rows`` by ``cols``, by parameter name."""
    if decl.name == "tile.slice":
        half, some = max(cols // 2, 1), max(rows // 2, 1)
        height = 1 if seed >= OF_A_ROW else some if seed >= OF_SOME_ROWS else rows
        return {"shape": (height, half), "offset": (rows - some if height == some else 0, (cols - half) * (seed % 2))}
    if decl.name == "tile.reshape":
        if seed == AS_BEFORE:
            return {"shape": (rows, cols)}
        shapes = [(1, rows * cols), (rows * cols, 1), (cols, rows)]
        return {"shape": shapes[seed % len(shapes)]}
    return {"shape": (rows, cols)}


def _extent(types: list[Any], values: Mapping[Var, Valued]) -> tuple[int, int]:
    """Return rows and columns of the first tile operand, or of the instance's largest tile."""
    tiles = [t for t in types if isinstance(t, TileType)]
    if not tiles:
        known = [v.type for v in values.values() if isinstance(v.type, TileType)]
        tiles = [max(known, key=_count, default=_ANY)]
    rows, cols = (d for d in tiles[0].shape if isinstance(d, int))
    return rows, cols


def _count(t: TileType) -> int:
    rows, cols = (d for d in t.shape if isinstance(d, int))
    return rows * cols


def vectors(p: Any) -> dict[Var, str]:
    """Return the variables of a pattern that stand for one value per row or column."""
    found: dict[Var, str] = {}
    if isinstance(p, Term) and p.op in OPS:
        decl = OPS[p.op]
        for position, child in zip(child_params(decl), p.children):
            side = _VECTORS.get(decl.operand_params[position].name)
            if side is not None:
                found.update(dict.fromkeys(_leaves(child), side))
            found.update(vectors(child))
    return found


def reduces(p: Any) -> bool:
    """Tell whether a pattern reduces rows or columns to one value each."""
    return isinstance(p, Term) and p.op in OPS and (
        OPS[p.op].family in (ROW, COL) or any(map(reduces, p.children))
    )  # fmt: skip


def _leaves(p: Any) -> list[Var]:
    if isinstance(p, Var):
        return [p]
    # What is reshaped may have been of any other shape.
    return [v for c in p.children for v in _leaves(c)] if p.op in OPS and p.op != "tile.reshape" else []


def window_rows(codes: Mapping[Var, int], rows: int) -> int:
    """Return how many rows of a tile the windows of an instance have, which vectors with a value per row must have."""
    some = any(v.kind == "rest" and OF_SOME_ROWS <= code < OF_A_ROW for v, code in codes.items())
    return rows // 2 if some else rows


def in_rows(
    values: dict[Var, Valued], sides: Mapping[Var, str], codes: Mapping[Var, int], rng: np.random.Generator
) -> dict[Var, Valued]:
    """Return the values as tiles of several rows, those of ``sides`` with one value per row or column.

    Every other instance has zeros in the first row and column, so that zeros meet: of either sign, by the variable.
    """
    from .check_eval import Unfit, Valued

    out = dict(values)
    zeros = rng.random() < 0.5
    for v, value in values.items():
        if not isinstance(value.type, TileType):
            continue
        cols = value.size // _ROWS
        if not cols:
            raise Unfit
        flat = value.data.reshape(-1)[: _ROWS * cols]
        shape = {"row": (window_rows(codes, _ROWS), 1), "col": (1, cols)}.get(sides.get(v, ""), (_ROWS, cols))
        array = flat[: shape[0] * shape[1]].reshape(shape).copy()
        if zeros and value.dtype.is_float:
            array[0, 0] = array[-1, 0] = array[0, -1] = encode(np.array([rng.choice([0.0, -0.0])]), value.dtype)[0]
        out[v] = Valued(array, tile(shape, value.dtype))
    return out
