"""Hostile inputs for a function: specials, ties and range ends of every dtype in it, random bit patterns.

Inputs are drawn for a numpy Generator, so one seed always gives the same ones. A :class:`Domain` limits a
parameter's elements; ranges that the program itself promises with ``assume`` on a loaded parameter, and those of
valid extents, are found by :func:`assumed_domains`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .convert import decode, encode
from .diagnostics import error
from .dimexpr import evaluate
from .dtypes import INDEX, DType
from .program import Block, Const, Function, Op, Param, Program, Value, flat_operands, walk
from .samples import hostile, random_bits, special_values
from .tilearray import Arr
from .types import Dim, OpaqueType, PtrType, ScalarType, TensorType, TileType, Type

#: Sizes tried for a dynamic dimension, often round ones.
SIZES = (16, 1, 32, 17, 8, 3, 64, 2)
#: Elements behind a pointer.
POINTED = 1024
#: Values of INDEX scalars (offsets, sizes, trip counts) unless a domain says otherwise.
INDICES = (0, 1, 2, 3, 4, 7, 8, 16)


@dataclass(frozen=True)
class Domain:
    """What a parameter's elements may be: numbers in [lo, hi]; ``finite`` alone excludes infinity and NaN."""

    lo: float = -math.inf
    hi: float = math.inf
    finite: bool = False

    def __post_init__(self) -> None:
        if not self.lo <= self.hi:
            raise error("TG030", f"the range [{self.lo}, {self.hi}] is empty")

    @property
    def free(self) -> bool:
        return not self.finite and math.isinf(self.lo) and math.isinf(self.hi)

    def meet(self, other: Domain) -> Domain:
        """Return the domain of values that are in both."""
        return Domain(max(self.lo, other.lo), min(self.hi, other.hi), self.finite or other.finite)

    def holds(self, values: Arr) -> Arr:
        """Return a bool array: which values (as :func:`~tilegg.ir.convert.decode` gives them) are inside."""
        if self.free:
            return np.ones(values.shape, np.bool_)
        inside: Arr = (values >= self.lo) & (values <= self.hi)
        if self.finite and values.dtype.kind == "f":
            inside &= np.isfinite(values)
        return inside


FREE = Domain()


def as_domain(fact: Any, who: str) -> Domain:
    """Read a fact: a :class:`Domain`, a pair ``(lo, hi)``, or the word ``"finite"``; raises TG030."""
    match fact:
        case Domain():
            return fact
        case "finite":
            return Domain(finite=True)
        case (int() | float() as lo, int() | float() as hi):
            return Domain(lo, hi)
    raise error("TG030", f"the fact of {who} is no range", hint='give (lo, hi), a Domain, or "finite"')


def assumed_domains(f: Function) -> dict[str, Domain]:
    """Return the ranges that ``assume`` promises of parameters, directly or after load, move and views.

    And those that fit: a scalar that is always a tile's valid extent is at most the tile's size.
    """
    source: dict[str, str] = {p.value.name: p.value.name for p in f.params}
    domains: dict[str, Domain] = {}
    for s in walk(f.body):
        if not isinstance(s, Op) or len(s.results) != 1:
            continue
        first = s.operands[0] if s.operands else None
        origin = source.get(first.name) if isinstance(first, Value) else None
        if origin is None:
            continue
        if s.name in _MOVES:
            source[s.result.name] = origin
        if s.name == "tile.assume":
            match s.operands:
                case (_, Const(value=lo), Const(value=hi)) if lo <= hi:
                    domains[origin] = domains.get(origin, FREE).meet(Domain(lo, hi))
    for name, size in _valid_extents(f):
        domains[name] = domains.get(name, FREE).meet(Domain(0, size))
    return domains


def _valid_extents(f: Function) -> Iterator[tuple[str, int]]:
    """Yield scalar parameters that are valid extents whatever the branches, and the sizes of those tiles."""
    scalars = {p.value.name for p in f.params if isinstance(p.value.type, ScalarType)}
    for s in f.body:
        if not isinstance(s, Op) or s.name != "tile.set_validshape":
            continue
        t = getattr(s.operands[0], "type", None)
        for o, size in zip(s.operands[1:3], t.shape if isinstance(t, TileType) else ()):
            if isinstance(o, Value) and o.name in scalars and isinstance(size, int):
                yield o.name, size


_MOVES = frozenset(
    {"tile.load", "tile.move", "tile.slice", "tile.reshape", "tensor.slice", "tensor.view", "tile.assume"}
)


