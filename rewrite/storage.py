"""Which tiles are changed in place after they are made, under any name that their storage has.

What an operation says of its result holds when it has run. An operation that writes into a tile ends that for the
tile, for its views and for what it is a view of; neither this module nor its users ask when the write happens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count

from ..ir.op import OPS, Kind
from ..ir.program import (
    Block,
    For,
    Function,
    If,
    Jump,
    Op,
    Operand,
    Scope,
    Statement,
    Value,
    While,
    Yield,
    flat_operands,
    walk,
    with_blocks,
)
from ..ir.types import OpaqueType, TileType, TupleType

#: Operations whose result is another name for (part of) their operand's storage.
ALIASES = frozenset(
    {
        "tile.slice", "tile.reshape", "tile.reinterpret_view", "tile.set_validshape", "tile.assume", "tile.transpose",
        "tile.transpose_view", "tile.approx",
    }
)  # fmt: skip

_Names = Sequence[Operand]


def changes(s: Statement) -> list[Value]:
    """Return what a statement itself changes in place: a written tile, or all tiles an unknown operation is given.

    What an unknown operation gave may stand for a tile that it was given.
    """
    if not isinstance(s, Op):
        return []
    decl = OPS.get(s.name)
    if decl is None:
        return [o for o in flat_operands(s.operands) if isinstance(o, Value) and _holds_tiles(o)]
    first = s.operands[0] if s.operands else None
    written = decl.effect == "write" and decl.raw and decl.operand_params[0].kind is Kind.TILE
    return [first] if written and isinstance(first, Value) else []


def _holds_tiles(v: Value) -> bool:
    return isinstance(v.type, TileType | TupleType | OpaqueType)


def changed(f: Function) -> frozenset[str]:
    """Return the names of the values whose elements may not stay what their definition gave."""
    written = {v.name for s in walk(f.body) for v in changes(s)}
    if not written:
        return frozenset()
    storage = _Storage()
    storage.block(f.body, (), ())
    return storage.all_with(written)


def own_tiles(f: Function, names: frozenset[str]) -> frozenset[str]:
    """Return those of the ``changed`` names whose definition makes a tile: it must be no other value's tile.

    Until it is changed such a tile may equal another one, and must not stand for it.
    """
    if not names:
        return names
    made = {r.name for s in walk(f.body) if isinstance(s, Op) and s.name not in ALIASES for r in s.results}
    return names & made


class SharedTile(Exception):
    """A tile that is changed in place would be another value's tile: its definition does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def with_copy(f: Function, name: str) -> tuple[Function, str]:
    """Return a function in which the tile of a name is a copy of what its definition gave, and the name of that."""
    names = {r.name for s in walk(f.body) for r in getattr(s, "results", ())}
    before = next(n for k in count() if (n := f"{name}__copied_tmp_v{k}") not in names)

    def copied(s: Statement) -> list[Statement]:
        if not isinstance(s, Op) or [r.name for r in s.results] != [name]:
            return [with_blocks(s, inside)]
        made = Value(before, s.result.type)
        move = Op("tile.move", (made,), {"target_memory": "Vec"}, s.results, s.span)
        return [replace(s, results=(made,)), move]

    def inside(block: Block) -> Block:
        return Block(tuple(new for s in block.statements for new in copied(s)))

    return replace(f, body=inside(f.body)), before


class _Storage:
    """Names in groups that may share storage (a forest: each name points towards its group's root)."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def all_with(self, names: Iterable[str]) -> frozenset[str]:
        """Return all names of the groups that the given ones are in."""
        roots = {self._root(name) for name in names}
        return frozenset(name for name in self._parent if self._root(name) in roots)

    def block(self, block: Block, results: _Names, carried: _Names) -> None:
        """Note what shares storage in a block that yields ``results``, in a loop that carries ``carried``."""
        statements = block.statements
        for s, following in zip(statements, (*statements[1:], None)):
            match s:
                case Op():
                    self._op(s)
                case Yield():
                    self._join(s.operands, carried if isinstance(following, Jump) else results)
                case For():
                    self._loop(s)
                    self.block(s.body, [c.arg for c in s.carried], [c.arg for c in s.carried])
                case While():
                    self._loop(s)
                    self.block(s.head, (), [c.arg for c in s.carried])
                    self.block(s.body, [c.arg for c in s.carried], [c.arg for c in s.carried])
                case If():
                    self.block(s.then, s.results, carried)
                    self.block(s.orelse, s.results, carried)
                case Scope():
                    self.block(s.body, results, carried)

    def _op(self, s: Op) -> None:
        shared = [*changes(s), *(s.operands[:1] if s.name in ALIASES else ())]
        for o in shared:
            self._join([o] * len(s.results), s.results)

    def _loop(self, s: For | While) -> None:
        self._join([c.arg for c in s.carried], [c.init for c in s.carried])
        self._join([c.arg for c in s.carried], s.results)

    def _join(self, some: _Names, others: _Names) -> None:
        """Note that values at the same places may share storage."""
        for a, b in zip(some, others):
            if isinstance(a, Value) and isinstance(b, Value):
                self._parent[self._root(a.name)] = self._root(b.name)

    def _root(self, name: str) -> str:
        parent = self._parent.setdefault(name, name)
        while parent != name:
            name, parent = parent, self._parent[parent]
        return name
