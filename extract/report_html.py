"""One HTML page about one lowering: before and after, every instruction, the e-graphs, the Pareto front.

The page is self-contained: it loads nothing, and reads well without its few lines of script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape

from ..ir.text import print_program
from .explain import Explained, ExplainedFunction, Explanation, alternative_text, explain
from .footprint import live_bytes, scratch_bytes
from .kbest import Alternative, class_name, node_text, rule_name
from .lower import chosen_totals
from .lowered import Lowered, RegionResult
from .pareto import Point, pareto
from .price import Price, Pricer, Refusal, pricer_for
from .report_page import card, page, table

#: Most classes of a region that are listed.
MOST_CLASSES = 60

_NAMED = re.compile(r"\s*(\w+)\s*[:=]")
_DEF = re.compile(r"\s*def\s+(\w+)\s*\(")


def to_html(lowered: Lowered, source_text: str, points: list[Point] | None = None) -> str:
    """Return the report; ``source_text`` is the text the program was read from ("" when there is none).

    ``points``: the Pareto front, computed here when not given.
    """
    found = explain(lowered)
    front = pareto(lowered.source, str(lowered.target.path)) if points is None and lowered.target else points
    title = f"{lowered.source.name or ', '.join(f.name for f in lowered.source.functions)} on {lowered.arch}"
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<div class="soft">objective {escape(lowered.objective)}, contract {escape(lowered.contract)}</div>',
        _cards(lowered),
        '<p><input id="find" type="search" placeholder="Filter instructions, rules, chains" aria-label="Filter"> '
        '<span id="found" class="soft"></span></p>',
        "<h2>Before and after</h2>",
        _sides(lowered, found, source_text),
        "<h2>Instructions</h2>",
        *(_instructions(f, found, len(found.functions) > 1) for f in found.functions),
        *_gone(found),
        *_remarks(found),
        "<h2>Pareto front</h2>" if front else "",
        _pareto(front or [], lowered),
        "<h2>E-graphs</h2>",
        *_graphs(lowered),
    ]
    return page(title, "\n".join(part for part in body if part))


def _cards(lowered: Lowered) -> str:
    now, plain = lowered.totals, lowered.plain
    saved = f"{now.cycles / plain.cycles - 1:+.1%} from {plain.cycles:.0f} as written" if plain.cycles else ""
    optimum = "proved" if lowered.optimum == "proved" else f"gap {lowered.gap:.2%}"
    cards = [
        card("cycles", f"{now.cycles:.0f}", saved),
        card("instructions", str(now.instructions), f"{plain.instructions} as written"),
        card("optimum", optimum),
        card("inexact casts", str(now.inexact)),
        card("live tiles", f"{live_bytes(lowered.program):,} B", "at the peak"),
        card("scratch", f"{scratch_bytes(lowered.program, lowered.target):,} B", "the largest tile"),
    ]
    return f'<div class="cards">{"".join(cards)}</div>'


# -- before and after --------------------------------------------------------------------------------------


def _sides(lowered: Lowered, found: Explanation, source_text: str) -> str:
    before = source_text or print_program(lowered.source)
    lines = _lines_of_results(lowered)
    gone = {
        d.span.line: d.why for f in found.functions for d in f.dropped if d.span is not None and source_text
    }  # fmt: skip
    left = [
        _code_line(n, text, n if source_text else None, "gone" if n in gone else "", gone.get(n, ""))
        for n, text in enumerate(before.splitlines(), 1)
    ]
    changed = {
        (f.name, i.result): i.part_of or ", ".join(r.name for r in i.rules)
        for f in found.functions for i in f.instructions if i.rules
    }  # fmt: skip
    right, function = [], ""
    for n, text in enumerate(print_program(lowered.program).splitlines(), 1):
        start = _DEF.match(text)
        function = start.group(1) if start else function
        named = _NAMED.match(text)
        key = (function, named.group(1) if named else "")
        why = changed.get(key, "")
        right.append(_code_line(n, text, lines.get(key), "new" if why else "", why))
    return (
        f'<div class="sides"><div><h3>Before</h3><div class="code">{"".join(left)}</div></div>'
        f'<div><h3>After</h3><div class="code">{"".join(right)}</div></div></div>'
    )


def _lines_of_results(lowered: Lowered) -> dict[tuple[str, str], int]:
    return {
        (f.name, i.op.results[0].name): i.span.line
        for f in lowered.functions for i in f.instructions if i.span and i.op.results
    }  # fmt: skip


def _code_line(number: int, text: str, line: int | None, style: str, why: str) -> str:
    attributes = f' class="{style}"' if style else ""
    attributes += f' data-line="{line}"' if line is not None else ""
    attributes += f' title="{escape(why)}"' if why else ""
    return f"<div{attributes}><i>{number}</i>{escape(text)}</div>"


# -- instructions ------------------------------------------------------------------------------------------


def _instructions(f: ExplainedFunction, found: Explanation, named: bool) -> str:
    most = max((i.cycles for i in f.instructions), default=0.0) or 1.0
    rows = [_row(i, most, found.objective) for i in f.instructions]
    head = [("n", "line"), ("n", "cycles"), ("", "instruction"), ("", "rule"), ("", "instead of it")]
    title = f"<h3>{escape(f.name)}</h3>" if named else ""
    return title + table(head, rows, f"instructions-{escape(f.name)}")


def _row(i: Explained, most: float, objective: str) -> str:
    line = i.span.line if i.span else None
    data = f' data-line="{line}"' if line is not None else ""
    width = f"{100 * i.cycles / most:.0f}% 16px"
    return (
        f'<tr data-find{data}><td class="n">{line if line is not None else ""}</td>'
        f'<td class="n bar" style="background-size:{width}">{i.cycles:.0f}</td>'
        f'<td class="op">{escape(i.text)}</td><td>{_rules(i)}</td><td>{_instead(i.alternatives, objective)}</td></tr>'
    )


def _rules(i: Explained) -> str:
    if i.part_of:
        return f'<span class="soft">on the way to {escape(i.part_of)}</span>'
    if not i.rules:
        return '<span class="soft">as written</span>'
    items = [
        f"<li><b>{escape(r.name)}</b><br><code>{escape(r.equation)}</code><br>{escape(r.reason)}</li>" for r in i.rules
    ]
    items += [f"<li>exact: {escape(i.proof)}</li>"] if i.proof else []
    items += [f"<li>knowing {escape(str(fact))}</li>" for fact in i.facts]
    return f"<details><summary>{escape(i.rule)}</summary><ul>{''.join(items)}</ul></details>"


def _instead(found: Iterable[Alternative], objective: str) -> str:
    items = []
    for a in found:
        kind = "bad" if not a.legal else "" if a.exact else "warn"
        text = f'<span class="{kind}">{escape(alternative_text(a, objective))}</span>'
        items.append(f"<li><code>{escape(a.text)}</code> {text}</li>")
    if not items:
        return ""
    return f"<details><summary>{len(items)} other{'s' * (len(items) != 1)}</summary><ul>{''.join(items)}</ul></details>"


def _gone(found: Explanation) -> Iterator[str]:
    rows = []
    for f in found.functions:
        for d in f.dropped:
            line = d.span.line if d.span else None
            data = f' data-line="{line}"' if line is not None else ""
            rows.append(
                f'<tr data-find{data}><td class="n">{line if line is not None else ""}</td>'
                f'<td class="op">{escape(d.text)}</td><td>{escape(d.why)}</td></tr>'
            )
    if rows:
        yield "<h2>Gone</h2>"
        yield table([("n", "line"), ("", "operation"), ("", "why")], rows, "gone")


def _remarks(found: Explanation) -> Iterator[str]:
    if found.remarks:
        yield "<h2>Remarks</h2>"
        for d in found.remarks:
            where = f"line {d.span.line}: " if d.span else ""
            yield (
                f'<p data-find><span class="warn">{escape(d.code)}</span> {escape(where + d.message)}'
                f'<br><span class="soft">{escape(d.reason)}<br>{escape(d.hint)}</span></p>'
            )


# -- Pareto front ------------------------------------------------------------------------------------------


def _pareto(points: list[Point], lowered: Lowered) -> str:
    if not points:
        return ""
    chosen = lowered.totals.rank("cycles")
    rows = []
    for p in points:
        here = "<b>shown here</b>" if p.lowered.totals.rank("cycles") == chosen else ""
        error = f"{p.error:.3%}" if p.error else "exact"
        runs = ", ".join(f"{o} / {c}" for o, c in p.runs)
        rows.append(
            f'<tr><td class="n">{p.cycles:.0f}</td><td class="n">{p.instructions}</td><td class="n">{error}</td>'
            f"<td>{escape(runs)}</td><td>{here}</td></tr>"
        )
    head = [("n", "cycles"), ("n", "instructions"), ("n", "error"), ("", "objective / contract"), ("", "")]
    return (_plot(points) if len(points) > 1 else "") + table(head, rows, "pareto")


def _plot(points: list[Point]) -> str:
    """Draw cycles to the right, error upwards, with the instruction count beside each dot."""
    left, top, width, height = 70, 14, 520, 180
    cycles, errors = [p.cycles for p in points], [p.error for p in points]
    low, span = min(cycles), (max(cycles) - min(cycles)) or 1.0
    most = max(errors) or 1.0
    parts = [
        f'<line class="axis" x1="{left}" y1="{top}" x2="{left}" y2="{top + height}"/>',
        f'<line class="axis" x1="{left}" y1="{top + height}" x2="{left + width + 60}" y2="{top + height}"/>',
        f'<text class="soft" x="{left - 8}" y="{top + 8}" text-anchor="end">{most:.2%}</text>',
        f'<text class="soft" x="{left - 8}" y="{top + height}" text-anchor="end">exact</text>',
        f'<text class="soft" x="{left + width + 60}" y="{top + height + 32}" text-anchor="end">cycles</text>',
    ]
    for p in points:
        x = left + 20 + (p.cycles - low) / span * (width - 20)
        y = top + height - p.error / most * (height - 12)
        parts.append(f'<circle class="dot" cx="{x:.0f}" cy="{y:.0f}" r="5"/>')
        parts.append(f'<text x="{x + 9:.0f}" y="{y - 6:.0f}">{p.instructions} instr.</text>')
        below = f'x="{x:.0f}" y="{top + height + 16}" text-anchor="middle"'
        parts.append(f'<text class="soft" {below}>{p.cycles:.0f}</text>')
    return (
        f'<svg role="img" aria-label="cycles against error" viewBox="0 0 {left + width + 80} {top + height + 40}" '
        f'width="{left + width + 80}" style="max-width:100%">{"".join(parts)}</svg>'
    )


# -- e-graphs ----------------------------------------------------------------------------------------------


def _graphs(lowered: Lowered) -> Iterator[str]:
    pricer = pricer_for(lowered.target, lowered.contract == "exact")
    for f in lowered.functions:
        for n, result in enumerate(f.regions, 1):
            yield _graph(f"{f.name}, region {n}", result, pricer)


def _graph(title: str, result: RegionResult, pricer: Pricer) -> str:
    graph, picks = result.graph, result.solution.picks
    interesting = [c for c, nodes in enumerate(graph.classes) if len(nodes) > 1]
    shown = interesting[:MOST_CLASSES]
    hidden = graph.size - sum(len(graph.classes[c]) for c in shown)
    totals = chosen_totals(graph, result.solution, pricer)
    words = (
        f"{escape(title)}: {len(graph.classes)} classes, {graph.size} nodes, {escape(graph.stopped)}; {len(picks)} "
        f"classes in use, {totals.cycles:.0f} cycles" + ("; the plain lowering was taken" if result.fallback else "")
    )
    parts = [f"<details><summary>{words}</summary>"]
    for c in shown:
        used = "" if c in picks else ' <span class="soft">(not in use)</span>'
        name = escape(f"{class_name(result, c)}: {graph.types[c]}")
        parts.append(f"<div data-find><code>{name}</code>{used}")
        parts.append('<ul class="nodes">')
        parts += [f"<li>{_node(result, c, i, pricer)}</li>" for i in range(len(graph.classes[c]))]
        parts.append("</ul></div>")
    more = f" or beyond the first {MOST_CLASSES} classes" if len(interesting) > len(shown) else ""
    parts.append(f'<p class="soft">{hidden} nodes are hidden: they are alone in their class{more}.</p>')
    return "".join(parts) + "</details>"


def _node(result: RegionResult, c: int, i: int, pricer: Pricer) -> str:
    node = result.graph.classes[c][i]
    price: Price | Refusal = pricer.node(result.graph, node)
    words = [escape(node_text(result, node))]
    if node.decl is not None and node.decl.name == "tile.cast":
        detail = [str(node.attrs.get("mode", "round")), *(["may round twice"] if node.approx else [])]
        words.append(f'<span class="soft">{escape(", ".join(detail))}</span>')
    if isinstance(price, Refusal):
        words.append(f'<span class="bad">{escape(price.reason)}</span>')
    elif price.instructions:
        words.append(f'<span class="soft">{price.cycles:.0f} cycles</span>')
    words += [f'<span class="soft">{escape(rule_name(node))}</span>'] if rule_name(node) else []
    text = " ".join(words)
    return f'<b class="good">✓ {text}</b>' if result.solution.picks.get(c) == i else text
