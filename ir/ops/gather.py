"""Gather and scatter: elements picked or placed by index, by byte offset, by mask pattern, by comparison.

Index tiles hold positions in row-major order over the physical tile (pypto tile operations, pto-isa TGATHER.md,
TSCATTER.md). What happens at positions outside the tile is the hardware's own; the interpreter reports them.
"""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from ..diagnostics import error
from ..dtypes import BF16, FP16, FP32, INT8, INT16, INT32, UINT8, UINT16, UINT32, DType
from ..op import Call, Compare, Dims, DTypeAttr, Env, Int, Memory, Scalar, Scratch, Tensor, Tile, Word, op
from ..types import ScalarType, TensorType, TileType, TupleType, Type, shape_text, static, tile
from . import _math
from ._result import agree, dims_of, require_same_dtype

GATHER = "gather and scatter"
_OUTSIDE = "positions outside the tile; which of several writes to one element stays (taken as: the last)"
_GATHERED = (FP16, FP32, INT16, INT32)
_BYTES = (INT8, UINT8, INT16, UINT16, INT32, UINT32, FP16, BF16, FP32)

#: Mask patterns by number: which columns of a group are taken (pto-isa MaskPattern).
PATTERNS: dict[int, tuple[str, int, int]] = {
    1: ("P0101", 2, 0), 2: ("P1010", 2, 1), 3: ("P0001", 4, 0), 4: ("P0010", 4, 1),
    5: ("P0100", 4, 2), 6: ("P1000", 4, 3), 7: ("P1111", 1, 0),
}  # fmt: skip


def require_rank2(call: Call, *positions: int) -> None:
    """Check that operands are rank-2 tiles."""
    for i in positions:
        t: TileType = call.type(i)
        if len(t.shape) != 2:
            name = call.decl.operand_params[i].name
            call.fail("TG008", f"{name} must be a rank-2 tile, got {shape_text(t.shape)}")


def require_dtype(call: Call, i: int, allowed: tuple[DType, ...]) -> None:
    """Check that an operand has one of the dtypes."""
    dtype: DType = call.type(i).dtype
    if dtype not in allowed:
        names = ", ".join(d.name for d in allowed)
        call.fail("TG007", f"{call.decl.operand_params[i].name} must be {names}, got {dtype.name}")


def pattern_of(call: Call) -> tuple[str, int, int]:
    """Return the mask pattern of a call: name, columns of a group, column taken."""
    number = call.attr("mask_pattern")
    if number not in PATTERNS:
        call.fail("TG005", f"mask_pattern is 1 to 7, not {number}", hint="1 takes every even column, 7 all of them")
    return PATTERNS[number]


def _positions(indices: Any, count: int) -> Any:
    flat = indices.reshape(-1).astype(np.int64)
    if flat.size and (flat.min() < 0 or flat.max() >= count):
        bad = int(flat[(flat < 0) | (flat >= count)][0])
        raise error("TG032", f"position {bad} lies outside a tile of {count} elements")
    return flat


def _gather_type(call: Call) -> Type:
    require_rank2(call, 0, 1)
    require_dtype(call, 0, _GATHERED)
    src: TileType = call.type(0)
    index: TileType = call.type(1)
    narrow = index.dtype is INT16 and src.dtype.bits == 16
    if index.dtype is not INT32 and not narrow:
        call.fail(
            "TG007",
            f"indices are INT32 (INT16 for 16-bit sources), got {index.dtype.name} for {src.dtype.name}",
            hint="cast the indices: target_type=pl.INT32",
        )
    return tile(index.shape, src.dtype, index.valid, src.memory)


@op("tile.gather", result=_gather_type, pto="tgather", unified="gather", family=GATHER, raw=True,
    target_defined=_OUTSIDE)  # fmt: skip
def gather(src: Tile, indices: Tile, tmp: Scratch = None) -> Any:
    """result[i, j] = src.flat[indices[i, j]]."""
    out = np.zeros(indices.data.shape, src.data.dtype)
    region = tuple(slice(n) for n in indices.valid)
    at = _positions(indices.region, src.data.size)
    out[region] = src.data.reshape(-1)[at].reshape(indices.valid)
    return out


