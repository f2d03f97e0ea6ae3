"""Lowered composites as assembly, executed on the bytes of a machine and compared with the interpreter."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import tilegg

sys.path.insert(0, str(Path(__file__).parent))
from emit_check import check

TARGETS = ("a5", "a2a3")


def kernel(*lines: str, shape: tuple[int, int] = (16, 64), valid: str = "", dtype: str = "FP32", args: str = "") -> str:
    body = "".join(f"    {line}\n" for line in lines)
    load = f"pl.tile.load(x, [0, 0], {list(shape)}{', ' + valid if valid else ''})"
    return (
        "@pl.function(type=pl.FunctionType.InCore)\n"
        f"def k(x: pl.Tensor[{list(shape)}, pl.{dtype}], out: pl.Out[pl.Tensor[{list(shape)}, pl.{dtype}]]{args}):\n"
        f"    t = {load}\n{body}    return pl.tile.store(y, [0, 0], out)\n"
    )


BODIES = {
    "sin": ["y = pl.tile.sin(t)"],
    "cos": ["y = pl.tile.cos(t)"],
    "both": ["a = pl.tile.sin(t)", "b = pl.tile.cos(t)", "y = pl.tile.mul(a, b)"],
    "the argument is read again": ["a = pl.tile.sin(t)", "y = pl.tile.add(a, t)"],
    "inverted mask": ["m = pl.tile.cmps(t, 0.5, cmp_type=4)", "y = pl.tile.select(m, 0.25, t)"],
    "inverted comparison": ["m = pl.tile.cmps(t, 0.5, cmp_type=0)", "y = pl.tile.select(m, 0.25, t)"],
    "two tiles": ["m = pl.tile.cmps(t, 0.5, cmp_type=4)", "v = pl.tile.neg(t)", "y = pl.tile.select(m, t, v)"],
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("body", BODIES)
def test_assembly_computes_what_was_lowered(body: str, target: str) -> None:
    lowered = tilegg.lower(tilegg.parse(kernel(*BODIES[body])), target)
    check(lowered, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "valid"), [((16, 64), "[9, 41]"), ((5, 8), ""), ((8, 256), "[3, 200]"), ((16, 16), "")]
)
def test_inverted_masks_of_all_widths(shape: tuple[int, int], valid: str, target: str) -> None:
    lowered = tilegg.lower(tilegg.parse(kernel(*BODIES["inverted mask"], shape=shape, valid=valid)), target)
    text = check(lowered, target)
    # On the smallest masks of A5 spreading the scalar is cheaper.
    halfwords = re.search(r"pto\.tnot ins\(%\w+ : !pto\.tile_buf<vec, \d+x\d+xui16", text)
    assert halfwords or ("pto.texpands" in text and (shape, target) == ((16, 16), "a5"))


@pytest.mark.parametrize("target", TARGETS)
def test_inverted_masks_of_unknown_width(target: str) -> None:
    lines = kernel(*BODIES["inverted mask"], valid="[n, 40]", args=", n: pl.Scalar[pl.INDEX]")
    lowered = tilegg.lower(tilegg.parse(lines), target)
    assert "pto.tnot" in check(lowered, target, scalars={"n": 7})


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("how", range(6))
def test_integer_order(how: int, target: str) -> None:
    lines = [f"m = pl.tile.cmps(t, 3, cmp_type={how})", "y = pl.tile.select(m, t, 0)"]
    check(tilegg.lower(tilegg.parse(kernel(*lines, dtype="INT32")), target), target)
