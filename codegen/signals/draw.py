"""The event graph as a picture: a lane per rank, an arrow from each notify to the wait it lets pass."""

from __future__ import annotations

from html import escape
from itertools import pairwise

import networkx as nx

from ...ir.diagnostics import TileggError
from ...ir.program import Program
from ...ir.ranks_events import Event
from .cells import Graph, dynamic, uses_of
from .report import Setting, SignalFinding, SignalReport
from .unroll import Stuck, unroll

#: Events drawn at most; of longer runs the first ones, or those before a finding, are shown.
MAX_DRAWN = 400
_LANE, _ROW, _BOX, _HIGH, _TOP, _LEFT = 210, 34, 178, 24, 46, 16
_COLORS = {
    "notify": "#2f6fde", "wait": "#8a5cd1", "defer": "#8a5cd1", "collective": "#a0522d", "fence": "#607080",
    "invalidate": "#607080",
}  # fmt: skip
_DATA, _FAULT = "#2e8b57", "#d23b3b"
_STYLE = (
    "text{font:11px ui-monospace,monospace;fill:#fff}.lane{fill:#667;font-weight:bold}"
    ".edge{stroke:#2f6fde;fill:none;stroke-width:1.4}.flow{stroke:#9aa4b2;stroke-width:1}"
    ".missing{stroke:#d23b3b;fill:none;stroke-width:2;stroke-dasharray:6 4}"
)


def event_graph(graph: Graph) -> nx.DiGraph:
    """Return the events as a networkx graph: nodes are event numbers, edges ``order`` (program) or ``credit``."""
    out = nx.DiGraph()
    for n, e in enumerate(graph.u.events):
        out.add_node(n, rank=e.rank, kind=e.kind, label=_label(e))
    for numbers in graph.u.by_rank:
        out.add_edges_from(pairwise(numbers), why="order")
    for wait, notifies in graph.releases.items():
        out.add_edges_from(((n, wait) for n in notifies), why="credit")
    return out


def drawn_graph(program: Program, setting: Setting) -> Graph:
    """Return the graph of the run that is drawn for a setting; raises what unrolling raises."""
    u = unroll(program, setting)
    return dynamic(u, uses_of(u))


def draw_svg(program: Program, report: SignalReport) -> str:
    """Return an SVG picture of the first finding's run, or of the smallest run checked.

    Boxes to blame are red; where an order is missing, a dashed line joins the two accesses.
    """
    finding = report.findings[0] if report.findings else None
    settings = [c.setting for c in report.checked]
    setting = finding.setting if finding is not None else min(settings, key=lambda s: s.ranks, default=None)
    if setting is None:
        return _page(240, 40, ['<text x="10" y="24" class="lane">no communication</text>'])
    try:
        graph = drawn_graph(program, setting)
    except TileggError as problem:
        message = escape(problem.diagnostics[0].message[:100])
        return _page(760, 40, [f'<text x="10" y="24" class="lane">{message}</text>'])
    return _picture(graph, finding)


def _picture(graph: Graph, finding: SignalFinding | None) -> str:
    blamed = _blamed(graph, finding)
    shown = _shown(graph, blamed)
    rows = _rows(graph, shown)
    at = {n: (_LEFT + graph.u.events[n].rank * _LANE, _TOP + rows[n] * _ROW) for n in shown}
    parts = _lanes(graph.u.setting.ranks)
    edges = event_graph(graph).subgraph(shown).edges(data="why")
    parts += [_edge(at[a], at[b], str(why)) for a, b, why in edges]
    parts += [_box(*at[n], _label(graph.u.events[n]), _color(graph.u.events[n], n in blamed)) for n in shown]
    parts += _missing(at, blamed, finding)
    depth = max(rows.values(), default=-1) + 1
    for s in graph.u.stuck:
        x, y = _LEFT + s.rank * _LANE, _TOP + depth * _ROW
        parts.append(_box(x, y, _stuck_label(s), _FAULT))
    stuck = [(_LEFT + s.rank * _LANE, _TOP + depth * _ROW) for s in graph.u.stuck]
    parts += [_dashed(a, b) for a, b in pairwise(stuck)]
    height = _TOP + (depth + 2) * _ROW
    return _page(2 * _LEFT + graph.u.setting.ranks * _LANE, height, parts)


def _blamed(graph: Graph, finding: SignalFinding | None) -> list[int]:
    """Return the events of a finding: those its witness names, else the first of each of its statements."""
    if finding is None:
        return []
    u = graph.u
    expect = finding.witness.expect if finding.witness is not None else None
    steps = [s for s in (expect.first, expect.second) if s is not None] if expect is not None else []
    found = [u.by_rank[r][k] for r, k in steps if k < len(u.by_rank[r])]
    if found:
        return found
    cells = set(finding.cells)
    return [
        n for n, e in enumerate(u.events)
        if e.statement is finding.statements[0] and (e.cell is None or str(e.cell) in cells)
    ][:4] if finding.statements else []  # fmt: skip


