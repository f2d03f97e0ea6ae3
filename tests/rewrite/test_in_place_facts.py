"""Facts about a tile end where something changes it in place, under whatever name."""

from __future__ import annotations

import numpy as np
import pytest
from tilegg import parse, run, trajectory
from tilegg.extract.memo import region_key
from tilegg.ir import valueset as vs
from tilegg.ir.program import Function, Program, Value, defined, walk
from tilegg.rewrite.knowledge import Knowledge
from tilegg.rewrite.region import names_in_types, regions
from tilegg.rewrite.storage import changed
from tilegg.testing import assert_lowering_correct

_PROGRAM = """
import pypto.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.{source}], n: pl.Scalar[pl.INT32],
          out: pl.Out[pl.Tensor[[16, 64], pl.{result}]]):
        t = pl.load(x, [0, 0], [16, 64])
{body}
        return pl.store(r, [0, 0], out)
"""

_CLAMP = "{} = pl.minimum(pl.maximum(t, -127.0), 127.0)\n"
_WRITE = "pl.tile.write({}, [0, 0], 1000.0)\n"
#: Without facts about c this takes the written road: 1000 wraps around instead of being clamped.
_NARROW = """
i = pl.cast(c, target_type=pl.INT32, mode="rint")
h = pl.cast(i, target_type=pl.FP16, mode="rint")
r = pl.cast(h, target_type=pl.INT8, mode="rint", saturation_mode="off")
"""


def _program(body: str, source: str = "FP32", result: str = "INT8") -> Program:
    lines = "\n".join(f"        {line}" for line in body.strip().splitlines())
    return parse(_PROGRAM.format(body=lines, source=source, result=result))


def _clamped(change: str, name: str = "c") -> str:
    """Return a program body that clamps t as ``name``, changes something, and narrows c."""
    return _CLAMP.format(name) + change + _NARROW


def _scaled(magnitude: str = "", scale: str = "", product: str = "") -> str:
    """Return the amax epilogue with a change behind the largest magnitude, the scale, or the product."""
    return (
        f"m = pl.maximum(pl.row_max(pl.abs(t)), 0.0001)\n{magnitude}s = pl.mul(pl.recip(m), 127.0)\n{scale}"
        f"c = pl.row_expand_mul(t, s)\n{product}{_NARROW}"
    )


_LOOP = "for k0, (a,) in pl.range(2, init_values=({0},)):\n    {1}    {2} = pl.yield_({3})\n"
_CHANGED: dict[str, tuple[str, ...]] = {
    "itself": (_clamped(_WRITE.format("c")),),
    "sine of a short range": (
        "c = pl.minimum(pl.maximum(t, -0.7), 0.7)\n" + _WRITE.format("c") + "r = pl.sin(c)", "FP32", "FP32"),
    "quotient of what was not negative": (
        "c = pl.minimum(pl.maximum(t, 0), 127)\npl.tile.write(c, [0, 0], -7)\nr = pl.tile.divs(c, 4)",
        "INT32", "INT32"),
    "negative zero": ("c = pl.exp(t)\npl.tile.write(c, [0, 0], -0.0)\nr = pl.add(c, 0.0)", "FP32", "FP32"),
    "amax: the tile": (_scaled(scale=_WRITE.format("t")),),
    "amax: the magnitude": (_scaled("pl.tile.write(m, [0, 0], 0.0000001)\n"),),
    "amax: the scale": (_scaled(scale=_WRITE.format("s")),),
    "amax: the product": (_scaled(product=_WRITE.format("c")),),
    "a promise by its name": ("c = pl.assume(t, -127.0, 127.0)\n" + _WRITE.format("c") + _NARROW,),
    "a promise by its tile's name": ("c = pl.assume(t, -127.0, 127.0)\n" + _WRITE.format("t") + _NARROW,),
    "through a view": (_clamped("v = pl.reshape(c, [1, 1024])\n" + _WRITE.format("v")),),
    "what a view is of": (_clamped("c = pl.reshape(v, [16, 64])\n" + _WRITE.format("v"), "v"),),
    "in a loop": (_clamped("for k0 in pl.range(2):\n    " + _WRITE.format("c")),),
    "later in a loop": (
        "z = pl.cast(t, target_type=pl.INT8)\n" + _CLAMP.format("c")
        + _LOOP.format("z", _NARROW.strip().replace("\nr", "\nq").replace("\n", "\n    ") + "\n    "
                       + _WRITE.format("c"), "r", "q"),),
    "in a branch": (_clamped("if n > 0:\n    " + _WRITE.format("c")),),
    "carried by a loop": (
        _clamped(_LOOP.format("d", _WRITE.format("a"), "e", "a") + "c = pl.add(d, 0.0)", "d"),),
    "given by a loop": (
        _clamped(_LOOP.format("d", "g = pl.exp(a)\n", "e", "a") + _WRITE.format("e") + "c = pl.add(d, 0.0)", "d"),),
    "a side of a branch": (
        _clamped("if n > 0:\n    c = pl.yield_(d)\nelse:\n    c = pl.yield_(pl.minimum(pl.maximum(t, -9.0), 9.0))\n"
                 + _WRITE.format("d"), "d"),),
}  # fmt: skip


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
@pytest.mark.parametrize("contract", ["exact", "faithful"])
@pytest.mark.parametrize("what", _CHANGED)
def test_lowering_a_program_that_changes_a_tile_keeps_its_meaning(what: str, contract: str, arch: str) -> None:
    assert_lowering_correct(_program(*_CHANGED[what]), arch, contract=contract, inputs=6, assembly=False)


