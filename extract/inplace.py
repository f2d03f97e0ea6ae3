"""Which in-place instructions overwrite a value that is still needed, so that a copy of it is due.

An operation with an ``inout`` operand becomes an instruction that writes its result over that operand's storage.
The storage is free to be overwritten when the value is nobody else's: made in the region (not a mere other name of
a tile), read by no other operation of the e-graph that computes something else, and not a result of the region; or
a leaf that dies in the region. Which nodes a solution picks is not known while it is searched, so the test
asks all nodes; what it finds dead is dead in every solution.
"""

from __future__ import annotations

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


def may_overwrite(target: Target, s: Op, name: str) -> bool:
    """Return whether an operation may put its result where an operand of this name is."""
    decl = OPS[s.name]
    if s.name not in ELEMENTWISE or not target.inplace(decl.pto or ""):
        return False
    # What is overwritten is copied to the result's place first: nothing else of it may be read from there.
    read = {p.name for p, o in zip(decl.operand_params, s.operands) if isinstance(o, Value) and o.name == name}
    return not decl.inout or read == {decl.inout}


def overwritten(decl: OpDecl) -> int:
    """Return which child of an in-place operation's term is overwritten."""
    names = [decl.operand_params[i].name for i in child_params(decl)]
    return names.index(decl.inout)


def needs_copy(graph: Graph, node: Node) -> bool:
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
    """Return by class the classes with a node that reads it, and the class of every node."""
    known = _users.get(graph)
    if known is None:
        users: list[set[int]] = [set() for _ in graph.classes]
        class_of: dict[Node, int] = {}
        for c, nodes in enumerate(graph.classes):
            for node in nodes:
                class_of[node] = c
                for child in node.children:
                    users[child].add(c)
        known = _users[graph] = (users, class_of)
    return known


def written_needs_copy(region: Region, op: Op) -> bool:
    """Return whether an operation as written overwrites a value that is read elsewhere."""
    decl = OPS[op.name]
    o = op.operands[child_params(decl)[overwritten(decl)]]
    if not isinstance(o, Value) or o.name in region.roots:
        return True
    readers = [x for other in region.ops for x in other.operands if isinstance(x, Value) and x.name == o.name]
    maker = next((other.name for other in region.ops if other.result.name == o.name), None)
    return len(readers) > 1 or (maker in ALIASES if maker is not None else o.name not in region.dying)
