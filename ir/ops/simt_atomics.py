"""Atomic operations on global memory and the unified buffer: each gives the element's old value.

Types: assembler v0.60 verifiers; no 64-bit integers in the unified buffer. Threads that meet in one element take
their turns in the order of their numbers in the interpreter; the hardware may take any order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import lazy_numpy as np
from ..classification import Classification
from ..lanes import Arr, larger, settle, smaller
from ..op import Call, Env, Pointer, Scalar, Word, op
from ..pointers import Pointer as Memory
from ..program import Const
from ..types import Type, scalar
from ._literals import require_literal
from ._scalar_result import dtype_at, pointer_at, require_listed
from .simt_memory import L2_STORE

FAMILY = "SIMT atomics"
_WHOLE = ("INT32", "UINT32", "INT64", "UINT64")
_ALL = (*_WHOLE, "FP16", "BF16", "FP32")
_SCOPE = "effects, spaces, policies and signs of its own; elements are scalars, though the assembler takes pairs too"
_OPEN = "the assembler takes scalars outside of SIMT code too; whether the ordinary core has the instruction"


def _record(name: str, types: tuple[str, ...]) -> Classification:
    intrinsic = {"any": f"llvm.hivm.{name}"}
    return Classification(
        "G", "simt", "keep SIMT-only", types, (), "hivm", "", f"pto.{name}", intrinsic, _SCOPE, "", _OPEN
    )


def _type(operands: int, patterns: bool = False) -> Any:
    def rule(call: Call) -> Type:
        t = pointer_at(call, 0, ("gm", "ub"))
        require_listed(call, t.dtype)
        if t.space == "ub" and t.dtype.bits == 64:
            call.fail("TG058", "there are no 64-bit atomics in the unified buffer", hint="use 32 bits, or gm")
        for i in range(1, 1 + operands):
            if dtype_at(call, i) is not t.dtype and not isinstance(call.operands[i], Const):
                call.fail("TG007", f"a {dtype_at(call, i).name} meets {t.dtype.name} elements", hint="cast it first")
            require_literal(call, i, t.dtype, patterns)
        if call.attr("l2cache") not in ("", *L2_STORE):
            hint = f"one of {', '.join(L2_STORE)}"
            call.fail("TG058", f"unknown l2cache policy {call.attr('l2cache')!r}", hint=hint)
        return scalar(t.dtype)

    return rule


Update = Callable[..., Any]


def in_turns(ptr: Memory, env: Any, update: Update, *values: Any) -> Arr:
    """Let active threads update their elements, those of one element in turns; return what each found there.

    Round k handles the k-th thread of every element at once, so that the number of rounds is the largest number of
    threads that meet in one element.
    """
    active: Arr = env.active
    at = ptr.place(np.zeros(active.size, np.int64), active)
    who = np.flatnonzero(active)
    order = who[np.argsort(at[who], kind="stable")]
    new_element = np.ones(order.size, np.bool_)
    new_element[1:] = at[order][1:] != at[order][:-1]
    first = np.maximum.accumulate(np.where(new_element, np.arange(order.size), 0)) if order.size else order
    turn = np.arange(order.size) - first
    wide = [np.broadcast_to(np.asarray(v), active.shape) for v in values]
    old = np.zeros(active.size, np.result_type(*wide, np.float64 if ptr.dtype.is_float else np.int64))
    if not ptr.dtype.is_float:
        old = old.astype(np.uint64 if ptr.dtype.name == "UINT64" else np.int64)
    for k in range(int(turn.max()) + 1 if turn.size else 0):
        now = np.zeros(active.size, np.bool_)
        now[order[turn == k]] = True
        found = ptr.read(np.zeros(active.size, np.int64), now)
        old = np.where(now, found, old)
        ptr.write(np.zeros(active.size, np.int64), settle(update(found, *wide), ptr.dtype), now)
    return old


def _atomic(name: str, types: tuple[str, ...], doc: str, update: Update) -> None:
    def meaning(ptr: Pointer, value: Scalar, *, l2cache: Word = "", env: Env) -> Any:
        return in_turns(ptr, env, update, value)

    meaning.__doc__ = doc
    bits = name.removeprefix("atomic_") in ("and", "or", "xor")
    op(f"pto.{name}", result=_type(1, bits), family=FAMILY, effect="write", target_defined="the order of threads",
       scalar=_record(name, types))(meaning)  # fmt: skip


_atomic("atomic_exch", _ALL, "Put the value there.", lambda old, new: new)
_atomic("atomic_add", _ALL, "Add the value.", lambda old, new: old + new)
_atomic("atomic_sub", _ALL, "Subtract the value.", lambda old, new: old - new)
_atomic("atomic_max", _ALL, "Keep the larger; of a NaN and a number the number.", larger)
_atomic("atomic_min", _ALL, "Keep the smaller; of a NaN and a number the number.", smaller)
_atomic("atomic_and", _WHOLE, "Bitwise and.", lambda old, new: old & new)
_atomic("atomic_or", _WHOLE, "Bitwise or.", lambda old, new: old | new)
_atomic("atomic_xor", _WHOLE, "Bitwise exclusive or.", lambda old, new: old ^ new)


@op("pto.atomic_cas", result=_type(2), family=FAMILY, effect="write", target_defined="the order of threads",
    scalar=_record("atomic_cas", _ALL))  # fmt: skip
def atomic_cas(ptr: Pointer, expected: Scalar, value: Scalar, *, l2cache: Word = "", env: Env) -> Any:
    """Put the value there where the element equals ``expected`` (as numbers)."""
    return in_turns(ptr, env, lambda old, want, new: np.where(old == want, new, old), expected, value)
