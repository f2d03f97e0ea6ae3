"""Casts whose annotation narrows the valid shape and that no instruction does: the cast, then the narrowing.

An operation with a narrower result than it gives stays out of e-graphs, so a cast of that kind would stay as it is
written. Cut in two, the cast is one like any other and becomes the best chain, and the narrowing is a view.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.op import OPS, Call
from ..ir.program import Op, Operand, Value, index
from ..ir.types import Dim, TileType
from ..rules.paths import roads
from ..rules.target import Target
from .expand_tiles import Emitter
from .region import narrowed


def splits(op: Op, target: Target | None, scope: Mapping[str, Value]) -> bool:
    """Return whether an operation is a narrowed cast that the target has no single instruction for.

    ``scope``: the scalars of the function by name, of which the narrow extents must be made.
    """
    if target is None or op.name != "tile.cast" or len(op.results) != 1 or "attrs" in op.attrs:
        return False
    source, t = op.operands[0], op.result.type
    if not isinstance(source, Value) or not isinstance(source.type, TileType) or not isinstance(t, TileType):
        return False
    if len(t.shape) != 2 or t.memref is not None or not narrowed(op, t):
        return False
    if not all(isinstance(d, int) or d in scope for d in t.valid_shape):
        return False
    words = {**OPS[op.name].defaults, **op.attrs}
    mode, saturation = words["mode"], words["saturation_mode"]
    found = roads(target, source.type.dtype, t.dtype, mode, saturation, max_hops=1, k=1)
    return not any(road.native for road in found)


def split(op: Op, taken: set[str], scope: Mapping[str, Value]) -> list[Op]:
    """Return the cast with the valid shape of its source, and the view with that of the annotation."""
    e, decl = Emitter(op, taken), OPS[op.name]
    whole = decl.result(Call(decl, op.operands, {**decl.defaults, **op.attrs}, op.span))
    assert isinstance(whole, TileType) and isinstance(op.result.type, TileType)
    cast = Value(e.fresh("whole"), whole)
    e.out.append(Op(op.name, op.operands, op.attrs, (cast,), op.span))
    rows, cols = (_extent(d, scope) for d in op.result.type.valid_shape)
    e.emit("tile.set_validshape", op.result, tile=cast, valid_rows=rows, valid_cols=cols)
    return e.out


def _extent(d: Dim, scope: Mapping[str, Value]) -> Operand:
    return index(d) if isinstance(d, int) else scope[d]
