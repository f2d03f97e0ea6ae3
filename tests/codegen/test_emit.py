# ruff: noqa: E501
"""Kernels written as assembly, executed on bytes and compared with the interpreter; errors; text properties."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import tilegg
from tilegg.codegen.pto import api as pto
from tilegg.ir.diagnostics import Diagnostic, TileggError

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check
from emit_kernels import A5_KERNELS, AS_WRITTEN, HEAD, KERNELS
from tilegg.testing.machine import Machine

TARGETS = ("a2a3", "a5")
CASES = [(name, target) for name in KERNELS for target in TARGETS] + [(name, "a5") for name in A5_KERNELS]
#: Further scalar arguments: the other branch, no rows at all, every row.
MORE: dict[str, list[dict[str, Any]]] = {
    "branch": [{"n": 9}],
    "branch_on_columns": [{"n": 3}, {"n": 64}],
    "dynamic_rows": [{"n": 1}, {"n": 64}],
    "zero_rounds": [{"n": 3}],
    "scalars": [{"s": -7.75, "n": 2}, {"s": 0.5, "n": 5}],
    "pad": [{"n": 64}, {"n": 1}],
    "downwards": [{"n": 16}, {"n": 3}, {"n": 5}],
}


def lowered(name: str, target: str) -> Any:
    program = tilegg.parse({**KERNELS, **A5_KERNELS}[name][0], f"{name}.py")
    return program if name in AS_WRITTEN else tilegg.lower(program, target)


def emitted(body: str, args: str = "", target: str = "a5") -> str:
    """Emit a kernel as written, without lowering it first."""
    return tilegg.emit(tilegg.parse(source(body, args), "k.py"), target, locations=False)


def source(body: str, args: str = "") -> str:
    default = "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"
    return f"{HEAD}def kernel({args or default}):\n" + "".join(f"    {line}\n" for line in body.splitlines())


@pytest.mark.parametrize(("name", "target"), CASES)
def test_assembly_does_what_the_program_means(name: str, target: str) -> None:
    _, scalars, dims = {**KERNELS, **A5_KERNELS}[name]
    program = lowered(name, target)
    text = check(program, target, scalars, dims)
    for more in MORE.get(name, []):
        check(program, target, more, dims, seed=1)
    assert tilegg.emit(program, target) == text


def test_the_machine_tells_wrong_assembly_from_right() -> None:
    text = tilegg.emit(lowered("fibonacci", "a5"), "a5", locations=False)
    import numpy as np

    def result(assembly: str) -> bytes:
        x, y, out = (np.full(16 * 64, v, np.float32).view(np.uint8).copy() for v in (1, 2, 0))
        Machine(assembly).run("kernel", {"x": x, "y": y, "out": out})
        return out.tobytes()

    moves = re.findall(r"^ *pto\.tmov.*\n", text, re.MULTILINE)
    assert moves and result(text) == np.full(16 * 64, 21, np.float32).tobytes()
    for move in moves:
        assert result(text.replace(move, "", 1)) != result(text)


def test_examples_are_written_for_both_targets() -> None:
    folder = Path(__file__).parents[2] / "examples"
    written = 0
    for path in sorted(folder.glob("*.py")):
        for target in TARGETS:
            try:
                program = tilegg.lower(tilegg.parse(path.read_text(), path.name), target)
            except TileggError as problem:
                assert problem.diagnostics[0].code == "TG020"
                continue
            try:
                text = tilegg.emit(program)
            except TileggError as problem:
                # An example of a protocol that hangs: the signal check stands before the assembly.
                assert path.stem.endswith("_hang") and problem.diagnostics[0].code == "TG051"
                continue
            pto.verify_pto(pto.parse_pto(text))
            written += 1
    assert written >= 12


# -- the text --------------------------------------------------------------------------------------------


def test_every_operation_has_its_source_place() -> None:
    text = tilegg.emit(lowered("softmax", "a5"), "a5")
    body = [line for line in text.splitlines() if " pto.t" in line]
    assert body and all(re.search(r'loc\("softmax\.py":\d+:\d+\)$', line) for line in body)
    assert "loc(" not in tilegg.emit(lowered("softmax", "a5"), "a5", locations=False)


def test_module_names_the_architecture_and_the_kernel() -> None:
    for target, arch in (("a2a3", "a3"), ("a5", "a5")):
        text = tilegg.emit(lowered("accumulate", target), target)
        assert text.startswith(f'module attributes {{pto.target_arch = "{arch}"}} {{')
        assert "attributes {pto.entry, pto.kernel_kind = #pto.kernel_kind<vector>}" in text
        assert "addr" not in text and "set_flag" not in text and "barrier" not in text


def test_saturation_is_spelled_for_integers_only() -> None:
    text = tilegg.emit(lowered("quant_int8", "a2a3"), "a2a3", locations=False)
    for line in text.splitlines():
        if "pto.tcvt" in line:
            to_int = re.search(r"outs\(.*xu?i\d", line) is not None
            assert ("satmode = #pto<saturation_mode ON>" in line) == to_int
            assert "rmode = #pto<round_mode " in line
    off = tilegg.emit(tilegg.parse(KERNELS["saturation_off"][0]), "a2a3", locations=False)
    assert off.count("satmode = #pto<saturation_mode OFF>") == 2
    # Both bring their scratch tile; the one of unknown rows converts the whole tile.
    assert len(re.findall(r"pto\.tcvt ins\(%\w+, %\w+ \{", off)) == 2


def test_asked_saturation_of_floats_is_kept() -> None:
    args = "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP16]]"
    body = """t = pl.tile.load(x, [0, 0], [16, 64])
