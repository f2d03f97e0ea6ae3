"""The idioms random programs are made of: what kernels write, in every dtype that takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ir.dtypes import DTYPES, FP32, INDEX, INT32, DType
from ..ir.program import Const, Value, index
from ..ir.types import TileType

if TYPE_CHECKING:
    from .random_programs import Maker

Idiom = Callable[["Maker"], None]

_BINARY = ("add", "sub", "mul", "maximum", "minimum", "and_", "or_", "xor", "div")
_SCALAR = ("adds", "subs", "muls", "maximums", "minimums", "ands", "shrs", "shls", "divs")
_UNARY = ("neg", "abs", "relu", "exp", "sqrt", "recip", "not_", "rsqrt", "log")
_MODES_TO_INT = ("rint", "round", "trunc", "floor", "ceil")


def cast(m: Maker) -> None:
    """One cast, anything to anything."""
    m.any_cast(m.pick())


def chain(m: Maker) -> None:
    """Several casts in a row."""
    x = m.pick()
    for _ in range(m.rng.randint(2, 4)):
        x = m.any_cast(x)


def round_trip(m: Maker) -> None:
    """There and back: ``a → b → a``, often with default modes."""
    x = m.pick()
    back = _dtype(x)
    if m.rng.random() < 0.5:
        m.any_cast(m.any_cast(x), back)
    else:
        m.cast(m.cast(x, m.dtype()), back)


def two_modes(m: Maker) -> None:
    """One value cast to one dtype twice, the ways of rounding apart."""
    x, dtype = m.pick(), m.dtype()
    if m.rng.random() < 0.5:
        dtype = DTYPES[m.rng.choice(("FP8E4M3FN", "FP8E5M2", "HF8"))]  # conversions in one fixed mode
    for mode in m.rng.sample(("rint", "floor", "ceil", "trunc", "odd"), 2):
        m.cast(x, dtype, mode)


def repeated(m: Maker) -> None:
    """A cast to the dtype the value has."""
    x = m.pick()
    m.any_cast(x, _dtype(x))


def binary(m: Maker) -> None:
    """An elementwise operation on two tiles of one type."""
    a = m.pick(_arithmetic)
    b = m.pick(lambda t: t == a.type)
    m.emit(f"tile.{m.rng.choice(_BINARY)}", lhs=a, rhs=b)


def mixed(m: Maker) -> None:
    """A tile cast to another one's dtype, then both combined."""
    a = m.pick(_arithmetic)
    b = m.pick(lambda t: t.shape == a.type.shape and t.valid == a.type.valid)  # type: ignore[union-attr]
    m.emit(f"tile.{m.rng.choice(_BINARY[:5])}", lhs=a, rhs=m.any_cast(b, _dtype(a)))


def with_scalar(m: Maker) -> None:
    """An elementwise operation with a literal, a loop counter or another scalar."""
    a = m.pick(_arithmetic)
    number: Const | Value = m.number(_dtype(a))
    fitting = [v for v in m.scalars if _dtype(a).is_float or v.type.dtype.is_int]  # type: ignore[union-attr]
    if fitting and m.rng.random() < 0.3:
        number = m.rng.choice(fitting)
    m.emit(f"tile.{m.rng.choice(_SCALAR)}", lhs=a, rhs=number)


def unary(m: Maker) -> None:
    """One of the unary operations."""
    a = m.pick(_arithmetic)
    m.emit(f"tile.{m.rng.choice(_UNARY)}", tile=a)


def clamp_and_narrow(m: Maker) -> None:
    """Clamp into a range and convert to a type that holds it."""
    a = m.pick(_arithmetic)
    lo, hi = m.rng.choice([(-128, 127), (0, 255), (-1, 1), (0, 15), (-448, 448), (-32768, 32767)])
    literal = FP32 if _dtype(a).is_float else INT32
    word = float if literal is FP32 else int
    low = m.emit("tile.maximums", lhs=a, rhs=Const(word(lo), literal))
    high = m.emit("tile.minimums", lhs=low, rhs=Const(word(hi), literal))
    m.any_cast(high)


def staged_narrowing(m: Maker) -> None:
    """Float to a wide integer, then to a narrow one."""
    a = m.pick(lambda t: t.dtype.is_float)
    wide = m.cast(a, DTYPES[m.rng.choice(["INT32", "INT64", "INT16"])], m.rng.choice(_MODES_TO_INT))
    m.any_cast(wide, DTYPES[m.rng.choice(["INT8", "UINT8", "INT16", "INT32"])])


