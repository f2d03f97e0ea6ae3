"""Scalar stores of the blocks of one launch that fall on one cache line: each block writes the whole line back.

A scalar store and a ``Set`` notify go through the scalar cache of the core. When two cores change different elements of
one line, the later write-back undoes the other's. Found from the text, where the distance between the elements of two
neighbouring blocks is a known number of bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .diagnostics import Diagnostic
from .program import Block, Const, For, Function, If, Op, Scope, Statement, Value, While, flat_operands, inner_blocks
from .types import Dim, ScalarType, TensorType

#: Bytes of a cache line.
LINE = 64
_SPMD = re.compile(r"\.spmd\(\s*(?:core_num\s*=\s*)?(\w+)")
_BLOCK_QUERY = "get_block_idx"
#: The number of the block in a linear form; all other names stand for values that are the same in every block.
_BLOCK = "#block"
#: Integer combination of names; ``None`` for a value that differs between blocks in an unknown way.
_Form = dict[str, int] | None


def lane_problems(f: Function) -> list[Diagnostic]:
    """Return the scalar stores of a function with which the blocks of a launch undo each other's.

    A launch is a block loop or block scope, or the function itself where it asks for its block.
    """
    return list(_Launch("").block(f.body, False))


def _launched(s: Statement) -> Block | None:
    """Return the body that several blocks run, if the statement launches them."""
    if isinstance(s, For) and s.kind == "spmd":
        counts = [b.value for b in s.bounds if isinstance(b, Const)]
        return None if len(counts) == 3 and counts[1] - counts[0] <= 1 else s.body
    if isinstance(s, Scope):
        found = _SPMD.search(s.header)
        return s.body if found is not None and found.group(1) != "1" else None
    return None


@dataclass
class _Launch:
    """Follows the scalars of one launch; names that are not in ``forms`` are the same in every block."""

    block_name: str
    forms: dict[str, _Form] = field(default_factory=dict)

    def of(self, o: Any) -> _Form:
        """Return the linear form of an operand."""
        if isinstance(o, Const):
            return {} if not isinstance(o.value, int) else {"": o.value}
        if not isinstance(o, Value):
            return None
        if o.name == self.block_name:
            return {_BLOCK: 1}
        return self.forms.get(o.name, {o.name: 1})

    def differs(self, o: Any) -> bool:
        """Return whether an operand may differ between blocks."""
        form = self.of(o)
        return form is None or _BLOCK in form

    def block(self, block: Block, chosen: bool) -> Iterator[Diagnostic]:
        """Look at the statements; ``chosen``: which blocks come here depends on their number."""
        for s in block.statements:
            if isinstance(s, Op):
                problem = None if chosen else self.store(s)
                if problem is not None:
                    yield problem
                self.note(s)
                continue
            body = _launched(s)
            if body is not None:
                yield from _Launch(s.var.name if isinstance(s, For) else "").block(body, False)
                continue
            inside = chosen
            if isinstance(s, If | While):
                inside = chosen or self.differs(s.cond)
            if isinstance(s, For | While):
                self.forms |= dict.fromkeys((c.arg.name for c in s.carried), None)
            if isinstance(s, For) and any(map(self.differs, s.bounds)):
                self.forms[s.var.name] = None
            for inner in inner_blocks(s):
                yield from self.block(inner, inside)
            if isinstance(s, For | While | If):
                self.forms |= dict.fromkeys((v.name for v in s.results), None)

    def note(self, s: Op) -> None:
        """Keep the forms of an operation's scalar results."""
        for v in s.results:
            if isinstance(v.type, ScalarType):
                self.forms[v.name] = self.result(s, v.name)

    def result(self, s: Op, name: str) -> _Form:
        if s.name.rpartition(".")[2] == _BLOCK_QUERY:
            return {_BLOCK: 1}
        given = [self.of(o) for o in s.operands]
        if s.name == "scalar.cast":
            return given[0]
        if s.name in ("scalar.add", "scalar.sub") and len(given) == 2:
            return _sum(given[0], given[1], 1 if s.name == "scalar.add" else -1)
        if s.name == "scalar.mul" and len(given) == 2:
            for a, b in (given, given[::-1]):
                if a is not None and set(a) <= {""}:
                    return _sum({}, b, a.get("", 0))
        return None if any(self.differs(o) for o in flat_operands(s.operands)) else {name: 1}

    def store(self, s: Op) -> Diagnostic | None:
        """Return what is wrong with a store through the scalar cache."""
        sets = s.name == "pld.system.notify" and s.attrs.get("op") == "set"
        if s.name != "tensor.write" and not sets:
            return None
        target, indices = s.operands[0], s.operands[2 if sets else 1]
        if not isinstance(target, Value) or not isinstance(target.type, TensorType) or not isinstance(indices, tuple):
            return None
        apart = self.distance(target.type, indices)
        if apart is None or not 0 < abs(apart) < LINE or (sets and self.differs(s.operands[1])):
            return None
        what = "a Set notify" if sets else "a scalar store"
        return Diagnostic(
            "TG070", f"the blocks of a launch write elements {abs(apart)} bytes apart into {target.name}", s.span,
            f"{what} writes its whole {LINE}-byte line back, and undoes those of other cores",
            f"place the elements {LINE} bytes apart, let one block write them, or store a tile",
        )  # fmt: skip

    def distance(self, t: TensorType, indices: tuple[Any, ...]) -> int | None:
        """Return the bytes between the elements of two neighbouring blocks, if that is a known number."""
        total = 0
        stride: Dim = 1
        for axis in range(len(t.shape) - 1, -1, -1):
            form = self.of(indices[axis]) if axis < len(indices) else None
            if form is None:
                return None
            step = t.stride[axis] if t.stride is not None else stride
            moved = form.get(_BLOCK, 0)
            if moved and not isinstance(step, int):
                return None
            total += moved * step if isinstance(step, int) else 0
            size = t.shape[axis]
            stride = stride * size if isinstance(stride, int) and isinstance(size, int) else "?"
        return total * t.dtype.bits // 8


def _sum(a: _Form, b: _Form, factor: int) -> _Form:
    if a is None or b is None:
        return None
    out = dict(a)
    for name, n in b.items():
        out[name] = out.get(name, 0) + factor * n
    return {name: n for name, n in out.items() if n}
