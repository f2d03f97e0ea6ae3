"""Small programs for the tests of this folder: built by hand, and random ones."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tilegg.ir.dtypes import BF16, FP4, FP8E4M3FN, FP16, FP32, INT8, INT16, INT32, UINT8, DType
from tilegg.ir.program import Block, Const, Function, Op, Param, Program, Return, Statement, Value, index
from tilegg.ir.text import parse
from tilegg.ir.types import tensor, tile

SHAPE = (16, 64)
QUANTISE = """
import pypto.language as pl

@pl.program
class P:
    @pl.function
    def quantise(
        self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.INT8]]
    ) -> pl.Tensor[[16, 64], pl.INT8]:
        t: pl.Tile[[16, 64], pl.FP32] = pl.load(x, [0, 0], [16, 64])
        a = pl.abs(t)
        m = pl.row_max(a)
        m2 = pl.maximum(m, 1e-4)
        s = pl.recip(m2)
        s2 = pl.mul(s, 127.0)
        q = pl.row_expand_mul(t, s2)
        i = pl.cast(q, target_type=pl.INT32, mode="rint")
        h = pl.cast(i, target_type=pl.FP16, mode="round")
        o = pl.cast(h, target_type=pl.INT8, mode="trunc")
        r = pl.store(o, [0, 0], out)
        return r
"""


def quantise() -> Program:
    """The int8 quantisation epilogue: scaled by the row's largest magnitude, cast FP32 → INT32 → FP16 → INT8."""
    return parse(QUANTISE, "quantise.py")


class Maker:
    """Appends statements to one function."""

    def __init__(self, shape: Sequence[int] = SHAPE) -> None:
        self.shape = tuple(shape)
        self.params: list[Param] = []
        self.statements: list[Statement] = []
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def load(self, dtype: DType) -> Value:
        source = Value(f"x{len(self.params)}", tensor(self.shape, dtype))
        self.params.append(Param(source))
        zero, size = (index(0),) * 2, tuple(map(index, self.shape))
        return self.op("tile.load", (source, zero, size, None), dtype)

    def op(self, name: str, operands: tuple[Any, ...], dtype: DType, **attrs: Any) -> Value:
        result = Value(self.name(), tile(self.shape, dtype))
        self.statements.append(Op(name, operands, attrs, (result,)))
        return result

    def cast(self, x: Value, dtype: DType, mode: str = "round", saturation: str | None = None) -> Value:
        attrs: dict[str, Any] = {"target_type": dtype}
        if mode != "round":
            attrs["mode"] = mode
        if saturation is not None and (saturation == "on") is dtype.is_float:
            attrs["saturation_mode"] = saturation
        return self.op("tile.cast", (x, None), dtype, **attrs)

    def store(self, x: Value) -> None:
        t: Any = x.type
        out = Value(f"out{len(self.params)}", tensor(self.shape, t.dtype))
        self.params.append(Param(out, "Out"))
        result = Value(self.name(), out.type)
        self.statements.append(Op("tile.store", (x, (index(0), index(0)), out, None), {}, (result,)))

    def program(self, name: str = "k") -> Program:
        last = self.statements[-1]
        assert isinstance(last, Op)
        body = Block((*self.statements, Return((last.result,))))
        return Program("P", (Function(name, tuple(self.params), (last.result.type,), body),))


def chain(*stops: Any, shape: Sequence[int] = SHAPE) -> Program:
    """A load, the casts through the dtypes (or (dtype, mode) pairs), a store."""
    m = Maker(shape)
    x = m.load(stops[0])
    for stop in stops[1:]:
        dtype, mode = stop if isinstance(stop, tuple) else (stop, "round")
        x = m.cast(x, dtype, mode)
    m.store(x)
    return m.program()


_MODES = ("round", "round", "rint", "trunc", "floor", "odd")
_DTYPES = {
    "a5": (FP32, FP16, BF16, INT32, INT16, INT8, UINT8, FP8E4M3FN, FP4),
    "a2a3": (FP32, FP16, BF16, INT32, INT16, INT8, UINT8),
}


def random_program(seed: int, arch: str, size: int = 12, shape: Sequence[int] = (4, 32)) -> Program:
    """Loads, arithmetic in FP32, FP16, INT32 and INT16, casts between random dtypes, stores in between."""
    rnd = random.Random(seed)
    m = Maker(shape)
    pool = [m.load(FP32), m.load(rnd.choice(_DTYPES[arch]))]
    for _ in range(size):
        x = rnd.choice(pool[-5:])
        made = _arithmetic(m, rnd, x, pool) if rnd.random() < 0.4 else None
        dtype, mode = rnd.choice(_DTYPES[arch]), rnd.choice(_MODES)
        pool.append(made or m.cast(x, dtype, mode, rnd.choice((None, None, "on", "off"))))
        if rnd.random() < 0.15:
            m.store(pool[-1])
        if rnd.random() < 0.1:
            pool.append(m.load(rnd.choice(_DTYPES[arch])))
    m.store(pool[-1])
    return m.program()


def _arithmetic(m: Maker, rnd: random.Random, x: Value, pool: list[Value]) -> Value | None:
    dtype = x.type.dtype  # type: ignore[union-attr]
    if dtype not in (FP32, FP16, INT32, INT16):
        return None
    same = [v for v in pool if v.type.dtype is dtype]  # type: ignore[union-attr]
    if rnd.random() < 0.5:
        return m.op(rnd.choice(("tile.add", "tile.maximum", "tile.mul")), (x, rnd.choice(same)), dtype)
    number = Const(2.0, dtype) if dtype.is_float else Const(3, dtype)
    return m.op(rnd.choice(("tile.adds", "tile.minimums")), (x, number), dtype)
