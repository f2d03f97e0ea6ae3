"""One HTML page about one lowering: before and after, every instruction, the derivation, plots, the e-graphs.

The page is self-contained: it loads nothing, says so to the browser, and reads well without its script.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

from ..ir.text import print_program
from ..rules.rule import Rule
from .explain import Explained, ExplainedFunction, Explanation, alternative_text, explain
from .footprint import live_bytes, scratch_bytes
from .kbest import Alternative
from .lowered import Lowered
from .pareto import Point, pareto
from .report_graph import graphs
from .report_page import badge, card, fold, page, panel, section, table
from .report_plots import instruction_dots, plot, program_dots, steps_plot, worth_plotting
from .trajectory import Trajectory, TrajectoryStep
from .trajectory_show import cycles, headline

#: Instructions whose other choices are plotted.
MOST_PLOTS = 12
#: Other choices of one instruction that are looked at.
_ALTERNATIVES = 8

_NAMED = re.compile(r"\s*(\w+)\s*[:=]")
_DEF = re.compile(r"\s*def\s+(\w+)\s*\(")


def to_html(lowered: Lowered, source_text: str, points: list[Point] | None = None) -> str:
    """Return the report; ``source_text`` is the text the program was read from ("" when there is none).

    ``points``: the Pareto front, computed here when not given.
    """
    found = explain(lowered, alternatives=_ALTERNATIVES)
    front = pareto(lowered.source, str(lowered.target.path)) if points is None and lowered.target else points
    title = f"{lowered.source.name or ', '.join(f.name for f in lowered.source.functions)} on {lowered.arch}"
    several = len(found.functions) > 1
    sections = [
        ("program", "Before and after", _sides(lowered, found, source_text)),
        ("instructions", "Instructions", "".join(_instructions(f, found, several) for f in found.functions)),
        ("gone", "Gone", _gone(found)),
        ("derivation", "Derivation", _derivation(found.derivation)),
        ("remarks", "Remarks", _remarks(found)),
        ("pareto", "Cost against error", _pareto(front or [], lowered, found)),
        ("egraphs", "E-graphs", "".join(graphs(lowered))),
        ("rules", "Rules", _rules_used(found)),
    ]
    kept = [(name, text, body) for name, text, body in sections if body]
    top = (
        f"<h1>{escape(title)}</h1>"
        f'<div class="soft">objective {escape(lowered.objective)}, contract {escape(lowered.contract)}</div>'
        f"{_cards(lowered)}"
    )
    body = "\n".join(section(*part) for part in kept)
    return page(title, [(name, text) for name, text, _ in kept], top, body)


def _cards(lowered: Lowered) -> str:
    now, plain = lowered.totals, lowered.plain
    ratio = now.against(plain)
    saved = f"{ratio:+.1%} from {plain.cycles:.0f} as written" if ratio is not None else ""
    written = f"{plain.instructions} as written" if plain.legal else "as written not legal"
    optimum = "proved" if lowered.optimum == "proved" else f"gap {lowered.gap:.2%}"
    cards = [
        card("cycles", f"{now.cycles:.0f}", saved),
        card("instructions", str(now.instructions), written),
        card("optimum", optimum, f"for {lowered.objective}, of these rules"),
        card("inexact casts", str(now.inexact), f"contract {lowered.contract}"),
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
    # An operation that became several is on its line still.
    gone = {n: why for n, why in gone.items() if n not in set(lines.values())}
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
        f'<div class="sides"><div><h3>Before</h3>{panel("".join(left), "code")}</div>'
        f"<div><h3>After</h3>{panel(''.join(right), 'code')}</div></div>"
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
    width = f"{100 * i.cycles / most:.0f}% 18px"
    return (
        f'<tr data-find{data}><td class="n soft">{line if line is not None else ""}</td>'
        f'<td class="n bar" style="background-size:{width}">{i.cycles:.0f}</td>'
        f'<td class="op">{escape(i.text)}</td><td>{_rules(i)}</td><td>{_instead(i.alternatives, objective)}</td></tr>'
    )


def _rules(i: Explained) -> str:
    if i.part_of:
        return f'<span class="soft">on the way to {escape(i.part_of)}</span>'
    if not i.rules:
        return '<span class="soft">as written</span>'
    items = [
        f"<b>{escape(r.name)}</b> {_contract(r.contract)}<br><code>{escape(r.equation)}</code><br>{escape(r.reason)}"
        for r in i.rules
    ]
    items += [f"exact: {escape(i.proof)}"] if i.proof else []
    items += [f"knowing {escape(str(fact))}" for fact in i.facts]
    return fold(i.rule, items)


def _instead(found: Iterable[Alternative], objective: str) -> str:
    items = []
    for a in found:
        kind = "bad" if not a.legal else "" if a.exact else "warn"
        text = f'<span class="{kind}">{escape(alternative_text(a, objective))}</span>'
        items.append(f"<code>{escape(a.text)}</code> {text}")
    return fold(f"{len(items)} other{'s' * (len(items) != 1)}", items) if items else ""


def _gone(found: Explanation) -> str:
    rows = []
    for f in found.functions:
        for d in f.dropped:
            line = d.span.line if d.span else None
            data = f' data-line="{line}"' if line is not None else ""
            rows.append(
                f'<tr data-find{data}><td class="n soft">{line if line is not None else ""}</td>'
                f'<td class="op">{escape(d.text)}</td><td>{escape(d.why)}</td></tr>'
            )
    return table([("n", "line"), ("", "operation"), ("", "why")], rows, "gone-operations") if rows else ""


def _remarks(found: Explanation) -> str:
    parts = []
    for d in found.remarks:
        where = f"line {d.span.line}: " if d.span else ""
        parts.append(
            f'<div class="tools" data-find><div>{badge(d.code, "loose")} {escape(where + d.message)}'
            f'<br><span class="soft">{escape(d.reason)}<br>{escape(d.hint)}</span></div></div>'
        )
    return panel("".join(parts)) if parts else ""


# -- derivation --------------------------------------------------------------------------------------------


def _contract(name: str) -> str:
    return badge(name, "exact" if name == "exact" else "loose")


def _derivation(found: Trajectory) -> str:
    if not found.steps and not found.missing:
        return ""
    start = f'<tr><td class="n soft">0</td><td class="n">{cycles(found.start)}</td><td></td><td></td>'
    rows = [f'{start}<td class="soft">as written</td></tr>']
    rows += [_step(n, s) for n, s in enumerate(found.steps, 1)]
    head = [("n", "step"), ("n", "cycles"), ("", "value"), ("", "rule"), ("", "rewrite")]
    missing = "".join(f'<p class="warn">not derived: {escape(m)}</p>' for m in found.missing)
    curve = steps_plot(found)
    return (
        f'<p class="soft">{escape(headline(found))}. Cycles are those of the whole program by its plain lowering '
        f"after the step.</p>{panel(curve, 'plot') if curve else ''}{'<p></p>' if curve else ''}"
        f"{table(head, rows, 'steps')}{missing}"
    )


def _step(n: int, s: TrajectoryStep) -> str:
    line = s.span.line if s.span else None
    data = f' data-line="{line}"' if line is not None else ""
    why = [escape(s.rule.reason)] if s.rule is not None else []
    why += [f"error: {escape(s.error)}"] if s.error else []
    why += [f"knowing {escape(str(fact))}" for fact in s.facts]
    check = badge("refuted", "refuted") if s.wrong else ""
    back = " (backwards)" * s.backwards
    rule = f"{_contract(s.contract)} {check}{fold(s.name + back, why) if why else escape(s.name)}"
    sign = "≈" if s.error else "="
    where = f"{escape(s.result)}{f', line {line}' if line is not None else ''}"
    return (
        f'<tr data-find{data}><td class="n soft">{n}</td><td class="n">{cycles(s.totals)}</td><td>{where}</td>'
        f'<td>{rule}</td><td class="op"><span class="rewrite" data-sign="">{escape(s.before)}</span>'
        f'<span class="rewrite" data-sign="{sign}">{escape(s.after)}</span></td></tr>'
    )


def _rules_used(found: Explanation) -> str:
    used: dict[str, Rule] = {}
    for f in found.functions:
        for i in f.instructions:
            used.update({r.name: r for r in i.rules})
        for d in f.dropped:
            used.update({r.name: r for r in d.rules})
    used.update({s.rule.name: s.rule for s in found.derivation.steps if s.rule is not None})
    rows = [
        f"<tr data-find><td><b>{escape(r.name)}</b></td><td>{_contract(r.contract)}</td>"
        f'<td class="op">{escape(r.equation)}</td><td>{escape(r.reason)}</td></tr>'
        for r in used.values()
    ]
    return table([("", "rule"), ("", "contract"), ("", "equation"), ("", "reason")], rows, "rules-used") if rows else ""


# -- cost against error ------------------------------------------------------------------------------------


def _pareto(points: list[Point], lowered: Lowered, found: Explanation) -> str:
    if not points:
        return ""
    chosen = lowered.totals.rank("cycles")
    rows = []
    for p in points:
        here = badge("shown here") if p.lowered.totals.rank("cycles") == chosen else ""
        runs = ", ".join(f"{o} / {c}" for o, c in p.runs)
        rows.append(
            f'<tr><td class="n">{p.cycles:.0f}</td><td class="n">{p.instructions}</td><td class="n">{p.loss}</td>'
            f"<td>{escape(runs)}</td><td>{here}</td></tr>"
        )
    head = [("n", "cycles"), ("n", "instructions"), ("n", "error"), ("", "objective / contract"), ("", "")]
    plots = _plots(points, lowered, found)
    note = (
        '<p class="soft">The lowerings, over all objectives and contracts, that no other beats in cycles, '
        "instructions and error: the share of elements that its casts, fusions and recipes give differently.</p>"
    )
    return note + (f'<div class="grid">{"".join(plots)}</div><p></p>' if plots else "") + table(head, rows, "front")


def _plots(points: list[Point], lowered: Lowered, found: Explanation) -> list[str]:
    dots = program_dots(points, lowered.totals.rank("cycles"))
    plots = [plot("The program", dots, "share of elements that differ")] if worth_plotting(dots) else []
    for f in found.functions:
        for i in f.instructions:
            own = instruction_dots(i, lowered.totals.cycles)
            if own and worth_plotting(own) and len(plots) < MOST_PLOTS:
                plots.append(plot(f"{i.result}: its choices", own, "error"))
    return plots
