"""Counterexamples made small: as few unusual elements as possible, each as simple as possible.

The search works on inputs by parameter name and a function that tells whether they still show a
difference; it is deterministic and stops at a budget of such trials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .codes import bits_of
from .convert import decode, encode
from .dtypes import DType
from .inputs import Domain
from .tilearray import Arr

Inputs = dict[str, Any]
#: Whether inputs still fail.
Fails = Callable[[Inputs], bool]
#: Elements of array inputs, [K, 2]: which array (in input order), flat position.
Spots = NDArray[np.int64]


class Shrinker:
    """Minimises failing inputs. ``dtypes`` and ``domains`` are by parameter name."""

    def __init__(
        self,
        fails: Fails,
        dtypes: Mapping[str, DType],
        domains: Mapping[str, Domain],
        budget: int = 600,
    ) -> None:
        self.fails, self.dtypes, self.domains, self.left = fails, dtypes, domains, budget
        self.plain: dict[str, Any] = {}

    def shrink(self, inputs: Inputs, hint: tuple[int, ...] = ()) -> Inputs:
        """Return small inputs that still fail; ``hint`` is the index of the differing output element."""
        best = dict(inputs)
        for filler in (0, 1):
            fewer = self._clear(best, filler, hint)
            if fewer is not None:
                best = fewer
                break
        best = self._simpler_scalars(best)
        return self._simpler_elements(best)

    def _try(self, inputs: Inputs) -> bool:
        if self.left <= 0:
            return False
        self.left -= 1
        return self.fails(inputs)

    # -- fewer elements ------------------------------------------------------------------------------------

    def _clear(self, inputs: Inputs, filler: int, hint: tuple[int, ...]) -> Inputs | None:
        """Set as many elements as possible to a plain value; ``None`` when nothing could be cleared."""
        arrays = {k: v for k, v in inputs.items() if isinstance(v, np.ndarray)}
        self.plain = {k: self._plain(k, v, filler) for k, v in arrays.items()}
        per_array = [self._unusual(k, v) for k, v in arrays.items()]
        numbers = [np.full(len(at), i) for i, at in enumerate(per_array)]
        columns = [np.concatenate([*numbers, []]), np.concatenate([*per_array, []])]
        spots = np.stack(columns, 1).astype(np.int64)
        total = len(spots)
        for keep in _guesses(spots, arrays, hint):
            if len(keep) < len(spots) and self._try(self._keeping(inputs, keep)):
                spots = keep
                break
        fewer = self._bisect(inputs, spots)
        return self._keeping(inputs, fewer) if len(fewer) < total else None

    def _bisect(self, inputs: Inputs, spots: Spots) -> Spots:
        """Delta debugging: drop ever smaller runs of spots while the rest still fails."""
        size = max(len(spots) // 2, 1)
        while len(spots) and self.left > 0:
            start, dropped = 0, False
            while start < len(spots):
                rest = np.concatenate([spots[:start], spots[start + size :]])
                if self._try(self._keeping(inputs, rest)):
                    spots, dropped = rest, True
                else:
                    start += size
            if size == 1 and not dropped:
                break
            size = max(size // 2, 1)
        return spots

    def _keeping(self, inputs: Inputs, spots: Spots) -> Inputs:
        out = dict(inputs)
        for number, (name, plain) in enumerate(self.plain.items()):
            array = np.full_like(inputs[name], plain)
            here = spots[spots[:, 0] == number, 1]
            array.reshape(-1)[here] = inputs[name].reshape(-1)[here]
            out[name] = array
        return out

    def _plain(self, name: str, array: Arr, filler: int) -> Any:
        dtype, domain = self.dtypes[name], self.domains.get(name)
        wanted = min(max(float(filler), domain.lo), domain.hi) if domain else float(filler)
        code = encode([wanted], dtype, "rint", True)
        if domain is not None and not domain.holds(decode(code, dtype)).all():
            code = encode([wanted], dtype, "ceil" if wanted == domain.lo else "floor", True)
        return code[0]

    def _unusual(self, name: str, array: Arr) -> NDArray[np.int64]:
        """Return the flat positions of elements that are not the plain value."""
        dtype = self.dtypes[name]
        plain = bits_of(np.asarray(self.plain[name]).reshape(1), dtype)
        return np.flatnonzero(bits_of(array, dtype).reshape(-1) != plain).astype(np.int64)

    # -- simpler values ------------------------------------------------------------------------------------

    def _simpler_scalars(self, inputs: Inputs) -> Inputs:
        for name, value in inputs.items():
            if isinstance(value, np.ndarray) or name not in self.dtypes:
                continue
            for candidate in _simpler(value, self.dtypes[name]):
                if self._allowed(name, candidate):
                    trial = {**inputs, name: type(value)(candidate)}
                    if self._try(trial):
                        inputs = trial
                        break
        return inputs

    def _allowed(self, name: str, value: int | float) -> bool:
        domain = self.domains.get(name)
        return domain is None or domain.lo <= value <= domain.hi

    def _simpler_elements(self, inputs: Inputs) -> Inputs:
        """Simplify each unusual element until nothing helps; at most a few, the rest is left as it is."""
        for name in [k for k, v in inputs.items() if isinstance(v, np.ndarray)]:
            for i in self._unusual(name, inputs[name])[:8]:
                inputs = self._simplest(inputs, name, int(i))
        return inputs

    def _simplest(self, inputs: Inputs, name: str, i: int) -> Inputs:
        dtype = self.dtypes[name]
        improved = True
        while improved and self.left > 0:
            improved = False
            value = decode(inputs[name].reshape(-1)[i : i + 1], dtype)[0].item()
            for candidate in _simpler(value, dtype):
                if not self._allowed(name, candidate):
                    continue
                array = inputs[name].copy()
                array.reshape(-1)[i] = encode([candidate], dtype, "rint", True)[0]
                trial = {**inputs, name: array}
                if self._try(trial):
                    inputs, improved = trial, True
                    break
        return inputs


def _guesses(spots: Spots, arrays: Mapping[str, Arr], hint: tuple[int, ...]) -> Iterator[Spots]:
    """Sets of spots that often suffice: none, those at the differing index, in its row, in its column."""
    yield spots[:0]
    if not hint:
        return
    rank = len(hint)
    for axes in (range(rank), range(1), range(rank - 1, rank)):
        kept = [_near(spots[spots[:, 0] == n], v.shape, hint, axes) for n, v in enumerate(arrays.values())]
        yield np.concatenate([spots[:0], *kept])


def _near(spots: Spots, shape: tuple[int, ...], hint: tuple[int, ...], axes: range) -> Spots:
    """Return the spots of one array that share the hint's index along the axes; all when ranks differ."""
    if len(shape) != len(hint):
        return spots
    index = np.unravel_index(spots[:, 1], shape)
    keep = np.ones(len(spots), np.bool_)
    for axis in axes:
        keep &= index[axis] == hint[axis]
    return spots[keep]


