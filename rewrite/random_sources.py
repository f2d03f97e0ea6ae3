"""Tiles of a wanted type, made in ways that let facts be known of them: or almost.

A way never names the rule it is for: facts say which ways are worth trying, and any way is taken now and then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..ir.dtypes import DTYPES, FP32, INT32, DType
from ..ir.program import Const, Value
from ..ir.types import TileType, tile
from ..rules.facts import BOUNDS, MAGNITUDE
from .random_calls import Refused

if TYPE_CHECKING:
    from .random_programs import Maker

#: What is asked of a tile: a fact, and the dtype it is about where there is one.
Asked = tuple[str, DType | None]
Way = Callable[["Maker", TileType, DType | None], Value]

_SMALL = ("INT8", "UINT8", "INT16", "UINT16", "BOOL", "INT4")


def make(m: Maker, t: TileType, asked: Sequence[Asked]) -> Value:
    """Return a tile of the type; raises ``Refused``."""
    ways = _suited(asked)
    if not ways or m.rng.random() < 0.2:
        ways = [(w, None) for w in _ANY]
    for _ in range(4):
        mark = m.mark()
        way, dtype = m.rng.choice(ways)
        try:
            return way(m, t, dtype)
        except Refused:
            m.back(mark)
    return m.load(t)


def _suited(asked: Sequence[Asked]) -> list[tuple[Way, DType | None]]:
    """Return the ways that let most of the facts hold."""
    found = [(w, dtype) for relation, dtype in asked for w in _WAYS.get(relation, ())]
    facts = {w: len({r for r, _ in asked if w in _WAYS.get(r, ())}) for w, _ in found}
    most = max(facts.values(), default=0)
    return [(w, dtype) for w, dtype in found if facts[w] == most]


def existing(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """One that is there."""
    found = [v for v in m.tiles if v.type == t]
    if not found:
        raise Refused
    return m.rng.choice(found[-4:])


def loaded(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """A new parameter, of which nothing is known."""
    return m.load(t)


def computed(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """The result of an operation."""
    x = existing(m, t, None) if m.rng.random() < 0.6 else m.load(t)
    if m.rng.random() < 0.5:
        return m.emit(m.rng.choice(("tile.neg", "tile.abs", "tile.relu")), tile=x)
    return m.emit(m.rng.choice(("tile.adds", "tile.muls", "tile.subs")), lhs=x, rhs=m.number(t.dtype))


def cast_from(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """A conversion from the dtype that is asked for, or any."""
    source = m.rng.choice(m.known()) if dtype is None or m.rng.random() < 0.1 else dtype
    if source is t.dtype:
        return m.load(t)
    return m.cast(m.load(_as(t, source)), t.dtype, m.rng.choice((None, "rint", "trunc")))


def from_small(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """A conversion of small integers, which both dtypes hold (or just not)."""
    fitting = [d for d in map(DTYPES.__getitem__, _SMALL) if d in m.known() and d is not t.dtype]
    if not fitting:
        raise Refused
    return m.cast(m.load(_as(t, m.rng.choice(fitting))), t.dtype)


def promised(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """A parameter in the range of a dtype, or in one that is one too large."""
    about = dtype or m.rng.choice(m.known())
    over = int(m.rng.random() < 0.2)
    low = max(_whole(about.min_value), _whole(t.dtype.min_value))
    high = min(_whole(about.max_value), _whole(t.dtype.max_value))
    if about.is_float and t.dtype.is_int:
        high = min(high, 2**about.significand_bits)
        low = max(low, -high)
    return m.load(t, _reached(t, low - over, high + over))


def index_like(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """Integers up to the largest index, or one more; from zero, or of both signs."""
    top = m.rng.choice((MAGNITUDE, MAGNITUDE, MAGNITUDE + 1, 100))
    low = 0 if m.rng.random() < 0.6 else -top
    whole = m.load(_as(t, INT32), (low, top))
    return whole if t.dtype is INT32 else m.cast(whole, t.dtype)


def bounded(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """A clamp to one of the magnitudes that recipes know, or just beyond."""
    top = m.rng.choice(BOUNDS) * (1.0001 if m.rng.random() < 0.2 else 1.0)
    low = -top if m.rng.random() < 0.7 else 0.0
    if m.rng.random() < 0.5:
        return m.load(t, (low, top))
    x = m.emit("tile.maximums", lhs=m.load(t), rhs=Const(low, FP32))
    return m.emit("tile.minimums", lhs=x, rhs=Const(top, FP32))


def positive(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """Numbers that are not negative (or just are)."""
    low = 0 if m.rng.random() < 0.8 else -1
    return m.load(t, _reached(t, low, 1000))


def magnitude(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """A magnitude: positive but for NaN, infinity and the least integer."""
    return m.emit("tile.abs", tile=m.load(t))


def small(m: Maker, t: TileType, dtype: DType | None) -> Value:
    """Small integers of which sums and products are small as well."""
    top = m.rng.choice((7, 100, 1000, 2048, 2049))
    whole = m.load(_as(t, INT32), (0 if m.rng.random() < 0.6 else -top, top))
    return whole if t.dtype is INT32 else m.cast(whole, t.dtype)


def _as(t: TileType, dtype: DType) -> TileType:
    return tile(t.shape, dtype, t.valid)


def _whole(value: float) -> int:
    return int(max(min(value, 2**31 - 1), -(2**31)))


def _reached(t: TileType, low: int, high: int) -> tuple[int, int]:
    """Return a range cut down to what the dtype reaches."""
    low, high = max(low, _whole(t.dtype.min_value)), min(high, _whole(t.dtype.max_value))
    if low > high:
        raise Refused
    return low, high


_ANY: tuple[Way, ...] = (existing, existing, existing, loaded, loaded, computed, cast_from, promised)
#: What is worth trying for a fact; a fact that is not listed is left to chance.
_WAYS: dict[str, tuple[Way, ...]] = {
    "fits": (cast_from, cast_from, promised, from_small),
    "finite": (from_small, promised, bounded),
    "within": (bounded,),
    "ordered": (from_small, index_like, small, promised),
    "one_zero": (from_small, index_like, small),
    "index": (index_like, small, small, from_small),
    "positive": (positive, index_like, magnitude, small),
}
