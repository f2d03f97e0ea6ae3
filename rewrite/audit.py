"""The audit: in a saturated e-graph every node of a class has the same value, on hostile inputs, bit for bit.

A program is executed statement by statement. After each run of a block, the e-graph of every region in it is
evaluated: a class has the value the program computed for it, a class that rules made has the value of its
first node; every node is then computed from its children's class values and compared with its class. Nodes
marked ``approx`` may appear under the faithful contract only and must be what some legal road computes.
The facts the rules relied on are tested as well: every value lies in its predicted value set, every ``fits``
and ``finite`` row is true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir.convert import decode
from ..ir.diagnostics import TileggError
from ..ir.inputs import Drawer, assumed_domains, dtypes_of
from ..ir.interp_eval import Evaluator, evaluator, scalar_rounder
from ..ir.members import contains
from ..ir.op import OPS, Kind
from ..ir.program import (
    Block,
    Const,
    For,
    Function,
    If,
    Op,
    Operand,
    Program,
    Return,
    Value,
    Yield,
    inner_blocks,
)
from ..ir.tilearray import TileArray, poison
from ..ir.types import ScalarType, TensorType, TileType, Type
from ..rules.check import value_condition
from ..rules.target import Target
from ..rules.terms import DTYPE_CODES, child_params
from .audit_recipes import is_recipe, recipe_failures
from .audit_roads import is_road_value
from .audit_values import first_difference, numbers_of, rule_name, same_value
from .graph import ABSENT, LEAF, LITERAL, Graph, Node
from .knowledge import Knowledge
from .region import Region, names_in_types, regions
from .saturate import Plan, saturate, value_facts, value_sets


@dataclass(frozen=True)
class Disagreement:
    """One thing the audit found wrong: ``kind`` is node, type, fact, set or contract; ``rule`` by name."""

    kind: str
    rule: str
    text: str


@dataclass
class AuditReport:
    """What one audit covered. ``skipped`` counts runs in which a promise of the program did not hold."""

    regions: int = 0
    classes: int = 0
    nodes: int = 0
    approx: int = 0
    facts: int = 0
    sets: int = 0
    runs: int = 0
    skipped: int = 0
    rules: dict[str, int] = field(default_factory=dict)
    problems: list[Disagreement] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when nothing disagreed."""
        return not self.problems

    def add(self, other: AuditReport) -> None:
        """Sum up another report."""
        for name in ("regions", "classes", "nodes", "approx", "facts", "sets", "runs", "skipped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for rule, count in other.rules.items():
            self.rules[rule] = self.rules.get(rule, 0) + count
        self.problems += other.problems


#: Problems kept per audit; more say nothing new.
_KEPT = 20


def audit(
    program: Program, target: Target | None, seed: int = 0, contract: str = "faithful", runs: int = 3
) -> AuditReport:
    """Audit every region of a program's functions on ``runs`` drawn inputs.

    Programs consist of declared operations, ``for`` and ``if``; tiles have static shapes. Raises
    :class:`TileggError` when the program cannot be evaluated.
    """
    report = AuditReport()
    for f in program.functions:
        audited = _Audited(f, target, contract, report)
        drawer = Drawer(f, dtypes_of(f), assumed_domains(f), {})
        rng = np.random.default_rng([seed, 1])
        for turn in range(runs):
            with np.errstate(all="ignore"):
                audited.run(drawer.draw(rng, turn))
    return report


class _Broken(Exception):
    """A promise of the program does not hold on these inputs."""


Environment = dict[str, Any]


class _Audited:
    """One function with the e-graphs of its regions."""

    def __init__(self, f: Function, target: Target | None, contract: str, report: AuditReport) -> None:
        self.function, self.target, self.contract, self.report = f, target, contract, report
        self.knowledge = Knowledge(f)
        self.graphs: dict[int, list[_Evaluated]] = {}
        self.meanings: dict[int, Evaluator] = {}
        self._saturate(f.body, names_in_types(f))

    def _saturate(self, block: Block, fixed: frozenset[str]) -> None:
        exact_only = self.contract == "exact"
        made: list[_Evaluated] = []
        for region in regions(block, fixed):
            plan = Plan(self.target, exact_only)
            graph = saturate(region, self.knowledge, plan)
            made.append(_Evaluated(region, graph, self.knowledge, self.target, exact_only, self.report))
            self.report.regions += 1
        self.graphs[id(block)] = made
        for s in block.statements:
            for inner in inner_blocks(s):
                self._saturate(inner, fixed)

    def run(self, inputs: Mapping[str, Any]) -> None:
        """Execute the function once and audit every block that runs."""
        self.report.runs += 1
        env: Environment = {}
        for p in self.function.params:
            given = inputs.get(p.value.name)
            env[p.value.name] = _start(p.value.type, given)
        pending: list[tuple[Block, Environment]] = []
        try:
            self._block(self.function.body, env, pending)
        except _Broken:
            self.report.skipped += 1
            return
        for block, seen in pending:
            for graph in self.graphs[id(block)]:
                if len(self.report.problems) < _KEPT:
                    graph.check(seen)

    def _block(self, block: Block, env: Environment, pending: list[tuple[Block, Environment]]) -> tuple[Any, ...]:
        """Execute a block; returns what it yields. Facts are judged once all promises are known to hold."""
        out: tuple[Any, ...] = ()
        for s in block.statements:
            match s:
                case Op():
                    self._op(s, env)
                case For():
                    self._for(s, env, pending)
                case If():
                    side = s.then if _value(s.cond, env) else s.orelse
                    self._bind(s.results, self._block(side, env, pending), env)
                case Yield() | Return():
                    out = tuple(_value(o, env) for o in s.operands)
                case _:
                    raise NotImplementedError(f"the audit does not execute {type(s).__name__}")
        pending.append((block, dict(env)))
        return out

    def _for(self, s: For, env: Environment, pending: list[tuple[Block, Environment]]) -> None:
        start, stop, step = (int(_value(b, env)) for b in s.bounds)
        current = tuple(_value(c.init, env) for c in s.carried)
        for i in range(start, stop, step):
            self._bind((s.var, *(c.arg for c in s.carried)), (i, *current), env)
            current = self._block(s.body, env, pending)
        self._bind(s.results, current, env)

    def _op(self, s: Op, env: Environment) -> None:
        meaning = self.meanings.get(id(s))
        if meaning is None:
            types = [getattr(o, "type", None) for o in s.operands]
            meaning = self.meanings[id(s)] = evaluator(OPS[s.name], types, s.attrs, s.result.type)
        operands = [_value(o, env) for o in s.operands]
        if s.name == "tile.assume" and not _promise_holds(s, operands):
            raise _Broken
        self._bind(s.results, (meaning(operands),), env)

    def _bind(self, names: Sequence[Value], values: Sequence[Any], env: Environment) -> None:
        for v, value in zip(names, values, strict=True):
            env[v.name] = value
            self._check_set(v, value)

    def _check_set(self, v: Value, value: Any) -> None:
        numbers = numbers_of(value, v.type)
        if numbers is None or len(self.report.problems) >= _KEPT:
            return
        self.report.sets += 1
        values = self.knowledge.of(v)
        inside = contains(values, numbers)
        if not inside.all():
            bad = numbers[~inside].reshape(-1)[0]
            text = f"{v.name} ({v.type}) holds {bad!r}, predicted {values}"
            self.report.problems.append(Disagreement("set", "", text))


def _start(t: Type, given: Any) -> Any:
    if given is None and isinstance(t, TensorType):
        return poison(tuple(int(d) for d in t.shape), t.dtype)
    if isinstance(t, TensorType):
        return np.array(given)
    if isinstance(t, TileType):
        return TileArray(given)
    return scalar_rounder(t.dtype)(given) if isinstance(t, ScalarType) else given


def _value(o: Operand, env: Environment) -> Any:
    match o:
        case Value(name=name):
            return env[name]
        case Const(value=value, dtype=dtype):
            return scalar_rounder(dtype)(value)
        case tuple():
            return tuple(_value(item, env) for item in o)
    return None


def _promise_holds(s: Op, operands: Sequence[Any]) -> bool:
    tile, low, high = operands
    numbers = decode(np.ascontiguousarray(tile.region), s.operands[0].type.dtype)  # type: ignore[union-attr]
    return bool(np.all((numbers >= low) & (numbers <= high)))


class _Evaluated:
    """The e-graph of one region, evaluated once per execution of its block."""

    def __init__(
        self,
        region: Region,
        graph: Graph,
        knowledge: Knowledge,
        target: Target | None,
        exact_only: bool,
        report: AuditReport,
    ) -> None:
        self.region, self.graph, self.report, self.target = region, graph, report, target
        self.sets = value_sets(region, knowledge)
        self.facts = value_facts(region, self.sets)
        self.values = [*region.leaves, *(op.result for op in region.ops)]
        self.meanings: dict[Node, Evaluator] = {}
        report.classes += len(graph.classes)
        report.nodes += graph.size
        self._count_rules()
        self._check_types()
        if exact_only and any(n.approx for nodes in graph.classes for n in nodes):
            report.problems.append(Disagreement("contract", "", "an inexact road under the exact contract"))

    def _count_rules(self) -> None:
        for nodes in self.graph.classes:
            for node in nodes:
                self.report.approx += node.approx
                if node.rule:
                    name = rule_name(node.rule)
                    self.report.rules[name] = self.report.rules.get(name, 0) + 1

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

    def check(self, env: Environment) -> None:
        """Evaluate every node on the values of one execution."""
        known: dict[int, Any] = {}
        for leaf, c in zip(self.region.leaves, self.graph.leaf_class):
            self._agree(c, env[leaf.name], known, leaf.name)
        for op, c in zip(self.region.ops, self.graph.op_class):
            self._agree(c, env[op.result.name], known, op.result.name)
        self._spread(known)
        self._check_facts(env)

    def _agree(self, c: int, value: Any, known: dict[int, Any], name: str) -> None:
        """Two program values in one class must be equal."""
        if c in known:
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
                value = self._compute(node, known)
                if c not in known:
                    known[c] = value
                elif node.kind != LEAF:
                    self._judge(c, node, value, known)
            if len(later) == len(open_nodes):
                self._problem("node", later[0][1], f"{len(later)} nodes cannot be computed")
                return
            open_nodes = later

    def _compute(self, node: Node, known: Mapping[int, Any]) -> Any:
        if node.kind == LEAF:
            return None
        if node.kind == LITERAL:
            assert isinstance(node.value, Const)
            return scalar_rounder(node.value.dtype)(node.value.value)
        if node.kind == ABSENT:
            return None
        assert node.decl is not None
        places = dict(zip(child_params(node.decl), node.children))
        operands, types = self._operands(node, places, known)
        meaning = self.meanings.get(node)
        if meaning is None:
            meaning = self.meanings[node] = evaluator(node.decl, types, node.attrs, node.type)
        try:
            return meaning(operands)
        except TileggError as problem:
            self._problem("node", node, f"{node.decl.name}: {problem}")
            return None

    def _operands(self, node: Node, places: Mapping[int, int], known: Mapping[int, Any]) -> tuple[list[Any], list[Any]]:
        assert node.decl is not None
        operands: list[Any] = []
        types: list[Any] = []
        for i, param in enumerate(node.decl.operand_params):
            if i in places:
                operands.append(known[places[i]])
                types.append(self.graph.types[places[i]])
                if param.kind is Kind.TILE and not isinstance(types[-1], TileType):
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
        elif not node.approx:
            self._compare(c, known[c], value, node, "a node")
        elif not is_road_value(self.graph, c, value, known, self.target):
            self._problem("node", node, f"class {c}: an inexact node that no legal road computes")

    def _compare(self, c: int, want: Any, got: Any, node: Node | None, what: str) -> None:
        if same_value(want, got, self.graph.types[c]):
            return
        shown = node.decl.name if node is not None and node.decl is not None else ""
        attrs = {k: getattr(v, "name", v) for k, v in node.attrs.items()} if node is not None else {}
        self._problem(
            "node", node, f"class {c}: {what} {shown} {attrs} {first_difference(want, got, self.graph.types[c])}"
        )

    def _check_facts(self, env: Environment) -> None:
        for relation, i, dtype in self.facts:
            v = self.values[i]
            value = env[v.name]
            if not isinstance(value, TileArray) or not isinstance(v.type, TileType):
                continue
            self.report.facts += 1
            codes = [] if dtype is None else [dtype if isinstance(dtype, int) else DTYPE_CODES[dtype.name]]
            array = np.ascontiguousarray(value.region).reshape(-1)
            if not value_condition(relation, array, v.type.dtype, codes).all():
                shown = "" if dtype is None else f" {dtype}"
                self._problem("fact", None, f"{relation}({v.name}{shown}) does not hold")
