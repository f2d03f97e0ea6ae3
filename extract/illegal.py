"""Why a region has no legal form on a target: one diagnostic per operation that stands in the way."""

from __future__ import annotations

from itertools import pairwise

from ..ir.diagnostics import Diagnostic
from ..ir.dtypes import DTYPES, UINT8, DType
from ..ir.op import OPS
from ..ir.ops.memory import CREATE, MOVE
from ..ir.ops.padding import PAD
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
    return f"if it is a mask, write pl.tile.mask_not({name}); else pl.tile.xors({name}, 255)"


#: Operations that compute nothing: another dtype would move, or fill in, something else.
_MOVES = (CREATE, MOVE, PAD)


#: Operations on integers whose exact result may leave the range of the dtype, where it wraps.
_WRAPPING = frozenset(
    f"tile.{name}" for name in ("add", "adds", "sub", "subs", "mul", "muls", "neg", "abs", "shl", "shls", "not_")
)


def _cast_first(op: Op, target: Target | None) -> str:
    """Return the dtypes to compute in instead, which hold every value and have conversions; "" for what is no matter of
    dtype.
    """
    decl = OPS[op.name]
    first = next((t for t in (getattr(o, "type", None) for o in op.operands) if isinstance(t, TileType)), None)
    info = target.ops.get(decl.pto or "") if target else None
    if first is None or info is None or target is None or decl.family in _MOVES:
        return ""
    own = first.dtype
    taken = [DTYPES[name] for name in info.takes]
    if own in taken or not taken:
        return ""
    wrapping = decl.name in _WRAPPING and own.is_int
    wider = [t for t in taken if dtype_holds("widens", (own, t)) and _converts(target, own, t, own)]
    if near := [t.name for t in wider if t.is_float == own.is_float]:
        wraps = f'; cast back with saturation_mode="off", which wraps as {own.name} does'
        back = wraps if wrapping else ""
        return f"cast to {' or '.join(near)} first: every value of {own.name} is one there, too{back}"
    if wider:
        names = " or ".join(t.name for t in wider)
        return f"{names} would hold the values, but quotients are not truncated there and sums do not wrap"
    return f"{target.name} converts {own.name} to no dtype that {info.name} takes and that holds every value"


def _converts(target: Target, *dtypes: DType) -> bool:
    """Whether each has a chain of native casts to the next one."""
    return all(roads(target, src, dst, "none", None, None) for src, dst in pairwise(dtypes))


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
