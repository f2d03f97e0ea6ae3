"""``rules``, ``targets`` and ``ops``: what is declared, as tables and JSON."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any

from .words import count, natural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.op import OpDecl
    from ..rules.rule import Rule
    from ..rules.target import Legality, Target
    from .console import Console
    from .options import Verbs


def add(verbs: Verbs) -> None:
    """Add the verbs of this file."""
    p = verbs.add(
        "rules",
        rules,
        "list the rewrite rules, or test that they are sound",
        "  tilegg rules\n  tilegg rules cast.identity\n  tilegg rules --verify",
    )
    p.add_argument("name", metavar="NAME", nargs="?", help="one rule, or the start of several names")
    p.add_argument("--verify", action="store_true", help="test every rule on special values and random instances")
    p.add_argument("--samples", metavar="N", type=count, default=200, help="instances a rule (default: 200)")
    p.add_argument("--seed", metavar="S", type=natural, default=0, help="seed of the instances (default: 0)")
    p.add_argument("--json", action="store_true", help="print JSON")

    p = verbs.add(
        "targets",
        targets,
        "list targets, show one, or tell how two differ",
        "  tilegg targets\n  tilegg targets show a5\n  tilegg targets diff a2a3 a5 --json",
    )
    p.add_argument("action", metavar="ACTION", nargs="?", choices=("list", "show", "diff"), default="list",
                   help="list (default), show NAME, or diff A B")  # fmt: skip
    p.add_argument("names", metavar="NAME", nargs="*", help="target names or files")
    p.add_argument("--table", metavar="TABLE", help="only this table: hardware capabilities casts ops costs")
    p.add_argument("--json", action="store_true", help="print JSON")

    p = verbs.add(
        "ops",
        ops,
        "list the operations with their operands, mnemonics and legality per target",
        "  tilegg ops\n  tilegg ops tile.row_max\n  tilegg ops --scalar\n  tilegg ops --json",
    )
    p.add_argument("name", metavar="NAME", nargs="?", help="one operation, or a part of several names")
    p.add_argument("--scalar", action="store_true", help="the classification of scalar and SIMT operations")
    p.add_argument("--json", action="store_true", help="print JSON")


def _print(args: Namespace, value: Any, text: Callable[[], str]) -> None:
    from .console import json_text
    from .files import write

    write(None, json_text(value) if args.json else text())


# -- rules -------------------------------------------------------------------------------------------------


def rules(args: Namespace, console: Console) -> int:
    """List or verify rules."""
    console.json_stdout = args.json
    chosen = _chosen_rules(args.name)
    if args.verify:
        from .ruletests import verify_rules

        return verify_rules(chosen, args, console)
    found = {"schema": 1, "rules": [_rule_row(r) for r in chosen]}
    one = args.name is not None and len(chosen) == 1
    _print(args, found, lambda: _rule_text(chosen[0]) if one else _rule_table(chosen))
    return 0


def _chosen_rules(name: str | None) -> list[Rule]:
    from ..ir.diagnostics import error
    from ..rules import library
    from ..rules.rule import RULES

    _ = library  # importing the topics declares their rules
    if name is None:
        return list(RULES.values())
    if name in RULES:
        return [RULES[name]]
    found = [r for r in RULES.values() if r.name.startswith(name)]
    if not found:
        raise error("TG003", f"there is no rule {name!r:.60}", hint=_close(name, RULES))
    return found


def _close(word: str, known: Sequence[str] | dict[str, Any]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word[:60], list(known), 3)
    return f"did you mean {' or '.join(close)}?" if close else ""


def _rule_row(r: Rule) -> dict[str, Any]:
    return {"name": r.name, "equation": r.equation, "contract": r.contract, "phase": r.phase, "reason": r.reason}


def _rule_text(r: Rule) -> str:
    from ..rules.rule import CONTRACTS

    promise = f"  promised: {r.bound}; {r.bound.special}\n" if r.bound else ""
    return (
        f"{r.name}\n  {r.equation}\n  contract: {r.contract} ({CONTRACTS[r.contract]})\n"
        f"  phase: {r.phase}\n  because {r.reason}\n{promise}"
    )


def _rule_table(chosen: Sequence[Rule]) -> str:
    from .tables import table

    return table(("rule", "contract", "equation"), [(r.name, r.contract, r.equation) for r in chosen])


# -- targets -----------------------------------------------------------------------------------------------


def targets(args: Namespace, console: Console) -> int:
    """List targets, show one, or compare two."""
    from ..ir.diagnostics import error
    from ..rules.target import load_target, target_names
    from ..rules.target_view import TABLES, diff

    console.json_stdout = args.json
    wanted = {"list": 0, "show": 1, "diff": 2}[args.action]
    if len(args.names) != wanted:
        raise error("TG040", f"targets {args.action} takes {wanted} names, not {len(args.names)}",
                    hint="see tilegg targets --help")  # fmt: skip
    if args.table is not None and args.table not in TABLES:
        raise error("TG040", f"unknown table {args.table!r:.40}", hint=f"one of {', '.join(TABLES)}")
    if args.action == "list":
        found = [_target_row(load_target(name)) for name in target_names()]
        _print(args, {"schema": 1, "targets": found}, lambda: _target_table(found))
    elif args.action == "show":
        _show_target(args, load_target(args.names[0]))
    else:
        a, b = map(load_target, args.names)
        rows = [r for r in diff(a, b) if args.table in (None, r["table"])]
        found_diff = {"schema": 1, "a": a.name, "b": b.name, "differences": rows}
        _print(args, found_diff, lambda: _diff_text(a, b, rows))
    return 0


def _target_row(t: Target) -> dict[str, Any]:
    return {
        "name": t.name,
        "title": t.title,
        "aliases": list(t.aliases),
        "casts": len(t.casts),
        "ops": sum(info.assembler for info in t.ops.values()),
        "ub_bytes": t.figure("ub_bytes"),
    }


def _target_table(rows: list[dict[str, Any]]) -> str:
    from .tables import table

    head = ("target", "title", "aliases", "casts", "ops", "local memory")
    cells = [
        (r["name"], r["title"], " ".join(r["aliases"]), r["casts"], r["ops"], f"{r['ub_bytes']:.0f} bytes")
        for r in rows
    ]
    return table(head, cells)


def _show_target(args: Namespace, target: Target) -> None:
    from ..rules.target_view import describe

    tables = {name: rows for name, rows in describe(target).items() if args.table in (None, name)}
    found = {
        "schema": 1,
        "name": target.name,
        "title": target.title,
        "aliases": list(target.aliases),
        "sources": dict(target.sources),
        **tables,
    }
    _print(args, found, lambda: _target_text(target, tables))


def _target_text(target: Target, tables: dict[str, list[dict[str, object]]]) -> str:
    from .tables import table

    parts = [f"{target.name}: {target.title}\n"]
    for name, rows in tables.items():
        head = [c for c in rows[0] if any(r[c] not in ("", None) for r in rows)] if rows else ["none"]
        parts.append(f"\n== {name} ==\n" + table(head, [[r[c] for c in head] for r in rows]))
    if target.sources:
        parts.append("\n== sources ==\n" + table(("source", "what it is"), list(target.sources.items())))
    return "".join(parts)


def _diff_text(a: Target, b: Target, rows: list[dict[str, Any]]) -> str:
    from .tables import table

    if not rows:
        return f"{a.name} and {b.name} do not differ\n"
    cells = [[r[c] for c in ("table", "key", "field", "a", "b")] for r in rows]
    return table(("table", "key", "field", a.name, b.name), cells)


# -- operations --------------------------------------------------------------------------------------------


def ops(args: Namespace, console: Console) -> int:
    """List the declared operations."""
    from ..rules.target import load_target, target_names

    console.json_stdout = args.json
    chosen = _chosen_ops(args.name)
    if args.scalar:
        from .scalars import classification

        _print(args, *classification([d for d in chosen if d.scalar is not None and d.scalar.group]))
        return 0
    known = [load_target(name) for name in target_names()]
    rows = [_op_row(decl, known) for decl in chosen]
    one = args.name is not None and len(rows) == 1
    _print(args, {"schema": 1, "ops": rows}, lambda: _op_text(rows[0]) if one else _op_table(rows, known))
    return 0


def _chosen_ops(name: str | None) -> list[OpDecl]:
    from ..ir import ops as families
    from ..ir.diagnostics import error
    from ..ir.op import OPS

    _ = families  # importing the families declares the operations
    if name is None:
        return list(OPS.values())
    name = name.removeprefix("pl.")
    if name in OPS:
        return [OPS[name]]
    found = [decl for decl in OPS.values() if name in decl.name]
    if not found:
        raise error("TG003", f"there is no operation {name!r:.60}", hint=_close(name, OPS))
    return found


def _op_row(decl: OpDecl, known: Sequence[Target]) -> dict[str, Any]:
    from ..ir.op import UNIFIED

    spelt = next((f"pl.{word}" for word, decls in UNIFIED.items() if decl in decls), None)
    return {
        "name": decl.name,
        "family": decl.family,
        "unified": spelt,
        "operands": [_param(p) for p in decl.operand_params],
        "attributes": [_param(p) for p in decl.attr_params],
        "pto": decl.pto,
        "effect": decl.effect,
        "target_defined": decl.target_defined,
        "doc": decl.doc,
        "targets": {t.name: legality(t, decl) for t in known},
    }


def _param(p: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"name": p.name, "kind": p.kind.value, "required": p.required}
    if not p.required:
        row["default"] = getattr(p.default, "name", p.default)
    return row


def verdicts_of(target: Target, decl: OpDecl) -> dict[str, Legality]:
    """What a target says to an instruction on every dtype that the operation itself takes, in their order."""
    from ..extract.instructions import fixed_words, work_dtype
    from ..ir.dtypes import DTYPES
    from ..ir.takes import takes

    words = dict(fixed_words(decl))
    taken = [name for name, dtype in DTYPES.items() if not decl.name.startswith("tile.") or takes(decl, dtype)]
    return {name: target.legal(_instruction(decl), work_dtype(decl, name), **words) for name in taken}


def _instruction(decl: OpDecl) -> str:
    """Return the instruction of an operation; "" where none is due."""
    from ..extract.price import ELEMENTS

    return decl.pto or ELEMENTS.get(decl.name, "")


def legality(target: Target, decl: OpDecl) -> dict[str, Any] | None:
    """The dtypes an operation may have on a target, and why it may have none; ``None`` where no instruction is due.

    ``dtypes``: of its own instruction, with ``conditions``; ``lowered``: those for which others take its place.
    """
    from ..extract.composed import composed

    others = composed(decl, target)
    if not _instruction(decl) and not others:
        return None
    verdicts = verdicts_of(target, decl) if _instruction(decl) else {}
    takes = [name for name, v in verdicts.items() if v.ok]
    lowered = [name for name, v in others.items() if v.ok and name not in takes]
    conditions = dict.fromkeys(v.reason for v in verdicts.values() if v.ok and v.reason)
    refused = "" if takes or lowered else next((v.reason for v in (verdicts or others).values()), "")
    return {"dtypes": takes, "conditions": list(conditions), "lowered": lowered, "refused": refused}


def _op_table(rows: Sequence[dict[str, Any]], known: Sequence[Target]) -> str:
    from .tables import table

    head = ["operation", "operands", "PTO", *(t.name for t in known)]
    cells = []
    for row in rows:
        legal = [_short(row, t.name) for t in known]
        cells.append([row["name"], _operands(row), row["pto"] or "", *legal])
    return table(head, cells, limit=48)


def _operands(row: dict[str, Any]) -> str:
    words = [p["name"] if p["required"] else f"[{p['name']}]" for p in row["operands"]]
    words += [f"{p['name']}=" for p in row["attributes"]]
    return ", ".join(words)


def _short(row: dict[str, Any], target: str) -> str:
    """Return the dtypes of an operation on a target: its own instruction's, then those for which others stand in."""
    found = row["targets"][target]
    if found is None:
        return "-"
    own = " ".join(found["dtypes"]) + (" (*)" if found["conditions"] else "")
    lowered = f"lowered to other instructions: {' '.join(found['lowered'])}" if found["lowered"] else ""
    return "; ".join(filter(None, (own, lowered))) or ("none" if row["pto"] else "-")


def _op_text(row: dict[str, Any]) -> str:
    name = row["name"] if row["name"].startswith("pld.") else f"pl.{row['name']}"
    lines = [f"{name}({_operands(row)})" + (f", also {row['unified']}" if row["unified"] else "")]
    lines += [f"  {line}" for line in row["doc"].splitlines()]
    lines += [f"  family: {row['family']}; effect: {row['effect']}; PTO: {row['pto'] or 'none'}"]
    for p in (*row["operands"], *row["attributes"]):
        lines.append(f"    {p['name']}: {p['kind']}" + ("" if p["required"] else f" (default {p['default']})"))
    if row["target_defined"]:
        lines.append(f"  left open by the hardware documents: {row['target_defined']}")
    for name, found in row["targets"].items():
        lines.append(f"  {name}: {_short(row, name)}")
        lines += [f"    {c}" for c in found["conditions"]] if found else []
        lines += [f"    {found['refused']}"] if found and found["refused"] else []
    return "\n".join(lines) + "\n"
