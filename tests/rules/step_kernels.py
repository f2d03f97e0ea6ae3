"""Kernels of a few steps that rules are tried on."""

from __future__ import annotations


def kernel(*steps: str, dtype: str = "FP32") -> str:
    """A kernel of steps on tiles ``a`` and ``b`` whose last one is ``r``."""
    body = "\n".join(f"    {s}" for s in steps)
    tensor = f"pl.Tensor[[4, 64], pl.{dtype}]"
    return f"""
import pypto.language as pl
@pl.function(type=pl.FunctionType.InCore)
def k(x: {tensor}, y: {tensor}, out: pl.Out[{tensor}]):
    a = pl.tile.load(x, [0, 0], [4, 64])
    b = pl.tile.load(y, [0, 0], [4, 64])
{body}
    return pl.tile.store(r, [0, 0], out)
"""
