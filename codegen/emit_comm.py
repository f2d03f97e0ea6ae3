"""Communication of ranks: remote views, transfers, signals, rank queries and the markers of memory consistency.

A window is symmetric: its elements on a peer lie at the same distance from that rank's window base as the own ones from
the own base. The bases stand in the communication context, 64-bit words: word 2 holds the own rank (low half) and the
number of ranks (high half), word ``4 + r`` the base address of rank ``r`` in bytes. So the pointer to a peer's
elements is the own one plus ``(base[peer] - base[me]) / sizeof(T)`` elements, computed where it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from ..ir.dtypes import INT32
from ..ir.program import Op, Operand, Value
from .emit_memory import load_tile, partition, store_tile, tensor_of
from .emit_scalars import convert, scalar_operand
from .emit_scopes import I64, INDEX, Extent
from .emit_state import State, TensorRef
from .pto import arith
from .pto.api import word
from .pto.elements import element_bytes

#: Words of a communication context: rank and number of ranks, and the base of rank 0.
RANKS_WORD, FIRST_BASE = 2, 4
_I32 = IntegerType(32)


@dataclass(frozen=True)
class Ranks:
    """What a context says of the own rank: ``rank`` and ``count`` are i32, ``base`` the own window base (i64)."""

    rank: SSAValue
    count: SSAValue
    base: SSAValue


def context_of(state: State, tensor: TensorRef) -> SSAValue:
    """Return the context of a window; raises TG023 for a tensor that has none."""
    if tensor.ctx is None:
        state.fail(f"{tensor.name!r} has no communication context", "only window parameters bring one",
                   "pass it as pld.DistributedTensor")  # fmt: skip
    return tensor.ctx


def _word(state: State, ctx: SSAValue, at: Extent) -> SSAValue:
    return state.b.op("pto.load_scalar", [ctx, state.index(at)], [I64]).results[0]


def ranks_of(state: State, ctx: SSAValue) -> Ranks:
    """Return the own rank, the number of ranks and the own base, read once, in the entry block."""
    known = state.ranks.get(ctx)
    if known is None:
        with state.at_entry():
            packed = _word(state, ctx, RANKS_WORD)
            half = state.b.constants.get(32, I64)
            rank = state.arith(arith.TruncIOp, packed, type_=_I32)
            count = state.arith(arith.TruncIOp, state.arith(arith.ShRUIOp, packed, half), type_=_I32)
            state.natural.update((rank, count))
            own = _word(state, ctx, state.add(state.as_index(rank), FIRST_BASE))
        known = state.ranks[ctx] = Ranks(state.name(rank, "rank"), state.name(count, "nranks"), own)
    return known


def peer_of(state: State, tensor: TensorRef, peer: Extent) -> TensorRef:
    """Return a window as it lies on a peer: the same extents behind a pointer into the peer's slice."""
    whole = tensor.whole
    remote: TensorRef = state.cached(("peer", whole, peer), lambda: _remote(state, whole, peer))
    if tensor.base is None:
        return remote
    return replace(tensor, base=remote, ptr=remote.ptr, view=None, line=None)


def _remote(state: State, whole: TensorRef, peer: Extent) -> TensorRef:
    ctx = context_of(state, whole)
    own = ranks_of(state, ctx).base
    base = state.cached(("base", ctx, peer), lambda: _word(state, ctx, state.add(peer, FIRST_BASE)))
    distance = state.arith(arith.SubiOp, base, own)
    size = element_bytes(whole.ptr.type.element)  # type: ignore[attr-defined]
    if size > 1:
        distance = state.arith(arith.DivSIOp, distance, state.b.constants.get(size, I64))
    elements = state.arith(arith.IndexCastOp, distance, type_=INDEX)
    ptr = state.b.op("pto.addptr", [whole.ptr, elements], [whole.ptr.type]).results[0]
    state.name(ptr, f"{whole.name}_peer_ptr")
    return TensorRef(
        ptr, whole.dtype, whole.shape, whole.strides, whole.layout, name=f"{whole.name}_peer", root=whole.root,
        ctx=ctx, here=True,
    )  # fmt: skip


