"""Evaluation of single operations: the declared meaning on unwrapped operands, the result put in its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import lazy_numpy as np
from .convert import decode, encode
from .diagnostics import TileggError, error
from .dimexpr import evaluate
from .dtypes import BOOL, FP32, DType
from .op import Env, OpDecl
from .tilearray import Arr, TileArray, padded
from .types import Dim, ScalarType, TensorType, TileType, TupleType, Type, shape_text

#: Values of the names in dynamic dimensions, at one moment of a run.
Names = Mapping[str, int]
Evaluator = Callable[..., Any]
#: A function that puts what a meaning returned into its type.
Placer = Callable[[Any, Names], Any]

_NO_NAMES: Names = {}
#: What NumPy and Python raise on operands that a meaning cannot take.
MEANING_ERRORS = (ArithmeticError, ValueError, IndexError, TypeError, AttributeError, MemoryError)

_VALUE_FAMILIES = frozenset(
    {"tile-tile arithmetic", "tile-scalar arithmetic", "unary", "row reductions", "column reductions",
     "expands", "compare and select"}
)  # fmt: skip
#: Operations of those families that only move elements, whatever these mean.
_MOVERS = frozenset(
    {"tile.sel", "tile.sels", "tile.select", "tile.row_expand", "tile.col_expand", "tile.expands"}
)


def eval_op(
    decl: OpDecl,
    operands: Sequence[Any],
    types: Sequence[Any],
    attrs: Mapping[str, Any],
    result: Type | None,
    names: Names = _NO_NAMES,
) -> Any:
    """Return the value of one operation.

    ``operands`` follow ``decl.operand_params`` (``None``: absent; lists as tuples of ints): tiles as
    :class:`TileArray` or as plain arrays of the valid region, tensors as arrays, scalars as Python numbers.
    ``types`` are their types, ``attrs`` the attributes that deviate from the defaults, ``names`` the values
    of names in dynamic dimensions. Raises TG032 when the operation cannot be evaluated on these operands.
    """
    with np.errstate(all="ignore"):
        return evaluator(decl, types, attrs, result)(operands, names)


def evaluator(
    decl: OpDecl, types: Sequence[Any], attrs: Mapping[str, Any], result: Type | None
) -> Evaluator:
    """Return a function from operand values (and dimension names) to the result, for repeated use.

    The caller silences NumPy's floating-point warnings (``np.errstate(all="ignore")``).
    """
    _refuse_unnumbered(decl, types)
    meaning = _bind(decl, attrs, types, result)
    place = placer(result, decl.raw)
    if decl.raw:
        tile_at = [isinstance(t, TileType) for t in types]

        def evaluate_raw(values: Sequence[Any], names: Names = _NO_NAMES) -> Any:
            wrapped = [_wrap(v) if is_tile else v for v, is_tile in zip(values, tile_at)]
            try:
                return place(meaning(*wrapped), names)
            except MEANING_ERRORS as problem:
                raise _cannot(decl, problem) from problem

        return evaluate_raw

    def evaluate_region(values: Sequence[Any], names: Names = _NO_NAMES) -> Any:
        plain = [v.region if v.__class__ is TileArray else v for v in values]
        try:
            return place(meaning(*plain), names)
        except MEANING_ERRORS as problem:
            raise _unlike(decl, values) or _cannot(decl, problem) from problem

    return evaluate_region


def scalar_evaluator(decl: OpDecl, types: Sequence[Any], attrs: Mapping[str, Any], result: ScalarType) -> Evaluator:
    """Return :func:`evaluator` for scalar operands, given one by one, and a scalar result."""
    meaning, settle = _bind(decl, attrs, types, result), scalar_rounder(result.dtype)

    def evaluate_scalars(*values: Any) -> Any:
        try:
            return settle(meaning(*values))
        except MEANING_ERRORS as problem:
            raise _cannot(decl, problem) from problem

    return evaluate_scalars


def _wrap(value: Any) -> Any:
    return value if value is None or value.__class__ is TileArray else TileArray(value)


def _unlike(decl: OpDecl, values: Sequence[Any]) -> TileggError | None:
    """Return the error for tiles of one shape whose valid shapes, known only now, are not the same."""
    tiles = [v for v in values if v.__class__ is TileArray]
    valid = sorted({t.valid for t in tiles})
    if len(valid) < 2 or len({t.data.shape for t in tiles}) > 1:
        return None
    message = f"{decl.name}: the operands are valid in {' and in '.join(shape_text(v) for v in valid)} at run time"
    return error("TG032", message, hint="give them the same valid shape: pl.tile.set_validshape")


def _cannot(decl: OpDecl, problem: Exception) -> TileggError:
    message = f"{decl.name} cannot be evaluated on these operands"
    if "read-only" in str(problem):
        hint = "declare the parameter as pl.Out[...] or pl.InOut[...]"
        return error("TG032", message, reason="the tensor that it writes is a parameter for input only", hint=hint)
    return error("TG032", message, reason=str(problem)[:200])


def _refuse_unnumbered(decl: OpDecl, types: Sequence[Any]) -> None:
    if decl.family not in _VALUE_FAMILIES or decl.name in _MOVERS:
        return
    for t in types:
        if not isinstance(t, TileType | TensorType):
            continue
        dtype = t.dtype
        if dtype.is_coded or (dtype is BOOL and decl.family != "compare and select"):
            message = f"{decl.name}: there is no arithmetic on {dtype.name} elements"
            raise error("TG032", message, hint="cast to FP32 first")


def _bind(
    decl: OpDecl, attrs: Mapping[str, Any], types: Sequence[Any], result: Type | None
) -> Callable[..., Any]:
    """Return the meaning as a function of the operands alone."""
    fixed = {p.name: attrs.get(p.name, p.default) for p in decl.attr_params}
    if decl.wants_env:
        fixed["env"] = Env(tuple(types), result)
    fn = decl.meaning
    count = len(decl.operand_params)
    leading = all(p.kind.is_operand and not p.keyword_only for p in decl.params[:count])
    if leading:
        return (lambda *values: fn(*values, **fixed)) if fixed else fn
    keys = [p.name for p in decl.operand_params]
    return lambda *values: fn(**dict(zip(keys, values)), **fixed)


# -- results -----------------------------------------------------------------------------------------------


def placer(result: Type | None, raw: bool = False) -> Placer:
    """Return the function that checks a raw result against its type and wraps, rounds or pads it."""
    match result:
        case TileType():
            return _tile_placer(result, raw)
        case TensorType():
            return _tensor_placer(result)
        case ScalarType():
            round_to = scalar_rounder(result.dtype)
            return lambda value, names: round_to(value)
        case TupleType():
            parts = [placer(item, raw) for item in result.items]
            return lambda values, names: tuple(p(v, names) for p, v in zip(parts, values))
        case _:
            return lambda value, names: value


def _tile_placer(t: TileType, raw: bool) -> Placer:
    storage = t.dtype.storage
    physical, valid = t.shape, t.valid_shape
    wrap4 = t.dtype.bits == 4 and t.dtype.is_int
    full = physical == valid and all(isinstance(d, int) for d in physical)

    def place(value: Any, names: Names) -> TileArray:
        known = None
        if value.__class__ is TileArray:
            known, value = value.valid, value.data if raw else value.region
        if value.dtype != storage:
            raise _wrong(t, f"elements of {value.dtype}")
        if wrap4:
            value = _wrap4(value, t.dtype)
        if full and value.shape == physical:
            return TileArray(value)
        if raw:
            return TileArray(
                _fit(value, physical, names, t), _extent(valid, known or value.shape, names, t)
            )
        whole = _extent(physical, value.shape, names, t)
        extent = _extent(valid, value.shape, names, t)
        if value.shape != extent:
            # An annotation may narrow the valid shape of a result.
            if any(n < e for n, e in zip(value.shape, extent)):
                raise _wrong(t, f"shape {shape_text(value.shape)} where {shape_text(extent)} is due")
            value = value[tuple([slice(n) for n in extent])]
        return padded(value, whole, t.dtype)

    return place


def _fit(value: Arr, want: Sequence[Dim], names: Names, t: Type) -> Arr:
    if value.shape != _extent(want, value.shape, names, t):
        raise _wrong(t, f"shape {shape_text(value.shape)} where {shape_text(want)} is due")
    return value


def _extent(dims: Sequence[Dim], found: tuple[int, ...], names: Names, t: Type) -> tuple[int, ...]:
    """Return the dimensions as ints; one that nothing is known of is taken as found."""
    if len(dims) != len(found):
        raise _wrong(t, f"rank {len(found)}")
    known = [evaluate(d, names) for d in dims]
    return tuple(f if k is None else k for k, f in zip(known, found))


def _tensor_placer(t: TensorType) -> Placer:
    storage = t.dtype.storage if t.dtype.storage_name else None

    def place(value: Any, names: Names) -> Any:
        if not isinstance(value, np.ndarray):
            raise _wrong(t, f"a {type(value).__name__}")
        if storage is not None and value.dtype != storage:
            raise _wrong(t, f"elements of {value.dtype}")
        if value.ndim != len(t.shape):
            raise _wrong(t, f"rank {value.ndim}")
        return value

    return place


def _wrong(t: Type, what: str) -> TileggError:
    message = f"the result should be a {t}, but has {what}"
    return error("TG032", message, reason="a window may leave its tensor")


def _wrap4(values: Arr, dtype: DType) -> Arr:
    low: Arr = values & values.dtype.type(15)
    eight = low.dtype.type(8)
    return np.subtract(low ^ eight, eight) if dtype.signed else low


def scalar_rounder(dtype: DType) -> Callable[[Any], Any]:
    """Return the function that wraps an integer, or rounds a float to nearest even, into ``dtype``."""
    if dtype is BOOL:
        return bool
    if dtype is FP32:
        return _round_fp32
    if dtype.is_float:
        return lambda value: _round_float(value, dtype)
    if not dtype.is_int:
        return lambda value: value
    low, high = (-(1 << (dtype.bits - 1)), 1 << (dtype.bits - 1)) if dtype.signed else (0, 1 << dtype.bits)

    def wrap(value: Any) -> Any:
        if value.__class__ is int and low <= value < high:
            return value
        return ((int(value) - low) & (high - low - 1)) + low

    return wrap


def _round_float(value: Any, dtype: DType) -> float:
    return float(decode(encode([float(value)], dtype, "rint", False), dtype)[0])


def _round_fp32(value: Any) -> float:
    with np.errstate(all="ignore"):
        return float(np.float32(value))
