"""With which numbers of ranks, sizes and inputs a program is unrolled when its user names none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...ir.dimexpr import evaluate
from ...ir.dtypes import DType
from ...ir.levels import HOST, level_of
from ...ir.program import Const, For, Function, Op, Param, Program, Value, flat_operands, walk
from ...ir.ranks_flow import suspending
from ...ir.ranks_signals import signal_names
from ...ir.types import ScalarType, TensorType, TileType
from .report import Setting

#: Numbers of ranks when a program does not fix its own.
RANKS = (2, 3, 4, 8)
#: Elements per rank of a dynamic size, tried one after the other until the program runs.
PER_RANK = (16, 32, 64, 8, 1)
_NAME = re.compile(r"[A-Za-z_]\w*")
#: Names that are taken for the number of ranks wherever they occur in a size.
_RANK_NAMES = ("NR", "N_RANKS", "NRANKS", "WORLD_SIZE", "WORLD", "RANKS")
_WORDS = ("min", "max")
#: Which operand names the peer.
_PEER = {
    "pld.system.notify": 1, "pld.tensor.put": 1, "pld.tensor.get": 1, "pld.tile.put": 1, "pld.tile.get": 1,
    "pld.tile.remote_load": 1, "pld.tile.remote_store": 2, "pld.tensor.remote_store": 2,
}  # fmt: skip


def functions_to_check(program: Program) -> list[Function]:
    """Return the host functions of a program, or its communicating kernels that no other function calls."""
    hosts = [f for f in program.functions if level_of(f) == HOST]
    called = {str(s.attrs.get("callee")) for f in program.functions for s in walk(f.body) if isinstance(s, Op)}
    if hosts:
        return [f for f in hosts if f.name not in called or len(hosts) == 1]
    talking = suspending(program.functions)
    return [f for f in program.functions if f.name in talking and f.name not in called]


def rank_counts(program: Program, f: Function) -> tuple[int, ...]:
    """Return the numbers of ranks to check.

    A static ring signal ``[2 (N - 1), N]`` fixes N; so does, in a program that never asks for the number of ranks, a
    static ``[N, 1]`` or ``[N]``, or else the largest rank that it addresses by a number. All others are checked for
    :data:`RANKS`.
    """
    rings: set[int] = set()
    plain: set[int] = set()
    for shape in _signal_shapes(program, f):
        n = shape[-1]
        if len(shape) == 2 and isinstance(n, int) and n > 1 and shape[0] in (2 * (n - 1), 2 * n - 1):
            rings.add(n)
        elif isinstance(shape[0], int) and shape[0] > 1:
            plain.add(shape[0])
    fixed = rings
    if not rings and not _asks_for_ranks(program):
        fixed = plain or _literal(program)
    return tuple(fixed) if len(fixed) == 1 else RANKS


def _literal(program: Program) -> set[int]:
    """Return how many ranks there must be for the peers that are written as numbers, if there are such."""
    ops = [s for f in program.functions for s in walk(f.body) if isinstance(s, Op) and s.name in _PEER]
    peers = [s.operands[_PEER[s.name]] for s in ops]
    numbers = [int(p.value) for p in peers if isinstance(p, Const)]
    return {max(numbers) + 1} if numbers and max(numbers) > 0 else set()


def cells_for(program: Program, f: Function) -> int | None:
    """Return the cells along the first axis of the smallest static signal: more ranks may not fit it."""
    sizes = [shape[0] for shape in _signal_shapes(program, f) if isinstance(shape[0], int)]
    return min(sizes, default=None)


def _signal_shapes(program: Program, f: Function) -> list[tuple[Any, ...]]:
    names = signal_names(program, f)
    types = [p.value.type for p in f.params if p.value.name in names]
    return [t.shape for t in types if isinstance(t, TensorType) and t.shape]


def _asks_for_ranks(program: Program) -> bool:
    """Return whether a number of ranks is asked for and used."""
    ops = [s for f in program.functions for s in walk(f.body) if isinstance(s, Op)]
    asked = {v.name for s in ops if s.name in ("pld.system.nranks", "pld.system.world_size") for v in s.results}
    return any(name in asked for f in program.functions for name in _used(f))


def _used(f: Function) -> Iterator[str]:
    for s in walk(f.body):
        operands = s.operands if isinstance(s, Op) else s.bounds if isinstance(s, For) else ()
        yield from (o.name for o in flat_operands(operands) if isinstance(o, Value))


def sizes(
    program: Program, f: Function, ranks: int, dims: Mapping[str, int], each: int = PER_RANK[0]
) -> dict[str, int]:
    """Return a value for each name in the sizes of the parameters: the given one, the ranks, or ``each`` per rank."""
    signals = signal_names(program, f)
    out = dict(dims)
    for shape in _signal_shapes(program, f):
        if len(shape) == 2 and _means_ranks(shape[1]) and isinstance(shape[0], str) and shape[0].isidentifier():
            # A row for each round of a ring.
            out.setdefault(shape[0], ranks if _means_ranks(shape[0]) else 2 * (ranks - 1))
    for p in sorted(f.params, key=lambda p: p.value.name not in signals):
        for name in _size_names(p):
            of_ranks = p.value.name in signals or _means_ranks(name)
            out.setdefault(name, ranks if of_ranks else each * ranks)
    return out


def _means_ranks(dim: Any) -> bool:
    return isinstance(dim, str) and dim.upper() in _RANK_NAMES


def _size_names(p: Param) -> Iterator[str]:
    t = p.value.type
    if isinstance(t, TensorType | TileType):
        for d in t.shape:
            if isinstance(d, str):
                yield from (w for w in _NAME.findall(d) if w not in _WORDS)


def inputs_for(f: Function, setting: Setting) -> Any:
    """Return inputs by rank for :func:`tilegg.ir.ranks.run_ranks`: small integers, ones; windows are left out."""
    names = dict(setting.dims)

    def given(rank: int) -> dict[str, Any]:
        return {
            p.value.name: value
            for p in f.params
            if (value := _value(p, names, rank, setting.sample)) is not None
        }

    return given(0) if level_of(f) == HOST else given


def _value(p: Param, names: Mapping[str, int], rank: int, sample: int) -> Any:
    t = p.value.type
    if isinstance(t, ScalarType):
        return names.get(p.value.name, 2 + sample) if t.dtype.is_int else 1.0 + sample
    if not isinstance(t, TensorType | TileType) or p.direction == "Out":
        return None
    if isinstance(t, TensorType) and t.is_window:
        return None
    shape = [evaluate(d, names) for d in t.shape]
    if None in shape:
        return None
    return _array(tuple(int(n or 0) for n in shape), t.dtype, rank, sample)


def _array(shape: tuple[int, ...], dtype: DType, rank: int, sample: int) -> Any:
    count = int(np.prod(shape))
    if dtype.is_int:
        limit = 2 if dtype.bits == 1 else 4
        return ((np.arange(count) + rank + sample * 2) % limit).astype(dtype.storage).reshape(shape)
    one = np.ones(shape, np.float32)
    return one.astype(dtype.storage)
