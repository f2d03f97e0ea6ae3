"""Inputs and outputs of a run: checked against parameter types, with dynamic dimensions bound."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import numpy as np

from .convert import decode, encode
from .diagnostics import TileggError, error
from .dimexpr import compile_dim, evaluate
from .dtypes import BF16, BOOL, DType
from .interp_eval import scalar_rounder
from .pointers import Pointer
from .program import Function, Param
from .tilearray import Arr, TileArray, padded, poison
from .types import Dim, OpaqueType, PtrType, ScalarType, TensorType, TileType, Type, shape_text

#: Element types of ml_dtypes that hold the same bit codes as a coded dtype.
_CODE_TYPES = {
    "float8_e4m3fn": "FP8E4M3FN",
    "float8_e5m2": "FP8E5M2",
    "float8_e8m0fnu": "FP8E8M0",
    "float4_e2m1fn": "FP4",
}


def bind_inputs(
    f: Function, inputs: Mapping[str, Any], dims: Mapping[str, int]
) -> tuple[list[Any], dict[str, int]]:
    """Return the parameter values of a run, in order, and the values of all dimension names.

    Tensors that the function may write are copied, the others are read-only views. ``Out`` parameters may be
    left out; they start with undefined contents. Raises TG030.
    """
    _check_names(f, inputs)
    names = dict(dims)
    arrays = {p.value.name: _accept(p, inputs[p.value.name]) for p in f.params if p.value.name in inputs}
    for p in f.params:
        name = p.value.name
        if isinstance(p.value.type, ScalarType) and isinstance(arrays.get(name), int):
            bind_name(name, int(arrays[name]), names, f"parameter {name}")
        elif name in arrays:
            bind_dims(p.value.type, arrays[name], names, name)
    values = [_initial(p, arrays, names) for p in f.params]
    for p, value in zip(f.params, values):
        _check_shape(p.value.type, value, names, p.value.name)
    return values, names


def _check_names(f: Function, inputs: Mapping[str, Any]) -> None:
    known = [p.value.name for p in f.params]
    for name in inputs:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"parameters: {', '.join(known) or 'none'}"
            raise error("TG030", f"{f.name} has no parameter {str(name)[:60]!r}", f.span, hint=hint)
    for p in f.params:
        needed = p.direction != "Out" or isinstance(p.value.type, PtrType)
        if p.value.name not in inputs and needed and not isinstance(p.value.type, OpaqueType):
            raise error("TG030", f"no input for parameter {p.value.name}: {p.value.type}", f.span)


def _accept(p: Param, given: Any) -> Any:
    t, name = p.value.type, p.value.name
    match t:
        case TensorType():
            return to_storage(given, t.dtype, name)
        case TileType():
            if isinstance(given, TileArray):
                to_storage(given.data, t.dtype, name)
                return given
            return to_storage(given, t.dtype, name)
        case ScalarType():
            return to_scalar(given, t.dtype, name)
        case PtrType():
            return given if isinstance(given, Pointer) else to_storage(given, t.dtype, name)
        case _:
            return given


def _initial(p: Param, arrays: Mapping[str, Any], names: Mapping[str, int]) -> Any:
    t, name = p.value.type, p.value.name
    value = arrays.get(name)
    if isinstance(t, TensorType):
        if value is None:
            return poison(_known_shape(t.shape, names, name), t.dtype)
        if p.direction != "In" or t.is_window:
            return np.array(value, order="C")
        view = value.view()
        view.flags.writeable = False
        return view
    if isinstance(t, TileType):
        if value is None:
            return TileArray(poison(_known_shape(t.shape, names, name), t.dtype))
        return value if isinstance(value, TileArray) else _as_tile(value, t, names)
    if isinstance(t, PtrType) and isinstance(value, np.ndarray):
        memory = value.reshape(-1).copy()
        memory.flags.writeable = p.direction != "In"
        return Pointer(memory, t.dtype)
    return value


def _as_tile(region: Arr, t: TileType, names: Mapping[str, int]) -> TileArray:
    known = [evaluate(s, names) for s in t.shape]
    physical = tuple(n if d is None else d for d, n in zip(known, region.shape))
    fits = len(physical) == region.ndim and all(n <= d for n, d in zip(region.shape, physical))
    return padded(region.copy(), physical if fits else region.shape, t.dtype)


def _known_shape(shape: tuple[Dim, ...], names: Mapping[str, int], name: str) -> tuple[int, ...]:
    sizes = [evaluate(d, names) for d in shape]
    missing = [str(d) for d, n in zip(shape, sizes) if n is None]
    if missing:
        raise error(
            "TG030",
            f"the size {', '.join(missing)} of output {name} is not known",
            hint=f"give an array for {name}, or the dimension by name",
        )
    return tuple(n for n in sizes if n is not None)


# -- dynamic dimensions ------------------------------------------------------------------------------------


def bind_dims(t: Type, value: Any, names: dict[str, int], who: str) -> None:
    """Enter the sizes that the plain names in a shape stand for; raises TG030 on a rank or size conflict."""
    if isinstance(t, TensorType):
        shape, dims = value.shape, t.shape
    elif isinstance(t, TileType):
        shape, dims = (value.valid if isinstance(value, TileArray) else value.shape), t.valid_shape
    else:
        return
    if len(shape) != len(dims):
        raise _shape_error(who, t, shape)
    for dim, size in zip(dims, shape):
        if isinstance(dim, int):
            if dim != size:
                raise _shape_error(who, t, shape)
        elif dim.isidentifier():
            bind_name(dim, size, names, f"a dimension of {who}")


def bind_name(name: str, size: int, names: dict[str, int], what: str) -> None:
    """Enter the value of one name; raises TG030 when it already has another."""
    if names.setdefault(name, size) != size:
        raise error("TG030", f"{what} makes {name} = {size}, but it is already {names[name]}")


def _check_shape(t: Type, value: Any, names: Mapping[str, int], who: str) -> None:
    if not isinstance(t, TensorType):
        return
    for dim, size in zip(t.shape, value.shape):
        known = compile_dim(dim)(names.get) if isinstance(dim, str) else dim
        if known is not None and known != size:
            raise _shape_error(who, t, value.shape)


def _shape_error(who: str, t: Type, shape: tuple[int, ...]) -> TileggError:
    return error("TG030", f"{who} should be a {t}, got shape {shape_text(shape)}")


# -- elements ----------------------------------------------------------------------------------------------


def to_storage(given: Any, dtype: DType, who: str = "the array") -> Arr:
    """Return an array in ``dtype.storage`` that holds exactly the given elements.

    Taken as they are: arrays in the storage dtype; ml_dtypes arrays of the same format; uint8 bit codes for
    the floats of at most eight bits (one element per byte) and uint16 bit codes for BF16. Other numbers are
    taken by value when every one is representable. Raises TG030.
    """
    array = np.asarray(given)
    if array.dtype == dtype.storage:
        return _in_range(array, dtype, who)
    if _CODE_TYPES.get(array.dtype.name) == dtype.name:
        return _in_range(array.view(np.uint8), dtype, who)
    if dtype is BF16 and array.dtype == np.uint16:
        return array.view(dtype.storage)
    if array.dtype.isbuiltin == 2:  # the types of ml_dtypes
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise _dtype_error(who, dtype, array) from None
    if array.dtype.kind not in "fiub":
        raise _dtype_error(who, dtype, array)
    with np.errstate(all="ignore"):
        stored = encode(array, dtype, "rint", None)
        lossless = _same_values(decode(stored, dtype), array)
    if not lossless:
        raise _dtype_error(who, dtype, array)
    return stored


def _in_range(array: Arr, dtype: DType, who: str) -> Arr:
    if dtype.bits != 4 or not array.size:
        return array
    low, high = (int(dtype.min_value), int(dtype.max_value)) if dtype.is_int else (0, 15)
    if int(array.min()) < low or int(array.max()) > high:
        hint = f"{dtype.name} has one element per byte"
        raise error("TG030", f"{who}: elements outside {low}..{high}", hint=hint)
    return array


def _same_values(stored: Arr, given: Arr) -> bool:
    if stored.dtype.kind == "f" and given.dtype.kind == "f":
        return bool(np.all((stored == given) | (np.isnan(stored) & np.isnan(given))))
    # Python compares integers with floats exactly, NumPy rounds the integers first.
    return bool(stored.reshape(-1).tolist() == given.reshape(-1).tolist())


def _dtype_error(who: str, dtype: DType, array: Arr) -> TileggError:
    storage = f"{dtype.storage} bit codes" if dtype.is_coded else f"{dtype.storage} elements"
    return error(
        "TG030",
        f"{who} should hold {dtype.name} elements, got {array.dtype}",
        reason="not every element is representable" if array.dtype.kind in "fiub" else "these are no numbers",
        hint=f"give an array of {storage}",
    )


def _single(given: Any, dtype: DType, who: str) -> Any:
    """Return the one element of a NumPy scalar or an array without axes as a Python number."""
    if not isinstance(given, np.ndarray | np.generic) or given.ndim:
        return given
    array = np.asarray(given)
    if array.dtype.name == ("uint8" if dtype.is_coded else "uint16" if dtype is BF16 else ""):
        return decode(to_storage(array, dtype, who), dtype).item()
    return array.item()


def to_scalar(given: Any, dtype: DType, who: str = "the scalar") -> Any:
    """Return a Python number of ``dtype``: floats are rounded to nearest even, integers must fit (TG030).

    NumPy scalars and arrays without axes may be bit codes, as in :func:`to_storage`; Python numbers are numbers.
    """
    value = _single(given, dtype, who)
    if not isinstance(value, int | float):
        raise error("TG030", f"{who} should be a number of type {dtype.name}, got a {type(given).__name__}")
    if dtype.is_float or dtype is BOOL:
        return scalar_rounder(dtype)(value)
    if value != value or value in (float("inf"), float("-inf")) or int(value) != value:
        raise error("TG030", f"{who} should be an integer of type {dtype.name}, got {value}")
    if not dtype.min_value <= int(value) <= dtype.max_value:
        raise error("TG030", f"{who} = {int(value)} does not fit in {dtype.name}")
    return int(value)


# -- results -----------------------------------------------------------------------------------------------


def collect(f: Function, params: list[Any], results: tuple[Any, ...]) -> dict[str, Any]:
    """Return the outputs by name: written parameters, then results that are not one of these arrays."""
    written = [(p.value.name, v) for p, v in zip(f.params, params) if p.direction != "In" or _is_window(p)]
    outputs = {name: _plain(v) for name, v in written}
    listed = [v for _, v in written if isinstance(v, np.ndarray)]
    flat: list[Any] = []
    for value in results:
        flat.extend(value) if isinstance(value, tuple) else flat.append(value)
    for i, value in enumerate(flat):
        if not any(_same_array(value, other) for other in listed):
            outputs["return" if len(flat) == 1 else f"return_{i}"] = _plain(value)
    return outputs


def _is_window(p: Param) -> bool:
    return isinstance(p.value.type, TensorType) and p.value.type.is_window


def _same_array(value: Any, other: Arr) -> bool:
    if value is other:
        return True
    return (
        isinstance(value, np.ndarray)
        and value.shape == other.shape
        and value.strides == other.strides
        and value.ctypes.data == other.ctypes.data
    )


def _plain(value: Any) -> Any:
    if isinstance(value, TileArray):
        return value.region.copy()
    if isinstance(value, Pointer):
        return value.memory
    if isinstance(value, np.ndarray) and not value.flags.owndata:
        return value.copy()
    return value