def _shown(graph: Graph, blamed: list[int]) -> list[int]:
    count = len(graph.u.events)
    if count <= MAX_DRAWN:
        return list(range(count))
    last = max(blamed, default=MAX_DRAWN - 1)
    return list(range(max(0, last + 1 - MAX_DRAWN), last + 1))


def _rows(graph: Graph, shown: list[int]) -> dict[int, int]:
    part = event_graph(graph).subgraph(shown)
    return {n: row for row, numbers in enumerate(nx.topological_generations(part)) for n in numbers}


def _label(e: Event) -> str:
    line = f" :{e.span.line}" if e.span is not None else ""
    if e.cell is not None:
        sign = {"ge": ">=", "eq": "==", "set": ":=", "atomic_add": "+="}.get(e.word, e.word)
        return f"{e.kind} {e.cell.window}[{e.cell.number}]@{e.cell.owner} {sign} {e.value}{line}"
    places = [*e.reads, *e.writes]
    where = f" {places[0].window}@{places[-1].owner}" if places else ""
    return f"{e.kind}{where}{line}"


def _stuck_label(s: Stuck) -> str:
    if s.cell is None:
        return f"stuck: {s.statement.name.rpartition('.')[2]}"
    sign = "==" if s.word == "eq" else ">="
    return f"stuck: {s.cell.window}[{s.cell.number}] {sign} {s.value}"


def _color(e: Event, blamed: bool) -> str:
    return _FAULT if blamed else _COLORS.get(e.kind, _DATA)


def _lanes(ranks: int) -> list[str]:
    return [f'<text x="{_LEFT + r * _LANE + 4}" y="28" class="lane">rank {r}</text>' for r in range(ranks)]


def _edge(a: tuple[int, int], b: tuple[int, int], why: str) -> str:
    (x1, y1), (x2, y2) = a, b
    if why == "order":
        return f'<line class="flow" x1="{x1 + 20}" y1="{y1 + _HIGH}" x2="{x2 + 20}" y2="{y2}"/>'
    start, end = (x1 + _BOX, x2) if x2 > x1 else (x1, x2 + _BOX) if x2 < x1 else (x1 + _BOX, x2 + _BOX)
    bend = 16 if x2 >= x1 else -16
    y1, y2 = y1 + _HIGH // 2, y2 + _HIGH // 2
    path = f"M{start},{y1} C{start + bend},{y1} {end - bend},{y2} {end},{y2}"
    return f'<path class="edge" marker-end="url(#tip)" d="{path}"/>'


def _missing(at: dict[int, tuple[int, int]], blamed: list[int], finding: SignalFinding | None) -> list[str]:
    ordered = finding is not None and finding.witness is not None and finding.witness.expect.second is not None
    if not ordered or len(blamed) != 2 or not all(n in at for n in blamed):
        return []
    return [_dashed(at[blamed[0]], at[blamed[1]])]


def _dashed(a: tuple[int, int], b: tuple[int, int]) -> str:
    (x1, y1), (x2, y2) = sorted((a, b))
    return f'<line class="missing" x1="{x1 + _BOX}" y1="{y1 + 12}" x2="{x2}" y2="{y2 + 12}"/>'


def _box(x: int, y: int, label: str, color: str) -> str:
    text = escape(label if len(label) <= 27 else label[:26] + "…")
    return (
        f'<g><title>{escape(label)}</title>'
        f'<rect x="{x}" y="{y}" width="{_BOX}" height="{_HIGH}" rx="4" fill="{color}"/>'
        f'<text x="{x + 5}" y="{y + 16}">{text}</text></g>'
    )


def _page(width: int, height: int, parts: list[str]) -> str:
    tip = (
        '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#2f6fde"/></marker>'
    )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<style>{_STYLE}</style><defs>{tip}</defs>\n<rect width="100%" height="100%" fill="#fff"/>\n{body}\n</svg>\n'
    )


def draw_html(program: Program, report: SignalReport, title: str = "signals", source: str = "") -> str:
    """Return a page with the picture and the findings, or the certificate; ``source`` gives the caret lines."""
    blocks = [f"<pre>{escape(d.render(source or None))}</pre>" for d in report.diagnostics()]
    if report.ok:
        rows = "".join(
            f"<tr><td>{escape(c.setting.function)}</td><td>{c.setting.ranks}</td><td>{c.events}</td><td>{c.waits}</td>"
            f"<td>{c.accesses}</td><td>{escape(c.method)}</td></tr>"
            for c in report.checked
        )
        head = "<tr><th>function</th><th>ranks</th><th>events</th><th>waits</th><th>accesses</th><th>method</th></tr>"
        blocks = ["<p>Nothing found.</p>", f"<table>{head}{rows}</table>"]
        blocks += [f"<p>{escape(limit)}</p>" for limit in report.limits]
    style = "body{font:14px system-ui}pre{background:#f5f6f8;padding:1em;overflow:auto}td,th{padding:2px 12px}"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{style}</style></head><body><h1>{escape(title)}</h1>{''.join(blocks)}"
        f"{draw_svg(program, report)}</body></html>\n"
    )
