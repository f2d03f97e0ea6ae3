"""Making an extraction problem smaller without losing its optimum.

Absorb (a class used by one node only becomes part of that node) → dominate (a choice that costs no less than one
with no further needs is dropped) → tighten (the same, counting what a choice needs on every way below it).
"""

from __future__ import annotations

from .choices import Choice, Problem, reachable


def reduce(p: Problem) -> Problem:
    """Absorb private classes and drop dominated choices until nothing changes."""
    classes = {c: _undominated(options) for c, options in p.classes.items()}
    changed = True
    while changed:
        classes = _absorbed(classes, p.roots)
        classes, changed = _tightened(classes)
        if changed:
            classes = reachable(classes, p.roots)
    return Problem(classes, p.roots, p.infeasible)


def _absorbed(classes: dict[int, list[Choice]], roots: tuple[int, ...]) -> dict[int, list[Choice]]:
    protected = set(roots)
    changed = True
    while changed:
        changed = False
        uses: dict[int, int] = {}
        for options in classes.values():
            for option in options:
                for child in option.children:
                    uses[child] = uses.get(child, 0) + 1
        for c in list(classes):
            options = classes.get(c, [])
            private = {
                k for o in options for k in o.children
                if uses[k] == 1 and k not in protected and len(classes[k]) == 1 and k != c
            }  # fmt: skip
            if not private:
                continue
            classes[c] = _undominated([_absorb(o, private, classes) for o in options])
            changed = True
            for k in private:
                classes.pop(k, None)
        classes = reachable(classes, roots)
    return classes


def _tightened(classes: dict[int, list[Choice]]) -> tuple[dict[int, list[Choice]], bool]:
    """Drop choices that need their own class, or as much as a cheaper one, on every way below them.

    What a choice needs in any case stands below it, so that using it directly makes no cycle.
    """
    if all(len(options) == 1 for options in classes.values()):
        return classes, False
    bit = {c: 1 << i for i, c in enumerate(classes)}
    must = must_masks(classes, bit)
    found: dict[int, list[Choice]] = {}
    changed = False
    for c, options in classes.items():
        kept: list[tuple[Choice, int]] = []
        for option in options if len(options) > 1 else ():
            needs = _union(option, must)
            if not needs & bit[c] and not any(below & needs == below for _, below in kept):
                kept.append((option, sum(bit[k] for k in option.children)))
        found[c] = [option for option, _ in kept] or options
        changed = changed or len(found[c]) < len(options)
    return found, changed


def must_masks(classes: dict[int, list[Choice]], bit: dict[int, int]) -> dict[int, int]:
    """Return for every class the bit mask of the classes that are in use whenever it is, itself included."""
    users: dict[int, set[int]] = {}
    for c, options in classes.items():
        for option in options:
            for k in option.children:
                users.setdefault(k, set()).add(c)
    everything = (1 << len(bit)) - 1
    must = dict.fromkeys(classes, everything)
    work = list(classes)
    waiting = set(work)
    while work:
        c = work.pop()
        waiting.discard(c)
        common = everything
        for option in classes[c]:
            common &= _union(option, must)
        common |= bit[c]
        if common != must[c]:
            must[c] = common
            for user in users.get(c, ()):
                if user not in waiting:
                    waiting.add(user)
                    work.append(user)
    return must


def _union(option: Choice, must: dict[int, int]) -> int:
    needs = 0
    for k in option.children:
        needs |= must[k]
    return needs


def _absorb(option: Choice, private: set[int], classes: dict[int, list[Choice]]) -> Choice:
    cost, picks = option.cost, option.picks
    children: dict[int, None] = {}
    for k in option.children:
        if k in private:
            (inner,) = classes[k]
            cost += inner.cost
            picks += inner.picks
            children.update(dict.fromkeys(inner.children))
        else:
            children[k] = None
    return Choice(cost, tuple(children), picks)


def _undominated(options: list[Choice]) -> list[Choice]:
    if len(options) == 1:
        return options
    kept: list[Choice] = []
    for option in sorted(options, key=lambda o: (o.cost, o.picks)):
        needs = set(option.children)
        if not any(needs.issuperset(k.children) for k in kept):
            kept.append(option)
    return kept
