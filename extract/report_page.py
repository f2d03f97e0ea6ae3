"""The fixed parts of the HTML report: style sheet, script, page frame. Nothing is loaded from anywhere."""

from __future__ import annotations

from html import escape

STYLE = """
:root { --bg:#fcfcfb; --fg:#1c2024; --soft:#5f6b76; --line:#dde1e5; --card:#ffffff; --accent:#0b63ce;
  --good:#157347; --warn:#9a5b00; --bad:#b3261e; --mark:#fff3bf; --bar:#bcd7f5; --gone:#f8e3e1; --new:#e3f3e8; }
@media (prefers-color-scheme: dark) {
  :root { --bg:#14171a; --fg:#e3e6e9; --soft:#9aa5b1; --line:#2d333a; --card:#1b1f24; --accent:#6cb0ff;
    --good:#5fc48d; --warn:#e3b15b; --bad:#ff8a80; --mark:#4a4115; --bar:#24456b; --gone:#46231f; --new:#173325; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1400px; padding: 20px 24px 60px; background: var(--bg); color: var(--fg);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 34px 0 10px; } h3 { font-size: 15px; }
.soft, th { color: var(--soft); } .good { color: var(--good); }
.warn { color: var(--warn); } .bad { color: var(--bad); }
code, pre, .code, td.op { font: 12.5px/1.55 ui-monospace, Menlo, Consolas, monospace; }
.cards { display: flex; flex-wrap: wrap; gap: 12px; margin: 16px 0; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 16px;
  min-width: 130px; }
.card b { display: block; font-size: 20px; font-variant-numeric: tabular-nums; }
.sides { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 14px; }
@media (max-width: 900px) { .sides { grid-template-columns: minmax(0, 1fr); } }
.code { background: var(--card); border: 1px solid var(--line); border-radius: 8px; overflow-x: auto; padding: 8px 0;
  max-height: 620px; overflow-y: auto; }
.code div { white-space: pre; padding: 0 12px; min-height: 1.55em; width: max-content; min-width: 100%; }
.code i { display: inline-block; width: 3.2em; color: var(--soft); font-style: normal; user-select: none; }
.gone { background: var(--gone); } .new { background: var(--new); } .lit { background: var(--mark) !important; }
table { border-collapse: collapse; width: 100%; } .scroll { overflow-x: auto; }
th { text-align: left; font-weight: 500; font-size: 13px; }
td, th { padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.bar { padding: 4px 14px 4px 20px; background: linear-gradient(var(--bar), var(--bar)) no-repeat right 6px; }
td.op { padding-left: 10px; }
summary { cursor: pointer; color: var(--accent); } details > ul { margin: 4px 0 8px; padding-left: 20px; }
ul.nodes { list-style: none; padding-left: 14px; margin: 2px 0 10px; border-left: 2px solid var(--line); }
input { font: inherit; padding: 6px 10px; width: min(420px, 100%); border: 1px solid var(--line); border-radius: 6px;
  background: var(--card); color: var(--fg); }
.hide { display: none; } svg text { fill: var(--fg); font: 12px system-ui, sans-serif; }
svg .axis { stroke: var(--line); }
svg .dot { fill: var(--accent); } svg .soft { fill: var(--soft); }
"""

SCRIPT = """
(function () {
  var box = document.getElementById('find'), count = document.getElementById('found');
  var rows = Array.prototype.slice.call(document.querySelectorAll('[data-find]'));
  box.addEventListener('input', function () {
    var words = box.value.toLowerCase().split(/\\s+/).filter(Boolean), shown = 0;
    rows.forEach(function (row) {
      var text = row.textContent.toLowerCase();
      var fits = words.every(function (w) { return text.indexOf(w) >= 0; });
      row.classList.toggle('hide', !fits);
      if (fits) { shown += 1; }
    });
    count.textContent = words.length ? shown + ' of ' + rows.length + ' rows' : '';
  });
  function light(event, on) {
    var here = event.target.closest && event.target.closest('[data-line]');
    if (!here) { return; }
    document.querySelectorAll('[data-line="' + here.dataset.line + '"]').forEach(function (other) {
      other.classList.toggle('lit', on);
    });
  }
  document.addEventListener('mouseover', function (e) { light(e, true); });
  document.addEventListener('mouseout', function (e) { light(e, false); });
})();
"""


def page(title: str, body: str) -> str:
    """Return a whole HTML document."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n"
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def card(label: str, value: str, note: str = "") -> str:
    """Return one figure."""
    small = f'<span class="soft"> {note}</span>' if note else ""
    return f'<div class="card"><span class="soft">{escape(label)}</span><b>{value}</b>{small}</div>'


def table(head: list[tuple[str, str]], rows: list[str], name: str) -> str:
    """Return a table; ``head`` are (class, text) pairs, ``rows`` finished ``<tr>`` elements."""
    cells = "".join(f'<th class="{kind}">{escape(text)}</th>' for kind, text in head)
    body = f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody>"
    return f'<div class="scroll"><table id="{name}">{body}</table></div>'
