"""Cutting a function body into regions: runs of pure operations that become one e-graph each.

Effects (loads, stores, creations, loops, branches, unknown operations) stay ordered statements; their
operands are the region's roots and their results its leaves. A region may span loads and stores, since tiles
are SSA values; it ends at an operation that changes a tile in place or that tilegg does not know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ..ir.diagnostics import TileggError
from ..ir.op import OPS, Call, Kind
from ..ir.program import (
    Block,
    Carried,
    Const,
    For,
    Function,
    Op,
    Operand,
    Statement,
    Value,
    While,
    Yield,
    flat_operands,
    inner_blocks,
    walk,
)
from ..ir.types import Dim, ScalarType, TensorType, TileType, TupleType, Type
from ..rules.terms import child_params
from .egglog_text import is_term
from .storage import changes

#: Most operations in one e-graph; longer runs are cut into windows, so that cost grows linearly.
WINDOW = 256

_NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Region:
    """A run of pure operations: ``positions`` in the block, leaves in order of use, roots by name.

    ``dying`` names the leaves whose storage is the region's to overwrite: tiles that an operation of the same
    block makes and nothing outside the region reads. ``handed``: results that nothing but the yield of a loop's body
    reads, with the carried tile that each becomes.
    """

    ops: tuple[Op, ...]
    positions: tuple[int, ...]
    leaves: tuple[Value, ...]
    roots: frozenset[str]
    dying: frozenset[str] = frozenset()
    handed: tuple[tuple[str, str], ...] = ()


def regions(
    block: Block, fixed: frozenset[str], alone: frozenset[str] = frozenset(), carried: Sequence[Carried] = ()
) -> list[Region]:
    """Return the regions of a block; ``fixed`` names scalars that types mention, which must stay.

    Values in ``alone`` get regions of their own: equal values of one region become one (see ``storage.own_tiles``).
    ``carried``: what the loop carries whose body the block is.
    """
    runs: list[list[int]] = [[]]
    for i, s in enumerate(block.statements):
        if isinstance(s, Op) and encodable(s, fixed):
            own = s.result.name in alone
            if len(runs[-1]) >= WINDOW or (own and runs[-1]):
                runs.append([])
            runs[-1].append(i)
            if own:
                runs.append([])
        elif runs[-1] and _is_barrier(s):
            runs.append([])
    if runs == [[]]:
        return []
    users: dict[str, list[int]] = {}
    for i, s in enumerate(block.statements):
        for name in uses(s):
            users.setdefault(name, []).append(i)
    made = frozenset(s.result.name for s in block.statements if isinstance(s, Op) and s.name in _MAKERS and s.results)
    handed = _handed(block, carried, users)
    return [_region(block, run, users, made, handed) for run in runs if run]


def _handed(block: Block, carried: Sequence[Carried], users: dict[str, list[int]]) -> dict[str, str]:
    """Return the tiles that nothing but a block's yield reads, by name, with the carried tile each becomes."""
    last = block.statements[-1]
    if not carried or not isinstance(last, Yield):
        return {}
    return {
        o.name: c.arg.name
        for o, c in zip(last.operands, carried)
        if isinstance(o, Value) and isinstance(o.type, TileType) and len(users[o.name]) == 1
    }


#: Operations outside regions whose results have storage of their own.
_MAKERS = frozenset({"tile.load", "tile.create", "tile.mgather"})


def _region(
    block: Block, run: list[int], users: dict[str, list[int]], made: frozenset[str], handed: dict[str, str]
) -> Region:
    ops = tuple(s for i in run if isinstance(s := block.statements[i], Op))
    inside = {op.result.name for op in ops}
    leaves: dict[str, Value] = {}
    for op in ops:
        for i in child_params(OPS[op.name]):
            o = op.operands[i]
            if isinstance(o, Value) and o.name not in inside:
                leaves.setdefault(o.name, o)
    members = set(run)
    roots = frozenset(name for name in inside if not members.issuperset(users.get(name, ())))
    dying = frozenset(name for name in leaves if name in made and members.issuperset(users.get(name, ())))
    given = tuple([(name, handed[name]) for op in ops if (name := op.result.name) in handed]) if handed else ()
    return Region(ops, tuple(run), tuple(leaves.values()), roots, dying, given)


