"""Roads for people and tools: the stable dictionary behind ``tilegg casts``, a table, a picture, the docs.

The dictionary (also the JSON form)::

    {schema: 1, src, dst, arch, mode, saturation, shape: [rows, cols],
     chains: [{hops: [{src, dst, mode, effective_mode, saturation, cycles, instructions, composed}],
               instructions, cycles,
               class: "exact" | "double_rounding" | "request_ignored",
               error: {rate, max_ulp, samples, exhaustive, distribution, not_finite}, pareto}]}

``saturation`` is "on", "off" or null (left to the destination's default); ``cycles`` are core cycles for the
shape; ``composed`` names the rule that makes several instructions of a hop, else null;
``request_ignored``: rounded once, but in another mode or with another saturation than asked for, or undefined;
``rate`` is the share of differing source values, ``max_ulp`` counts codes of the destination between finite results;
``not_finite`` is null or {rate, value, wanted, got}: the share whose results are not both finite, and an example.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ..ir.convert import parse_mode
from ..ir.dtypes import DType
from ..ir.valueset import ValueSet
from .paths import MAX_HOPS
from .paths_error import in_words
from .paths_rank import RankedRoad, best_roads, pareto_front
from .target import Target

Explored = dict[str, Any]


def explore(
    target: Target,
    src: DType,
    dst: DType,
    mode: str | int = "round",
    saturation: str | None = None,
    shape: Sequence[int] = (64, 64),
    k: int = 8,
    *,
    objective: str = "cycles",
    values: ValueSet | None = None,
) -> Explored:
    """Return the ``k`` shortest legal chains, best first for the objective (the form: see the module).

    Raises TG020 when no chain is legal, TG004 and TG040 for unknown words.
    """
    ranked = best_roads(target, src, dst, mode, saturation, values, shape=shape, objective=objective, k=k)
    return {
        "schema": 1,
        "src": src.name,
        "dst": dst.name,
        "arch": target.name,
        "mode": parse_mode(mode),
        "saturation": saturation,
        "shape": list(shape),
        "chains": [_chain(r) for r in pareto_front(ranked)],
    }


def _chain(ranked: RankedRoad) -> dict[str, Any]:
    road = ranked.road
    return {
        "hops": [
            {
                "src": hop.src.name,
                "dst": hop.dst.name,
                "mode": hop.mode,
                "effective_mode": hop.effective,
                "saturation": hop.saturation,
                "cycles": round(cycles, 3),
                "instructions": hop.instructions,
                "composed": hop.composed.rule if hop.composed else None,
            }
            for hop, cycles in zip(road.hops, ranked.hop_cycles, strict=True)
        ],
        "instructions": road.instructions,
        "cycles": round(ranked.cycles, 3),
        "class": road.kind,
        "error": road.error.to_json(),
        "pareto": ranked.pareto,
    }


def chain_text(src: str, hops: Sequence[dict[str, Any]]) -> str:
    """Return ``INT32 → FP32 (trunc) → BF16``: modes are shown where they are not the last hop's."""
    text = src
    for hop in hops:
        other = f" ({hop['mode']})" if hop["mode"] != hops[-1]["mode"] else ""
        text += f" → {hop['dst']}{other}"
    return text


def composed_text(hops: Sequence[dict[str, Any]]) -> list[str]:
    """Return ``FP32 → BF16 (odd) is made of 5 instructions (cast.composed.odd-bf16)`` for every composed hop."""
    return [
        f"{hop['src']} → {hop['dst']} ({hop['mode']}) is made of {hop['instructions']} instructions ({hop['composed']})"
        for hop in hops if hop["composed"]
    ]  # fmt: skip


def error_text(chain: dict[str, Any]) -> str:
    """Return a chain's accuracy in words: ``exact``, or how many of how many values differ, by how much."""
    measured = chain["error"]
    if chain["class"] == "exact":
        return "exact"
    if measured["exhaustive"] and not measured["rate"]:
        return "not proved"
    return in_words(measured)


def render_text(explored: Explored) -> str:
    """Return a table of the chains, one a line; ``*`` marks the Pareto front."""
    rows, cols = explored["shape"][:2]
    saturation = explored["saturation"] or "default"
    title = f"{explored['src']} to {explored['dst']} on {explored['arch']}"
    lines = [f"{title}, mode {explored['mode']}, saturation {saturation}, {rows}x{cols}"]
    composed = list(dict.fromkeys(line for chain in explored["chains"] for line in composed_text(chain["hops"])))
    table = [("", "instructions" if composed else "casts", "cycles", "chain", "accuracy")]
    for chain in explored["chains"]:
        mark = "*" if chain["pareto"] else ""
        text = chain_text(explored["src"], chain["hops"])
        table.append((mark, str(chain["instructions"]), f"{chain['cycles']:.0f}", text, error_text(chain)))
    widths = [max(len(row[i]) for row in table) for i in range(5)]
    for mark, count, cycles, text, accuracy in table:
        lines.append(
            f"{mark:<{max(widths[0], 1)}} {count:>{widths[1]}} {cycles:>{widths[2]}}  {text:<{widths[3]}}  "
            f"{accuracy}".rstrip()
        )
    lines.append("* on the Pareto front of cycles and error")
    lines += composed
    lines += [_NONE_EXACT] * (not _any_exact(explored))
    return "\n".join(lines) + "\n"


