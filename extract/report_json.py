"""The machine-readable result of lowering; ``docs/json.md`` describes every key."""

from __future__ import annotations

import math
from typing import Any

from ..ir.dtypes import DType
from ..ir.program import Const, Op, Operand, Value, Verbatim
from ..ir.types import ScalarType, TensorType, TileType
from ..rules.rule import rule_names
from .footprint import live_bytes, scratch_bytes
from .lowered import Instruction, Lowered, Totals


def to_json(lowered: Lowered) -> dict[str, Any]:
    """Return the result as plain JSON values, keys in a fixed order; strict JSON (no NaN or infinity)."""
    return {
        "schema": 1,
        "arch": lowered.arch,
        "objective": lowered.objective,
        "contract": lowered.contract,
        "functions": [
            {"name": f.name, "instructions": [_instruction(i) for i in f.instructions if i.count]}
            for f in lowered.functions
        ],
        "totals": {
            "instructions": lowered.totals.instructions,
            "cycles": _cycles(lowered.totals.cycles),
            "scratch_bytes": scratch_bytes(lowered.program, lowered.target),
            "live_bytes": live_bytes(lowered.program),
        },
        "plain": _figures(lowered.plain),
        "optimum": lowered.optimum,
        "remarks": [d.to_json() for d in lowered.remarks],
    }


def _figures(plain: Totals) -> dict[str, Any] | None:
    return {"instructions": plain.instructions, "cycles": _cycles(plain.cycles)} if plain.legal else None


def _cycles(value: float) -> float:
    return round(float(value), 3)


def _instruction(i: Instruction) -> dict[str, Any]:
    op = i.op
    t = op.results[0].type if op.results else None
    dtype = t.dtype.name if isinstance(t, TileType | TensorType | ScalarType) else None
    return {
        "op": op.name,
        "result": op.results[0].name if op.results else None,
        "operands": [_operand(o) for o in op.operands],
        "dtype": dtype,
        "shape": list(t.shape) if isinstance(t, TileType | TensorType) else None,
        "attrs": _attrs(op),
        "cycles": _cycles(i.cycles),
        "rule": rule_names().get(i.rule, ""),
        "span": i.span._asdict() if i.span else None,
    }


def _operand(o: Operand) -> Any:
    if isinstance(o, Value):
        return o.name
    if isinstance(o, Const):
        return _plain(o.value)
    if isinstance(o, tuple):
        return [_operand(x) for x in o]
    return o.text if isinstance(o, Verbatim) else o


def _attrs(op: Op) -> dict[str, Any]:
    return {key: _plain(value) for key, value in sorted(op.attrs.items())}


def _plain(value: Any) -> Any:
    """Return an attribute as a JSON value: dtypes by name, numbers that JSON has not as words."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, tuple | list):
        return [_plain(v) for v in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
