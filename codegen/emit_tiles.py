"""Tile instructions: operands in the assembler's order, views they want, attributes and scratch tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from xdsl.dialects.builtin import BoolAttr, IntegerType
from xdsl.ir import Attribute, SSAValue

from ..extract.footprint import with_fitting_scratch
from ..extract.instructions import row_form
from ..ir.dtypes import BF16, FP32, INT32
from ..ir.op import OPS, Kind, OpParam
from ..ir.ops.select import COMPARISONS
from ..ir.program import Op
from ..ir.types import TileType
from ..rules.cost import Instr
from .emit_columns import by_rows, spread
from .emit_forms import PADS, Form
from .emit_memory import signless
from .emit_scalars import scalar_operand
from .emit_scratch import scratch_tile
from .emit_state import State, TileRef, buffer_type
from .emit_views import as_line, reshape
from .pto.api import word
from .pto.families import DPS_OPS

Attrs = dict[str, Attribute]
_TRUE = BoolAttr(True, IntegerType(1))
#: Instructions whose tiles must have equal physical shapes, which strided windows have not.
_EQUAL_SHAPES = frozenset({"tcmp", "tprelu"})
#: Instructions that the assembler verifies but has no lowering for (assembler v0.60, tried).
_NO_BACKEND = frozenset({"taddrelu"})
#: Operations whose scalar is the instruction's first operand.
_SCALAR_FIRST = frozenset({"tile.rdivs"})
_PRECISION = {"tdiv": "div", "tlog": "log", "trecip": "recip", "trsqrt": "rsqrt", "tpow": "pow", "tpows": "pow"}
#: What the assembler takes in the precise form only (assembler v0.60).
_PRECISE_ONLY = frozenset({("tpow", BF16), ("tpows", BF16)})


def instr(mnemonic: str, sources: list[TileRef], form: Form, attrs: tuple[tuple[str, object], ...] = ()) -> Instr:
    """Return an instruction as targets see it; dynamic valid extents count as the physical ones."""
    shape = sources[0] if sources else None
    rows, cols, phys = form.rows, form.used, form.cols
    if shape is not None:
        rows, cols, phys = shape.form.rows, shape.form.used, shape.form.cols
        rows = shape.valid[0] if isinstance(shape.valid[0], int) else rows
        cols = shape.valid[1] if isinstance(shape.valid[1], int) and not shape.form.mask else cols
    names = tuple(r.form.dtype.name for r in sources) + (form.dtype.name,)
    return Instr(mnemonic, names, rows, cols, phys, attrs)


def operands_of(
    state: State, s: Op, params: tuple[OpParam, ...], mnemonic: str
) -> tuple[list[SSAValue], list[TileRef], TileRef | None]:
    """Return the operands as row-major tiles and scalars in the declared order, the tiles, and a given scratch."""
    ins: list[SSAValue] = []
    tiles: list[TileRef] = []
    scratch: TileRef | None = None
    for p, o in zip(params, s.operands):
        if p.kind is Kind.SCRATCH:
            scratch = None if o is None else state.tile(o)
        elif p.kind is Kind.SCALAR:
            dtype = tiles[-1].form.dtype if tiles else cast(TileType, s.result.type).dtype
            ins.append(scalar_operand(state, o, FP32 if mnemonic == "tlrelu" else dtype))
        elif p.kind is Kind.DIMS:
            continue
        else:
            ref = state.tile(o)
            if mnemonic in _EQUAL_SHAPES:
                ref = state.compact(ref)
            tiles.append(ref)
            ins.append(state.rows(ref))
    return ins, tiles, scratch


def elementwise(state: State, s: Op) -> None:
    """Any operation whose result is like its operands: ``pto.NAME ins(...) outs(...)``."""
    decl = OPS[s.name]
    if decl.pto in _NO_BACKEND:
        state.fail(f"{s.name} cannot be written as assembly", f"the assembler reads pto.{decl.pto} but cannot lower it")
    if decl.pto not in DPS_OPS or len(s.results) != 1:
        state.fail(f"{s.name} cannot be written as assembly", f"the emitter has no form for pto.{decl.pto}")
    assert decl.pto is not None
    ins, tiles, scratch = operands_of(state, s, decl.operand_params, decl.pto)
    if s.name in _SCALAR_FIRST:
        ins.reverse()
    form = state.plan[s.result.name]
    if not tiles or any((t.form.rows, t.form.column) != (form.rows, form.column) for t in tiles):
        state.fail(f"{s.name} cannot be written as assembly", "its tiles differ in shape")
    result = state.new(s.result, valid=tiles[0].valid if tiles[0].form.mask else None)
    attrs: Attrs = {}
    if s.attrs.get("high_precision") or (decl.pto, form.dtype) in _PRECISE_ONLY:
        attrs["precisionType"] = word(f"{_PRECISION[decl.pto]}_precision", "high_precision")
    words = (("precision", "high"),) if attrs else ()
    finish(state, decl.pto, ins, tiles, scratch, result, attrs, words)


def finish(
    state: State, mnemonic: str, ins: list[SSAValue], tiles: list[TileRef], scratch: TileRef | None,
    result: TileRef, attrs: Attrs, words: tuple[tuple[str, object], ...] = (), upright: bool = False,
) -> None:  # fmt: skip
    """Append the instruction, with its scratch tile where it takes one."""
    tmp = scratch_tile(state, instr(mnemonic, tiles, result.form, words), tiles, result, scratch)
    if tmp is not None:
        ins.insert(2 if mnemonic == "tsels" else len(ins), tmp)
    state.b.dps(mnemonic, ins, [state.upright(result) if upright else state.rows(result)], attrs)


def convert(state: State, s: Op) -> None:
    """``tile.cast``: saturation is spelled for integers, and for floats only when asked for."""
    source = state.tile(s.operands[0])
    result = state.new(s.result)
    mode = s.attrs.get("mode", "round")
    asked = s.attrs.get("saturation_mode")
    attrs: Attrs = {"rmode": word("round_mode", mode.upper())}
    saturation = asked or (None if result.form.dtype.is_float else "on")
    words: tuple[tuple[str, object], ...] = (("mode", mode),)
    if saturation is not None:
        attrs["sat_mode"] = word("saturation_mode", saturation.upper())
        words += (("saturation", saturation),)
    given = None if s.operands[1] is None else state.tile(s.operands[1])
    if not all(isinstance(v, int) for v in result.valid):
        plan = state.target.scratch(instr("tcvt", [source], result.form, words))
        if plan is not None and plan.required:
            # The verifier sizes the scratch tile by the valid extents, so the whole tiles are converted.
            source, result = state.filled(state.compact(source)), state.filled(result)
    elif result.valid[1] % 2 and 2 in (source.form.dtype.values_per_byte, result.form.dtype.values_per_byte):  # type: ignore[operator]
        # The last byte holds one value more than is valid, and so the other side has to.
        source, result = state.evened(source), state.evened(result)
    finish(state, "tcvt", [state.rows(source)], [source], given, result, attrs, words)


def compare(state: State, s: Op) -> None:
    """``tile.cmp`` and ``tile.cmps``: a packed mask of the sources' physical shape."""
    decl = OPS[s.name]
    assert decl.pto is not None
    ins, tiles, _ = operands_of(state, s, decl.operand_params, decl.pto)
    rows, cols = tiles[0].valid
    result = state.new(s.result, valid=(rows, state.div_up(cols, 8)))
    how = COMPARISONS[s.attrs.get("cmp_type", 0)]
    finish(state, decl.pto, ins, tiles, None, result, {"cmpMode": word("cmp", how)}, (("cmp", how),))


