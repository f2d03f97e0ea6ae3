"""Inputs that conversions and rewrites fail on first: special values, ties, grid boundaries, random bits."""

from __future__ import annotations

from functools import cache

import numpy as np

from .codes import Array, all_values, bits_of, decode, from_bits, from_ordinal, ordinal
from .convert import encode
from .dtypes import DType, Kind

_INTEGRAL: tuple[Kind, ...] = ("int", "uint", "index", "bool")


def special_values(dtype: DType) -> Array:
    """Return a storage array of the notable values of a dtype; of at most eight bits, of all of them.

    Floats: zeros, subnormals, the least normal, powers of two, the largest finite value, each with its
    neighbours and of both signs, infinities and NaNs. Integers: powers of two, zero and both ends, likewise.
    """
    return _specials(dtype).copy()


@cache
def _specials(dtype: DType) -> Array:
    if dtype.bits <= 8:
        return all_values(dtype)
    if not dtype.is_float:
        powers = [sign << k for k in range(dtype.bits) for sign in (-1, 1)]
        near = {p + step for p in (0, dtype.min_value, dtype.max_value, *powers) for step in (-1, 0, 1)}
        fits = sorted(v for v in near if dtype.min_value <= v <= dtype.max_value)
        return np.array(fits, dtype.storage)
    powers_of_two = 2.0 ** np.arange(dtype.quantum_exponent, dtype.max_exponent + 1)
    steps = ordinal(encode(powers_of_two, dtype), dtype)
    steps = np.unique(np.add.outer(np.append(steps, [0, dtype.max_code]), [-1, 0, 1]))
    finite = from_ordinal(np.concatenate([-steps, steps]), dtype)
    infinity, quiet = dtype.inf_code or 0, dtype.nan_code or 0
    codes = np.array([0, infinity, quiet, infinity + 1, dtype.magnitude_mask], np.int64)
    return np.concatenate([finite, from_bits(np.concatenate([codes, codes | dtype.sign_bit]), dtype)])


def random_bits(dtype: DType, rng: np.random.Generator, count: int) -> Array:
    """Return ``count`` elements with uniformly random bit codes."""
    raw = np.frombuffer(rng.bytes(count * dtype.storage.itemsize), f"u{dtype.storage.itemsize}")
    return from_bits(raw & 1 if dtype.kind == "bool" else raw, dtype)


def hostile(src: DType, dst: DType, rng: np.random.Generator, count: int) -> Array:
    """Return ``count`` elements of ``src`` chosen to trip a conversion to ``dst``.

    Half are values of ``dst``, points halfway between two neighbours and its range ends, moved by up to two
    representable steps of ``src``; the rest are specials of ``src``, random bit codes, and values
    of everyday size.
    """
    shares = rng.multinomial(count, [0.3, 0.2, 0.1, 0.2, 0.2])
    parts = [
        _near(src, _grid_points(dst, rng, int(shares[0])), rng),
        _near(src, _midpoints(dst, rng, int(shares[1])), rng),
        rng.choice(_specials(src), int(shares[2])),
        random_bits(src, rng, int(shares[3])),
        encode(rng.standard_normal(int(shares[4])) * 2.0 ** rng.integers(-3, 12), src),
    ]
    return rng.permutation(np.concatenate(parts))


def _grid_points(dst: DType, rng: np.random.Generator, count: int) -> Array:
    """Values of ``dst`` as float64: random magnitudes and specials, finite only."""
    if dst.is_float:
        pool = np.concatenate([random_bits(dst, rng, count), rng.choice(_specials(dst), count)])
        values = decode(pool, dst)
    else:
        bits = rng.integers(0, dst.bits + 1, count)
        small = np.trunc(np.ldexp(rng.uniform(-1 if dst.signed else 0, 1, count), bits))
        ends = np.array([float(dst.min_value), float(dst.max_value)])
        values = np.concatenate([small, rng.choice(ends, count // 8 + 1)])
    finite = values[np.isfinite(values)]
    chosen: Array = rng.choice(finite if finite.size else np.zeros(1), count)
    return chosen


def _midpoints(dst: DType, rng: np.random.Generator, count: int) -> Array:
    """Points halfway between a value of ``dst`` and the next, the one above the range included."""
    points = _grid_points(dst, rng, count)
    if not dst.is_float:
        halves: Array = rng.choice([-0.5, 0.5], count)
        return points + halves
    magnitude = np.abs(points)
    exponent = np.frexp(np.maximum(magnitude, dst.min_positive))[1] - 1
    widths = np.array([dst.precision_at(e) for e in range(dst.quantum_exponent, dst.max_exponent + 1)])
    precision = widths[exponent - dst.quantum_exponent]
    halfway: Array = np.copysign(magnitude + np.ldexp(0.5, exponent - precision + 1), points)
    return halfway


def _near(src: DType, points: Array, rng: np.random.Generator) -> Array:
    """The values of ``src`` closest to float64 points, some moved by one or two steps."""
    start = encode(points, src, "floor", saturate=True)
    steps = rng.choice([-2, -1, 0, 0, 0, 1, 2], points.size)
    if src.kind == "bool":
        return start
    if src.kind in _INTEGRAL:
        return _move_int(start, steps, src)
    moved = from_ordinal(ordinal(start, src) + steps, src)
    # Unmoved values keep their code: minus zero has no ordinal of its own.
    return from_bits(np.where(steps == 0, bits_of(start, src), bits_of(moved, src)), src)


def _move_int(start: Array, steps: Array, src: DType) -> Array:
    low, high = src.min_value, src.max_value
    down = (steps < 0) & (start >= start.dtype.type(low + 2))
    up = (steps > 0) & (start <= start.dtype.type(high - 2))
    size = np.abs(steps).astype(start.dtype)
    return np.where(down, start - size, np.where(up, start + size, start))
