"""Collapsing islands: what only one open class uses, directly or through itself, is chosen for that class alone.

Recipes of a composite are such islands: tens of classes that nothing else needs. Each way to make the class becomes one
choice with all of its private classes in it, and needs only what lies outside. A choice is then dropped when another
one costs no more even with everything it needs besides (childless classes such as literals, which cost next to
nothing), so that most islands are settled before any search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .choices import Choice, Problem, reachable
from .ways import Island

#: Classes of an island; larger ones are left to the search.
REACH = 400
#: How often islands around one another may have too many ways before larger ones around them are left to the search.
FAILURES = 2

Classes = dict[int, list[Choice]]


def islands(p: Problem) -> Problem:
    """Return the problem with its islands collapsed; its solutions are solutions of ``p`` of the same cost."""
    if not p.open:
        return p
    classes = dict(p.classes)
    users = _users(classes)
    order = _Order(classes, p.roots)
    roots = frozenset(p.roots)
    failed: dict[int, int] = {}
    changed = False
    for c in order.children_first:
        if c not in classes or len(classes[c]) < 2:
            continue
        inside = _inside(c, classes, users, roots, order)
        before = max([failed[k] for k in inside if k in failed], default=0)
        if not inside or before == FAILURES:
            continue
        ways = Island(c, inside, classes).ways()
        if ways is None:
            failed[c] = before + 1
        if not ways:
            continue
        changed = True
        kept = _cheapest(ways, classes)
        _replace(c, kept, inside, classes, users)
    if not changed:
        return p
    return Problem(reachable(classes, p.roots), p.roots, p.infeasible)


def _users(classes: Classes) -> dict[int, set[int]]:
    users: dict[int, set[int]] = {c: set() for c in classes}
    for c, options in classes.items():
        for o in options:
            for k in o.children:
                users[k].add(c)
    return users


class _Order:
    """A depth-first walk: ``children_first``, a class's ``place`` there, and the ``first`` place of its subtree."""

    def __init__(self, classes: Classes, roots: tuple[int, ...]) -> None:
        self.children_first: list[int] = []
        self.place: dict[int, int] = {}
        self.first: dict[int, int] = {}
        stack = [(r, False) for r in reversed(roots)]
        while stack:
            c, leaving = stack.pop()
            if leaving:
                self.place[c] = len(self.children_first)
                self.children_first.append(c)
            elif c not in self.first:
                self.first[c] = len(self.children_first)
                stack.append((c, True))
                stack += [(k, False) for o in classes[c] for k in o.children if k not in self.first]


def _inside(
    c: int, classes: Classes, users: Mapping[int, set[int]], roots: frozenset[int], order: _Order
) -> list[int]:
    """Return the classes below ``c`` that nothing but ``c`` and themselves use, children first where they can be."""
    first, place, last = order.first[c], order.place, order.place[c]
    kept: set[int] = set()
    stack = [c]
    while stack:
        for o in classes[stack.pop()]:
            for k in o.children:
                if k in kept or k in roots or k == c:
                    continue
                # All that leads to a class of the island goes through c, so that the walk came from there.
                for u in users[k]:
                    if not first <= place[u] <= last:
                        break
                else:
                    kept.add(k)
                    stack.append(k)
        if len(kept) > REACH:
            return []
    work = list(kept)
    kept.add(c)
    while work:
        k = work.pop()
        if k in kept and k != c and not users[k] <= kept:
            kept.discard(k)
            work += [x for o in classes[k] for x in o.children]
    kept.discard(c)
    return sorted(kept, key=place.__getitem__)


def _cheapest(ways: list[Choice], classes: Classes) -> list[Choice]:
    """Drop the ways that cost no less than another one with all that it needs besides."""
    kept: list[Choice] = []
    for way in sorted(ways, key=lambda w: (w.cost, w.picks)):
        needs = set(way.children)
        if not any(_at_most(other, way.cost, needs, classes) for other in kept):
            kept = [k for k in kept if not _at_most(way, k.cost, set(k.children), classes)] + [way]
    return kept


def _at_most(way: Choice, cost: int, needs: set[int], classes: Classes) -> bool:
    """Whether a way costs at most ``cost`` where ``needs`` are made already, whatever else is."""
    total = way.cost
    for k in way.children:
        if k not in needs:
            options = classes[k]
            if len(options) != 1 or options[0].children:
                return False
            total += options[0].cost
    return total <= cost


def _replace(
    c: int, ways: list[Choice], inside: Sequence[int], classes: Classes, users: dict[int, set[int]]
) -> None:
    """Put the ways in place of a class and its island."""
    for gone in (c, *inside):
        for o in classes[gone]:
            for k in o.children:
                users[k].discard(gone)
    for k in inside:
        del classes[k], users[k]
    classes[c] = ways
    for o in ways:
        for k in o.children:
            users[k].add(c)
