"""Scratch tiles have the element type their instruction wants, or are refused where they are written."""

from __future__ import annotations

import pytest
import tilegg
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.op import OPS, Kind

HEAD = """@pl.function
def k(x: pl.Tensor[[16, 64], pl.{d}], v: pl.Tensor[[16, 1], pl.{d}]):
    a = pl.load(x, [0, 0], [16, 64])
    b = pl.load(x, [0, 0], [16, 64])
    c = pl.load(v, [0, 0], [16, 1])
    m = pl.tile.cmp(a, b)
    tmp = pl.tile.create([32, 64], dtype=pl.{t})
"""
CALLS = {
    "tile.row_sum": "a, tmp", "tile.row_max": "a, tmp", "tile.row_min": "a, tmp", "tile.row_prod": "a, tmp",
    "tile.col_sum": "a, tmp", "tile.row_expand_add": "a, c, tmp", "tile.row_argmax": "a, tmp",
    "tile.row_argmin": "a, tmp", "tile.col_argmax": "a, tmp", "tile.col_argmin": "a, tmp", "tile.pow": "a, b, tmp",
    "tile.pows": "a, 2, tmp", "tile.transpose": "a, 0, 1, tmp", "tile.rem": "a, b, tmp",
    "tile.rems": "a, 3, tmp", "tile.rsqrt": "a, tmp", "tile.xor": "a, b, tmp", "tile.xors": "a, 3, tmp",
    "tile.quant": "a, c, tmp=tmp",
}  # fmt: skip
INTEGERS = ("tile.xor", "tile.xors")


def program(line: str, dtype: str, scratch: str) -> str:
    return HEAD.format(d=dtype, t=scratch) + f"    r = {line}\n    return r\n"


def test_every_such_operation_is_tried() -> None:
    assert {name for name, decl in OPS.items() if decl.alike} == set(CALLS)


@pytest.mark.parametrize("name", CALLS)
def test_scratch_tiles_have_the_dtype_of_the_data(name: str) -> None:
    data, other = ("INT16", "INT32") if name in INTEGERS else ("FP32", "FP16")
    line = f"pl.{name}({CALLS[name]})"
    assert not tilegg.verify(tilegg.parse(program(line, data, data)))
    with pytest.raises(TileggError, match=f"has dtype {other}, .* {data}") as caught:
        tilegg.parse(program(line, data, other), "k.py")
    (found,) = caught.value.diagnostics
    assert found.code == "TG007" and found.span is not None and found.span.line == 8
    assert f"dtype=pl.{data}" in found.hint


def test_the_bits_of_a_rectifier_are_bytes() -> None:
    for scratch in ("INT8", "UINT8"):
        assert tilegg.parse(program("pl.tile.prelu(a, b, tmp)", "FP32", scratch))
    with pytest.raises(TileggError, match="tmp has dtype FP32"):
        tilegg.parse(program("pl.tile.prelu(a, b, tmp)", "FP32", "FP32"))


def test_what_targets_plan_like_the_data_is_declared_so() -> None:
    """A scratch tile that all targets give the dtype of source or result must not be written with another."""
    targets = [tilegg.load_target(arch) for arch in tilegg.target_names()]
    for decl in OPS.values():
        rules = [r for t in targets if decl.pto in t.ops for r in t.ops[decl.pto].scratch]
        if rules and not any(r.dtype for r in rules) and any(p.kind is Kind.SCRATCH for p in decl.operand_params):
            assert decl.alike, decl.name


@pytest.mark.parametrize("scratch", ["UINT8", "FP32", "INT32"])
def test_selections_take_what_any_target_takes(scratch: str) -> None:
    for line in ("pl.tile.sels(m, a, tmp, 1)", "pl.tile.sel(m, a, b, tmp)"):
        assert not tilegg.verify(tilegg.parse(program(line, "FP32", scratch)))