def signed_zero(m: Maker) -> None:
    """Integers in a float tile, negated or scaled, and back: zeros get a sign that integers cannot hold."""
    whole = m.pick(lambda t: t.dtype.is_int and t.dtype.bits <= 16)
    x = m.cast(whole, FP32)
    if m.rng.random() < 0.5:
        x = m.emit("tile.neg", tile=x)
    else:
        x = m.emit("tile.muls", lhs=x, rhs=Const(m.rng.choice((-1.0, -2.0, -0.0)), FP32))
    there = DTYPES[m.rng.choice(("INT16", "INT32", "HF8", "INT8", "FP16"))]
    m.cast(m.cast(x, there, m.rng.choice((None, "rint", "trunc"))), DTYPES[m.rng.choice(("FP32", "FP32", "BF16"))])


def overflow_to_nan(m: Maker) -> None:
    """Whole numbers beyond a format without infinity become NaN, which the way through integers loses."""
    whole = m.cast(m.pick(), DTYPES[m.rng.choice(("INT16", "INT32"))], m.rng.choice(_MODES_TO_INT))
    x = m.cast(m.cast(whole, DTYPES["FP8E4M3FN"]), FP32)
    m.cast(m.cast(x, DTYPES[m.rng.choice(("INT16", "INT32"))]), DTYPES[m.rng.choice(("FP32", "FP32", "BF16"))])


def select(m: Maker) -> None:
    """Compare and select, often between what was compared; one side may be a literal."""
    a = m.pick(_arithmetic)
    how = m.rng.randrange(6)
    b: Value | Const = m.number(_dtype(a))
    if m.rng.random() < 0.5:
        b = m.pick(lambda t: t == a.type)
    mask = m.emit("tile.cmp" if isinstance(b, Value) else "tile.cmps", lhs=a, rhs=b, cmp_type=how)
    m.tiles.pop()  # a mask is no operand of arithmetic
    sides: list[Value | Const] = [a, b]
    if m.rng.random() < 0.5:
        x = m.pick(lambda t: t.shape == a.type.shape and t.valid == a.type.valid)  # type: ignore[union-attr]
        y: Value | Const = m.number(_dtype(x))
        if m.rng.random() < 0.5:
            y = m.pick(lambda t: t == x.type)
        sides = [x, y]
    if m.rng.random() < 0.4:
        sides.reverse()
    _selected(m, mask, sides)


def _selected(m: Maker, mask: Value, sides: list[Value | Const]) -> None:
    first, second = sides
    if m.rng.random() < 0.4:
        m.emit("tile.select", mask=mask, on_true=first, on_false=second)
    elif isinstance(first, Value) and isinstance(second, Value):
        m.emit("tile.sel", mask=mask, lhs=first, rhs=second)
    elif isinstance(first, Value):
        m.emit("tile.sels", mask=mask, src=first, scalar=second)
    else:
        spread = m.emit("tile.expands", target=second, scalar=first)
        m.emit("tile.sel", mask=mask, lhs=spread, rhs=second)


def composite(m: Maker) -> None:
    """A sine or cosine, of a bounded argument or not; programs without composites leave it out."""
    if not m.kind.composites:
        return
    x = m.pick(lambda t: t.dtype is FP32 and len(t.shape) == 2)
    if m.rng.random() < 0.5:
        top = m.rng.choice((0.78, 1.57, 100.0))
        x = m.emit("tile.maximums", lhs=x, rhs=Const(-top, FP32))
        x = m.emit("tile.minimums", lhs=x, rhs=Const(top, FP32))
    m.emit(f"tile.{m.rng.choice(('sin', 'cos'))}", tile=x)


def reduce_and_expand(m: Maker) -> None:
    """A reduction, and its result combined with a tile."""
    a = m.pick(_arithmetic)
    axis = m.rng.choice(("row", "col"))
    vector = m.emit(f"tile.{axis}_{m.rng.choice(('max', 'min', 'sum'))}", tile=a)
    if m.rng.random() < 0.4:
        vector = m.any_cast(m.any_cast(vector), _dtype(a))
    how = m.rng.choice(("add", "sub", "mul", "max", "min", "div"))
    m.emit(f"tile.{axis}_expand_{how}", tile=a, **{f"{axis}_vec": vector})


def quantise(m: Maker) -> None:
    """The amax epilogue: scale by a constant over the largest magnitude, then convert to a narrow type."""
    a = m.pick(lambda t: _arithmetic(t) and t.dtype.is_float)
    axis = m.rng.choice(("row", "col"))
    amax = m.emit(f"tile.{axis}_max", tile=m.emit("tile.abs", tile=a))
    if m.rng.random() < 0.6:
        floor = m.rng.choice((1e-12, 1e-4, 1e-30, 0.0, 1.0))
        amax = m.emit(m.rng.choice(("tile.maximums", "tile.adds")), lhs=amax, rhs=Const(floor, FP32))
    top = m.rng.choice((127.0, 255.0, 448.0, 7.0, 1.0, 1e-3, 0.1, -127.0))
    scaled = _scaled(m, a, amax, axis, top)
    mode = m.rng.choice(_MODES_TO_INT)
    if m.rng.random() < 0.6:
        scaled = m.cast(scaled, INT32, mode)
        if m.rng.random() < 0.6:
            scaled = m.cast(scaled, DTYPES["FP16"], m.rng.choice(_MODES_TO_INT))
    m.cast(scaled, DTYPES[m.rng.choice(("INT8", "INT8", "UINT8", "INT16"))], m.rng.choice(_MODES_TO_INT))