h = pl.tile.cast(t, target_type=pl.FP16, mode="rint", saturation_mode="on")
return pl.tile.store(h, [0, 0], out)"""
    assert "satmode = #pto<saturation_mode ON>" in emitted(body, args)


def test_scratch_tiles_are_always_given() -> None:
    for target in TARGETS:
        text = tilegg.emit(lowered("select_small", target), target, locations=False)
        assert re.search(r"pto\.tsel ins\(%\w+, %\w+, %\w+, %\w+ :", text)
        sums = tilegg.emit(lowered("rmsnorm", target), target, locations=False)
        assert re.search(r"pto\.trowsum ins\(%\w+, %\w+ :", sums)


def test_a_given_scratch_tile_is_kept() -> None:
    text = emitted("""t = pl.tile.load(x, [0, 0], [16, 64])
tmp = pl.tile.create([16, 64], pl.FP32)
m = pl.tile.row_max(t, tmp)
return pl.tile.store(pl.tile.row_expand_sub(t, m), [0, 0], out)""")
    assert "pto.trowmax ins(%t, %tmp :" in text


def test_masks_have_the_physical_shape_of_their_sources() -> None:
    text = tilegg.emit(lowered("select_small", "a5"), "a5", locations=False)
    # Eight columns of FP32 are padded to the 32 that a row of bytes needs.
    assert "!pto.tile_buf<vec, 8x32xf32, valid=8x8>" in text
    assert "!pto.tile_buf<vec, 8x32xui8, valid=8x1>" in text


def test_columns_are_lines_under_two_names() -> None:
    text = tilegg.emit(lowered("cast_columns", "a5"), "a5", locations=False)
    # Thirty-two elements, because a row of bytes is as long.
    assert "!pto.tile_buf<vec, 32x1xf32, valid=16x1, blayout=col_major>" in text
    assert "!pto.tile_buf<vec, 1x32xbf16, valid=1x16>" in text
    assert text.count("{layout = #pto.layout<dn>}") == 3


def test_loop_results_are_produced_in_place() -> None:
    text = tilegg.emit(lowered("accumulate", "a5"), "a5", locations=False)
    assert "pto.tmov" not in text and text.count("16x64xf32>\n") >= 2
    nested = tilegg.emit(lowered("accumulate_nested", "a5"), "a5", locations=False)
    assert "pto.tmov" not in nested


def test_views_of_parameters_stand_outside_loops() -> None:
    text = tilegg.emit(lowered("softmax", "a5"), "a5", locations=False)
    assert text.index("%x_view = ") < text.index("scf.for") and text.index("%out_view = ") < text.index("scf.for")


def test_sizes_that_are_no_parameters_become_index_arguments() -> None:
    text = tilegg.emit(lowered("dynamic_shape", "a5"), "a5", locations=False)
    assert "func.func @kernel(%x: !pto.ptr<f32>, %j: i32, %out: !pto.ptr<bf16>, %M: index, %N: index)" in text


def test_names_the_assembly_cannot_spell_do_no_harm() -> None:
    text = emitted("""größe = pl.tile.load(x, [0, 0], [16, 64])
return pl.tile.store(größe, [0, 0], out)""")
    assert "größe" not in text
    pto.verify_pto(pto.parse_pto(text))


# -- functions that are no kernels -----------------------------------------------------------------------

_PROGRAM = """import pypto.language as pl


