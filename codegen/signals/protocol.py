"""Faults of the signal protocol: mixed operations, stale waits, leaks, counters too wide, wrong cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ...ir.dtypes import INT32
from ...ir.program import Op, Value
from ...ir.ranks_memory import Cell
from ...ir.types import TensorType
from .arrange import possible
from .cells import Graph, Use, needs
from .report import Expect, SignalFinding
from .unroll import Unrolled
from .witness import witness_of

INT32_MAX = 2**31 - 1


def protocol_faults(graph: Graph) -> Iterator[SignalFinding]:
    """Yield what is wrong with the cells of a run, finished or not."""
    waited = {use.cell.window for use in graph.uses.values() if use.waits or use.deferred}
    waited |= {s.cell.window for s in graph.u.stuck if s.cell is not None}
    yield from _forms(graph, waited)
    for use in graph.uses.values():
        yield from _mixed(graph, use)
        yield from _equal(graph, use)
        yield from _wide(graph, use)
        yield from _deferred(graph, use)
        stale = _stale(graph, use) if not use.outside else None
        if stale is not None:
            yield stale
        elif graph.u.finished and use.cell.window in waited:
            yield from _leak(graph, use)


def name_of(cell: Cell) -> str:
    """Return a cell's name in findings."""
    return str(cell)


def finding(
    graph: Graph, word: str, message: str, event: int, cell: Cell | None = None, also: tuple[int, ...] = (),
    **more: str,
) -> SignalFinding:  # fmt: skip
    """Return a finding about one event, whose witness is the shortest run that reaches it."""
    e = graph.u.events[event]
    others = tuple(graph.u.events[n] for n in also)
    statements = tuple(s for s in (e.statement, *(o.statement for o in others)) if s is not None)
    ranks = tuple(sorted({e.rank, *(o.rank for o in others)}))
    witness = witness_of(graph, graph.past((event, *also)), Expect("reached", first=graph.u.step(event)))
    cells = (name_of(cell),) if cell is not None else ()
    return SignalFinding(word, message, graph.u.setting, ranks, cells, statements, witness=witness, **more)  # type: ignore[arg-type]


def _mixed(graph: Graph, use: Use) -> Iterator[SignalFinding]:
    if use.sets and use.adds:
        n, other = use.sets[0], use.adds[0]
        yield finding(
            graph, "mixed-set-add", f"{use.cell} is both Set and added to", n, use.cell, (other,),
            reason="a Set overwrites credits that have arrived before it", hint="use AtomicAdd alone",
        )  # fmt: skip


def _equal(graph: Graph, use: Use) -> Iterator[SignalFinding]:
    if use.equal and use.adds:
        yield finding(
            graph, "eq-on-counter", f"a wait for {use.cell} == {graph.u.events[use.equal[0]].value} on a counter",
            use.equal[0], use.cell, (use.adds[0],),
            reason="a fast peer may push the counter past the value before it is polled", hint="wait with WaitCmp.Ge",
        )  # fmt: skip


def _wide(graph: Graph, use: Use) -> Iterator[SignalFinding]:
    u = graph.u
    total = 0
    for n in use.adds:
        total += max(0, int(u.events[n].value or 0))
        if total > INT32_MAX:
            yield finding(graph, "wide-counter", f"{use.cell} may reach {total}", n, use.cell,
                          reason=f"a cell holds at most {INT32_MAX}")  # fmt: skip
            return
    for n in use.waits:
        if int(u.events[n].value or 0) > INT32_MAX:
            yield finding(graph, "wide-counter", f"a wait for {u.events[n].value}", n, use.cell,
                          reason=f"a cell holds at most {INT32_MAX}")  # fmt: skip
            return


def _deferred(graph: Graph, use: Use) -> Iterator[SignalFinding]:
    """A counter that a task's completion depends on only grows, inside 0..INT32_MAX."""
    if not use.deferred:
        return
    u = graph.u
    for n in use.deferred:
        if not 0 <= int(u.events[n].value or 0) <= INT32_MAX:
            yield finding(graph, "defer-misuse", f"a deferred wait for {u.events[n].value}", n, use.cell,
                          reason="the scheduler compares unsigned; thresholds lie in 0..INT32_MAX")  # fmt: skip
            return
    falls = [n for n in use.adds if int(u.events[n].value or 0) < 0]
    values = [int(u.events[n].value or 0) for n in use.sets]
    falls += [n for n, a, b in zip(use.sets[1:], values, values[1:]) if b < a]
    if falls:
        yield finding(graph, "defer-misuse", f"{use.cell}, which a deferred wait polls, is lowered", falls[0], use.cell,
                      (use.deferred[0],), reason="the counter of a deferred wait only grows: -1 reads as 2**32 - 1",
                      hint="count epochs upwards")  # fmt: skip


def _stale(graph: Graph, use: Use) -> SignalFinding | None:
    """A wait that needs no more than an earlier one took, while a later credit is waited for by nobody."""
    found = needs(use, graph.u)
    if use.sets:
        return _set_again(graph, use)
    highest = max((need for _, need in found), default=0)
    if not use.credits or use.total <= max(highest, 0):
        return None
    taken, last = 0, -1
    for n, need in found:
        if need <= taken:
            return _stale_finding(graph, use, n, last, taken)
        taken, last = need, n
    return None


def _set_again(graph: Graph, use: Use) -> SignalFinding | None:
    """A flag that is set once more to a value it has: the wait for that is satisfied by the first time."""
    given = [entry for entries in use.credits.values() for entry in entries]
    taken, last = 0, -1
    for n, need in needs(use, graph.u):
        if last >= 0 and need <= taken:
            again = [m for m, value in given if value == taken]
            if len(again) > 1 and not graph.before(again[-1], n):
                return _stale_finding(graph, use, n, last, taken, again[-1])
        taken, last = max(taken, need), n
    return None


