"""Whether what was chosen for a region lets a tile that is changed in place stand for another value."""

from __future__ import annotations

from ..rewrite.graph import LEAF, Graph
from ..rewrite.region import Region
from ..rewrite.storage import ALIASES, SharedTile
from .dag import Solution


def require_own(
    region: Region, graph: Graph, solution: Solution, changed: frozenset[str], copied: frozenset[str] = frozenset()
) -> None:
    """Raise ``SharedTile`` for a result that would share storage with an operand, one of them changed in place.

    ``changed``: the names of the function's values that something changes. Views share storage as written, and values
    in ``copied`` may: only a copy that follows them reads them.
    """
    if not changed:
        return
    leaves = {c: v.name for v, c in zip(region.leaves, graph.leaf_class)}
    for op, c in zip(region.ops, graph.op_class):
        name = op.result.name
        if name not in region.roots or name in copied or op.name in ALIASES:
            continue
        leaf = leaves.get(_storage(graph, solution, c))
        if leaf is not None and not changed.isdisjoint((name, leaf)):
            raise SharedTile(name)


def _storage(graph: Graph, solution: Solution, c: int) -> int:
    """Return the class whose storage a class has by what was picked for it: its own, or what it is a view of."""
    while c in solution.picks:
        node = graph.classes[c][solution.picks[c]]
        if node.kind == LEAF or node.decl is None or node.decl.name not in ALIASES:
            return c
        c = node.children[0]
    return c
