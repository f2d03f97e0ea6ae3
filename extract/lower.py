"""Lowering a program: regions through the e-graph, the cheapest legal choice, and the program rebuilt from it.

The lowered program is in the same language: every cast in it is native on the target, every operation legal.
It is never costlier, under the objective, than the input's own lowering (each operation as written, each
cast by its shortest chain).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..ir.diagnostics import Diagnostic, TileggError, error
from ..ir.op import Kind
from ..ir.program import (
    Block,
    Carried,
    For,
    Function,
    If,
    Op,
    Operand,
    Program,
    Return,
    Scope,
    Statement,
    Value,
    While,
    Yield,
    defined,
    inner_blocks,
)
from ..ir.types import TileType
from ..rewrite.engine import Budget
from ..rewrite.graph import LEAF, LITERAL, Graph, Node
from ..rewrite.knowledge import Knowledge
from ..rewrite.region import Region, names_in_types, regions, uses
from ..rewrite.saturate import Plan, saturate
from ..rules.target import Target, load_target
from ..rules.terms import child_params
from .baseline import plain_block
from .dag import Problem, Solution, problem, solve
from .ilp import solve_exact
from .lowered import FunctionReport, Instruction, Lowered, RegionResult, Totals
from .memo import SHARED, Memo, region_key
from .price import OBJECTIVES, Objective, Price, Pricer, Refusal

CONTRACTS = ("exact", "faithful")


@dataclass(frozen=True)
class Options:
    """How to lower: see :func:`lower`."""

    objective: Objective = "cycles"
    contract: str = "faithful"
    exact: bool = False
    time_limit: float = 1.0
    budget: Budget = field(default_factory=Budget)
    after: Callable[[str, Any], None] | None = None
    memo: Memo | None = SHARED


def lower(
    program: Program,
    arch: str | None,
    *,
    objective: str = "cycles",
    contract: str = "faithful",
    exact: bool = False,
    time_limit: float = 1.0,
    node_limit: int = 200_000,
    after: Callable[[str, Any], None] | None = None,
    memo: Memo | None = SHARED,
) -> Lowered:
    """Return the cheapest legal form of a program on a target.

    ``arch``: target name or path of a target file; ``None`` leaves casts alone. ``objective``: cycles,
    instructions or accuracy. ``contract``: faithful (a cast may take a legal chain that rounds twice, with a
    remark) or exact. ``exact``: prove the optimum with the integer solver, up to ``time_limit`` seconds a
    region. ``after(name, thing)`` is called after each pass. ``memo``: solved regions to reuse.
    Raises :class:`TileggError` (TG020-TG022, TG040).
    """
    if objective not in OBJECTIVES:
        raise error("TG040", f"unknown objective {objective!r}", hint=f"one of {', '.join(OBJECTIVES)}")
    if contract not in CONTRACTS:
        raise error("TG040", f"unknown contract {contract!r}", hint=f"one of {', '.join(CONTRACTS)}")
    budget = Budget(nodes=node_limit)
    options = Options(objective, contract, exact, time_limit, budget, after, memo)
    target = load_target(arch) if arch else None
    return _Lowering(program, target, options).run()


class _Lowering:
    def __init__(self, program: Program, target: Target | None, options: Options) -> None:
        self.program = program
        self.target = target
        self.options = options
        self.pricer = Pricer(target, options.contract == "exact")
        self.timings: dict[str, float] = {}
        self.remarks: list[Diagnostic] = []

    def run(self) -> Lowered:
        functions, reports = [], []
        for f in self.program.functions:
            lowered, report = _FunctionLowering(self, f).run()
            functions.append(lowered)
            reports.append(report)
        result = replace(self.program, functions=tuple(functions))
        if self.options.after:
            self.options.after("extract", result)
        plain = self.timed("plain", lambda: self._plain())
        totals = Totals(
            sum(i.count for r in reports for i in r.instructions),
            sum(i.cycles for r in reports for i in r.instructions),
        )
        regions = [r for report in reports for r in report.regions]
        cost = sum(r.solution.cost for r in regions)
        bound = sum(r.solution.bound for r in regions)
        gap = (cost - bound) / cost if cost else 0.0
        name = self.target.name if self.target else "none"
        return Lowered(
            result, self.program, name, self.options.objective, self.options.contract,
            reports, totals, plain, gap, self.remarks, self.timings,
        )  # fmt: skip

    def _plain(self) -> Totals:
        count, cycles = 0, 0.0
        for f in self.program.functions:
            n, c = plain_block(f.body, self.pricer)
            count, cycles = count + n, cycles + c
        return Totals(count, cycles)

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        try:
            return work()
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - start


class _FunctionLowering:
    """Lowers one function: statements in order, each region's chosen operations at their old places."""

    def __init__(self, parent: _Lowering, function: Function) -> None:
        self.parent = parent
        self.function = function
        self.report = FunctionReport(function.name)
        self.fixed = names_in_types(function)
        self.knowledge = Knowledge(function)
        self.replaced: dict[str, Operand] = {}
        self.names = {p.value.name for p in function.params}

    def run(self) -> tuple[Function, FunctionReport]:
        body = self.block(self.function.body)
        body = _without_dead(body, self.fixed)
        kept = {id(s) for s in _all_ops(body)}
        self.report.instructions = [i for i in self.report.instructions if id(i.op) in kept]
        return replace(self.function, body=body), self.report

    def block(self, block: Block) -> Block:
        found = regions(block, self.fixed)
        first = len(self.report.regions)
        # Results of statements that are still to come; a region may read them as leaves.
        later = {r.name for s in block.statements for r in defined(s)}
        builders = []
        for i, region in enumerate(found):
            graph, solution = self._solve(region)
            builders.append(_Builder(self, region, graph, solution, first + i, later))
        place = {p: (b, i) for b in builders for i, p in enumerate(b.region.positions)}
        owner = {op.result.name: b for b in builders for op in b.region.ops}
        out: list[Statement] = []
        for position, s in enumerate(block.statements):
            if position in place:
                builder, i = place[position]
                builder.reach(i, out)
            else:
                for name in uses(s):
                    if name in owner:
                        owner[name].demand(name, out)
                out.append(self._kept(s))
            later.difference_update(r.name for r in defined(s))
        return Block(tuple(out))

    def _solve(self, region: Region) -> tuple[Graph, Solution]:
        parent, options = self.parent, self.parent.options
        if options.memo is None:
            graph, p, solution = self._solve_anew(region)
        else:
            target = parent.target.path if parent.target else None
            asked = (target, options.objective, options.contract, options.exact, options.budget)
            key, types = parent.timed("memo", lambda: region_key(region, self.knowledge, asked))
            found = options.memo.get(key)
            if found is None:
                found = self._solve_anew(region)
                options.memo.put(key, found, types)
            graph, p, solution = found
        if graph.stopped != "saturated":
            span = region.ops[0].span
            parent.remarks.append(Diagnostic("TG026", graph.stopped, span, severity="remark"))
        if options.after:
            options.after("saturate", graph)
        self.report.regions.append(RegionResult(graph, p, solution))
        return graph, solution

    def _solve_anew(self, region: Region) -> tuple[Graph, Problem, Solution]:
        parent, options = self.parent, self.parent.options
        plan = Plan(parent.target, options.contract == "exact", options.budget)
        graph: Graph = parent.timed("saturate", lambda: saturate(region, self.knowledge, plan))
        p, solution = parent.timed("extract", lambda: self._extract(region, graph))
        return graph, p, solution

    def _extract(self, region: Region, graph: Graph) -> tuple[Problem, Solution]:
        pricer, options = self.parent.pricer, self.parent.options
        weighted: list[list[tuple[int, tuple[int, ...]] | None]] = []
        for nodes in graph.classes:
            row: list[tuple[int, tuple[int, ...]] | None] = []
            for node in nodes:
                price = pricer.node(graph, node)
                weight = price.weight(options.objective) if isinstance(price, Price) else None
                row.append((weight, node.children) if weight is not None else None)
            weighted.append(row)
        p = problem(weighted, graph.roots)
        if p.infeasible:
            raise self._illegal(region, graph, p.infeasible)
        return p, solve_exact(p, options.time_limit, 4096.0) if options.exact else solve(p)

    def _illegal(self, region: Region, graph: Graph, bad: frozenset[int]) -> TileggError:
        from .illegal import explain_illegal

        return TileggError(*explain_illegal(region, graph, bad, self.parent.pricer))

    # -- statements that stay ----------------------------------------------------------------------------

    def sub(self, o: Operand) -> Operand:
        """Return the operand with replaced values substituted."""
        if isinstance(o, tuple):
            return tuple(map(self.sub, o))
        if isinstance(o, Value):
            return self.replaced.get(o.name, o)
        return o

    def _kept(self, s: Statement) -> Statement:
        match s:
            case Op():
                op = replace(s, operands=tuple(map(self.sub, s.operands)))
                price = self.parent.pricer.written(op)
                if isinstance(price, Refusal):
                    raise error("TG022", f"{s.name}: {price.reason}", s.span, hint=price.hint)
                self.report.instructions.append(Instruction(op, price.cycles, price.instructions, 0, s.span))
                return op
            case Yield() | Return():
                return replace(s, operands=tuple(map(self.sub, s.operands)))
            case For():
                start, stop, step = map(self.sub, s.bounds)
                body = self.block(s.body)
                return replace(s, bounds=(start, stop, step), carried=self._carried(s.carried), body=body)
            case While():
                carried = self._carried(s.carried)
                head = self.block(s.head)
                return replace(s, carried=carried, head=head, cond=self.sub(s.cond), body=self.block(s.body))
            case If():
                return replace(s, cond=self.sub(s.cond), then=self.block(s.then), orelse=self.block(s.orelse))
            case Scope():
                return replace(s, body=self.block(s.body))
            case _:
                return s

    def _carried(self, carried: tuple[Carried, ...]) -> tuple[Carried, ...]:
        return tuple(Carried(c.arg, self.sub(c.init)) for c in carried)


