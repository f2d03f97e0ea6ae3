"""Who goes next: schedules for runs of several ranks, benign, adversarial, random and replayed.

A schedule is asked again and again for the next choice among the ranks that can go on and the writes that are not
visible yet. All of them are deterministic.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from .diagnostics import error
from .ranks_events import Choice, format_schedule, parse_schedule

#: Per rank, the numbers of its writes that are not visible yet, oldest first.
Pending = Sequence[Mapping[int, object]]


class Schedule(Protocol):
    """Chooses among what is possible; never asked when nothing is."""

    name: str

    def choose(self, ready: Sequence[int], pending: Pending) -> Choice:
        """Return a rank of ``ready``, or ``(rank, k)`` for a pending write."""


def _oldest(pending: Pending) -> Choice | None:
    for rank, writes in enumerate(pending):
        if writes:
            return rank, next(iter(writes))
    return None


class Fair:
    """Ranks take turns and writes are visible at once: how one imagines a run."""

    name = "fair"

    def __init__(self) -> None:
        self._last = -1

    def choose(self, ready: Sequence[int], pending: Pending) -> Choice:
        """Return the oldest write, else the next rank in turn."""
        write = _oldest(pending)
        if write is not None:
            return write
        self._last = next((r for r in ready if r > self._last), ready[0])
        return self._last


class Ahead:
    """The first rank of ``order`` that can go on runs as far as it can.

    ``late``: writes stay invisible until nothing else is possible, and then the newest comes first.
    """

    def __init__(self, order: Sequence[int], late: bool = True) -> None:
        self.order, self.late = tuple(order), late
        self.name = f"ahead {' '.join(map(str, order))}{' late' if late else ''}"

    def choose(self, ready: Sequence[int], pending: Pending) -> Choice:
        """Return the first ready rank, before or after the writes."""
        if not self.late or not ready:
            write = _newest(pending) if self.late else _oldest(pending)
            if write is not None:
                return write
        for r in self.order:
            if r in ready:
                return r
        return ready[0]


def _newest(pending: Pending) -> Choice | None:
    for rank in reversed(range(len(pending))):
        if pending[rank]:
            return rank, next(reversed(list(pending[rank])))
    return None


class Random:
    """Random choices, with ranks of unlike speed and writes of random lateness, from a seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.name = f"random {seed}"
        self._random = random.Random(seed)
        self._speed: dict[int, float] = {}
        self._late = self._random.choice((0.0, 0.3, 0.7, 0.95))

    def choose(self, ready: Sequence[int], pending: Pending) -> Choice:
        """Return a random write or a random rank."""
        draw = self._random.random
        waiting = [r for r, writes in enumerate(pending) if writes]
        if waiting and (not ready or draw() >= self._late):
            rank = waiting[int(draw() * len(waiting))]
            numbers = list(pending[rank])
            return rank, numbers[int(draw() * len(numbers))]
        weights = [self._speed_of(r) for r in ready]
        at = draw() * sum(weights)
        for r, w in zip(ready, weights):
            at -= w
            if at < 0:
                return r
        return ready[-1]

    def _speed_of(self, rank: int) -> float:
        if rank not in self._speed:
            self._speed[rank] = random.Random(self.seed * 1009 + rank).choice((0.05, 0.3, 1.0))
        return self._speed[rank]


class Replay:
    """Follows given choices, then goes on fairly. Raises TG040 when a choice is not possible."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self.name = f"replay of {len(choices)}"
        self._choices: Iterator[Choice] = iter(choices)
        self._rest = Fair()

    def choose(self, ready: Sequence[int], pending: Pending) -> Choice:
        """Return the next given choice."""
        choice = next(self._choices, None)
        if choice is None:
            return self._rest.choose(ready, pending)
        if isinstance(choice, int):
            possible = choice in ready
        else:
            possible = choice[0] < len(pending) and choice[1] in pending[choice[0]]
        if not possible:
            raise error("TG040", f"the schedule does not fit the program at {format_schedule((choice,))}")
        return choice


def schedules(ranks: int, count: int, seed: int = 0) -> Iterator[Schedule]:
    """Yield ``count`` schedules for a number of ranks: the fair one, the adversarial ones, then random ones."""
    return itertools.islice(_all(ranks, seed), count)


def _all(ranks: int, seed: int) -> Iterator[Schedule]:
    yield Fair()
    others = [tuple(r for r in range(ranks) if r != slow) for slow in range(ranks)]
    for slow in range(ranks):
        yield Ahead((*others[slow], slow))
        yield Ahead((slow, *others[slow][::-1]))
    for slow in range(ranks):
        yield Ahead((*others[slow], slow), late=False)
    for i in itertools.count():
        yield Random(seed + i)


def as_schedule(given: Schedule | tuple[Choice, ...] | list[Choice] | int | str | None) -> Schedule:
    """Return the schedule meant: an object, choices or their text, a seed, ``"fair"`` or ``None``."""
    if given is None or given == "fair":
        return Fair()
    if isinstance(given, str):
        return Replay(parse_schedule(given))
    if isinstance(given, int):
        return Random(given)
    return Replay(given) if isinstance(given, tuple | list) else given
