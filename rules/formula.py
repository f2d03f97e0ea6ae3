"""Small integer formulas in target files, such as ``"align(cols + 2 * ceil(cols, 64))"``.

A formula is parsed into a tree of known nodes and walked; it is never executed as code.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def ceil_div(value: int, step: int) -> int:
    """``value / step`` rounded up, for ``step`` > 0."""
    return -(-value // step)


_FUNCTIONS: dict[str, tuple[int, Callable[..., int]]] = {
    "min": (2, min),
    "max": (2, max),
    "ceil": (2, ceil_div),
}
_MAX_LENGTH = 400


class FormulaError(ValueError):
    """The text is no formula; the message says why."""


@dataclass(frozen=True, slots=True)
class Formula:
    """An integer expression over named values with + - * // %, ``min max ceil`` and ``align``.

    ``ceil(a, b)`` is a / b rounded up; ``align(a)`` is a rounded up to the value ``block``.
    """

    text: str
    tree: ast.expr

    @staticmethod
    def parse(text: str, names: frozenset[str]) -> Formula:
        """Parse ``text``; raises :class:`FormulaError` on anything but arithmetic over ``names``."""
        if len(text) > _MAX_LENGTH:
            raise FormulaError(f"longer than {_MAX_LENGTH} characters")
        try:
            tree = ast.parse(text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise FormulaError("not an arithmetic expression") from None
        _check(tree, names)
        return Formula(text, tree)

    def value(self, names: Mapping[str, int]) -> int:
        """The value under ``names``; raises ZeroDivisionError as arithmetic does."""
        return _evaluate(self.tree, names)


def _check(node: ast.expr, names: frozenset[str]) -> None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return
    if isinstance(node, ast.Name):
        if node.id not in names:
            raise FormulaError(f"unknown name {node.id!r}; known: {', '.join(sorted(names))}")
        return
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        _check(node.left, names)
        _check(node.right, names)
        return
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        name, count = node.func.id, len(node.args)
        if count == (1 if name == "align" else _FUNCTIONS.get(name, (-1, None))[0]):
            for argument in node.args:
                _check(argument, names)
            return
        raise FormulaError(f"unknown function {name!r} of {count} arguments")
    raise FormulaError(f"{ast.unparse(node)!r} is not integer arithmetic")


def _evaluate(node: ast.expr, names: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
    assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    values = [_evaluate(argument, names) for argument in node.args]
    if node.func.id == "align":
        return ceil_div(values[0], names["block"]) * names["block"]
    return _FUNCTIONS[node.func.id][1](*values)
