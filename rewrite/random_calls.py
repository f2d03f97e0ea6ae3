"""Calls of any declared operation: operand types its result rule takes, found by drawing, and values it can be run on.

Nothing here names an operation: the parameters' kinds say what to draw, the declared rule what fits, the declared
meaning what range the elements of index-like operands need. An operation that is declared is covered.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.convert import ROUND_MODES, decode, encode
from ..ir.diagnostics import TileggError
from ..ir.dtypes import DTYPES, FP32, INDEX, INT32, UINT8, DType
from ..ir.infer import check_operand, result_types, stored_attrs
from ..ir.inputs import extreme_values
from ..ir.interp_eval import evaluator
from ..ir.op import OPS, Kind, OpDecl, OpParam
from ..ir.ops._result import mask_of
from ..ir.program import Const, Operand, Value, index
from ..ir.samples import random_bits
from ..ir.tilearray import TileArray, padded
from ..ir.types import ScalarType, TileType, TupleType, Type, scalar, static, tile
from .egglog_text import is_term

if TYPE_CHECKING:
    from .random_programs import Maker

class Refused(Exception):
    """The operation does not take these operands, or has no legal form on the target."""


#: Range of a tile's elements that a call needs; ``None``: any.
Range = tuple[int, int] | None


@dataclass(frozen=True)
class Call:
    """Operand types and literals that an operation takes: what to draw in the places of run-time values."""

    decl: OpDecl
    operands: tuple[Operand | Type, ...]
    ranges: tuple[Range, ...]
    attrs: tuple[tuple[str, Any], ...]


_SHAPES = ((2, 8), (2, 8), (2, 8), (1, 16), (4, 4), (2, 32), (1, 64), (32, 64), (1, 256))
_NUMBERS = (0, 1, 2, 3, -1, 4, 7, 8, 16, 31, 32, 64, 100, -100, 127)
_FLOATS = (0.0, -0.0, 1.0, 0.5, -2.0, 0.1, 127.0, 1e-3, 3e38, 1e-40)
#: Words that some operation takes; a wrong one is refused by its rule.
_WORDS = ("ocp", "nv", "row_major", "col_major")
_DTYPES = tuple(d for d in DTYPES.values() if d.is_numeric)
_RANGES: tuple[Range, ...] = (None, (0, 7), (0, 3), (0, 1), (1, 1), (0, 0))
#: Draws of operands (the second number: until some call is known), calls wanted, runs that a call must survive.
_DRAWS, _MOST_DRAWS, _ENOUGH, _RUNS = 1500, 60_000, 8, 16


def vocabulary() -> list[str]:
    """Return the names of the pure tile and scalar operations, what e-graphs of programs are made of.

    They are sorted: the order of declarations depends on which module is imported first.
    """
    return sorted(d.name for d in OPS.values() if is_term(d) and d.name.startswith(("tile.", "scalar.")))


@cache
def calls(name: str) -> tuple[Call, ...]:
    """Return calls that an operation's rule accepts and that run, on operands of different types."""
    rng = random.Random(name)
    decl = OPS[name]
    found: dict[tuple[Any, ...], Call] = {}
    for turn in range(_MOST_DRAWS):
        if found and turn > _DRAWS:
            break
        call = _drawn(decl, rng)
        key = tuple(map(str, call.operands))[:2]
        if key not in found and _accepted(call) is not None:
            runnable = _with_ranges(call, rng)
            if runnable is not None:
                found[key] = runnable
                if len(found) == _ENOUGH:
                    break
    return tuple(found.values())


def _drawn(decl: OpDecl, rng: random.Random) -> Call:
    like = rng.choice(_DTYPES if rng.random() < 0.5 else (FP32, INT32))
    base = tile(rng.choice(_SHAPES), like)
    operands: list[Operand | Type] = []
    last: TileType | None = None
    for p in decl.operand_params:
        drawn = _operand(p, decl, base, last, rng)
        last = drawn if isinstance(drawn, TileType) else last
        operands.append(drawn)
    attrs = tuple((p.name, v) for p in decl.attr_params if (v := _attribute(p, like, rng)) is not None)
    return Call(decl, tuple(operands), (None,) * len(operands), attrs)


