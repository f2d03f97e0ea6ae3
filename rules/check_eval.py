"""Evaluation of rule patterns on arrays, by the declared meanings of the operations in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..ir import lazy_numpy as np
from ..ir import ops as _ops  # noqa: F401  (registers the operations)
from ..ir.codes import decode
from ..ir.diagnostics import TileggError
from ..ir.dtypes import FP32, UINT8, DType
from ..ir.interp_eval import eval_op
from ..ir.op import OPS, Call, Kind, OpDecl
from ..ir.ops._math import scalar_like
from ..ir.ops._result import mask_of
from ..ir.predicates import compares
from ..ir.program import Const, Value
from ..ir.tilearray import Arr, padded
from ..ir.types import ScalarType, TileType, scalar, static, tile
from .check_choices import OTHER_CHOICES, other_choice
from .check_dims import fill_lists
from .rule import Pattern, Term, Var
from .terms import (
    CODE_DTYPES,
    CODE_MODES,
    CODE_SATURATIONS,
    LITERAL,
    child_params,
    implied_dtype,
    literal_value,
    rest_of,
    signature,
)

#: Codes of a rule's dtype, mode, saturation, shape and integer variables.
Assignment = dict[Var, int]


RoleKind = Literal["tile", "scalar", "mask"]
#: What a value variable stands for, and its dtype.
Role = tuple[RoleKind, DType]


class Unfit(Exception):
    """An instance that no program can contain: an operation does not take the drawn operands."""


@dataclass(frozen=True, eq=False)
class Valued:
    """A value with its type: ``data`` is the array of a tile's elements, or an array of one scalar."""

    data: Arr
    type: TileType | ScalarType

    @staticmethod
    def tile(array: Arr, dtype: DType) -> Valued:
        """One row of elements."""
        return Valued(array.reshape(1, -1), tile((1, array.size), dtype))

    @staticmethod
    def scalar(element: Any, dtype: DType) -> Valued:
        """One scalar."""
        return Valued(np.array([element], dtype.storage), scalar(dtype))

    @staticmethod
    def mask(count: int, rng: np.random.Generator) -> Valued:
        """A random packed predicate over one row of ``count`` elements."""
        t = mask_of(tile((1, count), UINT8))
        return Valued(rng.integers(0, 256, static(t.valid_shape), np.uint8), t)

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def size(self) -> int:
        return int(self.data.size)

    def select(self, keep: Arr) -> Valued:
        """Return the elements that are kept (scalars stay)."""
        if isinstance(self.type, ScalarType):
            return self
        return Valued.tile(self.data.reshape(-1)[keep], self.dtype)

    def element(self, i: int, of: int | None = None) -> str:
        """Return one element as text: value and bits."""
        flat = self.data.reshape(-1)
        one = flat[i : i + 1] if of is None or flat.size == of else flat[:1]
        return f"{decode(one, self.dtype)[0].item()!r} (0x{one.tobytes()[::-1].hex()})"


def evaluate(p: Pattern, codes: Assignment, values: Mapping[Var, Valued], other: bool = False) -> Valued:
    """Return the value of a pattern; raises :class:`Unfit`.

    ``other``: where the documents leave open what max and min give for NaN and for zeros of both signs, take
    the other choice (see :data:`OTHER_CHOICES`). No rule may depend on it.
    """
    if isinstance(p, Var):
        return values[p]
    if p.op == LITERAL:
        return _literal(*(codes[a] if isinstance(a, Var) else a for a in p.args))
    decl = OPS[p.op]
    children = [evaluate(c, codes, values, other) for c in p.children]
    operands: list[Any] = [None] * len(decl.operand_params)
    types: list[Any] = [None] * len(decl.operand_params)
    known: list[Any] = [None] * len(decl.operand_params)
    for position, child in zip(child_params(decl), children):
        types[position] = child.type
        known[position] = Value("x", child.type)
        operands[position] = _run_time(child)
        if isinstance(child.type, ScalarType):
            known[position] = Const(operands[position], child.dtype)
    args = [codes[a] if isinstance(a, Var) else a for a in p.args]
    # A variable for the rest of an operation: dims are made up to fit, by the seed drawn for it.
    made_up = next((codes[a] for a in p.args if isinstance(a, Var) and a.kind == "rest"), None)
    if made_up is not None:
        args[signature(decl).index("rest")] = -1
        fill_lists(decl, made_up, types, values, known, operands)
    elif "rest" in signature(decl) and isinstance(p.args[signature(decl).index("rest")], Var):
        args[signature(decl).index("rest")] = -1
    attrs = attributes(decl, args)
    if made_up is not None and "dtype" in decl.by_name:
        attrs["dtype"] = CODE_DTYPES[args[0]]
    try:
        result = decl.result(Call(decl, tuple(known), {**decl.defaults, **attrs}, None))
        if not isinstance(result, TileType) or result.dtype is not CODE_DTYPES[args[0]]:
            raise Unfit
        if p.op == "tile.cast" and children[0].dtype is not CODE_DTYPES[args[2]]:
            raise Unfit
        if other and p.op in OTHER_CHOICES:
            return Valued(_other_choice(p.op, children), result)
        out = eval_op(decl, operands, types, attrs, result)
    except TileggError as problem:
        raise Unfit from problem
    return Valued(np.ascontiguousarray(out.region), result)


