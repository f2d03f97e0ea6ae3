"""The check of bounded rules: how far the right side may be from the left one, by the operand's magnitude."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..ir.convert import decode
from .check_eval import Valued
from .rule import Bound, Rule, Var, variables


def operand_of(rule: Rule, values: Mapping[Var, Valued]) -> Valued:
    """Return the value whose magnitude a bound speaks of: the first one on the left."""
    first = next(v for v in variables(rule.lhs) if v.kind == "value")
    return values[first]


def bound_failures(name: str, bound: Bound, operand: Valued, left: Valued, right: Valued) -> list[str]:
    """Return what breaks the bound, as text: an absolute error too large, a NaN on one side only."""
    x, want, got = (decode(v.data.reshape(-1), v.dtype).astype(np.float64) for v in (operand, left, right))
    failures = []
    lost = np.isnan(x) & ~np.isnan(got)
    if lost.any():
        failures.append(f"{name}: NaN gives {float(got[lost][0])!r}")
    for limit, error in bound.errors:
        inside = np.abs(x) <= limit
        with np.errstate(invalid="ignore"):
            far = inside & ~(np.abs(want - got) <= error)
        if far.any():
            at = int(np.flatnonzero(far)[0])
            here, found, due = (float(v[at]) for v in (x, got, want))
            failures.append(f"{name}: x={here!r} gives {found!r} for {due!r}, stated error {error:.3g}")
    return failures
