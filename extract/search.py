"""Proving a choice: what is open falls into independent parts, and each is searched with bit masks.

Two open classes belong together when both can make something needed that is not needed anyway, or when choices can
make each need the other. Costs of parts add up, so that each is searched by itself. A search keeps the classes in use
so far with all that they are known to need; a class costs its cheapest choice until it is decided, which bounds every
completion from below.
"""

from __future__ import annotations

from .choices import Choice, Problem, Selection, cost_of
from .reduce import must_masks

#: Subproblems that one search may open, over all its parts.
STEPS = 6_000

Priced = tuple[int, Selection]
#: The decisions of a search so far, the last one first.
Made = tuple[int, Choice, "Made"] | None
#: A subproblem: bound, mask of classes in use, mask of decided ones, what lies below every class, decisions.
State = tuple[int, int, int, list[int], Made]


def search(p: Problem, start: Priced, steps: int = STEPS) -> tuple[Priced, int]:
    """Return the best choice found, ``start`` unless there is a better one, and a proved bound on every choice."""
    return _Search(p, start, steps).run()


class _Search:
    def __init__(self, p: Problem, start: Priced, steps: int) -> None:
        self.p = p
        self.start = start
        self.steps = steps
        self.names = list(p.classes)
        bit = {c: 1 << i for i, c in enumerate(self.names)}
        must = must_masks(p.classes, bit)
        self.below = [must[c] for c in self.names]
        self.low = [min(o.cost for o in p.classes[c]) for c in self.names]
        self.always = 0
        for r in p.roots:
            self.always |= must[r]
        self.open = sum(bit[c] for c in self.names if len(p.classes[c]) > 1)
        self.paid = self.always & ~self.open
        place = {c: i for i, c in enumerate(self.names)}
        self.kids = [[[place[k] for k in o.children] for o in p.classes[c]] for c in self.names]

    def run(self) -> tuple[Priced, int]:
        total, used = self.start
        bound = self._sum(self.paid)
        better: Selection = {}
        for part in self._parts():
            known = sum(used[self.names[i]].cost for i in _bits(part) if self.names[i] in used)
            made, least = self._best(part, known)
            bound += least
            while made is not None:
                i, choice, made = made
                better[self.names[i]] = choice
        if better:
            chosen = {c: options[0] for c, options in self.p.classes.items()}
            found = cost_of({**chosen, **used, **better}, self.p.roots)
            assert found is not None and found[0] < total
            return found, bound
        return self.start, bound

    def _parts(self) -> list[int]:
        """Return the masks of the independent parts: all classes that are not paid for anyway."""
        # What is needed whatever is chosen costs no choice anything, nor does what lies below it.
        reach, any_way = self._reach(~self.always), self._reach(-1)
        parts: list[int] = []
        for i in _bits(self.open):
            part = reach[i] & ~self.paid
            part |= sum(1 << j for j in _bits(any_way[i] & self.open) if any_way[j] >> i & 1 and not part >> j & 1)
            apart = [other for other in parts if not other & part]
            for other in parts:
                if other & part:
                    part |= other
            parts = [*apart, part]
        return parts

    def _reach(self, through: int) -> list[int]:
        """Return for every class the mask of itself and what lies below it on any way through some classes."""
        reach = [1 << i for i in range(len(self.names))]
        direct = [sorted({k for kids in options for k in kids if through >> k & 1}) for options in self.kids]
        changed = True
        while changed:
            changed = False
            for i in reversed(range(len(reach))):
                mask = reach[i]
                for k in direct[i]:
                    mask |= reach[k]
                if mask != reach[i]:
                    reach[i], changed = mask, True
        return reach

    def _best(self, part: int, best: int) -> tuple[Made, int]:
        """Return the decisions that undercut ``best`` the most in a part, if any do, and a bound on all choices."""
        found: Made = None
        always = self.always & part
        stack: list[State] = [(self._sum(always), always, 0, self.below, None)]
        while stack:
            cost, need, decided, below, made = stack.pop()
            if cost >= best:
                continue
            if self.steps <= 0:
                return found, min([best, cost, *(state[0] for state in stack)])
            self.steps -= 1
            waiting = need & self.open & ~decided
            if not waiting:
                found, best = made, cost
                continue
            options = self._options((cost, need, decided, below, made), waiting & -waiting, part)
            stack += sorted((s for s in options if s[0] < best), key=lambda s: -s[0])
        return found, best

    def _options(self, state: State, bit: int, part: int) -> list[State]:
        """Return what deciding a class leads to, the last choice first; choices that need their own class are none."""
        cost, need, decided, below, made = state
        i = bit.bit_length() - 1
        found: list[State] = []
        for choice, kids in zip(reversed(self.p.classes[self.names[i]]), reversed(self.kids[i])):
            mask = 0
            for k in kids:
                mask |= below[k]
            if not mask & bit:
                new = mask & part & ~need
                total = cost + choice.cost - self.low[i] + self._sum(new)
                # Whatever needs the class needs, from here on, what the choice needs.
                under = [b | mask if b & bit else b for b in below]
                found.append((total, need | new, decided | bit, under, (i, choice, made)))
        return found

    def _sum(self, mask: int) -> int:
        return sum(self.low[i] for i in _bits(mask))


def _bits(mask: int) -> list[int]:
    found = []
    while mask:
        bit = mask & -mask
        found.append(bit.bit_length() - 1)
        mask ^= bit
    return found
