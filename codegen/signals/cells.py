"""Signal cells: who gives credits, who takes them, and which credit lets each wait pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.ranks_memory import Cell
from .unroll import Unrolled


@dataclass
class Use:
    """Everything a run does with one cell; numbers are those of events.

    ``own``: the owner's atomic adds as (position, delta). ``credits``: per other rank its notifies in order, with the
    total of its credits after each. ``sets``: Set notifies with the setting rank. ``waits``: waits of the owner.
    """

    cell: Cell
    own: list[tuple[int, int]] = field(default_factory=list)
    credits: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    adds: list[int] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    equal: list[int] = field(default_factory=list)
    deferred: list[int] = field(default_factory=list)
    negative: list[int] = field(default_factory=list)
    #: Why one run does not decide about this cell; empty when it does.
    outside: str = ""
    _needs: list[tuple[int, int]] | None = None

    @property
    def total(self) -> int:
        """The credits that other ranks give in all."""
        return sum(given[-1][1] for given in self.credits.values())

    def taken(self, position: int) -> int:
        """Return what the owner has added (negative: retired) before a position of its own."""
        return sum(delta for at, delta in self.own if at < position)


def uses_of(u: Unrolled) -> dict[Cell, Use]:
    """Return what the events do with each cell, in the order the cells first occur."""
    found: dict[Cell, Use] = {}
    for n, e in enumerate(u.events):
        if e.cell is None:
            continue
        use = found.get(e.cell)
        if use is None:
            use = found[e.cell] = Use(e.cell)
        _note(use, u, n)
    waited = {use.cell.window for use in found.values() if use.waits}
    for use in found.values():
        _settle(use, u, use.cell.window in waited)
    return found


def _note(use: Use, u: Unrolled, n: int) -> None:
    e = u.events[n]
    value = int(e.value or 0)
    if e.kind == "defer":
        use.deferred.append(n)
    elif e.kind == "wait":
        use.waits.append(n)
        if e.word == "eq":
            use.equal.append(n)
    elif e.word == "set":
        use.sets.append(n)
    else:
        use.adds.append(n)
        if e.rank == use.cell.owner:
            use.own.append((u.position[n], value))
            return
        if value < 0:
            use.negative.append(n)
        given = use.credits.setdefault(e.rank, [])
        given.append((n, (given[-1][1] if given else 0) + value))


def _settle(use: Use, u: Unrolled, signal: bool) -> None:
    """Decide whether the cell is a counter, or flags that one rank sets to ever higher values.

    ``signal``: some cell of the window is waited for; otherwise its cells hold data.
    """
    if not use.waits:
        if signal and len({u.events[n].rank for n in use.sets}) > 1:
            use.outside = "Set by several ranks, and waited for by none"
        return
    if use.equal:
        use.outside = "a wait for equality"
    elif use.negative:
        use.outside = "credits taken back by another rank than the owner"
    elif use.sets and use.adds:
        use.outside = "Set and AtomicAdd on one cell"
    elif use.sets:
        setters = {u.events[n].rank for n in use.sets}
        values = [int(u.events[n].value or 0) for n in use.sets]
        if len(setters) == 1 and use.cell.owner not in setters and values == sorted(values) and values[0] >= 0:
            use.credits = {setters.pop(): list(zip(use.sets, values))}
        else:
            use.outside = "Set to values that do not only grow, or by several ranks"


def needs(use: Use, u: Unrolled) -> list[tuple[int, int]]:
    """Return for each wait of the cell, in order, how many credits of others it needs; computed once."""
    if use._needs is not None:
        return use._needs
    out, at, total = [], 0, 0
    for n in use.waits:
        position = u.position[n]
        while at < len(use.own) and use.own[at][0] < position:
            total += use.own[at][1]
            at += 1
        out.append((n, int(u.events[n].value or 0) - total))
    use._needs = out
    return out


@dataclass
class Graph:
    """Program order and the edges notify -> wait, with vector clocks.

    ``clocks[n][r]`` counts the events of rank ``r`` that happen before event ``n`` in every schedule, ``n`` itself
    included. ``releases`` are the edges: for each wait the notifies that must have happened.
    """

    u: Unrolled
    uses: dict[Cell, Use]
    releases: dict[int, tuple[int, ...]]
    clocks: list[list[int]]
    #: The accesses to data windows, once somebody has asked for them.
    touched: Any = None
    #: Whether some waited cell has several producers.
    shared: bool = False
    #: Runs without one event, by that event.
    reached: dict[int, tuple[list[int], list[int]]] = field(default_factory=dict)

    def before(self, a: int, b: int) -> bool:
        """Return whether event ``a`` happens before ``b`` in every schedule."""
        return self.clocks[b][self.u.events[a].rank] > self.u.position[a]

    def past(self, numbers: Iterable[int], without: bool = False) -> dict[int, int]:
        """Return how many steps of each rank the events need (``without``: the events themselves left out)."""
        wanted = [0] * self.u.setting.ranks
        for n in numbers:
            clock = list(self.clocks[n])
            if without:
                clock[self.u.events[n].rank] -= 1
            wanted = [max(a, b) for a, b in zip(wanted, clock)]
        return dict(enumerate(wanted))


def build(u: Unrolled, uses: dict[Cell, Use] | None = None) -> Graph:
    """Return the graph of a run. Cells with several producers are refined until nothing changes."""
    found = uses_of(u) if uses is None else uses
    releases: dict[int, tuple[int, ...]] = {}
    shared: list[Use] = []
    for use in found.values():
        if use.outside or not use.waits:
            continue
        if len(use.credits) > 1:
            shared.append(use)
        else:
            _single(use, u, releases)
    graph = Graph(u, found, releases, _clocks(u, releases), shared=bool(shared))
    for _ in range(8 if shared else 0):
        changed = [_several(use, graph) for use in shared]
        if not any(changed):
            break
        graph.clocks = _clocks(u, releases)
    return graph


def dynamic(u: Unrolled, uses: dict[Cell, Use]) -> Graph:
    """Return the graph of one run as it happened: cells that no rule decides order by what was seen."""
    graph = build(u, uses)
    loose = [use for use in uses.values() if use.outside and use.waits]
    for use in loose:
        writers = sorted(use.adds + use.sets)
        for n in use.waits:
            graph.releases[n] = tuple(w for w in writers if w < n)
    if loose:
        graph.clocks = _clocks(u, graph.releases)
    return graph


def _single(use: Use, u: Unrolled, releases: dict[int, tuple[int, ...]]) -> None:
    """The one producer's first credit with which its total reaches what the wait needs."""
    for given in use.credits.values():
        totals = [total for _, total in given]
        for n, need in needs(use, u):
            at = bisect_left(totals, need) if need > 0 else len(totals)
            if at < len(given):
                releases[n] = (given[at][0],)


