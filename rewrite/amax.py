"""Amax scaling: ``x * (c / max(rowmax(|x|), eps))`` is bounded by ``c``, which no interval alone can see.

The idiom of every integer quantisation epilogue: the scale of a row (or column) is a constant divided by the
largest magnitude of that row, so the scaled row stays within the constant up to a few roundings.
"""

from __future__ import annotations

from ..ir.op import OPS
from ..ir.program import Const, Op, Operand, Value

Definitions = dict[str, Op]

_SAME = {"tile.reshape", "tile.set_validshape", "tile.move", "tile.assume"}
_AXIS = {
    "tile.row_expand_mul": ("row", "mul"), "tile.col_expand_mul": ("col", "mul"),
    "tile.row_expand_div": ("row", "div"), "tile.col_expand_div": ("col", "div"),
}  # fmt: skip


def scaled_bound(op: Op, ops: Definitions) -> tuple[float, bool] | None:
    """Return a bound on the magnitude of ``op``'s elements if it is amax scaling, and whether it is finite.

    The bound allows for the roundings of the scale and the product: a factor ``1 + 2^(4-p)`` for p
    significand bits. It holds for every result that is a number; NaN may always occur.
    """
    if op.name not in _AXIS:
        return None
    axis, how = _AXIS[op.name]
    x, vector = op.operands[0], op.operands[1]
    limit = _scale(vector, how, ops)
    if limit is None:
        return None
    constant, magnitude = limit
    floor, tile = _amax(magnitude, axis, ops)
    if tile is None or _strip(tile, ops) != _strip(x, ops):
        return None
    precision = op.result.type.dtype.significand_bits  # type: ignore[union-attr]
    largest = op.result.type.dtype.max_value  # type: ignore[union-attr]
    finite = floor > 4 * abs(constant) / largest
    return abs(constant) * (1 + 2.0 ** (4 - precision)), finite


def _scale(vector: Operand, how: str, ops: Definitions) -> tuple[float, Operand] | None:
    """Return (c, m) when multiplying by (or dividing by) the vector scales by c / m."""
    op = _definition(vector, ops)
    if op is None:
        return None
    if how == "div":
        # x / (m * k) scales by (1/k) / m; x / m by 1 / m.
        if op.name == "tile.muls" and (k := _number(op.operands[1])):
            return 1 / k, op.operands[0]
        if op.name == "tile.divs" and (k := _number(op.operands[1])):
            return k, op.operands[0]
        return 1.0, vector
    if op.name == "tile.div" and (c := _filled(op.operands[0], ops)) is not None:
        return c, op.operands[1]
    if op.name == "tile.recip":
        return 1.0, op.operands[0]
    if op.name == "tile.muls" and (c := _number(op.operands[1])) is not None:
        inner = _definition(op.operands[0], ops)
        if inner is not None and inner.name == "tile.recip":
            return c, inner.operands[0]
    return None


def _amax(value: Operand, axis: str, ops: Definitions) -> tuple[float, Operand]:
    """Return (eps, x) when the value is at least max(eps, row or column maximum of |x|)."""
    floor = 0.0
    op = _definition(value, ops)
    while op is not None and op.name in ("tile.maximums", "tile.adds"):
        least = _number(op.operands[1])
        if least is None or least < 0:
            return 0.0, None
        floor = max(floor, least)
        op = _definition(op.operands[0], ops)
    if op is None or op.name != f"tile.{axis}_max":
        return 0.0, None
    inner = _definition(op.operands[0], ops)
    if inner is None or inner.name != "tile.abs":
        return 0.0, None
    return floor, inner.operands[0]


def _definition(value: Operand, ops: Definitions) -> Op | None:
    stripped = _strip(value, ops)
    return ops.get(stripped.name) if isinstance(stripped, Value) else None


def _strip(value: Operand, ops: Definitions) -> Operand:
    """Look through operations that keep the elements."""
    while isinstance(value, Value):
        op = ops.get(value.name)
        if op is None or op.name not in _SAME:
            break
        value = op.operands[0]
    return value


def _number(operand: Operand) -> float | None:
    return float(operand.value) if isinstance(operand, Const) else None


def _filled(operand: Operand, ops: Definitions) -> float | None:
    """Return the constant a tile is filled with."""
    op = _definition(operand, ops)
    if op is None or op.name not in ("tile.full", "tile.expands"):
        return None
    names = [p.name for p in OPS[op.name].operand_params]
    return _number(op.operands[names.index("value" if op.name == "tile.full" else "scalar")])
