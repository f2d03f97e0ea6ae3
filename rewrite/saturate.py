"""Saturating one region: insert, normalise, look up the roads of the casts that remain, lower, read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..ir.dtypes import DType
from ..ir.program import Value
from ..ir.types import TileType
from ..ir.valueset import ValueSet
from ..rules.casts import MAX_HOPS, road_table, road_words
from ..rules.facts import value_finite, value_fits
from ..rules.paths import Road, roads
from ..rules.target import Target
from ..rules.terms import (
    CODE_DTYPES,
    CODE_MODES,
    CODE_SATURATIONS,
    DTYPE_CODES,
)
from .encode import Rows, class_of_values, read_graph, region_text
from .engine import Budget, Engine, engine
from .graph import Graph
from .knowledge import Knowledge
from .region import Region

#: Roads offered per cast: enough for the cheapest, the shortest and the exact ones.
ROADS_PER_CAST = 6


@dataclass(frozen=True)
class Plan:
    """What saturation needs to know: the target (``None``: casts are left alone), contract and budget."""

    target: Target | None
    exact_only: bool = False
    budget: Budget = field(default_factory=Budget)
    watch: Callable[[str, Engine], None] | None = None


def saturate(region: Region, knowledge: Knowledge, plan: Plan) -> Graph:
    """Return the saturated e-graph of a region; the shared engine is clean again afterwards."""
    eng = engine()
    try:
        return _saturate(eng, region, knowledge, plan)
    finally:
        eng.reset()


def _saturate(eng: Engine, region: Region, knowledge: Knowledge, plan: Plan) -> Graph:
    text, codes = region_text(region)
    sets = value_sets(region, knowledge)
    eng.declare(op.name for op in region.ops)
    eng.add(text + _fact_rows(value_facts(region, sets)))
    outcome = eng.run("normalise", plan.budget)
    if sets and plan.target is not None:
        rows = eng.rows(_CAST_TABLES)
        facts = _road_rows(rows, sets, plan.target, plan.exact_only)
        if facts:
            eng.add(facts)
            lowered = eng.run("lower", plan.budget)
            outcome = outcome if outcome.stopped != "saturated" else lowered
    graph = read_graph(region, codes, eng.rows(), eng.rows(_WHY_TABLES))
    values: dict[int, ValueSet] = {}
    for i, c in enumerate([*graph.leaf_class, *graph.op_class]):
        if i in sets and (c not in values or _smaller(sets[i], values[c])):
            values[c] = sets[i]
    return replace(graph, values=values, stopped=outcome.stopped)


_CAST_TABLES = frozenset({"val", "tile_cast"})
_WHY_TABLES = frozenset({"why_tile_cast"})


def value_sets(region: Region, knowledge: Knowledge) -> dict[int, ValueSet]:
    """Return the value sets of everything a cast reads or gives, by value number."""
    number: dict[str, int] = {v.name: i for i, v in enumerate(region.leaves)}
    values: list[Value] = list(region.leaves)
    for op in region.ops:
        number[op.result.name] = len(values)
        values.append(op.result)
    wanted: dict[int, ValueSet] = {}
    for op in region.ops:
        if op.name == "tile.cast":
            for v in (op.operands[0], op.result):
                if isinstance(v, Value) and number[v.name] not in wanted:
                    wanted[number[v.name]] = knowledge.of(v)
    return wanted


def value_facts(region: Region, sets: dict[int, ValueSet]) -> list[tuple[str, int, DType | None]]:
    """Return the value facts that hold as (relation, value number, dtype).

    ``fits`` for every dtype some cast of the region mentions; ``finite`` where some cast clamps infinities.
    """
    mentioned: dict[str, DType] = {}
    clamps = False
    for op in region.ops:
        if op.name == "tile.cast":
            for t in (op.operands[0].type, op.result.type):  # type: ignore[union-attr]
                assert isinstance(t, TileType)
                mentioned.setdefault(t.dtype.name, t.dtype)
            clamps |= op.attrs.get("saturation_mode") == "on"
    found: list[tuple[str, int, DType | None]] = [
        ("fits", i, d) for i, values in sets.items() for d in mentioned.values() if value_fits(values, d)
    ]
    if clamps:
        found += [("finite", i, None) for i, values in sets.items() if value_finite(values)]
    return found


def _fact_rows(facts: list[tuple[str, int, DType | None]]) -> list[str]:
    return [f"({name} (val {i}){f' {DTYPE_CODES[d.name]}' if d else ''})" for name, i, d in facts]


def _road_rows(rows: Rows, sets: dict[int, ValueSet], target: Target, exact_only: bool) -> list[str]:
    """Return the road rows of every cast in the normalised e-graph whose operand the program names."""
    of_value = class_of_values(rows)
    name_of: dict[int, int] = {}
    best: dict[int, ValueSet] = {}
    for i, c in of_value.items():
        name_of.setdefault(c, i)
        if i in sets and (c not in best or _smaller(sets[i], best[c])):
            best[c] = sets[i]
    out: list[str] = []
    for dst, _, src, mode, sat, _, x, _ in sorted(set(rows.get("tile_cast", []))):
        if x in best and src != dst:
            signature = f"(val {name_of[x]}) {src} {dst} {mode} {sat}"
            out += _rows_for(signature, (src, dst, mode, sat), best[x], target, exact_only)
    return out


def _smaller(a: ValueSet, b: ValueSet) -> bool:
    return (a.hi - a.lo, a.nan, a.inf, -a.grid) < (b.hi - b.lo, b.nan, b.inf, -b.grid)


def _rows_for(
    signature: str, cast: tuple[int, int, int, int], values: ValueSet, target: Target, exact_only: bool
) -> list[str]:
    src, dst, mode, sat = cast
    found = roads(
        target,
        CODE_DTYPES[src],
        CODE_DTYPES[dst],
        CODE_MODES[mode],
        CODE_SATURATIONS[sat],
        values,
        k=ROADS_PER_CAST,
    )
    return [_row(signature, road) for road in found if (road.exact or not exact_only) and _useful(road)]


def _useful(road: Road) -> bool:
    return len(road.hops) <= MAX_HOPS


def _row(signature: str, road: Road) -> str:
    table = road_table(len(road.hops), road.exact)
    return f"({table} {signature} {' '.join(map(str, road_words(road)))})"
