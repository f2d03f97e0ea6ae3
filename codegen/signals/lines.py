"""Scalar stores and Set notifies of several ranks within one cache line: each writes the whole line back."""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.ranks_memory import LINE
from .arrange import possible
from .cells import Graph
from .report import Expect, SignalFinding
from .witness import witness_of

#: Window, owner of the slice, number of the line.
_Line = tuple[str, int, int]


def scalar_writes(graph: Graph) -> dict[_Line, list[int]]:
    """Return the events that write through a scalar cache, by line."""
    out: dict[_Line, list[int]] = {}
    for n, e in enumerate(graph.u.events):
        if e.kind == "notify" and e.word == "set" and e.cell is not None:
            out.setdefault((e.cell.window, e.cell.owner, e.cell.number * 4 // LINE), []).append(n)
        elif e.kind == "store" and e.statement is not None and e.statement.name == "tensor.write":
            for w in e.writes:
                for line in sorted(w.lines()):
                    out.setdefault((w.window, w.owner, line), []).append(n)
    return out


def line_faults(graph: Graph) -> Iterator[SignalFinding]:
    """Yield pairs of writes of different ranks to different bytes of a line that nothing orders."""
    for (window, owner, line), numbers in scalar_writes(graph).items():
        pair = _unordered(graph, numbers)
        if pair is None:
            continue
        a, b = pair
        u = graph.u
        first, second = u.events[a], u.events[b]
        statements = tuple(e.statement for e in (second, first) if e.statement is not None)
        witness = witness_of(graph, graph.past((b,)), Expect("order", first=u.step(b), second=u.step(a)), a)
        yield SignalFinding(
            "shared-line", f"ranks {first.rank} and {second.rank} write into line {line} of {window} on rank {owner}",
            u.setting, tuple(sorted({first.rank, second.rank})), (f"{window} line {line} of rank {owner}",), statements,
            f"a scalar store writes its whole {LINE}-byte line back, and undoes the other's",
            f"one writer per line: place the elements {LINE} bytes apart, or use AtomicAdd", witness=witness,
        )  # fmt: skip


def _unordered(graph: Graph, numbers: list[int]) -> tuple[int, int] | None:
    last: dict[int, int] = {}
    for n in numbers:
        rank = graph.u.events[n].rank
        for other, m in last.items():
            if other != rank and possible(graph, m, n) and _apart(graph, m, n):
                return m, n
        last[rank] = n
    return None


def _apart(graph: Graph, a: int, b: int) -> bool:
    """Return whether two writes touch different elements: those to the same are conflicts of their own."""
    first, second = graph.u.events[a], graph.u.events[b]
    if first.cell is not None and second.cell is not None:
        return first.cell != second.cell
    return not any(x.overlaps(y) for x in first.writes for y in second.writes)
