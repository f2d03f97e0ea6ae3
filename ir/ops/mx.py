"""Quantisation: block-scaled (MX) formats with their layout changes, and per-row integer quantisation."""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from .. import mx
from .. import valueset as vs
from ..convert import decode, encode
from ..dtypes import BF16, FP4, FP8E4M3FN, FP8E8M0, FP16, FP32, INT8, INT16, UINT8, DType
from ..op import Call, DTypeAttr, Env, Int, Scratch, ScratchLike, Tile, Word, op
from ..types import BLOCK_BYTES, TileType, TupleType, Type, shape_text, static, tile
from ._result import agree

QUANT = "quantisation"
_ROUNDING = (
    "stochastic rounding where the hardware's control bit asks for it (taken as nearest even); "
    "the sign of what rounds to zero (taken as kept)"
)
_SWAPPED = {"row_major": "col_major", "col_major": "row_major"}


def _source(call: Call) -> tuple[int, int]:
    """Return the static, wholly valid shape of the source; raises what the operation cannot take."""
    src: TileType = call.type(0)
    shape = static(src.shape)
    if src.dtype not in (FP16, BF16, FP32):
        call.fail("TG007", f"quantises FP16, BF16 and FP32 tiles, got {src.dtype.name}", hint="cast to FP32 first")
    if shape is None or len(shape) != 2:
        call.fail("TG008", f"needs a static rank-2 tile, got {shape_text(src.shape)}")
    if src.valid is not None and src.valid != src.shape:
        call.fail(
            "TG008",
            f"the source is valid in {shape_text(src.valid)} of {shape_text(src.shape)} only",
            hint="fill the rest first: pl.tile.fillpad(tile)",
        )
    return shape[0], shape[1]


def _format(call: Call) -> mx.Format:
    dtype: DType = call.attr("dtype")
    spec = mx.FORMATS.get(dtype)
    if spec is None or (dtype is FP4 and call.type(0).dtype is FP32):
        call.fail(
            "TG007",
            f"no block-scaled format {dtype.name} for {call.type(0).dtype.name} sources",
            hint="dtype=pl.FP8E4M3FN, or pl.FP4 for FP16 and BF16 sources",
        )
    if call.attr("scale_alg") not in mx.ALGORITHMS:
        call.fail("TG005", f"scale_alg is one of {', '.join(mx.ALGORITHMS)}, not {call.attr('scale_alg')!r}")
    return spec


def _axis(call: Call) -> int:
    axis: int = call.attr("group_axis")
    if axis not in (0, 1):
        call.fail("TG005", f"group_axis must be 0 or 1, not {axis}")
    return axis


def _multiple(call: Call, size: int, of: int, what: str) -> None:
    if size <= 0 or size % of:
        call.fail(
            "TG008", f"{what} must be a multiple of {of}, got {size}", hint="pad the tile: pl.tile.fillpad_expand"
        )


