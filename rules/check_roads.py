"""The check of road rules: instances are rows that the road search gives for random requests.

The right side must be what the road does, step by step; an exact road must equal its request, an inexact one
may differ by no more than it states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import valueset
from ..ir.codes import ulp_distance
from ..ir.convert import ROUND_MODES, all_values, decode, same_bits
from ..ir.dtypes import DTYPES, DType
from ..ir.inputs import extreme_values
from ..ir.members import contains
from ..ir.samples import hostile, random_bits
from ..ir.tilearray import Arr
from ..ir.valueset import ValueSet
from . import paths
from .casts import road_columns, road_table, road_words
from .check_eval import Assignment, Valued, evaluate
from .paths import Road
from .rule import Rule, Var
from .target import Target, load_target, target_names
from .terms import CODE_SATURATIONS, DTYPE_CODES, MODE_CODES, saturation_code

#: Roads looked at per request, and elements per road where the source has too many values to list.
_ROADS, _WIDTH = 8, 8192


def is_road_rule(rule: Rule) -> bool:
    """Tell whether a rule's condition is a road table."""
    return _shape(rule) is not None


def _shape(rule: Rule) -> tuple[int, bool] | None:
    for hops in range(1, paths.MAX_HOPS + 1):
        for exact in (True, False):
            if any(c.relation == road_table(hops, exact) for c in rule.when):
                return hops, exact
    return None


def check_road_rule(rule: Rule, samples: int, rng: np.random.Generator, tally: Any) -> None:
    """Check a road rule on the rows of random requests; ``tally`` takes what was covered."""
    shape = _shape(rule)
    assert shape is not None
    targets = [load_target(name) for name in target_names()]
    for _ in range(samples * 10):
        if tally.instances >= samples or len(tally.failures) >= 10:
            return
        target = targets[int(rng.integers(len(targets)))]
        for road in _rows(target, rng):
            if (len(road.hops), road.exact) == shape:
                check_road(rule, road, rng, tally)


def _rows(target: Target, rng: np.random.Generator) -> tuple[Road, ...]:
    """Return the roads of a random request."""
    sources = sorted({e.src for e in target.casts.values()})
    goals = sorted({e.dst for e in target.casts.values()})
    src, dst = DTYPES[str(rng.choice(sources))], DTYPES[str(rng.choice(goals))]
    mode = str(rng.choice(list(ROUND_MODES)))
    saturation = CODE_SATURATIONS[int(rng.integers(len(CODE_SATURATIONS)))]
    if src is dst:
        return ()
    return paths.roads(target, src, dst, mode, saturation, random_values(src, rng), k=_ROADS)


def random_values(src: DType, rng: np.random.Generator) -> ValueSet | None:
    """Return a random value set of a dtype: everything, a range, what came from another dtype, a constant."""
    everything = valueset.of_dtype(src)
    match int(rng.integers(6)):
        case 0 | 1:
            return None
        case 2:
            names = [n for n, d in DTYPES.items() if d.is_numeric]
            other = DTYPES[str(rng.choice(names))]
            return valueset.cast_to(valueset.of_dtype(other), src, "rint")
        case 3:
            top = float(2.0 ** rng.integers(0, 20))
            return valueset.clamp(everything, -top if src.signed else 0, top)
        case 4:
            top = int(2 ** rng.integers(0, 16))
            whole = valueset.interval(-top if src.signed else 0, top, int(rng.integers(0, 3)))
            return valueset.cast_to(whole, src, "rint")
        case _:
            number = decode(rng.choice(extreme_values(src), 1), src)[0].item()
            return valueset.constant(number, src)


