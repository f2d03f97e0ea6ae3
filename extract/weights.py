"""What extraction minimises: the weight of every node under an objective, and the totals of what it chose."""

from __future__ import annotations

from ..rewrite.graph import Graph
from .choices import Solution
from .lowered import Totals
from .price import Objective, Price, Pricer

#: The cost of a node and the classes it needs.
Weight = tuple[int, tuple[int, ...]]
Weights = list[list[Weight | None]]


def weights(graph: Graph, pricer: Pricer, objective: Objective) -> Weights:
    """Return (cost, child classes) of every e-node by class, ``None`` for illegal ones."""
    return [
        [
            (price.weight(objective), node.children) if isinstance(price, Price) else None
            for node, price in zip(nodes, prices)
        ]
        for nodes, prices in zip(graph.classes, pricer.nodes(graph))
    ]


def chosen_totals(graph: Graph, solution: Solution, pricer: Pricer) -> Totals:
    """Return the totals of a solution."""
    priced = pricer.nodes(graph)
    prices = [priced[c][i] for c, i in solution.picks.items()]
    legal = [p for p in prices if isinstance(p, Price)]
    return Totals(
        sum(p.instructions for p in legal), sum(p.cycles for p in legal), sum(p.inexact for p in legal)
    )
