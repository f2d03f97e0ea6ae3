"""Operations called on values and types by hand, for the tests of their meanings and type rules."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import BF16, FP16, FP32, INDEX, INT8, INT16, INT32, UINT8, UINT16, UINT32, DType
from tilegg.ir.interp import TileArray
from tilegg.ir.interp_eval import eval_op
from tilegg.ir.op import OPS, Call, Kind
from tilegg.ir.program import Const, Value, index
from tilegg.ir.types import ScalarType, TensorType, TileType, tile


def values(name: str, *given: Any, dtypes: dict[int, DType] | None = None, **attrs: Any) -> Any:
    """Evaluate an operation: arrays are wholly valid tiles (FP32, INT32... by NumPy dtype), numbers literals."""
    decl = OPS[name]
    operands: list[Any] = []
    types: list[Any] = []
    args: list[Any] = []
    for i, (p, x) in enumerate(zip(decl.operand_params, (*given, *[None] * len(decl.operand_params)))):
        if x is None:
            t, o, a = None, None, None
        elif p.kind is Kind.DIMS:
            t, o, a = None, tuple(map(index, x)), tuple(x)
        elif isinstance(x, TileArray):
            t = tile(x.data.shape, _dtype(x.data), x.valid)
            o, a = Value(f"v{i}", t), x
        elif isinstance(x, np.ndarray):
            t = tile(x.shape, (dtypes or {}).get(i) or _dtype(x))
            o, a = Value(f"v{i}", t), TileArray(x)
        else:
            o = Const(x, FP32 if isinstance(x, float) else INT32)
            t, a = o.type, x
        types.append(t)
        operands.append(o)
        args.append(a)
    result = decl.result(Call(decl, tuple(operands), {**decl.defaults, **attrs}, None))
    out = eval_op(decl, args, types, attrs, result)
    return tuple(x.region for x in out) if isinstance(out, tuple) else out.region


def _dtype(x: np.ndarray) -> DType:
    names = {"float32": FP32, "float16": FP16, "bfloat16": BF16, "int8": INT8, "int16": INT16, "int32": INT32,
             "uint8": UINT8, "uint16": UINT16, "uint32": UINT32}  # fmt: skip
    return names[str(x.dtype)]


def row(*numbers: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array([numbers], dtype)


def type_of(name: str, *types: Any, **attrs: Any) -> Any:
    """Return the result type for operand types (``None``: absent, numbers: literals, lists: dims)."""
    decl = OPS[name]
    operands = []
    for p, t in zip(decl.operand_params, (*types, *[None] * len(decl.operand_params))):
        if isinstance(t, TileType | TensorType | ScalarType):
            operands.append(Value("v", t))
        elif isinstance(t, list):
            operands.append(tuple(map(index, t)))
        elif isinstance(t, int | float):
            operands.append(Const(t, FP32 if isinstance(t, float) else INDEX if p.kind is Kind.DIMS else INT32))
        else:
            operands.append(None)
    return decl.result(Call(decl, tuple(operands), {**decl.defaults, **attrs}, None))


def refused(code: str, words: str, name: str, *types: Any, **attrs: Any) -> None:
    with pytest.raises(TileggError) as problem:
        type_of(name, *types, **attrs)
    found = problem.value.diagnostics[0]
    assert found.code == code, found
    assert words in f"{found.message} {found.reason} {found.hint}", found


def pairs_of(line: np.ndarray) -> list[tuple[float, int]]:
    words = np.ascontiguousarray(line).view(np.uint8).reshape(-1, 8)
    size = line.dtype.itemsize
    return [(w[:size].copy().view(line.dtype)[0].item(), int.from_bytes(w[4:].tobytes(), "little")) for w in words]
