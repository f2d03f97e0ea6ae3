"""Whether the value of an inexact node is what a legal road computes for the cast it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ir.convert import same_bits
from ..ir.tilearray import TileArray
from ..ir.types import TileType
from ..rules.paths import Road, roads
from ..rules.target import Target
from .graph import Graph, Node
from .offers import ROADS_PER_CAST


def is_road_value(graph: Graph, c: int, value: Any, known: Mapping[int, Any], target: Target | None) -> bool:
    """Tell whether ``value`` is some road's result for one of the class's own casts.

    ``known``: class values. The road is one that the search lists as inexact for the cast's operand.
    """
    if target is None or not isinstance(value, TileArray):
        return False
    for node in graph.classes[c]:
        if node.decl is None or node.decl.name != "tile.cast" or node.approx:
            continue
        operand = known.get(node.children[0])
        if isinstance(operand, TileArray) and _some_road(graph, node, operand, value, target):
            return True
    return False


def _some_road(graph: Graph, node: Node, operand: TileArray, value: TileArray, target: Target) -> bool:
    assert isinstance(node.type, TileType)
    array = np.ascontiguousarray(operand.region)
    want = np.ascontiguousarray(value.region)
    return any(
        not road.exact and bool(same_bits(road.apply(array), want, node.type.dtype).all())
        for road in cast_roads(graph, node, target)
    )


def cast_roads(graph: Graph, node: Node, target: Target) -> tuple[Road, ...]:
    """Return the roads of a cast node for what its operand can hold."""
    source, result = graph.types[node.children[0]], node.type
    assert isinstance(source, TileType) and isinstance(result, TileType)
    mode, saturation = node.attrs.get("mode", "round"), node.attrs.get("saturation_mode")
    values = graph.values.get(node.children[0])
    return roads(target, source.dtype, result.dtype, mode, saturation, values, k=ROADS_PER_CAST)
