"""Forms spelled out: as operations, and as the whole function with a region's values in new forms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..ir.op import Kind
from ..ir.program import (
    Block,
    For,
    Function,
    If,
    Op,
    Operand,
    Return,
    Scope,
    Statement,
    Value,
    While,
    Yield,
    flat_operands,
)
from ..rewrite.graph import LEAF, OPERATION, Node
from ..rewrite.region import Region, uses
from ..rules.terms import child_params
from .forms import Form, parts

#: The forms of a region's results by name.
State = Mapping[str, Form]


@dataclass(frozen=True)
class Spelled:
    """The operations of a state, each form once, and the operand that every result has become."""

    ops: tuple[Op, ...]
    classes: tuple[int, ...]
    results: dict[str, Operand]


def spelled(region: Region, state: State) -> Spelled:
    """Return a state as operations in an order that defines everything before its use."""
    leaves = {leaf.name for leaf in region.leaves}
    named: dict[int, str] = {}
    for name, form in state.items():
        if name not in leaves:
            named.setdefault(id(form), name)
    taken = {*state, *leaves}
    values: dict[int, Operand] = {}
    ops: list[Op] = []
    classes: list[int] = []
    for form in parts(state.values()):
        made = _operation(region, form, values, named.get(id(form)), taken)
        if isinstance(made, Op):
            ops.append(made)
            classes.append(form.c)
        values[id(form)] = made.result if isinstance(made, Op) else made
    return Spelled(tuple(ops), tuple(classes), {name: values[id(form)] for name, form in state.items()})


def _operation(
    region: Region, form: Form, values: Mapping[int, Operand], name: str | None, taken: set[str]
) -> Op | Operand:
    node = form.node
    if node.kind == LEAF:
        return region.leaves[node.key[0]]
    if node.kind != OPERATION or node.decl is None:
        return node.value
    if node.decl.name == "tile.approx":
        return values[id(form.children[0])]
    t = region.ops[node.origin].result.type if node.origin >= 0 else node.type
    result = Value(name or _fresh(region, node, taken), t)  # type: ignore[arg-type]
    span = region.ops[node.origin].span if node.origin >= 0 else None
    return Op(node.decl.name, _operands(region, form, values), dict(node.attrs), (result,), span)


def _operands(region: Region, form: Form, values: Mapping[int, Operand]) -> tuple[Operand, ...]:
    node = form.node
    assert node.decl is not None
    children = dict(zip(child_params(node.decl), form.children))
    written = region.ops[node.origin] if node.origin >= 0 else None
    found: list[Any] = []
    for i, p in enumerate(node.decl.operand_params):
        if i in children:
            found.append(values[id(children[i])])
        elif p.kind is Kind.DIMS:
            found.append(node.operands[i])
        else:
            found.append(written.operands[i] if written is not None else None)
    return tuple(found)


def _fresh(region: Region, node: Node, taken: set[str]) -> str:
    assert node.decl is not None
    stem = region.ops[node.origin].result.name if node.origin >= 0 else node.decl.name.split(".")[-1]
    name, version = stem, 0
    while name in taken:
        name, version = f"{stem}_tmp_v{version}", version + 1
    taken.add(name)
    return name


# -- the whole function ------------------------------------------------------------------------------------


def returning(f: Function, region: Region, value: Value) -> Function:
    """Return a function that also returns a value of a region, where that stands outside every loop and branch."""
    *before, last = f.body.statements or (None,)
    top = {r.name for s in before if isinstance(s, Op) for r in s.results}
    if not isinstance(last, Return) or not any(op.result.name in top for op in region.ops):
        return f
    more = replace(last, operands=(*last.operands, value))
    return replace(f, body=Block((*f.body.statements[:-1], more)), results=(*f.results, value.type))


def with_states(f: Function, states: Sequence[tuple[Region, State]]) -> Function:
    """Return a function whose regions compute their results by other forms, each right before its first use."""
    return replace(f, body=_Writer(states).block(f.body))


class _Writer:
    def __init__(self, states: Sequence[tuple[Region, State]]) -> None:
        self.gone = {op.result.name for region, _ in states for op in region.ops}
        self.becomes: dict[str, Operand] = {}
        self.makers: dict[str, Op] = {}
        #: Leaves that a region gives in another form; its own operations go on reading the leaf.
        self.own: dict[str, frozenset[str]] = {}
        for region, state in states:
            done = spelled(region, state)
            own = frozenset(leaf.name for leaf in region.leaves if leaf.name in state)
            fresh = {op.result.name: self._apart(op.result) for op in done.ops if op.result.name not in state}
            for op in done.ops:
                made = replace(op, operands=tuple(_named(o, fresh) for o in op.operands),
                               results=(fresh.get(op.result.name, op.result),))  # fmt: skip
                self.makers[made.result.name] = made
                self.own[made.result.name] = own
            self.becomes.update({name: _named(o, fresh) for name, o in done.results.items()})
        self.there: set[str] = set()
        written = self.gone | {leaf.name for region, _ in states for leaf in region.leaves}
        #: Values that can be asked for here; at first those that only a state gives.
        self.home: set[str] = {name for _, state in states for name in state if name not in written}

    def _apart(self, value: Value) -> Value:
        """Return a value with a name that nothing else in the function has."""
        return Value(f"{value.name}__{len(self.makers)}_tmp", value.type)

    def block(self, block: Block) -> Block:
        out: list[Statement] = []
        there, home = set(self.there), set(self.home)
        self.home |= {r.name for s in block.statements if isinstance(s, Op) for r in s.results}
        for s in block.statements:
            if isinstance(s, Op) and s.results and s.results[0].name in self.gone:
                continue
            for name in uses(s):
                # What a loop's own region computes is asked for inside the loop.
                if name in self.home:
                    self._demand(self.becomes.get(name), out)
            out.append(self._kept(s))
        self.there, self.home = there, home
        return Block(tuple(out))

    def _demand(self, o: Operand, out: list[Statement]) -> None:
        stack = [o]
        while stack:
            value = stack[-1]
            op = self.makers.get(value.name) if isinstance(value, Value) else None
            if op is None or op.result.name in self.there:
                stack.pop()
                continue
            operands = tuple(self.sub(x, self.own[op.result.name]) for x in op.operands)
            waiting = [x for x in flat_operands(operands) if isinstance(x, Value) and self._missing(x)]
            if waiting:
                stack += waiting
                continue
            out.append(replace(op, operands=operands))
            self.there.add(op.result.name)
            stack.pop()

    def _missing(self, value: Value) -> bool:
        return value.name in self.makers and value.name not in self.there

    def sub(self, o: Operand, own: frozenset[str] = frozenset()) -> Operand:
        """Return what an operand has become; ``own`` names stay."""
        if isinstance(o, tuple):
            return tuple(self.sub(x, own) for x in o)
        return self.becomes.get(o.name, o) if isinstance(o, Value) and o.name not in own else o

    def _kept(self, s: Statement) -> Statement:
        match s:
            case For():
                start, stop, step = map(self.sub, s.bounds)
                carried = tuple(replace(c, init=self.sub(c.init)) for c in s.carried)
                return replace(s, bounds=(start, stop, step), carried=carried, body=self.block(s.body))
            case While():
                carried = tuple(replace(c, init=self.sub(c.init)) for c in s.carried)
                return replace(s, carried=carried, head=self.block(s.head), cond=self.sub(s.cond),
                               body=self.block(s.body))  # fmt: skip
            case If():
                return replace(s, cond=self.sub(s.cond), then=self.block(s.then), orelse=self.block(s.orelse))
            case Scope():
                return replace(s, body=self.block(s.body))
            case Op() | Yield() | Return():
                return replace(s, operands=tuple(map(self.sub, s.operands)))
            case _:
                return s


def _named(o: Operand, fresh: Mapping[str, Value]) -> Operand:
    if isinstance(o, tuple):
        return tuple(_named(x, fresh) for x in o)
    return fresh.get(o.name, o) if isinstance(o, Value) else o
