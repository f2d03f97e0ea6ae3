"""Runs of several ranks: the exact interpreter over windows and signals, under schedules one can choose and replay.

Every rank runs the same program on its own inputs. At each operation on a window or a signal the rank is suspended,
and a schedule decides who goes on; a write to a window becomes visible at a moment the schedule picks, at the latest
when its rank notifies someone, meets the others at a collective, or reads it back. Collectives that have not been
lowered run as their definitions (:mod:`tilegg.ir.collectives`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .diagnostics import error
from .dimexpr import evaluate
from .interp import MAX_STEPS, entry
from .interp_eval import MEANING_ERRORS
from .interp_io import bind_dims, bind_inputs, collect, to_storage
from .levels import HOST, level_of
from .program import Function, Param, Program
from .ranks_events import Choice, Event, Finding, RankResult, format_schedule, parse_schedule
from .ranks_flow import Rank, RankMachine, suspending
from .ranks_host import HostWindow, rank_program, run_host
from .ranks_lines import RankCode
from .ranks_memory import Cell, Memory, Region
from .ranks_ops import ARRIVE, OTHER, PERFORM
from .ranks_schedule import Ahead, Fair, Random, Replay, Schedule, as_schedule, schedules
from .ranks_signals import signal_names
from .ranks_world import World
from .tilearray import Arr
from .types import TensorType

__all__ = [
    "Ahead", "Cell", "Choice", "Event", "Exploration", "Fair", "Finding", "Random", "RankResult", "Region", "Replay",
    "Schedule", "explore", "format_schedule", "parse_schedule", "run_ranks", "schedules",
]  # fmt: skip

#: Inputs of a run: per rank, the same for all, or a function of the rank.
Inputs = Sequence[Mapping[str, Any]] | Mapping[str, Any] | Callable[[int], Mapping[str, Any]]

#: Makes the result of a finished run.
Finish = Callable[[World], RankResult]

_codes: dict[tuple[int, ...], tuple[tuple[Function, ...], dict[str, RankCode]]] = {}
_KEPT = 64


def run_ranks(
    program: Program | Function,
    ranks: int,
    inputs: Inputs,
    *,
    schedule: Schedule | tuple[Choice, ...] | list[Choice] | int | str | None = None,
    function: str | None = None,
    dims: Mapping[str, int] | None = None,
    memory: str = "released",
    trace: bool = False,
    undefined: str = "report",
    calls: int = 1,
    descending: bool = False,
    max_steps: int = MAX_STEPS,
) -> RankResult:
    """Run a function on ``ranks`` ranks and return what they leave behind.

    ``inputs``: by parameter name, one mapping per rank, one for all, or a function of the rank. A window parameter that
    is left out starts with zeros when it is used as a signal, else with undefined contents.
    ``schedule``: a :class:`Schedule`, the choices of an earlier run or their text, or a seed for random choices;
    default: ranks take turns and writes are visible at once.
    ``memory``: ``"released"``: a notify makes all earlier writes of its rank visible first; ``"fenced"``: only
    ``pl.system.cacheinvalid`` and ``pl.system.fence`` in the program do. ``undefined``: ``"report"`` reads of undefined
    window elements, or ``"allow"`` them (for programs that load whole blocks and mask afterwards); they give poison
    either way. ``dims``: values of dynamic dimensions; a
    dimension that only signal windows have is the number of ranks. ``calls``: how often every rank calls the function,
    one call right after the other on the same windows and tensors; the results are those of the last.
    ``descending``: the blocks of a rank, which run one after the other, start with the last one. ``max_steps``:
    statements each rank may execute.

    Raises TG030 when the inputs do not fit, TG040 for an unknown schedule or memory model. What goes wrong during the
    run is in the result's findings.
    """
    world, finish = prepare(
        program, ranks, inputs, function=function, dims=dims, memory=memory, trace=trace, undefined=undefined,
        calls=calls, descending=descending, max_steps=max_steps,
    )  # fmt: skip
    world.run(as_schedule(schedule), PERFORM, ARRIVE, OTHER)
    return finish(world)


def prepare(
    program: Program | Function,
    ranks: int,
    inputs: Inputs,
    *,
    function: str | None = None,
    dims: Mapping[str, int] | None = None,
    memory: str = "released",
    trace: bool = False,
    undefined: str = "report",
    calls: int = 1,
    descending: bool = False,
    max_steps: int = MAX_STEPS,
) -> tuple[World, Finish]:
    """Return a run that has not started, and what makes its result; arguments and errors as of :func:`run_ranks`."""
    if ranks < 1:
        raise error("TG030", f"a run has at least one rank, not {ranks}")
    if calls < 1:
        raise error("TG030", f"a run has at least one call, not {calls}")
    f = entry(program, function)
    codes = _compile((program,) if isinstance(program, Function) else program.functions)
    space = Memory(ranks)
    run = _run_host if isinstance(program, Program) and level_of(f) == HOST else _run_kernels
    setup = run(program, f, codes, space, inputs, dict(dims or {}), (max_steps, calls, descending))  # type: ignore[arg-type]
    programs, finish = setup
    return World(space, programs, model=memory, trace=trace, undefined=undefined), finish


def _run_kernels(
    program: Program | Function, f: Function, codes: dict[str, RankCode], space: Memory, inputs: Inputs,
    dims: dict[str, int], limits: tuple[int, int, bool],
) -> tuple[list[Rank], Finish]:  # fmt: skip
    """Prepare one kernel on every rank; ``limits``: statements, calls, block order of each."""
    setups = _bind(f, space.ranks, inputs, dims, space, program)
    programs = [_program(codes[f.name], codes, s, *limits) for s in setups]

    def finish(world: World) -> RankResult:
        outputs = []
        for s, results in zip(setups, world.results):
            own = [v for v in results if not any(v is w for w in s.windows.values())]
            outputs.append(collect(s.plain, s.plain_values, tuple(own)))
        return _result(world, tuple(outputs), {name: [s.windows[name] for s in setups] for name in setups[0].windows})

    return programs, finish


def _run_host(
    program: Program, f: Function, codes: dict[str, RankCode], space: Memory, inputs: Inputs, dims: dict[str, int],
    limits: tuple[int, int, bool],
) -> tuple[list[Rank], Finish]:  # fmt: skip
    """Run a host function and prepare its tasks; its inputs are given once, its outputs are the only element."""
    max_steps, calls, descending = limits
    values, names = bind_inputs(f, _inputs_of(inputs, 0, 1), dims)
    try:
        host = run_host(program, f, codes, values, names, space, max_steps)
    except MEANING_ERRORS as problem:
        raise error("TG032", f"{f.name} cannot be evaluated", f.span, reason=str(problem)[:200]) from problem
    machines = [RankMachine(codes, max_steps, r, space.ranks, descending) for r in range(space.ranks)]

    def finish(world: World) -> RankResult:
        slices = {name: [w.on(r) for r in range(space.ranks)] for name, w in host.windows.items()}
        own = tuple(v for v in host.results if not isinstance(v, HostWindow))
        return _result(world, (collect(f, values, own),), slices)

    return [rank_program(tasks * calls, m) for tasks, m in zip(host.tasks, machines)], finish


@dataclass
class _Setup:
    """One rank's parameter values, its dimensions, and the function without its window parameters."""

    rank: int
    ranks: int
    values: list[Any]
    names: dict[str, int]
    plain: Function
    plain_values: list[Any]
    windows: dict[str, Arr]


