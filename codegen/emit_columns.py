"""Columns beside instructions that work row by row: a column is kept as one line, which is one row to them.

Where a value per row is applied to rows of one element, it is applied element by element, in lines. Where rows are
kept apart, the column is spread over rows of one block each, with one valid element.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ..ir.dtypes import FP32
from .emit_forms import Form
from .emit_scalars import constant
from .emit_state import State, TileRef


def is_column(ref: TileRef) -> bool:
    """Return whether the rows of a tile have one element each, and are more than one."""
    return ref.form.column and ref.form.used > 1


def line_with(state: State, steps: Sequence[tuple[str, TileRef]], source: SSAValue, out: SSAValue) -> None:
    """Append instructions on lines, the first on ``source``, the others on ``out``, which all write."""
    for mnemonic, other in steps:
        if not other.form.column:
            state.fail("a value per row beside a column cannot be written as assembly",
                       "the column is stored as one line, and the values are not",
                       "give both the default layout")  # fmt: skip
        state.b.dps(mnemonic, [source, state.rows(other)], [out])
        source = out


def one_number(state: State, number: float) -> SSAValue:
    """Return a column of one FP32 element: what an instruction that takes a value per row takes for a line."""
    form = Form(FP32, 1, 1, column=True, cols=8)
    ref = state.allot(form, (1, 1), False, None)
    state.b.dps("texpands", [constant(state, number, FP32)], [ref.value])
    return state.upright(ref)


def spread(state: State, column: TileRef) -> TileRef:
    """Return a column as rows of one block each, of which one element is valid."""
    form = Form(column.form.dtype, column.form.used, 1, cols=column.form.unit)
    made = state.allot(form, (column.valid[1], 1), False, None)
    state.b.dps("trowexpand", [state.upright(column)], [made.value])
    return made


def by_rows(state: State, ref: TileRef) -> TileRef:
    """Return a tile row-major and row by row: a column spread, others under their row-major name."""
    return spread(state, ref) if is_column(ref) else state.turned(ref)
