"""Targets: the native casts against the cast page, legality, scratch plans, figures and views."""

from __future__ import annotations

import itertools
from collections import deque
from pathlib import Path

import pytest
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES, DType
from tilegg.rules.cost import Instr, cycles
from tilegg.rules.target import Target, load_target
from tilegg.rules.target_view import describe, diff

A2A3, A5 = load_target("a2a3"), load_target("a5")
BOTH = pytest.mark.parametrize("target", [A2A3, A5], ids=lambda t: t.name)

#: The cast page's tables: source, native destinations, then chains as destination(instructions).
PAGE = {
    "a5": """
        bf16: fp16 fp32 fp4 int32 | fp8e4m3(2) fp8e5m2(2) hf8(2) int16(2) int8(2) uint16(2) uint8(2)
        fp16: fp32 hf8 int16 int32 int8 uint8 | bf16(2) fp8e4m3(2) fp8e5m2(2) uint16(2) fp4(3)
        fp32: bf16 fp16 fp8e4m3 fp8e5m2 hf8 int16 int32 int64 | fp4(2) int8(2) uint16(2) uint8(2)
        fp4: bf16 | fp8e4m3(3) fp8e5m2(3) hf8(3) int8(3) uint8(3)
        fp8e4m3: fp32 | bf16(2) fp16(2) fp8e5m2(2) hf8(2) int16(2) fp4(3) int8(3) uint16(3) uint8(3)
        fp8e5m2: fp32 | bf16(2) fp16(2) fp8e4m3(2) hf8(2) int16(2) fp4(3) int8(3) uint16(3) uint8(3)
        hf8: fp32 | bf16(2) fp16(2) fp8e4m3(2) fp8e5m2(2) int16(2) fp4(3) int8(3) uint16(3) uint8(3)
        int16: fp16 fp32 int32 uint32 uint8 | bf16(2) fp8e4m3(2) fp8e5m2(2) hf8(2) int8(2) uint16(2) fp4(3)
        int32: fp32 int16 int64 uint16 uint8 | bf16(2) fp16(2) fp8e4m3(2) fp8e5m2(2) hf8(2) fp4(3) int8(3)
        int64: fp32 int32 | bf16(2) fp16(2) fp8e4m3(2) fp8e5m2(2) hf8(2) int16(2) uint16(2) uint8(2)
        int64: | fp4(3) int8(3)
        int8: fp16 int16 int32 | hf8(2) uint16(2) uint8(2) fp8e4m3(3) fp8e5m2(3) fp4(4)
        uint32: int16 uint16 uint8 | int8(3)
        uint8: fp16 uint16 | hf8(2) int8(2) fp8e4m3(3) fp8e5m2(3) fp4(4)
    """,
    "a2a3": """
        bf16: fp32 int32 | fp16(2) int16(2) int4(3) int8(3) uint8(3)
        fp16: fp32 int16 int32 int4 int8 uint8 | bf16(2)
        fp32: bf16 fp16 int16 int32 int64 | int4(2) int8(2) uint8(2)
        int16: fp16 fp32 | bf16(2) int4(2) int8(2) uint8(2)
        int32: fp16 fp32 int16 int64 | bf16(2) int4(2) int8(2) uint8(2)
        int4: fp16 | int8(2) uint8(2)
        int64: fp32 int32 | bf16(2) fp16(2) int16(2) int4(3) int8(3) uint8(3)
        int8: fp16 | int4(2) uint8(2)
        uint8: fp16 | int4(2) int8(2)
    """,
}


def _name(word: str) -> str:
    return {"fp8e4m3": "FP8E4M3FN"}.get(word, word.upper())


def _page(target: Target) -> tuple[set[tuple[str, str]], dict[tuple[str, str], int]]:
    native: set[tuple[str, str]] = set()
    chains: dict[tuple[str, str], int] = {}
    for line in PAGE[target.name].strip().splitlines():
        src, rest = line.strip().split(": ")
        left, _, right = rest.partition("| ")
        native |= {(_name(src), _name(word)) for word in left.split()}
        for word in right.split():
            dst, count = word[:-1].split("(")
            chains[_name(src), _name(dst)] = int(count)
    return native, chains


@BOTH
def test_native_casts_are_the_pages(target: Target) -> None:
    native, _ = _page(target)
    assert {pair for pair, edge in target.casts.items() if edge.page} == native


