"""The check of rules on scalars: both sides on columns of hostile values, as SIMT code computes them.

Every value of a source of at most 16 bits (every pair, for two operands of at most 8) is run; literals are drawn by
the computed tables that rules ask. Where the language leaves the sign of a zero open (maximum and minimum of +0 and
-0), zeros of either sign are one value, and counted as inexact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import lanes
from ..ir.codes import same_bits
from ..ir.convert import all_values
from ..ir.diagnostics import TileggError
from ..ir.dtypes import DTYPES, FP32, DType
from ..ir.interp_eval import eval_op
from ..ir.op import OPS, Call, Env
from ..ir.program import Const, Value
from ..ir.samples import hostile
from ..ir.tilearray import Arr
from ..ir.types import ScalarType, scalar, tile
from .check_eval import Assignment, Unfit
from .computed import COMPUTED
from .facts import FACTS, GIVEN, dtype_holds
from .rule import Condition, Pattern, Rule, Term, Var, variables
from .terms import CODE_DTYPES, DTYPE_CODES, LITERAL, child_params, literal_value

#: Elements of a column, where an operand has too many values to list.
WIDTH = 4096
#: Columns of one instance of a rule about reductions, and their most elements.
_TILES, _ROWS = 64, 12
#: Dtypes of variables: numbers, and packed pairs of numbers.
_SCALARS = [d for d in DTYPES.values() if not lanes.element(d).is_coded and lanes.element(d).is_numeric]


@dataclass(frozen=True, eq=False)
class Column:
    """A value of many threads, or a literal that all of them have."""

    data: Arr | int | float
    dtype: DType
    literal: Const | None = None

    @property
    def known(self) -> Value | Const:
        """What a call of an operation sees."""
        return self.literal or Value("x", scalar(self.dtype))


def is_scalar_rule(rule: Rule) -> bool:
    """Tell whether a rule is about scalars: their shape has the code 0."""
    return rule.lhs.args[1] == 0


def check_scalar_rule(rule: Rule, samples: int, rng: np.random.Generator, tally: Any) -> None:
    """Check a scalar rule on ``samples`` instances; ``tally`` takes what was covered."""
    for _ in range(samples * 8):
        if tally.instances >= samples or len(tally.failures) >= 10:
            return
        try:
            _instance(rule, rng, tally)
        except Unfit:
            continue


def _instance(rule: Rule, rng: np.random.Generator, tally: Any) -> None:
    given = next((c for c in rule.when if c.relation.partition("_")[2] in ("of", "of_and")), None)
    if given is not None:
        _reduced(rule, given, rng, tally)
        return
    codes = _codes(rule, rng)
    values, exhaustive = _columns(rule, codes, rng)
    left, right = evaluate(rule.lhs, codes, values), _right(rule, codes, values, tally)
    tally.instances += 1
    tally.exhaustive += exhaustive
    if right is not None:
        compare(rule, codes, values, left, right, tally)


def _right(rule: Rule, codes: Assignment, values: Mapping[Var, Column], tally: Any) -> Column | None:
    try:
        return evaluate(rule.rhs, codes, values)
    except Unfit as problem:
        tally.failures.append(f"{rule.name}: no program contains the right side: {problem.__cause__ or 'its type'}")
        return None


def _codes(rule: Rule, rng: np.random.Generator) -> Assignment:
    found: Assignment = {}
    for v in variables(rule.lhs):
        if v.kind == "dtype" and v not in found:
            asked = [c for c in rule.when if c.args == (v,) and FACTS[c.relation][0] == ("dtype",)]
            fit = [d for d in _SCALARS if all(dtype_holds(c.relation, (d,)) for c in asked)]
            found[v] = DTYPE_CODES[fit[int(rng.integers(len(fit)))].name]
    return found


def _columns(rule: Rule, codes: Assignment, rng: np.random.Generator) -> tuple[dict[Var, Column], bool]:
    """Draw what the value variables of a rule stand for; tell whether it is all there is."""
    values: dict[Var, Column] = {}
    for c in rule.when:
        if c.relation in COMPUTED:
            _literals(c, codes, rng, values)
    dtype = CODE_DTYPES[next(iter(codes.values()))]
    free = [v for v in dict.fromkeys(variables(rule.lhs)) if v.kind == "value" and v not in values]
    arrays: list[Arr]
    exhaustive = dtype.is_numeric and dtype.bits * len(free) <= 16
    if dtype.packed_of:
        own = lanes.element(dtype)
        arrays = [hostile(own, own, rng, 2 * WIDTH).reshape(-1, 2) for _ in free]
    elif exhaustive:
        arrays = [g.reshape(-1) for g in np.meshgrid(*[all_values(dtype)] * len(free), indexing="ij")]
    else:
        arrays = [hostile(dtype, dtype, rng, WIDTH) for _ in free]
        if len(arrays) > 1:
            # Equal operands decide about comparisons.
            arrays[1] = np.where(rng.random(WIDTH) < 0.25, arrays[0], arrays[1])
        if dtype.is_float and len(arrays) > 1:
            # And so do zeros of both signs.
            some = rng.random(WIDTH) < 0.05
            arrays = [np.where(some, rng.choice(np.array([0.0, -0.0]).astype(a.dtype), WIDTH), a) for a in arrays]
    keep = np.ones(len(arrays[0]), np.bool_) if arrays else np.ones(1, np.bool_)
    loaded = [lanes.load(a, dtype) for a in arrays]
    for c in rule.when:
        if c.relation == "positive" and c.args[0] in free:
            keep &= loaded[free.index(c.args[0])] >= 0
    values.update((v, Column(a[keep], dtype)) for v, a in zip(free, loaded))
    return values, exhaustive


def _literals(c: Condition, codes: Assignment, rng: np.random.Generator, values: dict[Var, Column]) -> None:
    table = COMPUTED[c.relation]
    code = c.args[table.inputs]
    dtype = CODE_DTYPES[codes[code] if isinstance(code, Var) else int(code)]  # type: ignore[arg-type]
    if not dtype.is_int or dtype.bits < 4:
        raise Unfit
    drawn = table.example(rng, dtype)
    made = table.function(*drawn, dtype)
    if made is None:
        raise Unfit
    for name, literal in zip((*c.args[: table.inputs], *c.args[table.inputs + 1 :]), (*drawn, *made)):
        assert isinstance(name, Var)
        values[name] = _literal(literal)


def _literal(c: Const) -> Column:
    return Column(lanes.settle(lanes.carrier(c.value, c.dtype), c.dtype), c.dtype, c)


def evaluate(p: Pattern, codes: Assignment, values: Mapping[Var, Column]) -> Column:
    """Return the value of a pattern of scalar operations; raises :class:`Unfit`."""
    if isinstance(p, Var):
        return values[p]
    if p.op == LITERAL:
        kind, bits = (a for a in p.args if isinstance(a, int))
        return _literal(Const(*literal_value(kind, bits)))
    decl = OPS[p.op]
    children = [evaluate(c, codes, values) for c in p.children]
    code = codes[p.args[0]] if isinstance(p.args[0], Var) else p.args[0]
    wanted = CODE_DTYPES[code]
    try:
        result = decl.result(Call(decl, tuple(c.known for c in children), dict(decl.defaults), None))
    except TileggError as problem:
        raise Unfit from problem
    if not isinstance(result, ScalarType) or result.dtype is not wanted:
        raise Unfit
    names = [decl.operand_params[i].name for i in child_params(decl)]
    extra = {"env": Env(tuple(c.known.type for c in children), result)} if decl.wants_env else {}
    with np.errstate(all="ignore"):
        found = decl.meaning(**dict(zip(names, _alike(children))), **extra)
        return Column(lanes.settle(found, wanted), wanted)


def _alike(columns: list[Column]) -> list[Any]:
    """Return carriers; integers beside unsigned ones of 64 bits are unsigned too."""
    data = [np.asarray(c.data) for c in columns]
    if any(a.dtype == np.uint64 for a in data):
        return [a.astype(np.uint64) if a.dtype.kind == "i" else a for a in data]
    return data


def compare(
    rule: Rule, codes: Assignment, values: Mapping[Var, Column], left: Column, right: Column, tally: Any
) -> None:
    """Record a failure where the two sides differ."""
    if left.dtype is not right.dtype:
        tally.failures.append(f"{rule.name}: {left.dtype} on the left, {right.dtype} on the right")
        return
    a, b = np.broadcast_arrays(lanes.store(left.data, left.dtype), lanes.store(right.data, right.dtype))
    differ = ~same_bits(a, b, left.dtype)
    if "the sign" in OPS[rule.lhs.op].target_defined:
        zeros = differ & (a == 0) & (b == 0)
        tally.inexact += int(zeros.sum())
        differ &= ~zeros
    tally.values += a.size
    if differ.any():
        at = int(np.flatnonzero(differ.reshape(-1))[0])
        sources = ", ".join(f"{v.name}={_element(c.data, at)}" for v, c in values.items())
        dtypes = ", ".join(f"{v.name}={CODE_DTYPES[c].name}" for v, c in codes.items())
        tally.failures.append(
            f"{rule.name} with {dtypes}, {sources}: {_element(a, at)} on the left, {_element(b, at)} on the right"
            f" ({int(differ.sum())} of {differ.size} values)"
        )


def _element(data: Any, at: int) -> object:
    flat = np.asarray(data).reshape(-1)
    return flat[at if flat.size > 1 else 0].item()


# -- reductions of what is read ----------------------------------------------------------------------------------


def _reduced(rule: Rule, given: Condition, rng: np.random.Generator, tally: Any) -> None:
    """Columns of tiles, read element by element and combined in a random order, against the right side."""
    assert given.relation in GIVEN
    ordered = any(c.relation == "ordered" for c in rule.when)
    rows = int(rng.integers(2, _ROWS))
    data = hostile(FP32, FP32, rng, rows * _TILES).reshape(rows, _TILES)
    if rng.random() < 0.5 or ordered:
        data = np.where(np.isnan(data), np.float32(0), data)
    other = hostile(FP32, FP32, rng, _TILES)
    parts = [Column(lanes.load(row, FP32), FP32) for row in data]
    if given.relation.endswith("_and"):
        parts.append(Column(lanes.load(other, FP32), FP32))
    while len(parts) > 1:
        x, y = (parts.pop(int(rng.integers(len(parts)))) for _ in range(2))
        parts.append(_combined(rule.lhs, x, y))
    right = _from_tiles(rule.rhs, data, Column(lanes.load(other, FP32), FP32))
    tally.instances += 1
    compare(rule, {}, {}, parts[0], right, tally)


def _combined(p: Term, x: Column, y: Column) -> Column:
    names = [c for c in p.children if isinstance(c, Var)]
    return evaluate(p, {}, dict(zip(names, (x, y))))


def _from_tiles(p: Pattern, data: Arr, other: Column) -> Column:
    """Return the right side for each column of the data."""
    if isinstance(p, Var):
        return other
    if p.op != "tile.read":
        inner = [_from_tiles(c, data, other) for c in p.children]
        places = [Var(f"_{i}", "value") for i in range(len(inner))]
        return evaluate(Term(p.op, p.args, tuple(places)), {}, dict(zip(places, inner)))
    (reduction,) = p.children
    assert isinstance(reduction, Term)
    of, to = tile(data.shape, FP32), tile((1, data.shape[1]), FP32)
    out = eval_op(OPS[reduction.op], [data], [of], {}, to)
    return Column(lanes.load(np.asarray(out.region).reshape(-1), FP32), FP32)