def check_road(rule: Rule, road: Road, rng: np.random.Generator, tally: Any) -> None:
    """Check a rule on one row: both sides on the values that can arrive."""
    array, exhaustive = _arriving(road, rng)
    if not array.size:
        return
    codes = row_codes(road)
    (x,) = (a for a in rule.when[0].args[:1] if isinstance(a, Var))
    values = {x: Valued.tile(array, road.src)}
    left, right = evaluate(rule.lhs, codes, values), evaluate(rule.rhs, codes, values)
    tally.instances += 1
    tally.exhaustive += exhaustive
    tally.values += left.size
    if _marked_inexact(rule, codes) == road.exact:
        tally.failures.append(f"{rule.name}: {road} is {road.kind}, the right side says otherwise")
        return
    acting = Valued.tile(road.apply(array), road.dst)
    off_road = ~same_bits(acting.data, right.data, road.dst)
    if off_road.any():
        at = int(np.flatnonzero(off_road.reshape(-1))[0])
        tally.failures.append(
            f"{rule.name}: {road.target} {road}, x={values[x].element(at)}: {right.element(at)} on the right, "
            f"but the road gives {acting.element(at)}"
        )
        return
    differ = ~same_bits(left.data, right.data, left.dtype)
    if not differ.any():
        return
    failure = _judge(road, left, right, differ)
    if failure is None:
        tally.inexact += int(differ.sum())
        return
    at = int(np.flatnonzero(differ.reshape(-1))[0])
    tally.failures.append(
        f"{rule.name}: {road.target} {road} mode={road.request.mode} for {road.values}, {failure}: "
        f"x={values[x].element(at)} gives {left.element(at)} on the left, {right.element(at)} on the right"
    )


def _marked_inexact(rule: Rule, codes: Assignment) -> bool:
    """Tell whether the last hop on the right carries the number of an inexact road."""
    if isinstance(rule.rhs, Var):
        return False
    mark = rule.rhs.args[-1]
    return (codes[mark] if isinstance(mark, Var) else mark) != 0


def _judge(road: Road, left: Valued, right: Valued, differ: Arr) -> str | None:
    """Return what is wrong with a difference; ``None`` if the road states it."""
    if road.exact:
        return "called exact"
    distance = ulp_distance(left.data, right.data, left.dtype)
    finite = np.isfinite(decode(left.data, left.dtype)) & np.isfinite(decode(right.data, right.dtype))
    far = int(distance[differ & finite].max(initial=0))
    if (differ & ~finite).any() and road.error.not_finite is None:
        return "NaN or infinite on one side only where both are stated to be finite"
    if far > road.error.max_ulp:
        return f"{far} ulp where at most {road.error.max_ulp} are stated"
    return None


def row_codes(road: Road) -> Assignment:
    """Return the assignment of a road rule's variables that a row stands for."""
    hops = len(road.hops)
    request = road.request
    saturation = "on" if request.saturate else ("off" if not road.dst.is_float else None)
    fixed = (
        DTYPE_CODES[road.src.name],
        DTYPE_CODES[road.dst.name],
        MODE_CODES[request.mode],
        saturation_code(saturation, road.dst),
    )
    cells = (*fixed, *road_words(road), *([] if road.exact else [1]))
    kinds = {"m": "mode", "s": "saturation", "hm": "mode", "hs": "saturation", "road": "int"}
    names = road_columns(hops, road.exact)[1:]
    made: Assignment = {}
    for name, cell in zip(names, cells):
        made[Var(name, kinds.get(name.rstrip("0123456789"), "dtype"))] = cell  # type: ignore[arg-type]
    made[Var("sh", "shape")] = 0
    return made


def _arriving(road: Road, rng: np.random.Generator) -> tuple[Arr, bool]:
    """Return source elements inside the road's value set, and whether they are all there are."""
    src = road.src
    if src.bits <= 16:
        every = all_values(src)
        return every[contains(road.values, decode(every, src))], True
    parts = [hostile(src, stop, rng, _WIDTH // 4) for stop in road.stops]
    parts += [rng.choice(extreme_values(src), 64), random_bits(src, rng, 256)]
    narrow = [n for n in (road.values.lo, road.values.hi, 0, 1) if src.min_value <= n <= src.max_value]
    array = np.concatenate([*parts, _near(src, narrow)])
    return array[contains(road.values, decode(array, src))], False


def _near(src: DType, numbers: list[Any]) -> Arr:
    """Return elements at and around some exact numbers."""
    from ..ir.codes import from_ordinal, ordinal
    from ..ir.convert import encode

    at = encode(np.array(numbers, object), src, "rint", True)
    places = ordinal(at, src)
    if src.name == "UINT64":
        return at
    steps = np.arange(-64, 65)
    low, high = (0, 2**62) if not src.signed else (-(2**62), 2**62)
    inner = places[(places > low) & (places < high)]
    return np.concatenate([at, from_ordinal(np.add.outer(inner, steps).reshape(-1), src)])