def select(state: State, s: Op) -> None:
    """``tile.sel`` and ``tile.sels``: the mask, the data, a scratch tile."""
    decl = OPS[s.name]
    assert decl.pto is not None
    s = with_fitting_scratch(s, state.target)
    ins, tiles, scratch = operands_of(state, s, decl.operand_params, decl.pto)
    mask, *data = tiles
    if mask.form.rows != data[0].form.rows or (data[0].form.column and not mask.form.mask):
        state.fail("the mask does not have the rows of the data", "the mask of a column is packed along the column")
    finish(state, decl.pto, ins, data, scratch, state.new(s.result), {})


def fill(state: State, s: Op) -> None:
    """``tile.full``, ``tile.expands``: an unsigned tile is filled under its signed name."""
    value = s.operands[-1]
    result = state.new(s.result)
    state.b.dps("texpands", [scalar_operand(state, value, result.form.dtype)], [signless(state, result)])


def count(state: State, s: Op) -> None:
    """``tile.ci``: consecutive integers in one row."""
    result = state.new(s.result)
    dtype = result.form.dtype
    if not result.form.line or (result.form.column and result.form.used > 1):
        state.fail(f"consecutive integers fill one row only, not a {s.result.type}", "pto.tci writes a single row")
    ins = [scalar_operand(state, s.operands[0], dtype)]
    if state.target.arch != "a5" and dtype.bits in (16, 32):
        # Figures: the assembler's verifier wants 768 bytes for 32-bit integers, 1792 for 16-bit ones.
        words = 192 if dtype.bits == 32 else 448
        tmp = Form(INT32, 1, words, cols=words)
        ins.append(state.allot(tmp, (1, words), False, None).value)
    attrs: Attrs = {"descending": _TRUE} if s.attrs.get("descending") else {}
    state.b.dps("tci", ins, [signless(state, result)], attrs)


