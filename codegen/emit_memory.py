"""Tensors in assembly: views, partitions, loads and stores, scalar accesses, slices and reshapes.

A tensor is one ``make_tensor_view`` in the entry block, made when it is first needed; slices of it are offsets
of later partitions. A tensor under another shape is another view of its pointer.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ..ir.dtypes import INT64, DType
from ..ir.program import Op, Operand, Value
from ..ir.types import TensorType, TileType
from .emit_forms import Form
from .emit_scalars import convert, scalar_operand
from .emit_scopes import Extent, scalar_type
from .emit_state import State, TensorRef, TileRef
from .pto.api import ptr_type
from .pto.elements import LOW_PRECISION


def parameter(state: State, value: Value, ptr: SSAValue, ctx: SSAValue | None = None) -> TensorRef:
    """Return the tensor a pointer argument stands for; raises TG023 for extents that are not known."""
    t = value.type
    assert isinstance(t, TensorType)
    shape = tuple(map(state.extent, t.shape))
    ref = TensorRef(ptr, t.dtype, shape, _strides(state, t, shape), _layout(t), name=value.name, ctx=ctx)
    state.tensors[value.name] = ref
    return ref


def _layout(t: TensorType) -> str | None:
    return None if t.layout is None else t.layout.lower()


def _strides(state: State, t: TensorType, shape: Sequence[Extent]) -> tuple[Extent, ...]:
    if t.stride is not None:
        return tuple(map(state.extent, t.stride))
    if _layout(t) == "dn" and len(shape) >= 2:
        # Column-major in the last two dimensions.
        *leading, rows, cols = shape
        inner = (1, rows)
        return (*_row_major(state, leading, state.mul(rows, cols)), *inner)
    return _row_major(state, shape)


def _row_major(state: State, shape: Sequence[Extent], unit: Extent = 1) -> tuple[Extent, ...]:
    strides: list[Extent] = []
    for extent in reversed(shape):
        strides.append(unit)
        unit = state.mul(unit, extent)
    return tuple(reversed(strides))


def tensor_of(state: State, o: Operand) -> TensorRef:
    found = state.tensors.get(o.name) if isinstance(o, Value) else None
    if found is None:
        state.fail(f"{getattr(o, 'name', 'the operand')!r} is no tensor parameter",
                   "only parameters and views of them have addresses")  # fmt: skip
    return found


# -- views -----------------------------------------------------------------------------------------------


def view_of(state: State, ref: TensorRef) -> SSAValue:
    """Return the view of a tensor that is no slice, made in the entry block on first use."""
    if ref.here:
        return state.cached(("view", ref), lambda: make_view(state, ref))  # type: ignore[no-any-return]
    if ref.view is None:
        with state.at_entry():
            ref.view = make_view(state, ref)
    return ref.view


def make_view(state: State, ref: TensorRef) -> SSAValue:
    shape, strides, layout = list(ref.shape), list(ref.strides), ref.layout
    if ref.dtype.values_per_byte > 1:
        pack = ref.dtype.values_per_byte
        shape[-1] = state.div_exact(shape[-1], pack, "the last dimension")
        strides[:-1] = [state.div_exact(s, pack, "a stride") for s in strides[:-1]]
    if layout is None and len(shape) >= 2 and shape[-1] == 1 and strides[-2] == 1:
        # A column is stored column by column as well, and so column-major tiles can take it.
        layout, strides[-1] = "dn", shape[-2]
    made = state.b.tensor_view(ref.ptr, shape, strides, layout, static=True)
    return state.name(made, f"{ref.name}_view")


def partition(
    state: State, tensor: TensorRef, offsets: Sequence[Extent], sizes: Sequence[Extent], name: str, line: bool = False
) -> SSAValue:
    """Return the partition view of a window; offsets and sizes in elements, of the tensor's rank.

    ``line``: the tensor is a column, seen as one row.
    """
    whole = tensor.whole
    at = list(offsets)
    if tensor.base is not None:
        at = [state.add(a, b) for a, b in zip(tensor.offsets, at)]
    extents = list(sizes)
    if line:
        whole = _as_line(state, whole)
        at[-2:], extents[-2:] = at[:-3:-1], extents[:-3:-1]
    if tensor.dtype.values_per_byte > 1:
        pack = tensor.dtype.values_per_byte
        at[-1] = state.div_exact(at[-1], pack, "offset")
        extents[-1] = state.div_up(extents[-1], pack)
    made = state.b.partition(view_of(state, whole), at, extents)
    return state.name(made, name)


def _as_line(state: State, whole: TensorRef) -> TensorRef:
    """Return a column ``[..., M, 1]`` as a row ``[..., 1, M]`` of the same elements."""
    if whole.dtype.values_per_byte > 1:
        state.fail(f"a column of {whole.dtype.name} does not fill whole bytes", "every row has a byte of its own")
    if whole.line is None:
        *leading, rows, _ = whole.shape
        strides = (*whole.strides[:-2], rows, 1)
        whole.line = TensorRef(
            whole.ptr, whole.dtype, (*leading, 1, rows), strides, name=f"{whole.name}_line", here=whole.here
        )
    return whole.line


def _as_row(form: Form) -> bool:
    """Return whether a column has to travel as a row: the assembler does not turn low-precision tiles."""
    return form.dtype.pto in LOW_PRECISION


def _is_column(state: State, ref: TileRef, tensor: TensorRef) -> bool:
    """Return whether a column tile meets the tensor column by column; raises TG023 when it cannot."""
    if not ref.form.column:
        return False
    whole = tensor.whole
    rank = len(whole.shape)
    if rank >= 2 and whole.shape[-1] == 1 and whole.strides[-2] == 1:
        return True
    if ref.valid[1] == 1:
        return False
    if rank >= 2 and whole.layout == "dn" and whole.strides[-2] == 1:
        return True
    state.fail(
        f"a column of {tensor.name or 'the tensor'} is not contiguous in global memory",
        f"elements of a column [M, 1] lie {_stride_text(whole)} apart",
        "hold the column in a tensor of its own, [M, 1], or transpose the tensor",
    )


def _stride_text(whole: TensorRef) -> str:
    stride = whole.strides[-2] if len(whole.strides) >= 2 else 1
    return f"{stride} elements" if isinstance(stride, int) else "a variable number of elements"


def load(state: State, s: Op) -> None:
    """``tile.load``: a new tile, filled from a partition of the tensor."""
    tensor = tensor_of(state, s.operands[0])
    if s.attrs.get("clamp"):
        state.fail("a clamping load cannot be written as assembly", hint="give a valid_shape inside the tensor")
    offsets = state.offsets(s.operands[1])
    sizes = state.offsets(s.operands[2] if s.operands[3] is None else s.operands[3])
    load_tile(state, s.result, tensor, offsets, sizes)


def load_tile(
    state: State, result: Value, tensor: TensorRef, offsets: tuple[Extent, ...], sizes: tuple[Extent, ...]
) -> None:
    """Append the load of a window of a tensor into a new tile."""
    assert isinstance(result.type, TileType)
    probe = state.plan[result.name]
    trial = TileRef(probe, state.valid_of(result.type, probe), tensor.ptr, False, None, None)
    upright = _is_column(state, trial, tensor)
    line = upright and _as_row(probe)
    window = partition(state, tensor, offsets, sizes, f"{result.name}_window", line)
    upright = upright and not line
    ref = state.new(result, upright, trial.valid)
    state.b.load(window, state.upright(ref) if upright else state.rows(ref))


def store(state: State, s: Op) -> None:
    """``tile.store``: the valid part of a tile to a partition of the tensor; the result is the tensor."""
    tensor = tensor_of(state, s.operands[2])
    offsets = state.offsets(s.operands[1])
    sizes = state.offsets(s.operands[3]) if s.operands[3] is not None else None
    store_tile(state, s, tensor, offsets, sizes)
    written(state, s, tensor)


def written(state: State, s: Op, tensor: TensorRef) -> None:
    """The result of a local write is the tensor; of windows the write is noted, for the marker that follows it."""
    if tensor.ctx is not None:
        state.writes.note(tensor.root, None, state.frame)
    for r in s.results:
        state.tensors[r.name] = tensor


def store_tile(
    state: State, s: Op, tensor: TensorRef, offsets: tuple[Extent, ...], sizes: tuple[Extent, ...] | None
) -> None:
    """Append the store of an operation's first operand; ``sizes``: the window, by default what is valid."""
    ref = state.tile(s.operands[0])
    if sizes is None:
        sizes = _sizes(state, s, ref, len(offsets))
    if tensor.dtype.values_per_byte > 1 and isinstance(sizes[-1], int) and sizes[-1] % 2:
        state.fail(f"{sizes[-1]} {tensor.dtype.name} elements do not fill whole bytes", "the store would reach further")
    upright = _is_column(state, ref, tensor)
    line = upright and _as_row(ref.form)
    window = partition(state, tensor, offsets, sizes, f"{tensor.name}_window", line)
    upright = upright and not line
    tile = state.upright(ref) if upright else state.rows(ref)
    state.b.store(tile, window, s.attrs.get("atomic", "none") == "add")


