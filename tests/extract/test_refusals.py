"""What a refused program is told: the reason that holds, and what to write instead."""

from __future__ import annotations

import pytest
from tilegg.codegen.emit import emit
from tilegg.extract.lower import lower
from tilegg.ir.diagnostics import Diagnostic, TileggError
from tilegg.ir.dtypes import DTYPES
from tilegg.ir.op import OPS
from tilegg.ir.text import parse
from tilegg.rules.target import load_target

HEAD = """
import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.{0}], out: pl.Out[pl.Tensor[[16, 64], pl.{0}]]):
        t = pl.load(x, [0, 0], [16, 64])
"""
SATURATED = 'pl.cast({}, target_type=pl.{}, mode="rint", saturation_mode="on")'


def text(value: str, dtype: str = "FP32", *lines: str) -> str:
    """A kernel that stores a value computed from the tile ``t``."""
    body = "".join(f"        {line}\n" for line in (*lines, f"c = {value}", "return pl.store(c, [0, 0], out)"))
    return HEAD.format(dtype) + body


def refused(source: str, arch: str | None) -> Diagnostic:
    """Return why a program is not lowered."""
    with pytest.raises(TileggError) as problem:
        lower(parse(source), arch)
    return problem.value.diagnostics[0]


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16"])
def test_a_saturating_cast_to_the_same_dtype_would_have_to_clamp_infinities(arch: str, dtype: str) -> None:
    found = refused(text(SATURATED.format("t", dtype), dtype), arch)
    assert found.code == "TG020"
    assert "infinities" in (found.reason or "") and "loses" not in (found.reason or "")
    assert all(word in (found.hint or "") for word in ("saturation off", "pl.tile.assume", "pl.minimum"))


def test_what_the_hint_names_is_taken() -> None:
    lower(parse(text(SATURATED.format("t", "FP32").replace('"on"', '"off"'))), "a5")
    lower(parse(text(SATURATED.format("u", "FP32"), "FP32", "u = pl.tile.assume(t, -8.0, 8.0)")), "a5")
    lower(parse(text("pl.minimum(pl.maximum(t, -3e38), 3e38)")), "a5")


@pytest.mark.parametrize("arch", ["a2a3", "a5", None])
@pytest.mark.parametrize("name", [n for n, d in OPS.items() if n.startswith("tensor.") and d.composite])
def test_composites_of_whole_tensors_send_to_tiles(name: str, arch: str | None) -> None:
    found = refused(text("t", "FP32", f"s = pl.{name}(x)"), arch)
    assert found.code == "TG022" and "whole tensor" in found.message
    form = name.replace("tensor.", "tile.")
    assert f"pl.{form}" in (found.hint or "")
    lower(parse(text(f"pl.{form}(t)")), arch)


def test_a_raw_quantisation_is_told_the_algorithm_that_is_taken() -> None:
    words = "pl.tile.tquant_mx_raw(t, w, w, group_axis=1, dtype=pl.FP4, scale_alg={})"
    source = text("t", "BF16", "w = pl.tile.slice(t, [1, 32], [0, 0])", f'q, e = {words.format(repr("nv"))}')
    source = source.replace("c = t", "c = pl.tile.slice(t, [16, 64], [0, 0])")
    found = refused(source, "a5")
    assert found.code == "TG022" and 'scale_alg="ocp"' in (found.hint or "")


@pytest.mark.parametrize(
    ("arch", "lines"),
    [
        ("a5", ['q = pl.cast(t, target_type=pl.INT8, mode="odd")', "c = pl.cast(q, target_type=pl.INT8)"]),
        ("a5", ['q = pl.cast(t, target_type=pl.INT8, mode="odd")', "u = pl.cast(q, target_type=pl.FP16)",
                "c = pl.cast(pl.abs(u), target_type=pl.INT8)"]),
    ],
)  # fmt: skip
def test_what_follows_from_a_refusal_is_not_reported(arch: str, lines: list[str]) -> None:
    head = HEAD.format("FP16").replace("pl.Out[pl.Tensor[[16, 64], pl.FP16]]", "pl.Out[pl.Tensor[[16, 64], pl.INT8]]")
    body = "".join(f"        {line}\n" for line in (*lines, "return pl.store(c, [0, 0], out)"))
    with pytest.raises(TileggError) as problem:
        lower(parse(head + body), arch, contract="exact")
    (found,) = problem.value.diagnostics
    assert found.code == "TG021" and "FP16 to INT8" in found.message
    assert not any(note.endswith("exact") for note in found.notes)