def complexity(value: int | float) -> tuple[float, ...]:
    """Order of simplicity: integers of few significant bits, other finite numbers, infinities, NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        return (3.0 if math.isnan(value) else 2.0, 0.0, 0.0, float(value < 0))
    mantissa, exponent = math.frexp(abs(value))
    digits = int(mantissa * (1 << 53))
    width = digits.bit_length() - ((digits & -digits).bit_length() - 1) if digits else 0
    negative = math.copysign(1.0, value) < 0
    bits = float(width + digits.bit_count())
    return (float(value != int(value)), bits, float(abs(exponent)), float(negative))


def _simpler(value: int | float, dtype: DType) -> list[int | float]:
    """Return values of the dtype simpler than the given one, simplest first."""
    candidates: list[int | float] = [0, 1, 2, 3, 4, 5, 7, 8, 10, -1, -2, 0.5, -0.5, 1.5]
    if isinstance(value, float) and not math.isfinite(value):
        candidates += [float(dtype.max_value), -float(dtype.max_value)]
    else:
        candidates += [abs(value), *_shorter(value)]
    seen: dict[str, int | float] = {}
    rank = complexity(value)
    for c in candidates:
        exact = decode(encode([c], dtype, "rint", True), dtype)[0].item()
        if complexity(exact) < rank:
            seen.setdefault(repr(exact), exact)
    return sorted(seen.values(), key=complexity)


def _shorter(value: int | float) -> Iterator[int | float]:
    """Values near the given one with fewer significant bits, and ones with a smaller exponent."""
    if isinstance(value, int):
        for k in (1, 2, 4, 8, 16, 24, 32):
            kept = max(abs(value).bit_length() - k, 0)
            yield (abs(value) >> kept << kept) * (1 if value >= 0 else -1)
        yield from (value // 2, value - 1 if value > 0 else value + 1)
        yield from (value & ~(1 << k) if value > 0 else -(-value & ~(1 << k)) for k in range(63, -1, -1))
        return
    mantissa, exponent = math.frexp(value)
    for k in (1, 2, 3, 4, 8, 11, 16, 20, 24):
        yield math.ldexp(math.trunc(math.ldexp(mantissa, k)), exponent - k)
    yield from (float(math.trunc(value)), math.ldexp(mantissa, exponent // 2), math.ldexp(mantissa, 1))
    digits = int(abs(mantissa) * (1 << 24))
    without = (digits & ~(1 << k) for k in range(23, -1, -1))
    yield from (math.copysign(math.ldexp(d, exponent - 24), value) for d in without)
