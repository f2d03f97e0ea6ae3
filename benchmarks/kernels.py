"""Random kernels in the op mix of real tile programs, as IR text: FP32 arithmetic, one operation in five a cast."""

from __future__ import annotations

import random

from tilegg import parse
from tilegg.ir.program import Program

_BINARY = ("add", "mul", "sub", "maximum", "minimum", "div")
_SCALAR = ("muls", "adds", "maximums", "minimums")
_UNARY = ("exp", "abs", "sqrt", "neg")


def kernel_text(ops: int, seed: int) -> str:
    """Return a straight-line kernel of ``ops`` operations on [16, 64] tiles, legal on both targets."""
    rng = random.Random(seed)
    lines = [
        "import pypto.language as pl",
        "",
        "@pl.function(type=pl.FunctionType.InCore)",
        "def kernel(x: pl.Tensor[[16, 64], pl.FP32], y: pl.Tensor[[16, 64], pl.BF16],",
        "           z: pl.Tensor[[16, 64], pl.INT32], out: pl.Out[pl.Tensor[[16, 64], pl.BF16]],",
        "           low: pl.Out[pl.Tensor[[16, 64], pl.INT8]]):",
        "    scratch = pl.tile.create([16, 64], pl.FP32)",
    ]
    tiles = {"FP32": ["x0"], "BF16": ["y0"], "INT32": ["z0"], "FP16": [], "INT8": []}
    lines += [f"    {n}0 = pl.tile.load({n}, [0, 0], [16, 64])" for n in "xyz"]
    for i in range(ops):
        lines.append("    " + _step(rng, i, tiles))
    wide = tiles["FP32"][-1]
    lines += [
        f"    last = pl.tile.cast({wide}, target_type=pl.BF16, mode='rint')",
        f"    q = pl.tile.cast({wide}, target_type=pl.INT8, mode='rint')",
        "    a = pl.tile.store(last, [0, 0], out)",
        "    b = pl.tile.store(q, [0, 0], low)",
        "    return a, b",
    ]
    return "\n".join(lines) + "\n"


#: The pairs that make 99 % of the casts in real programs, and a few more.
_CASTS = (
    ("FP32", "BF16"), ("BF16", "FP32"), ("INT32", "FP32"), ("FP32", "INT32"), ("FP16", "INT8"), ("INT32", "FP16"),
    ("INT8", "FP16"), ("FP16", "FP32"), ("INT32", "BF16"), ("FP32", "INT8"),
)  # fmt: skip


def _step(rng: random.Random, i: int, tiles: dict[str, list[str]]) -> str:
    recent = tiles["FP32"][-6:]
    draw = rng.random()
    if draw < 0.22:
        src, dst = rng.choice([pair for pair in _CASTS if tiles[pair[0]]])
        mode = rng.choice(("rint", "round", "trunc"))
        made, text = dst, f"cast({rng.choice(tiles[src][-4:])}, target_type=pl.{dst}, mode='{mode}')"
    elif draw < 0.55:
        made, text = "FP32", f"{rng.choice(_BINARY)}({rng.choice(recent)}, {rng.choice(recent)})"
    elif draw < 0.85:
        made, text = "FP32", f"{rng.choice(_SCALAR)}({rng.choice(recent)}, {rng.choice((0.5, 1.5, 3.0, 127.0))})"
    elif draw < 0.95:
        made, text = "FP32", f"{rng.choice(_UNARY)}({rng.choice(recent)})"
    else:
        tile = rng.choice(recent)
        made, text = "FP32", f"row_expand_sub({tile}, pl.tile.row_max({tile}, scratch))"
    tiles[made].append(f"t{i}")
    return f"t{i} = pl.tile.{text}"


def kernel(ops: int, seed: int) -> Program:
    """Return the parsed kernel."""
    return parse(kernel_text(ops, seed), f"kernel{seed}.py")