@BOTH
def test_casts_beyond_the_page_are_marked(target: Target) -> None:
    extra = {pair for pair, edge in target.casts.items() if not edge.page}
    fp4 = {("BF16", "FP4E1M2"), ("FP4E1M2", "BF16")} if target is A5 else set()
    assert extra == {("FP32", "FP32")} | fp4


def _holds(outer: DType, inner: DType) -> bool:
    """Every value of ``inner`` is one of ``outer``."""
    if outer.is_float and inner.is_float:
        precise = outer.significand_bits >= inner.significand_bits
        return precise and outer.max_value >= inner.max_value and outer.min_positive <= inner.min_positive
    if inner.is_float:
        return False
    magnitude_bits = inner.bits - (1 if inner.signed else 0)
    if outer.is_float:
        return outer.significand_bits >= magnitude_bits and outer.max_value >= inner.max_value
    return outer.min_value <= inner.min_value and outer.max_value >= inner.max_value


def _shortest(target: Target, src: str, dst: str) -> int | None:
    """Hops of the shortest chain whose every intermediate holds all values of the destination."""
    waiting, seen = deque([(src, 0)]), {src}
    while waiting:
        here, count = waiting.popleft()
        for (a, b), edge in target.casts.items():
            if a != here or not edge.page:
                continue
            if b == dst:
                return count + 1
            if b not in seen and _holds(DTYPES[b], DTYPES[dst]):
                seen.add(b)
                waiting.append((b, count + 1))
    return None


@BOTH
def test_shortest_chains_have_the_pages_lengths(target: Target) -> None:
    native, chains = _page(target)
    names = sorted({name for pair in native for name in pair})
    found = {pair: _shortest(target, *pair) for pair in itertools.permutations(names, 2)}
    assert {pair: count for pair, count in found.items() if count} == dict.fromkeys(native, 1) | chains


@BOTH
def test_cast_rows_agree_with_the_number_formats(target: Target) -> None:
    for (src, dst), edge in target.casts.items():
        exact = src != dst and _holds(DTYPES[dst], DTYPES[src])
        assert edge.exact == exact, (src, dst)
        may_round = DTYPES[src].is_float or DTYPES[dst].is_float
        assert edge.rounds == (not exact and may_round), (src, dst)


@pytest.mark.parametrize(
    ("target", "src", "dst", "mode", "effective"),
    [
        (A5, "FP32", "FP16", "odd", "odd"),
        (A5, "FP32", "BF16", "odd", "rint"),
        (A5, "FP32", "INT32", "none", "trunc"),
        (A5, "FP32", "HF8", "floor", "round"),
        (A5, "FP32", "FP8E4M3FN", "round", "rint"),
        (A5, "FP16", "FP32", "floor", "floor"),
        (A5, "INT32", "UINT8", "ceil", "ceil"),
        (A2A3, "FP16", "INT8", "round", "round"),
        (A2A3, "FP16", "INT8", "odd", "trunc"),
        (A2A3, "INT32", "FP16", "trunc", "rint"),
        (A2A3, "FP16", "INT4", "none", "rint"),
    ],
)
def test_effective_modes(target: Target, src: str, dst: str, mode: str, effective: str) -> None:
    assert target.effective_mode(src, dst, mode) == effective


def test_effective_mode_of_no_cast_is_refused() -> None:
    with pytest.raises(TileggError) as caught:
        A5.effective_mode("FP32", "INT8", "round")
    assert caught.value.diagnostics[0].code == "TG020"


@pytest.mark.parametrize(
    ("target", "op", "dtypes"),
    [
        (A2A3, "tadd", "INT16 INT32 FP16 FP32"),
        (A5, "tadd", "INT8 INT16 INT32 UINT8 UINT16 UINT32 FP16 BF16 FP32"),
        (A5, "tmul", "INT16 INT32 UINT16 UINT32 FP16 FP32"),
        (A2A3, "tdiv", "FP16 FP32"),
        (A2A3, "tnot", "INT16 UINT16"),
        (A2A3, "tsel", "INT16 INT32 UINT16 UINT32 FP16 BF16 FP32"),
        (A2A3, "tcmps", "INT32 FP16 FP32"),
        (A5, "tsels", "INT8 INT16 INT32 UINT8 UINT16 UINT32 FP16 FP32"),
        (A2A3, "tfmod", "FP32"),
        (A5, "taddrelu", ""),
        (A5, "tabs", "FP16 FP32"),
        (A2A3, "texpands", "INT16 INT32 UINT16 UINT32 FP16 BF16 FP32"),
        (A5, "taddc", ""),
        (A2A3, "tands", "INT8 INT16 UINT8 UINT16"),
        (A5, "tfmods", "FP16 FP32"),
        (A5, "taxpy", "FP16 FP32"),
    ],
)
def test_operations_take_exactly_these_dtypes(target: Target, op: str, dtypes: str) -> None:
    assert " ".join(name for name in DTYPES if target.legal(op, name)) == dtypes