def _block_type(call: Call) -> Type:
    require_rank2(call, 0, 1)
    require_dtype(call, 0, _BYTES)
    require_dtype(call, 1, (UINT32,))
    dtype: DType = call.attr("output_dtype") or call.type(0).dtype
    if dtype not in _BYTES:
        call.fail("TG007", f"cannot gather blocks as {dtype.name}")
    offsets: TileType = call.type(1)
    shape, valid = static(offsets.shape), static(offsets.valid_shape)
    if shape is None or valid is None or shape[1] % 8:
        call.fail("TG008", f"offsets need static columns, a multiple of 8, got {shape_text(offsets.shape)}",
                  reason="eight UINT32 offsets fill a 32-byte block")  # fmt: skip
    wide = 32 * 8 // dtype.bits
    return tile((shape[0], shape[1] * wide), dtype, (valid[0], valid[1] * wide), offsets.memory)


@op("tile.gatherb", result=_block_type, pto="tgatherb", unified="gatherb", family=GATHER, raw=True,
    target_defined="offsets outside the tile or not at a block")  # fmt: skip
def gatherb(src: Tile, offset: Tile, *, output_dtype: DTypeAttr = None, env: Env) -> Any:
    """32-byte blocks of the source's bytes, one for every byte offset."""
    flat = np.ascontiguousarray(src.data).view(np.uint8).reshape(-1)
    starts = offset.region.reshape(-1).astype(np.int64)
    if starts.size and (starts.max() + 32 > flat.size or (starts % 32).any()):
        raise error("TG032", "a byte offset is no multiple of 32 or leads outside the source")
    taken = flat[starts[:, None] + np.arange(32)].reshape(offset.region.shape[0], -1)
    out = np.zeros(env.result.shape, env.result.dtype.storage)
    part = taken.view(env.result.dtype.storage)
    out[: part.shape[0], : part.shape[1]] = part
    return out


