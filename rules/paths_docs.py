"""The tables of ``docs/casts.md``, made from the target files and the proofs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from ..ir.diagnostics import TileggError
from ..ir.dtypes import DTYPES, DType
from .paths import Road
from .paths_legal import edges_from, listed
from .paths_rank import RankedRoad, best_roads
from .target import Target, load_target

#: The modes whose roads are shown: the default one, and the one most programs ask for.
SHOWN_MODES = ("round", "rint")
_PROOF_MODES = ("round", "rint", "floor", "ceil", "trunc")


def docs_table(target: Target) -> str:
    """Return the Markdown of a target: every legal pair with its hop count, best roads, class and error."""
    pairs = [(src, dst) for src in _sources(target) for dst in DTYPES.values() if dst is not src]
    return "\n".join(
        [
            f"## {target.title}",
            "",
            *_table(target, [pair for pair in pairs if listed(target, *pair)]),
            "",
            f"### Further pairs on {target.name}",
            "",
            "Some type on the way does not hold every value of the destination; the pair is legal because",
            "an exact chain is proved.",
            "",
            *_further(target, [pair for pair in pairs if not listed(target, *pair)]),
            "",
        ]
    )


def _sources(target: Target) -> list[DType]:
    edges = edges_from(target)
    return [dtype for dtype in DTYPES.values() if dtype in edges]


def _ranked(target: Target, src: DType, dst: DType, mode: str) -> tuple[RankedRoad, ...]:
    try:
        return best_roads(target, src, dst, mode, objective="instructions")
    except TileggError:
        return ()


def _best(target: Target, src: DType, dst: DType, mode: str) -> RankedRoad | None:
    return next(iter(_ranked(target, src, dst, mode)), None)


def _table(target: Target, pairs: list[tuple[DType, DType]]) -> Iterator[str]:
    yield "| from | to | casts | default mode `round` | mode `rint` |"
    yield "|---|---|---|---|---|"
    for src, dst in pairs:
        ranked = [_ranked(target, src, dst, mode) for mode in SHOWN_MODES]
        cells = [_cell(found[0].road) + _exact_instead(found) if found else "none" for found in ranked]
        if cells[0] == cells[1]:
            cells[1] = "the same"
        count = min(found[0].road.instructions for found in ranked if found)
        yield f"| {src.name} | {dst.name} | {count} | {cells[0]} | {cells[1]} |"


def _cell(road: Road) -> str:
    if len(road.hops) == 1:
        return f"{'native' if road.native else 'composed'}, {_accuracy(road)}"
    text = " → ".join(
        hop.dst.name + (f" ({hop.mode})" if hop.mode != road.hops[-1].mode else "") for hop in road.hops[:-1]
    )
    return f"via {text}: {_accuracy(road)}"


def _exact_instead(found: tuple[RankedRoad, ...]) -> str:
    """Name the exact road with composed conversions that stands beside an inexact one of native casts."""
    exact = next((r.road for r in found if r.road.exact), None)
    if found[0].road.exact or exact is None or exact.native:
        return ""
    return f"; {exact.instructions} instructions, {_cell(exact) if len(exact.hops) > 1 else 'exact'}"


def _accuracy(road: Road) -> str:
    if road.exact:
        return "exact"
    if road.proof.startswith("not proved"):
        return road.proof
    return str(road.error)


def _further(target: Target, pairs: list[tuple[DType, DType]]) -> Iterator[str]:
    yield "| from | to | casts | road | modes | proof |"
    yield "|---|---|---|---|---|---|"
    for src, dst in pairs:
        roads = {mode: _best(target, src, dst, mode) for mode in _PROOF_MODES}
        proved = {mode: found.road for mode, found in roads.items() if found is not None}
        if not proved:
            continue
        road = next(iter(proved.values()))
        modes = "all" if len(proved) == len(_PROOF_MODES) else ", ".join(proved)
        between = " → ".join(hop.dst.name for hop in road.hops[:-1])
        yield f"| {src.name} | {dst.name} | {road.instructions} | via {between} | {modes} | {road.proof} |"


def updated(text: str) -> str:
    """Return a document with the tables between ``<!-- casts NAME -->`` and ``<!-- end -->`` made anew."""
    pieces = text.split("<!-- casts ")
    for i, piece in enumerate(pieces[1:], 1):
        name, rest = piece.split(" -->\n", 1)
        after = rest.split("<!-- end -->", 1)[1]
        pieces[i] = f"{name} -->\n{docs_table(load_target(name))}<!-- end -->{after}"
    return "<!-- casts ".join(pieces)


def main(path: str) -> None:
    """Write the tables of a document anew, in place."""
    document = Path(path)
    document.write_text(updated(document.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