def test_ordered_integer_compare_is_refused_where_the_hardware_lacks_it() -> None:
    for op in ("tcmp", "tcmps"):
        assert A2A3.legal(op, "INT32", cmp="eq") and A2A3.legal(op, "INT32", cmp="ne")
        refused = A2A3.legal(op, "INT32", cmp="lt")
        assert not refused and "equality" in refused.reason
        assert A5.legal(op, "INT32", cmp="lt")
    assert "lt" in A2A3.legal("tcmp", "INT32").reason


def test_refusals_say_why() -> None:
    assert "reinterpreted" in A2A3.legal("tcmps", "INT16", cmp="eq").reason
    assert "instruction set" in A2A3.legal("tadd", "UINT16").reason
    assert "INT16 INT32 FP16 FP32" in A2A3.legal("tadd", "BF16").reason
    assert "the assembler has not" in A5.legal("tfusedmuladd", "FP32").reason
    assert "tadd" in A5.legal("taddd", "FP32").reason
    assert "four-bit" in A2A3.legal("tcvt", "FP16", dst="INT4").reason
    assert not A2A3.legal("tcvt", "FP32", dst="INT8") and A2A3.legal("tcvt", "FP32", dst=DTYPES["INT16"])


@BOTH
def test_every_operation_of_either_list_is_declared(target: Target) -> None:
    families = ["add", "sub", "mul", "div", "max", "min"]
    expected = {f"t{row}expand{word}" for row in ("row", "col") for word in [*families, "", "expdif"]}
    expected |= {f"t{word}" for word in families} | {f"t{word}s" for word in families}
    expected |= {f"t{axis}{word}" for axis in ("row", "col") for word in ("sum", "max", "min", "prod")}
    expected |= {
        "tcvt",
        "tcmp",
        "tcmps",
        "tsel",
        "tsels",
        "tload",
        "tstore",
        "tmov",
        "ttrans",
        "tfusedmuladd",
    }
    assert expected <= set(target.ops)
    for info in target.ops.values():
        assert info.assembler or not info.asm


def _scratch(
    target: Target, op: str, dtypes: str, shape: tuple[int, int, int], **attrs: object
) -> tuple[str, int, int] | None:
    plan = target.scratch(Instr(op, tuple(dtypes.split()), *shape, tuple(attrs.items())))
    return (plan.dtype, plan.rows, plan.cols) if plan else None


def test_scratch_plans() -> None:
    assert _scratch(A2A3, "tsel", "FP16 FP16 FP16", (8, 64, 64)) == ("UINT32", 1, 16)
    assert _scratch(A2A3, "tsels", "FP16 FP16", (8, 50, 64)) == ("FP16", 1, 64)
    assert _scratch(A5, "tsel", "FP16 FP16 FP16", (8, 64, 64)) == ("UINT8", 1, 32)
    assert _scratch(A2A3, "txor", "INT16 INT16 INT16", (8, 64, 64)) == ("INT16", 8, 64)
    assert _scratch(A5, "txor", "INT16 INT16 INT16", (8, 64, 64)) is None
    assert _scratch(A2A3, "trowsum", "FP32 FP32", (8, 64, 64)) == ("FP32", 8, 64)
    assert _scratch(A2A3, "trowsum", "INT32 INT32", (8, 64, 64)) == ("INT32", 1, 8)
    assert _scratch(A2A3, "trem", "FP32 FP32 FP32", (8, 64, 64)) == ("FP32", 1, 72)
    assert _scratch(A2A3, "trsqrt", "FP32 FP32", (8, 64, 64)) is None
    assert _scratch(A2A3, "trsqrt", "FP32 FP32", (8, 64, 64), precision="high") == ("FP32", 8, 64)
    assert _scratch(A2A3, "tadd", "FP32 FP32 FP32", (8, 64, 64)) is None
    assert not A5.scratch(Instr("tsel", ("FP32",), 1, 8, 8)).required  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("pair", "shape", "size"),
    [
        ("FP32 INT16", (64, 64, 64), 32 * 63 * 8),
        ("FP32 INT16", (1, 64, 64), 256),
        ("FP32 INT16", (300, 100, 104), 32 * (254 * 13 + 5)),
        ("FP16 INT16", (64, 64, 64), 256),
        ("FP16 INT16", (1, 10, 16), 64),
        ("FP16 INT8", (64, 64, 64), 256),
        ("FP16 INT8", (2, 16, 16), 160),
    ],
)
def test_scratch_of_wrapping_conversions(pair: str, shape: tuple[int, int, int], size: int) -> None:
    instr = Instr("tcvt", tuple(pair.split()), *shape, (("saturation", "off"),))
    plan = A2A3.scratch(instr)
    assert plan is not None and plan.bytes == size and plan.bytes % 32 == 0
    assert A2A3.scratch(instr._replace(attrs=(("saturation", "on"),))) is None
    assert A5.scratch(instr) is None


