"""Amax scaling: the bounds of quantisation epilogues, and what must not be taken for one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tilegg.ir.convert import encode
from tilegg.ir.dtypes import FP32, DType
from tilegg.ir.interp import run
from tilegg.ir.op import OPS, Call
from tilegg.ir.program import Block, Const, Function, Op, Param, Return, Value, index
from tilegg.ir.types import tensor, tile
from tilegg.rewrite.knowledge import Knowledge


class Epilogue:
    """Builds ``x`` scaled by a constant over its largest magnitude."""

    def __init__(self, dtype: DType = FP32) -> None:
        self.x = Value("x", tensor((2, 8), dtype))
        self.ops: list[Op] = []
        self.t = Value("t", tile((2, 8), dtype))
        zero, whole = (index(0), index(0)), (index(2), index(8))
        self.ops.append(Op("tile.load", (self.x, zero, whole, None), {}, (self.t,)))

    def add(self, name: str, *operands: Any, **attrs: Any) -> Value:
        decl = OPS[name]
        padded = (*operands, *(None for _ in decl.operand_params[len(operands) :]))
        t = decl.result(Call(decl, padded, {**decl.defaults, **attrs}, None))
        assert t is not None
        v = Value(f"v{len(self.ops)}", t)
        self.ops.append(Op(name, padded, attrs, (v,)))
        return v

    def amax(self, axis: str = "row") -> Value:
        return self.add(f"tile.{axis}_max", self.add("tile.abs", self.t))

    def inverse(self, top: float, floor: float | None = None) -> Value:
        m = self.amax()
        if floor is not None:
            m = self.add("tile.maximums", m, Const(floor, FP32))
        scale = self.add("tile.muls", self.add("tile.recip", m), Const(top, FP32))
        return self.add("tile.row_expand_mul", self.t, scale)

    def step(self, top: float, floor: float | None = None) -> Value:
        m = self.amax()
        if floor is not None:
            m = self.add("tile.maximums", m, Const(floor, FP32))
        return self.add("tile.row_expand_div", self.t, self.add("tile.muls", m, Const(1 / top, FP32)))

    def known(self, v: Value) -> Any:
        return Knowledge(self.function(v)).of(v)

    def function(self, v: Value) -> Function:
        out = Value("out", tensor(v.type.shape, v.type.dtype))  # type: ignore[union-attr]
        stored = Value("stored", out.type)
        store = Op("tile.store", (v, (index(0), index(0)), out, None), {}, (stored,))
        params = (Param(self.x), Param(out, "Out"))
        return Function("f", params, (out.type,), Block((*self.ops, store, Return((stored,)))))


@pytest.mark.parametrize("form", ["inverse", "step"])
def test_scaled_rows_stay_within_the_constant(form: str) -> None:
    e = Epilogue()
    found = e.known(getattr(e, form)(127.0, 1e-4))
    assert 127 <= found.hi < 127.01 and found.lo == -found.hi
    assert found.nan and not found.inf


def test_without_a_floor_infinities_may_occur_and_the_step_form_may_exceed() -> None:
    e = Epilogue()
    assert e.known(e.inverse(127.0)).inf
    e = Epilogue()
    found = e.known(e.step(127.0))
    assert found.inf and 190 < found.hi < 191


def test_the_subnormal_row_that_exceeds_the_constant_is_inside_the_bound() -> None:
    e = Epilogue()
    scaled = e.step(127.0)
    f = e.function(scaled)
    least = float(FP32.min_positive)
    x = encode([[190 * least, -189 * least, *[0.0] * 6], [1.0] * 8], FP32)
    out = run(f, {"x": x})["out"]
    assert np.nanmax(np.abs(out)) == 190.0 <= e.known(scaled).hi


def test_a_small_literal_floor_that_rounds_to_zero_is_no_floor() -> None:
    e = Epilogue()
    assert e.known(e.inverse(127.0, 1e-45)).inf


@pytest.mark.parametrize("change", ["other tile", "other axis", "narrowed", "integers"])
def test_what_is_not_amax_scaling_gets_no_bound(change: str) -> None:
    from tilegg.ir.dtypes import INT32

    e = Epilogue(INT32 if change == "integers" else FP32)
    source = e.add("tile.neg", e.t) if change == "other tile" else e.t
    if change == "narrowed":
        source = e.add("tile.set_validshape", e.t, index(2), index(3))
    magnitude = e.add("tile.abs", source)
    m = e.add("tile.col_max" if change == "other axis" else "tile.row_max", magnitude)
    if change == "other axis":
        m = e.add("tile.reshape", m, (index(8), index(1)))
        m = e.add("tile.slice", m, (index(2), index(1)), (index(0), index(0)))
    found = e.known(e.add("tile.row_expand_div", e.t, m))
    assert found.hi > 1e8
