"""Gather, scatter and sorting instructions, and those that gather from or scatter to global memory.

Index tiles count elements of the language's tile, row by row, so the tile they point into must lie in memory
without gaps between its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, IntegerType, StringAttr, VectorType, i32
from xdsl.ir import Attribute, SSAValue

from ..ir.dtypes import INT32, UINT32
from ..ir.ops.gather import PATTERNS
from ..ir.ops.select import COMPARISONS
from ..ir.program import Op, Operand
from ..ir.types import TensorType, TileType
from .emit_columns import by_rows, is_column
from .emit_forms import Form
from .emit_memory import partition, signless, tensor_of
from .emit_scalars import scalar_operand
from .emit_scopes import Extent
from .emit_special import over
from .emit_state import State, TileRef
from .pto import arith
from .pto.api import word
from .pto.base import SEGMENTS, segments

_I16 = IntegerType(16)
_OOB = ("undefined", "clamp", "wrap", "zero")


def dense(state: State, o: Operand, what: str) -> TileRef:
    """Return a tile whose rows follow one another; raises TG023 when they are padded."""
    ref = state.compact(state.turned(state.tile(o)))
    t = cast(TileType, o.type)  # type: ignore[union-attr]
    if not ref.form.contiguous:
        state.fail(
            f"positions in {what}, a {t}, are not positions in memory",
            f"its rows are padded to {ref.form.cols} elements",
            "use column counts that fill 32-byte blocks in every dtype the tile is cast to",
        )
    return ref


def gather(state: State, s: Op) -> None:
    """``tile.gather``: by position."""
    source, index = dense(state, s.operands[0], "the source"), state.compact(state.turned(state.tile(s.operands[1])))
    result = state.new(s.result)
    operands = [source.value, state.rows(result), state.rows(index)]
    sizes = [1, 1, 0, 1, 0, 0]
    if state.target.arch != "a5":
        # The verifier wants a scratch tile of the indices' type and extents.
        operands.append(state.allot(index.form.unpadded(), index.valid, False, None).value)
        sizes[4] = 1
    state.b.op("pto.tgather", operands, properties={SEGMENTS: segments(*sizes)})


def gather_blocks(state: State, s: Op) -> None:
    """``tile.gatherb``: 32-byte blocks by byte offset."""
    source, offsets = dense(state, s.operands[0], "the source"), state.turned(state.tile(s.operands[1]))
    result = state.new(s.result)
    value = state.retyped(source.value, result.form.dtype.pto) if _same_width(source, result) else source.value
    state.b.dps("tgatherb", [value, state.rows(offsets)], [state.rows(result)])


def _same_width(a: TileRef, b: TileRef) -> bool:
    return a.form.dtype.bits == b.form.dtype.bits


def _mask_words(s: Op) -> dict[str, Attribute]:
    pattern = PATTERNS[s.attrs["mask_pattern"]][0]
    return {"maskPattern": word("mask_pattern", pattern), "axis": StringAttr("row")}


def gather_mask(state: State, s: Op) -> None:
    """``tile.gather_mask``: one column of every group."""
    source = state.turned(state.tile(s.operands[0]))
    result = state.new(s.result)
    value = state.retyped(state.rows(source), result.form.dtype.pto)
    properties = {**_mask_words(s), SEGMENTS: segments(1, 1, 0, 0, 0, 0)}
    state.b.op("pto.tgather", [value, state.rows(result)], properties=properties)


def gather_compare(state: State, s: Op) -> None:
    """``tile.gather_compare``: the columns of matching elements, and their number."""
    source = by_rows(state, state.tile(s.operands[0]))
    value = scalar_operand(state, s.operands[1], source.form.dtype)
    tmp = state.rows(state.tile(s.operands[2]))
    found, count = (signless(state, state.new(r)) for r in s.results)
    properties: dict[str, Attribute] = {
        "cmpMode": word("cmp", COMPARISONS[s.attrs.get("cmp_mode", 0)]),
        "offset": IntegerAttr(s.attrs.get("offset", 0), i32),
        SEGMENTS: segments(1, 1, 1, 0, 1, 1),
    }
    state.b.op("pto.tgather", [state.rows(source), found, count, tmp, value], properties=properties)


def scatter(state: State, s: Op) -> None:
    """``tile.scatter``: by position, over the target or a copy of it."""
    given = [state.tile(o) for o in s.operands[1:3]]
    target = dense(state, s.operands[0], "the target")
    # A column is one line, which must not be longer than the target's rows; else it is spread over rows.
    lines = not all(is_column(ref) for ref in given) or _at_most(given[0].valid[1], target.valid[1])
    source, index = (state.compact(state.turned(ref) if lines else by_rows(state, ref)) for ref in given)
    if not all(map(_at_most, source.valid, target.valid)):
        state.fail(
            f"a {s.operands[1].type} cannot be scattered into a {s.operands[0].type} in assembly",  # type: ignore[union-attr]
            "pto.tscatter takes sources that are no larger than the target along either axis (assembler v0.60)",
            "reshape both to fit, or scatter the source in parts",
        )
    result = over(state, s, 0)
    state.b.op("pto.tscatter", [state.rows(source), state.rows(result), state.rows(index)])


def _at_most(extent: Extent, limit: Extent) -> bool:
    return not isinstance(extent, int) or not isinstance(limit, int) or extent <= limit


def scatter_mask(state: State, s: Op) -> None:
    """``tile.scatter_mask``: into one column of every group."""
    source, result = state.turned(state.tile(s.operands[1])), state.new(s.result)
    state.b.op("pto.tscatter", [state.rows(source), state.rows(result)], properties=_mask_words(s))


def side_by_side(state: State, s: Op) -> None:
    """``tile.concat_idx``: rows of which only so many bytes count."""
    # The bits are only moved, so that the signed names do.
    sources = [signless(state, by_rows(state, state.tile(o))) for o in s.operands[:2]]
    lengths = [_spread(state, state.tile(o)) for o in s.operands[2:4]]
    state.b.dps("tconcatidx", [*sources, *lengths], [signless(state, state.new(s.result))])


def _spread(state: State, ref: TileRef) -> SSAValue:
    """Return numbers by row as a row-major tile: a column is spread over rows of one block each."""
    if not ref.form.column:
        return state.rows(ref)
    unit = ref.form.unit
    form = Form(ref.form.dtype, ref.form.used, unit, cols=unit)
    wide = state.allot(form, (ref.valid[1], unit), False, None).value
    state.b.dps("trowexpand", [state.upright(ref)], [wide])
    return wide


# -- sorting ---------------------------------------------------------------------------------------------


def sort32(state: State, s: Op) -> None:
    """``tile.sort32``: pairs of blocks of 32; a ragged end takes a scratch tile."""
    source, index = (by_rows(state, state.tile(o)) for o in s.operands[:2])
    result = state.new(s.result)
    ins = [state.rows(source), state.retyped(state.rows(index), UINT32.pto)]
    cols = source.valid[1]
    if not isinstance(cols, int) or cols % 32:
        width = -(-source.form.cols // 32) * 32
        form = Form(source.form.dtype, source.form.rows, width, cols=width)
        ins.append(state.allot(form, (form.rows, width), False, None).value)
    state.b.dps("tsort32", ins, [state.rows(result)])


def merge(state: State, s: Op) -> None:
    """``tile.mrgsort`` and its two forms."""
    lists = [o for o in s.operands[:4] if isinstance(getattr(o, "type", None), TileType)]
    block = {"tile.mrgsort": s.operands[-1], "tile.mrgsort_format1": s.operands[-1]}.get(s.name)
    tiles = [state.rows(state.compact(state.tile(o))) for o in (lists[:1] if block is not None else lists)]
    result = state.new(s.result)
    if block is not None:
        operands = [tiles[0], scalar_operand(state, block, INT32), state.rows(result)]
        state.b.op("pto.tmrgsort", operands, properties={SEGMENTS: segments(1, 1, 1, 0, 0)})
        return
    tmp = state.allot(result.form.unpadded(), result.valid, False, None).value
    properties: dict[str, Attribute] = {SEGMENTS: segments(len(tiles), 0, 1, 1, 1)}
    properties["exhausted"] = IntegerAttr(int(bool(s.attrs.get("exhausted"))), IntegerType(1))
    state.b.op("pto.tmrgsort", [*tiles, state.rows(result), tmp, _counts(state)], properties=properties)


def _counts(state: State) -> SSAValue:
    """Return a vector that takes how many pairs of each list were merged."""
    t = VectorType(_I16, [4])
    zeros = DenseIntOrFPElementsAttr.from_list(t, [0, 0, 0, 0])
    op = arith.ConstantOp.create(result_types=[t], properties={"value": zeros})
    return state.b.add(op).results[0]


# -- global memory ---------------------------------------------------------------------------------------


def _whole(state: State, o: Operand) -> SSAValue:
    tensor = tensor_of(state, o)
    assert isinstance(getattr(o, "type", None), TensorType)
    return partition(state, tensor, (0,) * len(tensor.shape), tensor.shape, f"{tensor.name}_table")


def gather_rows(state: State, s: Op) -> None:
    """``tile.mgather``: rows or elements of a tensor by index."""
    index = state.turned(state.tile(s.operands[1]))
    if cast(TensorType, s.operands[0].type).shape[-1] == 1:  # type: ignore[union-attr]
        state.fail("nothing can be gathered from a tensor of one column in assembly",
                   "pto.mgather takes tensors of layout ND, which a column is not (assembler v0.60)",
                   "make it one row, and gather with coalesce='elem'")  # fmt: skip
    result = state.new(s.result)
    how, outside = s.attrs.get("coalesce", "row"), s.attrs.get("gather_oob", "undefined")
    attrs: dict[str, Attribute] = {
        "coalesce": word("coalesce", ("row", "elem")[how] if isinstance(how, int) else how),
        "gatherOob": word("gather_oob", _OOB[outside] if isinstance(outside, int) else outside),
    }
    state.b.dps("mgather", [_whole(state, s.operands[0]), state.rows(index)], [state.rows(result)], attrs)


def scatter_elements(state: State, s: Op) -> None:
    """``tile.mscatter``: elements of a tile to a tensor by index."""
    source, index = (state.rows(state.turned(state.tile(o))) for o in s.operands[:2])
    attrs: dict[str, Attribute] = {"coalesce": word("coalesce", "elem")}
    state.b.dps("mscatter", [source, index], [_whole(state, s.operands[2])], attrs)
    for r in s.results:
        state.tensors[r.name] = tensor_of(state, s.operands[2])


HANDLERS: dict[str, Callable[[State, Op], None]] = {
    "tile.gather": gather,
    "tile.gatherb": gather_blocks,
    "tile.gather_mask": gather_mask,
    "tile.gather_compare": gather_compare,
    "tile.scatter": scatter,
    "tile.scatter_mask": scatter_mask,
    "tile.concat_idx": side_by_side,
    "tile.sort32": sort32,
    "tile.mrgsort": merge,
    "tile.mrgsort_format1": merge,
    "tile.mrgsort_format2": merge,
    "tile.mgather": gather_rows,
    "tile.mscatter": scatter_elements,
}
