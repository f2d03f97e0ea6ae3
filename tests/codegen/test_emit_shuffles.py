"""What the assembler does not take of scattering, searching and counting is refused with its reason and a way out."""

from __future__ import annotations

import pytest
import tilegg
from tilegg.ir.diagnostics import Diagnostic, TileggError

TEXT = """
import pypto.language as pl

@pl.function(type=pl.FunctionType.InCore)
def kernel({params}, out: pl.Out[pl.Tensor[[{out}], pl.{dtype}]]):
{loads}
    return pl.store({line}, [0, 0], out)
"""


def refusal(inputs: str, out: str, line: str, target: str) -> Diagnostic | None:
    """Return the one diagnostic of a kernel on loaded tiles a, b, c, given as ``"16, 64 FP32; ..."``; None for none."""
    params, loads = [], []
    for name, given in zip("abc", inputs.split("; ")):
        shape, dtype = given.rsplit(" ", 1)
        params.append(f"{name}_: pl.Tensor[[{shape}], pl.{dtype}]")
        loads.append(f"    {name} = pl.load({name}_, [0, 0], [{shape}])")
    shape, dtype = out.rsplit(" ", 1)
    text = TEXT.format(params=", ".join(params), out=shape, dtype=dtype, loads="\n".join(loads), line=line)
    try:
        tilegg.emit(tilegg.lower(tilegg.parse(text, "k.py"), target))
    except TileggError as problem:
        (found,) = problem.diagnostics
        return found
    return None


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize(
    ("source", "dst", "taken"),
    [
        ("16, 64", "8, 64", False), ("16, 32", "8, 64", False), ("4, 4", "16, 1", False), ("1, 16", "64, 8", False),
        ("16, 64", "16, 64", True), ("64, 1", "64, 8", True), ("16, 1", "1, 64", True), ("1, 16", "16, 1", True),
    ],
)  # fmt: skip
def test_a_source_larger_than_the_target(source: str, dst: str, taken: bool, target: str) -> None:
    found = refusal(f"{dst} FP32; {source} FP32; {source} INT32", f"{dst} FP32", "pl.tile.scatter(a, b, c)", target)
    if taken:
        assert found is None
        return
    assert found is not None and found.code == "TG008" and found.span is not None
    assert f"valid in [{source}] is larger" in found.message and "exceed the target" in (found.reason or "")
    assert "pl.tile.reshape" in (found.hint or "")


def test_a_source_larger_than_the_valid_part_of_the_target() -> None:
    line = "pl.tile.scatter(pl.tile.set_validshape(a, 8, 64), b, c)"
    found = refusal("16, 64 FP32; 16, 64 FP32; 16, 64 INT32", "16, 64 FP32", line, "a5")
    assert found is not None and found.code == "TG008" and "which is valid in [8, 64]" in found.message


@pytest.mark.parametrize(
    ("mode", "dtype", "targets"),
    [
        ("eq", "FP32", "a2a3 a5"), ("gt", "FP16", "a2a3 a5"), ("eq", "INT32", "a2a3 a5"), ("gt", "INT32", "a5"),
        ("eq", "INT16", "a5"), *((mode, "FP32", "") for mode in ("ne", "lt", "le", "ge")),
    ],
)  # fmt: skip
def test_searching_compares_for_equal_and_greater(mode: str, dtype: str, targets: str) -> None:
    number = "1.0" if dtype.startswith("FP") else "1"
    line = f'pl.tile.gather_compare(a, {number}, pl.tile.create([16, 64], pl.UINT8), cmp_mode="{mode}", out_cols=64)[0]'
    for target in ("a2a3", "a5"):
        found = refusal(f"16, 64 {dtype}", "16, 64 INT32", line, target)
        if target in targets.split():
            assert found is None
            continue
        assert found is not None and found.code == "TG022" and "the instruction" in found.message
        assert ("cast to" if dtype.startswith("INT") else "compare with gt") in (found.hint or "")


@pytest.mark.parametrize(
    ("source", "index", "byte", "words"),
    [
        ("1, 256 UINT16", "1, 32", 0, "TG023 histogram of 1 rows; multiple of 32"),
        ("32, 64 UINT16", "32, 32", 1, "TG023 [32, 32] UINT8; give a [32, 1] tile"),
        ("16, 64 UINT16", "16, 1", 0, "TG023 histogram of 16 rows; multiple of 32"),
        ("16, 64 UINT32", "16, 64", 2, "TG023 [16, 64] UINT8; give a [1, 1] tile"),
        ("16, 20 UINT32", "2, 1", 1, "TG023 20 UINT32 elements; multiple of 32"),
        ("32, 64 UINT16", "32, 1", 0, ""), ("16, 64 UINT32", "2, 1", 1, ""), ("16, 64 UINT32", "1, 32", 3, ""),
    ],
)  # fmt: skip
def test_filter_bytes(source: str, index: str, byte: int, words: str) -> None:
    rows = source.partition(",")[0]
    line = f"pl.tile.histogram(a, b, byte={byte})"
    found = refusal(f"{source}; {index} UINT8", f"{rows}, 256 UINT32", line, "a5")
    if not words:
        assert found is None
        return
    what, hint = words.removeprefix("TG023 ").split("; ")
    assert found is not None and found.code == "TG023"
    assert what in found.message and found.reason and hint in (found.hint or "")


@pytest.mark.parametrize(
    ("lengths", "code", "hint"), [("16, 1 UINT8", "TG007", "pl.INT32"), ("32, 1 INT32", "TG008", "as many rows")]
)
def test_lengths_of_rows(lengths: str, code: str, hint: str) -> None:
    line = "pl.tile.concat_idx(a, b, c, c)"
    found = refusal(f"16, 32 FP32; 16, 32 FP32; {lengths}", "16, 64 FP32", line, "a5")
    assert found is not None and found.code == code and hint in (found.hint or "")
