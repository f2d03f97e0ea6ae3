"""What a lowered program may give differently from what was written, and how often it does."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from ..ir.program import Op, walk
from ..rules.rule import RULES
from .lowered import Lowered
from .remarks import inexact_roads
from .trajectory import TrajectoryStep, derivation

#: Inputs on which the steps that are not exact are run.
SAMPLES = 8


@dataclass(frozen=True)
class Loss:
    """``exact``: every element is proved equal, bit for bit. ``rate``: the share of elements that differ.

    The rate is added over casts and over the rules that are neither exact nor about casts; ``None``: not known.
    """

    exact: bool
    rate: float | None

    @property
    def axis(self) -> tuple[float, bool]:
        """What is compared: the rate, an unknown one the worst; nothing that is not exact is as good as what is."""
        return (float("inf") if self.rate is None else self.rate, not self.exact)

    def __str__(self) -> str:
        if self.exact:
            return "exact"
        if self.rate is None:
            return "not known"
        if not self.rate:
            return "none seen"
        return f"{self.rate:.3%}" if self.rate >= 1e-5 else f"{self.rate:.2g}"


def loss_of(lowered: Lowered) -> Loss:
    """Return the loss of a lowered program: that of its inexact casts, and of its rules that are not exact."""
    casts = sum(road.error.rate for _, road in inexact_roads(lowered))
    exact = not lowered.totals.inexact
    if not _may_be_loose(lowered):
        return Loss(exact, casts)
    found = derivation(lowered)
    if found.missing:
        return Loss(False, None)
    if not any(map(_loose, found.steps)):
        return Loss(exact, casts)
    rates = [_rate(s) for s in derivation(lowered, samples=SAMPLES).steps if _loose(s)]
    known = [r for r in rates if r is not None]
    return Loss(False, casts + sum(known) if len(known) == len(rates) else None)


def _may_be_loose(lowered: Lowered) -> bool:
    """Return whether rules apply that are neither exact nor about casts."""
    if lowered.contract == "contracted":
        return True
    source = lowered.expanded or lowered.source
    return any(isinstance(s, Op) and s.name in _approximated() for f in source.functions for s in walk(f.body))


@cache
def _approximated() -> frozenset[str]:
    """Return the operations that recipes with stated errors take the place of."""
    return frozenset(r.lhs.op for r in RULES.values() if r.bound is not None)


def _loose(s: TrajectoryStep) -> bool:
    return s.contract not in ("exact", "faithful")


def _rate(s: TrajectoryStep) -> float | None:
    """Return the share of output elements that a step changed, ``None`` where it could not be run."""
    if s.check is None or s.check.failure or not s.check.elements:
        return None
    return s.check.differing / s.check.elements
