"""Accesses of different ranks to the same bytes that nothing orders, and the reason why nothing does."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from ...ir.ranks_memory import Region
from .arrange import possible
from .cells import Graph
from .unroll import Unrolled

#: Pieces a strided region is cut into at most; beyond, its hull is used and every hit is confirmed exactly.
_PIECES = 256
#: Place of a kind of access, and the places of those it conflicts with: adds do not with adds, reads not with reads.
_KINDS = {"read": (0, slice(1, 3)), "add": (1, slice(0, 3, 2)), "write": (2, slice(0, 3))}


@dataclass(frozen=True)
class Access:
    """One event's access to one region; ``kind``: read, write, or add (atomic)."""

    event: int
    rank: int
    kind: str
    region: Region


@dataclass(frozen=True)
class Race:
    """Two unordered accesses, ``first`` the earlier one of the run."""

    first: Access
    second: Access


def accesses(u: Unrolled) -> dict[tuple[str, int], list[Access]]:
    """Return the accesses to data windows by window and owner, in the order of the run.

    A notify to a cell of a window in which nobody waits is a write of four bytes.
    """
    waited = {e.cell.window for e in u.events if e.cell is not None and e.kind in ("wait", "defer")}
    waited |= {s.cell.window for s in u.stuck if s.cell is not None}
    out: dict[tuple[str, int], list[Access]] = {}
    for n, e in enumerate(u.events):
        if not e.reads and not e.writes and (e.cell is None or e.cell.window in waited):
            continue
        adds = e.statement is not None and e.statement.attrs.get("atomic") == "add"
        found = [Access(n, e.rank, "read", r) for r in e.reads if e.kind != "invalidate"]
        found += [Access(n, e.rank, "add" if adds else "write", w) for w in e.writes]
        if e.kind == "notify" and e.cell is not None and e.cell.window not in waited:
            cell = Region(e.cell.window, e.cell.owner, e.cell.number * 4, (1,), (4,), 4)
            found.append(Access(n, e.rank, "add" if e.word == "atomic_add" else "write", cell))
        for a in found:
            if a.region.window not in waited and 0 not in a.region.shape:
                out.setdefault((a.region.window, a.region.owner), []).append(a)
    return out


def touched(graph: Graph) -> dict[tuple[str, int], list[Access]]:
    """Return :func:`accesses` of the graph's run, computed once."""
    if graph.touched is None:
        graph.touched = accesses(graph.u)
    found: dict[tuple[str, int], list[Access]] = graph.touched
    return found


def polls(graph: Graph) -> bool:
    """Return whether a program reads signal cells as data.

    Reads of other windows give the same in every schedule as soon as no conflicting accesses are unordered.
    """
    waited = {use.cell.window for use in graph.uses.values() if use.waits}
    return any(r.window in waited for e in graph.u.events if e.kind != "invalidate" for r in e.reads)


def filled_before(graph: Graph) -> set[str]:
    """Return the windows that a rank reads on a peer that has not signalled yet: their contents come from elsewhere."""
    return {
        window for (window, owner), group in touched(graph).items() for a in group
        if a.kind == "read" and a.rank != owner and not graph.clocks[a.event][owner]
    }  # fmt: skip


def races(graph: Graph, limit: int = 64) -> list[Race]:
    """Return unordered conflicting pairs, one for each pair of statements and kinds, up to ``limit``."""
    found: dict[object, Race] = {}
    for group in touched(graph).values():
        if len({a.rank for a in group}) < 2 or all(a.kind == "read" for a in group):
            continue
        for race in _in_slice(graph, group):
            key = _key(graph.u, race)
            if key not in found and possible(graph, race.first.event, race.second.event):
                found[key] = race
            if len(found) >= limit:
                return list(found.values())
    return list(found.values())


def _key(u: Unrolled, race: Race) -> object:
    pair = (race.first, race.second)
    return tuple(sorted((id(u.events[a.event].statement), a.kind) for a in pair))


