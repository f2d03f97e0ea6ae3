"""SIMT, target-specific and memory operations in the assembler's text (v0.60), and the stack in MLIR's LLVM dialect."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import FlatSymbolRefAttr, StringAttr
from xdsl.ir import Attribute, Block, Region, SSAValue

from ..ir.dtypes import INDEX, INT32, INT64
from ..ir.op import OPS, Call, Kind
from ..ir.ops.simt_collectives import COMBINES
from ..ir.program import Op, Scope
from ..ir.simt import section_grid
from ..ir.types import PtrType, ScalarType, TensorType, Type
from .mlir_scalars import MlirFunction
from .mlir_values import dtype_type, is_packed
from .pto.api import OPS as PTO_OPS
from .pto.simt import number
from .pto.types import PtrSpec
from .pto.types import PtrType as PtoPointer

#: Operations whose integers need a word for their sign.
_SIGNED = frozenset(
    f"pto.{n}" for n in ("redux_max", "redux_min", "mulhi", "mul_i32toi64", "atomic_max", "atomic_min")
)


_STACK = ("llvm.alloca", "llvm.load", "llvm.store")


def is_simt(s: Op) -> bool:
    """Return whether the operation is written here."""
    if s.name in ("scalar.load", "scalar.store", *_STACK):
        return True
    decl = OPS.get(s.name)
    return decl is not None and decl.scalar is not None and s.name.startswith("pto.") and s.name not in COMBINES


def emit_simt(e: MlirFunction, s: Op) -> SSAValue | None:
    """Append the operation; return its result, if it has one."""
    if s.name == "pto.simt_launch":
        _launch(e, s)
        return None
    if s.name in _STACK or (s.name in ("scalar.load", "scalar.store", "pto.addptr") and _on_stack(s)):
        return _stack(e, s)
    name = {"scalar.load": "pto.load", "scalar.store": "pto.store"}.get(s.name, s.name)
    if name in _VECTOR and is_packed(s):
        return _vector(e, s, name)
    decl = OPS[s.name]
    operands = [_operand(e, p.name, p.kind, o, s) for p, o in zip(decl.operand_params, s.operands) if o is not None]
    if name == "pto.store_scalar":
        operands = [operands[1], operands[2], operands[0]]
    given: list[Type | None] = [r.type for r in s.results] or [_unread(s)]
    results = [e.typed(t) for t in given if t is not None]
    made = PTO_OPS[name].create(operands=operands, result_types=results, properties=_properties(name, s))
    return e.add(made)


def _unread(s: Op) -> Type | None:
    """Return the type of a result that nothing reads: the assembler's operations give it all the same."""
    decl = OPS[s.name]
    return decl.result(Call(decl, s.operands, {**decl.defaults, **s.attrs}, s.span))


_VECTOR = ("pto.load", "pto.store", "pto.ldg", "pto.stg")


def _vector(e: MlirFunction, s: Op, name: str) -> SSAValue | None:
    """Two contiguous elements: the pointer moves there and becomes one to pairs."""
    stores = not s.results
    value, ptr, offset = (s.operands[0], *s.operands[1:3]) if stores else (None, *s.operands[:2])
    t = e.typed(s.result.type if s.results else value.type)  # type: ignore[union-attr]
    start = e.values[ptr.name]  # type: ignore[union-attr]
    assert isinstance(start.type, PtoPointer)
    place = e.add(PTO_OPS["pto.addptr"].create(operands=[start, e.read(offset, INDEX)], result_types=[start.type]))
    pairs = PtoPointer(PtrSpec(t, start.type.data.space))
    view = e.add(PTO_OPS["pto.castptr"].create(operands=[place], result_types=[pairs]))
    zero = e.const(0, INDEX)
    operands = [e.read(value, e.dtype_of(value)), view, zero] if stores else [view, zero]
    properties = _properties(name, s)
    return e.add(PTO_OPS[name].create(operands=operands, result_types=[] if stores else [t], properties=properties))


def _on_stack(s: Op) -> bool:
    return any(isinstance(t := getattr(o, "type", None), PtrType) and t.space == "local" for o in s.operands)


