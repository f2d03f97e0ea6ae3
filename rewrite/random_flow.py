"""Loops and branches of random programs: their blocks are drawn as the rest is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..ir.dtypes import BOOL, INDEX, INT32
from ..ir.program import Block, Carried, Const, For, If, Op, Operand, Statement, Value, While, Yield, index
from ..ir.types import scalar

if TYPE_CHECKING:
    from .random_programs import Maker


def loop(m: Maker, size: int) -> None:
    """A counted loop that carries a tile."""
    start = m.pick()
    arg, var = Value(m.fresh("acc"), start.type), Value(m.fresh("i"), scalar(INDEX))
    made, inner = _body(m, size, arg, var)
    result = Value(m.fresh("r"), start.type)
    first, stop, step = (index(b) for b in m.rng.choice([(0, 2, 1), (0, 3, 2), (3, 0, -1), (2, 2, 1), (-2, 1, 1)]))
    body = Block((*made, Yield((_carried_on(m, inner, start, arg),))))
    m.statements.append(For("range", var, (first, stop, step), (Carried(arg, start),), body, (result,)))
    m.tiles.append(result)


def repeat(m: Maker, size: int) -> None:
    """A loop that runs while a carried number is small; it carries a tile as well."""
    start = m.pick()
    dtype = m.rng.choice((INDEX, INT32))
    arg, count = Value(m.fresh("acc"), start.type), Value(m.fresh("n"), scalar(dtype))
    going, more = Value(m.fresh("c"), scalar(BOOL)), Value(m.fresh("n"), scalar(dtype))
    limit = Const(m.rng.randint(0, 3), dtype)
    head = Block((Op("scalar.lt", (count, limit), {}, (going,)),))
    made, inner = _body(m, size, arg, count)
    last = Op("scalar.add", (count, Const(1, dtype)), {}, (more,))
    body = Block((*made, last, Yield((more, _carried_on(m, inner, start, arg)))))
    end, result = Value(m.fresh("n"), scalar(dtype)), Value(m.fresh("r"), start.type)
    carried = (Carried(count, Const(0, dtype)), Carried(arg, start))
    m.statements.append(While(carried, head, going, body, (end, result)))
    m.scalars.append(end)
    m.tiles.append(result)


def _body(m: Maker, size: int, arg: Value, counter: Value) -> tuple[list[Statement], list[Value]]:
    """Draw the statements of a loop's body, in which what it carries and its counter can be used."""
    m.tiles.append(arg)
    m.scalars.append(counter)
    made, inner = m.inside(size)
    m.tiles.remove(arg)
    m.scalars.remove(counter)
    return made, inner


def _carried_on(m: Maker, inner: list[Value], start: Value, arg: Value) -> Value:
    same = [v for v in inner if v.type == start.type and v.name != start.name]
    return same[-1] if same and m.rng.random() < 0.9 else arg


def branch(m: Maker, size: int) -> None:
    """A branch that gives a tile."""
    base = m.pick()
    condition = _condition(m)
    sides = []
    for _ in range(2):
        made, inner = m.inside(size)
        same = [v for v in inner if v.type == base.type]
        sides.append(Block((*made, Yield((same[-1],)))))
    result = Value(m.fresh("b"), base.type)
    m.statements.append(If(condition, sides[0], sides[1], (result,)))
    m.tiles.append(result)


def _condition(m: Maker) -> Operand:
    flag = m.scalar(INT32)
    condition = Value(m.fresh("c"), scalar(BOOL))
    m.statements.append(Op("scalar.gt", (flag, Const(0, INT32)), {}, (condition,)))
    return condition


#: Every form of control flow.
FLOWS: tuple[Callable[[Maker, int], None], ...] = (loop, branch, repeat)
