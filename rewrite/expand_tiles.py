"""Recipes of structured expansions on tiles: plain operations that take an operation's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..ir import lazy_numpy as np
from ..ir import mx
from ..ir.dtypes import FP8E4M3FN, FP8E8M0, INT16, INT32, UINT8, DType
from ..ir.infer import result_types, stored_attrs
from ..ir.op import OPS
from ..ir.ops.mx import groups_of, zz_workspace
from ..ir.program import Block, Const, Op, Value, index, walk
from ..ir.types import TensorType, TileType, Type, static, tile
from .region import own_uses


@dataclass
class Emitter:
    """Appends the operations of one expansion."""

    op: Op
    taken: set[str]
    #: Values that the program stores and does nothing else with.
    stored: frozenset[str] = frozenset()
    out: list[Op] = field(default_factory=list)

    def fresh(self, what: str) -> str:
        """Return a new name for an intermediate value."""
        stem = f"{self.op.results[0].name}__{what}_tmp"
        version = 0
        while f"{stem}_v{version}" in self.taken:
            version += 1
        self.taken.add(f"{stem}_v{version}")
        return f"{stem}_v{version}"

    def emit(self, name: str, what: str | Value | Sequence[str | Value], /, **given: Any) -> Any:
        """Append an operation by parameter names and return its value, or values.

        ``what`` names the result (or each of them); a :class:`Value` is given as it is, as the result itself.
        """
        decl = OPS[name]
        operands = tuple(given.pop(p.name, None) for p in decl.operand_params)
        attrs = stored_attrs(decl, given)
        types = result_types(decl, operands, attrs, self.op.span)
        assert types is not None
        wanted = (what,) if isinstance(what, str | Value) else tuple(what)
        results = tuple(self._result(w, t) for w, t in zip(wanted, types, strict=True))
        self.out.append(Op(name, operands, attrs, results, self.op.span))
        return results[0] if isinstance(what, str | Value) else results

    def _result(self, what: str | Value, t: Type) -> Value:
        return what if isinstance(what, Value) else Value(self.fresh(what), t)


Recipe = Callable[[Emitter, Op], None]
#: Layouts of tensors whose elements lie in the order of the matrix unit's boxes.
_BOXED = frozenset({"NZ", "MX_A_ZZ", "MX_B_NN"})


def stored_only(body: Block) -> frozenset[str]:
    """Return the names of tiles whose every use is a store into a tensor that lies row by row."""
    stored: set[str] = set()
    other: set[str] = set()
    for s in walk(body):
        plain = isinstance(s, Op) and s.name == "tile.store" and _lies_plainly(s)
        for name in own_uses(s):
            taken = plain and isinstance(s, Op) and getattr(s.operands[0], "name", None) == name
            (stored if taken else other).add(name)
    return frozenset(stored - other)


def _lies_plainly(s: Op) -> bool:
    t = getattr(s.operands[2], "type", None)
    return isinstance(t, TensorType) and t.layout not in _BOXED


def expand_tquant_mx(e: Emitter, op: Op) -> None:
    """Block-scaled quantisation as the raw instruction, the move of its exponents to ZZ order, and views.

    ``group_axis=0`` transposes the source first, and its scales are the ZZ tile under swapped dimensions. Scales that
    are only stored need no ZZ order on a target: the raw exponents lie as the tensor does.
    """
    data, scale = op.results
    source: Any = op.operands[0]
    axis: int = op.attrs["group_axis"]
    chosen = {k: v for k, v in op.attrs.items() if k in ("dtype", "scale_alg")}
    if axis == 0:
        source = e.emit("tile.transpose", "src_kn", tile=source, axis1=0, axis2=1)
    rows, cols = source.type.shape
    groups = tuple(map(index, groups_of(rows, cols, axis)))
    maximum, scaling = (
        e.emit("tile.create", what, shape=groups, dtype=source.type.dtype, target_memory="Vec")
        for what in ("max", "scaling")
    )
    dtype: DType = op.attrs.get("dtype", FP8E4M3FN)
    raw, exponents = e.emit(
        "tile.tquant_mx_raw", (data if dtype is not FP8E4M3FN else "dst", "exp"),
        src=source, max=maximum, scaling=scaling, group_axis=axis, **chosen,
    )  # fmt: skip
    if dtype is FP8E4M3FN:
        e.emit("tile.reinterpret_view", data, data=raw, dtype=dtype)
    if scale.name in e.stored:
        _plain_scales(e, scale, exponents)
        return
    room = (index(1), index(zz_workspace(rows, cols // mx.GROUP, axis)))
    tmp = e.emit("tile.create", "x2zz", shape=room, dtype=UINT8, target_memory="Vec")
    shape = {"dst_rows": rows, "dst_cols": cols // mx.GROUP} if axis == 1 else {}
    boxed = e.emit("tile.tmov_x2zz", "exp_zz", src=exponents, tmp=tmp, group_axis=axis, **shape)
    if axis == 1:
        e.emit("tile.reinterpret_view", scale, data=boxed, dtype=FP8E8M0)
        return
    turned = e.emit("tile.reinterpret_view", "scale_zz", data=boxed, dtype=FP8E8M0)
    e.emit("tile.transpose_view", scale, tile=turned)


def _plain_scales(e: Emitter, scale: Value, exponents: Value) -> None:
    """The raw exponents as scales in rows, under the scales' name."""
    t: Any = scale.type
    rows = exponents
    if static(t.shape) != static(exponents.type.shape):  # type: ignore[union-attr]
        rows = e.emit("tile.reshape", "exp_rows", tile=exponents, shape=tuple(map(index, static(t.shape) or ())))
    e.emit("tile.reinterpret_view", Value(scale.name, tile(t.shape, FP8E8M0)), data=rows, dtype=FP8E8M0)


