"""Choosing one node per class so that the DAG under the roots is cheapest, shared classes counted once.

Stages: prune (underivable classes, self-loops) → absorb (a class used by one node only becomes part of that
node) → dominate (a node beaten on cost by one with no further needs is dropped) → what is still open goes to a
bitset greedy and a local search that can "open" a shared helper, whose answer a branch and bound
(``extract/search.py``) proves or betters, or to the exact solver (``extract/ilp.py``).
If nothing is open after domination, the choice is proved optimal by the reductions alone. Costs are integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .choices import Choice, Problem, Selection, Solution, cost_of, reachable
from .islands import islands
from .onviews import OnViews
from .reduce import reduce
from .search import Priced, search

__all__ = [
    "Choice", "Problem", "Selection", "Solution", "cost_of", "greedy", "improve", "problem", "reachable",
    "reduce", "solve",
]  # fmt: skip

#: Passes that look for what can be made before a work list does.
_PASSES = 6

Nodes = Sequence[Sequence[tuple[int, tuple[int, ...]] | None]]


def problem(nodes: Nodes, roots: Iterable[int]) -> Problem:
    """Return the pruned problem; ``nodes[c][i]`` is (cost, child classes), ``None`` for an illegal node."""
    wanted = tuple(dict.fromkeys(roots))
    # Nearly always all that is in reach can be made; what cannot be is looked for where that fails.
    classes, children_first = _in_reach(nodes, wanted, None)
    if _all_derivable(classes, children_first):
        return Problem(classes, wanted)
    derivable = _derivable(nodes)
    bad = frozenset(r for r in wanted if r not in derivable)
    return Problem(_in_reach(nodes, wanted, derivable)[0], wanted, bad)


def _in_reach(
    nodes: Nodes, roots: tuple[int, ...], derivable: set[int] | None
) -> tuple[dict[int, list[Choice]], list[int]]:
    """Return the choices of what roots may need, of derivable classes only where these are given.

    Also their classes, each behind those that it needs, but for circles.
    """
    classes: dict[int, list[Choice]] = {}
    children_first: list[int] = []
    stack = list(reversed(roots))
    while stack:
        c = stack.pop()
        if c < 0:
            children_first.append(~c)
            continue
        if c in classes or (derivable is not None and c not in derivable):
            continue
        stack.append(~c)
        choices = classes[c] = []
        for i, node in enumerate(nodes[c]):
            if node is not None:
                cost, needs = node
                if c not in needs and (derivable is None or derivable.issuperset(needs)):
                    children = tuple(dict.fromkeys(needs)) if len(needs) > 1 else needs
                    choices.append(Choice(cost, children, ((c, i),)))
                    stack += children
    return classes, children_first


def _all_derivable(classes: dict[int, list[Choice]], children_first: list[int]) -> bool:
    """Whether a few passes find that every class can be made; ``False`` may also mean that they were too few."""
    done: set[int] = set()
    waiting = children_first
    for _ in range(_PASSES):
        left = []
        for c in waiting:
            for o in classes[c]:
                if done.issuperset(o.children):
                    done.add(c)
                    break
            else:
                left.append(c)
        if not left or len(left) == len(waiting):
            break
        waiting = left
    return len(done) == len(classes)


def _derivable(nodes: Nodes) -> set[int]:
    users: dict[int, list[int]] = {}
    for c, options in enumerate(nodes):
        for option in options:
            if option is not None:
                for child in option[1]:
                    users.setdefault(child, []).append(c)
    done: set[int] = set()
    work = [c for c, options in enumerate(nodes) if any(o is not None and not o[1] for o in options)]
    while work:
        c = work.pop()
        if c in done or not any(o is not None and done.issuperset(o[1]) for o in nodes[c]):
            continue
        done.add(c)
        work += users.get(c, [])
    return done


def greedy(p: Problem) -> Selection:
    """Pick per class the choice with the cheapest set of classes below it (sets as bit masks)."""
    position = {c: i for i, c in enumerate(p.classes)}
    names = list(p.classes)
    best: dict[int, tuple[int, int, Choice]] = {}
    users: dict[int, list[int]] = {}
    for c, options in p.classes.items():
        for o in options:
            for k in o.children:
                users.setdefault(k, []).append(c)
    weight: dict[int, int] = {}
    work = [c for c, options in p.classes.items() if any(not o.children for o in options)]
    queued = set(work)
    while work:
        c = work.pop(0)
        queued.discard(c)
        found = _best_of(c, p.classes[c], best, position, names, weight)
        if found is None or (c in best and found[0] >= best[c][0]):
            continue
        best[c] = found
        weight[c] = found[2].cost
        for u in users.get(c, ()):
            if u not in queued:
                queued.add(u)
                work.append(u)
    return {c: entry[2] for c, entry in best.items()}


def _best_of(
    c: int,
    options: list[Choice],
    best: dict[int, tuple[int, int, Choice]],
    position: dict[int, int],
    names: list[int],
    weight: dict[int, int],
) -> tuple[int, int, Choice] | None:
    found: tuple[int, int, Choice] | None = None
    own = 1 << position[c]
    for o in options:
        if any(k not in best for k in o.children):
            continue
        mask, total = 0, 0
        for k in sorted(o.children, key=lambda k: -best[k][0]):
            new = best[k][1] & ~mask
            if mask == 0:
                total += best[k][0]
            else:
                total += _sum(new, names, weight)
            mask |= new
        if mask & own:
            continue
        if found is None or total + o.cost < found[0]:
            found = (total + o.cost, mask | own, o)
    return found


def _sum(mask: int, names: list[int], weight: dict[int, int]) -> int:
    total = 0
    while mask:
        bit = mask & -mask
        total += weight[names[bit.bit_length() - 1]]
        mask ^= bit
    return total


def improve(p: Problem, start: Selection, rounds: int = 20) -> tuple[Selection, int]:
    """Local search: open a helper that several classes could share, then single changes, while it pays."""
    priced = cost_of(start, p.roots)
    if priced is None:
        raise ValueError("the greedy choice is cyclic")
    chosen, (cost, used) = dict(start), priced
    for _ in range(rounds):
        moved = False
        for trial in [*_helper_moves(p, chosen, used), *_single_moves(p, chosen, used)]:
            changed = {**chosen, **trial}
            found = cost_of(changed, p.roots)
            if found is not None and found[0] < cost:
                chosen, cost, used = changed, *found
                moved = True
        if not moved:
            break
    return chosen, cost


def _helper_moves(p: Problem, chosen: Selection, used: Selection) -> Iterable[Selection]:
    takers: dict[int, Selection] = {}
    for c in used:
        for o in p.classes[c]:
            for k in o.children:
                if k not in used:
                    takers.setdefault(k, {}).setdefault(c, o)
    return [moves for k, moves in sorted(takers.items()) if len(moves) > 1]


def _single_moves(p: Problem, chosen: Selection, used: Selection) -> Iterable[Selection]:
    return [{c: o} for c in used for o in p.classes[c] if o is not chosen[c]]


def solve(p: Problem) -> Solution:
    """Reduce, then greedy and local search on what is open, then a search that proves it or does better."""
    small = reduce(islands(p))
    chosen = {c: options[0] for c, options in small.classes.items()}
    priced = cost_of(chosen, small.roots) if not small.open else None
    if priced is not None:
        return _solution(priced, priced[0])
    chosen, _ = improve(small, greedy(small))
    start = cost_of(chosen, small.roots)
    assert start is not None
    start, least = _on_views(small, start)
    if least >= start[0]:
        return _solution(start, least)
    best, bound = search(small, start)
    return _solution(best, max(bound, least))


def _on_views(p: Problem, start: Priced) -> tuple[Priced, int]:
    """Return the start or what is better with views and literals left out, and a bound: 0 where there are no views."""
    views = OnViews(p)
    if not views.views:
        return start, 0
    found = solve(views.problem())
    other = views.selection(found)
    best = other if other is not None and other[0] < start[0] else start
    # They are no instructions: a choice that costs but them more is as good as proved.
    close = best[0] - found.bound <= views.left_out(best[1])
    return best, best[0] if close else found.bound


def _solution(priced: Priced, bound: int) -> Solution:
    cost, used = priced
    return Solution(dict(pick for o in used.values() for pick in o.picks), cost, bound)
