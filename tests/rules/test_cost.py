"""Prices: published figures reproduced, every legal operation priced, sane behaviour over shapes."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES
from tilegg.rules.cost import Instr, cycles, price
from tilegg.rules.target import Target, load_target, target_names

SAMPLE = json.loads((Path(__file__).parent / "data" / "cost_sample.json").read_text())["records"]
TARGETS = [load_target(name) for name in target_names()]
TINY = ((1, 8), (8, 8), (16, 1), (1, 1))


def _instr(record: list[Any]) -> tuple[Target, Instr]:
    target, _, op, dtypes, rows, cols, phys, attrs, *_ = record
    return load_target(target), Instr(op, tuple(dtypes.split()), rows, cols, phys, tuple(attrs.items()))


def _near(value: float, wanted: float) -> bool:
    return abs(value - wanted) <= 0.05 * wanted


def test_models_reproduce_their_records() -> None:
    records = [r for r in SAMPLE if r[1] != "profiled"]
    wrong = [r for r in records if not _near(cycles(*_instr(r), model=r[1]), r[8])]
    # The simulator's hoisted fill of one register (8 cycles) is the only kind of record no model row covers.
    assert len(records) > 120
    assert [r[2] for r in wrong if r[2] != "texpands_hoisted"] == []


def test_prices_in_use_reproduce_all_records_but_the_marked() -> None:
    tile_ops = [r for r in SAMPLE if r[9] != "body"]
    off = [r for r in tile_ops if not _near(cycles(*_instr(r)), r[8])]
    assert [r for r in off if r[9] != "off"] == []
    assert [r for r in tile_ops if r[9] == "off" and r not in off] == []


def test_every_record_off_has_a_stated_reason() -> None:
    unexplained = [r for r in SAMPLE if r[9] == "off" and r[8] and not price(*_instr(r)).differs]
    assert unexplained == []


@pytest.mark.parametrize(
    ("op", "shape", "wanted"),
    [
        ("tsel", (4, 64, 64), 67),
        ("tsel", (1, 64, 64), 19),
        ("trowexpand", (64, 64, 64), 933),
        ("ttrans", (128, 128, 128), 501),
        ("trowsum", (64, 64, 64), 492),
        ("tdivs", (32, 64, 64), 205),
    ],
)
def test_profiled_cycles_decide_where_the_model_undercounts(op: str, shape: tuple[int, int, int], wanted: int) -> None:
    assert _near(cycles(load_target("a2a3"), Instr(op, ("FP32", "FP32"), *shape)), wanted)


def test_fill_is_not_free() -> None:
    target = load_target("a2a3")
    small, large = (cycles(target, Instr("texpands", ("FP32",), rows, 64, 64)) for rows in (1, 128))
    assert large - small == 127


def _legal_instrs(target: Target, rows: int, cols: int) -> list[Instr]:
    found = []
    for op, info in target.ops.items():
        for dtype in DTYPES:
            if op != "tcvt" and target.legal(op, dtype):
                result = "UINT8" if info.kind == "compare" else "FP32" if op == "tdequant" else dtype
                found.append(Instr(op, (dtype, result), rows, cols, max(cols, 32)))
    edges = [edge for edge in target.casts.values() if edge.assembler]
    return found + [Instr("tcvt", (edge.src, edge.dst), rows, cols, max(cols, 32)) for edge in edges]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [*TINY, (64, 64), (7, 130)])
def test_every_legal_operation_has_a_price(target: Target, shape: tuple[int, int]) -> None:
    instrs = _legal_instrs(target, *shape)
    assert len(instrs) > 300
    bad = [i for i in instrs if not 0 < cycles(target, i) < math.inf]
    assert bad == []


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_no_operation_on_data_is_nearly_free(target: Target) -> None:
    # Views rename storage; everything that touches data pays at least an issue.
    cheap = {i.op for i in _legal_instrs(target, 1, 8) if cycles(target, i) < 10}
    assert cheap == {"treshape", "bitcast", "subview"}


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_prices_grow_with_rows_and_with_full_columns(target: Target) -> None:
    falling = set()
    for instr in _legal_instrs(target, 8, 256):
        here = cycles(target, instr._replace(phys_cols=256))
        taller = cycles(target, instr._replace(rows=16, phys_cols=256))
        wider = cycles(target, instr._replace(cols=512, phys_cols=512))
        strided = cycles(target, instr._replace(phys_cols=320))
        if min(taller, wider) < here or (strided < here and instr.op != "tcvt"):
            falling.add(instr.op)
    assert falling == set()


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_doubling_rows_hardly_lowers_a_price(target: Target) -> None:
    falling = set()
    for rows in (1, 2, 4, 32, 128, 256):
        for instr in _legal_instrs(target, rows, 64):
            same = instr._replace(phys_cols=64)
            # A ragged end, which doubling can remove, takes two mask writes in each of up to four parts.
            if cycles(target, same._replace(rows=2 * rows)) < cycles(target, same) - 8:
                falling.add(instr.op)
    # A single register of 32-bit data is selected slower than two: mask bits are loaded for two at a time.
    assert falling <= {"tsel"}


def test_strided_narrowing_to_eight_bits_is_dear() -> None:
    target = load_target("a5")
    flat = cycles(target, Instr("tcvt", ("FP32", "FP8E4M3FN"), 10, 1280, 1280))
    strided = cycles(target, Instr("tcvt", ("FP32", "FP8E4M3FN"), 10, 1280, 1344))
    assert _near(strided, 8359) and strided > 3 * flat


def test_slow_direct_conversion_costs_more_than_the_detour() -> None:
    target = load_target("a2a3")
    shape = (64, 64, 64)
    direct = cycles(target, Instr("tcvt", ("INT32", "FP16"), *shape))
    detour = sum(cycles(target, Instr("tcvt", pair, *shape)) for pair in (("INT32", "FP32"), ("FP32", "FP16")))
    assert direct == 2306 and detour == 324


def test_wrapping_conversion_with_scratch_is_dearer() -> None:
    target = load_target("a2a3")
    plain = Instr("tcvt", ("FP16", "INT8"), 16, 128, 128)
    wrapping = plain._replace(attrs=(("saturation", "off"),))
    assert cycles(target, wrapping) > 10 * cycles(target, plain)


def test_equality_complement_costs_more() -> None:
    target = load_target("a2a3")
    shape = ("tcmp", ("FP32", "FP32", "UINT8"), 16, 64, 64)
    eq, ne = (cycles(target, Instr(*shape, (("cmp", word),))) for word in ("eq", "ne"))
    assert ne > eq


def test_estimates_are_marked() -> None:
    target = load_target("a5")
    assert price(target, Instr("tcmp", ("FP32", "UINT8"), 4, 64, 64)).estimate
    assert price(target, Instr("tadd", ("INT8", "INT8"), 4, 64, 64)).estimate
    assert not price(target, Instr("tadd", ("FP32", "FP32"), 4, 64, 64)).estimate


def test_unpriced_operation_and_unknown_model_are_refused() -> None:
    target = load_target("a2a3")
    with pytest.raises(TileggError) as unpriced:
        cycles(target, Instr("tnothing", ("FP32",), 1, 8, 8))
    assert unpriced.value.diagnostics[0].code == "TG022"
    with pytest.raises(TileggError) as unknown:
        cycles(target, Instr("tadd", ("FP32",), 1, 8, 8), model="none such")
    assert unknown.value.diagnostics[0].code == "TG040"
