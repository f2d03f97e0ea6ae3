"""Witnesses: the first choices of a run that shows a fault, and their replay in the simulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...ir.diagnostics import TileggError
from ...ir.program import Program
from ...ir.ranks import Choice, RankResult, format_schedule, run_ranks
from ...ir.ranks_events import Event
from .report import Expect, SignalFinding, Step, Witness
from .settings import inputs_for
from .unroll import Unrolled, schedule_of

_NO_STEP = ("deliver", "finish")


def witness_of(u: Unrolled, wanted: Mapping[int, int], expect: Expect, then: Sequence[Choice] = ()) -> Witness:
    """Return the witness that takes the first ``wanted[r]`` steps of each rank, then the choices ``then``."""
    return Witness(u.setting, format_schedule([*schedule_of(u, wanted), *then]), expect)


@dataclass(frozen=True)
class Replay:
    """A replayed witness: whether it shows the fault, and the run."""

    shows: bool
    result: RankResult | None


def replay(program: Program, finding: SignalFinding) -> Replay:
    """Run a finding's witness in the simulator and tell whether the fault is seen."""
    w = finding.witness
    if w is None:
        return Replay(False, None)
    f = program.function(w.setting.function)
    try:
        result = run_ranks(
            program, w.setting.ranks, inputs_for(f, w.setting), schedule=w.schedule, function=f.name,
            dims=dict(w.setting.dims), memory=w.memory, trace=True, undefined="allow",
        )  # fmt: skip
    except TileggError:
        return Replay(False, None)
    return Replay(_shows(w.expect, result), result)


def _shows(expect: Expect, result: RankResult) -> bool:
    match expect.kind:
        case "stuck":
            return any(f.kind == "deadlock" and set(expect.ranks) <= set(f.ranks) for f in result.findings)
        case "fault":
            return any(f.kind == "fault" for f in result.findings)
        case "left":
            return result.ok and _left(expect, result)
    steps = _steps(result)
    first, second = _event(steps, expect.first), _event(steps, expect.second)
    if first is None:
        return False
    if expect.kind == "reached":
        return True
    if second is None:
        return expect.kind == "order"
    if expect.kind == "order":
        return first.number < second.number
    seen = [e.number for e in result.trace if e.kind == "deliver" and e.value == first.number]
    return not seen or min(seen) > second.number


def _left(expect: Expect, result: RankResult) -> bool:
    if expect.cell is None:
        return False
    window, owner, number = expect.cell
    return bool(np.asarray(result.windows[window][owner]).reshape(-1)[number] != 0)


def _steps(result: RankResult) -> list[list[Event]]:
    out: list[list[Event]] = [[] for _ in range(result.ranks)]
    for e in result.trace:
        if e.kind not in _NO_STEP:
            out[e.rank].append(e)
    return out


def _event(steps: list[list[Event]], step: Step | None) -> Event | None:
    if step is None or step[1] >= len(steps[step[0]]):
        return None
    return steps[step[0]][step[1]]
