"""Scopes of one function under emission: where scalars are, sizes as constants or index values."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NoReturn

from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType
from xdsl.ir import Attribute, Operation, SSAValue

from ..ir.diagnostics import Span, error
from ..ir.dtypes import DType
from ..ir.program import Const, Operand, Value
from ..ir.types import Dim
from ..rules.target import Target
from .emit_forms import Plan
from .pto import arith
from .pto.api import FunctionBuilder, PtoBuilder, element
from .pto.base import constant_of
from .pto.making import name_value

INDEX = IndexType()
I64 = IntegerType(64)
Extent = int | SSAValue


class Scopes:
    """Scalars, scopes, index arithmetic and the current builder of one function."""

    def __init__(self, builder: FunctionBuilder, plan: Plan, target: Target) -> None:
        self.entry: PtoBuilder = builder.body
        self.b: PtoBuilder = builder.body
        self.plan = plan
        self.target = target
        self.span: Span | None = None
        self.scalars: dict[str, SSAValue] = {}
        #: Values known not to be negative.
        self.natural: set[SSAValue] = set()
        self._frames: list[dict[Any, Any]] = [{}]

    # -- diagnostics -------------------------------------------------------------------------------------

    def fail(self, message: str, reason: str = "", hint: str = "") -> NoReturn:
        """Raise TG023 at the current statement."""
        raise error("TG023", message, self.span, reason=reason, hint=hint)

    def register(self, dtype: DType) -> Attribute:
        """Return the type of scalars that can be computed with; raises TG023 for those that can only be copied."""
        type_ = scalar_type(dtype)
        if not isinstance(type_, IndexType | IntegerType | AnyFloat):
            self.fail(
                f"{dtype.name} scalars cannot be written as assembly",
                "the assembler's constants and conversions are those of integers and of MLIR's own floats",
                "cast a tile instead, and read or write single elements while they are FP32",
            )
        return type_

    # -- scopes ------------------------------------------------------------------------------------------

    @property
    def frame(self) -> object:
        """The identity of the current block."""
        return self._frames[-1]

    @property
    def frames(self) -> list[dict[Any, Any]]:
        """The identities of the current block and those around it."""
        return self._frames

    @contextmanager
    def inside(self, builder: PtoBuilder) -> Iterator[None]:
        """Emit into a nested block."""
        outer, self.b = self.b, builder
        self._frames.append({})
        builder.location = outer.location
        try:
            yield
        finally:
            self._frames.pop()
            self.b = outer

    @contextmanager
    def at_entry(self) -> Iterator[None]:
        """Emit into the entry block, before the statement that is being emitted."""
        inner, frames = self.b, self._frames
        place = self.entry.location
        self.b, self._frames = self.entry, frames[:1]
        self.b.location = inner.location
        try:
            yield
        finally:
            self.b.location = place
            self.b, self._frames = inner, frames

    def cached(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what was made for the key in this block or one around it, else make it here."""
        for frame in reversed(self._frames):
            if key in frame:
                return frame[key]
        made = self._frames[-1][key] = make()
        return made

    def name(self, value: SSAValue, hint: str) -> SSAValue:
        """Give an SSA value a name where the assembly's syntax allows it."""
        if hint.isascii() and value.name_hint is None:
            name_value(value, hint)
        return value

    # -- index arithmetic --------------------------------------------------------------------------------

    def arith(
        self, cls: type[Operation], *operands: SSAValue, type_: Attribute | None = None, **props: Any
    ) -> SSAValue:
        """Append an operation of one result, of the first operand's type unless given."""
        (result,) = self.b.made(cls, operands, (type_ or operands[0].type,), props).results
        return result

    def index(self, value: Extent) -> SSAValue:
        return self.b.index(value)

    def add(self, a: Extent, b: Extent) -> Extent:
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0 or b == 0:
            return b if a == 0 else a
        return self._known(arith.AddiOp, a, b)

    def mul(self, a: Extent, b: Extent) -> Extent:
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        return self._known(arith.MuliOp, a, b)

    def div_up(self, a: Extent, b: int) -> Extent:
        """Return a / b rounded up, of a value that is not negative."""
        if isinstance(a, int):
            return -(-a // b)
        return self.cached(("up", a, b), lambda: self._known(arith.DivUIOp, self.add(a, b - 1), b))  # type: ignore[no-any-return]

    def div_exact(self, a: Extent, b: int, what: str) -> Extent:
        """Return a / b; raises TG023 when a known value leaves a remainder."""
        if b == 1:
            return a
        if isinstance(a, int):
            if a % b:
                self.fail(f"{what} {a} does not fill whole bytes", "two values share a byte")
            return a // b
        return self._known(arith.DivUIOp, a, b)

    def _known(self, cls: type[Operation], a: Extent, b: Extent) -> SSAValue:
        x, y = self.index(a), self.index(b)
        made = self.arith(cls, x, y)
        if self.is_natural(x) and self.is_natural(y):
            self.natural.add(made)
        return made

    def is_natural(self, value: SSAValue) -> bool:
        """True when the value is known not to be negative."""
        known = constant_of(value)
        return known >= 0 if known is not None else value in self.natural

    def extent(self, dim: Dim) -> Extent:
        """Return a dimension of a type as a number or an index value."""
        if isinstance(dim, int):
            return dim
        made: Extent = self.cached(("dim", dim), lambda: self._dim(parse_dim(dim), dim))
        return made

    def _dim(self, node: ast.AST | None, text: str) -> Extent:
        match node:
            case ast.Constant(value=int() as value):
                return value
            case ast.Name(id=name):
                return self.as_index(self.scalar_named(name))
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _DIM_OPS:
                a, b = self._dim(left, text), self._dim(right, text)
                if isinstance(a, int) and isinstance(b, int):
                    return int(_DIM_OPS[type(op)][0](a, b))
                return self._known(_DIM_OPS[type(op)][1], a, b)
            case ast.Call(args=[a, b]) if _called(node) in ("min", "max"):
                cls = arith.MinSIOp if _called(node) == "min" else arith.MaxSIOp
                return self._known(cls, self._dim(a, text), self._dim(b, text))
            case ast.Call(args=[a, *_]) if _called(node) == "cast":
                return self._dim(a, text)
            case _:
                self.fail(f"the dimension {text!r} cannot be computed in assembly")

    def scalar_named(self, name: str) -> SSAValue:
        found = self.scalars.get(name)
        if found is None:
            self.fail(f"the dimension {name!r} is not known here")
        return found

    def as_index(self, value: SSAValue) -> SSAValue:
        """Return an integer scalar as an index."""
        if isinstance(value.type, IndexType):
            return value
        made = self.cached(("index", value), lambda: self.arith(arith.IndexCastOp, value, type_=INDEX))
        if value in self.natural:
            self.natural.add(made)
        return made  # type: ignore[no-any-return]

    def offset(self, o: Operand) -> Extent:
        """Return a scalar operand as an extent: a number when it is literal."""
        if isinstance(o, Const):
            return int(o.value)
        if isinstance(o, Value):
            return self.as_index(self.scalar_named(o.name))
        self.fail(f"{getattr(o, 'text', o)!r} cannot be computed in assembly")

    def offsets(self, operands: Operand) -> tuple[Extent, ...]:
        assert isinstance(operands, tuple)
        return tuple(map(self.offset, operands))


_DIM_OPS: dict[type[ast.operator], tuple[Callable[[int, int], int], type[Operation]]] = {
    ast.Add: (lambda a, b: a + b, arith.AddiOp),
    ast.Sub: (lambda a, b: a - b, arith.SubiOp),
    ast.Mult: (lambda a, b: a * b, arith.MuliOp),
    ast.FloorDiv: (lambda a, b: a // b if b else 0, arith.FloorDivSIOp),
    ast.Mod: (lambda a, b: a % b if b else 0, arith.RemSIOp),
}


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


@lru_cache(maxsize=4096)
def parse_dim(text: str) -> ast.AST | None:
    """Return the syntax tree of a dimension's expression, ``None`` when it is none."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def scalar_type(dtype: DType) -> Attribute:
    """Return the register type of a dtype: index, a float, or an integer without sign."""
    if dtype.kind == "index":
        return INDEX
    if dtype.kind in ("int", "uint") and dtype.pto:
        return element(f"i{dtype.bits}")
    return element(dtype.pto)

