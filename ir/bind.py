"""Python arguments bound to a declared operation's parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .diagnostics import error
from .dtypes import DType, parse_dtype
from .infer import check_operand
from .literals import operand
from .op import Kind, OpDecl, OpParam
from .program import Operand
from .text.words import is_worded, read_word


def bind_arguments(
    decl: OpDecl, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[tuple[Operand, ...], dict[str, Any]]:
    """Return operands in declared order and attributes; raises TG004 to TG006."""
    positional = [p for p in decl.params if not p.keyword_only]
    if len(args) > len(positional):
        raise error("TG005", f"{decl.name} takes {len(positional)} positional operands, got {len(args)}")
    given = {p.name: a for p, a in zip(positional, args)}
    for key, value in kwargs.items():
        if key in given:
            raise error("TG005", f"{decl.name}: {key!r} is given twice")
        if key not in decl.by_name:
            raise error("TG005", f"{decl.name} has no operand {key!r}", hint=f"it takes: {', '.join(decl.by_name)}")
        given[key] = value
    for p in decl.params:
        if p.required and p.name not in given:
            raise error("TG005", f"{decl.name}: {p.name!r} is missing")
    operands = tuple(operand(given.get(p.name)) for p in decl.operand_params)
    for p, o in zip(decl.operand_params, operands):
        check_operand(decl, p, o, None)
    attrs = {p.name: _attribute(p, given[p.name]) for p in decl.attr_params if p.name in given}
    return operands, attrs


def _attribute(param: OpParam, value: Any) -> Any:
    if value is None:
        return None
    if param.kind is Kind.DTYPE:
        return value if isinstance(value, DType) else parse_dtype(str(value))
    if is_worded(param.kind):
        return read_word(param.kind, value, None)
    if param.kind is Kind.FLAG:
        return bool(value)
    if param.kind is Kind.INT:
        return int(value)
    return float(value) if param.kind is Kind.NUMBER else value