def _several(use: Use, graph: Graph) -> bool:
    """Credits that no other producers can make up for, given those that certainly come after the wait."""
    u, changed = graph.u, False
    for n, need in needs(use, u):
        most = {q: _most(given, n, graph) for q, given in use.credits.items()}
        found = []
        for q, given in use.credits.items():
            must = need - (sum(most.values()) - most[q])
            if must > 0:
                at = bisect_left([total for _, total in given], must)
                if at < len(given):
                    found.append(given[at][0])
        if tuple(found) != graph.releases.get(n, ()):
            graph.releases[n] = tuple(found)
            changed = True
    return changed


def _most(given: Sequence[tuple[int, int]], wait: int, graph: Graph) -> int:
    """Return the credits of one producer that do not certainly come after the wait."""
    total = 0
    for n, value in given:
        if graph.before(wait, n):
            break
        total = value
    return total


def _clocks(u: Unrolled, releases: dict[int, tuple[int, ...]]) -> list[list[int]]:
    ranks = u.setting.ranks
    last = [[0] * ranks for _ in range(ranks)]
    out: list[list[int]] = []
    events = u.events
    n = 0
    while n < len(events):
        e = events[n]
        if e.kind == "collective":
            # All ranks meet: their events stand one after the other.
            joined = [max(column) for column in zip(*last)]
            for r in range(ranks):
                joined[r] += 1
            for r in range(ranks):
                out.append(joined)
                last[r] = joined
            n += ranks
            continue
        clock = last[e.rank].copy()
        for source in releases.get(n, ()):
            other = out[source]
            clock = [a if a > b else b for a, b in zip(clock, other)]
        clock[e.rank] += 1
        out.append(clock)
        last[e.rank] = clock
        n += 1
    return out
