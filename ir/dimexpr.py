"""Integer expressions in shapes (``"n"``, ``"(n + 7) // 8"``): parsed and evaluated, never executed."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from .types import Dim

Lookup = Callable[[str], int | None]
_Eval = Callable[[Lookup], int | None]

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(dim: Dim, names: Mapping[str, int]) -> int | None:
    """Return the value of a dimension, or ``None`` when a name is unknown or the text is none."""
    return dim if isinstance(dim, int) else compile_dim(dim)(names.get)


@lru_cache(maxsize=4096)
def compile_dim(text: str) -> _Eval:
    """Return a function from a name lookup to the value of the expression (``None``: not known)."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return lambda lookup: lookup(text)
    return _compile(tree, 0)


def _compile(node: ast.AST, depth: int) -> _Eval:
    if depth > 50:
        return _unknown
    match node:
        case ast.Constant(value=int() as value):
            return lambda lookup: value
        case ast.Name(id=name):
            return lambda lookup: lookup(name)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return _apply(operator.neg, [_compile(inner, depth + 1)])
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _apply(_BINARY[type(op)], [_compile(left, depth + 1), _compile(right, depth + 1)])
        case ast.Call(func=func, args=args, keywords=[]):
            return _call(func, [_compile(a, depth + 1) for a in args])
        case _:
            return _unknown


def _call(func: ast.AST, args: list[_Eval]) -> _Eval:
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    if name in ("min", "max") and args:
        return _apply(min if name == "min" else max, args)
    return args[0] if name == "cast" and args else _unknown


def _apply(fn: Callable[..., Any], args: list[_Eval]) -> _Eval:
    def value(lookup: Lookup) -> int | None:
        values = [a(lookup) for a in args]
        if any(v is None for v in values):
            return None
        try:
            return int(fn(*values))
        except ZeroDivisionError:
            return None

    return value


def _unknown(lookup: Lookup) -> int | None:
    return None
