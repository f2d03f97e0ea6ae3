"""Scalar and SIMT functions as MLIR through xDSL: ``arith``, ``scf``, LLVM intrinsics, the assembler's SIMT operations.

Made without the LLVM IR emitter; both take instructions and intrinsics from the operations' records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any, NoReturn

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.printer import Printer

from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir import program as ir
from ..ir.diagnostics import error
from ..ir.domains import is_entry
from ..ir.dtypes import BOOL, INDEX, INT64, DType
from ..ir.op import OPS
from ..ir.types import ScalarType
from .mlir_values import INDEX_TYPE, constant, dtype_type, intrinsic, mlir_type, named, parameters
from .pto.api import location_of


def emit_mlir(program: ir.Program | ir.Function) -> str:
    """Return the MLIR module text of scalar and SIMT functions. Raises TG023 for what has no form there."""
    functions = (program,) if isinstance(program, ir.Function) else program.functions
    params = parameters(functions)
    module = ModuleOp([MlirFunction(f, params).build() for f in functions])
    out = StringIO()
    Printer(stream=out).print_op(module)
    return out.getvalue() + "\n"


class MlirFunction:
    """Builds one function."""

    def __init__(self, f: ir.Function, params: Mapping[str, tuple[DType | None, ...]]) -> None:
        self.f = f
        #: Dtypes of the parameters of the functions of the module.
        self.params = params
        self.values: dict[str, SSAValue] = {}
        self.block = Block()
        self.at: Any = None
        self._constants: dict[tuple[Block, str, str], SSAValue] = {}

    def fail(self, why: str) -> NoReturn:
        name = f"{self.at.name}: " if isinstance(self.at, ir.Op) else ""
        raise error("TG023", f"{name}{why}", getattr(self.at, "span", None) or self.f.span)

    def build(self) -> Operation:
        types = [self.typed(p.value.type) for p in self.f.params]
        self.block = Block(arg_types=types)
        for p, a in zip(self.f.params, self.block.args):
            a.name_hint = p.value.name
            self.values[p.value.name] = a
        results = self.statements(self.f.body, top=True)
        kind = ([a.type for a in self.block.args], results)
        made = func.FuncOp(self.f.name, kind, Region(self.block))
        if is_entry(self.f):
            made.attributes["pto.simt_entry"] = UnitAttr()
        if self.f.span is not None:
            made.location = location_of(self.f.span)
        return made

    # -- pieces ------------------------------------------------------------------------------------------

    def typed(self, t: Any) -> Attribute:
        found = mlir_type(t)
        if found is None:
            self.fail(f"a {t} has no form here")
        return found

    def add(self, op: Operation) -> SSAValue:
        """Append an operation, with the place of the statement it is for, and return its result."""
        span = getattr(self.at, "span", None)
        if span is not None:
            op.location = location_of(span)
        self.block.add_op(op)
        return op.results[0] if op.results else None  # type: ignore[return-value]

    def named(self, results: Iterable[ir.Value], values: Iterable[SSAValue]) -> None:
        """Let results be known by their names."""
        for r, v in zip(results, values):
            v.name_hint = r.name
            self.values[r.name] = v

    def const(self, value: int | float | bool, dtype: DType) -> SSAValue:
        """Return a literal, made once in a block."""
        key = (self.block, repr(value), dtype.name)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = self.add(constant(value, dtype))
        return found

    def dtype_of(self, o: Any) -> DType:
        t = getattr(o, "type", None)
        if not isinstance(t, ScalarType):
            self.fail("an operand is no scalar")
        return t.dtype

    def read(self, o: Any, dtype: DType) -> SSAValue:
        """Return a scalar operand as a value of a dtype: literals adapt, sizes are cut or widened."""
        if isinstance(o, ir.Const):
            return self.const(o.value, dtype)
        if not isinstance(o, ir.Value) or o.name not in self.values:
            self.fail("an operand is not known here")
        own = self.dtype_of(o)
        return self.values[o.name] if own is dtype else self.resized(self.values[o.name], own, dtype)

    def resized(self, x: SSAValue, src: DType, dst: DType) -> SSAValue:
        """Return the low bits of an integer, or its extension by its own sign."""
        if not (src.is_int and dst.is_int):
            self.fail(f"a {src.name} stands where a {dst.name} is due")
        t = dtype_type(dst)
        if INDEX in (src, dst) and src is not dst:
            return self.index_cast(x, src, dst)
        if src.bits == dst.bits:
            return x
        if src.bits > dst.bits:
            return self.unary(arith.TruncIOp, x, t)
        return self.unary(arith.ExtSIOp if src.signed else arith.ExtUIOp, x, t)

    def index_cast(self, x: SSAValue, src: DType, dst: DType) -> SSAValue:
        """Convert between an index and an integer by the sign of what is read."""
        t = dtype_type(dst)
        if src.signed:
            return self.unary(arith.IndexCastOp, x, t)
        assert t is not None
        return self.add(named("arith.index_castui", [x], [t]))

    def unary(self, cls: type[Operation], x: SSAValue, t: Attribute | None) -> SSAValue:
        assert t is not None
        return self.add(cls.create(operands=[x], result_types=[t]))

    def binary(self, cls: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(cls(a, b))  # type: ignore[call-arg, arg-type]

    def select(self, when: SSAValue, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(arith.SelectOp(when, a, b))

    def compare(self, how: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.add(arith.CmpiOp(a, b, how))

    def call(self, name: str, dtype: DType, *operands: SSAValue) -> SSAValue:
        """Apply an LLVM intrinsic; sizes go through 64-bit integers."""
        if dtype is INDEX:
            wide = [self.unary(arith.IndexCastOp, x, dtype_type(INT64)) for x in operands]
            return self.unary(arith.IndexCastOp, self.call(name, INT64, *wide), INDEX_TYPE)
        t = dtype_type(dtype)
        assert t is not None
        return self.add(intrinsic(name, t, *operands))

    # -- statements --------------------------------------------------------------------------------------

    def statements(self, block: ir.Block, top: bool = False) -> list[Attribute]:
        results: list[Attribute] = []
        ended = False
        for s in block.statements:
            self.at = s
            match s:
                case ir.Return(operands=operands) if top:
                    values = [self.read(o, self.dtype_of(o)) for o in operands]
                    results = [v.type for v in values]
                    self.add(func.ReturnOp(*values))
                    ended = True
                case ir.Yield(operands=operands):
                    self.add(scf.YieldOp(*(self.read(o, self.dtype_of(o)) for o in operands)))
                    ended = True
                case _:
                    self.statement(s)
        if not ended:
            self.add(func.ReturnOp() if top else scf.YieldOp())
        return results

    def statement(self, s: ir.Statement) -> None:
        """Append an operation, a branch, a loop or a section."""
        self.at = s
        match s:
            case ir.Op():
                self.operation(s)
            case ir.If():
                self.branch(s)
            case ir.For():
                self.loop(s)
            case ir.Scope():
                from .mlir_simt import section

                section(self, s)
            case _:
                self.fail("the statement has no form in structured MLIR")

    def inside(self, body: ir.Block, args: list[Attribute], names: list[str]) -> Block:
        """Build a nested block."""
        outer, made = self.block, Block(arg_types=args)
        self.values.update(zip(names, made.args))
        self.block = made
        self.statements(body)
        self.block = outer
        return made

    def branch(self, s: ir.If) -> None:
        when = self.read(s.cond, BOOL)
        types = [self.typed(r.type) for r in s.results]
        then = Region(self.inside(s.then, [], []))
        orelse = Region(self.inside(s.orelse, [], [])) if s.orelse.statements else Region()
        made = scf.IfOp(when, types, then, orelse)
        self.add(made)
        self.named(s.results, made.results)

    def loop(self, s: ir.For) -> None:
        low, high, step = (self.read(b, INDEX) for b in s.bounds)
        inits = [self.read(c.init, self.dtype_of(c.arg)) for c in s.carried]
        own = self.dtype_of(s.var)
        names = ["", *(c.arg.name for c in s.carried)]
        outer, made = self.block, Block(arg_types=[INDEX_TYPE, *(x.type for x in inits)])
        self.values.update(zip(names[1:], made.args[1:]))
        self.block = made
        counter: SSAValue = made.args[0]
        self.values[s.var.name] = counter if own is INDEX else self.resized(counter, INDEX, own)
        self.statements(s.body)
        self.block = outer
        op = scf.ForOp(low, high, step, inits, Region(made))
        self.add(op)
        self.named(s.results, op.results)

    # -- operations --------------------------------------------------------------------------------------

    def operation(self, s: ir.Op) -> None:
        from .mlir_ops import HANDLERS
        from .mlir_simt import emit_simt, is_simt

        made: SSAValue | None
        if s.name == "call":
            self.call_function(s)
            return
        if s.name in HANDLERS:
            made = HANDLERS[s.name](self, s)
        elif is_simt(s):
            made = emit_simt(self, s)
        else:
            made = self.by_record(s)
        if s.results and made is not None:
            if made.name_hint is None:
                made.name_hint = s.result.name
            self.values[s.result.name] = made

    def call_function(self, s: ir.Op) -> None:
        """Call another function of the module with scalars and pointers."""
        name = str(s.attrs["callee"])
        wanted = self.params.get(name, ())
        given: list[SSAValue] = []
        for o, dtype in zip(s.operands, wanted):
            if dtype is None and getattr(o, "name", None) in self.values:
                given.append(self.values[o.name])  # type: ignore[union-attr]
            else:
                given.append(self.read(o, dtype or self.dtype_of(o)))
        made = func.CallOp(name, given, [self.typed(r.type) for r in s.results])
        self.add(made)
        self.named(s.results, made.results)

    def by_record(self, s: ir.Op) -> SSAValue:
        """The intrinsic that the operation's record names."""
        record = OPS[s.name].scalar if s.name in OPS else None
        if record is None or not s.results:
            self.fail("is no scalar or SIMT operation")
        dtype = self.dtype_of(s.result)
        name = record.intrinsic(dtype.kind)
        if not name.startswith("llvm.") or ".hivm." in name:
            self.fail("has no form in MLIR")
        return self.call(name, dtype, *(self.read(o, dtype) for o in s.operands))