def _sizes(state: State, s: Op, ref: TileRef, rank: int) -> tuple[Extent, ...]:
    """Return the window a tile's valid part fills, in the tensor's rank."""
    t = s.operands[0].type  # type: ignore[union-attr]
    assert isinstance(t, TileType)
    if ref.form.mask:
        sizes: tuple[Extent, ...] = ref.valid
    else:
        sizes = tuple(map(state.extent, t.valid_shape))
    while len(sizes) > rank and sizes[0] == 1:
        sizes = sizes[1:]
    if len(sizes) > rank:
        state.fail(f"a {t} does not fit a tensor of rank {rank}")
    return (1,) * (rank - len(sizes)) + sizes


# -- other shapes of a tensor ----------------------------------------------------------------------------


def slice_tensor(state: State, s: Op) -> None:
    """``tensor.slice``: offsets of later partitions, or a pointer of its own where axes are dropped."""
    source = tensor_of(state, s.operands[0])
    shape, offsets = state.offsets(s.operands[1]), state.offsets(s.operands[2])
    if source.base is not None:
        offsets = tuple(map(state.add, source.offsets, offsets))
    if s.operands[4]:
        _drop_axes(state, s, source, shape, offsets)
        return
    state.tensors[s.result.name] = TensorRef(
        source.ptr, source.dtype, shape, source.strides, source.layout, source.whole, offsets, None,
        source.name, source.root, ctx=source.ctx,
    )  # fmt: skip


