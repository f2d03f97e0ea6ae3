"""What lowering counts for operations on columns is what the assembly has."""

import re

import pytest
from tilegg import emit, lower, parse

_KERNEL = """import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, x: pl.Tensor[[32, 1], pl.{dtype}], v: pl.Tensor[[32, 1], pl.{dtype}],
          out: pl.Out[pl.Tensor[[{rows}, 1], pl.{dtype}]]):
        t = pl.load(x, [0, 0], [32, 1])
        {work}
        out = pl.store(y, [0, 0], out)
        return out
"""


def _instructions(assembly: str) -> list[str]:
    return [w for w in re.findall(r"^ *(?:%\S+ = )?pto\.(t\w+)", assembly, re.M) if w != "treshape"]


@pytest.mark.parametrize(
    "dtype, arch", [("FP32", "a2a3"), ("FP32", "a5"), ("INT32", "a2a3"), ("INT32", "a5"), ("UINT32", "a5")]
)
@pytest.mark.parametrize(
    "work, rows, unsigned",
    [
        ("y = pl.col_max(t)", 1, ["trowexpand", "tcolmax"]),
        ("y = pl.col_expand_sub(t, pl.col_max(t))", 32, ["trowexpand", "tcolmax", "trowexpandsub"]),
    ],
)
def test_reductions_of_columns(arch: str, dtype: str, work: str, rows: int, unsigned: list[str]) -> None:
    program = parse(_KERNEL.format(dtype=dtype, rows=rows, work=work), "k.py")
    lowered = lower(program, arch)
    written = _instructions(emit(lowered, arch))
    assert lowered.totals.instructions == len(written)
    signed = [w.replace("tcolmax", "trowmax") for w in unsigned[1:]]
    assert written[1:-1] == (unsigned if dtype == "UINT32" else signed)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_exponential_of_a_difference_of_columns(arch: str) -> None:
    work = "y = pl.row_expand_expdif(t, pl.load(v, [0, 0], [32, 1]))"
    lowered = lower(parse(_KERNEL.format(dtype="FP32", rows=32, work=work), "k.py"), arch)
    written = _instructions(emit(lowered, arch))
    assert written[2:-1] == ["tsub", "texp"]
    assert lowered.totals.instructions == len(written)
