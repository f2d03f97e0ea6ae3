"""An e-graph as text, for ``--print-after saturate``."""

from __future__ import annotations

from typing import Any

from ..ir.text import print_type
from ..rewrite.graph import ABSENT, LEAF, LITERAL, Graph, Node


def graph_text(graph: Graph) -> str:
    """Return the classes in order with their nodes; ``*`` marks roots, rules are named behind the node."""
    lines = [f"# {len(graph.classes)} classes, {graph.size} nodes, {graph.stopped}"]
    roots = set(graph.roots)
    for c, nodes in enumerate(graph.classes):
        mark = "*" if c in roots else " "
        lines += [f"{mark}c{c} {'=' if i == 0 else '|'} {_node(n)}" for i, n in enumerate(nodes)]
    return "\n".join(lines)


def _node(node: Node) -> str:
    if node.kind == LEAF:
        return f"leaf {getattr(node.value, 'name', node.key)}"
    if node.kind == LITERAL:
        return f"{getattr(node.value, 'value', node.value)}"
    if node.kind == ABSENT or node.decl is None:
        return "absent"
    words = [f"c{child}" for child in node.children]
    words += [f"{name}={_word(value)}" for name, value in sorted(node.attrs.items())]
    type_text = f": {print_type(node.type)}" if node.type is not None else ""
    rule = f"  [{_rule_name(node.rule)}]" if node.rule else ""
    return f"{node.decl.name}({', '.join(words)}){type_text}{rule}"


def _word(value: Any) -> str:
    return str(getattr(value, "name", value))


def _rule_name(number: int) -> str:
    from ..rules.rule import rule_names

    return rule_names().get(number, str(number))