_NONE_EXACT = f"no chain of up to {MAX_HOPS} casts is exact for every value"


def _any_exact(explored: Explored) -> bool:
    return any(chain["class"] == "exact" for chain in explored["chains"])


# -- picture -----------------------------------------------------------------------------------------------

_LEFT, _TOP, _LANE, _BOX = 24, 84, 74, (104, 30)
_COLORS = {"exact": "#1a7f37", "double_rounding": "#bc4c00", "request_ignored": "#bc4c00"}
_STYLE = (
    "text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#1f2328}"
    ".t{font-size:16px;font-weight:600}.s{font-size:11px;fill:#59636e}"
    "rect{fill:#f6f8fa;stroke-width:1.5}line{stroke-width:1.5}"
)


def render_svg(explored: Explored) -> str:
    """Return an SVG picture: one lane a chain, best first, exact ones green, others orange."""
    chains = explored["chains"]
    hops = max((len(c["hops"]) for c in chains), default=0)
    step = _BOX[0] + 78
    width = _LEFT * 2 + hops * step + _BOX[0] + 330
    height = _TOP + len(chains) * _LANE + 34
    rows, cols = explored["shape"][:2]
    title = f"{explored['src']} → {explored['dst']} on {explored['arch']}"
    below = f"mode {explored['mode']}, saturation {explored['saturation'] or 'default'}, tile {rows}×{cols}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        *_arrow_heads(),
        f'<rect width="{width}" height="{height}" style="fill:#ffffff;stroke:none"/>',
        _text(_LEFT, 32, title, "t"),
        _text(_LEFT, 52, below, "s"),
    ]
    for i, chain in enumerate(chains):
        parts += _lane(explored["src"], chain, _TOP + i * _LANE, step, _LEFT + hops * step + _BOX[0] + 24)
    legend = "numbers: cycles; green: exact; orange: may differ; ★: Pareto front"
    legend += "" if _any_exact(explored) else f"; {_NONE_EXACT}"
    parts.append(_text(_LEFT, height - 16, legend, "s"))
    return "\n".join([*parts, "</svg>"]) + "\n"


def _arrow_heads() -> list[str]:
    return [
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{color}"/></marker>'
        for name, color in _COLORS.items()
    ]


def _lane(src: str, chain: dict[str, Any], y: int, step: int, notes_at: int) -> list[str]:
    """The boxes, arrows and notes of one chain."""
    kind, middle = chain["class"], y + _BOX[1] // 2
    color = _COLORS[kind]
    parts = [_box(_LEFT, y, src, color)]
    for i, hop in enumerate(chain["hops"]):
        x = _LEFT + i * step + _BOX[0]
        parts.append(
            f'<line x1="{x + 4}" y1="{middle}" x2="{x + step - _BOX[0] - 4}" y2="{middle}" '
            f'stroke="{color}" marker-end="url(#{kind})"/>'
        )
        parts.append(_text(x + (step - _BOX[0]) // 2, y + 6, hop["effective_mode"], "s", "middle"))
        parts.append(_text(x + (step - _BOX[0]) // 2, y + 30, f"{hop['cycles']:.0f}", "s", "middle"))
        if hop["saturation"]:
            parts.append(_text(x + (step - _BOX[0]) // 2, y + 44, f"sat {hop['saturation']}", "s", "middle"))
        parts.append(_box(x + step - _BOX[0], y, hop["dst"], color))
    star = "★ " if chain["pareto"] else ""
    count = _count(chain)
    parts.append(_text(notes_at, y + 13, f"{star}{chain['cycles']:.0f} cycles, {count}"))
    parts.append(_text(notes_at, y + 30, error_text(chain), "s"))
    return parts


def _count(chain: dict[str, Any]) -> str:
    what = "instruction" if composed_text(chain["hops"]) else "cast"
    return f"{chain['instructions']} {what}{'s' * (chain['instructions'] != 1)}"


def _box(x: int, y: int, label: str, color: str) -> str:
    box = f'<rect x="{x}" y="{y}" width="{_BOX[0]}" height="{_BOX[1]}" rx="6" style="stroke:{color}"/>'
    return box + _text(x + _BOX[0] // 2, y + 20, label, "", "middle")


def _text(x: int, y: int, text: str, style: str = "", anchor: str = "") -> str:
    extra = (f' class="{style}"' if style else "") + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{x}" y="{y}"{extra}>{escape(text)}</text>'
