"""What is chosen from: choices per class, the problem they make, and its solution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
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
