"""Equivalence tests whose runs other threads, processes or machines do.

Any ``concurrent.futures.Executor`` will do. The turns are cut into parts whose number depends on nothing but the number
of turns, and their tallies are added up in order: the report is the same whatever the executor, and the same as
without one.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import lru_cache
from typing import Any

from ..ir.equivalence import Report, Samples, Session, Setup, Source, Tally, total
from ..ir.program import Function, Program, require_program
from .exhaustive import LIMIT, Every, every_input

#: Parts a test is cut into at most: enough for many workers, few enough that sending them costs nothing.
_PARTS = 256

Progress = Callable[[int, int], None]


def compare_programs(
    a: Program | Function,
    b: Program | Function,
    *,
    contract: str = "exact",
    inputs: int = 64,
    seed: int = 0,
    facts: Mapping[str, Any] | None = None,
    dims: Mapping[str, int] | None = None,
    function: str | None = None,
    promises: Program | None = None,
    exhaustive: bool = False,
    limit: int = LIMIT,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compare two programs on ``inputs`` drawn inputs, or on every input there is.

    As :func:`tilegg.equivalent`, which this does with one process; further: ``exhaustive`` tries every input in at most
    ``limit`` runs (TG033 when that is not enough; a pointwise program takes as many inputs in a run as its tiles have
    elements), ``executor`` does the runs. ``promises``: the program that ``a`` was made from, whose promises the inputs
    keep too.
    """
    for program in (a, b):
        require_program(program, "compare_programs", Function)
    setup = Setup(a, b, contract, facts or {}, dims or {}, function, promises)
    session = Session(setup)
    source: Source = every_input(session, limit) if exhaustive else Samples(inputs, seed)
    step = -(-source.count // _PARTS) if executor is not None or exhaustive else 1
    starts = range(0, source.count, max(step, 1))
    if executor is None:
        parts: Iterator[Tally] = (session.tally(source, i, min(i + step, source.count)) for i in starts)
    else:
        parts = _spread(executor, setup, source, starts, step)
    tally = total(parts, source.count, progress, step)
    return session.report(tally, seed, source.cases if isinstance(source, Every) else None)


def _spread(executor: Executor, setup: Setup, source: Source, starts: range, step: int) -> Iterator[Tally]:
    """Yield the tallies of all parts in order; what is not needed any more is cancelled."""
    work = pickle.dumps((setup, source), protocol=pickle.HIGHEST_PROTOCOL)
    waiting = [executor.submit(tally_part, work, i, min(i + step, source.count)) for i in starts]
    try:
        for future in waiting:
            yield future.result()
    finally:
        for future in waiting:
            future.cancel()


def tally_part(work: bytes, first: int, last: int) -> Tally:
    """Do one part; runs in a worker."""
    session, source = _unpacked(work, threading.get_ident())
    return session.tally(source, first, last)


@lru_cache(maxsize=8)
def _unpacked(work: bytes, thread: int) -> tuple[Session, Source]:
    """Return the session of some work: one per thread, so that threads share nothing that a run changes."""
    setup, source = pickle.loads(work)
    return Session(setup), source
