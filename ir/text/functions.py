"""Function headers: decorators, parameters with directions, result annotations; types of calls to them."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ..diagnostics import Span, TileggError, error
from ..infer import type_of
from ..literals import misfit
from ..program import Const, Direction, Operand, Param, Value
from ..types import (
    UNKNOWN,
    Dim,
    OpaqueType,
    ScalarType,
    TensorType,
    TileType,
    TupleType,
    Type,
    shape_text,
    tile,
)
from .annotations import DimName, TypeReader
from .module import Module, Signature
from .state import outer_dim

_WORD = re.compile(r"[A-Za-z_]\w*")


def decorator_of(module: Module, node: ast.FunctionDef | ast.ClassDef, roots: tuple[str, ...]) -> ast.expr | None:
    """Return the decorator that is one of ``roots`` or below it (``pl.jit.incore``)."""
    for d in node.decorator_list:
        name = module.dotted(d.func if isinstance(d, ast.Call) else d) or ""
        if name in roots or any(name.startswith(r + ".") for r in roots):
            return d
    return None


def read_signature(module: Module, types: TypeReader, node: ast.FunctionDef, decorator: ast.expr | None) -> Signature:
    """Read a function's header; raises the diagnostics of all its parameters together."""
    signature = Signature(node, attrs=_decorator_attrs(module, decorator))
    problems: list[TileggError] = []
    args = node.args
    if args.vararg or args.kwarg or args.posonlyargs or args.kwonlyargs:
        raise error("TG002", "parameters are plain names", module.span(node), hint="no *, ** or keyword-only ones")
    if args.defaults:
        raise error("TG002", "a parameter with a default is outside the language", module.span(args.defaults[0]))
    plain = list(args.args)
    if plain and plain[0].arg == "self":
        signature.has_self = True
        plain = plain[1:]
    declared = {a.arg for a in plain}

    sizes: dict[str, ast.Name] = {}

    def dim(name: ast.Name) -> Dim:
        if name.id not in declared:
            return outer_dim(module, name)
        sizes.setdefault(name.id, name)
        return name.id

    params = []
    for a in plain:
        try:
            params.append(_param(module, types, a, dim))
        except TileggError as problem:
            problems.append(problem)
    try:
        if node.returns is not None:
            signature.results = _results(module, types, node.returns, dim)
    except TileggError as problem:
        problems.append(problem)
    if problems:
        raise TileggError(*(d for p in problems for d in p.diagnostics))
    signature.params = tuple(params)
    for p in params:
        if p.value.name in sizes and not isinstance(p.value.type, ScalarType | OpaqueType):
            raise error("TG006", f"{p.value.name} is no size, but a {p.value.type}", module.span(sizes[p.value.name]))
    return signature


def _decorator_attrs(module: Module, decorator: ast.expr | None) -> dict[str, str]:
    if decorator is None:
        return {}
    name = module.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator) or ""
    attrs = {} if name == "pl.function" else {"decorator": name}
    if isinstance(decorator, ast.Call):
        if decorator.args:
            raise error("TG002", "a decorator takes keywords only", module.span(decorator))
        attrs |= {k.arg: module.text(k.value) for k in decorator.keywords if k.arg is not None}
    return attrs


def _param(module: Module, types: TypeReader, a: ast.arg, dim: DimName) -> Param:
    if a.annotation is None:
        hint = f"e.g. {a.arg}: pl.Tensor[[16, 64], pl.FP32]"
        raise error("TG002", f"parameter {a.arg} has no annotation", module.span(a), hint=hint)
    direction: Direction = "In"
    annotation = a.annotation
    if isinstance(annotation, ast.Subscript):
        wrapper = module.dotted(annotation.value)
        if wrapper in ("pl.Out", "pl.InOut"):
            direction = "Out" if wrapper == "pl.Out" else "InOut"
            annotation = annotation.slice
    t = types.read(annotation, dim)
    if direction != "In" and isinstance(t, ScalarType):
        raise error("TG006", f"the scalar {a.arg} cannot be {direction}", module.span(a))
    return Param(Value(a.arg, t), direction)


def _results(module: Module, types: TypeReader, node: ast.expr, dim: DimName) -> tuple[Type, ...]:
    if isinstance(node, ast.Constant) and node.value is None:
        return ()
    t = types.read(node, dim)
    return t.items if isinstance(t, TupleType) else (t,)


