"""What forms cost by their plain lowering: each cast by its shortest chain, each composite by its reference recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..ir.op import Kind
from ..ir.program import Op, Value
from ..rewrite.graph import LEAF, OPERATION
from ..rewrite.region import Region
from ..rewrite.storage import ALIASES
from ..rules.terms import child_params
from .baseline import plain
from .forms import Form, is_instruction, parts
from .inplace import overwritten
from .lowered import RegionResult, Totals
from .price import Price, Pricer


class FormPrices:
    """Prices of one region's forms, each worked out once: a state costs the sum over its different forms."""

    def __init__(self, result: RegionResult, pricer: Pricer) -> None:
        self.graph = result.graph
        self.region = result.region
        self.pricer = pricer
        self._known: dict[int, Totals | None] = {}

    def of(self, state: Mapping[str, Form]) -> Totals | None:
        """Return what a state costs; ``None`` where its plain lowering is not legal."""
        forms = [f for f in parts(state.values()) if is_instruction(f)]
        readers = Counter(id(_itself(k)) for f in forms for k in f.children)
        results = {id(_itself(f)) for f in state.values()}
        count, cycles, inexact = 0, 0.0, 0
        for f in forms:
            if id(f) not in self._known:
                self._known[id(f)] = self._alone(f)
            price = self._known[id(f)]
            if price is None:
                return None
            if f.node.decl is not None and f.node.decl.inout and self._copied(f, readers, results):
                copied = self.pricer.with_copies(Price(price.cycles, price.instructions), f.node.type)
                price = Totals(copied.instructions, copied.cycles, price.inexact)
            count, cycles, inexact = count + price.instructions, cycles + price.cycles, inexact + price.inexact
        return Totals(count, cycles, inexact)

    def _alone(self, form: Form) -> Totals | None:
        """Return the price of one operation whose operands are given, and may be overwritten."""
        node, decl = form.node, form.node.decl
        assert decl is not None and node.type is not None
        leaves: dict[int, Value] = {}
        values = {}
        for k in map(_itself, form.children):
            if k.node.kind in (LEAF, OPERATION) and id(k) not in leaves:
                if k.c in self.graph.values:
                    values[len(leaves)] = self.graph.values[k.c]
                leaves[id(k)] = Value(f"operand{len(leaves)}", self.graph.types[k.c])
        if form.c in self.graph.values:
            values[len(leaves)] = self.graph.values[form.c]
        given = dict(zip(child_params(decl), (leaves.get(id(_itself(k)), k.node.value) for k in form.children)))
        operands: tuple[Any, ...] = tuple(
            given[i] if i in given else node.operands[i] if p.kind is Kind.DIMS else None
            for i, p in enumerate(decl.operand_params)
        )
        t = self.region.ops[node.origin].result.type if node.origin >= 0 else node.type
        op = Op(decl.name, operands, node.attrs, (Value("result", t),))
        dying = frozenset(v.name for v in leaves.values())
        region = Region((op,), (0,), tuple(leaves.values()), frozenset({"result"}), dying)
        found = plain(region, values, self.pricer)
        return found.totals if found.totals.legal else None

    def _copied(self, form: Form, readers: Mapping[int, int], results: set[int]) -> bool:
        """Return whether an in-place instruction overwrites a value that is needed elsewhere."""
        assert form.node.decl is not None
        target = _itself(form.children[overwritten(form.node.decl)])
        if target.node.kind == LEAF:
            return readers[id(target)] > 1 or self.region.leaves[target.node.key[0]].name not in self.region.dying
        decl = target.node.decl
        return decl is None or id(target) in results or readers[id(target)] > 1 or decl.name in ALIASES


def _itself(form: Form) -> Form:
    """Return the form that computes a value: a recipe's own name for it is no operation."""
    while form.node.decl is not None and form.node.decl.name == "tile.approx":
        (form,) = form.children
    return form