def _scaled(m: Maker, a: Value, amax: Value, axis: str, top: float) -> Value:
    vector = f"{axis}_vec"
    match m.rng.randrange(4):
        case 0:
            assert isinstance(amax.type, TileType)
            shape = tuple(index(d) for d in amax.type.shape if isinstance(d, int))
            full = m.emit("tile.full", shape=shape, dtype=_dtype(a), value=Const(top, FP32))
            scale = m.emit("tile.div", lhs=full, rhs=amax)
        case 1:
            inverse = m.emit("tile.recip", tile=amax)
            scale = m.emit("tile.muls", lhs=inverse, rhs=Const(top, FP32))
        case 2:
            step = m.emit("tile.muls", lhs=amax, rhs=Const(1 / top, FP32))
            return m.emit(f"tile.{axis}_expand_div", tile=a, **{vector: step})
        case _:
            step = m.emit("tile.divs", lhs=amax, rhs=Const(top, FP32))
            return m.emit(f"tile.{axis}_expand_div", tile=a, **{vector: step})
    return m.emit(f"tile.{axis}_expand_mul", tile=a, **{vector: scale})


def count_up(m: Maker) -> None:
    """Consecutive integers, then converted."""
    cols = m.kind.shape[1]
    start: Const | Value = Const(m.rng.choice((0, 5, -3, 250)), INT32)
    whole = [v for v in m.scalars if v.type.dtype in (INDEX, INT32)]  # type: ignore[union-attr]
    if whole and m.rng.random() < 0.5:
        start = whole[-1]
    dtype = m.rng.choice([d for d in (INT32, DTYPES["INT16"], DTYPES["UINT8"]) if d.is_int])
    line = m.emit("tile.ci", start=start, shape=(index(1), index(cols)), dtype=dtype)
    m.any_cast(m.any_cast(line))


def filled(m: Maker) -> None:
    """A constant tile, then converted."""
    rows, cols = m.kind.shape
    dtype = m.dtype()
    m.any_cast(m.emit("tile.full", shape=(index(rows), index(cols)), dtype=dtype, value=m.number(dtype)))


def move_about(m: Maker) -> None:
    """Operations that keep the elements."""
    a = m.pick(lambda t: len(t.shape) == 2)
    t = a.type
    assert isinstance(t, TileType)
    rows, cols = (d for d in t.shape if isinstance(d, int))
    match m.rng.randrange(4):
        case 0:
            b = m.emit("tile.reshape", tile=a, shape=(index(1), index(rows * cols)))
            m.emit("tile.reshape", tile=b, shape=(index(rows), index(cols)))
        case 1:
            m.emit("tile.move", tile=a, target_memory="Vec")
        case 2:
            m.emit("tile.transpose", tile=a, axis1=0, axis2=1)
        case _:
            if t.valid is None:
                m.emit("tile.slice", tile=a, shape=(index(1), index(cols)), offset=(index(rows - 1), index(0)))


def narrowed(m: Maker) -> None:
    """Another valid shape; wider ones bring undefined elements, so they are filled first."""
    a = m.pick(lambda t: t.shape == m.kind.shape and t.valid is None)
    cols = m.kind.shape[1]
    b = m.emit(
        "tile.set_validshape", tile=a, valid_rows=index(m.kind.shape[0]), valid_cols=index(m.rng.randint(1, cols))
    )
    if m.rng.random() < 0.5:
        m.emit("tile.fillpad", tile=b)


def _arithmetic(t: TileType) -> bool:
    return not t.dtype.is_coded and t.dtype.kind != "bool" and len(t.shape) == 2


def _dtype(v: Value) -> DType:
    assert isinstance(v.type, TileType)
    return v.type.dtype


#: Every idiom with its weight.
IDIOMS: tuple[tuple[Idiom, float], ...] = (
    (cast, 4), (chain, 3), (round_trip, 3), (repeated, 0.7), (two_modes, 0.8), (binary, 2), (mixed, 2),
    (with_scalar, 2), (unary, 1.5), (clamp_and_narrow, 2), (staged_narrowing, 1.5), (signed_zero, 1),
    (overflow_to_nan, 0.5), (select, 1.2), (reduce_and_expand, 1.2), (quantise, 1),
    (count_up, 0.5), (filled, 0.6), (composite, 1.5), (move_about, 0.5), (narrowed, 0.3),
)  # fmt: skip