def _program(code: RankCode, codes: Mapping[str, RankCode], s: _Setup, budget: int, calls: int, down: bool) -> Rank:
    machine = RankMachine(codes, budget, s.rank, s.ranks, down)
    if calls == 1:
        return code.start(machine, s.values, s.names)
    return _repeated([code.start(machine, s.values, s.names) for _ in range(calls)])


def _repeated(calls: list[Rank]) -> Rank:
    results: Any = ()
    for call in calls:
        results = yield from call
    return results


def _compile(functions: tuple[Function, ...]) -> dict[str, RankCode]:
    key = tuple(map(id, functions))
    found = _codes.get(key)
    if found is None:
        names = suspending(functions)
        # The entry holds the functions, so that their ids stay theirs.
        found = _codes[key] = (functions, {f.name: RankCode(f, names) for f in functions})
        if len(_codes) > _KEPT:
            _codes.pop(next(iter(_codes)))
    return found[1]


# -- inputs --------------------------------------------------------------------------------------------------


def _window(p: Param) -> TensorType | None:
    t = p.value.type
    return t if isinstance(t, TensorType) and t.is_window else None


def _bind(
    f: Function, ranks: int, inputs: Inputs, dims: dict[str, int], space: Memory, program: Program | Function
) -> list[_Setup]:
    given = [_inputs_of(inputs, r, ranks) for r in range(ranks)]
    windows = [p for p in f.params if _window(p) is not None]
    plain = replace(f, params=tuple(p for p in f.params if _window(p) is None))
    signals = signal_names(program, f)
    names_of: list[dict[str, int]] = []
    bound: list[tuple[list[Any], dict[str, int]]] = []
    for r in range(ranks):
        names = dict(dims)
        for p in windows:
            array = given[r].get(p.value.name)
            if array is not None:
                bind_dims(p.value.type, np.asarray(array), names, p.value.name)
        for p in windows:
            if p.value.name in signals and p.value.name not in given[r]:
                _default_dims(p.value.type, names, ranks)
        rest = {k: v for k, v in given[r].items() if k not in {p.value.name for p in windows}}
        bound.append(bind_inputs(plain, rest, names))
        names_of.append(bound[-1][1])
    slices = [_slices(p, given, names_of, ranks, space, p.value.name in signals) for p in windows]
    out = []
    for r in range(ranks):
        values, names = bound[r]
        mine = {p.value.name: slices[i][r] for i, p in enumerate(windows)}
        plain_values = iter(values)
        ordered = [mine[p.value.name] if p.value.name in mine else next(plain_values) for p in f.params]
        out.append(_Setup(r, ranks, ordered, names, plain, values, mine))
    return out


