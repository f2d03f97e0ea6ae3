"""Work on packed predicates: their bytes, read two at a time, since bitwise work may exist on 16-bit lanes only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.ir import SSAValue

from ..ir.dtypes import UINT16
from ..ir.program import Op
from .emit_state import State
from .pto.api import TileBufType, element
from .pto.types import shared_tile


def halfwords(state: State, value: SSAValue) -> SSAValue:
    """Return a mask under 16-bit elements: the valid bytes rounded up to pairs, or all where they are not known."""
    assert isinstance(value.type, TileBufType)
    spec = value.type.data
    rows, cols = spec.valid_rows, spec.valid_cols
    rows = rows if isinstance(rows, int) and rows >= 0 else spec.rows
    cols = (cols + 1) // 2 if isinstance(cols, int) and cols >= 0 else spec.cols // 2
    made = replace(spec, element=element(UINT16.pto), cols=spec.cols // 2, valid_rows=rows, valid_cols=cols)
    return state.reshape(value, shared_tile(made))


def invert(state: State, s: Op) -> None:
    """``tile.mask_not``."""
    source = state.tile(s.operands[0])
    result = state.new(s.result, valid=source.valid)
    state.b.dps("tnot", [halfwords(state, state.rows(source))], [halfwords(state, state.rows(result))])


HANDLERS: dict[str, Callable[[State, Op], None]] = {"tile.mask_not": invert}
