"""Random typed programs: the same seed always gives the same program.

Programs load tiles, run pure operations on them (casts of every dtype, mode and saturation, arithmetic, clamps,
selects, reductions, quantisation epilogues, promises, loops and branches) and store some results. Restricted
to a target they contain only operations and casts that have a legal form there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir.diagnostics import TileggError
from ..ir.dtypes import BOOL, DTYPES, FP32, INDEX, INT32, DType
from ..ir.op import OPS, Call
from ..ir.program import (
    Block,
    Carried,
    Const,
    For,
    Function,
    If,
    Op,
    Operand,
    Param,
    Program,
    Return,
    Statement,
    Value,
    Yield,
    index,
)
from ..ir.types import TileType, tensor
from ..rules.paths import roads
from ..rules.target import Target
from .random_idioms import IDIOMS, Idiom

MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
#: Most programs keep to a few dtypes, so that chains and round trips are common.
_PALETTE = 4
_COMMON = ("FP32", "FP16", "BF16", "INT32", "INT8", "INT16", "UINT8", "INT64")


@dataclass(frozen=True)
class Kind:
    """What programs to draw: target (``None``: every declared dtype and operation), operations, tile shape.

    ``flow``: loops and branches too; ``composites``: operations that only recipes with an error bound lower.
    """

    target: Target | None = None
    size: int = 12
    shape: tuple[int, int] = (2, 8)
    flow: bool = True
    composites: bool = False


class Refused(Exception):
    """The operation does not take these operands, or has no legal form on the target."""


class Maker:
    """Draws one program; idioms (see ``random_idioms``) append operations through :meth:`emit`."""

    def __init__(self, seed: int, kind: Kind) -> None:
        self.rng = random.Random(seed)
        self.kind = kind
        self.statements: list[Statement] = []
        self.tiles: list[Value] = []
        self.counters: list[Value] = []
        self.params: list[Param] = []
        self.scalars: list[Value] = []
        self.names = 0
        self.palette = self._palette()
        rows, cols = kind.shape
        narrow = self.rng.random() < 0.2 and cols > 1
        self.valid = (rows, cols - self.rng.randint(1, cols - 1)) if narrow else None

    # -- parts -------------------------------------------------------------------------------------------

    def _palette(self) -> list[DType]:
        names = [n for n in _known(self.kind.target) if DTYPES[n].is_numeric]
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
        operands = tuple(given.get(p.name) for p in decl.operand_params)
        attrs = {p.name: given[p.name] for p in decl.attr_params if given.get(p.name) is not None}
        attrs = {k: v for k, v in attrs.items() if v is not decl.defaults.get(k, ...)}
        try:
            result = decl.result(Call(decl, operands, {**decl.defaults, **attrs}, None))
        except TileggError as problem:
            raise Refused from problem
        assert result is not None
        self._require_legal(decl.pto, operands, attrs, result)
        value = Value(self.fresh("v"), result)
        self.statements.append(Op(name, operands, attrs, (value,)))
        if isinstance(result, TileType):
            self.tiles.append(value)
        return value

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
        return Const(self.rng.choice([0, 1, 2, 3, -1, 7, 100, -100, 127, 1 << 20]), dtype if dtype.is_int else INT32)

    def is_full(self, t: TileType) -> bool:
        """Tell whether a tile has the program's shape and valid shape."""
        return t.shape == self.kind.shape and t.valid == self.valid

    # -- the whole ---------------------------------------------------------------------------------------

    def program(self) -> Program:
        """Return the program."""
        for _ in range(self.rng.randint(1, 3)):
            self._load()
        self._grow(self.kind.size)
        results = self._store()
        returned = Return(tuple(results))
        body = Block((*self.statements, returned))
        types = tuple(r.type for r in results)
        f = Function("kernel", tuple(self.params), types, body)
        return Program("Random", (f,))

    def _load(self) -> None:
        rows, cols = self.kind.shape
        dtype = self.dtype()
        source = Value(self.fresh("x"), tensor((rows, cols), dtype))
        self.params.append(Param(source))
        zero = (index(0), index(0))
        valid = None if self.valid is None else (index(self.valid[0]), index(self.valid[1]))
        loaded = self.emit(
            "tile.load", tensor=source, offsets=zero, shapes=(index(rows), index(cols)), valid_shape=valid
        )
        if self.rng.random() < 0.25:
            self._assume(loaded, dtype)

    def _assume(self, loaded: Value, dtype: DType) -> None:
        top = 2 ** self.rng.randint(0, min(dtype.bits, 20)) - self.rng.randint(0, 1)
        top = min(top, int(min(dtype.max_value, 2**30)))
        low = 0 if not dtype.signed or self.rng.random() < 0.5 else -top
        if not dtype.has_zero:
            low, top = 1, max(top, 1)
        literal = INT32 if dtype.is_int else FP32
        word: Callable[[int], int | float] = int if literal is INT32 else float
        self.emit("tile.assume", tile=loaded, lo=Const(word(low), literal), hi=Const(word(top), literal))

    def _grow(self, size: int) -> None:
        """Append idioms until about ``size`` operations were added."""
        start = len(self.statements)
        for _ in range(size * 6):
            if len(self.statements) - start >= size:
                return
            self._step(size)

    def _step(self, size: int) -> None:
        draw = self.rng.random()
        if self.kind.flow and size >= 6 and draw < 0.03:
            self._loop(size // 3)
        elif self.kind.flow and size >= 6 and draw < 0.06:
            self._branch(size // 3)
        else:
            self._idiom(self.rng.choices([i for i, _ in IDIOMS], [w for _, w in IDIOMS])[0])

    def _idiom(self, idiom: Idiom) -> None:
        mark = len(self.statements), len(self.tiles)
        try:
            idiom(self)
        except Refused:
            # Half an idiom is a fine program; what it made stays unless the names would be unknown.
            if self.rng.random() < 0.5:
                del self.statements[mark[0] :], self.tiles[mark[1] :]

    def _inside(self, size: int, result: Value | None = None) -> tuple[list[Statement], list[Value]]:
        """Draw statements of an inner block; returns them and the tiles it made."""
        outer, tiles = self.statements, list(self.tiles)
        self.statements = []
        self._grow(size)
        made, self.statements = self.statements, outer
        inner = self.tiles
        self.tiles = tiles
        return made, inner

    def _loop(self, size: int) -> None:
        start = self.pick(self.is_full)
        arg, var = Value(self.fresh("acc"), start.type), Value(self.fresh("i"), _scalar(INDEX))
        self.tiles.append(arg)
        self.counters.append(var)
        made, inner = self._inside(size)
        self.tiles.remove(arg)
        self.counters.remove(var)
        same = [v for v in inner if v.type == start.type and v.name != start.name]
        result = Value(self.fresh("r"), start.type)
        bounds = self.rng.choice([(0, 2, 1), (0, 3, 2), (3, 0, -1), (2, 2, 1), (-2, 1, 1)])
        first, stop, step = (index(b) for b in bounds)
        yielded = Yield((same[-1] if same else arg,))
        body = Block((*made, yielded))
        self.statements.append(For("range", var, (first, stop, step), (Carried(arg, start),), body, (result,)))
        self.tiles.append(result)

    def _branch(self, size: int) -> None:
        base = self.pick(self.is_full)
        condition = self._condition()
        sides = []
        for _ in range(2):
            made, inner = self._inside(size)
            same = [v for v in inner if v.type == base.type]
            sides.append(Block((*made, Yield((same[-1],)))))
        result = Value(self.fresh("b"), base.type)
        self.statements.append(If(condition, sides[0], sides[1], (result,)))
        self.tiles.append(result)

    def _condition(self) -> Operand:
        if not self.scalars:
            flag = Value(self.fresh("s"), _scalar(INT32))
            self.params.append(Param(flag))
            self.scalars.append(flag)
        condition = Value(self.fresh("c"), _scalar(BOOL))
        self.statements.append(Op("scalar.gt", (self.scalars[0], Const(0, INT32)), {}, (condition,)))
        return condition

    def _store(self) -> list[Value]:
        wanted = [v for v in self.tiles[-3:] if isinstance(v.type, TileType) and len(v.type.shape) == 2]
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


def _scalar(dtype: DType) -> Any:
    from ..ir.types import scalar

    return scalar(dtype)


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
