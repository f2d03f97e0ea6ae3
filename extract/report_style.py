"""The style sheet of the HTML report: light and dark by preference, for narrow screens and paper, too."""

STYLE = """
:root { --bg:#f7f8f9; --fg:#1b2025; --soft:#5b6670; --line:#dfe3e7; --card:#ffffff; --accent:#0a5cc2; --tint:#e8f1fc;
  --good:#12703f; --goodbg:#e2f3e8; --warn:#8a5000; --warnbg:#fdf0da; --bad:#b3261e; --badbg:#fbe6e4; --mark:#fff0b3;
  --bar:#c3dbf6; --shadow:0 1px 2px rgba(20,30,40,.06); }
@media (prefers-color-scheme: dark) {
  :root { --bg:#111417; --fg:#e4e7ea; --soft:#9aa6b2; --line:#2b3138; --card:#191d22; --accent:#74b4ff; --tint:#1a2a3d;
    --good:#66c993; --goodbg:#16301f; --warn:#e6b55f; --warnbg:#352a12; --bad:#ff8f85; --badbg:#3d1f1c; --mark:#4d4312;
    --bar:#26466c; --shadow:none; }
}
* { box-sizing:border-box; }
html { scroll-padding-top:64px; }
body { margin:0; background:var(--bg); color:var(--fg); font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif; }
main { max-width:1440px; margin:0 auto; padding:8px 24px 80px; }
header { position:sticky; top:0; z-index:5; background:var(--bg); border-bottom:1px solid var(--line); }
header > div { max-width:1440px; margin:0 auto; padding:9px 24px; display:flex; flex-wrap:wrap; gap:6px 20px;
  align-items:center; }
header a { color:var(--soft); text-decoration:none; font-size:14px; } header a:hover { color:var(--accent); }
header nav { display:flex; flex-wrap:wrap; gap:2px 16px; }
header .find { margin-left:auto; display:flex; align-items:center; gap:10px; }
h1 { font-size:24px; margin:20px 0 2px; letter-spacing:-.01em; } h2 { font-size:18px; margin:40px 0 12px; }
h3 { font-size:14px; margin:16px 0 8px; color:var(--soft); font-weight:600; }
.soft, th { color:var(--soft); } .good { color:var(--good); } .warn { color:var(--warn); } .bad { color:var(--bad); }
code, pre, .code, td.op, .node { font:12.5px/1.6 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace; }
a:focus-visible, summary:focus-visible, button:focus-visible, input:focus-visible, [tabindex]:focus-visible {
  outline:2px solid var(--accent); outline-offset:2px; border-radius:4px; }
.cards { display:grid; grid-template-columns:repeat(auto-fit,minmax(150px,1fr)); gap:12px; margin:18px 0 0; }
.card, .panel { background:var(--card); border:1px solid var(--line); border-radius:10px; box-shadow:var(--shadow); }
.card { padding:12px 16px; } .card span { font-size:13px; }
.card b { display:block; font-size:23px; line-height:1.25; font-variant-numeric:tabular-nums; }
.badge { display:inline-block; padding:0 8px; border-radius:999px; font-size:12px; line-height:20px; white-space:nowrap;
  background:var(--tint); color:var(--accent); }
.badge.exact { background:var(--goodbg); color:var(--good); }
.badge.loose { background:var(--warnbg); color:var(--warn); }
.badge.refuted { background:var(--badbg); color:var(--bad); }
.sides { display:grid; grid-template-columns:minmax(0,1fr) minmax(0,1fr); gap:14px; }
@media (max-width:900px) { .sides { grid-template-columns:minmax(0,1fr); } main { padding:8px 14px 60px; } }
.code { overflow:auto; padding:8px 0; max-height:740px; }
.code div { white-space:pre; padding:0 14px 0 0; min-height:1.6em; width:max-content; min-width:100%;
  border-left:3px solid transparent; }
.code i { display:inline-block; width:3.4em; padding-right:1em; text-align:right; color:var(--soft); font-style:normal;
  user-select:none; opacity:.75; }
.gone { background:var(--badbg); border-left-color:var(--bad) !important; }
.new { background:var(--goodbg); border-left-color:var(--good) !important; }
.lit { background:var(--mark) !important; }
.scroll { overflow-x:auto; } table { border-collapse:collapse; width:100%; }
th { text-align:left; font-weight:500; font-size:13px; padding:9px 12px; white-space:nowrap; }
td { padding:5px 12px; border-top:1px solid var(--line); vertical-align:top; }
tbody tr:hover { background:var(--tint); }
td.n, th.n { text-align:right; font-variant-numeric:tabular-nums; white-space:nowrap; }
td.bar { min-width:110px; background:linear-gradient(var(--bar),var(--bar)) no-repeat right 7px; padding-right:14px; }
td.op { overflow-wrap:anywhere; min-width:300px; }
summary { cursor:pointer; color:var(--accent); } details > ul { margin:4px 0 8px; padding-left:20px; }
.rewrite { display:block; } .rewrite::before { content:attr(data-sign); display:inline-block; width:1.5em;
  color:var(--soft); }
.grid { display:grid; grid-template-columns:repeat(auto-fill,minmax(440px,1fr)); gap:14px; }
@media (max-width:560px) { .grid { grid-template-columns:minmax(0,1fr); } }
.plot { padding:10px 14px; } .plot h3 { margin:0 0 4px; overflow-wrap:anywhere; }
svg text { fill:var(--fg); font:12px system-ui,sans-serif; } svg text.soft { fill:var(--soft); }
svg .axis { stroke:var(--soft); stroke-width:1; } svg .tick { stroke:var(--line); }
svg .front { fill:none; stroke:var(--accent); stroke-width:1.5; opacity:.55; }
svg .dot { fill:var(--card); stroke:var(--accent); stroke-width:2; } svg .dot.chosen { fill:var(--accent); }
svg text.label { font-size:11px; fill:var(--soft); }
svg .steps { fill:none; stroke:var(--accent); stroke-width:2; }
input[type=search] { font:inherit; font-size:14px; padding:5px 12px; width:min(330px,60vw); color:var(--fg);
  border:1px solid var(--line); border-radius:8px; background:var(--card); }
button { font:inherit; font-size:13px; padding:3px 12px; border:1px solid var(--line); border-radius:8px;
  cursor:pointer; background:var(--card); color:var(--fg); }
button:hover { border-color:var(--accent); color:var(--accent); }
.tools { display:flex; flex-wrap:wrap; gap:8px 12px; align-items:center; padding:10px 14px; }
.graph { overflow:auto; max-height:660px; border-top:1px solid var(--line); }
.graph svg { display:block; margin:0 auto; }
.graph .box { cursor:pointer; } .graph .box:focus { outline:none; }
.graph rect { fill:var(--card); stroke:var(--line); rx:7; } .graph .used rect { stroke:var(--accent); }
.graph .box:focus-visible rect, .graph .box.near rect { stroke:var(--accent); stroke-width:2.5; }
.graph .hit rect { fill:var(--mark); } .graph .miss { opacity:.22; }
.graph text { font:12px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace; }
.graph text.name { font-weight:600; } .graph text.pick { fill:var(--good); } .graph text.off { fill:var(--soft); }
.graph text.not { fill:var(--bad); } .graph text.more { fill:var(--accent); text-anchor:end; }
.graph path { fill:none; stroke:var(--line); stroke-width:1.2; } .graph path.used { stroke:var(--accent); opacity:.65; }
.graph path.near { stroke:var(--accent); stroke-width:2.2; opacity:1; }
.classes { border-top:1px solid var(--line); padding:8px 14px; }
.class { padding:6px 0 2px; } ul.nodes { list-style:none; padding-left:14px; margin:2px 0 8px;
  border-left:2px solid var(--line); }
.hide { display:none !important; }
@media print { header { position:static; } .code, .graph { max-height:none; } .find { display:none !important; } }
"""
