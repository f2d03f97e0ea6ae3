"""A number on the left of a tile: unified spellings and operators mean what they say, the rest says what to write."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from tilegg.ir.diagnostics import Diagnostic, TileggError
from tilegg.ir.program import Op
from tilegg.ir.text import print_program


def kernel(expression: str, dtype: str = "FP32") -> str:
    shape = "[4, 32]"
    return f"""
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[{shape}, pl.{dtype}], out: pl.Out[pl.Tensor[{shape}, pl.{dtype}]]):
    t = pl.tile.load(x, [0, 0], {shape})
    y = {expression}
    return pl.tile.store(y, [0, 0], out)
"""


def refusal(expression: str, dtype: str = "FP32") -> Diagnostic:
    with pytest.raises(TileggError) as caught:
        tilegg.parse(kernel(expression, dtype))
    (found,) = caught.value.diagnostics
    assert found.span is not None and found.span.line == 5
    return found


MEANINGS = {
    "add": (lambda x: 3 + x, "+"), "sub": (lambda x: 3 - x, "-"), "mul": (lambda x: 3 * x, "*"),
    "maximum": (lambda x: np.maximum(3, x), ""), "minimum": (lambda x: np.minimum(3, x), ""),
}  # fmt: skip
BITS = {"and_": (lambda x: 3 & x, "&"), "or_": (lambda x: 3 | x, "|"), "xor": (lambda x: 3 ^ x, "^")}


@pytest.mark.parametrize("name", [*MEANINGS, *BITS])
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT32", "INT16"])
def test_spellings_and_operators(name: str, dtype: str) -> None:
    if name in BITS and dtype.startswith("FP"):
        assert "integer" in refusal(f"pl.{name}(3, t)", dtype).message
        return
    meaning, symbol = {**MEANINGS, **BITS}[name]
    x = (np.arange(128).reshape(4, 32) - 60).astype(dtype.lower().replace("fp", "float"))
    program = tilegg.parse(kernel(f"pl.{name}(3, t)", dtype))
    assert tilegg.parse(print_program(program)) == program
    got = tilegg.run(program, {"x": x})["out"]
    assert got.dtype == x.dtype and np.array_equal(got, meaning(x).astype(x.dtype))
    if symbol:
        assert tilegg.parse(kernel(f"3 {symbol} t", dtype)) == program


@pytest.mark.parametrize("dtype", ["FP32", "FP16"])
def test_quotients(dtype: str) -> None:
    program = tilegg.parse(kernel("pl.div(1.5, t)", dtype))
    assert program == tilegg.parse(kernel("1.5 / t", dtype)) == tilegg.parse(kernel("pl.tile.rdivs(t, 1.5)", dtype))
    x = np.arange(1, 129).reshape(4, 32).astype(dtype.lower().replace("fp", "float"))
    assert np.array_equal(tilegg.run(program, {"x": x})["out"], x.dtype.type(1.5) / x)
    for arch in ("a2a3", "a5"):
        assert tilegg.lower(program, arch, memo=None).program


def test_scalars_that_are_not_literals_do_so_too() -> None:
    text = kernel("pl.div(n, t)").replace("def k(", "def k(n: pl.Scalar[pl.FP32], ")
    names = [s.name for s in tilegg.parse(text).functions[0].body.statements if isinstance(s, Op)]
    assert names == ["tile.load", "tile.rdivs", "tile.store"]


@pytest.mark.parametrize("expression", ["pl.div(1, t)", "1 / t", "pl.fmod(3, t)", "3 << t"])
def test_what_has_no_such_form_says_what_to_write(expression: str) -> None:
    found = refusal(expression, "INT32")
    assert found.code == "TG006" and "scalar on the right" in found.message
    assert "pl.tile.expands(tile, scalar)" in found.hint


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("pl.tile.rdivs(1.0, t)", "pl.tile.rdivs(tile, scalar)"),
        ("pl.tile.div(1.0, t)", "pl.tile.rdivs(tile, scalar)"),
        ("pl.tile.divs(1.0, t)", "pl.tile.rdivs(tile, scalar)"),
        ("pl.tile.sub(1.0, t)", "pl.tile.adds(pl.tile.neg(tile), scalar)"),
        ("pl.tile.subs(1.0, t)", "pl.tile.adds(pl.tile.neg(tile), scalar)"),
        ("pl.tile.add(1.0, t)", "the form with a scalar is pl.tile.adds, which takes the tile first"),
        ("pl.tile.adds(1.0, t)", "pl.tile.adds(tile, scalar)"),
        ("pl.tile.div(t, 1.0)", "pl.tile.divs"),
        ("pl.tile.row_expand_mul(t, 1.0)", "pl.tile.expands(tile, scalar)"),
        ("pl.tile.adds(t, t)", "the form with two tiles is pl.tile.add"),
        ("pl.tile.ands(t, t)", "the form with two tiles is pl.tile.and_"),
        ("pl.tile.adds(t, 'a')", "write a name, a number, a list of them or a call"),
    ],
)
def test_hints_name_operations_that_exist(expression: str, hint: str) -> None:
    found = refusal(expression)
    assert found.code == "TG006" and found.hint.endswith(hint)


def test_the_forms_that_hints_name_are_read() -> None:
    for form in ("rdivs(t, 1.0)", "adds(pl.tile.neg(t), 1.0)", "adds(t, 1.0)", "divs(t, 1.0)"):
        assert tilegg.parse(kernel(f"pl.tile.{form}")).functions


@pytest.mark.parametrize(
    ("expression", "call", "column"),
    [("pl.mul(t, 1e39)", "pl.mul: 1e+39", 19), ("pl.mul(1e39, t)", "pl.mul: 1e+39", 16),
     ("pl.tile.muls(t, -1e39)", "pl.tile.muls: -1e+39", 25), ("t * 1e39", "1e+39", 13),
     ("pl.tile.maximums(t, 1e400)", "pl.tile.maximums: the float", 29)],
)  # fmt: skip
def test_a_literal_beyond_fp32_is_named_with_its_operation(expression: str, call: str, column: int) -> None:
    found = refusal(expression)
    assert (found.code, found.message) == ("TG011", f"{call} does not fit FP32")
    assert found.span is not None and found.span.column == column


@pytest.mark.parametrize("valid", ["", ", [4, 16]"])
def test_windows_stay_inside_their_tile(valid: str) -> None:
    found = refusal(f"pl.tile.slice(t, [4, 32], [0, 16]{valid})")
    assert found.code == "TG008" and "exceeds dimension 1" in found.message
    assert found.hint == "a window stays inside its tile: at most 16 elements begin at 16"
    inside = kernel("pl.tile.slice(t, [4, 16], [0, 16])").replace("[[4, 32], pl.FP32]]):", "[[4, 16], pl.FP32]]):")
    assert "func.func" in tilegg.emit(tilegg.parse(inside), "a5")
    assert "valid_shape" in refusal("pl.tile.load(x, [0, 16], [4, 32])").hint


def test_unknown_operations_say_where_the_known_ones_are() -> None:
    for name, hint in (("frobnicate", "`tilegg ops` lists"), ("maximun", "did you mean pl.maximum")):
        program, remarks = tilegg.parse_with_remarks(kernel(f"pl.{name}(t)"))
        assert remarks[0].message.startswith(f"pl.{name} is not an operation")
        with pytest.raises(TileggError) as caught:
            tilegg.emit(program, "a5")
        (found,) = caught.value.diagnostics
        assert found.code == "TG023" and hint in found.hint


def test_known_operations_on_values_of_unknown_type_are_not_called_unknown() -> None:
    text = kernel("pl.frobnicate(t)").replace("pl.tile.store", "pl.store")
    _, remarks = tilegg.parse_with_remarks(text)
    assert [r.message.split(" ")[:2] for r in remarks] == [["pl.frobnicate", "is"], ["pl.store", "takes"]]
    typed = text.replace("y = ", "y: pl.Tile[[4, 32], pl.FP32] = ")
    assert len(tilegg.parse_with_remarks(typed)[1]) == 1
