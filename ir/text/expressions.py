"""Expressions: names, literals, operators on scalars and tiles, lists, subscripts.

Nested operations become statements of their own, in evaluation order, under generated names.
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..diagnostics import TileggError, error
from ..dtypes import FP32, INDEX
from ..infer import check_operand, merge_types, result_types, stored_attrs, type_of
from ..literals import literal
from ..op import OPS
from ..ops.scalars import INFIX, PREFIX
from ..program import Const, Op, Operand, Value, index
from ..types import OpaqueType, ScalarType, TensorType, TileType, TupleType, Type
from .module import NotLiteral
from .state import State, tensor_root

_SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.And: "and", ast.Or: "or", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>", ast.USub: "-", ast.Not: "not ",
}  # fmt: skip
_BY_SYMBOL = {symbol: name for name, symbol in INFIX.items()}
_SCALAR_OP = {node: _BY_SYMBOL[s] for node, s in _SYMBOLS.items() if s in _BY_SYMBOL and node is not ast.USub}
_PREFIX_OP = {node: name for node in (ast.USub, ast.Not) for name, s in PREFIX.items() if s == _SYMBOLS[node]}
#: Tile operation of an operator: tile with tile, tile with scalar.
_TILE_OP: dict[type[ast.AST], tuple[str, str]] = {
    ast.Add: ("tile.add", "tile.adds"), ast.Sub: ("tile.sub", "tile.subs"),
    ast.Mult: ("tile.mul", "tile.muls"), ast.Div: ("tile.div", "tile.divs"),
    ast.BitAnd: ("tile.and_", "tile.ands"),
    ast.BitOr: ("tile.or_", "tile.ors"), ast.BitXor: ("tile.xor", "tile.xors"),
    ast.LShift: ("tile.shl", "tile.shls"), ast.RShift: ("tile.shr", "tile.shrs"),
}  # fmt: skip
#: The same where the scalar stands first.
_SCALAR_FIRST: dict[type[ast.AST], str] = {
    **{k: _TILE_OP[k][1] for k in (ast.Add, ast.Sub, ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)},
    ast.Div: "tile.rdivs",
}
_SPECIAL_FLOATS = {"math.inf": float("inf"), "math.nan": float("nan")}


@dataclass
class Expressions(State):
    """Reads expressions into operands, emitting statements for the operations inside."""

    def value(self, node: ast.expr, name: str | None = None, written: Type | None = None) -> Operand:
        """Return the operand an expression stands for.

        ``name`` is the source name its operation's result gets (``None``: a generated one), ``written`` its
        annotation. Raises the diagnostics of whatever is wrong inside.
        """
        reader = self._READERS.get(node.__class__)
        if reader is None:
            raise self._outside(node)
        return reader(self, node, name, written)

    def _outside(self, node: ast.AST, part: ast.AST | None = None) -> TileggError:
        name = type(part or node).__name__
        what, hint = _TITLES.get(name, name), _HINTS.get(name, "")
        return error("TG002", f"{what} is outside the language", self.span(node), hint=hint)

    def scalar(self, node: ast.expr) -> Operand:
        """Return a scalar operand; raises TG006 for anything else."""
        found = self.value(node)
        t = type_of(found)
        if t is None or not isinstance(t, ScalarType | OpaqueType):
            raise error("TG006", f"a scalar is expected here, got {t or 'a list'}", self.span(node))
        return found

    def integer(self, node: ast.expr) -> Operand:
        """Return an integer scalar operand; raises TG006 for anything else."""
        found = self.scalar(node)
        t = type_of(found)
        if isinstance(t, ScalarType) and not t.dtype.is_int:
            raise error("TG006", f"an integer is expected here, got {t}", self.span(node))
        return found

    # -- leaves ------------------------------------------------------------------------------------------

    def _name(self, node: Any, name: str | None, written: Type | None) -> Operand:
        return self.lookup(node)

    def _constant(self, node: Any, name: str | None, written: Type | None) -> Operand:
        value = node.value
        if value is None:
            return None
        if value.__class__ is int:
            return index(value) if -1 < value < 1 << 31 else literal(value, None, self.span(node))
        if isinstance(value, bool | float):
            return literal(value, None, self.span(node))
        what = f"a {type(value).__name__} is no operand"
        raise error("TG006", what, self.span(node), hint="write a name, a number, a list of them or a call")

    def _list(self, node: Any, name: str | None, written: Type | None) -> Operand:
        return tuple([self.value(item) for item in node.elts])

    def _attribute(self, node: Any, name: str | None, written: Type | None) -> Operand:
        dotted = self.module.dotted(node) or ""
        if dotted in _SPECIAL_FLOATS:
            return Const(_SPECIAL_FLOATS[dotted], FP32)
        raise error("TG006", f"{dotted or 'an attribute'} is no run-time value", self.span(node))

    # -- operators ---------------------------------------------------------------------------------------

    def _unary(self, node: Any, name: str | None, written: Type | None) -> Operand:
        inner, kind = node.operand, node.op.__class__
        if kind is ast.USub and isinstance(inner, ast.Constant) and type(inner.value) in (int, float):
            number: Any = inner.value
            return literal(-number, None, self.span(node))
        x = self.value(inner)
        t = type_of(x)
        if kind is ast.UAdd:
            return x
        if kind is ast.USub and isinstance(x, Const) and not isinstance(inner, ast.Call):
            if x.value != x.value or x.value in _SPECIAL_FLOATS.values():
                return Const(-x.value, x.dtype)
            return literal(-x.value, None if x.dtype in (INDEX, FP32) else x.dtype, self.span(node))
        if isinstance(t, TileType) and kind is not ast.Not:
            return self.emit("tile.neg" if kind is ast.USub else "tile.not_", (x,), {}, node, name, written)
        op = _PREFIX_OP.get(kind)
        if op is None or not isinstance(t, ScalarType | OpaqueType):
            raise error("TG006", f"the operator does not take a {t or 'list'}", self.span(node))
        return self.emit(op, (x,), {}, node, name, written)

    def _binary(self, node: Any, name: str | None, written: Type | None) -> Operand:
        a, b = self.value(node.left), self.value(node.right)
        return self.binary(node.op, a, b, node, name, written)

    def binary(self, op: Any, a: Operand, b: Operand, node: Any, name: str | None, written: Type | None) -> Operand:
        """Return ``a op b``: folded for literals, else a scalar or tile operation."""
        kind = op.__class__
        if a.__class__ is Const and b.__class__ is Const and _folds(a, b, node):
            try:
                folded = self.module.fold_binary(op, a.value, b.value, node)
                return literal(folded, None, self.span(node))
            except NotLiteral:
                pass
        ta, tb = type_of(a), type_of(b)
        if isinstance(ta, TileType) or isinstance(tb, TileType):
            return self._tile_binary(kind, a, b, node, name, written)
        if isinstance(ta, TensorType) or isinstance(tb, TensorType):
            return self._tensor_binary(kind, a, b, node, name, written)
        full = _SCALAR_OP.get(kind)
        if full is None:
            raise self._outside(node, op)
        if ta is None or tb is None:
            raise error("TG006", "the operator takes scalars or tiles, not lists", self.span(node))
        return self.emit(full, (a, b), {}, node, name, written)

    def _tile_binary(
        self, kind: type[ast.AST], a: Operand, b: Operand, node: Any, name: str | None, written: Type | None
    ) -> Operand:
        ta, tb = type_of(a), type_of(b)
        forms = _TILE_OP.get(kind)
        if forms is None:
            hint = "compare with pl.tile.cmp or pl.tile.cmps" if isinstance(node, ast.Compare) else ""
            raise error("TG006", "the operator does not take tiles", self.span(node), hint=hint)
        if isinstance(ta, TileType):
            scalar_form = isinstance(tb, ScalarType)
            return self.emit(forms[scalar_form], (a, b), {}, node, name, written)
        return self.scalar_first(_SCALAR_FIRST.get(kind, ""), "the operator", a, b, node, name, written)

    def scalar_first(
        self, form: str, what: str, a: Operand, b: Any, node: Any, name: str | None, written: Type | None
    ) -> Operand:
        """Return ``a op b`` of a scalar and a tile by the operation that means it; TG006 where there is none.

        ``form``: an operation on the tile and the scalar, or ``tile.subs``: the tile's opposite and a sum.
        """
        if form == "tile.subs":
            b, form = self.emit("tile.neg", (b,), {}, node, None, None), "tile.adds"
        if not form or (form == "tile.rdivs" and not b.type.dtype.is_float):
            hint = "fill a tile with the scalar first: pl.tile.expands(tile, scalar)"
            raise error("TG006", f"{what} takes its scalar on the right", self.span(node), hint=hint)
        return self.emit(form, (b, a), {}, node, name, written)

    def _tensor_binary(
        self, kind: type[ast.AST], a: Operand, b: Operand, node: Any, name: str | None, written: Type | None
    ) -> Operand:
        forms = _TILE_OP.get(kind)
        if forms is None:
            raise error("TG006", "the operator does not take tensors", self.span(node))
        base, scalar_form = forms[0].removeprefix("tile."), forms[1].removeprefix("tile.")
        full = f"tensor.{scalar_form if isinstance(type_of(b), ScalarType) else base}"
        return self.emit(full if full in OPS else f"pl.{full}", (a, b), {}, node, name, written)

    def _compare(self, node: Any, name: str | None, written: Type | None) -> Operand:
        if len(node.ops) != 1:
            raise error("TG002", "a chain of comparisons is outside the language", self.span(node),
                        hint="write a < b and b < c")  # fmt: skip
        a, b = self.value(node.left), self.value(node.comparators[0])
        return self.binary(node.ops[0], a, b, node, name, written)

    def _boolean(self, node: Any, name: str | None, written: Type | None) -> Operand:
        values = node.values
        left = self.value(values[0])
        for i, item in enumerate(values[1:]):
            last = i == len(values) - 2
            right = self.value(item)
            args = (name, written) if last else (None, None)
            left = self.binary(node.op, left, right, node, *args)
        return left

    # -- calls and subscripts live in the classes above --------------------------------------------------

    @abstractmethod
    def call(self, node: Any, name: str | None, written: Type | None) -> Operand:
        """Read a call."""

    @abstractmethod
    def subscript(self, node: Any, name: str | None, written: Type | None) -> Operand:
        """Read ``x[...]`` as a value."""

    # -- operations --------------------------------------------------------------------------------------

    def emit(
        self,
        full: str,
        operands: tuple[Operand, ...],
        attrs: Mapping[str, Any],
        node: ast.AST,
        name: str | None,
        written: Type | None,
    ) -> Operand:
        """Add an operation with one result (named ``name``, or generated) and return that value."""
        decl = OPS.get(full)
        span = self.span(node)
        inferred: Type | None = None
        if decl is not None:
            # Operators leave scratch tiles out.
            operands += (None,) * (len(decl.operand_params) - len(operands))
            if not full.startswith("scalar."):
                for param, o in zip(decl.operand_params, operands):
                    check_operand(decl, param, o, span)
                self.predicates.check(decl, operands, span)
            types = result_types(decl, operands, attrs, span)
            if types is not None and len(types) == 1:
                inferred = types[0]
        else:
            self.note_unknown(full, node)
        t = inferred if written is None and inferred is not None else merge_types(inferred, written, span)
        stored = stored_attrs(decl, attrs) if decl is not None and attrs else dict(attrs)
        return self.finish(full, operands, stored, t, name, span)

    def finish(
        self,
        full: str,
        operands: tuple[Operand, ...],
        attrs: dict[str, Any],
        t: Type,
        name: str | None,
        span: Any,
    ) -> Value:
        """Add the operation and bind its single result."""
        if name is not None:
            value = self.define(name, t)
        else:
            value = Value(self.temporary(), t)
            if t.__class__ is ScalarType:
                self.sizes[value.name] = value
        self.out.append(Op(full, operands, attrs, (value,), span))
        self.predicates.note(full, operands, (value,))
        if self.roots and t.__class__ is not TileType and isinstance(t, TensorType | OpaqueType | TupleType):
            root = tensor_root(self, operands)
            if root is not None:
                self.roots[value.name] = root
        return value

    def note_unknown(self, full: str, node: ast.AST, hint: str = "") -> None:
        """Remark, once per name, that an operation is kept as it stands."""
        self.module.remark(
            "TG018",
            f"{full} is not an operation tilegg knows; it is kept verbatim",
            node,
            hint=hint,
            once=full,
        )

    def note_untyped(self, full: str, node: ast.AST) -> None:
        """Remark, once per name, that a known operation is kept as it stands, for it has a value of unknown type."""
        self.module.remark(
            "TG018",
            f"{full} takes a value of unknown type here; it is kept verbatim",
            node,
            hint="say the value's type where it is assigned: x: pl.Tile[[rows, columns], pl.FP32] = ...",
            once=full,
        )

    _READERS: ClassVar[dict[type[ast.AST], Callable[[Any, Any, str | None, Type | None], Operand]]] = {
        ast.Name: _name,
        ast.Constant: _constant,
        ast.List: _list,
        ast.Tuple: _list,
        ast.Attribute: _attribute,
        ast.UnaryOp: _unary,
        ast.BinOp: _binary,
        ast.Compare: _compare,
        ast.BoolOp: _boolean,
        ast.Call: lambda self, node, name, written: self.call(node, name, written),
        ast.Subscript: lambda self, node, name, written: self.subscript(node, name, written),
    }


def _folds(a: Any, b: Any, node: ast.AST) -> bool:
    """Literals written out fold; ``pl.const`` keeps the operation, as printers rely on."""
    return (
        isinstance(node, ast.BinOp)
        and a.dtype in (INDEX, FP32)
        and b.dtype in (INDEX, FP32)
        and not isinstance(node.left, ast.Call)
        and not isinstance(node.right, ast.Call)
    )


_TITLES = {
    "IfExp": "a conditional expression", "Lambda": "a lambda", "ListComp": "a comprehension",
    "DictComp": "a comprehension", "SetComp": "a comprehension", "GeneratorExp": "a comprehension",
    "JoinedStr": "a formatted string", "NamedExpr": "an assignment expression", "Await": "await",
    "Yield": "yield", "YieldFrom": "yield", "Dict": "a dictionary", "Set": "a set", "Starred": "unpacking",
    "Pow": "the power operator", "MatMult": "the matrix operator", "Slice": "a slice", "In": "membership",
}  # fmt: skip
_HINTS = {
    "IfExp": "use an if statement, or pl.tile.sel on tiles",
    "Yield": "blocks hand values on with pl.yield_(...)",
    "ListComp": "nothing is executed: write the list out",
    "MatMult": "use pl.matmul",
}
