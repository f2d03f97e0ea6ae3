"""The scalar lowering: plain scalar operations in the form LLVM has for them, chosen from the scalar e-graph.

``scalar.max`` becomes ``llvm.maxnum``, ``smax``, ``umax`` or a comparison and a selection by kind of operand, standard
mathematics the LLVM intrinsics, integer division by powers of two shifts and masks where that is proved right. The
combination inside an all-reduce is expanded first, so that it takes the same road as the plain operation. Casts and
control flow are not e-graph matters: emitters write them as they stand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from ..ir.diagnostics import Diagnostic
from ..ir.op import OPS
from ..ir.program import Function, Op, Program, walk
from ..ir.simt_expand import expand_collectives
from ..ir.types import ScalarType
from ..rewrite.engine import Budget
from ..rewrite.graph import OPERATION, Graph, Node
from ..rewrite.region import Region
from ..rewrite.scalar_engine import saturate_scalars
from ..rules.target import Target
from .dag import problem, solve
from .lower import Options, _FunctionLowering, _Lowering, chosen_totals, weights
from .memo import Solved
from .price import NOTHING, Price, Pricer, Refusal
from .rebuild import recipe

#: What to do with forms kept for hand-written code: rewrite them, or leave them as they are.
Compat = Literal["canonical", "keep"]

#: Prices of scalar operations in instructions, where they differ from 1; guards counted.
_COSTS = {
    "scalar.div": 9.0, "scalar.rem": 9.0, "scalar.mod": 10.0, "scalar.floordiv": 10.0, "scalar.mul": 2.0,
    "llvm.exp": 20.0, "llvm.log": 20.0, "llvm.pow": 40.0, "llvm.sqrt": 8.0,
}  # fmt: skip
#: Plain operations that have no instruction of their own for any operand.
_RAISED = frozenset(f"scalar.{n}" for n in ("max", "min", "abs", "sqrt", "exp", "log", "pow"))


class ScalarPricer(Pricer):
    """Prices of scalar nodes; tile nodes count alike."""

    def __init__(self, compat: Compat, extrema: bool = True) -> None:
        super().__init__(None)
        self.compat, self.extrema = compat, extrema

    def node_of(self, class_types: Any, values: Any, node: Node) -> Price | Refusal:
        if node.kind != OPERATION:
            return NOTHING
        assert node.decl is not None
        return Price(self._cost(node.decl.name, node.type), 1)

    def _cost(self, name: str, t: Any) -> float:
        record = OPS[name].scalar
        if not isinstance(t, ScalarType) or record is None:
            return 1.0
        if name in _RAISED or (not self.extrema and name in ("llvm.maxnum", "llvm.minnum")):
            return 1000.0
        if name.startswith("pto."):
            # A packed form has no other; a scalar one is kept or not, as asked.
            return 0.5 if self.compat == "keep" else 500.0
        return _COSTS.get(name, 1.0)


class _ScalarLowering(_FunctionLowering):
    """Walks a function as the tile lowering does, with the scalar e-graph."""

    def _solve(self, region: Region) -> Solved:
        pricer = self.parent.pricer
        assert isinstance(pricer, ScalarPricer)
        graph: Graph = saturate_scalars(region, self.knowledge, Budget(), pricer.extrema)
        p = problem(weights(graph, pricer, "cycles"), graph.roots)
        solution = solve(p)
        totals = chosen_totals(graph, solution, pricer)
        return Solved(graph, p, solution, recipe(region, graph, solution, pricer), totals)


def capability_problems(program: Program, target: Target) -> list[Diagnostic]:
    """Return the operations that need what the target does not have (TG022)."""
    found = []
    for f in program.functions:
        for s in walk(f.body):
            record = OPS[s.name].scalar if isinstance(s, Op) and s.name in OPS else None
            if record is not None and record.capability and not target.has(record.capability):
                assert isinstance(s, Op)
                reason = f"{target.name} does not have {record.capability}"
                hint = f"write {record.instead}" if record.instead else ""
                found.append(Diagnostic("TG022", f"{s.name} is not legal on {target.name}", s.span, reason, hint))
    return found


def lower_scalars(program: Program, *, compat: Compat = "canonical", extrema: bool = True) -> Program:
    """Return the program with scalar operations in their LLVM forms.

    ``compat``: ``"canonical"`` rewrites the forms kept for hand-written code (``pto.fmax`` ...), ``"keep"`` leaves
    them. Packed operands keep their explicit operations either way. ``extrema``: whether the target has maximum and
    minimum of float scalars; else they become comparisons and selections, which may give either of two equal zeros.
    """
    expanded = expand_collectives(program)
    parent = _Lowering(expanded, None, Options(memo=None))
    parent.pricer = ScalarPricer(compat, extrema)
    functions = tuple(_lowered(parent, f) for f in expanded.functions)
    return replace(expanded, functions=functions)


def _lowered(parent: _Lowering, f: Function) -> Function:
    return _ScalarLowering(parent, f).run().function


