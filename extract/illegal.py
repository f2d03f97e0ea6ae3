"""Why a region has no legal form on a target: one diagnostic per operation that stands in the way."""

from __future__ import annotations

from ..ir.diagnostics import Diagnostic
from ..ir.dtypes import DTYPES, UINT8
from ..ir.op import OPS
from ..ir.predicates import Predicates
from ..ir.program import Op, Value
from ..ir.types import TileType
from ..rewrite.graph import OPERATION, Graph
from ..rewrite.region import Region
from ..rules.facts import dtype_holds
from ..rules.paths import roads
from ..rules.paths_rank import describe, no_road, why_inexact
from ..rules.target import Target
from .price import Pricer, Refusal

MAX_REPORTED = 20


def explain_illegal(region: Region, graph: Graph, bad: frozenset[int], pricer: Pricer) -> list[Diagnostic]:
    """Return the diagnostics of the operations that no legal node computes and whose operands are legal.

    Of operations known to be equal the first stands for all: the others ask for what it could not give.
    """
    derivable = _derivable(graph, pricer)
    found: list[Diagnostic] = []
    masks = Predicates()
    seen: set[int] = set()
    for i, op in enumerate(region.ops):
        c = graph.op_class[i]
        masks.note(op.name, op.operands, op.results)
        if c in derivable or c in seen or not _operands_fine(graph, c, derivable):
            continue
        seen.add(c)
        diagnostic = _diagnose(op, graph, c, pricer, masks)
        if diagnostic is not None:
            found.append(diagnostic)
        if len(found) == MAX_REPORTED:
            break
    if found:
        return found
    first = next((op for op, c in zip(region.ops, graph.op_class) if c not in derivable), region.ops[0])
    return [Diagnostic("TG022", f"no legal form of {first.name} is known", first.span)]


def _derivable(graph: Graph, pricer: Pricer) -> set[int]:
    done: set[int] = set()
    changed = True
    while changed:
        changed = False
        for c, nodes in enumerate(graph.classes):
            if c not in done and any(
                not isinstance(pricer.node(graph, n), Refusal) and done.issuperset(n.children) for n in nodes
            ):
                done.add(c)
                changed = True
    return done


def _operands_fine(graph: Graph, c: int, derivable: set[int]) -> bool:
    written = [n for n in graph.classes[c] if n.kind == OPERATION and n.origin >= 0]
    return any(derivable.issuperset(n.children) for n in written)


def _diagnose(op: Op, graph: Graph, c: int, pricer: Pricer, masks: Predicates) -> Diagnostic | None:
    target = pricer.target.name if pricer.target else "no target"
    if op.name == "tile.cast":
        return _diagnose_cast(op, graph, c, pricer, target)
    node = next(n for n in graph.classes[c] if n.origin >= 0)
    if node.decl is not None and node.decl.composite:
        return _diagnose_composite(op, graph, c, pricer, target)
    price = pricer.node(graph, node)
    reason = price.reason if isinstance(price, Refusal) else "no operand form is legal"
    hint = price.hint if isinstance(price, Refusal) and price.hint else ""
    hint = hint or _complement(op, masks) or _cast_first(op, pricer.target)
    return Diagnostic("TG022", f"{op.name} is not legal on {target}", op.span, reason, hint)


def _complement(op: Op, masks: Predicates) -> str:
    """Return what to write for the complement of what is, or may be, a mask; "" for other operations."""
    o = op.operands[0] if op.name == "tile.not_" else None
    if not isinstance(o, Value) or not isinstance(o.type, TileType) or o.type.dtype is not UINT8:
        return ""
    name = "mask" if "__arg_tmp_v" in o.name else o.name
    if o.name in masks.compared:
        return f"the complement of a mask is pl.tile.mask_not({name})"
    return f"if it is a mask, write pl.tile.mask_not({name}); else cast to a wider dtype first"


def _cast_first(op: Op, target: Target | None) -> str:
    """Return to what dtype to cast first, and whether that keeps every value; "" where the dtype is not in the way."""
    first = next((t for t in (getattr(o, "type", None) for o in op.operands) if isinstance(t, TileType)), None)
    info = target.ops.get(OPS[op.name].pto or "") if target else None
    if first is None or info is None:
        return "cast to a dtype the operation takes"
    taken = [t for name, t in DTYPES.items() if name in info.asm and name in info.isa]
    if first.dtype in taken or not taken:
        return ""
    own = first.dtype.name
    if holding := [t.name for t in taken if dtype_holds("widens", (first.dtype, t))]:
        return f"cast to {' or '.join(holding)} first, which hold{'s' * (len(holding) == 1)} every value of {own}"
    verb = "do" if len(taken) > 1 else "does"
    names = " and ".join(t.name for t in taken)
    return f"{names} {verb} not hold every value of {own}: cast only where the values are known to fit"


def _diagnose_composite(op: Op, graph: Graph, c: int, pricer: Pricer, target: str) -> Diagnostic:
    """Name what stands in the way of the operations that could take the composite's place."""
    found: dict[str, None] = {}
    seen, front = {c}, [c]
    while front and not found:
        inner: list[int] = []
        for k in front:
            for node in graph.classes[k]:
                price = pricer.node(graph, node)
                if node.decl is not None and isinstance(price, Refusal) and not node.decl.composite:
                    found[price.reason] = None
                elif not isinstance(price, Refusal):
                    inner += [x for x in node.children if x not in seen]
        seen.update(inner)
        front = inner
    reason = "; ".join(found) or "no rule gives other operations for these operands"
    return Diagnostic("TG022", f"{op.name} is not legal on {target}", op.span, reason, "cast to a dtype it takes there")


def _diagnose_cast(op: Op, graph: Graph, c: int, pricer: Pricer, target: str) -> Diagnostic | None:
    """Return why a cast has no form; ``None`` for one that has an exact chain, which something else keeps from it."""
    source = getattr(op.operands[0], "type", None)
    result = op.result.type
    assert isinstance(source, TileType) and isinstance(result, TileType) and pricer.target is not None
    mode, saturation = op.attrs.get("mode", "round"), op.attrs.get("saturation_mode")
    node = next(n for n in graph.classes[c] if n.origin >= 0)
    values = graph.values.get(node.children[0])
    found = roads(pricer.target, source.dtype, result.dtype, mode, saturation, values)
    if any(road.exact for road in found):
        return None
    if found:
        best, pair = found[0], f"{source.dtype.name} to {result.dtype.name}"
        note = f"best inexact chain: {best}, {describe(best)}"
        return Diagnostic(
            "TG021",
            f"no exact chain of native casts from {pair} on {target}",
            op.span,
            why_inexact(found),
            "admit it with the contract faithful, or prove a narrower range with tile.assume",
            notes=(note,),
        )
    return no_road(pricer.target, source.dtype, result.dtype, op.span).diagnostics[0]
