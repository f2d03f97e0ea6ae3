"""Pure scalar functions as LLVM IR text, made without the MLIR emitter so that each can be checked by the other.

    define float @f(float %x, float %y) {
      %m = call float @llvm.maxnum.f32(float %x, float %y)
      ret float %m
    }

What LLVM leaves undefined (zero divisors, shift amounts beyond the width) is guarded, so that the text means what the
language means. The intrinsics are those the operations' records name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NoReturn

from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir.diagnostics import error
from ..ir.dtypes import DType
from ..ir.op import OPS
from ..ir.program import Const, Function, Op, Operand, Return, Value
from ..ir.types import ScalarType, Type
from .llvm_values import literal, llvm_type, suffix


def emit_llvm(f: Function) -> str:
    """Return the LLVM IR module text of a function of scalars: straight-line, with one result or none.

    Raises TG023 for what is no pure scalar code or has no faithful LLVM form.
    """
    return Emitter(f).module()


@dataclass
class Emitter:
    """The text of one function."""

    f: Function
    lines: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    declared: dict[str, None] = field(default_factory=dict)
    count: int = 0
    at: Op | None = None

    def module(self) -> str:
        """Return the module: the function, then the intrinsics it calls."""
        params = []
        for p in self.f.params:
            t = self.scalar(p.value.type)
            self.values[p.value.name] = f"%{p.value.name}"
            params.append(f"{llvm_type(t)} %{p.value.name}")
        result = self.body()
        head = f"define {result} @{self.f.name}({', '.join(params)}) {{"
        text = "\n".join([head, "entry:", *(f"  {line}" for line in self.lines), "}"])
        return "\n\n".join([text, *self.declared]) + "\n"

    def body(self) -> str:
        for s in self.f.body.statements:
            match s:
                case Op():
                    self.at = s
                    self.values[s.result.name] = self.operation(s)
                case Return(operands=()):
                    self.lines.append("ret void")
                    return "void"
                case Return(operands=(o,)):
                    t = llvm_type(self.type_of(o))
                    self.lines.append(f"ret {t} {self.operand(o, self.type_of(o))}")
                    return t
                case _:
                    self.fail("only straight-line code with one result is written as LLVM IR")
        self.lines.append("ret void")
        return "void"

    # -- pieces ------------------------------------------------------------------------------------------

    def fail(self, why: str) -> NoReturn:
        name = f"{self.at.name}: " if self.at is not None else ""
        raise error("TG023", f"{name}{why}", self.at.span if self.at else self.f.span)

    def scalar(self, t: Type | None) -> DType:
        if not isinstance(t, ScalarType) or llvm_type(t.dtype) == "":
            self.fail(f"a {t} has no LLVM type")
        return t.dtype

    def type_of(self, o: Operand) -> DType:
        return self.scalar(getattr(o, "type", None))

    def emit(self, text: str) -> str:
        """Append an instruction and return the name of its result."""
        self.count += 1
        name = f"%v{self.count}"
        while name[1:] in self.values:
            name += "_"
        self.lines.append(f"{name} = {text}")
        return name

    def operand(self, o: Operand, dtype: DType) -> str:
        """Return an operand as a value of a dtype: literals adapt, sizes are widened or cut."""
        if isinstance(o, Const):
            return literal(o.value, dtype)
        if not isinstance(o, Value) or o.name not in self.values:
            self.fail("an operand is no scalar value of the function")
        own = self.scalar(o.type)
        return self.resized(self.values[o.name], own, dtype) if own is not dtype else self.values[o.name]

    def resized(self, x: str, src: DType, dst: DType) -> str:
        """Return the low bits of an integer, or its extension by its own sign."""
        if not (src.is_int and dst.is_int):
            self.fail(f"a {src.name} stands where a {dst.name} is due")
        if src.bits == dst.bits:
            return x
        how = "trunc" if src.bits > dst.bits else "sext" if src.signed else "zext"
        return self.emit(f"{how} {llvm_type(src)} {x} to {llvm_type(dst)}")

    def call(self, intrinsic: str, dtype: DType, *args: str, extra: str = "") -> str:
        """Call an intrinsic overloaded on one type, declaring it."""
        t = llvm_type(dtype)
        types = ", ".join([t] * len(args) + (["i1"] if extra else []))
        self.declared[f"declare {t} @{intrinsic}.{suffix(dtype)}({types})"] = None
        given = ", ".join([*(f"{t} {a}" for a in args), *([f"i1 {extra}"] if extra else [])])
        return self.emit(f"call {t} @{intrinsic}.{suffix(dtype)}({given})")

    def select(self, when: str, t: str, a: str, b: str) -> str:
        return self.emit(f"select i1 {when}, {t} {a}, {t} {b}")

    # -- operations --------------------------------------------------------------------------------------

    def operation(self, s: Op) -> str:
        from .llvm_casts import cast, wrap
        from .llvm_ops import HANDLERS

        if s.name == "scalar.wrap":
            return wrap(self, s)
        if s.name == "scalar.cast":
            return cast(self, s)
        handler = HANDLERS.get(s.name)
        if handler is not None:
            return handler(self, s)
        record = OPS[s.name].scalar if s.name in OPS else None
        if record is None or not s.results:
            self.fail("is no pure scalar operation")
        dtype = self.scalar(s.result.type)
        intrinsic = record.intrinsic(kind_of(dtype))
        if not intrinsic.startswith("llvm.") or ".hivm." in intrinsic:
            self.fail("has no form in plain LLVM IR")
        args = [self.operand(o, dtype) for o in s.operands]
        return self.call(intrinsic, dtype, *args, extra="false" if intrinsic == "llvm.abs" else "")


def kind_of(dtype: DType) -> str:
    """Return the key a record's intrinsics are kept under."""
    return dtype.kind