def _target(state: State, window: Operand, peer: Operand) -> TensorRef:
    return peer_of(state, tensor_of(state, window), state.offset(peer))


# -- tiles -----------------------------------------------------------------------------------------------


def remote_load(state: State, s: Op) -> None:
    """``pld.tile.remote_load``: ``pto.tload`` of a view of the peer."""
    window, peer, offsets, shape, valid = s.operands
    sizes = state.offsets(shape if valid is None else valid)
    if window.type.valid is not None:  # type: ignore[union-attr]
        # What is read is what is valid in the source as well.
        sizes = tuple(map(state.extent, s.result.type.valid_shape))  # type: ignore[union-attr]
    load_tile(state, s.result, _target(state, window, peer), state.offsets(offsets), sizes)


def remote_store(state: State, s: Op) -> None:
    """``pld.tile.remote_store``: ``pto.tstore`` to a view of the peer, of the window's rank."""
    _, window, peer, offsets = s.operands
    store_tile(state, s, _target(state, window, peer), state.offsets(offsets), None)
    state.writes.note(tensor_of(state, window).root, state.offset(peer), state.frame)


# -- transfers -------------------------------------------------------------------------------------------


def put(state: State, s: Op) -> None:
    """``pld.tile.put``: ``pto.comm.tput``, own to peer."""
    dst, peer, src, *_ = s.operands
    _transfer(state, s, "tput", _target(state, dst, peer), tensor_of(state, src))
    state.writes.note(tensor_of(state, dst).root, state.offset(peer), state.frame)


def get(state: State, s: Op) -> None:
    """``pld.tile.get``: ``pto.comm.tget``, peer to own."""
    dst, peer, src, *_ = s.operands
    own = tensor_of(state, dst)
    _transfer(state, s, "tget", own, _target(state, src, peer))
    if own.ctx is not None:
        state.writes.note(own.root, None, state.frame)


def _transfer(state: State, s: Op, mnemonic: str, dst: TensorRef, src: TensorRef) -> None:
    """Append a transfer between two barriers of all pipes: the assembler does not order it with other accesses."""
    ping, pong, to, at, shape = s.operands[3:8]
    if shape is None:
        sizes = tuple(a if isinstance(a, int) else b for a, b in zip(dst.shape, src.shape))
        zeros = (0,) * len(sizes)
        places: Sequence[tuple[Extent, ...]] = (zeros, zeros)
    else:
        sizes, places = state.offsets(shape), (state.offsets(to), state.offsets(at))
    views = [
        partition(state, _by_rows(state, t), where, sizes, f"{t.name or 'tensor'}_window")
        for t, where in zip((dst, src), places)
    ]
    stages = [state.rows(state.tile(o)) for o in (ping, pong) if o is not None]
    attrs = {"atomicType": word("atomic_type", "atomic_add")} if s.attrs.get("atomic", "none") == "add" else {}
    state.b.barrier()
    state.b.op(f"pto.comm.{mnemonic}", [*views, *stages], properties=attrs)
    state.b.barrier()


def _by_rows(state: State, tensor: TensorRef) -> TensorRef:
    """Return a tensor as rows: staging tiles are row-major, and so a column must not be seen as DN."""
    whole = tensor.whole
    if whole.layout not in (None, "nd"):
        state.fail(f"{whole.name!r} has layout {whole.layout.upper()} and cannot be put or got",
                   "transfers pass through row-major tiles", "give the tensor layout ND")  # fmt: skip
    if len(whole.shape) < 2 or whole.shape[-1] != 1 or whole.layout == "nd":
        return tensor
    plain: TensorRef = state.cached(("rows", whole), lambda: replace(whole, layout="nd", view=None, line=None))
    return plain if tensor.base is None else replace(tensor, base=plain, view=None, line=None)


