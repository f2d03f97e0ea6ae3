"""What the collectives do among several ranks: their definitions, on NumPy arrays, with the order of reductions.

They follow MPI. Reductions combine element by element in the windows' dtype, one rounding for each step, with the
meanings of ``tile.add``, ``tile.maximum``, ``tile.minimum`` and ``tile.mul``:

* mesh allreduce and reduce_scatter: in ascending rank order, ``((x0 + x1) + x2) + ...``, the same on every rank;
* ring allreduce: segment ``s`` of the flattened window in ring order from rank ``s``, ``(x_s + x_{s+1}) + ...``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import lazy_numpy as np
from . import ops as _ops
from .diagnostics import error
from .dtypes import FP16, DType
from .enums import ReduceOp
from .op import OPS
from .tilearray import Arr
from .types import shape_text

_loaded = _ops  # importing the families declares the operations
#: The tile operation that combines two elements, by the word of the reduction.
COMBINE = {"sum": "tile.add", "max": "tile.maximum", "min": "tile.minimum", "prod": "tile.mul"}
#: FP16 ring segments start at multiples of this many elements (32 bytes).
RING_ALIGN = 16


def combine(parts: Sequence[Arr], op: str | int | ReduceOp) -> Arr:
    """Return the reduction of equally shaped arrays from the first to the last."""
    step = OPS[COMBINE[ReduceOp.of(op).word]].meaning
    out = parts[0].copy()
    with np.errstate(all="ignore"):
        for part in parts[1:]:
            out = step(out, part)
    return out


def ring_bounds(size: int, n: int, dtype: DType) -> tuple[int, ...]:
    """Return the ``n + 1`` borders of a ring's segments: balanced, for FP16 at multiples of 16 elements."""
    bounds = [i * size // n for i in range(n + 1)]
    if dtype is FP16:
        bounds[1:n] = [min(size, -(-b // RING_ALIGN) * RING_ALIGN) for b in bounds[1:n]]
    return tuple(bounds)


def allreduce(parts: Sequence[Arr], op: str | int | ReduceOp, dtype: DType, mode: str = "mesh") -> Arr:
    """Return what every rank's window holds afterwards."""
    if mode != "ring":
        return combine(parts, op)
    n, flat = len(parts), [p.reshape(-1) for p in parts]
    out = np.empty_like(flat[0])
    bounds = ring_bounds(out.size, n, dtype)
    for s in range(n):
        segment = slice(bounds[s], bounds[s + 1])
        out[segment] = combine([flat[(s + k) % n][segment] for k in range(n)], op)
    return out.reshape(parts[0].shape)


def reduce_scatter(parts: Sequence[Arr], op: str | int | ReduceOp) -> list[Arr]:
    """Return, for each rank ``r``, what row ``r`` of its window holds afterwards."""
    return [combine([p[r] for p in parts], op) for r in range(len(parts))]


def allgather(rows: Sequence[Arr]) -> Arr:
    """Return what every rank's window holds afterwards, from the ranks' ``[1, ...]`` rows."""
    return np.concatenate(rows, axis=0)


def all_to_all(parts: Sequence[Arr]) -> list[Arr]:
    """Return each rank's window afterwards: row ``s`` comes from row ``d`` of rank ``s``."""
    return [np.stack([p[d] for p in parts]) for d in range(len(parts))]


def clamp_count(count: int, capacity: int) -> int:
    """Return how many rows a variable exchange moves: the count, kept inside 0..capacity."""
    return max(0, min(int(count), capacity))


# -- the same on the operands of calls -----------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """One region of one rank's operand: ``operand`` counts the call's operands, ``index`` subscripts the array."""

    rank: int
    operand: int
    index: Any


@dataclass(frozen=True)
class Effect:
    """What one collective call of all ranks reads, and what it writes where."""

    reads: tuple[Part, ...]
    writes: tuple[tuple[Part, Arr], ...]


#: From each rank's operand arrays and the call's attributes to the effect. ``valid``: the target's valid extents.
Definition = Callable[[Sequence[Sequence[Any]], dict[str, Any], DType, tuple[int, ...] | None], Effect]


def effect_of(
    name: str, calls: Sequence[Sequence[Any]], attrs: dict[str, Any], dtype: DType, valid: tuple[int, ...] | None
) -> Effect:
    """Return the effect of collective ``name`` (``"allreduce"``, ...) on the operand arrays of all ranks.

    ``attrs``: all attributes with defaults; ``dtype``: the elements of the target. Raises TG030 when the shapes do
    not fit the number of ranks.
    """
    return _EFFECTS[name](calls, attrs, dtype, valid)


def _rows(array: Arr, n: int, what: str) -> None:
    if array.shape[0] != n:
        raise error("TG030", f"{what} {shape_text(array.shape)} does not have a row for each of {n} ranks")


def _allreduce(calls: Any, attrs: dict[str, Any], dtype: DType, valid: tuple[int, ...] | None) -> Effect:
    index: Any = ... if valid is None else tuple(slice(0, v) for v in valid)
    whole = allreduce([c[0][index] for c in calls], attrs["op"], dtype, attrs["mode"])
    parts = tuple(Part(r, 0, index) for r in range(len(calls)))
    return Effect(parts, tuple((p, whole) for p in parts))


def _barrier(calls: Any, attrs: dict[str, Any], dtype: DType, valid: tuple[int, ...] | None) -> Effect:
    return Effect((), ())


def _broadcast(calls: Any, attrs: dict[str, Any], dtype: DType, valid: tuple[int, ...] | None) -> Effect:
    root = int(attrs["root"])
    if not 0 <= root < len(calls):
        raise error("TG030", f"root = {root} is none of {len(calls)} ranks")
    data = calls[root][0].copy()
    return Effect((Part(root, 0, ...),), tuple((Part(r, 0, ...), data) for r in range(len(calls)) if r != root))


def _reduce_scatter(calls: Any, attrs: dict[str, Any], dtype: DType, valid: tuple[int, ...] | None) -> Effect:
    n = len(calls)
    for c in calls:
        _rows(c[0], n, "the window")
    rows = reduce_scatter([c[0] for c in calls], attrs["op"])
    return Effect(tuple(Part(r, 0, ...) for r in range(n)), tuple((Part(r, 0, r), rows[r]) for r in range(n)))


def _allgather(calls: Any, attrs: dict[str, Any], dtype: DType, valid: tuple[int, ...] | None) -> Effect:
    n = len(calls)
    _rows(calls[0][1], n, "the window")
    whole = allgather([c[0] for c in calls])
    return Effect(tuple(Part(r, 0, ...) for r in range(n)), tuple((Part(r, 1, ...), whole) for r in range(n)))


def _all_to_all(calls: Any, attrs: dict[str, Any], dtype: DType, valid: tuple[int, ...] | None) -> Effect:
    n = len(calls)
    for c in calls:
        _rows(c[0], n, "the input")
    out = all_to_all([c[0] for c in calls])
    return Effect(tuple(Part(r, 0, ...) for r in range(n)), tuple((Part(r, 1, ...), out[r]) for r in range(n)))


def _all_to_all_v(calls: Any, attrs: dict[str, Any], dtype: DType, valid: tuple[int, ...] | None) -> Effect:
    n = len(calls)
    reads: list[Part] = [Part(r, 3, ...) for r in range(n)]
    writes: list[tuple[Part, Arr]] = []
    shape = calls[0][1].shape
    if shape[0] % n:
        raise error("TG030", f"the rows of {shape_text(shape)} do not divide among {n} ranks")
    capacity = calls[0][1].shape[0] // n
    for s, c in enumerate(calls):
        counts = c[3].reshape(-1)
        for d in range(n):
            rows = clamp_count(counts[d], capacity)
            writes.append((Part(d, 4, (s, 0)), np.array(rows, np.int32)))
            if rows:
                source, landed = slice(d * capacity, d * capacity + rows), slice(s * capacity, s * capacity + rows)
                reads.append(Part(s, 0, source))
                writes.append((Part(d, 1, landed), c[0][source].copy()))
    return Effect(tuple(reads), tuple(writes))


_EFFECTS: dict[str, Definition] = {
    "allreduce": _allreduce,
    "barrier": _barrier,
    "broadcast": _broadcast,
    "reduce_scatter": _reduce_scatter,
    "allgather": _allgather,
    "all_to_all": _all_to_all,
    "all_to_all_v": _all_to_all_v,
}
