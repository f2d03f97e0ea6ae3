"""How far recipes are from the functions they stand for, on the inputs that a lowering is tested with.

A recipe states a bound on its absolute error. Here the lowered program runs as it is, every recipe in it is watched,
and what it gives is compared with the real function of the operand it was given, before any rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..extract.faithful import RecipeUse
from ..ir.convert import decode
from ..ir.equivalence import Session, Setup, Source
from ..ir.interp import execute
from ..ir.ops.composite import REAL
from ..ir.program import Op, Value
from ..ir.tilearray import Arr


@dataclass(frozen=True)
class Band:
    """Arguments up to ``limit`` in magnitude: the ``stated`` bound, how many came, the largest error and where."""

    limit: float
    stated: float
    count: int = 0
    error: float = 0.0
    at: float = 0.0

    def render(self) -> str:
        """Return the text form."""
        stated = f"error at most {self.stated:.3g} for |x| <= {self.limit:.6g}"
        if not self.count:
            return f"{stated}; no such argument came up"
        return f"{stated}; measured {self.error:.3g} (at {self.at:.9g}, of {self.count:,} arguments)"

    def to_json(self) -> dict[str, Any]:
        """Return the stable JSON object."""
        found = {"measured": self.error, "at": self.at} if self.count else {"measured": None, "at": None}
        return {"limit": self.limit, "error": self.stated, "arguments": self.count, **found}


@dataclass(frozen=True)
class Measured:
    """A recipe of a lowered program and its errors: those within each limit it states a bound for.

    ``wrong``: what breaks the bound, as text; ``largest``: the largest magnitude of a result, whatever the argument.
    """

    use: RecipeUse
    bands: tuple[Band, ...]
    largest: float = 0.0
    wrong: str = ""

    def render(self) -> str:
        """Return the text form: the recipe with what it states, what was measured, what is wrong."""
        lines = [f"{self.use.direct.name} by {self.use.rule.name}", *(band.render() for band in self.bands)]
        return "\n    ".join([*lines, f"broken: {self.wrong}"] if self.wrong else lines)

    def to_json(self) -> dict[str, Any]:
        """Return the stable JSON object."""
        errors = [band.to_json() for band in self.bands]
        return {**self.use.to_json(), "errors": errors, "largest": self.largest, "wrong": self.wrong or None}

    def with_results(self, x: Arr, got: Arr) -> Measured:
        """Return this with more arguments and results (float64)."""
        with np.errstate(all="ignore"):
            want = REAL[self.use.direct.name](x)
            error = np.abs(want - got)
        bands = tuple(_grown(band, x, error) for band in self.bands)
        numbers = np.abs(got[~np.isnan(got)])
        largest = max(self.largest, float(numbers.max())) if numbers.size else self.largest
        return Measured(self.use, bands, largest, self.wrong or _wrong(bands, x, want, got))


def _grown(band: Band, x: Arr, error: Arr) -> Band:
    inside = np.abs(x) <= band.limit
    if not inside.any():
        return band
    # A result that is no number is as far away as can be.
    errors = np.where(np.isnan(error), np.inf, error)[inside]
    worst = int(errors.argmax())
    new = float(errors[worst])
    at = float(x[inside][worst]) if new > band.error or not band.count else band.at
    return Band(band.limit, band.stated, band.count + int(inside.sum()), max(new, band.error), at)


def _wrong(bands: Sequence[Band], x: Arr, want: Arr, got: Arr) -> str:
    """Return how the first result that breaks a promise does so, "" when none does."""
    lost = np.isnan(x) & ~np.isnan(got)
    if lost.any():
        return f"NaN gives {float(got[lost][0])!r}"
    for band in bands:
        with np.errstate(invalid="ignore"):
            far = (np.abs(x) <= band.limit) & ~(np.abs(want - got) <= band.stated)
        if far.any():
            i = int(np.flatnonzero(far)[0])
            return (
                f"x = {float(x[i])!r} gives {float(got[i])!r} for {float(want[i])!r}, an error of "
                f"{abs(float(want[i] - got[i])):.3g} where at most {band.stated:.3g} is stated"
            )
    return ""


class _Watched(Session):
    """Runs of a lowered program on the inputs that the written one takes, watched instead of compared."""

    def __init__(self, setup: Setup, measured: dict[int, Measured]) -> None:
        super().__init__(setup)
        self.measured = measured

    def check(self, inputs: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[None, None, dict[str, Any]]:
        """Run the lowered program; its outputs are not looked at."""
        given = {self.names_b[k]: v for k, v in inputs.items()}
        execute(self.b, self.fb, given, self.dims, probe=self._seen)
        return None, None, {}

    def _seen(self, s: Op, holds: Callable[[Value], Any]) -> None:
        found = self.measured.get(id(s))
        if found is not None:
            operand = found.use.direct.operands[0]
            assert isinstance(operand, Value)
            x, got = (decode(holds(v).region, v.type.dtype).reshape(-1) for v in (operand, s.result))  # type: ignore[union-attr]
            self.measured[id(s)] = found.with_results(x, got)


def unmeasured(uses: Sequence[RecipeUse]) -> dict[int, Measured]:
    """Return the recipes by their last operation, before anything was run."""
    return {
        id(use.last): Measured(use, tuple(Band(*pair) for pair in use.rule.bound.errors))
        for use in uses if use.rule.bound is not None
    }  # fmt: skip


def measure(setup: Setup, source_of: Callable[[Session], Source], measured: dict[int, Measured]) -> None:
    """Add what the runs of a lowered program (``setup.b``) show to ``measured``.

    Inputs that the written program (``setup.a``) refuses, or whose promises they break, are left out.
    """
    session = _Watched(setup, measured)
    source = source_of(session)
    session.tally(source, 0, source.count)