def row_reduction(state: State, s: Op) -> None:
    """``[M, N]`` to ``[M, 1]``; of a column, which has one element a row, a copy."""
    decl = OPS[s.name]
    assert decl.pto is not None
    ins, tiles, scratch = operands_of(state, s, decl.operand_params, decl.pto)
    if tiles[0].form.column and tiles[0].form.used > 1:
        state.copy(tiles[0], state.new(s.result))
        return
    finish(state, decl.pto, ins, tiles, scratch, state.new(s.result, upright=True), {}, upright=True)


def column_reduction(state: State, s: Op) -> None:
    """``[M, N]`` to ``[1, N]``; a column is reduced as a line."""
    decl = OPS[s.name]
    assert decl.pto is not None
    ins, tiles, scratch = operands_of(state, s, decl.operand_params, decl.pto)
    if tiles[0].form.column:
        mnemonic = row_form(decl.pto, tiles[0].form.dtype, state.target)
        if mnemonic is None:
            _reduce_upright(state, decl.pto, tiles[0], state.new(s.result))
            return
        finish(state, mnemonic, ins, tiles, scratch, state.new(s.result, upright=True), {}, upright=True)
        return
    attrs: Attrs = {}
    words: tuple[tuple[str, object], ...] = ()
    if scratch is not None and decl.pto == "tcolsum":
        attrs, words = {"isBinary": _TRUE}, (("binary", True),)
    finish(state, decl.pto, ins, tiles, scratch, state.new(s.result), attrs, words)


def _reduce_upright(state: State, mnemonic: str, column: TileRef, result: TileRef) -> None:
    """Reduce a column whose dtype the row form does not take: spread it over rows of one block each first."""
    state.b.dps(mnemonic, [spread(state, column).value], [state.rows(result)])


