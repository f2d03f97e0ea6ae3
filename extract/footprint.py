"""Local memory a program needs: scratch tiles and the tiles alive at one time.

``scratch_bytes`` is the largest scratch tile that a single instruction takes by the target's plans (the scratch
of one instruction is free again for the next); instructions that are given a scratch tile need no other.

``live_bytes`` is the peak, over the statements in program order, of the physical bytes of the vector-memory
tiles alive there. A tile is alive from the statement that defines it (one that is created empty, from its first
use) to the last one that reads it; one defined before a loop and read inside is alive to the loop's end. Views
share the storage of what they show, a loop's carried values that of their initial values where nothing else reads
those, and a branch's results that of what the branch makes for them. A mask is as large as the tiles that were
compared, one byte an element. A dynamic physical extent counts as 1.

``room`` is what a planner takes that gives each tile, in the order in which they are made, the lowest place that is
free: where tiles of unlike sizes follow one another, it is more than what is alive. The assembler v0.60 takes as much
or less on nearly all kernels of the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod

from ..ir.diagnostics import Span, error
from ..ir.dtypes import DTYPES
from ..ir.op import OPS, Kind
from ..ir.predicates import compares, keeps_bits
from ..ir.program import (
    Block,
    For,
    Function,
    If,
    Op,
    Operand,
    Program,
    Statement,
    Value,
    While,
    Yield,
    defined,
    flat_operands,
    inner_blocks,
    walk,
)
from ..ir.types import BLOCK_BYTES, TileType
from ..rewrite.region import own_uses
from ..rules.cost import Instr, work_shape
from ..rules.target import Target
from ..rules.terms import child_params
from .instructions import instruction
from .lowered import Instruction
from .price import FREE

_VIEWS = FREE
#: Selections as targets have them.
_SELECTIONS = frozenset({"tile.sel", "tile.sels"})


def require_room(instructions: Iterable[Instruction], target: Target | None) -> None:
    """Raise TG019 where a tile alone exceeds the target's local memory (dynamic shapes are not judged)."""
    if target is None:
        return
    room = target.ub_usable_bytes
    for i in instructions:
        for r in i.op.results:
            size = _static_bytes(r.type)
            if size > room:
                text = f"{r.name} takes {size:,} bytes, the local memory of {target.name} has {room:,}"
                raise error("TG019", text, i.span, hint="load and store it in parts, in a loop")


def _static_bytes(t: object) -> int:
    if not isinstance(t, TileType) or t.memory not in (None, "Vec"):
        return 0
    return t.dtype.nbytes(prod(d if isinstance(d, int) else 0 for d in t.shape))


def scratch_bytes(program: Program, target: Target | None) -> int:
    """Return the bytes of the largest scratch tile of an instruction."""
    return max((scratch_of(f, target) for f in program.functions), default=0) if target is not None else 0


def scratch_of(function: Function, target: Target) -> int:
    """Return the bytes of the largest scratch tile of an instruction of a function."""
    return max((_scratch(s, target) for s in walk(function.body)), default=0)


def live_bytes(program: Program) -> int:
    """Return the largest number of tile bytes alive at one statement of one function."""
    return max((peak(f)[0] for f in program.functions), default=0)


# -- scratch -----------------------------------------------------------------------------------------------


def _scratch(s: Statement, target: Target) -> int:
    instr = instr_of(s) if isinstance(s, Op) else None
    plan = target.scratch(instr) if instr is not None else None
    return plan.bytes if plan is not None else 0


def instr_of(op: Op) -> Instr | None:
    """Return the instruction of an operation; ``None`` for no instruction, or when it brings its scratch tile."""
    decl = OPS.get(op.name)
    result = op.results[0].type if op.results else None
    if decl is None or decl.pto is None or decl.name in FREE:
        return None
    if _scratch_places(op):
        return None
    types = [getattr(op.operands[i], "type", None) for i in child_params(decl) if op.operands[i] is not None]
    tiles = [t for t in [*types, result] if isinstance(t, TileType)]
    if not tiles:
        return None
    if op.name != "tile.cast":
        return instruction(decl, types, result, op.attrs)
    src, dst = tiles[0].dtype, tiles[-1].dtype
    saturation = op.attrs.get("saturation_mode", "off" if dst.is_float else "on")
    attrs = (("mode", op.attrs.get("mode", "round")), ("saturation", saturation))
    return Instr("tcvt", (src.name, dst.name), *work_shape(tiles), attrs)


# -- liveness ----------------------------------------------------------------------------------------------