def test_only_three_conversions_take_scratch() -> None:
    taking = {pair for pair, edge in A2A3.casts.items() if edge.scratch}
    assert taking == {("FP32", "INT16"), ("FP16", "INT16"), ("FP16", "INT8")}


def test_in_place_rules() -> None:
    assert A2A3.inplace("tadd") and not A2A3.inplace("txor") and not A2A3.inplace("trecip")
    assert A5.inplace("trecip") and not A5.inplace("tands")


@BOTH
def test_hardware_facts(target: Target) -> None:
    assert target.figure("repeat_bytes") == 256 and target.figure("block_bytes") == 32
    assert target.ub_usable_bytes == (184 if target is A2A3 else 240) * 1024
    assert target.arch == ("a3" if target is A2A3 else "a5")
    assert target.has("bf16_arithmetic") == (target is A5) and not target.has("no such capability")
    with pytest.raises(TileggError):
        target.figure("no such figure")


@BOTH
def test_every_source_named_is_described(target: Target) -> None:
    rows = [row for table in describe(target).values() for row in table]
    named = {word for row in rows for word in str(row["source"]).split()}
    assert named <= set(target.sources)
    unsourced = [row for row in rows if not row["source"]]
    assert unsourced == []


# -- views ---------- --------------------------------------------------------------------------------


@BOTH
def test_description_holds_every_row(target: Target) -> None:
    tables = describe(target)
    assert len(tables["casts"]) == len(target.casts) and len(tables["ops"]) == len(target.ops)
    cast = next(row for row in tables["casts"] if (row["src"], row["dst"]) == ("FP32", "FP16"))
    assert cast["otherwise"] == "rint" and "odd" in str(cast["modes"])


def test_diff() -> None:
    assert diff(A5, A5) == []
    rows = {(row["table"], row["key"], row["field"]): (row["a"], row["b"]) for row in diff(A2A3, A5)}
    assert rows["hardware", "ub_bytes", "value"] == (196608, 262144)
    assert rows["casts", "BF16 FP16", ""] == ("absent", "present")
    assert rows["casts", "FP16 INT4", ""] == ("present", "absent")
    dtypes = rows["ops", "tadd", "dtypes"]
    assert "BF16" not in str(dtypes[0]) and "BF16" in str(dtypes[1])


def test_one_price_row_of_a_variant_leaves_the_other_pairs_of_its_base(tmp_path: Path) -> None:
    path = tmp_path / "slow.toml"
    path.write_text(
        '[target]\nname = "slow"\ntitle = "slow conversions to FP16"\nextends = "a5"\n\n'
        '[[cost]]\nops = "tcvt"\nto = "FP16"\nform = "loop"\nflat = [10.0, 60.0]\nsource = "choice"\n'
    )
    slow, base = load_target(str(path)), load_target("a5")
    half, narrow = (Instr("tcvt", ("FP32", dst), 64, 64, 64) for dst in ("FP16", "BF16"))
    assert cycles(slow, half) > 3 * cycles(base, half)
    assert cycles(slow, narrow) == cycles(base, narrow)
