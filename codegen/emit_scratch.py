"""Scratch tiles of instructions: what the target says, in a type the assembler's verifier takes."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ..ir.dtypes import DTYPES, UINT8, DType
from ..ir.types import BLOCK_BYTES
from ..rules.cost import Instr
from ..rules.target import ScratchPlan
from .emit_forms import Form
from .emit_state import State, TileRef

#: Instructions that always get a scratch tile: older assemblers demand the operand (assembler v0.27).
ALWAYS = frozenset(
    {"tsel", "tsels", "txor", "txors", "trem", "trems", "tprelu", "trowsum", "trowmax", "trowmin", "trowprod"}
)
#: Bytes for a row expand over a number of rows that is not known (assembler v0.60 verifier).
_UNKNOWN_ROWS_BYTES = 8192
#: Instructions whose scratch tile has the result's own type (assembler v0.60 verifier).
_LIKE_RESULT = frozenset({"txor", "txors"})
#: Instructions whose scratch tile has the source's type.
_LIKE_SOURCE = frozenset({"trowargmax", "trowargmin"})


def scratch_tile(
    state: State, instr: Instr, sources: list[TileRef], result: TileRef, given: TileRef | None
) -> SSAValue | None:
    """Return the scratch tile of an instruction: the given one, else what the target asks for, else ``None``."""
    if given is not None and (instr.op not in _LIKE_RESULT or _alike(given, result)):
        return state.rows(given)
    plan = state.target.scratch(instr)
    if plan is None and instr.op not in ALWAYS:
        return None
    if instr.op in _LIKE_RESULT and (plan is None or plan.required):
        return state.allot(result.form.unpadded(), result.valid, False, None).value
    if instr.op in _LIKE_SOURCE:
        return state.allot(sources[0].form.unpadded(), sources[0].valid, False, None).value
    form = _form(instr, plan, sources, result)
    return state.allot(form, (form.rows, form.cols), False, None).value


def _alike(given: TileRef, result: TileRef) -> bool:
    """Return whether a scratch tile has the result's type: of a mask no tile has that the program made."""
    return (given.form.dtype, given.valid, given.form.cols) == (result.form.dtype, result.valid, result.form.cols)


def _form(instr: Instr, plan: ScratchPlan | None, sources: list[TileRef], result: TileRef) -> Form:
    """Return the tile of a plan, or the smallest one."""
    if plan is None:
        return _line(UINT8 if instr.op in ("tsel", "tsels") else sources[0].form.dtype, 1)
    dtype, rows, cols = DTYPES[plan.dtype], plan.rows, plan.cols
    if instr.op.startswith("trowexpand"):
        # The same bytes, counted in the result's dtype.
        size = plan.bytes if isinstance(result.valid[0], int) else max(plan.bytes, _UNKNOWN_ROWS_BYTES)
        dtype, rows, cols = result.form.dtype, 1, 8 * size // result.form.dtype.bits
    elif instr.op in ("trem", "trems"):
        rows, cols = max(rows, 2 if instr.op == "trem" else 1), max(cols, result.form.cols)
    return _line(dtype, cols, rows)


def _line(dtype: DType, cols: int, rows: int = 1) -> Form:
    unit = BLOCK_BYTES * 8 // dtype.bits
    width = -(-cols // unit) * unit
    return Form(dtype, rows, width, cols=width)