@dataclass
class _Ranges:
    """Where storage is defined and last read, by the name of the value that owns it; statements are numbered."""

    counts: Counter[str] = field(default_factory=Counter)
    target: Target | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    masks: set[str] = field(default_factory=set)
    created: dict[str, int] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    owner: dict[str, str] = field(default_factory=dict)
    spans: list[Span | None] = field(default_factory=lambda: [None])
    now: int = 0

    def step(self, span: Span | None) -> None:
        """Go on to the next statement."""
        self.now += 1
        self.spans.append(span)

    def own(self, name: str) -> str:
        while name in self.owner:
            name = self.owner[name]
        return name

    def define(self, value: Value, size: int | None = None) -> None:
        if isinstance(value.type, TileType) and value.type.memory in (None, "Vec") and value.name not in self.owner:
            self.allot(value.name, tile_bytes(value.type) if size is None else size)

    def create(self, value: Value) -> None:
        """Define a tile without contents: it needs no storage before it is used."""
        if isinstance(value.type, TileType) and value.type.memory in (None, "Vec"):
            self.created[value.name] = tile_bytes(value.type)

    def allot(self, name: str, size: int) -> None:
        """Note storage that is defined here."""
        self.sizes[name] = size
        self.first[name] = self.last[name] = self.now

    def read(self, o: Operand) -> None:
        for item in flat_operands((o,)):
            if isinstance(item, Value):
                name = self.own(item.name)
                if name in self.created:
                    self.allot(name, self.created.pop(name))
                if name in self.last:
                    self.last[name] = max(self.last[name], self.now)

    def share(self, value: Value, o: Operand) -> None:
        """Let a value use the storage of another."""
        if isinstance(o, Value) and isinstance(value.type, TileType) and self.own(o.name) != value.name:
            self.owner[value.name] = self.own(o.name)


def tile_bytes(t: TileType) -> int:
    """Return the physical bytes of a tile."""
    return t.dtype.nbytes(prod(d if isinstance(d, int) else 1 for d in t.shape))


def _ranges(f: Function, target: Target | None = None) -> _Ranges:
    """Return where a function's storage is in use; with a target, that of scratch tiles, too."""
    ranges = _Ranges(Counter(name for s in walk(f.body) for name in own_uses(s)), target)
    _walk(f.body, ranges)
    return ranges


def fits(f: Function, target: Target) -> bool:
    """Return whether the tiles and scratch tiles of a function have room in a target's local memory."""
    ranges, limit = _ranges(f, target), target.ub_usable_bytes
    # Most functions fit even if all their tiles were alive at once.
    return sum(map(_whole_blocks, ranges.sizes.values())) <= limit or _packed(ranges) <= limit


def room(f: Function, target: Target) -> int:
    """Return the bytes that a function's tiles and scratch tiles take, each in the lowest free place."""
    return _packed(_ranges(f, target))


def _packed(ranges: _Ranges) -> int:
    taken: list[tuple[int, int, int]] = []
    most = 0
    for name, size in ranges.sizes.items():
        taken = [place for place in taken if place[2] >= ranges.first[name]]
        at, size = 0, _whole_blocks(size)
        for start, end, _ in sorted(taken):
            if at + size <= start:
                break
            at = max(at, end)
        taken.append((at, at + size, ranges.last[name]))
        most = max(most, at + size)
    return most


