"""Make the parts of the documentation that come from the declarations and from the tool itself.

    python docs/generate.py            write them
    python docs/generate.py --check    exit 1 and name the files that are out of date

Written: the console blocks, what Python examples print and the tables of gains and figures in README.md and docs/*.md,
the reference tables operations.md, rules.md, targets.md and diagnostics.md, and the assembly of every example in
examples/pto.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from tilegg import TileggError, emit, load_target, lower, parse
from tilegg.cli import main as run_cli
from tilegg.codegen.signals import check_signals
from tilegg.ir import ops as _ops  # noqa: F401  (registers the operations)
from tilegg.ir.diagnostics import CODES
from tilegg.ir.op import OPS, OpDecl
from tilegg.rewrite import engine as _engine  # noqa: F401  (registers the rules)
from tilegg.rules.check_scalars import is_scalar_rule
from tilegg.rules.rule import CONTRACTS, RULES
from tilegg.rules.target import target_names

ROOT = Path(__file__).parent.parent
CONSOLE = re.compile(r"```console\n\$ (tilegg [^\n]*)\n.*?```", re.S)
PYTHON = re.compile(r"```python run\n(.*?)```\n\n```text\n.*?```", re.S)
SCALARS = re.compile(r"<!-- scalar (\w+) -->.*?<!-- end -->", re.S)
GAINS = re.compile(r"<!-- gains -->.*?(?=\n\n(?!\|))", re.S)
RECIPES = re.compile(r"<!-- recipes -->.*?(?=\n\n(?!\|))", re.S)


MEASURED = re.compile(r"<!-- measured -->.*?(?=\n\n(?!\|))", re.S)


def measured() -> str:
    """Return the table of the figures that the benchmarks print, from their kept outputs."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from figures import figures

    lines = ["<!-- measured -->", "| what | measured | goal |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {value} | {goal} |" for _, what, value, goal in figures())])


def console_block(match: re.Match[str]) -> str:
    """Run the command of a console block and return the block with the real output."""
    command = match.group(1)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        run_cli(shlex.split(command)[1:])
    return f"```console\n$ {command}\n{out.getvalue().rstrip()}\n```"


def python_block(match: re.Match[str]) -> str:
    """Run the code of a Python block of ours and return it with what it prints."""
    code, out = match.group(1), io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example", "exec"), {"__name__": "example"})
    return f"```python run\n{code}```\n\n```text\n{out.getvalue().rstrip()}\n```"


