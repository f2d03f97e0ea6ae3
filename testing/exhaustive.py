"""Every input of a program, where there are few enough: a proof of equality, not a sample.

A pointwise program (see :mod:`tilegg.testing.positions`) is tried on as many inputs at once as it has positions; any
other is run once for every content of its inputs. Cases are numbered, and a case is made from its number alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..ir.codes import all_values, from_bits, from_ordinal, ordinal
from ..ir.convert import decode, encode
from ..ir.diagnostics import TileggError, error
from ..ir.dimexpr import evaluate
from ..ir.dtypes import DType
from ..ir.equivalence import Case, Session
from ..ir.inputs import FREE, Domain
from ..ir.program import Param
from ..ir.tilearray import Arr
from ..ir.types import PtrType, ScalarType, TensorType, TileType
from .positions import Mixes, Window, window_of

#: Runs an exhaustive test takes unless told otherwise: seconds to a few minutes.
LIMIT = 1 << 16


@dataclass(frozen=True)
class Values:
    """The elements of a dtype inside a domain: ``spread`` consecutive ones and some more."""

    dtype: DType
    first: int
    spread: int
    further: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """How many elements there are."""
        return self.spread + len(self.further)

    def take(self, numbers: Arr) -> Arr:
        """Return the storage array of the elements with these numbers, int64."""
        inside = numbers < self.spread
        found = self._consecutive(np.where(inside, numbers, 0))
        if self.further:
            rest = from_bits(np.array(self.further, np.int64), self.dtype)
            found = np.where(inside, found, rest[np.where(inside, 0, numbers - self.spread)])
        return found

    def _consecutive(self, numbers: Arr) -> Arr:
        if self.dtype.is_float:
            return from_ordinal(numbers + self.first, self.dtype)
        # Numbers and sums wrap in 64 bits, which gives the right element of unsigned dtypes as well.
        found: Arr = (numbers.astype(np.uint64) + np.uint64(self.first % (1 << 64))).astype(self.dtype.storage)
        return found


@dataclass(frozen=True)
class Listed(Values):
    """Elements of a dtype of at most 16 bits, by their codes in :attr:`further`."""

    @cached_property
    def _table(self) -> Arr:
        return from_bits(np.array(self.further, np.int64), self.dtype)

    def take(self, numbers: Arr) -> Arr:
        """Return the storage array of the elements with these numbers, int64."""
        return self._table[numbers]


@dataclass(frozen=True)
class Codes(Values):
    """Every bit code of a dtype."""

    def _consecutive(self, numbers: Arr) -> Arr:
        return from_bits(numbers, self.dtype)


def values_in(dtype: DType, domain: Domain) -> Values:
    """Return the elements of a dtype inside a domain; without limits every bit code, NaN payloads too."""
    if dtype.bits <= 16 and dtype.is_numeric:
        every = all_values(dtype)
        codes = np.flatnonzero(domain.holds(decode(every, dtype)))
        found: Values = Listed(dtype, 0, 0, tuple(codes.tolist()))
    elif domain.free:
        return Codes(dtype, 0, 1 << dtype.bits)
    elif dtype.is_float:
        found = _floats_in(dtype, domain)
    else:
        low, high = max(domain.lo, dtype.min_value), min(domain.hi, dtype.max_value)
        first = math.ceil(low)
        found = Values(dtype, first, max(math.floor(high) - first + 1, 0))
    if not found.count:
        raise error("TG030", f"no {dtype.name} value lies in [{domain.lo}, {domain.hi}]")
    return found


def _floats_in(dtype: DType, domain: Domain) -> Values:
    low, high = max(domain.lo, dtype.min_value), min(domain.hi, dtype.max_value)
    if low > high:
        return Values(dtype, 0, 0)
    ends = [encode([low], dtype, "ceil", True), encode([high], dtype, "floor", True)]
    first, last = (int(ordinal(e, dtype)[0]) for e in ends)
    further = []
    if low <= 0 <= high and dtype.has_negative_zero:
        further.append(dtype.sign_bit)
    if dtype.inf_code is not None and not domain.finite:
        further += [dtype.inf_code] if math.isinf(domain.hi) else []
        further += [dtype.inf_code | dtype.sign_bit] if math.isinf(domain.lo) else []
    return Values(dtype, first, last - first + 1, tuple(further))


@dataclass(frozen=True)
class Slot:
    """One thing that takes every value by itself: a scalar, the elements of an array together, or one of them."""

    parameter: str
    values: Values
    shape: tuple[int, ...] | None
    element: int | None = None


@dataclass(frozen=True)
class Every:
    """All inputs of a function: the product of its slots, ``block`` numbers in one run."""

    slots: tuple[Slot, ...]
    outer: tuple[Slot, ...]
    window: Window | None

    @property
    def cases(self) -> int:
        """How many inputs there are."""
        return math.prod(s.values.count for s in (*self.slots, *self.outer))

    @property
    def block(self) -> int:
        """Inputs in one run."""
        return math.prod(self.window.extent) if self.window else 1

    @property
    def inner(self) -> int:
        """Runs for one setting of the scalars."""
        return -(-math.prod(s.values.count for s in self.slots) // self.block)

    @property
    def count(self) -> int:
        """Runs in all."""
        return self.inner * math.prod(s.values.count for s in self.outer)

    def case(self, session: Session, turn: int) -> Case:
        """Return the inputs of a turn."""
        outer, inner = divmod(turn, self.inner)
        total = math.prod(s.values.count for s in self.slots)
        start = inner * self.block
        return Cases(self, outer, start, min(self.block, total - start))

    def inputs(self, outer: int, start: int, size: int) -> dict[str, Any]:
        """Return inputs with the cases ``start`` to ``start + size``, repeated over the positions there are."""
        numbers = start + np.arange(self.block, dtype=np.int64) % size
        given: dict[str, Any] = {}
        for slot in self.slots:
            numbers, digit = np.divmod(numbers, slot.values.count)
            self._put(given, slot, slot.values.take(digit))
        for slot in self.outer:
            outer, one = divmod(outer, slot.values.count)
            self._put(given, slot, slot.values.take(np.array([one])))
        return given

    def _put(self, given: dict[str, Any], slot: Slot, elements: Arr) -> None:
        if slot.shape is None:
            given[slot.parameter] = decode(elements, slot.values.dtype)[0].item()
            return
        array = given.setdefault(slot.parameter, np.zeros(slot.shape, slot.values.dtype.storage))
        if slot.element is not None:
            array.reshape(-1)[slot.element] = elements[0]
            return
        assert self.window is not None
        # Outside the window nothing is read: some value of the domain, so that no promise is broken there.
        array[...] = elements[0]
        array[self.window.slices] = elements.reshape(self.window.extent)


@dataclass(frozen=True)
class Cases:
    """Consecutive cases in one run."""

    every: Every
    outer: int
    start: int
    size: int

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs by parameter name."""
        return self.every.inputs(self.outer, self.start, self.size)

    def split(self) -> Sequence[Case]:
        """Return both halves: where a run is refused because of some cases, the others are still tried."""
        half = self.size // 2
        if not half:
            return ()
        return (
            Cases(self.every, self.outer, self.start, half),
            Cases(self.every, self.outer, self.start + half, self.size - half),
        )