def _operand(
    p: OpParam, decl: OpDecl, base: TileType, last: TileType | None, rng: random.Random
) -> Operand | Type:
    if not p.required and rng.random() < 0.7:
        return None
    like = base.dtype
    match p.kind:
        case Kind.TILE | Kind.ARRAY:
            return _tile(base, last, rng)
        case Kind.ANY:
            return _tile(base, last, rng) if rng.random() < 0.6 else _number(like, rng)
        case Kind.SCALAR:
            if decl.name.startswith("scalar."):
                return scalar(like) if rng.random() < 0.7 else _number(like, rng)
            # Numbers that integers cannot be made from are no operands of integer tiles.
            dtype = like if like.is_int else rng.choice((like, FP32))
            return _number(like, rng) if rng.random() < 0.8 else scalar(dtype)
        case Kind.DIMS:
            return _dims(p.name, base.shape, rng)  # type: ignore[arg-type]
        case Kind.SCRATCH:
            return _tile(base, last, rng) if rng.random() < 0.8 else None
    return None


def _tile(base: TileType, last: TileType | None, rng: random.Random) -> TileType:
    """Draw the type of a tile operand: often the call's base type, its mask, or the one of the operand before."""
    draw = rng.random()
    if draw < 0.15:
        return mask_of(base)
    if draw < (0.7 if last is None else 0.4):
        return base
    if draw < 0.65 and last is not None:
        return last
    rows, cols = (d for d in base.shape if isinstance(d, int))
    shapes = [(rows, 1), (1, cols), (rows, max(cols // 2, 1)), (rows, 2 * cols), (rows, max(cols // 4, 1)), (1, rows),
              (1, 1), (1, 256), (1, max(rows * cols // 32, 1)), (max(rows // 32, 1), cols)]  # fmt: skip
    dtype = base.dtype if rng.random() < 0.5 else rng.choice((*_DTYPES, FP32, INT32, INT32, DTYPES["INT16"], UINT8))
    return tile((rows, cols) if rng.random() < 0.5 else rng.choice(shapes), dtype)


def _number(like: DType, rng: random.Random) -> Const:
    if like.is_float or rng.random() < 0.1:
        return Const(rng.choice(_FLOATS), FP32)
    if like.kind == "bool":
        return Const(rng.random() < 0.5, like)
    return Const(rng.choice(_NUMBERS), rng.choice((INDEX, like if like.is_int else INT32)))


def _dims(name: str, shape: Sequence[int], rng: random.Random) -> Operand:
    rows, cols = shape
    if "shape" in name:
        shapes = [(rows, cols), (1, rows * cols), (rows, max(cols // 2, 1)), (cols, rows), (2 * rows, cols), (1, cols)]
        return tuple(map(index, rng.choice(shapes)))
    return index(rng.randrange(rows)), index(rng.choice((0, 0, max(cols // 2, 1), cols - 1)))


def _attribute(p: OpParam, like: DType, rng: random.Random) -> Any:
    """Draw an attribute; ``None``: the default, or none there is."""
    if not p.required and rng.random() < 0.4:
        return None
    match p.kind:
        case Kind.DTYPE:
            return like if rng.random() < 0.3 else rng.choice(_DTYPES)
        case Kind.MODE:
            return rng.choice(list(ROUND_MODES))
        case Kind.SATURATION:
            return rng.choice(("on", "off", None))
        case Kind.COMPARE:
            return rng.randrange(6)
        case Kind.FLAG:
            return rng.random() < 0.5
        case Kind.INT:
            return rng.choice((0, 1, 0, 1, 0, 1, 2, 3, 4, 5, 6, 7, 16, -2))
        case Kind.PAD:
            return rng.choice(("zero", "max", "min"))
        case Kind.MEMORY:
            return "Vec"
        case Kind.WORD:
            return rng.choice(_WORDS)
    return None


def _accepted(call: Call) -> tuple[Type, ...] | None:
    """Return the result types, ``None`` where the operation does not take the operands."""
    decl = call.decl
    known: tuple[Any, ...] = tuple(_stand_in(o) for o in call.operands)
    try:
        for p, o in zip(decl.operand_params, known):
            check_operand(decl, p, o, None)
        found = result_types(decl, known, {**decl.defaults, **dict(call.attrs)})
    except TileggError:
        return None
    good = found and all(isinstance(t, TileType | ScalarType) and t.dtype.is_numeric for t in found)
    return found if good else None


def _stand_in(o: Any) -> Any:
    return Value("x", o) if isinstance(o, TileType | ScalarType) else o


# -- values --------------------------------------------------------------------------------------------------------


def _with_ranges(call: Call, rng: random.Random) -> Call | None:
    """Return the call with the widest ranges of integer operands on which it runs; ``None`` if there are none."""
    kinds = [p.kind for p in call.decl.operand_params]
    whole = [i for i, o in enumerate(call.operands)
             if isinstance(o, TileType | ScalarType) and o.dtype.is_int and kinds[i] is not Kind.SCRATCH]  # fmt: skip
    run = _meaning(call)
    numpy_rng = np.random.default_rng(rng.getrandbits(32))
    for ranged in (whole[1:], whole):
        for limits in _RANGES:
            ranges = tuple(limits if i in ranged else None for i in range(len(call.operands)))
            drawn = ([_value(o, r, numpy_rng, k) for o, r in zip(call.operands, ranges)] for k in range(_RUNS))
            if all(map(run, drawn)):
                return Call(call.decl, call.operands, ranges, call.attrs)
    return None


def _meaning(call: Call) -> Callable[[list[Any]], bool]:
    """Return a function that tells whether the operation can be evaluated on some values."""
    found = _accepted(call)
    assert found is not None
    types = [getattr(o, "type", o) if not isinstance(o, tuple) else None for o in call.operands]
    try:
        apply = evaluator(call.decl, types, dict(call.attrs), found[0] if len(found) == 1 else TupleType(found))
    except TileggError:
        return lambda values: False

    def run(values: list[Any]) -> bool:
        try:
            with np.errstate(all="ignore"):
                apply(values)
        except TileggError:
            return False
        return True

    return run


def _value(o: Any, limits: Range, rng: np.random.Generator, turn: int) -> Any:
    match o:
        case Const(value=value):
            return value
        case tuple():
            return tuple(d.value for d in o)
        case TileType(dtype=dtype):
            valid, physical = static(o.valid_shape), static(o.shape)
            assert valid is not None and physical is not None
            count = int(np.prod(valid))
            some = random_bits(dtype, rng, count) if rng.random() < 0.5 else rng.choice(extreme_values(dtype), count)
            if limits is not None:
                some = encode(rng.integers(limits[0], limits[1] + 1, count), dtype, "rint", True)
            return TileArray(some.reshape(valid)) if valid == physical else padded(some.reshape(valid), physical, dtype)
        case ScalarType(dtype=dtype):
            if limits is not None:
                return int(rng.integers(limits[0], limits[1] + 1))
            ends = extreme_values(dtype)
            return decode(ends[turn % ends.size :][:1], dtype)[0].item()
    return None


# -- in a program --------------------------------------------------------------------------------------------------


def write_call(m: Maker, name: str) -> tuple[Value, ...]:
    """Append a call of the operation with operands of the program, or new ones; raises ``Refused``."""
    known = calls(name)
    if not known:
        raise Refused(f"no call of {name} is known")
    return append_call(m, m.rng.choice(known))


def append_call(m: Maker, call: Call) -> tuple[Value, ...]:
    """Append a known call with operands of the program, or new ones; raises ``Refused``."""
    params = call.decl.operand_params
    operands = tuple(_given(m, p, o, r) for p, o, r in zip(params, call.operands, call.ranges))
    return m.append(call.decl, operands, stored_attrs(call.decl, dict(call.attrs)))


def _given(m: Maker, p: OpParam, o: Any, limits: Range) -> Operand:
    match o:
        case TileType() if p.kind is Kind.SCRATCH:
            return m.create(o)
        case TileType() if limits is not None:
            return m.load(o, limits)
        case TileType():
            found = [v for v in m.tiles if v.type == o]
            return m.rng.choice(found) if found and m.rng.random() < 0.8 else m.load(o)
        case ScalarType(dtype=dtype):
            if limits is not None:
                return Const(m.rng.randint(*limits), dtype)
            return m.scalar(dtype)
    return o  # type: ignore[no-any-return]
