"""The region of global memory an operation writes, as operands of a ``system.cacheinvalid``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..ir.program import For, Function, Op, Value, While, defined, walk
from ..ir.types import Dim, ScalarType, TensorType, TileType
from .markers_flow import WRITTEN

if TYPE_CHECKING:
    from ..rules.collectives import Steps
    from ..rules.collectives.steps import Num


class Scalars:
    """Where the names in types have their values: scalars of a function, extents of its tensors."""

    def __init__(self, f: Function) -> None:
        self.values: dict[str, Value] = {}
        self.tensors: dict[str, tuple[Value, int]] = {}
        for p in f.params:
            self._enter(p.value)
            if isinstance(p.value.type, TensorType):
                for axis, d in enumerate(p.value.type.shape):
                    if isinstance(d, str):
                        self.tensors.setdefault(d, (p.value, axis))
        for s in walk(f.body):
            for r in defined(s):
                self._enter(r)
            if isinstance(s, For):
                self._enter(s.var)
            if isinstance(s, For | While):
                for c in s.carried:
                    self._enter(c.arg)

    def _enter(self, value: Value) -> None:
        if isinstance(value.type, ScalarType):
            self.values[value.name] = value

    def number(self, s: Steps, d: Dim) -> Num | None:
        """Return a dimension as a number or a value; ``None`` when it cannot be computed here."""
        if isinstance(d, int):
            return d
        try:
            return self._node(s, ast.parse(d.strip(), mode="eval").body)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def _node(self, s: Steps, node: ast.AST) -> Num | None:
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return value
            case ast.Name(id=name) if name in self.values:
                return s.index(self.values[name], name)
            case ast.Name(id=name) if name in self.tensors:
                return s.extent(*self.tensors[name])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _MATHS:
                return self._both(s, _MATHS[type(op)], left, right)
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[left, right], keywords=[]):
                return self._both(s, name, left, right)
        return None

    def _both(self, s: Steps, name: str, left: ast.AST, right: ast.AST) -> Num | None:
        a, b = self._node(s, left), self._node(s, right)
        return None if a is None or b is None else getattr(s, name)(a, b)


_MATHS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "div", ast.Mod: "mod",
}  # fmt: skip


def written_region(s: Steps, scalars: Scalars, op: Op) -> tuple[Value, list[Any], list[Any]]:
    """Return the tensor an operation writes, and shape and offsets of what it writes there.

    The whole tensor where the extents are not known in the function.
    """
    tensor = op.operands[WRITTEN[op.name]]
    assert isinstance(tensor, Value) and isinstance(tensor.type, TensorType)
    rank = len(tensor.type.shape)
    offsets, shape = _given(op, rank)
    if shape is None:
        dims = _valid(op, rank)
        known = [] if dims is None else [n for d in dims if (n := scalars.number(s, d)) is not None]
        if len(known) != rank:
            offsets, known = [0] * rank, [s.extent(tensor, i) for i in range(rank)]
        shape = known
    return tensor, list(shape), list(offsets)


def _given(op: Op, rank: int) -> tuple[Sequence[Any], Sequence[Any] | None]:
    """Return offsets and shape as far as they are operands."""
    operands: Any = op.operands
    match op.name:
        case "tile.store":
            return operands[1], operands[3]
        case "tensor.write":
            return operands[1], [1] * rank
        case "pld.tile.remote_store":
            return operands[3], None
        case "pld.tile.put" | "pld.tile.get" if operands[7] is not None:
            return operands[5], operands[7]
    return [0] * rank, None


def _valid(op: Op, rank: int) -> Sequence[Dim] | None:
    """Return the valid extents of the tile an operation stores, in the tensor's rank."""
    t = getattr(op.operands[0], "type", None)
    if op.name not in ("tile.store", "pld.tile.remote_store") or not isinstance(t, TileType):
        return None
    dims = list(t.valid_shape)
    while len(dims) > rank and dims[0] == 1:
        del dims[0]
    return [1] * (rank - len(dims)) + dims if len(dims) <= rank else None
