"""SIMT, target-specific and memory operations in the assembler's text (v0.60), and the stack in MLIR's LLVM dialect."""

from __future__ import annotations

from functools import cache
from typing import Any, ClassVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    region_def,
    var_operand_def,
    var_result_def,
)
from xdsl.printer import Printer
from xdsl.traits import NoTerminator

from ..ir.dtypes import INDEX, INT32, INT64
from ..ir.op import OPS, Kind
from ..ir.ops.simt_collectives import COMBINES
from ..ir.program import Op, Scope
from ..ir.simt import section_grid
from ..ir.types import PtrType, ScalarType
from .mlir_scalars import MlirFunction
from .mlir_values import dtype_type
from .pto.base import type_text


class SimtOp(IRDLOperation):
    """An operation printed by a template: ``{0}`` operands, ``{t0}`` their types, ``{r}`` the result's type."""

    TEMPLATE: ClassVar[str] = ""
    args = var_operand_def()
    res = var_result_def()
    words = opt_prop_def(StringAttr)

    def print(self, printer: Printer) -> None:
        words = self.words.data if self.words is not None else ""
        names = [_text_of(printer, v) for v in self.args]
        types = {f"t{i}": type_text(v.type) for i, v in enumerate(self.args)}
        result = type_text(self.res[0].type) if self.res else ""
        all_names, all_types = ", ".join(names), ", ".join(types.values())
        text = self.TEMPLATE.format(*names, **types, r=result, w=words, all=all_names, types=all_types)
        printer.print_string(text)


def _text_of(printer: Printer, v: SSAValue) -> str:
    from io import StringIO

    kept, out = printer.stream, StringIO()
    printer.stream = out
    printer.print_ssa_value(v)
    printer.stream = kept
    return out.getvalue()


_MEMORY = {
    "load": " {0}[{1}]{w} : {t0} -> {r}", "ldg": " {0}[{1}]{w} : {t0} -> {r}", "load_scalar": " {0}[{1}] : {t0} -> {r}",
    "store": " {0}, {1}[{2}] : {t1}, {t0}", "stg": " {0}, {1}[{2}]{w} : {t1}, {t0}",
    "store_scalar": " {0}, {1}[{2}] : {t1}, {t0}", "addptr": " {0}, {1} : {t0} -> {r}",
}  # fmt: skip


@cache
def _class(name: str, operands: int, results: int) -> type[SimtOp]:
    short = name.removeprefix("pto.")
    template = _MEMORY.get(short)
    if template is None:
        template = (" {all}" if operands else "") + "{w}"
        if operands or results:
            template += " : " + ("{types}" if operands else "") + (" -> " if operands and results else "")
            template += "{r}" if results else ""
    made = type(f"Simt_{short}_{operands}", (SimtOp,), {"name": name})
    defined: Any = irdl_op_definition(made)
    defined.TEMPLATE = template
    return defined  # type: ignore[no-any-return]


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
    if s.name in _STACK or (s.name in ("scalar.load", "scalar.store") and _on_stack(s)):
        return _stack(e, s)
    name = {"scalar.load": "pto.load", "scalar.store": "pto.store"}.get(s.name, s.name)
    decl = OPS[s.name]
    operands = [_operand(e, p.name, p.kind, o, s) for p, o in zip(decl.operand_params, s.operands) if o is not None]
    results = [e.typed(r.type) for r in s.results]
    words = _words(e, name, s)
    cls = _class(name, len(operands), len(results))
    made: Operation = cls.create(
        operands=operands, result_types=results, properties={"words": StringAttr(words)} if words else {}
    )
    e.block.add_op(made)
    return made.results[0] if made.results else None


def _on_stack(s: Op) -> bool:
    return any(isinstance(t := getattr(o, "type", None), PtrType) and t.space == "local" for o in s.operands)


def _stack(e: MlirFunction, s: Op) -> SSAValue | None:
    """The stack in MLIR's LLVM dialect; scalar accesses to it come here too."""
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
    if not stores:
        return e.add(llvm.LoadOp(place, element))
    e.block.add_op(llvm.StoreOp(e.read(s.operands[0], t.dtype), place))
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


def _words(e: MlirFunction, name: str, s: Op) -> str:
    attrs = s.attrs
    if name == "pto.convert":
        parts = [f"round({attrs.get('rounding', 'r')})", attrs.get("saturation", "nosat"), attrs.get("signedness", "")]
        return "".join(f" {p}" for p in parts if p)
    text = "".join(f" {key}({attrs[key]})" for key in ("l1cache", "l2cache") if attrs.get(key))
    if name in _SIGNED:
        t = s.result.type if s.results else None
        if isinstance(t, ScalarType) and t.dtype.is_int:
            text += " signed" if t.dtype.signed else " unsigned"
    if name.startswith("pto.shuffle_"):
        text += f" {{width = {attrs.get('width', 32)} : i32}}"
    if name in ("pto.keep", "pto.resume"):
        text += f" {{slot = {attrs.get('slot', 0)}}}"
    return text


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """``pto.simt_launch @body<<<%x, %y, %z>>>(...) : (...) -> ()``."""

    name = "pto.simt_launch"
    args = var_operand_def()
    callee = opt_prop_def(SymbolRefAttr)

    def print(self, printer: Printer) -> None:
        names = [_text_of(printer, v) for v in self.args]
        types = ", ".join(type_text(v.type) for v in self.args[3:])
        assert self.callee is not None
        target = self.callee.root_reference.data
        printer.print_string(f" @{target}<<<{', '.join(names[:3])}>>>({', '.join(names[3:])}) : ({types}) -> ()")


@irdl_op_definition
class SectionOp(IRDLOperation):
    """``pto.section.simt <<<x, y, z>>> { ... }``, or ``pto.section.vector { ... }``."""

    name = "pto.section"
    kind = opt_prop_def(StringAttr)
    body = region_def()
    traits = lazy_traits_def(lambda: (NoTerminator(),))

    def print(self, printer: Printer) -> None:
        assert self.kind is not None
        printer.print_string(f".{self.kind.data} ")
        printer.print_region(self.body, print_empty_block=False)


def section(e: MlirFunction, s: Scope) -> None:
    """Append an explicit section; a SIMT section must have literal sizes."""
    sizes = section_grid(s.header)
    if sizes is not None:
        if not all(n.isdigit() for n in sizes):
            e.fail("the sizes of a SIMT section must be literals")
        kind = f"simt <<<{', '.join([*sizes, '1', '1'][:3])}>>>"
    elif s.header in ("pl.section_vector()", "pl.section_cube()"):
        kind = s.header.removeprefix("pl.section_").removesuffix("()")
    else:
        e.fail(f"{s.header[:40]!r} has no form here")
    outer, e.block = e.block, Block()
    for inner in s.body.statements:
        e.statement(inner)
    made, e.block = e.block, outer
    e.block.add_op(SectionOp.create(regions=[Region(made)], properties={"kind": StringAttr(kind)}))


def _launch(e: MlirFunction, s: Op) -> None:
    grid, *arguments = s.operands
    sizes = [e.read(o, INT32) for o in grid]  # type: ignore[union-attr]
    sizes += [e.const(1, INT32) for _ in range(3 - len(sizes))]
    given = []
    for o in arguments:
        if o is None:
            continue
        t = getattr(o, "type", None)
        given.append(e.values[o.name] if isinstance(t, PtrType) else e.read(o, e.dtype_of(o)))  # type: ignore[union-attr]
    callee = SymbolRefAttr(str(s.attrs["callee"]))
    e.block.add_op(LaunchOp.create(operands=[*sizes, *given], properties={"callee": callee}))