def gains() -> str:
    """Return the table of cycles over the examples on every target."""
    lines = ["<!-- gains -->", "| example | " + " | ".join(f"{t}: plain → tilegg" for t in target_names()) + " |"]
    lines.append("|---|" + "---|" * len(target_names()))
    for path in sorted((ROOT / "examples").glob("*.py")):
        if not check_signals(parse(path.read_text(), path.name)).ok:
            continue
        cells = [_gain(path, target) for target in target_names()]
        lines.append(f"| `{path.stem}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _gain(path: Path, target: str) -> str:
    program = parse(path.read_text(), path.name)
    try:
        result = lower(program, target)
    except TileggError:
        return "not on this target"
    before, after = result.plain.cycles, result.totals.cycles
    return f"{before:,.0f} → {after:,.0f} ({100 * (after / before - 1):+.1f} %)"


def assembly() -> dict[Path, str]:
    """Return the assembly of every example on every target that takes it."""
    out: dict[Path, str] = {}
    for path in sorted((ROOT / "examples").glob("*.py")):
        for name in target_names():
            with contextlib.suppress(TileggError):
                lowered = lower(parse(path.read_text(), f"examples/{path.name}"), name)
                out[ROOT / "examples" / "pto" / f"{path.stem}.{name}.pto"] = emit(lowered, name)
    return out


def recipes() -> str:
    """Return the table of measured errors and costs of the recipes (``benchmarks/bench_recipes.py``)."""
    known = json.loads((ROOT / "benchmarks" / "results" / "recipes.json").read_text())["recipes"]
    names = target_names()
    heads = ["recipe", *names, "error, contract", "error, documented", "largest ulp", "largest result"]
    lines = ["<!-- recipes -->", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, row in known.items():
        costs = [f"{row['cost'][t]['instructions']}, {row['cost'][t]['cycles']:.0f}" for t in names]
        errors = [f"{row[k]['max_abs']:.3g} at {row[k]['at']:.9g}" for k in ("contract", "documented")]
        top = row["documented"]["largest_result"]
        largest = f"{top:.9g}" if top <= 1 else f"1 + {(top - 1) * 2**23:.2g} · 2^-23"
        rest = [f"{row['documented']['max_ulp']:.3g}", largest]
        lines.append(f"| {' | '.join([f'`{name}`', *costs, *errors, *rest])} |")
    return "\n".join(lines)


def operations() -> str:
    """Return docs/operations.md."""
    lines = ["# Operations", "", "Made from the declarations in `ir/ops`. Legality stands in `docs/targets.md`.", ""]
    lines.append("*others*: the dtypes for which a target takes other instructions in an operation's place; `-`: none.")
    family = ""
    for name, decl in sorted(OPS.items(), key=lambda item: (item[1].family, item[0])):
        if decl.family != family:
            family = decl.family
            lines += ["", f"## {family.capitalize()}", ""]
            lines.append("| operation | operands | PTO | meaning | left open by the hardware |")
            lines.append("|---|---|---|---|---|")
        operands = ", ".join(p.name if p.required else f"{p.name}=" for p in decl.params)
        pto = "; ".join(filter(None, (f"`{decl.pto}`" if decl.pto else "", _others(decl))))
        meaning = " ".join(decl.doc.split()).replace("|", "\\|")
        lines.append(f"| `{name}` | {operands} | {pto} | {meaning} | {decl.target_defined} |")
    return "\n".join(lines) + "\n"


def _others(decl: OpDecl) -> str:
    """Return the dtypes for which other instructions take an operation's place, by target."""
    from tilegg.cli.catalog import legality

    found = {name: (legality(load_target(name), decl) or {}).get("lowered", []) for name in target_names()}
    if not any(found.values()):
        return ""
    return "others: " + "; ".join(f"{name} {' '.join(dtypes) or '-'}" for name, dtypes in found.items())


def rules() -> str:
    """Return docs/rules.md."""
    lines = ["# Rules", "", "Made from the declarations in `rules/`. Contracts, strictest first:", ""]
    lines += [f"* `{name}`: {meaning}" for name, meaning in CONTRACTS.items()]
    lines += ["", "| rule | contract | equation | reason |", "|---|---|---|---|"]
    for rule in RULES.values():
        equation = rule.equation.replace("|", "\\|")
        lines.append(f"| `{rule.name}` | {rule.contract} | `{equation}` | {rule.reason} |")
    return "\n".join(lines) + "\n"


def targets() -> str:
    """Return docs/targets.md."""
    lines = ["# Targets", "", "Made from the data in `rules/targets`; `tilegg targets show` has every figure's source."]
    for name in target_names():
        target = load_target(name)
        lines += ["", f"## {name}: {target.title}", "", "| fact | value | note |", "|---|---|---|"]
        for table in (target.hardware, target.capabilities):
            lines += [f"| {key} | {fact.value} {fact.unit} | {fact.note} |" for key, fact in table.items()]
        lines += ["", "| operation | dtypes both the assembler and the instruction set take |", "|---|---|"]
        for op, info in sorted(target.ops.items()):
            if not info.assembler:
                taken = "not in the assembler"
            elif info.casts:
                taken = "see [casts](casts.md)"
            else:
                taken = " ".join(sorted(info.asm & info.isa)) or "none"
            lines.append(f"| `{op}` | {taken} |")
    return "\n".join(lines) + "\n"


def diagnostics() -> str:
    """Return docs/diagnostics.md."""
    lines = ["# Diagnostics", "", "Codes are stable. Made from the table in `ir/diagnostics.py`.", ""]
    lines += ["| code | meaning |", "|---|---|", *(f"| {code} | {meaning} |" for code, meaning in CODES.items())]
    return "\n".join(lines) + "\n"


def scalar_table(match: re.Match[str]) -> str:
    """Return one table of docs/scalar.md: ``groups`` lists every operation, ``which`` answers scalar or pto."""
    from tilegg.cli.scalars import classification_row, intrinsics_text, types_text

    kind = match.group(1)
    rows = [classification_row(d) for d in OPS.values() if d.scalar is not None and d.scalar.group]
    lines = [f"<!-- scalar {kind} -->"]
    if kind == "which":
        lines += ["| write | instead of | for | because |", "|---|---|---|---|"]
        for r in sorted((r for r in rows if r["instead"]), key=lambda r: (r["group"], r["name"])):
            lines.append(f"| `{r['instead']}` | `{r['name']}` | {types_text(r['types'])} | {r['differences']} |")
    elif kind == "rules":
        lines += ["| rule | equation | because |", "|---|---|---|"]
        lines += [f"| `{r.name}` | `{r.equation}` | {r.reason} |" for r in RULES.values() if is_scalar_rule(r)]
    else:
        lines += _layers(rows, intrinsics_text, types_text)
    return "\n".join([*lines, "<!-- end -->"])


#: Sections of the scalar page and the groups of operations in them.
LAYERS = {"Scalar operations": "ABCE", "SIMT execution operations": "HIJ", "Target-specific scalar operations": "BCDEK",
          "Memory and atomic operations": "FG"}  # fmt: skip


def _layers(rows: list[dict[str, Any]], intrinsics: Any, types: Any) -> list[str]:
    lines: list[str] = []
    for title, groups in LAYERS.items():
        plain = title == "Scalar operations"
        target = title.startswith("Target")
        head = "operation | group | domain | needs | types | packed | effect | LLVM | conclusion | differences | open"
        lines += ["", f"### {title}", "", f"| {head} |", "|" + "---|" * 11]
        for r in sorted(rows, key=lambda r: (r["group"], r["name"])):
            if r["group"] not in groups or (plain and not r["name"].startswith("scalar.")):
                continue
            if target and not r["name"].startswith("pto."):
                continue
            cells = (f"`{r['name']}`", r["group"], r["domain"], r["capability"], types(r["types"]),
                     " ".join(r["packed"]), r["effect"], intrinsics(r), r["conclusion"], r["differences"],
                     r["open"])  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return lines


TABLES = {"operations.md": operations, "rules.md": rules, "targets.md": targets, "diagnostics.md": diagnostics}


def generated() -> dict[Path, str]:
    """Return every generated or filled file with the text it should have."""
    out = {ROOT / "docs" / name: make() for name, make in TABLES.items()}
    out.update(assembly())
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        if path in out:
            continue
        text = path.read_text()
        filled = PYTHON.sub(python_block, CONSOLE.sub(console_block, text))
        filled = SCALARS.sub(scalar_table, filled)
        if "<!-- recipes -->" in filled:
            filled = RECIPES.sub(lambda _: recipes(), filled)
        if "<!-- measured -->" in filled:
            filled = MEASURED.sub(lambda _: measured(), filled)
        if "<!-- gains -->" in filled:
            filled = GAINS.sub(lambda _: gains(), filled)
        out[path] = filled
    return out


#: A test that a page names: its file, or (None) the file named before it.
TEST = re.compile(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`")


def missing_tests() -> list[str]:
    """Return the tests that pages name and that do not exist."""
    missing: list[str] = []
    for path in sorted((ROOT / "docs").glob("*.md")):
        file = ""
        for line in path.read_text().splitlines():
            for named, test in TEST.findall(line):
                file = named or file
                source = ROOT / file
                if not file or not source.exists() or f"def {test}(" not in source.read_text():
                    missing.append(f"docs/{path.name}: there is no {file}::{test}")
    return missing


def main() -> int:
    os.chdir(ROOT)
    os.environ["NO_COLOR"] = "1"
    missing = missing_tests()
    if missing:
        print("\n".join(missing))
        return 1
    stale = [p for p, text in generated().items() if not p.exists() or p.read_text() != text]
    if "--check" in sys.argv:
        for path in stale:
            print(f"out of date: {path.relative_to(ROOT)} (run python docs/generate.py)")
        return 1 if stale else 0
    for path, text in generated().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    print(f"{len(stale)} files updated")
    return 0


if __name__ == "__main__":
    sys.exit(main())
