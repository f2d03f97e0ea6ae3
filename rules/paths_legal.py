"""The native casts of a target as a graph: which paths keep every value that a destination can hold."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ..ir import valueset
from ..ir.dtypes import DTYPES, DType
from ..ir.valueset import ValueSet
from .composed import Composed, composed_on
from .target import CastEdge, Target

#: Dtypes in the order that decides between equals.
ORDER = {name: i for i, name in enumerate(DTYPES)}


class Edge(NamedTuple):
    """One native cast of a target, or a ``composed`` conversion that stands in for one."""

    src: DType
    dst: DType
    row: CastEdge
    composed: Composed | None = None


@lru_cache(maxsize=64)
def edges_from(target: Target) -> dict[DType, tuple[Edge, ...]]:
    """Return the casts by source, in dtype order; rounding within one dtype is no cast.

    Composed conversions that round nothing are among them where the pair has no native cast.
    """
    edges = [Edge(DTYPES[row.src], DTYPES[row.dst], row) for row in target.casts.values()]
    edges += [
        Edge(made.src, made.dst, _composed_row(made), made)
        for made in composed_on(target).values()
        if made.mode is None and target.cast(made.src.name, made.dst.name) is None
    ]
    edges.sort(key=lambda e: (ORDER[e.src.name], ORDER[e.dst.name]))
    by_source: dict[DType, tuple[Edge, ...]] = {}
    for edge in edges:
        if edge.src is not edge.dst:
            by_source[edge.src] = (*by_source.get(edge.src, ()), edge)
    return by_source


def _composed_row(made: Composed) -> CastEdge:
    return CastEdge(made.src.name, made.dst.name, (), "", True, "off", False, False, "", (), "", made.reason)


def simple_paths(
    target: Target, src: DType, dst: DType, values: ValueSet, max_hops: int
) -> Iterator[tuple[Edge, ...]]:
    """Yield the simple paths on which every value that the destination can hold survives, shortest first."""
    wanted = common(values, valueset.of_dtype(dst))
    edges = edges_from(target)

    def passes(stop: DType) -> bool:
        return wanted is None or valueset.representable(wanted, stop)

    front: list[tuple[Edge, ...]] = [(edge,) for edge in edges.get(src, ())]
    for _ in range(max_hops):
        longer = []
        for path in front:
            stop = path[-1].dst
            if stop is dst:
                yield path
            elif passes(stop):
                seen = {src, *(e.dst for e in path)}
                longer += [(*path, edge) for edge in edges.get(stop, ()) if edge.dst not in seen]
        front = longer


def common(a: ValueSet, b: ValueSet) -> ValueSet | None:
    """Return the values that two sets share (or a little more), None when there is none."""
    lo, hi = max(a.lo, b.lo), min(a.hi, b.hi)
    nan, inf, negative_zero = a.nan and b.nan, a.inf and b.inf, a.negative_zero and b.negative_zero
    if lo > hi:
        if not (nan or inf or negative_zero):
            return None
        lo, hi = 0, 0
    return ValueSet(lo, hi, max(a.grid, b.grid), min(a.sig, b.sig), nan, inf, negative_zero)


@lru_cache(maxsize=4096)
def listed(target: Target, src: DType, dst: DType) -> bool:
    """Tell whether some chain passes only through types that hold every value of the destination.

    These are the pairs of the cast-legality page; others are legal only where an exact chain is proved.
    """
    edges = edges_from(target)
    wanted = valueset.of_dtype(dst)
    seen, front = {src}, [src]
    while front:
        stop = front.pop()
        for edge in edges.get(stop, ()):
            if edge.dst is dst:
                return True
            if edge.dst not in seen and valueset.representable(wanted, edge.dst):
                seen.add(edge.dst)
                front.append(edge.dst)
    return False
