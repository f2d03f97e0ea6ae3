"""Which results are other names of their operand's storage: in the interpreter as in assembly, views and no others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tilegg
from tilegg.ir.interp import execute
from tilegg.ir.program import Op, Program, Value
from tilegg.ir.tilearray import TileArray
from tilegg.ir.types import TensorType
from tilegg.rewrite.random_programs import Kind, random_program
from tilegg.rules.target import load_target

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check, values_for
from emit_samples import cast_programs, operation_programs

#: Operations whose result is their operand's storage; a store's is the tensor.
SHARING = {"tile.reshape", "tile.reinterpret_view", "tile.assume", "tile.fillpad_inplace", "tile.store"}


def arrays(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, tuple):
        for item in value:
            yield from arrays(item)
    elif isinstance(value, TileArray | np.ndarray):
        yield value.data if isinstance(value, TileArray) else value


def sharing(programs: list[Program]) -> tuple[set[str], set[str]]:
    """Run programs; return the tile operations they have, and those whose results share an operand's memory."""
    seen, found = set(), set()

    def probe(op: Op, value: Any) -> None:
        if op.name.startswith("tile."):
            seen.add(op.name)
            results = [a for r in op.results for a in arrays(value(r))]
            given = [a for o in op.operands if isinstance(o, Value) for a in arrays(value(o))]
            if any(np.shares_memory(a, b) for a in results for b in given):
                found.add(op.name)

    rng = np.random.default_rng(0)
    for program in programs:
        f = program.functions[0]
        inputs = {
            p.value.name: values_for(t.dtype, t.shape, rng) if isinstance(t := p.value.type, TensorType) else 1
            for p in f.params if p.direction != "Out"
        }  # fmt: skip
        execute(program, f, inputs, {}, probe=probe)
    return seen, found


@pytest.mark.parametrize("target", ["a2a3", "a5"])
def test_only_views_share_storage_in_the_interpreter(target: str) -> None:
    programs = [p for _, p in [*operation_programs(target), *cast_programs(target)]]
    for seed, shape in enumerate([(1, 16), (4, 1), (1, 1), (2, 8)] * 10):
        programs.append(random_program(seed, Kind(load_target(target), shape=shape)))
    seen, found = sharing(programs)
    assert len(seen) > 80
    assert found <= SHARING and {"tile.reshape", "tile.reinterpret_view", "tile.fillpad_inplace"} <= found


