"""Every scalar and SIMT operation, dtype and domain: accepted or refused exactly as its record says."""

import sys
from pathlib import Path

import pytest
from tilegg.ir.builder import Builder
from tilegg.ir.classification import CONCLUSIONS, DOMAINS, GROUPS
from tilegg.ir.diagnostics import TileggError
from tilegg.ir.dtypes import DTYPES, FP32, INT32
from tilegg.ir.op import OPS
from tilegg.ir.ops.scalar_target import CONVERSIONS, ROUNDINGS
from tilegg.ir.text import parse, print_program
from tilegg.ir.types import scalar
from tilegg.ir.verify import verify

sys.path.insert(0, str(Path(__file__).parent))
from scalar_samples import OWN, POINTED, RECORDED, VALUED, WITHOUT, alone, convert_words

#: What the assembler's own verifiers (v0.60) take, written down apart from the declarations.
ASSEMBLER = {
    "pto.absf": "FP16 FP32 FP16X2 BF16X2", "pto.sqrt": "FP16 FP32 FP16X2", "pto.exp": "FP16 FP32 FP16X2",
    "pto.log": "FP16 FP32 FP16X2", "pto.pow": "FP16 FP32 FP16X2", "pto.ceil": "FP16 FP32 BF16",
    "pto.floor": "FP16 FP32 BF16", "pto.rint": "FP16 FP32 BF16", "pto.round": "FP16 FP32 BF16",
    "pto.fmax": "FP16 FP32 BF16 FP16X2 BF16X2", "pto.fmin": "FP16 FP32 BF16 FP16X2 BF16X2",
    "pto.fma": "FP16 FP32 BF16 FP16X2 BF16X2", "pto.mulhi": "INT32 UINT32 INT64 UINT64",
    "pto.mul_i32toi64": "INT32 UINT32", "pto.prmt": "INT32 UINT32", "pto.redux_add": "INT32 UINT32 FP16 FP32",
    "pto.redux_max": "INT32 UINT32 FP16 FP32", "pto.vote_all": "BOOL", "pto.vote_ballot": "BOOL",
    "pto.shuffle_up": "INT32 UINT32 INT64 UINT64 FP16 FP32 FP16X2",
    "pto.atomic_add": "INT32 UINT32 INT64 UINT64 FP16 BF16 FP32", "pto.atomic_and": "INT32 UINT32 INT64 UINT64",
}  # fmt: skip
#: Operations that need SIMT threads, and those that must stand outside of them.
SIMT_ONLY = {f"pto.{n}" for n in ("ldg", "stg", "keep", "resume", "syncthreads", "threadfence", "threadfence_block")}
SIMT_STEMS = ("pto.get_", "pto.vote_", "pto.shuffle_", "pto.redux_", "pto.simt_allreduce_", "pto.atomic_")
ORDINARY_ONLY = {"pto.simt_launch", "pto.load_scalar", "pto.store_scalar"}


def expected_domain(name):
    if name in ORDINARY_ONLY:
        return "ordinary"
    return "simt" if name in SIMT_ONLY or name.startswith(SIMT_STEMS) else "anywhere"


def codes(make):
    try:
        return [d.code for d in verify(make())]
    except TileggError as problem:
        return [d.code for d in problem.diagnostics]


def wanted(decl, dtype, simt):
    """The code a lone operation must be refused with, or none."""
    if dtype.name not in (*decl.scalar.types, *decl.scalar.packed):
        return ["TG007"]
    domain = expected_domain(decl.name)
    return ["TG055"] if domain == "simt" and not simt else ["TG056"] if domain == "ordinary" and simt else []


def test_the_records_say_what_the_assembler_takes():
    for name, types in ASSEMBLER.items():
        record = OPS[name].scalar
        assert set(types.split()) == {*record.types, *record.packed}, name
    for decl in RECORDED:
        assert decl.scalar.domain == expected_domain(decl.name), decl.name
        assert decl.scalar.domain in DOMAINS
        if decl.scalar.group:
            assert decl.scalar.conclusion in CONCLUSIONS and decl.scalar.group in GROUPS
    assert {d.scalar.group for d in RECORDED} == {"", *GROUPS}


def test_the_four_columns_do_not_follow_from_each_other():
    table = {d.name: d.scalar for d in RECORDED}
    assert table["pto.fma"].packed and table["pto.fma"].domain == "anywhere" and not table["pto.fma"].section
    assert table["pto.prmt"].capability and table["pto.prmt"].domain == "anywhere" and not table["pto.prmt"].section
    assert table["pto.ldg"].domain == "simt" and not table["pto.ldg"].section
    assert table["pto.vote_all"].section == "simt" and not table["pto.vote_all"].packed
    assert {r.section for r in table.values()} == {"", "simt"}


@pytest.mark.parametrize("decl", VALUED, ids=lambda d: d.name)
def test_every_dtype_of_a_value_operation(decl):
    seen = set()
    for dtype in DTYPES.values():
        if dtype.name in ("HF4", "TASK_ID"):
            continue
        for simt in (False, True):
            found = wanted(decl, dtype, simt)
            assert codes(lambda: alone(decl, dtype, simt)) == found, (dtype, simt)  # noqa: B023
            seen.add(bool(found))
    assert False in seen


