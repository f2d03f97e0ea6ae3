"""Trajectories as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .lowered import Totals
from .trajectory import Trajectory, TrajectoryStep

_INDENT = " " * 23


def render(t: Trajectory) -> str:
    """Return the text form, for a terminal."""
    lines = [headline(t), "  step  cycles  error  rule"]
    lines.append(f"{0:>6} {cycles(t.start):>7}  exact  as written")
    lines += table(t)
    lines += [f"  not reached: {m}" for m in t.missing]
    return "\n".join(lines) + "\n"


def brief(t: Trajectory) -> Iterator[str]:
    """Yield the lines of the steps without reasons and facts."""
    yield "  step  cycles  error  rule"
    yield f"{0:>6} {cycles(t.start):>7}  exact  as written"
    yield from table(t, details=False)
    yield from (f"  not derived: {m}" for m in t.missing)


def headline(t: Trajectory) -> str:
    """Return what the trajectory is, in one line."""
    end = t.end
    count = len(t.steps)
    steps = f"{count} step{'s' * (count != 1)}"
    cost = f"{cycles(t.start)} → {end.cycles:.0f} cycles" if end is not None else f"{cycles(t.start)} cycles"
    weak = f"; relies on {', '.join(t.contracts)}" if t.contracts else "; every step is exact"
    checks = [s.check for s in t.steps if s.check is not None]
    ran = ""
    if checks:
        wrong = sum(s.wrong for s in t.steps)
        good = sum(not c.failure for c in checks)
        ran = f"; {wrong} refuted by the interpreter" if wrong else f"; {good} of {len(checks)} run again"
    return f"{t.title} on {t.arch}: {steps}, {cost}{weak if t.steps else ''}{ran}"


def table(t: Trajectory, details: bool = True) -> Iterator[str]:
    """Yield the lines of the steps; without ``details`` no reasons and facts."""
    weakest = ""
    for number, s in enumerate(t.steps, 1):
        weakest = weakest if s.contract == "exact" else s.contract
        yield f"{number:>6} {cycles(s.totals):>7}  {weakest[:5] or 'exact'}  {_title(s)}"
        yield f"{_INDENT}{s.before}"
        yield f"{_INDENT}{'≈' if s.error else '='} {s.after}"
        yield from (f"{_INDENT}{line}" for line in _details(s, details))


def _title(s: TrajectoryStep) -> str:
    if s.rule is None:
        return s.name
    where = f" in {s.result}" + (f", line {s.span.line}" if s.span else "")
    return f"{s.name}{' (backwards)' * s.backwards} ({s.contract}){where}"


def _details(s: TrajectoryStep, details: bool) -> Iterator[str]:
    if s.rule is not None and details:
        yield f"since {s.rule.reason}"
    if s.error:
        yield f"error: {s.error}"
    yield from (f"knowing {fact}" for fact in s.facts if details)
    if s.totals is None:
        yield "not legal on the target as it stands here"
    if s.check is not None:
        yield f"{'REFUTED' if s.wrong else 'run again'}: {s.check}"


def cycles(t: Totals | None) -> str:
    """Return cycles for a table; "-" where a form is not legal."""
    return f"{t.cycles:.0f}" if t is not None and t.legal else "-"


def to_json(t: Trajectory) -> dict[str, Any]:
    """Return the JSON form (``docs/json.md``)."""
    return {
        "schema": 1,
        "arch": t.arch,
        "contract": t.contract,
        "title": t.title,
        "reached": t.reached,
        "missing": t.missing,
        "start": _totals(t.start),
        "steps": [step_json(s) for s in t.steps],
    }


def step_json(s: TrajectoryStep) -> dict[str, Any]:
    """Return one step as a JSON object."""
    return {
        "function": s.function,
        "result": s.result,
        "line": s.span.line if s.span else None,
        "rule": s.name,
        "contract": s.contract,
        "backwards": s.backwards,
        "before": s.before,
        "after": s.after,
        "reason": s.rule.reason if s.rule is not None else "",
        "totals": _totals(s.totals),
        "error": s.error,
        "facts": [{"value": f.value, "known": f.known, "origin": f.origin, "line": f.line} for f in s.facts],
        "check": s.check.to_json() if s.check is not None else None,
    }


def _totals(t: Totals | None) -> dict[str, Any] | None:
    if t is None or not t.legal:
        return None
    return {"instructions": t.instructions, "cycles": round(t.cycles, 3), "inexact": t.inexact}
