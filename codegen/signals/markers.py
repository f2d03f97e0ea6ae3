"""Cache and fence markers of programs that place them: each publication and each read after a wait, exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...ir.program import Program, walk
from ...ir.ranks_events import Event
from ...ir.ranks_memory import Region
from .cells import Graph
from .doubled import doubled_markers
from .protocol import finding
from .races import touched
from .report import Expect, SignalFinding

_MARKERS = ("fence", "invalidate")


@dataclass
class _Pending:
    """A write that is not yet published: its event, and whether it was cleaned from the cache."""

    event: int
    region: Region
    cleaned: bool = False


def uses_markers(graph: Graph) -> bool:
    """Return whether the program places markers itself."""
    return any(e.kind in _MARKERS for e in graph.u.events)


def marker_faults(graph: Graph, program: Program) -> Iterator[SignalFinding]:
    """Yield notifies that release unpublished writes, reads of lines that may be stale, and markers that do nothing.

    A write is published by a cacheinvalid of its region and then a fence; a wait is followed by a cacheinvalid of
    everything before the next read of what others write. Programs without any marker leave this to lowering.
    """
    if not uses_markers(graph):
        return
    yield from _doubled(graph, program)
    home = {id(s): f.name for f in program.functions for s in walk(f.body)}
    for numbers in graph.u.by_rank:
        yield from _publish(graph, numbers)
        yield from _consume(graph, numbers, home)


def _doubled(graph: Graph, program: Program) -> Iterator[SignalFinding]:
    again = {id(s): s for s in doubled_markers(program)}
    for n, e in enumerate(graph.u.events if again else ()):
        s = again.pop(id(e.statement), None)
        if s is not None:
            yield finding(
                graph, "doubled-marker", f"{s.name} again, with nothing to do since the one before", n,
                reason="neither a write nor a wait lies between, on any path",
                hint="leave it out: each costs a round trip to memory",
            )  # fmt: skip


def _publish(graph: Graph, numbers: list[int]) -> Iterator[SignalFinding]:
    u = graph.u
    pending: list[_Pending] = []
    for n in numbers:
        e = u.events[n]
        if e.kind == "invalidate":
            for p in pending:
                p.cleaned |= not e.reads or any(_cleans(u.events[p.event], p.region, r) for r in e.reads)
        elif e.kind == "fence":
            pending = [p for p in pending if not p.cleaned]
        elif e.kind == "notify" and e.cell is not None and e.cell.owner != e.rank:
            late = next((p for p in pending if _reader(graph, p, n) is not None), None)
            if late is not None:
                yield _unpublished(graph, late, n)
                pending.remove(late)
        if e.writes and e.kind != "collective":
            pending += [_Pending(n, w) for w in e.writes if w.window not in u.signals]


def _cleans(write: Event, written: Region, region: Region) -> bool:
    """Return whether invalidating a region of the own slice cleans a write: of scalar stores whole lines are cached."""
    if written.window != region.window:
        return False
    if write.statement is not None and write.statement.name == "tensor.write":
        return bool(written.lines() & region.lines())
    return replace(written, owner=region.owner).overlaps(region)


def _reader(graph: Graph, p: _Pending, notify: int) -> int | None:
    """Return an access of another rank that relies on the notify to see the write."""
    for a in touched(graph).get((p.region.window, p.region.owner), ()):
        other = a.rank != graph.u.events[p.event].rank and a.kind == "read"
        if other and graph.before(notify, a.event) and a.region.overlaps(p.region):
            return a.event
    return None


def _unpublished(graph: Graph, p: _Pending, notify: int) -> SignalFinding:
    u = graph.u
    missing = "fence" if p.cleaned else "cacheinvalid of the written region"
    base = finding(
        graph, "missing-marker", f"no {missing} between the write and the notify that releases it", notify,
        u.events[notify].cell, (p.event,), reason="the notify may be seen before the data",
        hint="pl.system.cacheinvalid(tensor, shapes, offsets), then pl.system.fence(), before the notify",
    )  # fmt: skip
    reader = _reader(graph, p, notify)
    if reader is None or base.witness is None:
        return base
    return _hidden(base, graph, p.event, reader)


def _hidden(base: SignalFinding, graph: Graph, write: int, reader: int) -> SignalFinding:
    """Give a finding the run in which the reader reads before the write is visible."""
    u = graph.u
    steps = graph.past((reader,))
    done = [0] * u.setting.ranks
    choices = []
    for rank, _ in u.choices:
        if done[rank] < steps.get(rank, 0):
            choices.append(str(rank))
        done[rank] += 1
    assert base.witness is not None
    expect = Expect("hidden", first=u.step(write), second=u.step(reader))
    return replace(base, witness=replace(base.witness, schedule=" ".join(choices), expect=expect, memory="fenced"))


def _consume(graph: Graph, numbers: list[int], home: dict[int, str]) -> Iterator[SignalFinding]:
    """``home``: the function of each statement; a task starts with fresh caches, so a wait of another one is enough."""
    u = graph.u
    wait: int | None = None
    for n in numbers:
        e = u.events[n]
        if wait is not None and home.get(id(e.statement)) != home.get(id(u.events[wait].statement)):
            wait = None
        if e.kind == "wait":
            wait = n
        elif e.kind == "invalidate" and not e.reads:
            wait = None
        elif wait is not None and e.kind in ("load", "put", "get", "store") and e.reads:
            if not any(_others_write(graph, r, e.rank) for r in e.reads):
                continue
            yield finding(
                graph, "missing-marker", "no cacheinvalid between the wait and the read", n, None, (wait,),
                reason="the read may find a line that was cached before the wait",
                hint="pl.system.cacheinvalid() after the wait",
            )  # fmt: skip
            wait = None


def _others_write(graph: Graph, region: Region, rank: int) -> bool:
    group = touched(graph).get((region.window, region.owner), ())
    return any(a.rank != rank and a.kind != "read" and a.region.overlaps(region) for a in group)


