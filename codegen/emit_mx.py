"""Quantisation instructions: block-scaled formats with their workspaces and layouts, per-row integers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from xdsl.ir import Attribute, SSAValue

from ..ir.dtypes import DTYPES, FP4, FP8E4M3FN, FP16, FP32, DType
from ..ir.program import Block, Op, Operand, walk
from ..ir.types import BLOCK_BYTES, TileType
from . import emit_lines, emit_memory, emit_views
from .emit_columns import is_column, line_with, one_number
from .emit_forms import Form
from .emit_names import own_uses
from .emit_state import State, TileRef, buffer_type
from .pto.api import word
from .pto.base import SEGMENTS, segments
from .pto.elements import spell
from .pto.movement import TmovOp

_QUANT_TYPES = {FP8E4M3FN: "MXFP8", FP4: "MXFP4_E2M1"}
#: From this many elements on the assembler's library runs two steps at a time and fills twice the scales.
_UNROLLED = 1024


def quantise_blocks(state: State, s: Op) -> None:
    """``tile.tquant_mx_raw``: ``pto.tquant.mx`` with its four results."""
    source = state.compact(state.turned(state.tile(s.operands[0])))
    axis: int = s.attrs["group_axis"]
    data, exponents = (state.new(r) for r in s.results)
    if axis == 0 and exponents.form.cols != source.form.cols:
        state.fail("the exponents do not have the source's physical columns", "assembler v0.60 wants them equal")
    dtype: DType = s.attrs.get("dtype", FP8E4M3FN)
    if axis == 0 and dtype is FP4 and source.form.dtype is FP16 and source.form.cols * dtype.bits % (8 * BLOCK_BYTES):
        state.fail(f"rows of {source.form.used} FP16 values cannot be quantised to FP4 along axis 0 in assembly",
                   "pto.tquant.mx takes them where the packed rows fill whole 32-byte blocks (assembler v0.60)",
                   "pad them to a multiple of 64 columns (pl.tile.fillpad_expand), or quantise BF16")  # fmt: skip
    groups = exponents.form.rows * exponents.form.used
    least = (0, _scale_room(source, groups)) if axis == 1 else (source.form.cols,) * 2
    one, other = s.operands[1:3]
    # The instruction writes both, so that one tile cannot be the two.
    given = (one, None if getattr(other, "name", None) == getattr(one, "name", "") else other)
    workspaces = [
        _workspace(state, o, replace(exponents.form, dtype=source.form.dtype, cols=0), room)
        for o, room in zip(given, least)
    ]
    attrs: dict[str, Attribute] = {
        "quant_type": word("quant_type", _QUANT_TYPES[dtype]),
        "grpAxis": word("mx_group_axis", f"axis{axis}"),
    }
    if s.attrs.get("scale_alg", "ocp") != "ocp":
        attrs["quantScaleAlg"] = word("quant_scale_alg", s.attrs["scale_alg"])
    outs = [state.rows(data), state.rows(exponents), *workspaces]
    state.b.dps("tquant.mx", [state.rows(source)], outs, attrs)


def _scale_room(source: TileRef, groups: int) -> int:
    """Return the elements a line of scales must have room for (assembler v0.60 verifier)."""
    if source.form.dtype is not FP32:
        return -(-groups // 128) * 128
    size = source.form.rows * source.form.cols
    wanted = groups * 2 if size > _UNROLLED and size % 256 == 0 else groups
    return -(-wanted // 64) * 64


def _workspace(state: State, given: Operand, form: Form, room: int) -> SSAValue:
    """Return a workspace: the given tile where it is large enough, else one of its own."""
    unit = form.unit
    cols = -(-max(form.used, room) // unit) * unit
    ref = None if given is None else state.tile(given)
    if ref is not None and not ref.alias and ref.form.rows == form.rows and ref.form.cols >= cols:
        return state.rows(ref)
    return state.allot(replace(form, cols=cols), (form.rows, form.used), False, None).value


def to_boxes(state: State, s: Op) -> None:
    """``tile.tmov_x2zz``: ``pto.tmov`` with a scratch tile."""
    source, tmp = state.compact(state.turned(state.tile(s.operands[0]))), state.tile(s.operands[1])
    if source.form.rows > 1 and not source.form.contiguous:
        state.fail("the exponents have gaps between their rows", "rows are padded to whole 32-byte blocks",
                   "keep them on one line, as pl.tile.tquant_mx_raw gives them")  # fmt: skip
    result = state.new(s.result)
    properties: dict[str, Attribute] = {
        SEGMENTS: segments(1, 1, 1, 0),
        "grpAxis": word("mx_group_axis", f"axis{s.attrs['group_axis']}"),
    }
    operands = [state.rows(source), state.rows(result), state.rows(tmp)]
    state.b.add(TmovOp.create(operands=operands, properties=properties))


# -- names for the same bytes ----------------------------------------------------------------------------


def load(state: State, s: Op) -> None:
    """``tile.load``; bytes read as one plain dtype only are loaded as that: nothing retypes them later."""
    name = s.result.name
    other = state.loaded_as.get(name)
    if other is None:
        emit_memory.load(state, s)
        return
    form = state.plan[name]
    state.plan.forms[name] = replace(form, dtype=other)
    emit_memory.load(state, s)
    ref = state.tiles.pop(name)
    state.relabelled[name] = state.derived(ref, form, ref.valid, ref.value, ref.upright, ref.strided)


def loads_as(block: Block) -> dict[str, DType]:
    """Return the loaded tiles of dtypes without arithmetic that are stored or viewed as one plain dtype, no more."""
    loaded = {
        s.result.name for s in walk(block)
        if isinstance(s, Op) and s.name == "tile.load" and cast(TileType, s.result.type).dtype.is_coded
    }  # fmt: skip
    views: dict[str, set[DType | None]] = {}
    for s in walk(block) if loaded else ():
        for name in loaded.intersection(own_uses(s)):
            if isinstance(s, Op) and s.name == "tile.store":
                continue
            view = isinstance(s, Op) and s.name == "tile.reinterpret_view"
            dtype = cast(TileType, s.result.type).dtype if view else None  # type: ignore[union-attr]
            views.setdefault(name, set()).add(None if dtype is None or dtype.is_coded else dtype)
    return {name: d for name, found in views.items() if len(found) == 1 and (d := next(iter(found))) is not None}


def reinterpret(state: State, s: Op) -> None:
    """``tile.reinterpret_view``; what the assembler cannot retype keeps its value and can only be stored."""
    name = s.operands[0].name  # type: ignore[union-attr]
    source, result = cast(TileType, s.operands[0].type), cast(TileType, s.result.type)  # type: ignore[union-attr]
    if name in state.lines:
        emit_lines.reinterpret(state, s, state.lines[name])
        return
    if not (source.dtype.is_coded or result.dtype.is_coded):
        emit_views.reinterpret(state, s)
        return
    ref = state.relabelled.get(name) or state.tile(s.operands[0])
    made = state.derived(ref, replace(ref.form, dtype=result.dtype), ref.valid, ref.value, ref.upright, ref.strided)
    if result.dtype is _held(ref):
        state.tiles[s.result.name] = made
    else:
        state.relabelled[s.result.name] = made


def _held(ref: TileRef) -> DType:
    """Return the dtype of the value a tile is, whatever it is taken for."""
    spelled = spell(ref.value.type.element)  # type: ignore[attr-defined]
    return next(d for d in DTYPES.values() if d.pto == spelled)


def transpose_view(state: State, s: Op) -> None:
    """``tile.transpose_view``: the same boxes under swapped dimensions."""
    name = s.operands[0].name  # type: ignore[union-attr]
    ref = state.relabelled.get(name)
    plain = ref is None
    ref = ref or state.tile(s.operands[0])
    form = state.plan[s.result.name]
    if form.config is None:
        state.fail("only tiles that are laid out in boxes can be turned by name", hint="use pl.tile.transpose")
    valid = state.valid_of(cast(TileType, s.result.type), form)
    held = replace(form, dtype=ref.form.dtype) if plain else form
    type_ = buffer_type(replace(held, dtype=_held(ref)), valid)
    made = state.derived(ref, held, valid, state.reshape(ref.value, type_))
    (state.tiles if plain else state.relabelled)[s.result.name] = made


def store(state: State, s: Op) -> None:
    """``tile.store``, also of a tile the assembler knows under another element type of the same width."""
    o = s.operands[0]
    name = getattr(o, "name", "")
    if name in state.lines:
        emit_lines.store(state, s, state.lines[name])
        return
    ref = state.relabelled.get(name) or state.tiles.get(name)
    if ref is not None and ref.form.config is not None and ref.form.config[1] != "none_box":
        state.fail(
            f"a {o.type} laid out in boxes cannot be stored",  # type: ignore[union-attr]
            "the assembler stores tiles that lie row by row only, and nothing brings boxes back to rows (v0.60)",
            "use scales for nothing but stores into tensors that lie row by row, and store the exponents as they are "
            "before pl.tile.tmov_x2zz: the matrix unit's order is for tiles that stay in the kernel",
        )
    if name in state.relabelled:
        state.tiles[name] = state.relabelled[name]
        emit_memory.store(state, s)
        del state.tiles[name]
    else:
        emit_memory.store(state, s)


# -- integers --------------------------------------------------------------------------------------------


def quantise_rows(state: State, s: Op) -> None:
    """``tile.quant``: ``pto.tquant`` with one scale, and maybe one offset, per row.

    Of a column the products and sums are made in lines, which rounds as the instruction does, and the instruction
    converts them: times one, and plus zero, they stay what they are.
    """
    source = state.turned(state.tile(s.operands[0]))
    columns = [state.tile(o) for o in s.operands[1:3] if o is not None]
    result = state.new(s.result)
    outs = [state.rows(result)]
    given = None if s.operands[3] is None else state.tile(s.operands[3])
    if given is not None and (state.target.arch == "a5" or given.form.cols == source.form.cols):
        outs.append(state.rows(given))
    elif state.target.arch != "a5":
        # The verifier wants the source's physical shape, which a tile of the same type need not have.
        outs.append(state.allot(source.form.unpadded(), source.valid, False, None).value)
    kind = "INT8_ASYM" if len(columns) == 2 else "INT8_SYM"
    if is_column(source):
        scaled = state.allot(source.form.unpadded(), source.valid, False, None).value
        line_with(state, list(zip(("tmul", "tadd"), columns)), state.rows(source), scaled)
        ins = [scaled, *(one_number(state, n) for n, _ in zip((1.0, 0.0), columns))]
    else:
        ins = [state.rows(source), *(state.upright(c) if c.form.column else state.rows(c) for c in columns)]
    state.b.dps("tquant", ins, outs, {"quant_type": word("quant_type", kind)})


HANDLERS: dict[str, Callable[[State, Op], None]] = {
    "tile.tquant_mx_raw": quantise_blocks,
    "tile.tmov_x2zz": to_boxes,
    "tile.load": load,
    "tile.reinterpret_view": reinterpret,
    "tile.transpose_view": transpose_view,
    "tile.store": store,
    "tile.quant": quantise_rows,
}
