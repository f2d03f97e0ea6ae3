"""Compare and select. A mask is a packed predicate: one bit per element, least significant bit first."""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..dtypes import UINT8
from ..op import REQUIRED, Call, Compare, Env, Scalar, Scratch, Tile, op
from ..packing import pack_mask, unpack_mask
from ..types import TileType, Type
from . import _math
from ._result import (
    compare,
    like_first,
    require_literal_fits,
    require_mask,
    require_same_dtype,
    require_same_shape,
)

FAMILY = "compare and select"
#: Comparison words by code.
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@op("tile.cmp", result=compare, pto="tcmp", unified="cmp", family=FAMILY,
    target_defined="comparisons with NaN (taken as IEEE: only NE holds)")  # fmt: skip
def cmp(lhs: Tile, rhs: Tile, cmp_type: Compare = 0) -> Any:
    """Packed predicate of an elementwise comparison."""
    return pack_mask(_math.compare(lhs, rhs, cmp_type))


@op("tile.cmps", result=compare, pto="tcmps", unified="cmp", family=FAMILY,
    target_defined="comparisons with NaN (taken as IEEE: only NE holds)")  # fmt: skip
def cmps(lhs: Tile, rhs: Scalar, cmp_type: Compare = 0, *, env: Env) -> Any:
    """Packed predicate of a comparison with a scalar."""
    return pack_mask(_math.compare(lhs, _math.scalar_like(rhs, env.dtype(0)), cmp_type))


def _predicate(call: Call) -> Type:
    t: TileType = call.type(0)
    if t.dtype is not UINT8:
        call.fail("TG007", f"takes a packed predicate (UINT8), got {t.dtype.name}", hint="compare first: pl.tile.cmps")
    return like_first(call)


@op("tile.mask_not", result=_predicate, pto="tnot", family=FAMILY)
def mask_not(mask: Tile) -> Any:
    """The complement of a packed predicate: of all its bits, computed two bytes at a time."""
    return np.invert(mask)


def _sel_type(call: Call) -> Type:
    require_same_shape(call, 1, 2)
    require_same_dtype(call, 1, 2)
    require_mask(call, 0, 1)
    return call.type(1)  # type: ignore[no-any-return]


@op("tile.sel", result=_sel_type, pto="tsel", family=FAMILY)
def sel(mask: Tile, lhs: Tile, rhs: Tile, tmp: Scratch = None) -> Any:
    """lhs where the mask bit is 1, else rhs."""
    return np.where(unpack_mask(mask, lhs.shape[-1]), lhs, rhs)


@sel.facts
def _(mask: vs.ValueSet, lhs: vs.ValueSet, rhs: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return vs.union(lhs, rhs, call=call)


def _sels_type(call: Call) -> Type:
    require_mask(call, 0, 1)
    require_literal_fits(call, 3, call.type(1).dtype)
    return call.type(1)  # type: ignore[no-any-return]


@op("tile.sels", result=_sels_type, pto="tsels", family=FAMILY)
def sels(mask: Tile, src: Tile, tmp: Scratch = None, scalar: Scalar = REQUIRED, *, env: Env) -> Any:
    """src where the mask bit is 1, else the scalar; without a scratch tile, writing assembly makes one."""
    return np.where(unpack_mask(mask, src.shape[-1]), src, _math.scalar_like(scalar, env.dtype(1)))


@sels.facts
def _(mask: vs.ValueSet, src: vs.ValueSet, scalar: vs.ValueSet, *, call: vs.Call) -> vs.ValueSet:
    return vs.union(src, vs.scalar_like(scalar, call.dtype), call=call)