def _whole_blocks(size: int) -> int:
    return -(-size // BLOCK_BYTES) * BLOCK_BYTES


def peak(f: Function) -> tuple[int, Span | None]:
    """Return the largest number of tile bytes alive at one statement of a function, and where that is."""
    ranges = _ranges(f)
    change: dict[int, int] = {}
    for name, size in ranges.sizes.items():
        change[ranges.first[name]] = change.get(ranges.first[name], 0) + size
        end = ranges.last[name] + 1
        change[end] = change.get(end, 0) - size
    most, alive, where = 0, 0, 0
    for at in sorted(change):
        alive += change[at]
        if alive > most:
            most, where = alive, at
    return most, ranges.spans[where]


def with_fitting_scratch(op: Op, target: Target) -> Op:
    """Return a selection without a scratch tile that the target's instruction does not take: one that fits is made.

    Frontends write one tile for all targets, such as 32 bytes.
    """
    places = _scratch_places(op) if op.name in _SELECTIONS else ()
    given = op.operands[places[0]] if places else None
    if not isinstance(given, Value) or not isinstance(given.type, TileType):
        return op
    bare = _without_scratch(op)
    instr = instr_of(bare)
    plan = target.scratch(instr) if instr is not None else None
    if plan is None or not plan.required:
        return op
    # The row mask of two tiles is any four bytes; a scalar is spread over a row of its own dtype.
    if op.name == "tile.sel":
        return op if given.type.dtype.bits == DTYPES[plan.dtype].bits else bare
    small = 0 < _static_bytes(given.type) < plan.bytes
    return bare if given.type.dtype.name != plan.dtype or small else op


def _walk(block: Block, ranges: _Ranges) -> None:
    for s in block.statements:
        ranges.step(s.span)
        if isinstance(s, Op):
            _operation(s, ranges)
        else:
            _flow(s, ranges)


def _operation(s: Op, ranges: _Ranges) -> None:
    plan = None
    if ranges.target is not None:
        s = with_fitting_scratch(s, ranges.target)
        instr, bare = instr_of(s), _without_scratch(s)
        plan = ranges.target.scratch(instr) if instr is not None else None
        if bare is not s and (instr := instr_of(bare)) is not None and ranges.target.scratch(instr) is None:
            s = bare  # a scratch tile that the target has no use for
    ranges.read(s.operands)
    if s.name in _VIEWS and s.results:
        ranges.share(s.results[0], s.operands[0])
    if plan is not None:
        ranges.allot(f"scratch of {ranges.now}", plan.bytes)
    for r in s.results:
        if s.name == "tile.create":
            ranges.create(r)
        else:
            ranges.define(r, _mask_bytes(s, r, ranges))


def _without_scratch(s: Op) -> Op:
    """Return an operation without the scratch tile that it is given."""
    places = _scratch_places(s)
    if not places:
        return s
    return replace(s, operands=tuple(None if i in places else o for i, o in enumerate(s.operands)))


def _scratch_places(s: Op) -> tuple[int, ...]:
    """Return which operands of an operation are scratch tiles that it is given."""
    decl = OPS.get(s.name)
    given = enumerate(zip(decl.operand_params, s.operands)) if decl is not None else ()
    return tuple(i for i, (p, o) in given if p.kind is Kind.SCRATCH and o is not None)


def _mask_bytes(s: Op, r: Value, ranges: _Ranges) -> int | None:
    """Return the bytes of a result that is a mask, ``None`` for others."""
    operands = _without_scratch(s).operands
    tiles = [o for o in operands if isinstance(o, Value) and isinstance(o.type, TileType)]
    if not tiles:
        return None
    owners = [ranges.own(o.name) for o in tiles]
    if compares(s.name):
        assert isinstance(tiles[0].type, TileType)
        size = prod(d if isinstance(d, int) else 1 for d in tiles[0].type.shape)
    elif keeps_bits(s.name, [name in ranges.masks for name in owners]):
        size = ranges.sizes[owners[0]]
    else:
        return None
    ranges.masks.add(r.name)
    return size


def _flow(s: Statement, ranges: _Ranges) -> None:
    if isinstance(s, For | While):
        ranges.read(tuple(c.init for c in s.carried))
        for c, r in zip(s.carried, s.results):
            if isinstance(c.init, Value) and ranges.counts[c.init.name] == 1:
                ranges.share(c.arg, c.init)
            else:
                ranges.define(c.arg)
            ranges.share(r, c.arg)
        _loop(s, ranges)
    elif isinstance(s, If):
        before = ranges.now
        ranges.read((s.cond,))
        for block in (s.then, s.orelse):
            _walk(block, ranges)
        last = s.then.statements[-1] if s.then.statements else None
        for r, o in zip(s.results, last.operands if isinstance(last, Yield) else ()):
            if isinstance(o, Value) and ranges.counts[o.name] == 1 and ranges.first.get(o.name, 0) > before:
                ranges.share(r, o)
        for r in s.results:
            ranges.define(r)
    else:
        ranges.read(getattr(s, "operands", ()))
        for block in inner_blocks(s):
            _walk(block, ranges)


def _loop(s: For | While, ranges: _Ranges) -> None:
    before = ranges.now
    outside = {name for name, first in ranges.first.items() if first <= before}
    ranges.read(getattr(s, "bounds", ()))
    for block in inner_blocks(s):
        _walk(block, ranges)
    if isinstance(s, While):
        ranges.read((s.cond,))
    ranges.step(s.span)
    for name in outside:
        if ranges.last[name] > before or name in {ranges.own(c.arg.name) for c in s.carried}:
            ranges.last[name] = ranges.now
    for r in defined(s):
        ranges.define(r)
