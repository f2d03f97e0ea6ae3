"""Collapsing islands: what only one open class uses, directly or through itself, is chosen for that class alone.

Recipes of a composite are such islands: tens of classes that nothing else needs. Each way to make the class becomes one
choice with all of its private classes in it, and needs only what lies outside. A choice is then dropped when another
one costs no more even with everything it needs besides (childless classes such as literals, which cost next to
nothing), so that most islands are settled before any search.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .choices import Choice, Problem, reachable

#: Classes looked at below one open class; larger islands are left to the search.
REACH = 400
#: Ways to make one class that are listed; islands with more are left to the search.
WAYS = 32
#: Selections looked at for them.
TRIED = 256

Classes = dict[int, list[Choice]]


def islands(p: Problem) -> Problem:
    """Return the problem with its islands collapsed; its solutions are solutions of ``p`` of the same cost."""
    if not p.open:
        return p
    classes = dict(p.classes)
    users = _users(classes)
    changed = False
    for c in _children_first(classes, p.roots):
        if c not in classes or len(classes[c]) < 2:
            continue
        inside = _inside(c, classes, users, frozenset(p.roots))
        ways = _ways(c, inside, classes) if inside else None
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


def _children_first(classes: Classes, roots: tuple[int, ...]) -> list[int]:
    order: list[int] = []
    seen: set[int] = set()
    stack = [(r, False) for r in reversed(roots)]
    while stack:
        c, leaving = stack.pop()
        if leaving:
            order.append(c)
        elif c not in seen:
            seen.add(c)
            stack.append((c, True))
            stack += [(k, False) for o in classes[c] for k in o.children if k not in seen]
    return order


def _inside(c: int, classes: Classes, users: Mapping[int, set[int]], roots: frozenset[int]) -> frozenset[int]:
    """Return the classes below ``c`` that nothing but ``c`` and themselves use."""
    below: dict[int, None] = {}
    stack = [c]
    while stack:
        for o in classes[stack.pop()]:
            for k in o.children:
                if k not in below and k != c:
                    below[k] = None
                    stack.append(k)
        if len(below) > REACH:
            return frozenset()
    kept = {k for k in below if k not in roots}
    work = list(below)
    while work:
        k = work.pop()
        if k in kept and not users[k] <= kept | {c}:
            kept.discard(k)
            work += [x for o in classes[k] for x in o.children]
    return frozenset(kept)


def _ways(c: int, inside: frozenset[int], classes: Classes) -> list[Choice] | None:
    """Return every way to make a class out of its island, ``None`` if there are too many."""
    found: list[Choice] = []
    for tried, selection in enumerate(_selections(c, inside, classes)):
        # Selections that need themselves count too: islands of casts to and fro have any number of them.
        if len(found) >= WAYS or tried >= TRIED:
            return None
        way = _joined(c, selection)
        if way is not None:
            found.append(way)
    return found


def _selections(c: int, inside: frozenset[int], classes: Classes) -> Iterator[dict[int, Choice]]:
    """Yield the selections of the island that make a class: one choice for each class in use."""
    stack: list[tuple[dict[int, Choice], list[int]]] = [({}, [c])]
    while stack:
        chosen, waiting = stack.pop()
        while waiting and (waiting[-1] in chosen or (waiting[-1] not in inside and waiting[-1] != c)):
            waiting.pop()
        if not waiting:
            yield chosen
            continue
        k = waiting.pop()
        for o in reversed(classes[k]):
            stack.append(({**chosen, k: o}, [*waiting, *o.children]))


def _joined(c: int, selection: dict[int, Choice]) -> Choice | None:
    """Return a selection as one choice, ``None`` if it needs itself."""
    if not _acyclic(c, selection):
        return None
    outside = dict.fromkeys(k for o in selection.values() for k in o.children if k not in selection)
    picks = tuple(pick for o in selection.values() for pick in o.picks)
    return Choice(sum(o.cost for o in selection.values()), tuple(outside), picks)


def _acyclic(c: int, selection: dict[int, Choice]) -> bool:
    state: dict[int, bool] = {}
    stack = [(c, False)]
    while stack:
        k, leaving = stack.pop()
        if leaving:
            state[k] = True
            continue
        if k in state:
            if not state[k]:
                return False
            continue
        state[k] = False
        stack.append((k, True))
        for x in selection[k].children:
            if x in selection:
                if state.get(x) is False:
                    return False
                if x not in state:
                    stack.append((x, False))
    return True


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
    c: int, ways: list[Choice], inside: frozenset[int], classes: Classes, users: dict[int, set[int]]
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
