"""What is chosen from: choices per class, the problem they make, and its solution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple


class Choice(NamedTuple):
    """One way to make a class: its cost, the classes it needs, the (class, node) picks it stands for."""

    cost: int
    children: tuple[int, ...]
    picks: tuple[tuple[int, int], ...]


@dataclass
class Problem:
    """Choices per class number, and the root classes."""

    classes: dict[int, list[Choice]]
    roots: tuple[int, ...]
    infeasible: frozenset[int] = frozenset()

    @property
    def open(self) -> list[int]:
        """Classes with more than one choice left."""
        return [c for c, choices in self.classes.items() if len(choices) > 1]


@dataclass(frozen=True)
class Solution:
    """The picked node of every class in use, the total cost, and how good it is known to be.

    ``bound`` is a proved lower bound on the cost of any choice (equal to ``cost``: proved optimal).
    """

    picks: dict[int, int]
    cost: int
    bound: int

    @property
    def proved(self) -> bool:
        return self.bound >= self.cost


def reachable(classes: dict[int, list[Choice]], roots: Iterable[int]) -> dict[int, list[Choice]]:
    seen: dict[int, list[Choice]] = {}
    stack = [r for r in roots if r in classes]
    while stack:
        c = stack.pop()
        if c not in seen:
            seen[c] = classes[c]
            stack += [k for o in classes[c] for k in o.children]
    return {c: seen[c] for c in classes if c in seen}


Selection = dict[int, Choice]


def cost_of(chosen: Selection, roots: Iterable[int]) -> tuple[int, dict[int, Choice]] | None:
    """Return the DAG cost and the classes in use, or ``None`` if the choice is cyclic or lacks a class."""
    used: dict[int, Choice] = {}
    state: dict[int, int] = {}
    stack = [(r, False) for r in roots]
    total = 0
    while stack:
        c, leaving = stack.pop()
        if leaving:
            state[c] = 2
            continue
        mark = state.get(c)
        if mark == 2:
            continue
        if mark == 1:
            return None
        state[c] = 1
        choice = chosen.get(c)
        if choice is None:
            return None
        used[c] = choice
        total += choice.cost
        stack.append((c, True))
        for k in choice.children:
            if state.get(k) == 1:
                return None
            if state.get(k) != 2:
                stack.append((k, False))
    return total, used
