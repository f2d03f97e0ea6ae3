"""The lowered programs that no other beats: cycles against instructions against inexactness."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..ir.diagnostics import TileggError
from ..ir.program import Program
from ..ir.text import print_program
from .loss import Loss, loss_of
from .lower import CONTRACTS, lower
from .lowered import Lowered
from .price import OBJECTIVES


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
    def loss(self) -> Loss:
        """What may be given differently from what was written."""
        return loss_of(self.lowered)

    @property
    def error(self) -> float | None:
        """The share of elements that are given differently (measured), ``None`` where that is not known."""
        return self.loss.rate

    @property
    def axes(self) -> tuple[float, ...]:
        """What is compared: cycles (to the millionth), instructions, error, and whether it is not exact."""
        return (round(self.cycles, 6), self.instructions, *self.loss.axis)

    def to_json(self) -> dict[str, Any]:
        """Return the point as a JSON object."""
        return {
            "cycles": round(float(self.cycles), 3),
            "instructions": self.instructions,
            "inexact": self.inexact,
            "exact": self.loss.exact,
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
    """Return one point per distinct set of totals and loss; the strictest contracts come last in ``runs``."""
    programs: dict[str, Point] = {}
    for objective, contract, found in runs:
        key = print_program(found.program)
        so_far = programs[key].runs if key in programs else ()
        # A program that the exact contract gives too is exact, whatever else has led to it.
        programs[key] = Point(found, (*so_far, (objective, contract)))
    points: dict[tuple[Any, ...], Point] = {}
    for p in programs.values():
        same = (p.lowered.totals.rank("cycles"), p.loss)
        if same in points:
            points[same].runs += p.runs
        else:
            points[same] = p
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
    lines = ["cycles  instructions  inexact casts  error      found by"]
    for p in points:
        runs = ", ".join(f"{o}/{c}" for o, c in p.runs)
        lines.append(f"{p.cycles:>6.0f}  {p.instructions:>12}  {p.inexact:>13}  {p.loss!s:<9}  {runs}")
    return "\n".join(lines) + "\n"
