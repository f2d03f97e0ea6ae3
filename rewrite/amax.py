"""Amax scaling: ``x * (c / max(rowmax(|x|), eps))`` is bounded by ``c``, which no interval alone can see.

The idiom of every integer quantisation epilogue: the scale of a row (or column) is a constant divided by the
largest magnitude of that row, so the scaled row stays within the constant up to a few roundings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ir.dtypes import DType
from ..ir.op import OPS
from ..ir.program import Const, Op, Operand, Value


class Definitions(dict[str, Op]):
    """The operations that define a function's values, by name.

    ``changed`` names what is changed in place: its elements are not what its operation gave, nor the same at every use.
    """

    changed: frozenset[str] = frozenset()

    def forget(self, names: frozenset[str]) -> None:
        """Take values as changed in place: no operation tells what they hold."""
        self.changed |= names
        for name in names:
            self.pop(name, None)


_SAME = {"tile.reshape", "tile.move", "tile.assume"}
_AXIS = {
    "tile.row_expand_mul": ("row", "mul"), "tile.col_expand_mul": ("col", "mul"),
    "tile.row_expand_div": ("row", "div"), "tile.col_expand_div": ("col", "div"),
}  # fmt: skip


@dataclass(frozen=True)
class _Scale:
    """Scaling by ``constant / magnitude``.

    ``inverted``: the reciprocal of the magnitude is taken first. ``steps``: the divisor is the magnitude
    times ``steps``, itself rounded (``None``: the magnitude as it is).
    """

    constant: float
    magnitude: Operand
    inverted: bool = False
    steps: float | None = None


def scaled_bound(op: Op, ops: Definitions) -> tuple[float, bool] | None:
    """Return a bound on the magnitude of ``op``'s elements if it is amax scaling, and whether it is finite.

    The bound holds for every result that is a number; NaN may always occur. It allows for the roundings of
    the scale and the product, a factor ``1 + 2^(4-p)`` for p significand bits, and for a scale or a divisor
    that is subnormal: an absolute error of the scale times the largest number, or a factor 1.5.
    """
    if op.name not in _AXIS:
        return None
    axis, how = _AXIS[op.name]
    dtype: DType = op.result.type.dtype  # type: ignore[union-attr]
    if not dtype.is_float or dtype.is_coded:
        return None
    scale = _scale(op.operands[1], how, ops)
    if scale is None or not 0 < abs(scale.constant) < math.inf:
        return None
    floor, tile = _amax(scale.magnitude, axis, dtype, ops)
    if tile is None or not _alike(tile, op.operands[0], ops):
        return None
    limit, finite = (_multiplied if how == "mul" else _divided)(scale, floor, dtype)
    return limit, finite and limit < dtype.max_value


def _multiplied(scale: _Scale, floor: float, dtype: DType) -> tuple[float, bool]:
    """x * fl(c / m), x * fl(fl(1 / m) * c), or x * fl(1 / fl(m * k)) with k at most 1."""
    constant, largest, quantum = abs(scale.constant), float(dtype.max_value), 2.0**dtype.quantum_exponent
    tiny = (constant + 1) * largest * quantum + 4 * quantum
    limit = constant * (1 + 2.0 ** (4 - dtype.significand_bits)) + tiny
    if scale.steps is not None:
        least = floor * abs(scale.steps)
        small = abs(scale.steps) <= 1 and least >= 2 * 2.0**dtype.min_exponent
        return (limit, least > 4 / largest) if small else (math.inf, False)
    numerator = max(constant, 1.0) if scale.inverted else constant
    return limit, floor > 4 * numerator / largest


def _divided(scale: _Scale, floor: float, dtype: DType) -> tuple[float, bool]:
    """x / m, or x / fl(m * k)."""
    near = abs(scale.constant) * (1 + 2.0 ** (4 - dtype.significand_bits)) + 4 * 2.0**dtype.quantum_exponent
    if scale.steps is None:
        return near, True
    normal = 2.0**dtype.min_exponent
    if abs(scale.steps) < normal:
        return math.inf, False
    return (near, True) if floor * abs(scale.steps) >= 2 * normal else (1.5 * near, False)


def _scale(vector: Operand, how: str, ops: Definitions) -> _Scale | None:
    """Return how the vector scales by a constant over a magnitude, if it does."""
    op = _definition(vector, ops)
    if op is None:
        return None
    if how == "div":
        if op.name == "tile.muls" and (k := _number(op.operands[1])):
            return _Scale(1 / k, op.operands[0], steps=k)
        if op.name == "tile.divs" and (k := _number(op.operands[1])):
            return _Scale(k, op.operands[0], steps=1 / k)
        return _Scale(1.0, vector)
    if op.name == "tile.div" and (c := _filled(op.operands[0], ops)) is not None:
        return _Scale(c, op.operands[1])
    if op.name == "tile.recip":
        inner = _definition(op.operands[0], ops)
        if inner is not None and inner.name in ("tile.muls", "tile.divs") and (k := _number(inner.operands[1])):
            k = k if inner.name == "tile.muls" else 1 / k
            return _Scale(1 / k, inner.operands[0], inverted=True, steps=k)
        return _Scale(1.0, op.operands[0], inverted=True)
    if op.name == "tile.muls" and (c := _number(op.operands[1])) is not None:
        inner = _definition(op.operands[0], ops)
        if inner is not None and inner.name == "tile.recip":
            return _Scale(c, inner.operands[0], inverted=True)
    return None


def _amax(value: Operand, axis: str, dtype: DType, ops: Definitions) -> tuple[float, Operand]:
    """Return (eps, x) when the value is at least max(eps, row or column maximum of |x|)."""
    floor = 0.0
    op = _definition(value, ops)
    while op is not None and op.name in ("tile.maximums", "tile.adds"):
        least = _number(op.operands[1])
        if least is None or least < 0:
            return 0.0, None
        if least >= 2.0**dtype.min_exponent:  # a smaller literal may round to zero
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


def _alike(a: Operand, b: Operand, ops: Definitions, depth: int = 4) -> bool:
    """Tell whether two values are computed by the same operations from the same values, which nothing changes."""
    a, b = _strip(a, ops), _strip(b, ops)
    if any(isinstance(v, Value) and v.name in ops.changed for v in (a, b)):
        return False
    if a == b or not (depth and isinstance(a, Value) and isinstance(b, Value)):
        return a == b
    one, other = ops.get(a.name), ops.get(b.name)
    if one is None or other is None or one.results[0].type != other.results[0].type or not OPS[one.name].pure:
        return False
    same = one.name == other.name and one.attrs == other.attrs and len(one.operands) == len(other.operands)
    return same and all(_alike(x, y, ops, depth - 1) for x, y in zip(one.operands, other.operands))


def _number(operand: Operand) -> float | None:
    return float(operand.value) if isinstance(operand, Const) else None


def _filled(operand: Operand, ops: Definitions) -> float | None:
    """Return the constant a tile is filled with."""
    op = _definition(operand, ops)
    if op is None or op.name not in ("tile.full", "tile.expands"):
        return None
    names = [p.name for p in OPS[op.name].operand_params]
    return _number(op.operands[names.index("value" if op.name == "tile.full" else "scalar")])
