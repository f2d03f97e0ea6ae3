"""Scalar stores and Set notifies of several ranks within one cache line: each writes the whole line back."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.ranks_events import Event
from ...ir.ranks_memory import LINE
from .arrange import possible
from .cells import Graph
from .report import Expect, SignalFinding
from .witness import witness_of

#: Window, owner of the slice, number of the line.
_Line = tuple[str, int, int]


def line_writes(graph: Graph) -> dict[_Line, list[tuple[int, bool]]]:
    """Return the events that write into each line that some scalar store or Set writes, and whether they are such.

    A scalar store and a Set go through the scalar cache and write the whole line back; tile stores and atomic adds
    write their own bytes alone, but may be undone by the former.
    """
    events = graph.u.events
    cached = {line for e in events if _is_cached(e) for line in _lines(e)}
    out: dict[_Line, list[tuple[int, bool]]] = {}
    for n, e in enumerate(events) if cached else ():
        for line in _lines(e):
            if line in cached:
                out.setdefault(line, []).append((n, _is_cached(e)))
    return out


def _is_cached(e: Event) -> bool:
    return e.word == "set" or (e.kind == "store" and e.statement is not None and e.statement.name == "tensor.write")


def _lines(e: Event) -> Iterator[_Line]:
    if e.kind == "notify" and e.cell is not None:
        yield e.cell.window, e.cell.owner, e.cell.number * 4 // LINE
    for w in e.writes if e.kind != "collective" else ():
        for line in sorted(w.lines()):
            yield w.window, w.owner, line


def line_faults(graph: Graph) -> Iterator[SignalFinding]:
    """Yield pairs of writes of different ranks to different bytes of a line that nothing orders."""
    for (window, owner, line), writes in line_writes(graph).items():
        pair = _unordered(graph, writes)
        if pair is None:
            continue
        a, b = pair
        u = graph.u
        first, second = u.events[a], u.events[b]
        statements = tuple(e.statement for e in (second, first) if e.statement is not None)
        expect = Expect("order", first=u.step(b), second=u.step(a))
        if any(use.outside for use in graph.uses.values()):
            # What one run has shown of undecided cells does not tell how to turn it round.
            expect = Expect("reached", first=u.step(b))
        witness = witness_of(graph, graph.past((b,)), expect, a)
        yield SignalFinding(
            "shared-line", f"ranks {first.rank} and {second.rank} write into line {line} of {window} on rank {owner}",
            u.setting, tuple(sorted({first.rank, second.rank})), (f"{window} line {line} of rank {owner}",), statements,
            f"a scalar store or Set writes its whole {LINE}-byte line back, and undoes the other's",
            f"one writer per line: place the elements {LINE} bytes apart, or use AtomicAdd", witness=witness,
        )  # fmt: skip


def _unordered(graph: Graph, writes: list[tuple[int, bool]]) -> tuple[int, int] | None:
    last: dict[tuple[int, bool], int] = {}
    for n, scalar in writes:
        rank = graph.u.events[n].rank
        for (other, cached), m in last.items():
            if other != rank and (scalar or cached) and possible(graph, m, n) and _apart(graph, m, n):
                return m, n
        last[rank, scalar] = n
    return None


def _apart(graph: Graph, a: int, b: int) -> bool:
    """Return whether two writes touch different elements: those to the same are conflicts of their own."""
    first, second = graph.u.events[a], graph.u.events[b]
    if first.cell is not None and second.cell is not None:
        return first.cell != second.cell
    return not any(x.overlaps(y) for x in first.writes for y in second.writes)
