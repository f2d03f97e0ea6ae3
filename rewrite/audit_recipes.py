"""Whether a recipe's value is as near to the composite's as its rule states."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.tilearray import TileArray
from ..ir.types import TileType
from ..rules.check_bound import bound_failures
from ..rules.check_eval import Valued
from ..rules.rule import RULES, rule_names
from .graph import Graph, Node


def is_recipe(node: Node) -> bool:
    """Tell whether a node is a recipe's result."""
    return node.decl is not None and node.decl.name == "tile.approx" and node.rule > 0


def recipe_failures(graph: Graph, c: int, node: Node, value: Any, known: Mapping[int, Any]) -> list[str]:
    """Return what breaks the bound that a recipe states for its composite, as text.

    ``value``: the recipe's; ``known``: class values, among them the composite's own, of class ``c``.
    """
    rule = RULES[rule_names()[node.rule]]
    written = next((n for n in graph.classes[c] if n.decl is not None and n.decl.name == rule.lhs.op), None)
    if rule.bound is None or written is None:
        return [f"{rule.name} states no bound for what the class holds"]
    operand, want = known[written.children[0]], known[c]
    return bound_failures(
        rule.name, rule.bound, _valued(operand, graph.types[written.children[0]]), _valued(want, graph.types[c]),
        _valued(value, graph.types[c]),
    )  # fmt: skip


def _valued(value: Any, t: Any) -> Valued:
    assert isinstance(value, TileArray) and isinstance(t, TileType)
    return Valued(np.ascontiguousarray(value.region), t)