def every_input(session: Session, limit: int = LIMIT) -> Every:
    """Return all inputs of the first program; raises TG033 when that takes more than ``limit`` runs."""
    windows = [window_of(f, session.dims) for f in (session.fa, session.fb)]
    mixes = next((w for w in windows if isinstance(w, Mixes)), None)
    window = windows[0] if windows[0] == windows[1] and isinstance(windows[0], Window) else None
    if mixes is None and window is None:
        mixes = Mixes("the two work on different windows")
    slots: list[Slot] = []
    outer: list[Slot] = []
    for p in session.fa.params:
        if p.direction == "Out":
            continue
        found = _slots(session, p, window)
        (outer if found and found[0].shape is None else slots).extend(found)
    every = Every(tuple(slots), tuple(outer), window)
    if every.count > limit:
        raise _too_many(every, limit, mixes)
    return every


def _slots(session: Session, p: Param, window: Window | None) -> list[Slot]:
    t, name = p.value.type, p.value.name
    domain = session.domains.get(name, FREE)
    match t:
        case ScalarType(dtype=dtype):
            if name in session.dims:
                domain = Domain(session.dims[name], session.dims[name])
            return [Slot(name, values_in(dtype, domain), None)]
        case TensorType(dtype=dtype) | TileType(dtype=dtype):
            sizes = t.valid_shape if isinstance(t, TileType) else t.shape
            shape = tuple(evaluate(d, session.dims) or 0 for d in sizes)
            if window is not None:
                return [Slot(name, values_in(dtype, domain), shape)]
            if not all(shape):
                raise error("TG033", f"the shape of {name} is not known", hint="give its sizes as dims")
            values = values_in(dtype, domain)
            return [Slot(name, values, shape, i) for i in range(math.prod(shape))]
        case PtrType():
            raise error("TG033", f"what lies behind the pointer {name} cannot be listed")
    return []


def _too_many(every: Every, limit: int, mixes: Mixes | None) -> TileggError:
    bits = sum(math.log2(s.values.count) for s in (*every.slots, *every.outer))
    runs = f"{every.count:,}" if every.count < 10**15 else f"2^{math.log2(every.count):.0f}"
    reason = "" if mixes is None else f"every content of the inputs is an input of its own: {mixes.why}"
    return error(
        "TG033",
        f"there are 2^{bits:.4g} different inputs, which takes {runs} runs; at most {limit:,} are made",
        mixes.span if mixes else None,
        reason=reason,
        hint="narrow the inputs with facts, draw them instead, or allow more runs",
    )