def _in_slice(graph: Graph, group: list[Access]) -> Iterator[Race]:
    """Look at one rank's slice: the last access of each rank and kind to each stretch of bytes is enough."""
    pieces = {a.region: _pieces(a.region) for a in group}
    edges = sorted({x for found in pieces.values() for x in itertools.chain.from_iterable(found)})
    places = {region: _stretches(found, edges) for region, found in pieces.items()}
    ranks, position = graph.u.setting.ranks, graph.u.position
    # last[kind][rank][stretch]: one more than the place of the access in its rank; who[...]: its number in the group.
    last = np.zeros((3, ranks, len(edges)), np.int64)
    who = np.zeros((3, ranks, len(edges)), np.int64)
    for k, a in enumerate(group):
        where, (kind, rivals) = places[a.region], _KINDS[a.kind]
        # The own rank's earlier accesses are never past its clock.
        late = last[rivals, :, where] > np.array(graph.clocks[a.event])[:, None]
        if late.any():
            hits = who[rivals, :, where][late]
            for other in sorted(set(hits.tolist())):
                if group[other].region.overlaps(a.region):
                    yield Race(group[other], a)
        last[kind, a.rank, where] = position[a.event] + 1
        who[kind, a.rank, where] = k


def _pieces(r: Region) -> list[tuple[int, int]]:
    """Return the contiguous stretches of a region as (start, stop)."""
    if r.nbytes == r.stop - r.start:
        return [(r.start, r.stop)]
    run, lead = r.itemsize, list(zip(r.shape, r.strides))
    while lead and (lead[-1][1] == run or lead[-1][0] == 1):
        run *= lead.pop()[0]
    if prod(n for n, _ in lead) > _PIECES:
        return [(r.start, r.stop)]
    starts = [r.start + sum(at) for at in itertools.product(*([i * s for i in range(n)] for n, s in lead))]
    return [(s, s + run) for s in starts]


def _stretches(pieces: list[tuple[int, int]], edges: list[int]) -> np.ndarray | slice:
    found = [(bisect_left(edges, a), bisect_left(edges, b)) for a, b in pieces]
    if len(found) == 1:
        return slice(*found[0])
    return np.concatenate([np.arange(a, b) for a, b in found])


# -- why nothing orders them -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blame:
    """The class of a race, the event to blame, and the edge or path that is missing."""

    word: str
    event: int
    missing: str


def blame(graph: Graph, race: Race) -> Blame:
    """Tell an early notify and an early use from any other missing order.

    An access that follows an earlier version of the data is not early: then what is missing is the wait before
    overwriting.
    """
    u = graph.u
    pair = (race.first, race.second)
    write = next((a for a in pair[::-1] if a.kind != "read"), pair[1])
    use = pair[0] if write is pair[1] else pair[1]
    a, b = u.events[race.first.event], u.events[race.second.event]
    path = f"no notify of rank {a.rank} after its {a.kind} leads to a wait of rank {b.rank} before its {b.kind}"
    if use.kind != "read" or _earlier_version(graph, write, use):
        return Blame("unordered", race.second.event, path)
    early = _early_notify(graph, write, use)
    if early is not None:
        return Blame("notify-before-data", early, f"the write of rank {write.rank} comes after the notify")
    late = _late_wait(graph, write, use)
    if late is not None:
        return Blame("use-before-wait", use.event, f"the wait of rank {use.rank} comes after its use of the data")
    return Blame("unordered", race.second.event, path)


def _earlier_version(graph: Graph, write: Access, use: Access) -> bool:
    """Return whether the bytes held data before: written before the use, or read by the writer before its write."""
    group = touched(graph)[use.region.window, use.region.owner]
    for a in group:
        if a.event in (write.event, use.event) or not a.region.overlaps(use.region):
            continue
        if a.kind != "read" and graph.before(a.event, use.event):
            return True
        if a.kind == "read" and a.region.overlaps(write.region) and graph.before(a.event, write.event) and (
            a.rank == write.rank
        ):
            return True
    return False


def _early_notify(graph: Graph, write: Access, use: Access) -> int | None:
    """Return the writer's last notify before its write that leads to the use, if there is one."""
    u = graph.u
    numbers = u.by_rank[write.rank][: u.position[write.event]]
    for n in reversed(numbers):
        e = u.events[n]
        if e.kind == "notify" and e.cell is not None and e.cell.owner != write.rank and graph.before(n, use.event):
            return n
    return None


def _late_wait(graph: Graph, write: Access, use: Access) -> int | None:
    """Return the user's first wait after its use to which the write leads, if there is one."""
    u = graph.u
    for n in u.by_rank[use.rank][u.position[use.event] + 1 :]:
        if u.events[n].kind == "wait" and graph.before(write.event, n):
            return n
    return None
