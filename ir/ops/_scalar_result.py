"""Result rules of scalar and SIMT operations: operand types against the operation's own record."""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import BOOL, DTYPES, DType
from ..op import Call, ResultRule
from ..program import Const
from ..types import PtrType, ScalarType, Type, scalar
from ._literals import require_literal
from ._result import common_dtype

SIGNED = ("INT8", "INT16", "INT32", "INT64")
UNSIGNED = ("UINT8", "UINT16", "UINT32", "UINT64")
FLOATS = ("FP16", "BF16", "FP32")
INTEGERS = ("INT4", *SIGNED, "UINT4", *UNSIGNED, "INDEX")
NUMBERS = (*INTEGERS, *FLOATS)


def dtype_at(call: Call, i: int) -> DType:
    """Return the dtype of a scalar operand; TG006 for anything else."""
    t = call.type(i)
    if not isinstance(t, ScalarType):
        call.fail("TG006", f"needs scalars, got {t}")
    return t.dtype


def require_listed(call: Call, dtype: DType) -> DType:
    """Check a dtype against the operation's record; TG007 names what it takes."""
    record = call.decl.scalar
    assert record is not None
    takes = (*record.types, *record.packed)
    if dtype.name not in takes:
        what = f"does not take {dtype.name}"
        call.fail("TG007", what, hint=f"it takes {', '.join(takes)}" if takes else "")
    return dtype


def binary(call: Call) -> Type:
    """Two scalars of one listed dtype (literals adapt) -> that dtype."""
    return scalar(require_listed(call, common_dtype(call, 0, 1)))


def bitwise(call: Call) -> Type:
    """As ``binary``; literals may be bit patterns: ``x & 0xFFFFFFFF`` of an INT32."""
    return scalar(require_listed(call, common_dtype(call, 0, 1, patterns=True)))


def comparison(call: Call) -> Type:
    """Two scalars of one listed dtype -> BOOL."""
    require_listed(call, common_dtype(call, 0, 1))
    return scalar(BOOL)


def unary(call: Call) -> Type:
    """One scalar of a listed dtype -> that dtype."""
    return scalar(require_listed(call, dtype_at(call, 0)))


def same(count: int) -> ResultRule:
    """``count`` scalars of exactly one listed dtype -> that dtype (literals adapt to the others)."""

    def rule(call: Call) -> Type:
        found = [dtype_at(call, i) for i in range(count)]
        typed = [d for i, d in enumerate(found) if not isinstance(call.operands[i], Const)] or found
        for d in typed:
            if d is not typed[0]:
                call.fail("TG007", f"operands have dtypes {typed[0].name} and {d.name}", hint="cast one first")
        for i in range(count):
            require_literal(call, i, typed[0])
        return scalar(require_listed(call, typed[0]))

    return rule


def fixed(name: str) -> ResultRule:
    """No operand decides: the result always has one dtype."""
    return lambda call: scalar(DTYPES[name])


def to(name: str, inner: Callable[[Call], Type]) -> ResultRule:
    """Check as ``inner`` does; the result has the named dtype."""

    def rule(call: Call) -> Type:
        inner(call)
        return scalar(DTYPES[name])

    return rule


def pointer_at(call: Call, i: int, spaces: tuple[str, ...]) -> PtrType:
    """Return the pointer type of an operand; TG058 when its space is not one of ``spaces``."""
    t = call.type(i)
    if not isinstance(t, PtrType):
        call.fail("TG006", f"needs a pointer, got {t}")
    if t.space not in spaces:
        reason = f"it works on {' and '.join(spaces)}"
        call.fail("TG058", f"the pointer is in {t.space}", reason=reason, hint=HINTS.get(t.space, ""))
    return t


HINTS = {
    "local": "a fragment on the stack is read and written with pl.llvm.load and pl.llvm.store",
    "ub": "the unified buffer is read and written with pl.pto.load and pl.pto.store",
    "gm": "global memory is read and written with pl.pto.load and pl.pto.store, or ldg and stg in SIMT bodies",
}
