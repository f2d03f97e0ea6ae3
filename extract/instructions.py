"""The assembler instruction an operation becomes, as targets and cost models see it."""

from __future__ import annotations

from typing import Any

from ..ir.dtypes import DType
from ..ir.op import Kind, OpDecl
from ..ir.ops.select import COMPARISONS
from ..ir.predicates import compares
from ..ir.types import TileType
from ..rules.cost import Instr, work_shape
from ..rules.target import Target

#: Attributes that targets ask for by their own name.
_WORDED = frozenset({"scale_alg", "group_axis"})


def instruction(decl: OpDecl, types: list[Any], result: Any, attrs: dict[str, Any]) -> Instr:
    """Return the assembler instruction an operation becomes, as targets and cost models see it."""
    tiles = [t for t in types if isinstance(t, TileType)]
    results = [result] if isinstance(result, TileType) else []
    mask_result = compares(decl.name)
    data = [t for p, t in zip(_tile_params(decl), tiles) if p != "mask"] or tiles or results
    shape_from = tiles if mask_result else [*tiles, *results]
    if decl.name == "tile.mask_not" and results:
        return _halfwords(decl, result)
    rows, cols, phys = work_shape([t for t in shape_from if t in data or t in results] or results)
    dtypes = tuple(t.dtype.name for t in (*data, *results))
    assert decl.pto is not None
    return Instr(decl.pto, dtypes, rows, cols, phys, _words(decl, attrs))


def work_dtype(decl: OpDecl, dtype: str) -> str:
    """Return the dtype of an instruction on tiles of a dtype: bytes of packed predicates are read two at a time."""
    return "UINT16" if decl.name == "tile.mask_not" else dtype


def row_form(pto: str, dtype: DType, target: Target) -> str | None:
    """Return the row reduction that reduces a column, which is one line of storage; ``None`` without the dtype."""
    name = pto.replace("tcol", "trow")
    return name if target.legal(name, dtype).ok else None


def fixed_words(decl: OpDecl) -> tuple[tuple[str, object], ...]:
    """Return what targets look at and every call of an operation has."""
    return (("to", "zz"),) if decl.name == "tile.tmov_x2zz" else ()


def _halfwords(decl: OpDecl, mask: Any) -> Instr:
    """Return the instruction on a packed predicate."""
    rows, cols, phys = work_shape([mask])
    assert decl.pto is not None
    return Instr(decl.pto, (work_dtype(decl, mask.dtype.name),) * 2, rows, (cols + 1) // 2, phys // 2)


def _words(decl: OpDecl, attrs: dict[str, Any]) -> tuple[tuple[str, object], ...]:
    """Return the attributes that targets and cost models look at."""
    words = list(fixed_words(decl))
    for name in ("cmp_type", "cmp_mode"):
        if name in decl.by_name:
            words.append(("cmp", COMPARISONS[attrs.get(name, 0)]))
    if attrs.get("high_precision"):
        words.append(("precision", "high"))
    for name in _WORDED & decl.by_name.keys():
        words.append((name, attrs.get(name, decl.defaults.get(name))))
    return tuple(sorted(words))


def _tile_params(decl: OpDecl) -> list[str]:
    return [p.name for p in decl.operand_params if p.kind is Kind.TILE]
