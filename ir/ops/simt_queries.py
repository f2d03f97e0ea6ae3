"""SIMT queries: what a thread can ask about itself, its block, the grid, its warp and the clock.

Names and widths: assembler v0.60 (every query gives an i32, ``get_clock64`` an i64).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from .. import valueset as vs
from ..classification import Classification
from ..op import Env, op
from ._scalar_result import fixed

FAMILY = "SIMT queries"
_WORD = (1 << 32) - 1


def _query(name: str, dtype: str, doc: str, ask: Callable[[Any], Any], bounds: tuple[int, int], effect: str) -> None:
    def meaning(*, env: Env) -> Any:
        return np.broadcast_to(np.asarray(ask(env), np.int64), (env.threads.count,))  # type: ignore[attr-defined]

    meaning.__doc__ = doc
    record = Classification(
        "H", "simt", "keep SIMT-only", (), (), "hivm", "simt", f"pto.{name}", {"any": f"llvm.hivm.{name}"}
    )
    decl = op(f"pto.{name}", result=fixed(dtype), family=FAMILY, effect=effect, scalar=record)(meaning)

    def facts(*, call: vs.Call) -> vs.ValueSet:
        return vs.interval(*bounds, 0)

    decl.facts(facts)


def _of_lane(mask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda env: mask(env.threads.lane)


def _declare() -> None:
    most = (0, (1 << 31) - 1)
    for axis, letter in enumerate("xyz"):
        for stem, what, ask in (
            ("tid", "coordinate of the thread in its block", lambda e, a=axis: e.threads.ids[a]),
            ("block_dim", "threads of a block", lambda e, a=axis: e.threads.dims[a]),
            ("block_idx", "coordinate of the block in the grid", lambda e, a=axis: e.threads.block[a]),
            ("grid_dim", "blocks of the grid", lambda e, a=axis: e.threads.grid[a]),
        ):
            _query(f"get_{stem}_{letter}", "INT32", f"The {what} along {letter}.", ask, most, "none")
    _query("get_laneid", "INT32", "The lane in the warp, 0 to 31.", lambda e: e.threads.lane, (0, 31), "none")
    _query("get_veccoreid", "INT32", "The vector core.", lambda e: 0, most, "none")
    for name, dtype in (("get_clock32", "UINT32"), ("get_clock64", "INT64")):
        bounds = (0, _WORD) if dtype == "UINT32" else (-(1 << 63), (1 << 63) - 1)
        doc = "A counter of cycles; here of statements run."
        _query(name, dtype, doc, lambda e: e.state.clock, bounds, "read")
    masks: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
        ("eq", "its own", lambda lane: 1 << lane),
        ("lt", "lower", lambda lane: (1 << lane) - 1),
        ("le", "lower and its own", lambda lane: (2 << lane) - 1),
        ("ge", "higher and its own", lambda lane: _WORD & ~((1 << lane) - 1)),
        ("gt", "higher", lambda lane: _WORD & ~((2 << lane) - 1)),
    )
    for word, which, mask in masks:
        doc = f"A mask of the lanes of the warp that are {which}."
        _query(f"get_lanemask_{word}", "UINT32", doc, _of_lane(mask), (0, _WORD), "none")


_declare()
