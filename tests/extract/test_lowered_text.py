"""Lowered programs are written so that reading them back gives the same program, on both targets."""

from __future__ import annotations

from pathlib import Path

import pytest
from tilegg import emit, lower, parse
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Op, Program, walk
from tilegg.ir.text import print_program
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.target import load_target

ROOT = Path(__file__).parents[2]
WRITTEN = {p.stem: p for folder in ("benchmarks/corpus", "examples") for p in sorted((ROOT / folder).glob("*.py"))}
TARGETS = ("a2a3", "a5")
#: Lines between a load ``t`` (and ``u``, of the same type) and the store of ``y``, for a dtype.
LINES = {
    "FP32": (
        "y = pl.tile.select(pl.tile.cmps(t, 1.0, cmp_type=4), 1.0, t)",
        "y = pl.tile.select(pl.tile.cmps(t, 1.0, cmp_type=4), t, -2.5)",
        "y = pl.tile.select(pl.tile.cmp(t, u, cmp_type=2), 0.0, u)",
        "y = pl.tile.minimums(pl.tile.maximums(t, -1.0), 1.0)",
        "y = pl.tile.cast(pl.tile.cast(t, target_type=pl.FP16), target_type=pl.FP32)",
        "y = pl.tile.recip(pl.tile.adds(pl.tile.exp(pl.tile.neg(t)), 1.0))",
    ),
    "FP16": ("y = pl.tile.select(pl.tile.cmps(t, 1.0, cmp_type=4), 1.0, t)", "y = pl.tile.relu(t)"),
    "INT32": (
        "y = pl.tile.select(pl.tile.cmps(t, 3, cmp_type=2), 3, t)",
        "y = pl.tile.select(pl.tile.cmp(t, u, cmp_type=0), t, 7)",
        "y = pl.tile.minimums(pl.tile.maximums(t, -128), 127)",
        "y = pl.tile.select(pl.tile.cmps(t, 0, cmp_type=1), u, t)",
    ),
    "INT16": ("y = pl.tile.select(pl.tile.cmp(t, u, cmp_type=4), t, u)",),
}


def kernel(line: str, dtype: str) -> Program:
    tensor = f"pl.Tensor[[16, 64], pl.{dtype}]"
    return parse(f"""
@pl.function(type=pl.FunctionType.InCore)
def k(x: {tensor}, w: {tensor}, out: pl.Out[{tensor}]):
    t = pl.tile.load(x, [0, 0], [16, 64])
    u = pl.tile.load(w, [0, 0], [16, 64])
    {line}
    return pl.tile.store(y, [0, 0], out)
""")


def assert_reads_back(program: Program) -> None:
    text = print_program(program)
    again = parse(text)
    assert again == program
    assert print_program(again) == text


def lowered(program: Program, arch: str) -> Program | None:
    try:
        return lower(program, arch, memo=None).program
    except TileggError:
        return None


@pytest.mark.parametrize("arch", TARGETS)
@pytest.mark.parametrize("name", WRITTEN)
def test_kernels(name: str, arch: str) -> None:
    made = lowered(parse(WRITTEN[name].read_text()), arch)
    if made is None:
        # Only kernels about dtypes and instructions that the older target does not have.
        assert arch == "a2a3" and any(word in name for word in ("fp8", "fp4", "mx", "moe")), name
    else:
        assert_reads_back(made)


@pytest.mark.parametrize("arch", TARGETS)
@pytest.mark.parametrize(("dtype", "line"), [(d, line) for d, lines in LINES.items() for line in lines])
def test_selects_clamps_and_compares(dtype: str, line: str, arch: str) -> None:
    made = lower(kernel(line, dtype), arch, memo=None)
    assert_reads_back(made.program)
    assert emit(parse(print_program(made.program)), arch).count("func.func") == 1


@pytest.mark.parametrize("arch", TARGETS)
def test_random_programs(arch: str) -> None:
    target, read = load_target(arch), 0
    for seed in range(40):
        kind = Kind(target=target, size=10, calls=seed % 2 == 1, composites=seed % 3 == 0)
        # Written out first, which rounds the literals.
        made = lowered(parse(print_program(random_program(seed, kind))), arch)
        if made is not None:
            assert_reads_back(made)
            read += 1
    assert read >= 30


@pytest.mark.parametrize("arch", TARGETS)
def test_a_select_of_a_scalar_keeps_its_scratch_tile_in_the_assembly(arch: str) -> None:
    made = lower(kernel(LINES["FP32"][0], "FP32"), arch, memo=None).program
    (select,) = [s for s in walk(made.functions[0].body) if isinstance(s, Op) and s.name == "tile.sels"]
    assert select.operands[2] is None
    (line,) = [s for s in emit(made, arch).splitlines() if "pto.tsels" in s]
    # Mask, source, scratch and scalar.
    assert len(line.split("ins(")[1].split(" : ")[0].split(", ")) == 4


def test_the_scratch_tile_of_a_select_of_a_scalar_is_optional_and_the_scalar_is_not() -> None:
    frame = "m = pl.tile.cmps(t, 1.0, cmp_type=4)\n    s = pl.tile.create([1, 32], pl.UINT8)\n    y = pl.tile.sels({})"
    for operands in ("m, t, s, 2.0", "m, t, scalar=2.0", "m, t, tmp=s, scalar=2.0"):
        assert_reads_back(kernel(frame.format(operands), "FP32"))
    for operands in ("m, t", "m, t, s", "m, t, tmp=s"):
        with pytest.raises(TileggError, match="'scalar' is missing") as caught:
            kernel(frame.format(operands), "FP32")
        assert caught.value.diagnostics[0].code == "TG005"