def _stack(e: MlirFunction, s: Op) -> SSAValue | None:
    """The stack in MLIR's LLVM dialect; scalar accesses to it come here too."""
    from xdsl.dialects import llvm  # takes long to load, and few programs have a stack

    if s.name == "llvm.alloca":
        element = dtype_type(s.attrs["dtype"])
        if element is None:
            e.fail("the elements have no form here")
        return e.add(llvm.AllocaOp(e.const(int(s.attrs.get("count", 1)), INT64), element))
    stores = s.name.endswith("store")
    ptr, offset = s.operands[1:3] if stores else s.operands[:2]
    t = getattr(ptr, "type", None)
    element = dtype_type(t.dtype) if isinstance(t, PtrType) else None
    if element is None or not isinstance(t, PtrType) or s.attrs.get("contiguous", 1) != 1:
        e.fail("the access has no form here")
    at = e.resized(e.read(offset, INDEX), INDEX, INT64)
    place = e.add(llvm.GEPOp(e.values[ptr.name], [llvm.GEP_USE_SSA_VAL], element, [at]))  # type: ignore[union-attr]
    if s.name == "pto.addptr":
        return place
    if not stores:
        return e.add(llvm.LoadOp(place, element))
    e.add(llvm.StoreOp(e.read(s.operands[0], t.dtype), place))
    return None


def _operand(e: MlirFunction, name: str, kind: Kind, o: Any, s: Op) -> SSAValue:
    if kind is Kind.POINTER:
        if getattr(o, "name", None) not in e.values:
            e.fail("the stack has no form here yet")
        return e.values[o.name]
    if name == "offset":
        return e.read(o, INDEX)
    if name == "by":
        return e.read(o, INT32)
    dtype = e.dtype_of(o)
    pointers = [t for t in (getattr(x, "type", None) for x in s.operands) if isinstance(t, PtrType)]
    if pointers and not dtype.packed_of:
        dtype = pointers[0].dtype
    elif s.results and isinstance(s.result.type, ScalarType) and not hasattr(o, "name"):
        dtype = s.result.type.dtype
    return e.read(o, dtype)


def _properties(name: str, s: Op) -> dict[str, Attribute]:
    """Return the words and numbers an operation carries."""
    attrs, found = s.attrs, dict[str, Attribute]()
    if name == "pto.convert":
        found["rounding"] = StringAttr(str(attrs.get("rounding", "r")))
        found["saturation"] = StringAttr(str(attrs.get("saturation", "nosat")))
        if attrs.get("signedness"):
            found["signedness"] = StringAttr(str(attrs["signedness"]))
    found.update((key, StringAttr(str(attrs[key]))) for key in ("l1cache", "l2cache") if attrs.get(key))
    t = s.result.type if s.results else _unread(s) if name in _SIGNED or name.startswith("pto.atomic_") else None
    if isinstance(t, ScalarType) and t.dtype.is_int and name in _SIGNED:
        found["signedness"] = StringAttr("signed" if t.dtype.signed else "unsigned")
    elif isinstance(t, ScalarType) and t.dtype.kind == "uint" and name.startswith("pto.atomic_"):
        found["signedness"] = StringAttr("unsigned")
    if name.startswith("pto.shuffle_") and attrs.get("width", 32) != 32:
        found["width"] = number(int(attrs["width"]), 32)
    if name in ("pto.keep", "pto.resume"):
        found["slot"] = number(int(attrs.get("slot", 0)))
    return found


def section(e: MlirFunction, s: Scope) -> None:
    """Append an explicit section; a SIMT section must have literal sizes."""
    sizes = section_grid(s.header)
    properties: dict[str, Attribute] = {}
    if sizes is not None:
        if not all(n.isdigit() for n in sizes):
            e.fail("the sizes of a SIMT section must be literals")
        kind, properties["sizes"] = "simt", StringAttr(", ".join([*sizes, "1", "1"][:3]))
    elif s.header in ("pl.section_vector()", "pl.section_cube()"):
        kind = s.header.removeprefix("pl.section_").removesuffix("()")
    else:
        e.fail(f"{s.header[:40]!r} has no form here")
    outer, e.block = e.block, Block()
    for inner in s.body.statements:
        e.statement(inner)
    made, e.block = e.block, outer
    e.at = s
    e.add(PTO_OPS[f"pto.section.{kind}"].create(regions=[Region(made)], properties=properties))


def _launch(e: MlirFunction, s: Op) -> None:
    grid, *arguments = s.operands
    sizes = [e.read(o, INT32) for o in grid]  # type: ignore[union-attr]
    sizes += [e.const(1, INT32) for _ in range(3 - len(sizes))]
    given: list[SSAValue] = []
    for o in arguments:
        if o is None:
            continue
        t = getattr(o, "type", None)
        wanted = e.params.get(str(s.attrs["callee"]), ())
        dtype = wanted[len(given)] if len(given) < len(wanted) else None
        given.append(e.values[o.name] if isinstance(t, PtrType | TensorType) else e.read(o, dtype or e.dtype_of(o)))  # type: ignore[union-attr]
    callee = FlatSymbolRefAttr(str(s.attrs["callee"]))
    e.add(PTO_OPS["pto.simt_launch"].create(operands=[*sizes, *given], properties={"callee": callee}))
