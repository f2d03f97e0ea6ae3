"""Soundness checks of the forward analysis: every value an operation computes lies in the set predicted for it.

For one operation and one dtype, operand elements are drawn from hostile values, their tightest value sets are
taken, the declared transfer function predicts the result's set, and the declared meaning computes the result.
Small operand samples make tight sets, so that a bound that is too small by one step shows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir import valueset as vs
from ..ir.convert import ROUND_MODES, decode, encode
from ..ir.diagnostics import TileggError
from ..ir.dtypes import DTYPES, INDEX, UINT8, DType
from ..ir.inputs import extreme_values
from ..ir.interp_eval import eval_op
from ..ir.members import contains
from ..ir.op import OPS, Call, Kind, OpDecl
from ..ir.ops._result import mask_of
from ..ir.program import Const
from ..ir.samples import hostile, random_bits
from ..ir.tilearray import Arr, TileArray
from ..ir.types import ScalarType, TileType, scalar, tile

#: Elements of one operand: few, so that their value set is tight.
_WIDTHS = (1, 1, 2, 3)
#: Numbers whose sums and products are zeros of either sign, or no numbers.
_NEAR_ZERO = (0.0, -0.0, 0.0, -0.0, 1.0, -1.0, math.inf, math.nan)
_ELEMENTWISE = (Kind.TILE, Kind.SCALAR)


@dataclass(frozen=True)
class ValueCheck:
    """The result for one operation: samples drawn, elements computed, and the first disagreements."""

    name: str
    samples: int
    values: int
    failures: tuple[str, ...]


def tightest(numbers: Arr) -> vs.ValueSet:
    """Return the least value set around decoded numbers (float64, int64 or uint64)."""
    flat: list[Any] = numbers.reshape(-1).tolist()
    finite = [v for v in flat if not (isinstance(v, float) and not math.isfinite(v))]
    nan = any(v != v for v in flat)
    plus, minus = math.inf in flat, -math.inf in flat
    negative_zero = any(isinstance(v, float) and v == 0 and math.copysign(1.0, v) < 0 for v in flat)
    low = min(finite, default=0)
    high = max(finite, default=0)
    exact = [v.as_integer_ratio() for v in finite if v != 0]
    grids = [_trailing(top) - (bottom.bit_length() - 1) for top, bottom in exact]
    widths = [abs(top).bit_length() - _trailing(top) for top, _ in exact]
    plain = [int(v) if isinstance(v, float) and v.is_integer() else v for v in (low, high)]
    grid, sig = min(grids, default=0), max(widths, default=0)
    sign = int(plus) - int(minus)
    return vs.ValueSet(plain[0], plain[1], grid, sig, nan, plus or minus, negative_zero, sign)


def _trailing(n: int) -> int:
    return (n & -n).bit_length() - 1


def operations() -> list[OpDecl]:
    """Return the operations with a transfer function whose operands are tiles and scalars only."""
    return [
        d
        for d in OPS.values()
        if d.transfer and d.pure and d.name.startswith(("tile.", "scalar."))
        and all(p.kind in (*_ELEMENTWISE, Kind.SCRATCH, Kind.DIMS) for p in d.operand_params)
    ]  # fmt: skip


def check_values(decl: OpDecl, samples: int = 200, seed: int = 0) -> ValueCheck:
    """Check one operation on ``samples`` random dtypes, attributes and operands."""
    rng = np.random.default_rng([seed, len(decl.name), *decl.name.encode()])
    failures: list[str] = []
    done = values = 0
    for _ in range(samples * 4):
        if done == samples:
            break
        found = _one(decl, rng)
        if found is None:
            continue
        done += 1
        values += found[0]
        if found[1]:
            failures.append(found[1])
    return ValueCheck(decl.name, done, values, tuple(failures[:10]))


def check_all_values(samples: int = 200, seed: int = 0) -> list[ValueCheck]:
    """Check every operation with a transfer function."""
    return [check_values(decl, samples, seed) for decl in operations()]


def _one(decl: OpDecl, rng: np.random.Generator) -> tuple[int, str] | None:
    """Run one sample; ``None`` when the operation does not take the drawn operands."""
    dtype = _numeric(rng)
    width = int(rng.choice(_WIDTHS))
    operands, types = _operands(decl, dtype, width, rng)
    attrs = _attributes(decl, dtype, rng)
    try:
        result = decl.result(Call(decl, tuple(operands), {**decl.defaults, **attrs}, None))
        given = [_run_time(o, t) for o, t in zip(operands, types)]
        value = eval_op(decl, given, types, attrs, result)
    except TileggError:
        return None
    return _judge(decl, operands, types, attrs, result, value)


def _judge(
    decl: OpDecl, operands: Sequence[Any], types: Sequence[Any], attrs: dict[str, Any], result: Any, value: Any
) -> tuple[int, str]:
    numbers = _numbers(value, result)
    sets = [_set_of(o, t) for p, o, t in zip(decl.operand_params, operands, types) if p.kind in _ELEMENTWISE]
    if decl.name == "tile.assume":
        # The promise is the author's: only what keeps it counts.
        numbers = numbers[(numbers >= operands[1].value) & (numbers <= operands[2].value)]
    call = vs.Call(decl.name, result, attrs, decl.defaults)
    predicted: vs.ValueSet = decl.transfer[0](*sets, call=call)
    inside = contains(predicted, numbers)
    if inside.all():
        return numbers.size, ""
    (bad,) = numbers.reshape(-1)[~inside.reshape(-1)][:1].tolist()
    shown = ", ".join(map(str, sets))
    words = {k: getattr(v, "name", v) for k, v in attrs.items()}
    return numbers.size, f"{decl.name} {words} on {shown}: {bad!r} is not in {predicted} ({result})"


def _numeric(rng: np.random.Generator) -> DType:
    names = [n for n, d in DTYPES.items() if d.is_numeric]
    return DTYPES[names[int(rng.integers(len(names)))]]


def _operands(decl: OpDecl, dtype: DType, width: int, rng: np.random.Generator) -> tuple[list[Any], list[Any]]:
    """Draw operands: run-time arrays for tiles, literals for scalars, shapes for lists; and their types."""
    operands: list[Any] = []
    types: list[Any] = []
    scalars = decl.name.startswith("scalar.")
    # Half of the time all operands are of one kind: zeros meet zeros, infinities infinities.
    flavour = int(rng.integers(5)) if rng.random() < 0.5 else None
    vector = [i for i, p in enumerate(decl.operand_params) if p.name in ("row_vec", "col_vec")]
    for i, p in enumerate(decl.operand_params):
        if p.name == "mask":
            t = mask_of(tile((1, width), dtype))
            operands.append(_Array(random_bits(UINT8, rng, (width + 7) // 8).reshape(1, -1), t))
            types.append(t)
        elif p.kind is Kind.TILE:
            shape = (1, 1) if i in vector and "row" in decl.name else (1, width)
            t = tile(shape, dtype)
            operands.append(_Array(draw(dtype, shape[1], rng, flavour).reshape(shape), t))
            types.append(t)
        elif p.kind is Kind.SCALAR:
            own = dtype if scalars or rng.random() < 0.5 else DTYPES[str(rng.choice(["FP32", "INDEX", "INT32"]))]
            number = decode(draw(own, 1, rng, flavour), own)[0].item()
            operands.append(Const(bool(number) if own.kind == "bool" else number, own))
            types.append(scalar(own))
        elif p.kind is Kind.DIMS:
            default = (1, 1) if p.name == "offset" else (1, width)
            zero = Const(0, INDEX)
            operands.append(tuple(zero if p.name == "offset" else Const(d, INDEX) for d in default)
                            if p.required else None)  # fmt: skip
            types.append(None)
        else:
            operands.append(None)
            types.append(None)
    return operands, types


@dataclass(frozen=True, eq=False)
class _Array:
    """A tile operand: its elements, and the type a result rule asks for."""

    data: Arr
    type: TileType


def draw(dtype: DType, count: int, rng: np.random.Generator, flavour: int | None = None) -> Arr:
    """Return ``count`` hostile elements: extremes, boundaries of some dtype, random bits, zeros, small numbers."""
    match int(rng.integers(5)) if flavour is None else flavour:
        case 0:
            return rng.choice(extreme_values(dtype), count)
        case 1:
            return hostile(dtype, _numeric(rng), rng, count)
        case 2:
            return random_bits(dtype, rng, count)
        case 3 if dtype.is_float:
            return encode(rng.choice(_NEAR_ZERO, count), dtype, "rint", False)
        case _:
            small = rng.integers(-16 if dtype.signed else 0, 17, count) / (4 if dtype.is_float else 1)
            return encode(small, dtype, "rint", True)


def _attributes(decl: OpDecl, dtype: DType, rng: np.random.Generator) -> dict[str, Any]:
    attrs: dict[str, Any] = {}
    for p in decl.attr_params:
        match p.kind:
            case Kind.DTYPE:
                attrs[p.name] = _numeric(rng)
            case Kind.MODE:
                attrs[p.name] = str(rng.choice(list(ROUND_MODES)))
            case Kind.SATURATION:
                word = [None, "on", "off"][int(rng.integers(3))]
                if word is not None:
                    attrs[p.name] = word
            case Kind.FLAG:
                attrs[p.name] = bool(rng.integers(2))
            case Kind.MEMORY:
                attrs[p.name] = "Vec"
            case Kind.INT:
                attrs[p.name] = len([k for k in attrs if k.startswith("axis")])
    return attrs


def _run_time(operand: Any, t: Any) -> Any:
    match operand:
        case _Array():
            return TileArray(operand.data)
        case Const():
            return operand.value
        case tuple():
            return tuple(d.value for d in operand)
    return None


def _set_of(operand: Any, t: Any) -> vs.ValueSet:
    if isinstance(operand, _Array):
        return tightest(decode(operand.data, t.dtype))
    return vs.constant(operand.value, operand.dtype)


def _numbers(value: Any, t: Any) -> Arr:
    if isinstance(value, TileArray):
        return decode(np.ascontiguousarray(value.region), t.dtype)
    assert isinstance(t, ScalarType)
    kind = np.float64 if t.dtype.is_float else np.uint64 if t.dtype.name == "UINT64" else np.int64
    return np.array([value], kind)