def narrowed(op: Op, annotated: TileType) -> bool:
    """True where an annotation narrows the valid shape: the result is then less than what the operation gives."""
    if annotated.valid is None:
        return False
    decl = OPS[op.name]
    try:
        given = decl.result(Call(decl, op.operands, {**decl.defaults, **op.attrs}, None))
    except TileggError:
        return True
    return not isinstance(given, TileType) or given.valid_shape != annotated.valid_shape


def encodable(op: Op, fixed: frozenset[str]) -> bool:
    """Return whether the operation can be a term: declared, pure, scalars and tiles only, literal dims."""
    dims = _term_dims(op.name)
    if dims is None or len(op.results) != 1:
        return False
    result = op.results[0]
    if result.name in fixed or not _takes(result.type) or "attrs" in op.attrs:
        return False
    if isinstance(result.type, TileType) and (result.type.memref is not None or narrowed(op, result.type)):
        return False
    for is_dims, o in zip(dims, op.operands):
        kind = type(o)
        if kind is Value:
            if is_dims or not _takes(o.type):  # type: ignore[union-attr]
                return False
        elif kind is tuple:
            if not is_dims or not all(type(d) is Const for d in o):  # type: ignore[union-attr]
                return False
        elif o is not None and (is_dims or kind is not Const):
            return False
    return True


def _takes(t: Type) -> bool:
    kind = type(t)
    return kind is TileType or kind is ScalarType


@lru_cache(maxsize=1024)
def _term_dims(name: str) -> tuple[bool, ...] | None:
    """Return which operands are lists of dims, or ``None`` when the operation is no term."""
    decl = OPS.get(name)
    if decl is None or not is_term(decl):
        return None
    return tuple(p.kind is Kind.DIMS for p in decl.operand_params)


def _is_barrier(s: Statement) -> bool:
    """True of statements that may change a tile in place."""
    if not isinstance(s, Op):
        return any(_is_barrier(inner) for b in inner_blocks(s) for inner in b.statements)
    return bool(changes(s))


def uses(s: Statement) -> list[str]:
    """Return the names a statement reads, nested blocks included."""
    found = own_uses(s)
    if not isinstance(s, Op):
        for b in inner_blocks(s):
            for inner in b.statements:
                found += uses(inner)
    return found


def own_uses(s: Statement) -> list[str]:
    """Return the names a statement reads itself, without its nested blocks."""
    if not isinstance(s, Op):
        return [o.name for o in _operands(s) if isinstance(o, Value)]
    found: list[str] = []
    _collect(s.operands, found)
    return found


def _collect(operands: tuple[Operand, ...], found: list[str]) -> None:
    for o in operands:
        kind = type(o)
        if kind is Value:
            found.append(o.name)  # type: ignore[union-attr]
        elif kind is tuple:
            _collect(o, found)  # type: ignore[arg-type]


def _operands(s: Statement) -> Iterator[object]:
    for name in ("operands", "bounds"):
        yield from flat_operands(getattr(s, name, ()))
    yield getattr(s, "cond", None)
    if isinstance(s, For | While):
        yield from flat_operands(tuple(c.init for c in s.carried))


def names_in_types(function: Function) -> frozenset[str]:
    """Return every name that a dimension of some type in the function mentions, and every loop condition.

    A loop's condition is read after the last statement of its head, so no statement would ask for it.
    """
    found: set[str] = set()
    seen: set[int] = set()

    def visit(t: Type) -> None:
        if id(t) in seen:
            return
        seen.add(id(t))
        for d in _dims(t):
            if isinstance(d, str):
                found.update(_NAME.findall(d))

    for p in function.params:
        visit(p.value.type)
    for t in function.results:
        visit(t)
    for s in walk(function.body):
        for r in getattr(s, "results", ()):
            visit(r.type)
        if isinstance(s, While) and isinstance(s.cond, Value):
            found.add(s.cond.name)
    return frozenset(found)


def _dims(t: Type) -> Iterator[Dim]:
    match t:
        case TileType():
            yield from (*t.shape, *t.valid_shape)
        case TensorType():
            yield from (*t.shape, *(t.stride or ()), *(t.valid or ()))
        case TupleType():
            for item in t.items:
                yield from _dims(item)
