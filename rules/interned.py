"""Numbers for what terms of the e-graph do not spell out."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import count
from typing import Generic, TypeVar

V = TypeVar("V")


class Interned(Generic[V]):
    """A number for each key, given when it is met first, with a value. Numbers differ between processes.

    Neither an interrupt nor another thread makes a number mean two things: numbers are not derived from the size of a
    table, and a key gets its number when what that means is there.
    """

    def __init__(self) -> None:
        self._codes: dict[Hashable, int] = {}
        self._values: dict[int, V] = {}
        self._next = count()

    def code(self, key: Hashable, value: V) -> int:
        """Return the number of a key; ``value`` is what a new one stands for."""
        known = self._codes.get(key)
        if known is None:
            made = next(self._next)
            self._values[made] = value
            known = self._codes.setdefault(key, made)
        return known

    def __getitem__(self, code: int) -> V:
        return self._values[code]
