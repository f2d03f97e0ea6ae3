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
    """Return a number for each class but the given ones, by what it and all below it say; equal ones are alike."""
    others = {c: found for c, found in nodes.items() if c not in given}
    contents = sorted({content for found in others.values() for content, _ in found})
    rank = {content: i for i, content in enumerate(contents)}
    plain = {c: [(rank[content], children) for content, children in found] for c, found in others.items()}
    colour = {**{c: -1 - place for c, place in given.items()}, **dict.fromkeys(plain, 0)}
    count = 0
    while True:
        signs = {
            c: (colour[c], *sorted([(number, *[colour.get(k, 0) for k in children]) for number, children in found]))
            for c, found in plain.items()
        }
        ranks = {sign: i for i, sign in enumerate(sorted(set(signs.values())))}
        colour.update((c, ranks[sign]) for c, sign in signs.items())
        if len(ranks) == count:
            return colour
        count = len(ranks)