@pytest.mark.parametrize(
    ("arch", "source", "dtype", "reason", "hint"),
    [
        ("a5", "INT4", "FP16", "a5 has no native conversion from INT4", "a2a3 can: --arch a2a3"),
        ("a2a3", "FP32", "FP8E4M3FN", "a2a3 has no native conversion to FP8E4M3FN", "a5 can: --arch a5"),
        ("a2a3", "FP32", "FP4", "a2a3 has no native conversion to FP4", "a5 can: --arch a5"),
        ("a2a3", "FP32", "HF8", "a2a3 has no native conversion to HF8", "a5 can: --arch a5"),
    ],
)  # fmt: skip
def test_a_pair_without_a_native_conversion(arch: str, source: str, dtype: str, reason: str, hint: str) -> None:
    program = text("t", source, f"u = pl.cast(t, target_type=pl.{dtype})").replace("c = t", "c = pl.cast(u, pl.FP32)")
    program = program.replace(f"pl.Out[pl.Tensor[[16, 64], pl.{source}]]", "pl.Out[pl.Tensor[[16, 64], pl.FP32]]")
    found = refused(program, arch)
    assert (found.code, found.reason) == ("TG020", reason) and (found.hint or "").startswith(hint)


def test_the_complement_of_a_mask_is_named() -> None:
    head = HEAD.format("FP32")
    body = "m = pl.tile.cmps(t, 0.0, cmp_type=4)", "n = {}", "c = pl.tile.sel(n, t, pl.exp(t))"
    source = head + "".join(f"        {line}\n" for line in (*body, "return pl.store(c, [0, 0], out)"))
    found = refused(source.format("pl.tile.not_(m)"), "a2a3")
    assert found.code == "TG022" and found.hint == "the complement of a mask is pl.tile.mask_not(m)"
    lower(parse(source.format("pl.tile.mask_not(m)")), "a2a3")
    found = refused(text("pl.tile.not_(t)", "UINT8"), "a2a3")
    assert "if it is a mask, write pl.tile.mask_not(t)" in (found.hint or "") and "xors(t, 255)" in (found.hint or "")


def test_a_tile_is_no_parameter_of_a_kernel() -> None:
    program = parse(text("pl.add(t, y)").replace("self, ", "self, y: pl.Tile[[16, 64], pl.FP32], "))
    lowered = lower(program, "a5")
    with pytest.raises(TileggError) as problem:
        emit(lowered)
    (found,) = problem.value.diagnostics
    assert found.code == "TG023" and "pl.load" in (found.hint or "") and "local memory" in (found.reason or "")


ELEMENT = {"tgetval": "q = pl.tile.read(t, [3, 5])", "tsetval": "pl.tile.write(t, [3, 5], 1.0)"}


@pytest.mark.parametrize("mnemonic", ELEMENT)
@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_single_elements_are_refused_where_the_target_data_say_so_and_nowhere_else(arch: str, mnemonic: str) -> None:
    target, line = load_target(arch), ELEMENT[mnemonic]
    for dtype in target.ops["tload"].asm:
        number = "1.0" if DTYPES[dtype].is_float else "1"
        use = "pl.tensor.write(out, [0, 0], q)" if mnemonic == "tgetval" else "pl.store(t, [0, 0], out)"
        source = HEAD.format(dtype) + "".join(f"        {x}\n" for x in (line.replace("1.0", number), use))
        if target.legal(mnemonic, dtype).ok:
            emit(lower(parse(source), arch))
            continue
        found = refused(source, arch)
        told = f"{found.message} {found.reason}"
        assert found.code == "TG022" and found.span is not None and found.span.line == 10, dtype
        assert any(why in told for why in (f"no {dtype} scalars", "has no address")), dtype
        assert "cast the tile to FP32" in (found.hint or ""), dtype
        if mnemonic == "tgetval":
            as_told = source.replace(line, f"t = pl.cast(t, target_type=pl.FP32)\n        {line}")
            as_told = as_told.replace(f"Out[pl.Tensor[[16, 64], pl.{dtype}", "Out[pl.Tensor[[16, 64], pl.FP32")
            emit(lower(parse(as_told), arch))


@pytest.mark.parametrize("value", ["2.0", "pl.scalar.cast(s, pl.{})"])
@pytest.mark.parametrize("dtype", ["HF8", "FP8E8M0"])
@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_scalars_that_the_assembler_cannot_compute_are_refused_where_they_stand(
    arch: str, dtype: str, value: str
) -> None:
    program = parse(
        "import pypto.language as pl\n\n@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(s: pl.Scalar[pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.{dtype}]]):\n"
        f"    pl.tensor.write(out, [0, 0], {value.format(dtype)})\n"
    )
    with pytest.raises(TileggError) as problem:
        emit(lower(program, arch))
    (found,) = problem.value.diagnostics
    assert found.code == "TG023" and found.message == f"{dtype} scalars cannot be written as assembly"
    assert found.span is not None and found.span.line == 5 and found.reason and "FP32" in (found.hint or "")
