"""The strategy for programs: the maker of random programs, with Hypothesis in the place of its random numbers.

What shrinks: the number of operations, operations towards additions and casts, dtypes towards FP32, control flow
towards none. What nothing reads is left out of a program.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..codegen.emit import emit
from ..extract.lower import lower
from ..extract.price import Refusal, pricer_for
from ..ir.convert import decode, encode
from ..ir.diagnostics import TileggError, error
from ..ir.dtypes import DTYPES, INDEX, DType, parse_dtype
from ..ir.op import OPS, OpDecl
from ..ir.program import (
    Block,
    Const,
    Function,
    Op,
    Operand,
    Param,
    Program,
    Return,
    Statement,
    Value,
    defined,
    flat_operands,
)
from ..ir.types import Dim, TileType, scalar
from ..rewrite.random_calls import Call, Refused, append_call, calls, vocabulary
from ..rewrite.random_flow import FLOWS
from ..rewrite.random_idioms import IDIOMS
from ..rewrite.random_programs import Kind, Maker
from ..rewrite.region import uses
from ..rules.target import Target, load_target

try:
    from hypothesis import assume
    from hypothesis import strategies as st
except ImportError as problem:  # the package works without
    raise ImportError("the strategies of tilegg.testing need Hypothesis: pip install 'tilegg[testing]'") from problem

if TYPE_CHECKING:
    from _typeshed import SupportsLenAndGetItem

#: Names that every program may use to get values in and out.
_FRAME = frozenset({"tile.load", "tile.store", "tile.create", "tile.assume"})
#: Results of a program at most.
_MOST = 5
#: Dtypes that programs shrink towards.
SIMPLE = ("FP32", "INT32", "FP16", "BF16", "INT8", "UINT8", "INT16")
#: What the optimiser writes and nobody else, and promises, which only loads come with: others are hard to keep.
_INTERNAL = frozenset({"tile.approx", "tile.assume"})
_FIRST = ("tile.add", "tile.adds", "tile.mul", "tile.cast", "tile.neg")


def programs(
    *,
    target: str | Target | None = None,
    dtypes: Iterable[str | DType] | None = None,
    ops: Iterable[str] | None = None,
    size: int = 8,
    shape: tuple[int, int] = (2, 8),
    flow: bool = False,
    composites: bool = False,
) -> st.SearchStrategy[Program]:
    """Draw a program of one function that verifies and runs: loads, up to ``size`` operations, stores.

    ``target``: only programs that can be lowered and written as assembly for it. ``dtypes``: of tiles; predicates are
    UINT8 besides.
    ``ops``: names (``tile.add``, or ``add``) or families of operations, in small or capital letters (default: every
    pure tile and scalar operation); one that no operation of the rest can feed is not drawn. ``shape``: of most tiles.
    ``flow``: loops and branches. ``composites``: sine, cosine and others that recipes lower with an error, unless
    ``ops`` names them anyway.

    Raises TG003 for an unknown operation, TG004 for an unknown dtype, TG040 for an unknown target.
    """
    machine = load_target(target) if isinstance(target, str) else target
    chosen = None if dtypes is None else tuple(parse_dtype(d) if isinstance(d, str) else d for d in dtypes)
    kind = Kind(machine, size, shape, flow, composites)
    return _programs(_Wanted(kind, tuple(chosen_ops(ops)), chosen, ops is not None))


def chosen_ops(ops: Iterable[str] | None) -> list[str]:
    """Return the operations of names and families, simple ones first; raises TG003."""
    known = [n for n in vocabulary() if n not in _INTERNAL]
    if ops is None:
        found = known
    else:
        found = []
        for word in ops:
            family = word.lower()
            here = [n for n in known if word in (n, n.partition(".")[2]) or OPS[n].family.lower() == family]
            if not here:
                message = f"{word!r} is neither a pure operation nor a family of some"
                raise error("TG003", message, hint="see: tilegg ops")
            found += here
    place = {n: i for i, n in enumerate(_FIRST)}
    return sorted(dict.fromkeys(found), key=lambda n: (place.get(n, len(place)), n.startswith("scalar.")))


@st.composite
def _programs(draw: st.DrawFn, wanted: _Wanted) -> Program:
    source = draw(st.randoms(use_true_random=False))
    size = draw(st.integers(1, max(wanted.kind.size, 1)))
    p = _Drawn(_Upwards(source), wanted, size).program()
    # Operations are chosen so that each can be written by itself; what several do together is left to be rejected.
    assume(wanted.kind.target is None or _is_written(p, wanted.kind.target))
    return p


@dataclass(frozen=True)
class _Wanted:
    """What programs may consist of; ``dtypes``: ``None`` for all; ``named``: the operations were asked for by name."""

    kind: Kind
    ops: tuple[str, ...]
    dtypes: tuple[DType, ...] | None
    named: bool


class _Upwards(random.Random):
    """The numbers of a Hypothesis source, of which ``random`` shrinks towards one: the maker's rare things go first."""

    def __new__(cls, *_: Any) -> _Upwards:
        return super().__new__(cls)

    def __init__(self, source: random.Random) -> None:
        super().__init__(0)
        self.source = source

    def random(self) -> float:
        """Return a number in [0, 1)."""
        return min(1.0 - self.source.random(), 1.0 - 2.0**-53)

    def choice(self, items: SupportsLenAndGetItem[Any]) -> Any:
        """Return an item; shrinks towards the first."""
        return items[self.source.randrange(len(items))]

    def randint(self, low: int, high: int) -> int:
        """Return an integer, both ends included; shrinks towards zero or the nearest end."""
        return self.source.randint(low, high)

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Return an integer of a range."""
        return self.source.randrange(start, stop, step) if stop is not None else self.source.randrange(start)

    def getrandbits(self, k: int) -> int:
        """Return an integer of ``k`` bits."""
        return self.source.getrandbits(k)

    def sample(self, population: Sequence[Any], k: int, **_: Any) -> list[Any]:
        """Return ``k`` different items."""
        left = list(population)
        return [left.pop(self.source.randrange(len(left))) for _ in range(k)]


class _Drawn(Maker):
    """A maker that keeps to some operations and dtypes."""

    def __init__(self, rng: random.Random, wanted: _Wanted, size: int) -> None:
        self.wanted, self.size = wanted, size
        self.masks: set[str] = set()
        super().__init__(0, wanted.kind)
        self.rng = rng
        self.palette = self._palette()
        self.valid = None

    # -- what is allowed -------------------------------------------------------------------------------------------

    def known(self) -> list[DType]:
        """Return every dtype that programs may use, simple ones first."""
        return [d for d in _ordered(tuple(super().known())) if self.wanted.dtypes is None or d in self.wanted.dtypes]

    def _palette(self) -> list[DType]:
        known = self.known()
        if not known:
            raise error("TG004", "no dtype that is asked for exists on the target")
        return known if self.wanted.dtypes is not None else [known[0], *(self.rng.choice(known) for _ in range(3))]

    def append(self, decl: OpDecl, operands: tuple[Operand, ...], attrs: dict[str, Any]) -> tuple[Value, ...]:
        """Append an operation; raises ``Refused`` for one that is not asked for."""
        if decl.name not in _FRAME and decl.name not in self.wanted.ops:
            raise Refused
        if decl.composite and not self.wanted.named and not self.kind.composites:
            raise Refused
        if self.kind.target is not None and _only_clamps(decl, operands, attrs):
            raise Refused
        mark = self.mark()
        operands = tuple(map(_rounded, operands))
        made = super().append(decl, operands, attrs)
        if decl.family == "compare and select" and decl.name not in ("tile.sel", "tile.sels"):
            self.masks |= {v.name for v in made}
        values = [v for v in [*flat_operands(operands), *made] if isinstance(v, Value)]
        if not all(map(self._fits, values)) or not self._legal(self.statements[-1]):
            self.back(mark)
            raise Refused
        return made

    def _legal(self, s: Statement) -> bool:
        """Tell whether the target has a form of an operation; casts have been judged before."""
        target = self.wanted.kind.target
        if target is None or not isinstance(s, Op) or s.name == "tile.cast":
            return True
        if OPS[s.name].composite:
            return _lowers(s, target)
        return not isinstance(pricer_for(target, False).written(s), Refusal) and _can_be_written(s, target)

    def _fits(self, v: Value) -> bool:
        t = v.type
        plain = isinstance(t, TileType) and v.name not in self.masks and self.wanted.dtypes is not None
        return not plain or t.dtype in self.wanted.dtypes  # type: ignore[union-attr, operator]

    # -- the whole -------------------------------------------------------------------------------------------------

    def program(self) -> Program:
        """Return the program, without what nothing reads."""
        for _ in range(self.rng.randint(1, 3)):
            self._load()
        self.grow(self.size)
        results = tuple(self._store())
        block = _read(Block((*self.statements, Return(results))))
        used = {name for s in block.statements for name in uses(s)}
        params = tuple(p for p in self.params if p.value.name in used)
        return Program("Drawn", (Function("kernel", params, tuple(r.type for r in results), block),))

    def _step(self, size: int) -> None:
        # Of what kernels write, that stays which consists of operations asked for.
        ways: list[Callable[[], None]] = [self._call] * 3 + [self._idiom] * 3
        if self.kind.flow and size >= 2:
            ways.append(lambda: self._tried(self.rng.choice(FLOWS), size // 2))
        self.rng.choice(ways)()

    def _call(self) -> None:
        name = self.rng.choice(self.wanted.ops)
        dtypes = None if self.wanted.dtypes is None else tuple(self.wanted.dtypes)
        known = _fitting(name, dtypes)
        if known:
            self._tried(append_call, self.rng.choice(known))

    def _idiom(self) -> None:
        self._tried(self.rng.choice(IDIOMS)[0])

    def _tried(self, write: Callable[..., object], *given: Any) -> None:
        mark = self.mark()
        try:
            write(self, *given)
        except Refused:
            self.back(mark)

    def _store(self) -> list[Value]:
        """Store the last tile, or also the ones that nothing reads."""
        kept, last = self.tiles, 1
        plain = [v for v in kept if isinstance(v.type, TileType) and len(v.type.shape) == 2]
        read = {name for s in self.statements for name in uses(s)}
        if self.rng.random() < 0.7:
            plain, last = [v for v in plain if v.name not in read] or plain, _MOST
        made: list[Value] = []
        for v in plain[-last:]:
            self.tiles = [v]
            mark, stored = self.mark(), super()._store()
            target = self.kind.target
            if target is None or _can_be_written(self.statements[-1], target):
                made += stored
            else:
                self.back(mark)
        self.tiles = kept
        return made


@lru_cache(maxsize=1024)
def _ordered(dtypes: tuple[DType, ...]) -> tuple[DType, ...]:
    return tuple(sorted(dtypes, key=lambda d: SIMPLE.index(d.name) if d.name in SIMPLE else len(SIMPLE)))


@lru_cache(maxsize=4096)
def _fitting(name: str, dtypes: tuple[DType, ...] | None) -> tuple[Call, ...]:
    """Return the known calls of an operation on the dtypes, those on simple dtypes first."""
    order = {d.name: i for i, d in enumerate(_ordered(tuple(DTYPES.values())))}

    def rank(call: Call) -> int:
        tiles = [o for o in call.operands if isinstance(o, TileType)]
        return sum(order[t.dtype.name] for t in tiles)

    return tuple(sorted(calls(name), key=rank))


_Signature = tuple[
    str, tuple[Operand, ...], tuple[tuple[str, Any], ...], tuple[Value, ...], tuple[Value, ...], Target
]


def _signature(s: Op, target: Target) -> _Signature:
    """Return an operation without its names: its name, operands, attributes, results, values it reads; the target."""
    values = [o for o in flat_operands(s.operands) if isinstance(o, Value)]
    new = {v.name: Value(f"x{i}", v.type) for i, v in enumerate(dict.fromkeys(values))}
    made = tuple(Value(f"r{i}", v.type) for i, v in enumerate(s.results))
    return s.name, _renamed(s.operands, new), tuple(s.attrs.items()), made, tuple(new.values()), target


def _renamed(operands: tuple[Operand, ...], new: dict[str, Value]) -> tuple[Operand, ...]:
    return tuple(
        new[o.name] if isinstance(o, Value) else _renamed(o, new) if isinstance(o, tuple) else o for o in operands
    )


def _lowers(s: Op, target: Target) -> bool:
    """Tell whether a composite has a form on the target, whatever its operands hold."""
    return _lowers_alone(*_signature(s, target))


def _can_be_written(s: Statement, target: Target) -> bool:
    """Tell whether the assembly has a form of an operation on such operands; scalars get theirs when lowered."""
    return not isinstance(s, Op) or OPS[s.name].scalar is not None or _written_alone(*_signature(s, target))


@lru_cache(maxsize=16384)
def _written_alone(
    name: str, operands: tuple[Operand, ...], attrs: tuple[tuple[str, Any], ...], results: tuple[Value, ...],
    values: tuple[Value, ...], target: Target,
) -> bool:
    made = tuple(_created(v, v.type) for v in values if isinstance(v.type, TileType))
    body = Block((*made, Op(name, operands, dict(attrs), results), Return(())))
    f = Function("alone", tuple(Param(v) for v in values if not isinstance(v.type, TileType)), (), body)
    try:
        emit(Program("", (f,)), target, signals=False, locations=False)
    except TileggError:
        return False
    return True


def _created(v: Value, t: TileType) -> Op:
    return Op("tile.create", (tuple(map(_size, t.shape)),), {"dtype": t.dtype}, (v,))


def _size(n: Dim) -> Operand:
    return Const(n, INDEX) if isinstance(n, int) else Value(n, scalar(INDEX))


def _is_written(p: Program, target: Target) -> bool:
    """Tell whether a program can be lowered and written for the target."""
    try:
        emit(lower(p, str(target.path)), target, locations=False)
    except TileggError:
        return False
    return True


@lru_cache(maxsize=4096)
def _lowers_alone(
    name: str, operands: tuple[Operand, ...], attrs: tuple[tuple[str, Any], ...], results: tuple[Value, ...],
    params: tuple[Value, ...], target: Target,
) -> bool:
    body = Block((Op(name, operands, dict(attrs), results), Return(results)))
    f = Function("alone", tuple(map(Param, params)), tuple(r.type for r in results), body)
    try:
        lower(Program("", (f,)), str(target.path))
    except TileggError:
        return False
    return True


def _read(block: Block) -> Block:
    """Return the block without what nothing reads."""
    kept: list[Statement] = []
    used: set[str] = set()
    for s in reversed(block.statements):
        made = defined(s)
        if isinstance(s, Return) or not made or _stores(s) or any(v.name in used for v in made):
            used.update(uses(s))
            kept.append(s)
    return Block(tuple(reversed(kept)))


def _rounded(o: Operand) -> Operand:
    """Return a literal with the value it has in its dtype, as a reader would."""
    if isinstance(o, Const) and o.dtype.is_float:
        return Const(decode(encode([o.value], o.dtype, "rint", False), o.dtype)[0].item(), o.dtype)
    return o


def _only_clamps(decl: OpDecl, operands: tuple[Operand, ...], attrs: dict[str, Any]) -> bool:
    """Tell a cast to the dtype the tile has that turns infinities into numbers: no target has one."""
    if decl.name != "tile.cast" or attrs.get("saturation_mode") != "on":
        return False
    t = operands[0].type if isinstance(operands[0], Value) else None
    return isinstance(t, TileType) and t.dtype is attrs.get("target_type") and t.dtype.has_inf


def _stores(s: Statement) -> bool:
    """Tell whether a statement writes a result of the program."""
    return isinstance(s, Op) and s.name == "tile.store"
