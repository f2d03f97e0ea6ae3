"""Operations on integers that a target lacks, made of those that it has."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from tilegg.ir import dtypes
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.program import Op, Program, walk
from tilegg.rules import library
from tilegg.rules.facts import CIRCUMVENTED
from tilegg.rules.rule import RULES

_ = library
ARCHES = ("a2a3", "a5")
STEPS = {
    "tile.ands": ("ands(a, -4)", lambda x: x & -4),
    "tile.ors": ("ors(a, 3)", lambda x: x | 3),
    "tile.xors": ("xors(a, -1)", lambda x: ~x),
    "tile.rems": ("rems(a, 5)", lambda x: x % 5),
    "tile.fmods": ("fmods(a, 5)", np.fmod),
    "tile.not_": ("not_(a)", lambda x: ~x),
    "tile.abs": ("abs(a)", np.abs),
    "tile.neg": ("neg(a)", lambda x: -x),
    "tile.relu": ("relu(a)", lambda x: np.maximum(x, 0)),
    "tile.add": ("add(a, a)", lambda x: x + x),
    "tile.adds": ("adds(a, 65530)", lambda x: x + 65530),
    "tile.sub": ("sub(pl.tile.not_(a), a)", lambda x: ~x - x),
    "tile.subs": ("subs(a, 40000)", lambda x: x - 40000),
    "tile.mul": ("mul(a, a)", lambda x: x * x),
    "tile.muls": ("muls(a, 40001)", lambda x: x * 40001),
}
#: What stays refused: the target lacks the instructions for two tiles as well, or cannot fill a tile with the number.
REFUSED = {
    "a2a3": {
        *((f"tile.{n}s", d) for n in ("rem", "fmod") for d in ("INT8", "INT16", "UINT8", "UINT16", "UINT32")),
        ("tile.fmods", "INT32"), ("tile.abs", "INT8"), ("tile.neg", "INT8"), ("tile.relu", "INT8"),
    },
    "a5": {(f"tile.{n}s", d) for n in ("rem", "fmod") for d in ("INT8", "UINT8")},
}  # fmt: skip


def _kernel(step: str, dtype: str) -> str:
    return _text(f"pl.tile.{step}", dtype)


def _text(value: str, dtype: str) -> str:
    return f"""
import pypto.language as pl
@pl.program
class K:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[8, 64], pl.{dtype}], y: pl.Out[pl.Tensor[[8, 64], pl.{dtype}]]):
        a = pl.load(x, [0, 0], [8, 64])
        r = {value}
        return pl.store(r, [0, 0], y)
