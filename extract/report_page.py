"""The frame of the HTML report and its small parts. Nothing is loaded from anywhere, which the page itself forbids."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from .report_script import SCRIPT
from .report_style import STYLE

#: What the page may do: run its own script and styles, and load nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def page(title: str, sections: list[tuple[str, str]], top: str, body: str) -> str:
    """Return a whole HTML document; ``sections`` are the (id, name) pairs of the menu, ``top`` stands before them."""
    menu = "".join(f'<a href="#{name}">{escape(text)}</a>' for name, text in sections)
    find = (
        '<span class="find"><span id="found" class="soft" role="status"></span><input id="find" type="search" '
        'placeholder="Filter instructions, classes, rules  ( / )" aria-label="Filter" autocomplete="off"></span>'
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f'<header><div><b>tilegg</b><nav aria-label="Sections">{menu}</nav>{find}</div></header>\n'
        f"<main>\n{top}\n{body}\n</main>\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def section(name: str, title: str, body: str) -> str:
    """Return a part of the page with a heading."""
    return f'<section id="{name}"><h2>{escape(title)}</h2>\n{body}</section>'


def panel(body: str, style: str = "") -> str:
    """Return a framed box."""
    return f'<div class="panel{" " + style if style else ""}">{body}</div>'


def card(label: str, value: str, note: str = "") -> str:
    """Return one figure."""
    small = f'<span class="soft">{escape(note)}</span>' if note else ""
    return f'<div class="card"><span class="soft">{escape(label)}</span><b>{escape(value)}</b>{small}</div>'


def badge(text: str, kind: str = "") -> str:
    """Return a short word in a coloured field."""
    return f'<span class="badge{" " + kind if kind else ""}">{escape(text)}</span>'


def table(head: list[tuple[str, str]], rows: list[str], name: str) -> str:
    """Return a table; ``head`` are (class, text) pairs, ``rows`` finished ``<tr>`` elements."""
    cells = "".join(f'<th scope="col" class="{kind}">{escape(text)}</th>' for kind, text in head)
    body = f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return panel(f'<table id="{name}">{body}</table>', "scroll")


def fold(summary: str, items: list[str]) -> str:
    """Return a list that is folded away; ``items`` are finished HTML."""
    listed = "".join(f"<li>{item}</li>" for item in items)
    return f"<details><summary>{escape(summary)}</summary><ul>{listed}</ul></details>"


def data(value: Any) -> str:
    """Return JSON inside a page: nothing in it can end the element it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f'<script type="application/json">{text.replace("<", chr(92) + "u003c")}</script>'
