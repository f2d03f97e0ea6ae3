"""The roads that are offered for the casts of a normalised e-graph: those that some choice can gain by."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import is_
from typing import NamedTuple

from ..ir import valueset
from ..ir.types import TileType
from ..ir.valueset import ValueSet
from ..rules.casts import MAX_HOPS, road_table, road_words
from ..rules.cost import Instr, cycles, work_shape
from ..rules.paths import Hop, Road, roads
from ..rules.target import Target
from ..rules.terms import CODE_DTYPES, CODE_MODES, CODE_SATURATIONS, DTYPE_CODES
from .encode import class_of_values, type_from
from .engine import Engine
from .providers import Names
from .region import Region

#: Roads looked up per cast: enough for the cheapest, the shortest and the exact ones.
ROADS_PER_CAST = 6
_CAST_TABLES = frozenset({"val", "tile_cast"})


class Asked(NamedTuple):
    """A cast of the e-graph: text, class and value set of its operand, its codes, the class of its result.

    ``codes``: source, destination, mode, saturation. ``number``: of the request among the region's; see
    :func:`tilegg.rules.casts.cast`.
    """

    text: str
    source: int
    values: ValueSet
    codes: tuple[int, ...]
    shape: int
    result: int
    number: int
    exact_only: bool


Offered = list[tuple[str, Road]]

#: One conversion of a chain by what it does to the values that arrive: its mode is left out where it rounds none.
Step = tuple[str, ...]


class Way(NamedTuple):
    """A chain that a request may take, with its steps."""

    road: Road
    steps: tuple[Step, ...]


#: Requests with the chains they may take.
Found = Sequence[tuple[Asked, list[Way]]]

#: Conversions that may run on one row, by the codes of source, destination and shape.
Laid = frozenset[tuple[int, ...]]


def offered_roads(
    eng: Engine, region: Region, sets: Mapping[int, ValueSet], target: Target, exact_only: bool, laid: Sequence[str]
) -> Offered:
    """Return the roads of every cast in the normalised e-graph, with rows; of what rules made, exact ones only.

    ``sets``: the value sets of the region's values, by number. ``laid``: the rows about tiles that stand as one row.
    """
    rows = eng.rows(_CAST_TABLES)
    values = class_of_values(rows)
    casts = rows.get("tile_cast", [])
    asked = [*_written(casts, values, sets, exact_only), *_made(casts, values, region, eng)]
    lines = frozenset(
        tuple(map(int, words[1:4])) for row in laid if (words := row[1:-1].split(" "))[0] == "laid_cast"
    )
    found = [(a, _ways_of(roads, steps_of, target, a.codes, a.values, a.exact_only)) for a in asked]
    return [(_row(a, road), road) for a, some in unbeaten(target, found, lines) for road, _ in some]


def _written(
    rows: Sequence[tuple[int, ...]], values: Mapping[int, int], sets: Mapping[int, ValueSet], exact_only: bool
) -> list[Asked]:
    """Return the casts of values of the program, by number of the value; ``values``: their classes."""
    name_of: dict[int, int] = {}
    best: dict[int, ValueSet] = {}
    for i, c in values.items():
        name_of.setdefault(c, i)
        if i in sets and (c not in best or smaller(sets[i], best[c])):
            best[c] = sets[i]
    # The numbers of the requests must not depend on interned codes such as the shape's.
    casts = {
        (name_of[x], src, dst, mode, sat): (x, best.get(x) or valueset.of_dtype(CODE_DTYPES[src]), shape, out)
        for dst, shape, src, mode, sat, _, x, out in rows
        if x in name_of and src != dst
    }
    return [
        Asked(f"(val {i})", x, arriving, tuple(codes), shape, out, number, exact_only)
        for number, ((i, *codes), (x, arriving, shape, out)) in enumerate(sorted(casts.items(), key=lambda c: c[0]), 1)
    ]


def _made(
    rows: Sequence[tuple[int, ...]], values: Mapping[int, int], region: Region, eng: Engine
) -> list[Asked]:
    """Return the casts of what rules made."""
    written = set(values.values())
    made = [row for row in rows if row[6] not in written and row[0] != row[2]]
    names = Names(region, eng.rows()) if made else None
    out: list[Asked] = []
    for dst, shape, src, mode, sat, _, x, result in made:
        text = names.of(x) if names is not None else None
        if text is not None:
            everything = valueset.of_dtype(CODE_DTYPES[src])
            out.append(Asked(text, x, everything, (src, dst, mode, sat), shape, result, 0, True))
    return out


def smaller(a: ValueSet, b: ValueSet) -> bool:
    """Tell whether one value set says more than another."""
    return (a.hi - a.lo, a.nan, a.inf, -a.grid) < (b.hi - b.lo, b.nan, b.inf, -b.grid)


@lru_cache(maxsize=8192)
def _ways_of(
    look_up: Callable[..., tuple[Road, ...]],
    steps: Callable[[ValueSet, Road], tuple[Step, ...]],
    target: Target,
    codes: tuple[int, ...],
    values: ValueSet,
    exact_only: bool,
) -> list[Way]:
    """Return the roads of a request that terms can stand for."""
    src, dst, mode, sat = codes
    found = look_up(
        target, CODE_DTYPES[src], CODE_DTYPES[dst], CODE_MODES[mode], CODE_SATURATIONS[sat], values, k=ROADS_PER_CAST
    )
    usable = [road for road in found if (road.exact or not exact_only) and len(road.hops) <= MAX_HOPS]
    return [Way(road, steps(values, road)) for road in usable]


def _row(asked: Asked, road: Road) -> str:
    table = road_table(len(road.hops), road.exact)
    words = [*road_words(road), *([] if road.exact else [asked.number])]
    return f"({table} {asked.text} {' '.join(map(str, asked.codes))} {' '.join(map(str, words))})"


# -- what cannot pay ---------------------------------------------------------------------------------------


def _pricing(target: Target, result: TileType, shape: int, laid: Laid) -> Callable[[Sequence[Hop]], tuple[float, int]]:
    """Return what gives cycles and instructions of native conversions; ``result`` has the shape of all their tiles."""
    rows, cols, _ = whole = work_shape([result])
    line = 1, rows * cols, rows * cols

    def price(hops: Sequence[Hop]) -> tuple[float, int]:
        total = 0.0
        for hop in hops:
            on_row = (DTYPE_CODES[hop.src.name], DTYPE_CODES[hop.dst.name], shape) in laid
            work = line if on_row else whole
            total += _hop_cycles(target, hop.src.name, hop.dst.name, hop.mode, hop.saturation, work)
        return total, len(hops)

    return price


@lru_cache(maxsize=4096)
def _hop_cycles(
    target: Target, src: str, dst: str, mode: str, saturation: str | None, work: tuple[int, int, int]
) -> float:
    words = (("mode", mode), *((("saturation", saturation),) if saturation else ()))
    return cycles(target, Instr("tcvt", (src, dst), *work, words))


def unbeaten(target: Target, found: Found, laid: Laid) -> Found:
    """Leave out chains that cost no less than an exact one, even if all that they can share were free.

    A chain can pass the results of other requests, which may be there for other reasons. From the last of them on it
    is compared with the chains for the same result from there: it can share its conversions as far as chains for
    other results go the same way. A choice with a chain that is left out becomes no dearer, in cycles and in
    instructions, with the other one in its place.
    """
    ways = _Ways(found)
    groups: dict[tuple[int, int], list[Place]] = {}
    for place, chain in ways.chains.items():
        groups.setdefault((chain.asked.result, chain.start), []).append(place)
    kept = ways.with_passed(place for group in groups.values() for place in _unbeaten(target, group, ways, laid))
    return [
        (a, [way._replace(road=ways.chains[i, j].road) for j, way in enumerate(some) if (i, j) in kept])
        for i, (a, some) in enumerate(found)
    ]


def _unbeaten(target: Target, group: list[Place], ways: _Ways, laid: Laid) -> list[Place]:
    """Return what may pay of chains from one value to another."""
    alike: dict[tuple[Step, ...], Place] = {}
    for place in group:
        # Of chains that end alike the shortest: the others come from farther away.
        steps = ways.chains[place].steps
        alike[steps] = min(alike.get(steps, place), place, key=lambda place: len(ways.chains[place].road.hops))
    chains = {place: ways.chains[place] for place in alike.values()}
    asked = ways.chains[group[0]].asked
    result = type_from(asked.codes[1], asked.shape)
    plain = {place: c for place, c in chains.items() if not any(hop.composed for hop in c.road.hops)}
    exact = [place for place, c in plain.items() if c.road.exact]
    if len(chains) < 2 or not exact or not isinstance(result, TileType):
        return list(chains)

    price = _pricing(target, result, asked.shape, laid)

    def beaten(chain: _Chain) -> bool:
        own_cost, own_count = price(ways.own(chain))
        return own_cost >= cost and own_count >= count

    (cost, count), best = min(
        ((price(chains[place].behind), place) for place in exact), key=lambda found: found[0]
    )
    return [place for place, c in chains.items() if place == best or place not in plain or not beaten(c)]


#: The place of a chain: its request's, and its own among the request's.
Place = tuple[int, int]


def steps_of(values: ValueSet, road: Road) -> tuple[Step, ...]:
    """Return the steps of a chain for values that arrive; those of one word round nothing."""
    out = list[Step]()
    for hop in road.hops:
        held = valueset.representable(values, hop.dst) and not (hop.dst.is_float and hop.clamps and values.inf)
        out.append((hop.dst.name,) if held else (hop.dst.name, hop.effective, str(hop.clamps)))
        values = valueset.cast_to(values, hop.dst, hop.effective, hop.clamps)
    return tuple(out)


class _Chain(NamedTuple):
    """A chain of a request, cut where it passes the last result of another request.

    ``start``: the class of that result (of the request's operand where it passes none); ``steps``: those behind it.
    ``passed``: chains of other requests that are, one behind the other, its beginning.
    """

    asked: Asked
    road: Road
    start: int
    steps: tuple[Step, ...]
    passed: tuple[Place, ...]

    @property
    def behind(self) -> tuple[Hop, ...]:
        """The conversions behind the last result that is passed."""
        return self.road.hops[-len(self.steps) :]


class _Ways:
    """The chains of a region, and which results their ways lead to."""

    def __init__(self, found: Found) -> None:
        self._given = {(i, j): (a, way) for i, (a, some) in enumerate(found) for j, way in enumerate(some)}
        self._whole: dict[tuple[int, tuple[Step, ...]], Place] = {}
        for place, (a, way) in self._given.items():
            if way.road.exact:
                self._whole.setdefault((a.source, way.steps), place)
        self._first: dict[tuple[object, ...], Hop] = {}
        self.chains = {place: self._cut(a, *way) for place, (a, way) in self._given.items()}
        self._leads: dict[tuple[object, ...], set[int]] = {}
        for chain in self.chains.values():
            for count in range(1, len(chain.steps) + 1):
                self._leads.setdefault((chain.start, *chain.steps[:count]), set()).add(chain.asked.result)

    def _cut(self, asked: Asked, road: Road, steps: tuple[Step, ...]) -> _Chain:
        """Cut a chain and take for its beginning, word for word, what others begin with: terms are shared by word."""
        start, passed = asked.source, list[Place]()
        while (place := self._pass(start, steps, asked.result)) is not None:
            other, way = self._given[place]
            start, steps = other.result, steps[len(way.steps) :]
            passed.append(place)
        behind = road.hops[-len(steps) :]
        hops = [hop for place in passed for hop in self._given[place][1].road.hops]
        hops += [self._first.setdefault((start, *steps[: i + 1]), hop) for i, hop in enumerate(behind[:-1])]
        hops.append(behind[-1])
        said = road if all(map(is_, hops, road.hops)) else replace(road, hops=tuple(hops))
        return _Chain(asked, said, start, steps, tuple(passed))

    def _pass(self, start: int, steps: tuple[Step, ...], result: int) -> Place | None:
        for count in range(len(steps) - 1, 0, -1):
            place = self._whole.get((start, steps[:count]))
            if place is not None and self._given[place][0].result not in (start, result):
                return place
        return None

    def own(self, chain: _Chain) -> tuple[Hop, ...]:
        """Return the conversions behind the last result passed that can serve no other result."""
        count, result = 0, chain.asked.result
        while count < len(chain.steps) - 1 and self._leads[(chain.start, *chain.steps[: count + 1])] - {result}:
            count += 1
        return chain.behind[count:]

    def with_passed(self, kept: Iterable[Place]) -> set[Place]:
        """Add the chains that chains pass: without them they would not meet the other requests' results."""
        work = list(kept)
        out = set(work)
        while work:
            for place in self.chains[work.pop()].passed:
                if place not in out:
                    out.add(place)
                    work.append(place)
        return out