def _drop_axes(
    state: State, s: Op, source: TensorRef, shape: tuple[Extent, ...], offsets: tuple[Extent, ...]
) -> None:  # fmt: skip
    gone = state.offsets(s.operands[4])
    at = state.index(linear(state, source, offsets))
    ptr = state.b.op("pto.addptr", [source.ptr, at], [source.ptr.type]).results[0]
    kept = [i for i in range(len(shape)) if i not in gone]
    made = TensorRef(
        ptr, source.dtype, tuple(shape[i] for i in kept), tuple(source.strides[i] for i in kept), source.layout,
        name=s.result.name, root=source.root, ctx=source.ctx,
    )  # fmt: skip
    made.view = make_view(state, made)
    state.tensors[s.result.name] = made


def reshape_tensor(state: State, s: Op) -> None:
    """``tensor.reshape`` and ``tensor.view``: a new view of the same elements."""
    source = tensor_of(state, s.operands[0])
    given = s.operands[1]
    t = s.result.type
    assert isinstance(t, TensorType)
    if given is None and _layout(t) == source.layout and source.base is None:
        state.tensors[s.result.name] = source
        return
    shape = source.shape if given is None else state.offsets(given)
    if source.strides != _row_major(state, source.shape) and given is not None:
        state.fail("only a contiguous tensor can have another shape",
                   f"{source.name} is a slice, or has strides of its own")  # fmt: skip
    ptr = source.ptr
    if any(o != 0 for o in source.offsets):
        at = state.index(linear(state, source, source.offsets))
        ptr = state.b.op("pto.addptr", [ptr, at], [ptr.type]).results[0]
    strides = source.strides if given is None and _layout(t) == source.layout else _strides(state, t, shape)
    made = TensorRef(
        ptr, source.dtype, shape, strides, _layout(t), name=s.result.name, root=source.root, ctx=source.ctx
    )
    # Extents and pointer may belong to this block, so the view is made here and not in the entry block.
    made.view = make_view(state, made)
    state.tensors[s.result.name] = made


def same_tensor(state: State, s: Op) -> None:
    """Operations that only rename a tensor."""
    state.tensors[s.result.name] = tensor_of(state, s.operands[0])


def tensor_dim(state: State, s: Op) -> None:
    """``tensor.dim``."""
    extent = tensor_of(state, s.operands[0]).shape[int(s.attrs["axis"])]
    value = state.index(extent)
    state.natural.add(value)
    state.scalars[s.result.name] = value


