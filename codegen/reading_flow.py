"""Control flow read back: branches, loops, sections, calls and launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import StringAttr, SymbolRefAttr
from xdsl.ir import Operation, SSAValue

from ..ir import program as ir
from ..ir.dtypes import INDEX
from ..ir.types import PtrType, Type, scalar
from .pto.elements import spell
from .reading import FunctionReader, type_of

Flow = Callable[[FunctionReader, Any], None]


def _typed(r: FunctionReader, x: SSAValue) -> Type:
    t = type_of(x.type)
    if t is None or isinstance(t, PtrType):
        r.fail(f"control flow hands on a {spell(x.type)}", "the language hands on scalars")
    return t


def _yielded(r: FunctionReader, op: Operation) -> tuple[ir.Operand, ...]:
    """Return handed-on values, integers signed as the results are read."""
    return tuple(r.signed(x) for x in op.operands)


def leave(r: FunctionReader, op: Operation) -> None:
    """``func.return``: nothing for a function without results."""
    if op.operands:
        r.out.append(ir.Return(_yielded(r, op), r.span))


def hand_on(r: FunctionReader, op: Operation) -> None:
    if op.operands:
        r.out.append(ir.Yield(_yielded(r, op), r.span))


def branch(r: FunctionReader, op: Any) -> None:
    span = r.span
    when = r.value(op.operands[0])
    then, other = (r.block(region.block) if region.blocks else ir.Block(()) for region in op.regions)
    results = tuple(_named(r, x) for x in op.results)
    r.out.append(ir.If(when, then, other, results, span))


def _named(r: FunctionReader, x: SSAValue) -> ir.Value:
    made = ir.Value(r.fresh(x), _typed(r, x))
    r.known[x] = made
    return made


def loop(r: FunctionReader, op: Any) -> None:
    """``scf.for``; bounds of an integer type are read as sizes."""
    span = r.span
    start, stop, step = (r.as_dtype(x, INDEX) for x in op.operands[:3])
    inits = tuple(r.signed(x) for x in op.operands[3:])
    block = op.regions[0].block
    counter, *args = block.args
    var = ir.Value(r.fresh(counter, "i"), scalar(INDEX))
    r.known[counter] = var
    carried = tuple(ir.Carried(_named(r, a), init) for a, init in zip(args, inits))
    body = _counted(r, counter, var, block)
    results = tuple(_named(r, x) for x in op.results)
    r.out.append(ir.For("range", var, (start, stop, step), carried, body, results, {}, span))


def _counted(r: FunctionReader, counter: SSAValue, var: ir.Value, block: Any) -> ir.Block:
    """Read a loop's body; a counter of an integer type is the size, cut."""
    t = type_of(counter.type)
    if t == var.type or t is None:
        return r.block(block)
    cut = ir.Value(r.fresh(None, var.name), t)
    r.known[counter] = cut
    body = r.block(block)
    first = ir.Op("scalar.wrap", (var,), {"dtype": t.dtype}, (cut,), r.span)  # type: ignore[union-attr]
    return ir.Block((first, *body.statements))


def while_loop(r: FunctionReader, op: Any) -> None:
    span = r.span
    inits = tuple(r.signed(x) for x in op.operands)
    before, after = (region.block for region in op.regions)
    carried = tuple(ir.Carried(_named(r, a), init) for a, init in zip(before.args, inits))
    last = before.last_op
    if list(last.operands[1:]) != list(before.args):
        r.fail("the condition of scf.while hands on other values than it was given",
               "the language's loops hand on what they carry", "compute them in the second region")  # fmt: skip
    outer, r.out = r.out, []
    for inner in before.ops:
        r.at = inner
        if inner is not last:
            r.statement(inner)
    cond = r.value(last.operands[0])
    head, r.out = ir.Block(tuple(r.out)), outer
    for a, b in zip(before.args, after.args):
        r.known[b] = r.known[a]
    body = r.block(after)
    results = tuple(_named(r, x) for x in op.results)
    r.out.append(ir.While(carried, head, cond, body, results, span))


def section(r: FunctionReader, op: Any) -> None:
    kind = op.name.removeprefix("pto.section.")
    sizes = op.properties.get("sizes")
    span = r.span
    body = r.block(op.regions[0].block)
    r.out.append(ir.Scope(f"pl.section_{kind}({sizes.data if isinstance(sizes, StringAttr) else ''})", body, span))


def launch(r: FunctionReader, op: Any) -> None:
    callee = op.properties["callee"]
    assert isinstance(callee, SymbolRefAttr)
    _launched(r, callee.root_reference.data, op.operands[:3], op.operands[3:])


def _launched(r: FunctionReader, name: str, sizes: Any, given: Any) -> None:
    if len(given) > 8:
        r.fail(f"{name} is launched with {len(given)} arguments", "the language's launches take eight")
    grid = tuple(r.as_dtype(x, INDEX) for x in sizes)
    arguments = [r.value(x) for x in given]
    r.made("pto.simt_launch", (grid, *arguments, *[None] * (8 - len(arguments))), None, {"callee": name})


def sizes_of_call(r: FunctionReader, op: Any) -> None:
    """``pto.store_vfsimt_info``: the sizes of the call that follows, z first."""
    if op.next_op is None or op.next_op.name != "func.call":
        r.fail("pto.store_vfsimt_info is followed by no call of a SIMT entry")


def call(r: FunctionReader, op: Any) -> None:
    name = op.properties["callee"].root_reference.data
    before = op.prev_op
    if before is not None and before.name == "pto.store_vfsimt_info":
        _launched(r, name, tuple(reversed(before.operands)), op.operands)
        return
    operands = tuple(r.value(x) for x in op.operands)
    results = tuple(_named(r, x) for x in op.results)
    r.out.append(ir.Op("call", operands, {"callee": name}, results, r.span))


FLOW: dict[str, Flow] = {
    "func.return": leave, "scf.yield": hand_on, "scf.if": branch, "scf.for": loop, "scf.while": while_loop,
    "pto.section.simt": section, "pto.section.vector": section, "pto.section.cube": section, "pto.simt_launch": launch,
    "pto.store_vfsimt_info": sizes_of_call, "func.call": call,
}  # fmt: skip
