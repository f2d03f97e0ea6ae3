"""Counterexamples as Python that makes them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.codes import bits_of, from_bits
from ..ir.dtypes import DType, parse_dtype
from ..ir.equivalence_report import Counterexample
from ..ir.tilearray import Arr

#: Elements written out one by one; with more, the text would be no help.
_MOST = 64


def elements_of(
    dtype: str | DType, shape: Sequence[int], fill: int = 0, at: Mapping[tuple[int, ...], int] | None = None
) -> Arr:
    """Return a storage array of a dtype given by bit codes: ``fill`` everywhere, other codes ``at`` some indices.

    Raises TG004 for an unknown dtype.
    """
    known = parse_dtype(dtype) if isinstance(dtype, str) else dtype
    codes = np.full(tuple(shape), fill, np.uint64)
    for index, code in (at or {}).items():
        codes[index] = code
    return from_bits(codes, known)


def as_python(found: Counterexample, dtypes: Mapping[str, DType]) -> str | None:
    """Return an expression for a counterexample's inputs; ``None`` when it has too many unusual elements."""
    rows: list[str] = []
    for name, value in found.inputs.items():
        text = _element(value, dtypes.get(name), found.fill[name].bits if name in found.fill else 0)
        if text is None:
            return None
        rows.append(f"{name!r}: {text}")
    return "{" + ", ".join(rows) + "}"


def _element(value: Any, dtype: DType | None, fill: int) -> str | None:
    if not isinstance(value, np.ndarray) or dtype is None:
        return _number(value)
    codes = bits_of(value, dtype)
    spots = np.argwhere(codes != fill)
    if len(spots) > _MOST:
        return None
    at = {tuple(int(i) for i in spot): int(codes[tuple(spot)]) for spot in spots}
    shown = ", ".join(f"{index}: {code:#x}" for index, code in at.items())
    others = f", at={{{shown}}}" if at else ""
    return f"elements_of({dtype.name!r}, {value.shape}, {fill:#x}{others})"


def _number(value: Any) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)
