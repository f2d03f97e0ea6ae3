"""The audit: in a saturated e-graph every node of a class has the same value, on hostile inputs, bit for bit.

A program is executed statement by statement. After each run of a block, the e-graph of every region in it is
evaluated: a class has the value the program computed for it, a class that rules made has the value of its
first node; every node is then computed from its children's class values and compared with its class. Nodes
marked ``approx`` may appear under the faithful contract only and must be what some legal road computes; under the
contracted one a node may differ where its rule says so (see ``audit_rules``).
The facts the rules relied on are tested as well: every value lies in its predicted value set, every ``fits``
and ``finite`` row is true.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.convert import decode
from ..ir.inputs import assumed_domains, dtypes_of
from ..ir.interp_eval import Evaluator, evaluator, scalar_rounder
from ..ir.members import contains
from ..ir.op import OPS
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
    While,
    Yield,
    inner_blocks,
)
from ..ir.tilearray import TileArray, poison
from ..ir.types import ScalarType, TensorType, TileType, TupleType, Type
from ..rules.target import Target
from .audit_graph import EvaluatedGraph
from .audit_inputs import PooledDrawer
from .audit_report import KEPT, AuditReport, Disagreement
from .audit_values import numbers_of
from .knowledge import Knowledge
from .region import names_in_types, regions
from .saturate import Plan, saturate

#: Rounds of one loop that are executed at most; random programs have few.
_MOST_ROUNDS = 1000


def audit(
    program: Program,
    target: Target | None,
    seed: int = 0,
    contract: str = "faithful",
    runs: int = 3,
    rules: Collection[str] = (),
) -> AuditReport:
    """Audit every region of a program's functions on ``runs`` drawn inputs.

    ``contract``: exact, faithful or contracted. Programs consist of declared operations, ``for``, ``while`` and
    ``if``; tiles have static shapes. ``rules``: names of rules that are counted as well where another rule made the
    same node first. Raises :class:`TileggError` when the program cannot be evaluated.
    """
    report = AuditReport()
    for f in program.functions:
        audited = _Audited(f, target, contract, report, rules)
        drawer = PooledDrawer(f, dtypes_of(f), assumed_domains(f), {})
        rng = np.random.default_rng([seed, 1])
        first = seed % 21  # kinds of elements go by turn
        for turn in range(runs):
            with np.errstate(all="ignore"):
                audited.run(drawer.draw(rng, first + turn))
    return report


class _Broken(Exception):
    """A promise of the program does not hold on these inputs."""


Environment = dict[str, Any]


class _Audited:
    """One function with the e-graphs of its regions."""

    def __init__(
        self, f: Function, target: Target | None, contract: str, report: AuditReport, rules: Collection[str]
    ) -> None:
        self.rules = rules
        self.function, self.target, self.contract, self.report = f, target, contract, report
        self.knowledge = Knowledge(f)
        self.graphs: dict[int, list[EvaluatedGraph]] = {}
        self.meanings: dict[int, Evaluator] = {}
        self._saturate(f.body, names_in_types(f))

    def _saturate(self, block: Block, fixed: frozenset[str]) -> None:
        made: list[EvaluatedGraph] = []
        for region in regions(block, fixed):
            plan = Plan(self.target, self.contract == "exact", contracted=self.contract == "contracted")
            graph = saturate(region, self.knowledge, plan)
            made.append(EvaluatedGraph(region, graph, self.knowledge, plan, self.report, self.rules))
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
                if len(self.report.problems) < KEPT:
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
                case While():
                    self._while(s, env, pending)
                case If():
                    side = s.then if _value(s.cond, env) else s.orelse
                    self._bind(s.results, self._block(side, env, pending), env)
                case Yield() | Return():
                    out = tuple(_value(o, env) for o in s.operands)
                case _:
                    raise TypeError(f"the audit does not execute {type(s).__name__}")
        pending.append((block, dict(env)))
        return out

    def _for(self, s: For, env: Environment, pending: list[tuple[Block, Environment]]) -> None:
        start, stop, step = (int(_value(b, env)) for b in s.bounds)
        current = tuple(_value(c.init, env) for c in s.carried)
        for i in range(start, stop, step):
            self._bind((s.var, *(c.arg for c in s.carried)), (i, *current), env)
            current = self._block(s.body, env, pending)
        self._bind(s.results, current, env)

    def _while(self, s: While, env: Environment, pending: list[tuple[Block, Environment]]) -> None:
        current = tuple(_value(c.init, env) for c in s.carried)
        for _ in range(_MOST_ROUNDS):
            self._bind([c.arg for c in s.carried], current, env)
            self._block(s.head, env, pending)
            if not _value(s.cond, env):
                self._bind(s.results, current, env)
                return
            current = self._block(s.body, env, pending)
        raise _Broken

    def _op(self, s: Op, env: Environment) -> None:
        meaning = self.meanings.get(id(s))
        if meaning is None:
            types = [getattr(o, "type", None) for o in s.operands]
            result = s.result.type if len(s.results) == 1 else TupleType(tuple(r.type for r in s.results))
            meaning = self.meanings[id(s)] = evaluator(OPS[s.name], types, s.attrs, result)
        operands = [_value(o, env) for o in s.operands]
        if s.name == "tile.assume" and not _promise_holds(s, operands):
            raise _Broken
        found = meaning(operands)
        self._bind(s.results, (found,) if len(s.results) == 1 else found, env)

    def _bind(self, names: Sequence[Value], values: Sequence[Any], env: Environment) -> None:
        for v, value in zip(names, values, strict=True):
            env[v.name] = value
            self._check_set(v, value)

    def _check_set(self, v: Value, value: Any) -> None:
        numbers = numbers_of(value, v.type)
        if numbers is None or len(self.report.problems) >= KEPT:
            return
        self.report.sets += 1
        values = self.knowledge.of(v)
        inside = contains(values, numbers)
        if not inside.all():
            (bad,) = numbers[~inside].reshape(-1)[:1].tolist()
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