def expand_scatter_update(e: Emitter, op: Op) -> None:
    """Rows replaced by number: a scatter by position, each position computed from its row's number.

    Leading dimensions are folded into rows; 8 and 16-bit elements take 16-bit positions.
    """
    operands: Any = op.operands
    target, rows, source = operands
    t: TileType = target.type
    shape_of: tuple[int, ...] = static(t.shape) or ()
    width, counts = shape_of[-1], static(rows.type.shape) or ()
    count = int(np.prod(counts))
    shape = (index(count), index(width))
    numbers: Any = e.emit("tile.reshape", "rows", tile=rows, shape=(index(count), index(1)))
    if numbers.type.dtype is not INT32:
        numbers = e.emit("tile.cast", "rows_i32", tile=numbers, target_type=INT32)
    like = e.emit("tile.full", "like", shape=shape, dtype=INT32, value=Const(0, INT32))
    spread = e.emit("tile.row_expand", "spread", target=like, row_vec=numbers)
    starts = e.emit("tile.muls", "starts", lhs=spread, rhs=Const(width, INT32))
    line = e.emit("tile.ci", "line", start=Const(0, INT32), shape=(index(1), index(width)), dtype=INT32)
    at = e.emit("tile.col_expand_add", "at", tile=starts, col_vec=line)
    if t.dtype.bits != 32:
        at = e.emit("tile.cast", "at_i16", tile=at, target_type=INT16, mode="trunc")
    flat, part = target, source
    if len(t.shape) > 2:
        folded = (index(int(np.prod(shape_of[:-1]))), index(width))
        flat = e.emit("tile.reshape", "target_rows", tile=target, shape=folded)
        part = e.emit("tile.reshape", "source_rows", tile=source, shape=shape)
    if len(t.shape) == 2:
        e.emit("tile.scatter", op.results[0], dst=flat, src=part, indexes=at)
        return
    written = e.emit("tile.scatter", "written", dst=flat, src=part, indexes=at)
    e.emit("tile.reshape", op.results[0], tile=written, shape=tuple(map(index, shape_of)))


def positions_fit(op: Op) -> bool:
    """Return whether all tiles are static and wholly valid, and every position fits the positions' type."""
    types = [o.type for o in op.operands if isinstance(o, Value) and isinstance(o.type, TileType)]
    if not all(static(t.shape) is not None and t.valid_shape == t.shape for t in types):
        return False
    return types[0].dtype.bits == 32 or int(np.prod(static(types[0].shape) or ())) <= 2**15