# -- calls ---------------------------------------------------------------------------------------------------


def call_results(
    module: Module, callee: str, operands: Sequence[Operand], span: Span | None
) -> tuple[Type, ...] | None:
    """Return the result types of a call, the callee's sizes replaced by the caller's.

    ``None`` when they are not known. Raises TG006 to TG008 when an argument does not fit its parameter.
    """
    signature = module.signatures[callee]
    sizes: dict[str, Dim] = {}
    for param, operand in zip(signature.params, operands):
        _check_argument(callee, param, operand, sizes, span)
    results = signature.results if signature.results is not None else module.body_results(callee)
    if results is None:
        return None
    return tuple(_with_sizes(t, sizes) for t in results)


def global_sizes(module: Module, function: str, t: Type, known: set[str]) -> Type:
    """Return a result type in which sizes local to the function are dynamic dimensions of the file."""
    if not isinstance(t, TileType | TensorType):
        return t
    sizes: dict[str, Dim] = {}
    for d in (*t.shape, *(t.valid or ())):
        for name in _WORD.findall(d) if isinstance(d, str) else ():
            if name not in known and name not in ("pl", "min", "max"):
                sizes[name] = f"{function}__{name}"
                module.declare_dynamic(f"{function}__{name}")
    return _with_sizes(t, sizes) if sizes else t


def _check_argument(callee: str, param: Param, operand: Operand, sizes: dict[str, Dim], span: Span | None) -> None:
    want, got = param.value.type, type_of(operand)
    name = param.value.name
    if isinstance(operand, Const) and isinstance(want, ScalarType):
        if found := misfit(operand, want.dtype):
            raise error("TG011", f"{callee}: argument {name}: {found[0]}", span, reason=found[1])
        if isinstance(operand.value, int):
            sizes[name] = int(operand.value)
        return
    if got is None or isinstance(got, OpaqueType) or isinstance(want, OpaqueType):
        return
    message = f"{callee}: argument {name} must be a {want}, got a {got}"
    if type(want) is not type(got):
        raise error("TG006", message, span)
    if isinstance(want, ScalarType) and isinstance(got, ScalarType):
        if isinstance(operand, Value):
            sizes[name] = operand.name
        if want.dtype is not got.dtype and not (want.dtype.is_int and got.dtype.is_int):
            raise error("TG007", message, span)
    elif isinstance(want, TileType | TensorType) and isinstance(got, TileType | TensorType):
        if isinstance(want, TensorType) and isinstance(got, TensorType) and want.is_window and not got.is_window:
            raise error("TG006", message, span, hint="peers can address windows only")
        if want.dtype is not got.dtype:
            raise error("TG007", message, span)
        if not _unify(want.shape, got.shape, sizes):
            reason = f"shapes {shape_text(want.shape)} and {shape_text(got.shape)}"
            raise error("TG008", message, span, reason=reason)


def _unify(want: Sequence[Dim], got: Sequence[Dim], sizes: dict[str, Dim]) -> bool:
    if len(want) != len(got):
        return False
    for w, g in zip(want, got):
        if isinstance(w, str):
            sizes.setdefault(w, g)
        elif isinstance(g, int) and w != g:
            return False
    return True


def _with_sizes(t: Type, sizes: dict[str, Dim]) -> Type:
    """Return the type with the callee's names replaced where the caller's are known."""

    def dim(d: Dim) -> Dim:
        if isinstance(d, int):
            return d
        if d in sizes:
            return sizes[d]
        return _WORD.sub(lambda m: _in_parentheses(sizes.get(m.group(), m.group())), d)

    def shape(dims: Sequence[Dim] | None) -> tuple[Dim, ...] | None:
        return None if dims is None else tuple(dim(d) for d in dims)

    if isinstance(t, TileType):
        return tile(shape(t.shape) or (), t.dtype, shape(t.valid), t.memory, t.layout, t.memref)
    if isinstance(t, TensorType):
        return TensorType(shape(t.shape) or (), t.dtype, shape(t.stride), t.layout, shape(t.valid), t.kind, t.memref)
    return UNKNOWN if isinstance(t, OpaqueType) and t == UNKNOWN else t


def _in_parentheses(d: Dim) -> str:
    text = str(d)
    return text if text.isidentifier() or text.isdigit() else f"({text})"
