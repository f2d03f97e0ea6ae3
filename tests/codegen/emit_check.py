"""Runs emitted assembly on the machine of ``tilegg.testing.machine`` and compares with the interpreter, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from tilegg.codegen.emit import emit
from tilegg.codegen.emit_names import extra_sizes
from tilegg.codegen.pto import api as pto
from tilegg.ir import packing
from tilegg.ir.convert import decode, encode
from tilegg.ir.dtypes import DType
from tilegg.ir.interp import run
from tilegg.ir.program import Program
from tilegg.ir.types import TensorType
from tilegg.testing.machine import Machine


def values_for(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Return random elements in the dtype's storage: moderate numbers, exact in the dtype."""
    if dtype.is_float:
        return encode(rng.normal(0, 3, shape), dtype, "rint", True)
    if dtype.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low = max(int(dtype.min_value), -1000) if dtype.signed else 0
    return rng.integers(low, min(int(dtype.max_value), 1000) + 1, shape).astype(dtype.storage)


def to_memory(array: np.ndarray, dtype: DType) -> np.ndarray:
    """Return the bytes a tensor has in global memory."""
    return np.ascontiguousarray(packing.to_memory(array, dtype)).reshape(-1).view(np.uint8).copy()


def from_memory(data: np.ndarray, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    if dtype.values_per_byte > 1:
        return packing.from_memory(data.reshape(*shape[:-1], -1), dtype, shape[-1])
    return data.view(dtype.storage).reshape(shape)


def check(
    program: Any,
    target: str,
    scalars: dict[str, Any] | None = None,
    dims: dict[str, int] | None = None,
    seed: int = 0,
    function: str | None = None,
) -> str:
    """Emit, read back, verify, execute and compare every output; return the assembly."""
    source: Program = getattr(program, "program", program)
    f = source.function(function) if function else source.functions[0]
    text = emit(program, target)
    again = pto.parse_pto(text)
    pto.verify_pto(again)
    assert pto.print_pto(again) == text
    rng = np.random.default_rng(seed)
    sizes = dict(dims or {})
    inputs: dict[str, Any] = {}
    for p in f.params:
        t = p.value.type
        if isinstance(t, TensorType):
            shape = tuple(d if isinstance(d, int) else sizes.get(d) or (scalars or {})[d] for d in t.shape)
            inputs[p.value.name] = values_for(t.dtype, shape, rng)
        else:
            given = (scalars or {}).get(p.value.name)
            inputs[p.value.name] = values_for(t.dtype, (1,), rng)[0].item() if given is None else given
    memory = {p.value.name: _argument(inputs[p.value.name], p.value.type) for p in f.params}
    expected = run(source, inputs, function=f.name, dims=sizes)
    memory.update({name: sizes[name] for name in extra_sizes(f)})
    Machine(text, seed).run(f.name, memory)
    for p in f.params:
        if p.direction != "In":
            t = p.value.type
            found = from_memory(memory[p.value.name], t.dtype, inputs[p.value.name].shape)
            _same(p.value.name, np.asarray(expected[p.value.name]), found, t.dtype)
    return text


def _argument(value: Any, t: Any) -> Any:
    if not isinstance(t, TensorType):
        return value
    if t.stride is None:
        return to_memory(value, t.dtype)
    steps = [int(s) * value.itemsize for s in t.stride]
    spread = np.zeros(sum((n - 1) * s for n, s in zip(value.shape, steps)) + value.itemsize, np.uint8)
    np.lib.stride_tricks.as_strided(spread.view(value.dtype), value.shape, steps)[...] = value
    return spread


def _same(name: str, expected: np.ndarray, found: np.ndarray, dtype: DType) -> None:
    if dtype.is_float:
        expected, found = decode(expected, dtype), decode(found, dtype)
        same = (expected == found) & (np.signbit(expected) == np.signbit(found)) | np.isnan(expected) & np.isnan(found)
    else:
        same = expected == found
    bad = np.argwhere(~same)
    if len(bad):
        at = tuple(bad[0])
        raise AssertionError(f"{name}: {len(bad)} elements differ, at {at} {expected[at]} and {found[at]}")
