"""Which in-place instructions overwrite a value that is still needed, so that a copy of it is due.

An operation with an ``inout`` operand becomes an instruction that writes its result over that operand's storage.
The storage is free to be overwritten when the value is nobody else's: made in the region (not a mere other name of
a tile), read by no other operation of the e-graph that computes something else, and not a result of the region; or
a leaf that dies in the region. Which nodes a solution picks is not known while it is searched, so the test
asks all nodes; what it finds dead is dead in every solution.
"""

from __future__ import annotations

from typing import NamedTuple
from weakref import WeakKeyDictionary

from ..ir.op import OPS, OpDecl
from ..ir.program import Op, Value
from ..rewrite.graph import LEAF, OPERATION, Graph, Node
from ..rewrite.region import Region
from ..rewrite.storage import ALIASES
from ..rules.target import Target
from ..rules.terms import child_params

#: Operations that work element by element, so that the result may take a source's place.
ELEMENTWISE = frozenset(
    name
    for name, decl in OPS.items()
    if decl.family in ("tile-tile arithmetic", "tile-scalar arithmetic", "unary", "bitwise and shifts")
    or (decl.inout and decl.family == "fused arithmetic")
)

_users: WeakKeyDictionary[Graph, tuple[list[set[int]], dict[Node, int]]] = WeakKeyDictionary()


def may_overwrite(target: Target | None, s: Op, name: str) -> bool:
    """Return whether an operation may put its result where an operand of this name is."""
    decl = OPS[s.name]
    if not _in_place(target, decl):
        return False
    # What is overwritten is copied to the result's place first: nothing else of it may be read from there.
    read = {p.name for p, o in zip(decl.operand_params, s.operands) if isinstance(o, Value) and o.name == name}
    return not decl.inout or read == {decl.inout}


def _in_place(target: Target | None, decl: OpDecl) -> bool:
    return decl.name in ELEMENTWISE and (target is None or bool(target.inplace(decl.pto or "")))


def overwritten(decl: OpDecl) -> int:
    """Return which child of an in-place operation's term is overwritten."""
    return child_params(decl).index(overwritten_at(decl))


def overwritten_at(decl: OpDecl) -> int:
    """Return which operand an in-place operation overwrites."""
    return next(i for i, p in enumerate(decl.operand_params) if p.name == decl.inout)


def copies(graph: Graph, node: Node, target: Target | None) -> int:
    """Return how many copies of a tile a node takes beside its instruction.

    One of what it overwrites, where that may still be needed; and one of the result of a loop's body, where it cannot
    be made over the carried tile that it becomes.
    """
    assert node.decl is not None
    c = _users_of(graph)[1][node]
    first = bool(node.decl.inout) and _needs_copy(graph, node)
    if c not in graph.handed:
        return int(first)
    carried = graph.handed[c]
    over = bool(node.decl.inout) and node.children[overwritten(node.decl)] == carried
    alone = over and _users_of(graph)[0][carried] == {c} and node.children.count(carried) == 1
    return _handed_on(target, node.decl, first, _Carried(over, alone, carried in node.children, carried >= 0))


class _Carried(NamedTuple):
    """How a tile that a loop carries is read: overwritten by an operation, by that ``alone``, read by it, by any."""

    over: bool
    alone: bool
    read: bool
    known: bool


def _handed_on(target: Target | None, decl: OpDecl, first: bool, carried: _Carried) -> int:
    """Return the copies for a result of a loop's body; ``first``: what it overwrites is copied before it."""
    if not decl.inout:
        return int(carried.read and not _in_place(target, decl))
    if carried.over:
        return 0 if carried.alone and _in_place(target, decl) else 2
    return int(first) + int(carried.read or (not first and carried.known))


def _needs_copy(graph: Graph, node: Node) -> bool:
    """Return whether a node overwrites a value that may still be needed."""
    assert node.decl is not None
    users, class_of = _users_of(graph)
    c = class_of[node]
    child = node.children[overwritten(node.decl)]
    if child in graph.roots or node.children.count(child) > 1 or child == c:
        return True
    for made in graph.classes[child]:
        if made.kind == LEAF:
            if child not in graph.dying:
                return True
        elif made.kind != OPERATION or made.decl is None or made.decl.name in ALIASES:
            return True
    return users[child] != {c}


def _users_of(graph: Graph) -> tuple[list[set[int]], dict[Node, int]]:
    """Return by class the classes with a node that reads it and that a result may need; the class of every node."""
    known = _users.get(graph)
    if known is None:
        users: list[set[int]] = [set() for _ in graph.classes]
        class_of = {node: c for c, nodes in enumerate(graph.classes) for node in nodes}
        work = list(graph.roots)
        needed = set(work)
        while work:
            c = work.pop()
            for node in graph.classes[c]:
                for child in node.children:
                    users[child].add(c)
                    if child not in needed:
                        needed.add(child)
                        work.append(child)
        known = _users[graph] = (users, class_of)
    return known


def written_copies(region: Region, op: Op, target: Target | None) -> int:
    """Return how many copies an operation as written takes; see :func:`copies`."""
    decl, carried = OPS[op.name], dict(region.handed).get(op.result.name)
    first = bool(decl.inout) and _written_needs_copy(region, op)
    if carried is None:
        return int(first)
    o = op.operands[overwritten_at(decl)] if decl.inout else None
    over, readers = isinstance(o, Value) and o.name == carried, _readers(region, carried)
    read = any(isinstance(x, Value) and x.name == carried for x in op.operands)
    return _handed_on(target, decl, first, _Carried(over, readers == 1, read, readers > 0))


def _readers(region: Region, name: str) -> int:
    """Return how often the operations of a region read a value."""
    return sum(isinstance(x, Value) and x.name == name for op in region.ops for x in op.operands)


def _written_needs_copy(region: Region, op: Op) -> bool:
    """Return whether an operation as written overwrites a value that is read elsewhere."""
    decl = OPS[op.name]
    o = op.operands[overwritten_at(decl)]
    if not isinstance(o, Value) or o.name in region.roots:
        return True
    maker = next((other.name for other in region.ops if other.result.name == o.name), None)
    return _readers(region, o.name) > 1 or (maker in ALIASES if maker is not None else o.name not in region.dying)