@pytest.mark.parametrize("arch", ["a2a3", "a5"])
def test_the_result_of_a_write_has_no_facts_of_what_was_written(arch: str) -> None:
    body = _CLAMP.format("c") + "u = pl.tile.write(c, [0, 0], 1000.0)\n" + _NARROW.replace("(c,", "(u,")
    assert_lowering_correct(_program(body), arch, inputs=6, assembly=False)


def _function(body: str) -> Function:
    return _program(body).functions[0]


def _value(f: Function, name: str) -> Value:
    return next(v for s in walk(f.body) for v in defined(s) if v.name == name)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("v = pl.slice(c, [8, 64], [0, 0])\n" + _WRITE.format("v"), "c"),
        ("c = pl.slice(v, [16, 64], [0, 0])\n" + _WRITE.format("v"), "v"),
        ("v = pl.tile.set_validshape(c, 8, 64)\n" + _WRITE.format("v"), "c"),
        ("pl.tile.mystery(c, 1000.0)\n", "c"),
        ("pl.tile.mystery(into=[c])\n", "c"),
        ("pl.tile.mystery(pl.reshape(c, [1, 1024]))\n", "c"),
        ("for k0, (a,) in pl.range(2, init_values=(t,)):\n    if n > 0:\n        b = pl.yield_(c)\n        break\n"
         "    b = pl.yield_(a)\n" + _WRITE.format("b"), "c"),
    ],
)  # fmt: skip
def test_a_change_that_may_reach_a_tile_leaves_the_range_of_its_dtype(change: str, name: str) -> None:
    f = _function(_clamped(change, name))
    c = _value(f, "c")
    assert Knowledge(f).of(c) == vs.of_dtype(c.type.dtype)  # type: ignore[union-attr]


def test_what_an_unknown_operation_gives_may_stand_for_what_it_was_given() -> None:
    given = "u: pl.Tile[[16, 64], pl.FP32] = pl.tile.mystery(t)\nv = pl.assume(u, 0.0, 1.0)\n"
    f = _function(_clamped(given + _WRITE.format("t")))
    assert changed(f) == {"t", "u", "v"}


def test_tiles_that_nothing_changes_keep_their_facts() -> None:
    f = _function(_CLAMP.format("d") + _clamped(_WRITE.format("d")))
    assert changed(f) == {"d"}
    assert Knowledge(f).of(_value(f, "c")).hi == 127
    assert not changed(_function(_clamped("v = pl.reshape(c, [1, 1024])\n")))


def test_a_solution_found_with_facts_is_not_taken_without_them() -> None:
    written, kept = (_function(_clamped("") + change) for change in (_WRITE.format("c"), ""))
    keys = []
    for f in (written, kept):
        (region,) = regions(f.body, names_in_types(f))
        keys.append(region_key(region, Knowledge(f), ())[0][-1])
    assert keys[0] != keys[1]


def test_two_programs_that_differ_behind_a_change_are_not_joined_by_a_fact() -> None:
    wrapping = _clamped(_WRITE.format("c"))
    saturating = wrapping.replace(', saturation_mode="off"', "")
    found = trajectory(_program(wrapping), _program(saturating), "a5", samples=0)
    assert any("not equal in the e-graph" in text for text in found.missing)


@pytest.mark.parametrize("reduce", ["col_max", "col_sum", "col_prod"])
def test_the_reduction_of_a_single_row_is_a_tile_of_its_own(reduce: str) -> None:
    body = f"w = pl.slice(t, [1, 64], [0, 0])\nm = pl.{reduce}(w)\n{_WRITE.format('m')}r = pl.col_expand_add(t, w)"
    reduced = _program(body, "FP32", "FP32")
    ones = np.ones((16, 64), np.float32)
    assert (run(reduced, {"x": ones, "n": 0})["out"] == 2).all()