"""


def _number(name: str, dtype: str) -> str:
    step = STEPS[name][0]
    return step.replace("-4", "252").replace("-1", "255") if dtype.startswith("U") else step


def _expected(name: str, data: np.ndarray, dtype: str) -> np.ndarray:
    wide = data.astype(np.uint64 if dtype == "UINT32" and name == "tile.mul" else np.int64)
    made = np.fmod(wide, 5) if name == "tile.fmods" else STEPS[name][1](wide)
    if dtype.startswith("U") and name in ("tile.ands", "tile.xors"):
        made = wide & 252 if name == "tile.ands" else wide ^ 255
    return made.astype(data.dtype)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("name", "dtype"), [(n, d) for n, known in CIRCUMVENTED.items() for d in known])
def test_integers_are_taken_where_other_instructions_do_the_same(name: str, dtype: str, arch: str) -> None:
    program = tilegg.parse(_kernel(_number(name, dtype), dtype))
    if (name, dtype) in REFUSED[arch]:
        with pytest.raises(TileggError, match="TG022"):
            tilegg.lower(program, arch)
        return
    made = tilegg.lower(program, arch, contract="exact", memo=None)
    kind = dtypes.DTYPES[dtype]
    ends = [kind.min_value, kind.min_value + 1, 0, 1, 2, 5, 77, kind.max_value - 1, kind.max_value]
    data = np.resize(np.asarray([int(n) for n in ends], kind.storage), (8, 64))
    assert np.array_equal(tilegg.run(made.program, {"x": data})["y"], _expected(name, data, dtype))
    assert "pto." in tilegg.emit(made, arch)


@pytest.mark.parametrize("dtype", ["UINT16", "UINT32"])
@pytest.mark.parametrize("name", ["rems", "fmods", "divs"])
def test_quotients_by_powers_of_two_need_no_division(name: str, dtype: str) -> None:
    made = tilegg.lower(tilegg.parse(_kernel(f"{name}(a, 16)", dtype)), "a2a3", contract="exact", memo=None)
    data = np.resize(np.asarray([0, 15, 16, 17, 2**16 - 1, 2**15], dtype.lower()), (8, 64))
    expected = data // 16 if name == "divs" else data % 16
    assert np.array_equal(tilegg.run(made.program, {"x": data})["y"], expected) and "pto." in tilegg.emit(made, "a2a3")


@pytest.mark.parametrize(
    ("name", "dtype", "arch"),
    [("ands", "INT32", "a2a3"), ("ors", "INT32", "a2a3"), ("xors", "UINT32", "a2a3"), ("rems", "UINT32", "a5"),
     ("fmods", "INT16", "a5"), ("adds", "UINT16", "a2a3"), ("subs", "UINT32", "a2a3"), ("muls", "UINT32", "a2a3")],
)  # fmt: skip
def test_scalars_that_a_program_names_are_spread_over_a_tile(name: str, dtype: str, arch: str) -> None:
    text = _kernel(f"{name}(a, s)", dtype).replace("y: pl.Out", f"s: pl.Scalar[pl.{dtype}], y: pl.Out")
    program = tilegg.parse(text)
    made = tilegg.lower(program, arch, contract="exact", memo=None)
    kind = dtypes.DTYPES[dtype]
    top, low = int(kind.max_value), int(kind.min_value)
    data = np.resize(np.asarray([low, 0, 1, 7, 13, top - 1, top], kind.storage), (8, 64))
    for s in (1, 13, top):
        wanted = tilegg.run(program, {"x": data, "s": s})["y"]
        assert np.array_equal(tilegg.run(made.program, {"x": data, "s": s})["y"], wanted)
    assert "pto.texpands" in tilegg.emit(made, arch)


@pytest.mark.parametrize("scalar", ["INDEX", "INT32", "INT64", "UINT16", "INT8"])
def test_scalars_of_another_dtype_are_converted_as_the_operation_does(scalar: str) -> None:
    text = _kernel("adds(a, s)", "UINT32").replace("y: pl.Out", f"s: pl.Scalar[pl.{scalar}], y: pl.Out")
    program = tilegg.parse(text)
    made = tilegg.lower(program, "a2a3", contract="exact", memo=None)
    data = np.resize(np.asarray([0, 1, 7, 2**31, 2**32 - 1], np.uint32), (8, 64))
    for s in (0, 3, 127, *([-1, -5] if scalar != "UINT16" else [])):
        wanted = tilegg.run(program, {"x": data, "s": s})["y"]
        assert np.array_equal(tilegg.run(made.program, {"x": data, "s": s})["y"], wanted)
    assert "pto.tadd" in tilegg.emit(made, "a2a3")


def test_a_counter_is_spread_over_the_tile_that_a_loop_carries() -> None:
    loop = """a
        for i, (r,) in pl.range(3, init_values=(a,)):
            b = pl.tile.adds(r, i)
            r = pl.yield_(b)"""
    program = tilegg.parse(_text(loop, "UINT32"))
    made = tilegg.lower(program, "a2a3", contract="exact", memo=None)
    data = np.full((8, 64), 2**32 - 2, np.uint32)
    assert (tilegg.run(made.program, {"x": data})["y"] == 1).all() and "pto.tadd" in tilegg.emit(made, "a2a3")


def test_equal_numbers_are_spread_once() -> None:
    made = tilegg.lower(
        tilegg.parse(_kernel("ors(pl.tile.adds(pl.tile.ors(pl.tile.ands(a, 5), 5), 1), 5)", "INT32")), "a2a3", memo=None
    )
    names = [s.name for s in walk(made.program.functions[0].body) if isinstance(s, Op)]
    assert names.count("tile.expands") == 1


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"])
@pytest.mark.parametrize("name", ["rems", "fmods"])
def test_every_integer_is_a_multiple_of_one(name: str, dtype: str, arch: str) -> None:
    made = tilegg.lower(tilegg.parse(_kernel(f"{name}(a, 1)", dtype)), arch, contract="exact", memo=None)
    data = np.resize(np.arange(-5, 100), (8, 64)).astype(dtype.lower())
    assert not tilegg.run(made.program, {"x": data})["y"].any()


def test_bits_of_the_other_sign_are_held_by_the_tile() -> None:
    made = tilegg.lower(tilegg.parse(_kernel("ors(a, 4294967294)", "INT32")), "a2a3", memo=None)
    steps = {s.name: s for s in walk(made.program.functions[0].body) if isinstance(s, Op)}
    assert "tile.or_" in steps and steps["tile.expands"].operands[1].value == -2  # type: ignore[union-attr]


def test_targets_that_have_the_operation_keep_it() -> None:
    for name, dtype in (("tile.ands", "INT32"), ("tile.not_", "INT16"), ("tile.xors", "UINT8")):
        made = tilegg.lower(tilegg.parse(_kernel(_number(name, dtype), dtype)), "a5", memo=None)
        assert [s.name for s in walk(made.program.functions[0].body) if isinstance(s, Op)][1] == name


def test_rules_are_loaded_where_a_row_asks_for_them_only() -> None:
    asking = {r.name for r in RULES.values() if any(c.relation == "lacking" for c in r.when)}
    assert asking == {name for name in RULES if name.startswith("lacking.")}


@pytest.mark.parametrize(
    ("step", "dtype", "hint"),
    [("shls(a, 1)", "INT8", "cast to INT16 or INT32 first: every value of INT8 is one there, too; "
      'cast back with saturation_mode="off", which wraps as INT8 does'),
     ("rems(a, 5)", "INT8", "cast to INT32 first: every value of INT8 is one there, too"),
     ("sel(pl.tile.cmps(a, 1, cmp_type='lt'), a, pl.tile.ands(a, 7))", "UINT8",
      "cast to INT32 first: every value of UINT8 is one there, too"),
     ("sel(pl.tile.cmps(a, 1, cmp_type='lt'), a, pl.tile.not_(a))", "INT16",
      "cast to INT32 first: every value of INT16 is one there, too"),
     ("fmods(a, 5)", "INT16", "FP32 would hold the values, but quotients are not truncated there and sums do not wrap"),
     ("fmods(a, 5)", "INT32", "a2a3 converts INT32 to no dtype that tfmods takes and that holds every value"),
     ("shls(a, 1)", "UINT8", "cast to INT16 or INT32 first: every value of UINT8 is one there, too; "
      'cast back with saturation_mode="off", which wraps as UINT8 does'),
     ("maximums(a, 3)", "UINT16", "a2a3 converts UINT16 to no dtype that tmaxs takes and that holds every value")],
)  # fmt: skip
def test_refusals_say_whether_another_dtype_will_do(step: str, dtype: str, hint: str) -> None:
    with pytest.raises(TileggError) as caught:
        tilegg.lower(tilegg.parse(_kernel(step, dtype)), "a2a3")
    assert [d.hint for d in caught.value.diagnostics] == [hint]


def _check_advice(advised: Program, step: str, dtype: str, wraps: bool) -> None:
    """Compare what was advised with the operation itself; results that stay in the range need no word on wrapping."""
    kind = dtypes.DTYPES[dtype]
    if not kind.is_int:
        return
    data = np.arange(512, dtype=np.int64).reshape(8, 64) * max(1, kind.max_value // 200) + kind.min_value
    given = {"x": data.astype(kind.storage)}
    own = tilegg.run(tilegg.parse(_kernel(step.format("a"), dtype)), given)["y"]
    assert np.array_equal(tilegg.run(advised, given)["y"], own)
    assert wraps == step.startswith(("shls", "muls", "neg"))


@pytest.mark.parametrize("arch", ARCHES)
def test_casts_that_refusals_name_can_be_written(arch: str) -> None:
    advised = 0
    for dtype in ("INT8", "INT16", "UINT8", "UINT16", "UINT32", "BF16"):
        for step in ("shls({}, 1)", "muls({}, 3)", "neg({})", "maximums({}, 1)", "divs({}, 3)"):
            try:
                tilegg.lower(tilegg.parse(_kernel(step.format("a"), dtype)), arch)
            except TileggError as problem:
                if problem.diagnostics[0].code != "TG022":
                    continue
                advice, _, back = str(problem.diagnostics[0].hint).partition(" first:")
                for other in advice.removeprefix("cast to ").split(" or ") if advice.startswith("cast to ") else ():
                    wide = "pl.tile." + step.format(f"pl.cast(a, pl.{other})")
                    text = _text(f'pl.cast({wide}, pl.{dtype}, mode="trunc", saturation_mode="off")', dtype)
                    wraps = "saturation_mode" in back
                    try:
                        made = tilegg.lower(tilegg.parse(text), arch, contract="exact" if wraps else "faithful")
                    except TileggError as problem:  # how far results reach is not known of every operation
                        assert wraps and problem.diagnostics[0].code == "TG021"
                        continue
                    _check_advice(made.program, step, dtype, wraps)
                    advised += 1
    assert advised >= 4
