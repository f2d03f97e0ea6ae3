"""One operation alone in a function: built for every declared scalar or SIMT operation and dtype."""

from __future__ import annotations

from typing import Any

from tilegg.ir.builder import Builder
from tilegg.ir.dtypes import BOOL, DTYPES, INDEX, INT32, DType
from tilegg.ir.op import OPS, Kind, OpDecl
from tilegg.ir.ops.scalar_target import CONVERSIONS
from tilegg.ir.program import Program
from tilegg.ir.types import PtrType, scalar

RECORDED = tuple(d for d in OPS.values() if d.scalar is not None)
POINTED = tuple(d for d in RECORDED if any(p.kind is Kind.POINTER for p in d.operand_params))
VALUED = tuple(
    d for d in RECORDED
    if d not in POINTED and d.operand_params and d.name not in ("pto.simt_launch",)
)  # fmt: skip
WITHOUT = tuple(d for d in RECORDED if not d.operand_params)
#: Operands that have a dtype of their own, whatever the values have.
_SHUFFLES = ("idx", "up", "down", "bfly")
OWN = {(f"pto.shuffle_{n}", "by"): INT32 for n in _SHUFFLES} | {("scalar.select", "condition"): BOOL}


def attributes(decl: OpDecl, dtype: DType) -> dict[str, Any]:
    """Attributes an operation needs so that only the dtype can be wrong."""
    if decl.name in ("scalar.cast", "scalar.wrap"):
        return {"dtype": INT32}
    if decl.name == "pto.resume":
        return {"dtype": dtype}
    if decl.name != "pto.convert":
        return {}
    goal = next((b for a, b in CONVERSIONS if a == dtype.name), "FP16")
    return convert_words(dtype, DTYPES[goal])


def convert_words(src: DType, dst: DType, rounding: str | None = None) -> dict[str, Any]:
    whole = dst if dst.is_int else src if src.is_int else None
    sign = "" if whole is None else "signed" if whole.signed else "unsigned"
    letters = CONVERSIONS.get((src.name, dst.name), "r")
    saturation = "sat" if dst.is_int else "nosat"
    return {"dtype": dst, "rounding": rounding or letters[0], "saturation": saturation, "signedness": sign}


def alone(decl: OpDecl, dtype: DType, simt: bool, space: str = "gm") -> Program:
    """A function of SIMT or ordinary code with just this operation. Raises what building it raises."""
    b = Builder("f", type="pl.FunctionType.SimtEntry" if simt else "pl.FunctionType.InCore")
    operands: list[Any] = []
    for i, p in enumerate(decl.operand_params):
        if p.kind is Kind.POINTER:
            operands.append(b.param(f"p{i}", PtrType(dtype, space), "InOut"))
        elif p.name == "offset":
            operands.append(b.param(f"i{i}", scalar(INDEX)))
        else:
            operands.append(b.param(f"x{i}", scalar(OWN.get((decl.name, p.name), dtype))))
    kwargs = dict(zip((p.name for p in decl.operand_params), operands)) | attributes(decl, dtype)
    if decl.name == "llvm.alloca":
        kwargs = {"dtype": dtype}
    b.op(decl.name, **kwargs)
    b.ret()
    return b.program()