@pytest.mark.parametrize("decl", POINTED, ids=lambda d: d.name)
def test_every_space_of_a_memory_operation(decl):
    spaces = {"gm": {"gm"}, "load": {"gm", "ub"}, "any": {"gm", "ub", "local"}, "local": {"local"}}[
        "any" if decl.name.startswith("scalar.") or decl.name == "pto.addptr"
        else "local" if decl.name.startswith("llvm.")
        else "load" if decl.name in ("pto.load", "pto.store") or decl.name.startswith("pto.atomic")
        else "gm"
    ]  # fmt: skip
    for space in ("gm", "ub", "local"):
        for simt in (False, True):
            want = wanted(decl, FP32 if "FP32" in decl.scalar.types else INT32, simt) if space in spaces else ["TG058"]
            dtype = FP32 if "FP32" in decl.scalar.types else INT32
            assert codes(lambda: alone(decl, dtype, simt, space)) == want, (space, simt)  # noqa: B023
    if decl.name.startswith("pto.atomic"):
        assert codes(lambda: alone(decl, DTYPES["INT64"], True, "ub")) == ["TG058"]
        assert codes(lambda: alone(decl, DTYPES["INT64"], True, "gm")) == []
        assert codes(lambda: alone(decl, DTYPES["INT8"], True, "gm")) == ["TG007"]


@pytest.mark.parametrize("decl", WITHOUT, ids=lambda d: d.name)
def test_operations_without_operands(decl):
    for simt in (False, True):
        want = ["TG055"] if expected_domain(decl.name) == "simt" and not simt else []
        assert codes(lambda: alone(decl, INT32, simt)) == want  # noqa: B023


def test_every_conversion_and_rounding():
    names = sorted({n for pair in CONVERSIONS for n in pair} | {"INT8", "INT16"})
    accepted = 0
    for a in names:
        for b in names:
            for letter in ROUNDINGS:
                src, dst = DTYPES[a], DTYPES[b]
                build = Builder("f")
                x = build.param("x", scalar(src))
                legal = letter in CONVERSIONS.get((a, b), "")
                try:
                    build.pto.convert(x, **convert_words(src, dst, letter))
                except TileggError as problem:
                    assert not legal and problem.diagnostics[0].code in ("TG004", "TG007"), (a, b, letter)
                else:
                    assert legal, (a, b, letter)
                    accepted += 1
    assert accepted == sum(map(len, CONVERSIONS.values())) == 188


@pytest.mark.parametrize(
    "words, code",
    [
        ({"saturation": "nosat"}, "TG004"), ({"signedness": ""}, "TG004"), ({"signedness": "unsigned"}, "TG004"),
        ({"rounding": "o"}, "TG004"), ({"rounding": "q"}, "TG004"), ({"saturation": "maybe"}, "TG004"), ({}, None),
    ],
)  # fmt: skip
def test_the_words_of_a_conversion_to_integers(words, code):
    b = Builder("f")
    x = b.param("x", scalar(FP32))
    given = {"dtype": INT32, "rounding": "z", "saturation": "sat", "signedness": "signed", **words}
    if code is None:
        assert b.pto.convert(x, **given).type == scalar(INT32)
        return
    with pytest.raises(TileggError) as caught:
        b.pto.convert(x, **given)
    assert caught.value.diagnostics[0].code == code


def test_floats_alone_take_no_signedness():
    b = Builder("f")
    x = b.param("x", scalar(FP32))
    with pytest.raises(TileggError, match="signedness is 'signed' where '' is due"):
        b.pto.convert(x, DTYPES["FP16"], signedness="signed")


def test_every_operation_is_written_and_read():
    count = 0
    for decl in RECORDED:
        for name in (*decl.scalar.types[:2], *decl.scalar.packed[:1]) or ("INT32",):
            if decl.name in ("pto.simt_launch",):
                continue
            space = "local" if decl.name.startswith("llvm.") else "gm"
            program = alone(decl, DTYPES[name], decl.scalar.domain == "simt", space)
            assert parse(print_program(program)) == program
            count += 1
    assert count > 200 and OWN


def test_every_kept_form_says_what_to_write():
    for decl in RECORDED:
        record = decl.scalar
        kept = record.conclusion == "compatible, then deprecated"
        assert kept == bool(record.instead), decl.name
        if kept:
            plain = OPS[record.instead].scalar
            assert plain.conclusion in ("keep scalar", "keep both") and set(record.types) <= set(plain.types)
        # What lowering produces is no interface.
        assert record.conclusion in CONCLUSIONS or not record.group


def test_nothing_is_left_without_a_conclusion():
    """Where documents and assembler decide, the table does; what only hardware can tell is said in words."""
    assert not [d.name for d in RECORDED if d.scalar.conclusion == "needs verification"]
    still = {d.name for d in RECORDED if d.scalar.open}
    assert {"pto.fma", "pto.ceil", "pto.atomic_add"} <= still and all(n.startswith("pto.") for n in still)
