"""The statements that take a collective's place: names, scalar arithmetic, ranks, loops and the credit barrier.

Numbers known at lowering time are Python ints and are folded; the others are INDEX values, so that the number of
ranks, sizes and offsets may be known at run time only.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from ...ir.builder import Branch, Builder, Loop
from ...ir.diagnostics import Diagnostic, Span, error
from ...ir.dtypes import INDEX, INT32
from ...ir.op import OPS
from ...ir.program import Block, For, If, Op, Statement, Value, While
from ...ir.types import Dim, ScalarType, TensorType, Type
from ..target import Target

#: A scalar: known now, or a value of the program.
Num = int | Value


@dataclass(frozen=True)
class Context:
    """What a recipe may know besides its operation.

    ``scope``: the function's scalar values by name. ``before``: the call's window may have been read earlier in the
    function, also by an earlier round of a loop. ``after``: it may be written later, other than behind a barrier.
    """

    target: Target | None = None
    scope: Mapping[str, Value] | None = None
    before: bool = False
    after: bool = False


class Steps(Builder):
    """Builds the statements of one recipe; names are the result's, ``__``, what the value is, ``_tmp_v``, a number."""

    def __init__(self, op: Op, taken: set[str], context: Context) -> None:
        super().__init__("steps")
        self.source, self.context = op, context
        self.remarks: list[Diagnostic] = []
        self._names = taken
        self._stem = op.results[0].name if op.results else op.name.rpartition(".")[2]
        self._extents: dict[tuple[str, int], Num] = {}

    def fail(self, message: str, *, code: str = "TG050", reason: str = "", hint: str = "") -> NoReturn:
        """Refuse the call."""
        raise error(code, f"{self.source.name}: {message}", self.source.span, reason=reason, hint=hint)

    def attr(self, name: str) -> Any:
        """Return an attribute of the call, or its default."""
        return self.source.attrs.get(name, OPS[self.source.name].defaults.get(name))

    def statements(self) -> list[Statement]:
        """Return what has been built, every statement at the call's place in the source."""
        return [_at(s, self.source.span) for s in self._out]

    # -- names -------------------------------------------------------------------------------------------

    def _fresh(self, stem: str) -> str:
        stem = f"{self._stem}__{stem.rstrip('_')}_tmp"
        n = self._numbers.get(stem, 0)
        while f"{stem}_v{n}" in self._names:
            n += 1
        self._numbers[stem] = n + 1
        self._names.add(f"{stem}_v{n}")
        return f"{stem}_v{n}"

    def _value(self, name: str | None, stem: str, t: Type) -> Value:
        return Value(self._fresh(name or stem), t)

    def make(self, name: str, what: str, /, *args: Any, **kwargs: Any) -> Any:
        """Add an operation whose result is called ``what``; return the result."""
        return self.op(name, *args, result=self._fresh(what), **kwargs)

    def _take(self, name: str) -> str:
        # Every name here has been made by ``_fresh``, which has already taken it.
        return name

    # -- scalars -----------------------------------------------------------------------------------------

    def _math(self, name: str, what: str, a: Num, b: Num) -> Num:
        return self.make(f"scalar.{name}", what, a, b)  # type: ignore[no-any-return]

    def add(self, a: Num, b: Num, what: str = "sum") -> Num:
        """Return ``a + b``."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        if a == 0:
            return b
        return a if b == 0 else self._math("add", what, a, b)

    def sub(self, a: Num, b: Num, what: str = "left") -> Num:
        """Return ``a - b``."""
        if isinstance(a, int) and isinstance(b, int):
            return a - b
        return a if b == 0 else self._math("sub", what, a, b)

    def mul(self, a: Num, b: Num, what: str = "product") -> Num:
        """Return ``a * b``."""
        if isinstance(a, int) and isinstance(b, int):
            return a * b
        if a == 1:
            return b
        return a if b == 1 else self._math("mul", what, a, b)

    def div(self, a: Num, b: Num, what: str = "quotient") -> Num:
        """Return ``a // b`` of numbers that are not negative, ``b`` positive."""
        if isinstance(a, int) and isinstance(b, int):
            return a // b
        return a if b == 1 else self._math("floordiv", what, a, b)

    def mod(self, a: Num, b: Num, what: str = "rest") -> Num:
        """Return ``a % b`` of numbers that are not negative, ``b`` positive."""
        if isinstance(a, int) and isinstance(b, int):
            return a % b
        return self._math("mod", what, a, b)

    def min(self, a: Num, b: Num, what: str = "least") -> Num:
        """Return the smaller."""
        return min(a, b) if isinstance(a, int) and isinstance(b, int) else self._math("min", what, a, b)

    def max(self, a: Num, b: Num, what: str = "most") -> Num:
        """Return the larger."""
        return max(a, b) if isinstance(a, int) and isinstance(b, int) else self._math("max", what, a, b)

    def ceil(self, a: Num, b: Num, what: str = "count") -> Num:
        """Return ``a / b`` rounded up."""
        return self.div(self.add(a, self.sub(b, 1)), b, what)

    def round_up(self, a: Num, unit: int, what: str = "rounded") -> Num:
        """Return the next multiple of ``unit``."""
        return self.mul(self.ceil(a, unit), unit, what)

    def index(self, a: Any, what: str) -> Num:
        """Return a scalar as INDEX."""
        if isinstance(a, Value) and a.type == ScalarType(INDEX):
            return a
        return self.make("scalar.cast", what, a, dtype=INDEX)  # type: ignore[no-any-return]

    def cell(self, a: Num, what: str) -> Any:
        """Return a number as the INT32 that signal cells hold."""
        return a if isinstance(a, int) else self.make("scalar.cast", what, a, dtype=INT32)

    # -- extents -----------------------------------------------------------------------------------------

    def extent(self, tensor: Value, axis: int) -> Num:
        """Return the size of a tensor along an axis; a run-time one is asked of the tensor, once."""
        d = tensor.type.shape[axis]  # type: ignore[union-attr]
        if isinstance(d, int):
            return d
        key = (tensor.name, axis)
        if key not in self._extents:
            self._extents[key] = self.make("tensor.dim", f"dim{axis}", tensor, axis)
        return self._extents[key]

    def forget(self) -> None:
        """Ask extents anew: those asked so far may stand in another branch."""
        self._extents.clear()

    def product(self, sizes: Sequence[Num], what: str = "size") -> Num:
        """Return the product of sizes."""
        out: Num = 1
        for n in sizes:
            out = self.mul(out, n, what)
        return out

    def valid_extent(self, tensor: Value, axis: int) -> Num:
        """Return the valid size of a tensor along an axis.

        Raises TG050 when it is an expression over names that have no value in the function.
        """
        t = tensor.type
        assert isinstance(t, TensorType)
        d = t.shape[axis] if t.valid is None else t.valid[axis]
        if d == t.shape[axis]:
            return self.extent(tensor, axis)
        return d if isinstance(d, int) else self._evaluated(tensor, d)

    def _evaluated(self, tensor: Value, text: Dim) -> Num:
        try:
            tree = ast.parse(str(text).strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = ast.Constant(None)
        return self._node(tensor, tree, str(text), 0)

    def _node(self, tensor: Value, node: ast.AST, text: str, depth: int) -> Num:
        t = tensor.type
        assert isinstance(t, TensorType)
        match node:
            case ast.Constant(value=int() as value) if not isinstance(value, bool):
                return value
            case ast.Name(id=name) if name in t.shape:
                return self.extent(tensor, t.shape.index(name))
            case ast.Name(id=name) if self.context.scope and name in self.context.scope:
                return self.index(self.context.scope[name], name)
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _DIM_OPS and depth < 50:
                a, b = (self._node(tensor, x, text, depth + 1) for x in (left, right))
                return getattr(self, _DIM_OPS[type(op)])(a, b)  # type: ignore[no-any-return]
            case ast.Call(func=ast.Name(id="min" | "max" as name), args=[left, right], keywords=[]) if depth < 50:
                a, b = (self._node(tensor, x, text, depth + 1) for x in (left, right))
                return getattr(self, name)(a, b)  # type: ignore[no-any-return]
        self.fail(
            f"the valid extent {text!r} has no value at run time",
            reason="it stands in types only", hint="pass it as a scalar parameter of the function",
        )  # fmt: skip

    # -- control flow ------------------------------------------------------------------------------------

    @contextmanager
    def loop(self, *bounds: Num, var: str = "i", carry: Mapping[str, Any] | None = None) -> Iterator[Loop]:
        """Open a counted loop over ``(stop)`` or ``(start, stop)``."""
        fresh = {self._fresh(name): init for name, init in (carry or {}).items()}
        with self.range(*bounds, var=var, carry=fresh, results=list(carry or ())) as loop:
            yield loop

    @contextmanager
    def when(self, name: str, a: Num, b: Num) -> Iterator[None]:
        """Open a branch that runs when the comparison ``a name b`` (``"ne"``, ``"gt"``...) holds."""
        with self.if_(self.make(f"scalar.{name}", "cond", a, b)) as branch, branch.then():
            yield

    @contextmanager
    def choice(self, name: str, a: Num, b: Num) -> Iterator[Branch]:
        """Open a branch with two sides on the comparison ``a name b``."""
        with self.if_(self.make(f"scalar.{name}", "cond", a, b)) as branch:
            yield branch


_DIM_OPS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "div", ast.Mod: "mod",
}  # fmt: skip


def _at(s: Statement, span: Span | None) -> Statement:
    def inside(block: Block) -> Block:
        return Block(tuple(_at(x, span) for x in block))

    match s:
        case For():
            return replace(s, body=inside(s.body), span=span)
        case While():
            return replace(s, head=inside(s.head), body=inside(s.body), span=span)
        case If():
            return replace(s, then=inside(s.then), orelse=inside(s.orelse), span=span)
        case Op():
            return replace(s, span=span)
        case _:
            return s