def _inputs_of(inputs: Inputs, rank: int, ranks: int) -> Mapping[str, Any]:
    if callable(inputs):
        return inputs(rank)
    if isinstance(inputs, Mapping):
        return inputs
    if len(inputs) != ranks:
        raise error("TG030", f"inputs are given for {len(inputs)} ranks, the run has {ranks}")
    return inputs[rank]


def _default_dims(t: Any, names: dict[str, int], ranks: int) -> None:
    """A size that nothing else gives and that a signal has is the number of ranks."""
    for d in t.shape:
        if isinstance(d, str) and d.isidentifier():
            names.setdefault(d, ranks)


def _slices(
    p: Param, given: list[Mapping[str, Any]], names: list[dict[str, int]], ranks: int, space: Memory, signal: bool
) -> list[Arr]:
    """Make the window of a parameter and return each rank's slice."""
    t, name = _window(p), p.value.name
    assert t is not None
    shapes = []
    for r in range(ranks):
        shape = [evaluate(d, names[r]) for d in t.shape]
        if None in shape:
            hint = f"give an array for {name}, or the dimension by name"
            raise error("TG030", f"the size of window {name} is not known", hint=hint)
        shapes.append(tuple(n for n in shape if n is not None))
    if len(set(shapes)) > 1:
        raise error("TG030", f"window {name} has different shapes on different ranks")
    size = int(np.prod(shapes[0])) * t.dtype.storage.itemsize
    window = space.add(name, size, signal)
    out = []
    for r in range(ranks):
        part = window.slice_of(r, shapes[r], t.dtype)
        if name in given[r]:
            array = to_storage(given[r][name], t.dtype, name)
            if array.shape != part.shape:
                raise error("TG030", f"window {name} has shape {list(part.shape)}, got {list(array.shape)}")
            part[...] = array
            window.mark(r, True)
        elif signal:
            window.mark(r, True)
        else:
            window.poison(r, shapes[r], t.dtype)
        out.append(part)
    return out


# -- results -------------------------------------------------------------------------------------------------


def _result(world: World, outputs: tuple[dict[str, Any], ...], slices: dict[str, list[Arr]]) -> RankResult:
    windows, known, signals = {}, {}, {}
    for name, arrays in slices.items():
        views = [world.memory.view(a) for a in arrays]
        windows[name] = tuple(v.array.copy() for v in views)
        known[name] = tuple(np.asarray(v.mask(v.rank).all(axis=-1)) for v in views)
        if views[0].window.signal:
            signals[name] = windows[name]
    return RankResult(
        world.ranks, outputs, windows, known, signals, tuple(world.findings), tuple(world.log),
        tuple(world.trace or ()), dict(sorted(world.moved.items())),
    )  # fmt: skip


# -- many schedules ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exploration:
    """Several runs of one program: how many, the first that failed, and one of the results that were seen.

    ``agree``: whether all runs that finished gave the same outputs and windows.
    """

    runs: int
    failed: RankResult | None
    result: RankResult
    agree: bool


def explore(
    program: Program | Function, ranks: int, inputs: Inputs, *, count: int = 20, seed: int = 0, **options: Any
) -> Exploration:
    """Run under ``count`` schedules, adversarial ones first, until one has findings.

    ``options``: those of :func:`run_ranks`.
    """
    first: RankResult | None = None
    agree = True
    runs = 0
    for schedule in schedules(ranks, count, seed):
        result = run_ranks(program, ranks, inputs, schedule=schedule, **options)
        runs += 1
        if result.findings:
            return Exploration(runs, result, first or result, agree)
        if first is None:
            first = result
        elif agree:
            agree = same_results(first, result)
    assert first is not None
    return Exploration(runs, None, first, agree)


def same_results(a: RankResult, b: RankResult) -> bool:
    """Return whether two runs left the same outputs and the same defined window contents, bit for bit."""
    for x, y in zip(a.outputs, b.outputs):
        if x.keys() != y.keys() or not all(_same(x[k], y[k]) for k in x):
            return False
    for name in a.windows:
        for r in range(a.ranks):
            if not np.array_equal(a.known[name][r], b.known[name][r]):
                return False
            mask = a.known[name][r]
            if not _same(a.windows[name][r][mask], b.windows[name][r][mask]):
                return False
    return True


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, np.ndarray):
        return repr(a) == repr(b)
    return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
