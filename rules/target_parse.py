"""From the rows of target files to the parts of a target; every fault is TG040 with its file and line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..ir.dtypes import DTYPES
from .formula import Formula, FormulaError
from .target_data import MODES, Place, RawTarget, Row, Sets
from .target_types import CastEdge, Fact, OpInfo, Refusal, ScratchRule

_SCRATCH_NAMES = frozenset({"rows", "cols", "phys_cols", "block"})
_NEEDED = {
    "ub_bytes": 1, "ub_reserved_bytes": 0, "repeat_bytes": 1, "repeat_limit": 1, "block_bytes": 1,
    "barrier_cycles": 0,
}  # fmt: skip


def numbers(hardware: Mapping[str, Fact]) -> dict[str, float]:
    """The numeric figures by name."""
    return {name: fact.value for name, fact in hardware.items() if not isinstance(fact.value, str)}


def facts(raw: RawTarget, name: str) -> dict[str, Fact]:
    """The table ``[name]`` of figures or capabilities."""
    table = raw.tables.get(name)
    found = {}
    for key, item in (table.values if table else {}).items():
        assert table is not None
        row = Row(item if isinstance(item, dict) else {"value": item}, table.place, f"[{name}] {key}")
        row.only("value unit source note")
        value = row.values.get("value")
        if not isinstance(value, int | float | str):
            raise table.place.fault(f"{name} {key!r} has no value", hint='write it as { value = 1, source = "..." }')
        found[key] = Fact(value, row.text("unit", ""), row.text("source", ""), row.text("note", ""))
    return found


def check_hardware(raw: RawTarget, hardware: Mapping[str, Fact], capabilities: Mapping[str, Fact]) -> None:
    """Refuse a target without the figures that prices and plans read."""
    place = Place(raw.path, "hardware")
    for key, least in _NEEDED.items():
        fact = hardware.get(key)
        if fact is None or isinstance(fact.value, str) or fact.value < least:
            raise place.fault(f"[hardware] needs the figure {key!r}, at least {least}")
    if "assembler_arch" not in capabilities:
        raise Place(raw.path, "capabilities").fault("[capabilities] needs 'assembler_arch'")


_CAST_KEYS = "from to modes fixed exact saturation control page assembler scratch source note negatives_undefined"


def casts(rows: Iterable[Row], sets: Sets) -> dict[tuple[str, str], CastEdge]:
    """The native conversions; a later row replaces an earlier one for the same pair."""
    edges: dict[tuple[str, str], CastEdge] = {}
    for row in rows:
        row.only(_CAST_KEYS)
        modes = row.words("modes", "")
        for mode in modes:
            if mode not in MODES:
                raise row.place.fault(f"unknown round mode {mode!r}", hint=f"known modes: {' '.join(MODES)}")
        exact = row.flag("exact", False)
        fixed = row.one_of("fixed", ("", *MODES[1:]), "")
        if (modes and not fixed) or (exact and (modes or fixed)):
            raise row.place.fault("'modes' go with 'fixed', and an exact cast has neither")
        scratch = tuple(_scratch(item, sets) for item in row.rows("scratch"))
        for src in sets.dtypes(row, "from"):
            for dst in sets.dtypes(row, "to"):
                edges[src, dst] = CastEdge(
                    src=src,
                    dst=dst,
                    modes=modes,
                    fixed=fixed,
                    exact=exact,
                    saturation=row.one_of("saturation", ("on", "off"), "on"),
                    saturation_control=row.flag("control", False),
                    page=row.flag("page", True),
                    refusal=row.text("assembler", ""),
                    scratch=scratch,
                    source=row.text("source", "cvt"),
                    note=row.text("note", ""),
                    negatives_undefined=row.flag("negatives_undefined", False),
                )
    return edges


_OP_KEYS = "names kind asm isa assembler casts refuse scratch native inplace source note"


def ops(rows: Iterable[Row], sets: Sets) -> dict[str, OpInfo]:
    """The operations by mnemonic; a later row replaces an earlier one for the same operation."""
    found: dict[str, OpInfo] = {}
    for row in rows:
        row.only(_OP_KEYS)
        by_casts, assembler = row.flag("casts", False), row.flag("assembler", True)
        asm = frozenset(sets.dtypes(row, "asm", "" if by_casts or not assembler else None))
        isa = frozenset(sets.dtypes(row, "isa", "" if by_casts else None))
        refusals = tuple(_refusal(item, sets) for item in row.rows("refuse"))
        scratch = tuple(_scratch(item, sets) for item in row.rows("scratch"))
        for name in row.words("names"):
            found[name] = OpInfo(
                name=name,
                kind=row.text("kind", ""),
                assembler=assembler,
                casts=by_casts,
                asm=asm,
                isa=isa,
                refusals=refusals,
                scratch=scratch,
                native=row.flag("native", True),
                inplace=row.text("inplace", ""),
                source=row.text("source", "asm isa"),
                note=row.text("note", ""),
            )
    return found


def _refusal(row: Row, sets: Sets) -> Refusal:
    row.only("dtypes when reason hint source")
    dtypes = frozenset(sets.dtypes(row, "dtypes")) if "dtypes" in row.values else None
    return Refusal(dtypes, row.when(), row.text("reason"), row.text("hint", ""))


def _scratch(row: Row, sets: Sets) -> ScratchRule:
    row.only("when dtypes dtype of rows cols required source why")
    dtype = row.text("dtype", "")
    if dtype and dtype not in DTYPES:
        raise row.place.fault(f"a scratch tile of the unknown dtype {dtype!r}")
    dtypes = frozenset(sets.dtypes(row, "dtypes")) if "dtypes" in row.values else None
    return ScratchRule(
        when=row.when(),
        dtypes=dtypes,
        dtype=dtype,
        of_source=row.one_of("of", ("source", "result"), "result") == "source",
        rows=_formula(row, "rows"),
        cols=_formula(row, "cols"),
        required=row.flag("required", True),
        why=row.text("why", ""),
    )


def _formula(row: Row, key: str) -> Formula:
    try:
        return Formula.parse(row.text(key), _SCRATCH_NAMES)
    except FormulaError as problem:
        raise row.place.fault(f"{key!r} of a scratch tile is no formula", reason=str(problem)) from None
