"""The assembler's SIMT level read back: every operation by its own name, with the words it carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import Operation

from ..ir import program as ir
from ..ir.dtypes import DTYPES, INDEX, INT32, INT64
from ..ir.types import PtrType, scalar
from .pto.elements import spell
from .pto.simt import QUERIES, SYNCS, VALUE_ROWS, number_of
from .pto.simt_convert import typed
from .pto.simt_memory import ATOMICS
from .reading import FunctionReader, dtype_of
from .reading_pointers import Pairs

Handler = Callable[[FunctionReader, Any], None]
#: Queries whose words are masks and counters.
_UNSIGNED = frozenset(n for n in QUERIES if n.startswith("get_lanemask_") or n == "get_clock32")


def _query(r: FunctionReader, op: Operation) -> None:
    name = op.name.removeprefix("pto.")
    dtype = INT64 if QUERIES[name] == 64 else DTYPES["UINT32"] if name in _UNSIGNED else INT32
    r.define(op.results[0], op.name, [], scalar(dtype))


def _value(r: FunctionReader, op: Operation) -> None:
    """Votes, shuffles, reductions and mathematics; a sign word decides about integers."""
    unsigned = r.word(op, "signedness") == "unsigned"
    signed = bool(r.word(op, "signedness"))
    operands = [r.with_sign(x, unsigned) if signed else r.value(x) for x in op.operands]
    shuffle = op.name.startswith("pto.shuffle_")
    if shuffle:
        operands[1] = r.as_dtype(op.operands[1], INT32)
    given = dtype_of(op.results[0].type, unsigned)
    if not signed and op.results[0].type == op.operands[0].type:
        given = r.dtype(op.operands[0])
        # Without a word all integers are of the first one's dtype.
        operands = [
            o if i and shuffle else r.as_dtype(x, given) for i, (x, o) in enumerate(zip(op.operands, operands))
        ]
    if op.name == "pto.vote_ballot":
        given = DTYPES["UINT32"]
    if given is None:
        r.fail(f"{op.name} gives a {spell(op.results[0].type)}")
    lanes = number_of(op.properties.get("width"), 32)
    r.define(op.results[0], op.name, operands, scalar(given), {"width": lanes} if lanes != 32 else {})


def _convert(r: FunctionReader, op: Operation) -> None:
    sign = r.word(op, "signedness")
    (x,) = op.operands
    dtype = typed(spell(op.results[0].type), sign)
    if dtype is None:
        r.fail(f"pto.convert gives a {spell(op.results[0].type)}")
    own = typed(spell(x.type), sign)
    attrs: dict[str, Any] = {"dtype": dtype}
    for key, usual in (("rounding", "r"), ("saturation", "nosat"), ("signedness", "")):
        word = r.word(op, key, usual)
        if word != usual:
            attrs[key] = word
    r.define(op.results[0], "pto.convert", [r.as_dtype(x, own) if own else r.value(x)], scalar(dtype), attrs)


# -- memory ------------------------------------------------------------------------------------------------------


def _place(r: FunctionReader, ptr: Any, at: Any) -> tuple[ir.Value, ir.Operand, int]:
    """Return the pointer to elements, the offset in elements, and how many an access covers."""
    found = r.known.get(ptr)
    offset = r.as_dtype(at, INDEX)
    if not isinstance(found, Pairs):
        return r.value(ptr), offset, 1
    if isinstance(offset, ir.Const) and offset.value == 0:
        return found.base, found.offset, 2
    double = r.made("scalar.mul", [offset, ir.Const(2, INDEX)], scalar(INDEX))
    return found.base, r.made("scalar.add", [found.offset, double], scalar(INDEX)), 2


def _policy(r: FunctionReader, op: Operation) -> dict[str, Any]:
    return {key: word for key in ("l1cache", "l2cache") if (word := r.word(op, key))}


def _load(r: FunctionReader, op: Operation) -> None:
    base, offset, count = _place(r, *op.operands)
    t = base.type
    assert isinstance(t, PtrType)
    dtype = t.dtype if count == 1 else DTYPES[f"{t.dtype.name}X2"]
    attrs: dict[str, Any] = _policy(r, op)
    if count != 1:
        attrs["contiguous"] = count
    r.define(op.results[0], op.name, [base, offset], scalar(dtype), attrs)


def _store(r: FunctionReader, op: Operation) -> None:
    value, ptr, at = op.operands if op.name != "pto.store_scalar" else (op.operands[2], *op.operands[:2])
    base, offset, count = _place(r, ptr, at)
    t = base.type
    assert isinstance(t, PtrType)
    stored = r.as_dtype(value, t.dtype) if count == 1 else r.value(value)
    r.made(op.name, [stored, base, offset], None, _policy(r, op))


def _addptr(r: FunctionReader, op: Operation) -> None:
    base = r.value(op.operands[0])
    r.define(op.results[0], "pto.addptr", [base, r.as_dtype(op.operands[1], INDEX)], base.type)


def _castptr(r: FunctionReader, op: Operation) -> None:
    """A pointer to pairs, from one to elements; other casts change what memory holds."""
    base = r.value(op.operands[0])
    element = dtype_of(op.results[0].type.element) if "ptr" in spell(op.results[0].type) else None  # type: ignore[attr-defined]
    own = base.type.dtype if isinstance(base.type, PtrType) else None
    if element is not None and own is not None and element.packed_of == own.name:
        r.known[op.results[0]] = Pairs(base, ir.Const(0, INDEX))
    elif element is not None and own is not None and element.bits == own.bits and element.is_int and own.is_int:
        r.known[op.results[0]] = base
    else:
        r.fail("pto.castptr to another element cannot be read", "memory of the language holds one dtype")


def _atomic(r: FunctionReader, op: Operation) -> None:
    base, *values = op.operands
    ptr = r.value(base)
    t = ptr.type
    if not isinstance(t, PtrType):
        r.fail(f"{op.name} needs a pointer")
    if r.word(op, "signedness") == "signed" and not t.dtype.signed:
        r.fail(f"{op.name} takes the elements as signed, another operation as unsigned")
    operands = [ptr, *(r.as_dtype(v, t.dtype) for v in values)]
    r.define(op.results[0], op.name, operands, scalar(t.dtype), _policy(r, op))


# -- state -------------------------------------------------------------------------------------------------------


def _sync(r: FunctionReader, op: Operation) -> None:
    r.made(op.name, [], None)


def _slot(op: Operation) -> dict[str, Any]:
    slot = number_of(op.properties.get("slot"), 0)
    return {"slot": slot} if slot else {}


def _keep(r: FunctionReader, op: Operation) -> None:
    r.made("pto.keep", [r.value(op.operands[0])], None, _slot(op))


def _resume(r: FunctionReader, op: Operation) -> None:
    dtype = dtype_of(op.results[0].type)
    if dtype is None:
        r.fail(f"pto.resume gives a {spell(op.results[0].type)}")
    r.define(op.results[0], "pto.resume", [], scalar(dtype), {"dtype": dtype, **_slot(op)})


def _core(r: FunctionReader, op: Operation) -> None:
    """Queries of the running core, a size in the language."""
    name = op.name.replace("pto.", "tile.")
    found = r.made(name, [], scalar(INDEX))
    r.define(op.results[0], "scalar.wrap", [found], scalar(INT64), {"dtype": INT64})


SIMT: dict[str, Handler] = {
    **{f"pto.{n}": _query for n in QUERIES},
    **{f"pto.{row.name}": _value for row in VALUE_ROWS},
    "pto.convert": _convert,
    **{f"pto.{n}": _load for n in ("load", "ldg", "load_scalar")},
    **{f"pto.{n}": _store for n in ("store", "stg", "store_scalar")},
    "pto.addptr": _addptr,
    "pto.castptr": _castptr,
    **{f"pto.atomic_{n}": _atomic for n in ATOMICS},
    **{f"pto.{n}": _sync for n in SYNCS},
    "pto.keep": _keep,
    "pto.resume": _resume,
    **{f"pto.get_{n}": _core for n in ("block_idx", "block_num", "subblock_idx")},
}