def dtypes_of(*programs: Program | Function) -> tuple[DType, ...]:
    """Return every numeric element type that occurs, in order of appearance."""
    found: dict[str, DType] = {}
    for program in programs:
        for f in (program,) if isinstance(program, Function) else program.functions:
            for t in [*(p.value.type for p in f.params), *_types_in(f.body)]:
                dtype = getattr(t, "dtype", None)
                if dtype is not None and dtype.is_numeric:
                    found.setdefault(dtype.name, dtype)
    return tuple(found.values())


def _types_in(block: Block) -> Iterator[Type]:
    for s in walk(block):
        if isinstance(s, Op):
            yield from (o.type for o in flat_operands(s.operands) if isinstance(o, Value | Const))
            yield from (v.type for v in s.results)


# -- drawing -----------------------------------------------------------------------------------------------


class Pools:
    """Kinds of hostile elements: ``others`` are the dtypes whose boundaries matter."""

    def __init__(self, others: tuple[DType, ...]) -> None:
        self.others = others

    def elements(
        self, count: int, dtype: DType, domain: Domain, rng: np.random.Generator, turn: int
    ) -> Arr:
        """Return ``count`` elements inside the domain; every third turn mixes all kinds, the others keep to one."""
        pools = [_FLAVOURS[turn % len(_FLAVOURS)]] if turn % 3 else list(_FLAVOURS)
        shares = rng.multinomial(count, [1 / len(pools)] * len(pools))
        parts = [_POOLS[pool](self, int(n), dtype, rng) for pool, n in zip(pools, shares)]
        return restrict(rng.permutation(np.concatenate(parts)), dtype, domain, rng)

    def extremes(self, count: int, dtype: DType, rng: np.random.Generator) -> Arr:
        """The few values that most rules must mind: zeros, ones, range ends, infinities, NaN."""
        return rng.choice(extreme_values(dtype), count)

    def specials(self, count: int, dtype: DType, rng: np.random.Generator) -> Arr:
        """Notable values of the dtype."""
        return rng.choice(special_values(dtype), count)

    def small(self, count: int, dtype: DType, rng: np.random.Generator) -> Arr:
        """Small integers, and halves for floats."""
        low = -16 if dtype.signed else 0
        values = rng.integers(low, 17, count).astype(np.float64)
        return encode(values / 2 if dtype.is_float else values, dtype, "rint", True)

    def bits(self, count: int, dtype: DType, rng: np.random.Generator) -> Arr:
        """Uniformly random bit patterns."""
        return random_bits(dtype, rng, count)

    def boundaries(self, count: int, dtype: DType, rng: np.random.Generator) -> Arr:
        """Values, ties and range ends of the dtypes in the program, and their neighbours."""
        others = self.others or (dtype,)
        share = -(-count // len(others))
        parts = [hostile(dtype, other, rng, share) for other in others]
        return rng.permutation(np.concatenate(parts))[:count]

    def scaled(self, count: int, dtype: DType, rng: np.random.Generator) -> Arr:
        """Values and ties of one narrow dtype of the program, inside its range, the range ends many times.

        A kernel that scales by the largest element then has a scale of one, and its casts meet the ties.
        """
        narrow = [d for d in self.others if d.bits <= 16 and d.kind != "bool"] or [dtype]
        other = narrow[int(rng.integers(len(narrow)))]
        low, high = max(float(other.min_value), -float(other.max_value)), float(other.max_value)
        limits = Domain(max(low, float(dtype.min_value)), min(high, float(dtype.max_value)))
        values = restrict(hostile(dtype, other, rng, count), dtype, limits, rng)
        ends = encode([limits.lo, limits.hi], dtype, "rint", True)
        return np.where(rng.random(count) < 1 / 16, rng.choice(ends, count), values).astype(values.dtype)

    def usual(self, count: int, dtype: DType, rng: np.random.Generator) -> Arr:
        """Normally distributed values over a few orders of magnitude."""
        scale = np.exp2(rng.integers(-8, 9, count).astype(np.float64))
        values = rng.standard_normal(count) * scale
        return encode(np.abs(values) if not dtype.signed else values, dtype, "rint", True)


_FLAVOURS = ("boundaries", "extremes", "usual", "scaled", "specials", "bits", "small")
_POOLS = {name: getattr(Pools, name) for name in _FLAVOURS}


class Drawer(Pools):
    """Draws inputs of one function: ``others`` are the dtypes whose boundaries matter."""

    def __init__(
        self,
        f: Function,
        others: tuple[DType, ...],
        domains: Mapping[str, Domain],
        dims: Mapping[str, int],
    ) -> None:
        super().__init__(others)
        self.function, self.domains, self.dims = f, domains, dict(dims)
        self.names = _dimension_names(f)

    def draw(self, rng: np.random.Generator, turn: int) -> dict[str, Any]:
        """Return inputs by parameter name: arrays in storage dtypes, Python numbers for scalars."""
        sizes = dict(self.dims)
        for name in self.names:
            if name not in sizes:
                sizes[name] = SIZES[0] if turn % 2 == 0 else int(rng.choice(SIZES))
        out: dict[str, Any] = {}
        for p in self.function.params:
            if p.direction != "Out" or isinstance(p.value.type, PtrType):
                value = self._parameter(p, sizes, rng, turn)
                if value is not None:
                    out[p.value.name] = value
        return out

    def _parameter(self, p: Param, sizes: Mapping[str, int], rng: np.random.Generator, turn: int) -> Any:
        t, name = p.value.type, p.value.name
        domain = self.domains.get(name, FREE)
        match t:
            case ScalarType(dtype=dtype):
                if name in sizes:
                    return sizes[name]
                return self._scalar(dtype, domain, rng, turn)
            case TensorType(shape=shape, dtype=dtype):
                return self._array(shape, dtype, domain, sizes, rng, turn)
            case TileType(dtype=dtype):
                return self._array(t.valid_shape, dtype, domain, sizes, rng, turn)
            case PtrType(dtype=dtype):
                return self._array((POINTED,), dtype, domain, sizes, rng, turn)
            case OpaqueType():
                return None
        raise error("TG030", f"cannot draw a value for parameter {name}: {t}")

    def _scalar(self, dtype: DType, domain: Domain, rng: np.random.Generator, turn: int) -> Any:
        if dtype is INDEX or (dtype.is_int and turn % 2 == 0):
            most = math.inf if dtype is INDEX else dtype.max_value
            fitting = [i for i in INDICES if domain.lo <= i <= min(domain.hi, most)]
            if fitting:
                return int(rng.choice(fitting))
        return decode(self.elements(1, dtype, domain, rng, turn), dtype)[0].item()

    def _array(
        self,
        shape: tuple[Dim, ...],
        dtype: DType,
        domain: Domain,
        sizes: Mapping[str, int],
        rng: np.random.Generator,
        turn: int,
    ) -> Arr:
        known = [evaluate(d, sizes) for d in shape]
        extent = tuple(SIZES[0] if n is None else max(n, 0) for n in known)
        return self.elements(math.prod(extent), dtype, domain, rng, turn).reshape(extent)


@cache
def extreme_values(dtype: DType) -> Arr:
    """Return zeros, ones, both range ends and their neighbours, the least magnitudes, infinities, NaN."""
    if not dtype.is_float:
        low, high = int(dtype.min_value), int(dtype.max_value)
        wanted = {v for v in (0, 1, -1, 2, low, low + 1, high - 1, high) if low <= v <= high}
        return np.array(sorted(wanted), dtype.storage)
    tiny, normal, top = float(dtype.min_positive), 2.0**dtype.min_exponent, float(dtype.max_value)
    values = [sign * v for v in (0.0, 1.0, 2.0, tiny, normal, top, math.inf) for sign in (1.0, -1.0)]
    return encode([*values, math.nan], dtype, "rint", False)


def _dimension_names(f: Function) -> list[str]:
    names: dict[str, None] = {}
    for p in f.params:
        t = p.value.type
        dims = t.shape if isinstance(t, TensorType) else t.valid_shape if isinstance(t, TileType) else ()
        names.update((d, None) for d in dims if isinstance(d, str) and d.isidentifier())
    return list(names)


def restrict(elements: Arr, dtype: DType, domain: Domain, rng: np.random.Generator) -> Arr:
    """Return the elements with those outside the domain replaced: by its ends and by values between them.

    Raises TG030 when no value of the dtype lies in the domain.
    """
    if domain.free:
        return elements
    outside = ~domain.holds(decode(elements, dtype))
    count = int(outside.sum())
    if not count:
        return elements
    pool = inside_pool(dtype, domain, rng)
    result = elements.copy()
    result[outside] = rng.choice(pool, count)
    return result


def inside_pool(dtype: DType, domain: Domain, rng: np.random.Generator, count: int = 64) -> Arr:
    """Return values of the dtype inside the domain: its ends, small numbers, random ones; raises TG030."""
    lo, hi = max(domain.lo, float(dtype.min_value)), min(domain.hi, float(dtype.max_value))
    ends = [encode([lo], dtype, "ceil", True), encode([hi], dtype, "floor", True)] if lo <= hi else []
    spread = encode(rng.uniform(0.0, 1.0, count) * (hi / 2 - lo / 2) * 2 + lo, dtype, "rint", True)
    notable = [special_values(dtype), encode(np.arange(-4.0, 5.0), dtype, "rint", True), spread]
    pool = np.concatenate([*ends * 4, *notable])
    pool = pool[domain.holds(decode(pool, dtype))]
    if not pool.size:
        raise error("TG030", f"no {dtype.name} value lies in [{domain.lo}, {domain.hi}]")
    return pool
