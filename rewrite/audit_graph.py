"""The e-graph of a region evaluated on the values of one execution: every node against its class, every fact."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.diagnostics import TileggError
from ..ir.dtypes import DType
from ..ir.interp_eval import Evaluator, evaluator, scalar_rounder
from ..ir.op import Kind
from ..ir.program import Const
from ..ir.tilearray import TileArray
from ..ir.types import TileType
from ..rules.check_conditions import value_condition
from ..rules.terms import DTYPE_CODES, child_params
from .audit_recipes import is_recipe, recipe_failures
from .audit_report import AuditReport, Disagreement
from .audit_roads import is_road_value
from .audit_rules import merged_by, unjustified
from .audit_values import first_difference, rule_name, same_value
from .graph import ABSENT, LEAF, LITERAL, Graph, Node
from .knowledge import Knowledge
from .region import Region
from .saturate import Plan, value_facts, value_sets


class EvaluatedGraph:
    """The e-graph of one region, evaluated once per execution of its block."""

    def __init__(
        self,
        region: Region,
        graph: Graph,
        knowledge: Knowledge,
        plan: Plan,
        report: AuditReport,
        rules: Collection[str] = (),
    ) -> None:
        self.region, self.graph, self.report, self.plan = region, graph, report, plan
        self.sets = value_sets(region, knowledge)
        self.facts = value_facts(region, self.sets)
        self.values = [*region.leaves, *(op.result for op in region.ops)]
        self.meanings: dict[Node, Evaluator] = {}
        report.classes += len(graph.classes)
        report.nodes += graph.size
        self._count_rules(rules)
        self._check_types()
        if plan.exact_only and any(n.approx for nodes in graph.classes for n in nodes):
            report.problems.append(Disagreement("contract", "", "an inexact road under the exact contract"))

    def _count_rules(self, names: Collection[str]) -> None:
        counts = self.report.rules
        for nodes in self.graph.classes:
            for node in nodes:
                self.report.approx += node.approx
                if node.rule:
                    name = rule_name(node.rule)
                    counts[name] = counts.get(name, 0) + 1
        places = [*self.graph.leaf_class, *self.graph.op_class]
        facts = {(relation, places[i], _code(dtype)) for relation, i, dtype in self.facts}
        for name, count in merged_by(self.graph, facts, names).items():
            counts[name] = counts.get(name, 0) + count

    def _check_types(self) -> None:
        """All nodes of a class have one type."""
        for c, nodes in enumerate(self.graph.classes):
            types = {n.type for n in nodes if n.kind != ABSENT}
            if len(types) > 1:
                shown = ", ".join(sorted(map(str, types)))
                self._problem("type", nodes[-1], f"class {c} holds {shown}")

    def _problem(self, kind: str, node: Node | None, text: str) -> None:
        rule = rule_name(node.rule) if node is not None and node.rule else ""
        self.report.problems.append(Disagreement(kind, rule, text))

    def check(self, env: Mapping[str, Any]) -> None:
        """Evaluate every node on the values of one execution."""
        known: dict[int, Any] = {}
        for leaf, c in zip(self.region.leaves, self.graph.leaf_class):
            self._agree(c, env[leaf.name], known, leaf.name)
        for op, c in zip(self.region.ops, self.graph.op_class):
            self._agree(c, env[op.result.name], known, op.result.name)
        self._spread(known)
        self._check_facts(env)

    def _agree(self, c: int, value: Any, known: dict[int, Any], name: str) -> None:
        """Two program values in one class must be equal; contracted, what they merged by is judged node by node."""
        if c in known:
            if self.plan.contracted and not same_value(known[c], value, self.graph.types[c]):
                self.report.contracted += 1
                return
            self._compare(c, known[c], value, None, f"{name}, merged with another value,")
        else:
            known[c] = value

    def _spread(self, known: dict[int, Any]) -> None:
        """Give rule-made classes the value of their first node that can be computed, and compare the rest."""
        open_nodes = [(c, n) for c, nodes in enumerate(self.graph.classes) for n in nodes]
        while open_nodes:
            later = []
            for c, node in open_nodes:
                if any(k not in known for k in node.children):
                    later.append((c, node))
                    continue
                value = self._compute(node, [known[k] for k in node.children])
                if c not in known:
                    known[c] = value
                elif node.kind != LEAF:
                    self._judge(c, node, value, known)
            if len(later) == len(open_nodes):
                self._problem("node", later[0][1], f"{len(later)} nodes cannot be computed")
                return
            open_nodes = later

    def _compute(self, node: Node, children: Sequence[Any]) -> Any:
        """Return what a node gives for its children's values."""
        if node.kind == LITERAL:
            assert isinstance(node.value, Const)
            return scalar_rounder(node.value.dtype)(node.value.value)
        if node.kind in (LEAF, ABSENT):
            return None
        assert node.decl is not None
        operands, types = self._operands(node, dict(zip(child_params(node.decl), zip(node.children, children))))
        meaning = self.meanings.get(node)
        if meaning is None:
            meaning = self.meanings[node] = evaluator(node.decl, types, node.attrs, node.type)
        try:
            return meaning(operands)
        except TileggError as problem:
            self._problem("node", node, f"{node.decl.name}: {problem}")
            return None

    def _operands(self, node: Node, places: Mapping[int, tuple[int, Any]]) -> tuple[list[Any], list[Any]]:
        """Return operands and their types; ``places``: class and value by operand position."""
        assert node.decl is not None
        operands: list[Any] = []
        types: list[Any] = []
        for i, param in enumerate(node.decl.operand_params):
            if i in places:
                c, value = places[i]
                operands.append(value)
                types.append(self.graph.types[c])
                absent = types[-1] is None and not param.required
                if param.kind is Kind.TILE and not absent and not isinstance(types[-1], TileType):
                    self._problem("type", node, f"{node.decl.name} takes a tile, not {types[-1]}")
            else:
                listed = node.operands[i] if i < len(node.operands) else None
                operands.append(tuple(d.value for d in listed) if isinstance(listed, tuple) else None)
                types.append(None)
        return operands, types

    def _judge(self, c: int, node: Node, value: Any, known: Mapping[int, Any]) -> None:
        if value is None:
            return
        if is_recipe(node):
            for text in recipe_failures(self.graph, c, node, value, known):
                self._problem("node", node, f"class {c}: {text}")
        elif node.approx:
            if not is_road_value(self.graph, c, value, known, self.plan.target):
                self._problem("node", node, f"class {c}: an inexact node that no legal road computes")
        elif self.plan.contracted and not same_value(known[c], value, self.graph.types[c]):
            self._judge_contracted(c, node, known)
        else:
            self._compare(c, known[c], value, node, "a node")

    def _judge_contracted(self, c: int, node: Node, known: Mapping[int, Any]) -> None:
        """Judge a node that differs from its class: some rule must give it, and keep its own promise here.

        Written operations may differ because a class below was given another value.
        """
        self.report.contracted += 1
        if not node.rule:
            return
        text = unjustified(self.graph, c, node, known, self._compute)
        if text:
            self._problem("node", node, f"class {c}: {text}")

    def _compare(self, c: int, want: Any, got: Any, node: Node | None, what: str) -> None:
        if same_value(want, got, self.graph.types[c]):
            return
        shown = node.decl.name if node is not None and node.decl is not None else ""
        attrs = {k: getattr(v, "name", v) for k, v in node.attrs.items()} if node is not None else {}
        self._problem(
            "node", node, f"class {c}: {what} {shown} {attrs} {first_difference(want, got, self.graph.types[c])}"
        )

    def _check_facts(self, env: Mapping[str, Any]) -> None:
        for relation, i, dtype in self.facts:
            v = self.values[i]
            value = env[v.name]
            if not isinstance(value, TileArray) or not isinstance(v.type, TileType):
                continue
            self.report.facts += 1
            codes = [] if dtype is None else [_code(dtype)]
            array = np.ascontiguousarray(value.region).reshape(-1)
            if not value_condition(relation, array, v.type.dtype, codes).all():
                shown = "" if dtype is None else f" {dtype}"
                self._problem("fact", None, f"{relation}({v.name}{shown}) does not hold")


def _code(dtype: DType | int | None) -> int:
    """Return the code of what a fact is about besides its value."""
    return -1 if dtype is None else dtype if isinstance(dtype, int) else DTYPE_CODES[dtype.name]
