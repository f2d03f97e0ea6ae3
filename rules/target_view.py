"""Targets as plain rows: what ``tilegg targets show`` and ``diff`` print."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from ..ir.dtypes import DTYPES
from .cost import PriceRow
from .target import Target
from .target_data import ANY
from .target_types import CastEdge, Fact, OpInfo, ScratchRule, When

Cells = dict[str, object]
#: The tables of :func:`describe` and the columns that identify a row in each.
TABLES: dict[str, tuple[str, ...]] = {
    "hardware": ("name",),
    "capabilities": ("name",),
    "casts": ("src", "dst"),
    "ops": ("op",),
    "costs": ("op", "on", "when"),
}


def describe(target: Target) -> dict[str, list[Cells]]:
    """The target's tables as rows of plain values, in the order of the files: see :data:`TABLES`."""
    return {
        "hardware": _facts(target.hardware),
        "capabilities": _facts(target.capabilities),
        "casts": [_cast(edge) for edge in target.casts.values()],
        "ops": [_op(target, info) for info in target.ops.values()],
        "costs": [_cost(op, row) for op, rows in target.prices.rows.items() for row in rows],
    }


def diff(a: Target, b: Target) -> list[Cells]:
    """Where two targets differ: rows ``{table, key, field, a, b}``; a row that one lacks is ``absent``.

    Sources and notes are not compared.
    """
    left, right = describe(a), describe(b)
    found: list[Cells] = []
    for table, identity in TABLES.items():
        rows_a, rows_b = _keyed(left[table], identity), _keyed(right[table], identity)
        for key in dict.fromkeys([*rows_a, *rows_b]):
            found += _differences(table, key, rows_a.get(key), rows_b.get(key))
    return found


def _keyed(rows: Iterable[Cells], identity: tuple[str, ...]) -> dict[str, Cells]:
    return {" ".join(str(row[name]) for name in identity if row[name]): row for row in rows}


def _differences(table: str, key: str, a: Cells | None, b: Cells | None) -> list[Cells]:
    if a is None or b is None:
        there, absent = "present", "absent"
        return [
            {
                "table": table,
                "key": key,
                "field": "",
                "a": there if a else absent,
                "b": there if b else absent,
            }
        ]
    skipped = {"source", "note", *TABLES[table]}
    names = [name for name in a if name not in skipped and a[name] != b.get(name)]
    return [{"table": table, "key": key, "field": name, "a": a[name], "b": b.get(name)} for name in names]


def _facts(facts: Mapping[str, Fact]) -> list[Cells]:
    return [
        {"name": name, "value": fact.value, "unit": fact.unit, "source": fact.source, "note": fact.note}
        for name, fact in facts.items()
    ]


def _cast(edge: CastEdge) -> Cells:
    return {
        "src": edge.src,
        "dst": edge.dst,
        "modes": " ".join(edge.modes),
        "otherwise": "exact" if edge.exact else edge.fixed or "nothing rounds",
        "saturation": edge.saturation,
        "control": edge.saturation_control,
        "page": edge.page,
        "assembler": edge.assembler,
        "negatives": "undefined" if edge.negatives_undefined else "",
        "scratch": _scratch(edge.scratch),
        "source": edge.source,
        "note": ". ".join(text for text in (edge.refusal, edge.note) if text),
    }


def _op(target: Target, info: OpInfo) -> Cells:
    takes = [name for name in DTYPES if target.legal(info.name, name)]
    conditions = [f"{_when(r.when)}: {r.reason}" if r.when else r.reason for r in info.refusals]
    return {
        "op": info.name,
        "kind": info.kind,
        "dtypes": " ".join(takes),
        "assembler": info.assembler,
        "native": info.native,
        "scratch": _scratch(info.scratch),
        "inplace": info.inplace or "yes",
        "refused": "; ".join(conditions),
        "source": info.source,
        "note": info.note,
    }


def _cost(op: str, row: PriceRow) -> Cells:
    pair = "->".join(_words(side) for side in row.pair) if row.pair else ""
    on = pair or (_words(row.dtypes) if row.dtypes is not None else "")
    return {
        "op": op,
        "on": on,
        "when": _when(row.when),
        "form": type(row.form).__name__.lower(),
        "figures": _figures(row.form),
        "estimate": row.estimate,
        "source": row.source,
        "note": ". ".join(text for text in (row.why, row.differs) if text),
    }


def _figures(form: Any) -> str:
    shown = []
    for part in fields(form):
        value = getattr(form, part.name)
        if part.default is MISSING or value != part.default:
            shown.append(f"{part.name}={_plain(value)}")
    return " ".join(shown)


def _plain(value: Any) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_plain(item) for item in value) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _words(names: Iterable[str]) -> str:
    chosen = frozenset(names)
    return "any" if chosen.issuperset(ANY) else " ".join(name for name in DTYPES if name in chosen)


def _when(when: When) -> str:
    return ", ".join(f"{name}={'/'.join(sorted(words))}" for name, words in when)


def _scratch(rules: Iterable[ScratchRule]) -> str:
    texts = []
    for rule in rules:
        dtype = rule.dtype or ("source's dtype" if rule.of_source else "result's dtype")
        limits = [_words(rule.dtypes)] if rule.dtypes is not None else []
        limits += [_when(rule.when)] if rule.when else []
        where = f" for {', '.join(limits)}" if limits else ""
        texts.append(f"{dtype} [{rule.rows.text}, {rule.cols.text}]{where}")
    return "; ".join(texts)