HEAD = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[{rows}, 64], pl.FP32], y: pl.Out[pl.Tensor[[{rows}, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [{rows}, 64])
"""
CASES = {
    "a window that is not read again": (16, "v = pl.slice(t, [8, 64], [0, 0])", "a = pl.abs(v)",
                                        "for i in pl.range(3):", "    pl.tile.write(t, [0, i], 5.0)",
                                        "u = pl.add(t, pl.tile.concat(pl.reshape(a, [16, 32]), "
                                        "pl.reshape(a, [16, 32])))"),
    "a window that is made and written in a loop": (16, "a = pl.abs(t)", "for i in pl.range(3):",
                                                    "    v = pl.slice(t, [8, 64], [8, 0])",
                                                    "    pl.tile.write(v, [0, i], 5.0)",
                                                    "    a = pl.add(a, pl.reshape(pl.tile.concat(v, v), [16, 64]))",
                                                    "u = pl.add(a, t)"),
    "filled and written in a loop": (16, "v = pl.tile.fillpad_inplace(pl.tile.set_validshape(t, 4, 16), "
                                     "pad_value=pl.PadValue.zero)", "for i in pl.range(3):",
                                     "    pl.tile.write(v, [0, i], 5.0)", "u = pl.add(t, v)"),
    "a window is copied and its tile written in a loop": (
        16, "v = pl.tile.move(pl.slice(t, [8, 64], [0, 0]), target_memory=pl.Mem.Vec)", "a = pl.abs(v)",
        "for i in pl.range(3):", "    pl.tile.write(t, [0, i], 5.0)", "    a = pl.add(a, v)",
        "u = pl.add(t, pl.reshape(pl.tile.concat(a, a), [16, 64]))"),
    "windows before and after a write": (16, "v = pl.reshape(t, [32, 32])", "a = pl.abs(pl.slice(v, [16, 32], [0, 0]))",
                                         "pl.tile.write(v, [0, 0], 5.0)", "b = pl.slice(v, [16, 32], [0, 0])",
                                         "w = pl.add(pl.mul(b, 2.0), a)", "u = pl.tile.concat(w, pl.neg(w))"),
    "a window that is written itself": (16, "v = pl.slice(t, [16, 32], [0, 32])", "a = pl.abs(v)",
                                        "pl.tile.write(v, [0, 0], 5.0)", "w = pl.add(pl.exp(v), a)",
                                        "u = pl.add(pl.tile.concat(w, pl.neg(w)), t)"),
    "a write seen through a window of another shape": (
        16, "v = pl.reshape(t, [32, 32])", "a = pl.abs(pl.slice(v, [16, 32], [0, 0]))", "pl.tile.write(t, [0, 0], 5.0)",
        "w = pl.add(pl.slice(v, [16, 32], [0, 0]), a)", "u = pl.tile.concat(w, pl.neg(w))"),
    "windows in a loop that writes": (16, "v = pl.reshape(t, [32, 32])", "a = pl.abs(pl.slice(v, [16, 32], [0, 0]))",
                                      "for i in pl.range(3):", "    pl.tile.write(v, [0, i], 5.0)",
                                      "    a = pl.add(a, pl.slice(v, [16, 32], [0, 0]))",
                                      "u = pl.tile.concat(a, pl.neg(a))"),
    "windows in a loop before it writes": (16, "v = pl.reshape(t, [32, 32])",
                                           "a = pl.abs(pl.slice(v, [16, 32], [0, 0]))",
                                           "for i in pl.range(3):", "    a = pl.add(a, pl.slice(v, [16, 32], [0, 0]))",
                                           "    pl.tile.write(v, [0, i], 5.0)", "u = pl.tile.concat(a, pl.neg(a))"),
    "bits of a tile are the tile": (16, "v = pl.reinterpret_view(t, dtype=pl.INT32)",
                                    "pl.tile.write(v, [0, 1], 1065353216)",
                                    "u = pl.add(t, pl.mul(pl.reinterpret_view(v, dtype=pl.FP32), 0.25))"),
    "a row that becomes a column is another tile": (1, "v = pl.transpose(t, axis1=0, axis2=1)",
                                                    "pl.tile.write(v, [3, 0], 5.0)", "pl.tile.write(t, [0, 1], 7.0)",
                                                    "u = pl.add(pl.transpose(v, axis1=0, axis2=1), t)"),
    "a column that becomes a row is another tile": (16, "m = pl.row_max(t)", "v = pl.transpose(m, axis1=0, axis2=1)",
                                                    "pl.tile.write(v, [0, 3], 50.0)", "pl.tile.write(m, [1, 0], 7.0)",
                                                    "u = pl.row_expand_mul(pl.row_expand_add(t, m), "
                                                    "pl.transpose(v, axis1=0, axis2=1))"),
}  # fmt: skip


#: What assembly cannot do, and what it is refused for.
REFUSED = {
    "'head' shares its storage": ("head = pl.slice(t, [8, 64], [0, 0])", "a = pl.abs(head)", "for i in pl.range(3):",
                                  "    pl.tile.write(t, [0, i], 5.0)", "    a = pl.add(a, head)",
                                  "u = pl.add(t, pl.reshape(pl.tile.concat(a, a), [16, 64]))"),
    "'v' is read again behind the fill": ("v = pl.tile.set_validshape(t, 8, 32)",
                                          "p = pl.tile.fillpad_inplace(v, pad_value=pl.PadValue.zero)",
                                          "pl.tile.write(p, [0, 0], 5.0)",
                                          "u = pl.add(pl.tile.fillpad(v, pad_value=pl.PadValue.zero), p)"),
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED)
def test_what_would_show_under_another_name_is_refused(words: str) -> None:
    body = "".join(f"        {line}\n" for line in (*REFUSED[words], "return pl.store(u, [0, 0], y)"))
    lowered = tilegg.lower(tilegg.parse(HEAD.format(rows=16) + body), "a5", memo=None)
    with pytest.raises(tilegg.TileggError, match=words):
        tilegg.emit(lowered)


@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("case", CASES)
def test_assembly_shares_the_same(case: str, target: str) -> None:
    rows, *lines = CASES[case]
    body = "".join(f"        {line}\n" for line in (*lines, "return pl.store(u, [0, 0], y)"))
    program = tilegg.parse(HEAD.format(rows=rows) + body)
    lowered = tilegg.lower(program, target, memo=None)
    assert tilegg.equivalent(program, lowered.program).equal
    check(lowered, target)
