"""Loads and stores of scalars by address space.

Global memory and the unified buffer stay pointers of the assembler (``pto.load``, ``pto.store``, in any function);
the stack is LLVM's (``llvm.alloca``, ``llvm.load``, ``llvm.store``). ``scalar.load`` and ``scalar.store`` are the plain
interface over both. ``ldg`` and ``stg`` add cache policies, for global memory in SIMT bodies only.
"""

from __future__ import annotations

from typing import Any

from .. import lazy_numpy as np
from ..classification import Classification, Conclusion
from ..dtypes import DTYPES
from ..lanes import Arr
from ..op import Call, DTypeAttr, Env, Int, Pointer, Scalar, Word, op
from ..pointers import Pointer as Memory
from ..program import Const
from ..types import PtrType, Type, scalar
from ._literals import require_literal
from ._scalar_result import FLOATS, SIGNED, UNSIGNED, dtype_at, pointer_at

FAMILY = "scalar memory operations"
_ELEMENTS = (*SIGNED, *UNSIGNED, *FLOATS)
L1 = ("cache", "uncache")
#: Level-2 cache policies of loads, and of stores and atomics (assembler v0.60).
L2_LOAD = (
    "nmfv", "nmlv", "nmprs", "nmpref", "nakeep", "naclean", "nadrop", "idsfv", "idslv", "idsprs", "idspref", "exfv",
    "exlv", "exprs", "expref",
)  # fmt: skip
L2_STORE = (
    "nmfv", "nmlv", "nmprs", "nmred", "naci", "napw", "napi", "nared", "wbhfv", "wbhlv", "wbhprs", "wbhred", "wtsfv",
    "wtslv", "wtsprs", "wtsred",
)  # fmt: skip
_DEVICE = ("gm", "ub")


def _record(
    domain: Any, conclusion: Conclusion, vpto: str, intrinsic: str, note: str = "", capability: str = ""
) -> Classification:
    return Classification("F", domain, conclusion, _ELEMENTS, (), capability, "", vpto, {"any": intrinsic}, note)


def _index(call: Call, i: int) -> None:
    if not dtype_at(call, i).is_int:
        call.fail("TG007", f"the offset is {dtype_at(call, i).name}", hint="offsets count elements: use INDEX")


def _loaded(call: Call, t: PtrType) -> Type:
    """Return the element type, or the packed pair of two contiguous elements."""
    _index(call, 1)
    count = call.attrs.get("contiguous", call.decl.defaults.get("contiguous", 1))
    if count == 1:
        return scalar(t.dtype)
    name = f"{t.dtype.name}X{count}"
    if name not in DTYPES:
        known = ", ".join(d.packed_of for d in DTYPES.values() if d.packed_of)
        call.fail("TG007", f"there is no type of {count} contiguous {t.dtype.name}", hint=f"pairs of {known} exist")
    return scalar(DTYPES[name])


def _stored(call: Call, t: PtrType) -> None:
    value = dtype_at(call, 0)
    _index(call, 2)
    if value is not t.dtype and value.packed_of != t.dtype.name and not isinstance(call.operands[0], Const):
        call.fail("TG007", f"a {value.name} is stored where {t.dtype.name} elements are", hint="cast it first")
    require_literal(call, 0, t.dtype)


def _load_in(*spaces: str) -> Any:
    return lambda call: _loaded(call, pointer_at(call, 0, spaces))


def _store_in(*spaces: str) -> Any:
    def rule(call: Call) -> Type | None:
        _stored(call, pointer_at(call, 1, spaces))
        return None

    return rule


def _read(ptr: Memory, offset: Any, env: Env, count: int = 1) -> Any:
    active: Arr | None = getattr(env, "active", None)
    parts = [ptr.read(offset + i, active) for i in range(count)]
    return parts[0] if count == 1 else np.stack([np.asarray(p) for p in parts], -1)


def _write(value: Any, ptr: Memory, offset: Any, env: Env) -> None:
    active: Arr | None = getattr(env, "active", None)
    packed = bool(env.types[0].dtype.packed_of)
    for i in range(2 if packed else 1):
        ptr.write(offset + i, np.asarray(value)[..., i] if packed else value, active)


# -- the plain interface ----------------------------------------------------------------------------------------

_LAYERED = "becomes pto.load/store on gm and ub, llvm.load/store on the stack"


@op("scalar.load", result=_load_in("gm", "ub", "local"), family=FAMILY, effect="read",
    scalar=_record("anywhere", "keep scalar", "pto.load or llvm.load", "load", _LAYERED))  # fmt: skip
def scalar_load(ptr: Pointer, offset: Scalar, *, contiguous: Int = 1, env: Env) -> Any:
    """One element, or ``contiguous`` of them, at ``offset`` elements."""
    return _read(ptr, offset, env, contiguous)


@op("scalar.store", result=_store_in("gm", "ub", "local"), family=FAMILY, effect="write",
    scalar=_record("anywhere", "keep scalar", "pto.store or llvm.store", "store", _LAYERED))  # fmt: skip
def scalar_store(value: Scalar, ptr: Pointer, offset: Scalar, *, env: Env) -> Any:
    """Write one element, or the pair that a packed value is."""
    _write(value, ptr, offset, env)


# -- pointers of the assembler ----------------------------------------------------------------------------------

_ANYWHERE = "plain access through the assembler's pointers; the address space is kept to the last step"