class _Builder:
    """Rebuilds operations from a region's solution, each class once, where the first of its uses stood."""

    def __init__(
        self,
        owner: _FunctionLowering,
        region: Region,
        graph: Graph,
        solution: Solution,
        number: int,
        later: set[str],
    ) -> None:
        self.owner = owner
        self.region = region
        self.graph = graph
        self.solution = solution
        self.number = number
        self.made: dict[int, Operand] = {}
        self.later = later
        self.op_of_name = {op.result.name: i for i, op in enumerate(region.ops)}
        self.members: dict[int, list[int]] = {}
        for i, c in enumerate(graph.op_class):
            self.members.setdefault(c, []).append(i)

    def reach(self, i: int, out: list[Statement]) -> None:
        """Build operation ``i``'s class at its old place, if it is used and its leaves exist by now."""
        c = self.graph.op_class[i]
        if c in self.solution.picks and (c in self.made or self._ready(c)):
            self._settle(c, out)

    def demand(self, name: str, out: list[Statement]) -> None:
        """Make sure a root is built before a statement that reads it."""
        i = self.op_of_name.get(name)
        if i is not None and name not in self.owner.replaced:
            self._settle(self.graph.op_class[i], out)

    def _settle(self, c: int, out: list[Statement]) -> None:
        value = self._make(c, out)
        for i in self.members.get(c, ()):
            self.owner.replaced[self.region.ops[i].result.name] = value

    def _ready(self, c: int) -> bool:
        stack, seen = [c], set()
        while stack:
            k = stack.pop()
            if k in seen or k in self.made:
                continue
            seen.add(k)
            node = self._node(k)
            if node.kind == LEAF and self.region.leaves[node.key[0]].name in self.later:
                return False
            stack += node.children
        return True

    def _node(self, c: int) -> Node:
        return self.graph.classes[c][self.solution.picks[c]]

    def _make(self, c: int, out: list[Statement]) -> Operand:
        stack = [c]
        while stack:
            k = stack[-1]
            if k in self.made:
                stack.pop()
                continue
            node = self._node(k)
            waiting = [x for x in node.children if x not in self.made and self._needed(x)]
            if waiting:
                stack += reversed(waiting)
                continue
            self.made[k] = self._operation(k, node, out)
            stack.pop()
        return self.made[c]

    def _needed(self, c: int) -> bool:
        return c in self.solution.picks

    def _operation(self, c: int, node: Node, out: list[Statement]) -> Operand:
        if node.kind == LEAF:
            return self.owner.sub(self.region.leaves[node.key[0]])
        if node.kind == LITERAL:
            return node.value
        if node.decl is None:
            return None
        written = self._written(c, node)
        operands = self._operands(node, written)
        result = Value(self._name(c), self._type(c, node))
        attrs = dict(node.attrs)
        op = Op(node.decl.name, operands, attrs, (result,), written.span if written else None)
        out.append(op)
        price = self.owner.parent.pricer.node(self.graph, node)
        assert isinstance(price, Price)
        self.owner.report.instructions.append(
            Instruction(
                op,
                price.cycles,
                price.instructions,
                node.rule if node.origin < 0 else 0,
                op.span,
                self.number,
                c,
                node.approx,
            )
        )
        return result

    def _written(self, c: int, node: Node) -> Op | None:
        """Return the source operation this node stands for, else the one it helps to compute."""
        if node.origin >= 0:
            return self.region.ops[node.origin]
        if c in self.members:
            return self.region.ops[self.members[c][0]]
        return self.region.ops[self._user(c)]

    def _user(self, c: int) -> int:
        """Return the first operation whose chosen node (transitively) uses a rule-made class."""
        seen = {c}
        while True:
            for k, node_index in self.solution.picks.items():
                if seen.intersection(self.graph.classes[k][node_index].children) and k not in seen:
                    if k in self.members:
                        return self.members[k][0]
                    seen.add(k)
                    break
            else:
                return 0

    def _operands(self, node: Node, written: Op | None) -> tuple[Operand, ...]:
        decl = node.decl
        assert decl is not None
        children = dict(zip(child_params(decl), node.children))
        operands: list[Operand] = []
        for i, p in enumerate(decl.operand_params):
            if i in children:
                operands.append(self.made.get(children[i]))
            elif p.kind is Kind.DIMS:
                operands.append(node.operands[i])  # type: ignore[arg-type]
            else:
                same = written is not None and written.name == decl.name
                operands.append(self.owner.sub(written.operands[i]) if same and written else None)
        return tuple(operands)

    def _type(self, c: int, node: Node) -> TileType:
        if node.origin >= 0:
            return self.region.ops[node.origin].result.type  # type: ignore[return-value]
        return node.type  # type: ignore[return-value]

    def _name(self, c: int) -> str:
        if c in self.members:
            roots = [i for i in self.members[c] if self.region.ops[i].result.name in self.region.roots]
            return self.region.ops[(roots or self.members[c])[0]].result.name
        node = self._node(c)
        user = self.region.ops[self._user(c)].result.name
        assert node.decl is not None and isinstance(node.type, TileType)
        what = node.decl.name.split(".")[1]
        suffix = f"_{node.type.dtype.short}" if what == "cast" else ""
        return self._fresh(f"{user}__{what}{suffix}_tmp")

    def _fresh(self, stem: str) -> str:
        version = 0
        while f"{stem}_v{version}" in self.owner.names:
            version += 1
        self.owner.names.add(f"{stem}_v{version}")
        return f"{stem}_v{version}"


def _all_ops(block: Block) -> list[Op]:
    out: list[Op] = []
    for s in block.statements:
        if isinstance(s, Op):
            out.append(s)
        for inner in inner_blocks(s):
            out += _all_ops(inner)
    return out


_DROPPABLE = frozenset({"tile.create", "tile.load", "tensor.read", "tensor.dim", "tensor.slice"})


def _without_dead(block: Block, fixed: frozenset[str]) -> Block:
    """Drop reads and creations whose results nothing uses, innermost last, until none is left."""
    while True:
        used = {name for s in block.statements for name in uses(s)} | fixed
        kept, dropped = _sweep(block, used)
        if not dropped:
            return block
        block = kept


def _sweep(block: Block, used: set[str] | frozenset[str]) -> tuple[Block, bool]:
    out: list[Statement] = []
    dropped = False
    for s in block.statements:
        if isinstance(s, Op) and s.name in _DROPPABLE and not any(r.name in used for r in s.results):
            dropped = True
            continue
        out.append(s)
    return Block(tuple(out)), dropped
