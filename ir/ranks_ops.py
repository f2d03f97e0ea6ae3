"""What each communicating operation does in a run of several ranks.

Local loads and stores keep their meanings; those of the window operations are completed here with the peer, the
moment and the visibility of the access.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .collectives import Part, effect_of
from .diagnostics import error
from .dimexpr import evaluate
from .interp_eval import evaluator, placer, scalar_rounder
from .lanes import number
from .op import OPS
from .ops._math import scalar_like
from .ops._windows import aligned, index_at, window_at
from .ops.distributed import transfer_regions
from .ops.distributed_collectives import COLLECTIVES
from .ops.distributed_rules import landing
from .ranks_events import Event
from .ranks_flow import Request
from .ranks_memory import Region
from .ranks_world import Arrive, Perform, World
from .tilearray import Arr
from .types import TensorType

_UNSIGNED = 0xFFFFFFFF


def _peer(world: World, request: Request, value: Any) -> int:
    if not 0 <= int(value) < world.ranks:
        span = request.plan.statement.span
        raise error("TG032", f"{request.plan.name}: there is no rank {int(value)} among {world.ranks}", span)
    return int(value)


def _cell(offsets: Sequence[int]) -> tuple[int, ...]:
    for o in offsets:
        if o < 0:
            raise error("TG032", f"the signal offset {list(offsets)} is negative")
    return offsets if isinstance(offsets, tuple) else tuple(offsets)


def _place(request: Request, value: Any) -> Any:
    plan = request.plan
    if plan.extra is None:
        plan.extra = placer(plan.result)
    return plan.extra(value, request.names)


# -- local accesses ------------------------------------------------------------------------------------------


def _local(world: World, rank: int, request: Request) -> Any:
    """An operation with its ordinary meaning on the own slice; regions are whole operands unless they are known."""
    plan = request.plan
    s, decl = plan.statement, OPS[plan.name]
    if plan.extra is None:
        plan.extra = evaluator(decl, plan.types, s.attrs, plan.result)
    at = next(i for i, t in enumerate(plan.types) if isinstance(t, TensorType) and t.is_window)
    view = world.memory.view(request.values[at])
    if decl.effect == "read":
        _, region = world.read(rank, request, view, view.rank, _index_read(plan.name, request.values))
        world.note(rank, "load", s, reads=(region,))
        if world.fenced and plan.name == "tensor.read":
            stored = world.caches[rank].read(view, view.rank, index_at(request.values[1]))
            return number(stored, plan.types[at].dtype)
        return plan.extra(request.values, request.names)
    region = view.region(view.rank, view.array)
    world.settle(rank, region)
    value = plan.extra(request.values, request.names)
    view.mask(view.rank)[...] = True
    world.note(rank, "store", s, writes=(region,))
    world.touch(view.rank)
    return value


def _index_read(name: str, values: Sequence[Any]) -> Any:
    if name == "tile.load":
        return window_at(values[1], values[2] if values[3] is None else values[3])
    if name == "tensor.read":
        return tuple(slice(i, i + 1) for i in index_at(values[1]))
    return ...


def _tile_store(world: World, rank: int, request: Request) -> Any:
    tile, offsets, target, shapes = request.values
    if not world.memory.holds(target):
        return _local(world, rank, request)
    data = aligned(tile.region, target.ndim)
    sizes = data.shape if shapes is None else tuple(int(n) for n in shapes)
    index = window_at(offsets, sizes)
    view = world.memory.view(target)
    if target[index].shape != sizes:
        raise error("TG032", f"a {list(sizes)} tile at {list(offsets)} reaches past the tensor")
    part = data[tuple(slice(0, n) for n in target[index].shape)]
    region = world.write(rank, view, view.rank, index, part, request.plan.attrs["atomic"] == "add")
    world.note(rank, "store", request.plan.statement, writes=(region,))
    return target


def _tensor_write(world: World, rank: int, request: Request) -> Any:
    target, indices, value = request.values
    view = world.memory.view(target)
    element = scalar_like(value, request.plan.types[0].dtype)
    if world.fenced:
        region = world.write_element(rank, view, view.rank, index_at(indices), element)
    else:
        index = tuple(slice(i, i + 1) for i in index_at(indices))
        region = world.write(rank, view, view.rank, index, np.full((1,) * target.ndim, element, target.dtype))
    world.note(rank, "store", request.plan.statement, writes=(region,))
    return target


# -- remote accesses -----------------------------------------------------------------------------------------


def _remote_load(world: World, rank: int, request: Request) -> Any:
    target, peer, offsets, shape, valid = request.values
    view = world.memory.view(target)
    index = window_at(offsets, shape if valid is None else valid)
    part, region = world.read(rank, request, view, _peer(world, request, peer), index)
    world.note(rank, "load", request.plan.statement, reads=(region,))
    return _place(request, part.copy())


def _remote_store(world: World, rank: int, request: Request) -> Any:
    source, target, peer, offsets = request.values
    data = source.region if hasattr(source, "region") else source
    owner = _peer(world, request, peer)
    view = world.memory.view(target)
    index = landing(offsets, data.shape)
    if target[index].shape[-2:] != data.shape[-2:]:
        raise error("TG032", f"a {list(data.shape)} tile at {list(offsets)} reaches past the window")
    reads = _own_read(world, rank, request, source)
    region = world.write(rank, view, owner, index, data, request.plan.attrs["atomic"] == "add")
    world.note(rank, "store", request.plan.statement, reads=reads, writes=(region,))


def _own_read(world: World, rank: int, request: Request, array: Any, index: Any = ...) -> tuple[Region, ...]:
    """Read a local operand that may lie in a window."""
    if not isinstance(array, np.ndarray) or not world.memory.holds(array):
        return ()
    view = world.memory.view(array)
    return (world.read(rank, request, view, view.rank, index)[1],)


def _put(world: World, rank: int, request: Request) -> Any:
    dst, peer, src, *_, dst_offsets, src_offsets, shape = request.values
    to, at = transfer_regions(dst_offsets, src_offsets, shape)
    owner = _peer(world, request, peer)
    reads = _own_read(world, rank, request, src, at)
    _same_extent(dst[to], src[at])
    region = world.write(rank, world.memory.view(dst), owner, to, src[at], request.plan.attrs["atomic"] == "add")
    world.note(rank, "put", request.plan.statement, reads=reads, writes=(region,))


def _get(world: World, rank: int, request: Request) -> Any:
    dst, peer, src, *_, dst_offsets, src_offsets, shape = request.values
    to, at = transfer_regions(dst_offsets, src_offsets, shape)
    owner = _peer(world, request, peer)
    part, region = world.read(rank, request, world.memory.view(src), owner, at)
    _same_extent(dst[to], part)
    writes: tuple[Region, ...] = ()
    if world.memory.holds(dst):
        view = world.memory.view(dst)
        if view.region(view.rank, dst[to]) != region:
            writes = (world.write(rank, view, view.rank, to, part),)
    else:
        dst[to] = part
    world.note(rank, "get", request.plan.statement, reads=(region,), writes=writes)


def _same_extent(dst: Arr, src: Arr) -> None:
    if dst.shape != src.shape:
        raise error("TG032", f"a transfer from {list(src.shape)} elements to {list(dst.shape)} leaves its tensor")


# -- signals -------------------------------------------------------------------------------------------------


def _notify(world: World, rank: int, request: Request) -> Any:
    target, peer, offsets, value = request.values
    plan = request.plan
    owner = _peer(world, request, peer)
    if world.pending[rank] and not world.fenced:
        world.flush(rank)
    view = world.memory.view(target)
    index = _cell(offsets)
    array = view.peer(owner)
    word = plan.attrs["op"]
    if plan.extra is None:
        plan.extra = scalar_rounder(plan.types[0].dtype)
    seen = plan.extra(array.item(index) + value if word == "atomic_add" else value)
    if world.fenced and word == "set":
        world.write_element(rank, view, owner, index, seen)
    else:
        array[index] = seen
    if not view.window.complete[owner]:
        view.mask(owner)[index] = True
    if world.trace is not None:
        cell = view.cell(owner, index)
        world.trace.append(
            Event(len(world.trace), rank, "notify", plan.statement, (), (), cell, int(value), word, seen)
        )
    world.touch(owner)


def _at_wait(world: World, rank: int, request: Request) -> None:
    signal, offsets, expected = request.values
    index = _cell(offsets)
    view = world.memory.view(signal)
    signal.item(index)  # a cell outside the window fails here, before anyone waits for it
    if not view.window.complete[rank] and not view.mask(rank)[index].all():
        where = f"{request.plan.statement.name} on undefined signal cells"
        world.report("undefined read", f"rank {rank}: {where}", (rank,), (request.plan.statement,))
    held = signal.item
    if request.plan.attrs["cmp"] == "ge":
        request.ready = lambda: held(index) >= expected
    else:
        request.ready = lambda: held(index) == expected


def _wait(world: World, rank: int, request: Request) -> Any:
    if world.trace is not None:
        plan, cell, seen = request.plan, world.cell_of(request), world.cell_value(request)
        value = int(request.values[2])
        world.trace.append(
            Event(len(world.trace), rank, "wait", plan.statement, (), (), cell, value, plan.attrs["cmp"], seen)
        )


def _at_deferred(world: World, rank: int, request: Request) -> None:
    """On the second arrival, at the end of the task, the condition must hold; counters compare as unsigned."""
    if not request.done:
        return
    signal, offsets, expected = request.values
    index = _cell(offsets)
    request.ready = lambda: int(signal[index]) & _UNSIGNED >= int(expected) & _UNSIGNED


def _defer_wait(world: World, rank: int, request: Request) -> Any:
    kind = "wait" if request.done else "defer"
    if not request.done:
        request.done = True
        request.machine.deferred.append(request)
    world.note(
        rank, kind, request.plan.statement, cell=world.cell_of(request), value=int(request.values[2]), word="ge",
        seen=world.cell_value(request),
    )  # fmt: skip


def _fence(world: World, rank: int, request: Request) -> Any:
    world.flush(rank, released=world.fenced)
    world.note(rank, "fence", request.plan.statement)


def _cacheinvalid(world: World, rank: int, request: Request) -> Any:
    tensor, shapes, offsets = request.values
    regions: tuple[Region, ...] = ()
    if tensor is not None and world.memory.holds(tensor):
        view = world.memory.view(tensor)
        regions = (view.region(view.rank, tensor[window_at(offsets, shapes)]),)
    if tensor is None or regions:
        world.caches[rank].drop(*regions)
    for write in world.pending[rank].values():
        # The text names the own slice; the write may have gone to the same elements of a peer's.
        here = Region(write.region.window, rank, *_shape_of(write.region))
        if not regions or any(here.overlaps(r) for r in regions):
            write.released = True
    world.note(rank, "invalidate", request.plan.statement, reads=regions)


def _shape_of(r: Region) -> tuple[int, tuple[int, ...], tuple[int, ...], int]:
    return r.start, r.shape, r.strides, r.itemsize


# -- collectives, by their definitions -------------------------------------------------------------------------

#: Which operand is the signal; of the others, which copy an input into a window, it is the third.
_SIGNAL = {"allreduce": 1, "barrier": 0, "broadcast": 1, "reduce_scatter": 1}


def _target(name: str) -> int:
    return 0 if name.rpartition(".")[2] in _SIGNAL else 1


def _at_collective(world: World, rank: int, request: Request) -> None:
    """Ranks meet at the same call on the same signal, the k-th of each; the last to arrive completes it."""
    world.flush(rank)
    name = request.plan.name.rpartition(".")[2]
    meeting = request.values[_SIGNAL.get(name, 2)]
    view = world.memory.view(request.values[0] if meeting is None else meeting)
    place = (name, view.window.name, view.offset, tuple(sorted(request.plan.attrs.items())))
    count = world.calls[rank, place] = world.calls.get((rank, place), 0) + 1
    ranks = world.arrived.setdefault((place, count), [None] * world.ranks)
    ranks[rank] = request
    request.ready = lambda: request.done
    if all(r is not None for r in ranks):
        _complete(world, name, [r for r in ranks if r is not None])
        for r in range(world.ranks):
            world.touch(r)


def _complete(world: World, name: str, calls: list[Request]) -> None:
    target = _target(name)
    plan = calls[0].plan
    t = plan.types[target]
    valid = None
    if t.valid is not None:
        known = [evaluate(d, calls[0].names) for d in t.valid]
        valid = tuple(n if k is None else k for k, n in zip(known, calls[0].values[target].shape))
    effect = effect_of(name, [c.values for c in calls], plan.attrs, t.dtype, valid)
    reads: list[list[Region]] = [[] for _ in calls]
    for part in effect.reads:
        array = calls[part.rank].values[part.operand]
        reads[part.rank] += _own_read(world, part.rank, calls[part.rank], array, part.index)
    writes: list[list[Region]] = [[] for _ in calls]
    for part, data in effect.writes:
        writes[part.rank] += _written(world, calls, part, data)
    for rank, c in enumerate(calls):
        c.done = True
        world.note(rank, "collective", c.plan.statement, reads=tuple(reads[rank]), writes=tuple(writes[rank]))


def _written(world: World, calls: list[Request], part: Part, data: Arr) -> list[Region]:
    view = world.memory.view(calls[part.rank].values[part.operand])
    view.array[part.index] = data
    view.mask(view.rank)[part.index] = True
    place = part.index
    if isinstance(place, tuple):
        place = tuple(i if isinstance(i, slice) else slice(i, i + 1) for i in place)
    return [view.region(view.rank, view.array[place])]


def _collective(world: World, rank: int, request: Request) -> Any:
    return request.values[_target(request.plan.name)]


ARRIVE: dict[str, Arrive] = {
    "pld.system.wait": _at_wait,
    "pld.system.defer_wait": _at_deferred,
    **{f"pld.tensor.{name}": _at_collective for name in COLLECTIVES},
}
PERFORM: dict[str, Perform] = {
    "tile.store": _tile_store,
    "tensor.write": _tensor_write,
    "pld.tile.remote_load": _remote_load,
    "pld.tile.remote_store": _remote_store,
    "pld.tensor.remote_store": _remote_store,
    "pld.tensor.put": _put,
    "pld.tile.put": _put,
    "pld.tensor.get": _get,
    "pld.tile.get": _get,
    "pld.system.notify": _notify,
    "pld.system.wait": _wait,
    "pld.system.defer_wait": _defer_wait,
    "system.fence": _fence,
    "system.cacheinvalid": _cacheinvalid,
    **{f"pld.tensor.{name}": _collective for name in COLLECTIVES},
}
#: Any other operation on a window: its ordinary meaning.
OTHER: Perform = _local
