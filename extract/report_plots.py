"""Plots of the HTML report as SVG: cost against error, and cycles over the steps of a derivation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ..rules.rule import RULES
from .explain import Explained
from .kbest import Alternative
from .pareto import Point
from .trajectory import Trajectory

_LEFT, _TOP, _WIDTH, _HEIGHT = 78, 26, 330, 150
#: Dots of the front that are named in the plot; the others are named where the pointer rests.
_NAMED = 3


@dataclass(frozen=True)
class Dot:
    """One choice: what it costs, how large its error is (0: exact), what it is called."""

    cycles: float
    error: float
    name: str
    chosen: bool = False


def program_dots(points: Iterable[Point], chosen: tuple[float, ...]) -> list[Dot]:
    """Return the dots of a program's lowerings; ``chosen`` are the totals of the one that is shown.

    Those that are not exact and have no measured error have no place in the plot.
    """
    return [
        Dot(p.cycles, p.error or 0.0, f"{p.instructions} instr.", p.lowered.totals.rank("cycles") == chosen)
        for p in points
        if p.error or p.loss.exact
    ]


def instruction_dots(i: Explained, total: float) -> list[Dot]:
    """Return the dots of one instruction's legal choices, by the cost of the whole program."""
    legal = [a for a in i.alternatives if a.extra is not None]
    if not legal:
        return []
    own = RULES[i.rule].bound if i.rule in RULES else None
    mine = Dot(total, own.errors[-1][1] if own else i.rate, f"chosen: {i.rule}", True)
    return [mine, *(Dot(total + a.extra.cycles, _error(a), a.text) for a in legal if a.extra is not None)]


def _error(a: Alternative) -> float:
    rule = RULES.get(a.rule)
    return rule.bound.errors[-1][1] if rule is not None and rule.bound is not None else a.rate


def worth_plotting(dots: Sequence[Dot]) -> bool:
    """Return whether dots differ in both cost and error."""
    return len({round(d.cycles) for d in dots}) > 1 and len({d.error for d in dots}) > 1


def plot(title: str, dots: Sequence[Dot], error: str) -> str:
    """Return cost against error: cycles to the right, error upwards by powers of ten, exact ones on the axis."""
    low, high = min(d.cycles for d in dots), max(d.cycles for d in dots)
    span = (high - low) or 1.0
    errors = sorted({d.error for d in dots if d.error > 0})
    bottom = math.floor(math.log10(errors[0])) - 1 if errors else -1
    top = math.ceil(math.log10(errors[-1]) + 1e-9) if errors else 0

    def x(d: Dot) -> float:
        return _LEFT + 16 + (d.cycles - low) / span * (_WIDTH - 32)

    def y(value: float) -> float:
        share = 0.0 if value <= 0 else (math.log10(value) - bottom) / ((top - bottom) or 1)
        return _TOP + _HEIGHT * (1 - share)

    parts = [_line("axis", _LEFT, _TOP, _LEFT, _TOP + _HEIGHT),
             _line("axis", _LEFT, _TOP + _HEIGHT, _LEFT + _WIDTH, _TOP + _HEIGHT),
             _text("soft", _LEFT - 8, _TOP + _HEIGHT + 4, "exact", "end"),
             _text("soft", _LEFT + _WIDTH, _TOP + _HEIGHT + 34, "cycles of the program; filled: chosen", "end"),
             _text("soft", 4, _TOP - 12, error)]  # fmt: skip
    for power in range(bottom + 1, top + 1, max(1, (top - bottom) // 4)):
        parts.append(_line("tick", _LEFT, y(10.0**power), _LEFT + _WIDTH, y(10.0**power)))
        parts.append(_text("soft", _LEFT - 8, y(10.0**power) + 4, _number(10.0**power), "end"))
    for d in _ends(dots):
        parts.append(_text("soft", x(d), _TOP + _HEIGHT + 18, f"{d.cycles:.0f}", "middle"))
    front = _front(dots)
    if len(front) > 1:
        joined = " ".join(f"{x(d):.1f},{y(d.error):.1f}" for d in front)
        parts.append(f'<polyline class="front" points="{joined}"/>')
    for d in [d for d in front if not d.chosen][:_NAMED]:
        side = "start" if x(d) < _LEFT + _WIDTH / 3 else "end" if x(d) > _LEFT + 2 * _WIDTH / 3 else "middle"
        parts.append(_text("label", x(d), y(d.error) - 10, d.name if len(d.name) < 34 else f"{d.name[:32]}…", side))
    for d in sorted(dots, key=lambda d: d.chosen):
        error_text = f"error {d.error:.3g}" if d.error else "exact"
        words = escape(f"{d.name}: {d.cycles:.0f} cycles, {error_text}")
        parts.append(
            f'<circle class="dot{" chosen" * d.chosen}" cx="{x(d):.1f}" cy="{y(d.error):.1f}" r="5">'
            f"<title>{words}</title></circle>"
        )
    return (
        f'<div class="panel plot"><h3>{escape(title)}</h3><svg role="img" aria-label="cost against error: '
        f'{escape(title)}" viewBox="0 0 {_LEFT + _WIDTH + 16} {_TOP + _HEIGHT + 42}" '
        f'style="width:100%;max-width:560px">{"".join(parts)}</svg></div>'
    )


def _front(dots: Sequence[Dot]) -> list[Dot]:
    front: list[Dot] = []
    for d in sorted(dots, key=lambda d: (d.cycles, d.error)):
        if not front or d.error < front[-1].error:
            front.append(d)
    return front


def _ends(dots: Sequence[Dot]) -> list[Dot]:
    ends = sorted(dots, key=lambda d: d.cycles)
    return [ends[0], ends[-1]] if round(ends[0].cycles) != round(ends[-1].cycles) else ends[:1]


def _number(value: float) -> str:
    return f"{value:.0%}" if value >= 0.01 else f"{value:.0e}".replace("e-0", "e-")


def steps_plot(found: Trajectory) -> str:
    """Return the cycles over the steps of a trajectory, "" where there is nothing to see."""
    every = (found.start, *(s.totals for s in found.steps))
    values = [t.cycles for t in every if t is not None and t.legal]
    if len(values) < 3:
        return ""
    low, high = min(values), max(values)
    span, width, height = (high - low) or 1.0, 900, 90
    points: list[str] = []
    for n, value in enumerate(values):
        x, y = 60 + n * (width - 120) / (len(values) - 1), 16 + (high - value) / span * (height - 32)
        points += [f"{x:.1f},{points[-1].split(',')[1]}"] if points else []
        points.append(f"{x:.1f},{y:.1f}")
    first, last = points[0].split(","), points[-1].split(",")
    return (
        f'<svg role="img" aria-label="cycles over the steps" viewBox="0 0 {width} {height}" style="width:100%">'
        f'<polyline class="steps" points="{" ".join(points)}"/>'
        f"{_text('soft', 52, float(first[1]) + 4, f'{values[0]:.0f}', 'end')}"
        f"{_text('soft', width - 52, float(last[1]) + 4, f'{values[-1]:.0f}', 'start')}</svg>"
    )


def _line(style: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{style}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(style: str, x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
