"""Composite operations: exact meanings for what no target has an instruction for; recipes take their place.

Sine and cosine take FP32 only; a selection takes a packed predicate, never a tile of 0/1 values, since the two
cannot be told apart by shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..dtypes import FP32, UINT8, DType
from ..op import AnyValue, Array, Call, Env, Tile, op
from ..packing import unpack_mask
from ..program import Const
from ..types import ScalarType, TensorType, TileType, Type, shape_text, static, tile
from ._math import scalar_like, through_double
from ._result import agree, agree_valid, is_mask_for, like_first, mask_of, require_literal_fits

COMPOSITE = "composites"
_RANGE = "arguments beyond 2**17 in magnitude (taken as exact), infinities (taken as NaN), the sign of zero"


#: The real functions that these composites round once; recipes are measured against them.
REAL: dict[str, Callable[[Any], Any]] = {"tile.sin": lambda x: np.sin(x), "tile.cos": lambda x: np.cos(x)}


def _fp32_only(call: Call) -> Type:
    t = call.type(0)
    if t.dtype is not FP32:
        call.fail(
            "TG007",
            f"takes FP32 only, got {t.dtype.name}",
            hint="cast first: pl.cast(x, target_type=pl.FP32)",
        )
    if isinstance(t, TensorType):
        return TensorType(t.shape, t.dtype, valid=t.valid)
    return like_first(call)


@op("tile.sin", result=_fp32_only, unified="sin", family=COMPOSITE, composite=True, target_defined=_RANGE)
def sin(tile: Tile) -> Any:
    """Sine, correctly rounded; recipes promise an absolute error of 1e-5 for |x| <= 2048 pi."""
    return through_double(REAL["tile.sin"], tile, FP32)


@op("tile.cos", result=_fp32_only, unified="cos", family=COMPOSITE, composite=True, target_defined=_RANGE)
def cos(tile: Tile) -> Any:
    """Cosine, correctly rounded; recipes promise an absolute error of 1e-5 for |x| <= 2048 pi."""
    return through_double(REAL["tile.cos"], tile, FP32)


@op("tensor.sin", result=_fp32_only, unified="sin", family=COMPOSITE, composite=True, target_defined=_RANGE)
def tensor_sin(input: Array) -> Any:
    """Sine of a whole tensor."""
    return through_double(np.sin, np.asarray(input), FP32)


@op("tensor.cos", result=_fp32_only, unified="cos", family=COMPOSITE, composite=True, target_defined=_RANGE)
def tensor_cos(input: Array) -> Any:
    """Cosine of a whole tensor."""
    return through_double(np.cos, np.asarray(input), FP32)


@op("tile.approx", result=like_first, family=COMPOSITE)
def approx(tile: Tile) -> Any:
    """The tile; no instruction. It marks a recipe's result, which is near the composite's value and not equal to it."""
    return tile


# -- select ----------------------------------------------------------------------------------------------


def _select_type(call: Call) -> Type:
    then, orelse = call.type(1), call.type(2)
    tiles = [t for t in (then, orelse) if isinstance(t, TileType)]
    for i, t in ((1, then), (2, orelse)):
        if not isinstance(t, TileType | ScalarType):
            name = call.decl.operand_params[i].name
            call.fail("TG006", f"{name} must be a tile or a literal, got {t or 'a list'}")
    if not tiles:
        call.fail(
            "TG006", "both branches are scalars",
            hint="one branch must be a tile: pl.tile.full(shape, dtype=..., value=...)",
        )  # fmt: skip
    chosen = tiles[0]
    if len(tiles) == 2:
        _same_branches(call, tiles[0], tiles[1])
    else:
        _literal_branch(call, 1 if isinstance(then, ScalarType) else 2, chosen)
    _packed(call, chosen)
    return tile(chosen.shape, chosen.dtype, chosen.valid, chosen.memory, chosen.layout)


def _same_branches(call: Call, a: TileType, b: TileType) -> None:
    if not agree(a.shape, b.shape):
        call.fail(
            "TG008",
            f"the branches have shapes {shape_text(a.shape)} and {shape_text(b.shape)}",
            reason="a selection reads both element by element and broadcasts neither",
            hint="broadcast the smaller one first: pl.tile.row_expand or pl.tile.col_expand",
        )
    if not agree_valid(a.valid_shape, b.valid_shape):
        call.fail(
            "TG008",
            f"the branches have valid shapes {shape_text(a.valid_shape)} and {shape_text(b.valid_shape)}",
            hint="give both the same valid shape: pl.tile.set_validshape",
        )
    if a.dtype is not b.dtype:
        call.fail(
            "TG007",
            f"the branches have dtypes {a.dtype.name} and {b.dtype.name}",
            reason="a selection moves elements of one dtype",
            hint=f"cast one first: pl.cast(x, target_type=pl.{a.dtype.name})",
        )


def _literal_branch(call: Call, i: int, t: TileType) -> None:
    o = call.operands[i]
    name = call.decl.operand_params[i].name
    if not isinstance(o, Const):
        call.fail(
            "TG006",
            f"the scalar branch {name} must be a literal",
            reason="only a literal can be spread over a tile (pl.tile.full)",
            hint="write the number, or make a tile of it first: pl.tile.expands(like, scalar)",
        )
    if t.dtype.is_coded or t.dtype.kind == "bool":
        call.fail("TG007", f"a scalar branch cannot be {t.dtype.name}", hint="give both branches as tiles")
    if isinstance(o.value, float) and not t.dtype.is_float:
        call.fail("TG007", f"the literal {o.value!r} does not suit {t.dtype.name} elements", hint="write an integer")
    require_literal_fits(call, i, t.dtype)
    if static(t.shape) is None:
        call.fail(
            "TG008",
            f"a scalar branch needs a static extent, got {shape_text(t.shape)}",
            reason="the literal may have to be spread over a tile of that shape",
            hint="give the tile a constant shape and a dynamic valid_shape",
        )


def _packed(call: Call, t: TileType) -> None:
    """Check that the condition is a packed predicate for the result."""
    mask = call.type(0)
    if is_mask_for(mask, t):
        return
    want = mask_of(t)
    looks_like_values = isinstance(mask, TileType) and agree_valid(mask.valid_shape, t.valid_shape)
    hint = (
        "a tile of values becomes a predicate by pl.tile.cmps(value, 0, cmp_type=1), that is value != 0"
        if looks_like_values or not isinstance(mask, TileType) or mask.dtype is not UINT8
        else "compare tiles of the branches' shape and valid shape: pl.tile.cmp or pl.tile.cmps"
    )
    call.fail(
        "TG008",
        f"the mask must be a packed predicate {want}, got {mask}",
        reason="a comparison writes one bit per element, eight to a byte; a tile of 0/1 values is no predicate",
        hint=hint,
    )


@op("tile.select", result=_select_type, unified="select", family=COMPOSITE, composite=True)
def select(mask: Tile, on_true: AnyValue, on_false: AnyValue, *, env: Env) -> Any:
    """on_true where the mask bit is 1, else on_false; one of them may be a literal."""
    dtype: DType = env.result.dtype
    sides = [
        x if isinstance(t, TileType) else scalar_like(x, dtype) for x, t in zip((on_true, on_false), env.types[1:])
    ]
    shape = next(x.shape for x in sides if isinstance(x, np.ndarray) and x.ndim)
    return np.where(unpack_mask(mask, shape[-1]), *sides)


@select.facts
def _(mask: vs.ValueSet, on_true: vs.ValueSet, on_false: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return vs.union(vs.scalar_like(on_true, call.dtype), vs.scalar_like(on_false, call.dtype), call=call)