def _masked_type(call: Call) -> Type:
    require_rank2(call, 0)
    require_dtype(call, 0, _GATHERED)
    src: TileType = call.type(0)
    dtype: DType = call.attr("output_dtype") or src.dtype
    if dtype.bits != src.dtype.bits:
        call.fail("TG007", f"{dtype.name} and {src.dtype.name} differ in width")
    _, group, _ = pattern_of(call)
    cols, valid = src.shape[1], src.valid_shape[1]
    if not isinstance(cols, int) or not isinstance(valid, int) or cols % group or valid % group:
        call.fail("TG008", f"needs columns in groups of {group}, got {shape_text(src.valid_shape)}")
    return tile((src.shape[0], cols // group), dtype, (src.valid_shape[0], valid // group), src.memory)


@op("tile.gather_mask", result=_masked_type, pto="tgather", unified="gather_mask", family=GATHER)
def gather_mask(src: Tile, mask_pattern: Int, *, output_dtype: DTypeAttr = None, env: Env) -> Any:
    """One column of every group of 2 or 4 (mask patterns 1 to 6), or all columns (7); bits are kept."""
    _, group, at = PATTERNS[mask_pattern]
    return np.ascontiguousarray(src[:, at::group]).view(env.result.dtype.storage)


def _compare_type(call: Call) -> Type:
    require_rank2(call, 0)
    require_dtype(call, 0, _GATHERED)
    if not isinstance(call.type(1), ScalarType):
        call.fail("TG006", f"kvalue must be a scalar, got {call.type(1)}")
    cols, dtype = call.attr("out_cols"), call.attr("count_dtype") or INT32
    if not isinstance(cols, int) or cols <= 0:
        call.fail("TG005", f"out_cols must be positive, got {cols}")
    if dtype not in (INT32, UINT32):
        call.fail("TG007", f"counts are INT32 or UINT32, not {dtype.name}")
    src: TileType = call.type(0)
    rows, valid = src.shape[0], src.valid_shape[0]
    return TupleType(
        (tile((rows, cols), INT32, (valid, cols), src.memory), tile((1, rows), dtype, (1, valid), src.memory))
    )


@op("tile.gather_compare", result=_compare_type, pto="tgather", unified="gather_compare", family=GATHER,
    target_defined="indices after the last match (taken as zero)")  # fmt: skip
def gather_compare(
    src: Tile,
    kvalue: Scalar,
    tmp: Scratch,
    *,
    cmp_mode: Compare = 0,
    offset: Int = 0,
    out_cols: Int,
    count_dtype: DTypeAttr = None,
    env: Env,
) -> Any:
    """Columns (plus ``offset``) of each row whose element compares with kvalue, and how many: a pair."""
    hit = _math.compare(src, _math.scalar_like(kvalue, env.dtype(0)), cmp_mode)
    found = np.zeros((src.shape[0], out_cols), np.int32)
    for r, row in enumerate(hit):
        at = np.flatnonzero(row)[:out_cols]
        found[r, : at.size] = at + offset
    counts = hit.sum(axis=1).reshape(1, -1).astype((count_dtype or INT32).storage)
    return found, counts


# -- scatter ---------------------------------------------------------------------------------------------

_SCATTERED = (FP16, FP32, BF16, INT8, INT16, INT32)


def _scatter_type(call: Call) -> Type:
    require_rank2(call, 0, 1, 2)
    require_dtype(call, 0, _SCATTERED)
    require_same_dtype(call, 0, 1)
    dst: TileType = call.type(0)
    src: TileType = call.type(1)
    index: TileType = call.type(2)
    wanted = INT32 if dst.dtype.bits == 32 else INT16
    if index.dtype is not wanted:
        call.fail("TG007", f"indices for {dst.dtype.name} are {wanted.name}, got {index.dtype.name}")
    if not agree(src.valid_shape, index.valid_shape):
        call.fail(
            "TG008", f"source and indices have valid shapes {shape_text(src.valid_shape)} and "
            f"{shape_text(index.valid_shape)}"
        )  # fmt: skip
    if not _fits(src, dst):
        call.fail(
            "TG008", f"a source valid in {shape_text(src.valid_shape)} is larger than the target, which is valid in "
            f"{shape_text(dst.valid_shape)}",
            reason="the instruction takes sources that exceed the target along neither axis",
            hint="reshape both to fit (pl.tile.reshape; positions count elements row by row), or scatter in parts",
        )  # fmt: skip
    return tile(dst.shape, dst.dtype, dst.valid, dst.memory, dst.layout)


def _fits(src: TileType, dst: TileType) -> bool:
    """Tell whether a source exceeds a target along neither axis; a column is a line in memory, and may lie as one."""
    lines = [(1, t.valid_shape[0]) if t.shape[1] == 1 else t.valid_shape for t in (src, dst)]
    forms = [lines[0], src.valid_shape] if src.shape[1] == 1 else lines[:1]
    return any(
        all(not isinstance(n, int) or not isinstance(limit, int) or n <= limit for n, limit in zip(form, lines[1]))
        for form in forms
    )


@op("tile.scatter", result=_scatter_type, pto="tscatter", unified="scatter", family=GATHER, raw=True, inout="dst",
    target_defined=_OUTSIDE)  # fmt: skip
def scatter(dst: Tile, src: Tile, indexes: Tile) -> Any:
    """dst with dst.flat[indexes[i, j]] = src[i, j]."""
    out = np.ascontiguousarray(dst.data).copy()
    out.reshape(-1)[_positions(indexes.region, out.size)] = src.region.reshape(-1)
    return out


def _scatter_mask_type(call: Call) -> Type:
    require_rank2(call, 0, 1)
    require_dtype(call, 0, _SCATTERED)
    require_same_dtype(call, 0, 1)
    _, group, _ = pattern_of(call)
    dst: TileType = call.type(0)
    src: TileType = call.type(1)
    rows, cols = src.valid_shape
    want = (rows, cols * group if isinstance(cols, int) else f"({cols}) * {group}")
    if not agree(dst.valid_shape, want):
        call.fail("TG008", f"dst must be valid in {shape_text(want)}, got {shape_text(dst.valid_shape)}")
    return tile(dst.shape, dst.dtype, dst.valid, dst.memory, dst.layout)


@op("tile.scatter_mask", result=_scatter_mask_type, pto="tscatter", unified="scatter_mask", family=GATHER)
def scatter_mask(dst: Tile, src: Tile, mask_pattern: Int) -> Any:
    """Columns of src spread over one column of every group of 2 or 4, zeros between them; dst gives the type only."""
    _, group, at = PATTERNS[mask_pattern]
    out = np.zeros_like(dst)
    out[:, at::group] = src
    return out


def _rows_type(call: Call) -> Type:
    require_same_dtype(call, 0, 2)
    dst: TileType = call.type(0)
    index: TileType = call.type(1)
    src: TileType = call.type(2)
    if not index.dtype.is_int:
        call.fail("TG007", f"row numbers are integers, got {index.dtype.name}")
    if call.attr("dim") != -2:
        call.fail("TG005", f"only rows (dim=-2) can be updated, not dim={call.attr('dim')}")
    count, rows = static(index.valid_shape), static(src.valid_shape[:-1])
    if len(dst.shape) != len(src.shape) or not agree(dst.shape[-1:], src.shape[-1:]):
        call.fail("TG008", f"rows of {src} do not fit into {dst}")
    if count is not None and rows is not None and int(np.prod(count)) != int(np.prod(rows)):
        call.fail("TG008", f"{int(np.prod(rows))} rows for {int(np.prod(count))} row numbers")
    return tile(dst.shape, dst.dtype, dst.valid, dst.memory, dst.layout)


@op("tile.scatter_update", result=_rows_type, unified="scatter_update", family=GATHER, raw=True, inout="input",
    composite=True, target_defined=_OUTSIDE)  # fmt: skip
def scatter_update(input: Tile, index: Tile, src: Tile, *, dim: Int = -2) -> Any:
    """input with the rows that ``index`` numbers (over all leading dimensions) replaced by the rows of src."""
    out = np.ascontiguousarray(input.data).copy()
    flat = out.reshape(-1, out.shape[-1])
    at = _positions(index.region, flat.shape[0])
    rows = src.region.reshape(-1, src.region.shape[-1])
    flat[at, : rows.shape[1]] = rows
    return out


def _assemble_type(call: Call) -> Type:
    require_same_dtype(call, 0, 1)
    target: TileType = call.type(0)
    source: TileType = call.type(1)
    offset = dims_of(call.operands[2])
    if len(offset) != len(target.shape) or len(source.shape) != len(target.shape):
        call.fail("TG008", f"offset and source must have the target's rank {len(target.shape)}")
    for axis, (limit, at, size) in enumerate(zip(target.shape, offset, source.shape)):
        if isinstance(at, int) and at < 0:
            call.fail("TG008", f"offset {at} along dimension {axis} is negative")
        if isinstance(limit, int) and isinstance(at, int) and isinstance(size, int) and at + size > limit:
            call.fail("TG008", f"offset {at} + size {size} exceeds dimension {axis} of {shape_text(target.shape)}")
    valid = _grown(target, source, offset)
    return tile(target.shape, target.dtype, valid, target.memory, target.layout)


def _grown(target: TileType, source: TileType, offset: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the valid shape after a write: larger along one axis where the union is still a rectangle."""
    old, part = static(target.valid_shape), static(source.valid_shape)
    starts = static(offset)
    if old is None or part is None or starts is None:
        return target.valid_shape
    ends = [s + n for s, n in zip(starts, part)]
    outside = [i for i, (end, reach) in enumerate(zip(ends, old)) if end > reach]
    whole = all(s == 0 and e >= o for i, (s, e, o) in enumerate(zip(starts, ends, old)) if i not in outside)
    if len(outside) != 1 or not whole or starts[outside[0]] > old[outside[0]]:
        return old
    return tuple(max(e, o) if i in outside else o for i, (e, o) in enumerate(zip(ends, old)))


@op("tile.assemble", result=_assemble_type, pto="tinsert", unified="assemble", family=GATHER, raw=True,
    inout="target")  # fmt: skip
def assemble(target: Tile, source: Tile, offset: Dims) -> Any:
    """target with the window at ``offset`` replaced by the source's valid region."""
    out = target.data.copy()
    out[tuple(slice(int(o), int(o) + n) for o, n in zip(offset, source.valid))] = source.region
    return out


def _extract_type(call: Call) -> Type:
    require_rank2(call, 0)
    src: TileType = call.type(0)
    shape = dims_of(call.operands[3])
    if len(shape) != 2 or static(shape) is None:
        call.fail("TG008", f"needs a static rank-2 shape, got {shape_text(shape)}")
    for i in (1, 2):
        t = call.type(i)
        if isinstance(t, ScalarType) and not t.dtype.is_int:
            call.fail("TG006", f"{call.decl.operand_params[i].name} must be an integer, got {t}")
    starts = dims_of(call.operands[1:3])
    valid: list[Any] = []
    for axis, (limit, at, size) in enumerate(zip(src.shape, starts, shape)):
        if isinstance(at, int) and isinstance(size, int) and (at < 0 or (isinstance(limit, int) and at + size > limit)):
            call.fail("TG008", f"start {at} + size {size} leaves dimension {axis} of {shape_text(src.shape)}")
        reach = src.valid_shape[axis]
        if src.valid is None:
            valid.append(size)
        elif isinstance(reach, int) and isinstance(at, int) and isinstance(size, int):
            valid.append(max(min(size, reach - at), 0))
        else:
            call.fail("TG008", "the window of a partly valid tile must start at constants")
    return tile(shape, src.dtype, tuple(valid), call.attr("target_memory"))


@op("tile.extract", result=_extract_type, pto="textract", unified="extract", family=GATHER, raw=True)
def extract(src: Tile, index_row: Scalar, index_col: Scalar, shape: Dims, *, target_memory: Memory = "Vec") -> Any:
    """A dense copy of a window of a tile."""
    row, col = int(index_row), int(index_col)
    rows, cols = (int(d) for d in shape)
    if row < 0 or col < 0 or row + rows > src.data.shape[0] or col + cols > src.data.shape[1]:
        raise error("TG032", f"the window at [{row}, {col}] leaves the tile")
    return src.data[row : row + rows, col : col + cols].copy()


# -- global memory ---------------------------------------------------------------------------------------

_OOB = ("undefined", "clamp", "wrap", "zero")


def _word(call: Call, name: str, words: tuple[str, ...]) -> str:
    value = call.attr(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(words):
        return words[value]
    if value not in words:
        call.fail("TG005", f"{name} is one of {', '.join(words)}, not {value!r}")
    return str(value)


def _mgather_type(call: Call) -> Type:
    mem: TensorType = call.type(0)
    index: TileType = call.type(1)
    if index.dtype is not INT32:
        call.fail("TG007", f"indices are INT32, got {index.dtype.name}")
    if call.attr("target_memory") != "Vec" or call.operands[2] is not None:
        call.fail("TG005", "only vector tiles are gathered here", hint="keep target_memory=pl.MemorySpace.Vec")
    _word(call, "gather_oob", _OOB)
    if _word(call, "coalesce", ("row", "elem")) == "elem":
        return tile(index.shape, mem.dtype, index.valid)
    shape, valid = index.shape, index.valid_shape
    if len(shape) != 2 or (shape[0] != 1 and shape[1] != 1):
        call.fail("TG008", f"row indices are one line, got {shape_text(shape)}")
    at = 1 if shape[0] == 1 else 0
    return tile((shape[at], mem.shape[-1]), mem.dtype, (valid[at], mem.shape[-1]))


@op("tile.mgather", result=_mgather_type, pto="mgather", unified="mgather", family=GATHER, effect="read",
    target_defined="indices outside the tensor, unless gather_oob says")  # fmt: skip
def mgather(
    mem: Tensor,
    idx: Tile,
    coalesce: Word = "row",
    *,
    gather_oob: Word = "undefined",
    target_memory: Memory = "Vec",
    scratch: Scratch = None,
) -> Any:
    """Rows, or single elements, of a tensor by index: result[k, :] = mem[idx[k], :], or result = mem.flat[idx]."""
    table = mem.reshape(-1, mem.shape[-1]) if coalesce in ("row", 0) else mem.reshape(-1)
    at = idx.reshape(-1).astype(np.int64)
    count, how = table.shape[0], _OOB[gather_oob] if isinstance(gather_oob, int) else gather_oob
    outside = (at < 0) | (at >= count)
    if how == "undefined" and outside.any():
        raise error("TG032", f"index {int(at[outside][0])} leads outside the tensor of {count}")
    at = at % count if how == "wrap" else np.clip(at, 0, count - 1)
    taken = table[at]
    if how == "zero":
        taken[outside] = 0
    return taken if taken.ndim == 2 else taken.reshape(idx.shape)


def _mscatter_type(call: Call) -> Type:
    target: TensorType = call.type(2)
    if call.type(0).dtype is not target.dtype:
        call.fail("TG007", f"the tile has dtype {call.type(0).dtype.name}, the tensor {target.dtype.name}")
    if call.type(1).dtype is not INT32:
        call.fail("TG007", f"indices are INT32, got {call.type(1).dtype.name}")
    if not agree(call.type(0).valid_shape, call.type(1).valid_shape):
        call.fail("TG008", "source and indices have unlike valid shapes")
    return target


@op("tile.mscatter", result=_mscatter_type, pto="mscatter", unified="mscatter", family=GATHER, effect="write",
    target_defined=_OUTSIDE)  # fmt: skip
def mscatter(src: Tile, idx: Tile, output_tensor: Tensor) -> Any:
    """output_tensor.flat[idx[i, j]] = src[i, j]; the tensor is returned."""
    flat = _positions(idx, output_tensor.size)
    output_tensor[np.unravel_index(flat, output_tensor.shape)] = src.reshape(-1)
    return output_tensor
