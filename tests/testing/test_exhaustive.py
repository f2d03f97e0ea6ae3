"""Tests of every input: each is tried once, what works position by position is known to, the rest is refused."""

from __future__ import annotations

import numpy as np
import pytest
import tilegg
from testing_kernels import cast, kernel
from tilegg import TileggError
from tilegg.ir.codes import bits_of, decode
from tilegg.ir.convert import encode
from tilegg.ir.dtypes import BF16, DTYPES, FP8E8M0, FP16, FP32, INT8, INT16, INT32, UINT8, UINT64
from tilegg.ir.equivalence import Session, Setup
from tilegg.ir.inputs import FREE, Domain, extreme_values
from tilegg.ir.interp_eval import evaluator
from tilegg.ir.op import OPS, Call, Kind
from tilegg.ir.packing import unpack_mask
from tilegg.ir.program import Const, Value
from tilegg.ir.samples import random_bits
from tilegg.ir.tilearray import TileArray
from tilegg.ir.types import tile
from tilegg.testing import NotEquivalent, assert_equivalent
from tilegg.testing.exhaustive import every_input, values_in
from tilegg.testing.positions import Mixes, Window, is_pointwise, window_of

INF = float("inf")


def session(text: str, other: str = "", **options: object) -> Session:
    return Session(Setup(tilegg.parse(text), tilegg.parse(other or text), **options))  # type: ignore[arg-type]


class TestValues:
    @pytest.mark.parametrize(
        ("dtype", "domain", "count"),
        [
            (FP16, FREE, 65536), (FP16, Domain(finite=True), 65536 - 2048), (BF16, Domain(0, INF), 0x7F80 + 2),
            (FP32, FREE, 1 << 32), (FP32, Domain(1, 2), (1 << 23) + 1), (FP32, Domain(-1.5e-45, 1.5e-45), 4),
            (FP32, Domain(3e38, INF), 0x7F800000 - 0x7F61B1E6 + 1), (INT32, Domain(-5.5, 5), 11),
            (UINT64, Domain(2.0**63, 2.0**63 + 4096), 4097), (FP8E8M0, FREE, 256), (UINT8, Domain(250, 300), 6),
        ],
    )  # fmt: skip
    def test_counts(self, dtype, domain, count) -> None:
        assert values_in(dtype, domain).count == count

    @pytest.mark.parametrize(
        ("dtype", "domain"),
        [(d, Domain(-2, 3)) for d in DTYPES.values() if d.is_numeric and d.bits <= 16]
        + [(d, Domain(-70000, 70000)) for d in DTYPES.values() if d.is_int and d.bits > 16]
        + [(FP32, Domain(1, 1.001)), (FP32, Domain(-1e-42, 1e-42)), (UINT64, Domain(2.0**63, 2.0**63 + 4096))],
    )
    def test_each_is_inside_and_there_once(self, dtype, domain) -> None:
        values = values_in(dtype, domain)
        found = values.take(np.arange(values.count))
        assert domain.holds(decode(found, dtype)).all()
        assert len(np.unique(bits_of(found, dtype))) == values.count

    def test_none(self) -> None:
        with pytest.raises(TileggError) as caught:
            values_in(FP32, Domain(1e39, 1e40))
        assert caught.value.diagnostics[0].code == "TG030"


