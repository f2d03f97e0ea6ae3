"""An order of classes and nodes that depends on what they say alone.

The rows of an e-graph's tables stand in the order in which they were made, and numbers stand for shapes in the order in
which those were met: both depend on what the process did before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: What a node says besides its children; those of one operation can be compared.
Content = tuple[Any, ...]
#: The nodes of a class: what each says, and the classes of its children.
Nodes = Sequence[tuple[Content, tuple[int, ...]]]


def class_order(first: Iterable[int], nodes: Mapping[int, Nodes]) -> list[int]:
    """Return the classes below the given ones: those first, then each after the classes that use it."""
    place = {c: i for i, c in enumerate(dict.fromkeys(first))}
    given, colours = dict(place), dict[int, int]()
    queue = list(place)
    for c in queue:
        found = nodes.get(c, ())
        if len(found) > 1:
            if not colours and _tied(found, place):
                colours.update(_colours(given, nodes))
            beyond = len(nodes) + len(given)
            found = sorted(found, key=lambda n: (n[0], [place.get(k, beyond + colours.get(k, 0)) for k in n[1]]))
        for _, children in found:
            for k in children:
                if k not in place:
                    place[k] = len(queue)
                    queue.append(k)
    return queue


def _tied(found: Nodes, place: Mapping[int, int]) -> bool:
    """Tell whether nodes of a class differ only in children that have no place yet."""
    seen = set()
    for content, children in found:
        key = (content, tuple([place.get(k, -1) for k in children]))
        if -1 in key[1]:
            if key in seen:
                return True
            seen.add(key)
    return False


def _colours(given: Mapping[int, int], nodes: Mapping[int, Nodes]) -> dict[int, int]:
    """Return a number for each class but the given ones, by what it and all below it say; equal ones are alike.

    Classes of one number are told apart round by round; how many classes come before them is their number.
    """
    others = {c: found for c, found in nodes.items() if c not in given}
    rank = {content: i for i, content in enumerate(sorted({n[0] for found in others.values() for n in found}))}
    plain = {c: [(rank[content], children) for content, children in found] for c, found in others.items()}
    colour = {**{c: -1 - place for c, place in given.items()}, **dict.fromkeys(others, 0)}
    alike = {0: list(others)}
    while True:
        apart: dict[int, list[int]] = {}
        for start, members in alike.items():
            signs: dict[tuple[tuple[int, ...], ...], list[int]] = {}
            for c in members:
                said = [(number, *[colour.get(k, 0) for k in children]) for number, children in plain[c]]
                signs.setdefault(tuple(sorted(said) if len(said) > 1 else said), []).append(c)
            for sign in sorted(signs):
                apart[start] = signs[sign]
                start += len(signs[sign])
        if len(apart) == len(alike):
            return colour
        colour.update((c, start) for start, members in apart.items() for c in members)
        alike = {start: members for start, members in apart.items() if len(members) > 1}
