"""The e-graphs of the HTML report: a list of classes, and the same as data for the drawing that the script makes."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from ..ir.types import ScalarType, TileType, shape_text
from ..rewrite.graph import ABSENT, LITERAL, Node
from .describe import operation_text
from .kbest import class_name, node_text, rule_name
from .lowered import Lowered, RegionResult
from .price import Price, Pricer, Refusal, pricer_for
from .report_page import data
from .weights import chosen_totals

#: Most classes of a region that the list shows.
MOST_CLASSES = 400
#: Most nodes of a region whose every node is drawn; of larger ones, those in use and their alternatives.
MOST_NODES = 4000
#: Longest text that stands for a class before its number does.
_LONG = 24


def graphs(lowered: Lowered) -> Iterator[str]:
    """Yield one folded part per region; the first one is open."""
    first = True
    for f in lowered.functions:
        for n, result in enumerate(f.regions, 1):
            pricer = pricer_for(lowered.target, lowered.contract == "exact", result.scalars)
            yield _graph(f"{f.name}, region {n}", result, pricer, first)
            first = False


def _graph(title: str, result: RegionResult, pricer: Pricer, is_open: bool) -> str:
    graph, picks = result.graph, result.solution.picks
    totals = chosen_totals(graph, result.solution, pricer)
    words = (
        f"{title}: {len(graph.classes)} classes, {graph.size} nodes, {graph.stopped}; {len(picks)} classes in use, "
        f"{totals.cycles:.0f} cycles" + ("; the plain lowering was taken" if result.fallback else "")
    )
    tools = (
        '<div class="tools"><button type="button" data-act="unfold">Unfold all</button><button type="button" '
        'data-act="fold">Fold all</button><span class="hidden-nodes soft" role="status"></span>'
        '<span class="soft">Values flow downwards. A box is a class of equal values, ✓ what was chosen; '
        "click it or press Enter to see its other nodes.</span></div>"
    )
    return (
        f'<details class="egraph panel"{" open" * is_open}><summary class="tools">{escape(words)}</summary>{tools}'
        f'<div class="graph"></div>{data(_drawn(result, pricer))}{_list(result, pricer)}</details>'
    )


def _drawn(result: RegionResult, pricer: Pricer) -> list[dict[str, Any]]:
    """Return the classes for the drawing: name, use, whether it is a literal, nodes.

    By node: its text, children, cycles, rule, refusal, and whether it is the one chosen.
    """
    graph, picks = result.graph, result.solution.picks
    kept = range(len(graph.classes)) if graph.size <= MOST_NODES else sorted(_near(result))
    number = {c: i for i, c in enumerate(kept)}
    found = []
    for c in kept:
        nodes = [
            _node_data(result, c, i, pricer, number)
            for i, node in enumerate(graph.classes[c]) if all(k in number for k in node.children)
        ]  # fmt: skip
        found.append({"n": _name(result, c), "u": int(c in picks), "l": int(_is_literal(result, c)), "nodes": nodes})
    return found


def _is_literal(result: RegionResult, c: int) -> bool:
    return all(n.kind in (LITERAL, ABSENT) for n in result.graph.classes[c])


def _near(result: RegionResult) -> set[int]:
    """Return the classes in use and those that their nodes read."""
    near = set(result.solution.picks)
    for c in result.solution.picks:
        near.update(k for node in result.graph.classes[c] for k in node.children)
    return near


def _node_data(result: RegionResult, c: int, i: int, pricer: Pricer, number: dict[int, int]) -> dict[str, Any]:
    node = result.graph.classes[c][i]
    price = pricer.node(result.graph, node)
    return {
        "t": _short(result, node),
        "k": [number[k] for k in node.children],
        "c": f"{price.cycles:.0f} cycles" if isinstance(price, Price) and price.instructions else "",
        "r": rule_name(node),
        "x": price.reason if isinstance(price, Refusal) else "",
        "p": int(result.solution.picks.get(c) == i),
    }


def _short(result: RegionResult, node: Node) -> str:
    """Return a node as text: an operation over the names of its operands."""
    if node.decl is None or node.decl.name == "tile.approx":
        return node_text(result, node)
    mark = ", not exact" if node.approx else ""
    return f"{operation_text(node)}({', '.join(_operand(result, k) for k in node.children)}){mark}"


def _operand(result: RegionResult, c: int) -> str:
    """Return the program's name for a class, a literal, a short operation, or the class's number."""
    node = result.graph.classes[c][0]
    value = getattr(node.value, "value", None) if node.kind == LITERAL else None
    name = f"{value:.7g}" if isinstance(value, float) else class_name(result, c).replace("tile.", "")
    return name if len(name) <= _LONG else f"#{c}"


def _name(result: RegionResult, c: int) -> str:
    name, t = _operand(result, c), result.graph.types[c]
    kind = ""
    if isinstance(t, TileType):
        kind = f" {t.dtype.name} {shape_text(t.shape)}"
    elif isinstance(t, ScalarType):
        kind = f" {t.dtype.name}"
    return f"{name}{kind}"


# -- the list ----------------------------------------------------------------------------------------------


def _list(result: RegionResult, pricer: Pricer) -> str:
    graph, picks = result.graph, result.solution.picks
    interesting = [c for c, nodes in enumerate(graph.classes) if len(nodes) > 1]
    shown = interesting[:MOST_CLASSES]
    hidden = graph.size - sum(len(graph.classes[c]) for c in shown)
    parts = []
    for c in shown:
        used = "" if c in picks else ' <span class="soft">not in use</span>'
        nodes = "".join(f"<li>{_listed(result, c, i, pricer)}</li>" for i in range(len(graph.classes[c])))
        parts.append(
            f'<div class="class" data-find><b class="node">{escape(_name(result, c))}</b>{used}'
            f'<ul class="nodes">{nodes}</ul></div>'
        )
    more = f" or beyond the first {MOST_CLASSES} classes" if len(interesting) > len(shown) else ""
    note = f'<p class="soft">{hidden} nodes are hidden: they are alone in their class{more}.</p>'
    return f'<details class="classes"><summary>The classes as a list</summary>{"".join(parts)}{note}</details>'


def _listed(result: RegionResult, c: int, i: int, pricer: Pricer) -> str:
    node = result.graph.classes[c][i]
    price = pricer.node(result.graph, node)
    text = escape(_short(result, node))
    chosen = result.solution.picks.get(c) == i
    words = [f'<b class="node good">✓ {text}</b>' if chosen else f'<span class="node">{text}</span>']
    if isinstance(price, Refusal):
        words.append(f'<span class="bad">{escape(price.reason)}</span>')
    elif price.instructions:
        words.append(f'<span class="soft">{price.cycles:.0f} cycles</span>')
    words += [f'<span class="soft">by {escape(rule_name(node))}</span>'] if rule_name(node) else []
    return " ".join(words)