class TestPositions:
    SHAPE = (2, 8)

    @pytest.mark.parametrize("name", [n for n in OPS if is_pointwise(n)])
    def test_operations_known_to_keep_positions_do(self, name: str) -> None:
        """Where two sets of operands agree on some positions, so do the results, whatever else changes."""
        decl, tried = OPS[name], 0
        for dtype in (FP32, INT32, FP16, INT16, UINT8):
            call = self.call(decl, dtype)
            if call is None:
                continue
            tried += 1
            meaning = evaluator(decl, [getattr(o, "type", None) for o in call[0]], call[1], call[2])
            rng = np.random.default_rng(5)
            for _ in range(20):
                keep = rng.random(self.SHAPE) < 0.5
                first, second = self.operands(call[0], rng), self.operands(call[0], rng)
                mixed = [np.where(keep, a, b) if isinstance(a, np.ndarray) else a for a, b in zip(first, second)]
                with np.errstate(all="ignore"):
                    results = [self.result(meaning(list(map(self.tile, given)))) for given in (first, mixed)]
                assert np.array_equal(results[0][keep], results[1][keep])
        assert tried or name in ("tile.create", "tile.full", "tile.select", "tile.sel", "tile.sels"), name

    @pytest.mark.parametrize(
        "line",
        ["pl.tile.sel(m, t, pl.tile.neg(t))", "pl.tile.sels(m, t, s, 7)", "pl.tile.select(m, t, pl.tile.abs(t))",
         "pl.tile.sel(pl.tile.mask_not(m), t, pl.tile.neg(t))"],
    )  # fmt: skip
    def test_selections_keep_positions(self, line: str) -> None:
        lines = ("m = pl.tile.cmps(t, 100, cmp_type=4)", "s = pl.tile.create([16, 64], pl.UINT8)", f"r = {line}")
        program = tilegg.parse(kernel("INT16", "INT16", *lines))
        assert isinstance(window_of(program.functions[0], {}), Window)
        rng = np.random.default_rng(0)
        for _ in range(5):
            a, b = (rng.integers(-300, 300, (16, 64)).astype(np.int16) for _ in range(2))
            keep = rng.random((16, 64)) < 0.5
            first, mixed = (tilegg.run(program, {"x": x})["out"] for x in (a, np.where(keep, a, b)))
            assert np.array_equal(first[keep], mixed[keep]) and not np.array_equal(first, mixed)

    def call(self, decl, dtype):
        t = tile(self.SHAPE, dtype)
        operands = []
        for p in decl.operand_params:
            if p.kind is Kind.SCRATCH and p.like is None:
                operands.append(Value(p.name, tile(self.SHAPE, UINT8)))
            elif p.kind in (Kind.TILE, Kind.SCRATCH):
                operands.append(Value(p.name, t))
            elif p.kind is Kind.SCALAR:
                operands.append(Const(3.0, FP32) if dtype.is_float else Const(3, dtype))
            else:
                return None
        attrs = {**decl.defaults, "target_type": INT8, "cmp_type": 2, "target_memory": "Vec"}
        attrs = {p.name: attrs[p.name] for p in decl.attr_params if p.name in attrs}
        try:
            result = decl.result(Call(decl, tuple(operands), attrs, None))
        except (TileggError, KeyError):
            return None
        return operands, attrs, result

    def operands(self, operands, rng):
        out = []
        for o in operands:
            if isinstance(o, Value):
                pool = extreme_values(o.type.dtype)
                some = np.where(rng.random(self.SHAPE) < 0.5, rng.choice(pool, self.SHAPE),
                                random_bits(o.type.dtype, rng, 16).reshape(self.SHAPE))  # fmt: skip
                out.append(some.astype(pool.dtype))
            else:
                out.append(o.value)
        return out

    @staticmethod
    def tile(x):
        return TileArray(x) if isinstance(x, np.ndarray) else x

    def result(self, value):
        array = np.ascontiguousarray(value.region)
        if array.shape != self.SHAPE:
            return unpack_mask(array, self.SHAPE[1])
        return array.view(f"u{array.dtype.itemsize}")

    def test_the_window(self) -> None:
        text = cast("FP16", "INT8", valid=", valid_shape=[4, 8]")
        assert window_of(tilegg.parse(text).functions[0], {}) == Window((16, 64), (0, 0), (4, 8))

    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ("r = pl.tile.row_expand(t, pl.tile.row_max(t))", "row_max does not work element by element"),
            ("r = pl.tile.reshape(pl.tile.reshape(t, [1, 1024]), [16, 64])", "reshape"),
            ("r = pl.tile.load(x, [1, 0], [15, 64], valid_shape=[15, 64])", "do not all take one window"),
            ("r = pl.tile.col_expand_add(t, pl.tile.load(x, [0, 0], [1, 64]))", "col_expand_add"),
            ("r = pl.tile.assemble(t, t, [0, 0])", "assemble"),
        ],
    )
    def test_what_mixes_positions_is_told(self, line: str, why: str) -> None:
        found = window_of(tilegg.parse(kernel("FP32", "FP32", line)).functions[0], {})
        assert isinstance(found, Mixes) and why in found.why and found.span is not None

    def test_a_packed_predicate_is_no_number(self) -> None:
        lines = ("m = pl.tile.cmps(t, 0.0, cmp_type=4)", "r = pl.tile.sel(m, t, pl.tile.neg(t))")
        assert isinstance(window_of(tilegg.parse(kernel("FP32", "FP32", *lines)).functions[0], {}), Window)
        stored = kernel("UINT8", "UINT8", "m = pl.tile.cmps(t, 0, cmp_type=4)", "r = m", shape=(16, 32))
        assert "packed predicate" in window_of(tilegg.parse(stored).functions[0], {}).why

    def test_loops_and_branches(self) -> None:
        text = kernel("FP32", "FP32", "r = t").replace("    r = t\n", "")
        loop = text.replace("    return pl.tile.store(r, [0, 0], out)\n", (
            "    for i, (a,) in pl.range(0, 4, init_values=(t,)):\n        b = pl.tile.add(a, t)\n"
            "        (r,) = pl.yield_(b)\n    return pl.tile.store(r, [0, 0], out)\n"))  # fmt: skip
        assert "loops" in window_of(tilegg.parse(loop).functions[0], {}).why


