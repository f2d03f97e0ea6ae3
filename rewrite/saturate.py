"""Saturating one region: insert, normalise, look up the roads of the casts that remain, lower, read back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ..ir.dtypes import FP32, INT32, DType
from ..ir.program import Const, Op, Value
from ..ir.types import TileType
from ..ir.valueset import ValueSet
from ..rules.computed import COMPUTED
from ..rules.facts import (
    BOUNDS,
    value_finite,
    value_fits,
    value_index,
    value_one_zero,
    value_ordered,
    value_positive,
    value_within,
)
from ..rules.paths import Road
from ..rules.rule import RULES
from ..rules.target import Target
from ..rules.terms import (
    DTYPE_CODES,
)
from .egglog_text import why_tables
from .encode import read_graph, region_text
from .engine import Budget, Engine, Outcome, all_tables, engine
from .folding import folded_rows
from .graph import Graph
from .knowledge import Knowledge
from .lines import line_rows, unused_tables
from .offers import offered_roads, smaller
from .providers import (
    WINDOW_TABLES,
    expand_rows,
    extrema_rows,
    has_windows,
    lacking_rows,
    literal_rows,
    target_rows,
    window_rows,
)
from .region import Region
from .structure import structure_rows


@dataclass(frozen=True)
class Plan:
    """What saturation needs to know: the target (``None``: casts are left alone), contract and budget.

    ``contracted``: rules that leave roundings out apply.
    """

    target: Target | None
    exact_only: bool = False
    budget: Budget = field(default_factory=Budget)
    watch: Callable[[str, Engine], None] | None = None
    contracted: bool = False


def saturate(region: Region, knowledge: Knowledge, plan: Plan, own: Engine | None = None) -> Graph:
    """Return the saturated e-graph of a region; the engine is clean again afterwards, or never used again.

    ``own``: an engine with other rules, in the place of the shared one.
    """
    eng = own or engine()
    with eng.working():
        return _saturate(eng, region, knowledge, plan)


def _saturate(eng: Engine, region: Region, knowledge: Knowledge, plan: Plan) -> Graph:
    text, codes = region_text(region)
    sets = value_sets(region, knowledge)
    laid, folded = line_rows(region, plan.target, knowledge.narrowest), folded_rows(region)
    seldom = [*folded, *lacking_rows(region, plan.target), *dividend_rows(region, sets)]
    without = unused_tables(laid) | _without(seldom) | (frozenset() if plan.contracted else _CONTRACTED)
    eng.declare((op.name for op in region.ops), without)
    facts = _fact_rows(value_facts(region, sets)) + structure_rows(region) + extrema_rows(region)
    literals = literal_rows(region, eng.active()) + seldom
    others = [*expand_rows(region, counts(region)), *target_rows(region, plan.target), *laid]
    eng.add(text, [*facts, *literals, *others])
    outcome = _normalise(eng, region, plan.budget)
    if sets and plan.target is not None:
        offered = offered_roads(eng, region, sets, plan.target, plan.exact_only, laid)
        if offered:
            lowered = _lower(eng, offered, plan.budget)
            outcome = outcome if outcome.stopped != "saturated" else lowered
    rows = eng.rows(all_tables() | why_tables())
    why = {name: rows.pop(name) for name in why_tables() & rows.keys()}
    graph = read_graph(region, codes, rows, why)
    values: dict[int, ValueSet] = {}
    for i, c in enumerate([*graph.leaf_class, *graph.op_class]):
        if i in sets and (c not in values or smaller(sets[i], values[c])):
            values[c] = sets[i]
    return replace(graph, values=values, stopped=outcome.stopped)


_CONTRACTED = frozenset({"contracted"})
_SELDOM_ROWS = frozenset(
    {"argument", "lacking", "mixed", "repeats", "mirrored", *(name for name, table in COMPUTED.items() if table.folds)}
)


def _without(rows: list[str]) -> frozenset[str]:
    """Return the tables that seldom have a row and have none here: rules that ask for one are not loaded."""
    return _SELDOM_ROWS.difference(row[1:-1].split(" ", 1)[0] for row in rows)


#: Looks at the e-graph for more computed rows.
_ROUNDS = 8


def _normalise(eng: Engine, region: Region, budget: Budget) -> Outcome:
    """Run the rules, and again while providers find new rows in what the rules made."""
    outcome = eng.run("normalise", budget)
    known: set[str] = set()
    names: dict[int, str] = {}
    for _ in range(_ROUNDS if has_windows(region) else 0):
        more = [r for r in window_rows(region, eng.rows(WINDOW_TABLES), names) if r not in known]
        if not more or outcome.stopped != "saturated":
            break
        known.update(more)
        eng.add((), more)
        outcome = eng.run("normalise", budget)
    return outcome


_COMPARES = frozenset({"tile.cmp", "tile.cmps"})
_SELECTS = frozenset({"tile.select", "tile.sel", "tile.sels"})
#: Operations with recipes for short ranges of their operand.
_RANGED = frozenset({"tile.sin", "tile.cos"})
#: Operations that become rectifiers where no NaN and no -0 can occur.
_RECTIFIED = frozenset({"tile.relu", "tile.maximums", "tile.sels"})
_EXTREMES = frozenset({"tile.maximum", "tile.minimum"})
#: Scalar operations that shifts and masks may replace where nothing is negative.
_TRUNCATING = frozenset({"scalar.div", "scalar.rem"})
#: The same of tiles, by a scalar.
_DIVIDING = frozenset({"tile.divs", "tile.fmods"})
#: Scalar operations of which reductions may take the place where no NaN occurs.
_EXTREMA = frozenset({"scalar.max", "scalar.min"})
#: Operations whose operands are asked about wherever they stand.
_ASKING = _COMPARES | _RANGED | {"tile.read"}
#: Operations whose rules ask what values their operands can hold.
VALUED = (
    _COMPARES | _RANGED | _RECTIFIED | _EXTREMES | _TRUNCATING | _DIVIDING | _EXTREMA | {"tile.cast", "tile.read"}
)  # fmt: skip


def value_sets(region: Region, knowledge: Knowledge) -> dict[int, ValueSet]:
    """Return the value sets, by value number, of everything that rules ask about.

    What a cast reads or gives, what a comparison compares, what a composite with short recipes reads.
    """
    number: dict[str, int] = {v.name: i for i, v in enumerate(region.leaves)}
    values: list[Value] = list(region.leaves)
    for op in region.ops:
        number[op.result.name] = len(values)
        values.append(op.result)
    wanted: dict[int, ValueSet] = {}
    counting, weighing = counts(region), weighs(region)
    ordering = _asks_for_order({op.name for op in region.ops})
    for op in region.ops:
        asked: tuple[object, ...] = ()
        if op.name == "tile.cast":
            asked = (op.operands[0], op.result)
        elif op.name in _ASKING or (ordering and op.name in _RECTIFIED | _EXTREMES):
            asked = op.operands
        elif op.name in _TRUNCATING or adds_zero(op):
            asked = op.operands[:1]
        if weighing and op.name == "tile.sub" and _is_fp32(op):
            asked = op.operands
        if counting and getattr(op.result.type, "dtype", None) in _COUNTS:
            asked = (*asked, *op.operands, op.result)
        for v in asked:
            if isinstance(v, Value) and v.name in number and number[v.name] not in wanted:
                wanted[number[v.name]] = knowledge.of(v)
    return wanted


def adds_zero(op: Op) -> bool:
    """Tell whether an operation adds a literal 0 to a tile, which only matters where -0 can occur."""
    return op.name == "tile.adds" and isinstance(op.operands[1], Const) and op.operands[1].value == 0


def _asks_for_order(names: set[str]) -> bool:
    """Tell whether rules ask of values whether they are NaN or -0."""
    if names & _COMPARES and names & _SELECTS:
        return True
    return bool(names & _RECTIFIED) or bool(names & _EXTREMES and names & {"tile.row_expand", "tile.col_expand"})


_COUNTS = (FP32, INT32)


def counts(region: Region) -> bool:
    """Tell whether a region computes indices: FP32 numbers that become INT32, or INT32 quotients."""
    for op in region.ops:
        t = op.result.type
        if isinstance(t, TileType) and t.dtype is INT32:
            source = getattr(getattr(op.operands[0], "type", None), "dtype", None) if op.operands else None
            if op.name in _DIVIDING or (op.name == "tile.cast" and source is FP32):
                return True
    return False


#: What a selection between FP32 numbers is written with as a sum, besides a selection of its weights.
_WEIGHED = frozenset({"tile.sub", "tile.mul", "tile.add"})
_WEIGHS = _WEIGHED | _SELECTS


def weighs(region: Region) -> bool:
    """Tell whether a region may write a selection between FP32 numbers as a sum, which is one if both are indices."""
    of_numbers = {op.name for op in region.ops if op.name in _WEIGHS and _is_fp32(op)}
    return of_numbers >= _WEIGHED and not of_numbers.isdisjoint(_SELECTS)


def _is_fp32(op: Op) -> bool:
    return isinstance(op.result.type, TileType) and op.result.type.dtype is FP32


#: A fact about a value: relation, value number, and what else it is about (a dtype, or an integer code).
ValueFact = tuple[str, int, DType | int | None]


def value_facts(region: Region, sets: dict[int, ValueSet]) -> list[ValueFact]:
    """Return the facts of the forward analysis that hold.

    ``fits`` for every dtype some cast of the region mentions; ``finite`` where some cast clamps infinities; what
    comparisons and composites ask where there are any.
    """
    mentioned: dict[str, DType] = {}
    clamps = False
    names = {op.name for op in region.ops}
    for op in region.ops:
        if op.name == "tile.cast":
            for t in (op.operands[0].type, op.result.type):  # type: ignore[union-attr]
                assert isinstance(t, TileType)
                mentioned.setdefault(t.dtype.name, t.dtype)
            clamps |= op.attrs.get("saturation_mode") == "on"
    if any(_orders_int32(op) for op in region.ops):
        mentioned.setdefault("FP32", FP32)
    # That a value fits its own dtype helps no rule: a cast to it is the identity anyway.
    own = [getattr(v.type, "dtype", None) for v in (*region.leaves, *(op.result for op in region.ops))]
    found: list[ValueFact] = [
        ("fits", i, d)
        for i, values in sets.items()
        for d in mentioned.values()
        if d is not own[i] and value_fits(values, d)
    ]
    if clamps:
        found += [("finite", i, None) for i, values in sets.items() if value_finite(values)]
    if _asks_for_order(names) or names & _EXTREMA:
        found += [("ordered", i, None) for i, values in sets.items() if value_ordered(values)]
    if _asks_for_order(names) or any(map(adds_zero, region.ops)):
        found += [("one_zero", i, None) for i, values in sets.items() if value_one_zero(values)]
    if counts(region) or weighs(region):
        found += [("index", i, None) for i, values in sets.items() if value_index(values)]
    if counts(region) or names & _TRUNCATING:
        found += [("positive", i, None) for i, values in sets.items() if value_positive(values)]
    if names & _RANGED:
        codes = range(len(BOUNDS))
        found += [("within", i, c) for i, values in sets.items() for c in codes if value_within(values, c)]
    return found


def _orders_int32(op: Op) -> bool:
    dtype = getattr(getattr(op.operands[0], "type", None), "dtype", None) if op.operands else None
    return op.name in _COMPARES and dtype is INT32 and int(op.attrs.get("cmp_type", 0)) >= 2


def dividend_rows(region: Region, sets: dict[int, ValueSet]) -> list[str]:
    """Return the rows of ``mixed``: signed integer tiles, not known to be positive, that are divided by a scalar."""
    divided = {getattr(op.operands[0], "name", "") for op in region.ops if op.name in _DIVIDING}
    values = [*region.leaves, *(op.result for op in region.ops)] if divided else []
    return [
        f"(mixed (val {i}))"
        for i, v in enumerate(values)
        if v.name in divided and isinstance(v.type, TileType) and v.type.dtype.kind == "int"
        if i not in sets or not value_positive(sets[i])
    ]


def _fact_rows(facts: list[ValueFact]) -> list[str]:
    return [f"({name} (val {i}){_fact_word(d)})" for name, i, d in facts]


def _fact_word(d: DType | int | None) -> str:
    return "" if d is None else f" {d if isinstance(d, int) else DTYPE_CODES[d.name]}"


def _lower(eng: Engine, offered: list[tuple[str, Road]], budget: Budget) -> Outcome:
    """Make casts chains by the rows of their roads, then the composed hops their instructions."""
    eng.add((), [row for row, _ in offered])
    outcome = eng.run("lower", budget)
    composed = dict.fromkeys(hop.composed.rule for _, road in offered for hop in road.hops if hop.composed)
    if composed:
        eng.compose(RULES[name] for name in composed)
        outcome = eng.run("compose", budget)
    return outcome
