"""The strategies: what they draw is valid and hostile, what is not asked for is not there, what fails shrinks."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import tilegg
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from testing_kernels import cast, kernel
from tilegg import TileggError
from tilegg.ir.codes import bits_of, decode, is_nan
from tilegg.ir.dtypes import BF16, DTYPES, FP16, FP32, INT8, INT32, DType
from tilegg.ir.op import OPS
from tilegg.ir.program import For, Op, Program, While, walk
from tilegg.ir.types import TileType
from tilegg.ir.verify import verify
from tilegg.rewrite.random_calls import vocabulary
from tilegg.rewrite.random_programs import Kind
from tilegg.rules.target import load_target
from tilegg.testing import (
    assert_equivalent,
    assert_lowering_correct,
    dtypes,
    elements,
    facts,
    inputs,
    programs,
    round_modes,
    tiles,
)
from tilegg.testing.strategy_programs import _Drawn, _is_written, _Upwards, _Wanted, chosen_ops

SETTINGS = settings(max_examples=30, deadline=None, database=None, derandomize=True,
                    suppress_health_check=list(HealthCheck))  # fmt: skip
SEARCH = settings(SETTINGS, max_examples=3000)


def ops(p: Program) -> Iterator[Op]:
    yield from (s for s in walk(p.functions[0].body) if isinstance(s, Op))


def work(p: Program) -> list[str]:
    frame = ("tile.load", "tile.store", "tile.create", "tile.assume")
    return [s.name.removeprefix("tile.") for s in ops(p) if s.name not in frame]


def tile_dtypes(p: Program) -> set[DType]:
    return {r.type.dtype for s in ops(p) for r in s.results if isinstance(r.type, TileType) and "cmp" not in s.name}


class TestPrograms:
    @settings(SETTINGS, max_examples=60, phases=[Phase.generate])
    @given(st.data(), st.sampled_from(["a5", "a2a3", None]), st.booleans())
    def test_they_verify_run_and_read_back(self, data: st.DataObject, target: str | None, flow: bool) -> None:
        p = data.draw(programs(target=target, flow=flow, composites=flow))
        assert verify(p) == []
        assert tilegg.parse(tilegg.print_program(p)) == p
        tilegg.run(p, data.draw(inputs(p)))

    @pytest.mark.parametrize("target", ["a5", "a2a3"])
    def test_their_lowerings_are_right(self, target: str) -> None:
        # Should one be wrong, its text is enough: making it small takes minutes.
        @settings(SETTINGS, max_examples=20, phases=[Phase.generate])
        @given(programs(target=target, flow=True, composites=True))
        def check(p: Program) -> None:
            assert_lowering_correct(p, target, inputs=3, assembly=False)

        check()

    @pytest.mark.parametrize("target", ["a5", "a2a3"])
    @pytest.mark.parametrize("flow", [False, True])
    def test_they_can_be_written_for_the_target(self, target: str, flow: bool) -> None:
        @settings(SETTINGS, max_examples=40, phases=[Phase.generate])
        @given(programs(target=target, flow=flow, composites=flow))
        def check(p: Program) -> None:
            assert tilegg.emit(tilegg.lower(p, target), target)

        check()

    @pytest.mark.parametrize("target", ["a5", "a2a3"])
    def test_operations_are_chosen_so_that_they_can_be_written(self, target: str) -> None:
        """Hardly anything is left to be rejected as a whole, and no operation of tiles is lost by the choice."""
        machine = load_target(target)
        kind = _Wanted(Kind(machine, 6), tuple(chosen_ops(None)), None, False)
        made = [_Drawn(_Upwards(random.Random(seed)), kind, 6).program() for seed in range(120)]
        assert sum(not _is_written(p, machine) for p in made) <= 4
        assert {"reshape", "row_max", "cast", "store"} <= {s.name[5:] for p in made for s in ops(p)}

    @SETTINGS
    @given(programs(dtypes=["FP16", "INT8"], size=5))
    def test_only_the_dtypes_asked_for(self, p: Program) -> None:
        assert tile_dtypes(p) <= {FP16, INT8}

    @SETTINGS
    @given(programs(ops=["unary", "tile.cast", "maximum"]))
    def test_only_the_operations_asked_for(self, p: Program) -> None:
        assert all(n in ("cast", "maximum") or OPS[f"tile.{n}"].family == "unary" for n in work(p))

    @SETTINGS
    @given(programs(size=3, flow=False))
    def test_no_flow_and_no_larger_than_asked_for(self, p: Program) -> None:
        assert not any(isinstance(s, For | While) for s in walk(p.functions[0].body)) and len(work(p)) <= 10

    def test_operations_of_the_whole_vocabulary(self) -> None:
        """Each that is asked for is there at some time (one of four, for the time it takes)."""
        missing = []
        for name in vocabulary()[::4]:
            wanted = _Wanted(Kind(None, 4), (name,), None, True)
            found = (_Drawn(_Upwards(random.Random(s)), wanted, 4).program() for s in range(20))
            if name not in ("tile.approx", "tile.assume") and not any(s.name == name for p in found for s in ops(p)):
                missing.append(name)
        # Scalars that nothing reads are left out again; a merge needs a literal length that few known calls have.
        assert all(n.startswith("scalar.") or n in ("tile.read", "tile.mrgsort_format1") for n in missing), missing

    def shrunk(self, condition: Callable[[Program], bool], **options: Any) -> Program:
        return find(programs(**options), condition, settings=SEARCH)

    def test_one_operation_remains(self) -> None:
        p = self.shrunk(lambda p: "exp" in work(p), ops=["unary", "casts", "tile.add"])
        assert work(p) == ["exp"] and tile_dtypes(p) == {FP32}
        assert [q.direction for q in p.functions[0].params] == ["In", "Out"]

    def test_two_casts_remain(self) -> None:
        def there_and_back(p: Program) -> bool:
            read = {s.operands[0].name for s in ops(p) if s.name == "tile.cast"}  # type: ignore[union-attr]
            return any(s.result.name in read and s.result.type.dtype is BF16  # type: ignore[union-attr]
                       for s in ops(p) if s.name == "tile.cast")  # fmt: skip

        assert work(self.shrunk(there_and_back, ops=["tile.cast", "tile.add", "tile.exp"])) == ["cast", "cast"]

    def test_a_failing_property_gives_a_small_program(self) -> None:
        """What a compiler that drops the round mode gets wrong."""

        def differs(p: Program) -> bool:
            text = tilegg.print_program(p)
            wrong = text.replace('mode="floor"', 'mode="rint"')
            return wrong != text and not tilegg.equivalent(p, tilegg.parse(wrong), samples=2).equal

        p = self.shrunk(differs, ops=["tile.cast", "tile.add", "tile.mul"], dtypes=["FP32", "INT8", "BF16"], size=4)
        assert work(p) == ["cast"]

    def test_loops_remain_small(self) -> None:
        p = self.shrunk(lambda p: any(isinstance(s, For) for s in walk(p.functions[0].body)), flow=True, size=4)
        assert len(work(p)) <= 3

    def test_unknown_words(self) -> None:
        for options, code in (({"ops": ["frobnicate"]}, "TG003"), ({"dtypes": ["FP33"]}, "TG004"),
                              ({"target": "a7"}, "TG040")):  # fmt: skip
            with pytest.raises(TileggError) as caught:
                programs(**options)
            assert caught.value.diagnostics[0].code == code

    def test_families_and_names(self) -> None:
        assert chosen_ops(["row reductions"]) == ["tile.row_max", "tile.row_min", "tile.row_prod", "tile.row_sum"]
        for name in {OPS[n].family for n in chosen_ops(None)}:
            heading = name[0].upper() + name[1:]  # as in docs/operations.md
            assert chosen_ops([heading]) == chosen_ops([name]) == chosen_ops([name.upper()]) != []
        assert chosen_ops(["mul", "tile.add"]) == ["tile.add", "tile.mul", "scalar.mul"]


class TestElements:
    SUBNORMAL = {FP32: 0x7FFFFF, FP16: 0x3FF, BF16: 0x7F}  # noqa: RUF012

    @pytest.mark.parametrize("dtype", [FP32, FP16, BF16], ids=str)
    def test_hostile_floats_are_among_them(self, dtype: DType) -> None:
        def code(e: Any) -> int:
            return int(bits_of(np.array([e]), dtype)[0])

        quiet = dtype.nan_code or 0
        wanted: list[Callable[[int], bool]] = [
            lambda c: c == dtype.sign_bit, lambda c: 0 < c <= self.SUBNORMAL[dtype], lambda c: c == dtype.inf_code,
            lambda c: c == dtype.max_code | dtype.sign_bit, lambda c: c == quiet,
            lambda c: dtype.inf_code < c & dtype.magnitude_mask < quiet,  # type: ignore[operator]
            lambda c: c & dtype.magnitude_mask > quiet,
        ]  # fmt: skip
        for condition in wanted:
            find(elements(dtype), lambda e, condition=condition: condition(code(e)), settings=SEARCH)

    def test_ties_and_ends_of_other_dtypes(self) -> None:
        find(elements("FP32", near=["INT8"]), lambda e: abs(float(e)) in (127.5, 128.5), settings=SEARCH)
        tie = find(elements("FP32", near=["BF16"]), lambda e: e.view(np.uint32) & 0xFFFF == 0x8000, settings=SEARCH)
        assert bits_of(np.array([tie]), FP32)[0] & 0xFFFF == 0x8000

    @pytest.mark.parametrize("dtype", [d for d in DTYPES.values() if d.is_numeric], ids=str)
    def test_every_dtype_and_range(self, dtype: DType) -> None:
        @SETTINGS
        @given(elements(dtype), elements(dtype, fact=(1, 5.5), near=["INT8"]))
        def check(free: Any, inside: Any) -> None:
            assert np.array([free]).dtype == dtype.storage
            assert 1 <= decode(np.array([inside]), dtype)[0] <= 5.5

        check()

    def test_they_shrink_to_simple_ones(self) -> None:
        found = find(elements("FP32"), lambda e: float(e) > 1000, settings=SEARCH)
        assert float(found) in (1024.0, 2048.0, np.inf, float(np.finfo(np.float32).max))
        assert int(find(elements("INT32"), lambda e: True, settings=SEARCH)) == 0

    def test_dtypes_and_modes(self) -> None:
        assert find(dtypes(), lambda d: True) is FP32
        assert find(dtypes("int"), lambda d: d.bits == 4) in (DTYPES["INT4"], DTYPES["UINT4"])
        assert find(dtypes(names=["HF8", "BF16"]), lambda d: d.bits == 16) is BF16
        assert find(round_modes(), lambda m: m == "odd") == "odd"
        with pytest.raises(TileggError):
            dtypes("complex")


class TestTiles:
    @SETTINGS
    @given(tiles("BF16", (16, 64), (4, 8), fact="finite"))
    def test_shape_valid_shape_and_facts(self, t: np.ndarray) -> None:
        assert t.shape == (16, 64) and t.dtype == BF16.storage
        assert np.isfinite(t.astype(np.float32)).all()
        assert len(np.unique(bits_of(t, BF16)[4:])) == 1

    def test_most_are_dense_and_hostile(self) -> None:
        dense = []

        @SETTINGS
        @given(tiles("FP32", (16, 64)))
        def draw(t: np.ndarray) -> None:
            dense.append(len(np.unique(bits_of(t, FP32))))

        draw()
        assert sum(n > 5 for n in dense) > len(dense) // 3 and max(dense) > 200

    @pytest.mark.parametrize("shape", [(16, 64), (2, 4)])
    def test_one_unusual_element_remains(self, shape: tuple[int, int]) -> None:
        found = find(tiles("FP32", shape), lambda t: bool(is_nan(t, FP32).any()), settings=SEARCH)
        assert (bits_of(found, FP32) != 0).sum() == 1


class TestInputs:
    TEXT = kernel("FP32", "FP32", "u = pl.tile.assume(t, -4.0, 4.0)", "r = pl.tile.muls(u, a)",
                  extra="a: pl.Scalar[pl.FP32], ")  # fmt: skip

    @SETTINGS
    @given(st.data())
    def test_promises_and_facts_are_kept(self, data: st.DataObject) -> None:
        p = tilegg.parse(self.TEXT)
        given_ = data.draw(inputs(p, facts={"a": (0, 1)}))
        assert set(given_) == {"x", "a"} and np.abs(given_["x"]).max() <= 4 and 0 <= given_["a"] <= 1
        assert tilegg.run(p, given_)["out"].shape == (16, 64)

    @SETTINGS
    @given(st.data())
    def test_facts_are_taken_by_the_assertions(self, data: st.DataObject) -> None:
        p = tilegg.parse(cast("INT32", "FP16", "INT8"))
        assert_equivalent(p, p, facts=data.draw(facts(p)), inputs=2)

    def test_facts_shrink_to_none(self) -> None:
        assert find(facts(tilegg.parse(self.TEXT)), lambda f: True) == {}
        assert list(find(facts(tilegg.parse(self.TEXT)), lambda f: "x" in f)) == ["x"]

    def test_dynamic_sizes(self) -> None:
        text = (
            "@pl.function\ndef k(x: pl.Tensor[[1, n], pl.INT32], out: pl.Out[pl.Tensor[[1, n], pl.INT32]]):\n"
            "    t = pl.tile.load(x, [0, 0], [1, 64], valid_shape=[1, n])\n    return pl.tile.store(t, [0, 0], out)\n"
        )
        p = tilegg.parse(text)
        assert find(inputs(p), lambda given_: given_["x"].shape[1] > 16)["x"].dtype == INT32.storage
        assert find(inputs(p, dims={"n": 5}), lambda given_: True)["x"].shape == (1, 5)

    def test_they_find_what_differs(self) -> None:
        a, b = tilegg.parse(cast("FP32", "INT8")), tilegg.parse(cast("FP32", "FP16", "INT8"))
        found = find(
            inputs(a, facts={"x": (-100, 100)}),
            lambda given_: not np.array_equal(tilegg.run(a, given_)["out"], tilegg.run(b, given_)["out"]),
            settings=SEARCH,
        )
        assert (found["x"] != 0).sum() == 1


def test_without_hypothesis_the_rest_works_and_strategies_say_what_they_need() -> None:
    code = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "from tilegg.testing import assert_equivalent, check_lowering\n"
        "try:\n    from tilegg.testing import tiles\n"
        "except ImportError as problem:\n    print(problem)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "need Hypothesis: pip install 'tilegg[testing]'" in done.stdout