class TestEvery:
    def all_cases(self, s: Session, names: tuple[str, ...]) -> list[tuple[int, ...]]:
        every = every_input(s)
        cases = []
        for turn in range(every.count):
            case = every.case(s, turn)
            columns = []
            for name in names:
                dtype, value = s.dtypes[name], case.inputs[name]
                if not isinstance(value, np.ndarray):
                    columns.append(np.full(every.block, value))
                    continue
                part = value if every.window is None else value[every.window.slices]
                columns += list(bits_of(part, dtype).reshape((1, -1) if every.window else (-1, 1)))
            cases += list(zip(*(c[: case.size].tolist() for c in columns)))
        return cases

    def test_pairs_of_bytes(self) -> None:
        text = kernel("INT8", "INT8", "u = pl.tile.load(y, [0, 0], [4, 100])", "r = pl.tile.add(t, u)", shape=(4, 100),
                      extra="y: pl.Tensor[[4, 100], pl.INT8], ")  # fmt: skip
        cases = self.all_cases(session(text), ("x", "y"))
        assert len(cases) == len(set(cases)) == 65536

    def test_scalars(self) -> None:
        text = kernel("UINT8", "UINT8", "r = pl.tile.adds(t, a)", shape=(1, 96), extra="a: pl.Scalar[pl.INT8], ")
        cases = self.all_cases(session(text, facts={"x": (0, 99)}), ("x", "a"))
        assert len(cases) == len(set(cases)) == 100 * 256
        assert {a for _, a in cases} == set(range(-128, 128))

    def test_whole_tiles_of_programs_that_mix_positions(self) -> None:
        text = kernel("UINT8", "UINT8", "r = pl.tile.row_expand(t, pl.tile.row_max(t))", shape=(1, 3))
        cases = self.all_cases(session(text, facts={"x": (5, 10)}), ("x",))
        assert len(cases) == len(set(cases)) == 6**3

    def test_the_whole_of_16_bits_proves_a_chain(self) -> None:
        report = assert_equivalent(cast("INT16", "BF16"), cast("INT16", "FP32", "BF16"), exhaustive=True)
        assert (report.cases, report.runs, report.elements) == (65536, 64, 65536)
        with pytest.raises(NotEquivalent, match="of 65,536 inputs in all"):
            assert_equivalent(cast("INT16", "BF16"), cast("INT16", "FP16", "BF16"), exhaustive=True)

    def test_one_wrong_input_among_all_is_found(self) -> None:
        lines = ("m = pl.tile.mask_not(pl.tile.cmps(t, -12345, cmp_type=0))", "s = pl.tile.create([16, 64], pl.UINT8)",
                 "r = pl.tile.sels(m, t, s, 0)")  # fmt: skip
        with pytest.raises(NotEquivalent) as caught:
            assert_equivalent(
                kernel("INT16", "INT16", "r = t"), kernel("INT16", "INT16", *lines), exhaustive=True
            )
        (place,) = caught.value.report.counterexample.places
        assert place.element.value == -12345

    def test_row_programs(self) -> None:
        right = kernel("UINT8", "UINT8", "r = pl.tile.row_expand(t, pl.tile.row_max(t))", shape=(1, 3))
        wrong = kernel("UINT8", "UINT8", "r = pl.tile.row_expand(t, pl.tile.row_min(t))", shape=(1, 3))
        assert_equivalent(right, right, exhaustive=True, facts={"x": (0, 7)})
        with pytest.raises(NotEquivalent):
            assert_equivalent(right, wrong, exhaustive=True, facts={"x": (0, 7)})

    def test_too_many(self) -> None:
        with pytest.raises(TileggError) as caught:
            assert_equivalent(cast("FP32", "INT8"), cast("FP32", "INT8"), exhaustive=True)
        (found,) = caught.value.diagnostics
        assert found.code == "TG033" and "2^32 different inputs, which takes 4,194,304 runs" in found.message
        text = kernel("FP16", "FP16", "r = pl.tile.row_expand(t, pl.tile.row_max(t))")
        with pytest.raises(TileggError) as caught:
            assert_equivalent(text, text, exhaustive=True)
        (found,) = caught.value.diagnostics
        assert found.code == "TG033" and "row_max" in found.reason and found.span.line == 7

    def test_the_limit_is_the_callers(self) -> None:
        text = cast("FP32", "BF16", "FP32", shape=(64, 512))
        report = assert_equivalent(text, text, exhaustive=True, facts={"x": (1, 1.0625)}, limit=17)
        assert (report.cases, report.runs) == ((1 << 19) + 1, 17)
        with pytest.raises(TileggError, match="TG033"):
            assert_equivalent(text, text, exhaustive=True, facts={"x": (1, 1.0625)}, limit=16)

    def test_inputs_that_break_a_promise_are_left_out_one_by_one(self) -> None:
        masked, halved = "u = pl.tile.ands(t, 1023)", "r = pl.tile.shrs(u, 1)"
        promised = kernel("INT16", "INT16", masked, "u = pl.tile.assume(u, 3, 900)", halved)
        plain = kernel("INT16", "INT16", masked, halved)
        report = assert_equivalent(promised, plain, exhaustive=True)
        low = np.arange(65536) & 1023
        assert report.rejected == ((low < 3) | (low > 900)).sum() and report.cases == 65536
        assert f"{report.rejected:,} of them do not fit" in report.render()

    def test_floats_near_a_tie_of_a_bounded_range(self) -> None:
        a, b = cast("FP32", "FP16", shape=(64, 512)), cast("FP32", "FP16 round", shape=(64, 512))
        inside = float(encode([1 + 2**-11], FP32)[0])
        below = float(np.nextafter(np.float32(inside), np.float32(0)))
        assert_equivalent(a, b, exhaustive=True, facts={"x": (1, below)})
        with pytest.raises(NotEquivalent) as caught:
            assert_equivalent(a, b, exhaustive=True, facts={"x": (1, inside)})
        assert {p.element.value for p in caught.value.report.counterexample.places} == {inside}
