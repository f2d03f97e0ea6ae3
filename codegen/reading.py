"""Programs read back from assembly: scalar and SIMT functions as text of the assembler or of MLIR's dialects.

``arith``, ``scf``, ``func``, the LLVM dialect's intrinsics and stack, and the assembler's SIMT level become operations
of the language. Integers have no sign there: a value is taken as signed, and ``scalar.wrap`` stands where an operation
reads it as unsigned. Tiles are not read back (TG029).
"""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import Any, NoReturn

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, IntegerType, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir import Block as MlirBlock

from ..ir import program as ir
from ..ir.diagnostics import Span, TileggError, error
from ..ir.dtypes import BOOL, DTYPES, INDEX, DType
from ..ir.types import PtrType, ScalarType, Type, scalar
from ..ir.verify import verify
from .pto.api import PtrType as PtoPointer
from .pto.api import span_of
from .pto.elements import spell
from .pto.simt_convert import SPELLINGS
from .pto.simt_scopes import ENTRY
from .reading_pointers import Pairs, Signs

#: What a name of the assembly stands for: a value or literal, or a pointer to pairs.
Known = ir.Value | ir.Const | Pairs


def read_module(module: ModuleOp, name: str = "") -> ir.Program:
    """Return the program of a module.

    Raises TG029 for what has no form in the language, with its place: tiles, vectors, loops with early exits.
    """
    functions = _functions(module)
    signs = Signs(functions)
    program = ir.Program(name, tuple(FunctionReader(f, signs).read() for f in functions))
    problems = [d for d in verify(program) if d.severity == "error"]
    if problems:
        raise TileggError(*problems)
    return program


def _functions(module: ModuleOp) -> list[func.FuncOp]:
    found: list[func.FuncOp] = []
    for op in module.body.block.ops:
        if isinstance(op, ModuleOp):
            found += _functions(op)
        elif isinstance(op, func.FuncOp):
            if not op.body.blocks:
                raise error("TG029", f"{op.sym_name.data} has no body", span_of(op.location))
            found.append(op)
        else:
            raise error("TG029", f"{op.name} stands outside of functions", span_of(op.location))
    return found


def type_of(attr: Attribute, unsigned: bool = False) -> Type | None:
    """Return the type of a scalar, a pair or a pointer; integers signed unless asked otherwise."""
    if isinstance(attr, PtoPointer):
        inner = type_of(attr.element, unsigned)
        return PtrType(inner.dtype, attr.data.space) if isinstance(inner, ScalarType) else None
    dtype = dtype_of(attr, unsigned)
    return None if dtype is None else scalar(dtype)


def dtype_of(attr: Attribute, unsigned: bool = False) -> DType | None:
    """Return the dtype of a scalar type."""
    if isinstance(attr, IndexType):
        return INDEX
    if isinstance(attr, IntegerType):
        width = int(attr.width.data)
        return BOOL if width == 1 else DTYPES.get(f"{'U' * unsigned}INT{width}") if width >= 8 else None
    names = SPELLINGS.get(spell(attr))
    return None if names is None else DTYPES[names[0]]