def _other_choice(op: str, children: list[Valued]) -> Arr:
    first, *rest = children
    others = [scalar_like(_run_time(c), first.dtype) if isinstance(c.type, ScalarType) else c.data for c in rest]
    return other_choice(op, first.dtype, first.data, *others)


def _literal(kind: int, bits: int) -> Valued:
    value, dtype = literal_value(kind, bits)
    return Valued(np.array([value]), scalar(dtype))


def _run_time(v: Valued) -> Any:
    if isinstance(v.type, TileType):
        physical = static(v.type.shape)
        assert physical is not None
        return padded(v.data, physical, v.dtype)
    number = v.data[0].item() if v.data.dtype.kind in "fib" else decode(v.data, v.dtype)[0].item()
    return bool(number) if v.dtype.kind == "bool" else number


def attributes(decl: OpDecl, args: Sequence[int]) -> dict[str, Any]:
    """Return the attributes that a term's argument codes stand for."""
    attrs: dict[str, Any] = {}
    for name, code in zip(signature(decl)[2:], args[2:]):
        match name:
            case "mode":
                attrs["mode"] = CODE_MODES[code]
            case "saturation":
                attrs["saturation_mode"] = CODE_SATURATIONS[code]
            case "compare":
                attrs["cmp_type"] = code
            case "rest" if code >= 0:
                attrs.update(rest_of(code)[0])
    named = implied_dtype(decl)
    if named is not None:
        attrs[named] = CODE_DTYPES[args[0]]
    return attrs


def operations_of(p: Pattern) -> set[str]:
    """Return the names of the operations in a pattern."""
    if isinstance(p, Var):
        return set()
    return {p.op}.union(*map(operations_of, p.children))


def scalar_variables(p: Pattern) -> set[Var]:
    """Return the value variables that stand for a scalar operand somewhere."""
    if isinstance(p, Var) or p.op == LITERAL:
        return set()
    decl = OPS[p.op]
    found: set[Var] = set()
    for position, child in zip(child_params(decl), p.children):
        if isinstance(child, Term):
            found |= scalar_variables(child)
        elif decl.operand_params[position].kind is Kind.SCALAR:
            found.add(child)
    return found


def value_variables(lhs: Term, codes: Assignment, literals: frozenset[Var], free: DType) -> dict[Var, Role]:
    """Return per value variable what it stands for and the dtype the pattern gives it.

    ``literals``: variables known to be scalars. ``free``: the dtype of what is only compared.
    """
    firm: dict[Var, Role] = {}
    loose: dict[Var, Role] = {}
    stack = [lhs]
    while stack:
        term = stack.pop(0)
        decl = OPS[term.op]
        args = [codes[a] if isinstance(a, Var) else a for a in term.args]
        names = signature(decl)
        own = CODE_DTYPES[args[names.index("source")] if "source" in names else args[0]]
        comparison = compares(term.op)
        for position, child in zip(child_params(decl), term.children):
            param = decl.operand_params[position]
            if isinstance(child, Term):
                stack += [child] if child.op != LITERAL else []
            elif param.name == "mask":
                firm.setdefault(child, ("mask", UINT8))
            elif comparison:
                kind: RoleKind = "scalar" if param.kind is Kind.SCALAR else "tile"
                loose.setdefault(child, (kind, free if kind == "tile" or free.is_int else FP32))
            elif param.kind is Kind.SCALAR or child in literals:
                firm.setdefault(child, ("scalar", own if own.is_int else FP32))
            else:
                firm.setdefault(child, ("tile", own))
    return {**loose, **firm}