@op("pto.load", result=_load_in(*_DEVICE), family=FAMILY, effect="read",
    scalar=_record("anywhere", "keep both", "pto.load", "load", _ANYWHERE))  # fmt: skip
def load(ptr: Pointer, offset: Scalar, *, contiguous: Int = 1, env: Env) -> Any:
    """Read global memory or the unified buffer."""
    return _read(ptr, offset, env, contiguous)


@op("pto.store", result=_store_in(*_DEVICE), family=FAMILY, effect="write",
    scalar=_record("anywhere", "keep both", "pto.store", "store", _ANYWHERE))  # fmt: skip
def store(value: Scalar, ptr: Pointer, offset: Scalar, *, env: Env) -> Any:
    """Write global memory or the unified buffer."""
    _write(value, ptr, offset, env)


@op("pto.load_scalar", result=_load_in("gm"), family=FAMILY, effect="read",
    scalar=_record("ordinary", "keep target-specific", "pto.load_scalar", "load", "the scalar unit's own access"))
def load_scalar(ptr: Pointer, offset: Scalar, *, env: Env) -> Any:
    """Read global memory through the scalar unit."""
    return _read(ptr, offset, env)


@op("pto.store_scalar", result=_store_in("gm"), family=FAMILY, effect="write",
    scalar=_record("ordinary", "keep target-specific", "pto.store_scalar", "store", "the scalar unit's own access"))
def store_scalar(value: Scalar, ptr: Pointer, offset: Scalar, *, env: Env) -> Any:
    """Write global memory through the scalar unit."""
    _write(value, ptr, offset, env)


def _moved(call: Call) -> Type:
    _index(call, 1)
    return pointer_at(call, 0, ("gm", "ub", "local"))


@op("pto.addptr", result=_moved, family=FAMILY, effect="address",
    scalar=_record("anywhere", "keep target-specific", "pto.addptr", "getelementptr"))  # fmt: skip
def addptr(ptr: Pointer, offset: Scalar) -> Any:
    """The pointer ``offset`` elements further."""
    return ptr.moved(offset)


# -- cache policies ---------------------------------------------------------------------------------------------

_POLICY = "cache policies, global memory, SIMT bodies only"


def _policy(call: Call, l2: tuple[str, ...]) -> None:
    for name, known in (("l1cache", L1), ("l2cache", l2)):
        if call.attr(name) not in ("", *known):
            call.fail("TG058", f"unknown {name} policy {call.attr(name)!r}", hint=f"one of {', '.join(known)}")


def _ldg_type(call: Call) -> Type:
    _policy(call, L2_LOAD)
    return _loaded(call, pointer_at(call, 0, ("gm",)))


def _stg_type(call: Call) -> Type | None:
    _policy(call, L2_STORE)
    _stored(call, pointer_at(call, 1, ("gm",)))
    return None


@op("pto.ldg", result=_ldg_type, family=FAMILY, effect="read",
    scalar=_record("simt", "keep both", "pto.ldg", "llvm.hivm.ldg", _POLICY, "hivm"))  # fmt: skip
def ldg(
    ptr: Pointer, offset: Scalar, *, l1cache: Word = "", l2cache: Word = "", contiguous: Int = 1, env: Env
) -> Any:  # fmt: skip
    """Read global memory with a cache policy (cache, uncache; nmfv ...): ``contiguous`` elements as one value."""
    return _read(ptr, offset, env, contiguous)


@op("pto.stg", result=_stg_type, family=FAMILY, effect="write",
    scalar=_record("simt", "keep both", "pto.stg", "llvm.hivm.stg", _POLICY, "hivm"))  # fmt: skip
def stg(value: Scalar, ptr: Pointer, offset: Scalar, *, l1cache: Word = "", l2cache: Word = "", env: Env) -> Any:
    """Write global memory with a cache policy."""
    _write(value, ptr, offset, env)


# -- the stack --------------------------------------------------------------------------------------------------

_STACK = "a fragment on the stack of the function, or of each thread"


def _alloca_type(call: Call) -> Type:
    dtype = call.attr("dtype")
    if call.attr("count") < 1 or not dtype.is_numeric:
        call.fail("TG004", f"{call.attr('count')} elements of {dtype.name}", hint="at least one, of a numeric dtype")
    return PtrType(dtype, "local")


@op("llvm.alloca", result=_alloca_type, family=FAMILY, effect="alloc",
    scalar=_record("anywhere", "keep scalar", "llvm.alloca", "alloca", _STACK))  # fmt: skip
def alloca(dtype: DTypeAttr, count: Int = 1, *, env: Env) -> Any:
    """Memory for ``count`` elements, zero here and undefined in hardware."""
    threads = getattr(env, "threads", None)
    shape = (count,) if threads is None else (threads.count, count)
    return Memory(np.zeros(shape, dtype.storage), dtype)


@op("llvm.load", result=_load_in("local"), family=FAMILY, effect="read",
    scalar=_record("anywhere", "keep scalar", "llvm.load", "load", _STACK))  # fmt: skip
def llvm_load(ptr: Pointer, offset: Scalar, *, env: Env) -> Any:
    """Read the stack."""
    return _read(ptr, offset, env)


@op("llvm.store", result=_store_in("local"), family=FAMILY, effect="write",
    scalar=_record("anywhere", "keep scalar", "llvm.store", "store", _STACK))  # fmt: skip
def llvm_store(value: Scalar, ptr: Pointer, offset: Scalar, *, env: Env) -> Any:
    """Write the stack."""
    _write(value, ptr, offset, env)