# -- signals ---------------------------------------------------------------------------------------------


def _cell(state: State, tensor: TensorRef, offsets: Operand) -> SSAValue:
    """Return the 1x1 partition of one signal cell."""
    at = state.offsets(offsets)
    return partition(state, tensor, at, (1,) * len(at), f"{tensor.name}_cell")


def notify(state: State, s: Op) -> None:
    """``pld.system.notify``: ``pto.comm.tnotify`` on the peer's cell."""
    window, peer, offsets, value = s.operands
    amount = scalar_operand(state, value, INT32)
    cell = _cell(state, _target(state, window, peer), offsets)
    state.b.op("pto.comm.tnotify", [cell, amount], properties={"notifyOp": word("notify_op", s.attrs["op"])})


def wait(state: State, s: Op) -> None:
    """``pld.system.wait``: ``pto.comm.twait`` on the own cell."""
    window, offsets, expected = s.operands
    amount = scalar_operand(state, expected, INT32)
    cell = _cell(state, tensor_of(state, window), offsets)
    state.b.op("pto.comm.twait", [cell, amount], properties={"cmp": word("wait_cmp", s.attrs["cmp"])})


# -- ranks -----------------------------------------------------------------------------------------------


def get_context(state: State, s: Op) -> None:
    """``pld.system.get_comm_ctx``: the context argument of the window."""
    state.contexts[s.result.name] = context_of(state, tensor_of(state, s.operands[0]))


def rank_query(state: State, s: Op) -> None:
    """``pld.system.rank`` and ``pld.system.nranks``: halves of one word of the context."""
    ctx = state.contexts.get(s.operands[0].name) if isinstance(s.operands[0], Value) else None
    if ctx is None:
        state.fail("the communication context is not known here", hint="ctx = pld.get_comm_ctx(window)")
    known = ranks_of(state, ctx)
    value = known.rank if s.name.endswith(".rank") else known.count
    state.scalars[s.result.name] = convert(state, value, INT32, s.result.type.dtype)  # type: ignore[union-attr]


# -- memory consistency ----------------------------------------------------------------------------------


def fence(state: State, s: Op) -> None:
    """``system.fence``."""
    state.b.op("pto.fence.barrier_all", properties={"scope": word("fence_scope", "gm")})


def cacheinvalid(state: State, s: Op) -> None:
    """``system.cacheinvalid``: of everything, or of a region, on the slice that was written last.

    The text names elements of a window; behind a remote store or a put they are those of the peer that was written.
    A peer that is not known any more, since the block of the write has ended, takes the form for everything.
    """
    tensor, shapes, offsets = s.operands
    if tensor is None:
        state.writes.clear()
        _everything(state)
        return
    ref = tensor_of(state, tensor)
    peers, lost = state.writes.take(ref.root, state.frames)
    if lost:
        _everything(state)
        return
    at, sizes = state.offsets(offsets), state.offsets(shapes)
    for peer in peers or [None]:
        slice_ = ref if peer is None else peer_of(state, ref, peer)
        region = partition(state, slice_, at, sizes, f"{slice_.name or 'tensor'}_written")
        state.b.op("pto.cmo.cacheinvalid", [region], properties={"space": word("address_space", "gm")})


def _everything(state: State) -> None:
    state.b.op("pto.cmo.cacheinvalid", properties={"space": word("address_space", "gm")})


HANDLERS: dict[str, Callable[[State, Op], None]] = {
    "pld.tile.remote_load": remote_load,
    "pld.tile.remote_store": remote_store,
    "pld.tile.put": put,
    "pld.tile.get": get,
    "pld.system.notify": notify,
    "pld.system.wait": wait,
    "pld.system.get_comm_ctx": get_context,
    "pld.system.rank": rank_query,
    "pld.system.nranks": rank_query,
    "system.fence": fence,
    "system.cacheinvalid": cacheinvalid,
}
