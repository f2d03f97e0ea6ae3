"""Runs that do not end: a circle of waits, a wait nobody can satisfy, a wrong cell, a barrier not all reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...ir.program import Program
from ...ir.ranks_events import format_schedule
from ...ir.ranks_memory import Cell
from .cells import Graph, Use, uses_of
from .report import Expect, SignalFinding, Witness
from .structure import divergent
from .unroll import Stuck, Unrolled
from .witness import witness_of


def hangs(program: Program, graph: Graph, relaxed: Unrolled | None) -> Iterator[SignalFinding]:
    """Yield why the ranks of an unfinished run are stuck; ``relaxed``: the same program past its waits."""
    uses = uses_of(relaxed) if relaxed is not None else {}
    equal = [s for s in graph.u.stuck if s.word == "eq" and s.cell in uses and uses[s.cell].adds]
    for s in equal:
        yield _base(
            graph, "eq-on-counter", f"rank {s.rank} waits for {s.cell} == {s.value} on a counter", [s],
            reason="the counter may be pushed past the value before it is polled", hint="wait with WaitCmp.Ge",
        )  # fmt: skip
    if equal:
        return
    hopeless = [s for s in graph.u.stuck if s.cell is not None and relaxed is not None and _hopeless(graph, s, uses)]
    for s in hopeless:
        assert relaxed is not None
        yield _unsatisfiable(program, graph, s, relaxed, uses)
    if hopeless:
        return
    apart = [s for s in graph.u.stuck if s.cell is None]
    waiting = [s for s in graph.u.stuck if s.cell is not None]
    if apart and (len(apart) + len(waiting) < graph.u.setting.ranks or not waiting):
        yield _apart(program, graph, apart)
        return
    circle = _circle(graph, relaxed, uses) if relaxed is not None else []
    yield _deadlock(graph, circle or waiting or apart)


def _witness(graph: Graph, stuck: list[Stuck]) -> Witness:
    u, expect = graph.u, Expect("stuck", tuple(s.rank for s in stuck))
    if any(s.word == "eq" or (s.cell in graph.uses and graph.uses[s.cell].sets) for s in stuck):
        # What such a cell holds depends on the schedule: only the whole run is known to end here.
        return Witness(u.setting, format_schedule([c for _, cs in u.choices for c in cs]), expect)
    numbers = [u.by_rank[s.rank][-1] for s in stuck if u.by_rank[s.rank]]
    return witness_of(graph, graph.past(numbers), expect)


def _base(graph: Graph, word: str, message: str, stuck: list[Stuck], **more: object) -> SignalFinding:
    return SignalFinding(
        word, message, graph.u.setting, tuple(s.rank for s in stuck),
        tuple(str(s.cell) for s in stuck if s.cell is not None), tuple(s.statement for s in stuck),
        witness=_witness(graph, stuck), **more,  # type: ignore[arg-type]
    )  # fmt: skip


def _need(graph: Graph, s: Stuck) -> int:
    assert s.cell is not None
    use = graph.uses.get(s.cell)
    return s.value - (use.taken(len(graph.u.by_rank[s.rank])) if use is not None else 0)


def _hopeless(graph: Graph, s: Stuck, uses: dict[Cell, Use]) -> bool:
    """Return whether all notifies of all ranks together do not make the wait pass."""
    assert s.cell is not None
    use = uses.get(s.cell)
    if use is None or not (use.credits or use.sets):
        return True
    if use.sets or use.negative:
        return False
    return use.total < _need(graph, s)


def _unsatisfiable(
    program: Program, graph: Graph, s: Stuck, relaxed: Unrolled, uses: dict[Cell, Use]
) -> SignalFinding:
    assert s.cell is not None
    use = uses.get(s.cell)
    given = use.total if use is not None else 0
    message = f"rank {s.rank} waits for {s.cell} >= {s.value}, which never holds"
    reason = f"all notifies of all ranks give {given} credits, {_need(graph, s)} are needed"
    base = _base(graph, "unsatisfiable-wait", message, [s], reason=reason)
    about = {id(s.statement), *_notifies(relaxed, s.cell.window)}
    for statement, inside in divergent(program):
        if inside & about:
            span = getattr(statement, "span", None)
            why = "the branch or loop depends on the rank and encloses a barrier"
            return replace(base, word="divergent-barrier", reason=why, spans=(span,) if span is not None else (),
                           notes=(reason,), hint="all ranks pass a barrier equally often")  # fmt: skip
    for other in uses.values():
        if _orphan(other, s.cell):
            note = f"{other.cell} is notified, and nobody waits for it"
            notify = relaxed.events[min(other.adds + other.sets)].statement
            statements = base.statements if notify is None else (*base.statements, notify)
            return replace(
                base, word="wrong-cell", notes=(note,), cells=(*base.cells, str(other.cell)), statements=statements
            )
    return base


def _notifies(relaxed: Unrolled, window: str) -> set[int]:
    """Return the notify statements that act on a window, by id."""
    return {
        id(e.statement) for e in relaxed.events
        if e.kind == "notify" and e.cell is not None and e.cell.window == window
    }  # fmt: skip


def _orphan(use: Use, cell: Cell) -> bool:
    """Return whether a cell of the same window is notified by others but never waited for."""
    return use.cell.window == cell.window and not use.waits and not use.deferred and use.total > 0


def _circle(graph: Graph, relaxed: Unrolled | None, uses: dict[Cell, Use]) -> list[Stuck]:
    """Return the ranks of a circle: each waits for a credit that the next one would give later."""
    # Loading the library takes longer than most checks; only a run that does not end needs it.
    import networkx as nx

    assert relaxed is not None
    by_rank = {s.rank: s for s in graph.u.stuck}
    waits = nx.DiGraph()
    for s in graph.u.stuck:
        for p in _waits_for(graph, relaxed, s, uses):
            if p in by_rank:
                waits.add_edge(s.rank, p)
    try:
        edges = nx.find_cycle(waits)
    except nx.NetworkXNoCycle:
        return []
    return [by_rank[a] for a, _ in edges]


def _waits_for(graph: Graph, relaxed: Unrolled, s: Stuck, uses: dict[Cell, Use]) -> list[int]:
    if s.cell is None:
        return sorted(o.rank for o in graph.u.stuck if o.cell is not None)
    use = uses[s.cell]
    out = []
    for p, given in use.credits.items():
        done = len(graph.u.by_rank[p])
        if any(relaxed.position[n] >= done for n, _ in given):
            out.append(p)
    return sorted(out)


def _deadlock(graph: Graph, stuck: list[Stuck]) -> SignalFinding:
    ranks = ", ".join(str(s.rank) for s in stuck)
    lines = tuple(_line(s) for s in stuck)
    return _base(
        graph, "deadlock", f"ranks {ranks} wait for each other", stuck, notes=lines,
        reason="each would give the credit the other needs only after its own wait",
        hint="notify before waiting, on every rank",
    )  # fmt: skip


def _line(s: Stuck) -> str:
    if s.cell is None:
        return f"rank {s.rank} is at {s.statement.name}"
    where = f" at line {s.statement.span.line}" if s.statement.span is not None else ""
    return f"rank {s.rank} waits for {s.cell} {'==' if s.word == 'eq' else '>='} {s.value}{where}"


def _apart(program: Program, graph: Graph, stuck: list[Stuck]) -> SignalFinding:
    s = stuck[0]
    base = _base(graph, "divergent-barrier", f"{s.statement.name} is not reached by every rank", stuck,
                 reason="ranks meet at a collective only when all of them call it", notes=tuple(map(_line, stuck)),
                 hint="call collectives on every rank, in one order")  # fmt: skip
    for statement, inside in divergent(program):
        span = getattr(statement, "span", None)
        if span is not None and any(id(x.statement) in inside for x in stuck):
            return replace(base, spans=(span,))
    return base
