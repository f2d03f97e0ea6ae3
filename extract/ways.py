"""The ways to make a class out of its island, as one choice each.

Most classes of an island have one choice: what such a class needs, through all others like it, is one bit mask. Only
the few open classes are tried one after the other; a way that costs more than another one with all that it needs
besides is given up as soon as that shows.
"""

from __future__ import annotations

from collections.abc import Sequence

from .choices import Choice

#: Ways to make one class that are kept; islands with more are left to the search.
WAYS = 32
#: Selections looked at for them.
TRIED = 256

#: The bit of the class itself, and of what needs itself: no way leads through it.
_TOP = 1

#: What a choice of an open class needs, its own cost, and the choice.
Option = tuple[int, int, Choice]
#: Decided open classes, by bit.
Made = dict[int, Option]
#: A way so far: what it costs without what lies outside, what it needs, what is decided.
Way = tuple[int, int, Made]


class Island:
    """A class and the classes that only it uses, children first where they are in no circle."""

    def __init__(self, c: int, inside: Sequence[int], classes: dict[int, list[Choice]]) -> None:
        self.top = c
        self.classes = classes
        self.bit = {k: 2 << i for i, k in enumerate(inside)}
        self.costs = [0] * (len(inside) + 1)
        self.open = self.shared = self.leaves = 0
        self.name: dict[int, int] = {}
        self.circular = False
        for i, k in enumerate(inside):
            if len(classes[k]) > 1:
                self.open |= 2 << i
                self.name[2 << i] = k
            else:
                self.costs[i + 1] = classes[k][0].cost
        self.needs: dict[int, int] = {c: _TOP, **{k: b for b, k in self.name.items()}}
        self._fill([k for k in inside if len(classes[k]) == 1])

    def _fill(self, single: list[int]) -> None:
        """Work out what classes with one choice need, themselves included."""
        waiting = True
        while waiting:
            waiting = False
            for k in single:
                mask = self._below(self.classes[k][0])
                if mask & self.bit[k]:
                    mask |= _TOP
                mask |= self.bit[k]
                if mask != self.needs.get(k):
                    self.needs[k] = mask
                    waiting = self.circular

    def _below(self, o: Choice) -> int:
        mask = 0
        for k in o.children:
            found = self.needs.get(k)
            if found is None:
                if k in self.bit:
                    self.circular = True
                    continue
                found = self.needs[k] = self._outside(k)
            mask |= found
        return mask

    def _outside(self, k: int) -> int:
        """Return the bit of a class outside: one that needs nothing costs what it costs, others are shared."""
        bit = 1 << len(self.costs)
        options = self.classes[k]
        if len(options) == 1 and not options[0].children:
            self.leaves |= bit
            self.costs.append(options[0].cost)
        else:
            self.shared |= bit
            self.costs.append(0)
        return bit

    def ways(self) -> list[Choice] | None:
        """Return the ways that may be worth keeping, ``None`` if there are too many."""
        found: list[Way] = []
        options: dict[int, list[Option]] = {}
        stack: list[Way] = [(0, _TOP, {})]
        decisions = self.open | _TOP
        tried = 0
        while stack:
            way = cost, mask, made = stack.pop()
            if self._beaten(way, found):
                continue
            todo = mask & decisions & ~sum(made)
            if not todo:
                tried += 1
                if tried > TRIED or len(found) >= WAYS:
                    return None
                if len(made) < 3 or not _turns(made):
                    found.append(way)
                continue
            bit = todo & -todo
            if bit not in options:
                options[bit] = self._options(bit)
            paid = mask | self.leaves | self.shared
            further = [
                (cost + own + self._sum(needs & ~paid), mask | needs, {**made, bit: (needs, own, o)})
                for needs, own, o in options[bit]
            ]
            if len(further) > 1:
                further.sort(key=lambda way: -way[0])
            stack += further
        return [self._choice(way[2]) for way in found if not self._beaten(way, found)]

    def _beaten(self, way: Way, found: list[Way]) -> bool:
        """Whether another way costs less, even with what it needs besides."""
        cost, mask, _ = way
        for other, needs, _ in found:
            if other < cost:
                more = needs & ~mask
                if not more & self.shared and other + self._sum(more & self.leaves) < cost:
                    return True
        return False

    def _options(self, bit: int) -> list[Option]:
        """Return the choices of an open class that do not need it."""
        found = []
        for o in self.classes[self.top if bit == _TOP else self.name[bit]]:
            needs = self._below(o)
            if not needs & (bit | _TOP):
                found.append((needs, o.cost, o))
        return found

    def _sum(self, mask: int) -> int:
        total = 0
        while mask:
            bit = mask & -mask
            total += self.costs[bit.bit_length() - 1]
            mask ^= bit
        return total

    def _choice(self, made: Made) -> Choice:
        """Return a selection as one choice, the class's own pick first."""
        selection: dict[int, Choice] = {}
        stack = [self.top]
        while stack:
            k = stack.pop()
            bit = _TOP if k == self.top else self.bit.get(k, 0)
            if bit and k not in selection:
                o = selection[k] = made[bit][2] if bit in made else self.classes[k][0]
                stack += o.children
        outside = dict.fromkeys(k for o in selection.values() for k in o.children if k not in selection)
        picks = tuple([pick for o in selection.values() for pick in o.picks])
        return Choice(sum(o.cost for o in selection.values()), tuple(outside), picks)


def _turns(made: Made) -> bool:
    """Whether decided classes need each other in a circle."""
    left = sum(made)
    while left:
        done = sum([bit for bit, option in made.items() if left & bit and not option[0] & left])
        if not done:
            return True
        left &= ~done
    return False
