"""Results as a notebook shows them: small tables without scripts, in styles that follow the notebook's theme."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from .explain import Explained, Explanation, op_text
from .lowered import Lowered
from .trajectory import Trajectory, TrajectoryStep
from .trajectory_show import cycles, headline

_CELL = "text-align:left;vertical-align:top;padding:2px 10px"
_NUMBER = "text-align:right;vertical-align:top;padding:2px 10px;font-variant-numeric:tabular-nums"
_CODE = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:0.92em"


def lowered_html(lowered: Lowered) -> str:
    """Return what a lowering gained and its instructions with their costs."""
    now, plain = lowered.totals, lowered.plain
    ratio = now.against(plain)
    saved = f" ({ratio:+.1%})" if ratio is not None else ""
    cost = f"{plain.instructions}, {plain.cycles:.0f}" if plain.legal else str(plain)
    proved = "optimum proved" if lowered.optimum == "proved" else f"within {lowered.gap:.2%} of the optimum"
    title = (
        f"{lowered.arch}: {now.instructions} instructions, {now.cycles:.0f} cycles{saved}; plain lowering "
        f"{cost}; {proved} for {lowered.objective}, contract {lowered.contract}"
    )
    parts = [_title(title)]
    for f in lowered.functions:
        rows = [(i.span.line if i.span else "", f"{i.cycles:.0f}", _code(op_text(i.op))) for i in f.instructions]
        parts += [_title(f.name), _table(("line", "cycles", "instruction"), rows)]
    return _block(parts)


def explanation_html(found: Explanation) -> str:
    """Return every instruction with the rules behind it, the operations that are gone, and the derivation."""
    parts = [_title(f"{found.arch}, contract {found.contract}: {found.totals.cycles:.0f} cycles")]
    for f in found.functions:
        rows = [
            (i.span.line if i.span else "", f"{i.cycles:.0f}", _code(i.text), _why(i)) for i in f.instructions
        ]  # fmt: skip
        parts += [_title(f.name), _table(("line", "cycles", "instruction", "rule"), rows)]
        gone = [(d.span.line if d.span else "", _code(d.text), escape(d.why)) for d in f.dropped]
        if gone:
            parts += [_title("gone"), _table(("line", "operation", "why"), gone)]
    if found.answer:
        parts.append("<pre>" + escape("\n".join(found.answer)) + "</pre>")
    if found.derivation.steps:
        parts.append(_steps(found.derivation))
    return _block(parts)


def trajectory_html(found: Trajectory) -> str:
    """Return the steps of a trajectory."""
    return _block([_steps(found)])


def _steps(found: Trajectory) -> str:
    rows: list[tuple[Any, ...]] = [("0", cycles(found.start), "as written", "", "")]
    rows += [(n, cycles(s.totals), escape(s.name), _rewrite(s), _checked(s)) for n, s in enumerate(found.steps, 1)]
    missing = "".join(f"<div>not reached: {escape(m)}</div>" for m in found.missing)
    head = ("step", "cycles", "rule", "rewrite", "error and check")
    return _title(headline(found)) + _table(head, rows) + missing


def _rewrite(s: TrajectoryStep) -> str:
    return f"{_code(s.before)}<br>{'≈' if s.error else '='} {_code(s.after)}"


def _checked(s: TrajectoryStep) -> str:
    words = [s.error or "exact", *([str(s.check)] if s.check is not None else [])]
    return "<br>".join(map(escape, words))


def _why(i: Explained) -> str:
    if i.part_of:
        return f"on the way to {escape(i.part_of)}"
    return "<br>".join(f'<span title="{escape(r.reason)}">{escape(r.name)}</span>' for r in i.rules) or "as written"


def _code(text: str) -> str:
    return f'<span style="{_CODE}">{escape(text)}</span>'


def _title(text: str) -> str:
    return f'<div style="font-weight:600;margin:6px 0 2px">{escape(text)}</div>'


def _table(head: Iterable[str], rows: Iterable[tuple[Any, ...]]) -> str:
    names = tuple(head)
    cells = "".join(f'<th style="{_style(n)}">{escape(n)}</th>' for n in names)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_style(n)}">{v}</td>' for n, v in zip(names, row)) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _style(name: str) -> str:
    return _NUMBER if name in ("line", "cycles", "step") else _CELL


def _block(parts: Iterable[str]) -> str:
    return f'<div class="tilegg">{"".join(parts)}</div>'
