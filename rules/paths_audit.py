"""Auditing roads: every claimed class is checked by running the chains on hostile values.

The proofs in ``paths_proof`` decide; this looks for a mistake in them by other means. Sources of at most 16
bits are run whole, wider ones on special values, ties and grid boundaries of the destination with their
neighbours, and random bit patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from ..ir.codes import Array
from ..ir.convert import ROUND_MODES, all_values, convert, encode, same_bits
from ..ir.dtypes import DTYPES, DType
from ..ir.samples import hostile, special_values
from .paths import Road, roads
from .paths_legal import edges_from
from .target import Target

SATURATIONS = (None, "on", "off")
Request = tuple[DType, DType, str, str | None]


@dataclass
class Audit:
    """What an audit did. ``disagreements`` names every road whose claim is wrong."""

    requests: int = 0
    legal: int = 0
    exact: int = 0
    inexact: int = 0
    not_proved: int = 0
    comparisons: int = 0
    disagreements: list[str] = field(default_factory=list)


def requests(target: Target) -> Iterator[Request]:
    """Yield every pair of different dtypes the target's casts mention, in every mode and saturation."""
    edges = edges_from(target)
    mentioned = {dtype.name for dtype in edges} | {e.dst.name for found in edges.values() for e in found}
    dtypes = [dtype for name, dtype in DTYPES.items() if name in mentioned]
    for src in dtypes:
        for dst in dtypes:
            if src is not dst:
                yield from ((src, dst, mode, word) for mode in ROUND_MODES for word in SATURATIONS)


def audit(target: Target, wanted: Iterable[Request], samples: int) -> Audit:
    """Check every road of the wanted requests, on ``samples`` hostile values each for wide sources."""
    result = Audit()
    for src, dst, mode, saturation in wanted:
        result.requests += 1
        found = roads(target, src, dst, mode, saturation)
        result.legal += bool(found)
        if found:
            array = inputs(src, dst, samples)
            direct = _direct(src, dst, mode, saturation, samples)
            for road in found:
                _check(road, array, direct, result)
    return result


@lru_cache(maxsize=2)
def _direct(src: DType, dst: DType, mode: str, saturation: str | None, samples: int) -> Array:
    clamp = None if saturation is None else saturation == "on"
    return convert(inputs(src, dst, samples), src, dst, mode, clamp)


def _check(road: Road, array: Array, direct: Array, result: Audit) -> None:
    chained = array
    for hop in road.hops:
        chained = convert(chained, hop.src, hop.dst, hop.effective, hop.clamps)
    equal = bool(same_bits(chained, direct, road.dst).all())
    result.comparisons += array.size
    result.exact += road.exact
    result.inexact += not road.exact
    what = f"{road.target}: {road} {road.hops[-1].mode} {road.hops[-1].saturation}"
    if road.exact and not equal:
        result.disagreements.append(f"{what}: claimed exact, but values differ")
    elif not road.exact and road.witness is None:
        result.not_proved += equal
    elif not road.exact and not _differs(road):
        result.disagreements.append(f"{what}: {road.witness!r} does not differ")


def _differs(road: Road) -> bool:
    array = encode(np.array([road.witness]), road.src, "rint")
    direct = road.request.apply(array)
    return not bool(same_bits(road.apply(array), direct, road.dst).all())


@lru_cache(maxsize=2)
def inputs(src: DType, dst: DType, samples: int) -> Array:
    """Return the storage array of source values to run."""
    if src.bits <= 16:
        return all_values(src)
    generator = np.random.default_rng(20260102)
    return np.concatenate([special_values(src), hostile(src, dst, generator, samples)])
