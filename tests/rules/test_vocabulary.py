"""Targets and vocabulary: every vector instruction of the assembler is reachable, priced or refused with reasons."""

from __future__ import annotations

import pytest
from tilegg.codegen.pto import api  # noqa: F401  (loads the dialect in order)
from tilegg.codegen.pto.dialect import OPS as PTO_OPS
from tilegg.ir import ops as _ops  # noqa: F401  (registers the operations)
from tilegg.ir.dtypes import DTYPES
from tilegg.ir.op import OPS
from tilegg.rules.cost import Instr, cycles
from tilegg.rules.target import load_target

#: Vector tile instructions of the assembler v0.60 (tconcat..., without synchronisation, matrices and transfers).
_VECTOR = """
tabs tadd taddc taddrelu tadds taddsc tand tands taxpy tci tcmp tcmps tcolargmax tcolargmin tcolexpand tcolexpandadd
tcolexpanddiv tcolexpandexpdif tcolexpandmax tcolexpandmin tcolexpandmul tcolexpandsub tcolmax tcolmin tcolprod
tcolsum tconcat tconcatidx tcvt tdequant tdiv tdivs texp texpands textract tfillpad tfmod tfmods tgather tgatherb
thistogram tinsert tlog tlrelu tmax tmaxs tmin tmins tmov tmrgsort tmul tmuls tneg tnot tor tors tpartadd tpartargmax
tpartargmin tpartmax tpartmin tpartmul tpow tpows tprelu tquant tquant.mx trandom trecip trelu trem trems treshape
trowargmax trowargmin trowexpand trowexpandadd trowexpanddiv trowexpandexpdif trowexpandmax trowexpandmin
trowexpandmul trowexpandsub trowmax trowmin trowprod trowsum trsqrt tscatter tsel tsels tshl tshls tshr tshrs
tsort32 tsqrt tsub tsubc tsubs tsubsc ttrans ttri txor txors mgather mscatter
"""
VECTOR = _VECTOR.split()
#: Instructions that only the instruction set has.
_ISA_ONLY = """
tmuladddst tfusedmuladd tfusedmuladdrelu tsubrelu taddreluconv tsubreluconv tadddeqrelu tpairreducesum
"""
ISA_ONLY = _ISA_ONLY.split()
TARGETS = [load_target("a5"), load_target("a2a3")]


def reachable() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for decl in OPS.values():
        if decl.pto and decl.name.startswith("tile."):
            found.setdefault(decl.pto, []).append(decl.name)
    return found


def test_every_vector_instruction_has_an_operation_and_a_form() -> None:
    names = reachable()
    assert [m for m in VECTOR if m not in names] == []
    assert [m for m in VECTOR if f"pto.{m}" not in PTO_OPS] == []


def test_instructions_of_the_isa_alone_are_declared_with_the_capability_missing() -> None:
    names = reachable()
    for mnemonic in ISA_ONLY:
        assert mnemonic in names and f"pto.{mnemonic}" not in PTO_OPS
        for target in TARGETS:
            info = target.ops[mnemonic]
            assert not info.assembler and info.isa
            for dtype in info.isa:
                verdict = target.legal(mnemonic, dtype)
                assert not verdict.ok and "the assembler has not" in verdict.reason
                # What an assembler that had it would gain can be computed.
                assert cycles(target, Instr(mnemonic, (dtype, dtype), 16, 64, 64)) > 0


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_every_instruction_is_priced_or_refused_with_a_reason(target: object) -> None:
    for mnemonic in VECTOR:
        assert mnemonic in target.ops, mnemonic  # type: ignore[attr-defined]
        if mnemonic == "tcvt":
            continue
        legal = []
        for dtype in DTYPES.values():
            verdict = target.legal(mnemonic, dtype)  # type: ignore[attr-defined]
            if verdict.ok:
                legal.append(dtype.name)
                assert cycles(target, Instr(mnemonic, (dtype.name, dtype.name), 16, 64, 64)) > 0  # type: ignore[arg-type]
            else:
                assert verdict.reason
        if not legal:
            info = target.ops[mnemonic]  # type: ignore[attr-defined]
            assert info.note or info.refusals or not info.isa or not info.asm, mnemonic


def test_fused_is_cheaper_than_apart() -> None:
    """What makes the declared instructions worth having: a multiply-add against a product and a sum."""
    for target in TARGETS:
        parts = sum(cycles(target, Instr(m, ("FP32", "FP32"), 64, 64, 64)) for m in ("tmul", "tadd"))
        assert cycles(target, Instr("tmuladddst", ("FP32",) * 4, 64, 64, 64)) < parts
        apart = sum(cycles(target, Instr(m, ("FP32", "FP32"), 64, 64, 64)) for m in ("tmuls", "tadd"))
        assert cycles(target, Instr("taxpy", ("FP32", "FP32", "FP32"), 64, 64, 64)) < apart


def test_microscaling_by_target() -> None:
    a5, a2a3 = TARGETS
    assert a5.legal("tquant.mx", "FP32") and a5.legal("tmov", "UINT8", to="zz")
    assert "A5 only" in a2a3.legal("tquant.mx", "FP32").reason
    assert not a2a3.legal("tmov", "UINT8", to="zz") and a2a3.legal("tmov", "UINT8", to="vec")
    assert not a5.legal("tquant.mx", "BF16", scale_alg="nv", group_axis="1")
    assert a5.legal("tquant.mx", "BF16", scale_alg="nv", group_axis="0")
    assert a5.legal("tquant.mx", "FP32", scale_alg="nv", group_axis="1")