@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def part(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        return pl.tile.store(pl.tile.load(x, [0, 0], [16, 64]), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        return self.part(x, out)
"""


def test_orchestration_is_left_out_with_a_remark() -> None:
    remarks: list[Diagnostic] = []
    text = tilegg.emit(tilegg.parse(_PROGRAM, "p.py"), "a5", remarks=remarks)
    assert "@part" in text and "@main" not in text
    assert [(r.severity, r.code) for r in remarks] == [("remark", "TG023")] and "main" in remarks[0].message


def test_a_program_without_kernels_is_an_error() -> None:
    only = _PROGRAM[: _PROGRAM.index("    @pl.function(type=pl.FunctionType.InCore)")] + """    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 64], pl.FP32]):
        return x
"""
    with pytest.raises(TileggError, match="no in-core function"):
        tilegg.emit(tilegg.parse(only, "p.py"), "a5")


# -- what cannot be written ------------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, str, str, int]] = {
    "break": ("for i in pl.range(4):\n    if i > 2:\n        break\n    out = pl.tile.store(pl.tile.load(x, [0, 0], [16, 64]), [0, 0], out)\nreturn out",
              "", "break cannot be written", 8),
    "continue": ("for i in pl.range(4):\n    if i > 2:\n        continue\n    out = pl.tile.store(pl.tile.load(x, [0, 0], [16, 64]), [0, 0], out)\nreturn out",
                 "", "continue cannot be written", 8),
    "unknown operation": ("t = pl.tile.frobnicate(pl.tile.load(x, [0, 0], [16, 64]), 3)\nreturn pl.tile.store(t, [0, 0], out)",
                          "", "frobnicate cannot be written", 6),
    "misaligned slice": ("t = pl.tile.load(x, [0, 0], [16, 64])\nreturn pl.tile.store(pl.tile.slice(t, [16, 16], [0, 4]), [0, 0], out)",
                         "", "does not begin at a 32-byte block", 7),
    "column of a matrix": ("t = pl.tile.load(x, [0, 0], [16, 1])\nreturn pl.tile.store(t, [0, 0], out)",
                           "", "not contiguous in global memory", 6),
    "moving reshape": ("t = pl.tile.load(x, [0, 0], [8, 24])\nb = pl.tile.cast(pl.tile.reshape(t, [16, 12]), target_type=pl.FP16)\nreturn out",
                       "", "would move elements", 7),
    "local tensor": ("t = pl.tensor.create([16, 64], pl.FP32)\nreturn pl.tile.store(pl.tile.load(x, [0, 0], [16, 64]), [0, 0], t)",
                     "", "tensor.create cannot be written", 6),
    "returned tile": ("return pl.tile.load(x, [0, 0], [16, 64])", "", "cannot return", 6),
    "int4": ("t = pl.tile.load(x, [0, 0], [16, 64])\nreturn out",
             "x: pl.Tensor[[16, 64], pl.INT4], out: pl.Out[pl.Tensor[[16, 64], pl.INT8]]", "no INT4", 6),
    "rows of indices": ("return pl.tile.store(pl.tile.ci(0, [4, 64]), [0, 0], out)",
                        "out: pl.Out[pl.Tensor[[4, 64], pl.INT32]]", "one row only", 6),
    "unlowered cast": ("t = pl.tile.load(x, [0, 0], [16, 64])\nreturn pl.tile.store(pl.tile.cast(t, target_type=pl.FP4), [0, 0], out)",
                       "x: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP4]]", "pto.tcvt", 7),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_written_is_refused_with_place_and_reason(name: str) -> None:
    body, args, message, line = REFUSED[name]
    with pytest.raises(TileggError) as caught:
        emitted(body, args)
    found = caught.value.diagnostics[0]
    assert found.code == "TG023" and message in found.message
    assert found.span is not None and found.span.line == line


def test_a_target_is_needed() -> None:
    with pytest.raises(TileggError, match="TG040"):
        tilegg.emit(tilegg.parse(KERNELS["swap"][0], "k.py"))
    assert 'target_arch = "a5"' in tilegg.emit(lowered("swap", "a5"))


def test_deep_nesting_is_a_diagnostic() -> None:
    depth = 60
    lines = [f"{'    ' * i}for i{i} in pl.range(2):" for i in range(depth)]
    lines.append("    " * depth + "out = pl.tile.store(pl.tile.load(x, [0, 0], [16, 64]), [0, 0], out)")
    text = emitted("\n".join([*lines, "return out"]))
    assert text.count("scf.for") == depth


def test_a_target_given_as_a_file_is_written_for_its_assembler(tmp_path: Path) -> None:
    path = tmp_path / "variant.toml"
    path.write_text('[target]\nname = "variant"\ntitle = "a variant"\nextends = "a5"\n')
    source = (Path(__file__).parents[2] / "examples" / "softmax.py").read_text()
    text = tilegg.emit(tilegg.lower(tilegg.parse(source), str(path)))
    assert text.startswith('module attributes {pto.target_arch = "a5"}')