class FunctionReader:
    """Reads one function: names of SSA values, statements block by block."""

    def __init__(self, op: func.FuncOp, signs: Signs) -> None:
        self.op = op
        self.at: Operation = op
        self.known: dict[SSAValue, Known] = {}
        self.taken: set[str] = set()
        self.signs = signs
        self.out: list[ir.Statement] = []

    def fail(self, message: str, reason: str = "", hint: str = "") -> NoReturn:
        raise error("TG029", message, self.span, reason=reason, hint=hint)

    @property
    def span(self) -> Span | None:
        """The place of the operation that is read."""
        return span_of(self.at.location)

    def read(self) -> ir.Function:
        block = self.op.body.block
        params = []
        for i, arg in enumerate(block.args):
            t = type_of(arg.type, self.signs.unsigned(arg))
            if t is None:
                self.fail(f"parameter {i + 1} of {self.op.sym_name.data} is a {spell(arg.type)}",
                          "the language has scalars and pointers", "tiles are not read back from assembly")  # fmt: skip
            value = ir.Value(self.fresh(arg), t)
            self.known[arg] = value
            params.append(ir.Param(value, "InOut" if self.signs.written(arg) else "In"))
        body = self.block(block)
        kind = "SimtEntry" if ENTRY in self.op.attributes else "InCore" if "pto.entry" in self.op.attributes else ""
        attrs = {"type": f"pl.FunctionType.{kind}"} if kind else {}
        results = body.statements[-1].operands if body.statements and isinstance(body.statements[-1], ir.Return) else ()
        types = tuple(o.type for o in results if isinstance(o, ir.Value | ir.Const))
        return ir.Function(self.op.sym_name.data, tuple(params), types, body, attrs, span_of(self.op.location))

    # -- names and values --------------------------------------------------------------------------------

    def fresh(self, value: SSAValue | None = None, stem: str = "") -> str:
        """Return a name that nothing has yet, after the value's own where it has one."""
        hint = value.name_hint if value is not None else None
        stem = hint if hint and hint.isidentifier() and not keyword.iskeyword(hint) else stem
        name, n = stem or "v0", 0
        while name in self.taken:
            n += 1
            name = f"{stem}_{n}" if stem else f"v{n}"
        self.taken.add(name)
        return name

    def value(self, x: SSAValue) -> Any:
        """Return what a scalar or pointer is."""
        found = self.known.get(x)
        if found is None:
            self.fail(f"{x.name_hint or 'an operand'} is not known here")
        if isinstance(found, Pairs):
            self.fail("a pointer to pairs is used for more than loads and stores")
        return found

    def dtype(self, x: SSAValue) -> DType:
        t = getattr(self.value(x), "type", None)
        if not isinstance(t, ScalarType):
            self.fail(f"{x.name_hint or 'an operand'} is no scalar")
        return t.dtype

    def as_dtype(self, x: SSAValue, dtype: DType) -> ir.Operand:
        """Return an integer as one of another dtype of the same width: the same bits."""
        found: ir.Operand = self.value(x)
        own = self.dtype(x)
        if own is dtype or not (own.is_int and dtype.is_int):
            return found
        if isinstance(found, ir.Const):
            low = int(found.value) & ((1 << dtype.bits) - 1)
            return ir.Const(low - (1 << dtype.bits) if dtype.signed and low > dtype.max_value else low, dtype)
        return self.made("scalar.wrap", (found,), scalar(dtype), {"dtype": dtype})

    def signed(self, x: SSAValue) -> ir.Operand:
        return self.with_sign(x, False)

    def with_sign(self, x: SSAValue, unsigned: bool) -> ir.Operand:
        """Return an integer with the sign that an operation reads it with."""
        own = self.dtype(x)
        found: ir.Operand = self.value(x)
        if own is INDEX:
            return self.as_dtype(x, DTYPES["UINT64"]) if unsigned else found
        return self.as_dtype(x, DTYPES[f"{'U' * unsigned}INT{own.bits}"]) if own.kind in ("int", "uint") else found

    def made(self, name: str, operands: Sequence[Any], t: Type | None, attrs: dict[str, Any] | None = None) -> ir.Value:
        """Append an operation that the assembly has no name for; return its result."""
        result = ir.Value(self.fresh(), t) if t is not None else None
        results = () if result is None else (result,)
        self.out.append(ir.Op(name, tuple(operands), attrs or {}, results, self.span))
        return result  # type: ignore[return-value]

    def define(
        self, x: SSAValue, name: str, operands: Sequence[Any], t: Type, attrs: dict[str, Any] | None = None
    ) -> None:
        """Append the operation whose result an SSA value is."""
        result = ir.Value(self.fresh(x), t)
        self.out.append(ir.Op(name, tuple(operands), attrs or {}, (result,), self.span))
        self.known[x] = result

    # -- statements --------------------------------------------------------------------------------------

    def block(self, block: MlirBlock) -> ir.Block:
        """Read a block with a list of statements of its own."""
        outer, self.out = self.out, []
        for op in block.ops:
            self.at = op
            self.statement(op)
        made, self.out = self.out, outer
        return ir.Block(tuple(made))

    def statement(self, op: Operation) -> None:
        """Read one operation."""
        from .reading_flow import FLOW
        from .reading_ops import read_op

        flow = FLOW.get(op.name)
        if flow is not None:
            flow(self, op)
        else:
            read_op(self, op)

    def word(self, op: Operation, key: str, default: str = "") -> str:
        """Return a word an operation carries."""
        found = op.properties.get(key)
        return found.data if isinstance(found, StringAttr) else default
