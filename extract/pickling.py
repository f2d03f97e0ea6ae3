"""Lowered programs between processes: what is a number of this process is written by its name.

Numbers of rules depend on the order in which rules were declared, codes of shapes and of what terms do not spell out on
what was lowered before. Operations and targets say by themselves how they are written.
"""

from __future__ import annotations

import copyreg
from typing import Any

from ..ir.op import OpDecl
from ..ir.types import Type
from ..rewrite.encode import shape_code
from ..rewrite.graph import OPERATION, Node
from ..rules.rule import RULES, rule_names
from ..rules.terms import rest_from, rest_spelling, signature

#: Where the code of a shape stands in a term.
_SHAPE = 1


def rule_name(number: int) -> str | int:
    """Return the name of a rule, for numbers that are no rule's the number."""
    return rule_names().get(number, number)


def rule_number(name: str | int) -> int:
    """Return the number of a rule by what :func:`rule_name` gave."""
    return name if isinstance(name, int) else RULES[name].number


def _spelled(decl: OpDecl, key: tuple[int, ...]) -> tuple[Any, ...]:
    """Return the argument codes of a term, without the shape's and with the rest spelled out."""
    return tuple(
        None if i == _SHAPE else rest_spelling(code) if name == "rest" else code
        for i, (name, code) in enumerate(zip(signature(decl), key))
    )


def _coded(decl: OpDecl, type_: Type, spelled: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(
        shape_code(type_) if i == _SHAPE else rest_from(code) if name == "rest" else code
        for i, (name, code) in enumerate(zip(signature(decl), spelled))
    )


def _reduced(node: Node) -> tuple[Any, ...]:
    key: tuple[Any, ...] = node.key
    if node.kind == OPERATION and node.key:
        assert node.decl is not None
        key = _spelled(node.decl, node.key)
    return _made, (
        node.kind, node.decl, node.type, node.attrs, node.operands, node.children, rule_name(node.rule), node.origin,
        node.approx, node.value, key,
    )  # fmt: skip


def _made(kind: int, decl: OpDecl | None, type_: Type | None, *rest: Any) -> Node:
    attrs, operands, children, rule, origin, approx, value, key = rest
    if kind == OPERATION and key:
        assert decl is not None and type_ is not None
        key = _coded(decl, type_, key)
    return Node(kind, decl, type_, attrs, operands, children, rule_number(rule), origin, approx, value, key)


copyreg.pickle(Node, _reduced)
