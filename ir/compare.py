"""Outputs of two runs compared element by element, bit for bit or within a number of ulp."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .codes import bits_of, same_bits, ulp_distance
from .convert import decode, encode
from .diagnostics import error
from .dtypes import DType
from .program import Function
from .tilearray import Arr
from .types import TupleType, Type


@dataclass(frozen=True)
class Element:
    """One element: its value (int, float or bool) and its bit code, for showing."""

    value: int | float | bool
    bits: int
    dtype: DType

    def __str__(self) -> str:
        if self.dtype.kind == "bool":
            return str(bool(self.value))
        width = -(-self.dtype.bits // 4)
        code = f"0x{self.bits:0{width}x}"
        return f"{self.value!r} ({code})" if self.dtype.is_float else f"{self.value}"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object; a float that JSON cannot write is given as text."""
        value: Any = self.value
        if isinstance(value, float) and not np.isfinite(value):
            value = str(value)
        return {"value": value, "bits": f"0x{self.bits:x}", "dtype": self.dtype.name}


def element(array: Arr, index: tuple[int, ...], dtype: DType) -> Element:
    """Return the element of a storage array at an index."""
    one = np.asarray(array[index]).reshape(1)
    return Element(decode(one, dtype)[0].item(), int(bits_of(one, dtype)[0]), dtype)


@dataclass(frozen=True)
class Difference:
    """The first differing element of an output, and how many of its elements differ.

    ``ulp``: how far apart the two values are, integers in units; infinity where there are no two values.
    """

    output: str
    index: tuple[int, ...]
    expected: Element | None
    actual: Element | None
    ulp: float
    count: int
    reason: str = ""


def parse_contract(contract: str) -> float | None:
    """Return the ulp bound of a contract: ``None`` for ``exact``, N for ``ulp:N``; raises TG040."""
    if contract == "exact":
        return None
    word, _, number = contract.partition(":") if isinstance(contract, str) else ("", "", "")
    try:
        bound = float(number)
    except ValueError:
        bound = -1.0
    if word != "ulp" or not bound >= 0:
        raise error("TG040", f"unknown contract of a comparison {contract!r:.40}", hint='use "exact" or e.g. "ulp:2"')
    return bound


def compare(
    reference: Mapping[str, Any],
    outputs: Mapping[str, Any],
    dtypes: Mapping[str, DType],
    contract: str = "exact",
) -> Difference | None:
    """Return the first difference between two sets of outputs, or ``None``.

    ``exact``: bit for bit, but any NaN equals any other; ``ulp:N``: floats at most N representable values
    apart (so the zeros are equal), integers exactly. Outputs are taken in the order of ``dtypes``. Raises
    TG040 for another contract.
    """
    bound = parse_contract(contract)
    for name, dtype in dtypes.items():
        if name not in reference and name not in outputs:
            continue
        if name not in reference or name not in outputs:
            missing = "second" if name in reference else "first"
            return Difference(name, (), None, None, np.inf, 0, f"the {missing} has no output {name}")
        expected, actual = _array(reference[name], dtype), _array(outputs[name], dtype)
        if expected.shape != actual.shape:
            reason = f"shapes {expected.shape} and {actual.shape}"
            return Difference(name, (), None, None, np.inf, 0, reason)
        found = _first(name, expected, actual, dtype, bound)
        if found is not None:
            return found
    return None


def _first(name: str, expected: Arr, actual: Arr, dtype: DType, bound: float | None) -> Difference | None:
    wrong = ~same_bits(expected, actual, dtype)
    if bound is not None and dtype.is_float and wrong.any():
        wrong &= ulp_distance(expected, actual, dtype) > bound
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.ndim else ()
    pair = np.asarray(expected[index]).reshape(1), np.asarray(actual[index]).reshape(1)
    ulp = float(ulp_distance(*pair, dtype)[0])
    return Difference(
        name, index, element(expected, index, dtype), element(actual, index, dtype), ulp, int(wrong.sum())
    )


def largest_ulp(
    reference: Mapping[str, Any], outputs: Mapping[str, Any], dtypes: Mapping[str, DType]
) -> float:
    """Return the largest distance of two outputs: of floats in ulp of their dtype, of integers in units."""
    worst = 0.0
    for name, dtype in dtypes.items():
        if name in reference and name in outputs:
            a, b = _array(reference[name], dtype), _array(outputs[name], dtype)
            if a.size and a.shape == b.shape:
                worst = max(worst, float(ulp_distance(a, b, dtype).max()))
    return worst


def _array(value: Any, dtype: DType) -> Arr:
    array = np.asarray(value)
    if array.dtype == dtype.storage:
        return array
    return encode(array, dtype, "rint", False)


def output_dtypes(f: Function) -> dict[str, DType]:
    """Return the dtype of every output a run of ``f`` can have, by name."""
    found: dict[str, DType] = {}
    for p in f.params:
        if p.direction != "In":
            _enter(found, p.value.name, p.value.type)
    flat = _flatten(f.results)
    for i, t in enumerate(flat):
        _enter(found, "return" if len(flat) == 1 else f"return_{i}", t)
    return found


def _flatten(types: tuple[Type, ...]) -> list[Type]:
    out: list[Type] = []
    for t in types:
        out += _flatten(t.items) if isinstance(t, TupleType) else [t]
    return out


def _enter(found: dict[str, DType], name: str, t: Type) -> None:
    dtype = getattr(t, "dtype", None)
    if dtype is not None and dtype.is_numeric:
        found[name] = dtype
