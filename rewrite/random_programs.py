"""Random typed programs: the same seed always gives the same program.

Programs load tiles, run pure operations on them (what kernels write, calls of every declared operation, left sides of
rules) under loops and branches, and store some results. Restricted to a target they contain only operations and
casts that have a legal form there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir.diagnostics import TileggError
from ..ir.dtypes import DTYPES, FP32, INT32, DType
from ..ir.infer import result_types
from ..ir.literals import wrapped
from ..ir.op import OPS, OpDecl
from ..ir.op import Kind as OperandKind
from ..ir.predicates import Predicates
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
    index,
)
from ..ir.types import ScalarType, TileType, scalar, static, tensor, tile
from ..rules import library as _library  # noqa: F401  (declares the rules)
from ..rules.paths import roads
from ..rules.rule import RULES
from ..rules.target import Target
from .random_calls import Refused, vocabulary, write_call
from .random_flow import FLOWS
from .random_idioms import IDIOMS
from .random_rules import write_left_side

MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
#: Most programs keep to a few dtypes, so that chains and round trips are common.
_PALETTE = 4
_COMMON = ("FP32", "FP16", "BF16", "INT32", "INT8", "INT16", "UINT8", "INT64")


@dataclass(frozen=True)
class Kind:
    """What programs to draw: target (``None``: every declared dtype and operation), operations, tile shape.

    ``flow``: loops and branches too; ``composites``: operations that only recipes with an error bound lower.
    ``rule``: the name of a rule whose left side each program contains, if the target has its operations.
    ``calls``: any declared operation besides those of the idioms.
    """

    target: Target | None = None
    size: int = 12
    shape: tuple[int, int] = (2, 8)
    flow: bool = True
    composites: bool = False
    rule: str = ""
    calls: bool = False


class Maker:
    """Draws one program; idioms (see ``random_idioms``) append operations through :meth:`emit`."""

    def __init__(self, seed: int, kind: Kind) -> None:
        self.rng = random.Random(seed)
        self.kind = kind
        self.statements: list[Statement] = []
        self.tiles: list[Value] = []
        self.params: list[Param] = []
        self.scalars: list[Value] = []
        self.pending = kind.rule
        self.names = 0
        self.predicates = Predicates()
        self.palette = self._palette()
        rows, cols = kind.shape
        narrow = self.rng.random() < 0.2 and cols > 1
        self.valid = (rows, cols - self.rng.randint(1, cols - 1)) if narrow else None

    # -- parts -------------------------------------------------------------------------------------------

    def _palette(self) -> list[DType]:
        names = [d.name for d in self.known()]
        common = [n for n in _COMMON if n in names]
        chosen = [self.rng.choice(common if self.rng.random() < 0.6 else names) for _ in range(_PALETTE)]
        return [DTYPES[n] for n in dict.fromkeys(["FP32", *chosen])]

    def fresh(self, stem: str) -> str:
        """Return a new name."""
        self.names += 1
        return f"{stem}{self.names}"

    def emit(self, name: str, **given: Any) -> Value:
        """Append an operation by parameter names and return its result; raises :class:`Refused`."""
        decl = OPS[name]
        for p in decl.operand_params:
            if p.kind is OperandKind.SCRATCH and p.required and p.name not in given:
                given[p.name] = self._scratch(given)
        operands = tuple(given.get(p.name) for p in decl.operand_params)
        attrs = {p.name: given[p.name] for p in decl.attr_params if given.get(p.name) is not None}
        attrs = {k: v for k, v in attrs.items() if v is not decl.defaults.get(k, ...)}
        return self.append(decl, operands, attrs)[0]

    def append(self, decl: OpDecl, operands: tuple[Operand, ...], attrs: dict[str, Any]) -> tuple[Value, ...]:
        """Append an operation with attributes that are no defaults; returns its results, raises :class:`Refused`."""
        try:
            self.predicates.check(decl, operands, None)
            types = result_types(decl, operands, {**decl.defaults, **attrs})
        except TileggError as problem:
            raise Refused from problem
        if not types:
            raise Refused
        self._require_legal(decl.pto, operands, attrs, types[0])
        values = tuple(Value(self.fresh("v"), t) for t in types)
        self.statements.append(Op(decl.name, operands, attrs, values))
        self.predicates.note(decl.name, operands, values)
        self.tiles += [v for v in values if isinstance(v.type, TileType)]
        self.scalars += [v for v in values if isinstance(v.type, ScalarType)]
        return values

    def _require_legal(self, pto: str | None, operands: tuple[Any, ...], attrs: dict[str, Any], result: Any) -> None:
        target = self.kind.target
        if target is None or pto is None:
            return
        types = [o.type for o in operands if isinstance(o, Value) and isinstance(o.type, TileType)]
        dtype = (types[0] if types else result).dtype
        if pto == "tcvt":
            if not castable(target, dtype, result.dtype, attrs.get("mode", "round"), attrs.get("saturation_mode")):
                raise Refused
        elif pto in target.ops and not target.legal(pto, dtype.name):
            raise Refused

    def cast(self, x: Value, dtype: DType, mode: str | None = None, saturation: str | None = None) -> Value:
        """Append a cast; the default saturation word is not written."""
        default = None if dtype.is_float else "on"
        word = None if saturation == default else saturation
        return self.emit("tile.cast", tile=x, target_type=dtype, mode=mode or "round", saturation_mode=word)

    def any_cast(self, x: Value, dtype: DType | None = None) -> Value:
        """Append a cast with random mode and saturation."""
        dst = dtype or self.dtype()
        mode = self.rng.choice(MODES) if self.rng.random() < 0.6 else None
        saturation = self.rng.choice(("on", "off")) if self.rng.random() < 0.35 else None
        return self.cast(x, dst, mode, saturation)

    def known(self) -> list[DType]:
        """Return every dtype that programs may use."""
        return [DTYPES[n] for n in _known(self.kind.target) if DTYPES[n].is_numeric]

    def dtype(self) -> DType:
        """Draw a dtype of the palette."""
        return self.rng.choice(self.palette)

    def pick(self, accept: Callable[[TileType], bool] = lambda t: True) -> Value:
        """Draw a tile so far defined, recent ones more often; raises :class:`Refused` when none fits."""
        found = [v for v in self.tiles if isinstance(v.type, TileType) and accept(v.type)]
        if not found:
            raise Refused
        return self.rng.choice(found[-6:] if self.rng.random() < 0.7 else found)

    def number(self, dtype: DType) -> Const:
        """Draw a literal that suits a tile of ``dtype``."""
        if dtype.is_float:
            notable = [0.0, -0.0, 1.0, 0.5, -2.0, 127.0, -128.0, 0.1, 255.0, 1e-3, 3e38, 6e4, 1e-40]
            return Const(self.rng.choice(notable), FP32)
        whole = dtype if dtype.is_int else INT32
        return Const(wrapped(self.rng.choice([0, 1, 2, 3, -1, 7, 100, -100, 127, 1 << 20]), whole), whole)

    def load(self, t: TileType, limits: tuple[float, float] | None = None) -> Value:
        """Append the load of a new parameter; ``limits``: what is promised of its elements."""
        shape = static(t.shape)
        assert shape is not None
        source = Value(self.fresh("x"), tensor(shape, t.dtype))
        self.params.append(Param(source))
        valid = None if t.valid is None else tuple(index(d) for d in t.valid)
        sizes, zero = tuple(map(index, shape)), (index(0),) * len(shape)
        loaded = self.emit("tile.load", tensor=source, offsets=zero, shapes=sizes, valid_shape=valid)
        return loaded if limits is None else self.promise(loaded, *limits)

    def promise(self, x: Value, low: float, high: float) -> Value:
        """Append the promise that the elements of a load lie in a range that its dtype reaches."""
        whole = x.type.dtype.is_int  # type: ignore[union-attr]
        low, high = (int(low), int(high)) if whole else (float(low), float(high))
        literal = INT32 if whole else FP32
        return self.emit("tile.assume", tile=x, lo=Const(low, literal), hi=Const(high, literal))

    def create(self, t: TileType) -> Value:
        """Append the creation of a tile of undefined contents."""
        value = self.emit("tile.create", shape=tuple(map(index, t.shape)), dtype=t.dtype)
        self.tiles.remove(value)
        return value

    def _scratch(self, given: dict[str, Any]) -> Value:
        """Return a created tile like the last one that is given."""
        *_, like = (o.type for o in given.values() if isinstance(o, Value) and isinstance(o.type, TileType))
        return self.create(like)

    def scalar(self, dtype: DType) -> Value:
        """Return a scalar of a dtype: one so far defined, or a new parameter."""
        found = [v for v in self.scalars if v.type.dtype is dtype]  # type: ignore[union-attr]
        if found and self.rng.random() < 0.8:
            return self.rng.choice(found)
        made = Value(self.fresh("s"), scalar(dtype))
        self.params.append(Param(made))
        return made

    # -- the whole ---------------------------------------------------------------------------------------

    def program(self) -> Program:
        """Return the program."""
        for _ in range(self.rng.randint(1, 2 if self.pending else 3)):
            self._load()
        self.grow(self.kind.size)
        self._due()
        results = self._store()
        returned = Return(tuple(results))
        body = Block((*self.statements, returned))
        types = tuple(r.type for r in results)
        f = Function("kernel", tuple(self.params), types, body)
        return Program("Random", (f,))

    def _load(self) -> None:
        rows, cols = self.kind.shape
        dtype = self.dtype()
        loaded = self.load(tile((rows, cols), dtype, self.valid))
        if self.rng.random() < 0.25:
            top = 2 ** self.rng.randint(0, min(dtype.bits, 20)) - self.rng.randint(0, 1)
            top = min(top, int(min(dtype.max_value, 2**30)))
            low = 0 if not dtype.signed or self.rng.random() < 0.5 else -top
            if not dtype.has_zero:
                low, top = 1, max(top, 1)
            self.promise(loaded, low, top)

    def grow(self, size: int) -> None:
        """Append idioms until about ``size`` operations were added."""
        start = len(self.statements)
        for _ in range(size * 6):
            if len(self.statements) - start >= size:
                return
            self._step(size)

    def _step(self, size: int) -> None:
        draw = self.rng.random()
        if self.kind.flow and size >= 4 and draw < 0.1:
            self._tried(self.rng.choice(FLOWS), size // 2)
        elif self.pending and draw < 0.4:
            self._due()
        elif self.kind.calls and draw < 0.55:
            self._tried(write_call, self.rng.choice(vocabulary()))
        else:
            self._tried(self.rng.choices([i for i, _ in IDIOMS], [w for _, w in IDIOMS])[0])

    def _due(self) -> None:
        """Write the left side of the rule that is wanted, if it has not been."""
        if self.pending:
            name, self.pending = self.pending, ""
            self._tried(write_left_side, RULES[name])

    def _tried(self, write: Callable[..., object], *given: Any) -> None:
        mark = self.mark()
        try:
            write(self, *given)
        except Refused:
            # Half an idiom is a fine program; what it made stays or goes.
            if self.rng.random() < 0.5:
                self.back(mark)

    def mark(self) -> tuple[int, ...]:
        """Return where the program stands, for :meth:`back`."""
        return len(self.statements), len(self.tiles), len(self.scalars), len(self.params)

    def back(self, mark: Sequence[int]) -> None:
        """Forget what was appended after a mark in the same block."""
        for kept, items in zip(mark, (self.statements, self.tiles, self.scalars, self.params)):
            del items[kept:]  # type: ignore[attr-defined]

    def inside(self, size: int) -> tuple[list[Statement], list[Value]]:
        """Draw statements of an inner block; returns them and the tiles in reach at its end."""
        outer, tiles, scalars = self.statements, list(self.tiles), list(self.scalars)
        self.statements = []
        self.grow(max(size, 1))
        made, self.statements = self.statements, outer
        inner = self.tiles
        self.tiles, self.scalars = tiles, scalars
        return made, inner

    def _store(self) -> list[Value]:
        plain = [v for v in self.tiles if isinstance(v.type, TileType) and len(v.type.shape) == 2]
        wanted = [*plain[-2:], *([self.rng.choice(plain[:-2])] if len(plain) > 2 else [])]
        out: list[Value] = []
        for v in wanted or self.tiles[:1]:
            assert isinstance(v.type, TileType)
            target = Value(self.fresh("out"), tensor(v.type.shape, v.type.dtype))
            self.params.append(Param(target, "Out"))
            stored = Value(self.fresh("w"), target.type)
            operands = (v, (index(0), index(0)), target, None)
            self.statements.append(Op("tile.store", operands, {}, (stored,)))
            out.append(stored)
        return out


@lru_cache(maxsize=8)
def _known(target: Target | None) -> tuple[str, ...]:
    """Return the dtypes that programs may use."""
    if target is None:
        return tuple(DTYPES)
    names = {n for e in target.casts.values() if e.assembler for n in (e.src, e.dst)}
    return tuple(n for n in DTYPES if n in names)


@lru_cache(maxsize=65536)
def castable(target: Target, src: DType, dst: DType, mode: str, saturation: str | None) -> bool:
    """Tell whether a cast has a legal form on the target whatever the values."""
    return src is dst or bool(roads(target, src, dst, mode, saturation, k=1))


def random_program(seed: int, kind: Kind = Kind()) -> Program:
    """Return the program of a seed."""
    return Maker(seed, kind).program()
