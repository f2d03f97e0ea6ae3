"""Why a region has no legal form on a target: one diagnostic per operation that stands in the way."""

from __future__ import annotations

from ..ir.diagnostics import Diagnostic
from ..ir.program import Op
from ..ir.types import TileType
from ..rewrite.graph import OPERATION, Graph
from ..rewrite.region import Region
from ..rules.paths import roads
from ..rules.paths_rank import clamps_infinities, describe, why_inexact
from .price import Pricer, Refusal

MAX_REPORTED = 20


def explain_illegal(region: Region, graph: Graph, bad: frozenset[int], pricer: Pricer) -> list[Diagnostic]:
    """Return the diagnostics of the operations that no legal node computes and whose operands are legal."""
    derivable = _derivable(graph, pricer)
    found: list[Diagnostic] = []
    for i, op in enumerate(region.ops):
        c = graph.op_class[i]
        if c in derivable or not _operands_fine(graph, c, derivable):
            continue
        found.append(_diagnose(op, graph, c, pricer))
        if len(found) == MAX_REPORTED:
            break
    return found or [
        Diagnostic("TG022", f"no legal form of {region.ops[0].name} is known", region.ops[0].span)
    ]


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


def _diagnose(op: Op, graph: Graph, c: int, pricer: Pricer) -> Diagnostic:
    target = pricer.target.name if pricer.target else "no target"
    if op.name == "tile.cast":
        return _diagnose_cast(op, graph, c, pricer, target)
    node = next(n for n in graph.classes[c] if n.origin >= 0)
    if node.decl is not None and node.decl.composite:
        return _diagnose_composite(op, graph, c, pricer, target)
    price = pricer.node(graph, node)
    reason = price.reason if isinstance(price, Refusal) else "no operand form is legal"
    hint = price.hint if isinstance(price, Refusal) and price.hint else "cast to a dtype the operation takes"
    return Diagnostic("TG022", f"{op.name} is not legal on {target}", op.span, reason, hint)


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


def _diagnose_cast(op: Op, graph: Graph, c: int, pricer: Pricer, target: str) -> Diagnostic:
    source = getattr(op.operands[0], "type", None)
    result = op.result.type
    assert isinstance(source, TileType) and isinstance(result, TileType) and pricer.target is not None
    mode, saturation = op.attrs.get("mode", "round"), op.attrs.get("saturation_mode")
    node = next(n for n in graph.classes[c] if n.origin >= 0)
    values = graph.values.get(node.children[0])
    found = roads(pricer.target, source.dtype, result.dtype, mode, saturation, values)
    pair = f"{source.dtype.name} to {result.dtype.name}"
    if found:
        best = found[0]
        note = f"best inexact chain: {best}, {describe(best)}"
        return Diagnostic(
            "TG021",
            f"no exact chain of native casts from {pair} on {target}",
            op.span,
            why_inexact(found),
            "admit it with the contract faithful, or prove a narrower range with tile.assume",
            notes=(note,),
        )
    if source.dtype is result.dtype and saturation == "on":
        return clamps_infinities(target, source.dtype, op.span).diagnostics[0]
    return Diagnostic(
        "TG020",
        f"no legal chain of native casts from {pair} on {target}",
        op.span,
        "every chain loses values that the destination can hold",
        f"see: tilegg casts {source.dtype.short} {result.dtype.short} --arch {target}",
    )