def _stale_finding(
    graph: Graph, use: Use, n: int, earlier: int, taken: int, meant: int | None = None
) -> SignalFinding:  # fmt: skip
    u = graph.u
    if meant is None:
        meant = next((m for given in use.credits.values() for m, total in given if total > max(taken, 0)), None)
    also = () if earlier < 0 else (earlier,)
    reason = "its credit was taken by an earlier wait and not retired" if also else "it passes on an unused cell"
    base = finding(
        graph, "stale-signal", f"rank {u.events[n].rank} accepts an old credit of {use.cell}", n, use.cell, also,
        reason=reason, hint="retire the credits of each use with AtomicAdd(-N) by the owner",
    )  # fmt: skip
    if meant is None or graph.before(meant, n):
        return base
    expect = Expect("order", first=u.step(n), second=u.step(meant))
    witness = witness_of(graph, graph.past((n,)), expect, meant)
    statement = u.events[meant].statement
    statements = base.statements if statement is None else (*base.statements, statement)
    return SignalFinding(
        base.word, base.message, u.setting, base.ranks, base.cells, statements, base.reason, base.hint,
        (f"the credit meant is the one of rank {u.events[meant].rank}",), (), witness,
    )  # fmt: skip


def _leak(graph: Graph, use: Use) -> Iterator[SignalFinding]:
    left = graph.u.left.get(use.cell, 0)
    if not left or use.deferred:
        return
    u = graph.u
    retired = [n for n in use.adds if u.events[n].rank == use.cell.owner and int(u.events[n].value or 0) < 0]
    blamed = _surplus(u, use) if not retired or _agrees(u, use) else retired[-1]
    given = [n for n in use.adds + use.sets if n != blamed][-1:]
    base = finding(
        graph, "credit-leak", f"{use.cell} holds {left} at the end", blamed, use.cell, tuple(given),
        reason="the next use of the signal starts from a cell that is not zero",
        hint="the owner retires exactly the credits it was given: AtomicAdd(-N)",
    )  # fmt: skip
    c = use.cell
    witness = witness_of(graph, graph.past(use.adds + use.sets), Expect("left", cell=(c.window, c.owner, c.number)))
    yield SignalFinding(
        base.word, base.message, u.setting, base.ranks, base.cells, base.statements, base.reason, base.hint, (), (),
        witness,
    )  # fmt: skip


def unawaited_faults(graph: Graph) -> Iterator[SignalFinding]:
    """Yield credits that owners retire without having waited for them: they may go on before their peers.

    Windows that are read hold data, which may be added to and taken from without any wait.
    """
    read = {r.window for e in graph.u.events if e.kind != "invalidate" for r in e.reads}
    for use in graph.uses.values():
        if use.waits or use.cell.window not in read:
            yield from _unawaited(graph, use)


def _unawaited(graph: Graph, use: Use) -> Iterator[SignalFinding]:
    u = graph.u
    retired = [n for n in use.adds if u.events[n].rank == use.cell.owner and int(u.events[n].value or 0) < 0]
    asked = max((need for _, need in needs(use, u)), default=0)
    if use.outside or use.deferred or not retired or u.left.get(use.cell, 0) or asked >= use.total:
        return
    missed = next((n for given in use.credits.values() for n, total in given if total > asked), None)
    if missed is None or not possible(graph, missed, retired[-1]):
        return
    base = finding(
        graph, "use-before-wait", f"rank {use.cell.owner} retires a credit of {use.cell} that it has not waited for",
        retired[-1], use.cell, (missed,), reason="it may end before its peer has notified it",
        hint="wait for all credits before they are retired",
    )  # fmt: skip
    expect = Expect("order", first=u.step(retired[-1]), second=u.step(missed))
    yield replace(base, witness=witness_of(graph, graph.past((retired[-1],)), expect, missed))


def _agrees(u: Unrolled, use: Use) -> bool:
    """Return whether the owner retires what its waits ask for, so that the surplus is given by the others."""
    asked = max((need for _, need in needs(use, u)), default=0)
    return -use.taken(len(u.by_rank[use.cell.owner])) == asked


def _surplus(u: Unrolled, use: Use) -> int:
    """Return the last notify of another rank that no wait asks for: the first beyond, where one rank gives all."""
    asked = max((need for _, need in needs(use, u)), default=0)
    beyond = [n for given in use.credits.values() for n, total in given if total > asked]
    return min(beyond) if beyond else max(use.adds + use.sets)


def _forms(graph: Graph, waited: set[str]) -> Iterator[SignalFinding]:
    """Signals hold INT32 cells; where somebody waits for the window the waits are told, else the notifies."""
    seen: set[int] = set()
    for n, e in enumerate(graph.u.events):
        alone = e.kind == "notify" and e.cell is not None and e.cell.window not in waited
        told = alone or e.kind in ("wait", "defer")
        if not told or e.statement is None or id(e.statement) in seen:
            continue
        seen.add(id(e.statement))
        t = _signal_type(e.statement)
        if t is None or t.dtype is INT32:
            continue
        wide = (t.dtype.is_int and t.dtype.bits > 32) or t.dtype.name == "UINT32"
        word = "wide-counter" if wide else "wrong-cell"
        yield finding(graph, word, f"the signal holds {t.dtype.name} cells", n, e.cell,
                      reason="notify and wait address 32-bit signed cells", hint="make it an INT32 window")  # fmt: skip


def _signal_type(s: Op) -> TensorType | None:
    first = s.operands[0] if s.operands else None
    return first.type if isinstance(first, Value) and isinstance(first.type, TensorType) else None