def _tquant_type(call: Call) -> Type:
    first, depth = _source(call)
    spec, axis = _format(call), _axis(call)
    _multiple(call, depth, 64, "K, the second dimension,")
    if axis == 1:
        _multiple(call, first, 16, "M, the first dimension,")
        layout: tuple[tuple[str, str], ...] = (("fractal", "32"), ("slayout", "row_major"))
        scale = tile((first, depth // mx.GROUP), FP8E8M0, None, "Vec", layout)
        return TupleType((tile((first, depth), spec.dtype), scale))
    _multiple(call, first, 32, "N, the first dimension,")
    layout = (("blayout", "col_major"), ("fractal", "32"), ("slayout", "col_major"))
    scale = tile((depth // mx.GROUP, first), FP8E8M0, None, "Vec", layout)
    return TupleType((tile((depth, first), spec.dtype), scale))


@op("tile.tquant_mx", result=_tquant_type, unified="quant_mx", family=QUANT, composite=True,
    target_defined=_ROUNDING)  # fmt: skip
def tquant_mx(src: Tile, *, group_axis: Int, dtype: DTypeAttr = FP8E4M3FN, scale_alg: Word = "ocp", env: Env) -> Any:
    """Quantise in groups of 32 with a shared power-of-two scale: the pair (elements, FP8E8M0 scales).

    ``group_axis=1``: [M, K] -> elements [M, K], scales [M, K/32] laid out row/row (the left side of a product);
    ``group_axis=0``: [N, K], transposed to [K, N] -> elements [K, N], scales [K/32, N] laid out column/column (the
    right side). ``scale_alg``: ``ocp`` or ``nv``.
    """
    x = src if group_axis == 1 else np.ascontiguousarray(src.T)
    found = mx.quantise(x, env.dtype(0), dtype, group_axis, scale_alg)
    return found.codes, found.scales


def groups_of(rows: int, cols: int, axis: int) -> tuple[int, int]:
    """Return the shape of the per-group workspaces and raw exponents: one line for axis 1."""
    return (rows // mx.GROUP, cols) if axis == 0 else (1, rows * cols // mx.GROUP)


def _raw_type(call: Call) -> Type:
    rows, cols = _source(call)
    spec, axis = _format(call), _axis(call)
    _multiple(call, rows, 32 if axis == 0 else 16, "the number of rows")
    if axis == 1:
        _multiple(call, cols, mx.GROUP, "the number of columns")
    shape = groups_of(rows, cols, axis)
    for i in (1, 2):
        t: TileType | None = call.type(i)
        valid = None if t is None else static(t.valid_shape)
        name = call.decl.operand_params[i].name
        if t is None or t.dtype is not call.type(0).dtype:
            call.fail("TG007", f"{name} must be a {call.type(0).dtype.name} workspace, got {t}")
        if valid is None or int(np.prod(valid)) != shape[0] * shape[1]:
            call.fail("TG008", f"{name} must hold {shape[0] * shape[1]} elements, one a group, got {t}")
    element = INT8 if spec.dtype is FP8E4M3FN else spec.dtype
    return TupleType((tile((rows, cols), element), tile(shape, UINT8)))


@op("tile.tquant_mx_raw", result=_raw_type, pto="tquant.mx", family=QUANT, target_defined=_ROUNDING)
def tquant_mx_raw(
    src: Tile,
    max: Scratch,
    scaling: Scratch,
    *,
    group_axis: Int,
    dtype: DTypeAttr = FP8E4M3FN,
    scale_alg: Word = "ocp",
    env: Env,
) -> Any:
    """Quantise [M, N] in groups of 32 along an axis: the pair (codes, exponents as UINT8). Codes are INT8 for
    FP8E4M3FN, an FP4 tile for FP4. Exponents are one line [1, M*N/32] for ``group_axis=1``, [M/32, N] for 0.

    The line goes group by group. ``max`` and ``scaling`` are workspaces of the source's dtype with one element a group.
    """
    found = mx.quantise(src, env.dtype(0), dtype, group_axis, scale_alg)
    codes = found.codes.view(np.int8) if dtype is FP8E4M3FN else found.codes
    rows, cols = src.shape
    return codes, found.scales.reshape(groups_of(rows, cols, group_axis))


def zz_workspace(rows: int, cols: int, axis: int) -> int:
    """Return the bytes of scratch that a move to ZZ order takes, a multiple of 32 (pto-isa TMOV.md)."""
    needed = 64 + -(-rows // 16) * cols if axis == 1 else BLOCK_BYTES
    return -(-needed // BLOCK_BYTES) * BLOCK_BYTES


def _zz_type(call: Call) -> Type:
    src: TileType = call.type(0)
    axis = _axis(call)
    shape = static(src.valid_shape)
    if src.dtype is not UINT8:
        call.fail("TG007", f"moves UINT8 exponents, got {src.dtype.name}")
    if shape is None or len(shape) != 2:
        call.fail("TG008", f"needs a static rank-2 tile, got {shape_text(src.valid_shape)}")
    rows, cols = _zz_shape(call, shape, axis)
    tmp: TileType = call.type(1)
    room = static(tmp.shape)
    least = 64 + -(-rows // 16) * cols if axis == 1 else BLOCK_BYTES
    if tmp.dtype is not UINT8 or room is None or int(np.prod(room)) < least:
        call.fail("TG008", f"tmp must be a UINT8 tile of at least {least} bytes, got {tmp}")
    physical = (-(-rows // 16) * 16, cols)
    return tile(physical, UINT8, (rows, cols), "Vec", (("fractal", "32"), ("slayout", "row_major")))


def _zz_shape(call: Call, shape: tuple[int, ...], axis: int) -> tuple[int, int]:
    rows, cols = shape
    if axis == 0:
        if rows < 2 or rows % 2 or cols % 16:
            call.fail("TG008", f"needs an even number of rows and columns in sixteens, got {shape_text(shape)}")
        return cols, rows
    wanted = call.attr("dst_rows"), call.attr("dst_cols")
    if not all(isinstance(n, int) and n > 0 for n in wanted):
        call.fail("TG005", "group_axis=1 needs dst_rows and dst_cols", reason="a line of exponents has lost its shape")
    if wanted[1] % 2:
        call.fail("TG008", f"dst_cols must be even, got {wanted[1]}")
    if shape not in ((1, wanted[0] * wanted[1]), wanted):
        call.fail("TG008", f"{shape_text(shape)} exponents do not fill {shape_text(wanted)}")
    return wanted


@op("tile.tmov_x2zz", result=_zz_type, pto="tmov", unified="tmov_x2zz", family=QUANT)
def tmov_x2zz(src: Tile, tmp: Scratch, *, group_axis: Int, dst_rows: Int = None, dst_cols: Int = None, env: Env) -> Any:
    """Exponents brought into ZZ order, boxes of 16 by 2, for the matrix unit.

    ``group_axis=1``: [1, M*G] or [M, G] -> [M, G]; ``group_axis=0``: [G, N] -> [N, G].
    """
    if group_axis == 0:
        return np.ascontiguousarray(src.T)
    return src.reshape(env.result.valid_shape)


def _transposed_type(call: Call) -> Type:
    t: TileType = call.type(0)
    if len(t.shape) < 2:
        call.fail("TG008", f"needs a tile of rank 2 or more, got {shape_text(t.shape)}")
    layout = dict(t.layout)
    implied = {"Mat": ("col_major", "row_major"), "Right": ("row_major", "col_major")}.get(t.memory or "Vec")
    names = ("blayout", "slayout")
    given = {n: layout.get(n, (implied or ("row_major", "none_box"))[i]) for i, n in enumerate(names)}
    for name, value in given.items():
        layout[name] = _SWAPPED.get(value, value)
    for i, name in enumerate(names):
        if layout[name] == (implied or ("row_major", "none_box"))[i]:
            del layout[name]
    shape = (*t.shape[:-2], t.shape[-1], t.shape[-2])
    valid = None if t.valid is None else (*t.valid[:-2], t.valid[-1], t.valid[-2])
    return tile(shape, t.dtype, valid, t.memory, tuple(sorted(layout.items())))


@op("tile.transpose_view", result=_transposed_type, unified="transpose_view", family="views")
def transpose_view(tile: Tile) -> Any:
    """The same bytes with the last two dimensions and the layouts' orders exchanged; no instruction."""
    return np.ascontiguousarray(np.swapaxes(tile, -1, -2))


transpose_view.facts(vs.same)


# -- integer quantisation ----------------------------------------------------------------------------------


def _per_row(call: Call, i: int) -> None:
    t: TileType | None = call.type(i)
    if t is None:
        return
    if t.dtype is not FP32 or len(t.shape) != 2 or not agree(t.valid_shape, (call.type(0).valid_shape[0], 1)):
        name = call.decl.operand_params[i].name
        want = shape_text((call.type(0).valid_shape[0], 1))
        call.fail("TG008", f"{name} must be an FP32 column {want}, got {t}")


def _quant_type(call: Call) -> Type:
    src: TileType = call.type(0)
    if src.dtype is not FP32 or len(src.shape) != 2:
        call.fail("TG007", f"quantises rank-2 FP32 tiles, got {src}")
    _per_row(call, 1)
    _per_row(call, 2)
    return tile(src.shape, UINT8 if call.operands[2] is not None else INT8, src.valid, src.memory)


@op("tile.quant", result=_quant_type, pto="tquant", unified="quant", family=QUANT)
def quant(src: Tile, scale: Tile, offset: Tile = None, tmp: ScratchLike = None) -> Any:
    """src * scale (+ offset) rounded to nearest even and clamped: INT8, or UINT8 with an offset.

    ``scale`` and ``offset`` hold one FP32 number a row [M, 1]; ``scale`` is the inverse of the step (pto-isa
    TQUANT.md and its simulator). The product and the sum are rounded in FP32 first.
    """
    scaled = src * scale
    if offset is None:
        return encode(scaled.astype(np.float64), INT8, "rint", True)
    return encode((scaled + offset).astype(np.float64), UINT8, "rint", True)


def _dequant_type(call: Call) -> Type:
    src: TileType = call.type(0)
    if src.dtype not in (INT8, INT16) or len(src.shape) != 2:
        call.fail("TG007", f"dequantises rank-2 INT8 and INT16 tiles, got {src}")
    _per_row(call, 1)
    _per_row(call, 2)
    return tile(src.shape, FP32, src.valid, src.memory)


@op("tile.dequant", result=_dequant_type, pto="tdequant", unified="dequant", family=QUANT)
def dequant(src: Tile, scale: Tile, offset: Tile, *, env: Env) -> Any:
    """(src - offset) * scale as FP32, rounded after each operation; one scale and offset a row [M, 1]."""
    return (decode(src, env.dtype(0)).astype(np.float32) - offset) * scale
