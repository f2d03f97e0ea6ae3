"""What the text alone tells: which control flow depends on the rank or on data, and where barriers stand in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...ir.diagnostics import Span
from ...ir.op import OPS
from ...ir.program import (
    Block,
    For,
    Function,
    If,
    Jump,
    Op,
    Program,
    Return,
    Statement,
    Value,
    While,
    Yield,
    flat_operands,
    inner_blocks,
    walk,
)
from ...ir.ranks_flow import communicates
from ...ir.types import ScalarType, TensorType

#: What a value may depend on: the rank, a window's contents, a plain tensor's contents, a scalar parameter.
RANK, WINDOW, INPUT, SCALAR = "rank", "window", "input", "scalar"
_READS = ("tensor.read", "tile.read")
_SIGNALS = ("pld.system.notify", "pld.system.wait", "pld.system.defer_wait")


@dataclass
class Dependence:
    """Of a function: marks of each value, and the control statements with the marks that decide them."""

    marks: dict[str, frozenset[str]] = field(default_factory=dict)
    control: dict[int, frozenset[str]] = field(default_factory=dict)

    def of(self, operand: object) -> frozenset[str]:
        """Return the marks of an operand."""
        return self.marks.get(operand.name, frozenset()) if isinstance(operand, Value) else frozenset()


def dependence(f: Function) -> Dependence:
    """Return what the scalars of a function depend on; repeated until nothing changes, for values of loops."""
    d = Dependence()
    for p in f.params:
        if isinstance(p.value.type, ScalarType):
            d.marks[p.value.name] = frozenset((SCALAR,))
    while True:
        before = dict(d.marks)
        _block(f.body, d, frozenset())
        if d.marks == before:
            return d


def _block(block: Block, d: Dependence, outer: frozenset[str]) -> None:
    for s in block.statements:
        if isinstance(s, Op):
            _op(s, d, outer)
            continue
        marks = outer
        if isinstance(s, For):
            marks = outer | _all(d, s.bounds)
            _add(d, (s.var,), marks)
        elif isinstance(s, If | While):
            marks = outer | d.of(s.cond)
        if isinstance(s, For | While):
            for c in s.carried:
                _add(d, (c.arg,), d.of(c.init) | marks)
        d.control[id(s)] = marks
        for inner in inner_blocks(s):
            _block(inner, d, marks)
        if isinstance(s, For | While | If):
            _results(s, d, marks)


def _results(s: For | While | If, d: Dependence, marks: frozenset[str]) -> None:
    yields = [y for b in inner_blocks(s) for y in b.statements if isinstance(y, Yield)]
    carried = s.carried if isinstance(s, For | While) else ()
    for i, v in enumerate(s.results):
        found = marks.union(*(d.of(y.operands[i]) for y in yields if i < len(y.operands)))
        if i < len(carried):
            _add(d, (carried[i].arg,), found)
            found |= d.of(carried[i].arg)
        _add(d, (v,), found)


def _op(s: Op, d: Dependence, outer: frozenset[str]) -> None:
    scalars = [v for v in s.results if isinstance(v.type, ScalarType)]
    if not scalars:
        return
    found = _all(d, s.operands)
    if s.name == "pld.system.rank":
        found |= {RANK}
    elif s.name in _READS:
        source = s.operands[0]
        window = isinstance(source, Value) and isinstance(source.type, TensorType) and source.type.is_window
        found |= {WINDOW if window else INPUT}
    elif s.name == "call":
        found |= {INPUT}
    _add(d, scalars, found)


def _all(d: Dependence, operands: object) -> frozenset[str]:
    out: frozenset[str] = frozenset()
    for o in flat_operands(operands if isinstance(operands, tuple) else ()):
        out |= d.of(o)
    return out


def _add(d: Dependence, values: object, marks: frozenset[str]) -> None:
    for v in values if isinstance(values, list | tuple) else ():
        d.marks[v.name] = d.marks.get(v.name, frozenset()) | marks


def influences(program: Program) -> frozenset[str]:
    """Return what decides which events happen: marks of control flow around, and of operands of, communication.

    The value a notify sends does not count: it changes no event.
    """
    out: frozenset[str] = frozenset()
    for f in program.functions:
        d = dependence(f)
        for s in walk(f.body):
            if isinstance(s, Op):
                if s.name == "pld.system.notify":
                    out |= _all(d, s.operands[1:3])
                elif s.name.startswith("pld.") or s.name in _SIGNALS:
                    out |= _all(d, s.operands)
            elif any(_talks(b) for b in inner_blocks(s)):
                out |= d.control.get(id(s), frozenset())
    return out


def deciding(program: Program, place: Span, statement: Op | None) -> list[tuple[Op, frozenset[str]]]:
    """Return a statement of the program, or else all operations at a place, with what decides each.

    That are the marks of its operands and of the control flow around it. The rank is left out: it takes every value.
    """
    out: list[tuple[Op, frozenset[str]]] = []
    for f in program.functions:
        d = dependence(f)
        for s, outer in _under(f.body, d, frozenset()):
            if s is statement or s.span == place:
                out.append((s, (outer | _all(d, s.operands)) - {RANK}))
    # What a collective is lowered to all stands at its place.
    return [x for x in out if x[0] is statement] or out


def _under(block: Block, d: Dependence, outer: frozenset[str]) -> Iterator[tuple[Op, frozenset[str]]]:
    for s in block.statements:
        if isinstance(s, Op):
            yield s, outer
        for inner in inner_blocks(s):
            yield from _under(inner, d, outer | d.control.get(id(s), frozenset()))


def _talks(block: Block) -> bool:
    return any(isinstance(s, Op) and communicates(s) for s in walk(block))


# -- barriers --------------------------------------------------------------------------------------------------


def divergent(program: Program) -> Iterator[tuple[Statement, frozenset[int]]]:
    """Yield the control statements that depend on the rank and enclose a barrier, with the statements inside (by id).

    A barrier: a loop that notifies peers by its variable beside a loop that waits by its variable, or a collective.
    The innermost such statement comes first.
    """
    for f in program.functions:
        d = dependence(f)
        yield from _divergent(f.body, d)


def _divergent(block: Block, d: Dependence) -> Iterator[tuple[Statement, frozenset[int]]]:
    for i, s in enumerate(block.statements):
        for inner in inner_blocks(s):
            yield from _divergent(inner, d)
        rest = Block(block.statements[i + 1 :])
        if isinstance(s, If) and RANK in d.of(s.cond) and _leaves(s) and _holds_barrier(rest):
            yield s, frozenset(map(id, walk(rest)))
        if isinstance(s, If):
            decided = d.of(s.cond)
        elif isinstance(s, For):
            decided = _all(d, s.bounds)
        elif isinstance(s, While):
            decided = d.of(s.cond)
        else:
            continue
        if RANK in decided and any(_holds_barrier(b) for b in inner_blocks(s)):
            yield s, frozenset(id(x) for b in inner_blocks(s) for x in walk(b))


def _leaves(s: If) -> bool:
    """Return whether a branch returns, or leaves the loop around it."""
    return any(isinstance(x, Return | Jump) for b in inner_blocks(s) for x in walk(b))


def _holds_barrier(block: Block) -> bool:
    notifies = any(_loop_over(s, "pld.system.notify", 1) for s in block.statements)
    waits = any(_loop_over(s, "pld.system.wait", 1) for s in block.statements)
    if notifies and waits:
        return True
    if any(isinstance(s, Op) and s.name in OPS and OPS[s.name].family == "collectives" for s in block.statements):
        return True
    return any(_holds_barrier(b) for s in block.statements for b in inner_blocks(s))


def _loop_over(s: Statement, name: str, operand: int) -> bool:
    """Return whether a loop's variable chooses the peer of a notify, or the cell of a wait."""
    if not isinstance(s, For):
        return False
    derived = {s.var.name}
    for inner in walk(s.body):
        if not isinstance(inner, Op):
            continue
        if inner.name == name:
            chosen = inner.operands[operand]
            values = flat_operands(chosen if isinstance(chosen, tuple) else (chosen,))
            if any(isinstance(v, Value) and v.name in derived for v in values):
                return True
        elif any(isinstance(v, Value) and v.name in derived for v in flat_operands(inner.operands)):
            derived |= {v.name for v in inner.results}
    return False