# -- scalar accesses -------------------------------------------------------------------------------------


def linear(state: State, tensor: TensorRef, indices: Sequence[Extent]) -> Extent:
    """Return the place of an element behind the tensor's pointer, in elements."""
    total: Extent = 0
    for i, stride in zip(indices, tensor.strides):
        total = state.add(total, state.mul(i, stride))
    return total


def _address(state: State, tensor: TensorRef, indices: Operand) -> tuple[SSAValue, SSAValue, DType]:
    """Return pointer and element offset of a scalar access; the pointer is to a type without sign."""
    dtype = tensor.dtype
    if dtype.values_per_byte > 1:
        state.fail(f"single {dtype.name} elements have no address", "two values share a byte")
    at = state.offsets(indices)
    if tensor.base is not None:
        at = tuple(map(state.add, tensor.offsets, at))
    ptr = tensor.ptr
    if dtype.kind == "uint":
        plain = ptr_type(f"i{dtype.bits}")
        ptr = state.cached(("signless", ptr), lambda: state.b.op("pto.castptr", [ptr], [plain]).results[0])
    return ptr, state.index(linear(state, tensor, at)), dtype


def read(state: State, s: Op) -> None:
    """``tensor.read``: one element as a scalar."""
    ptr, at, dtype = _address(state, tensor_of(state, s.operands[0]), s.operands[1])
    value = state.b.op("pto.load_scalar", [ptr, at], [scalar_type(dtype)]).results[0]
    state.scalars[s.result.name] = state.name(value, s.result.name)


def write(state: State, s: Op) -> None:
    """``tensor.write``: one element from a scalar; the result is the tensor."""
    tensor = tensor_of(state, s.operands[0])
    ptr, at, dtype = _address(state, tensor, s.operands[1])
    value = scalar_operand(state, s.operands[2], dtype)
    state.b.op("pto.store_scalar", [ptr, at, value])
    written(state, s, tensor)


def _element(state: State, ref: TileRef, indices: Operand, dtype: DType) -> tuple[SSAValue, SSAValue]:
    """Return a tile of a type without sign and the position of one element in its row-major storage."""
    if dtype.values_per_byte > 1:
        state.fail(f"single {dtype.name} elements have no address", "two values share a byte")
    *leading, last = state.offsets(indices)
    if ref.form.column:
        *leading, last = leading
    row: Extent = leading[0] if leading else 0
    if len(leading) > 1:
        state.fail("single elements are read from tiles of rank 1 and 2 only")
    return signless(state, ref), state.index(state.add(state.mul(row, ref.form.cols), last))


def signless(state: State, ref: TileRef) -> SSAValue:
    """Return the row-major view of a tile with an unsigned dtype taken as signless."""
    value = state.rows(ref)
    dtype = ref.form.dtype
    if dtype.kind != "uint":
        return value
    return state.cached(("signless", ref), lambda: state.retyped(value, f"i{dtype.bits}"))  # type: ignore[no-any-return]


def tile_read(state: State, s: Op) -> None:
    """``tile.read``: one element as a scalar."""
    ref = state.compact(state.tile(s.operands[0]))
    tile, at = _element(state, ref, s.operands[1], ref.form.dtype)
    value = state.b.op("pto.tgetval", [tile, at], [state.register(ref.form.dtype)]).results[0]
    state.scalars[s.result.name] = state.name(value, s.result.name)


def tile_write(state: State, s: Op) -> None:
    """``tile.write``: one element from a scalar, in place; the result is the tile."""
    ref = state.own(s.operands[0], s)
    state.register(ref.form.dtype)
    tile, at = _element(state, ref, s.operands[1], ref.form.dtype)
    value = scalar_operand(state, s.operands[2], ref.form.dtype)
    state.b.dps("tsetval", [at, value], [tile])
    for r in s.results:
        state.tiles[r.name] = ref


def block_query(state: State, s: Op) -> None:
    """``tile.get_block_idx`` and the like: an index that is not negative."""
    value = state.b.op(f"pto.{s.name.removeprefix('tile.')}", (), [scalar_type(INT64)]).results[0]
    state.natural.add(value)
    made = convert(state, value, INT64, s.result.type.dtype)  # type: ignore[union-attr]
    state.natural.add(made)
    state.scalars[s.result.name] = state.name(made, s.result.name)