def expand(state: State, s: Op) -> None:
    """Row and column expands; where the tile is itself a vector, the form that fits its line."""
    decl = OPS[s.name]
    assert decl.pto is not None
    target, vector = state.compact(state.tile(s.operands[0])), state.tile(s.operands[1])
    scratch = state.tile(s.operands[2]) if len(s.operands) > 2 and s.operands[2] is not None else None
    result = state.new(s.result)
    along_rows, what = decl.pto.startswith("trow"), decl.pto[len("trowexpand") :]
    if target.form.column and along_rows and target.form.used > 1:
        _same_length(state, what, target, vector, result)
        return
    if target.form.column:
        # One value for a whole column: as a line, one value for its row.
        along_rows = True
    mnemonic = f"t{'row' if along_rows else 'col'}expand{what}"
    values = state.upright(vector) if along_rows and vector.form.column else state.rows(vector)
    if not what:
        state.b.dps(mnemonic, [values], [state.rows(result)])
        return
    finish(state, mnemonic, [state.rows(target), values], [target, vector], scratch, result, {})


def _same_length(state: State, what: str, target: TileRef, vector: TileRef, result: TileRef) -> None:
    """A row expand of one-element rows is the plain operation."""
    a, b, out = state.rows(target), state.rows(vector), state.rows(result)
    if not what:
        state.copy(vector, result)
    elif what == "expdif":
        state.b.dps("tsub", [a, b], [out])
        state.b.dps("texp", [out], [out])
    else:
        state.b.dps(f"t{what}", [a, b], [out])


def transpose(state: State, s: Op) -> None:
    """``tile.transpose``: of a line another name, else ``pto.ttrans``."""
    source, form = state.tile(s.operands[0]), state.plan[s.result.name]
    if source.form.line and form.line:
        state.tiles[s.result.name] = as_line(state, source, form)
        return
    if source.form.line:
        reshape(state, s)
        return
    scratch = None if s.operands[1] is None else state.tile(s.operands[1])
    finish(state, "ttrans", [state.rows(source)], [source], scratch, state.new(s.result), {})


def fill_pad(state: State, s: Op) -> None:
    """``tile.fillpad``: the pad value is part of the result's type."""
    source = state.tile(s.operands[0])
    pad = s.attrs.get("pad_value", "zero")
    form = replace(state.plan[s.result.name], pad=PADS["zero" if pad == "null" else pad])
    valid = state.valid_of(cast(TileType, s.result.type), form)
    if not form.column:
        source = by_rows(state, source)
    padded = state.allot(form, valid, False, s.result.name)
    state.b.dps("tfillpad", [state.rows(source)], [padded.value])
    plain = state.plan[s.result.name]
    value = state.reshape(padded.value, buffer_type(plain, valid))
    state.tiles[s.result.name] = state.derived(padded, plain, valid, value)


def concat(state: State, s: Op) -> None:
    """``tile.concat``: two tiles side by side."""
    tiles = [state.tile(o) for o in s.operands]
    if any(t.form.column and t.form.used > 1 for t in tiles):
        state.fail("columns cannot be put side by side in assembly", "a column is stored as one line")
    state.b.dps("tconcat", [state.rows(t) for t in tiles], [state.rows(state.new(s.result))])


def move(state: State, s: Op) -> None:
    """``tile.move``: to another memory space or layout."""
    source = state.tile(s.operands[0])
    result = state.new(s.result, valid=source.valid if source.form.mask else None)
    if source.form.config is None and result.form.config is None:
        state.copy(source, result)
    else:
        state.b.move(state.rows(source), state.rows(result))


def create(state: State, s: Op) -> None:
    """``tile.create``: storage only."""
    state.new(s.result)


HANDLERS: dict[str, Callable[[State, Op], None]] = {
    "tile.cast": convert,
    "tile.cmp": compare,
    "tile.cmps": compare,
    "tile.sel": select,
    "tile.sels": select,
    "tile.full": fill,
    "tile.expands": fill,
    "tile.ci": count,
    "tile.transpose": transpose,
    "tile.fillpad": fill_pad,
    "tile.concat": concat,
    "tile.move": move,
    "tile.create": create,
    **{f"tile.row_{what}": row_reduction for what in ("sum", "max", "min", "prod")},
    **{f"tile.col_{what}": column_reduction for what in ("sum", "max", "min", "prod")},
    **{name: expand for name in OPS if name.startswith(("tile.row_expand", "tile.col_expand"))},
}
