"""Classes that are views of each other, taken as one: a smaller problem whose optimum bounds the whole one's.

A tile and the same tile as a line are two classes, each of which costs next to nothing where the other is made. Which
of the two is made, step by step along a program, is a choice that a search over single classes sees no bound for.
Taken as one class that is made in any of its forms, they leave out the views alone, which are no instructions.
Literals are none either, and left out, too: one that two steps share would make these one problem.
"""

from __future__ import annotations

from .choices import Choice, Problem, Selection, Solution, cost_of

#: What a view or a literal weighs at most: less than any instruction, under every objective.
_LIGHT = 15

Priced = tuple[int, Selection]


class OnViews:
    """A problem with classes that are views of each other made one, and the way back."""

    def __init__(self, p: Problem) -> None:
        self.p = p
        self.views = _views(p)
        self.leaves = _leaves(p)
        self.of = _groups(self.views)
        self.members: dict[int, list[int]] = {}
        for c in p.classes:
            self.members.setdefault(self.of.get(c, c), []).append(c)
        #: Per class of the smaller problem, what each of its choices makes and how.
        self.made: dict[int, list[tuple[int, Choice]]] = {}

    def problem(self) -> Problem:
        """Return the smaller problem; a pick is a place in ``made``."""
        classes: dict[int, list[Choice]] = {}
        for group, members in self.members.items():
            made = self.made[group] = []
            options = classes[group] = []
            for c in members:
                for o in self.p.classes[c]:
                    needs = tuple(dict.fromkeys(self.of.get(k, k) for k in o.children if k not in self.leaves))
                    if group not in needs:
                        options.append(Choice(o.cost, needs, ((group, len(made)),)))
                        made.append((c, o))
        return Problem(classes, tuple(dict.fromkeys(self.of.get(r, r) for r in self.p.roots)))

    def selection(self, found: Solution) -> Priced | None:
        """Return what a solution of the smaller problem is in the whole one; ``None`` if it needs itself there."""
        chosen: Selection = dict(self.leaves)
        for group, n in found.picks.items():
            c, choice = self.made[group][n]
            chosen[c] = choice
            reached = [c]
            for k in reached:
                for other, view in self.views.get(k, ()):
                    if other not in chosen:
                        chosen[other] = view
                        reached.append(other)
        return cost_of(chosen, self.p.roots)

    def left_out(self, used: Selection) -> int:
        """Return what the views and literals of a selection cost, which the smaller problem leaves out."""
        views = {id(view) for found in self.views.values() for _, view in found}
        return sum(o.cost for c, o in used.items() if id(o) in views or c in self.leaves)


def _leaves(p: Problem) -> Selection:
    """Return classes that are next to nothing in their one form, as literals and views of parameters are."""
    light = {c: o for c, (o, *more) in p.classes.items() if not more and o.cost <= _LIGHT}
    while heavy := [c for c, o in light.items() if not light.keys() >= set(o.children)]:
        for c in heavy:
            del light[c]
    return light


def _views(p: Problem) -> dict[int, list[tuple[int, Choice]]]:
    """Return per class its views, which are made of nothing else or which it is a view of, and how each is made."""
    views: dict[tuple[int, int], Choice] = {}
    for c, options in p.classes.items():
        for o in options:
            if len(o.children) == 1 and o.cost <= _LIGHT:
                views[o.children[0], c] = o
    found: dict[int, list[tuple[int, Choice]]] = {}
    for (k, c), view in views.items():
        if (c, k) in views or len(p.classes[c]) == 1:
            found.setdefault(k, []).append((c, view))
    return found


def _groups(views: dict[int, list[tuple[int, Choice]]]) -> dict[int, int]:
    """Return for each class that has views the first class of its group."""
    of: dict[int, int] = {}
    for first in views:
        if first not in of:
            of[first], reached = first, [first]
            for k in reached:
                for other, _ in views.get(k, ()):
                    if other not in of:
                        of[other] = first
                        reached.append(other)
    return of
