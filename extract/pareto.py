"""The lowered programs that no other beats: cycles against instructions against inexactness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..ir.diagnostics import TileggError
from ..ir.program import Program
from .lower import CONTRACTS, lower
from .lowered import Lowered
from .price import OBJECTIVES
from .remarks import inexact_roads


@dataclass
class Point:
    """One lowered program and the runs (objective, contract) that gave it."""

    lowered: Lowered
    runs: tuple[tuple[str, str], ...]

    @property
    def cycles(self) -> float:
        return self.lowered.totals.cycles

    @property
    def instructions(self) -> int:
        return self.lowered.totals.instructions

    @property
    def inexact(self) -> int:
        """Casts that are not exact."""
        return self.lowered.totals.inexact

    @cached_property
    def error(self) -> float:
        """The share of elements that a cast gives differently, added over the inexact casts (measured)."""
        return sum(road.error.rate for _, road in inexact_roads(self.lowered))

    @property
    def axes(self) -> tuple[float, int, float]:
        """What is compared: cycles (to the millionth), instructions, error."""
        return (round(self.cycles, 6), self.instructions, self.error)

    def to_json(self) -> dict[str, Any]:
        """Return the point as a JSON object."""
        return {
            "cycles": round(float(self.cycles), 3),
            "instructions": self.instructions,
            "inexact": self.inexact,
            "error": self.error,
            "runs": [{"objective": o, "contract": c} for o, c in self.runs],
        }


def pareto(program: Program, arch: str | None, **options: Any) -> list[Point]:
    """Return the best programs of all objectives and contracts, cheapest first, none beaten on all axes.

    ``options`` are those of :func:`.lower.lower` but for objective and contract. A contract that the program
    cannot be lowered under is left out; the error of the loosest one is raised when none works.
    """
    runs: list[tuple[str, str, Lowered]] = []
    problem: TileggError | None = None
    for contract in reversed(CONTRACTS):
        for objective in OBJECTIVES:
            try:
                found = lower(program, arch, objective=objective, contract=contract, **options)
            except TileggError as e:
                problem = problem or e
                continue
            runs.append((objective, contract, found))
    if not runs and problem is not None:
        raise problem
    return front(_merged(runs))


def _merged(runs: Iterable[tuple[str, str, Lowered]]) -> list[Point]:
    """Return one point per distinct set of totals."""
    points: dict[tuple[float, ...], Point] = {}
    for objective, contract, found in runs:
        key = found.totals.rank("cycles")
        here = points.get(key)
        runs_so_far = here.runs if here else ()
        points[key] = Point(here.lowered if here else found, (*runs_so_far, (objective, contract)))
    return list(points.values())


def front(points: Iterable[Point]) -> list[Point]:
    """Return the points that no other one beats, sorted by their axes."""
    every = sorted(points, key=lambda p: p.axes)
    kept: list[Point] = []
    for p in every:
        if not any(all(a <= b for a, b in zip(k.axes, p.axes)) for k in kept):
            kept.append(p)
    return kept


def render(points: list[Point]) -> str:
    """Return the points as a table for a terminal."""
    lines = ["cycles  instructions  inexact casts  error     found by"]
    for p in points:
        runs = ", ".join(f"{o}/{c}" for o, c in p.runs)
        error = f"{p.error:.3%}" if p.error else "exact"
        lines.append(f"{p.cycles:>6.0f}  {p.instructions:>12}  {p.inexact:>13}  {error:<8}  {runs}")
    return "\n".join(lines) + "\n"
